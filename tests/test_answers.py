"""Answers of every known form, as mappings and objects, whole and streamed; and what only looks like an answer."""

from __future__ import annotations

import json
import tracemalloc
from enum import Enum, StrEnum
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from answer_shapes import WHOLE, Row, chat, message, response
from answer_streams import STREAMED, chunk
from hostile import FIELDS, HOSTILE, SCALARS, Raising, SameAs
from loopspan._answers import Accumulator, read
from loopspan.usage import Usage
from loopspan.values import Answer, Call

AS_IS = {"input", "args", "arguments", "action"}
"""Fields that hold the arguments of a call: they are handed on as they are."""
MODELS = ("openai", "anthropic", "azure", "own")
NAMES = [
    *FIELDS,
    *(
        "choices",
        "message",
        "delta",
        "content",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "finish_reason",
        "usage",
    ),
    *("output", "status", "response", "stop_reason", "content_block", "index", "partial_json", "parts", "candidates"),
    *("usageMetadata", "usage_metadata", "functionCall", "stopReason", "toolUse", "messageStop", "metadata", "done"),
    *("eval_count", "model", "id", "object", "text", "thinking", "refusal", "contentBlockDelta", "contentBlockStart"),
]
KINDS = ["message", "message_start", "message_delta", "content_block_start", "content_block_delta", "tool_use", "text"]
ANYTHING = st.recursive(
    SCALARS | st.sampled_from([*KINDS, "response.completed", "function_call", "response"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=25,
)


class Reason(StrEnum):
    """Finish reasons that are text."""

    STOP = "stop"


class Number(Enum):
    """Finish reasons that are numbers, as protobuf has them."""

    MAX_TOKENS = 2


class Model(BaseModel):
    """A pydantic model with whatever fields it is given."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())


def convert(value: Any, kind: Any) -> Any:
    """`value` with its mappings as objects made by `kind`."""
    if isinstance(value, list):
        return [convert(item, kind) for item in value]
    if isinstance(value, dict):
        return kind(**{name: item if name in AS_IS else convert(item, kind) for name, item in value.items()})
    return value


def facts(answer: Answer | None) -> dict[str, Any]:
    """An answer as a row of the table."""
    assert answer is not None
    return {
        "usage": answer.usage,
        "model": answer.model,
        "id": answer.id,
        "reasons": answer.finish_reasons,
        "calls": answer.tool_calls,
        "content": answer.content,
        "reasoning": answer.reasoning,
    }


def expected(row: Row) -> dict[str, Any]:
    """What the table says."""
    return {name: getattr(row, name) for name in ("usage", "model", "id", "reasons", "calls", "content", "reasoning")}


def accumulate(chunks: Any, provider: str | None = None, *, content: bool = True) -> Answer | None:
    """What a stream adds up to."""
    accumulator = Accumulator(provider, content=content)
    for piece in chunks:
        accumulator.feed(piece)
    return accumulator.answer()


# --- the tables


def test_the_tables_have_at_least_30_forms_with_a_source_each():
    assert len(WHOLE) + len(STREAMED) >= 30
    assert len({row.name for row in WHOLE}) == len(WHOLE)
    assert all(row.source for row in [*WHOLE, *STREAMED])


@pytest.mark.parametrize("row", WHOLE, ids=lambda row: row.name)
def test_whole_as_mappings(row: Row):
    assert facts(read(row.answer, row.provider)) == expected(row)


@pytest.mark.parametrize("row", WHOLE, ids=lambda row: row.name)
def test_whole_as_objects(row: Row):
    assert facts(read(convert(row.answer, SimpleNamespace), row.provider)) == expected(row)


@pytest.mark.parametrize("row", [row for row in WHOLE if row.name.startswith(MODELS)], ids=lambda row: row.name)
def test_whole_as_pydantic_models(row: Row):
    assert facts(read(convert(row.answer, Model), row.provider)) == expected(row)


@pytest.mark.parametrize("row", WHOLE, ids=lambda row: row.name)
def test_whole_survives_json(row: Row):
    assert facts(read(json.loads(json.dumps(row.answer)), row.provider)) == expected(row)


@pytest.mark.parametrize("row", STREAMED, ids=lambda row: row.name)
def test_streamed_as_mappings(row: Row):
    assert facts(accumulate(row.answer, row.provider)) == expected(row)


@pytest.mark.parametrize("row", [row for row in STREAMED if row.name != "bedrock"], ids=lambda row: row.name)
def test_streamed_as_objects(row: Row):
    assert facts(accumulate(convert(row.answer, SimpleNamespace), row.provider)) == expected(row)


@pytest.mark.parametrize("row", [row for row in STREAMED if row.name.startswith(MODELS)], ids=lambda row: row.name)
def test_streamed_as_pydantic_models(row: Row):
    assert facts(accumulate(convert(row.answer, Model), row.provider)) == expected(row)


@pytest.mark.parametrize("row", STREAMED, ids=lambda row: row.name)
def test_a_stream_without_content_says_all_but_the_text(row: Row):
    assert facts(accumulate(row.answer, row.provider, content=False)) == {
        **expected(row),
        "content": None,
        "reasoning": None,
    }


def test_F4_usage_of_a_stream_is_taken_from_its_last_chunk():  # noqa: N802  # the id of the case
    chunks = [chunk({"content": "Hi."}), chunk({}, "stop"), chunk(usage={"prompt_tokens": 50, "completion_tokens": 7})]
    assert accumulate(chunks).usage == Usage(50, 7)
    assert accumulate(chunks[:2]).usage is None, "unknown, and not 0"


def test_F4_usage_that_is_repeated_in_every_chunk_is_not_summed():  # noqa: N802  # the id of the case
    chunks = [chunk({"content": "x"}, usage={"prompt_tokens": 50, "completion_tokens": n}) for n in (1, 2, 3)]
    assert accumulate(chunks).usage == Usage(50, 3)


def test_F5_one_none_in_usage_leaves_the_rest_of_the_answer():  # noqa: N802  # the id of the case
    answer = read(message(SimpleNamespace(input_tokens=None, output_tokens=5)))
    assert answer.usage == Usage(None, 5, incomplete=True)
    assert (answer.model, answer.finish_reasons, answer.content) == ("claude-1", ("end_turn",), "Hi.")


# --- what is no answer, and what is a bad one


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "text",
        b"bytes",
        7,
        7.5,
        True,
        (),
        ("usage",),
        [],
        [{"usage": 1}],
        {},
        {"a": 1},
        set(),
        object(),
    ],
)
def test_a_form_that_is_not_known_is_none(answer: Any):
    assert read(answer) is None
    assert accumulate([answer, answer]) is None


@pytest.mark.parametrize("kind", HOSTILE)
def test_objects_that_raise_are_none(kind: type):
    assert read(kind()) is None
    assert accumulate([kind()]) is None


@pytest.mark.parametrize("kind", HOSTILE)
def test_an_object_that_raises_inside_an_answer_costs_no_other_field(kind: type):
    answer = {**chat({"prompt_tokens": 5, "completion_tokens": 3}), "id": kind()}
    assert read(answer).usage == Usage(5, 3)
    assert read({**answer, "choices": kind()}).usage == Usage(5, 3)
    assert read({**answer, "usage": kind()}).content == "Hi."


def test_a_mapping_whose_key_raises_is_read_by_its_other_keys():
    answer = {SameAs("choices"): 1, "usage": {"prompt_tokens": 5, "completion_tokens": 3}}
    assert read(answer).usage == Usage(5, 3)
    assert accumulate([answer]).usage == Usage(5, 3)


@pytest.mark.parametrize("output", [["a", "b"], [], "text", {"message": "text"}, {"message": {"content": "text"}}])
def test_an_output_of_another_form_is_no_response(output: Any):
    assert read({"output": output, "status": "succeeded"}) is None


def test_a_response_without_its_object_name():
    call = {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}
    assert read({"output": [call]}).tool_calls == (Call("f", "{}", "1"),)
    assert read({"output": [], "usage": None}).tool_calls == ()


def test_a_mock_is_an_answer_of_which_nothing_is_known():
    assert read(MagicMock()) == Answer(usage=Usage(incomplete=True))
    assert accumulate([MagicMock()]) is not None


def test_an_answer_stays_the_same_object():
    answer = Answer(model="m-1")
    assert read(answer) is answer


@pytest.mark.parametrize("usage", ["many", [], 7, float("nan"), 2**70, {"usage": {}}, MagicMock(spec=[])])
def test_usage_that_cannot_be_read_costs_no_other_field(usage: Any):
    for answer in (chat(usage), message(usage), response(usage)):
        found = read(answer)
        assert found.usage is None
        assert found.model in ("m-1", "claude-1")
        assert found.tool_calls == ()


@pytest.mark.parametrize("calls", ["get_weather", {"name": "x"}, 7, True])
def test_calls_of_another_type_are_not_known(calls: Any):
    found = read(chat(None, {"role": "assistant", "content": "Hi.", "tool_calls": calls}))
    assert found.tool_calls is None
    assert found.content == "Hi."


def test_one_bad_call_costs_no_other():
    bad = [None, 7, {}, {"function": None}, {"function": {"name": 7}}, {"function": "x"}, Raising()]
    good = {"id": 7, "function": {"name": "get_time"}}
    found = read(chat(None, {"content": None, "tool_calls": [*bad, good]}))
    assert found.tool_calls == (Call("get_time"),)


@pytest.mark.parametrize("choice", [None, {}, {"message": None}, {"finish_reason": "stop"}, 7])
def test_a_choice_without_a_message_does_not_tell_of_calls(choice: Any):
    found = read({**chat({"prompt_tokens": 1, "completion_tokens": 2}), "choices": [choice]})
    assert (found.tool_calls, found.usage) == (None, Usage(1, 2))


def test_no_choices_ask_for_nothing():
    assert read({"model": "m-1", "usage": None, "choices": []}).tool_calls == ()


def test_several_choices():
    answer = chat(None)
    answer["choices"] = answer["choices"] * 2
    found = read(answer)
    assert (found.finish_reasons, found.content, found.tool_calls) == (("stop", "stop"), "Hi.Hi.", ())


def test_arguments_are_kept_as_they_are():
    arguments: Any = object()
    rows = [
        {"id": "1", "function": {"name": "f", "arguments": "{broken"}},
        {"function": {"name": "g", "arguments": arguments}},
    ]
    found = read(chat(None, {"content": None, "tool_calls": rows, "function_call": {"name": "h", "arguments": "{}"}}))
    assert found.tool_calls == (Call("f", "{broken", "1"), Call("g", arguments), Call("h", "{}"))


def test_texts_and_enums_become_plain_text():
    found = read({"candidates": [{"finish_reason": Reason.STOP}, {"finish_reason": Number.MAX_TOKENS}]})
    assert found.finish_reasons == ("stop", "MAX_TOKENS")
    assert {type(reason) for reason in found.finish_reasons} == {str}


def test_a_chunk_that_cannot_be_read_changes_nothing():
    chunks = STREAMED[0].answer
    for bad in (
        None,
        "text",
        7,
        {},
        {"choices": None},
        {"choices": 7},
        {"choices": [None, 7, {"delta": 7}]},
        Raising(),
    ):
        mixed = [piece for good in chunks for piece in (good, bad)]
        assert facts(accumulate(mixed)) == expected(STREAMED[0])


def test_a_stream_of_one_whole_answer_is_read_like_it():
    for answer in (
        chat({"prompt_tokens": 5, "completion_tokens": 3}),
        message({"input_tokens": 5, "output_tokens": 3}),
    ):
        found = accumulate([answer])
        assert (found.usage, found.content, found.tool_calls) == (Usage(5, 3), "Hi.", ())


def test_a_streamed_call_in_the_old_form():
    pieces = [{"name": "f", "arguments": ""}, {"arguments": '{"a":'}, {"arguments": "1}"}]
    found = accumulate([*(chunk({"function_call": piece}) for piece in pieces), chunk({}, "function_call")])
    assert found.tool_calls == (Call("f", '{"a":1}'),)


def test_streamed_calls_without_an_index():
    calls = [{"function": {"name": "f", "arguments": {"a": 1}}}, {"function": {"name": "g", "arguments": "{}"}}]
    assert accumulate([chunk({"tool_calls": calls}, "stop")]).tool_calls == (Call("f", {"a": 1}), Call("g", "{}"))


def test_an_answer_can_be_asked_for_at_any_time():
    accumulator = Accumulator(content=True)
    for piece in STREAMED[0].answer:
        accumulator.answer()
        accumulator.feed(piece)
    assert facts(accumulator.answer()) == expected(STREAMED[0])
    assert accumulator.answer() == accumulator.answer()


def test_a_stream_keeps_no_chunks():
    accumulator = Accumulator()
    accumulator.feed(chunk({"content": "x"}))
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(2000):
        accumulator.feed(chunk({"content": f"word {number} " * 20}))
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 20_000, "2,000 chunks of 200 bytes"


@pytest.mark.fuzz
@given(ANYTHING)
def test_read_never_raises_and_answers_plain_values(source: Any):
    for answer in (read(source), read(convert(source, SimpleNamespace))):
        if answer is not None:
            assert all(type(reason) is str for reason in answer.finish_reasons)
            assert all(type(text) is str or text is None for text in (answer.model, answer.id, answer.content))
            assert answer.tool_calls is None or all(type(call.name) is str for call in answer.tool_calls)


@pytest.mark.fuzz
@given(st.lists(ANYTHING | st.sampled_from([piece for row in STREAMED for piece in row.answer]), max_size=6))
def test_a_stream_of_anything_never_raises(chunks: list[Any]):
    answer = accumulate(chunks)
    assert answer is None or answer.usage is None or isinstance(answer.usage, Usage)


@pytest.mark.fuzz
@given(st.sampled_from(STREAMED), st.data())
def test_a_stream_may_break_off_anywhere(row: Row, data: st.DataObject):
    length = data.draw(st.integers(0, len(row.answer)))
    answer = accumulate(row.answer[:length], row.provider)
    if answer is not None and length < len(row.answer):
        assert answer.tool_calls != () or answer.finish_reasons
