"""The commands, their options and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

import loopspan
from loopspan.errors import LoopspanError
from loopspan.trajectory import words

CODES = "Exit codes: 0 fine, 1 nothing found or unreadable, 2 wrong usage."

app = typer.Typer(
    name="loopspan",
    help="The truth about agent loops, as OpenTelemetry traces.",
    epilog=CODES,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"loopspan {loopspan.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """The truth about agent loops, as OpenTelemetry traces."""
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(2)


AsJson = Annotated[bool, typer.Option("--json", help="Strict JSON instead of a tree.")]


@app.command(epilog=CODES)
def show(
    file: Annotated[Path, typer.Argument(help="An OTLP-JSON file: one export of spans a line.")],
    run: Annotated[str | None, typer.Argument(help="A run id, or the beginning of one.")] = None,
    as_json: AsJson = False,
    svg: Annotated[Path | None, typer.Option(help="Write a picture of the tree to this file.")] = None,
) -> None:
    """Show the runs of a file as trees: why they stopped, what they did, what it cost."""
    from loopspan.cli import _show

    _show.show(_show.read(file), str(file), run, as_json=as_json, svg=svg)


@app.command(epilog=CODES)
def demo(
    file: Annotated[Path | None, typer.Option(help="Append the spans to this file, and keep it.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a small agent loop, traced into an OTLP-JSON file, and show what the file says of it."""
    from loopspan.cli import _demo, _show

    path, run_id = _demo.traced(file)
    _show.show(_show.read(path), str(path), run_id, as_json=as_json)
    if not as_json:
        print(f"\nThe spans are in {path}: loopspan show {path} {run_id[:12]}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code; every error is one line."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # text streams of a process can
    sys.exit(_code(arguments))


def _code(arguments: Sequence[str] | None) -> int:
    try:
        code = app(arguments, prog_name="loopspan", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        hint = " (loopspan --help)" if error.exit_code == 2 else ""
        return _failed(f"{error.format_message()}{hint}", error.exit_code)
    except LoopspanError as error:
        return _failed(str(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _failed(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    return code if isinstance(code, int) else 0


def _failed(message: str, code: int = 1) -> int:
    print(f"loopspan: {words.safe(message, 1000)}", file=sys.stderr)
    return code
