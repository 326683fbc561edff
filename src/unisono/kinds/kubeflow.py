"""`kubeflow.org`: PyTorchJob, TFJob, XGBoostJob, JAXJob, PaddleJob and MPIJob, all made alike.

A job has replica specs by type; each type that is there becomes a pod set, in the order of the
table `_TYPES`, with one pod unless `replicas` says more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from unisono.engine.model.workload import PodSet
from unisono.kinds.batch import PodCount
from unisono.kinds.core.pod_sets import (
    TemplateSet,
    check_template_sets,
    first_priority_class,
    first_scheduler,
    pod_sets,
)
from unisono.kinds.core.schema import PodTemplateSpec
from unisono.kinds.decode import Int64, Schema
from unisono.kinds.meta import ObjectMeta, TimedCondition, holds
from unisono.kinds.nearest import did_you_mean
from unisono.kinds.notes import Notes
from unisono.kinds.registry import Context, JobHooks, Kind
from unisono.kinds.scalar import Timestamp

JOB_LABEL = "training.kubeflow.org/job-name"
TYPE_LABEL = "training.kubeflow.org/replica-type"

# Replica types in the order of their pod sets; the leader comes first.
_TYPES: Mapping[str, tuple[str, ...]] = {
    "PyTorchJob": ("Master", "Worker"),
    "TFJob": ("Chief", "Master", "PS", "Worker", "Evaluator"),
    "XGBoostJob": ("Master", "Worker"),
    "JAXJob": ("Worker",),
    "PaddleJob": ("Master", "Worker"),
    "MPIJob": ("Launcher", "Worker"),
}


class ReplicaSpec(Schema, frozen=True, kw_only=True):
    """Pods of one type."""

    template: PodTemplateSpec
    replicas: PodCount | None = None
    restart_policy: str = ""


class SchedulingPolicy(Schema, frozen=True, kw_only=True):
    """What a gang scheduler is told."""

    min_available: int | None = None
    queue: str = ""
    min_resources: Any = None
    priority_class: str = ""
    schedule_timeout_seconds: int | None = None


class RunPolicy(Schema, frozen=True, kw_only=True):
    """How long a job runs and what is left of it."""

    suspend: bool | None = None
    scheduling_policy: SchedulingPolicy | None = None
    clean_pod_policy: str | None = None
    ttl_seconds_after_finished: int | None = None
    active_deadline_seconds: Int64 | None = None
    backoff_limit: int | None = None
    managed_by: str | None = None


class PyTorchJobSpec(Schema, frozen=True, kw_only=True):
    """Workers that may have a master."""

    pytorch_replica_specs: Mapping[str, ReplicaSpec]
    run_policy: RunPolicy = RunPolicy()
    elastic_policy: Any = None
    nproc_per_node: str | None = None


class TFJobSpec(Schema, frozen=True, kw_only=True):
    """Workers, parameter servers and their launcher."""

    tf_replica_specs: Mapping[str, ReplicaSpec]
    run_policy: RunPolicy = RunPolicy()
    success_policy: str | None = None
    enable_dynamic_worker: bool = False


class XGBoostJobSpec(Schema, frozen=True, kw_only=True):
    """A master and its workers."""

    xgb_replica_specs: Mapping[str, ReplicaSpec]
    run_policy: RunPolicy = RunPolicy()


class JAXJobSpec(Schema, frozen=True, kw_only=True):
    """Workers alone."""

    jax_replica_specs: Mapping[str, ReplicaSpec]
    run_policy: RunPolicy = RunPolicy()


class PaddleJobSpec(Schema, frozen=True, kw_only=True):
    """Workers, and a master where there are parameter servers."""

    paddle_replica_specs: Mapping[str, ReplicaSpec]
    run_policy: RunPolicy = RunPolicy()
    elastic_policy: Any = None


class MPIJobSpec(Schema, frozen=True, kw_only=True):
    """A launcher and its workers; the fields of v1 and v2beta1 together."""

    mpi_replica_specs: Mapping[str, ReplicaSpec]
    run_policy: RunPolicy = RunPolicy()
    slots_per_worker: int | None = None
    run_launcher_as_worker: bool | None = None
    ssh_auth_mount_path: str = ""
    launcher_creation_policy: str = ""
    mpi_implementation: str = ""
    clean_pod_policy: str | None = None
    main_container: str = ""


class KubeflowJobStatus(Schema, frozen=True, kw_only=True):
    """How far a job is."""

    conditions: tuple[TimedCondition, ...] = ()
    replica_statuses: Any = None
    start_time: Timestamp | None = None
    completion_time: Timestamp | None = None
    last_reconcile_time: Timestamp | None = None


class PyTorchJob(Schema, frozen=True, kw_only=True):
    """A PyTorch training job."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    spec: PyTorchJobSpec
    status: KubeflowJobStatus = KubeflowJobStatus()


