"""The vocabulary, how events are made, and the way of an event into attributes and back."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopspan import events as e
from loopspan import semconv
from loopspan._journal import Entry, Unknown, decode, encode, kept
from loopspan.events import VOCABULARY, Event
from samples import CLASSES, VALUES, full, least

VERSION_1 = """
run_started run_suspended run_resumed run_trace_closed checkpoint_saved transition_refused step_started step_closed
model_requested model_responded model_retry model_failed model_final response_parse_error
tool_call_proposed validation_passed validation_rejected permission_denied approval_requested
approval_span_closed approval_decision_received approval_recheck approval_denied approval_expired
approval_superseded tool_started tool_succeeded tool_failed tool_retry tool_span_closed
tool_result tool_result_reused tool_result_backfilled backfill_missing unknown_side_effect
reconcile_requested reconcile_resolved reconcile_unresolved reconcile_span_closed
manual_intervention manual_decision_received budget_exhausted tool_call_opened tool_call_closed usage_observed
human_wait replay_drift cancel_requested owner_changed
""".split()
"""The names of telemetry.md. Taking one away, or giving it other fields, needs another version."""

EVERY = pytest.mark.parametrize("cls", CLASSES, ids=[cls.name for cls in CLASSES])

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
TYPES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**63), 2**63 - 1),
    "str": st.text(),
    "float": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "Json": JSON,
}
ATTRIBUTES = st.dictionaries(st.text("abc.", min_size=1).map(semconv.PREFIX.__add__), st.text() | st.integers())


def values(cls: type[Event]) -> st.SearchStrategy[Event]:
    """Events of the class, every field with values of its type."""
    made = {}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        kind, _, none = str(field.type).partition(" | ")
        made[field.name] = TYPES[kind] | st.none() if none else TYPES[kind]
    return st.builds(cls, **made)


EVENTS = st.sampled_from(CLASSES).flatmap(values)
EXAMPLES = max(300, settings.default.max_examples if settings.default else 0)


def attributes_of(event: Event) -> list[tuple[str, Any]]:
    return list(encode(event, 7).items())


# the vocabulary


def test_the_vocabulary_has_the_names_of_version_1_and_no_other():
    assert sorted(VOCABULARY) == sorted(VERSION_1)


def test_every_event_can_be_imported_from_the_room_of_events():
    assert {cls.__name__ for cls in CLASSES} | {"Event", "VOCABULARY"} == set(e.__all__)
    assert all(getattr(e, cls.__name__) is cls for cls in CLASSES)


@EVERY
def test_an_event_is_named_like_its_class_in_snake_case(cls: type[Event]):
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", cls.name)
    assert cls.name.replace("_", "") == cls.__name__.lower()
    assert (VOCABULARY[cls.name], cls.version) == (cls, 1)
    assert cls.__doc__


@EVERY
def test_the_fields_of_an_event_are_scalars_or_travel_as_json(cls: type[Event]):
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    assert {str(field.type).removesuffix(" | None") for field in fields} <= VALUES.keys()
    assert cls.field_names == tuple(field.name for field in fields)
    assert cls.json_fields == {field.name for field in fields if field.type == "Json"}


# how an event is made


@EVERY
def test_an_event_is_frozen_and_slotted(cls: type[Event]):
    event = least(cls)
    for name in (*cls.field_names, "surplus"):
        with pytest.raises(AttributeError, match=r"frozen; make another one with dataclasses\.replace"):
            setattr(event, name, 1)
        with pytest.raises(AttributeError, match="frozen"):
            delattr(event, name)
    assert not hasattr(event, "__dict__")
    assert event == least(cls)


@EVERY
def test_an_event_takes_its_fields_by_name_only(cls: type[Event]):
    with pytest.raises(TypeError):
        cls("text")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="surplus"):
        cls(**{name: getattr(full(cls), name) for name in cls.field_names}, surplus=1)
    mandatory = [f for f in dataclasses.fields(cls) if f.default is dataclasses.MISSING]  # type: ignore[arg-type]
    if mandatory:
        with pytest.raises(TypeError, match=mandatory[0].name):
            cls()


@EVERY
def test_an_event_equals_only_an_event_of_its_class_with_equal_fields(cls: type[Event]):
    event = full(cls)
    assert event == full(cls)
    assert event != least(CLASSES[CLASSES.index(cls) - 1])
    assert event != "text"
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        assert dataclasses.replace(event, **{field.name: "another"}) != event  # type: ignore[type-var]


@EVERY
@pytest.mark.parametrize("made", [least, full])
def test_an_event_is_copied_pickled_replaced_and_shown(cls: type[Event], made: Callable[[type[Event]], Event]):
    event = made(cls)
    ways = [copy.copy(event), copy.deepcopy(event), dataclasses.replace(event)]  # type: ignore[type-var]
    ways += [pickle.loads(pickle.dumps(event, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    ways.append(eval(repr(event), vars(e)))
    assert all(type(way) is cls and way == event for way in ways)


def test_a_replaced_event_leaves_the_first_one_as_it_was():
    event = e.ToolRetry(step=1, call_id="c", ordinal=1, tool="t", attempt=1, error_type="E", backoff_s=0.5)
    assert dataclasses.replace(event, attempt=2).attempt == 2  # type: ignore[type-var]
    assert event.attempt == 1


# into attributes and back


@EVERY
@pytest.mark.parametrize("made", [least, full])
def test_every_event_is_read_back_as_it_was_written(cls: type[Event], made: Callable[[type[Event]], Event]):
    event = made(cls)
    assert decode(cls.name, encode(event, 7)) == event


@pytest.mark.fuzz
@settings(max_examples=EXAMPLES)
@given(event=EVENTS)
def test_whatever_the_fields_hold_is_read_back(event: Event):
    attributes = encode(event, 7)
    assert decode(event.name, attributes) == event
    assert {type(value) for value in attributes.values()} <= {int, str, float, bool}


@pytest.mark.fuzz
@settings(max_examples=EXAMPLES)
@given(event=EVENTS, data=st.data())
def test_an_event_is_read_back_from_what_backends_make_of_it(event: Event, data: st.DataObject):
    """Numbers and booleans as text, keys in any order, everything through JSON."""
    attributes = encode(event, 7)
    text = {key: str(value) for key, value in attributes.items()}
    lower = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in attributes.items()}
    shuffled = dict(data.draw(st.permutations(list(attributes.items()))))
    for form in (text, lower, shuffled):
        assert decode(event.name, json.loads(json.dumps(form))) == event


@EVERY
def test_defaults_are_left_out(cls: type[Event]):
    names = {semconv.PREFIX + field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    written = [key for key, _ in attributes_of(least(cls))[:-2]]
    assert written == [key for key, field in names.items() if field.default is dataclasses.MISSING]


@EVERY
@pytest.mark.parametrize("made", [least, full])
def test_sequence_number_and_version_are_the_last_keys(cls: type[Event], made: Callable[[type[Event]], Event]):
    """A limit on attributes evicts the first ones; `event` alone would replace the event's name in one backend."""
    attributes = attributes_of(made(cls))
    assert attributes[-2:] == [("loopspan.event.seq", 7), ("loopspan.event.version", 1)]
    assert all(key.startswith("loopspan.") and key != "loopspan.event" for key, _ in attributes)


