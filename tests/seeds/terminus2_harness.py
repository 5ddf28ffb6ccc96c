"""The Terminus2 seed's code on fakes: its error branch and its method, unchanged, inside a class that runs one turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any, Protocol

from seed_documents import fragments

NAMES = ("input", "output", "cache")

_CLASS = """
class Seed:
    def __init__(self, parser_name, model_name):
        self._parser_name = parser_name
        self._model_name = model_name
        self._last_response_model_name = "served-before"
        self._trajectory_steps = []

{method}

    def turn(self, feedback, llm_response, chat, before):
        tokens_before_input, tokens_before_output, tokens_before_cache, cost_before = before
        prompt = "the prompt of before"
        went_on = False
        for _ in range(1):
{branch}
            went_on = True
        return prompt, went_on
"""


class Terminus2Seed(Protocol):
    """The class that the two pieces make."""

    _last_response_model_name: str
    _trajectory_steps: list[SimpleNamespace]

    def __init__(self, parser_name: str, model_name: str) -> None: ...

    def _get_error_response_type(self) -> str: ...

    def turn(self, feedback: Any, llm_response: Any, chat: Any, before: Any) -> tuple[str, bool]:
        """(the prompt afterwards, whether the code after the branch was reached)."""
        ...


def harness(document: str) -> type[Terminus2Seed]:
    """The seed's pieces as a class; the records of its trajectory are plain namespaces."""
    branch, method = fragments(document)
    records = dict.fromkeys(("Step", "Observation", "ObservationResult", "Metrics"), SimpleNamespace)
    scope: dict[str, Any] = {**records, "datetime": datetime, "timezone": timezone}
    exec(compile(_CLASS.format(method=method, branch=branch), "seed_of_terminus2", "exec"), scope)
    made: type[Terminus2Seed] = scope["Seed"]
    return made


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One turn of the agent: what the parser said, what was answered, and what the counters gained."""

    feedback: str | None = "ERROR: no JSON"
    parser: str = "json"
    configured: str = "configured-1"
    served: str | None = "served-1"
    content: str = '{"analysis": '
    reasoning: str | None = None
    prompt_token_ids: list[int] | None = None
    completion_token_ids: list[int] | None = None
    logprobs: list[float] | None = None
    before: dict[str, float] = field(default_factory=lambda: {"input": 100, "output": 10, "cache": 50, "cost": 0.25})
    gained: dict[str, float] = field(default_factory=dict)

    def after(self, counter: str) -> float:
        """A counter's reading after the request."""
        return self.before[counter] + {"input": 7, "output": 3, "cache": 0, "cost": 0, **self.gained}[counter]

    def response(self) -> SimpleNamespace:
        """The answer as the seed's code gets it."""
        return SimpleNamespace(
            model_name=self.served,
            content=self.content,
            reasoning_content=self.reasoning,
            prompt_token_ids=self.prompt_token_ids,
            completion_token_ids=self.completion_token_ids,
            logprobs=self.logprobs,
        )

    def chat(self) -> SimpleNamespace:
        """The client's cumulative counters after the request."""
        return SimpleNamespace(
            total_input_tokens=self.after("input"),
            total_output_tokens=self.after("output"),
            total_cache_tokens=self.after("cache"),
            total_cost=self.after("cost"),
        )
