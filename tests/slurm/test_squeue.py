"""squeue prints what the real one prints: spec slurm §7."""

from __future__ import annotations

import json

import pytest

from tests.slurm.fake_api import NOW, FakeApi, context, job
from unisono.kube.form import Json
from unisono.slurm.commands.context import Refused
from unisono.slurm.commands.squeue import run


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
    printed = run(["--sort=t"], context(FakeApi(_jobs()))).text
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
    assert run(["--start"], context(FakeApi([planned, later]))).text == START


def test_the_long_table_has_states_and_limits() -> None:
    line = run(["-l", "-h", "-j5"], context(FakeApi(_jobs()))).text
    assert line.lstrip() == (
        "5      main       pg    games  RUNNING       0:08 UNLIMITED      2 gpu[2-3]\n"
    )


def test_formats_of_ones_own() -> None:
    api = context(FakeApi(_jobs()))
    assert run(["-h", "-o", "%i|%j|%t", "-u", "man"], api).text == "2|m1|PD\n"
    assert (
        run(["-h", "-O", "JobID:5,State:.9,Name:3", "-j", "5"], api).text == "5      RUNNINGpg \n"
    )
    with pytest.raises(Refused, match="Invalid job format"):
        run(["-O", "nonsense"], api)


# Of the same job on a real 22.05; of ours the number of cores and the cluster differ.
EVERY_LETTER = (
    "%A|%a|%B|%d|%D|%E|%f|%F|%h|%H|%i|%I|%j|%J|%k|%K|%l|%M|%n|%N|%O|%P|%r|%R|%s|%t|%T|%u|%v|%w|%W|"
    "%x|%X|%y|%Y|%z"
)
MEASURED = """\
JOBID|ACCOUNT|EXEC_HOST|MIN_TMP_DISK|NODES|DEPENDENCY|FEATURES|ARRAY_JOB_ID|OVER_SUBSCRIBE|\
SOCKETS_PER_NODE|JOBID|CORES_PER_SOCKET|NAME|THREADS_PER_CORE|COMMENT|ARRAY_TASK_ID|TIME_LIMIT|TIME|\
REQ_NODES|NODELIST|CONTIGUOUS|PARTITION|REASON|NODELIST(REASON)||ST|STATE|USER|RESERVATION|WCKEY|\
LICENSES|EXC_NODES|CORE_SPEC|NICE|SCHEDNODES|S:C:T
2|(null)|n/a|0|4|(null)|(null)|2|NO|*|2|*|two|*|(null)|N/A|5:00|0:00|||0|main|Resources|(Resources)||PD|\
PENDING|root|(null)|(null)|(null)||N/A|0|g-[1-4]|*:*:*
1|(null)|g-1|0|2|(null)|(null)|1|OK|*|1|*|one|*|(null)|N/A|5:00|0:05||g-[1-2]|0|main|None|g-[1-2]||R|\
RUNNING|root|(null)|(null)|(null)||N/A|0|(null)|*:*:*
"""


def _two() -> list[Json]:
    planned = {"plannedNodes": [f"g-{n}" for n in range(1, 5)]}
    started = {"startTime": "2026-11-15T17:59:55Z"}
    return [
        job(2, "two", "root", reason="Resources", nodes=4, status=planned),
        job(1, "one", "root", "RUNNING", nodes=2, on=["g-1", "g-2"], status=started),
    ]


def test_every_letter_as_measured() -> None:
    two, one = _two()
    two["spec"]["options"] |= {"time": "5", "exclusive": ""}
    one["spec"]["options"] |= {"time": "5"}
    api = context(FakeApi([two, one]))
    assert run(["-o", EVERY_LETTER], api).text == MEASURED


def test_steps_as_measured() -> None:
    assert run(["-s"], context(FakeApi(_two()))).text == (
        "         STEPID     NAME PARTITION     USER      TIME NODELIST\n"
        "        1.batch    batch      main     root      0:05 g-1\n"
    )


def test_a_long_table_says_when_it_was_made() -> None:
    printed = run(["-l"], context(FakeApi(_two()))).text
    assert printed.splitlines()[0] == "Sun Nov 15 18:00:00 2026"


def test_iterates() -> None:
    said: list[str] = []

    def pause(seconds: float) -> float:
        assert seconds == 5
        if len(said) == 2:
            raise KeyboardInterrupt
        return NOW + 5

    with pytest.raises(KeyboardInterrupt):
        run(["-h", "-i5"], context(FakeApi(_two()), say=said.append, pause=pause))
    assert [one.splitlines()[0] for one in said] == [
        "Sun Nov 15 18:00:00 2026",
        "Sun Nov 15 18:00:05 2026",
    ]


def test_tasks_of_an_array_one_by_one() -> None:
    array = job(48, "arr", "games", spec={"array": {"tasks": "0-3", "limit": 0}})
    task = job(
        49, "arr", "games", "RUNNING", on=["n1"], spec={"task": {"arrayJobId": 48, "index": 0}}
    )
    waits = job(50, "arr", "games", spec={"task": {"arrayJobId": 48, "index": 1}})
    array["status"]["opened"] = 2
    api = context(FakeApi([array, task, waits]))
    assert [line.split()[0] for line in run(["-h"], api).text.splitlines()] == ["48_[1-3]", "48_0"]
    split = [line.split()[0] for line in run(["-h", "-r"], api).text.splitlines()]
    assert sorted(split) == ["48_0", "48_1", "48_2", "48_3"]


def test_a_name_cannot_break_the_table() -> None:
    odd = job(7, "a\nb\x1b[2J", "ann", reason="None")
    text = run(["-h", "-o", "%i %j"], context(FakeApi([odd]))).text
    assert text == "7 a?b?[2J\n"


def test_states_and_unknown_jobs() -> None:
    api = context(FakeApi(_jobs()))
    assert "old" in run(["-h", "-t", "all"], api).text
    assert run(["-h", "-t", "CD", "-o", "%i"], api).text == "6\n"
    unknown = run(["-j", "77"], api)
    assert unknown == ("", "slurm_load_jobs error: Invalid job id specified\n", 1)
    with pytest.raises(Refused, match="unrecognized option"):
        run(["--nonsense"], api)


def test_json_has_the_fields_that_scripts_read() -> None:
    found = json.loads(run(["--json", "-j", "5"], context(FakeApi(_jobs()))).text)
    (one,) = found["jobs"]
    assert (one["job_id"], one["job_state"], one["nodes"]) == (5, "RUNNING", "gpu[2-3]")
    assert one["tres_req_str"] == "cpu=16,mem=2G,node=2,billing=16"


def test_many_jobs_are_read_without_their_templates() -> None:
    many = [job(number, "fill", "ann", reason="Priority") for number in range(1, 300)]
    text = run(["-h"], context(FakeApi(many))).text
    assert text.splitlines()[0].split() == [
        *("1", "main", "fill", "ann", "PD", "0:00", "1"),
        "(Priority)",
    ]
    assert text.count("\n") == 299
    assert run(["-h", "-o", "%C", "-j1"], context(FakeApi(many))).text == "8\n"
