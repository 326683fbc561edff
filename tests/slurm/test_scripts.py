"""Batch scripts as documents of `unisono decide`: spec slurm §4, scenarios 11, 13 and 22."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from unisono.cli.main import main
from unisono.kube.form import Json

DATA = Path(__file__).parent / "data"
NOW = "2026-01-01T12:00:00Z"


def _node(name: str) -> Json:
    amounts = {"cpu": "32", "memory": "256Gi", "nvidia.com/gpu": "8", "pods": "110"}
    labels = {"kubernetes.io/hostname": name}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": amounts},
    }


def _decided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], scripts: dict[str, str], *documents: Json
) -> Json:
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(documents))
    for name, text in scripts.items():
        (tmp_path / name).write_text(text)
    arguments = ["decide", "-f", str(tmp_path), "--until-stable", "--now", NOW, "-o", "json"]
    assert main(arguments) == 0
    found: Json = json.loads(capsys.readouterr().out)
    return found


def test_a_script_is_a_gang(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = "#!/bin/sh\n#SBATCH -N 3 --gpus=8 -J train\nsrun x\n"
    found = _decided(tmp_path, capsys, {"a.sbatch": script}, *map(_node, ("n1", "n2", "n3")))
    (one,) = found["admitted"]
    assert one["workload"] == "default/slurmjob-train-1"
    assert [(sets["name"], sets["count"]) for sets in one["podSets"]] == [
        ("batch", 2),
        ("more-1", 1),
    ]
    hosts = [host for sets in one["podSets"] for host in sets["nodes"]]
    assert sorted(hosts) == ["n1", "n2", "n3"]


def test_an_array_keeps_its_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = "#!/bin/sh\n#SBATCH --array=0-15%2 -J arr\n"
    found = _decided(tmp_path, capsys, {"a.sh": script}, _node("n1"))
    assert len(found["admitted"]) == 2
    assert len(found["pending"]) == 14
    assert all("JobArrayTaskLimit" in one["message"] for one in found["pending"])


def test_invalid_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    late = "#!/bin/sh\n#SBATCH --deadline=now+1minute -t 5 -J late\n"
    found = _decided(tmp_path, capsys, {"late.sh": late}, _node("n1"))
    assert found["admitted"] == []
    assert "deadline" in found["pending"][0]["message"]


def test_a_longer_time_than_the_partition_allows_waits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text(
        "ClusterName=c\nNodeName=n1 CPUs=8 RealMemory=1000\n"
        "PartitionName=short Nodes=ALL Default=YES MaxTime=10\n"
    )
    assert main(["slurm", "import", str(conf), "--nodes"]) == 0
    documents = list(yaml.safe_load_all(capsys.readouterr().out))
    conf.unlink()
    long = "#!/bin/sh\n#SBATCH -t 60 -J long\n"
    short = "#!/bin/sh\n#SBATCH -t 10 -J short\n"
    found = _decided(tmp_path, capsys, {"long.sh": long, "short.sh": short}, *documents)
    assert [one["workload"] for one in found["admitted"]] == ["default/slurmjob-short-2"]
    assert found["pending"][0]["message"].startswith("PartitionTimeLimit")


def test_equal_gangs_have_equal_priority_in_every_spelling(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = {
        "apiVersion": "unisono.dev/v1alpha1",
        "kind": "SchedulingPolicy",
        "spec": {"weights": {"jobSize": 500, "qos": 3000}, "qos": [{"name": "low", "priority": 1}]},
    }
    backfill = {"apiVersion": "unisono.dev/v1", "kind": "Policy", "backfill": {"dates": 0}}
    resources = {"requests": {"cpu": "1", "nvidia.com/gpu": "8"}, "limits": {"nvidia.com/gpu": "8"}}
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "batch", "image": "x"}]}}
    template["spec"]["containers"][0]["resources"] = resources  # type: ignore[index]
    words = {"unisono.dev/qos": "low", "unisono.dev/time-limit": "60", "unisono.dev/user": "root"}
    made = [_node("n1"), _node("n2"), policy, backfill]
    volcano = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "v", "annotations": words, "creationTimestamp": NOW},
        "spec": {"tasks": [{"name": "t", "replicas": 2, "template": template}]},
    }
    batch = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "b", "annotations": words, "creationTimestamp": NOW},
        "spec": {"parallelism": 2, "completions": 2, "template": template},
    }
    batch["spec"]["template"] = {"spec": {**template["spec"], "schedulerName": "unisono"}}  # type: ignore[index]
    script = "#!/bin/sh\n#SBATCH -N2 --gres=gpu:8 -q low -t 60 -J s\n"
    found = _decided(tmp_path, capsys, {"s.sh": script}, *made, volcano, batch)
    starts = [one["start"] for one in found["reservations"]]
    assert len(found["admitted"]) == 1
    assert starts == ["2026-01-01T13:00:00Z", "2026-01-01T14:00:00Z"]


def test_reports_errors_in_a_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.sh").write_text("#!/bin/sh\n#SBATCH --nonsense\n")
    assert main(["decide", "-f", str(tmp_path / "bad.sh")]) == 2
    assert "line 2: unrecognized option '--nonsense'" in capsys.readouterr().err
    assert main(["apply", "-f", str(tmp_path / "bad.sh")]) == 2
    assert "unisono sbatch" in capsys.readouterr().err
