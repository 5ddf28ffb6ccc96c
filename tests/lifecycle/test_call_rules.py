"""lifecycle.md, *A tool call*: proposed, refused, attempted, closed; every row."""

from __future__ import annotations

import pytest

from lifecycle.facts import (
    CALLED,
    CHILD_WAITS,
    DONE,
    FAILED,
    IN_FLIGHT,
    ON_UNKNOWN,
    ONE,
    RUNNING,
    SUB_AGENT,
    TWO,
    UNKNOWN,
    asked,
    call,
    call_closed,
    checkpoint,
    closed,
    entered,
    failed,
    fold,
    given_up,
    not_permitted,
    of,
    once,
    opened,
    rejected,
    resolved,
    resumed,
    reused,
    run,
    step,
    succeeded,
    suspended,
    unknown,
)
from lifecycle.rows import Accepted, Refused, table
from loopspan import events as e
from loopspan.lifecycle import State, advance

LATER = call(1, step=2)


PARKED = (*ON_UNKNOWN, call_closed(outcome="suspended"))
AGAIN = (*PARKED, resolved(outcome="not_committed"), resumed())


PROPOSALS = [
    Accepted("a call is opened", RUNNING, opened(), call={"attempts": 0, "refused": None}),
    Accepted("the same id again is another call by its ordinal", CALLED, opened({**ONE, "ordinal": 2})),
    Accepted("the same id in the next step is another call", CALLED, opened(LATER), {"step": 2}),
    Accepted(
        "a tool that is not known is refused at once", RUNNING, opened(known=False), call={"refused": "unknown_tool"}
    ),
    Accepted("validation_error", CALLED, rejected(), call={"refused": "validation_rejected"}),
    Accepted("unknown_tool", CALLED, rejected(rejection="unknown_tool"), call={"refused": "validation_rejected"}),
    Accepted("permission_denied", CALLED, not_permitted(), call={"refused": "permission_denied"}),
    Accepted("permission_denied at the recheck", FAILED, not_permitted(stage="recheck"), call={"attempts": 1}),
    Accepted(
        "a refused call closes", (*CALLED, rejected()), call_closed(outcome="rejected", attempts=0), {"calls": {}}
    ),
    Accepted("a call closes after its attempt", FAILED, call_closed(outcome="failed"), {"calls": {}}),
    Accepted(
        "whoever repeats a closed call counts on",
        (*once("keyed"), call_closed(outcome="failed"), opened(effect="keyed")),
        entered(attempt=2),
        call={"attempts": 2},
    ),
    Accepted(
        "whoever repeats a closed call has a new budget",
        (*of("keyed", max_attempts=1), entered(), failed(), call_closed(outcome="failed"), opened(max_attempts=1)),
        entered(attempt=2),
        call={"attempts": 2, "entries": 1},
    ),
    Accepted("a call is suspended", CHILD_WAITS, call_closed(TWO, outcome="suspended"), call={"parked": True}),
    Accepted("an unknown call stays on record", UNKNOWN, call_closed(outcome="unknown"), call={"parked": True}),
    Accepted(
        "a suspended call is opened again in another period", AGAIN, opened(), call={"parked": False, "attempts": 1}
    ),
    Accepted("and its tool may be gone", AGAIN, opened(known=False), call={"refused": "unknown_tool"}),
]


