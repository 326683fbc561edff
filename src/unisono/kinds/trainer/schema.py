"""The manifests of TrainJob, TrainingRuntime and ClusterTrainingRuntime.

The two generations of the API are accepted together: `podTemplateOverrides`, `labels`,
`annotations` and the words `auto`, `cpu` and `gpu` belong to v2.0 and v2.1; `runtimePatches` and
`activeDeadlineSeconds` to v2.2 onwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta

from unisono.kinds.batch import PodCount
from unisono.kinds.core.schema import Affinity, EnvVar, ResourceRequirements, Toleration
from unisono.kinds.decode import Int64, Schema
from unisono.kinds.jobset import JobSetSpec
from unisono.kinds.meta import Condition, ObjectMeta
from unisono.kinds.scalar import Timestamp

GROUP = "trainer.kubeflow.org"


class RuntimeRef(Schema, frozen=True, kw_only=True):
    """The runtime that a TrainJob fills in."""

    name: Annotated[str, Meta(min_length=1)]
    api_group: str = GROUP
    kind: str = "ClusterTrainingRuntime"


class Trainer(Schema, frozen=True, kw_only=True):
    """The training nodes."""

    num_nodes: PodCount | None = None
    num_proc_per_node: int | str | None = None
    resources_per_node: ResourceRequirements | None = None
    image: str | None = None
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()


class SourceInitializer(Schema, frozen=True, kw_only=True):
    """Where a dataset or a model comes from."""

    storage_uri: str | None = None
    env: tuple[EnvVar, ...] = ()
    secret_ref: Any = None


class Initializer(Schema, frozen=True, kw_only=True):
    """What is fetched before training."""

    dataset: SourceInitializer | None = None
    model: SourceInitializer | None = None


class ContainerOverride(Schema, frozen=True, kw_only=True):
    """Changes to one container of the runtime."""

    name: str
    env: tuple[EnvVar, ...] = ()
    volume_mounts: tuple[Any, ...] = ()
    security_context: Any = None


class PodSpecOverride(Schema, frozen=True, kw_only=True):
    """Changes to the pods of a runtime's job. Absent tolerations leave the runtime's alone."""

    node_selector: Mapping[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    containers: tuple[ContainerOverride, ...] = ()
    init_containers: tuple[ContainerOverride, ...] = ()
    service_account_name: str | None = None
    volumes: tuple[Any, ...] = ()
    scheduling_gates: tuple[Any, ...] = ()
    image_pull_secrets: tuple[Any, ...] = ()
    security_context: Any = None
    termination_grace_period_seconds: Int64 | None = None


class TargetJob(Schema, frozen=True, kw_only=True):
    """A replicated job of the runtime."""

    name: str


class PodTemplateOverride(Schema, frozen=True, kw_only=True):
    """Changes to the pods of some jobs (v2.0, v2.1)."""

    target_jobs: tuple[TargetJob, ...] = ()
    metadata: ObjectMeta | None = None
    spec: PodSpecOverride | None = None


class PodTemplatePatch(Schema, frozen=True, kw_only=True):
    """Changes to a pod template."""

    metadata: ObjectMeta | None = None
    spec: PodSpecOverride | None = None


class JobSpecPatch(Schema, frozen=True, kw_only=True):
    """Changes to a job."""

    template: PodTemplatePatch | None = None


class JobTemplatePatch(Schema, frozen=True, kw_only=True):
    """Changes to a job template."""

    metadata: ObjectMeta | None = None
    spec: JobSpecPatch | None = None


class ReplicatedJobPatch(Schema, frozen=True, kw_only=True):
    """Changes to one replicated job."""

    name: str
    template: JobTemplatePatch | None = None


class JobSetSpecPatch(Schema, frozen=True, kw_only=True):
    """Changes to the jobs of a runtime."""

    replicated_jobs: tuple[ReplicatedJobPatch, ...] = ()


class JobSetTemplatePatch(Schema, frozen=True, kw_only=True):
    """Changes to a runtime's template."""

    metadata: ObjectMeta | None = None
    spec: JobSetSpecPatch | None = None


class RuntimeSpecPatch(Schema, frozen=True, kw_only=True):
    """Changes to a runtime."""

    template: JobSetTemplatePatch | None = None


class RuntimePatch(Schema, frozen=True, kw_only=True):
    """One party's changes to the runtime (v2.2 onwards)."""

    manager: str = ""
    time: Timestamp | None = None
    training_runtime_spec: RuntimeSpecPatch | None = None


class TrainJobSpec(Schema, frozen=True, kw_only=True):
    """What to train, on which runtime, with how much."""

    runtime_ref: RuntimeRef | None = None
    trainer: Trainer | None = None
    initializer: Initializer | None = None
    suspend: bool | None = None
    pod_template_overrides: tuple[PodTemplateOverride, ...] = ()
    runtime_patches: Annotated[tuple[RuntimePatch, ...], Meta(max_length=16)] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    active_deadline_seconds: Annotated[int, Meta(ge=1, le=2**63 - 1)] | None = None
    managed_by: str | None = None


class TrainJobJobStatus(Schema, frozen=True, kw_only=True):
    """How far the jobs of one replicated job are."""

    name: str
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    active: int = 0
    suspended: int = 0


class TrainJobStatus(Schema, frozen=True, kw_only=True):
    """How far a TrainJob is."""

    conditions: tuple[Condition, ...] = ()
    jobs_status: tuple[TrainJobJobStatus, ...] = ()
    trainer_status: Any = None


class TrainJob(Schema, frozen=True, kw_only=True):
    """A training job."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    spec: TrainJobSpec = TrainJobSpec()
    status: TrainJobStatus = TrainJobStatus()


class TorchPolicy(Schema, frozen=True, kw_only=True):
    """Distributed PyTorch."""

    num_proc_per_node: int | str | None = None
    elastic_policy: Any = None
    env_injection: Any = None


class MPIPolicy(Schema, frozen=True, kw_only=True):
    """MPI: a launcher reaches the nodes by ssh."""

    num_proc_per_node: int | None = None
    mpi_implementation: str | None = None
    ssh_auth_mount_path: str | None = None
    run_launcher_as_node: bool | None = None


class MLPolicy(Schema, frozen=True, kw_only=True):
    """How the nodes of a training job find and count each other; at most one way is set."""

    num_nodes: PodCount | None = None
    torch: TorchPolicy | None = None
    mpi: MPIPolicy | None = None
    jax: Any = None
    xgboost: Any = None
    flux: Any = None


class PodGroupPolicy(Schema, frozen=True, kw_only=True):
    """Which gang scheduler the runtime was written for."""

    coscheduling: Any = None
    volcano: Any = None


class JobSetTemplate(Schema, frozen=True, kw_only=True):
    """The JobSet that a TrainJob becomes."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSetSpec = JobSetSpec()


class TrainingRuntimeSpec(Schema, frozen=True, kw_only=True):
    """What training jobs of one sort have in common."""

    ml_policy: MLPolicy | None = None
    pod_group_policy: PodGroupPolicy | None = None
    template: JobSetTemplate


class TrainingRuntime(Schema, frozen=True, kw_only=True):
    """A runtime, for one namespace or (ClusterTrainingRuntime) for all."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    spec: TrainingRuntimeSpec
