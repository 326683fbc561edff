"""The gate between a real Slurm and a real Kubernetes: stock job controller and kube-scheduler."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.real.control_plane import ControlPlane
from tests.real.slurm.bridged import Both, both
from tests.real.slurm.daemons import Shape
from tests.real.slurm.objects import clear, comment, is_reserved, pod
from tests.real.slurm.packages import NoSlurm
from unisono.kube.form import Json

pytestmark = [pytest.mark.real, pytest.mark.slow]


@pytest.fixture(scope="module")
def sides(deployed: ControlPlane) -> Iterator[Both]:
    """Run both sides, two nodes of four GPUs, with the gate between them."""
    try:
        with both(Shape(nodes=2, gpus=4), mode="gate", plane=deployed) as found:
            yield found
            clear(found)
    except NoSlurm as problem:
        pytest.skip(f"no real Slurm: {problem}")


def test_a_job_of_slurm_starts_when_its_whole_gang_has_nodes_and_gives_them_back(
    sides: Both,
) -> None:
    slurm = sides.slurm
    number = slurm.submit("-N2", "-n6", "--gres=gpu:3", script="srun sleep 600")
    slurm.until("the gang", number, "RUNNING")
    assert is_reserved(sides, number)
    slurm("scancel", str(number))
    sides.until("its pods are gone", lambda: not sides.pods(number))


def test_what_pods_of_others_have_is_not_given_to_slurm(sides: Both) -> None:
    slurm = sides.slurm
    sides.apply(pod("stranger", gpus=3))  # kube-scheduler finds its node
    sides.until(
        "it has a node", lambda: any(one["spec"].get("nodeName") for one in _strangers(sides))
    )
    number = slurm.submit("-N2", "--gres=gpu:2")
    sides.until("it says why", lambda: "1 of 2 pods fit" in comment(slurm, number))
    assert slurm.job(number, "%r") == "JobHeldUser"
    sides.delete("pods", "stranger")
    slurm.until("it starts", number, "RUNNING")
    assert is_reserved(sides, number)


def _strangers(sides: Both) -> list[Json]:
    return [one for one in sides.objects("pods") if one["metadata"]["name"] == "stranger"]
