"""`unisono sim compare`: policies of your own against each other, and whether it was luck."""

from __future__ import annotations

import argparse

from unisono.cli.sim.inputs import POLICY_WORDS, TRACES, policies_of
from unisono.cli.sim.replay import add_replaying, replay

NAME = "compare"
HELP = "compare policies of your own, over several seeds"
SEEDS = 5
DESCRIPTION = f"""\
Replay the same traces under several policies, and say which differences are more than luck: with
every generated trace drawn {SEEDS} times, or every arrival of a recorded one moved by up to 30 s.

{POLICY_WORDS}
{TRACES}
examples:
  unisono sim compare now.yaml proposed.yaml --trace may.jsonl --nodes nodes.yaml
  unisono sim compare easy mine.yaml --trace KTH-SP2.swf.gz --seeds 20 --html out.html"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument(
        "policies",
        metavar="POLICY",
        nargs="+",
        help="names or files; the first is what the others are compared with",
    )
    add_replaying(parser, seeds=SEEDS)


def run(arguments: argparse.Namespace) -> int:
    """Replay and compare."""
    return replay(policies_of(arguments.policies), arguments)
