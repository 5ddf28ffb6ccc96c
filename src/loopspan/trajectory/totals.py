"""Tokens and cost of a step, a request or a run: sums over what was observed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from loopspan import events as e
from loopspan.errors import ConfigurationError
from loopspan.usage import Cost, CostTotals, Usage, total

_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


class Observed(NamedTuple):
    """What is known of the use of something.

    `events`: its observations. `closing`: the totals that its last event states, a Totals event or a mapping with the
    same names. `silent`: an answer that did not say what it used, or a request without an end. `gaps`: entries are
    missing; the stated totals then count, since a sum would lack something.
    """

    events: Sequence[e.UsageObserved]
    closing: Any = None
    silent: bool = False
    gaps: bool = False

    @property
    def usage(self) -> Usage:
        """Tokens; `incomplete` where something that is counted is unknown."""
        if self.gaps and self.closing is not None:
            return stated_usage(self.closing)
        used = total(_usage(event) for event in self.events)
        unsaid = self.silent or self.gaps or bool(_get(self.closing, "usage_incomplete"))
        return _incomplete(used) if unsaid and not used.incomplete else used

    @property
    def cost(self) -> CostTotals:
        """Money by currency and source."""
        if self.gaps and self.closing is not None:
            return stated_cost(self.closing)
        costs = CostTotals(partial=self.gaps)
        for event in self.events:
            if event.cost is not None or event.unpriced:
                costs = costs.plus(_cost(event), int(event.unpriced))
        return costs

    @property
    def simulated(self) -> bool:
        """Whether figures are made up, by a scripted model or a simulated price."""
        return any(is_simulated(event) for event in self.events)


def is_simulated(event: e.UsageObserved) -> bool:
    """Whether an observation is made up."""
    return "simulated" in (event.source, event.cost_source)


def simulated_tokens(events: Iterable[e.UsageObserved]) -> int | None:
    """Tokens of the observations that are made up; None where there is none."""
    found = [_usage(event).total_tokens or 0 for event in events if is_simulated(event)]
    return sum(found) if found else None


def _usage(event: e.UsageObserved) -> Usage:
    lacks = event.input_tokens is None or event.output_tokens is None
    return Usage(**{name: getattr(event, name) for name in _TOKENS}, incomplete=lacks)


def _incomplete(usage: Usage) -> Usage:
    return usage + Usage(incomplete=True)


def _cost(event: e.UsageObserved) -> Cost | None:
    return _checked_cost(event.cost, event.currency, event.cost_source)


def _checked_cost(amount: Any, currency: Any, source: Any) -> Cost | None:
    """None for an amount that was altered on its way."""
    if amount is None:
        return None
    try:
        return Cost(amount, currency, source)
    except ConfigurationError:
        return None


def stated_usage(totals: Any) -> Usage:
    """The tokens that an event with totals states."""
    return Usage(**{name: _get(totals, name) for name in _TOKENS}, incomplete=bool(_get(totals, "usage_incomplete")))


def stated_cost(totals: Any) -> CostTotals:
    """The cost that an event with totals states."""
    costs = CostTotals(unpriced=_get(totals, "unpriced") or 0)
    for item in _get(totals, "cost") or ():
        costs = costs.plus(_checked_cost(_get(item, "amount"), _get(item, "currency"), _get(item, "source")))
    return costs


def _get(source: Any, name: str) -> Any:
    return source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)
