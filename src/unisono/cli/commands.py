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
from unisono.cli.slurm_programs import PROGRAMS
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
    Command("down", "unisono.cli.down", "stop the embedded cluster"),
    Command("status", "unisono.cli.status", "say whether the embedded cluster runs, and where"),
    Command("apply", "unisono.cli.apply", "create or update objects as manifests say"),
    Command("get", "unisono.cli.get", "list objects, as a table, JSON or YAML"),
    Command("describe", "unisono.cli.describe", "show all about an object, with its events"),
    Command("delete", "unisono.cli.delete", "delete objects"),
    Command("logs", "unisono.cli.logs", "print what the containers of a pod or a job wrote"),
    Command("why", "unisono.cli.why.command", "say why a job waits and what would change it"),
    Command("plan", "unisono.cli.plan.command", "list pending workloads, and when each starts"),
    Command("queues", "unisono.cli.queues", "list queues: pending, running, quota in use"),
    Command("workloads", "unisono.cli.workloads", "list running and pending workloads, in order"),
    Command("nodes", "unisono.cli.nodes", "list nodes and how much of them is requested"),
    Command("top", "unisono.cli.top.command", "watch GPUs, queues and workloads on one screen"),
    Command("gpu", "unisono.cli.gpu", "list simulated GPUs; break and repair them"),
    Command("alerts", "unisono.cli.alerts", "list firing alerts of the embedded cluster"),
    Command("report", "unisono.cli.report", "report GPU usage by team, user and job, with costs"),
    Command(
        "monitor", "unisono.cli.monitor", "print rules and dashboards for Prometheus and Grafana"
    ),
    Command(
        "decide",
        "unisono.cli.decide",
        "say what would be admitted, evicted and left waiting",
    ),
    Command("replay", "unisono.cli.replay", "repeat recorded decisions, and explain one of them"),
    Command("sim", "unisono.cli.sim.command", "replay traces in virtual time, compare policies"),
    Command("fix", "unisono.cli.fix", "rewrite manifests into their current API versions"),
    Command("crds", "unisono.cli.crds", "print our kinds as CustomResourceDefinitions"),
    Command("controller", "unisono.cli.controller", "run our controllers on a real cluster"),
    Command(
        "install",
        "unisono.cli.install.command",
        "install the controllers there; or print, or check",
    ),
    Command(
        "slurm", "unisono.cli.slurm.command", "import a Slurm configuration, or work beside Slurm"
    ),
    *(Command(name, BY_NAME, help_) for name, help_ in PROGRAMS.items()),
    Command("demo", "unisono.cli.demo.command", "run guided stories on throw-away clusters"),
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


def module_of(command: Command) -> CommandModule:
    """Import the module behind a command."""
    return cast(CommandModule, importlib.import_module(command.module))


# The commands of the help by what they are for; others follow under the last heading.
_GROUPS = {
    "a cluster on this machine": ("up", "down", "status", "demo"),
    "jobs, queues and nodes": ("why", "plan", "queues", "workloads", "nodes", "top"),
    "objects, as with kubectl": ("apply", "get", "describe", "delete", "logs"),
    "GPUs, alerts and reports": ("gpu", "alerts", "report", "monitor"),
    "trying out policies": ("decide", "sim", "replay"),
    "a Kubernetes cluster": ("install", "controller", "crds", "fix"),
    "Slurm": ("slurm", *PROGRAMS),
    "more": (),
}


def _listed(commands: Sequence[Command]) -> str:
    """Return the commands with their help, group by group."""
    width = max((len(command.name) for command in commands), default=0)
    by_name = {command.name: command for command in commands}
    grouped = {name for names in _GROUPS.values() for name in names}
    blocks = []
    for title, names in _GROUPS.items():
        found = [by_name[name] for name in names if name in by_name]
        if title == "more":
            found = [command for command in commands if command.name not in grouped]
        if found:
            lines = [f"  {command.name:<{width}}  {command.help}" for command in found]
            blocks.append("\n".join([f"{title}:", *lines]))
    return "\n\n".join(blocks)


def top_level_parser(commands: Sequence[Command]) -> argparse.ArgumentParser:
    """Describe the program as a whole."""
    import argparse

    from unisono.cli.help_format import HelpFormat

    parser = argparse.ArgumentParser(
        prog="unisono",
        usage="unisono [--help] [--version] COMMAND [ARGUMENT...]",
        description="One scheduler for shared GPU training clusters.\n\n" + _listed(commands),
        epilog=EXAMPLES + "\n`unisono COMMAND --help` says more about a command.",
        formatter_class=HelpFormat,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"unisono {__version__} (engine: {engine_kind()})",
        help="print the version and whether the engine is compiled, and exit",
    )
    return parser
