"""loopspan: the truth about agent loops, as OpenTelemetry traces.

import loopspan
loopspan.setup()

@loopspan.agent_loop
def watch(task): ...
"""

from __future__ import annotations

from loopspan._carry import carry
from loopspan._config import Content, configure
from loopspan._decorators import agent_loop, model_request, tool, tool_call
from loopspan._logging import LogFilter, log_fields
from loopspan._pipeline import flush, setup
from loopspan._read import read_runlog
from loopspan._scopes.ambient import context
from loopspan._scopes.attempt import current_tool_call
from loopspan._scopes.context import current_run, current_step
from loopspan._scopes.human import human_wait
from loopspan.errors import (
    ApprovalDenied,
    ApprovalExpired,
    BoundaryRefused,
    BudgetExhausted,
    CallTimeout,
    ConfigurationError,
    DeadlineExceeded,
    DecisionConflict,
    IllegalTransition,
    LimitExceeded,
    LoopspanError,
    MaxStepsExceeded,
    ModelFailed,
    NoActiveRun,
    NoEffect,
    PermissionDenied,
    RetryBudgetExhausted,
    RunClosed,
    RunNotClosed,
    StoreRequired,
    ToolFailed,
    UnknownTool,
    UnresolvedSideEffect,
    ValidationRejected,
    WrongKind,
)
from loopspan.reasons import Lifecycle, StopReason, SuspendReason
from loopspan.toolbox import Toolbox
from loopspan.usage import Budget, Cost, Usage
from loopspan.values import (
    Answer,
    Approval,
    ApprovalRequest,
    Call,
    Decision,
    Effect,
    End,
    Intent,
    Reconciled,
    Retry,
    Streamed,
)

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Approval",
    "ApprovalDenied",
    "ApprovalExpired",
    "ApprovalRequest",
    "BoundaryRefused",
    "Budget",
    "BudgetExhausted",
    "Call",
    "CallTimeout",
    "ConfigurationError",
    "Content",
    "Cost",
    "DeadlineExceeded",
    "Decision",
    "DecisionConflict",
    "Effect",
    "End",
    "IllegalTransition",
    "Intent",
    "Lifecycle",
    "LimitExceeded",
    "LogFilter",
    "LoopspanError",
    "MaxStepsExceeded",
    "ModelFailed",
    "NoActiveRun",
    "NoEffect",
    "PermissionDenied",
    "Reconciled",
    "Retry",
    "RetryBudgetExhausted",
    "RunClosed",
    "RunNotClosed",
    "StopReason",
    "StoreRequired",
    "Streamed",
    "SuspendReason",
    "ToolFailed",
    "Toolbox",
    "UnknownTool",
    "UnresolvedSideEffect",
    "Usage",
    "ValidationRejected",
    "WrongKind",
    "agent_loop",
    "carry",
    "configure",
    "context",
    "current_run",
    "current_step",
    "current_tool_call",
    "flush",
    "human_wait",
    "log_fields",
    "model_request",
    "read_runlog",
    "setup",
    "tool",
    "tool_call",
]
