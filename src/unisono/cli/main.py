"""The program `unisono`: find the command, run it, turn the outcome into an exit code.

| code | meaning                                                         |
| ---- | --------------------------------------------------------------- |
| 0    | done                                                            |
| 1    | the answer is no, and the output says why                       |
| 2    | the input is wrong: usage, a manifest, a path that is not there |
| 3    | something outside failed: an API, a disk, a process             |
| 130  | interrupted from the keyboard                                   |

A command is a module with `parser() -> ArgumentParser` and `run(arguments) -> int`. Modules are
imported only when their command is called, so that `unisono --help` stays quick however much the
program learns. This is the only place that maps exceptions to exit codes.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from unisono import __version__
from unisono.cli.errors import AnswerIsNo
from unisono.engine.model.errors import InvalidManifest, UnisonoError

if TYPE_CHECKING:  # programs that scripts call often do without it
    import argparse

DONE = 0
ANSWER_IS_NO = 1
INPUT_IS_WRONG = 2
OUTSIDE_FAILED = 3
INTERRUPTED = 130  # 128 + SIGINT, as shells count


class Command(NamedTuple):
    """A command by name, the module behind it, and its line in the help."""

    name: str
    module: str
    help: str


class CommandModule(Protocol):
    """What the module of a command offers."""

    def parser(self) -> argparse.ArgumentParser:
        """Describe the command's arguments."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Do it and return an exit code."""


class ProgramModule(Protocol):
    """What the module of another system's programs offers."""

    def call(self, name: str, arguments: Sequence[str]) -> int:
        """Do what the program of that name does."""


# Slurm's programs: they read their arguments themselves, and end as they do there.
PROGRAMS = "unisono.cli.programs"


COMMANDS = (
    Command("up", "unisono.cli.up", "run a cluster of your own on this machine, for kubectl"),
    Command("down", "unisono.cli.down", "stop it"),
    Command("status", "unisono.cli.status", "say whether it runs, and where"),
    Command("apply", "unisono.cli.apply", "make objects be as manifests say"),
    Command("get", "unisono.cli.get", "list objects, as a table, JSON or YAML"),
    Command("describe", "unisono.cli.describe", "tell all about an object, with its events"),
    Command("delete", "unisono.cli.delete", "delete objects"),
    Command("logs", "unisono.cli.logs", "print what the containers of a pod or a job wrote"),
    Command("why", "unisono.cli.why", "say why a job waits and what would change it"),
    Command("plan", "unisono.cli.plan", "list who waits, in turn, and when each starts"),
    Command("queues", "unisono.cli.queues", "list queues: who waits, who runs, what is used"),
    Command("workloads", "unisono.cli.workloads", "list what waits and runs, in queue order"),
    Command("nodes", "unisono.cli.nodes", "list nodes and what is used of them"),
    Command("top", "unisono.cli.top", "watch GPUs, queues, and who runs and waits"),
    Command("gpu", "unisono.cli.gpu", "list simulated GPUs; break one, and mend it"),
    Command("alerts", "unisono.cli.alerts", "list what somebody should look at now"),
    Command("report", "unisono.cli.report", "tell who used which GPUs, and at what price"),
    Command("monitor", "unisono.cli.monitor", "print rules and set-ups for Prometheus and Grafana"),
    Command("decide", "unisono.cli.decide", "say what would be admitted, evicted and left waiting"),
    Command("replay", "unisono.cli.replay", "make recorded decisions again, and tell one of them"),
    Command("sim", "unisono.cli.sim", "replay traces in virtual time, compare policies"),
    Command("fix", "unisono.cli.fix", "rewrite manifests into today's spelling"),
    Command("crds", "unisono.cli.crds", "print our kinds as CustomResourceDefinitions"),
    Command("controller", "unisono.cli.controller", "run our controllers on a real cluster"),
    Command("install", "unisono.cli.install", "install them there; or print, or check"),
    Command("slurm", "unisono.cli.slurm", "take over a Slurm, or work beside one"),
    Command("sbatch", PROGRAMS, "submit a batch script, as Slurm does"),
    Command("squeue", PROGRAMS, "list jobs of Slurm that wait or run"),
    Command("scancel", PROGRAMS, "stop jobs of Slurm"),
    Command("sinfo", PROGRAMS, "list partitions and the states of their nodes"),
    Command("sprio", PROGRAMS, "list the priorities of waiting jobs, part by part"),
    Command("sshare", PROGRAMS, "list accounts and users, their shares and what they used"),
    Command("sacct", PROGRAMS, "list jobs of Slurm that ran"),
    Command("sdiag", PROGRAMS, "say how scheduling goes, as Slurm does"),
    Command("sreport", PROGRAMS, "say who used how much of the cluster"),
    Command("scontrol", PROGRAMS, "show, hold, release, requeue and change jobs of Slurm"),
    Command("demo", "unisono.cli.demo", "tell stories on a cluster of their own"),
    Command("completion", "unisono.cli.completion", "print completions for a shell"),
)

