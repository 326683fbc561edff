"""The program's frame: dispatch, exit codes, and what is said when something goes wrong.

The commands used here are made up on the spot, so that these tests hold whatever the real ones do.
"""

from __future__ import annotations

import argparse
import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from unisono import __version__
from unisono.cli.commands import BY_NAME, COMMANDS, Command
from unisono.cli.main import main
from unisono.engine.model.errors import InvalidManifest, UnisonoError
from unisono.runtime.engine_build import engine_kind

Run = Callable[[argparse.Namespace], int]


@pytest.fixture
def commands() -> Iterator[Callable[[Run], tuple[Command, ...]]]:
    """Offer a table of two commands, `greet` with the given behaviour and `count`."""
    registered: list[str] = []

    def table(run: Run) -> tuple[Command, ...]:
        made = []
        for name in ("greet", "count"):
            module = _FakeCommand(f"tests.cli.fake_{name}", run)
            sys.modules[module.__name__] = module
            registered.append(module.__name__)
            made.append(Command(name, module.__name__, f"{name} a person"))
        return tuple(made)

    yield table
    for name in registered:
        sys.modules.pop(name, None)


class _FakeCommand(ModuleType):
    """A command module with `parser` and `run`, as `cli/decide.py` has."""

    def __init__(self, name: str, run: Run) -> None:
        super().__init__(name)
        self.run = run

    def parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(prog="something else", description="Greet a person.")
        parser.add_argument("-f", "--file", action="append", default=[])
        parser.add_argument("name", nargs="?", default="world")
        return parser


Table = Callable[[Run], tuple[Command, ...]]


def _raise(error: BaseException) -> Run:
    def run(arguments: argparse.Namespace) -> int:
        raise error

    return run


def _program(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "unisono", *arguments]


class TestDispatch:
    def test_a_command_gets_its_arguments_options_first(self, commands: Table) -> None:
        seen: list[argparse.Namespace] = []

        def run(arguments: argparse.Namespace) -> int:
            seen.append(arguments)
            return 0

        assert main(["greet", "-f", "a.yaml", "ada", "-f", "-"], commands(run)) == 0
        assert seen == [argparse.Namespace(file=["a.yaml", "-"], name="ada")]

    @pytest.mark.parametrize("code", [0, 1, 2, 3])
    def test_the_exit_code_is_the_commands(self, commands: Table, code: int) -> None:
        assert main(["greet"], commands(lambda _: code)) == code

    def test_only_the_chosen_commands_module_is_imported(self) -> None:
        absent = Command("absent", "tests.cli.there_is_no_such_module", "never imported")
        assert main([], (absent,)) == 0
        with pytest.raises(ModuleNotFoundError):
            main(["absent"], (absent,))

    def test_usage_names_the_command_as_typed(
        self, commands: Table, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit) as ended:
            main(["greet", "--wrong"], commands(lambda _: 0))
        assert ended.value.code == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert "unisono greet: error: unrecognized arguments: --wrong" in err

    def test_real_commands_have_distinct_names_and_one_line_of_help(self) -> None:
        names = [command.name for command in COMMANDS]
        assert len(set(names)) == len(names)
        for command in COMMANDS:
            own = f"unisono.cli.{command.name}"
            assert command.module in (BY_NAME, own, f"{own}.command")
            assert command.help
            assert "\n" not in command.help
            assert len(f"  {command.name}  {command.help}") <= 100


