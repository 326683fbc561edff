"""The Kubeflow SDK against the embedded cluster: from `train()` to logs, without a line changed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from kubeflow.common.types import KubernetesBackendConfig
from kubeflow.trainer import (
    BuiltinTrainer,
    CustomTrainer,
    CustomTrainerContainer,
    HuggingFaceDatasetInitializer,
    HuggingFaceModelInitializer,
    Initializer,
    TorchTuneConfig,
    TrainerClient,
)
from kubeflow.trainer.options.common import Name
from kubeflow.trainer.options.kubernetes import (
    JobSetSpecPatch,
    JobSetTemplatePatch,
    JobSpecPatch,
    JobTemplatePatch,
    Labels,
    PodSpecPatch,
    PodTemplatePatch,
    ReplicatedJobPatch,
    RuntimePatch,
    TrainerCommand,
    TrainingRuntimeSpecPatch,
)
from kubernetes import client, config

from tests.clients.conftest import Cluster

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 60
GROUP = ("trainer.kubeflow.org", "v1alpha1")
QUEUE = "kueue.x-k8s.io/queue-name"


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Iterator[Any]:
    """Return the official client, to look at what the SDK has made."""
    made = config.new_client_from_config(str(cluster.kubeconfig))
    yield made
    made.close()


@pytest.fixture
def trainer(cluster: Cluster, api: Any, namespace: str) -> TrainerClient:
    """Return the SDK's client for a namespace of the test's own."""
    client.CoreV1Api(api).create_namespace({"metadata": {"name": namespace}})
    found = KubernetesBackendConfig(namespace=namespace, config_file=str(cluster.kubeconfig))
    return TrainerClient(found)


def _learn(rate: float) -> None:
    print(f"learning at {rate}")


def _finished(trainer: TrainerClient, name: str) -> Any:
    return trainer.wait_for_job_status(name, timeout=PATIENCE_SECONDS, polling_interval=1)


def _is_told(trainer: TrainerClient, name: str, reason: str) -> bool:
    """Wait for an event: they may take some seconds."""
    for _ in range(PATIENCE_SECONDS):
        if reason in {event.reason for event in trainer.get_job_events(name)}:
            return True
        time.sleep(1)
    return False


def test_runtimes_are_there_from_the_beginning(trainer: TrainerClient) -> None:
    found = {runtime.name: runtime.trainer for runtime in trainer.list_runtimes()}
    assert {"torch-distributed", "deepspeed-distributed", "torchtune-llama3.2-1b"} <= set(found)
    assert found["torch-distributed"].framework == "torch"
    assert trainer.get_runtime("torch-distributed").name == "torch-distributed"


def test_a_runtime_of_the_namespace_goes_first(
    trainer: TrainerClient, api: Any, namespace: str
) -> None:
    custom = client.CustomObjectsApi(api)
    runtime = custom.get_cluster_custom_object(
        *GROUP, "clustertrainingruntimes", "torch-distributed"
    )
    labels = runtime["metadata"]["labels"]
    ours = {
        "apiVersion": "/".join(GROUP),
        "kind": "TrainingRuntime",
        "metadata": {"name": "torch-distributed", "labels": labels},
        "spec": {**runtime["spec"], "mlPolicy": {"numNodes": 3, "torch": {}}},
    }
    custom.create_namespaced_custom_object(*GROUP, namespace, "trainingruntimes", ours)
    assert trainer.get_runtime("torch-distributed").trainer.num_nodes == 3


def test_a_function_is_trained(trainer: TrainerClient) -> None:
    name = trainer.train(
        runtime="torch-distributed",
        trainer=CustomTrainer(
            func=_learn,
            func_args={"rate": 0.1},
            num_nodes=2,
            resources_per_node={"cpu": 2, "memory": "4Gi", "gpu": 1},
            env={"COLOUR": "red"},
        ),
    )
    job = _finished(trainer, name)
    assert (job.status, job.num_nodes) == ("Complete", 2)
    steps = {step.name: step for step in job.steps}
    assert set(steps) == {"node-0", "node-1"}
    assert {step.device_count for step in steps.values()} == {"1"}
    lines = list(trainer.get_job_logs(name, step="node-1"))
    assert "_learn(" in lines[0]
    assert list(trainer.get_job_logs(name, follow=True))[-1].endswith("exit code 0")
    assert _is_told(trainer, name, "Started")
    assert [job.name for job in trainer.list_jobs()] == [name]
    trainer.delete_job(name)
    assert trainer.list_jobs() == []
    with pytest.raises(RuntimeError):
        trainer.get_job(name)


def test_a_built_in_trainer_with_initializers(trainer: TrainerClient) -> None:
    name = trainer.train(
        runtime="torchtune-llama3.2-1b",
        initializer=Initializer(
            dataset=HuggingFaceDatasetInitializer(storage_uri="hf://tatsu-lab/alpaca"),
            model=HuggingFaceModelInitializer(storage_uri="hf://meta-llama/Llama-3.2-1B-Instruct"),
        ),
        trainer=BuiltinTrainer(
            config=TorchTuneConfig(epochs=1, batch_size=2, resources_per_node={"gpu": 2})
        ),
    )
    job = _finished(trainer, name)
    assert {step.name for step in job.steps} == {
        "dataset-initializer",
        "model-initializer",
        "node-0",
    }
    assert "tune run" in " ".join(trainer.get_job_logs(name))


def test_a_container_with_options(trainer: TrainerClient, api: Any, namespace: str) -> None:
    patch = RuntimePatch(
        training_runtime_spec=TrainingRuntimeSpecPatch(
            template=JobSetTemplatePatch(
                spec=JobSetSpecPatch(
                    replicated_jobs=[
                        ReplicatedJobPatch(
                            name="node",
                            template=JobTemplatePatch(
                                spec=JobSpecPatch(
                                    template=PodTemplatePatch(
                                        spec=PodSpecPatch(
                                            node_selector={"kubernetes.io/os": "linux"}
                                        )
                                    )
                                )
                            ),
                        )
                    ]
                )
            )
        ),
    )
    name = trainer.train(
        runtime="torch-distributed",
        trainer=CustomTrainerContainer(image="busybox", num_nodes=1),
        options=[Name("chosen"), Labels({"team": "x"}), patch],
    )
    assert name == "chosen"
    _finished(trainer, name)
    (pod,) = client.CoreV1Api(api).list_namespaced_pod(namespace).items
    assert pod.spec.node_selector == {"kubernetes.io/os": "linux"}
    assert pod.spec.containers[0].image == "busybox"


def test_a_job_in_a_queue_waits_for_its_turn(
    trainer: TrainerClient, api: Any, namespace: str
) -> None:
    name = trainer.train(
        runtime="torch-distributed",
        options=[Labels({QUEUE: "missing"}), TrainerCommand(["sleep", "1"])],
    )
    job = trainer.get_job(name)
    assert (job.status, job.steps) == ("Created", [])
    found = client.CustomObjectsApi(api).get_namespaced_custom_object(
        *GROUP, namespace, "trainjobs", name
    )
    assert found["spec"]["suspend"] is True


def test_what_is_wrong_is_refused(trainer: TrainerClient) -> None:
    with pytest.raises(RuntimeError):
        trainer.get_runtime("no-such-runtime")
    with pytest.raises(RuntimeError) as refused:
        trainer.train(
            runtime="torch-distributed",
            trainer=CustomTrainer(func=_learn, resources_per_node={"cpu": "many"}),
        )
    assert "resourcesPerNode" in str(refused.value.__cause__)
