"""Reading RunLogs back: what is there is read, what is missing is said, nothing is lost."""

from __future__ import annotations

import base64
import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loopspan
from loopspan import ConfigurationError, Lifecycle, StopReason, SuspendReason, Usage, semconv
from loopspan import events as e
from loopspan._journal import Unknown
from loopspan.testing import capture
from loopspan.trajectory import read_runlog
from loopspan.trajectory.tree import text, tree
from written_runs import START, TICK, Written, attributes, call, export, foreign_span, line, retried, write


def only(source):
    """The one run of a source."""
    (run,) = read_runlog(source).runs
    return run


# sources


def test_a_file_gives_the_entries_that_were_written(tmp_path):
    written = retried()
    log = read_runlog(write(tmp_path / "spans.jsonl", written.line()))
    assert log.runs[0].log == written.entries
    assert (log.problems, log.foreign) == ([], 0)


def test_a_run_may_be_spread_over_many_exports(tmp_path):
    written = retried()
    lines = [line([span]) for span in written.spans()]
    assert only(write(tmp_path / "spans.jsonl", *lines)).log == written.entries


def test_parsed_exports_entries_and_files_say_the_same(tmp_path):
    written = retried()
    path = write(tmp_path / "spans.jsonl", written.line())
    document = export(written.spans())
    for source in (str(path), path, document, [document], iter([document]), written.entries):
        assert only(source).log == written.entries


def test_finished_spans_of_the_sdk_give_what_was_recorded():
    with capture() as captured:
        run_a_loop()
    recorded = captured.runs[0]
    assert only(captured.spans).log == recorded.log
    assert recorded.stop_reason is StopReason.SUCCESS


def test_what_setup_writes_into_a_file_is_what_was_recorded(tmp_path):
    from loopspan._sdk import FileSpanExporter

    with capture() as captured:
        run_a_loop()
    exporter = FileSpanExporter(tmp_path / "spans.jsonl")
    exporter.export(captured.spans[:3])
    exporter.export(captured.spans[3:])
    assert only(tmp_path / "spans.jsonl").log == captured.runs[0].log


def run_a_loop():
    """A loop with a request, a call and a sub-agent's worth of nothing."""

    @loopspan.tool(effect="read_only")
    def add(left: int, right: int) -> int:
        return left + right

    @loopspan.model_request(provider="openai", model="m-1")
    def ask():
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}
        return {"model": "m-1", "usage": usage, "choices": [{"message": {"content": "ü"}, "finish_reason": "stop"}]}

    @loopspan.agent_loop(name="adder")
    def loop():
        ask()
        return loopspan.Toolbox(add).call("add", '{"left": 1, "right": 2}', call_id="c1")

    assert loop() == 3


def test_one_document_over_many_lines_is_read(tmp_path):
    written = retried()
    path = tmp_path / "pretty.json"
    for document in (export(written.spans()), [export([span]) for span in written.spans()]):
        path.write_text(json.dumps(document, indent=2))
        log = read_runlog(path)
        assert log.runs[0].log == written.entries
        assert log.problems == []


def test_byte_order_mark_empty_lines_and_crlf_do_no_harm(tmp_path):
    written = retried()
    path = tmp_path / "spans.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + written.line().replace("\n", "\r\n\r\n").encode())
    log = read_runlog(path)
    assert log.runs[0].log == written.entries
    assert log.problems == []


def test_an_empty_source_has_no_runs(tmp_path):
    assert read_runlog([]).runs == []
    assert read_runlog(write(tmp_path / "empty.jsonl")).runs == []


def test_log_records_are_read_too_and_doubles_of_spans_dropped(tmp_path):
    written = retried()
    records = [
        {
            "timeUnixNano": event["timeUnixNano"],
            "eventName": f"loopspan.{event['name']}",
            "traceId": span["traceId"],
            "spanId": span["spanId"],
            "attributes": span["attributes"] + event["attributes"],
        }
        for span in written.spans()
        for event in span["events"]
    ]
    logs = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}) + "\n"
    alone = only(write(tmp_path / "logs.jsonl", logs))
    assert [(entry.seq, entry.time, entry.event) for entry in alone.log] == [
        (entry.seq, entry.time, entry.event) for entry in written.entries
    ]
    both = read_runlog(write(tmp_path / "both.jsonl", logs, written.line()))
    assert both.runs[0].log == written.entries
    assert both.problems == []


