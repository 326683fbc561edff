"""TrainJobs: what they become, by policy and override (jobs §1.2 to §1.4)."""

from __future__ import annotations

import base64

import pytest

from tests.control.training_world import (
    Json,
    World,
    gpu_node,
    places,
    play,
    pods,
    queues,
    state,
    train_job,
)
from unisono.control import names
from unisono.kube.mapping import Kind

JOB = names.TRAIN_JOB
SET = names.JOB_SET


def variables(container: Json) -> dict[str, str]:
    return {one["name"]: one.get("value", "from the pod") for one in container["env"]}


def container(world: World, replicated: str = "node", name: str = "t") -> Json:
    for one in world.get(SET, name)["spec"]["replicatedJobs"]:
        if one["name"] == replicated:
            found: Json = one["template"]["spec"]["template"]["spec"]["containers"][0]
            return found
    raise AssertionError(f"no replicated job {replicated}")


async def edit_runtime(world: World, name: str, spec: Json) -> None:
    await world.client.patch(names.CLUSTER_TRAINING_RUNTIME, name, "", {"spec": spec})
    await world.settle()


# ---- scenario 3: processes per node ------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "resources", "expected"),
    [
        ("auto", {"requests": {"cpu": "3500m"}}, "4"),
        ("auto", {}, "1"),
        ("auto", {"limits": {"cpu": "2"}}, "2"),
        ("auto", {"limits": {"nvidia.com/gpu": "8"}}, "auto"),
        ("gpu", {"limits": {"nvidia.com/gpu": "8"}}, "gpu"),
        ("cpu", {"limits": {"nvidia.com/gpu": "8", "cpu": "12"}}, "12"),
        (3, {"limits": {"nvidia.com/gpu": "8"}}, "3"),
        (None, {"limits": {"nvidia.com/gpu": "8"}}, "auto"),
    ],
)
def test_processes_per_node(wanted: object, resources: Json, expected: str) -> None:
    async def story(world: World) -> None:
        trainer = {"resourcesPerNode": resources}
        if wanted is not None:
            trainer["numProcPerNode"] = wanted  # type: ignore[assignment]
        await world.create(train_job(trainer=trainer))
        await world.settle()
        assert variables(container(world))["PET_NPROC_PER_NODE"] == expected

    play(story)


# ---- scenario 8: initializers ------------------------------------------------------------------


def test_fine_tuning_waits_for_its_data_and_its_gang_is_one_pod() -> None:
    async def story(world: World) -> None:
        sources = {
            "dataset": {"storageUri": "hf://mine/data", "secretRef": {"name": "token"}},
            "model": {"storageUri": "hf://mine/model", "env": [{"name": "A", "value": "1"}]},
        }
        tune = {"command": ["tune", "run"], "resourcesPerNode": None, "image": None}
        await world.create(
            gpu_node("n1"),
            *queues(),
            train_job(runtime="torchtune-llama3.2-1b", initializer=sources, nodes=1, trainer=tune),
        )
        await world.settle()
        jobs = sorted(one["metadata"]["name"] for one in world.every(names.JOB))
        assert jobs == ["t-dataset-initializer-0", "t-model-initializer-0"]
        assert len(places(world)) == 2
        fetch = container(world, "dataset-initializer")
        assert variables(fetch)["STORAGE_URI"] == "hf://mine/data"
        assert fetch["envFrom"] == [{"secretRef": {"name": "token"}}]
        assert variables(container(world, "model-initializer"))["A"] == "1"
        for pod in pods(world):
            await world.set_status(names.POD, pod["metadata"]["name"], {"phase": "Succeeded"})
        await world.settle()
        assert list(places(world)) == ["t-node-0-0"]
        main = container(world)
        assert main["command"] == [
            "tune",
            "run",
            "--rdzv_endpoint=t-node-0-0.t:29500",
            "full_finetune_distributed",
            "--config",
            "llama3_2/1B_full.yaml",
            "output_dir=/workspace/output",
            "tokenizer.path=/workspace/model/original/tokenizer.model",
            "checkpointer.checkpoint_dir=/workspace/model",
        ]
        assert "PET_MASTER_ADDR" not in variables(main)
        (workload,) = world.every(names.WORKLOAD)
        assert workload["status"]["reclaimablePods"] == [
            {"name": "dataset-initializer", "count": 1},
            {"name": "model-initializer", "count": 1},
        ]

    play(story)


# ---- other ways to train -----------------------------------------------------------------------


