"""Where Slurm's view and the cluster's view differ: each case with a name, numbers and remedies.

| class | means |
| --- | --- |
| `over-belief` (M1) | Slurm believes more GPUs free on a node than Kubernetes has |
| `phantom` (M2) | a job has nodes in Slurm, but not all of its pods have one |
| `orphan` (M3) | pods of a job that Slurm does not run |
| `state` (M4) | one of them would use a node, the other would not |
| `double` (M5) | jobs together have more GPUs of a node than there are |
| `deadlock` | a phantom that cannot be placed blocks jobs that could run |

`remedies` are the actions that end a mismatch (`unisono slurm doctor --fix`):

| class | remedy |
| --- | --- |
| `deadlock`, `phantom` | the job's nodes are taken back: requeued and held, with the reason |
| `orphan` | the pods are deleted, and the gang with them |
| `double` | the newest of the jobs is taken back |
| `over-belief` | a placeholder job occupies what Kubernetes has given to other pods |
| `state` | the node is drained, or a drain of ours is taken off |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from unisono.slurm.bridge.actions import (
    Action,
    Deactivate,
    DeletePod,
    DropGang,
    RevokeNodes,
    SubmitPlaceholder,
)
from unisono.slurm.bridge.cluster_view import ClusterView, Pod
from unisono.slurm.bridge.decide import Timeouts, retry_after
from unisono.slurm.bridge.nodes import REASON, node_problem, state_of
from unisono.slurm.bridge.slurm_view import PENDING, SlurmJob, SlurmView

MismatchKind = Literal["over-belief", "phantom", "orphan", "state", "double", "deadlock"]
MISMATCH_KINDS: tuple[MismatchKind, ...] = (
    "over-belief",
    "phantom",
    "orphan",
    "state",
    "double",
    "deadlock",
)
# Words of Slurm for a job that could run if nodes were free.
_FOR_NODES = ("Resources", "Priority", "Nodes required", "ReqNodeNotAvail")


class Mismatch(msgspec.Struct, frozen=True, kw_only=True):
    """One difference between the two views."""

    kind: MismatchKind
    node: str = ""
    jobs: tuple[str, ...] = ()  # the first one is to blame
    pods: tuple[str, ...] = ()  # as namespace/name
    slurm: int = 0  # what Slurm counts
    kubernetes: int = 0  # what Kubernetes counts
    text: str = ""


def mismatches(
    slurm_view: SlurmView, cluster_view: ClusterView, *, bind_s: float, now: float
) -> list[Mismatch]:
    """Compare both, worst first."""
    phantoms = list(_phantoms(slurm_view, cluster_view, bind_s, now))
    return [
        *_deadlocks(slurm_view, cluster_view, phantoms),
        *phantoms,
        *_doubles(slurm_view),
        *_over_belief(slurm_view, cluster_view),
        *_states(slurm_view, cluster_view),
        *_orphans(slurm_view, cluster_view),
    ]


def pods_of(job: SlurmJob, cluster_view: ClusterView) -> list[Pod]:
    """Return the pods that stand for a job and stay."""
    keys = {job.key, str(job.number)}
    return [
        one for one in cluster_view.pods if one.job in keys and not one.leaves and not one.is_ended
    ]


def _phantoms(
    slurm_view: SlurmView, cluster_view: ClusterView, bind_s: float, now: float
) -> Iterator[Mismatch]:
    for job in slurm_view.jobs.values():
        if job.state not in ("CONFIGURING", "RUNNING") or now - job.started <= bind_s:
            continue
        pods = pods_of(job, cluster_view)
        bound = {one.node for one in pods if one.node}
        on = {name for name in job.on if name in cluster_view.nodes}
        if not pods and job.key not in cluster_view.gangs and job.state == "RUNNING":
            continue  # a job that runs beside Kubernetes, without any pods
        if len(bound) < job.nodes or (on and not bound <= on):
            yield Mismatch(
                kind="phantom",
                jobs=(job.key,),
                node=",".join(job.on),
                pods=tuple(f"{one.namespace}/{one.name}" for one in pods),
                slurm=job.nodes,
                kubernetes=len(bound & on if on else bound),
                text=f"job {job.key} has had {_nodes(job.nodes)} in Slurm for "
                f"{now - job.started:.0f} s ({job.state}), but {_pods(len(bound))} one",
            )


def _nodes(count: int) -> str:
    return "a node" if count == 1 else f"{count} nodes"


def _pods(bound: int) -> str:
    return "none of its pods has" if not bound else f"only {bound} of its pods have"


def _waiting(jobs: Sequence[str]) -> str:
    """Name pending jobs.

    >>> _waiting(["2"]), _waiting(["2", "3", "5"])
    ('job 2 waits', 'jobs 2, 3 and 5 wait')
    """
    if len(jobs) == 1:
        return f"job {jobs[0]} waits"
    return f"jobs {', '.join(jobs[:-1])} and {jobs[-1]} wait"


def _deadlocks(
    slurm_view: SlurmView, cluster_view: ClusterView, phantoms: list[Mismatch]
) -> Iterator[Mismatch]:
    """Name jobs that wait for nodes which a phantom holds although Kubernetes does not use them."""
    for one in phantoms:
        culprit = slurm_view.jobs[one.jobs[0]]
        if not all(
            cluster_view.nodes[name].is_open for name in culprit.on if name in cluster_view.nodes
        ):
            continue  # a lost node, not a deadlock
        waiting = [
            job.key
            for job in slurm_view.jobs.values()
            if job.state == PENDING
            and job.reason.startswith(_FOR_NODES)
            and _wants_any(job, culprit, slurm_view)
        ]
        if waiting:
            yield Mismatch(
                kind="deadlock",
                node=",".join(culprit.on),
                jobs=(culprit.key, *waiting),
                pods=one.pods,
                slurm=sum(held.gpus for held in culprit.held),
                kubernetes=0,
                text=f"job {culprit.key} holds {','.join(culprit.on)} in Slurm while its pods "
                f"cannot start in Kubernetes; {_waiting(waiting)} for it",
            )


def _wants_any(job: SlurmJob, culprit: SlurmJob, slurm_view: SlurmView) -> bool:
    partitions = set(job.partition.split(","))
    return any(slurm_view.nodes[name].partitions & partitions for name in culprit.on)


def _over_belief(slurm_view: SlurmView, cluster_view: ClusterView) -> Iterator[Mismatch]:
    for name, node in sorted(slurm_view.nodes.items()):
        real = cluster_view.nodes.get(name)
        if real is None or not node.takes_jobs:
            continue
        free = node.gpus - node.gpus_used
        if free > max(0, real.gpus_free):
            yield Mismatch(
                kind="over-belief",
                node=name,
                slurm=free,
                kubernetes=real.gpus_free,
                text=f"Slurm counts {free} GPUs free on {name}, Kubernetes {real.gpus_free}",
            )


def _states(slurm_view: SlurmView, cluster_view: ClusterView) -> Iterator[Mismatch]:
    for name, node in sorted(slurm_view.nodes.items()):
        error = node_problem(cluster_view.nodes.get(name))
        if error and node.takes_jobs:
            yield Mismatch(
                kind="state", node=name, text=f"Slurm would use {name}, which is {error}"
            )
        elif not error and node.is_drained and node.reason.startswith(REASON):
            yield Mismatch(
                kind="state",
                node=name,
                text=f"{name} is drained in Slurm ({node.reason}) and fine in Kubernetes",
            )


def _doubles(slurm_view: SlurmView) -> Iterator[Mismatch]:
    for name, node in sorted(slurm_view.nodes.items()):
        on = [job for job in slurm_view.jobs.values() if name in job.on]
        used = sum(held.gpus for job in on for held in job.held if held.node == name)
        if used > node.gpus:
            newest = sorted(on, key=lambda job: (-job.started, -job.number))
            yield Mismatch(
                kind="double",
                node=name,
                jobs=tuple(job.key for job in newest),
                slurm=used,
                kubernetes=node.gpus,
                text=f"jobs have {used} GPUs of the {node.gpus} on {name}",
            )


def _orphans(slurm_view: SlurmView, cluster_view: ClusterView) -> Iterator[Mismatch]:
    by_number = {str(job.number): job for job in slurm_view.jobs.values()}
    lost: dict[str, list[Pod]] = {}
    for pod in cluster_view.pods:
        job = slurm_view.jobs.get(pod.job) or by_number.get(pod.job)
        if pod.job and not pod.is_ended and (job is None or job.is_over):
            lost.setdefault(pod.job, []).append(pod)
    for key, pods in sorted(lost.items()):
        known = slurm_view.jobs.get(key) or by_number.get(key)
        state = f"is over ({known.state})" if known is not None else "is unknown to Slurm"
        yield Mismatch(
            kind="orphan",
            jobs=(key,),
            pods=tuple(f"{one.namespace}/{one.name}" for one in pods),
            kubernetes=len(pods),
            text=f"{len(pods)} pods belong to job {key}, which {state}",
        )


def remedies(
    found: Mismatch,
    slurm_view: SlurmView,
    cluster_view: ClusterView,
    timeouts: Timeouts,
    now: float,
) -> Iterator[Action]:
    """Yield what ends one mismatch."""
    match found.kind:
        case "deadlock":
            yield from _take_back(found, slurm_view, cluster_view, timeouts, now, is_deadlock=True)
        case "phantom":
            yield from _take_back(found, slurm_view, cluster_view, timeouts, now)
        case "double":
            yield RevokeNodes(slurm_view.jobs[found.jobs[0]], found.text)
        case "over-belief":
            yield SubmitPlaceholder(found.node, found.slurm - max(0, found.kubernetes))
        case "state":
            yield from state_of(slurm_view.nodes[found.node], cluster_view.nodes.get(found.node))
        case "orphan":
            gang = cluster_view.gangs.get(found.jobs[0])
            if gang is not None:
                yield DropGang(gang, found.text)
            yield from _free_pods(found, cluster_view)


def _take_back(
    found: Mismatch,
    slurm_view: SlurmView,
    cluster_view: ClusterView,
    timeouts: Timeouts,
    now: float,
    *,
    is_deadlock: bool = False,
) -> Iterator[Action]:
    key = found.jobs[0]
    yield RevokeNodes(slurm_view.jobs[key], found.text, is_deadlock=is_deadlock)
    gang = cluster_view.gangs.get(key)
    if gang is not None:
        yield Deactivate(gang, now + retry_after(gang.tries, timeouts), found.text)
    else:
        yield from _free_pods(
            found, cluster_view
        )  # their controller creates them again when the job starts


def _free_pods(found: Mismatch, cluster_view: ClusterView) -> Iterator[Action]:
    wanted = set(found.pods)
    for pod in cluster_view.pods:
        if f"{pod.namespace}/{pod.name}" in wanted:
            yield DeletePod(pod)