def test_ids_in_base64_are_the_same_ids(tmp_path):
    written = retried()
    for span in written.spans():
        for key in ("traceId", "spanId", "parentSpanId"):
            span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    run = only(write(tmp_path / "spans.jsonl", written.line()))
    assert run.log == written.entries
    assert run.trace_ids == [f"{1:032x}"]


@pytest.mark.parametrize("source", [7, None, b"bytes", [7], ["text"], {"traces": []}, {}])
def test_a_source_of_no_known_kind_is_refused_with_a_way_out(source):
    with pytest.raises(ConfigurationError, match=r"read_runlog.*(give|one of)"):
        read_runlog(source)


def test_a_file_that_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"nowhere\.jsonl.*No such file.*give the path"):
        read_runlog(tmp_path / "nowhere.jsonl")
    with pytest.raises(ConfigurationError, match="directory"):
        read_runlog(tmp_path)


# damage


def test_a_torn_last_line_is_told_and_its_whole_spans_are_read(tmp_path):
    first, second = retried("run-1"), retried("run-2", trace=2)
    path = write(tmp_path / "spans.jsonl", first.line(), second.line().rstrip("\n")[:-40])
    log = read_runlog(path)
    assert log.runs[0].log == first.entries
    assert "line 2 is torn" in log.source_problems[0]
    torn = log.runs[1]
    assert torn.root_pending, "the root is the last span of its export, and was cut"
    assert torn.log == [entry for entry in second.entries if entry.parent_id is not None]


@pytest.mark.parametrize("keep", range(0, 400, 7))
def test_a_file_may_be_torn_anywhere(tmp_path, keep):
    path = write(tmp_path / "spans.jsonl", retried().line(), retried("run-2").line()[:keep])
    log = read_runlog(path)
    assert len(log.runs) == 1
    assert len(log.problems) == (1 if keep else 0)


def test_a_damaged_line_in_the_middle_costs_nothing_else(tmp_path):
    first, second = retried("run-1"), retried("run-2", trace=2)
    log = read_runlog(write(tmp_path / "spans.jsonl", first.line(), "{broken\n", "7\n", '{"a": 1}\n', second.line()))
    assert [run.log for run in log.runs] == [first.entries, second.entries]
    assert [problem.split(" ")[1] for problem in log.problems] == ["2", "3", "4"]


def test_an_export_that_was_appended_to_a_torn_line_is_read(tmp_path):
    first, second = retried("run-1"), retried("run-2", trace=2)
    log = read_runlog(write(tmp_path / "spans.jsonl", first.line()[:300], second.line()))
    assert log.runs[-1].log == second.entries
    assert len(log.source_problems) == 1


def test_a_file_of_something_else_has_no_runs_and_bounded_problems(tmp_path):
    log = read_runlog(write(tmp_path / "notes.txt", *["just text\n"] * 1000))
    assert log.runs == []
    assert len(log.problems) == 101
    assert "900 more" in log.problems[-1]


def test_invalid_utf_8_does_not_cost_the_line(tmp_path):
    written = retried()
    path = tmp_path / "spans.jsonl"
    path.write_bytes(written.line().encode().replace(b"build-watch", b"build-\xff\xfe"))
    assert only(path).agent_name.startswith("build-")


def test_spans_of_an_unexpected_form_are_told_and_the_others_read(tmp_path):
    written = retried()
    bad = [
        7,
        {"attributes": 5},
        {"attributes": [{"key": semconv.RUN_ID, "value": {"stringValue": "x"}}], "events": [3]},
    ]
    log = read_runlog(write(tmp_path / "spans.jsonl", line([*bad, *written.spans()])))
    assert log.runs[-1].log == written.entries
    assert len(log.problems) == 3


def test_the_same_export_may_come_twice(tmp_path):
    written = retried()
    log = read_runlog(write(tmp_path / "spans.jsonl", written.line(), written.line(), line([foreign_span()] * 2, "x")))
    assert log.runs[0].log == written.entries
    assert log.problems == []
    assert log.foreign == 1, "one span, exported twice"


