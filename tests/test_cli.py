"""The command line: trees, JSON, pictures, exit codes, and errors of one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import loopspan
from loopspan.cli import main
from written_runs import Written, foreign_span, line, retried, write

PROGRAM = "from loopspan.cli import main; main()"


@pytest.fixture
def cli(capsys):
    """`cli(*arguments)` is (exit code, standard output, standard error)."""

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return left.value.code, out, err

    return run


@pytest.fixture
def path(tmp_path):
    """A file with two runs."""
    return write(tmp_path / "spans.jsonl", retried("aa-1").line(), retried("ab-2", trace=2).line())


def process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own."""
    source = str(Path(loopspan.__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": source, "PYTHONIOENCODING": "utf-8", **environment},
        check=False,
    )


def test_show_prints_every_run_as_a_tree(cli, path):
    code, out, err = cli("show", path)
    assert (code, err) == (0, "")
    assert out.count("invoke_agent build-watch  closed success") == 2
    assert "│  └─ execute_tool get_status  ok  2 attempts" in out
    assert "note:" not in out


@pytest.mark.parametrize("wanted", ["aa", "aa-1"])
def test_show_prints_one_run_by_its_id_or_the_beginning_of_it(cli, path, wanted):
    code, out, _ = cli("show", path, wanted)
    assert (code, out.count("invoke_agent")) == (0, 1)
    assert "aa-1" in out


def test_an_id_that_is_the_beginning_of_another_one_is_found(cli, tmp_path):
    path = write(tmp_path / "spans.jsonl", retried("a").line(), retried("ab", trace=2).line())
    assert cli("show", path, "a")[1].count("invoke_agent") == 1


def test_notes_follow_the_tree(cli, tmp_path):
    path = write(tmp_path / "spans.jsonl", retried().line(without=("chat 1.1",)), line([foreign_span()], "x"), "{torn")
    code, out, _ = cli("show", path)
    assert code == 0
    tree, notes = out.split("\n\n")
    assert tree.startswith("invoke_agent")
    assert [note.split(":")[0] for note in notes.splitlines()] == ["note"] * 3


def test_json_is_the_whole_log(cli, path):
    code, out, _ = cli("show", path, "--json")
    form = json.loads(out)
    assert (code, [run["run_id"] for run in form["runs"]], form["problems"]) == (0, ["aa-1", "ab-2"], [])
    assert [run["run_id"] for run in json.loads(cli("show", path, "ab", "--json")[1])["runs"]] == ["ab-2"]


def test_svg_writes_a_picture(cli, path, tmp_path):
    picture = tmp_path / "tree.svg"
    code, out, _ = cli("show", path, "aa", "--svg", picture)
    assert (code, out.count("invoke_agent")) == (0, 1)
    drawn = picture.read_text("utf-8")
    assert drawn.startswith("<svg")
    assert "build-watch" in drawn
    assert "ConnectionError" in drawn


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("show", "{path}", "zz"), 1, "no run 'zz'; there are 2 runs in it"),
        (("show", "{path}", "a"), 2, "'a' fits 2 runs: aa-1, ab-2"),
        (("show", "{nowhere}"), 1, "No such file or directory"),
        (("show", "{directory}"), 1, "Is a directory"),
        (("show", "{empty}"), 1, "no runs in it"),
        (("show",), 2, "Missing argument"),
        (("bogus",), 2, "No such command"),
        (("show", "{path}", "--bogus"), 2, "No such option"),
        (("show", "{path}", "--svg", "{directory}"), 1, "Is a directory"),
    ],
)
def test_every_error_is_one_line_with_its_code(cli, path, tmp_path, arguments, code, message):
    names = {
        "path": path,
        "nowhere": tmp_path / "nowhere",
        "directory": tmp_path,
        "empty": write(tmp_path / "empty.jsonl"),
    }
    left, _, err = cli(*(argument.format(**names) for argument in arguments))
    assert left == code
    assert err.startswith("loopspan: ")
    assert message in err
    assert err.count("\n") == 1


