"""Slurm orders jobs itself: the check in PrologSlurmctld, stage-in, and nodes kept in step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import pytest

from tests.real.slurm.bridged import Both, both
from tests.real.slurm.daemons import Shape, Slurm
from tests.real.slurm.objects import clear, comment, is_reserved, pod, states_of
from tests.real.slurm.packages import NoSlurm

pytestmark = [pytest.mark.real, pytest.mark.slow]


def _running(mode: str, *flags: str) -> Iterator[Both]:
    usual = ("--bind-timeout", "5", "--check-timeout", "2")
    try:
        with both(Shape(nodes=2, gpus=4), mode=mode, flags=(*usual, *flags)) as found:
            yield found
    except NoSlurm as problem:
        pytest.skip(f"no real Slurm: {problem}")


@pytest.fixture(scope="module")
def checking() -> Iterator[Both]:
    """Run both sides with the check in PrologSlurmctld."""
    yield from _running("check", "--features")


@pytest.fixture
def sides(checking: Both) -> Iterator[Both]:
    """Begin and end with nothing."""
    yield checking
    clear(checking)


def test_scenario_15_a_no_requeues_once_and_drains_nothing(sides: Both) -> None:
    slurm = sides.slurm
    fits = slurm.submit("-N2", "--gres=gpu:1")
    slurm.until("what fits starts", fits, "RUNNING")
    assert is_reserved(sides, fits)
    sides.apply(pod("a", gpus=2, node="g-1"), pod("b", gpus=2, node="g-2"))
    number = slurm.submit("-N1", "--gres=gpu:3")
    never = slurm.submit("-N1", "--gres=gpu:3", "--no-requeue")
    sides.until("it was refused", lambda: slurm.shown(number)["Restarts"] == "1")
    sides.until("it is held", lambda: slurm.job(number, "%T %Q") == "PENDING 0")
    slurm.until("what must not be requeued is cancelled", never, "CANCELLED")
    assert "nvidia.com/gpu" in comment(slurm, number)
    assert "DRAIN" not in slurm("sinfo", "-h", "-N", "-o", "%T").upper()
    assert states_of(slurm, number, seconds=1) == {"PENDING"}
    sides.delete("pods", "a")
    slurm.until("it starts when there is room", number, "RUNNING")
    assert slurm.shown(number)["Restarts"] == "1"
    assert is_reserved(sides, number)


def test_scenario_17_nodes_are_drained_in_our_name_and_resumed(sides: Both) -> None:
    slurm = sides.slurm
    slurm("scontrol", "update", "NodeName=g-2", "State=DRAIN", "Reason=admin: fan")
    try:
        began = time.monotonic()
        for name in ("g-1", "g-2"):
            sides.patch("nodes", name, "", {"spec": {"unschedulable": True}})
        sides.until("it is drained", lambda: "DRAIN" in slurm.node("g-1")["State"])
        assert time.monotonic() - began < 30
        assert slurm.node("g-1")["Reason"].startswith("unisono: cordoned")
        for name in ("g-1", "g-2"):
            sides.patch("nodes", name, "", {"spec": {"unschedulable": None}})
        sides.until("it is resumed", lambda: "DRAIN" not in slurm.node("g-1")["State"])
        time.sleep(3)
        assert "DRAIN" in slurm.node("g-2")["State"]
        assert slurm.node("g-2")["Reason"] == "admin: fan"
    finally:
        slurm("scontrol", "update", "NodeName=g-2", "State=RESUME")


def test_scenario_17_features_follow_every_change(sides: Both) -> None:
    slurm = sides.slurm
    for used in range(1, 4):
        sides.apply(pod(f"p{used}", gpus=1, node="g-1"))
        wanted = f"gpu_avail:{4 - used}"
        sides.until(wanted, partial(_has_feature, slurm, wanted))
        assert slurm.node("g-1")["AvailableFeatures"] == wanted


def _has_feature(slurm: Slurm, wanted: str) -> bool:
    return slurm.node("g-1")["ActiveFeatures"] == wanted


@pytest.fixture(scope="module")
def staging() -> Iterator[Both]:
    """Run both sides with burst-buffer stage-in."""
    yield from _running("stage", "--placeholders")


def test_stage_in_waits_without_holding_anything(staging: Both) -> None:
    sides, slurm = staging, staging.slurm
    sides.apply(pod("a", gpus=2, node="g-1"))
    sides.until(
        "a placeholder stands for the pod",
        lambda: "unisono-placeholder g-1" in slurm("squeue", "-h", "-t", "R", "-o", "%j %N"),
    )
    sides.apply(pod("b", gpus=4, node="g-2"))
    number = slurm.submit("--uid=mail", "-N1", "--gres=gpu:3")
    assert states_of(slurm, number, seconds=3) == {"PENDING"}
    sides.delete("pods", "b")
    slurm.until("it starts", number, "RUNNING")
    assert is_reserved(sides, number)
    sides.delete("pods", "a")
    sides.until(
        "the placeholder goes with the pod",
        lambda: "unisono-placeholder" not in slurm("squeue", "-h", "-o", "%j"),
    )
