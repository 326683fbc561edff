"""`unisono top`: GPUs, queues, running and pending workloads, on one screen that refreshes.

At a terminal it takes over the screen until q or Ctrl-C, and gives it back as it was; keys select a
row, whose whole reason is shown (`view`). In a pipe it prints one screen and ends.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from typing import TYPE_CHECKING

from unisono.cli.connection import access_of, asked, verb_parser
from unisono.cli.tables import WIDTH

if TYPE_CHECKING:
    from unisono.kube.client import Client

EXAMPLES = """\
examples:
  unisono top
  unisono top --every 5
  unisono top --once               one screen, as in a pipe
  unisono top | head -3
"""

_LEAST_SECONDS = 0.2
_PIPE_LINES = 60


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = verb_parser(
        "Watch GPUs, queues, running and pending workloads, and the reason of a selected one; "
        "? lists the keys, q quits.",
        EXAMPLES,
    )
    made.add_argument(
        "--every",
        type=_seconds,
        default=2.0,
        metavar="S",
        help="seconds between screens (default: 2)",
    )
    made.add_argument("--once", action="store_true", help="print one screen and exit")
    return made


def _seconds(text: str) -> float:
    found = float(text)
    if not found >= _LEAST_SECONDS:
        raise argparse.ArgumentTypeError(f"{text} is not at least {_LEAST_SECONDS}")
    return found


def run(arguments: argparse.Namespace) -> int:
    """Show it until told to stop."""
    is_live = sys.stdout.isatty() and sys.stdin.isatty() and not arguments.once
    if not is_live:
        return asked(arguments, _once)
    from unisono.cli.top.terminal import own_screen

    with own_screen():
        try:
            return asked(arguments, _live)
        except KeyboardInterrupt:
            return 0  # that is how one leaves


async def _once(client: Client, arguments: argparse.Namespace) -> int:
    from unisono.cli.filters import refuse_unknown_namespace
    from unisono.cli.tables import is_colourful
    from unisono.cli.top.frame import frame
    from unisono.cli.top.picture import read
    from unisono.runtime.clock import RealClock

    width = shutil.get_terminal_size((WIDTH, _PIPE_LINES)).columns if sys.stdout.isatty() else WIDTH
    await refuse_unknown_namespace(client, arguments.namespace)
    picture = await read(client, arguments.namespace, access_of(arguments).server)
    now = RealClock().now()
    print(frame(picture, now=now, width=width, height=_PIPE_LINES, colour=is_colourful()))
    return 0


async def _live(client: Client, arguments: argparse.Namespace) -> int:
    from unisono.cli.filters import refuse_unknown_namespace
    from unisono.cli.top.terminal import watch

    await refuse_unknown_namespace(client, arguments.namespace)
    await watch(client, arguments.namespace, access_of(arguments).server, every=arguments.every)
    return 0