def test_two_different_events_with_one_number_are_told(tmp_path):
    one = Written().started().step(1).closed()
    other = Written(trace=2).started().step(2).closed()
    log = read_runlog(write(tmp_path / "spans.jsonl", one.line(), other.line()))
    assert [entry.name for entry in log.runs[0].log] == ["run_started", "step_started", "run_trace_closed"]
    assert any("event 2 is there twice and differs" in problem for problem in log.problems)


def test_foreign_spans_are_counted_and_leave_no_run(tmp_path):
    written = retried()
    lines = [line([foreign_span(1), foreign_span(2)], "requests"), written.line()]
    log = read_runlog(write(tmp_path / "spans.jsonl", *lines))
    assert (len(log.runs), log.foreign, log.problems) == (1, 2, [])


def test_spans_of_loopspan_without_a_run_id_are_told(tmp_path):
    log = read_runlog(write(tmp_path / "spans.jsonl", line([foreign_span()])))
    assert log.foreign == 0
    assert semconv.RUN_ID in log.problems[0]


def test_events_that_users_add_to_our_spans_are_no_entries(tmp_path):
    written = retried()
    written.put("step 1", "cache miss", {"key": "k"})
    assert only(write(tmp_path / "spans.jsonl", written.line())).log == written.entries


# what this version does not know


def test_an_unknown_event_is_kept_in_its_place_with_its_types(tmp_path):
    written = Written().started()
    own = {"loopspan.step": 1, "loopspan.weight": 0.5, "loopspan.tags": ("a", "b"), "loopspan.on": True}
    written.add(Unknown("future_event", 3, own)).closed()
    run = only(write(tmp_path / "spans.jsonl", written.line()))
    assert run.log == written.entries
    assert run.log[1].attributes == own
    assert (run.log[1].name, run.log[1].version, run.gaps) == ("future_event", 3, [])
    assert "event 2 (future_event) is not known" in run.problems[0]


def test_another_version_of_a_known_event_is_kept_and_not_interpreted(tmp_path):
    written = Written().started().step(1).opened(1, "call_1")
    written.add(Unknown("tool_started", 2, {"loopspan.attempt": 1}), "call call_1.1").closed()
    run = only(write(tmp_path / "spans.jsonl", written.line()))
    assert isinstance(run.log[3].event, Unknown)
    assert run.tool_calls[0].entries == 0


def test_a_stop_reason_that_this_version_does_not_know_is_text(tmp_path):
    run = only(write(tmp_path / "spans.jsonl", Written().started().closed("out_of_coffee").line()))
    assert run.stop_reason == "out_of_coffee"
    assert not isinstance(run.stop_reason, StopReason)
    assert run.summary()["status"] == "failed"


def test_json_that_a_limit_has_cut_is_told_and_the_rest_of_the_event_counts(tmp_path):
    written = Written().started().step(1).opened(1, "call_1", arguments={"text": "x" * 50}, effect="unsafe").closed()
    path = write(tmp_path / "spans.jsonl", written.line().replace("x" * 50 + '\\"}"', "x" * 20 + '"'))
    run = only(path)
    assert isinstance(run.log[2].event, Unknown)
    assert "loopspan.arguments" in run.log[2].problem
    assert (run.tool_calls[0].call_id, run.tool_calls[0].effect) == ("call_1", "unsafe")
    assert "event 3 (tool_call_opened) cannot be read in full: loopspan.arguments" in run.problems[0]


def test_the_end_of_a_run_is_known_although_a_limit_has_cut_it(tmp_path):
    written = retried()
    closing = written.span("root")["events"][-1]["attributes"]
    closing.insert(0, attributes({"loopspan.descendants": '{"requests": 1, "inp'})[0])
    run = only(write(tmp_path / "spans.jsonl", written.line()))
    assert (run.lifecycle, run.stop_reason) == (Lifecycle.CLOSED, StopReason.SUCCESS)
    assert (run.usage.input_tokens, run.gaps) == (250, [])


def test_fields_that_a_limit_took_are_told(tmp_path):
    written = Written().started().step(1).opened(1, "call_1").closed()
    del written.span("call call_1.1")["events"][0]["attributes"][:2]
    run = only(write(tmp_path / "spans.jsonl", written.line()))
    assert run.tool_calls == []
    assert "event 3 (tool_call_opened) lacks call_id" in run.problems[0]


