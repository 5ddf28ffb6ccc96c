"""Run id, step and call id for the user's own log records."""

from __future__ import annotations

import logging

from loopspan._scopes.call import ToolCall
from loopspan._scopes.context import current_scope


def log_fields() -> dict[str, str | int]:
    """`run_id`, `step` and `call_id` of the running code, without those that there are not; {} outside of a run."""
    scope = current_scope()
    if scope is None:
        return {}
    fields: dict[str, str | int] = {"run_id": scope.run.run_id}
    step = scope.run.steps_.current
    if step is not None:
        fields["step"] = step.number
    while scope is not None:
        call = scope if isinstance(scope, ToolCall) else getattr(scope, "call", None)
        if isinstance(call, ToolCall):
            fields["call_id"] = call.call_id
            break
        scope = scope.parent
    return fields


class LogFilter(logging.Filter):
    """Puts `run_id`, `step` and `call_id` on every log record, "-" where there is none, for formats to name."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record through."""
        fields = log_fields()
        for name in ("run_id", "step", "call_id"):
            if not hasattr(record, name):
                setattr(record, name, fields.get(name, "-"))
        return True
