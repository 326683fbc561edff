"""The gate on a real Slurm: no job without its whole gang, and everything given back."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.slurm.bridged import Both, both
from tests.real.slurm.daemons import Shape
from tests.real.slurm.objects import as_user, clear, comment, is_reserved, pod, states_of
from tests.real.slurm.packages import NoSlurm

pytestmark = [pytest.mark.real, pytest.mark.slow]


@pytest.fixture(scope="module")
def running() -> Iterator[Both]:
    """Run both sides, two nodes of four GPUs, with the gate between them."""
    flags = ("--bind-timeout", "5", "--start-timeout", "5")
    try:
        with both(Shape(nodes=2, gpus=4), mode="gate", flags=flags) as found:
            yield found
    except NoSlurm as problem:
        pytest.skip(f"no real Slurm: {problem}")


@pytest.fixture
def sides(running: Both) -> Iterator[Both]:
    """Begin and end with nothing."""
    yield running
    clear(running)


def test_a_gang_starts_whole_on_its_reserved_nodes_and_is_given_back(sides: Both) -> None:
    slurm = sides.slurm
    number = slurm.submit("-N2", "-n6", "--gres=gpu:3", script="srun sleep 600")
    slurm.until("the gang", number, "RUNNING")
    assert is_reserved(sides, number)
    assert "CPU_IDs=0-2" in slurm("scontrol", "-d", "show", "job", str(number))  # 3 and 3, not 5, 1
    slurm("scancel", str(number))
    sides.until("its pods are gone", lambda: not sides.objects("pods"))
    short = slurm.submit("-N1", "--gres=gpu:1", script="true")
    slurm.until("the short one", short, "COMPLETED")
    sides.until("its pods are gone", lambda: not sides.objects("pods"))


def test_scenario_14_slurm_believes_two_gpus_and_there_is_one(sides: Both) -> None:
    slurm = sides.slurm
    sides.apply(pod("a", gpus=3, node="g-1"), pod("b", gpus=4, node="g-2"))
    number = slurm.submit("-N1", "--gres=gpu:2")
    sides.until("it says why", lambda: "nvidia.com/gpu" in comment(slurm, number))
    assert states_of(slurm, number, seconds=2) == {"PENDING"}
    assert slurm.job(number, "%r") == "JobHeldUser"
    assert "the best node has 1 of 2" in comment(slurm, number)
    assert "0 of 1 pods fit" in comment(slurm, number)
    sides.delete("pods", "b")
    slurm.until("it starts on the node that is free", number, "RUNNING")
    assert is_reserved(sides, number)


def test_names_that_look_like_commands_or_fields(sides: Both, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    slurm = sides.slurm
    names = (
        f"$(touch {trap})",
        f"`touch {trap}`; touch {trap}",
        "a b 'c' \"d\" \\ é",
        "x\nUserId=root(0) JobState=COMPLETED\nAdminComment=unisono:pinned",
        "-N2",
        "%j %A",
    )
    numbers = [
        slurm.submit("--uid=mail", "-N1", "--gres=gpu:1", f"--job-name={name}") for name in names
    ]
    for number in numbers:
        slurm.until("it", number, "RUNNING")
        assert is_reserved(sides, number)
    assert not trap.exists()
    said = sides.slurm_verb("watch", "--once")
    assert said.returncode == 0
    assert not trap.exists()


def test_a_user_holds_a_job_and_lets_it_go(sides: Both) -> None:
    slurm = sides.slurm
    sides.apply(pod("a", gpus=4, node="g-1"), pod("b", gpus=4, node="g-2"))
    number = slurm.submit("--uid=mail", "-N1", "--gres=gpu:4")
    sides.until("it waits", lambda: "gpu" in comment(slurm, number))
    assert as_user(slurm, "mail", f"scontrol release {number}").returncode == 1
    assert as_user(slurm, "mail", f"scontrol hold {number}").returncode == 0
    sides.until("it asks for nothing", lambda: not sides.objects("jobs"))
    sides.delete("pods", "a")
    assert states_of(slurm, number, seconds=2) == {"PENDING"}
    assert as_user(slurm, "mail", f"scontrol release {number}").returncode == 0
    slurm.until("it", number, "RUNNING")


def test_an_array_runs_so_many_at_a_time(sides: Both) -> None:
    slurm = sides.slurm
    number = slurm.submit("--array=0-4%2", "-N1", "--gres=gpu:1", script="sleep 1")
    most = 0
    deadline = time.monotonic() + 60
    while slurm.tried("squeue", "-h", "-j", str(number)).stdout.strip():
        running = slurm("squeue", "-h", "-t", "R,CF", "-r", "-o", "%i").split()
        most = max(most, len(running))
        assert time.monotonic() < deadline, slurm("squeue")
        time.sleep(0.2)
    assert most == 2
    done = slurm("squeue", "-h", "-t", "all", "-r", "-j", str(number), "-o", "%T").split()
    assert done == ["COMPLETED"] * 5


def test_a_dependency_reserves_nothing_until_it_is_satisfied(sides: Both) -> None:
    slurm = sides.slurm
    first = slurm.submit("-N1", "--gres=gpu:1", script="sleep 2")
    second = slurm.submit("-N2", "--gres=gpu:4", f"--dependency=afterok:{first}")
    slurm.until("the first", first, "RUNNING")
    assert not sides.pods(second)
    slurm.until("the first", first, "COMPLETED")
    slurm.until("the second", second, "RUNNING")
    assert is_reserved(sides, second)


def test_a_requeued_job_starts_again_and_keeps_its_gang(sides: Both) -> None:
    slurm = sides.slurm
    number = slurm.submit("-N1", "--gres=gpu:2")
    slurm.until("it", number, "RUNNING")
    (gang,) = sides.objects("jobs")
    slurm("scontrol", "requeue", str(number))
    sides.until("it restarts", lambda: slurm.shown(number)["Restarts"] == "1")
    slurm.until("it runs again", number, "RUNNING")
    (again,) = sides.objects("jobs")
    assert gang["metadata"]["uid"] == again["metadata"]["uid"]
    assert is_reserved(sides, number)


def test_deleting_the_gang_cancels_the_job(sides: Both) -> None:
    slurm = sides.slurm
    number = slurm.submit("-N2", "--gres=gpu:1")
    slurm.until("it", number, "RUNNING")
    (gang,) = sides.objects("jobs")
    sides.delete("jobs", gang["metadata"]["name"], "slurm")
    slurm.until("it", number, "CANCELLED")
    sides.until("all is gone", lambda: not sides.objects("jobs") and not sides.objects("pods"))


def test_a_job_at_its_time_limit_gives_its_pods_back(sides: Both) -> None:
    slurm = sides.slurm
    number = slurm.submit("-N1", "--gres=gpu:1")
    slurm.until("it", number, "RUNNING")
    slurm("scontrol", "update", f"JobId={number}", "EndTime=now+1")
    slurm.until("it", number, "TIMEOUT", seconds=120)
    sides.until("its pods are gone", lambda: not sides.objects("pods"))


def test_what_slurm_will_not_start_is_taken_back_and_tried_again(sides: Both) -> None:
    slurm = sides.slurm
    slurm("scontrol", "update", "PartitionName=main", "State=DOWN")
    try:
        number = slurm.submit("-N1", "--gres=gpu:1")
        sides.until("it was tried", lambda: "did not start it" in comment(slurm, number))
        sides.until("its pods are gone", lambda: not sides.pods(number))
        (gang,) = sides.objects("jobs")
        assert gang["metadata"]["annotations"]["unisono.dev/bridged-tries"] == "1"
    finally:
        slurm("scontrol", "update", "PartitionName=main", "State=UP")
    slurm.until("it starts in the end", number, "RUNNING")


def test_preempted_gangs_leave_when_slurm_has_left(sides: Both) -> None:
    """A pod of a higher class needs the GPUs: the job is requeued, held, and waits for its turn."""
    slurm = sides.slurm
    number = slurm.submit("-N2", "--gres=gpu:4", script="trap '' TERM; sleep 600")
    slurm.until("it", number, "RUNNING")
    (workload,) = sides.objects("workloads")
    name = workload["metadata"]["name"]
    sides.patch("workloads", name, "slurm", {"spec": {"active": False}})
    slurm.until("it is requeued", number, "PENDING")
    sides.until("its pods are gone", lambda: not sides.pods(number))
    assert slurm.job(number, "%Q") == "0"
    slurm.until("it runs again", number, "RUNNING")
    assert is_reserved(sides, number)


@pytest.mark.skipif(os.geteuid() != 0, reason="jobs of other users need root")
def test_every_running_job_has_its_reservation(sides: Both) -> None:
    """A mixed crowd: whenever we look, what runs in Slurm has its pods on the same nodes."""
    slurm = sides.slurm
    shapes = (("-N1", "--gres=gpu:1"), ("-N2", "--gres=gpu:2"), ("-N1", "--gres=gpu:4"))
    numbers = [
        slurm.submit("--uid=mail", *shapes[place % 3], script="sleep 0.5") for place in range(9)
    ]
    deadline = time.monotonic() + 120
    while slurm("squeue", "-h").strip():
        for number in slurm("squeue", "-h", "-t", "R", "-o", "%A").split():
            there = is_reserved(sides, number)
            assert there or slurm.job(number) != "RUNNING", f"{number} runs without its pods"
        assert time.monotonic() < deadline, slurm("squeue")
    assert {slurm.job(number) for number in numbers} == {"COMPLETED"}
