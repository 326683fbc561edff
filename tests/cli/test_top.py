"""`unisono top`: what is on its screen, how it is cut, and how one leaves it."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import signal
import sys
import time

import pytest

from tests.cli.conftest import Cluster, Shell
from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node, priority, queue
from tests.support.control_world import World
from unisono.cli.top import read
from unisono.cli.top_frame import Picture, frame

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
    busy = Picture("here", found.nodes, found.queues, list(found.workloads) * 30, found.plan)
    assert "and " in frame(busy, now=now, width=100, height=30)


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