ATTEMPTS = [
    Accepted("the body is entered", CALLED, entered(), call={"in_flight": True, "attempts": 1}),
    Accepted("it succeeds", IN_FLIGHT, succeeded(), call={"in_flight": False}),
    Accepted("the remote side took it", IN_FLIGHT, succeeded(outcome="accepted"), call={"in_flight": False}),
    *(
        Accepted(f"it ends {outcome}", IN_FLIGHT, failed(outcome=outcome), call={"in_flight": False})
        for outcome in ("failed", "timeout", "cancelled")
    ),
    Accepted(
        "it ends suspended with its sub-agent", SUB_AGENT, failed(TWO, outcome="suspended"), call={"child_waits": True}
    ),
    Accepted("a sub-agent's body is entered again", CHILD_WAITS, entered(TWO, 2), call={"child_waits": False}),
    Accepted(
        "an entry that was suspended takes nothing from the budget",
        (run(), opened(TWO, subagent=True, max_attempts=1), entered(TWO), failed(TWO, outcome="suspended")),
        entered(TWO, 2),
        call={"attempts": 2},
    ),
    Accepted("a retry has the next number", FAILED, entered(attempt=2), call={"attempts": 2}),
    Accepted("the last attempt of the budget", (*of(None, max_attempts=2), entered(), failed()), entered(attempt=2)),
    Accepted("what was entered before loopspan saw it counts on", CALLED, entered(attempt=3), call={"attempts": 3}),
    Accepted("parallel calls", IN_FLIGHT, opened(TWO)),
    Accepted("parallel attempts", (*IN_FLIGHT, opened(TWO)), entered(TWO)),
    Accepted("a plain tool may be entered again after it succeeded", (*IN_FLIGHT, succeeded()), entered(attempt=2)),
    Accepted("a committed result is handed back", CALLED, reused(), call={"committed": True}),
    Accepted(
        "a missing result of the former turn is recorded, not refused",
        FAILED,
        e.BackfillMissing(**ONE, started=1),
        {"lifecycle": "running"},
    ),
]


NOT_PROPOSED = [
    Refused("a call is opened once", CALLED, opened(), "call_open", "count its ordinal up"),
    Refused(
        "no call opens in a step that is over", (*RUNNING, step(2)), opened(), "past_step", "the call belongs there"
    ),
    Refused(
        "a rejection has one of two names", CALLED, rejected(rejection="no"), "rejection", "use one of unknown_tool"
    ),
    Refused(
        "nothing happens to a call that is not open",
        RUNNING,
        not_permitted(),
        "call_not_open",
        "tool_call_opened first",
    ),
    Refused(
        "a closed call is not closed again", (*FAILED, call_closed()), call_closed(), "call_not_open", "opened first"
    ),
    Refused("a suspended call neither", PARKED, call_closed(), "call_parked", "open it again after run_resumed"),
    Refused(
        "a call does not close in flight", IN_FLIGHT, call_closed(), "attempt_in_flight", "the end of its attempt first"
    ),
    Refused("a call has an outcome", CALLED, call_closed(outcome="fine"), "outcome", "use one of accepted, cancelled"),
    Refused("the body is entered already", IN_FLIGHT, rejected(), "attempt_in_flight", "the end of the attempt"),
    Refused("the effect has happened", (*UNKNOWN, resolved()), not_permitted(), "committed", "tool_result_reused"),
]


REFUSED_CALLS = {
    "unknown_tool": (run(), opened(known=False)),
    "validation_error": (*CALLED, rejected()),
    "permission_denied": (*CALLED, not_permitted()),
    "permission_denied between attempts": (*FAILED, not_permitted(stage="recheck")),
}


