"""What could come next in a run, as far as its log tells: events with the values that fit."""

from __future__ import annotations

from lifecycle import facts
from lifecycle.called import Called
from lifecycle.legal import EFFECTS
from lifecycle.model import GRAVITY, Model
from loopspan import events as e


def of_call(model: Model, number: int) -> list[e.Event]:
    """For every second call of the open step, from `number` on: the first that is not over."""
    which = facts.call(number, max(1, model.step))
    call = model.calls.get((which["step"], which["call_id"], which["ordinal"]))
    if call is not None and not call.open and (call.refused or call.committed):
        return of_call(model, number + 2)
    if call is None or not call.open:
        return _openings(which, call or Called())
    if call.inside:
        return _ends(which, call.last)
    ends = [facts.call_closed(which, outcome) for outcome in ("failed", "suspended")]
    if call.unknown:
        return [*_settlings(which, call.last), *_entries(which, call), *ends]
    if call.refused or call.committed:
        return ends
    refusals = [facts.rejected(which), facts.not_permitted(which)] if not call.last else []
    return [*_approvals(which, call), *refusals, *ends, *_entries(which, call)]


def _openings(which: facts.Call, call: Called) -> list[e.Event]:
    if call.last or call.asked:
        return [facts.opened(which, effect=call.effect, needs_approval=call.needs_approval, subagent=call.subagent)]
    asking = facts.opened(which, effect="reconcilable", needs_approval=True)
    return [facts.opened(which, effect=effect, max_attempts=2) for effect in EFFECTS] + [
        asking,
        facts.opened(which, needs_approval=True),
        facts.opened(which, subagent=True),
    ]


def _entries(which: facts.Call, call: Called) -> list[e.Event]:
    key = next(iter(call.keys), "k")
    return [facts.entered(which, call.last + 1, key_digest=key, digest="d")] * 3


def _ends(which: facts.Call, attempt: int) -> list[e.Event]:
    outcomes = ("failed", "timeout", "suspended")
    unknown = facts.unknown(which, attempt)
    return [facts.succeeded(which, attempt), unknown, unknown, *(facts.failed(which, attempt, o) for o in outcomes)]


def _approvals(which: facts.Call, call: Called) -> list[e.Event]:
    asked = call.asked
    if asked is None or asked.over:
        number = 0 if asked is None else int(asked.id)
        return [facts.asked(which, str(number + 1), digest="d")] * (3 if call.needs_approval else 1)
    if asked.said is None:
        yes, no = (facts.decided(which, said, asked.id) for said in (True, False))
        return [yes, yes, no, facts.expired(which, asked.id)]
    if not asked.said:
        return [facts.denied(which, asked.id)]
    looked = [facts.rechecked(which, outcome, asked.id) for outcome in ("ok", "ok", "resource")]
    return [*looked, facts.superseded(which, asked.id), facts.expired(which, asked.id)]


def _settlings(which: facts.Call, attempt: int) -> list[e.Event]:
    answers = [facts.resolved(which, outcome, attempt) for outcome in ("committed", "not_committed", "same_key")]
    words = [facts.person_said(which, outcome, attempt) for outcome in ("committed", "not_committed", "abandoned")]
    asking = [facts.inquired(which, attempt), facts.unresolved(which, attempt), facts.person_needed(which, attempt)]
    return [*asking, *answers, *words]


def of_run(model: Model, late: bool) -> list[e.Event]:
    """For the run itself; it is closed when it is late."""
    if model.lifecycle == "closed":
        return [facts.step(model.step)]
    waits = [call.waits for call in model.calls.values() if call.waits]
    gravest = max(waits, key=GRAVITY.index, default=GRAVITY[0])
    if model.lifecycle == "suspended":
        going_on = [facts.resumed()] * 3 + [facts.suspended(gravest), facts.owner(model.fence + 1)]
        return going_on + _ends_of_waiting(late)
    saved = [facts.checkpoint()] if "pending_approval" in waits and not model.checkpoint else []
    suspended = [facts.suspended(gravest)] * 3 if waits else []
    steps = [facts.step(model.step), facts.step(model.step + 1)]
    return saved * 3 + _ends_of_running(late) + steps + suspended


def _ends_of_waiting(late: bool) -> list[e.Event]:
    return (
        [facts.cancel(), facts.closed("cancelled"), facts.closed("approval_expired"), facts.given_up()] if late else []
    )


def _ends_of_running(late: bool) -> list[e.Event]:
    return [facts.closed("success"), facts.closed("tool_failed"), facts.given_up()] if late else []
