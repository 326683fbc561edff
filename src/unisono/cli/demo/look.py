"""A busy cluster to look around in: two teams in a cohort, running gangs and pending ones.

It is `unisono up` in a folder of its own, with objects that are there from the start. The
pending ones wait for different reasons, so that every part of the web page and of `unisono why` has
something to show.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from unisono.cli import up
from unisono.cli.demo.stories import cloud, pool
from unisono.kube.form import Json

_KUEUE = "kueue.x-k8s.io/v1beta2"
_GPU = "nvidia.com/gpu"
_NODES = "4x{gpu=8,cpu=96,memory=768Gi,rack=r1},4x{gpu=8,cpu=96,memory=768Gi,rack=r2}"
_POLICY = """\
apiVersion: unisono.dev/v1
kind: Policy
metadata: {name: unisono}
backfill: {dates: 0}
"""


def look() -> int:
    """Run it until Ctrl-C."""
    with tempfile.TemporaryDirectory(prefix="unisono-look-") as folder:
        policy = Path(folder) / "policy.yaml"
        policy.write_text(_POLICY, encoding="utf-8")
        words = ["--data-dir", f"{folder}/data", "--nodes", _NODES, "--policy", str(policy)]
        arguments = up.parser().parse_args([*words, "--fast-commit"])
        return up.serve(arguments, objects=tuple(objects()))


def objects() -> list[Json]:
    """Return two teams with queues in one cohort, and their jobs."""
    made: list[Json] = [
        {"apiVersion": _KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "gpu"}, "spec": {}},
        _priority("urgent", 100),
        cloud({"g6e.48xlarge": 1}),
        pool(),
    ]
    for team in ("vision", "language"):
        made += _team(team, gpus=48)
    made += [
        _job("vision", "pretrain", pods=3, minutes=90),
        _job("vision", "finetune", pods=2, minutes=40),
        _job("language", "tokenizer", pods=1, gpus=2, minutes=15),
        _job("language", "reward-model", pods=2, minutes=60, priority="urgent"),
        _job("language", "llama-70b", pods=6, minutes=240),
        _job("language", "eval", pods=1, gpus=4, minutes=5),
        _job("vision", "after-pretrain", pods=2, minutes=20, depends="afterok:pretrain"),
        _job("vision", "ablation", pods=1, minutes=30, hold="user"),
        _job("vision", "too-wide", pods=7, minutes=60),
    ]
    return made


def _team(name: str, *, gpus: int) -> list[Json]:
    quota = [{"name": _GPU, "nominalQuota": str(gpus)}]
    groups = [{"coveredResources": [_GPU], "flavors": [{"name": "gpu", "resources": quota}]}]
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        {
            "apiVersion": _KUEUE,
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {
                "cohortName": "research",
                "namespaceSelector": {},
                "resourceGroups": groups,
                "preemption": {"withinClusterQueue": "LowerPriority"},
            },
        },
        {
            "apiVersion": _KUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": name, "namespace": name},
            "spec": {"clusterQueue": name},
        },
    ]


def _priority(name: str, value: int) -> Json:
    kind = "WorkloadPriorityClass"
    return {"apiVersion": _KUEUE, "kind": kind, "metadata": {"name": name}, "value": value}


def _job(
    team: str,
    name: str,
    *,
    pods: int,
    minutes: int,
    gpus: int = 8,
    priority: str = "",
    depends: str = "",
    hold: str = "",
) -> Json:
    annotations = {"unisono.dev/time-limit": f"{minutes}m"}
    annotations |= {"unisono.dev/depends-on": depends} if depends else {}
    annotations |= {"unisono.dev/hold": hold} if hold else {}
    labels = {"kueue.x-k8s.io/queue-name": team}
    labels |= {"kueue.x-k8s.io/priority-class": priority} if priority else {}
    container = {
        "name": "train",
        "image": "pytorch/pytorch",
        "command": ["sleep", str(minutes * 48)],  # a little less than its limit
        "resources": {"limits": {_GPU: str(gpus)}},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": team,
            "labels": labels,
            "annotations": annotations,
        },
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "completionMode": "Indexed",
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }
