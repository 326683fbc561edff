"""`ray.io/v1` RayCluster and RayJob: a pod set `head` and one per worker group.

A group has clamp(replicas, minReplicas, maxReplicas) x numOfHosts pods. KubeRay adds containers
that stand in no template; they are counted here, or quota would say yes and the node no:

    enableInTreeAutoscaling           the autoscaler beside the head      500m CPU, 512Mi
    RayJob, K8sJobMode (default)      a pod `submitter`                   500m CPU, 200Mi
    RayJob, SidecarMode               the submitter beside the head       likewise
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, field

from unisono.engine.model.workload import PodSet
from unisono.kinds.batch import MAX_PARALLELISM, PodCount
from unisono.kinds.core.pod_sets import (
    TemplateSet,
    check_template_sets,
    first_priority_class,
    pod_sets,
)
from unisono.kinds.core.schema import Container, PodSpec, PodTemplateSpec, ResourceRequirements
from unisono.kinds.decode import Int64, Schema
from unisono.kinds.meta import Condition, ObjectMeta
from unisono.kinds.notes import Notes
from unisono.kinds.quantity import Quantity
from unisono.kinds.registry import Context, JobHooks, Kind
from unisono.kinds.scalar import Timestamp

HEAD = "head"
SUBMITTER = "submitter"


class HeadGroup(Schema, frozen=True, kw_only=True):
    """The pod that rules the cluster."""

    template: PodTemplateSpec
    ray_start_params: Mapping[str, str] = {}
    service_type: str = ""
    head_service: Any = None
    enable_ingress: bool | None = None
    ingress_options: Any = None
    resources: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}


class WorkerGroup(Schema, frozen=True, kw_only=True):
    """Equal workers."""

    group_name: Annotated[str, Meta(min_length=1)]
    template: PodTemplateSpec
    replicas: PodCount = 0
    min_replicas: PodCount = 0
    max_replicas: PodCount = MAX_PARALLELISM
    num_of_hosts: PodCount = 1
    ray_start_params: Mapping[str, str] = {}
    scale_strategy: Any = None
    suspend: bool | None = None
    idle_timeout_seconds: int | None = None
    priority: int | None = None
    resources: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}


class AutoscalerOptions(Schema, frozen=True, kw_only=True):
    """The autoscaler that runs beside the head."""

    resources: ResourceRequirements | None = None
    image: str | None = None
    image_pull_policy: str | None = None
    security_context: Any = None
    idle_timeout_seconds: int | None = None
    upscaling_mode: str | None = None
    version: str | None = None
    env: tuple[Any, ...] = ()
    env_from: tuple[Any, ...] = ()
    volume_mounts: tuple[Any, ...] = ()
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()


class RayClusterSpec(Schema, frozen=True, kw_only=True):
    """A head and its worker groups."""

    head_group_spec: HeadGroup
    worker_group_specs: tuple[WorkerGroup, ...] = ()
    ray_version: str = ""
    suspend: bool | None = None
    enable_in_tree_autoscaling: bool | None = None
    autoscaler_options: AutoscalerOptions | None = None
    managed_by: str | None = None
    head_service_annotations: Mapping[str, str] = {}
    gcs_fault_tolerance_options: Any = None
    auth_options: Any = None
    history_server_options: Any = None
    network_policy: Any = None
    tls_options: Any = None
    upgrade_strategy: Any = None


class RayClusterStatus(Schema, frozen=True, kw_only=True):
    """What became of a cluster."""

    state: str = ""
    desired_cpu: Any = field(default=None, name="desiredCPU")
    desired_memory: Any = None
    desired_gpu: Any = field(default=None, name="desiredGPU")
    desired_tpu: Any = field(default=None, name="desiredTPU")
    last_update_time: Timestamp | None = None
    state_transition_times: Any = None
    endpoints: Any = None
    head: Any = None
    reason: str = ""
    conditions: tuple[Condition, ...] = ()
    ready_worker_replicas: int = 0
    available_worker_replicas: int = 0
    desired_worker_replicas: int = 0
    min_worker_replicas: int = 0
    max_worker_replicas: int = 0
    observed_generation: Int64 = 0


class RayCluster(Schema, frozen=True, kw_only=True):
    """A Ray cluster. It never finishes by itself."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    spec: RayClusterSpec
    status: RayClusterStatus = RayClusterStatus()


class RayJobSpec(Schema, frozen=True, kw_only=True):
    """A program and the cluster it runs on."""

    ray_cluster_spec: RayClusterSpec | None = None
    cluster_selector: Mapping[str, str] = {}
    entrypoint: str = ""
    submission_mode: Literal["K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode"] = (
        "K8sJobMode"
    )
    submitter_pod_template: PodTemplateSpec | None = None
    submitter_config: Any = None
    suspend: bool = False
    shutdown_after_job_finishes: bool = False
    ttl_seconds_after_finished: int = 0
    active_deadline_seconds: int | None = None
    pre_running_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    managed_by: str | None = None
    metadata: Mapping[str, str] = {}
    runtime_env_yaml: str = field(default="", name="runtimeEnvYAML")
    job_id: str = ""
    entrypoint_num_cpus: float = 0
    entrypoint_num_gpus: float = 0
    entrypoint_resources: str = ""
    deletion_strategy: Any = None


class RayJobStatus(Schema, frozen=True, kw_only=True):
    """How far a job is."""

    job_status: str = ""
    job_deployment_status: str = ""
    job_id: str = ""
    ray_job_info: Any = None
    ray_cluster_name: str = ""
    ray_cluster_status: RayClusterStatus | None = None
    dashboard_url: str = field(default="", name="dashboardURL")
    reason: str = ""
    message: str = ""
    start_time: Timestamp | None = None
    end_time: Timestamp | None = None
    succeeded: int | None = None
    failed: int | None = None
    job_status_check_failure_start_time: Timestamp | None = None
    observed_generation: Int64 = 0


