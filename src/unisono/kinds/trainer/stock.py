"""The runtimes that come with the training operator, as far as a decision needs them.

A cluster that has the operator has these, so a TrainJob may name one without bringing its manifest;
a manifest of the same name takes precedence.
"""

from __future__ import annotations

from collections.abc import Mapping

from unisono.kinds.batch import JobSpec, JobTemplateSpec
from unisono.kinds.core.schema import Container, PodSpec, PodTemplateSpec, ResourceRequirements
from unisono.kinds.jobset import DependsOn, JobSetSpec, ReplicatedJob
from unisono.kinds.meta import ObjectMeta
from unisono.kinds.quantity import Quantity
from unisono.kinds.trainer.schema import (
    JobSetTemplate,
    MLPolicy,
    MPIPolicy,
    TorchPolicy,
    TrainingRuntimeSpec,
)

# The label of a job template that says which part of a training job it is.
ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
TRAINER = "trainer"
DATASET_INITIALIZER = "dataset-initializer"
MODEL_INITIALIZER = "model-initializer"
# The replicated job and the container that train.
NODE = "node"
LAUNCHER = "launcher"

DEFAULT_RUNTIME = "torch-distributed"


def _job(
    name: str,
    *,
    container: str,
    role: str = "",
    gpus: int = 0,
    after: tuple[DependsOn, ...] = (),
) -> ReplicatedJob:
    limits = {"nvidia.com/gpu": Quantity.from_raw(gpus)} if gpus else {}
    pod = PodSpec(
        containers=(Container(name=container, resources=ResourceRequirements(limits=limits)),)
    )
    return ReplicatedJob(
        name=name,
        depends_on=after,
        template=JobTemplateSpec(
            metadata=ObjectMeta(labels={ANCESTOR: role} if role else {}),
            spec=JobSpec(template=PodTemplateSpec(spec=pod)),
        ),
    )


def _runtime(policy: MLPolicy, *jobs: ReplicatedJob) -> TrainingRuntimeSpec:
    template = JobSetTemplate(spec=JobSetSpec(replicated_jobs=jobs))
    return TrainingRuntimeSpec(ml_policy=policy, template=template)


def _nodes(policy: MLPolicy) -> TrainingRuntimeSpec:
    return _runtime(policy, _job(NODE, container=NODE, role=TRAINER))


def _launched() -> TrainingRuntimeSpec:
    mpi = MPIPolicy(num_proc_per_node=1, mpi_implementation="OpenMPI", run_launcher_as_node=True)
    return _runtime(
        MLPolicy(num_nodes=1, mpi=mpi),
        _job(LAUNCHER, container=NODE, role=TRAINER),
        _job(NODE, container=NODE),
    )


def _fine_tuning() -> TrainingRuntimeSpec:
    fetched = tuple(
        DependsOn(name=name, status="Complete") for name in (DATASET_INITIALIZER, MODEL_INITIALIZER)
    )
    return _runtime(
        MLPolicy(num_nodes=1, torch=TorchPolicy()),
        _job(DATASET_INITIALIZER, container=DATASET_INITIALIZER, role=DATASET_INITIALIZER),
        _job(MODEL_INITIALIZER, container=MODEL_INITIALIZER, role=MODEL_INITIALIZER),
        _job(NODE, container=NODE, role=TRAINER, gpus=2, after=fetched),
    )


STOCK_RUNTIMES: Mapping[str, TrainingRuntimeSpec] = {
    "deepspeed-distributed": _launched(),
    "jax-distributed": _nodes(MLPolicy(num_nodes=1, jax={})),
    "mlx-distributed": _launched(),
    "torch-distributed": _nodes(MLPolicy(num_nodes=1, torch=TorchPolicy())),
    "torchtune-llama3.2-1b": _fine_tuning(),
    "torchtune-llama3.2-3b": _fine_tuning(),
    "torchtune-qwen2.5-1.5b": _fine_tuning(),
    "xgboost-distributed": _nodes(MLPolicy(num_nodes=1, xgboost={})),
}