def test_none_is_left_out_of_mandatory_fields_too():
    event = e.ToolCallProposed(step=None, tool="t")
    assert attributes_of(event)[0] == ("loopspan.tool", "t")
    assert decode(event.name, encode(event, 1)) == event


@pytest.mark.parametrize("value", [False, 0, 0.0, "", [], {}, "null", "[1]"], ids=repr)
def test_a_nested_value_that_is_empty_or_looks_like_json_is_kept(value: Any):
    event = e.ToolResult(step=1, call_id="c", ordinal=1, tool="t", content=value)
    found = decode(event.name, encode(event, 1))
    assert (found.content, type(found.content)) == (value, type(value))  # type: ignore[attr-defined]


def test_attributes_of_others_are_not_taken_for_fields():
    event = least(e.RunStarted)
    assert decode("run_started", {"agent": "x", "thread.id": 1, **encode(event, 1)}) == event


# what is not understood


@given(name=st.text().filter(lambda name: name not in VOCABULARY), attributes=ATTRIBUTES, version=st.integers(1, 99))
def test_an_event_of_an_unknown_name_is_emitted_again_as_it_was(name: str, attributes: dict[str, Any], version: int):
    carried = {**attributes, semconv.EVENT_SEQ: 7, semconv.EVENT_VERSION: version}
    found = decode(name, carried)
    assert isinstance(found, Unknown)
    assert (found.name, found.version, found.problem) == (name, version, None)
    assert attributes_of(found) == list(carried.items())


