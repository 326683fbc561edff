"""`unisono slurm VERB`: import a Slurm configuration, or bridge a Slurm that stays."""

from __future__ import annotations

import argparse
from types import ModuleType

from unisono.cli.help_format import HelpFormat, described, examples_of
from unisono.cli.slurm import bridging, doctor, importing, installing, links, watching

# Modules with NAME, HELP, DESCRIPTION, add_arguments and run.
VERBS: tuple[ModuleType, ...] = (importing, links, bridging, installing, doctor, watching)

EPILOG = """\
examples:
  unisono slurm import slurm.conf --assoc hpc.cfg --qos qos.txt > hpc.yaml
  unisono decide -f hpc.yaml -f jobs.yaml
  unisono slurm install && unisono slurm bridge
  unisono slurm doctor --fix

`unisono slurm VERB --help` says more about a verb.
"""


def parser() -> argparse.ArgumentParser:
    """Describe the arguments of every verb."""
    made = argparse.ArgumentParser(
        prog="unisono slurm",
        description="Take over a Slurm's configuration, or work beside one.",
        epilog=EPILOG,
        formatter_class=HelpFormat,
    )
    verbs = made.add_subparsers(dest="verb", required=True, metavar="VERB", title="verbs")
    for verb in VERBS:
        one = verbs.add_parser(
            verb.NAME,
            help=verb.HELP,
            description=described(verb.DESCRIPTION),
            epilog=examples_of(verb.DESCRIPTION),
            formatter_class=HelpFormat,
        )
        verb.add_arguments(one)
        one.set_defaults(work=verb.run)
    return made


def run(arguments: argparse.Namespace) -> int:
    """Do what the verb says."""
    code: int = arguments.work(arguments)
    return code
