"""What the bridge may do, as data. Every action is idempotent."""

from __future__ import annotations

import msgspec

from unisono.slurm.bridge.cluster_view import Gang, Pod
from unisono.slurm.bridge.slurm_view import SlurmJob


class MakeGang(msgspec.Struct, frozen=True):
    """Create the gang of a job; `only` names the nodes if Slurm has chosen them already."""

    job: SlurmJob
    only: tuple[str, ...] = ()
    tries: int = 0


class DropGang(msgspec.Struct, frozen=True):
    """Delete a gang with its pods: its reservation ends."""

    gang: Gang
    why: str


class Deactivate(msgspec.Struct, frozen=True):
    """Deactivate a gang's Workload until a time; the gang keeps its age and place in the queue."""

    gang: Gang
    until: float
    why: str


class Reactivate(msgspec.Struct, frozen=True):
    """Activate a gang's Workload again."""

    gang: Gang


class Start(msgspec.Struct, frozen=True):
    """Pin a held job to the nodes of its gang, and release it."""

    job: SlurmJob
    gang: Gang


class StartNow(msgspec.Struct, frozen=True):
    """Remove the begin time of a job that Slurm requeued."""

    job: SlurmJob


class Hold(msgspec.Struct, frozen=True):
    """Hold a pending job; its mark says why."""

    job: SlurmJob
    why: str


class RevokeNodes(msgspec.Struct, frozen=True):
    """Take a job's nodes: requeue and hold it, or cancel it if it must not be requeued."""

    job: SlurmJob
    why: str
    is_deadlock: bool = False


class Cancel(msgspec.Struct, frozen=True):
    """Cancel a job whose gang was deleted by a user."""

    job: SlurmJob
    why: str


class Explain(msgspec.Struct, frozen=True):
    """Write into a job's mark why it is pending."""

    job: SlurmJob
    why: str


class DeletePod(msgspec.Struct, frozen=True):
    """Delete a terminating pod at once: Slurm has left its node."""

    pod: Pod


class Drain(msgspec.Struct, frozen=True):
    """Drain a node of Slurm, with a reason that marks it as ours."""

    node: str
    why: str


class Resume(msgspec.Struct, frozen=True):
    """Resume a node that the bridge drained."""

    node: str


class MarkAway(msgspec.Struct, frozen=True):
    """Label a Kubernetes node on which Slurm would start nothing, or remove the label."""

    node: str  # as Kubernetes calls it
    is_away: bool


class SetFeatures(msgspec.Struct, frozen=True):
    """Set the features of a node, the available and the active ones together."""

    node: str
    features: tuple[str, ...]


class SubmitPlaceholder(msgspec.Struct, frozen=True):
    """Submit a job that occupies GPUs which other pods use on a node."""

    node: str
    gpus: int


class CancelPlaceholder(msgspec.Struct, frozen=True):
    """Cancel such a job."""

    job: SlurmJob


Action = (
    MakeGang
    | DropGang
    | Deactivate
    | Reactivate
    | Start
    | StartNow
    | Hold
    | RevokeNodes
    | Cancel
    | Explain
    | DeletePod
    | Drain
    | Resume
    | MarkAway
    | SetFeatures
    | SubmitPlaceholder
    | CancelPlaceholder
)
