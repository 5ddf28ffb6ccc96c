"""The one process-wide object: it joins settings, tracer and open runs; and the recorder that each run writes to."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from opentelemetry import trace
from opentelemetry.trace import Link, Tracer

from loopspan import _config, _guard, _journal, semconv
from loopspan import events as e
from loopspan._clock import Anchor
from loopspan._journal import Entry
from loopspan.errors import DecisionConflict, IllegalTransition, RunClosed
from loopspan.lifecycle import NEW, Refusal, State, advance
from loopspan.reasons import Lifecycle
from loopspan.telemetry import _attributes
from loopspan.telemetry._projector import SpanProjector
from loopspan.telemetry._spans import Handle, Place

if TYPE_CHECKING:
    from loopspan.telemetry._instruments import Instruments
    from loopspan.telemetry._logs import LogWriter
    from loopspan.telemetry._metrics import MetricRecorder

_ERRORS = {"closed": RunClosed, "decision_conflict": DecisionConflict}


class OpenRun(Protocol):
    """What the exit and fork hooks need of a run."""

    def shut_down(self) -> None:
        """End the run because the process ends."""
        ...

    def disown(self) -> None:
        """Forget the run: it belongs to the process that was forked."""
        ...


class Runtime:
    """Tracers by provider, and the runs that are open in this process."""

    def __init__(self) -> None:
        self.open_runs: weakref.WeakSet[Any] = weakref.WeakSet()
        self._tracer: tuple[Any, Tracer] | None = None
        self._instruments: tuple[Any, str, Instruments] | None = None
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._forked)

    def tracer(self, settings: _config.Settings) -> Tracer:
        """Our tracer of the provider in force; asking a provider costs more than a span, so it is kept."""
        provider = settings.tracer_provider or trace.get_tracer_provider()
        kept = self._tracer
        if kept is not None and kept[0] is provider:
            return kept[1]
        tracer = provider.get_tracer(semconv.SCOPE, schema_url=semconv.SCHEMA_URL)
        self._tracer = (provider, tracer)
        self._hook()
        return tracer

    def instruments(self, settings: _config.Settings) -> Instruments | None:
        """Our instruments of the meter provider in force; None where it would drop what they record."""
        api = sys.modules.get("opentelemetry.metrics")  # nobody has set a provider where it was never imported
        find = getattr(api, "get_meter_provider", None)  # another thread may be importing it
        provider = settings.meter_provider or (find and find())
        if provider is None or type(provider).__module__.startswith("opentelemetry.metrics"):
            return None
        kept = self._instruments
        if kept is not None and kept[0] is provider and kept[1] == settings.semconv:
            return kept[2]
        meter = provider.get_meter(semconv.SCOPE, schema_url=semconv.SCHEMA_URL)
        from loopspan.telemetry._instruments import Instruments

        made = Instruments(meter, settings.semconv)
        self._instruments = (provider, settings.semconv, made)
        return made

    def log_writer(self, settings: _config.Settings, identity: dict[str, Any]) -> LogWriter:
        """Writes a run's events to the logger provider in force."""
        from opentelemetry import _logs

        from loopspan.telemetry._logs import LogWriter

        provider = settings.logger_provider or _logs.get_logger_provider()
        return LogWriter(provider.get_logger(semconv.SCOPE, schema_url=semconv.SCHEMA_URL), identity)

    def _hook(self) -> None:
        """Register the exit hook after the provider's own, anew for each provider, so that it runs before it."""
        with self._lock:
            atexit.unregister(self._exit)
            atexit.register(self._exit)

    def _exit(self) -> None:
        for run in list(self.open_runs):
            _guard.contained("the exit hook", run.shut_down)

    def _forked(self) -> None:
        self._lock = threading.Lock()
        inherited = list(self.open_runs)
        self.open_runs = weakref.WeakSet()
        for run in inherited:
            run.disown()
        if inherited:
            _guard.log.warning(
                "loopspan: %d open runs stay with the parent process; this fork drops them", len(inherited)
            )


runtime = Runtime()


def _lost(place: Place, time: int) -> Handle:
    """Stands for a span that the pipeline could not start: what hangs below it hangs below its parent."""
    return Handle(trace.NonRecordingSpan(place.span.get_span_context()), {}, time)