def test_a_version_that_is_no_number_does_no_harm(tmp_path):
    written = Written().started().closed()
    written.span("root")["events"][0]["attributes"][-1]["value"] = {"stringValue": "?"}
    run = only(write(tmp_path / "spans.jsonl", written.line()))
    assert isinstance(run.log[0].event, Unknown)
    assert run.agent_name == "build-watch"


@pytest.mark.parametrize("form", [str, int], ids=["text", "numbers"])
def test_integers_and_booleans_in_every_form_that_backends_give(tmp_path, form):
    written = retried()
    for span in written.spans():
        for event in span["events"]:
            for attribute in event["attributes"]:
                if "intValue" in attribute["value"]:
                    number = form(attribute["value"]["intValue"])
                    attribute["value"] = {"stringValue" if form is str else "intValue": number}
                elif "boolValue" in attribute["value"] and form is str:
                    attribute["value"] = {"stringValue": str(attribute["value"]["boolValue"]).lower()}
    assert only(write(tmp_path / "spans.jsonl", written.line())).log == written.entries


# runs


def test_gaps_are_listed_as_ranges(tmp_path):
    written = retried()
    run = only(write(tmp_path / "spans.jsonl", written.line(without=("chat 1.1", "chat 2.1"))))
    assert run.gaps == [(3, 5), (17, 19)]
    assert "events 3 to 5 are missing" in run.problems[0]
    assert not run.root_pending


def test_a_run_that_closed_lacks_what_is_before_its_last_number(tmp_path):
    written = retried()
    del written.span("root")["events"][0]
    run = only(write(tmp_path / "spans.jsonl", line([written.span("root")])))
    assert run.gaps == [(1, len(written.entries) - 1)]
    assert not run.root_pending


def test_a_root_that_is_not_exported_yet_is_no_gap(tmp_path):
    written = waiting()
    run = only(write(tmp_path / "spans.jsonl", written.line(without=("root",))))
    assert (run.root_pending, run.gaps, run.problems) == (True, [], [])
    assert (run.agent_name, run.lifecycle) == ("build-watch", Lifecycle.SUSPENDED)
    assert run.suspend_reason is SuspendReason.PENDING_APPROVAL


def waiting() -> Written:
    """A run that waits for an approval."""
    written = Written().started().step(1).opened(1, "call_1", "deploy", needs_approval=True)
    where = {**call(1, "call_1", "deploy"), "approval_id": "a1"}
    written.add(e.ApprovalRequested(**where, requested_at=START, expires_at=START + 10), "approval", "call call_1.1")
    written.add(e.CheckpointSaved(), "approval").add(e.ApprovalSpanClosed(**where), "approval")
    return written.add(e.RunSuspended(reason="pending_approval"), "approval")


def test_events_that_the_sdk_dropped_are_told(tmp_path):
    written = retried()
    written.span("step 1")["droppedEventsCount"] = 3
    assert "dropped 3" in only(write(tmp_path / "spans.jsonl", written.line())).problems[0]


def test_interleaved_runs_come_apart_in_order_of_start(tmp_path):
    late, early = retried("late", trace=2, at=START + 5 * TICK), retried("early")
    spans = [span for pair in zip(late.spans(), early.spans(), strict=True) for span in pair]
    runs = read_runlog(write(tmp_path / "spans.jsonl", line(spans))).runs
    assert [run.run_id for run in runs] == ["early", "late"]
    assert [run.log for run in runs] == [early.entries, late.entries]


def test_a_run_may_be_in_several_traces(tmp_path):
    written = retried()
    for name in ("step 2", "chat 2.1"):
        written.span(name)["traceId"] = "ab" * 16
    assert only(write(tmp_path / "spans.jsonl", written.line())).trace_ids == [f"{1:032x}", "ab" * 16]


