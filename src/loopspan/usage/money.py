"""Amounts of money with their currency and source, and sums that keep both apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal, InvalidOperation
from typing import Any, Final, Literal, get_args

from loopspan.errors import ConfigurationError

CostSource = Literal["provider", "estimated", "simulated"]

_LIMIT: Final = 2**53
_EXACT: Final = Context(prec=60, traps=[])
"""Sums do not depend on the decimal context of the caller."""


@dataclass(frozen=True, slots=True, init=False)
class Cost:
    """An amount of money, and where the figure comes from.

    `amount` is a Decimal of at least 0 in whole units of `currency` (three capital letters, ISO 4217); an int, text or
    a float is taken exactly as it prints. `source`: the `provider` said so; `estimated` from a price table, which
    `table` names with its version; `simulated`. Raises ConfigurationError for anything else.
    """

    amount: Decimal
    currency: str = "USD"
    source: CostSource = "provider"
    table: str | None = None

    def __init__(
        self,
        amount: Decimal | int | float | str,
        currency: str = "USD",
        source: CostSource = "provider",
        table: str | None = None,
    ) -> None:
        object.__setattr__(self, "amount", _amount(amount))
        object.__setattr__(self, "currency", _currency(currency))
        object.__setattr__(self, "source", _source(source))
        object.__setattr__(self, "table", _table(table))

    def minus(self, former: Cost | None) -> Cost | None:
        """What was added since the `former` reading of a cumulative cost.

        None where that is not positive (rule of the seed), or where the two differ in currency or source.
        """
        if former is None:
            return self if self.amount else None
        if (former.currency, former.source) != (self.currency, self.source) or self.amount <= former.amount:
            return None
        return Cost(_EXACT.subtract(self.amount, former.amount), self.currency, self.source, self.table)


def _amount(value: Any) -> Decimal:
    try:
        amount = value if type(value) is Decimal else Decimal(str(value))
    except (InvalidOperation, ValueError):
        amount = Decimal("NaN")
    if amount.is_finite() and 0 <= amount < _LIMIT:
        return amount.copy_abs()
    raise ConfigurationError(f"Cost(amount={value!r}): give a finite number of at least 0 and below 2**53")


def _currency(value: Any) -> str:
    if isinstance(value, str) and len(value) == 3 and value.isascii() and value.isalpha() and value.isupper():
        return value
    raise ConfigurationError(f"Cost(currency={value!r}): give a code of three capital letters, such as USD")


def _source(value: Any) -> CostSource:
    for source in get_args(CostSource):
        if value == source:
            return source  # type: ignore[no-any-return]  # get_args loses the literal type
    raise ConfigurationError(f"Cost(source={value!r}): give one of {', '.join(get_args(CostSource))}")


def _table(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise ConfigurationError(f"Cost(table={value!r}): give the name and version of a price table, or leave it out")


@dataclass(frozen=True, slots=True)
class CostTotals:
    """Sums of cost by (currency, source); neither is ever added to another. `unpriced` counts requests without a price.

    `partial`: something that was billed is missing for another reason, such as a request that a crash cut off.
    """

    amounts: Mapping[tuple[str, str], Decimal] = field(default_factory=dict)
    unpriced: int = 0
    partial: bool = False

    @property
    def incomplete(self) -> bool:
        """Whether more was billed than the amounts say."""
        return self.partial or self.unpriced > 0

    def plus(self, cost: Cost | None, unpriced: int = 0) -> CostTotals:
        """These totals with one cost more, if any, and with `unpriced` more requests that have no price."""
        added = {} if cost is None else {(cost.currency, str(cost.source)): cost.amount}
        return self + CostTotals(added, unpriced)

    def __add__(self, other: CostTotals) -> CostTotals:
        """The sums of both, each currency and source by itself."""
        if not isinstance(other, CostTotals):
            return NotImplemented
        amounts = dict(self.amounts)
        for key, amount in other.amounts.items():
            amounts[key] = _EXACT.add(amounts[key], amount) if key in amounts else amount
        return CostTotals(amounts, self.unpriced + other.unpriced, self.partial or other.partial)

    def in_currency(self, currency: str) -> Decimal:
        """The sum in one currency over all sources, for budgets only; 0 where there is none."""
        spent = Decimal(0)
        for (code, _), amount in self.amounts.items():
            spent = _EXACT.add(spent, amount) if code == currency else spent
        return spent
