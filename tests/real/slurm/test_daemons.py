"""The real Slurm of the tests: it starts, runs gangs on several nodes, and forgets nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.real.slurm.daemons import Shape, Slurm, running
from tests.real.slurm.packages import NoSlurm

pytestmark = [pytest.mark.real, pytest.mark.slow]


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    """Run a Slurm of four nodes with eight GPUs each."""
    try:
        with running(Shape(nodes=4)) as found:
            yield found
    except NoSlurm as problem:
        pytest.skip(f"no real Slurm: {problem}")


def test_a_gang_runs_on_four_nodes_with_its_gpus(slurm: Slurm) -> None:
    number = slurm.submit("-N4", "--gres=gpu:8", script="srun sleep 1")
    slurm.until("the gang", number, "RUNNING")
    shown = slurm("scontrol", "-d", "show", "job", str(number))
    assert "Nodes=g-[1-4]" in shown
    assert "GRES=gpu:a100:8(IDX:0-7)" in shown
    assert slurm.until("the gang", number, "COMPLETED", "FAILED") == "COMPLETED"


def test_a_restarted_controller_knows_its_jobs(slurm: Slurm) -> None:
    number = slurm.submit("-N2", "--gres=gpu:4")
    slurm.until("it", number, "RUNNING")
    slurm.stop("slurmctld")  # killed, it would forget what it has not saved yet
    slurm.start_controller()
    slurm.wait_until_answering()
    assert slurm.until("it", number, "RUNNING", seconds=60) == "RUNNING"
    slurm.clear()
