"""From a TrainJob and its runtime to pod templates and counts, in the operator's order.

1  the TrainJob's changes go into the templates
2  a job has as many pods as its template's parallelism, the trainer as many as the runtime's
   mlPolicy.numNodes
3  trainer.numNodes replaces that: for the job `node` under MPI, less one if the launcher
   trains too; for the trainer otherwise
4  trainer.resourcesPerNode replaces the resources of the container `node`

`podTemplateOverrides` (v2.0, v2.1) and `runtimePatches` (v2.2 onwards) are strategic merges onto
the template of a replicated job, applied in the order written, the later winning. Merged here is
what a decision reads:

    labels, annotations, nodeSelector    key by key
    affinity                             field by field; its inner lists are replaced
    tolerations                          replaced as a whole, for they have no merge key

Containers can only be given variables, mounts and a security context, which cost nothing. Spec jobs
§1.2 and §1.5.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from unisono.kinds.batch import pods_at_once
from unisono.kinds.core.pod_sets import TemplateSet
from unisono.kinds.core.schema import (
    Affinity,
    Container,
    NodeAffinity,
    PodAffinity,
    PodSpec,
    PodTemplateSpec,
    ResourceRequirements,
)
from unisono.kinds.core.topology import check_topology
from unisono.kinds.core.validate import check_affinity, check_tolerations
from unisono.kinds.decode import Problem
from unisono.kinds.jobset import ReplicatedJob, pod_labels
from unisono.kinds.meta import ObjectMeta
from unisono.kinds.trainer.schema import (
    ContainerOverride,
    MLPolicy,
    PodSpecOverride,
    Trainer,
    TrainingRuntimeSpec,
    TrainJobSpec,
)
from unisono.kinds.trainer.stock import (
    ANCESTOR,
    DATASET_INITIALIZER,
    MODEL_INITIALIZER,
    NODE,
    TRAINER,
)

# Variables of these containers are set elsewhere in a TrainJob.
_OWN_ENV = (NODE, DATASET_INITIALIZER, MODEL_INITIALIZER)


def rendered(
    spec: TrainJobSpec, runtime: TrainingRuntimeSpec, name: str = ""
) -> tuple[TemplateSet, ...]:
    """Return one set of pods per replicated job of the runtime; its JobSet has the job's name."""
    policy = runtime.ml_policy or MLPolicy()
    trainer = spec.trainer or Trainer()
    return tuple(
        TemplateSet(
            name=job.name,
            count=_count(job, policy, trainer),
            template=_template(job, spec, policy, trainer),
            path="spec.runtimeRef",
            labels=pod_labels(name, job.name),
        )
        for job in runtime.template.spec.replicated_jobs
    )


def role_of(job: ReplicatedJob) -> str:
    """Return which part of a training job a replicated job plays; empty if none."""
    return job.template.metadata.labels.get(ANCESTOR, "")


def _is_launcher_as_node(policy: MLPolicy) -> bool:
    return policy.mpi is not None and bool(policy.mpi.run_launcher_as_node)


def _count(job: ReplicatedJob, policy: MLPolicy, trainer: Trainer) -> int:
    """Return how many pods a replicated job has."""
    is_trainer = role_of(job) == TRAINER
    wanted = trainer.num_nodes
    if wanted is not None and policy.mpi is not None:
        if job.name == NODE:
            return max(1, wanted - 1) if _is_launcher_as_node(policy) else wanted
    elif wanted is not None and is_trainer:
        return wanted
    if is_trainer:
        return 1 if policy.num_nodes is None else policy.num_nodes
    return job.replicas * pods_at_once(job.template.spec)


def _template(
    job: ReplicatedJob, spec: TrainJobSpec, policy: MLPolicy, trainer: Trainer
) -> PodTemplateSpec:
    template = job.template.spec.template
    for override in overrides_of(spec):
        if override.job == job.name:
            template = overridden(template, override)
    wanted = trainer.resources_per_node
    trains = role_of(job) == TRAINER or (_is_launcher_as_node(policy) and job.name == NODE)
    if wanted is None or not trains or not (wanted.requests or wanted.limits):
        return template
    containers = tuple(
        _with_resources(container, wanted) if container.name == NODE else container
        for container in template.spec.containers
    )
    pod = msgspec.structs.replace(template.spec, containers=containers)
    return msgspec.structs.replace(template, spec=pod)


def _with_resources(container: Container, wanted: ResourceRequirements) -> Container:
    return msgspec.structs.replace(container, resources=wanted)


# ---- the changes of a TrainJob -------------------------------------------------------------------


class Override(msgspec.Struct, frozen=True, kw_only=True):
    """Changes to the pods of one replicated job, and where they are written."""

    job: str
    job_path: str
    metadata: ObjectMeta
    metadata_path: str
    spec: PodSpecOverride
    spec_path: str


