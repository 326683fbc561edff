"""`kubectl exec` in a container of a process pod."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.runner.process.test_process_pods import TIERS, new_lines, sh
from tests.runner.process_world import ProcessWorld, phase
from unisono.kube.form import Json
from unisono.runner.process.exec import Command, enter
from unisono.runner.process.launch import Tier

pytestmark = pytest.mark.slow


async def output_of(command: Command) -> bytes:
    """Read all of its output."""
    found = b""
    while True:
        try:
            data = os.read(command.ends[1], 4096)
        except BlockingIOError:
            await asyncio.sleep(0.005)
            continue
        except OSError:
            return found
        if not data:
            return found
        found += data


async def running(world: ProcessWorld) -> Json:
    await world.client.create(sh("sleep 1000"))
    return await world.pod("p", lambda found: phase(found) == "Running")


@pytest.mark.parametrize("tier", TIERS)
def test_a_command_runs_where_the_container_does(tier: Tier, tmp_path: Path) -> None:
    async def story(world: ProcessWorld) -> None:
        found = await running(world)
        command = await enter(found, "main", ["sh", "-c", "echo $HOSTNAME; cat; exit 5"], tty=False)
        os.write(command.ends[0], b"typed")
        command.close_input()
        assert (await output_of(command)).endswith(b"typed")
        assert await command.ended() == 5
        command.close()

    new_lines(tmp_path, tier, story)


@pytest.mark.parametrize("tier", TIERS)
def test_exec_with_a_terminal(tier: Tier, tmp_path: Path) -> None:
    async def story(world: ProcessWorld) -> None:
        found = await running(world)
        command = await enter(found, "main", ["sh", "-c", "read line; stty size"], tty=True)
        command.resize(100, 30)
        os.write(command.ends[0], b"\n")
        assert b"30 100" in await output_of(command)
        assert await command.ended() == 0
        command.close()

    new_lines(tmp_path, tier, story)


def test_exec_needs_a_running_container(tmp_path: Path) -> None:
    async def story(world: ProcessWorld) -> None:
        found = await running(world)
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(OSError, match="refused"):
            await enter(found, "other", ["ls"], tty=False)
        assert len(os.listdir("/proc/self/fd")) == before

    new_lines(tmp_path, 0, story)
