"""`unisono demo`: guided stories on throw-away clusters; each ends by itself.

At a terminal there is a menu. Elsewhere, as in a CI job, the stories of the tour run one after the
other. `look` is no story but a busy cluster with its web page, until Ctrl-C.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from unisono.cli import up
from unisono.cli.help_format import HelpFormat
from unisono.engine.model.errors import InvalidManifest
from unisono.kinds.digits import whole_number

# What can be told, in the order of the menu and of `all`.
TITLES = {
    "gang": "two gangs compete for four nodes: each runs whole or not at all",
    "preemption": "production preempts development, which resumes afterwards",
    "recovery": "a worker of a training job is killed, and the gang restarts from its checkpoint",
    "autoscale": "nodes are provisioned for the whole gang, or none",
    "slurm": "batch scripts, fair share and backfill, without Slurm",
    "monitor": "GPU metrics, a broken GPU, and a weekly usage report",
    "borrowing": "borrowed quota and its reclaim, on manifests alone",
    "pool": "one quota shared by two flavors, on manifests alone",
}
LIVE = ("gang", "preemption", "recovery", "autoscale")  # the tour
OFFLINE = ("borrowing", "pool")
LOOK = "look"

_NEXT = """
What to do next:
  {program} demo look      a busy cluster with its web page (the address is printed), until Ctrl-C
  {program} demo all       every story
  {program} up             a cluster of your own; README.md has five steps to a job of yours
"""

_EXAMPLES = """\
stories:
{stories}

examples:
  unisono demo                 a menu; without a terminal: {tour}
  unisono demo gang
  unisono demo all             every story, one after the other
  unisono demo look            a busy cluster with its web page, until Ctrl-C
  unisono demo look --speed 60
"""


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    stories = "\n".join(f"  {name:<11}  {title}" for name, title in TITLES.items())
    made = argparse.ArgumentParser(
        prog="unisono demo",
        description="Run guided stories, each on a cluster of its own that leaves nothing behind.",
        epilog=_EXAMPLES.format(stories=stories, tour=", ".join(LIVE)),
        formatter_class=HelpFormat,
        allow_abbrev=False,
    )
    made.add_argument(
        "story",
        nargs="?",
        choices=(*TITLES, "all", LOOK),
        metavar="STORY",
        help="one of the stories below, or all, or look",
    )
    made.add_argument(
        "--speed",
        type=up.speed,
        default=None,
        metavar="X",
        help="with look: time passes X times as fast (default: 20)",
    )
    return made


def run(arguments: argparse.Namespace) -> int:
    """Tell the stories."""
    if arguments.story == LOOK:
        return _look(arguments.speed)
    if arguments.speed is not None:
        message = "is of look only; a story takes the time that it takes to read"
        raise InvalidManifest("--speed", message)
    if arguments.story:
        _tell(tuple(TITLES) if arguments.story == "all" else (arguments.story,))
        return 0
    if sys.stdin.isatty() and sys.stdout.isatty():
        return _menu()
    _tell(LIVE)
    sys.stdout.write(_NEXT.format(program=_program()))
    return 0


def _program() -> str:
    """Return how this program is called here: a fresh clone has it in its own environment only."""
    import os
    import shutil

    if shutil.which("unisono") or not sys.argv[0].endswith("unisono"):
        return "unisono"
    return os.path.relpath(sys.argv[0])


# ---- the menu ------------------------------------------------------------------------------------


def _menu() -> int:
    """Ask which story, tell it, and ask again."""
    while True:
        sys.stdout.write(menu_text())
        try:
            answer = input("which one? ").strip().lower()
        except EOFError:
            sys.stdout.write("\n")
            return 0
        chosen = choice(answer)
        if chosen is None:
            sys.stdout.write(f"\nThere is no {answer!r}; a number, a name, a, l or q, please.\n")
        elif not chosen:
            return 0
        elif chosen == (LOOK,):
            return _look()
        else:
            sys.stdout.write("\n")
            _tell(chosen)


def menu_text() -> str:
    """Return the menu."""
    lines = [
        f"  {number}  {name:<11} {title}"
        for number, (name, title) in enumerate(TITLES.items(), start=1)
    ]
    return "\n".join(
        [
            "\nEach story runs on a cluster of its own, which leaves nothing behind.\n",
            *lines,
            "",
            "  a  all of them, one after the other",
            "  l  look around: a busy cluster with its web page, until Ctrl-C",
            "  q  leave\n\n",
        ]
    )


def choice(answer: str) -> tuple[str, ...] | None:
    """Return which stories were asked for; none of them to leave; None if it was not understood.

    >>> choice("2"), choice("slurm"), choice("q"), choice("x")
    (('preemption',), ('slurm',), (), None)
    """
    names = tuple(TITLES)
    if answer in ("q", "quit", "exit"):
        return ()
    if answer in ("l", LOOK):
        return (LOOK,)
    if answer in ("a", "all"):
        return names
    if number := whole_number(answer, len(names)):
        return (names[number - 1],)
    return (answer,) if answer in names else None


# ---- telling -------------------------------------------------------------------------------------


def _tell(chosen: Sequence[str]) -> None:
    for number, name in enumerate(chosen):
        if number:
            sys.stdout.write("\n\n")
        if name in OFFLINE:
            from unisono.cli.demo.offline import tell

            tell(name)
        else:
            _tell_live(name)


def _tell_live(name: str) -> None:
    import uvloop

    from unisono.cli.demo import monitor, slurm, stories

    runs: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
        "gang": stories.two_gangs,
        "monitor": monitor.tell,
        "preemption": stories.preemption,
        "recovery": stories.recovery,
        "slurm": slurm.tell,
        "autoscale": stories.autoscale,
    }
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(runs[name]())
    except BaseExceptionGroup as several:
        raise _first(several) from several


def _first(error: BaseException) -> BaseException:
    """Return what went wrong out of the groups that tasks wrap it in."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _look(speed: float | None = None) -> int:
    from unisono.cli.demo.look import DEFAULT_SPEED, look

    return look(DEFAULT_SPEED if speed is None else speed)
