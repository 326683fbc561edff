"""`unisono demo`: guided stories on a throw-away cluster; each ends by itself."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any

# Told on a living cluster, in the order of `all`; those on manifests alone follow.
LIVE = ("gang", "preemption", "recovery", "autoscale")
MORE = ("monitor", "slurm")
OFFLINE = ("borrowing", "pool")

_EXAMPLES = """\
examples:
  unisono demo                 the stories on a living cluster
  unisono demo gang
  unisono demo monitor         GPU metrics, a broken GPU, and a week's report
  unisono demo pool            a decision about manifests, without a cluster
"""


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = argparse.ArgumentParser(
        prog="unisono demo",
        description="Tell stories on a cluster that is started for them and leaves nothing behind.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument(
        "story",
        nargs="?",
        default="all",
        choices=(*LIVE, *MORE, *OFFLINE, "all"),
        help="default: all on a living cluster",
    )
    return made


def run(arguments: argparse.Namespace) -> int:
    """Tell the stories."""
    chosen = LIVE if arguments.story == "all" else (arguments.story,)
    for number, name in enumerate(chosen):
        if number:
            sys.stdout.write("\n\n")
        if name in OFFLINE:
            from unisono.cli.stories.offline import tell

            tell(name)
        else:
            _tell_live(name)
    return 0


def _tell_live(name: str) -> None:
    import uvloop

    from unisono.cli.stories import autoscale, gang, monitor, preemption, recovery, slurm

    stories: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
        "gang": gang.tell,
        "monitor": monitor.tell,
        "preemption": preemption.tell,
        "recovery": recovery.tell,
        "slurm": slurm.tell,
        "autoscale": autoscale.tell,
    }
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(stories[name]())
    except BaseExceptionGroup as several:
        raise _first(several) from several


def _first(trouble: BaseException) -> BaseException:
    """Return what went wrong out of the groups that tasks wrap it in."""
    while isinstance(trouble, BaseExceptionGroup):
        trouble = trouble.exceptions[0]
    return trouble
