"""The terminal of `unisono top`: a screen of its own, keys as they come, and when to draw."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator

from unisono.cli.tables import WIDTH, is_colourful
from unisono.cli.top.frame import frame, sections
from unisono.cli.top.picture import Picture, read
from unisono.cli.top.view import View, keys_of
from unisono.kube.client import Client
from unisono.runtime.clock import RealClock

_OTHER_SCREEN, _FIRST_SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _TO_LINE_END, _BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
_REST = 4  # so many times as long as reading took, it rests
# The Escape key sends the first byte of other keys: those come within that time.
_ESCAPE_S = 0.05
_LINES = 24


async def watch(client: Client, namespace: str, cluster: str, *, every: float) -> None:
    """Show the cluster until a key leaves; every key is answered at once, whatever is read."""
    clock, view, changed = RealClock(), View(), asyncio.Event()
    leave = asyncio.Event()
    shown: Picture | None = None

    def pressed(typed: bytes) -> bytes:
        """Take keys; return the beginning of one of which the end has not come yet."""
        keys, rest = keys_of(typed)
        tables = sections(shown, clock.now()) if shown is not None else None
        for key in keys:
            if tables is None:
                go_on = key not in ("leave", "close")
            else:
                go_on = view.press(key, tables)
            if not go_on:
                leave.set()
        changed.set()
        return rest

    async def reading() -> None:
        nonlocal shown
        while True:
            began = clock.monotonic()
            shown = await read(client, namespace, cluster)
            changed.set()
            # However large the cluster is, most of the time nothing is asked of it.
            await asyncio.sleep(max(every, _REST * (clock.monotonic() - began)))

    async def drawing() -> None:
        while not leave.is_set():
            await changed.wait()
            changed.clear()
            if shown is not None:
                _draw(shown, view, clock.now())

    with _keys(pressed, leave, changed):
        reader = asyncio.ensure_future(reading())
        drawer = asyncio.ensure_future(drawing())
        left = asyncio.ensure_future(leave.wait())
        try:
            done, _ = await asyncio.wait(
                (reader, drawer, left), return_when=asyncio.FIRST_COMPLETED
            )
            for one in done:
                one.result()  # what went wrong is told outside of this screen
        finally:
            for one in (reader, drawer, left):
                one.cancel()
            await asyncio.gather(reader, drawer, left, return_exceptions=True)


def _draw(picture: Picture, view: View, now: float) -> None:
    size = shutil.get_terminal_size((WIDTH, _LINES))
    text = frame(
        picture,
        now=now,
        width=size.columns,
        height=size.lines - 1,
        colour=is_colourful(),
        view=view,
    )
    lines = f"{_TO_LINE_END}\n".join(text.split("\n"))
    sys.stdout.write(f"{_HOME}{lines}{_TO_LINE_END}{_BELOW}")
    sys.stdout.flush()


@contextlib.contextmanager
def own_screen() -> Iterator[None]:
    """Take the screen and single keys while the block lasts, and give both back."""
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


@contextlib.contextmanager
def _keys(
    pressed: Callable[[bytes], bytes], leave: asyncio.Event, changed: asyncio.Event
) -> Iterator[None]:
    """Hand over what is typed while the block lasts, and notice when the window is resized."""
    keyboard = sys.stdin.fileno()
    loop = asyncio.get_running_loop()
    rest = b""
    waiting: asyncio.TimerHandle | None = None

    def alone() -> None:
        nonlocal rest
        rest, typed = b"", rest
        if typed == b"\x1b":
            pressed(typed + b"\x00")  # nothing begins so: it was the Escape key

    def typed() -> None:
        nonlocal rest, waiting
        if waiting is not None:
            waiting.cancel()
        found = os.read(keyboard, 1024)
        if not found:
            leave.set()  # the terminal is gone
            return
        rest = pressed(rest + found)
        waiting = loop.call_later(_ESCAPE_S, alone) if rest else None

    loop.add_reader(keyboard, typed)
    loop.add_signal_handler(signal.SIGWINCH, changed.set)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)
        loop.remove_reader(keyboard)