def test_sub_agents_are_joined_to_their_parents(tmp_path):
    runs = {name: Written(name, trace=place) for place, name in enumerate(("boss", "helper", "clerk"), 1)}
    runs["boss"].started().step(1).asked(1).answered(1, {"input_tokens": 10, "output_tokens": 1})
    runs["helper"].started(parent_run_id="boss").step(1).asked(1).answered(1, {"input_tokens": 5, "output_tokens": 2})
    runs["clerk"].started(parent_run_id="helper").step(1).asked(1).answered(1, {"input_tokens": 1, "output_tokens": 3})
    lines = [run.closed().line() for run in runs.values()]
    boss, helper, clerk = read_runlog(write(tmp_path / "spans.jsonl", *lines)).runs
    assert (boss.children, helper.children, clerk.children) == ([helper], [clerk], [])
    assert (clerk.parent_run_id, boss.parent_run_id) == ("helper", None)
    assert boss.usage == Usage(10, 1)
    assert boss.usage_with_descendants == Usage(16, 6)


def test_sub_agents_that_are_elsewhere_count_as_their_parent_says(tmp_path):
    stated = {"requests": 1, "input_tokens": 5, "output_tokens": 2, "unpriced": 0, "cost": []}
    written = Written().started().step(1).asked(1).answered(1, {"input_tokens": 10, "output_tokens": 1})
    run = only(write(tmp_path / "spans.jsonl", written.closed(descendants=stated).line()))
    assert run.usage_with_descendants == Usage(15, 3)


def test_runs_that_name_each_other_as_parents_are_still_shown(tmp_path):
    one = Written("one").started(parent_run_id="two").closed()
    two = Written("two", trace=2).started(parent_run_id="one").closed()
    log = read_runlog(write(tmp_path / "spans.jsonl", one.line(), two.line()))
    assert [run.run_id for run in log.roots] == ["one", "two"]
    assert log.runs[0].usage_with_descendants == Usage()


# lifecycle


def test_the_lifecycle_follows_suspensions_and_resumes():
    written = waiting()
    run = only(written.entries)
    assert (run.lifecycle, run.summary()["status"]) == (Lifecycle.SUSPENDED, "waiting")
    written.add(e.RunResumed())
    run = only(written.entries)
    assert (run.lifecycle, run.suspend_reason, run.summary()["status"]) == (Lifecycle.RUNNING, None, "resumed")
    run = only(written.closed("cancelled", stop_detail="requested").entries)
    assert (run.lifecycle, run.stop_reason, run.stop_detail) == (Lifecycle.CLOSED, StopReason.CANCELLED, "requested")
    assert (run.suspend_reason, run.resumed, run.summary()["status"]) == (None, False, "failed")


def test_the_last_suspension_gives_the_reason():
    written = waiting().add(e.RunSuspended(reason="manual_intervention"))
    assert only(written.entries).suspend_reason is SuspendReason.MANUAL_INTERVENTION


def test_an_open_run_is_running():
    run = only(Written().started().step(1).entries)
    assert (run.lifecycle, run.stop_reason, run.summary()["status"]) == (Lifecycle.RUNNING, None, "running")
    assert (run.steps[0].outcome, run.ended) == (None, None)


# steps, requests, calls


def test_a_retried_call_is_one_call_with_its_attempts():
    run = only(retried().entries)
    (made,) = run.tool_calls
    assert (made.name, made.call_id, made.ordinal, made.step) == ("get_status", "call_1", 1, 1)
    assert (made.outcome, made.entries, made.effect, made.id_source) == ("ok", 2, "read_only", "given")
    first, second = made.attempts
    assert (first.number, first.outcome, first.error_type, first.backoff_s) == (1, "failed", "ConnectionError", None)
    assert (second.number, second.outcome, second.error_type, second.backoff_s) == (2, "ok", None, 0.5)
    assert first.ended - first.started == second.ended - second.started == 2 * TICK
    assert made.started < first.started < second.ended < made.ended
    assert run.tool_calls_named("get_status") == run.steps[0].tool_calls
    assert run.tool_calls_named("other") == []


