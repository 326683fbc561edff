"""Which nodes of Slurm to drain, resume, label and occupy, so that its view matches the cluster.

The reason of a drain names its origin: the bridge's begin with `unisono:`, and only those are ever
removed. A node that an administrator drained is left alone, whatever Kubernetes says of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.slurm.bridge.actions import (
    Action,
    CancelPlaceholder,
    Drain,
    MarkAway,
    Resume,
    SetFeatures,
    SubmitPlaceholder,
)
from unisono.slurm.bridge.cluster_view import ClusterView, KubeNode
from unisono.slurm.bridge.marks import PLACEHOLDER, read_mark
from unisono.slurm.bridge.slurm_view import SlurmJob, SlurmNode, SlurmView

REASON = "unisono: "
FEATURE = "gpu_avail:"
PLACEHOLDER_NAME = "unisono-placeholder"


def sync(
    slurm_view: SlurmView, cluster_view: ClusterView, *, has_features: bool, has_placeholders: bool
) -> Iterator[Action]:
    """Yield the actions that bring Slurm's nodes in line with Kubernetes."""
    for name, node in sorted(slurm_view.nodes.items()):
        real = cluster_view.nodes.get(name)
        yield from state_of(node, real)
        if has_features and real is not None:
            wanted = features_of(node, real)
            if wanted != node.features:
                yield SetFeatures(name, wanted)
    if has_placeholders:
        yield from _placeholders(slurm_view, cluster_view)


def avoided(slurm_view: SlurmView, cluster_view: ClusterView) -> Iterator[Action]:
    """Yield labels that keep gangs off nodes on which Slurm would start nothing.

    A label, because it may change while a gang waits; without it a gang would be given a node that
    is down or drained in Slurm again and again.
    """
    for name, node in sorted(slurm_view.nodes.items()):
        real = cluster_view.nodes.get(name)
        if real is not None and real.is_away == node.takes_jobs:
            yield MarkAway(real.name, not node.takes_jobs)


def state_of(node: SlurmNode, real: KubeNode | None) -> Iterator[Action]:
    """Yield what makes a node take jobs if, and only if, Kubernetes would use it."""
    error = node_problem(real)
    if error and not node.is_drained:
        yield Drain(node.name, f"{REASON}{error}")
    elif not error and node.is_drained and node.reason.startswith(REASON):
        yield Resume(node.name)


def node_problem(real: KubeNode | None) -> str:
    """Return why nothing can start on a node of Kubernetes; empty if something can."""
    if real is None:
        return "Kubernetes has no such node"
    if not real.is_ready:
        return "not ready in Kubernetes"
    return "cordoned in Kubernetes" if real.is_cordoned else ""


def features_of(node: SlurmNode, real: KubeNode) -> tuple[str, ...]:
    """Return a node's features with the number of free GPUs among them."""
    others = tuple(one for one in node.features if not one.startswith(FEATURE))
    return (*others, f"{FEATURE}{max(0, real.gpus_free)}") if real.gpus else others


def foreign_gpus(cluster_view: ClusterView) -> dict[str, int]:
    """Return how many GPUs pods that stand for no Slurm job have, by node."""
    found: dict[str, int] = {}
    for pod in cluster_view.pods:
        if pod.gpus and pod.node in cluster_view.nodes and not pod.is_ended and not pod.job:
            found[pod.node] = found.get(pod.node, 0) + pod.gpus
    return found


def placeholders(slurm_view: SlurmView) -> dict[str, list[SlurmJob]]:
    """Return our own jobs that stand for pods of others, by node."""
    found: dict[str, list[SlurmJob]] = {}
    for job in slurm_view.jobs.values():
        if read_mark(job.comment).state == PLACEHOLDER and not job.is_over:
            for name in job.on or job.required:
                found.setdefault(name, []).append(job)
    return found


def _placeholders(slurm_view: SlurmView, cluster_view: ClusterView) -> Iterator[Action]:
    """Have exactly as many GPUs of every node occupied in Slurm as pods of others have."""
    foreign, placed = foreign_gpus(cluster_view), placeholders(slurm_view)
    for name in sorted({*foreign, *placed} & set(slurm_view.nodes)):
        wanted = min(foreign.get(name, 0), slurm_view.nodes[name].gpus)
        has = 0
        for job in placed.get(name, []):
            if has + job.gpus_per_node > wanted:
                yield CancelPlaceholder(job)
            else:
                has += job.gpus_per_node
        if wanted > has:
            yield SubmitPlaceholder(name, wanted - has)
