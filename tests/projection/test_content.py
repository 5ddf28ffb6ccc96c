"""What leaves the process where content is off, and where it is on (telemetry.md, *Content*)."""

from __future__ import annotations

import contextlib
import logging
import re
from typing import Annotated, Any, Literal

import pytest
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from pydantic import AfterValidator, BaseModel, Field

import loopspan
from loopspan import Answer, Approval, Call, Content, Decision, Reconciled, Retry, semconv
from loopspan.testing import Captured, CountingIds, TickingClock, capture
from projection.sample import everything
from projection.spans import of

VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


def planted(place: str) -> str:
    """A secret that only this place has."""
    return f"SECRET({place})"


def found(text: str | bytes) -> set[str]:
    """The places whose secret is in `text`."""
    text = text if isinstance(text, str) else text.decode("utf-8", "replace")
    return set(re.findall(r"SECRET\(([^)]+)\)", text))


def exported(captured: Captured) -> bytes:
    """Every byte that exporters of spans and logs are given."""
    logs = captured._log_exporter.get_finished_logs()
    return encode_spans(captured.spans).SerializeToString() + encode_logs(logs).SerializeToString()


def never(value: str) -> str:
    """A validator that tells what it saw."""
    raise ValueError(f"bad value {value}")


class Cat(BaseModel):
    """One kind."""

    kind: Literal["cat"]


class Dog(BaseModel):
    """Another kind."""

    kind: Literal["dog"]


def refused_arguments() -> list[tuple[str, Any]]:
    """(tool, arguments) that do not fit, each in a way of its own, with a secret in it."""
    return [
        ("typed", {"number": planted("wrong type")}),
        ("typed", {"number": 1, planted("surplus name"): 1}),
        ("typed", f'{{"number": "{planted("broken JSON")}"'),
        ("typed", f'["{planted("no object")}"]'),
        ("nested", {"numbers": {planted("key"): "x"}}),
        ("checked", {"text": planted("validator")}),
        ("tagged", {"pet": {"kind": planted("tag")}}),
        ("chosen", {"choice": planted("choice")}),
    ]


def tools() -> loopspan.Toolbox:
    """Tools that keep secrets badly."""

    def typed(number: int) -> int:
        return number

    def nested(numbers: dict[str, int]) -> int:
        return len(numbers)

    def checked(text: Annotated[str, AfterValidator(never)]) -> str:
        return text

    def tagged(pet: Annotated[Cat | Dog, Field(discriminator="kind")]) -> str:
        return pet.kind

    def chosen(choice: Literal["a", "b"]) -> str:
        return choice

    def failing(text: str) -> None:
        raise OSError(planted("tool error")) from KeyError(planted("cause"))

    def returning(text: str) -> dict[str, str]:
        return {"text": planted("result")}

    @loopspan.tool(
        approval=Approval(
            expires_in=60,
            decide=lambda request: Decision(False, by="alice", comment=planted("comment")),
            resource=lambda arguments: planted("resource"),
        )
    )
    def asked(text: str) -> None:
        """Never entered."""

    @loopspan.tool(effect="reconcilable", reconcile=lambda intent: Reconciled.committed(planted("reconciled")))
    def unknown(text: str) -> None:
        raise OSError(planted("unknown error"))

    return loopspan.Toolbox(typed, nested, checked, tagged, chosen, failing, returning, asked, unknown)


def secretive() -> None:
    """A run with a secret in every place that content has."""
    failures = [OSError(planted("model error"))]
    box = tools()

    @loopspan.model_request(read=lambda said: said, retry=Retry(on=(OSError,), wait=0))
    def ask(messages: list[Any]) -> Answer:
        if failures:
            raise failures.pop()
        return Answer(
            content=[{"text": planted("answer")}],
            reasoning=planted("reasoning"),
            tool_calls=(Call("returning", {"text": planted("proposed")}, "call_1"),),
        )

    @loopspan.agent_loop("agent")
    def loop(task: str) -> None:
        ask([{"role": "user", "content": planted("message")}])
        for name in ("returning", "failing", "asked", "unknown"):
            box.call(name, {"text": planted(f"argument of {name}")}, on_error="return")
        for name, arguments in refused_arguments():
            box.call(name, arguments, on_error="return")
        with loopspan.tool_call("block", {"text": planted("block argument")}) as call, call.attempt():
            call.result(planted("block result"))
        loopspan.current_step().parse_error(planted("raw"), feedback=planted("feedback"))
        raise ValueError(planted("loop error"))

    with contextlib.suppress(ValueError):
        loop(planted("task"))


ON_RECORD = {
    "answer", "reasoning", "proposed", "model error", "result", "tool error", "comment", "reconciled", "unknown error",
    "raw", "feedback", "loop error", "block argument", "block result",
    "argument of returning", "argument of failing", "argument of asked", "argument of unknown",
    "wrong type", "surplus name", "broken JSON", "no object", "key", "validator", "tag", "choice",
}  # fmt: skip
"""What is on record where content is on."""

REFUSED = [
    "number: Input should be a valid integer, unable to parse string as an integer",
    "?: Extra inputs are not permitted",
    "not JSON: Expecting ',' delimiter: line 1 column 33 (char 32)",
    "not a JSON object but list",
    "numbers.?: Input should be a valid integer, unable to parse string as an integer",
    "text: value_error",
    "pet: union_tag_invalid",
    "choice: Input should be 'a' or 'b'",
]
"""What the record says of arguments that do not fit, where content is off."""


