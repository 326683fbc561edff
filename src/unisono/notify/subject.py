"""What a message says about the job that it is about, read from its Workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from unisono.kinds.digits import whole_number
from unisono.kinds.notifying import USER
from unisono.kinds.snapshot.local_queues import UNLIMITED_LOCAL_QUEUE
from unisono.kinds.views.workloads import Workload
from unisono.slurm.labels import KIND as SLURM_JOB


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A job."""

    uid: str
    workload: str  # the name of its Workload; of an array, its own
    namespace: str
    kind: str
    name: str
    queue: str = ""
    user: str = ""
    slurm_id: str = ""  # 42, or 42_3 of a task, or 42_* of an array
    slurm_number: str = ""  # of a task: its number as a job
    slurm_name: str = ""  # as its user called it
    slurm_state: str = ""  # COMPLETED, FAILED, …; once it is over
    exit_code: str = ""  # CODE:SIGNAL, as Slurm has it; of an array [LEAST-MOST]
    is_array: bool = False

    @property
    def is_slurm(self) -> bool:
        """Say whether it was submitted by sbatch."""
        return bool(self.slurm_id)

    @property
    def title(self) -> str:
        """The job in a few words."""
        if self.is_slurm:
            return f"job {self.slurm_id} ({self.slurm_name})"
        return f"{self.kind} {self.namespace}/{self.name}"


def owner_name(obj: Mapping[str, Any]) -> str:
    """Return the name of the SlurmJob that a Workload stands for; empty if it stands for none."""
    owners = Workload(obj).metadata.owner_references
    return next((one.name for one in owners if one.kind == SLURM_JOB), "")


def subject_of(obj: Mapping[str, Any], slurm_job: Mapping[str, Any] | None = None) -> Subject:
    """Return what a Workload is about; `slurm_job` is the SlurmJob that it stands for."""
    workload = Workload(obj)
    metadata = workload.metadata
    owners = metadata.owner_references
    owner = next((one for one in owners if one.is_controller), None)
    if owner is None and len(owners) == 1:
        owner = owners[0]  # else it is a gang of pods without a job: its Workload has its name
    spec = (slurm_job or {}).get("spec") or {}
    status = (slurm_job or {}).get("status") or {}
    queue = workload.spec.queue_name
    number = identity = str(spec.get("jobId") or "")
    task = spec.get("task")
    if task:
        identity = f"{task.get('arrayJobId')}_{task.get('index')}"
    return Subject(
        uid=metadata.uid,
        workload=metadata.name,
        namespace=metadata.namespace,
        kind=owner.kind if owner is not None else "Workload",
        name=owner.name if owner is not None else metadata.name,
        queue="" if queue == UNLIMITED_LOCAL_QUEUE else queue,
        user=str(metadata.annotations.get(USER) or ""),
        slurm_id=identity,
        slurm_number=number if task else "",
        slurm_name=str(spec.get("jobName") or ""),
        slurm_state=str(status.get("state") or ""),
        exit_code=str(status.get("exitCode") or ""),
    )


def subject_of_array(job: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]]) -> Subject:
    """Return what an array of Slurm's is about."""
    metadata, spec, status = job["metadata"], job["spec"], job.get("status") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    exits = [str((one.get("status") or {}).get("exitCode") or "") for one in tasks]
    codes = [found for one in exits if (found := whole_number(one.partition(":")[0])) is not None]
    return Subject(
        uid=metadata["uid"],
        workload=metadata["name"],
        namespace=metadata.get("namespace", ""),
        kind=SLURM_JOB,
        name=metadata["name"],
        queue=str(labels.get("kueue.x-k8s.io/queue-name") or ""),
        user=str(annotations.get(USER) or spec.get("user") or ""),
        slurm_id=f"{spec.get('jobId')}_*",
        slurm_name=str(spec.get("jobName") or ""),
        slurm_state=str(status.get("state") or ""),
        exit_code=f"[{min(codes)}-{max(codes)}]" if codes else "",
        is_array=True,
    )
