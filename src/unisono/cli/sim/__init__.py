"""`unisono sim VERB`: what a cluster would do, in virtual time.

trace      `sim trace`: what a trace holds, and traces to files
source     options that say which trace to take
cluster    where to simulate: shapes, inventories, manifests
"""

from __future__ import annotations

import argparse

from unisono.cli.sim import show, trace

VERBS = (trace, show)

EPILOG = """\
examples:
  unisono sim trace KTH-SP2.swf.gz
  unisono sim trace gpu:jobs=10000,load=0.9 --cluster 1000x{gpu=8}
  unisono sim trace jobs.csv --map submit=submit_time,run=duration,gpus=gpu_request
  unisono sim show fifo.npz easy.npz --html comparison.html

`unisono sim VERB --help` says more about a verb.
"""


def parser() -> argparse.ArgumentParser:
    """Describe the arguments of every verb."""
    made = argparse.ArgumentParser(
        prog="unisono sim",
        description="Replay workloads in virtual time and compare what policies make of them.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = made.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in VERBS:
        one = verbs.add_parser(
            verb.NAME,
            help=verb.HELP,
            description=verb.DESCRIPTION,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        verb.add_arguments(one)
        one.set_defaults(work=verb.run)
    return made


def run(arguments: argparse.Namespace) -> int:
    """Do what the verb says."""
    code: int = arguments.work(arguments)
    return code