class Recorder:
    """Where one run's events go: first the lifecycle, then every projection, in one order.

    `listening` is False where nobody would see an event; callers then skip those that the lifecycle does not guard.
    """

    __slots__ = (
        "_logs",
        "_metrics",
        "_projector",
        "_published",
        "_sinks",
        "anchor",
        "content",
        "listening",
        "lock",
        "root",
        "run_id",
        "seq",
        "state",
    )

    def __init__(self, run_id: str, settings: _config.Settings, anchor: Anchor | None = None) -> None:
        """Start the record of a run; `anchor` is that of the run above it, within whose times it lies."""
        self.run_id = run_id
        self.lock = threading.RLock()
        self.state: State = NEW
        self.seq = 0
        self.anchor = anchor or Anchor()
        self.content = settings.policy()
        self.listening = False
        self.root: Handle
        self._projector: SpanProjector
        self._logs: LogWriter | None = None
        self._metrics: MetricRecorder | None = None
        self._sinks: tuple[Callable[[Entry], None], ...] = settings.log_sinks if settings.enabled else ()
        self._published = False

    def begin(
        self,
        event: Callable[[Any], e.RunStarted],
        place: Place,
        links: Sequence[Link],
        settings: _config.Settings,
    ) -> None:
        """Start the root, then record `event(root span)`."""
        started = event(None)
        identity = _attributes.identity(self.run_id, started)
        in_spans, content = settings.events != "log", not started.content_in_events_only
        self._projector = SpanProjector(identity, in_spans=in_spans, content=content)
        self.root = self._start_root(started, place, links, settings)
        recording = self.root.span.is_recording()
        if settings.events != "span" and settings.enabled:
            self._logs = _guard.contained("the log pipeline", runtime.log_writer, settings, identity)
        instruments = (
            _guard.contained("the metric pipeline", runtime.instruments, settings) if settings.enabled else None
        )
        if instruments is not None:
            from loopspan.telemetry._metrics import MetricRecorder

            self._metrics = MetricRecorder(instruments, started.agent)
        self._published = bool(self._sinks or self._logs or self._metrics)
        self.listening = recording or self._published
        self.add(event(self.root.span), self.root, self.root.start)

    def _start_root(
        self, event: e.RunStarted, place: Place, links: Sequence[Link], settings: _config.Settings
    ) -> Handle:
        """The run's root; where the pipeline cannot start it, one that records nothing."""
        start, time = self._projector.start_root, self.anchor.now()
        if settings.enabled:
            try:
                return start(runtime.tracer(settings), event, place, links, time)
            except Exception as error:  # noqa: BLE001  # of a processor, the sampler or the provider
                _guard.fault("the span pipeline", error)
        return start(trace.NoOpTracer(), event, place, links, time)

    def open(self, event: e.Event, place: Place) -> Handle:
        """Record `event` and start the span that it opens."""
        with self.lock:
            return self._record(self._projector.open, event, place)

    def add(self, event: e.Event, handle: Handle, time: int | None = None) -> None:
        """Record `event` on an open span."""
        with self.lock:
            self._record(self._projector.add, event, handle, time)

    def end(self, event: e.Event, handle: Handle, time: int | None = None) -> None:
        """Record `event` and end the span that it closes."""
        with self.lock:
            self._record(self._projector.end, event, handle, time)

    def instant(self, event: e.Event, place: Place) -> None:
        """Record `event` and the whole span that it stands for."""
        with self.lock:
            self._record(self._projector.instant, event, place)

    def _record(
        self, project: Callable[..., Handle], event: e.Event, where: Place | Handle, time: int | None = None
    ) -> Handle:
        """Ask the lifecycle, then tell every projection; returns the span that the event is on."""
        result = advance(self.state, event)
        if type(result) is Refusal:
            raise self._refused(event, result)
        self.state = result  # type: ignore[assignment]  # a State: it is no Refusal
        self.seq = seq = self.seq + 1
        if not self.listening:
            return self.root
        if time is None:
            time = self.anchor.now()
        try:
            handle = project(event, seq, time, where)
        except Exception as error:  # noqa: BLE001  # whatever a processor raises stays here
            _guard.fault("the span pipeline", error)
            handle = where if isinstance(where, Handle) else _lost(where, time)
        if self._published:
            self._publish(event, seq, time, handle)
        return handle

    def _refused(self, event: e.Event, refusal: Refusal) -> IllegalTransition:
        if self.state.lifecycle is not Lifecycle.CLOSED and self.seq:
            refused = e.TransitionRefused(refused=event.name, rule=refusal.rule, message=refusal.message)
            self.add(refused, self.root)
        cls = _ERRORS.get(refusal.rule, IllegalTransition)
        return cls(f"{event.name} refused: {refusal.message}", event=event.name, rule=refusal.rule)

    def _publish(self, event: e.Event, seq: int, time: int, handle: Handle) -> None:
        if self._metrics is not None:
            _guard.contained("the metric pipeline", self._metrics.event, event, time, handle)
        if self._logs is not None:
            _guard.contained("the log pipeline", self._logs.emit, event, seq, time, handle.span)
        if self._sinks:
            entry = self._entry(event, seq, time, handle)
            for sink in self._sinks:
                _guard.contained("a log sink", sink, entry)

    def _entry(self, event: e.Event, seq: int, time: int, handle: Handle) -> Entry:
        context = handle.span.get_span_context()
        parent = getattr(handle.span, "parent", None)
        parent_id = None if parent is None else parent.span_id
        return Entry(self.run_id, seq, time, _journal.kept(event), context.trace_id, context.span_id, parent_id)

    def disown(self) -> None:
        """Record nothing any more, in a forked child."""
        self.lock = threading.RLock()
        self.listening = False
        self._logs, self._metrics, self._sinks = None, None, ()