class TestHelp:
    @pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
    def test_it_lists_commands_and_ends_with_examples(
        self, commands: Table, capsys: pytest.CaptureFixture[str], arguments: list[str]
    ) -> None:
        table = commands(lambda _: 0)
        try:
            code: object = main(arguments, table)
        except SystemExit as ended:
            code = ended.code
        assert code == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert "  greet  greet a person\n  count  count a person\n" in out
        assert out.index("examples:") > out.index("greet a person")

    def test_version(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as ended:
            main(["--version"])
        assert ended.value.code == 0
        assert capsys.readouterr().out == f"unisono {__version__} (engine: {engine_kind()})\n"

    def test_an_unknown_option_is_wrong_input(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as ended:
            main(["--nonsense"])
        assert ended.value.code == 2
        assert capsys.readouterr().out == ""

    def test_python_dash_m_is_the_same_program(self) -> None:
        done = subprocess.run(_program("--version"), capture_output=True, text=True, check=True)
        assert done.stdout == f"unisono {__version__} (engine: {engine_kind()})\n"


class TestUnknownCommand:
    def test_the_nearest_is_suggested(
        self, commands: Table, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["gret"], commands(lambda _: 0)) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err == "unisono: there is no command 'gret'; did you mean 'greet'?\n"

    def test_without_a_near_one_the_list_is_pointed_at(
        self, commands: Table, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["zzz"], commands(lambda _: 0)) == 2
        assert "`unisono --help` lists the commands" in capsys.readouterr().err


class TestErrors:
    @pytest.mark.parametrize(
        ("error", "code", "said"),
        [
            (
                InvalidManifest("spec.podSets[1].count", "is 0; a pod set needs at least one pod"),
                2,
                "spec.podSets[1].count: is 0; a pod set needs at least one pod",
            ),
            (UnisonoError("the API server is away"), 3, "the API server is away"),
            (
                FileNotFoundError(errno.ENOENT, "No such file or directory", "jobs.yaml"),
                2,
                "jobs.yaml: No such file or directory",
            ),
            (IsADirectoryError(errno.EISDIR, "Is a directory", "."), 2, ".: Is a directory"),
            (OSError(errno.ENOSPC, "No space left on device"), 3, "No space left on device"),
        ],
    )
    def test_it_is_one_line_and_an_exit_code(
        self,
        commands: Table,
        capsys: pytest.CaptureFixture[str],
        error: Exception,
        code: int,
        said: str,
    ) -> None:
        assert main(["greet"], commands(_raise(error))) == code
        out, err = capsys.readouterr()
        assert out == ""
        assert err == f"unisono: {said}\n"

    def test_several_problems_are_one_line_each(
        self, commands: Table, capsys: pytest.CaptureFixture[str]
    ) -> None:
        error = InvalidManifest("", "a.yaml: document 1: wrong\nb.yaml: document 2: also wrong")
        assert main(["greet"], commands(_raise(error))) == 2
        assert capsys.readouterr().err == (
            "unisono: a.yaml: document 1: wrong\nunisono: b.yaml: document 2: also wrong\n"
        )

    def test_trouble_without_words_still_says_something(
        self, commands: Table, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["greet"], commands(_raise(UnisonoError()))) == 3
        assert capsys.readouterr().err == "unisono: failed without a message\n"

    def test_an_interrupt_is_quiet(
        self, commands: Table, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["greet"], commands(_raise(KeyboardInterrupt()))) == 130
        assert capsys.readouterr() == ("", "")

    def test_a_bug_is_not_swallowed(self, commands: Table) -> None:
        with pytest.raises(AssertionError, match="the last transitions"):
            main(["greet"], commands(_raise(AssertionError("the last transitions"))))


class TestStdout:
    """What happens when the reader of stdout is gone, or never was."""

    def test_a_broken_pipe_inside_a_command_is_no_failure(
        self, commands: Table, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["greet"], commands(_raise(BrokenPipeError()))) == 0
        assert capsys.readouterr().err == ""

    @pytest.mark.parametrize("unbuffered", ["", "1"])
    def test_a_reader_that_left_causes_no_traceback(self, unbuffered: str) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        try:
            done = subprocess.run(
                _program("--help"),
                stdout=writer,
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
                check=False,
            )
        finally:
            os.close(writer)
        assert (done.returncode, done.stderr) == (0, b"")

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
    def test_a_full_disk_is_an_outside_failure(self) -> None:
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                _program(),
                stdout=full,
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONUNBUFFERED": ""},
                check=False,
            )
        assert (done.returncode, done.stderr) == (3, b"unisono: No space left on device\n")
