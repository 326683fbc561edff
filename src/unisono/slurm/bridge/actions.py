"""What the bridge may do, as data. Each of these can be repeated without harm."""

from __future__ import annotations

import msgspec

from unisono.slurm.bridge.cluster_view import Gang, Pod
from unisono.slurm.bridge.slurm_view import SlurmJob


class MakeGang(msgspec.Struct, frozen=True):
    """Ask Kubernetes for a job's nodes; `only` if Slurm has chosen them already."""

    job: SlurmJob
    only: tuple[str, ...] = ()
    tries: int = 0


class DropGang(msgspec.Struct, frozen=True):
    """Give a reservation back: the gang goes with its pods."""

    gang: Gang
    why: str


class Deactivate(msgspec.Struct, frozen=True):
    """Give a reservation back for a while; the gang keeps its age and its place in the queue."""

    gang: Gang
    until: float
    why: str


class Reactivate(msgspec.Struct, frozen=True):
    """Let a gang queue again."""

    gang: Gang


class Start(msgspec.Struct, frozen=True):
    """Bind a held job to the nodes of its gang, and release it."""

    job: SlurmJob
    gang: Gang


class StartNow(msgspec.Struct, frozen=True):
    """Take the wait off a job that Slurm requeued."""

    job: SlurmJob


class Hold(msgspec.Struct, frozen=True):
    """Hold a job that waits; its mark says why."""

    job: SlurmJob
    why: str


class RevokeNodes(msgspec.Struct, frozen=True):
    """Take the nodes of a job that has them: requeue it, held; or end it if it must not restart."""

    job: SlurmJob
    why: str
    is_deadlock: bool = False


class Cancel(msgspec.Struct, frozen=True):
    """End a job whose gang somebody deleted."""

    job: SlurmJob
    why: str


class Explain(msgspec.Struct, frozen=True):
    """Write into a job's mark why it waits."""

    job: SlurmJob
    why: str


class DeletePod(msgspec.Struct, frozen=True):
    """Let a pod go at once that was told to leave: Slurm has left its node."""

    pod: Pod


class Drain(msgspec.Struct, frozen=True):
    """Let a node take no new jobs, in our name."""

    node: str
    why: str


class Resume(msgspec.Struct, frozen=True):
    """Take a drain of ours off a node."""

    node: str


class MarkAway(msgspec.Struct, frozen=True):
    """Say on a node of Kubernetes whether Slurm would start anything there now."""

    node: str  # as Kubernetes calls it
    is_away: bool


class SetFeatures(msgspec.Struct, frozen=True):
    """Set the features of a node, the available and the active ones together."""

    node: str
    features: tuple[str, ...]


class SubmitPlaceholder(msgspec.Struct, frozen=True):
    """Submit a job that stands for pods of others on a node."""

    node: str
    gpus: int


class CancelPlaceholder(msgspec.Struct, frozen=True):
    """End such a job."""

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
