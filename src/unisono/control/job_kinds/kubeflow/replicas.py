"""The replicas of a job and their pods, sorted by attempt.

Every start of a job as a whole has a number, which stands on the job and on its pods; pods of an
older one only have to go. What the status counts is counted of one attempt, named in its selector:
so a pod that it counts and that is not there any more was taken away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from unisono.control.actions import Json
from unisono.control.gangs.recovery import ATTEMPT, is_upstream
from unisono.control.job_kinds import kubeflow
from unisono.control.job_kinds.kubeflow import JobKind
from unisono.control.jobs.pods import is_deleting, is_ready, is_terminal, phase_of
from unisono.kinds.digits import whole_number


@dataclass(slots=True)
class Replicas:
    """The pods of one type."""

    type: str
    count: int
    template: Json
    restarts: str  # Always, OnFailure, Never or ExitCode
    pods: dict[int, Json] = field(default_factory=dict)  # by number, of this attempt
    lost: int = 0  # so many are gone or terminating that we did not delete

    @property
    def name(self) -> str:
        """The type as pods and pod sets are called."""
        return self.type.lower()

    def missing(self) -> Iterator[int]:
        """Yield the numbers that have no pod; take only as many as are needed."""
        return (number for number in range(self.count) if number not in self.pods)

    def in_phase(self, *phases: str) -> int:
        """Count the pods in some phases."""
        return sum(phase_of(pod) in phases for pod in self.pods.values())

    @property
    def are_ready(self) -> bool:
        """Whether all of them are ready or through."""
        return self.count == sum(
            is_ready(pod) or phase_of(pod) == "Succeeded" for pod in self.pods.values()
        )


def attempt_of(obj: Json) -> int:
    """Return in which attempt a job is, or of which a pod is."""
    text = (obj["metadata"].get("annotations") or {}).get(ATTEMPT, "0")
    return whole_number(text) or 0


def replicas_of(job: Json, job_kind: JobKind) -> list[Replicas]:
    """Return the replica types of a job, without pods."""
    written = {name.lower(): spec for name, spec in (job["spec"].get(job_kind.field) or {}).items()}
    return [
        Replicas(
            type_,
            spec.get("replicas", 1),
            spec.get("template") or {},
            spec.get("restartPolicy") or job_kind.restarts,
        )
        for type_ in job_kind.types
        if (spec := written.get(type_.lower())) is not None
    ]


def pods_by_replica(
    job: Json, job_kind: JobKind, pods: Sequence[Json]
) -> tuple[list[Replicas], list[Json]]:
    """Return the replicas with their pods, and the pods that only have to go."""
    found = replicas_of(job, job_kind)
    by_name = {one.name: one for one in found}
    old: list[Json] = []
    for pod in pods:
        labels = pod["metadata"].get("labels") or {}
        one = by_name.get(labels.get(kubeflow.TYPE, ""))
        index = whole_number(labels.get(kubeflow.INDEX))
        is_current = attempt_of(pod) == attempt_of(job)
        if one is not None and is_current and index is not None and index < one.count:
            one.pods[index] = pod
        else:
            old.append(pod)
    for one in found:
        going = sum(is_deleting(pod) and not is_terminal(pod) for pod in one.pods.values())
        one.lost = going + max(0, min(_recorded(job, one), one.count) - len(one.pods))
    return found, old


def selector_of(job: Json, one: Replicas) -> str:
    """Return which pods the counts of a replica type are about."""
    name, attempt = job["metadata"]["name"], attempt_of(job)
    return f"{kubeflow.JOB_NAME}={name},{kubeflow.TYPE}={one.name},{ATTEMPT}={attempt}"


def _recorded(job: Json, one: Replicas) -> int:
    status = ((job.get("status") or {}).get("replicaStatuses") or {}).get(one.type) or {}
    if status.get("selector") != selector_of(job, one):
        return 0
    return sum(status.get(key, 0) for key in ("active", "succeeded", "failed"))


def pod_policy(job: Json, one: Replicas) -> str:
    """Return the restart policy of a type's pods.

    Peers of a failed pod cannot continue without it, so it is not restarted alone: the operator
    starts all of them over. An annotation on the job chooses upstream's way instead (`recovery`).
    """
    if is_upstream(job["metadata"].get("annotations")) and one.restarts != "ExitCode":
        return one.restarts
    return "Never"
