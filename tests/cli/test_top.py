"""`unisono top`: what is on its screen, how it is cut, and how one leaves it."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import signal
import sys
import time
from dataclasses import replace

import pytest

from tests.cli.conftest import Cluster, Shell
from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node, priority, queue
from tests.support.control_world import World
from unisono.cli.top.frame import frame, sections
from unisono.cli.top.picture import Picture, read
from unisono.cli.top.view import Key, View, keys_of

SCREEN = """\
unisono top  here  2023-11-14 22:14:29 UTC
GPUs   [###############.....]  24 of 32 in use (75 %), 8 free
nodes  4: 4 Ready

queues (1)
  QUEUE  COHORT  GPUS          USED   PENDING  RUNNING  HEAD OF QUEUE
  cq     -       [########..]  24/32        2        2  job/large: WaitingForQuota

running (2)
  NAME              QUEUE  GPUS  PODS  STATE    FOR  WHERE
  default/job/runs  lq-cq    16     2  running  59s  n1,n2
  default/job/tiny  lq-cq     8     1  running  59s  n3

pending (2)
  POS  NAME               QUEUE  PRIO  PODS  STARTS  WHY
    1  default/job/large  lq-cq   100     4  -       starts once default/job/runs has ended (16 nvid
    2  default/job/small  lq-cq     0     2  -       starts once default/job/runs has ended (16 nvid
"""


def picture() -> tuple[Picture, float]:
    """Return a small cluster where two jobs run and two wait."""

    async def run() -> tuple[Picture, float]:
        world: World = simulated_world()
        async with world.running():
            await world.create(*(node(f"n{number}") for number in range(1, 5)), *queue(gpus=32))
            await world.create(priority("urgent", 100), job("runs", seconds=5000))
            await world.create(job("tiny", pods=1, seconds=5000))
            await world.settle()
            await world.create(job("large", pods=4, priority_class="urgent"), job("small"))
            await world.pass_time(57)
            return await read(world.client, cluster="here"), world.clock.now()

    return asyncio.run(run())


def test_a_screen_shows_gpus_queues_running_and_pending() -> None:
    found, now = picture()
    assert frame(found, now=now, width=100, height=40) + "\n" == SCREEN
    small = frame(found, now=now, width=60, height=12).split("\n")
    assert len(small) == 12
    assert max(map(len, small)) <= 60
    painted = frame(found, now=now, width=100, height=40, colour=True)
    assert "\x1b[32mrunning\x1b[0m" in painted
    busy = replace(found, workloads=list(found.workloads) * 30)
    assert "and " in frame(busy, now=now, width=100, height=30)


def test_times_in_a_reason_are_short_and_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    found, now = picture()
    late = {**found.plan[0], "message": "0/2 machines ready, about 2023-11-14T22:20:29Z"}
    screen = frame(replace(found, plan=[late]), now=now, width=140, height=40)
    assert "0/2 machines ready, about 22:20, in 6 min" in screen
    assert "2023-11-14T" not in screen


KEYS: tuple[tuple[Key, ...], ...] = ((), ("open",), ("help",), ("previous", "sort"))


# ---- choosing ------------------------------------------------------------------------------------


class Chosen:
    """A screen on which keys are pressed."""

    def __init__(self, found: Picture, now: float, height: int = 40) -> None:
        self.found, self.now, self.height = found, now, height
        self.view = View()

    def press(self, *keys: Key) -> str:
        for key in keys:
            assert self.view.press(key, sections(self.found, self.now)), key
        return self.seen()

    def seen(self) -> str:
        return frame(
            self.found, now=self.now, width=100, height=self.height, colour=False, view=self.view
        )

    @property
    def selected(self) -> str:
        return next(line for line in self.seen().split("\n") if line.startswith(">"))


@pytest.fixture(scope="module")
def small() -> tuple[Picture, float]:
    return picture()


def many(found: Picture, count: int) -> Picture:
    """Return a picture with more rows than a screen has lines."""
    (one, *_) = [each for each in found.workloads if each["state"] == "running"]
    rows = [{**one, "name": f"job/r{at:03}", "gpus": at % 7, "pods": at} for at in range(count)]
    return replace(found, workloads=rows)


def test_the_whole_reason_of_the_selected_row_is_shown(small: tuple[Picture, float]) -> None:
    screen = Chosen(*small)
    text = screen.seen()
    assert "default/job/large" in screen.selected  # the first of what is pending
    assert "Job default/large waits in queue lq-cq" in text
    assert "pod set main needs 32 nvidia.com/gpu in flavor" in text
    whole = screen.press("open")  # all of it, as `unisono why` says it
    assert "why:" in whole
    assert "what would change it:" in whole
    assert "estimate: " in whole
    assert "NAME" not in whole
    assert "NAME" in screen.press("open")
    assert "default/job/small" in Chosen(*small).press("down").split("\n>")[1]


def test_every_line_fits_and_so_does_the_screen(small: tuple[Picture, float]) -> None:
    for height in (10, 16, 24, 60):
        for keys in KEYS:
            view = View()
            for key in keys:
                view.press(key, sections(*small))
            text = frame(small[0], now=small[1], width=60, height=height, view=view)
            lines = text.split("\n")
            assert len(lines) <= height
            assert max(map(len, lines)) <= 60


def test_rows_are_selected_and_scrolled(small: tuple[Picture, float]) -> None:
    screen = Chosen(many(small[0], 100), small[1])
    screen.press("previous")  # from what is pending to what runs
    screen.press("home")
    first = screen.selected
    screen.press("down", "up")
    assert screen.selected == first
    screen.press("end")
    assert "100 of 100" in screen.seen()
    assert screen.selected != first
    screen.press("page-up", "page-up")
    assert "100 of 100" not in screen.seen()
    screen.press("home", "up")
    assert screen.selected == first
    # In the queues, and around.
    assert "> cq" in screen.press("previous")
    screen.press("next")
    assert screen.selected == first


def test_columns_are_sorted_both_ways(small: tuple[Picture, float]) -> None:
    screen = Chosen(many(small[0], 30), small[1])
    screen.press("previous", "sort", "sort", "sort", "sort")  # name, queue, GPUs, pods
    assert "PODS^" in screen.press("home")
    assert "job/r000" in screen.selected
    assert "PODSv" in screen.press("reverse", "home")
    assert "job/r029" in screen.selected
    screen.press("left", "home")
    assert "GPUS^" in screen.seen()
    for _ in range(5):
        screen.press("sort")
    assert "^" not in screen.seen()  # its own order again


def test_a_row_stays_selected_while_others_come_and_go(small: tuple[Picture, float]) -> None:
    screen = Chosen(many(small[0], 20), small[1])
    screen.press("previous", "home", "down", "down", "down")
    name = screen.selected.split()[1]
    rows = [one for one in screen.found.workloads if f"default/{one['name']}" != name]
    kept = next(one for one in screen.found.workloads if f"default/{one['name']}" == name)
    more = [{**kept, "name": f"job/a{at}", "gpus": 99} for at in range(5)]
    screen.found = replace(screen.found, workloads=[*more, kept, *rows])
    assert name in screen.selected
    screen.found = replace(screen.found, workloads=[*more, *rows])
    assert name not in screen.selected  # the one in its place
    screen.found = replace(screen.found, workloads=[], plan=[])
    assert "cq" in screen.selected  # what is left
    screen.found = replace(screen.found, queues=[])
    assert not [line for line in screen.seen().split("\n") if line.startswith(">")]
    screen.press("down", "sort", "reverse", "next", "open", "end", "page-down")  # of nothing


def test_help_lists_the_keys_and_escape_closes_it(small: tuple[Picture, float]) -> None:
    screen = Chosen(*small)
    assert "everything about the selected row" in screen.press("help")
    assert "running (2)" in screen.press("close")
    assert not screen.view.press("close", sections(*small))
    assert not screen.view.press("leave", sections(*small))


@pytest.mark.parametrize(
    ("typed", "keys", "rest"),
    [
        (b"\x1b[A\x1b[B", ["up", "down"], b""),
        (b"\x1bOA", ["up"], b""),
        (b"\x1b[5~\x1b[6~", ["page-up", "page-down"], b""),
        (b"\x1b", [], b"\x1b"),
        (b"\x1b[", [], b"\x1b["),
        (b"\x1b[2~j", ["down"], b""),  # Insert means nothing
        (b"\x1b[1;5Cj", ["down"], b""),  # nor does Ctrl-Right
        (b"\x1b\x00", ["close"], b""),
        ("한q".encode(), ["leave"], b""),
        (b"zx", [], b""),
    ],
)
def test_keys_are_read_as_terminals_send_them(typed: bytes, keys: list[Key], rest: bytes) -> None:
    assert keys_of(typed) == (keys, rest)


@pytest.mark.slow
def test_at_a_terminal_keys_are_answered(cluster: Cluster) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ |= {"KUBECONFIG": str(cluster.kubeconfig), "TERM": "xterm", "COLUMNS": "100"}
        os.execv(sys.executable, [sys.executable, "-m", "unisono", "top", "--every", "60"])
    steps = [(b"pending (", b"?"), (b"keys of unisono top", b"\x1b"), (b"pending (", b"q")]
    seen, deadline = b"", time.monotonic() + 120
    while steps and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.5)[0]:
            try:
                seen += os.read(terminal, 65536)
            except OSError:
                break
        while steps and steps[0][0] in seen:
            os.write(terminal, steps.pop(0)[1])
            seen = b""
    if steps:
        os.kill(pid, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, (steps, seen)


# ---- the program ---------------------------------------------------------------------------------


def test_in_a_pipe_it_is_one_screen(shell: Shell) -> None:
    said = shell.type("top").ok()
    assert said.startswith("unisono top  https://127.0.0.1:")
    assert "\x1b" not in said


@pytest.mark.slow
@pytest.mark.parametrize("key", [b"q", b"\x03"], ids=["q", "ctrl-c"])
def test_at_a_terminal_one_leaves_with_a_key(cluster: Cluster, key: bytes) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["KUBECONFIG"] = str(cluster.kubeconfig)
        os.execv(sys.executable, [sys.executable, "-m", "unisono", "top"])
    seen, pressed, deadline = b"", False, time.monotonic() + 60
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 0.5)[0]:
            continue
        try:
            more = os.read(terminal, 65536)
        except OSError:
            break
        if not more:
            break
        seen += more
        if not pressed and b"pending (" in seen:
            os.write(terminal, key)
            pressed = True
    if not pressed:
        os.kill(pid, signal.SIGKILL)  # else it would go on, and we would wait for it
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, seen
    assert seen.endswith(b"\x1b[?25h\x1b[?1049l"), "the terminal is as it was"
