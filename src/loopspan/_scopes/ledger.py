"""What a run has used: one observation has one owner, and every total is a sum of observations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from loopspan import _guard
from loopspan.usage import Cost, CostTotals, Usage

_FIELDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


class Tally:
    """A running sum of usage and cost."""

    __slots__ = ("cost", "requests", "usage")

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.cost = CostTotals()
        self.requests = 0

    def add(self, usage: Usage | None, cost: Cost | None, unpriced: bool) -> None:
        """One observation; usage None is an answer that did not say what it used."""
        observed = usage or Usage(incomplete=True)
        if observed.input_tokens is None or observed.output_tokens is None:
            observed = replace(observed, incomplete=True)
        self.usage = observed if self.usage is None else self.usage + observed
        if cost is not None or unpriced:
            self.cost = self.cost.plus(cost, unpriced=int(unpriced))

    def merge(self, other: Tally) -> None:
        """All that another tally has."""
        if other.usage is not None:
            self.usage = other.usage if self.usage is None else self.usage + other.usage
        self.cost = self.cost + other.cost
        self.requests += other.requests

    def fields(self) -> dict[str, Any]:
        """As the fields of an event with totals."""
        out: dict[str, Any] = {"requests": self.requests}
        if self.usage is not None:
            out.update(usage_fields(self.usage), usage_incomplete=self.usage.incomplete)
        if self.cost.amounts:
            out["cost"] = cost_field(self.cost)
        if self.cost.unpriced:
            out["unpriced"] = self.cost.unpriced
        return out


def usage_fields(usage: Usage) -> dict[str, Any]:
    """The token fields of an event."""
    return {name: getattr(usage, name) for name in _FIELDS}


def cost_field(cost: CostTotals) -> list[dict[str, str]]:
    """The `cost` field of an event: amounts as text, so that nothing is rounded."""
    return [
        {"currency": currency, "source": source, "amount": str(amount)}
        for (currency, source), amount in cost.amounts.items()
    ]


class Ledger:
    """The tallies of one run: the open step's, the run's own, its sub-agents', and the answers' that were rejected."""

    __slots__ = ("_last", "descendants", "last_totals", "own", "rejected", "step")

    def __init__(self) -> None:
        self.step = Tally()
        self.own = Tally()
        self.descendants = Tally()
        self.rejected = Tally()
        self._last: tuple[Usage | None, Cost | None, bool] | None = None
        self.last_totals: tuple[Usage, Cost | None] | None = None

    def observe(self, usage: Usage | None, cost: Cost | None, unpriced: bool, accepted: bool = True) -> None:
        """What one attempt used; `accepted` where the loop gets its answer."""
        self.step.add(usage, cost, unpriced)
        self.own.add(usage, cost, unpriced)
        self._last = (usage, cost, unpriced)
        if not accepted:
            self.reject()

    def reject(self) -> None:
        """The last answer is not what the loop goes on with: billed, not delivered."""
        last, self._last = self._last, None
        if last is not None:
            self.rejected.add(*last)

    def delivered(self) -> dict[str, Any] | None:
        """What the accepted answers used, as a nested field of an event; None where that is all that was billed."""
        rejected, own = self.rejected, self.own
        if rejected.usage is None or own.usage is None:
            return None
        out = {name: _less(getattr(own.usage, name), getattr(rejected.usage, name)) for name in _FIELDS}
        amounts = {key: amount - rejected.cost.amounts.get(key, 0) for key, amount in own.cost.amounts.items()}
        return {**out, "cost": cost_field(CostTotals(amounts))}

    def request(self) -> None:
        """A logical request begins."""
        self.step.requests += 1
        self.own.requests += 1

    def close_step(self) -> Tally:
        """The open step's tally; the next one starts empty."""
        tally, self.step = self.step, Tally()
        return tally

    def difference(self, usage: Usage, cost: Cost | None) -> tuple[Usage, Cost | None, bool]:
        """What cumulative counters gained since they were last seen, and whether what they cost cannot be told.

        What did not grow is None, not 0. A cost in another currency or from another source than the former one cannot
        be compared: a fault, and the base from now on.
        """
        former, former_cost = self.last_totals or (Usage(), None)
        self.last_totals = (usage.over(former), former_cost if cost is None else cost)
        lost = cost is not None and former_cost is not None and _kind(cost) != _kind(former_cost)
        if lost:
            problem = ValueError(f"a total cost in {_kind(former_cost)} goes on in {_kind(cost)}")
            _guard.fault("the totals of a request", problem)
        return usage.minus(former), None if cost is None else cost.minus(former_cost), lost


def _kind(cost: Cost | None) -> str:
    return "" if cost is None else f"{cost.currency} ({cost.source})"


def _less(billed: int | None, rejected: int | None) -> int | None:
    return None if billed is None else billed - (rejected or 0)