EXAMPLES = """\
examples:
  unisono up --nodes 2xg6e.48xlarge
  unisono apply -f jobs.yaml
  unisono get pods,jobs -A
  unisono why trainjob/t5-large
  unisono top
  unisono decide -f cluster.yaml -f jobs.yaml
  unisono decide -f cluster.yaml --until-stable -o json
  unisono demo
"""


def main(argv: Sequence[str] | None = None, commands: Sequence[Command] = COMMANDS) -> int:
    """Run the program with these arguments (those of the process by default)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(arguments, commands)
    except BrokenPipeError:
        return DONE  # the reader has seen enough (`| head`); that is no failure of ours
    except KeyboardInterrupt:
        return INTERRUPTED
    except InvalidManifest as trouble:
        return _complain(str(trouble), code=INPUT_IS_WRONG)
    except AnswerIsNo as trouble:
        return _complain(str(trouble), code=ANSWER_IS_NO)
    except UnisonoError as trouble:
        return _complain(str(trouble), code=OUTSIDE_FAILED)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as trouble:
        return _complain(_sentence(trouble), code=INPUT_IS_WRONG)
    except OSError as trouble:
        return _complain(_sentence(trouble), code=OUTSIDE_FAILED)


def _run(arguments: list[str], commands: Sequence[Command]) -> int:
    try:
        return _dispatch(arguments, commands)
    finally:
        # Here and not at interpreter exit, where nobody could catch a broken pipe or a full disk.
        _flush_stdout()


def _dispatch(arguments: list[str], commands: Sequence[Command]) -> int:
    if not arguments or arguments[0].startswith("-"):
        # argparse ends the program for --help, --version and whatever it does not know.
        parser = _top_level_parser(commands)
        parser.parse_args(arguments)
        parser.print_help()
        return DONE
    name, *rest = arguments
    command = next((known for known in commands if known.name == name), None)
    if command is None:
        return _complain(_unknown(name, commands), code=INPUT_IS_WRONG)
    found = importlib.import_module(command.module)
    if command.module == PROGRAMS:
        return cast(ProgramModule, found).call(name, rest)
    module = cast(CommandModule, found)
    parser = module.parser()
    # Whatever the module calls itself, usage lines show what the user typed.
    parser.prog = f"unisono {name}"
    return module.run(parser.parse_args(rest))


def _top_level_parser(commands: Sequence[Command]) -> argparse.ArgumentParser:
    import argparse

    width = max((len(command.name) for command in commands), default=0)
    lines = [f"  {command.name:<{width}}  {command.help}" for command in commands]
    parser = argparse.ArgumentParser(
        prog="unisono",
        usage="unisono [--help] [--version] COMMAND [ARGUMENT...]",
        description="One scheduler for shared GPU training clusters.\n\ncommands:\n"
        + "\n".join(lines),
        epilog=EXAMPLES + "\n`unisono COMMAND --help` says more about a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"unisono {__version__}",
        help="print the version and exit",
    )
    return parser


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


def _sentence(trouble: OSError) -> str:
    reason = trouble.strerror or str(trouble) or type(trouble).__name__
    return f"{trouble.filename}: {reason}" if trouble.filename is not None else reason


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
