"""From a TrainJob and its runtime to pod templates and counts, in the operator's order.

1  the TrainJob's changes go into the templates (overrides)
2  a job has as many pods as its template's parallelism, the trainer as many as the runtime's
   mlPolicy.numNodes
3  trainer.numNodes replaces that: for the job `node` under MPI, less one if the launcher
   trains too; for the trainer otherwise
4  trainer.resourcesPerNode replaces the resources of the container `node`
"""

from __future__ import annotations

import msgspec

from unisono.kinds.batch import pods_at_once
from unisono.kinds.core.pod_sets import TemplateSet
from unisono.kinds.core.schema import Container, PodTemplateSpec, ResourceRequirements
from unisono.kinds.jobset import ReplicatedJob, pod_labels
from unisono.kinds.trainer.overrides import overridden, overrides_of
from unisono.kinds.trainer.schema import MLPolicy, Trainer, TrainingRuntimeSpec, TrainJobSpec
from unisono.kinds.trainer.stock import ANCESTOR, NODE, TRAINER


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
