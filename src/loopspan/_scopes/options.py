"""What decorators and blocks are told: parsed and checked once, where they are written."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from loopspan.errors import ConfigurationError
from loopspan.usage import Budget
from loopspan.values import Approval, Effect, Errors, Retry, count, exceptions, flag, function, seconds, several, text

Duration = float | dt.timedelta
ON_ERROR = ("close", "release")
SETTLEABLE = (Effect.KEYED, Effect.RECONCILABLE)


def instance(value: Any, cls: type, option: str) -> None:
    """Raise ConfigurationError where `value` is neither None nor a `cls`."""
    if value is not None and not isinstance(value, cls):
        raise ConfigurationError(f"{option}={value!r}: give a loopspan.{cls.__name__}, or leave it out")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LoopOptions:
    """Options of `agent_loop`."""

    name: str
    max_steps: int | None = None
    deadline: float | None = None
    budget: Budget | None = None
    retry_budget: int | None = None
    durable: bool = False
    version: str | None = None
    live: tuple[str, ...] = ()
    on_error: str = "close"
    outcome: Callable[[Any], Any] | None = None
    control_flow: Errors = ()

    @classmethod
    def parse(
        cls,
        name: str,
        *,
        max_steps: int | None = None,
        deadline: Duration | None = None,
        budget: Budget | None = None,
        retry_budget: int | None = None,
        durable: bool = False,
        version: str | None = None,
        live: Sequence[str] = (),
        on_error: str = "close",
        outcome: Callable[[Any], Any] | None = None,
        control_flow: Sequence[type[BaseException]] = (),
    ) -> LoopOptions:
        """Raise ConfigurationError for what cannot work."""
        if not isinstance(name, str) or not name:
            raise ConfigurationError(f"agent_loop(name={name!r}): give the agent's name, as text")
        count(max_steps, "agent_loop(max_steps)")
        count(retry_budget, "agent_loop(retry_budget)", least=0)
        instance(budget, Budget, "agent_loop(budget)")
        function(outcome, "agent_loop(outcome)")
        flag(durable, "agent_loop(durable)")
        text(version, "agent_loop(version)")
        several(live, str, "agent_loop(live)", "names of arguments")
        if on_error not in ON_ERROR:
            raise ConfigurationError(f"agent_loop(on_error={on_error!r}): give one of {', '.join(ON_ERROR)}")
        if not durable and (live or on_error == "release"):
            raise ConfigurationError(
                "agent_loop(live=, on_error='release') need durable=True: only a durable run resumes"
            )
        limit = seconds(deadline, "agent_loop(deadline)")
        flow = exceptions(control_flow, "agent_loop(control_flow)")
        return cls(name, max_steps, limit, budget, retry_budget, durable, version, tuple(live), on_error, outcome, flow)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RequestOptions:
    """Options of `model_request`."""

    provider: Any = None
    model: Any = None
    retry: Retry | None = None
    timeout: float | None = None
    read: Callable[[Any], Any] | None = None
    parse_errors: Errors = ()
    read_error: Callable[[Any], Any] | None = None
    step: bool = True

    @classmethod
    def parse(
        cls,
        *,
        provider: Any = None,
        model: Any = None,
        retry: Retry | None = None,
        timeout: Duration | None = None,
        read: Callable[[Any], Any] | None = None,
        parse_errors: Sequence[type[BaseException]] = (),
        read_error: Callable[[Any], Any] | None = None,
        step: bool = True,
    ) -> RequestOptions:
        """Raise ConfigurationError for what cannot work."""
        for value, option in ((provider, "provider"), (model, "model")):
            if value is not None and not isinstance(value, str) and not callable(value):
                raise ConfigurationError(f"model_request({option}={value!r}): give text or a function of the arguments")
        instance(retry, Retry, "model_request(retry)")
        function(read, "model_request(read)")
        function(read_error, "model_request(read_error)")
        if read_error is not None and not parse_errors:
            raise ConfigurationError("model_request(read_error=): say which exceptions it reads, in parse_errors=")
        flag(step, "model_request(step)")
        limit = seconds(timeout, "model_request(timeout)")
        classes = exceptions(parse_errors, "model_request(parse_errors)")
        return cls(provider, model, retry, limit, read, classes, read_error, step)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ToolOptions:
    """Options of `tool`."""

    name: str
    effect: Effect | None = None
    retry: Retry | None = None
    timeout: float | None = None
    approval: Approval | None = None
    permission: Callable[..., Any] | None = None
    reconcile: Callable[..., Any] | None = None
    key_ttl: float | None = None
    no_effect_errors: Errors = ()
    failure: Callable[[Any], Any] | None = None
    control_flow: Errors = ()
    call: Callable[..., Any] | None = None
    subagent: bool = False

    @property
    def guarded(self) -> bool:
        """Whether the tool must not run outside of a run."""
        return self.approval is not None or self.permission is not None

    @property
    def affects(self) -> bool:
        """Whether an effect is declared that must not happen outside of the record of its run."""
        return self.effect not in (None, Effect.READ_ONLY)

    @property
    def outlives_failure(self) -> bool:
        """Whether an error leaves the effect unknown (lifecycle.md, *Effects*)."""
        return self.effect in (Effect.KEYED, Effect.RECONCILABLE, Effect.UNSAFE)

    @property
    def max_attempts(self) -> int | None:
        """Attempts that `retry` allows; None without it, where only the caller repeats."""
        return None if self.retry is None else self.retry.max_attempts

    @classmethod
    def parse(
        cls, name: str, *, effect: Any = None, timeout: Any = None, key_ttl: Any = None, **rest: Any
    ) -> ToolOptions:
        """Raise ConfigurationError for what cannot work."""
        if not isinstance(name, str) or not name:
            raise ConfigurationError(f"tool(name={name!r}): give the tool's name, as text")
        if effect is not None and effect not in list(Effect):
            raise ConfigurationError(f"tool(effect={effect!r}): give one of {', '.join(Effect)}, or leave it out")
        for option in ("permission", "reconcile", "failure", "call"):
            function(rest.get(option), f"tool({option})")
        flag(rest.get("subagent", False), "tool(subagent)")
        instance(rest.get("retry"), Retry, "tool(retry)")
        instance(rest.get("approval"), Approval, "tool(approval)")
        for option in ("no_effect_errors", "control_flow"):
            rest[option] = exceptions(rest.get(option) or (), f"tool({option})")
        parsed = cls(
            name,
            None if effect is None else Effect(effect),
            timeout=seconds(timeout, "tool(timeout)"),
            key_ttl=seconds(key_ttl, "tool(key_ttl)"),
            **rest,
        )
        parsed.check()
        return parsed

    def check(self) -> None:
        """Raise ConfigurationError for options that contradict each other."""
        problem = self._contradiction()
        if problem:
            raise ConfigurationError(f"tool {self.name!r}: {problem}")

    def _contradiction(self) -> str | None:
        if self.effect is Effect.UNSAFE and self.retry is not None:
            return "effect='unsafe' is never repeated, so retry= cannot be given; is it keyed or reconcilable?"
        if self.effect is Effect.RECONCILABLE and self.reconcile is None:
            return "effect='reconcilable' needs reconcile=, the function that asks what happened"
        if self.reconcile is not None and self.effect not in SETTLEABLE:
            return "reconcile= is for effect='keyed' or 'reconcilable'"
        if self.key_ttl is not None and self.effect is not Effect.KEYED:
            return "key_ttl= is for effect='keyed': how long the remote side remembers the key"
        if self.no_effect_errors and not self.outlives_failure:
            return (
                "no_effect_errors= is for effect='keyed', 'reconcilable' or 'unsafe': elsewhere an error is a failure"
            )
        return None
