"""What a run may spend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from loopspan.errors import ConfigurationError
from loopspan.usage.money import Cost, CostTotals
from loopspan.usage.tokens import Usage

_COUNTED: Final = ("total_tokens", "input_tokens", "output_tokens", "requests")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a run and its descendants may spend: tokens, model requests, cost. None is no limit.

    Counts are integers of at least 1. A cost is above 0; all that was spent in its currency counts, whatever the
    source. Raises ConfigurationError for other values, and where no limit is given.
    """

    total_tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    requests: int | None = None
    cost: Cost | None = None

    def __post_init__(self) -> None:
        limits = [_limit(name, getattr(self, name)) for name in _COUNTED]
        if not any(limits) and _cost(self.cost) is None:
            raise ConfigurationError("Budget(): give at least one limit, or leave the budget out")

    def exceeded(self, usage: Usage, cost: CostTotals, requests: int) -> str | None:
        """The first limit that what is spent has reached, as text such as `total_tokens: 5200 of 5000`.

        None where there is room for one more request. Unknown tokens and missing prices count as nothing.
        """
        for name in _COUNTED:
            spent = requests if name == "requests" else getattr(usage, name) or 0
            limit = getattr(self, name)
            if limit is not None and spent >= limit:
                return f"{name}: {spent} of {limit}"
        return self._cost_exceeded(cost)

    def _cost_exceeded(self, cost: CostTotals) -> str | None:
        if self.cost is None or (spent := cost.in_currency(self.cost.currency)) < self.cost.amount:
            return None
        return f"cost: {spent:f} {self.cost.currency} of {self.cost.amount:f} {self.cost.currency}"


def _limit(name: str, value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigurationError(f"Budget({name}={value!r}): give an integer of at least 1, or None for no limit")
    return value


def _cost(value: Any) -> Cost | None:
    if value is None or (isinstance(value, Cost) and value.amount > 0):
        return value
    raise ConfigurationError(f"Budget(cost={value!r}): give a Cost above 0, or None for no limit")
