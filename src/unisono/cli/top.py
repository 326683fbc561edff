"""`unisono top`: GPUs, queues, running and pending workloads, on one screen that refreshes.

At a terminal it takes over the screen until q or Ctrl-C, and gives it back as it was. In a pipe it
prints one screen and ends.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from unisono.cli.connection import access_of, asked, verb_parser
from unisono.cli.tables import WIDTH

if TYPE_CHECKING:
    import asyncio

    from unisono.cli.top_frame import Picture
    from unisono.kube.client import Client

EXAMPLES = """\
examples:
  unisono top
  unisono top --every 5
  unisono top --once               one screen, as in a pipe
  unisono top | head -3
"""

_OTHER_SCREEN, _FIRST_SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _TO_LINE_END, _BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
_LEAST_SECONDS = 0.2
_PIPE_LINES = 60
_REST = 4  # so many times as long as reading took, it rests


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = verb_parser("Watch GPUs, queues, running and pending workloads; q leaves.", EXAMPLES)
    made.add_argument(
        "--every", type=_seconds, default=2.0, metavar="S", help="look so often (default: 2 s)"
    )
    made.add_argument("--once", action="store_true", help="print one screen and end")
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
    with _own_screen():
        try:
            return asked(arguments, _live)
        except KeyboardInterrupt:
            return 0  # that is how one leaves


async def _once(client: Client, arguments: argparse.Namespace) -> int:
    from unisono.cli.filters import refuse_unknown_namespace
    from unisono.cli.tables import is_colourful
    from unisono.cli.top_frame import frame
    from unisono.runtime.clock import RealClock

    width = shutil.get_terminal_size((WIDTH, _PIPE_LINES)).columns if sys.stdout.isatty() else WIDTH
    await refuse_unknown_namespace(client, arguments.namespace)
    picture = await read(client, arguments.namespace, access_of(arguments).server)
    now = RealClock().now()
    print(frame(picture, now=now, width=width, height=_PIPE_LINES, colour=is_colourful()))
    return 0


async def _live(client: Client, arguments: argparse.Namespace) -> int:
    import asyncio

    from unisono.cli.filters import refuse_unknown_namespace
    from unisono.cli.tables import is_colourful
    from unisono.cli.top_frame import frame
    from unisono.runtime.clock import RealClock

    await refuse_unknown_namespace(client, arguments.namespace)
    leave, clock = asyncio.Event(), RealClock()
    with _keys(leave):
        while not leave.is_set():
            began = clock.monotonic()
            picture = await read(client, arguments.namespace, access_of(arguments).server)
            size = shutil.get_terminal_size((WIDTH, 24))
            text = frame(
                picture,
                now=clock.now(),
                width=size.columns,
                height=size.lines - 1,
                colour=is_colourful(),
            )
            lines = f"{_TO_LINE_END}\n".join(text.split("\n"))
            sys.stdout.write(f"{_HOME}{lines}{_TO_LINE_END}{_BELOW}")
            sys.stdout.flush()
            # However large the cluster is, most of the time nothing is asked of it.
            pause = max(arguments.every, _REST * (clock.monotonic() - began))
            try:
                async with asyncio.timeout(pause):
                    await leave.wait()
            except TimeoutError:
                continue
    return 0


async def read(client: Client, namespace: str = "", cluster: str = "") -> Picture:
    """Read everything that a screen shows; workloads only of a namespace that is named."""
    from unisono.cli.nodes import listed as nodes_listed
    from unisono.cli.plan.rows import living_rows
    from unisono.cli.queues import cluster_queue
    from unisono.cli.top_frame import Picture
    from unisono.cli.workloads import listed
    from unisono.control.names import CLUSTER_QUEUE, LOCAL_QUEUE, NODE, POD, WORKLOAD
    from unisono.kinds.kueue.status_shape import readable

    workloads = [*map(readable, (await client.list(WORKLOAD)).items)]
    local_queues = (await client.list(LOCAL_QUEUE)).items
    queues = (await client.list(CLUSTER_QUEUE)).items
    nodes = nodes_listed((await client.list(NODE)).items, (await client.list(POD)).items)
    by_key = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in local_queues}
    by_name = {one["metadata"]["name"]: one for one in queues}
    plan = living_rows(workloads, by_key, by_name)
    rows = listed(workloads, local_queues, by_name)
    return Picture(
        cluster,
        nodes,
        [cluster_queue(one) for one in queues],
        [one for one in rows if namespace in ("", one["namespace"])],
        [one for one in plan if namespace in ("", one["namespace"])],
    )


# ---- the terminal --------------------------------------------------------------------------------


@contextmanager
def _own_screen() -> Iterator[None]:
    """Take the screen and single keys while the block lasts, and give both back."""
    import termios
    import tty

    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    sys.stdout.write(_OTHER_SCREEN)
    try:
        tty.setcbreak(keyboard)
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
        sys.stdout.write(_FIRST_SCREEN)
        sys.stdout.flush()


@contextmanager
def _keys(leave: asyncio.Event) -> Iterator[None]:
    """Listen for q while the block lasts."""
    import asyncio
    import os

    keyboard = sys.stdin.fileno()

    def pressed() -> None:
        if os.read(keyboard, 64).lower() in (b"q", b"\x1b", b"\x03", b""):
            leave.set()

    loop = asyncio.get_running_loop()
    loop.add_reader(keyboard, pressed)
    try:
        yield
    finally:
        loop.remove_reader(keyboard)
