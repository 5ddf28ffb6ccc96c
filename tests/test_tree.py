"""Runs as trees of lines: what a person sees of a run, and what must be said beside its numbers."""

from __future__ import annotations

import io
from decimal import Decimal

import pytest

from loopspan import events as e
from loopspan._journal import Unknown
from loopspan.trajectory import read_runlog, words
from loopspan.trajectory.console import RunPrinter
from loopspan.trajectory.tree import remarks, text, tree
from loopspan.usage import CostTotals, Usage
from written_runs import START, Written, call, foreign_span, line, retried, write


def shown(*runs: Written) -> str:
    """The tree of runs, as plain text."""
    return text(tree(read_runlog([entry for run in runs for entry in run.entries])))


def test_a_run_with_a_retried_call():
    assert shown(retried()).splitlines() == [
        "invoke_agent build-watch  closed success  2 steps  20 ms  250→50 tok (90 cached)  run-1",
        "├─ step 1  ok  13 ms  100→20 tok",
        "│  ├─ chat m-1  2 ms  100→20 tok  tool_calls",
        "│  └─ execute_tool get_status  ok  2 attempts  7 ms  read_only  backfilled",
        "│     ├─ attempt 1  failed  2 ms  ConnectionError",
        "│     └─ attempt 2  ok  2 ms  after 500 ms of backoff",
        "└─ step 2  ok  4 ms  150→30 tok (90 cached)",
        "   └─ chat m-1  2 ms  150→30 tok (90 cached)",
    ]


def test_one_attempt_has_no_line_of_its_own_and_its_error_stands_with_the_call():
    run = Written().started().step(1).opened(1, "c").attempt(1, "c", 1, "failed", error="app.errors.Refused")
    lines = shown(run.closed_call(1, "c", "failed")).splitlines()
    assert lines[2] == "   └─ execute_tool get_status  failed  4 ms  Refused"
    assert len(lines) == 3


def test_a_refused_call_says_why_and_that_its_body_was_not_entered():
    run = Written().started().step(1).opened(1, "c", known=False)
    rejected = e.ValidationRejected(**call(1, "c"), started=START, rejection="unknown_tool", reason="not in the list")
    run.add(rejected, "validate", "call c.1").closed_call(1, "c", "rejected", 0, error_type="unknown_tool")
    run.opened(1, "d")
    denied = e.PermissionDenied(**call(1, "d"), started=START, reason="read only today")
    run.add(denied, "permission", "call d.1").closed_call(1, "d", "denied", 0, error_type="permission_denied")
    assert shown(run).splitlines()[2:] == [
        "   ├─ execute_tool get_status  rejected  0 attempts  2 ms",
        "   │  └─ validate  rejected  unknown_tool  not in the list",
        "   └─ execute_tool get_status  denied  0 attempts  2 ms",
        "      └─ permission  rejected  read only today",
    ]


