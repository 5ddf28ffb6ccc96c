"""RunLog events as OpenTelemetry log events: `event_name`, explicit context, run id and sequence number, no body."""

from __future__ import annotations

from typing import Any

from opentelemetry._logs import Logger, LogRecord, SeverityNumber
from opentelemetry.trace import Span, set_span_in_context

from loopspan import _journal, semconv
from loopspan.events import Event

_WARNINGS = frozenset(
    "transition_refused validation_rejected permission_denied approval_denied approval_expired backfill_missing"
    " unknown_side_effect manual_intervention budget_exhausted".split()
)


class LogWriter:
    """Emits every event of one run as a log record."""

    __slots__ = ("_identity", "_logger")

    def __init__(self, logger: Logger, identity: dict[str, Any]) -> None:
        self._logger = logger
        self._identity = identity

    def emit(self, event: Event, seq: int, time: int, span: Span) -> None:
        """One record, in the context of the span that the event is on."""
        warn = event.name in _WARNINGS
        self._logger.emit(
            LogRecord(
                timestamp=time,
                context=set_span_in_context(span),
                severity_number=SeverityNumber.WARN if warn else SeverityNumber.INFO,
                severity_text="WARN" if warn else "INFO",
                event_name=semconv.PREFIX + event.name,
                attributes={**self._identity, **_journal.encode(event, seq)},
            )
        )
