"""The runtimes that come with the training operator (v2.1, and two later ones).

A cluster that has the operator has these, so a TrainJob may name one without bringing its manifest;
a manifest of the same name takes precedence. An embedded cluster stores them when it begins. Spec
jobs §1.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.kinds.batch import JobSpec, JobTemplateSpec
from unisono.kinds.core.schema import (
    Container,
    EnvVar,
    PodSpec,
    PodTemplateSpec,
    ResourceRequirements,
    VolumeMount,
)
from unisono.kinds.jobset import DependsOn, JobSetSpec, Network, ReplicatedJob
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

_IMAGES = "ghcr.io/kubeflow/trainer"
_TORCH_IMAGE = "pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime"
_JAX_IMAGE = "nvcr.io/nvidia/jax:25.10-py3"
# The user that images of MPI runtimes are made for, and where its keys are.
_MPI_USER = 1000
_MPI_HOME = "/home/mpiuser"
_SSH_PORT = 2222
_WORKSPACE = "/workspace"
_DATASET = "hf://tatsu-lab/alpaca"


def _job(
    name: str,
    container: Container,
    *,
    role: str = "",
    after: tuple[DependsOn, ...] = (),
    volumes: tuple[Any, ...] = (),
) -> ReplicatedJob:
    return ReplicatedJob(
        name=name,
        depends_on=after,
        template=JobTemplateSpec(
            metadata=ObjectMeta(labels={ANCESTOR: role} if role else {}),
            spec=JobSpec(
                template=PodTemplateSpec(spec=PodSpec(containers=(container,), volumes=volumes))
            ),
        ),
    )


def _runtime(policy: MLPolicy, *jobs: ReplicatedJob, **more: Any) -> TrainingRuntimeSpec:
    template = JobSetTemplate(spec=JobSetSpec(replicated_jobs=jobs, **more))
    return TrainingRuntimeSpec(ml_policy=policy, template=template)


def _nodes(policy: MLPolicy, image: str) -> TrainingRuntimeSpec:
    """One job whose pods find each other through variables."""
    return _runtime(policy, _job(NODE, Container(name=NODE, image=image), role=TRAINER))


def _launched(image: str) -> TrainingRuntimeSpec:
    """A launcher that reaches the others by ssh, and trains as well."""
    mpi = MPIPolicy(
        num_proc_per_node=1,
        mpi_implementation="OpenMPI",
        ssh_auth_mount_path=f"{_MPI_HOME}/.ssh",
        run_launcher_as_node=True,
    )
    user = {"runAsUser": _MPI_USER}
    launcher = Container(name=NODE, image=image, security_context=user)
    node = Container(
        name=NODE,
        image=image,
        security_context=user,
        command=("/usr/sbin/sshd",),
        args=("-De", "-f", f"{_MPI_HOME}/.sshd_config"),
        readiness_probe={"tcpSocket": {"port": _SSH_PORT}, "initialDelaySeconds": 5},
    )
    return _runtime(
        MLPolicy(num_nodes=1, mpi=mpi),
        _job(LAUNCHER, launcher, role=TRAINER),
        _job(NODE, node),
        network=Network(publish_not_ready_addresses=True),
        success_policy={"operator": "All", "targetReplicatedJobs": [LAUNCHER]},
    )


def _fine_tuning(name: str, model: str, config: str, *items: str) -> TrainingRuntimeSpec:
    """Data and model are fetched into a claim of the runtime's name; then one node trains."""
    fetched = tuple(
        DependsOn(name=role, status="Complete") for role in (DATASET_INITIALIZER, MODEL_INITIALIZER)
    )
    volume = {"name": "initializer", "persistentVolumeClaim": {"claimName": name}}
    mounts = (VolumeMount(name="initializer", mount_path=_WORKSPACE),)
    jobs = [
        _job(
            role,
            Container(
                name=role,
                image=f"{_IMAGES}/{role}:v2.1.0",
                env=(EnvVar(name="STORAGE_URI", value=source),),
                volume_mounts=mounts,
            ),
            role=role,
            volumes=(volume,),
        )
        for role, source in ((DATASET_INITIALIZER, _DATASET), (MODEL_INITIALIZER, model))
    ]
    trainer = Container(
        name=NODE,
        image=f"{_IMAGES}/torchtune-trainer:v2.1.0",
        command=(
            "tune",
            "run",
            "--rdzv_endpoint=localhost:29500",
            "full_finetune_distributed",
            "--config",
            config,
            "dataset=torchtune.datasets.instruct_dataset",
            "dataset.source=parquet",
            f"dataset.data_dir={_WORKSPACE}/dataset/data",
            f"output_dir={_WORKSPACE}/output",
            *items,
            f"checkpointer.checkpoint_dir={_WORKSPACE}/model",
        ),
        volume_mounts=mounts,
        resources=ResourceRequirements(limits={"nvidia.com/gpu": Quantity.from_raw(2)}),
    )
    return _runtime(
        MLPolicy(num_nodes=1, torch=TorchPolicy()),
        *jobs,
        _job(NODE, trainer, role=TRAINER, after=fetched, volumes=(volume,)),
    )


def _llama(size: str) -> TrainingRuntimeSpec:
    return _fine_tuning(
        f"torchtune-llama3.2-{size.lower()}",
        f"hf://meta-llama/Llama-3.2-{size}-Instruct",
        f"llama3_2/{size}_full.yaml",
        f"tokenizer.path={_WORKSPACE}/model/original/tokenizer.model",
    )


STOCK_RUNTIMES: Mapping[str, TrainingRuntimeSpec] = {
    "deepspeed-distributed": _launched(f"{_IMAGES}/deepspeed-runtime:v2.1.0"),
    "jax-distributed": _nodes(MLPolicy(num_nodes=1, jax={}), _JAX_IMAGE),
    "mlx-distributed": _launched(f"{_IMAGES}/mlx-runtime:v2.1.0"),
    "torch-distributed": _nodes(MLPolicy(num_nodes=1, torch=TorchPolicy()), _TORCH_IMAGE),
    "torchtune-llama3.2-1b": _llama("1B"),
    "torchtune-llama3.2-3b": _llama("3B"),
    "torchtune-qwen2.5-1.5b": _fine_tuning(
        "torchtune-qwen2.5-1.5b",
        "hf://Qwen/Qwen2.5-1.5B-Instruct",
        "qwen2_5/1.5B_full.yaml",
        f"tokenizer.path={_WORKSPACE}/model/vocab.json",
        f"tokenizer.merges_file={_WORKSPACE}/model/merges.txt",
    ),
    "xgboost-distributed": _nodes(
        MLPolicy(num_nodes=1, xgboost={}), f"{_IMAGES}/xgboost-runtime:v2.2.5"
    ),
}
