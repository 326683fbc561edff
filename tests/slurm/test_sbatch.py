"""From a script to a stored gang: spec slurm §4 and §5, scenarios 11 to 13."""

from __future__ import annotations

import base64
import shlex
import subprocess
from typing import Any

import pytest

from tests.slurm.fake_api import FakeApi, context, job
from unisono.kinds.overriding import override
from unisono.kube.form import Json
from unisono.slurm.client import ApiClient
from unisono.slurm.commands.context import PlannedStart, Refused
from unisono.slurm.commands.sbatch import run
from unisono.slurm.sbatch.arrays import BadArray, read_array
from unisono.slurm.sbatch.layout import BadRequest, NodeSize, Site, layout_of
from unisono.slurm.sbatch.options import of_script
from unisono.slurm.site import MAP

NODES = NodeSize(64, 524_288, 8, 4)
CONF = """
ClusterName=hpc
DefMemPerCPU=1024
MaxArraySize=101
NodeName=gpu[1-4] CPUs=64 RealMemory=524288 Gres=gpu:a100:8
PartitionName=main Nodes=ALL Default=YES MaxTime=60
PartitionName=off Nodes=ALL State=INACTIVE
"""


def _shape(packs: bool = False, **options: object) -> list[tuple[int, int, int]]:
    """Return (nodes, tasks, GPUs) of each group."""
    given = {name.replace("_", "-"): str(value) for name, value in options.items()}
    found = layout_of(given, Site(mem_per_cpu_mib=1024, packs_gpus=packs), NODES)
    return [(group.nodes, group.tasks, group.gpus) for group in found.groups]


def test_gpus_are_spread_evenly_or_packed_as_slurm_does() -> None:
    assert _shape(nodes=3, gpus=8) == [(2, 1, 3), (1, 1, 2)]
    assert _shape(nodes=3, gpus=8, packs=True) == [(1, 1, 6), (2, 1, 1)]
    assert _shape(gpus=20, packs=True) == [(2, 1, 8), (1, 1, 4)]
    assert _shape(nodes=2, gpus=3) == [(1, 1, 2), (1, 1, 1)]


def test_tasks_decide_about_nodes() -> None:
    assert _shape(ntasks=10, cpus_per_task=8) == [(2, 5, 0)]
    assert _shape(nodes="1-3", ntasks=3) == [(3, 1, 0)]
    assert _shape(ntasks=12, gpus_per_task=1) == [(1, 8, 8), (1, 4, 4)]
    assert _shape(gpus=4, ntasks_per_gpu=2) == [(1, 8, 4)]
    assert _shape(nodes=4, ntasks_per_node=2, gres="gpu:a100:8") == [(4, 2, 8)]


def test_what_cannot_be_is_refused_in_slurms_words() -> None:
    with pytest.raises(BadRequest, match="--gpus-per-task used without either --gpus or"):
        _shape(gpus_per_task=1)
    with pytest.raises(BadRequest, match="Requested node configuration is not available"):
        _shape(gres="gpu:9")
    with pytest.raises(BadRequest, match="mutually exclusive"):
        _shape(mem="1G", mem_per_cpu="1G")
    with pytest.raises(BadRequest, match='"x" is not a valid node count'):
        _shape(nodes="x")


def test_arrays() -> None:
    found = read_array("0-15:4,20%2")
    assert [found.at(place) for place in range(found.size)] == [0, 4, 8, 12, 20]
    assert (found.limit, found.least, found.most) == (2, 0, 20)
    for text in ("", "3-1", "1-5%x", "0-5,3", "0-200"):
        with pytest.raises(BadArray):
            read_array(text, 101)


def test_directives_count_before_the_first_command() -> None:
    text = "#!/bin/sh\n# hello\n\n#SBATCH -J 'a b' --gres=\n#SBATCH -n4\necho\n#SBATCH -n8\n"
    found = of_script(text)
    assert found.options == {"job-name": "a b", "ntasks": "4"}
    assert found.warnings == ["line 4: --gres has no value and is ignored"]


def _submitted(script: str, *arguments: str, conf: str = "", **objects: Any) -> tuple[Json, Json]:
    stored: Json = {"metadata": {"resourceVersion": "1"}, "data": {"slurm.conf": conf}}
    nodes = [_node(f"gpu{n}") for n in range(1, 5)]
    api = FakeApi(objects={MAP: stored, "/api/v1/nodes": {"items": nodes}, **objects})
    outcome = run([*arguments, "job.sh"], context(api, {"job.sh": script}))
    assert outcome.text == "Submitted batch job 1\n"
    (_, path, counted), (_, _, made), (_, _, secret) = api.written
    assert (path, counted["metadata"]["resourceVersion"]) == (MAP, "1")
    return made, secret


