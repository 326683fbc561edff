"""A Slurm's configuration as ours: spec slurm §3 and scenario 19."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from unisono.cli.main import main
from unisono.kube.form import Json
from unisono.slurm.conf import hosts_of, read_conf
from unisono.slurm.imports.report import Report
from unisono.slurm.imports.sacctmgr import read_dump, read_qos
from unisono.slurm.imports.scheduling_policy import scheduling_policy

DATA = Path(__file__).parent / "data"


@pytest.fixture
def made(capsys: pytest.CaptureFixture[str]) -> Json:
    arguments = ["slurm", "import", str(DATA / "slurm.conf"), "-o", "json"]
    arguments += ["--assoc", str(DATA / "associations.cfg"), "--qos", str(DATA / "qos.txt")]
    assert main(arguments) == 0
    found: Json = json.loads(capsys.readouterr().out)
    return found


def _one(made: Json, kind: str, name: str = "") -> Json:
    found = [one for one in made["documents"] if one["kind"] == kind]
    return next(one for one in found if not name or one["metadata"]["name"] == name)


def test_continuations_comments_defaults_and_includes() -> None:
    text = "Include more.conf\nPartitionName=DEFAULT MaxTime=10 # ten\nPartitionName=a Nodes=ALL\n"
    conf = read_conf(text, include=lambda name: "NodeName=n[1-2] \\\n CPUs=4\nFoo=1\n")
    assert [node.name for node in conf.nodes] == ["n1", "n2"]
    assert conf.nodes[0].text("cpus") == "4"
    assert conf.partitions[0].text("maxtime") == "10"
    assert hosts_of(conf, conf.partitions[0]) == ["n1", "n2"]
    assert [(one.place, one.what) for one in conf.unknown] == [("more.conf:3", "Foo")]


def test_a_file_that_includes_itself_comes_to_an_end() -> None:
    conf = read_conf("Include a\n", include=lambda name: "Include a\n")
    assert conf.warnings


def test_quotes_keep_colons_of_a_dump() -> None:
    dump = read_dump("Cluster - 'c'\nAccount - 'a':Description='x: y':Fairshare=3\nnonsense\n")
    assert dump.accounts["a"].keys == {"description": "x: y", "fairshare": "3"}
    assert [one.what for one in dump.unknown] == ["nonsense"]


def test_a_table_of_qos_needs_no_heading() -> None:
    assert read_qos("high|100|00:00:00\n") == {
        "high": {"name": "high", "priority": "100", "gracetime": "00:00:00"}
    }


def test_accounts_weights_and_limits_are_kept(made: Json) -> None:
    spec = _one(made, "SchedulingPolicy")["spec"]
    assert spec["weights"]["fairShare"] == 10000
    assert spec["weights"]["tres"] == {"cpu": 100, "mem": 200, "gres/gpu": 700}
    assert spec["maxAge"] == "60m"
    assert spec["operators"] == ["root"]
    vision = next(one for one in spec["accounts"] if one["name"] == "vision")
    assert vision["parent"] == "research"
    assert vision["limits"] == {"groupTres": {"gres/gpu": "6"}}
    assert vision["users"][0]["qos"] == ["normal", "high", "low"]
    normal = next(one for one in spec["qos"] if one["name"] == "normal")
    assert normal["denyOnLimit"] is True
    assert normal["limits"] == {"tresPerUser": {"gres/gpu": "4"}}


def test_the_default_account_of_a_user_in_several_is_marked() -> None:
    dump = read_dump(
        "Cluster - 'c'\nParent - 'root'\nAccount - 'a'\nAccount - 'b'\nParent - 'a'\n"
        "User - 'ann':DefaultAccount='b'\nUser - 'bob':DefaultAccount='a'\n"
        "Parent - 'b'\nUser - 'ann':DefaultAccount='b'\n"
    )
    made: Json = scheduling_policy(read_conf(""), dump, {}, Report())
    users = {one["name"]: one.get("users") for one in made["spec"]["accounts"]}
    assert users == {
        "a": [{"name": "ann"}, {"name": "bob"}],
        "b": [{"name": "ann", "default": True}],
    }


def test_partitions_are_queues_that_share_their_nodes(made: Json) -> None:
    quota = _one(made, "Cohort")["spec"]["resourceGroups"][0]["flavors"]
    gpus = {one["name"]: one["resources"][2]["nominalQuota"] for one in quota}
    assert gpus == {"a100": "32", "cpu": "0"}
    queue = _one(made, "ClusterQueue", "main")["spec"]
    assert [one["name"] for one in queue["resourceGroups"][0]["flavors"]] == ["a100"]
    assert queue["resourceGroups"][0]["flavors"][0]["resources"][2]["nominalQuota"] == "0"
    local = _one(made, "LocalQueue", "cpu")["metadata"]["annotations"]
    assert local == {"unisono.dev/default-time-limit": "60m"}


def test_spellings_that_slurm_refuses_are_taken_with_a_warning_each(made: Json) -> None:
    requeue, caps = made["warnings"]
    assert "write JobRequeue=1" in requeue
    assert "MaxTRESPerJob=cpu=32,gres/gpu=4" in caps
    partitions = _one(made, "SchedulingPolicy")["spec"]["partitions"]
    large = next(one for one in partitions if one["name"] == "large-gpu")
    assert large["limits"] == {"tresPerJob": {"cpu": "32", "gres/gpu": "4"}}
    dropped = {one["what"] for one in made["dropped"]}
    assert {"PrologFlags", "PrologEpilogTimeout"} <= dropped


def test_a_decision_can_be_made_with_what_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["slurm", "import", str(DATA / "slurm.conf"), "--nodes"]
    arguments += ["--assoc", str(DATA / "associations.cfg"), "--qos", str(DATA / "qos.txt")]
    assert main(arguments) == 0
    printed = capsys.readouterr()
    assert "mapped: " in printed.err
    (tmp_path / "all.yaml").write_text(printed.out)
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "big",
            "labels": {"kueue.x-k8s.io/queue-name": "large-gpu", "unisono.dev/user": "games"},
            "annotations": {"unisono.dev/account": "vision", "unisono.dev/qos": "high"},
        },
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [_container(8)]}}},
    }
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    assert main(["decide", "-f", str(tmp_path), "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "MaxGRESPerJob" in found["pending"][0]["message"]


def _container(gpus: int) -> Json:
    return {"name": "a", "image": "x", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
