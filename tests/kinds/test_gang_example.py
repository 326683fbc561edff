"""The manifests of examples/gang are what their README says."""

from __future__ import annotations

from pathlib import Path

from unisono.engine.model.names import Instant
from unisono.engine.model.snapshot import Snapshot
from unisono.kinds.snapshot.build import read_world

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "gang"
RACK = "cloud.provider.com/topology-rack"


def read(*names: str) -> Snapshot:
    made = read_world([(name, (FOLDER / name).read_bytes()) for name in names], now=Instant(0))
    assert not made.problems
    assert not made.warnings
    assert not made.unmanaged
    return made.snapshot


def test_every_file_is_in_the_readme() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    files = sorted(path.name for path in FOLDER.glob("*.yaml"))
    assert [name for name in files if f"[{name}]({name})" in readme] == files


def test_nodes_and_racks() -> None:
    nodes = read("nodes-3.yaml", "node-4.yaml", "nodes-rack.yaml").nodes
    assert [(one.name, dict(one.labels)[RACK]) for one in nodes] == [
        ("n0", "r0"),
        ("n1", "r0"),
        ("n2", "r1"),
        ("n3", "r1"),
        ("n4", "r2"),
        ("n5", "r2"),
        ("n6", "r2"),
        ("n7", "r2"),
    ]
    assert all(("nvidia.com/gpu", 8) in one.allocatable for one in nodes)
    assert all(one.ready and not one.unschedulable for one in nodes)


def test_the_job_has_quota_for_four_pods_of_eight_gpus() -> None:
    found = read("queue.yaml", "job-4x8.yaml")
    (workload,) = found.waiting
    (pods,) = workload.pod_sets
    assert (workload.key, workload.queue, pods.count) == ("ml/job-llm-pretrain", "ml/training", 4)
    assert ("nvidia.com/gpu", 8) in pods.requests
    ((group,),) = (queue.groups for queue in found.queues)
    quota = {one.resource: one.nominal for one in group.flavors[0].resources}
    assert all(amount * 4 <= quota[resource] for resource, amount in pods.requests)


def test_the_group_needs_no_queue() -> None:
    found = read("podgroup.yaml", "nodes-3.yaml")
    (workload,) = found.waiting
    assert (workload.key, workload.min_total) == ("ml/podgroup-llm-finetune", None)
    assert [(one.name, one.count) for one in workload.pod_sets] == [("main", 4)]
    assert [queue.name for queue in found.queues] == ["unisono.dev/unlimited"]
