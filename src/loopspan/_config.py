"""One settings object: frozen, replaced as a whole, restored by the context manager that `configure` returns."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from loopspan import _guard, _redact, semconv
from loopspan._journal import Entry
from loopspan._redact import Content as Content
from loopspan.errors import ConfigurationError

EVENT_ROUTES = ("span", "log", "both")
SEMCONV_VERSIONS = ("genai-0.1", "1.41", "both")


@dataclass(frozen=True, slots=True)
class Settings:
    """What `configure` sets; see there."""

    tracer_provider: Any = None
    meter_provider: Any = None
    logger_provider: Any = None
    prices: Callable[..., Any] | None = None
    content: Content | None = None
    events: str = "span"
    semconv: str = "genai-0.1"
    strict: bool = False
    enabled: bool = True
    log_sinks: tuple[Callable[[Entry], None], ...] = ()
    run_sinks: tuple[Callable[[list[Entry]], None], ...] = ()

    def policy(self) -> Content:
        """The content policy in force: set here, else by the standard variable."""
        return _redact.content_from_environment() if self.content is None else self.content


def _flag(name: str, default: bool) -> bool:
    value = os.environ.get(semconv.VARIABLE_PREFIX + name)
    if value is None:
        return default
    if value.lower() not in ("true", "false", "1", "0"):
        raise ConfigurationError(f"{semconv.VARIABLE_PREFIX}{name}={value!r}: give true or false")
    return value.lower() in ("true", "1")


def from_environment() -> Settings:
    """Settings as the `LOOPSPAN_…` variables have them."""
    content = os.environ.get(semconv.VARIABLE_PREFIX + "CONTENT")
    return checked(
        Settings(
            events=os.environ.get(semconv.VARIABLE_PREFIX + "EVENTS", "span"),
            semconv=os.environ.get(semconv.VARIABLE_PREFIX + "SEMCONV", "genai-0.1"),
            content=None if content is None else _content(content),
            strict=_flag("STRICT", False),
            enabled=_flag("ENABLED", True),
        )
    )


def _content(value: Any) -> Content | None:
    if value is None or isinstance(value, Content):
        return value
    if isinstance(value, bool):
        return Content.SPAN_AND_EVENT if value else Content.NO_CONTENT
    if isinstance(value, str) and value.upper() in Content.__members__:
        return Content[value.upper()]
    raise ConfigurationError(f"content={value!r}: give a bool or one of {', '.join(Content)}")


def checked(settings: Settings) -> Settings:
    """`settings`, or ConfigurationError for what cannot work."""
    if settings.events not in EVENT_ROUTES:
        raise ConfigurationError(f"events={settings.events!r}: give one of {', '.join(EVENT_ROUTES)}")
    if settings.semconv not in SEMCONV_VERSIONS:
        raise ConfigurationError(f"semconv={settings.semconv!r}: give one of {', '.join(SEMCONV_VERSIONS)}")
    if settings.prices is not None and not callable(settings.prices):
        raise ConfigurationError(f"prices={settings.prices!r}: give a function (provider, model, usage) -> Cost | None")
    for option in ("strict", "enabled"):
        if not isinstance(getattr(settings, option), bool):
            raise ConfigurationError(f"{option}={getattr(settings, option)!r}: give True or False")
    return settings


_lock = threading.Lock()
_current: Settings | None = None


def current() -> Settings:
    """The settings in force."""
    return _current or _install(None)


def _install(settings: Settings | None) -> Settings:
    global _current
    with _lock:
        _current = settings or _current or from_environment()
        _guard.set_strict(_current.strict)
        return _current


class Configured:
    """What `configure` returns: leaving the block restores the former settings."""

    def __init__(self, former: Settings) -> None:
        self._former = former

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        _install(self._former)


def change(**changes: Any) -> Configured:
    """Replace some settings; takes effect at once."""
    former = current()
    if "content" in changes:
        changes["content"] = _content(changes["content"])
    _install(checked(replace(former, **changes)))
    return Configured(former)


_UNSET: Any = object()


def configure(
    *,
    tracer_provider: Any = _UNSET,
    meter_provider: Any = _UNSET,
    logger_provider: Any = _UNSET,
    prices: Callable[..., Any] | str | None = _UNSET,
    content: Content | str | bool | None = _UNSET,
    events: str = _UNSET,
    semconv: str = _UNSET,
    strict: bool = _UNSET,
    enabled: bool = _UNSET,
) -> Configured:
    """Change settings, at once and for the whole process; runs that are open keep those they started with.

    `tracer_provider`, `meter_provider`, `logger_provider`: OpenTelemetry providers (default: the global ones, looked up
    when a run starts). `prices(provider, model, usage) -> Cost | None`: asked for every request without a cost of its
    own; "genai-prices" is the price table of that package (extra `[prices]`).
    `content`: whether messages, arguments and results leave the process: a bool, or a value of the standard variable
    OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT. `events`: "span", "log" or "both" (LOOPSPAN_EVENTS). `semconv`:
    which names metrics have: "genai-0.1", "1.41" (what today's dashboards ask for) or "both" (LOOPSPAN_SEMCONV).
    `strict`: own faults are raised (LOOPSPAN_STRICT). `enabled`: False records nothing and still enforces the lifecycle
    (LOOPSPAN_ENABLED).

    Returns a context manager that restores the former settings. Raises ConfigurationError for a value that cannot work.
    """
    given = {name: value for name, value in locals().items() if value is not _UNSET}
    if given.get("prices") == "genai-prices":
        from loopspan.usage.prices import genai_price

        given["prices"] = genai_price
    return change(**given)
