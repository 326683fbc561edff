"""The jobs of kubeflow.org, from PyTorchJob to MPIJob: kinds, replica types and labels."""

from __future__ import annotations

from dataclasses import dataclass

from unisono.kube.mapping import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind:
    """What differs between the kinds of jobs."""

    kind: Kind
    field: str  # where the replica specs are
    types: tuple[str, ...]  # in the order of their pod sets; the leader comes first
    leaders: tuple[str, ...] = ()  # the first of these that a job has decides how it ends
    restarts: str = "OnFailure"  # the restart policy of a replica that names none
    port: int = 0
    port_name: str = ""


PYTORCH = JobKind(
    kind=Kind("kubeflow.org/v1", "PyTorchJob"),
    field="pytorchReplicaSpecs",
    types=("Master", "Worker"),
    leaders=("Master",),
    port=23456,
    port_name="pytorchjob-port",
)
TENSORFLOW = JobKind(
    kind=Kind("kubeflow.org/v1", "TFJob"),
    field="tfReplicaSpecs",
    types=("Chief", "Master", "PS", "Worker", "Evaluator"),
    leaders=("Chief", "Master"),
    restarts="Never",
    port=2222,
    port_name="tfjob-port",
)
XGBOOST = JobKind(
    kind=Kind("kubeflow.org/v1", "XGBoostJob"),
    field="xgbReplicaSpecs",
    types=("Master", "Worker"),
    leaders=("Master",),
    restarts="Never",
    port=9999,
    port_name="xgboostjob-port",
)
JAX = JobKind(
    kind=Kind("kubeflow.org/v1", "JAXJob"),
    field="jaxReplicaSpecs",
    types=("Worker",),
    port=6666,
    port_name="jaxjob-port",
)
PADDLE = JobKind(
    kind=Kind("kubeflow.org/v1", "PaddleJob"),
    field="paddleReplicaSpecs",
    types=("Master", "Worker"),
    leaders=("Master",),
    port=36543,
    port_name="master",
)
MPI = JobKind(
    kind=Kind("kubeflow.org/v2beta1", "MPIJob"),
    field="mpiReplicaSpecs",
    types=("Launcher", "Worker"),
    leaders=("Launcher",),
    restarts="Never",
)
JOB_KINDS = (PYTORCH, TENSORFLOW, XGBOOST, JAX, PADDLE, MPI)

JOB_NAME = "training.kubeflow.org/job-name"
OPERATOR = "training.kubeflow.org/operator-name"
TYPE = "training.kubeflow.org/replica-type"
INDEX = "training.kubeflow.org/replica-index"
ROLE = "training.kubeflow.org/job-role"
# On a job: how many of its restarts were its own fault.
COUNTED = "unisono.dev/restarts-counted"

# Conditions of a job that is over.
ENDS = ("Succeeded", "Failed")
