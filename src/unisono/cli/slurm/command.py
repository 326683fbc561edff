"""`unisono slurm VERB`: import a Slurm configuration, or bridge a Slurm that stays."""

from __future__ import annotations

import argparse
from types import ModuleType

from unisono.cli.help_format import HelpFormat
from unisono.cli.slurm import bridging, doctor, importing, installing, links, watching
from unisono.cli.verbs import add_verbs, run_verb

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
    add_verbs(made, VERBS)
    return made


def run(arguments: argparse.Namespace) -> int:
    """Do what the verb says."""
    return run_verb(arguments)