def test_the_spans_of_two_periods_are_one_call():
    written = waiting()
    written.add(e.ToolCallClosed(**call(1, "call_1", "deploy"), outcome="suspended", attempts=0), "call call_1.1")
    written.closed_step(1, "suspended").add(e.RunResumed(), "wait")
    written.add(e.StepStarted(step=1), "step 1 again")
    assert only(written.entries).steps[0].outcome is None, "open again"
    written.opened(1, "call_1", "deploy", period=2).attempt(1, "call_1", 1, tool="deploy", period=2)
    written.closed_call(1, "call_1", tool="deploy", period=2)
    written.add(e.StepClosed(step=1, outcome="ok"), "step 1 again").closed()
    run = only(written.entries)
    (made,) = run.tool_calls
    assert (made.outcome, made.entries) == ("ok", 1)
    assert [(step.number, step.outcome) for step in run.steps] == [(1, "ok")]
    assert made.started < made.attempts[0].started < made.ended


def test_equal_call_ids_are_told_apart_by_step_and_ordinal():
    written = Written().started()
    for step, ordinal in ((1, 1), (1, 2), (2, 1)):
        written.step(step)
        written.add(e.ToolCallOpened(**call(step, "call_0", ordinal=ordinal)), f"step {step}")
    assert [(made.step, made.ordinal) for made in only(written.entries).tool_calls] == [(1, 1), (1, 2), (2, 1)]


def test_calls_stand_in_the_order_in_which_they_were_asked_for():
    written = Written().started().step(1).asked(1)
    for call_id in ("b", "a", "c"):
        written.add(e.ToolCallProposed(step=1, tool="get_status", call_id=call_id), "step 1")
    for call_id in ("unasked", "c", "a", "b"):
        written.opened(1, call_id)
    assert [made.call_id for made in only(written.entries).tool_calls] == ["b", "a", "c", "unasked"]


def test_calls_without_ids_are_placed_by_name_and_arguments():
    written = Written().started().step(1).asked(1)
    for digest in ("d1", "d2"):
        written.add(e.ToolCallProposed(step=1, tool="get_status", digest=digest), "step 1")
    written.opened(1, "call_1_1", digest="d2", id_source="generated").opened(1, "call_1_2", digest="d1")
    assert [made.digest for made in only(written.entries).tool_calls] == ["d1", "d2"]


def test_a_rejected_call_has_no_entries():
    written = Written().started().step(1).opened(1, "call_1", known=False)
    rejected = e.ValidationRejected(**call(1, "call_1"), started=START, rejection="unknown_tool")
    written.add(rejected, "validate", "call call_1.1").closed_call(
        1, "call_1", "rejected", 0, error_type="unknown_tool"
    )
    (made,) = only(written.entries).tool_calls
    assert (made.outcome, made.entries, made.attempts, made.known) == ("rejected", 0, [], False)
    assert made.error_type == "unknown_tool"


def test_attempts_of_a_model_request_are_one_request():
    written = Written().started().step(1).asked(1)
    where = {"step": 1, "request_id": "r1", "attempt": 1}
    written.add(e.ModelFailed(**where, outcome="failed", error_type="Overloaded"), "chat 1.1")
    written.add(e.ModelRetry(**where, error_type="Overloaded", backoff_s=1.5), "step 1")
    written.add(e.ModelRequested(step=1, request_id="r1", attempt=2, operation="chat", model="m-1", backoff_s=1.5), "x")
    used = {"input_tokens": 10, "output_tokens": 1}
    written.answered(1, used, attempt=2, model="m-1-2026", finish_reasons=["stop"])
    (request,) = only(written.entries).requests
    assert (request.request_id, request.model, request.response_model) == ("r1", "m-1", "m-1-2026")
    assert [(a.number, a.outcome, a.error_type, a.backoff_s) for a in request.attempts] == [
        (1, "failed", "Overloaded", None),
        (2, "ok", None, 1.5),
    ]
    assert (request.usage, request.finish_reasons) == (Usage(10, 1), ["stop"])
    assert request.ended - request.started > 0


def test_a_parse_error_step_has_message_and_observation_where_content_is_on_record():
    written = Written().started().step(1).asked(1).answered(1, {"input_tokens": 10, "output_tokens": 1})
    written.add(e.ResponseParseError(step=1, model_name="m-1", message="{bad", prompt="mend it"), "step 1")
    step = only(written.closed_step(1, "parse_error").entries).steps[0]
    assert (step.outcome, step.message, step.observation, step.tool_calls) == ("parse_error", "{bad", "mend it", [])


# tokens and cost


