"""`setup`: programs of their own that export to a file or to a real collector."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import loopspan
from projection.collector import GrpcCollector, HttpCollector

PROGRAM = """
import json, sys
import loopspan
from opentelemetry import trace

arguments = json.loads(sys.argv[1])

@loopspan.tool
def act():
    return 1

@loopspan.agent_loop("agent")
def loop():
    act()

{before}
provider = loopspan.setup(**arguments)
loop()
{after}
"""

SPANS = ["agent", "attempt", "execute_tool", "step"]


@pytest.fixture
def collector() -> Iterator[HttpCollector]:
    """A collector that takes everything."""
    with HttpCollector() as server:
        yield server


def run(before: str = "", after: str = "", environment: dict[str, str] | None = None, **arguments: Any) -> list[str]:
    """Run the program to its end; what it printed, by lines."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "LOOPSPAN_"))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=before, after=after), json.dumps(arguments)],
        env={**clean, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def words(names: list[str]) -> list[str]:
    """The kinds of spans, sorted."""
    return sorted("agent" if name == "invoke_agent agent" else name.split(" ")[0] for name in names)


# --- to a file


def test_a_file_has_the_runs_when_the_program_has_ended(tmp_path: Path):
    run(file=str(tmp_path / "new" / "folder" / "spans.jsonl"))
    log = loopspan.read_runlog(tmp_path / "new" / "folder" / "spans.jsonl")
    assert log.problems == []
    assert [(run.agent_name, run.stop_reason) for run in log.runs] == [("agent", "success")]


def test_each_line_of_a_file_is_one_export_and_the_next_program_appends(tmp_path: Path):
    path = tmp_path / "spans.jsonl"
    for service in ("first", "second"):
        run(service_name=service, file=str(path))
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    names = [
        {item["key"]: item["value"] for item in line["resourceSpans"][0]["resource"]["attributes"]}["service.name"]
        for line in lines
    ]
    assert names == [{"stringValue": "first"}, {"stringValue": "second"}]
    assert len(loopspan.read_runlog(path).runs) == 2


def test_a_file_is_there_before_the_first_run(tmp_path: Path):
    loopspan_files = run(
        before="import pathlib", after="print(pathlib.Path(arguments['file']).exists())", file=str(tmp_path / "f")
    )
    assert loopspan_files == ["True"]


def test_no_metrics_are_sent_where_spans_go_to_a_file(tmp_path: Path, collector: HttpCollector):
    run(file=str(tmp_path / "f"), environment={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address})
    assert collector.paths == []


# --- to a collector


@pytest.mark.parametrize("slash", ["", "/"])
def test_an_endpoint_gets_spans_and_metrics(collector: HttpCollector, slash: str):
    run(service_name="builder", endpoint=collector.address + slash)
    assert set(collector.paths) == {"/v1/traces", "/v1/metrics"}
    assert words(collector.exports.names) == SPANS
    assert {resource["service.name"] for resource in collector.exports.resources} == {"builder"}
    assert "gen_ai.invoke_agent.duration" in collector.exports.metrics


@pytest.mark.parametrize(
    ("variable", "path", "posted"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "", "/v1/traces"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "/custom/path", "/custom/path"),
    ],
)
def test_the_variables_say_where_to(collector: HttpCollector, variable: str, path: str, posted: str):
    run(environment={variable: collector.address + path, "OTEL_METRICS_EXPORTER": "none"})
    assert collector.paths == [posted]
    assert words(collector.exports.names) == SPANS


def test_the_variables_say_how(collector: HttpCollector):
    environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.address,
        "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=t1",
        "OTEL_SERVICE_NAME": "from-variable",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
        "OTEL_METRICS_EXPORTER": "none",
    }
    run(environment=environment)
    assert [headers["x-tenant"] for headers in collector.headers] == ["t1"]
    (resource,) = collector.exports.resources
    assert (resource["service.name"], resource["deployment.environment.name"]) == ("from-variable", "test")


def test_what_is_given_goes_before_the_variables(collector: HttpCollector):
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SERVICE_NAME": "from-variable"}
    run(service_name="given", endpoint=collector.address, environment=environment)
    assert {resource["service.name"] for resource in collector.exports.resources} == {"given"}


def test_an_endpoint_that_is_given_is_an_http_one_whatever_the_protocol_variable_says(collector: HttpCollector):
    run(endpoint=collector.address, environment={"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
    assert words(collector.exports.names) == SPANS


@pytest.mark.parametrize(
    "environment", [{"OTEL_TRACES_SAMPLER": "always_off"}, {"OTEL_SDK_DISABLED": "true"}], ids=["sampler", "disabled"]
)
def test_the_sdks_own_switches_hold(collector: HttpCollector, environment: dict[str, str]):
    run(endpoint=collector.address, environment={**environment, "OTEL_METRICS_EXPORTER": "none"})
    assert collector.exports.spans == []


@pytest.mark.parametrize("variable", ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"])
def test_the_protocol_variable_chooses_grpc(variable: str):
    with GrpcCollector() as collector:
        environment = {
            variable: "grpc",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.port}",
            "OTEL_METRICS_EXPORTER": "none",
        }
        run(environment=environment)
    assert words(collector.exports.names) == SPANS


# --- what it sets


def test_global_providers_are_set_where_there_are_none(collector: HttpCollector):
    after = """
from opentelemetry import metrics
print(trace.get_tracer_provider() is provider, type(metrics.get_meter_provider()).__name__)
"""
    assert run(after=after, endpoint=collector.address) == ["True MeterProvider"]


def test_a_global_provider_of_the_applications_own_stays(tmp_path: Path):
    before = """
from opentelemetry.sdk.trace import TracerProvider
own = TracerProvider()
trace.set_tracer_provider(own)
"""
    printed = run(before=before, after="print(trace.get_tracer_provider() is own)", file=str(tmp_path / "f"))
    assert printed == ["True"]
    assert len(loopspan.read_runlog(tmp_path / "f").runs) == 1


def test_calling_it_again_replaces_ours(tmp_path: Path):
    after = "loopspan.setup(file=arguments['file'] + '.second')\nloop()\nloop()"
    run(after=after, file=str(tmp_path / "f"))
    assert len(loopspan.read_runlog(tmp_path / "f").runs) == 1
    assert len(loopspan.read_runlog(tmp_path / "f.second").runs) == 2


def test_nothing_is_printed_where_there_is_no_terminal(tmp_path: Path):
    assert run(file=str(tmp_path / "f")) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [({"endpoint": "http://localhost:1", "file": "f"}, "one of them"), ({"signals": True}, "signals")],
)
def test_options_that_cannot_work_are_refused(arguments: dict[str, Any], said: str):
    with pytest.raises(loopspan.ConfigurationError, match=said):
        loopspan.setup(**arguments)
