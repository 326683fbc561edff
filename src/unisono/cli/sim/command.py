"""`unisono sim VERB`: what a cluster would do, in virtual time.

replay     `sim run`: traces through the engine, under one or several policies
compare    `sim compare`: policies of one's own, over several seeds
what_if    `sim what-if`: what would become of a job on the running cluster, read as manifests
trace      `sim trace`: what a trace holds, and traces to files
show       `sim show`: saved outcomes as a table, as JSON, or as a page
inputs     which trace, nodes and policies; machines that a simulation may buy
usage      a ledger of the run, for `unisono report`
"""

from __future__ import annotations

import argparse
from typing import Any

from unisono.cli.help_format import HelpFormat
from unisono.cli.sim import compare, replay, show, trace, what_if
from unisono.cli.verbs import add_verbs, run_verb
from unisono.kinds.overriding import override

VERBS = (replay, compare, what_if, trace, show)

EPILOG = """\
examples:
  unisono sim --trace KTH-SP2.swf.gz --policy fifo,easy,conservative --html out.html
  unisono sim compare now.yaml proposed.yaml --trace may.jsonl --nodes nodes.yaml
  unisono sim what-if -f job.yaml
  unisono sim trace KTH-SP2.swf.gz
  unisono sim trace gpu:jobs=10000,load=0.9 --cluster 1000x{gpu=8}
  unisono sim trace jobs.csv --map submit=submit_time,run=duration,gpus=gpu_request
  unisono sim show fifo.npz easy.npz --html comparison.html

`unisono sim VERB --help` says more about a verb.
"""


class _Parser(argparse.ArgumentParser):
    """Takes options without a verb for those of `run`."""

    @override
    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        given = list(args or ())
        if given and given[0].startswith("--") and given[0] not in ("--help", "--version"):
            given.insert(0, replay.NAME)
        return super().parse_args(given, namespace)


def parser() -> argparse.ArgumentParser:
    """Describe the arguments of every verb."""
    made = _Parser(
        prog="unisono sim",
        description="Replay workloads in virtual time and compare what policies make of them.",
        epilog=EPILOG,
        formatter_class=HelpFormat,
    )
    add_verbs(made, VERBS)
    return made


def run(arguments: argparse.Namespace) -> int:
    """Do what the verb says."""
    return run_verb(arguments)
