"""The invariants of lifecycle.md, read off a log of accepted events: a second opinion that knows nothing of the rules.

`Model.accept(event)` raises `Broken` when an event must not stand where it stands. The model keeps every call of a run
for ever, and has no notion of refusing: what it is given has happened.
"""

from __future__ import annotations

from typing import Any

from lifecycle.called import ONCE, Asked, Called, holds
from loopspan.events import Event
from loopspan.lifecycle import State

GRAVITY = ("pending_approval", "unknown_side_effect", "manual_intervention")
WHILE_SUSPENDED = (
    *("approval_decision_received", "approval_recheck", "approval_span_closed", "approval_expired"),
    *("approval_superseded", "tool_failed", "tool_span_closed", "tool_call_closed", "step_closed"),
    *("reconcile_requested", "reconcile_resolved", "reconcile_unresolved", "reconcile_span_closed"),
    *("manual_intervention", "manual_decision_received", "checkpoint_saved", "run_suspended", "run_resumed"),
    *("run_trace_closed", "cancel_requested", "owner_changed", "transition_refused"),
)


class Model:
    """A run as its log tells it."""

    def __init__(self) -> None:
        self.lifecycle: str | None = None
        self.stop_reason: str | None = None
        self.suspend_reason: str | None = None
        self.durable = False
        self.checkpoint = False
        self.cancelled = False
        self.fence = 0
        self.step = 0
        self.calls: dict[tuple[int, str, int], Called] = {}
        self.waiting: list[Called] = []
        self.heard = False

    def accept(self, event: Event) -> None:
        """`event` is on record."""
        name = event.name
        holds(self.lifecycle != "closed", "no event after the close")
        holds((self.lifecycle is None) == (name == "run_started"), "a run starts once, and first")
        holds(self.lifecycle != "suspended" or name in WHILE_SUSPENDED, f"{name} in a suspended run")
        handler = getattr(self, "on_" + name, None)
        if handler is not None:
            handler(event)

    def agrees(self, state: State) -> None:
        """The state says the same."""
        told = (self.lifecycle, self.stop_reason, self.suspend_reason)
        holds(
            (state.lifecycle, state.stop_reason, state.suspend_reason) == told, f"the state is {state}, the log {told}"
        )
        holds((state.lifecycle == "closed") == (state.stop_reason is not None), "closed <=> stop reason")
        holds((state.lifecycle == "suspended") == (state.suspend_reason is not None), "suspended <=> suspend reason")

    # the run

    def on_run_started(self, event: Any) -> None:
        self.lifecycle, self.durable = "running", event.durable

    def on_step_started(self, event: Any) -> None:
        holds(event.step >= self.step, "steps count upwards")
        self.step = event.step

    def on_checkpoint_saved(self, event: Any) -> None:
        self.checkpoint = True

    def on_cancel_requested(self, event: Any) -> None:
        self.cancelled = True

    def on_owner_changed(self, event: Any) -> None:
        holds(event.fence > self.fence, "a new owner has a new fence")
        self.fence = event.fence

    def on_run_suspended(self, event: Any) -> None:
        holds(event.reason in GRAVITY, "a suspend reason is one of three")
        again = self.lifecycle == "suspended"
        graver = (self.suspend_reason, event.reason) == ("unknown_side_effect", "manual_intervention")
        holds(not again or graver, "a suspended run becomes only graver")
        waits = [call.waits for call in self.calls.values() if call.waits]
        holds(all(GRAVITY.index(wait) <= GRAVITY.index(event.reason) for wait in waits), "the gravest wait is shown")
        below = any(call.subagent and (call.inside or call.child_waits) for call in self.calls.values())
        holds(event.reason in waits or below, "a suspended run waits for what it says")
        holds(event.reason != "pending_approval" or self.checkpoint, "the approval is in a checkpoint")
        holds(all(call.subagent for call in self.calls.values() if call.inside), "no other attempt is in flight")
        self.lifecycle, self.suspend_reason = "suspended", event.reason
        self.heard = again and self.heard
        self.waiting = [call for call in self.calls.values() if call.waits or (again and call in self.waiting)]
        for call in self.calls.values():
            if call.asked is not None:
                call.asked.found = None

    def on_run_resumed(self, event: Any) -> None:
        calls = self.calls.values()
        holds(self.lifecycle == "suspended", "only a suspended run resumes")
        holds(not any(call.unknown and not call.resend for call in calls), "nothing is unknown at a resume")
        holds(not any(call.inside for call in calls), "no body outlives a suspension")
        if self.suspend_reason == "pending_approval":
            holds(self.heard or any(call.child_waits for call in calls), "one of the waits is over at a resume")
        self.lifecycle, self.suspend_reason, self.checkpoint = "running", None, False

    def on_run_trace_closed(self, event: Any) -> None:
        reason, calls = event.stop_reason, self.calls.values()
        holds(not any(call.inside for call in calls), "every tool_started is answered")
        holds(not event.open_children, "sub-agents close first")
        if reason == "unresolved_side_effect":
            holds(event.actor, "a give-up names its actor")
        else:
            holds(not any(call.unknown for call in calls), f"{reason} while an effect is unknown")
        if self.lifecycle == "running":
            holds("pending_approval" not in [call.waits for call in calls], "nobody waits in a closed run")
        else:
            self._closed_while_suspended(reason)
        self.lifecycle, self.stop_reason, self.suspend_reason = "closed", reason, None

    def _closed_while_suspended(self, reason: str) -> None:
        calls = self.calls.values()
        below = any(call.child_waits for call in calls)
        if reason == "cancelled":
            holds(self.cancelled, "a suspended run is cancelled on request")
        elif reason == "approval_expired":
            holds(below or any(call.expired for call in self.waiting), "an approval has expired")
        else:
            holds(reason == "unresolved_side_effect", f"a suspended run closes with {reason}")
            holds(below or any(call.unknown for call in calls), "there is something to give up")

    # calls

    def call(self, event: Any) -> Called:
        """The call that the event belongs to; it is open."""
        found = self.calls.get((event.step, event.call_id, event.ordinal))
        holds(found is not None, f"{event.name} of a call that was never opened")
        assert found is not None
        return found

    def on_tool_call_opened(self, event: Any) -> None:
        which = (event.step, event.call_id, event.ordinal)
        call = self.calls.get(which)
        holds(call is None or not call.open, "a call is opened once")
        holds(call is not None or event.step >= self.step, "a call opens in the open step")
        self.step = max(self.step, event.step)
        if call is None:
            call = self.calls[which] = Called()
        if not call.goes_on:
            call.begins(event)
        call.open, call.goes_on = True, False
        call.refused |= not event.known

    def on_tool_call_closed(self, event: Any) -> None:
        call = self.call(event)
        holds(call.open and not call.inside, "a call closes once, after its attempt")
        call.open = False
        waits = call.waits is not None and self.lifecycle == "suspended"
        call.goes_on = call.unknown or waits or event.outcome == "suspended"
        if not call.goes_on:
            call.child_waits = False
            call.asked = (
                call.asked if call.asked is not None and (call.asked.said is False or call.asked.over) else None
            )

    def _refused(self, event: Any) -> None:
        call = self.call(event)
        holds(not call.inside, "a body that is entered is not refused")
        call.refused = True
        if call.asked is not None:
            call.asked.over = True

    on_validation_rejected = on_permission_denied = _refused

    def on_tool_result_reused(self, event: Any) -> None:
        call = self.call(event)
        holds(not call.unknown, "nothing unknown is reused")
        call.committed = True

    # attempts

    def on_tool_started(self, event: Any) -> None:
        call = self.call(event)
        holds(call.open and not call.inside, "one attempt at a time, in an open call")
        holds(not call.refused, "any denial => no entry for that call")
        holds(not call.committed, "what is committed is not executed again")
        holds(not call.unknown or call.resend, "unknown => no later intent without a resolution between")
        others = [other for other in self.calls.values() if other is not call and other.unknown]
        holds(call.effect == "read_only" or not others, "nothing but reads beside an unknown effect")
        call.may_repeat(event)
        call.may_execute(event)
        call.enter(event)

    def _ended(self, event: Any) -> Called:
        call = self.call(event)
        holds(call.inside and call.last == event.attempt, "every end answers one tool_started")
        call.inside = False
        return call

    def on_tool_succeeded(self, event: Any) -> None:
        call = self._ended(event)
        call.committed = call.effect in ONCE or call.asked is not None or self.durable

    def on_tool_failed(self, event: Any) -> None:
        call = self._ended(event)
        if event.outcome == "suspended":
            holds(call.subagent, "only a sub-agent suspends inside of a body")
            call.child_waits = True
            call.entries -= 1
        else:
            holds(self.lifecycle == "running", "an attempt that the suspension cut ends suspended")

    def on_unknown_side_effect(self, event: Any) -> None:
        call = self._ended(event)
        holds(call.effect in ONCE or (call.effect is None and self.durable), "a harmless failure is a failure")
        call.unknown = True

    # people

    def on_approval_requested(self, event: Any) -> None:
        call = self.call(event)
        holds(not (call.refused or call.committed or call.unknown or call.inside), "only what may run is asked for")
        holds(call.asked is None or call.asked.over, "one request at a time")
        holds(call.asked is None or call.asked.id != event.approval_id, "every request has its own id")
        holds(event.expires_at > event.requested_at, "every request expires")
        call.asked = Asked(event.approval_id, event.digest, event.expires_at)
        self.checkpoint = False

    def _asked(self, event: Any) -> tuple[Called, Asked]:
        call = self.call(event)
        asked = call.asked
        holds(asked is not None and asked.id == event.approval_id, f"{event.name} of a request that was not made")
        assert asked is not None
        holds(not asked.over, "what is over stays over")
        self.heard |= call in self.waiting and event.name != "approval_decision_received"
        return call, asked

    def on_approval_decision_received(self, event: Any) -> None:
        _, asked = self._asked(event)
        holds(asked.said in (None, event.approved), "no conflicting decisions")
        holds(event.decided_at is None or event.decided_at < asked.expires_at, "expiry is never approval")
        asked.said = event.approved

    def on_approval_recheck(self, event: Any) -> None:
        _, asked = self._asked(event)
        holds(event.outcome != "ok" or asked.said is not None, "there is a decision to recheck")
        asked.found = event.outcome

    def on_approval_denied(self, event: Any) -> None:
        _, asked = self._asked(event)
        holds(asked.said is False, "somebody said no")
        self._refused(event)

    def on_approval_expired(self, event: Any) -> None:
        call, _ = self._asked(event)
        self._refused(event)
        call.expired = True

    def on_approval_superseded(self, event: Any) -> None:
        _, asked = self._asked(event)
        holds(asked.said is not False, "a denial is not superseded")
        asked.over = True

    # unknown effects

    def _unknown(self, event: Any) -> Called:
        call = self.call(event)
        holds(call.unknown and call.last == event.attempt, f"{event.name} of what is known")
        return call

    def on_reconcile_requested(self, event: Any) -> None:
        self._unknown(event)

    on_reconcile_unresolved = on_reconcile_requested

    def on_manual_intervention(self, event: Any) -> None:
        call = self._unknown(event)
        call.manual, call.resend = True, False

    def on_reconcile_resolved(self, event: Any) -> None:
        call = self._unknown(event)
        if event.outcome == "same_key":
            holds(call.effect == "keyed", "the same key needs a key")
            call.resend, call.manual = True, False
        else:
            holds(event.outcome in ("committed", "not_committed"), "a resolution resolves")
            call.settle(event.outcome)

    def on_manual_decision_received(self, event: Any) -> None:
        call = self._unknown(event)
        holds(event.actor, "a decision names its actor")
        if event.outcome != "abandoned":
            holds(event.outcome in ("committed", "not_committed"), "a decision decides")
            call.settle(event.outcome)
