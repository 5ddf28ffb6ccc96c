"""What one attempt of a model request used, from its one source, on record once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopspan import events as e
from loopspan.usage import Cost, Usage
from loopspan.values import Answer

if TYPE_CHECKING:
    from loopspan._scopes.request_attempt import RequestAttempt

Totals = tuple[Usage, Cost | None]


def observe(
    attempt: RequestAttempt, answer: Answer | None, totals: Totals | None, *, accepted: bool, time: int | None
) -> bool:
    """Record it; False where nothing says it. `accepted`: the loop gets this answer, it is not only billed."""
    run = attempt.run
    usage = None if answer is None or answer.usage is None else Usage.parse(answer.usage)
    cost = None if answer is None else answer.cost
    source, lost, unpriced = "answer", False, False
    if totals is not None:
        (usage, cost, lost), source = run.ledger.difference(*totals), "totals"
    if cost is None and usage is not None:
        cost, unpriced = run.price(attempt.request, answer, usage)
        unpriced = unpriced or (lost and cost is None)
    if usage is None and cost is None:
        run.ledger.observe(None, None, False, accepted)
        return False
    run.ledger.observe(usage, cost, unpriced, accepted)
    if run.recorder.listening:
        event = _observed(attempt, usage or Usage(), cost, unpriced, source)
        run.recorder.add(event, attempt.handle, time)
    return usage is not None


def _observed(attempt: RequestAttempt, usage: Usage, cost: Cost | None, unpriced: bool, source: str) -> e.UsageObserved:
    return e.UsageObserved(
        **attempt.where(),
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cost=None if cost is None else str(cost.amount),
        currency=None if cost is None else cost.currency,
        cost_source=None if cost is None else cost.source,
        price_table=None if cost is None else cost.table,
        unpriced=unpriced,
        source=source,
    )
