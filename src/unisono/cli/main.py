"""The program `unisono`: find the command, run it, turn the outcome into an exit code.

| code | meaning                                                         |
| ---- | --------------------------------------------------------------- |
| 0    | done                                                            |
| 1    | the answer is no, and the output says why                       |
| 2    | the input is wrong: usage, a manifest, a path that is not there |
| 3    | something outside failed: an API, a disk, a process             |
| 130  | interrupted from the keyboard                                   |

Commands are in the table of `commands`; Slurm's programs are found before it is loaded. This is the
only place that maps exceptions to exit codes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from unisono.cli.slurm_programs import PROGRAMS
from unisono.engine.model.errors import InvalidManifest, UnisonoError
from unisono.runtime import AnswerIsNo

TYPE_CHECKING = False  # as in `typing`, which programs that scripts call often do without
if TYPE_CHECKING:
    from unisono.cli.commands import Command

DONE = 0
ANSWER_IS_NO = 1
INPUT_IS_WRONG = 2
OUTSIDE_FAILED = 3
INTERRUPTED = 130  # 128 + SIGINT, as shells count


def main(argv: Sequence[str] | None = None, commands: Sequence[Command] | None = None) -> int:
    """Run the program with these arguments (by default those of the process, and all commands)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        try:
            return _run(arguments, commands)
        except BaseExceptionGroup as several:
            raise _first(several) from None  # the others ended because of it
    except BrokenPipeError:
        return DONE  # the reader has seen enough (`| head`); that is no failure of ours
    except KeyboardInterrupt:
        return INTERRUPTED
    except InvalidManifest as error:
        return _complain(str(error), code=INPUT_IS_WRONG)
    except AnswerIsNo as error:
        return _complain(str(error), code=ANSWER_IS_NO)
    except UnisonoError as error:
        return _complain(str(error), code=OUTSIDE_FAILED)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
        return _complain(_sentence(error), code=INPUT_IS_WRONG)
    except OSError as error:
        return _complain(_sentence(error), code=OUTSIDE_FAILED)


def _first(several: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return what went wrong first, of tasks that worked together."""
    first: BaseException = several
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first


def _run(arguments: list[str], commands: Sequence[Command] | None) -> int:
    try:
        return _dispatch(arguments, commands)
    finally:
        # Here and not at interpreter exit, where a broken pipe or a full disk cannot be caught.
        _flush_stdout()


def _dispatch(arguments: list[str], commands: Sequence[Command] | None) -> int:
    if commands is None and arguments and arguments[0] in PROGRAMS:
        from unisono.cli.slurm_programs.dispatch import call

        return call(arguments[0], arguments[1:])
    from unisono.cli.commands import COMMANDS, module_of, top_level_parser

    known = COMMANDS if commands is None else commands
    if not arguments or arguments[0].startswith("-"):
        # argparse ends the program for --help, --version and whatever it does not know.
        parser = top_level_parser(known)
        parser.parse_args(arguments)
        parser.print_help()
        return DONE
    name, *rest = arguments
    command = next((one for one in known if one.name == name), None)
    if command is None:
        return _complain(_unknown(name, known), code=INPUT_IS_WRONG)
    module = module_of(command)
    parser = module.parser()
    # Whatever the module calls itself, usage lines show what the user typed.
    parser.prog = f"unisono {name}"
    return module.run(parser.parse_args(rest))


def _unknown(name: str, commands: Sequence[Command]) -> str:
    """Say that there is no such command, and which one may have been meant."""
    import difflib

    near = difflib.get_close_matches(name, [command.name for command in commands], n=1)
    hint = f"did you mean {near[0]!r}?" if near else "`unisono --help` lists the commands"
    return f"there is no command {name!r}; {hint}"


def _complain(message: str, *, code: int) -> int:
    """Write every line of a message to stderr with our name before it; return the exit code."""
    for line in message.splitlines() or ["failed without a message"]:
        print(f"unisono: {line}", file=sys.stderr)
    return code


def _sentence(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {reason}" if error.filename is not None else reason


def _flush_stdout() -> None:
    if sys.stdout is None:  # started with stdout closed
        return
    try:
        sys.stdout.flush()
    except OSError:
        # What could not be written stays in the buffer, and the interpreter's own last flush would
        # fail on it with a traceback. From here on it goes nowhere.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        raise
