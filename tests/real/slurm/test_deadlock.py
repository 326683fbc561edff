"""Two schedulers that disagree, on a real Slurm: shown without the bridge, ended, and prevented."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.real.slurm.bridged import Both, both
from tests.real.slurm.daemons import Shape
from tests.real.slurm.objects import comment, is_reserved, pod
from tests.real.slurm.packages import NoSlurm

pytestmark = [pytest.mark.real, pytest.mark.slow]

# A prolog as people write it: it waits until the pods of its job run (the tests make the pods, and
# the file once they do), and has a time limit of ten minutes.
_WAITS = """\
#!/bin/sh
while ! [ -e {directory}/runs-$SLURM_JOB_ID ]; do /bin/sleep 0.1; done
"""


@contextmanager
def _naive(*flags: str) -> Iterator[Both]:
    """Run both sides with such a prolog, and no hook of ours."""
    shape = Shape(nodes=1, gpus=8)
    try:
        with both(shape, prolog=_WAITS, lines=("PrologEpilogTimeout=600",), flags=flags) as sides:
            yield sides
    except NoSlurm as problem:
        pytest.skip(f"no real Slurm: {problem}")


def _gpus(sides: Both, count: int) -> None:
    """Let the node have so many GPUs in Kubernetes, whatever Slurm believes."""
    room = {"allocatable": {"nvidia.com/gpu": str(count)}}
    sides.patch("nodes", "g-1", "", {"status": room}, status=True)


def _doctor(sides: Both, *flags: str) -> tuple[int, dict[str, dict[str, object]]]:
    """Ask the doctor; return its exit code and what it found, by class."""
    said = sides.slurm_verb("doctor", "-o", "json", "--bind-timeout", "1", *flags)
    assert said.stdout, said.stderr
    found = json.loads(said.stdout)["mismatches"]
    return said.returncode, {one["class"]: one for one in found}


def test_scenario_16_the_deadlock_without_a_bridge_is_named_and_ended() -> None:
    with _naive() as sides:
        slurm = sides.slurm
        _gpus(sides, 4)
        stuck = slurm.submit("-N1", "--gres=gpu:8")
        slurm.until("its prolog waits", stuck, "CONFIGURING")
        sides.apply(pod("stuck", gpus=8, labels={"slurm-job-id": str(stuck)}))
        waits = slurm.submit("-N1", "--gres=gpu:1")
        sides.until("the other waits for it", lambda: slurm.job(waits, "%r") == "Resources")
        time.sleep(2)
        code, found = _doctor(sides)
        assert code == 1
        assert found["deadlock"]["jobs"] == [str(stuck), str(waits)]
        assert found["phantom"]["slurm"] == 1
        assert found["phantom"]["kubernetes"] == 0
        text = sides.slurm_verb("doctor", "--bind-timeout", "1").stdout
        assert "deadlock" in text
        assert f"job {waits} waits for it" in text

        code, found = _doctor(sides, "--fix")
        assert code == 0
        assert "held" in str(found["deadlock"]["done"])
        sides.apply(pod("waits", gpus=1, labels={"slurm-job-id": str(waits)}))
        (slurm.directory / f"runs-{waits}").touch()
        slurm.until("the other one runs", waits, "RUNNING")
        assert slurm.job(stuck, "%T %Q") == "PENDING 0"
        assert "pods cannot start" in comment(slurm, stuck)
        code, found = _doctor(sides)
        assert "deadlock" not in found


def test_scenario_14_the_mismatch_without_a_bridge() -> None:
    with _naive() as sides:
        slurm = sides.slurm
        sides.apply(pod("other", gpus=7, node="g-1"))
        code, found = _doctor(sides)
        assert code == 1
        assert found["over-belief"]["slurm"] == 8
        assert found["over-belief"]["kubernetes"] == 1
        number = slurm.submit("-N1", "--gres=gpu:2")
        assert slurm.until("Slurm starts it", number, "CONFIGURING") == "CONFIGURING"
        (slurm.directory / f"runs-{number}").touch()
        slurm("scancel", str(number))
        slurm.until("it ends", number, "CANCELLED", "COMPLETED")
        assert _doctor(sides, "--fix")[0] == 0
        sides.until("Slurm knows now", lambda: "over-belief" not in _doctor(sides)[1])
        after = slurm.submit("-N1", "--gres=gpu:2")
        sides.until("so the job waits", lambda: slurm.job(after, "%r") == "Resources")


def test_scenario_16_the_bridge_ends_it_within_the_bind_timeout() -> None:
    with _naive() as sides:
        slurm = sides.slurm
        sides.start_bridge("--bind-timeout", "4", "--no-node-sync")
        _gpus(sides, 4)
        stuck = slurm.submit("-N1", "--gres=gpu:8")
        slurm.until("its prolog waits", stuck, "CONFIGURING")
        waits = slurm.submit("-N1", "--gres=gpu:1")
        (slurm.directory / f"runs-{waits}").touch()
        slurm.until("the other one runs", waits, "RUNNING")
        assert sides.figure("unisono_slurm_deadlocks_resolved_total") == 1
        assert slurm.job(stuck, "%T %Q") == "PENDING 0"
        assert "it holds nodes in Slurm" in comment(slurm, stuck)
        (gang,) = [
            one for one in sides.objects("workloads") if f"-{stuck}-" in one["metadata"]["name"]
        ]
        _gpus(sides, 8)
        slurm("scancel", str(waits))
        (slurm.directory / f"runs-{stuck}").touch()
        slurm.until("it starts when there is room", stuck, "RUNNING")
        assert is_reserved(sides, stuck)
        same = [
            one for one in sides.objects("workloads") if f"-{stuck}-" in one["metadata"]["name"]
        ]
        assert [one["metadata"]["creationTimestamp"] for one in same] == [
            gang["metadata"]["creationTimestamp"]
        ]
