"""sprio, sshare, sacct, sinfo, scontrol and the others print what the real ones print."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.slurm.fake_api import FakeApi, context, job
from unisono.cli.main import main
from unisono.kinds.overriding import override
from unisono.kube.form import Json
from unisono.slurm.commands import sacct, scancel, scontrol, sdiag, sinfo, sprio, sreport, sshare
from unisono.slurm.commands.context import Refused
from unisono.slurm.site import MAP

TURNS = "/api/v1/namespaces/kube-system/configmaps/slurm-turns"
WEIGHTS = {
    "age": 1000,
    "assoc": 100,
    "fairshare": 10000,
    "jobsize": 500,
    "partition": 2000,
    "qos": 3000,
    "tres": {"cpu": 100, "mem": 200, "gres/gpu": 700},
    "classic": False,
}
# site, age, assoc, fair share, size, partition, QOS, nice, TRES: the first job of the reference.
PARTS = [0, 10.83, 0, 3333.33, 70.31, 500, 1500, 0, {"cpu": 3.125, "mem": 0.78, "gres/gpu": 175}]
SHARES = [
    ["root", None, 0, 1, 0.0, 6183.0, 1.0, 1.0, 0.0, None],
    ["root", "root", 1, 1, 0.00990099, 0.0, 0.0, 0.0, 1.0, "inf"],
    ["prod", None, 1, 40, 0.3960396, 726.19, 0.11745, 0.11745, 0.0, 3.371984],
    ["prod", "mail", 2, 1, 0.5, 321.75, 0.052037, 0.443058, 0.8333333, 1.128521],
    ["research", None, 1, 60, 0.5940594, 5457.1, 0.88255, 0.88255, 0.0, 0.673117],
    ["vision", None, 2, 30, 0.75, 5457.1, 0.88255, 1.0, 0.0, 0.75],
    ["vision", "games", 3, 1, 0.25, 5457.1, 0.88255, 1.0, 0.1666667, 0.25],
]


@pytest.fixture(autouse=True)
def _zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def _told() -> Json:
    told = {
        "at": 1_794_765_600_000,
        "cycles": 12,
        "queue": 3,
        "weights": WEIGHTS,
        "priorities": {"2": 5593},
        "factors": {"2": PARTS},
        "shares": SHARES,
    }
    return {TURNS: {"data": {"turns": json.dumps(told)}}}


def test_sprio_as_measured() -> None:
    api = context(FakeApi([job(2, "m1", "man")], _told()))
    assert sprio.run(["-l"], api).text == (
        "          JOBID PARTITION     USER   PRIORITY       SITE        AGE      ASSOC  FAIRSHARE"
        "    JOBSIZE  PARTITION        QOS        NICE                 TRES\n"
        "              2 main           man       5593          0         11          0       3333"
        "         70        500       1500           0 cpu=3,mem=1,gres/gpu\n"
    )
    head, weights = sprio.run(["-w"], api).text.splitlines()
    assert head.lstrip() == (
        "JOBID PARTITION   PRIORITY       SITE        AGE      ASSOC  FAIRSHARE    JOBSIZE"
        "  PARTITION        QOS                 TRES"
    )
    assert weights.lstrip() == (
        "Weights                               1       1000        100      10000        500"
        "       2000       3000 CPU=100,Mem=200,GRES"
    )
    assert len(head) == len(weights)
    with pytest.raises(Refused, match="without a SchedulingPolicy"):
        sprio.run([], context(FakeApi()))


def test_sshare_as_measured() -> None:
    api = context(FakeApi(objects=_told()))
    assert sshare.run(["-a", "-l", "-P"], api).text.splitlines() == [
        "Account|User|RawShares|NormShares|RawUsage|NormUsage|EffectvUsage|FairShare|LevelFS"
        "|GrpTRESMins|TRESRunMins",
        "root|||0.000000|6183||1.000000||||",
        " root|root|1|0.009901|0|0.000000|0.000000|1.000000|inf||",
        " prod||40|0.396040|726|0.117450|0.117450||3.371984||",
        "  prod|mail|1|0.500000|321|0.052037|0.443058|0.833333|1.128521||",
        " research||60|0.594059|5457|0.882550|0.882550||0.673117||",
        "  vision||30|0.750000|5457|0.882550|1.000000||0.750000||",
        "   vision|games|1|0.250000|5457|0.882550|1.000000|0.166667|0.250000||",
    ]
    mine = sshare.run(["-h"], context(FakeApi(objects=_told()), user="mail")).text
    assert mine.count("mail") == 1
    assert "games" not in mine


def test_sacct_as_measured() -> None:
    times = {"startTime": "2026-11-15T17:00:00Z", "endTime": "2026-11-15T17:30:00Z"}
    ended = job(
        1,
        "g1",
        "games",
        "CANCELLED",
        on=["gpu1"],
        options={"account": "vision"},
        status={**times, "exitCode": "0:15"},
    )
    api = context(FakeApi([ended]), user="root", user_id=0)
    assert sacct.run([], api).text == (
        "JobID           JobName  Partition    Account  AllocCPUS      State ExitCode \n"
        "------------ ---------- ---------- ---------- ---------- ---------- -------- \n"
        "1                    g1       main     vision          8  CANCELLED     0:15 \n"
        "1.batch           batch                vision          8  CANCELLED     0:15 \n"
    )
    assert sacct.run(["-X", "-n", "-P", "-o", "jobid,elapsed,state"], api).text == (
        "1|00:30:00|CANCELLED\n"
    )
    assert sacct.run(["-n", "-S", "now"], api).text == ""
    assert sacct.run(["-n"], context(FakeApi([ended]))).text == ""  # of another user
    wanted = [
        "-X",
        "-n",
        "-P",
        "-o",
        "ReqMem,MaxRSS,TimelimitRaw,Planned,AllocNodes,DerivedExitCode",
    ]
    assert sacct.run(wanted, api).text == "1G||UNLIMITED|00:00:00|1|0:15\n"
    with pytest.raises(Refused, match="Invalid field"):
        sacct.run(["-o", "nonsense"], api)
    found = sreport.run(["-nP", "user", "top", "start=2026-11-15T00:00:00Z"], api).text
    assert found == "unisono|games|games|vision|240|0\n"


def _node(name: str, **spec: Any) -> Json:
    amounts = {"cpu": "32", "memory": "256Gi", "nvidia.com/gpu": "8"}
    labels = {"partition.unisono.dev/main": "true", "unisono.dev/gpu-type": "a100"}
    note = "Prolog error|root|2026-11-15T18:06:48Z"
    annotations = {"unisono.dev/drain-reason": note} if spec else {}
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    return {"metadata": metadata, "spec": spec, "status": {"allocatable": amounts}}


def _cluster() -> dict[str, Any]:
    conf = "PartitionName=main Nodes=ALL Default=YES MaxTime=7-0\n"
    nodes = [_node("gpu1", unschedulable=True), *(_node(f"gpu{n}") for n in range(2, 5))]
    return {
        "/api/v1/nodes": {"items": nodes},
        **{f"/api/v1/nodes/{one['metadata']['name']}": one for one in nodes},
        "/api/v1/pods": {"items": []},
        MAP: {"data": {"slurm.conf": conf}, "metadata": {}},
    }


def test_sinfo_as_measured() -> None:
    api = context(FakeApi(objects=_cluster()))
    assert sinfo.run([], api).text == (
        "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
        "main*        up 7-00:00:00      1  drain gpu1\n"
        "main*        up 7-00:00:00      3   idle gpu[2-4]\n"
    )
    assert sinfo.run(["-R"], api).text == (
        "REASON               USER      TIMESTAMP           NODELIST\n"
        "Prolog error         root      2026-11-15T18:06:48 gpu1\n"
    )
    assert sinfo.run(["-h", "-t", "idle", "-o", "%D"], api).text == "3\n"
    assert sinfo.run(["-s"], api).text == (
        "PARTITION AVAIL  TIMELIMIT   NODES(A/I/O/T) NODELIST\n"
        "main*        up 7-00:00:00          0/3/1/4 gpu[1-4]\n"
    )
    when, heads, _, first = sinfo.run(["-N", "-l"], api).text.splitlines()[:4]
    assert when == "Sun Nov 15 18:00:00 2026"
    assert heads == (
        "NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE "
        "REASON              "
    )
    assert first[:43] == "gpu2           1     main*        idle 32  "
    assert sinfo.run(["-h", "-o", "%P %F"], api).text == "main* 0/3/1/4\n"


def test_scontrol_shows_records_and_host_lists() -> None:
    api = context(FakeApi([job(19, "rq", "games", reason="BeginTime")], _cluster()))
    shown = scontrol.run(["show", "job", "19"], api).text
    assert shown.startswith("JobId=19 JobName=rq\n   UserId=games(0)")
    assert "\n   JobState=PENDING Reason=BeginTime Dependency=(null)\n" in shown
    assert scontrol.run(["-o", "show", "job", "19"], api).text.count("\n") == 1
    node = scontrol.run(["show", "node", "gpu1"], api).text
    assert "State=IDLE+DRAIN" in node
    assert "Gres=gpu:a100:8" in node
    assert "Reason=Prolog error [root@2026-11-15T18:06:48]" in node
    assert scontrol.run(["show", "hostnames", "n[1-2]"], api).text == "n1\nn2\n"
    assert scontrol.run(["show", "hostlist", "n1,n2"], api).text == "n[1-2]\n"
    missing = "slurm_load_jobs error: Invalid job id specified\n"
    assert scontrol.run(["show", "job", "99"], api) == ("", missing, 1)


@pytest.mark.parametrize(
    ("words", "printed"),  # as a real 22.05 does
    [
        (["show", "jobid", "19"], "JobId=19 JobName=rq"),
        (["show", "job=19"], "JobId=19 JobName=rq"),
        (["show", "j", "19"], "JobId=19 JobName=rq"),
        (["show", "nodes", "gpu2"], "NodeName=gpu2 Arch"),
        (["show", "partition"], "PartitionName=main"),
        (["show", "licenses"], "No licenses configured in Slurm."),
        (["show", "step"], "No job steps in the system"),
        (["show", "config"], "Configuration data as of 2026-11-15T18:00:00"),
    ],
)
def test_scontrol_shows_by_many_names(words: list[str], printed: str) -> None:
    api = context(FakeApi([job(19, "rq", "games")], _cluster()))
    assert scontrol.run(words, api).text.splitlines()[0].startswith(printed)


def test_scontrol_shows_when_reservations_begin_and_end() -> None:
    """It is 18:00: one is now, one comes again tomorrow, one has an end instead of a duration."""
    said = [
        {"name": "now", "start": "2026-11-15T17:30:00Z", "duration": "1h", "nodes": ["n1", "n2"]},
        {"name": "fans", "start": "2026-11-10T08:00:00Z", "duration": "90m", "repeat": "Daily"},
        {
            "name": "move",
            "start": "2026-11-20T08:00:00Z",
            "end": "2026-11-22T08:00:00Z",
            "maintenance": True,
        },
    ]
    policies = {"/apis/unisono.dev/v1/policies": {"items": [{"reservations": said}]}}
    lines = scontrol.run(["show", "reservation"], context(FakeApi([], policies))).text.splitlines()
    assert lines[0] == (
        "ReservationName=now StartTime=2026-11-15T17:30:00 EndTime=2026-11-15T18:30:00 "
        "Duration=01:00:00"
    )
    assert lines[1] == "   Nodes=n[1-2] Flags= State=ACTIVE"
    assert "StartTime=2026-11-16T08:00:00 EndTime=2026-11-16T09:30:00" in lines[4]
    assert lines[5] == "   Nodes=ALL Flags=DAILY State=INACTIVE"
    assert "EndTime=2026-11-22T08:00:00 Duration=2-00:00:00" in lines[8]


def test_hosts_are_those_of_the_job_that_asks() -> None:
    inside = context(FakeApi(), environment={"SLURM_JOB_NODELIST": "g-[1-2]"})
    assert scontrol.run(["show", "hostnames"], inside).text == "g-1\ng-2\n"
    with pytest.raises(Refused, match="host list is empty"):
        scontrol.run(["show", "hostnames"], context(FakeApi()))


def test_scontrol_refuses_in_slurms_words_and_says_what_to_do_instead() -> None:
    api = context(FakeApi([], _cluster()))
    assert scontrol.run(["foo"], api) == ("", "invalid keyword: foo\n", 1)
    assert scontrol.run(["show", "foo"], api) == ("", "invalid entity:foo for keyword:show \n", 1)
    text, error, code = scontrol.run(["suspend", "5"], api)
    assert (text, code) == ("", 1)
    assert "use requeuehold" in error


def test_the_script_of_a_job_can_be_had_again() -> None:
    one = job(19, "rq", "games", spec={"script": "rq-19"})
    secret = {"data": {"script": "IyEvYmluL3NoCmRhdGUK"}}
    path = "/api/v1/namespaces/default/secrets/rq-19"
    saved: dict[str, str] = {}
    api = context(FakeApi([one], {path: secret}), save=saved.__setitem__)
    assert scontrol.run(["write", "batch_script", "19", "-"], api).text == "#!/bin/sh\ndate\n"
    assert scontrol.run(["write", "batch_script", "19"], api).text == (
        "batch script for job 19 written to slurm-19.sh\n"
    )
    assert saved == {"slurm-19.sh": "#!/bin/sh\ndate\n"}


def test_scontrol_and_scancel_write_what_is_asked() -> None:
    api = FakeApi([job(5, "a", "ann"), job(6, "b", "ann", "COMPLETED")], _cluster())
    here = context(api)
    scontrol.run(["hold", "5"], here)
    scontrol.run(["update", "JobId=5", "TimeLimit=2:00:00", "Nice=7"], here)
    scontrol.run(["update", "NodeName=gpu[2-3]", "State=DRAIN", "Reason=fan"], here)
    assert scancel.run(["5"], here).code == 0
    outcome = scancel.run(["6", "77"], here)
    assert outcome.code == 1
    assert "already completing" in outcome.error
    assert "Invalid job id specified" in outcome.error
    hold, limit, first, second, stop = [body for _, _, body in api.written]
    assert hold["metadata"]["annotations"] == {"unisono.dev/hold": "user"}
    assert limit["spec"]["options"] == {"time": "120", "nice": "7"}
    assert first == second
    assert first["spec"] == {"unschedulable": True}
    assert stop == {"spec": {"stop": "cancel:1000"}}
    with pytest.raises(Refused, match="reason"):
        scontrol.run(["update", "NodeName=gpu2", "State=DRAIN"], here)


def test_release_takes_an_administrators_hold_off_the_workload_too() -> None:
    held = job(5, "a", "ann")
    held["metadata"]["annotations"] = {"unisono.dev/hold": "admin"}
    held["metadata"]["uid"] = "mine"
    others = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads"
    items = [
        {
            "metadata": {
                "name": f"w-{uid}",
                "ownerReferences": [{"uid": uid}],
                "annotations": {"unisono.dev/hold": "admin"},
            }
        }
        for uid in ("mine", "others")
    ]
    api = FakeApi([held], {others: {"items": items}})
    assert scontrol.run(["release", "5"], context(api)).code == 1  # she may not
    assert api.written == []
    assert scontrol.run(["release", "5"], context(api, user_id=0)).code == 0
    freed = {"metadata": {"annotations": {"unisono.dev/hold": None}}}
    assert [(path.rpartition("/")[2], body) for _, path, body in api.written] == [
        (held["metadata"]["name"], freed),
        ("w-mine", freed),
    ]


def test_sdiag_counts_jobs_and_cycles() -> None:
    text = sdiag.run(
        [], context(FakeApi([job(1, "a", "ann"), job(2, "b", "b", "FAILED")], _told()))
    ).text
    assert "Jobs submitted: 2\n" in text
    assert "\tTotal cycles: 12\n" in text


def test_sdiag_tells_how_long_cycles_take() -> None:
    class Told(FakeApi):
        @override
        def call(
            self, method: str, path: str, body: object = None, *, kind: str = "application/json"
        ) -> bytes:
            return CYCLES if path == "/metrics" else super().call(method, path, body, kind=kind)

    text = sdiag.run([], context(Told([], _told()))).text
    assert "\tMax cycle:   4000\n\tMean cycle:   2500\n" in text
    told = json.loads(sdiag.run(["--json"], context(Told([], _told()))).text)
    assert told["statistics"]["schedule_cycle_mean"] == 2500


CYCLES = b"""\
unisono_cycle_duration_seconds_bucket{phase="total",le="0.002"} 1
unisono_cycle_duration_seconds_bucket{phase="total",le="0.004"} 2
unisono_cycle_duration_seconds_bucket{phase="total",le="+Inf"} 2
unisono_cycle_duration_seconds_sum{phase="total"} 0.005
unisono_cycle_duration_seconds_count{phase="total"} 2
"""


def test_refuses_unknown_states_without_asking_the_api() -> None:
    here = context(FakeApi())
    with pytest.raises(Refused, match="Invalid job state specified: BOGUS"):
        scancel.run(["-t", "bogus"], here)
    with pytest.raises(Refused, match="unrecognized job state value 'BOGUS'"):
        sacct.run(["-s", "bogus"], here)


def test_links_are_made_and_files_of_others_are_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sinfo").write_text("mine")
    assert main(["slurm", "links", str(tmp_path)]) == 1
    assert capsys.readouterr().out == f"export PATH={tmp_path}:$PATH\n"
    assert (tmp_path / "sinfo").read_text() == "mine"
    asked = subprocess.run(
        [tmp_path / "squeue", "--version"],
        cwd=_full_of_traps(tmp_path),
        capture_output=True,
        check=False,
    )
    assert (asked.returncode, asked.stdout[:5]) == (0, b"slurm"), asked.stderr
    (tmp_path / "sinfo").unlink()
    assert main(["slurm", "links", str(tmp_path)]) == 0  # its own are made anew


def _full_of_traps(folder: Path) -> Path:
    """Return a user's folder with files that have the names of our modules."""
    (folder / "traps").mkdir()
    (folder / "traps" / "json.py").write_text("raise SystemExit(9)")
    return folder / "traps"