@pytest.mark.parametrize("events", ["span", "both"])
def test_without_content_no_secret_is_in_any_exported_byte(events: str):
    with capture(clock=TickingClock(), ids=CountingIds(), content=False, events=events) as captured:
        secretive()
    assert len(captured.spans) > 30
    assert found(exported(captured)) == set()
    assert found(repr(captured.entries)) == set()


@pytest.mark.parametrize("events", ["span", "both"])
def test_with_content_all_of_it_is_on_record(events: str):
    with capture(clock=TickingClock(), ids=CountingIds(), content=True, events=events) as captured:
        secretive()
    assert found(exported(captured)) == ON_RECORD


def test_what_a_model_is_told_of_its_arguments_is_whole_whatever_the_policy():
    box = tools()
    with capture(clock=TickingClock(), content=False), loopspan.agent_loop("agent") as run:
        told = [box.call(name, arguments, on_error="return") for name, arguments in refused_arguments()]
        run.succeed()
    assert "surplus name" in told[1]
    assert "valid integer" in told[0]


def test_the_reason_on_record_says_which_argument_is_wrong_and_how_without_what_was_written():
    with capture(clock=TickingClock(), content=False) as captured:
        secretive()
    reasons = [
        span.attributes[semconv.VALIDATION_REASON]
        for span in of(captured.spans, "validate")
        if semconv.VALIDATION_REASON in span.attributes
    ]
    assert reasons == REFUSED


# --- where it is off


def test_content_is_off_unless_somebody_switches_it_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    with capture(clock=TickingClock(), content=None) as captured:
        secretive()
    assert found(exported(captured)) == set()


def content_of(monkeypatch: pytest.MonkeyPatch, value: str) -> Content:
    """The policy under a value of the standard variable."""
    monkeypatch.setenv(VARIABLE, value)
    with loopspan.configure(content=None):
        from loopspan import _config

        return _config.current().policy()


@pytest.mark.parametrize("value", [*Content, *(value.lower() for value in Content), " Span_And_Event "])
def test_the_standard_variable_is_read_in_any_case(monkeypatch: pytest.MonkeyPatch, value: str):
    assert content_of(monkeypatch, value) == value.strip().upper()


@pytest.mark.parametrize(
    ("value", "policy"),
    [
        ("true", Content.SPAN_AND_EVENT),
        ("True", Content.SPAN_AND_EVENT),
        ("false", Content.NO_CONTENT),
        ("FALSE", Content.NO_CONTENT),
        ("", Content.NO_CONTENT),
    ],
)
def test_its_old_values_still_hold(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, value: str, policy: Content
):
    assert content_of(monkeypatch, value) is policy
    assert caplog.records == []


@pytest.mark.parametrize("value", ["yes", "1", "SPAN", "span-only"])
def test_what_it_cannot_say_is_no_content_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, value: str
):
    with caplog.at_level(logging.WARNING, "loopspan"):
        assert content_of(monkeypatch, value) is Content.NO_CONTENT
    (record,) = caplog.records
    assert VARIABLE in record.message
    assert value in record.message
    assert "SPAN_AND_EVENT" in record.message


def test_a_block_that_checks_its_arguments_keeps_them_out_of_the_reason():
    class Arguments(BaseModel):
        """What the block takes."""

        text: Annotated[str, AfterValidator(never)]
        numbers: dict[str, int]

    written = {"text": planted("validator"), "numbers": {planted("key"): planted("value")}}
    with capture(clock=TickingClock(), content=False) as captured, loopspan.agent_loop("agent") as run:
        with (
            pytest.raises(loopspan.ValidationRejected, match="validator") as error,
            loopspan.tool_call("act", written) as call,
        ):
            call.validate(Arguments)
        run.succeed()
    assert found(exported(captured)) == set()
    assert found(error.value.reason) == {"validator", "key"}
    assert error.value.safe.startswith("text: value_error; numbers.?: ")


def test_what_is_configured_goes_before_the_variable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(VARIABLE, "SPAN_AND_EVENT")
    with capture(clock=TickingClock(), content=False) as captured:
        secretive()
    assert found(exported(captured)) == set()


@pytest.mark.parametrize("value", ["yes", 1, object()])
def test_another_value_for_content_is_refused_by_name(value: Any):
    with pytest.raises(loopspan.ConfigurationError, match="content="):
        loopspan.configure(content=value)


# --- spans or events

CONTENT_ATTRIBUTES = {semconv.TOOL_ARGUMENTS, semconv.TOOL_RESULT, semconv.OUTPUT_MESSAGES, semconv.INPUT_MESSAGES}


@pytest.mark.parametrize(
    ("content", "on_spans"),
    [
        (Content.NO_CONTENT, False),
        (Content.SPAN_ONLY, True),
        (Content.EVENT_ONLY, False),
        (Content.SPAN_AND_EVENT, True),
    ],
)
def test_span_attributes_have_content_where_the_policy_says_spans(content: Content, on_spans: bool):
    with capture(clock=TickingClock(), content=content) as captured:
        secretive()
    keys = {key for span in captured.spans for key in span.attributes}
    assert bool(keys & CONTENT_ATTRIBUTES) is on_spans


@pytest.mark.parametrize("content", [Content.EVENT_ONLY, Content.SPAN_AND_EVENT])
def test_log_events_have_content_where_the_policy_says_events(content: Content):
    with capture(clock=TickingClock(), content=content, events="both") as captured:
        secretive()
    logs = encode_logs(captured._log_exporter.get_finished_logs()).SerializeToString()
    assert found(logs) == ON_RECORD


def test_the_sample_has_no_content_without_content():
    with capture(clock=TickingClock(), content=False) as captured:
        everything()
    assert not {key for span in captured.spans for key in span.attributes} & CONTENT_ATTRIBUTES