def overrides_of(spec: TrainJobSpec) -> Iterator[Override]:
    """Yield the changes of both spellings in the order in which they are applied."""
    for index, override in enumerate(spec.pod_template_overrides):
        path = f"spec.podTemplateOverrides[{index}]"
        for number, target in enumerate(override.target_jobs):
            yield Override(
                job=target.name,
                job_path=f"{path}.targetJobs[{number}].name",
                metadata=override.metadata or ObjectMeta(),
                metadata_path=f"{path}.metadata",
                spec=override.spec or PodSpecOverride(),
                spec_path=f"{path}.spec",
            )
    for index, patch in enumerate(spec.runtime_patches):
        runtime = patch.training_runtime_spec
        template = runtime.template if runtime else None
        jobs = template.spec.replicated_jobs if template and template.spec else ()
        for number, job in enumerate(jobs):
            path = (
                f"spec.runtimePatches[{index}].trainingRuntimeSpec.template.spec"
                f".replicatedJobs[{number}]"
            )
            job_spec = job.template.spec if job.template else None
            pod = job_spec.template if job_spec else None
            yield Override(
                job=job.name,
                job_path=f"{path}.name",
                metadata=(pod.metadata if pod else None) or ObjectMeta(),
                metadata_path=f"{path}.template.spec.template.metadata",
                spec=(pod.spec if pod else None) or PodSpecOverride(),
                spec_path=f"{path}.template.spec.template.spec",
            )


def overridden(template: PodTemplateSpec, override: Override) -> PodTemplateSpec:
    """Return a pod template with one set of changes merged into it."""
    metadata = msgspec.structs.replace(
        template.metadata,
        labels={**template.metadata.labels, **override.metadata.labels},
        annotations={**template.metadata.annotations, **override.metadata.annotations},
    )
    return PodTemplateSpec(metadata=metadata, spec=_merged_spec(template.spec, override.spec))


def _merged_spec(spec: PodSpec, change: PodSpecOverride) -> PodSpec:
    return msgspec.structs.replace(
        spec,
        node_selector={**spec.node_selector, **change.node_selector},
        affinity=_merged_affinity(spec.affinity, change.affinity),
        tolerations=spec.tolerations if change.tolerations is None else change.tolerations,
    )


def _merged_affinity(old: Affinity | None, new: Affinity | None) -> Affinity | None:
    if old is None or new is None:
        return new or old
    return Affinity(
        node_affinity=_merged_node_affinity(old.node_affinity, new.node_affinity),
        pod_affinity=_merged_pod_affinity(old.pod_affinity, new.pod_affinity),
        pod_anti_affinity=_merged_pod_affinity(old.pod_anti_affinity, new.pod_anti_affinity),
    )


def _merged_node_affinity(
    old: NodeAffinity | None, new: NodeAffinity | None
) -> NodeAffinity | None:
    if old is None or new is None:
        return new or old
    return NodeAffinity(
        required_during_scheduling_ignored_during_execution=(
            new.required_during_scheduling_ignored_during_execution
            or old.required_during_scheduling_ignored_during_execution
        ),
        preferred_during_scheduling_ignored_during_execution=(
            new.preferred_during_scheduling_ignored_during_execution
            or old.preferred_during_scheduling_ignored_during_execution
        ),
    )


def _merged_pod_affinity(old: PodAffinity | None, new: PodAffinity | None) -> PodAffinity | None:
    if old is None or new is None:
        return new or old
    return PodAffinity(
        required_during_scheduling_ignored_during_execution=(
            new.required_during_scheduling_ignored_during_execution
            or old.required_during_scheduling_ignored_during_execution
        ),
        preferred_during_scheduling_ignored_during_execution=(
            new.preferred_during_scheduling_ignored_during_execution
            or old.preferred_during_scheduling_ignored_during_execution
        ),
    )


def check_override(override: Override) -> Iterator[Problem]:
    """Yield the faults of a change that can be seen without the runtime."""
    yield from check_topology(
        override.metadata.annotations, f"{override.metadata_path}.annotations"
    )
    yield from check_affinity(override.spec.affinity, f"{override.spec_path}.affinity")
    yield from check_tolerations(
        override.spec.tolerations or (), f"{override.spec_path}.tolerations"
    )
    for name, containers in _containers(override.spec):
        for index, container in enumerate(containers):
            if container.env and container.name in _OWN_ENV:
                yield Problem(
                    f"{override.spec_path}.{name}[{index}].env",
                    f"the variables of container {container.name} are set in spec.trainer.env or"
                    " spec.initializer",
                )


def check_target(override: Override, jobs: tuple[ReplicatedJob, ...]) -> Iterator[Problem]:
    """Yield jobs and containers that a change names and that the runtime does not have."""
    job = next((job for job in jobs if job.name == override.job), None)
    if job is None:
        known = ", ".join(job.name for job in jobs)
        yield Problem(override.job_path, f'the runtime has no job "{override.job}"; it has {known}')
        return
    pod = job.template.spec.template.spec
    for name, containers in _containers(override.spec):
        theirs = pod.containers if name == "containers" else pod.init_containers
        known_names = [container.name for container in theirs]
        for index, container in enumerate(containers):
            if container.name not in known_names:
                listed = ", ".join(known_names) or "none"
                yield Problem(
                    f"{override.spec_path}.{name}[{index}].name",
                    f'job {job.name} of the runtime has no such container "{container.name}";'
                    f" it has {listed}",
                )


def _containers(spec: PodSpecOverride) -> tuple[tuple[str, tuple[ContainerOverride, ...]], ...]:
    return (("containers", spec.containers), ("initContainers", spec.init_containers))
