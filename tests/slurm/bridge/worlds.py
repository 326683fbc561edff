"""Jobs, gangs and nodes for tests of the bridge's decisions, in few words."""

from __future__ import annotations

from typing import Any

from unisono.slurm.bridge.cluster_view import ClusterView, Gang, KubeNode, Pod
from unisono.slurm.bridge.gang import shape_of
from unisono.slurm.bridge.slurm_view import Held, SlurmJob, SlurmNode, SlurmView


def job(key: str = "1", **said: Any) -> SlurmJob:
    """Return a job that waits at the gate, or as it is said."""
    on = said.pop("on", ())
    gpus = said.get("gpus_per_node", 0)
    return SlurmJob(
        key=key,
        number=int(key.partition("_")[0]),
        **{
            "state": "RUNNING" if on else "PENDING",
            "priority": 1 if on else 0,
            "comment": "unisono:pinned" if on else "unisono:gate",
            "partition": "main",
            "user": "ann",
            "can_requeue": True,
            "nodes": max(1, len(on)),
            "cpus": max(1, len(on)),
            "held": tuple(Held(node, 1, 1024, gpus) for node in on),
            **said,
        },
    )


def pods(key: str, *nodes: str, gpus: int = 0, **said: Any) -> tuple[Pod, ...]:
    """Return pods of a job, one per node; an empty name is nowhere yet."""
    return tuple(
        Pod(
            namespace="slurm",
            name=f"p{place}",
            uid=f"u{place}",
            node=node,
            job=key,
            is_bridged=True,
            cpu_milli=1000,
            gpus=gpus,
            **said,
        )
        for place, node in enumerate(nodes)
    )


def gang(of: SlurmJob, *nodes: str, **said: Any) -> Gang:
    """Return the gang of a job with pods on these nodes."""
    made = pods(of.key, *nodes, gpus=of.gpus_per_node)
    return Gang(
        name=f"slurm-c-{of.key}",
        job=of.key,
        **{
            "wanted": of.nodes,
            "shape": shape_of(of),
            "workload": "w",
            "is_admitted": bool(nodes),
            "pods": made,
            **said,
        },
    )


def slurm_view(*jobs: SlurmJob, nodes: int = 2, gpus: int = 8, **said: Any) -> SlurmView:
    """Return what Slurm believes; its nodes are called n1, n2, …"""
    used = {f"n{number}": 0 for number in range(1, nodes + 1)}
    for one in jobs:
        for held in one.held:
            used[held.node] = used.get(held.node, 0) + held.gpus
    made = {
        name: SlurmNode(
            name=name,
            **{
                "states": frozenset(("IDLE",)),
                "cpus": 32,
                "memory_mib": 262_144,
                "gpus": gpus,
                "gpus_used": count,
                "partitions": frozenset(("main",)),
                **said,
            },
        )
        for name, count in used.items()
    }
    return SlurmView({one.key: one for one in jobs}, made)


def cluster_view(
    *gangs: Gang, nodes: int = 2, gpus: int = 8, others: tuple[Pod, ...] = ()
) -> ClusterView:
    """Return what Kubernetes has, pods of others included."""
    there = (*(pod for one in gangs for pod in one.pods), *others)
    names = [f"n{number}" for number in range(1, nodes + 1)]
    used = {name: sum(pod.gpus for pod in there if pod.node == name) for name in names}
    made = {
        name: KubeNode(name=name, slurm=name, host=name, gpus=gpus, gpus_used=used[name])
        for name in names
    }
    return ClusterView({one.job: one for one in gangs}, made, there)
