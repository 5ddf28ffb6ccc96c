"""A run as a tree of lines: steps, requests, calls, attempts, sub-agents, and what else is on record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from loopspan import events as e
from loopspan import semconv
from loopspan._journal import Entry, Unknown
from loopspan.trajectory import words
from loopspan.trajectory.parts import AttemptView, CallView, RequestView, StepView
from loopspan.trajectory.run import RunView
from loopspan.trajectory.runlog import RunLog
from loopspan.trajectory.words import Line, line


class Node(NamedTuple):
    """A line and what is below it. `place` orders the nodes of one level: time, then number."""

    label: Line
    children: list[Node]
    place: tuple[int, int] = (0, 0)


def tree(source: RunLog | RunView) -> list[Node]:
    """The runs that no other run has started, or the one that is given, each with its sub-agents."""
    runs = source.roots if isinstance(source, RunLog) else [source]
    return [_run(run) for run in runs]


def text(nodes: Iterable[Node]) -> str:
    """The tree in plain text, a line each."""
    return "\n".join(row for node in nodes for row in (words.plain(node.label), *_rows(node.children, "")))


def _rows(nodes: Sequence[Node], indent: str) -> Iterator[str]:
    for place, node in enumerate(nodes):
        last = place == len(nodes) - 1
        yield f"{indent}{'└─ ' if last else '├─ '}{words.plain(node.label)}"
        yield from _rows(node.children, indent + ("   " if last else "│  "))


def _ordered(nodes: Iterable[Node]) -> list[Node]:
    return sorted(nodes, key=lambda node: node.place)


def _run(run: RunView) -> Node:
    families = _Families(run)
    steps = [_step(step, families) for step in run.steps]
    requests = [_request(request, families) for request in run.requests if request.step is None]
    calls = [_call(call, families) for call in run.tool_calls if call.step is None]
    loose = [_remark(entry) for entry in run.loose if _told(entry)]
    children = _ordered([*steps, *requests, *calls, *loose])
    children += [_run(child) for child in families.rest()]
    return Node(words.run(run), children, (run.started or 0, 0))


class _Families:
    """Which sub-agent belongs to which call, request or step: the one whose span is the parent of its root."""

    def __init__(self, run: RunView) -> None:
        self._children = list(run.children)

    def below(self, log: Iterable[Entry]) -> list[Node]:
        """The sub-agents whose runs were started in the spans of these entries."""
        spans = {entry.span_id for entry in log}
        mine = [run for run in self._children if run.opening is not None and run.opening.parent_id in spans]
        self._children = [run for run in self._children if run not in mine]
        return [_run(run) for run in mine]

    def rest(self) -> list[RunView]:
        """Those whose place is not on record."""
        return self._children


def _step(step: StepView, families: _Families) -> Node:
    label = line(
        words.title("step", step.number),
        words.outcome(step.outcome),
        words.duration(step.started, step.ended),
        *words.figures(step.observed),
        words.warn(f"{step.unobserved} results without an id" if step.unobserved else None),
    )
    below = [_call(call, families) for call in step.tool_calls]
    below += [_request(request, families) for request in step.requests]
    below += [_remark(entry) for entry in step.log if _told(entry)]
    return Node(label, _ordered([*below, *families.below(step.log)]), _place(step))


def _place(part: Any) -> tuple[int, int]:
    first = part.log[0].time if part.log else 0
    return (first if part.started is None else part.started, part.seq)


# requests


def _request(request: RequestView, families: _Families) -> Node:
    attempts = request.attempts
    label = line(
        words.title(request.operation or semconv.CHAT, request.model),
        words.warn("side request" if request.side else None),
        _unless_ok(attempts[-1].outcome if attempts else None),
        words.many(len(attempts), "attempt") if len(attempts) > 1 else None,
        words.duration(request.started, request.ended),
        words.dim(f"first chunk after {words.seconds(request.first_chunk_s)}" if request.first_chunk_s else None),
        *words.figures(request.observed),
        words.dim(", ".join(map(str, request.finish_reasons))),
        _only_error(attempts),
    )
    return Node(label, _ordered([*_attempts(attempts), *families.below(request.log)]), _place(request))


def _unless_ok(outcome: str | None) -> words.Words | None:
    return None if outcome == "ok" else words.outcome(outcome)


def _attempts(attempts: Sequence[AttemptView]) -> list[Node]:
    """Each attempt, where there was more than one."""
    return [_attempt(attempt) for attempt in attempts] if len(attempts) > 1 else []


def _only_error(attempts: Sequence[AttemptView]) -> words.Words | None:
    """What went wrong in the only attempt, which has no line of its own."""
    return words.error(attempts[0].error_type, attempts[0].message) if len(attempts) == 1 else None


def _attempt(attempt: AttemptView) -> Node:
    waited = None if attempt.backoff_s is None else f"after {words.seconds(attempt.backoff_s)} of backoff"
    label = line(
        words.title("attempt", attempt.number),
        words.outcome(attempt.outcome),
        words.duration(attempt.started, attempt.ended),
        words.dim(waited),
        words.error(attempt.error_type, attempt.message),
    )
    return Node(label, [], (attempt.started or 0, attempt.number))


# calls


def _call(call: CallView, families: _Families) -> Node:
    told = [_remark(entry) for entry in call.log if _told(entry)]
    label = line(
        words.title(semconv.EXECUTE_TOOL, call.name),
        words.outcome(call.outcome),
        words.many(call.entries, "attempt") if call.entries != 1 else None,
        words.duration(call.started, call.ended),
        words.dim(call.effect),
        _only_error(call.attempts) if call.attempts else words.error(None if told else call.error_type),
        *_backfill(call),
    )
    return Node(label, _ordered([*_attempts(call.attempts), *told, *families.below(call.log)]), _place(call))


def _backfill(call: CallView) -> Line:
    if call.has(e.BackfillMissing):
        return line(words.bad("not backfilled"))
    return line(words.dim("backfilled" if call.has(e.ToolResultBackfilled) else None))


# events that make a line of their own


def _told(entry: Entry) -> bool:
    """Whether an entry is a line of its own: everything that no other line has in it."""
    if isinstance(entry.event, Unknown):
        return True
    if isinstance(entry.event, e.ValidationPassed):
        return entry.event.stage != "proposal"
    return type(entry.event) in _REMARKS


def _remark(entry: Entry) -> Node:
    event = entry.event
    if isinstance(event, Unknown):
        why = "cut or altered" if event.problem else "not known to this version"
        return Node(line(words.title(entry.name), words.warn(why)), [], (entry.time, entry.seq))
    return Node(_REMARKS[type(event)](event, entry), [], (entry.time, entry.seq))


def _approval(event: Any, entry: Entry) -> Line:
    said = "approved" if event.approved else "denied"
    by = words.dim(f"by {event.decided_by}" if event.decided_by else None)
    waited = f"waited {words.duration(event.started, entry.time)}"
    return line(words.title("approval"), words.outcome(said), by, waited, words.dim(event.comment))


def _human_wait(event: e.HumanWait, entry: Entry) -> Line:
    said = {None: None, True: "approved", False: "denied"}[event.approved]
    by = words.dim(f"by {event.decided_by}" if event.decided_by else None)
    waited = f"waited {words.duration(event.started, entry.time)}"
    return line(words.title("human wait", event.kind), words.outcome(said, None), by, waited)


def _refused(what: str) -> Callable[[Any, Entry], Line]:
    def label(event: Any, entry: Entry) -> Line:
        reason = getattr(event, "rejection", None)
        stage = words.dim(event.stage if event.stage != "proposal" else None)
        return line(words.title(what), words.outcome("rejected"), stage, words.bad(reason), words.dim(event.reason))

    return label


def _simple(what: str, *fields: str) -> Callable[[Any, Entry], Line]:
    """A title, and those fields of the event that have a value."""

    def label(event: Any, entry: Entry) -> Line:
        values = [getattr(event, field) for field in fields]
        return line(words.title(what), *(words.warn(str(value)) for value in values if value is not None))

    return label


_REMARKS: dict[type[e.Event], Callable[[Any, Entry], Line]] = {
    e.ResponseParseError: _simple("response_parse_error", "model_name"),
    e.BudgetExhausted: _simple("budget_exhausted", "limit", "detail"),
    e.TransitionRefused: _simple("transition_refused", "refused", "rule"),
    e.RunSuspended: _simple("suspended", "reason"),
    e.RunResumed: _simple("resumed"),
    e.CancelRequested: _simple("cancel_requested", "by"),
    e.OwnerChanged: _simple("owner_changed", "owner"),
    e.ReplayDrift: _simple("replay_drift", "difference"),
    e.HumanWait: _human_wait,
    e.ValidationPassed: _simple("validate", "stage"),
    e.ValidationRejected: _refused("validate"),
    e.PermissionDenied: _refused("permission"),
    e.ApprovalDecisionReceived: _approval,
    e.ApprovalExpired: _simple("approval expired"),
    e.ApprovalSuperseded: _simple("approval superseded", "reason"),
    e.ToolResultReused: _simple("result reused"),
    e.ReconcileResolved: _simple("reconcile", "outcome"),
    e.ReconcileUnresolved: _simple("reconcile", "tries"),
    e.ManualIntervention: _simple("manual_intervention", "reason"),
    e.ManualDecisionReceived: _simple("manual_intervention", "outcome", "actor"),
}
"""What stands in a line of its own. All other events are in the lines of the things that they belong to."""


def remarks(source: RunLog, shown: Sequence[RunView]) -> list[str]:
    """What a reader of the tree must know besides: what is missing, cut, pending or somebody else's."""
    told = source.source_problems + [problem for run in shown for problem in run.problems]
    told += [f"run {run.run_id}: its root span is not exported yet" for run in shown if run.root_pending]
    if source.foreign:
        told.append(f"{words.many(source.foreign, 'span')} of other instrumentations left out")
    return [words.safe(text, 400) for text in told]