class RayJob(Schema, frozen=True, kw_only=True):
    """A program that brings its own cluster."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    spec: RayJobSpec
    status: RayJobStatus = RayJobStatus()


def workers(group: WorkerGroup) -> int:
    """Return how many pods a worker group has."""
    if group.suspend:
        return 0
    replicas = min(max(group.replicas, group.min_replicas), group.max_replicas)
    return replicas * max(1, group.num_of_hosts)


def _resources(cpu: str, memory: str) -> ResourceRequirements:
    wanted = {"cpu": Quantity.from_raw(cpu), "memory": Quantity.from_raw(memory)}
    return ResourceRequirements(requests=wanted)


_AUTOSCALER = Container(name="autoscaler", resources=_resources("500m", "512Mi"))
_SUBMITTER = Container(name="ray-job-submitter", resources=_resources("500m", "200Mi"))


def _beside(template: PodTemplateSpec, *extra: Container) -> PodTemplateSpec:
    """Return a template with further containers in it."""
    spec = msgspec.structs.replace(template.spec, containers=(*template.spec.containers, *extra))
    return msgspec.structs.replace(template, spec=spec)


def _autoscaler(spec: RayClusterSpec) -> tuple[Container, ...]:
    if not spec.enable_in_tree_autoscaling:
        return ()
    options = spec.autoscaler_options
    if options is None or options.resources is None:
        return (_AUTOSCALER,)
    return (msgspec.structs.replace(_AUTOSCALER, resources=options.resources),)


def _cluster_sets(
    spec: RayClusterSpec, path: str, *beside_head: Container
) -> tuple[TemplateSet, ...]:
    head = TemplateSet(
        name=HEAD,
        count=1,
        template=_beside(spec.head_group_spec.template, *_autoscaler(spec), *beside_head),
        path=f"{path}.headGroupSpec.template",
        labels={"ray.io/node-type": HEAD},
    )
    groups = (
        TemplateSet(
            name=group.group_name.lower(),
            count=workers(group),
            template=group.template,
            path=f"{path}.workerGroupSpecs[{index}].template",
            labels={"ray.io/node-type": "worker", "ray.io/group": group.group_name},
        )
        for index, group in enumerate(spec.worker_group_specs)
    )
    return (head, *groups)


def _job_sets(job: RayJob) -> tuple[TemplateSet, ...]:
    cluster = job.spec.ray_cluster_spec
    if cluster is None or job.spec.cluster_selector:
        return ()
    path = "spec.rayClusterSpec"
    match job.spec.submission_mode:
        case "SidecarMode":
            return _cluster_sets(cluster, path, _SUBMITTER)
        case "K8sJobMode":
            return (*_cluster_sets(cluster, path), _submitter_set(job))
        case _:
            return _cluster_sets(cluster, path)


def _submitter_set(job: RayJob) -> TemplateSet:
    template = job.spec.submitter_pod_template
    if template is None:
        template = PodTemplateSpec(spec=PodSpec(containers=(_SUBMITTER,)))
    return TemplateSet(name=SUBMITTER, count=1, template=template, path="spec.submitterPodTemplate")


def _cluster_pod_sets(cluster: RayCluster, context: Context) -> tuple[PodSet, ...]:
    return pod_sets(_cluster_sets(cluster.spec, "spec"), context)


def _check_cluster(cluster: RayCluster, notes: Notes) -> None:
    check_template_sets(_cluster_sets(cluster.spec, "spec"), notes)
    _check_groups(cluster.spec, "spec", notes)


def _check_groups(spec: RayClusterSpec, path: str, notes: Notes) -> None:
    for index, group in enumerate(spec.worker_group_specs):
        if group.min_replicas > group.max_replicas:
            at = f"{path}.workerGroupSpecs[{index}].minReplicas"
            notes.problem(at, f"is {group.min_replicas}; maxReplicas is {group.max_replicas}")


def _cluster_priority_class(cluster: RayCluster) -> str:
    return first_priority_class(_cluster_sets(cluster.spec, "spec"))


def _job_pod_sets(job: RayJob, context: Context) -> tuple[PodSet, ...]:
    return pod_sets(_job_sets(job), context)


def _check_job(job: RayJob, notes: Notes) -> None:
    if job.spec.cluster_selector:
        notes.warn(
            "NotManaged",
            "spec.clusterSelector",
            "the job runs on a cluster that exists already and asks for nothing of its own",
        )
    elif job.spec.ray_cluster_spec is None:
        notes.problem("spec.rayClusterSpec", "is required unless there is a clusterSelector")
    else:
        check_template_sets(_job_sets(job), notes)
        _check_groups(job.spec.ray_cluster_spec, "spec.rayClusterSpec", notes)


def _job_priority_class(job: RayJob) -> str:
    return first_priority_class(_job_sets(job))


def _is_job_finished(job: RayJob) -> bool:
    return job.status.job_deployment_status in ("Complete", "Failed")


KINDS = (
    Kind(
        group="ray.io",
        version="v1",
        kind="RayCluster",
        struct=RayCluster,
        namespaced=True,
        check=_check_cluster,
        job=JobHooks(pod_sets=_cluster_pod_sets, priority_class=_cluster_priority_class),
    ),
    Kind(
        group="ray.io",
        version="v1",
        kind="RayJob",
        struct=RayJob,
        namespaced=True,
        check=_check_job,
        job=JobHooks(
            pod_sets=_job_pod_sets,
            priority_class=_job_priority_class,
            is_finished=_is_job_finished,
        ),
    ),
)
