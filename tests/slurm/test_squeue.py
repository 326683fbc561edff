"""squeue prints what the real one prints: spec slurm §7."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.slurm.fake_api import FakeApi, around, job
from unisono.slurm.verbs.around import Refused
from unisono.slurm.verbs.squeue import run

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def _zone(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


# As a real 22.05 printed them, to the blank.
DEFAULT = """\
             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)
                 2      main       m1      man PD       0:00      1 (Resources)
                 4      main       a1     mail PD       0:00      1 (Priority)
                12      main   pbegin     news PD       0:00      1 (BeginTime)
                11      main    pheld     news PD       0:00      1 (JobHeldUser)
                 9 urgent,ma       pa     mail PD       0:00      1 (Priority)
       48_[2-15%2]      main      arr    games PD       0:00      1 (JobArrayTaskLimit)
                 5      main       pg    games  R       0:08      2 gpu[2-3]
"""
START = """\
             JOBID PARTITION     NAME     USER ST          START_TIME  NODES SCHEDNODES           NODELIST(REASON)
                52      main        B    games PD 2026-11-15T18:43:13      4 gpu[1-4]             (Resources)
                53      main        C    games PD                 N/A      1 (null)               (Priority)
"""  # noqa: E501 - as it is printed


def _jobs() -> list[Json]:
    running = {"startTime": "2026-11-15T17:59:52Z"}
    array = {"array": {"tasks": "0-15", "limit": 2}}
    made = [
        job(2, "m1", "man", reason="Resources"),
        job(4, "a1", "mail", reason="Priority"),
        job(12, "pbegin", "news", reason="BeginTime"),
        job(11, "pheld", "news", reason="JobHeldUser"),
        job(9, "pa", "mail", reason="Priority", options={"partition": "urgent,main"}),
        job(48, "arr", "games", reason="JobArrayTaskLimit", spec=array, status={"opened": 2}),
        job(5, "pg", "games", "RUNNING", nodes=2, on=["gpu2", "gpu3"], status=running),
        job(6, "old", "games", "COMPLETED"),
    ]
    made[5]["status"]["opened"] = 2
    return made


def test_the_default_table() -> None:
    printed = run(["--sort=t"], around(FakeApi(_jobs()))).text
    assert sorted(printed.splitlines()) == sorted(DEFAULT.splitlines())
    assert printed.splitlines()[0] == DEFAULT.splitlines()[0]


def test_planned_starts() -> None:
    planned = job(
        52,
        "B",
        "games",
        reason="Resources",
        nodes=4,
        status={
            "expectedStart": "2026-11-15T18:43:13Z",
            "plannedNodes": ["gpu1", "gpu2", "gpu3", "gpu4"],
        },
    )
    later = job(53, "C", "games", reason="Priority")
    assert run(["--start"], around(FakeApi([planned, later]))).text == START


def test_the_long_table_has_states_and_limits() -> None:
    line = run(["-l", "-h", "-j5"], around(FakeApi(_jobs()))).text
    assert line.lstrip() == (
        "5      main       pg    games  RUNNING       0:08 UNLIMITED      2 gpu[2-3]\n"
    )


def test_formats_of_ones_own() -> None:
    api = around(FakeApi(_jobs()))
    assert run(["-h", "-o", "%i|%j|%t", "-u", "man"], api).text == "2|m1|PD\n"
    assert (
        run(["-h", "-O", "JobID:5,State:.9,Name:3", "-j", "5"], api).text == "5      RUNNINGpg \n"
    )
    with pytest.raises(Refused, match="Invalid job format"):
        run(["-o", "%H"], api)


def test_tasks_of_an_array_one_by_one() -> None:
    array = job(48, "arr", "games", spec={"array": {"tasks": "0-3", "limit": 0}})
    task = job(
        49, "arr", "games", "RUNNING", on=["n1"], spec={"task": {"arrayJobId": 48, "index": 0}}
    )
    waits = job(50, "arr", "games", spec={"task": {"arrayJobId": 48, "index": 1}})
    array["status"]["opened"] = 2
    api = around(FakeApi([array, task, waits]))
    assert [line.split()[0] for line in run(["-h"], api).text.splitlines()] == ["48_[1-3]", "48_0"]
    split = [line.split()[0] for line in run(["-h", "-r"], api).text.splitlines()]
    assert sorted(split) == ["48_0", "48_1", "48_2", "48_3"]


def test_a_name_cannot_break_the_table() -> None:
    odd = job(7, "a\nb\x1b[2J", "ann", reason="None")
    text = run(["-h", "-o", "%i %j"], around(FakeApi([odd]))).text
    assert text == "7 a?b?[2J\n"


def test_states_and_unknown_jobs() -> None:
    api = around(FakeApi(_jobs()))
    assert "old" in run(["-h", "-t", "all"], api).text
    assert run(["-h", "-t", "CD", "-o", "%i"], api).text == "6\n"
    with pytest.raises(Refused, match="Invalid job id specified"):
        run(["-j", "77"], api)
    with pytest.raises(Refused, match="unrecognized option"):
        run(["--nonsense"], api)


def test_json_has_the_fields_that_scripts_read() -> None:
    found = json.loads(run(["--json", "-j", "5"], around(FakeApi(_jobs()))).text)
    (one,) = found["jobs"]
    assert (one["job_id"], one["job_state"], one["nodes"]) == (5, "RUNNING", "gpu[2-3]")
    assert one["tres_req_str"] == "cpu=16,mem=2G,node=2,billing=16"


def test_many_jobs_are_read_without_their_templates() -> None:
    many = [job(number, "fill", "ann", reason="Priority") for number in range(1, 300)]
    text = run(["-h"], around(FakeApi(many))).text
    assert text.splitlines()[0].split() == [
        *("1", "main", "fill", "ann", "PD", "0:00", "1"),
        "(Priority)",
    ]
    assert text.count("\n") == 299
    assert run(["-h", "-o", "%C", "-j1"], around(FakeApi(many))).text == "8\n"