def test_usage_is_the_sum_of_what_was_observed():
    run = only(retried().entries)
    assert run.usage == Usage(250, 50, 90)
    assert [step.usage for step in run.steps] == [Usage(100, 20), Usage(150, 30, 90)]
    assert run.steps[0].usage.cache_read_tokens is None


@pytest.mark.parametrize(
    "used",
    [None, {"output_tokens": 5}, {"input_tokens": 5}, {"cost": "0.1", "currency": "USD", "cost_source": "provider"}],
)
def test_usage_is_incomplete_where_an_answer_does_not_say_all(used):
    written = Written().started().step(1).asked(1).answered(1, {"input_tokens": 10, "output_tokens": 1})
    written.closed_step(1).step(2).asked(2).answered(2, used).closed_step(2).closed()
    run = only(written.entries)
    assert run.usage.incomplete
    assert [step.usage.incomplete for step in run.steps] == [False, True]


def test_a_failed_attempt_that_said_nothing_leaves_usage_complete():
    written = Written().started().step(1).asked(1)
    written.add(e.ModelFailed(step=1, request_id="r1", attempt=1, outcome="failed"), "chat 1.1").closed()
    assert only(written.entries).usage == Usage()


def test_a_request_without_an_end_leaves_usage_incomplete():
    run = only(Written().started().step(1).asked(1).entries)
    assert run.usage == Usage(incomplete=True)
    assert run.steps[0].usage.incomplete


def test_what_the_run_itself_calls_incomplete_is_incomplete():
    written = Written().started().step(1).asked(1).answered(1, {"input_tokens": 10, "output_tokens": 1})
    assert only(written.closed(usage_incomplete=True).entries).usage.incomplete


def test_totals_are_those_that_the_run_states_where_entries_are_missing(tmp_path):
    written = Written().started()
    cost = [{"currency": "USD", "source": "provider", "amount": "0.30"}]
    for step in (1, 2):
        written.step(step).asked(step).answered(step, {"input_tokens": 10, "output_tokens": 1})
        written.closed_step(step, input_tokens=10, output_tokens=1)
    written.closed(input_tokens=20, output_tokens=2, cost=cost, unpriced=1, model_calls=2, tool_attempts=3)
    run = only(write(tmp_path / "spans.jsonl", written.line(without=("chat 2.1",))))
    assert run.usage == Usage(20, 2)
    assert (run.cost.amounts, run.cost.unpriced) == ({("USD", "provider"): Decimal("0.30")}, 1)
    assert [step.usage for step in run.steps] == [Usage(10, 1), Usage(10, 1)]
    metric = run.summary()["cost_metric"]
    assert (metric["model_calls"], metric["tool_attempts"]) == (2, 3)


def test_totals_of_an_open_run_with_gaps_are_incomplete(tmp_path):
    written = retried()
    run = only(write(tmp_path / "spans.jsonl", written.line(without=("root", "chat 2.1"))))
    assert run.usage == Usage(100, 20, incomplete=True)
    assert run.cost.incomplete


def test_costs_are_summed_by_currency_and_source_and_unpriced_ones_counted():
    written = Written().started()
    costs = [
        ("0.1", "USD", "provider"),
        ("0.2", "USD", "provider"),
        ("0.2", "USD", "estimated"),
        ("1", "EUR", "provider"),
    ]
    for step, (amount, currency, source) in enumerate(costs, 1):
        used = {"input_tokens": 1, "output_tokens": 1, "cost": amount, "currency": currency, "cost_source": source}
        written.step(step).asked(step).answered(step, used)
    written.step(5).asked(5).answered(5, {"input_tokens": 1, "output_tokens": 1, "unpriced": True})
    run = only(written.entries)
    assert run.cost.amounts == {
        ("USD", "provider"): Decimal("0.3"),
        ("USD", "estimated"): Decimal("0.2"),
        ("EUR", "provider"): Decimal("1"),
    }
    assert (run.cost.unpriced, run.cost.incomplete) == (1, True)
    assert run.steps[2].cost.amounts == {("USD", "estimated"): Decimal("0.2")}


def test_an_amount_that_was_altered_on_its_way_is_no_cost():
    used = {"input_tokens": 1, "output_tokens": 1, "cost": "a lot", "currency": "USD", "cost_source": "provider"}
    run = only(Written().started().step(1).asked(1).answered(1, used).entries)
    assert run.cost.amounts == {}


