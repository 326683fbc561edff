"""TrainJobs as users write them, and what the operator would refuse."""

from __future__ import annotations

import pytest

from tests.support.manifests import check, job

# The TrainJob of the Kubeflow guide, as printed there (its here-document taken off).
T5_LARGE = r"""
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: t5-large
spec:
  podTemplateOverrides:
    - targetJobs:
        - name: node                                                  # ClusterTrainingRuntime
      spec:
        nodeSelector:
          node.kubernetes.io/instance-type: g6e.48xlarge
          topology.kubernetes.io/zone: ap-northeast-2a

        containers:
          - name: node
            volumeMounts:
              - mountPath: /dev/shm
                name: dshm
        volumes:
          - name: dshm
            emptyDir:
              medium: Memory
              sizeLimit: "64Gi"

  runtimeRef:
    name: torch-distributed

  trainer:
    numNodes: 2
    numProcPerNode: auto
    image: public.ecr.aws/deep-learning-containers/pytorch-training:2.8.0-gpu-py312

    command:
      - /bin/bash
      - -c
      - |
        export MASTER_ADDR=\${PET_MASTER_ADDR}
        torchrun \
          --nproc_per_node=8 \
          --rdzv_endpoint=\${MASTER_ADDR}:\${MASTER_PORT} \
          t5-fsdp.py --model_id="google-t5/t5-large" --epochs=10
    resourcesPerNode:
      limits:
        nvidia.com/gpu: "8"
      requests:
        nvidia.com/gpu: "8"
"""

# The TrainJob of the gang scheduling guide, whose spec is left out there.
LEFT_OUT = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: t5-large
  namespace: default
  labels:
    kueue.x-k8s.io/queue-name: default-queue                 # the local queue
spec:
    # ... (left out)
"""

RUNTIME = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: mine}
spec:
  mlPolicy: {numNodes: 4, torch: {numProcPerNode: auto, elasticPolicy: {maxRestarts: 1}}}
  podGroupPolicy: {coscheduling: {scheduleTimeoutSeconds: 100}}
  template:
    metadata: {labels: {a: b}}
    spec:
      failurePolicy: {maxRestarts: 10}
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template:
              spec:
                containers: [{name: node, resources: {requests: {cpu: 1}}}]
"""


def minimal(spec: str, runtime: str = "torch-distributed") -> str:
    return f"""
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: x}}
spec:
  runtimeRef: {{name: {runtime}}}
{spec}
"""


def test_the_guides_train_job() -> None:
    made = job(T5_LARGE)
    assert made.problems == []
    assert made.warnings == []
    assert made.counts == {"node": 2}
    assert made.requests("node") == {"nvidia.com/gpu": 8}
    assert made.pod_sets[0].node_selector == (
        ("node.kubernetes.io/instance-type", "g6e.48xlarge"),
        ("topology.kubernetes.io/zone", "ap-northeast-2a"),
    )


def test_an_empty_spec_is_one_pod_that_asks_for_nothing() -> None:
    made = job(LEFT_OUT)
    assert made.problems == []
    assert made.warnings == [("EmptySpec", "spec")]
    assert made.counts == {"node": 1}
    assert made.requests("node") == {}
    assert [path for path, _ in job(LEFT_OUT, strict=True).problems] == ["spec"]


def test_a_spec_needs_a_runtime() -> None:
    text = minimal("  trainer: {numNodes: 2}").replace(
        "  runtimeRef: {name: torch-distributed}\n", ""
    )
    assert ("spec.runtimeRef", "is required") in job(text).problems


@pytest.mark.parametrize(
    ("runtime", "counts"),
    [
        ("torch-distributed", {"node": 3}),
        ("jax-distributed", {"node": 3}),
        ("xgboost-distributed", {"node": 3}),
        ("deepspeed-distributed", {"launcher": 1, "node": 2}),
        ("mlx-distributed", {"launcher": 1, "node": 2}),
        (
            "torchtune-llama3.2-1b",
            {"dataset-initializer": 1, "model-initializer": 1, "node": 3},
        ),
    ],
)
def test_stock_runtimes(runtime: str, counts: dict[str, int]) -> None:
    made = job(minimal("  trainer: {numNodes: 3}", runtime))
    assert made.problems == []
    assert made.counts == counts


def test_a_runtime_among_the_documents_comes_first() -> None:
    assert job(minimal("", "mine"), RUNTIME).counts == {"node": 4}
    stock = RUNTIME.replace("name: mine", "name: torch-distributed")
    assert job(minimal(""), stock).counts == {"node": 4}
    assert job(minimal("")).counts == {"node": 1}


def test_a_runtime_of_the_namespace() -> None:
    own = RUNTIME.replace("ClusterTrainingRuntime", "TrainingRuntime")
    text = minimal("").replace("{name: torch-distributed}", "{name: mine, kind: TrainingRuntime}")
    assert job(text, own).counts == {"node": 4}
    assert job(text).problems == [
        (
            "spec.runtimeRef.name",
            'there is no TrainingRuntime "mine" in namespace default; add its manifest',
        )
    ]
    assert job(minimal("", "mine"), own).problems == [
        (
            "spec.runtimeRef.name",
            'there is no ClusterTrainingRuntime "mine" in the documents or among the stock'
            " runtimes; add its manifest",
        )
    ]