def _node(name: str) -> Json:
    amounts = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8"}
    labels = {"partition.unisono.dev/main": "true", "feature.unisono.dev/nvlink": "true"}
    return {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": amounts}}


def test_a_job_is_stored_as_a_gang_of_one_pod_per_node() -> None:
    script = "#!/bin/sh\n#SBATCH -N 4 --gres=gpu:a100:8 -t 1:30:00 -C nvlink -A vision\nsrun x\n"
    made, _ = _submitted(script, "-n", "8", conf=CONF.replace("MaxTime=60", "MaxTime=600"))
    assert made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "main"
    annotations = made["metadata"]["annotations"]
    assert annotations["unisono.dev/time-limit"] == "90"
    assert annotations["unisono.dev/account"] == "vision"
    (group,) = made["spec"]["groups"]
    assert (group["nodes"], group["tasks"]) == (4, 2)
    pod = group["template"]["spec"]
    assert pod["containers"][0]["resources"]["requests"] == {
        "cpu": "2",
        "memory": "2048Mi",
        "nvidia.com/gpu": "8",
    }
    assert (made["spec"]["command"], made["spec"]["cluster"]) == ("/home/ann/job.sh", "hpc")
    assert pod["nodeSelector"] == {"partition.unisono.dev/main": "true"}
    assert "podAntiAffinity" in pod["affinity"]
    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert len(terms["nodeSelectorTerms"]) == 3  # the type of GPU has several spellings


@pytest.mark.parametrize(
    ("arguments", "message", "code"),  # as a real 22.05 ends
    [
        (["-p", "nope"], "invalid partition specified: nope\n.*Invalid partition name", 1),
        (["-p", "off"], "Required partition not available", 1),
        (["--gres=gpu:9"], "Requested node configuration is not available", 1),
        (["-a", "0-200"], "Invalid job array specification", 1),
        (["-t", "abc"], "Invalid --time specification", 255),
        (["--mem", "abc"], "Invalid --mem specification", 255),
        (["-b", "yesterdayish"], "Invalid --begin specification", 255),
        (["--mail-type=FOO"], "Invalid --mail-type specification", 255),
        (["--gres=foo:1"], r"^Invalid generic resource \(gres\) specification", 1),
        (["-N", "x"], '"x" is not a valid node count', 255),
        (["-w", "nonode"], "submission failed: Invalid node name specified", 1),
        (["-C", "nofeat"], "submission failed: Invalid feature specification", 1),
        (["-d", "afterok:99"], "Job dependency problem", 1),
        (["-d", "aftercorr:1"], "Job dependency problem", 1),
        (["--unheard"], "unrecognized option", 255),
    ],
)
def test_refusals(arguments: list[str], message: str, code: int) -> None:
    stored = {"metadata": {"resourceVersion": "1"}, "data": {"slurm.conf": CONF}}
    api = FakeApi(objects={MAP: stored, "/api/v1/nodes": {"items": [_node("gpu1")]}})
    with pytest.raises(Refused, match=message) as refused:
        run([*arguments, "job.sh"], context(api, {"job.sh": "#!/bin/sh\n"}))
    assert refused.value.code == code
    assert [one for one in api.written if one[0] == "POST"] == []


@pytest.mark.parametrize("text", ["", " \n", "echo no interpreter", "#!/bin/sh\r\necho\r\n"])
def test_refuses_what_is_not_a_script(text: str) -> None:
    with pytest.raises(Refused):
        run(["job.sh"], context(FakeApi(), {"job.sh": text}))


def test_dependencies_name_the_objects_of_jobs() -> None:
    other = job(7, "prepare", "ann")
    api = FakeApi([other], {MAP: {"metadata": {"resourceVersion": "1"}}})
    run(["-d", "afterok:7,singleton", "job.sh"], context(api, {"job.sh": "#!/bin/sh\n"}))
    made = api.written[1][2]
    depends = made["metadata"]["annotations"]["unisono.dev/depends-on"]
    assert depends == "afterok:prepare-7,singleton"
    array = job(8, "arr", "ann", spec={"array": {"tasks": "0-2"}})
    api = FakeApi([array], {MAP: {"metadata": {"resourceVersion": "1"}}})
    run(["-d", "afterany:8", "job.sh"], context(api, {"job.sh": "#!/bin/sh\n"}))
    annotations = api.written[1][2]["metadata"]["annotations"]
    assert annotations["unisono.dev/depends-on"] == "afterany:arr-8-0:arr-8-1:arr-8-2"


def test_tasks_that_follow_tasks_name_the_array_until_they_are_made() -> None:
    array = job(8, "arr", "ann", spec={"array": {"tasks": "0-9"}})
    stored = {MAP: {"metadata": {"resourceVersion": "1"}}}
    script = {"job.sh": "#!/bin/sh\n"}

    def depends(*arguments: str) -> str:
        api = FakeApi([array], stored)
        run([*arguments, "job.sh"], context(api, script))
        return str(api.written[1][2]["metadata"]["annotations"]["unisono.dev/depends-on"])

    assert depends("-a", "0-2", "-d", "aftercorr:8") == "aftercorr:arr-8"
    # Of a task, or of a job that is no array, it means the same as afterok.
    assert depends("-a", "0-2", "-d", "aftercorr:8_4") == "afterok:arr-8-4"
    assert depends("-d", "aftercorr:8_4?afterok:8_5") == "afterok:arr-8-4?afterok:arr-8-5"
    with pytest.raises(Refused, match="Job dependency problem"):
        depends("-a", "0-20", "-d", "aftercorr:8")  # there is no task 10 to follow


def test_of_several_partitions_the_one_where_it_starts_first_is_taken() -> None:
    starts = {
        "main": PlannedStart(at=500.0),
        "next": PlannedStart(at=90.0),
        "last": PlannedStart(at=90.0),
    }
    conf = CONF + "PartitionName=next Nodes=gpu1\nPartitionName=last Nodes=gpu1\n"
    stored = {"metadata": {"resourceVersion": "1"}, "data": {"slurm.conf": conf}}
    api = FakeApi(objects={MAP: stored, "/api/v1/nodes": {"items": [_node("gpu1")]}})

    def dry_run(api: ApiClient, made: Json, now: float) -> PlannedStart:
        return starts[made["spec"]["options"]["partition"]]

    here = context(api, {"job.sh": "#!/bin/sh\n"}, dry_run=dry_run)
    run(["-p", "main,off,next,last", "job.sh"], here)
    made = next(one for method, _, one in api.written if method == "POST")
    assert made["spec"]["options"]["partition"] == "next"
    assert made["metadata"]["annotations"]["unisono.dev/partition"] == "next"
    with pytest.raises(Refused, match="Required partition not available"):
        run(["-p", "off,nope", "job.sh"], here)


NASTY = ["a b", "it's", 'say "hi"', "line\nbreak", "$(touch /tmp/x)", "`id`", "; rm -rf /", "%s\\n"]


@pytest.mark.parametrize("value", NASTY)
def test_what_users_write_never_becomes_part_of_a_program(value: str) -> None:
    environment = {"PATH": "/bin:/usr/bin", "ODD": value, "BAD-NAME": "x", "SLURM_JOB_ID": "9"}
    api = FakeApi(objects={MAP: {"metadata": {"resourceVersion": "1"}}})
    given = context(api, {"job.sh": "#!/bin/sh\n"}, environment=environment)
    run(["-J", value, "job.sh", value], given)
    made, secret = api.written[1][2], api.written[2][2]
    assert made["spec"]["jobName"] == value
    assert made["spec"]["arguments"] == [value]
    assert made["metadata"]["name"].replace("-", "").isalnum()
    text = base64.b64decode(secret["data"]["environment"]).decode()
    assert "SLURM" not in text
    assert "BAD-NAME" not in text
    shell = subprocess.run(
        ["/bin/sh", "-c", f'{text}\nprintf %s "$ODD"'], capture_output=True, text=True, check=True
    )
    assert shell.stdout == value
    assert shlex.quote(value) in text


def test_parsable_wrap_and_the_environment_of_sbatch() -> None:
    api = FakeApi(objects={MAP: {"metadata": {"resourceVersion": "1"}}})
    environment = {"SBATCH_TIMELIMIT": "5", "SBATCH_JOB_NAME": "named"}
    outcome = run(["--parsable", "--wrap", "sleep 3"], context(api, environment=environment))
    assert outcome.text == "1\n"
    made = api.written[1][2]
    assert made["spec"]["jobName"] == "named"
    assert made["metadata"]["annotations"]["unisono.dev/time-limit"] == "5"
    assert made["metadata"]["annotations"]["unisono.dev/run-seconds"] == "3"


LISTS = (
    *(f"/api/v1/{plural}" for plural in ("namespaces", "nodes")),
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/unisono.dev/v1/policies",
    *(
        f"/apis/kueue.x-k8s.io/v1beta2/{plural}"
        for plural in (
            "resourceflavors",
            "topologies",
            "cohorts",
            "clusterqueues",
            "localqueues",
            "workloads",
        )
    ),
)


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ("2", "Job 1 to start at 2026-11-15T18:00:00 using 2 processors on nodes gpu[1-2] in"),
        ("3", "allocation failure: never, unless there is one more node like these: 8 nvidia.com"),
    ],
)
def test_a_job_is_tried_without_being_stored(
    nodes: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    from unisono.cli.slurm_programs.test_only import planned_start

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    objects: Json = {path: {"items": []} for path in LISTS}
    machines = [_node("gpu1"), _node("gpu2")]
    for machine in machines:
        machine["metadata"]["labels"]["kubernetes.io/hostname"] = machine["metadata"]["name"]
        machine["status"]["allocatable"]["pods"] = "110"
    objects["/api/v1/nodes"] = {"items": machines}
    objects["/api/v1/namespaces"] = {"items": [{"metadata": {"name": "default"}}]}
    api = FakeApi(objects=objects)
    here = context(api, {"job.sh": "#!/bin/sh\n"}, dry_run=planned_start)
    try:
        told = run(["--test-only", "-N", nodes, "-t", "5", "job.sh"], here).error
    except Refused as error:
        told = str(error)
    assert said in told
    assert api.written == []


def test_mail_options_become_annotations_and_warnings_about_them_are_told() -> None:
    class Warns(FakeApi):
        @override
        def warnings(self) -> list[str]:
            return [
                "metadata.labels[x]: not Slurm's business",
                "metadata.annotations[unisono.dev/notify-to]: gets no mail: ann@evil.org is not",
            ]

    api = Warns()
    options = ["--mail-type=BEGIN,TIME_LIMIT_80,stage_out", "--mail-user=ann@evil.org"]
    outcome = run([*options, "run.sh"], context(api, {"run.sh": "#!/bin/sh\n"}))
    assert outcome.error == "sbatch: warning: gets no mail: ann@evil.org is not\n"
    (made,) = [body for _, path, body in api.written if path.endswith("/slurmjobs")]
    annotations = made["metadata"]["annotations"]
    assert annotations["unisono.dev/notify"] == "begin,time-limit-80"
    assert annotations["unisono.dev/notify-to"] == "ann@evil.org"


def test_without_a_mail_type_no_mail_is_asked_for() -> None:
    for options in (["--mail-user=ann"], ["--mail-type=NONE"], ["--mail-type=END,NONE"]):
        api = FakeApi()
        run([*options, "run.sh"], context(api, {"run.sh": "#!/bin/sh\n"}))
        (made,) = [body for _, path, body in api.written if path.endswith("/slurmjobs")]
        assert not [key for key in made["metadata"]["annotations"] if "notify" in key]


@pytest.mark.parametrize(
    ("warning", "words"),
    [
        (
            "can never start on the nodes that there are: pod set batch has 9 pods, and even empty "
            "nodes hold 2 of them",
            "pod set batch has 9 pods, and even empty nodes hold 2 of them\n"
            "Batch job submission failed: Requested node configuration is not available",
        ),
        (
            "can never be admitted as the queues are now: pod set batch needs 9 nvidia.com/gpu; "
            "queue q can never use more than 8 nvidia.com/gpu. To change that: ask for less",
            "pod set batch needs 9 nvidia.com/gpu; queue q can never use more than 8 "
            "nvidia.com/gpu\nBatch job submission failed: Job violates accounting/QOS policy (job "
            "submit limit, user's size and/or time limits)",
        ),
    ],
)
def test_what_can_never_start_is_refused_with_the_number(warning: str, words: str) -> None:
    api = FakeApi(objects={MAP: {"metadata": {"resourceVersion": "1"}}})
    api.would_warn = ["of something else", warning]
    with pytest.raises(Refused) as refused:
        run(["-N", "9", "--wrap", "true"], context(api))
    assert str(refused.value) == words
    assert api.written == [], "no number is taken, and nothing is stored"


def test_a_node_larger_than_all_is_refused_with_the_number() -> None:
    objects = {
        MAP: {"metadata": {"resourceVersion": "1"}},
        "/api/v1/nodes": {"items": [_node("g")]},
    }
    with pytest.raises(Refused) as refused:
        run(["--gres=gpu:16", "--wrap", "true"], context(FakeApi(objects=objects)))
    assert str(refused.value) == (
        "a node needs 16 GPUs, and the largest has 8\n"
        "Batch job submission failed: Requested node configuration is not available"
    )