def test_what_is_no_export_is_said_before_the_command_fails(cli, tmp_path):
    code, out, err = cli("show", write(tmp_path / "notes.txt", "hello\n"))
    assert (code, err.count("\n")) == (1, 1)
    assert "note: line 1 cannot be read" in out


def test_version_and_help_say_what_there_is(cli):
    assert cli("--version") == (0, f"loopspan {loopspan.__version__}\n", "")
    code, out, _ = cli("show", "--help")
    assert code == 0
    assert "Exit codes: 0 fine, 1 nothing found or unreadable, 2 wrong usage." in " ".join(out.split())


def test_without_a_command_the_help_is_printed(cli):
    code, out, _ = cli()
    assert code == 2
    assert "Commands:" in out


def test_names_that_look_like_markup_stay_as_they_are(cli, tmp_path):
    run = Written(agent="[red]x[/red]").started().closed()
    picture = tmp_path / "tree.svg"
    code, out, _ = cli("show", write(tmp_path / "spans.jsonl", run.line()), "--svg", picture)
    assert code == 0
    assert "[red]x[/red]" in out
    assert "[red]x[/red]" in picture.read_text("utf-8")


def test_a_terminal_without_the_characters_gets_others(path):
    left = process("show", str(path), PYTHONIOENCODING="ascii")
    assert (left.returncode, left.stderr) == (0, "")
    assert "invoke_agent build-watch" in left.stdout


def test_rich_is_not_imported_where_nothing_is_coloured(path):
    program = "import sys, loopspan.cli._app as a; a._code(['show', sys.argv[1]]); sys.exit('rich' in sys.modules)"
    source = str(Path(loopspan.__file__).parents[1])
    left = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        check=False,
    )
    assert left.returncode == 0


def test_a_reader_that_leaves_early_ends_it_quietly(path):
    source = str(Path(loopspan.__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "show", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": source},
    ) as left:
        left.stdout.close()
        assert left.stderr.read() == b""
        assert left.wait() == 1


# the demo


def test_the_demo_runs_a_loop_and_shows_what_its_file_says(tmp_path):
    path = tmp_path / "demo.jsonl"
    left = process("demo", "--file", str(path))
    assert (left.returncode, left.stderr) == (0, "")
    rows = left.stdout.splitlines()
    assert rows[0].startswith("invoke_agent build-watch  closed success  4 steps")
    assert "simulated" in rows[0]
    assert any("attempt 1  failed" in row and "ConnectionError" in row for row in rows)
    assert any("validate  rejected  validation_error  not JSON" in row for row in rows)
    assert rows[-1].startswith(f"The spans are in {path}: loopspan show {path} ")
    again = process(*rows[-1].partition(": loopspan ")[2].split())
    assert again.stdout.splitlines() == rows[:-2]


def test_the_demo_has_a_json_form():
    left = process("demo", "--json")
    form = json.loads(left.stdout)
    (run,) = form["runs"]
    assert (run["stop_reason"], run["usage"]["input_tokens"], form["problems"]) == ("success", 720, [])
    assert [call["outcome"] for step in run["steps"] for call in step["tool_calls"]] == ["ok", "rejected", "ok"]
    assert [call["entries"] for step in run["steps"] for call in step["tool_calls"]] == [2, 0, 1]


def test_the_demo_shows_its_own_run_of_a_file_that_has_others(path):
    left = process("demo", "--file", str(path))
    assert left.stdout.count("invoke_agent") == 1
    assert len(loopspan.read_runlog(path).runs) == 3


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    left = process("demo", "--file", str(tmp_path))
    assert left.returncode == 1
    assert str(tmp_path) in left.stderr
    assert "Traceback" not in left.stderr


def test_ids_in_notes_and_errors_move_no_cursor(cli, tmp_path):
    lines = [Written(run_id, trace=place).started().line() for place, run_id in enumerate(("\x1b[2Ja", "\x1b[2Jb"), 1)]
    hostile = Written("\x1b[2Jc", trace=3).started().step(1).line(without=("root",))
    path = write(tmp_path / "spans.jsonl", *lines, hostile)
    code, _, err = cli("show", path, "\x1b[2J")
    assert (code, "\x1b" in err) == (2, False)
    assert "\x1b" not in cli("show", path)[1]
