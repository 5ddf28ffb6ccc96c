"""RunLog events as log events (`configure(events=)`, LOOPSPAN_EVENTS; telemetry.md, *RunLog events*)."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from opentelemetry._logs import SeverityNumber

import loopspan
from loopspan import semconv
from loopspan.testing import Captured, CountingIds, TickingClock, capture
from projection.sample import everything

WARNED = {"validation_rejected", "backfill_missing", "unknown_side_effect"}
"""What in the sample is logged as a warning."""


def captured(events: str, **settings: Any) -> Captured:
    """The sample, with its events on this way."""
    with capture(clock=TickingClock(), ids=CountingIds(), events=events, **settings) as found:
        everything()
    return found


def numbered(attributes: Any) -> tuple[str, int]:
    """What tells one event from all others."""
    return attributes[semconv.RUN_ID], attributes[semconv.EVENT_SEQ]


def span_events(found: Captured) -> list[Any]:
    """(span, event) of all events that are on spans."""
    return [(span, event) for span in found.spans for event in span.events]


@pytest.mark.parametrize(("events", "on_spans", "logged"), [("span", 61, 0), ("log", 0, 61), ("both", 61, 61)])
def test_events_go_where_the_setting_says(events: str, on_spans: int, logged: int):
    found = captured(events)
    assert (len(span_events(found)), len(found.logs), len(found.entries)) == (on_spans, logged, 61)
    assert len(found.spans) == 27


def test_a_log_event_says_the_same_as_the_span_event():
    found = captured("both")
    logged = {numbered(record.attributes): record for record in found.logs}
    assert len(logged) == 61
    for span, event in span_events(found):
        record = logged[span.attributes[semconv.RUN_ID], event.attributes[semconv.EVENT_SEQ]]
        assert record.event_name == f"loopspan.{event.name}"
        assert record.timestamp == event.timestamp
        assert (record.trace_id, record.span_id) == (span.context.trace_id, span.context.span_id)
        assert record.trace_flags == span.context.trace_flags
        assert record.body is None
        assert event.attributes.items() <= record.attributes.items()
        assert record.attributes[semconv.AGENT] == span.attributes[semconv.AGENT]


def test_severity_tells_what_went_wrong_from_what_went_on():
    severities = {
        record.event_name.removeprefix("loopspan."): (record.severity_number, record.severity_text)
        for record in captured("log").logs
    }
    assert {name for name, said in severities.items() if said == (SeverityNumber.WARN, "WARN")} == WARNED
    assert set(severities.values()) == {(SeverityNumber.WARN, "WARN"), (SeverityNumber.INFO, "INFO")}


def test_log_events_are_of_our_scope_and_schema(loopspan_capture: Captured):
    with loopspan.configure(events="log"):
        everything()
    exported = loopspan_capture._log_exporter.get_finished_logs()
    scopes = {(data.instrumentation_scope.name, data.instrumentation_scope.schema_url) for data in exported}
    assert scopes == {(semconv.SCOPE, semconv.SCHEMA_URL)}


def test_facts_around_a_run_are_on_its_log_events():
    with loopspan.context(conversation_id="c-1", attributes={"tenant": "t1"}):
        found = captured("log")
    assert {record.attributes[semconv.CONVERSATION] for record in found.logs} == {"c-1"}
    assert {record.attributes["tenant"] for record in found.logs} == {"t1"}


def test_an_unsampled_run_is_logged_all_the_same():
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    found = captured("both", sampler=ALWAYS_OFF)
    assert (len(found.spans), len(found.logs)) == (0, 61)
    assert not any(record.trace_flags.sampled for record in found.logs)


def test_a_reader_of_both_drops_what_comes_twice(tmp_path: Any):
    """One document with spans, one with log records, as a Collector's file exporter writes them."""
    from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    from loopspan._sdk import otlp_json

    found = captured("both")
    spans = otlp_json(encode_spans(found.spans))
    logs = log_json(encode_logs(found._log_exporter.get_finished_logs()))
    path = tmp_path / "both.jsonl"
    path.write_text(f"{spans}\n{logs}\n", encoding="utf-8")
    log = loopspan.read_runlog(path)
    assert log.problems == []
    assert [len(run.log) for run in log.runs] == [59, 2]
    assert [list(run.log) for run in log.runs] == [list(run.log) for run in loopspan.read_runlog(found.entries).runs]


def test_log_events_alone_are_read_back(tmp_path: Any):
    from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs

    found = captured("log")
    path = tmp_path / "logs.jsonl"
    path.write_text(log_json(encode_logs(found._log_exporter.get_finished_logs())) + "\n", encoding="utf-8")
    runs = loopspan.read_runlog(path).runs
    assert [[entry.event for entry in run.log] for run in runs] == [
        [entry.event for entry in run.log] for run in loopspan.read_runlog(found.entries).runs
    ]


def log_json(request: Any) -> str:
    """Exported log records as OTLP-JSON: ids are hexadecimal there."""
    from google.protobuf.json_format import MessageToDict

    tree = MessageToDict(request, use_integers_for_enums=True)
    originals = [record for rl in request.resource_logs for sl in rl.scope_logs for record in sl.log_records]
    copies = [record for rl in tree["resourceLogs"] for sl in rl["scopeLogs"] for record in sl["logRecords"]]
    for original, copy in zip(originals, copies, strict=True):
        copy["traceId"], copy["spanId"] = original.trace_id.hex(), original.span_id.hex()
    return json.dumps(tree)


# --- the variable

PROGRAM = """
import loopspan
from loopspan.testing import capture
from loopspan import _config
with capture(events=_config.from_environment().events) as captured:
    with loopspan.agent_loop("agent") as run:
        run.succeed()
print(sum(len(span.events) for span in captured.spans), len(captured.logs))
"""


@pytest.mark.parametrize(("value", "said"), [("span", "2 0"), ("log", "0 2"), ("both", "2 2")])
def test_the_variable_says_where_events_go(value: str, said: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LOOPSPAN_EVENTS", value)
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == said


@pytest.mark.parametrize("value", ["spans", "", "LOG"])
def test_a_value_that_is_none_of_the_three_is_refused_by_name(value: str):
    with pytest.raises(loopspan.ConfigurationError, match="span, log, both"):
        loopspan.configure(events=value)


def test_a_logger_provider_that_raises_does_not_touch_the_run():
    class Broken:
        """No provider at all."""

        def get_logger(self, *args: Any, **kwargs: Any) -> Any:
            raise OSError

    with capture(clock=TickingClock(), events="both", logger_provider=Broken(), strict=False) as found:
        assert everything() == "built"
    assert len(span_events(found)) == 61
