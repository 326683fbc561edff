"""The commands of `unisono`: a table, and the help that lists them.

A command is a module with `parser() -> ArgumentParser` and `run(arguments) -> int`. Modules are
imported only when their command is called, so that `unisono --help` stays quick however much the
program learns.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from unisono import __version__
from unisono.cli.slurm_programs.names import PROGRAMS
from unisono.runtime.engine_build import engine_kind

if TYPE_CHECKING:
    import argparse


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


# Slurm's programs: they read their arguments themselves, and end as they do there.
BY_NAME = "unisono.cli.slurm_programs.dispatch"


COMMANDS = (
    Command("up", "unisono.cli.up", "run a cluster of your own on this machine, for kubectl"),
    Command("down", "unisono.cli.down", "stop it"),
    Command("status", "unisono.cli.status", "say whether it runs, and where"),
    Command("apply", "unisono.cli.apply", "make objects be as manifests say"),
    Command("get", "unisono.cli.get", "list objects, as a table, JSON or YAML"),
    Command("describe", "unisono.cli.describe", "tell all about an object, with its events"),
    Command("delete", "unisono.cli.delete", "delete objects"),
    Command("logs", "unisono.cli.logs", "print what the containers of a pod or a job wrote"),
    Command("why", "unisono.cli.why.command", "say why a job waits and what would change it"),
    Command("plan", "unisono.cli.plan.command", "list who waits, in turn, and when each starts"),
    Command("queues", "unisono.cli.queues", "list queues: who waits, who runs, what is used"),
    Command("workloads", "unisono.cli.workloads", "list what waits and runs, in queue order"),
    Command("nodes", "unisono.cli.nodes", "list nodes and what is used of them"),
    Command("top", "unisono.cli.top.command", "watch GPUs, queues, and who runs and waits"),
    Command("gpu", "unisono.cli.gpu", "list simulated GPUs; break one, and mend it"),
    Command("alerts", "unisono.cli.alerts", "list what somebody should look at now"),
    Command("report", "unisono.cli.report", "tell who used which GPUs, and at what price"),
    Command("monitor", "unisono.cli.monitor", "print rules and set-ups for Prometheus and Grafana"),
    Command(
        "decide",
        "unisono.cli.decide.command",
        "say what would be admitted, evicted and left waiting",
    ),
    Command("replay", "unisono.cli.replay", "make recorded decisions again, and tell one of them"),
    Command("sim", "unisono.cli.sim.command", "replay traces in virtual time, compare policies"),
    Command("fix", "unisono.cli.fix.command", "rewrite manifests into today's spelling"),
    Command("crds", "unisono.cli.crds", "print our kinds as CustomResourceDefinitions"),
    Command("controller", "unisono.cli.controller", "run our controllers on a real cluster"),
    Command("install", "unisono.cli.install.command", "install them there; or print, or check"),
    Command("slurm", "unisono.cli.slurm.command", "take over a Slurm, or work beside one"),
    *(Command(name, BY_NAME, help_) for name, help_ in PROGRAMS.items()),
    Command("demo", "unisono.cli.demo.command", "tell stories on a cluster of their own"),
    Command("completion", "unisono.cli.completion.command", "print completions for a shell"),
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


def module_of(command: Command) -> CommandModule:
    """Import the module behind a command."""
    return cast(CommandModule, importlib.import_module(command.module))


def top_level_parser(commands: Sequence[Command]) -> argparse.ArgumentParser:
    """Describe the program as a whole."""
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
        version=f"unisono {__version__} (engine: {engine_kind()})",
        help="print the version, and whether the engine is compiled, and exit",
    )
    return parser
