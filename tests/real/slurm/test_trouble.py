"""The bridge and both of its sides in trouble: killed, restarted, lost, and never wrong."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import pytest

from tests.real.slurm.bridged import Both, both
from tests.real.slurm.daemons import Shape
from tests.real.slurm.objects import clear, is_reserved, states_of
from tests.real.slurm.packages import NoSlurm

pytestmark = [pytest.mark.real, pytest.mark.slow]


@pytest.fixture(scope="module")
def running() -> Iterator[Both]:
    """Run both sides, two nodes of four GPUs, with the gate between them."""
    flags = ("--bind-timeout", "5", "--start-timeout", "10")
    try:
        with both(Shape(nodes=2, gpus=4), mode="gate", flags=flags) as found:
            yield found
    except NoSlurm as problem:
        pytest.skip(f"no real Slurm: {problem}")


@pytest.fixture
def sides(running: Both) -> Iterator[Both]:
    """Begin and end with nothing, and with a bridge."""
    yield running
    if running.bridge is None:
        running.start_bridge()
    clear(running)


def test_scenario_18_without_a_bridge_nothing_starts_and_what_runs_goes_on(sides: Both) -> None:
    slurm = sides.slurm
    runs = slurm.submit("-N1", "--gres=gpu:2")
    slurm.until("it", runs, "RUNNING")
    sides.kill_bridge()
    waits = slurm.submit("-N1", "--gres=gpu:1")
    forced = slurm.submit("-N1", "--gres=gpu:1")
    # An operator who marks and releases a job by hand gets past the gate, but not past the prolog.
    slurm("scontrol", "update", f"JobId={forced}", "AdminComment=unisono:pinned")
    slurm("scontrol", "release", str(forced))
    sides.until("the prolog refuses it", lambda: slurm.shown(forced)["Restarts"] != "0")
    assert "RUNNING" not in states_of(slurm, forced, seconds=2)
    assert states_of(slurm, waits, seconds=1) == {"PENDING"}
    assert slurm.job(runs) == "RUNNING"
    sides.start_bridge()
    slurm.until("it starts now", waits, "RUNNING")
    slurm.until("so does the other", forced, "RUNNING")
    assert slurm.job(runs) == "RUNNING"
    assert slurm.shown(runs)["Restarts"] == "0"
    for number in (runs, waits, forced):
        assert is_reserved(sides, number)


def test_a_bridge_that_dies_again_and_again_gets_everything_done(sides: Both) -> None:
    """Killed after 50, 100, … ms of work; each script runs once, none without its gang."""
    slurm = sides.slurm
    ran = slurm.directory / "ran"
    script = f"echo $SLURM_JOB_ID >> {ran}; sleep 0.3"
    numbers = [
        slurm.submit("-N2" if place % 2 else "-N1", "--gres=gpu:2", script=script)
        for place in range(6)
    ]
    for tries in range(12):
        if all(slurm.job(number) == "COMPLETED" for number in numbers):
            break
        if sides.bridge is None:
            sides.start_bridge()
        time.sleep(0.05 * (tries + 1))
        for running in slurm("squeue", "-h", "-t", "R", "-o", "%A").split():
            assert is_reserved(sides, running) or slurm.job(running) != "RUNNING"
        sides.kill_bridge()
    if sides.bridge is None:
        sides.start_bridge()
    for number in numbers:
        slurm.until("it", number, "COMPLETED")
    assert sorted(map(int, ran.read_text().split())) == numbers
    sides.until("no gang is left", lambda: not sides.objects("jobs") and not sides.objects("pods"))


def test_a_restarted_slurmctld_finds_its_jobs_and_their_gangs(sides: Both) -> None:
    slurm = sides.slurm
    runs = slurm.submit("-N2", "--gres=gpu:2")
    waits = slurm.submit("-N2", "--gres=gpu:4")
    slurm.until("it", runs, "RUNNING")
    sides.until("the other has a gang", lambda: len(sides.objects("jobs")) == 2)
    before = sides.pods(runs)
    slurm.stop("slurmctld")
    sides.until("the bridge notices", lambda: bool(sides.told("Slurm does not answer")))
    slurm.start_controller()
    slurm.wait_until_answering()
    assert sides.pods(runs) == before
    slurm.until("it goes on", runs, "RUNNING")
    assert states_of(slurm, waits, seconds=1) == {"PENDING"}
    slurm("scancel", str(runs))
    slurm.until("the other one starts", waits, "RUNNING")
    assert is_reserved(sides, waits)
    assert sides.pods(runs) == {}


def test_a_lost_node_loses_its_job_but_not_the_job_s_turn(sides: Both) -> None:
    slurm = sides.slurm
    number = slurm.submit("-N1", "--gres=gpu:4")
    slurm.until("it", number, "RUNNING")
    (lost,) = sides.pods(number).values()
    (other,) = {"g-1", "g-2"} - {lost}
    slurm.stop(f"slurmd-{lost}", signal.SIGKILL)
    slurm("scontrol", "update", f"NodeName={lost}", "State=DOWN", "Reason=test")
    try:
        sides.until("it restarts", lambda: slurm.shown(number)["Restarts"] == "1")
        slurm.until("it runs on the other node", number, "RUNNING")
        assert list(sides.pods(number).values()) == [other]
    finally:
        slurm.start_node(lost)
        slurm("scontrol", "update", f"NodeName={lost}", "State=RESUME")


def test_a_gang_that_kubernetes_lost_is_made_again_where_its_job_runs(sides: Both) -> None:
    """As after a restore of an older state: the job is not ended, its nodes are reserved anew."""
    slurm = sides.slurm
    number = slurm.submit("-N2", "--gres=gpu:3")
    slurm.until("it", number, "RUNNING")
    sides.kill_bridge()
    (gang,) = sides.objects("jobs")
    name = gang["metadata"]["name"]
    sides.patch("jobs", name, "slurm", {"metadata": {"finalizers": None}})
    sides.delete("jobs", name, "slurm")
    sides.until("it is gone", lambda: not sides.objects("jobs"))
    sides.start_bridge()
    sides.until("it is there again", lambda: is_reserved(sides, number))
    assert slurm.job(number) == "RUNNING"
    assert slurm.shown(number)["Restarts"] == "0"
