"""The states of a run and the reasons for them (lifecycle.md)."""

from __future__ import annotations

from enum import StrEnum


class Lifecycle(StrEnum):
    """The three states of a run."""

    RUNNING = "running"
    SUSPENDED = "suspended"
    CLOSED = "closed"


class StopReason(StrEnum):
    """Why a run closed: the seed's twelve, and three that real loops need."""

    SUCCESS = "success"
    UNKNOWN_TOOL = "unknown_tool"
    VALIDATION_ERROR = "validation_error"
    PERMISSION_DENIED = "permission_denied"
    APPROVAL_DENIED = "approval_denied"
    APPROVAL_EXPIRED = "approval_expired"
    TOOL_FAILED = "tool_failed"
    RETRY_BUDGET_EXHAUSTED = "retry_budget_exhausted"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    MAX_STEPS = "max_steps"
    UNRESOLVED_SIDE_EFFECT = "unresolved_side_effect"
    MODEL_FAILED = "model_failed"
    BUDGET_EXHAUSTED = "budget_exhausted"
    LOOP_ERROR = "loop_error"


class SuspendReason(StrEnum):
    """Why a run waits, the gravest last. A suspend reason never closes a run."""

    PENDING_APPROVAL = "pending_approval"
    UNKNOWN_SIDE_EFFECT = "unknown_side_effect"
    MANUAL_INTERVENTION = "manual_intervention"
