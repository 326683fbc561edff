"""What the auditor keeps from plan to plan equals what it would compute anew."""

from __future__ import annotations

import random

import msgspec
import pytest

from tests.support.audit_plans import BIG, machine, of, started, there
from tests.support.quota_builders import pods, queue, snapshot
from unisono.engine.audit import AuditCache, audit, snapshot_index
from unisono.engine.audit.quota_tree import queue_node
from unisono.engine.audit.snapshot_index import SnapshotIndex
from unisono.engine.model.names import NodeName
from unisono.engine.model.node import HostPort, NodePod
from unisono.engine.model.resources import FlavorResource, amounts
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import AdmittedWorkload

NODES = [machine(f"n{number}", 64) for number in range(4)]
PORT = HostPort(port=80)


def admitted(name: str, random_source: random.Random) -> AdmittedWorkload:
    ports = (PORT,) if random_source.random() < 0.3 else ()
    gang = of(pods(2, {"gpu": random_source.randint(1, 3)}, host_ports=ports), name=name)
    one, two = random_source.sample(range(4), 2)
    return there(gang, {f"n{one}": 1, f"n{two}": 1})


def foreign_pod(name: str, random_source: random.Random) -> NodePod:
    node = NodeName(f"n{random_source.randint(0, 3)}")
    return NodePod(key=f"default/{name}", node=node, requests=amounts({"gpu": 1}))


def check(cluster: Snapshot, cache: AuditCache) -> None:
    """Compare cached sums with sums computed anew."""
    kept, anew = SnapshotIndex(cluster, cache), SnapshotIndex(cluster)
    assert kept.admitted_workloads == anew.admitted_workloads
    flavor_resource = FlavorResource("f", "gpu")  # type: ignore[arg-type]
    for one in cluster.queues:
        node = queue_node(one.name)
        assert kept.usage.used(node, flavor_resource) == anew.usage.used(node, flavor_resource)
    used = {name: sums for name, sums in kept.pods_on_nodes.used.items() if any(sums.values())}
    assert used == anew.pods_on_nodes.used
    for name in anew.nodes:
        sets = [
            sorted(placement.owner for placement in placed.with_ports.get(name, ()))
            for placed in (kept.pods_on_nodes, anew.pods_on_nodes)
        ]
        assert sets[0] == sets[1]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("recount_after", [7, 10_000])
def test_cached_sums_equal_recomputed_sums(
    seed: int, recount_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_index, "RECOUNT_AFTER", recount_after)
    random_source = random.Random(seed)
    cache = AuditCache()
    admitted_workloads: dict[str, AdmittedWorkload] = {}
    others: dict[str, NodePod] = {}
    queues = (BIG,)
    for step in range(60):
        name = f"w{random_source.randint(0, 9)}"
        match random_source.choice(["come", "go", "pod", "no pod", "quota"]):
            case "come":
                admitted_workloads[name] = admitted(
                    name, random_source
                )  # also: another one of that name
            case "go":
                admitted_workloads.pop(name, None)
            case "pod":
                others[name] = foreign_pod(name, random_source)
            case "no pod":
                others.pop(name, None)
            case _:
                queues = (queue("q", str(100 + step)),)
        cluster = snapshot(
            *queues,
            nodes=NODES,
            admitted_workloads=tuple(admitted_workloads.values()),
            pods=tuple(others.values()),
        )
        check(cluster, cache)


def test_a_cached_admitted_workload_still_fills_its_node() -> None:
    cache = AuditCache()
    old, new = of(pods(1, {"gpu": 6}), name="old"), of(pods(1, {"gpu": 6}), name="new")
    cluster = snapshot(BIG, nodes=(machine("n0"),), admitted_workloads=(there(old, {"n0": 1}),))
    audit(cluster, msgspec.structs.replace(started(old, {"n0": 1}), admissions=()), cache)
    later = msgspec.structs.replace(cluster, waiting=(new,))
    assert [one.rule for one in audit(later, started(new, {"n0": 1}), cache)] == ["node-overfull"]
    left = msgspec.structs.replace(later, admitted_workloads=())
    assert not audit(left, started(new, {"n0": 1}), cache)
