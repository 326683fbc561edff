"""Every command explains itself with examples that it would accept; shells know them all."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from unisono.cli.completion import Entry, bash, fish, surface, zsh
from unisono.cli.main import main
from unisono.cli.tables import is_colourful, paint_answer, paint_table
from unisono.kinds.overriding import override


@cache
def entries() -> tuple[Entry, ...]:
    return tuple(surface())


def name(entry: Entry) -> str:
    return " ".join(entry.path)


def help_of(entry: Entry) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        main([*entry.path, "--help"])
    return said.getvalue()


@pytest.mark.parametrize("entry", entries(), ids=name)
def test_help_has_examples(entry: Entry) -> None:
    shown = help_of(entry)
    lines = re.findall(r"^  (?:export.*; )?unisono (.+)$", shown.partition("examples:")[2], re.M)
    assert lines or name(entry) == "completion", "the help has no examples"
    for line in lines:
        words = shlex.split(re.split(r"  +|\s+(?:\||>|&&|<)\s*", line)[0])
        called = next(one for one in entries() if one.path == (words[0],))
        if called.parser is not None:
            called.parser.parse_args(words[1:])  # ends the program if it is not understood


def test_options_say_what_they_are_for() -> None:
    silent = {
        f"{name(entry)} {option.names[-1]}"
        for entry in entries()
        for option in entry.options
        if not option.help
    }
    assert silent == set()


# ---- shells --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["wo"], ["workloads"]),
        (["queues", "-o", ""], ["table", "wide", "json", "yaml"]),
        (["sim", "tr"], ["trace"]),
        (["sim", "run", "--pol"], ["--policy"]),
        (["completion", "f"], ["fish"]),
        (["apply", "-f", "x"], []),
        (["why", "trainj"], ["trainjob/"]),
        (["why", "job/x"], []),  # no API answers, and there is no complaint
    ],
)
def test_bash_offers_what_fits(typed: list[str], offered: list[str], tmp_path: Path) -> None:
    script = tmp_path / "unisono.bash"
    script.write_text(bash(entries()))
    words = " ".join(shlex.quote(word) for word in ["unisono", *typed])
    asks = f"COMP_WORDS=({words}); COMP_CWORD={len(typed)}; _unisono; echo ${{COMPREPLY[*]}}"
    done = subprocess.run(
        ["bash", "-c", f"source {script}; {asks}"],
        capture_output=True,
        text=True,
        check=True,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "UNISONO_DATA_DIR": str(tmp_path),
        },
    )
    assert done.stdout.split() == offered
    assert done.stderr == ""


@pytest.mark.parametrize(("shell", "write"), [("zsh", zsh), ("fish", fish)])
def test_other_shells_know_every_command(shell: str, write: object, tmp_path: Path) -> None:
    script = (zsh if write is zsh else fish)(entries())
    for entry in entries():
        assert entry.path[-1] in script
    assert script.count("'") % 2 == 0
    if shutil.which(shell):
        path = tmp_path / "script"
        path.write_text(script)
        subprocess.run([shell, "-n", str(path)], check=True)


# ---- colours -------------------------------------------------------------------------------------


class _Terminal(io.StringIO):
    @override
    def isatty(self) -> bool:
        return True


def test_colours_are_for_terminals_that_want_them() -> None:
    assert is_colourful(_Terminal(), {"TERM": "xterm"})
    assert not is_colourful(_Terminal(), {"NO_COLOR": "1"})
    assert not is_colourful(_Terminal(), {"TERM": "dumb"})
    assert not is_colourful(io.StringIO(), {})


def test_colours_change_no_words() -> None:
    table = "NAME   STATE\njob/a  running\njob/running-b  waiting"
    painted = paint_table(table, on=True)
    assert re.sub(r"\x1b\[[0-9]*m", "", painted) == table
    assert painted.count("\x1b[32m") == 1, "a name is no state"
    assert paint_table(table, on=False) == table
    assert paint_answer("Job a waits.\n\nwhy:\n  - no", on=True).count("\x1b[1m") == 2


# ---- how it looks --------------------------------------------------------------------------------

_MANY = 10


@pytest.mark.parametrize("entry", [one for one in entries() if one.parser is not None], ids=name)
def test_long_help_is_grouped_and_fits(entry: Entry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    text = help_of(entry)
    usage, _, rest = text.partition("\n\n")
    assert len(usage.splitlines()) <= 2
    assert max(map(len, text.splitlines())) <= 100
    groups = re.split(r"^[\w ,]+:$", rest, flags=re.MULTILINE)
    most = max(len(re.findall(r"^  --?\w", group, re.MULTILINE)) for group in groups)
    assert most <= _MANY, "put options that belong together into groups"
    after = rest.partition("\nexamples:\n")[2]
    assert not re.search(r"^  --?\w", after, re.MULTILINE), "examples come last"


def test_the_help_of_a_narrow_terminal_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    (up,) = (one for one in entries() if one.path == ("up",))
    options = help_of(up).partition("examples:")[0]
    assert max(map(len, options.splitlines())) <= 70


def test_every_command_stands_in_the_help_once() -> None:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        main(["--help"])
    listed = re.findall(r"^  ([a-z]+)  +\S", said.getvalue().partition("examples:")[0], re.M)
    assert sorted(listed) == sorted({one.path[0] for one in entries()})
