"""Events of model requests: asked, answered, billed, failed, repeated."""

from __future__ import annotations

from loopspan.events.base import Event, InRequest, Json, event


@event
class ModelRequested(InRequest):
    """One attempt of a model request is about to be made."""

    operation: str
    provider: str | None = None
    model: str | None = None
    backoff_s: float | None = None
    side: bool = False
    stream: bool = False
    messages: Json = None


@event
class UsageObserved(InRequest):
    """What one attempt used. The only owner of these numbers: every total is a sum over these events."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: str | None = None
    currency: str | None = None
    cost_source: str | None = None
    price_table: str | None = None
    unpriced: bool = False
    source: str = "answer"


@event
class ModelResponded(InRequest):
    """The answer is complete."""

    model: str | None = None
    response_id: str | None = None
    finish_reasons: Json = None
    usage_known: bool = False
    content: Json = None
    first_chunk_s: float | None = None


@event
class ModelFailed(InRequest):
    """The attempt gave no answer: `outcome` is failed, timeout, cancelled or unknown."""

    outcome: str
    error_type: str | None = None
    message: str | None = None


@event
class ModelRetry(InRequest):
    """The failed attempt will be repeated after `backoff_s`."""

    error_type: str
    backoff_s: float


@event
class ModelFinal(InRequest):
    """The answer asks for no tool."""


@event
class ResponseParseError(Event):
    """An answer was billed but not understood; `prompt` asks the model to mend it (seed of Terminus2)."""

    step: int | None
    model_name: str | None = None
    source: str = "agent"
    message: str | None = None
    prompt: str | None = None
    reasoning: Json = None
    prompt_token_ids: Json = None
    completion_token_ids: Json = None
    logprobs: Json = None


@event
class BudgetExhausted(Event):
    """A limit of the run was met before something started: `limit` names it."""

    limit: str
    detail: str | None = None
