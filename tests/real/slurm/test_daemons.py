"""The real Slurm of the tests: it starts, runs gangs on several nodes, and forgets nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.real.slurm.daemons import Shape, Slurm, running
from tests.real.slurm.packages import NoSlurm
from unisono.slurm.host_list import expand, fold

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


def test_scenario_20_host_lists_are_those_of_slurm(slurm: Slurm) -> None:
    for text in ("n[1-3,7],gpu[08-10],x[1-2]-[1-2],login", "a[9-11],b,c001", "r[1-2]n[01-03]"):
        names = slurm("scontrol", "show", "hostnames", text).split()
        assert expand(text) == names
        folded = slurm("scontrol", "show", "hostlist", fold(names)).strip()
        assert slurm("scontrol", "show", "hostnames", folded).split() == names


def test_a_restarted_controller_knows_its_jobs(slurm: Slurm) -> None:
    number = slurm.submit("-N2", "--gres=gpu:4")
    slurm.until("it", number, "RUNNING")
    slurm.stop("slurmctld")  # killed, it would forget what it has not saved yet
    slurm.start_controller()
    slurm.wait_until_answering()
    assert slurm.until("it", number, "RUNNING") == "RUNNING"
    slurm.clear()
