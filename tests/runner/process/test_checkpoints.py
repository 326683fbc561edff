"""What outlives an attempt: a directory of the job's own, and how far it was (jobs §7.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runner.process_world import HAS_ROOMS, ProcessWorld, phase
from tests.runner.simulated_world import node, pod
from unisono.control.conditions import is_true
from unisono.control.health.progress import progress_of
from unisono.control.names import JOB
from unisono.kube.form import Json
from unisono.runner.process.launch import Tier

TIERS: list[Any] = [0, pytest.param(1, marks=pytest.mark.skipif(not HAS_ROOMS, reason="no rooms"))]

# The first attempt saves and fails; the second goes on where that was.
SCRIPT = """
cd "$UNISONO_CHECKPOINT_DIR"
if [ -e step ]; then echo "from $(cat step)"; exit 0; fi
echo 7 > step
echo '{"step": 7}' >> "$UNISONO_PROGRESS_FILE"
exit 1
"""


def new_lines(path: Path, tier: Tier, story: Callable[[ProcessWorld], Awaitable[None]]) -> None:
    async def run() -> None:
        world = ProcessWorld(path, tier)
        async with world.running():
            await world.client.create(node())
            try:
                await story(world)
            finally:
                await world.machine.close(grace_s=1)

    asyncio.run(run())


def job(script: str) -> Json:
    inner = pod(command=["sh", "-c", script.replace("$(", "$$(")], on=None)["spec"]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"template": {"spec": {**inner, "restartPolicy": "OnFailure"}}},
    }


@pytest.mark.parametrize("tier", TIERS)
def test_a_job_resumes_from_its_checkpoint_and_leaves_nothing_behind(
    tmp_path: Path, tier: Tier
) -> None:
    async def story(world: ProcessWorld) -> None:
        await world.client.create(job(SCRIPT))
        await world.until(
            JOB,
            "train",
            lambda found: (
                found is not None and is_true(found["status"].get("conditions"), "Complete")
            ),
        )
        kept = list((tmp_path / "checkpoints" / "default").iterdir())
        assert [(one / "step").read_text() for one in kept] == ["7\n"]
        await world.client.delete(JOB, "train", "default")
        await world.until(JOB, "train", lambda found: found is None)
        for _ in range(500):
            if not kept[0].exists():
                break
            await asyncio.sleep(0.02)
        assert not kept[0].exists()

    new_lines(tmp_path, tier, story)


@pytest.mark.parametrize("tier", TIERS)
def test_reports_the_progress_of_a_running_program(tmp_path: Path, tier: Tier) -> None:
    async def story(world: ProcessWorld) -> None:
        script = 'echo "{\\"step\\": 3, \\"total\\": 9}" > "$UNISONO_PROGRESS_FILE"; sleep 60'
        await world.client.create(pod(command=["sh", "-c", script]))

        def has_told(found: Json | None) -> bool:
            said = progress_of(found["metadata"].get("annotations")) if found is not None else None
            return said is not None and (said.step, said.total) == (3, 9)

        assert phase(await world.pod("p", has_told)) == "Running"

    new_lines(tmp_path, tier, story)