def test_mpi_gets_keys_hosts_and_variables() -> None:
    async def story(world: World) -> None:
        await world.create(
            gpu_node("n1"),
            gpu_node("n2"),
            *queues(),
            train_job(
                runtime="deepspeed-distributed",
                nodes=3,
                gpus=4,
                trainer={"command": ["mpirun", "hostname"]},
            ),
        )
        await world.settle()
        secret = world.get(names.SECRET, "t-mpi-ssh-auth")
        assert secret["type"] == "kubernetes.io/ssh-auth"
        assert secret["immutable"] is True
        assert base64.b64decode(secret["data"]["ssh-privatekey"]).startswith(b"-----BEGIN EC ")
        assert base64.b64decode(secret["data"]["ssh-publickey"]).startswith(b"ecdsa-sha2-nistp521 ")
        hosts = world.get(names.CONFIG_MAP, "t-mpi-hostfile")["data"]["hostfile"]
        assert hosts.splitlines() == [
            "t-launcher-0-0.t slots=4",
            "t-node-0-0.t slots=4",
            "t-node-0-1.t slots=4",
        ]
        launcher, worker = container(world, "launcher"), container(world, "node")
        found = variables(launcher)
        assert found["OMPI_MCA_orte_default_hostfile"] == "/etc/mpi/hostfile"
        assert found["OMPI_MCA_orte_keep_fqdn_hostnames"] == "true"
        assert found["OMPI_MCA_orte_set_default_slots"] == "4"
        assert launcher["command"] == ["mpirun", "hostname"]
        assert worker["command"] == ["/usr/sbin/sshd"]
        assert {one["mountPath"] for one in launcher["volumeMounts"]} == {
            "/etc/mpi",
            "/home/mpiuser/.ssh",
        }
        assert len(places(world)) == 3
        (pod,) = [one for one in pods(world) if "launcher" in one["metadata"]["name"]]
        await world.set_status(names.POD, pod["metadata"]["name"], {"phase": "Succeeded"})
        await world.settle()
        await world.pass_time(60)
        assert state(world, "t") == "Complete"
        assert pods(world) == []

    play(story)


@pytest.mark.parametrize(
    ("policy", "group", "pod_metadata"),
    [
        (
            {"coscheduling": {"scheduleTimeoutSeconds": 30}},
            "scheduling.x-k8s.io/v1alpha1",
            {"labels": {"scheduling.x-k8s.io/pod-group": "t"}},
        ),
        (
            {"volcano": {}},
            "scheduling.volcano.sh/v1beta1",
            {"annotations": {"scheduling.k8s.io/group-name": "t"}},
        ),
    ],
)
def test_a_runtime_may_ask_for_a_pod_group(policy: Json, group: str, pod_metadata: Json) -> None:
    async def story(world: World) -> None:
        await edit_runtime(world, "torchtune-llama3.2-1b", {"podGroupPolicy": policy})
        await world.create(*queues(), train_job(runtime="torchtune-llama3.2-1b", nodes=1))
        await world.settle()
        found = await world.client.get(Kind(group, "PodGroup"), "t", "default")
        assert found["spec"]["minMember"] == 2  # the initializers; the trainer is alone
        template = world.get(SET, "t")["spec"]["replicatedJobs"][2]["template"]["spec"]["template"]
        for part, texts in pod_metadata.items():
            assert texts.items() <= template["metadata"][part].items()

    play(story)


def test_later_overrides_win_and_tolerations_are_replaced() -> None:
    async def story(world: World) -> None:
        def override(**spec: object) -> Json:
            return {"targetJobs": [{"name": "node"}], "spec": spec}

        job = train_job(
            podTemplateOverrides=[
                override(
                    nodeSelector={"a": "1", "b": "1"},
                    tolerations=[{"key": "x", "operator": "Exists"}],
                    volumes=[{"name": "v", "emptyDir": {}}],
                ),
                override(
                    nodeSelector={"b": "2"},
                    tolerations=[{"key": "y", "operator": "Exists"}],
                    containers=[
                        {"name": "node", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
                    ],
                ),
            ]
        )
        job["spec"]["labels"] = {"team": "a"}
        await world.create(job)
        await world.settle()
        found = world.get(SET, "t")
        pod = found["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        assert pod["nodeSelector"] == {"a": "1", "b": "2"}
        assert [one["key"] for one in pod["tolerations"]] == ["y"]
        assert found["metadata"]["labels"]["team"] == "a"

    play(story)
