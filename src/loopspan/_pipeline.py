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
    """What `flush` reached: `complete` where every provider said within the time that it has nothing left."""

    complete: bool
    detail: str


def flush(timeout: float = 5.0) -> Flushed:
    """Hand what is finished to the exporters, within `timeout` seconds; says what came of it, as far as they tell.

    The SDK's own force_flush ignores its time-out, so it runs in a thread that is left behind.
    """
    settings = _config.current()
    providers = {
        "spans": settings.tracer_provider or trace.get_tracer_provider(),
        "metrics": settings.meter_provider or _global_meters(),
    }
    deadline = time.monotonic() + timeout
    said = {
        name: _flushed(provider, deadline) for name, provider in providers.items() if hasattr(provider, "force_flush")
    }
    problems = [f"{name}: {problem}" for name, problem in said.items() if problem]
    return Flushed(not problems, "; ".join(problems) or f"flushed {', '.join(said) or 'nothing: no SDK is configured'}")


def _global_meters() -> Any:
    api = sys.modules.get("opentelemetry.metrics")
    return None if api is None else api.get_meter_provider()


def _flushed(provider: Any, deadline: float) -> str | None:
    answers: list[Any] = []

    def body() -> None:
        with contextlib.suppress(Exception):
            answers.append(provider.force_flush(max(1, int((deadline - time.monotonic()) * 1000))))

    thread = threading.Thread(target=body, name="loopspan-flush", daemon=True)
    thread.start()
    thread.join(max(0.0, deadline - time.monotonic()))
    if thread.is_alive():
        return "not finished in time"
    return None if answers and answers[0] is not False else "the exporter reported a failure"
