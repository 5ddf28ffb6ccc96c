"""How a run's figures are said to people: durations, tokens, money, outcomes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from loopspan.lifecycle import Lifecycle, StopReason
from loopspan.trajectory import reading
from loopspan.trajectory.facts import RunFacts
from loopspan.trajectory.totals import Observed
from loopspan.usage import CostTotals, Usage


class Words(NamedTuple):
    """A piece of a line and the way it is meant: title, good, bad, warn, dim or plain."""

    text: str
    style: str = "plain"


Line = tuple[Words, ...]

_GOOD = frozenset({"ok", "success", "approved", "accepted", "reused", "passed", "committed"})
_WARN = frozenset(
    "suspended cancelled parse_error pending running expired superseded not_committed denied max_steps timeout".split()
)
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]+")


def line(*pieces: Words | str | None) -> Line:
    """A line of those pieces that are there."""
    return tuple(Words(piece) if isinstance(piece, str) else piece for piece in pieces if piece)


def plain(pieces: Iterable[Words]) -> str:
    """A line as text."""
    return "  ".join(piece.text for piece in pieces)


def safe(text: object, longest: int = 160) -> str:
    """Text from outside on one line: no control characters (they move a terminal's cursor), and of bounded length."""
    shown = _UNPRINTABLE.sub(" ", str(text)).strip()
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def title(*names: object) -> Words:
    """What a line is about."""
    return Words(" ".join(safe(name) for name in names if name), "title")


def dim(text: str | None) -> Words | None:
    """A detail."""
    return Words(safe(text), "dim") if text else None


def bad(text: object) -> Words | None:
    """A failure's detail."""
    return Words(safe(text), "bad") if text else None


def warn(text: str | None) -> Words | None:
    """What the reader should know of the figures beside it."""
    return Words(safe(text), "warn") if text else None


def outcome(value: str | None, missing: str | None = "open", said: str | None = None) -> Words | None:
    """An outcome, in the way it is meant; `said` is what is shown instead of the word itself."""
    if value is None:
        return warn(missing)
    return Words(safe(said or value), "good" if value in _GOOD else "warn" if value in _WARN else "bad")


def error(kind: str | None, message: str | None = None) -> Words | None:
    """The class of an error, without its module, and its message where that is on record."""
    return bad(": ".join(part for part in (kind and kind.rpartition(".")[2], message) if part))


def seconds(value: float) -> str:
    """A duration in the unit that fits."""
    if value < 1:
        return f"{value * 1000:.3g} ms"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def duration(started: int | None, ended: int | None) -> str | None:
    """The time between two readings in nanoseconds; None where one of them is unknown."""
    return None if started is None or ended is None else seconds((ended - started) / 1_000_000_000)


def many(count: int, name: str) -> str:
    """`2 steps`, `1 step`."""
    return f"{count} {name}" if count == 1 else f"{count} {name}s"


def tokens(usage: Usage) -> str | None:
    """Input and output, with what of it came from a cache or went into reasoning; a count that is unknown is `?`."""
    if usage.input_tokens is None and usage.output_tokens is None:
        return None
    parts = [f"{_count(usage.input_tokens)}→{_count(usage.output_tokens)} tok"]
    details = [
        f"{count} {name}"
        for count, name in ((usage.cache_read_tokens, "cached"), (usage.reasoning_tokens, "reasoning"))
        if count
    ]
    return " ".join([*parts, *([f"({', '.join(details)})"] if details else [])])


def _count(value: int | None) -> str:
    return "?" if value is None else str(value)


def money(cost: CostTotals) -> Iterable[Words]:
    """Each amount with its currency, and where it is from unless a provider stated it; what has no price."""
    for (currency, source), amount in cost.amounts.items():
        said = f"{amount.normalize():f} {safe(currency)}"
        yield Words(said if source == "provider" else f"{said} {safe(source)}")
    if cost.unpriced:
        yield Words(f"{cost.unpriced} unpriced", "warn")
    if cost.partial:
        yield Words("cost incomplete", "warn")


def figures(observed: Observed) -> Line:
    """Tokens and cost, with what is to be known of them."""
    usage = observed.usage
    said = tokens(usage)
    marks = [
        warn("simulated") if said and any(event.source == "simulated" for event in observed.events) else None,
        warn("incomplete" if said else "tokens unknown") if usage.incomplete else None,
    ]
    return line(said, *marks, *money(observed.cost))


def run(run: RunFacts) -> Line:
    """A run in one line."""
    return line(
        title("invoke_agent", run.agent_name or "?"),
        *_standing(run),
        many(len(run.steps), "step"),
        duration(run.started, run.ended),
        _waited(run),
        *figures(run.observed),
        *_of_children(run),
        warn("root pending" if run.root_pending else None),
        dim(run.run_id[:12]),
    )


def _standing(run: RunFacts) -> Line:
    if run.lifecycle is Lifecycle.CLOSED:
        reason = run.stop_reason or "?"
        failed = None if reason == StopReason.SUCCESS else _error(run)
        detail = f" ({run.stop_detail})" if run.stop_detail else ""
        return line(outcome(str(reason), said=f"closed {reason}{detail}"), failed)
    if run.lifecycle is Lifecycle.SUSPENDED:
        return line(warn(f"suspended {run.suspend_reason or '?'}"))
    return line(warn("resumed" if run.resumed else "running"))


def _error(run: RunFacts) -> Words | None:
    event = getattr(run.closing, "event", None)
    return error(getattr(event, "error_type", None), getattr(event, "message", None))


def _waited(run: RunFacts) -> Words | None:
    """How long the run waited for people, where it did."""
    waited = reading.value(run.closing, "waiting_s")
    return dim(f"waited {seconds(float(waited))}") if waited else None


def _of_children(run: RunFacts) -> Line:
    """What the sub-agents used, where there are any."""
    whole = run.usage_with_descendants
    said = tokens(whole)
    return line(dim(f"{said} with sub-agents") if said != tokens(run.usage) else None)
