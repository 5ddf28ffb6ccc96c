"""Events of waiting for people."""

from __future__ import annotations

from loopspan.events.base import Event, InCall, Json, event


@event
class ApprovalRequested(InCall):
    """A person is asked; expiry is never approval."""

    approval_id: str
    requested_at: int
    expires_at: int
    digest: str | None = None
    policy_version: str | None = None
    resource: Json = None
    permission: Json = None


@event
class ApprovalSpanClosed(InCall):
    """The request is out; what follows is waiting."""

    approval_id: str
    outcome: str = "pending"


@event
class ApprovalDecisionReceived(InCall):
    """The decision as it is consumed; `started` is when it was asked for."""

    approval_id: str
    approved: bool
    started: int
    decided_at: int | None = None
    decided_by: str | None = None
    comment: str | None = None


@event
class ApprovalRecheck(InCall):
    """Arguments, permission and resource were looked at again: `outcome` is ok or what changed."""

    approval_id: str
    outcome: str
    digest: str | None = None


@event
class ApprovalDenied(InCall):
    """A person said no; the body is not entered."""

    approval_id: str
    reason: str | None = None


@event
class ApprovalExpired(InCall):
    """Nobody decided in time; the body is not entered."""

    approval_id: str
    started: int


@event
class ApprovalSuperseded(InCall):
    """What was approved has changed: it is asked for anew."""

    approval_id: str
    reason: str


@event
class HumanWait(Event):
    """A loop that asks people itself waited since `started`."""

    step: int | None
    kind: str
    started: int
    call_id: str | None = None
    ordinal: int = 1
    tool: str | None = None
    approved: bool | None = None
    decided_by: str | None = None