def test_an_approval_says_who_decided_and_how_long_it_took():
    run = Written().started().step(1).opened(1, "c", "deploy")
    where = {**call(1, "c", "deploy"), "approval_id": "a1"}
    decision = e.ApprovalDecisionReceived(
        **where, approved=True, started=run.now - 7_200_000_000_000, decided_by="alice"
    )
    run.add(decision, "wait").add(e.ApprovalRecheck(**where, outcome="ok"), "call c.1")
    run.add(e.ValidationPassed(**call(1, "c", "deploy"), started=run.now, stage="recheck"), "validate", "call c.1")
    run.attempt(1, "c", 1, tool="deploy").closed_call(1, "c", tool="deploy").closed(waiting_s=7200.0)
    lines = shown(run).splitlines()
    assert "waited 2 h 0 min" in lines[0]
    assert lines[3:] == ["      ├─ approval  approved  by alice  waited 2 h 0 min", "      └─ validate  recheck"]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (e.ApprovalExpired(**call(1, "c"), approval_id="a", started=START), "approval expired"),
        (e.ApprovalSuperseded(**call(1, "c"), approval_id="a", reason="arguments"), "approval superseded  arguments"),
        (e.ToolResultReused(**call(1, "c")), "result reused"),
        (e.ReconcileResolved(**call(1, "c"), attempt=1, outcome="committed"), "reconcile  committed"),
        (e.ManualIntervention(**call(1, "c"), attempt=1, reason="no answer"), "manual_intervention  no answer"),
        (
            e.ManualDecisionReceived(**call(1, "c"), attempt=1, outcome="committed", started=START, actor="bob"),
            "manual_intervention  committed  bob",
        ),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_what_happens_to_a_call_is_below_it(event, expected):
    run = Written().started().step(1).opened(1, "c").add(event, "call c.1")
    assert shown(run).splitlines()[-1] == f"      └─ {expected}"


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (e.BudgetExhausted(limit="max_steps", detail="3"), "budget_exhausted  max_steps  3"),
        (e.TransitionRefused(refused="tool_started", rule="r", message="x"), "transition_refused  tool_started  r"),
        (e.RunSuspended(reason="pending_approval"), "suspended  pending_approval"),
        (e.RunResumed(), "resumed"),
        (e.CancelRequested(by="bob"), "cancel_requested  bob"),
        (e.HumanWait(step=None, kind="approval", started=START, approved=False), "human wait approval  denied"),
        (e.HumanWait(step=None, kind="question", started=START), "human wait question  waited"),
        (Unknown("future_event", 2, {}), "future_event  not known to this version"),
        (Unknown("step_started", 1, {}, "loopspan.step: ValueError"), "step_started  cut or altered"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)  # fmt: skip
def test_what_happens_to_a_run_is_below_it(event, expected):
    last = shown(Written().started().add(event)).splitlines()[-1]
    assert last.startswith(f"└─ {expected}")


def test_the_end_of_a_run_says_reason_detail_and_error():
    run = Written().started().closed("loop_error", error_type="builtins.KeyError", message="'x'")
    assert "closed loop_error  KeyError: 'x'" in shown(run)
    assert "closed cancelled (requested)" in shown(Written().started().closed("cancelled", stop_detail="requested"))


def test_open_parts_are_called_open():
    lines = shown(Written().started().step(1).asked(1).opened(1, "c")).splitlines()
    assert lines[0].startswith("invoke_agent build-watch  running  1 step  tokens unknown")
    assert lines[1].startswith("└─ step 1  open")
    assert lines[2].startswith("   ├─ chat m-1  open")
    assert lines[3].startswith("   └─ execute_tool get_status  open  0 attempts")


def test_a_waiting_run_says_for_what_and_that_its_root_is_pending(tmp_path):
    run = Written().started().step(1).add(e.RunSuspended(reason="pending_approval"), "step 1")
    log = read_runlog(write(tmp_path / "spans.jsonl", run.line(without=("root",))))
    assert "suspended pending_approval" in text(tree(log))
    assert "root pending" in text(tree(log))
    assert remarks(log, log.runs) == ["run run-1: its root span is not exported yet"]


def test_a_sub_agent_is_below_the_call_that_started_it():
    boss = Written("boss", agent="boss").started().step(1).opened(1, "c", "ask_helper")
    boss.attempt(1, "c", 1, tool="ask_helper")
    helper = Written("helper", agent="helper", trace=2, at=boss.now).below(boss, "attempt c.1")
    helper.started(parent_run_id="boss", parent_call_id="c").step(1).asked(1)
    helper.answered(1, {"input_tokens": 5, "output_tokens": 2}).closed_step(1).closed()
    boss.closed_call(1, "c", tool="ask_helper").closed_step(1).closed()
    lines = shown(boss, helper).splitlines()
    assert [row.lstrip("│├└─ ").split("  ")[0] for row in lines] == [
        "invoke_agent boss",
        "step 1",
        "execute_tool ask_helper",
        "invoke_agent helper",
        "step 1",
        "chat m-1",
    ]
    assert "5→2 tok with sub-agents" in lines[0]


def test_a_sub_agent_whose_place_is_not_known_is_below_its_parent():
    boss, helper = Written("boss").started().step(1).closed(), Written("helper", trace=2).started(parent_run_id="boss")
    assert shown(boss, helper).splitlines()[-1].startswith("└─ invoke_agent build-watch  running")