def test_a_misspelt_runtime() -> None:
    ((path, message),) = job(minimal("", "torch-distribted")).problems
    assert path == "spec.runtimeRef.name"
    assert message.endswith('; did you mean "torch-distributed"?')


@pytest.mark.parametrize(
    ("ref", "path", "message"),
    [
        (
            "{name: x, kind: Job}",
            "spec.runtimeRef.kind",
            'must be ClusterTrainingRuntime or TrainingRuntime, not "Job"',
        ),
        (
            "{name: torch-distributed, apiGroup: kubeflow.org}",
            "spec.runtimeRef.apiGroup",
            'must be trainer.kubeflow.org, not "kubeflow.org"',
        ),
    ],
)
def test_a_wrong_reference(ref: str, path: str, message: str) -> None:
    text = minimal("").replace("{name: torch-distributed}", ref)
    assert (path, message) in job(text).problems


@pytest.mark.parametrize(
    ("spec", "path", "message"),
    [
        (
            "  trainer: {numProcPerNode: many}",
            "spec.trainer.numProcPerNode",
            'must be a number or one of auto, cpu, gpu, not "many"',
        ),
        (
            "  trainer: {numProcPerNode: 0}",
            "spec.trainer.numProcPerNode",
            "is 0; it must be at least 1",
        ),
        (
            "  trainer: {resourcesPerNode: {requests: {cpu: -1}}}",
            "spec.trainer.resourcesPerNode.requests[cpu]",
            "is -1; it must not be negative",
        ),
        (
            "  trainer: {env: [{name: PET_NNODES, value: '2'}]}",
            "spec.trainer.env[0].name",
            "PET_NNODES is set by the runtime; choose another name",
        ),
        (
            "  trainer: {numNodes: -1}",
            "spec.trainer.numNodes",
            "is -1; it must be at least 0",
        ),
        (
            "  initializer: {model: {storageUri: hf://x}}",
            "spec.initializer.model",
            "the runtime has no job with the role model-initializer",
        ),
        (
            "  trainer: {numNode: 1}",
            "spec.trainer.numNode",
            'unknown field; did you mean "numNodes"?',
        ),
    ],
)
def test_faults(spec: str, path: str, message: str) -> None:
    assert job(minimal(spec)).problems == [(path, message)]


def test_mpi_counts_processes_in_numbers() -> None:
    made = job(minimal("  trainer: {numProcPerNode: auto}", "deepspeed-distributed"))
    assert made.problems == [("spec.trainer.numProcPerNode", "must be a number for an MPI runtime")]


def test_mpi_needs_jobs_to_spread_over() -> None:
    mpi = RUNTIME.replace(
        "torch: {numProcPerNode: auto, elasticPolicy: {maxRestarts: 1}}",
        "mpi: {runLauncherAsNode: true}",
    )
    made = job(minimal("  trainer: {numNodes: 2}", "mine"), mpi)
    assert made.problems == [
        (
            "spec.trainer.numNodes",
            "must be 1: the runtime has no jobs launcher and node to spread over",
        )
    ]


def test_an_override_of_something_that_is_not_there() -> None:
    """Spec jobs, scenario 2."""
    container = job(T5_LARGE.replace("          - name: node\n", "          - name: worker\n"))
    assert container.problems == [
        (
            "spec.podTemplateOverrides[0].spec.containers[0].name",
            'job node of the runtime has no such container "worker"; it has node',
        )
    ]
    target = job(T5_LARGE.replace("- name: node  ", "- name: nodes  "))
    assert target.problems == [
        (
            "spec.podTemplateOverrides[0].targetJobs[0].name",
            'the runtime has no job "nodes"; it has node',
        )
    ]


def test_finished_and_reclaimable() -> None:
    status = """
status:
  conditions: [{type: Suspended, status: "False", reason: Resumed}]
  jobsStatus:
  - {name: dataset-initializer, succeeded: 1, ready: 0, failed: 0, active: 0, suspended: 0}
  - {name: node, succeeded: 0, ready: 1, failed: 0, active: 1, suspended: 0}
"""
    made = job(minimal("", "torchtune-llama3.2-1b") + status)
    assert made.reclaimable == (("dataset-initializer", 1),)
    assert not made.is_finished
    done = 'status: {conditions: [{type: Complete, status: "True"}]}\n'
    assert job(minimal("") + done).is_finished


def test_faults_of_a_runtime() -> None:
    assert check(RUNTIME) == []
    assert check(RUNTIME.replace("name: node, resources", "name: main, resources")) == [
        (
            "spec.template.spec.replicatedJobs[0].template.spec.template.spec.containers",
            'a job with the role trainer needs a container "node"',
        )
    ]
    assert check(RUNTIME.replace("- name: node\n", "- name: node\n        replicas: 2\n")) == [
        (
            "spec.template.spec.replicatedJobs[0].replicas",
            "is 2; a job with a role has exactly 1",
        )
    ]
    assert check(RUNTIME.replace("numNodes: 4,", "numNodes: 4, jax: {},")) == [
        ("spec.mlPolicy", "at most one of torch, mpi, jax, xgboost and flux may be set")
    ]
    head, _, _ = RUNTIME.partition("      replicatedJobs:")
    assert check(head) == [
        ("spec.template.spec.replicatedJobs", "is required: there is nothing to run")
    ]
