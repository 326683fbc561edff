"""Lines of a slurm.conf that people write, and what a real Slurm makes of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.real.slurm.daemons import (
    PARTITION,
    Shape,
    Slurm,
    directory_for,
    end,
    running,
    start_munge,
    write_configuration,
)
from tests.real.slurm.packages import NoSlurm, find, program
from unisono.cli.main import main

pytestmark = [pytest.mark.real, pytest.mark.slow]

WRITTEN = (
    "Requeue=1",
    "PrologFlags=Alloc,Serial",
    "PrologEpilogTimeout=600",
    "PartitionName=large-gpu Nodes=ALL MaxCPUs=32 MaxGPUs=4",
)
# What the warnings say to write instead; the caps are a QOS of the partition.
LEGAL = ("JobRequeue=1", "PrologFlags=Alloc,Serial", "PrologEpilogTimeout=600")
LARGE = "PartitionName=large-gpu Nodes=ALL"


def test_scenario_19_lines_that_kill_slurm_are_taken_and_put_right(
    capsys: pytest.CaptureFixture[str],
) -> None:
    try:
        find()
    except NoSlurm as problem:
        pytest.skip(f"no real Slurm: {problem}")
    with directory_for() as directory:
        slurm = Slurm(directory, Shape(nodes=1))
        try:
            start_munge(slurm)
            write_configuration(slurm, WRITTEN)
            assert "unrecognized key: Requeue" in _death_of(slurm)
            assert main(["slurm", "import", str(slurm.conf), "-o", "json"]) == 0
        finally:
            end(slurm)
    told = capsys.readouterr().out
    assert "JobRequeue" in told
    assert "MaxTRESPerJob" in told
    shape = Shape(nodes=1, lines=LEGAL, partitions=(PARTITION, LARGE))
    with running(shape) as slurm:
        assert "large-gpu" in slurm("sinfo", "-h", "-o", "%P")


def _death_of(slurm: Slurm) -> str:
    """Start slurmctld and return what it says while it dies."""
    (slurm.directory / "state").mkdir()
    done = subprocess.run(
        [program("slurmctld"), "-D", "-f", str(slurm.conf)],
        env=slurm.environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    log = Path(slurm.directory / "slurmctld.log")
    assert done.returncode != 0
    return done.stdout + done.stderr + (log.read_text() if log.exists() else "")