def test_parallel_calls_stand_side_by_side():
    run = Written().started().step(1).opened(1, "a").opened(1, "b")
    run.attempt(1, "b", 1).attempt(1, "a", 1).closed_call(1, "b").closed_call(1, "a")
    rows = shown(run).splitlines()
    assert [row[:19] for row in rows[2:]] == ["   ├─ execute_tool ", "   └─ execute_tool "]


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        (CostTotals({("USD", "provider"): Decimal("0.050")}), "0.05 USD"),
        (CostTotals({("USD", "provider"): Decimal(100)}), "100 USD"),
        (CostTotals({("USD", "estimated"): Decimal("0.0048")}, unpriced=1), "0.0048 USD estimated  1 unpriced"),
        (CostTotals({("EUR", "simulated"): Decimal(1)}, partial=True), "1 EUR simulated  cost incomplete"),
        (CostTotals(), ""),
    ],
)
def test_money_says_where_it_is_from(cost, expected):
    assert words.plain(words.money(cost)) == expected


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (Usage(), None),
        (Usage(1, 2), "1→2 tok"),
        (Usage(None, 2), "?→2 tok"),
        (Usage(0, 0), "0→0 tok"),
        (Usage(9, 8, 7, 6, 5), "9→8 tok (7 cached, 5 reasoning)"),
    ],
)
def test_tokens_that_nobody_stated_are_question_marks(usage, expected):
    assert words.tokens(usage) == expected


def test_incomplete_and_unknown_tokens_are_said():
    run = Written().started().step(1).asked(1).answered(1, {"output_tokens": 5})
    run.step(2).asked(2).answered(2, None)
    rows = shown(run).splitlines()
    assert "?→5 tok  incomplete" in rows[0]
    assert rows[-1].endswith("tokens unknown")


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.0004, "0.4 ms"), (0.35, "350 ms"), (1.24, "1.2 s"), (59.9, "59.9 s"), (125, "2 min 5 s"),
        (3720, "1 h 2 min"), (180_000, "2 d 2 h"), (0, "0 ms"),
    ],
)  # fmt: skip
def test_durations_have_the_unit_that_fits(seconds, expected):
    assert words.seconds(seconds) == expected


def test_text_from_outside_moves_no_cursor_and_takes_one_line():
    run = Written(agent="evil\x1b[2J\n\u202ename").started().closed("loop_error", error_type="E", message="x" * 5000)
    row = shown(run)
    assert "\x1b" not in row
    assert "\n" not in row
    assert row.startswith("invoke_agent evil [2J name")
    assert len(row) < 400


def test_remarks_say_what_the_tree_cannot(tmp_path):
    lines = [retried().line(without=("chat 1.1",)), line([foreign_span()], "other"), "{torn"]
    log = read_runlog(write(tmp_path / "spans.jsonl", *lines))
    torn, gap, foreign = remarks(log, log.runs)
    assert torn.startswith("line 3 is torn")
    assert gap == "run run-1: events 3 to 5 are missing"
    assert foreign == "1 span of other instrumentations left out"


# while a program runs


def test_the_printer_prints_a_run_when_it_closes_and_keeps_nothing():
    stream = io.StringIO()
    printer = RunPrinter(stream)
    run = retried()
    for entry in run.entries[:-1]:
        printer(entry)
    assert stream.getvalue() == ""
    printer(run.entries[-1])
    assert stream.getvalue() == shown(run) + "\n"
    assert printer._entries == {}


def test_the_printer_prints_a_sub_agent_with_its_parent():
    stream = io.StringIO()
    printer = RunPrinter(stream)
    boss, helper = Written("boss", agent="boss").started(), Written("helper", agent="helper", trace=2)
    helper.started(parent_run_id="boss").closed()
    for entry in [*boss.entries, *helper.entries]:
        printer(entry)
    assert stream.getvalue() == ""
    boss.closed()
    printer(boss.entries[-1])
    assert [row.split("  ")[0] for row in stream.getvalue().splitlines()] == [
        "invoke_agent boss",
        "└─ invoke_agent helper",
    ]
    assert printer._entries == {}
    assert printer._parents == {}
