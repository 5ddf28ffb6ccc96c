"""The process ends while runs are open: every span is exported, with its reason, and the exit is as it was."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from loopspan import read_runlog
from programs import run_program

COMMON = """
import asyncio, os, signal, sys, threading, time
import loopspan

loopspan.setup(file=sys.argv[1])

@loopspan.model_request(model="m")
def ask(): return {}

@loopspan.tool
def work(act): return act()

@loopspan.model_request(model="m")
def chunks():
    yield "chunk"
    yield "chunk"

@loopspan.agent_loop("loop")
def call(act):
    ask()
    work(act)

@loopspan.agent_loop("loop")
def items():
    ask()
    yield from chunks()

@loopspan.agent_loop("loop")
async def items_async():
    ask()
    for chunk in chunks():
        yield chunk

def exits(): sys.exit(3)

def breaks(): raise ValueError("broken")

def interrupted(): os.kill(os.getpid(), signal.SIGINT); time.sleep(10)
"""

ENDS: dict[str, tuple[str, int, str, str | None]] = {
    "returns": ("call(lambda: None)", 0, "success", None),
    "sys.exit": ("call(exits)", 3, "cancelled", "shutdown"),
    "an error that nobody catches": ("call(breaks)", 1, "tool_failed", None),
    "SIGINT": ("call(interrupted)", -signal.SIGINT, "cancelled", "keyboard_interrupt"),
    "SIGINT with a generator open": (
        "reading = items(); next(reading); interrupted()",
        -signal.SIGINT,
        "cancelled",
        "shutdown",
    ),
    "SIGINT in an event loop": (
        """
async def main():
    async for _ in items_async(): interrupted()
asyncio.run(main())
""",
        -signal.SIGINT,
        "cancelled",
        "consumer_stopped",
    ),
    "a generator is open": ("reading = items(); next(reading)", 0, "cancelled", "shutdown"),
    "an asynchronous generator is open": (
        """
events = asyncio.new_event_loop()
reading = items_async()
async def begin(): await anext(reading)
events.run_until_complete(begin())
events.close()
""",
        0,
        "cancelled",
        "shutdown",
    ),
    "a block is open": ('block = loopspan.agent_loop("loop"); block.__enter__(); ask()', 0, "cancelled", "shutdown"),
    "a daemon thread is in a tool": (
        """
reached = threading.Event()
def waits(): reached.set(); threading.Event().wait()
threading.Thread(target=call, args=(waits,), daemon=True).start()
reached.wait()
""",
        0,
        "cancelled",
        "shutdown",
    ),
}


def exported(file: Path) -> list[Any]:
    """The runs that were exported, none of them with a gap."""
    runs = list(read_runlog(file).runs)
    assert [list(run.gaps) for run in runs] == [[] for _ in runs]
    return runs


@pytest.mark.parametrize("end", ENDS)
def test_the_process_ends(tmp_path: Path, end: str):
    source, code, reason, detail = ENDS[end]
    file = tmp_path / "spans.jsonl"
    ended = run_program(tmp_path, COMMON + source, file)
    assert ended.returncode == code, ended.stderr
    assert "opentelemetry" not in ended.stderr
    assert "loopspan:" not in ended.stderr
    assert ended.stderr == "" or code != 0
    (run,) = exported(file)
    assert (run.lifecycle, run.stop_reason, run.stop_detail) == ("closed", reason, detail)


@pytest.mark.parametrize(
    "before",
    [
        "",
        "loopspan.agent_loop('first')(lambda: None)()",
        "loopspan.setup(file=sys.argv[1]); loopspan.agent_loop('first')(lambda: None)()",
    ],
    ids=["at once", "after a run without a provider", "after another provider"],
)
def test_what_is_open_ends_before_the_provider_does(tmp_path: Path, before: str):
    file = tmp_path / "spans.jsonl"
    early = COMMON.replace("\nloopspan.setup(", f"\n{before}\nloopspan.setup(")
    ended = run_program(tmp_path, early + "reading = items(); next(reading)", file)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (exported(file)[-1].agent_name, exported(file)[-1].stop_detail) == ("loop", "shutdown")