NOT_ENTERED = [
    *(
        Refused(
            f"{name}: the body is not entered",
            before,
            entered(attempt=2 if "between" in name else 1),
            "refused_call",
            "propose another call",
        )
        for name, before in REFUSED_CALLS.items()
    ),
    *(
        Refused(
            f"{name}: nor when the same call is opened again",
            (*before, call_closed(outcome="rejected", attempts=0), opened()),
            entered(),
            "refused_call",
            "propose another call",
        )
        for name, before in REFUSED_CALLS.items()
        if "between" not in name
    ),
    *(
        Refused(f"{name}: nobody is asked", before, asked(), "refused_call", "propose another call")
        for name, before in REFUSED_CALLS.items()
    ),
    Refused("a call that is not open", RUNNING, entered(), "call_not_open", "tool_call_opened first"),
    Refused("a suspended run", ON_UNKNOWN, entered(TWO), "suspended", "resume it first"),
    Refused(
        "a suspended call, before it is opened again",
        AGAIN,
        entered(attempt=2),
        "call_parked",
        "tool_call_opened again",
    ),
    Refused("one attempt at a time", IN_FLIGHT, entered(attempt=2), "attempt_in_flight", "the end of the attempt"),
    Refused("attempts count from 1", CALLED, entered(attempt=0), "attempt_number", "numbered from 1"),
    Refused("the same number twice", FAILED, entered(attempt=1), "attempt_number", "the next is 2"),
    Refused("a number left out", FAILED, entered(attempt=3), "attempt_number", "the next is 2"),
    Refused(
        "more attempts than the budget has",
        (*of("read_only", max_attempts=1), entered(), failed()),
        entered(attempt=2),
        "attempt_budget",
        "raise Retry(max_attempts=)",
    ),
    Refused("an end that belongs to no attempt", CALLED, succeeded(), "no_attempt", "tool_started first"),
    Refused("the end of another attempt", IN_FLIGHT, failed(attempt=2), "no_attempt", "tool_started first"),
    Refused("the second end of an attempt", FAILED, succeeded(), "no_attempt", "tool_started first"),
    Refused(
        "unknown after it is known",
        (*of("unsafe"), entered(), succeeded()),
        unknown(),
        "no_attempt",
        "tool_started first",
    ),
    Refused("a success with the name of a failure", IN_FLIGHT, succeeded(outcome="failed"), "outcome", "accepted, ok"),
    Refused("a failure with the name of a success", IN_FLIGHT, failed(outcome="ok"), "outcome", "use one of cancelled"),
    Refused("suspended inside of a plain tool", IN_FLIGHT, failed(outcome="suspended"), "no_subagent", "subagent=True"),
    Refused(
        "another end of the enclosing attempt than suspended",
        (*SUB_AGENT, opened(needs_approval=True), asked(), checkpoint(), suspended("pending_approval")),
        failed(TWO),
        "suspended",
        "ends suspended as well",
    ),
]


ROWS = [*PROPOSALS, *ATTEMPTS, *NOT_PROPOSED, *NOT_ENTERED]


@table([*PROPOSALS, *ATTEMPTS])
def test_a_call_goes_on(row: Accepted):
    row.check()


@table([*NOT_PROPOSED, *NOT_ENTERED])
def test_a_call_is_stopped(row: Refused):
    row.check()


@pytest.mark.parametrize("name", REFUSED_CALLS)
def test_a_refused_call_that_nobody_handles_closes_the_run_with_its_reason(name: str):
    reason = name.split()[0]
    assert (
        fold([*REFUSED_CALLS[name], call_closed(outcome="rejected", attempts=0), closed(reason)]).stop_reason == reason
    )


def test_a_refused_call_that_the_loop_handles_lets_the_run_go_on():
    state = fold([*CALLED, rejected(), call_closed(outcome="rejected", attempts=0), opened(TWO), entered(TWO)])
    assert [call.tool for call in state.in_flight()] == ["tool_2"]


def test_what_binds_a_call_is_forgotten_with_its_step():
    """The state does not grow with the length of a run."""
    state = fold([*CALLED, rejected(), call_closed(outcome="rejected", attempts=0)])
    assert len(state.done) == 1
    assert fold([step(2)], state).done == {}
    assert fold([opened(LATER)], state).done == {}


def test_a_run_keeps_nothing_of_the_calls_that_are_over():
    """Ten thousand plain calls in one step leave the state as it was."""
    before = state = fold([*RUNNING, step(1)])
    for number in range(10_000):
        which = call(number)
        state = fold([opened(which), entered(which), succeeded(which), call_closed(which)], state)
    assert state == before


def test_a_closed_run_keeps_nothing_at_all():
    assert fold([*UNKNOWN, given_up()]) == State(lifecycle="closed", stop_reason="unresolved_side_effect")  # type: ignore[arg-type]


@pytest.mark.parametrize("before", [RUNNING, IN_FLIGHT, UNKNOWN, DONE, ON_UNKNOWN], ids=len)
def test_the_same_state_and_event_give_the_same_answer(before: tuple[e.Event, ...]):
    state = fold(before)
    for event in (entered(), closed("success"), suspended("unknown_side_effect"), resolved()):
        assert advance(state, event) == advance(state, event)
