"""Events of tool calls: proposed, refused, attempted, backfilled."""

from __future__ import annotations

from loopspan.events.base import Event, InCall, Json, event


@event
class ToolCallProposed(Event):
    """The model asks for a call; nothing has been checked yet. Recorded at the answer, else at the call."""

    step: int | None
    tool: str
    call_id: str | None = None
    digest: str | None = None
    arguments: Json = None
    request_id: str | None = None


@event
class ToolCallOpened(InCall):
    """A logical call begins: `id_source` is given, matched (to a proposal) or generated.

    `owned`: another instrumentation's span of this operation is around it, so that one reports the operation.
    """

    id_source: str = "given"
    known: bool = True
    effect: str | None = None
    subagent: bool = False
    owned: bool = False
    needs_approval: bool = False
    max_attempts: int | None = None
    digest: str | None = None
    size: int | None = None
    arguments: Json = None


@event
class ValidationPassed(InCall):
    """Allowlist, arguments and permission are in order."""

    started: int
    stage: str = "proposal"


@event
class ValidationRejected(InCall):
    """The call is refused: `rejection` is unknown_tool or validation_error."""

    started: int
    rejection: str
    stage: str = "proposal"
    reason: str | None = None


@event
class PermissionDenied(InCall):
    """The tool's permission check said no."""

    started: int
    stage: str = "proposal"
    reason: str | None = None


@event
class ToolStarted(InCall):
    """The tool's body is about to be entered."""

    attempt: int
    digest: str | None = None
    backoff_s: float | None = None
    key_digest: str | None = None


@event
class ToolSucceeded(InCall):
    """The body returned; `outcome` is ok, or accepted where the remote has not finished."""

    attempt: int
    outcome: str = "ok"
    reference: str | None = None


@event
class ToolFailed(InCall):
    """The body did not succeed: `outcome` is failed, timeout, cancelled or suspended."""

    attempt: int
    outcome: str
    error_type: str | None = None
    message: str | None = None


@event
class UnknownSideEffect(InCall):
    """Nobody knows whether the effect of this attempt happened."""

    attempt: int
    error_type: str | None = None
    message: str | None = None


@event
class ToolRetry(InCall):
    """The failed attempt will be repeated after `backoff_s`."""

    attempt: int
    error_type: str
    backoff_s: float


@event
class ToolSpanClosed(InCall):
    """The attempt is over."""

    attempt: int
    outcome: str


@event
class ToolResult(InCall):
    """What goes back to the loop."""

    size: int | None = None
    content: Json = None


@event
class ToolResultReused(InCall):
    """A committed result is handed back, nothing was executed."""


@event
class ToolCallClosed(InCall):
    """The logical call is over."""

    outcome: str
    attempts: int
    error_type: str | None = None


@event
class ToolResultBackfilled(InCall):
    """The result is in the next model request; `started` is when the result was there."""

    started: int
    known: bool = True


@event
class BackfillMissing(InCall):
    """The next model request carries other results of the turn, but not this one."""

    started: int
    known: bool = True