# forms


def test_the_summary_is_the_dictionary_of_the_seed():
    run = only(retried().entries)
    assert run.summary() == {
        "trace_id": "run-1",
        "status": "completed",
        "lifecycle": "closed",
        "stop_reason": "success",
        "suspend_reason": None,
        "events": [entry.name for entry in run.log],
        "cost_metric": {"model_calls": 2, "tool_attempts": 2, "estimated_tokens": None},
    }
    assert {type(value) for value in run.summary().values()} == {str, list, dict, type(None)}


def test_estimated_tokens_come_from_simulated_figures_only():
    simulated = {"input_tokens": 8, "output_tokens": 2, "cost": "0", "currency": "USD", "cost_source": "simulated"}
    written = Written().started().step(1).asked(1).answered(1, simulated)
    written.step(2).asked(2).answered(2, {"input_tokens": 100, "output_tokens": 1})
    assert only(written.entries).summary()["cost_metric"]["estimated_tokens"] == 10
    assert only(written.closed(estimated_tokens=30).entries).summary()["cost_metric"]["estimated_tokens"] == 30


def test_accepted_calls_are_unconfirmed():
    written = Written().started().step(1).opened(1, "call_1").attempt(1, "call_1", 1, "accepted")
    assert only(written.closed_call(1, "call_1", "accepted").closed().entries).summary()["unconfirmed"] == 1


def test_the_json_form_is_strict_and_whole():
    def refuse(constant):
        raise AssertionError(constant)

    written = retried().add(Unknown("future_event", 2, {"loopspan.ratio": float("nan")}))
    run = only(written.entries)
    form = json.loads(run.to_json(), parse_constant=refuse)
    assert (form["version"], form["run_id"], form["stop_reason"], form["status"]) == (
        1,
        "run-1",
        "success",
        "completed",
    )
    assert [entry["name"] for entry in form["log"]] == [entry.name for entry in run.log]
    assert form["log"][0]["fields"] == {
        "agent": "build-watch",
        "trace_flags": 0,
        "remote_parent": False,
        "content_in_events_only": False,
        "durable": False,
    }
    assert form["log"][-1]["unknown"] is True
    assert form["steps"][0]["tool_calls"][0]["attempts"][1]["backoff_s"] == 0.5
    assert (form["usage"]["input_tokens"], form["trace_ids"], form["gaps"]) == (250, [f"{1:032x}"], [])


def test_amounts_are_text_in_json():
    used = {"input_tokens": 1, "output_tokens": 1, "cost": "0.10", "currency": "USD", "cost_source": "provider"}
    run = only(Written().started().step(1).asked(1).answered(1, used).entries)
    amounts = json.loads(run.to_json())["cost"]["amounts"]
    assert amounts == [{"currency": "USD", "source": "provider", "amount": "0.10"}]


def test_a_whole_log_as_json(tmp_path):
    form = json.loads(
        read_runlog(write(tmp_path / "spans.jsonl", retried().line(), line([foreign_span()], "x"))).to_json()
    )
    assert (len(form["runs"]), form["foreign"], form["problems"]) == (1, 1, [])


def test_a_run_is_a_line_for_people():
    assert str(only(retried().entries)) == (
        "invoke_agent build-watch  closed success  2 steps  20 ms  250→50 tok (90 cached)  run-1"
    )


@given(st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=3)), max_size=5), st.floats(0, 1))
def test_no_damage_to_a_file_is_an_error(tmp_path_factory, changes, end):
    damaged = bytearray((retried("run-1").line() + retried("run-2", trace=2).line()).encode())
    for place, put in changes:
        at = int(place * len(damaged))
        damaged[at : at + len(put)] = put
    path = tmp_path_factory.mktemp("damaged") / "spans.jsonl"
    path.write_bytes(damaged[: int(end * len(damaged))])
    log = read_runlog(path)
    for run in log.runs:
        assert run.lifecycle in Lifecycle
        assert [entry.seq for entry in run.log] == sorted({entry.seq for entry in run.log})
        assert json.loads(run.to_json())["run_id"] == run.run_id
        assert str(run)
        run.summary()
    assert log.to_json()
    text(tree(log))
