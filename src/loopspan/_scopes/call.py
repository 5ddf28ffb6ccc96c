"""A tool call: one logical call, one attempt for every entry into the tool's body."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from loopspan import _guard, _redact, semconv
from loopspan import events as e
from loopspan._scopes import foreign
from loopspan._scopes.context import Scope
from loopspan._scopes.options import ToolOptions
from loopspan.errors import ConfigurationError, IllegalTransition, PermissionDenied
from loopspan.telemetry._spans import Place
from loopspan.values import Streamed

if TYPE_CHECKING:
    from loopspan._scopes.steps import Step

_SECRET = secrets.token_bytes(32)
"""Keys the digests of idempotency keys, so that nobody can guess a key from telemetry."""

UNSAID: Any = object()
"""The result of a block that has not said what it is."""


class Verdict(NamedTuple):
    """What an attempt came to: an outcome of lifecycle.md, and the class of its error."""

    outcome: str
    error_type: str | None = None


class ToolCall(Scope):
    """One logical tool call (`current_tool_call()`, `with tool_call(...) as call`)."""

    __slots__ = (
        "_inside", "_open", "_reference", "approved", "arguments", "attempts", "call_id", "digest", "id_source",
        "known", "name", "options", "ordinal", "outcome", "quiet", "result_at", "size", "step", "verdict",
    )  # fmt: skip

    def __init__(
        self, scope: Scope, name: str, options: ToolOptions | None, arguments: Any, call_id: str | None
    ) -> None:
        run = scope.run
        super().__init__(run, scope)
        self.name = _redact.name(name) or "?"
        self.options = options or ToolOptions(self.name)
        self.arguments = arguments
        self.attempts = 0
        self.outcome: str | None = None
        self.verdict: Verdict | None = None
        self.approved: Any = None
        self.result_at = 0
        self._reference: str | None = None
        self._open = True
        self._inside = False
        self.call_id = ""
        self.ordinal = 1
        self.id_source = "given"
        strict = self.options.guarded or self.options.outlives_failure or options is None
        self.quiet = not (run.recorder.listening or strict or run.recorder.state.calls)
        self.digest: str | None = None
        self.size: int | None = None
        self.known = options is not None
        with run.recorder.lock:
            self._start(_redact.name(call_id))

    def _start(self, call_id: str | None) -> None:
        run = self.run
        run.check()
        self.step: Step = run.steps_.ensure()
        if not self.quiet:
            self.size, self.digest = self.step.proposals.snapshot(self.arguments)
        scope = self.parent or run
        around, host = foreign.around(scope, semconv.EXECUTE_TOOL), scope.host()
        self._identify(call_id or foreign.call_id(around, self.name))
        self.handle = run.recorder.root
        if not self.quiet:
            self._open_span(bool(around), (self.step if host is run else host).place())
        run.opened(self)

    def _open_span(self, owned: bool, place: Place) -> None:
        run = self.run
        if run.recorder.listening:
            self._propose()
        approval = self.options.approval
        event = e.ToolCallOpened(
            **self.where(),
            id_source=self.id_source,
            known=self.known,
            effect=None if self.options.effect is None else self.options.effect.value,
            subagent=self.options.subagent,
            owned=owned,
            needs_approval=approval is not None and approval.when is None,
            max_attempts=self.options.max_attempts,
            digest=self.digest,
            size=self.size,
            arguments=self.arguments if run.recorder.content.in_events else None,
        )
        self.handle = run.recorder.open(event, place)

    def _identify(self, call_id: str | None) -> None:
        """Who this call is: an entry with equal arguments right after a failed one is its next attempt."""
        failed, self.step.failed_call = self.step.failed_call, None
        if failed is not None and call_id in (None, failed.call_id) and self._equals(failed):
            self.call_id, self.ordinal, self.id_source = failed.call_id, failed.ordinal, failed.id_source
            self.attempts = failed.attempts
            if failed in self.step.results:
                self.step.results.remove(failed)  # the logical call has one result, which is this one's
            return
        self.call_id, self.ordinal, self.id_source = self.step.proposals.identify(self.name, self.digest, call_id)

    def _equals(self, other: ToolCall) -> bool:
        within, other_within = (getattr(call.parent, "call", call.parent) for call in (self, other))
        same = (other.name, other.digest) == (self.name, self.digest) and within is other_within
        return self.digest is not None and same

    def _propose(self) -> None:
        """The proposal is recorded here where the answer did not tell it."""
        answer = self.step.answer
        if answer is not None and answer.tool_calls is None and not self.attempts:
            event = e.ToolCallProposed(
                step=self.step.number,
                tool=self.name,
                call_id=self.call_id,
                digest=self.digest,
                arguments=self.arguments if self.run.recorder.content.in_events else None,
            )
            self.run.recorder.add(event, self.step.handle)

    def host(self) -> Scope:
        """A call that is opened outside of this one's body is its sibling, whichever span is the current one."""
        return self.run if self.parent is None else self.parent.host()

    def where(self) -> dict[str, Any]:
        """The fields that name this call in an event."""
        return {"step": self.step.number, "call_id": self.call_id, "ordinal": self.ordinal, "tool": self.name}

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this logical call, different for every other one; 32 hexadecimal digits."""
        logical = f"{self.run.run_id}/{self.step.number}/{self.call_id}/{self.ordinal}"
        return hashlib.sha256(logical.encode()).hexdigest()[:32]

    @property
    def key_digest(self) -> str | None:
        """What telemetry may see of the key; None for tools without a keyed effect."""
        if self.options.effect != "keyed":
            return None
        return hmac.new(_SECRET, self.idempotency_key.encode(), "sha256").hexdigest()[:16]

    def accepted(self, reference: str) -> None:
        """The remote side took the work and has not finished it: `reference` is what it can be asked by."""
        if not isinstance(reference, str) or not reference:
            raise ConfigurationError(f"accepted({reference!r}): give the remote side's reference, as text")
        self._reference = _redact.name(reference)

    # checking

    def rejected(
        self, rejection: str, reason: str, started: int, stage: str = "proposal", *, safe: str | None = None
    ) -> None:
        """The arguments, or the tool itself, are refused; `safe` is the reason where content stays in."""
        if not self.quiet:
            shown = reason if safe is None or self.run.recorder.content.in_events else safe
            event = e.ValidationRejected(
                **self.where(), started=started, rejection=rejection, stage=stage, reason=_redact.clean(shown)[:1024]
            )
            self.run.recorder.instant(event, self.place())
        self.close("rejected", rejection)

    def passed(self, started: int, stage: str = "proposal") -> None:
        """Nothing stands against the call."""
        if self.run.recorder.listening:
            self.run.recorder.instant(e.ValidationPassed(**self.where(), started=started, stage=stage), self.place())

    def permitted(self, arguments: Mapping[str, Any], started: int, stage: str = "proposal") -> PermissionDenied | None:
        """Ask the tool's permission check; what it cannot say is a no. Returns the error of a refusal."""
        check = self.options.permission
        if check is None:
            return None
        said = _guard.contained("the permission= hook", check, arguments, default="the permission check failed")
        if said is True:
            return None
        reason = said if isinstance(said, str) and said else "not permitted"
        event = e.PermissionDenied(**self.where(), started=started, stage=stage, reason=_redact.clean(reason)[:1024])
        self.run.recorder.instant(event, self.place())
        self.close("denied", "permission_denied")
        return PermissionDenied(f"tool {self.name!r} is not permitted here: {reason}; its body was not entered")

    # the end

    def finish(self, outcome: str, value: Any = None) -> None:
        """Record the result, then close."""
        if self._open and self.run.recorder.listening and outcome in ("ok", "accepted", "failed"):
            value = value.chunks if isinstance(value, Streamed) else value
            content = value if self.run.recorder.content.in_events else None
            size = len(value) if isinstance(value, str | bytes) else None
            self.run.recorder.add(e.ToolResult(**self.where(), size=size, content=content), self.handle)
        self.close(outcome)

    def close(self, outcome: str, error_type: str | None = None) -> None:
        """End the call's span."""
        with self.run.recorder.lock:
            if not self._open:
                return
            self._open = False
            self.outcome = outcome
            self.run.closed(self)
            if error_type is None and self.verdict is not None and outcome == self.verdict.outcome:
                error_type = self.verdict.error_type
            if not self.quiet:
                event = e.ToolCallClosed(**self.where(), outcome=outcome, attempts=self.attempts, error_type=error_type)
                self.run.recorder.end(event, self.handle)
            self._hand_over(outcome)

    def _hand_over(self, outcome: str) -> None:
        if outcome == "accepted":
            self.run.unconfirmed += 1
        if outcome in ("failed", "timeout"):
            self.step.failed_call = self
        if outcome not in ("cancelled", "unknown", "suspended") and self.step is self.run.steps_.current:
            self.result_at = self.run.recorder.anchor.now()
            if self.run.recorder.listening:
                self.step.results.append(self)

    def backfilled(self, event: type[e.ToolResultBackfilled] | type[e.BackfillMissing]) -> None:
        """The next request was looked at."""
        self.run.recorder.instant(event(**self.where(), started=self.result_at, known=self.known), self.step.place())

    def abort(self, error: BaseException | None) -> None:
        """The run ends while the call is open; its attempt, opened later, was aborted before it."""
        unknown = self.verdict is not None and self.verdict.outcome == "unknown"
        self.close("unknown" if unknown else "cancelled")

    def classified(self, value: Any) -> Verdict:
        """A result that came back may still be a failure: `failure=` says so."""
        failure = self.options.failure
        said = None if failure is None or value is UNSAID else _guard.contained("the failure= hook", failure, value)
        if said:
            return Verdict("failed", _redact.name(said) if isinstance(said, str) else "reported_failure")
        return Verdict("accepted" if self._reference else "ok")

    def said(self) -> Any:
        """What a block said that its result is."""
        return UNSAID

    def may_start(self) -> None:
        """The rules of the lifecycle for an attempt of a call that is not on record."""
        if self._open and not self._inside:
            return
        rule, why = ("attempt_in_flight", "has an attempt in flight") if self._open else ("call_not_open", "is over")
        text = f"tool_started refused: call {self.call_id!r} of tool {self.name!r} {why}: open another call"
        raise IllegalTransition(text, event=e.ToolStarted.name, rule=rule)
