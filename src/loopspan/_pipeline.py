"""The SDK wired up for people who have no pipeline yet (`setup`), and `flush`."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from opentelemetry import trace

from loopspan import _config
from loopspan.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

    from opentelemetry.sdk.trace import TracerProvider


def setup(
    service_name: str | None = None,
    endpoint: str | None = None,
    *,
    file: str | Path | None = None,
    signals: bool = False,
) -> TracerProvider:
    """Wire the OpenTelemetry SDK: spans and metrics go to an OTLP endpoint, or spans to a file.

    `service_name`: the resource's, else OTEL_SERVICE_NAME. `endpoint`: an OTLP/HTTP base address such as
    `http://localhost:4318`, else the OTEL_* variables, else a local collector. `file`: an OTLP-JSON file, one line an
    export, appended to. OTEL_METRICS_EXPORTER=none leaves metrics out. On a terminal each run is printed as a tree when
    it closes. Sets the global providers where none are set, and ours in any case. Returns the provider; calling it
    again replaces ours.

    Raises ConfigurationError for both an endpoint and a file.
    """
    if endpoint is not None and file is not None:
        raise ConfigurationError(f"setup(endpoint={endpoint!r}, file={str(file)!r}): give one of them")
    if signals:
        raise ConfigurationError("setup(signals=True): handlers for signals are not there yet; leave it out")
    from loopspan import _sdk

    provider = _sdk.provider(service_name, endpoint, file)
    meters = None if file is not None else _sdk.meter_provider(provider.resource, endpoint)
    _sdk.set_globally(provider, meters)
    _config.change(tracer_provider=provider, meter_provider=meters, log_sinks=_console())
    return provider


def _console() -> tuple[Any, ...]:
    """On a terminal, print each run as a tree when it closes."""
    if not sys.stderr.isatty():
        return ()
    from loopspan.trajectory.console import RunPrinter

    return (RunPrinter(sys.stderr),)


class Flushed(NamedTuple):
    """What `flush` reached: `complete` where every provider has said within the time that it has nothing left.

    Of what `setup` has wired it is known besides whether an export has failed since the last `flush`.
    """

    complete: bool
    detail: str


def flush(timeout: float = 5.0) -> Flushed:
    """Hand what is finished to the exporters, within `timeout` seconds; says what came of it, as far as they tell.

    The SDK's own force_flush ignores its time-out, so it runs in a thread that is left behind.
    """
    settings = _config.current()
    providers = {
        "spans": settings.tracer_provider or trace.get_tracer_provider(),
        "metrics": settings.meter_provider or _global("opentelemetry.metrics", "get_meter_provider"),
        "logs": settings.logger_provider or _global("opentelemetry._logs", "get_logger_provider"),
    }
    deadline = time.monotonic() + timeout
    flushes = {
        name: _Flush(provider, timeout) for name, provider in providers.items() if hasattr(provider, "force_flush")
    }
    said = {name: flush.said(deadline) for name, flush in flushes.items()}
    problems = [f"{name}: {problem}" for name, problem in said.items() if problem]
    return Flushed(not problems, "; ".join(problems) or f"flushed {', '.join(said) or 'nothing: no SDK is configured'}")


def _global(module: str, getter: str) -> Any:
    """The global provider, None where nobody can have set one, as its module was never imported."""
    find = getattr(sys.modules.get(module), getter, None)
    return find and find()


class _Flush:
    """One provider's flush, in a thread of its own."""

    def __init__(self, provider: Any, timeout: float) -> None:
        self._provider = provider
        self._timeout = timeout
        self._answer: Any = False
        self._thread = threading.Thread(target=self._run, name="loopspan-flush", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with contextlib.suppress(Exception):
            self._answer = self._provider.force_flush(max(1, int(self._timeout * 1000)))

    def said(self, deadline: float) -> str | None:
        """What went wrong, None where nothing did."""
        self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive():
            return "not finished in time"
        if self._answer is False:
            return "the exporter reported a failure"
        failed = self._failures()
        return f"exports that failed: {failed}" if failed else None

    def _failures(self) -> int:
        """Exports that have failed since this was last asked, where `setup` has made the provider."""
        made = getattr(sys.modules.get("loopspan._sdk"), "exports", {})
        return next((exports.failures() for provider, exports in made.items() if provider is self._provider), 0)