@EVERY
def test_an_event_of_another_version_is_emitted_again_as_it_was(cls: type[Event]):
    carried = {**encode(full(cls), 7), semconv.EVENT_VERSION: 2}
    found = decode(cls.name, carried)
    assert isinstance(found, Unknown)
    assert (found.name, found.version, found.problem) == (cls.name, 2, None)
    assert attributes_of(found) == list(carried.items())


@EVERY
def test_an_event_with_a_field_of_a_later_day_is_emitted_again_as_it_was(cls: type[Event]):
    carried = {"loopspan.later": "x", **encode(full(cls), 7)}
    found = decode(cls.name, carried)
    assert isinstance(found, Unknown)
    assert found.problem is None
    assert attributes_of(found) == list(carried.items())


def cut_values() -> list[tuple[type[Event], str]]:
    return [(cls, semconv.PREFIX + name) for cls in CLASSES for name in sorted(cls.json_fields)]


@pytest.mark.parametrize(("cls", "key"), cut_values(), ids=lambda value: getattr(value, "name", value))
def test_json_that_was_cut_is_kept_and_marked(cls: type[Event], key: str):
    whole = encode(full(cls), 7)
    for length in range(len(whole[key])):
        carried = {**whole, key: whole[key][:length]}
        found = decode(cls.name, carried)
        assert isinstance(found, Unknown)
        assert found.problem == f"{key}: JSONDecodeError"
        assert attributes_of(found) == list(carried.items())


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("attempt", "one", "ValueError"),
        ("attempt", float("inf"), "OverflowError"),
        ("attempt", [1], "TypeError"),
        ("backoff_s", "soon", "ValueError"),
    ],
)
def test_a_value_of_another_type_is_kept_and_marked(field: str, value: Any, error: str):
    carried = {**encode(full(e.ToolRetry), 7), semconv.PREFIX + field: value}
    found = decode("tool_retry", carried)
    assert isinstance(found, Unknown)
    assert found.problem == f"loopspan.{field}: {error}"
    assert attributes_of(found) == list(carried.items())


@pytest.mark.parametrize(
    ("cls", "field", "value", "error"),
    [
        (e.RunStarted, "durable", "perhaps", "KeyError"),
        (e.RunStarted, "budget", "[" * 100_000, "RecursionError"),
        (e.RunStarted, "event.version", "next", "ValueError"),
        (e.RunStarted, "event.version", float("inf"), "OverflowError"),
    ],
)
def test_nonsense_is_kept_and_marked(cls: type[Event], field: str, value: Any, error: str):
    carried = {**encode(full(cls), 7), semconv.PREFIX + field: value}
    found = decode(cls.name, carried)
    assert isinstance(found, Unknown)
    assert found.problem == f"loopspan.{field}: {error}"
    assert attributes_of(found) == list(carried.items())


def test_unknown_events_are_compared_by_what_they_carry():
    one, other = (Unknown("later", 2, {"loopspan.a": value}) for value in (1, 2))
    assert one == Unknown("later", 2, {"loopspan.a": 1}, problem="cut")
    assert one != other
    assert one != "later"
    assert repr(one) == "Unknown('later', version=2, {'loopspan.a': 1})"


# entries


def test_an_entry_shows_the_fields_of_its_event():
    entry = Entry("run", 1, 2, e.StepStarted(step=3))
    assert (entry.name, entry.step, entry.seq) == ("step_started", 3, 1)
    with pytest.raises(AttributeError, match="tool"):
        _ = entry.tool
    assert copy.copy(entry) == entry
    assert pickle.loads(pickle.dumps(entry)) == entry


def test_a_kept_event_does_not_change_with_the_values_that_it_was_made_of():
    budget = {"tokens": [1, 2]}
    event = e.RunStarted(agent="a", budget=budget)
    copied = kept(event)
    budget["tokens"].append(3)
    assert copied == e.RunStarted(agent="a", budget={"tokens": [1, 2]})
    assert kept(e.StepStarted(step=1)) == e.StepStarted(step=1)