class TFJob(Schema, frozen=True, kw_only=True):
    """A TensorFlow training job."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    spec: TFJobSpec
    status: KubeflowJobStatus = KubeflowJobStatus()


class XGBoostJob(Schema, frozen=True, kw_only=True):
    """An XGBoost training job."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    spec: XGBoostJobSpec
    status: KubeflowJobStatus = KubeflowJobStatus()


class JAXJob(Schema, frozen=True, kw_only=True):
    """A JAX training job."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    spec: JAXJobSpec
    status: KubeflowJobStatus = KubeflowJobStatus()


class PaddleJob(Schema, frozen=True, kw_only=True):
    """A PaddlePaddle training job."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    spec: PaddleJobSpec
    status: KubeflowJobStatus = KubeflowJobStatus()


class MPIJob(Schema, frozen=True, kw_only=True):
    """An MPI job."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    spec: MPIJobSpec
    status: KubeflowJobStatus = KubeflowJobStatus()


KubeflowJob = PyTorchJob | TFJob | XGBoostJob | JAXJob | PaddleJob | MPIJob


def _replica_specs(job: KubeflowJob) -> tuple[str, Mapping[str, ReplicaSpec]]:
    """Return the written name of the field that holds the replica specs, and the specs."""
    match job:
        case PyTorchJob():
            return "pytorchReplicaSpecs", job.spec.pytorch_replica_specs
        case TFJob():
            return "tfReplicaSpecs", job.spec.tf_replica_specs
        case XGBoostJob():
            return "xgbReplicaSpecs", job.spec.xgb_replica_specs
        case JAXJob():
            return "jaxReplicaSpecs", job.spec.jax_replica_specs
        case PaddleJob():
            return "paddleReplicaSpecs", job.spec.paddle_replica_specs
        case MPIJob():
            return "mpiReplicaSpecs", job.spec.mpi_replica_specs


def _in_order(job: KubeflowJob) -> Iterator[tuple[str, str, ReplicaSpec]]:
    """Yield (type, path, spec); types are known in any capitals, as the operator knows them."""
    field_name, specs = _replica_specs(job)
    for wanted in _TYPES[job.kind]:
        for written, spec in specs.items():
            if written.lower() == wanted.lower():
                yield wanted, f"spec.{field_name}[{written}]", spec


def _sets(job: KubeflowJob) -> tuple[TemplateSet, ...]:
    return tuple(
        TemplateSet(
            name=type_.lower(),
            count=1 if spec.replicas is None else spec.replicas,
            template=spec.template,
            path=f"{path}.template",
            labels={JOB_LABEL: job.metadata.name, TYPE_LABEL: type_.lower()},
        )
        for type_, path, spec in _in_order(job)
    )


def _pod_sets(job: KubeflowJob, context: Context) -> tuple[PodSet, ...]:
    return pod_sets(_sets(job), context)


def _check(job: KubeflowJob, notes: Notes) -> None:
    field_name, specs = _replica_specs(job)
    known = {type_.lower() for type_ in _TYPES[job.kind]}
    for written in specs:
        if written.lower() not in known:
            hint = did_you_mean(written, _TYPES[job.kind])
            notes.problem(f"spec.{field_name}[{written}]", f"unknown replica type{hint}")
    if not specs:
        notes.problem(f"spec.{field_name}", "is required: there is nothing to run")
    check_template_sets(_sets(job), notes)


def _priority_class(job: KubeflowJob) -> str:
    policy = job.spec.run_policy.scheduling_policy
    own = policy.priority_class if policy is not None else ""
    return own or first_priority_class(_sets(job))


def _is_finished(job: KubeflowJob) -> bool:
    return holds(job.status.conditions, "Succeeded", "Failed")


def _scheduler(job: KubeflowJob) -> str:
    return first_scheduler(_sets(job))


_HOOKS = JobHooks(
    pod_sets=_pod_sets,
    priority_class=_priority_class,
    is_finished=_is_finished,
    scheduler=_scheduler,
)


def _kind(kind: str, struct: type[KubeflowJob], version: str = "v1") -> Kind:
    return Kind(
        group="kubeflow.org",
        version=version,
        kind=kind,
        struct=struct,
        namespaced=True,
        check=_check,
        job=_HOOKS,
    )


KINDS = (
    _kind("PyTorchJob", PyTorchJob),
    _kind("TFJob", TFJob),
    _kind("XGBoostJob", XGBoostJob),
    _kind("JAXJob", JAXJob),
    _kind("PaddleJob", PaddleJob),
    _kind("MPIJob", MPIJob),
    _kind("MPIJob", MPIJob, "v2beta1"),
)
