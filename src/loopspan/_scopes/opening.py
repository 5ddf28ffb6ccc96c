"""What a run says of itself when it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.trace import Span

from loopspan import _redact
from loopspan import events as e
from loopspan._scopes.ambient import Ambient
from loopspan._scopes.context import Scope

if TYPE_CHECKING:
    from loopspan._scopes.call import ToolCall
    from loopspan._scopes.run import Run


def started_event(run: Run, facts: Ambient | None, root: Span | None, remote_parent: bool) -> e.RunStarted:
    """The event that starts `run`; what only the root's span tells is left out where there is none yet."""
    context = None if root is None else root.get_span_context()
    options = run.options
    return e.RunStarted(
        agent=options.name,
        conversation_id=_fact(facts, "conversation_id"),
        subject=_fact(facts, "subject"),
        goal=_fact(facts, "goal"),
        parent_run_id=None if run.parent_run is None else run.parent_run.run_id,
        parent_call_id=None if run.parent is None else call_of(run.parent),
        loop_version=options.version,
        max_steps=options.max_steps,
        deadline_s=options.deadline,
        retry_budget=options.retry_budget,
        attributes=(facts.attributes if facts else None) or None,
        trace_flags=0 if context is None else int(context.trace_flags),
        trace_state=context.trace_state.to_header() or None if context else None,
        remote_parent=remote_parent,
        content_in_events_only=run.recorder.content is _redact.Content.EVENT_ONLY,
    )


def _fact(facts: Ambient | None, name: str) -> str | None:
    value: str | None = None if facts is None else facts.fact(name)
    return None if value is None else _redact.clean(value)


def call_of(scope: Scope) -> str | None:
    """The id of the tool call that a scope is inside of."""
    at: Scope | None = scope
    while at is not None and at is not at.run:
        call: ToolCall | None = getattr(at, "call", None)
        if call is not None:
            return call.call_id
        at = at.parent
    return None
