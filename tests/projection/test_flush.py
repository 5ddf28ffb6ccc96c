"""`flush`: bounded whatever the receiver does, and honest about what came of it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, InMemoryLogRecordExporter
from opentelemetry.sdk.trace import TracerProvider

import loopspan
from loopspan import _sdk
from projection.collector import HttpCollector
from projection.spans import pipeline


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exporters give up soon, so that shutting down waits for nothing."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")


@contextmanager
def exporting(endpoint: str | None = None, file: Path | None = None, metrics: bool = False) -> Iterator[TracerProvider]:
    """What `setup` wires, for one run, without the global providers."""
    provider = _sdk.provider("flushed", endpoint, file)
    meters = _sdk.meter_provider(provider.resource, endpoint) if metrics else None
    with loopspan.configure(tracer_provider=provider, meter_provider=meters):
        with loopspan.agent_loop("agent") as run:
            run.succeed()
        yield provider
    provider.shutdown()
    if meters is not None:
        meters.shutdown()


def test_what_is_delivered_is_complete():
    with HttpCollector() as collector, exporting(collector.address, metrics=True):
        said = loopspan.flush()
        assert said.complete
        assert "spans" in said.detail
        assert "metrics" in said.detail
        assert collector.exports.names == ["invoke_agent agent"]
        assert "loopspan.run.closed" in collector.exports.metrics


def test_a_receiver_that_hangs_is_waited_for_no_longer_than_was_said():
    """It answers only when `flush` has returned."""
    with HttpCollector() as collector:
        collector.answers.clear()
        with exporting(collector.address):
            said = loopspan.flush(timeout=0.1)
            assert not said.complete
            assert said.detail == "spans: not finished in time"
            collector.answers.set()


@pytest.mark.parametrize("status", [400, 401, 404, 413, 500])
def test_a_receiver_that_refuses_is_told(status: int):
    with HttpCollector(status) as collector, exporting(collector.address):
        said = loopspan.flush()
        assert not said.complete
        assert "spans" in said.detail
        assert collector.paths == ["/v1/traces"]


def test_metrics_that_are_refused_are_told():
    with HttpCollector(400) as collector, exporting(collector.address, metrics=True):
        said = loopspan.flush()
    assert not said.complete
    assert "spans: " in said.detail
    assert "metrics: " in said.detail


def test_what_was_lost_before_is_told_once():
    with HttpCollector(400) as collector, exporting(collector.address) as provider:
        provider.force_flush()
        assert not loopspan.flush().complete
        collector.status = 200
        with loopspan.agent_loop("agent") as run:
            run.succeed()
        assert loopspan.flush().complete


def test_a_receiver_that_is_not_there_is_told():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with exporting(address):
            said = loopspan.flush(timeout=10)
    assert not said.complete


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path):
    path = tmp_path / "spans.jsonl"
    with exporting(file=path):
        path.unlink()
        path.mkdir()
        said = loopspan.flush()
    assert not said.complete
    assert "spans" in said.detail


def test_without_an_sdk_there_is_nothing_to_flush():
    said = loopspan.flush()
    assert said == (True, "flushed nothing: no SDK is configured")


def test_a_pipeline_of_the_applications_own_is_flushed_too():
    provider, exporter = pipeline()
    with loopspan.configure(tracer_provider=provider), loopspan.agent_loop("agent") as run:
        run.succeed()
    with loopspan.configure(tracer_provider=provider):
        assert loopspan.flush().complete
    assert len(exporter.get_finished_spans()) == 1


def test_log_events_are_flushed_too():
    logs, exporter = LoggerProvider(shutdown_on_exit=False), InMemoryLogRecordExporter()
    logs.add_log_record_processor(BatchLogRecordProcessor(exporter, schedule_delay_millis=60_000))
    with loopspan.configure(tracer_provider=pipeline()[0], logger_provider=logs, events="log"):
        with loopspan.agent_loop("agent") as run:
            run.succeed()
        said = loopspan.flush()
        assert len(exporter.get_finished_logs()) == 2
    assert said.complete
    assert "logs" in said.detail
    logs.shutdown()


def test_a_provider_that_raises_is_told():
    class Broken:
        """No provider at all."""

        def force_flush(self, timeout: Any = None) -> bool:
            raise OSError

    with loopspan.configure(tracer_provider=Broken()):
        said = loopspan.flush()
    assert said == (False, "spans: the exporter reported a failure")
