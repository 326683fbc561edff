"""Jobs of kubeflow.org: made, found by each other, restarted together, ended (jobs §6)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.control.stories import (
    conditions,
    delete,
    env_of,
    gpu_node,
    nodes_of,
    phases,
    pods,
    queue_of,
    told,
)
from tests.support.control_world import World
from unisono.control.job_kinds.kubeflow import (
    JAX,
    MPI,
    PADDLE,
    PYTORCH,
    TENSORFLOW,
    XGBOOST,
    JobKind,
)
from unisono.control.names import CLUSTER_QUEUE, CONFIG_MAP, POD, SECRET, SERVICE
from unisono.kube.form import Json


def replica(count: int = 1, *, gpus: int = 1, policy: str = "OnFailure", **says: str) -> Json:
    """Return a replica spec whose pods run for ever, unless they say otherwise."""
    texts = {"run-seconds": "forever"} | {k.replace("_", "-"): v for k, v in says.items()}
    container: Json = {"name": "c", "image": "x"}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return {
        "replicas": count,
        "restartPolicy": policy,
        "template": {
            "metadata": {"annotations": {f"unisono.dev/{k}": v for k, v in texts.items()}},
            "spec": {"containers": [container]},
        },
    }


def kubeflow_job(
    sort: JobKind,
    replicas: Json,
    *,
    labels: Json | None = None,
    run: Json | None = None,
    **spec: Any,
) -> Json:
    """Return a job `j`."""
    return {
        "apiVersion": sort.kind.api_version,
        "kind": sort.kind.kind,
        "metadata": {"name": "j", "namespace": "default", "labels": labels or {}},
        "spec": {sort.field: replicas, "runPolicy": run or {}, **spec},
    }


def torch(master: Json | None = None, worker: Json | None = None, **more: Any) -> Json:
    """Return a PyTorchJob of a master and two workers."""
    made = {"Master": master or replica(), "Worker": worker or replica(2)}
    return kubeflow_job(PYTORCH, made, **more)


def state(world: World, sort: JobKind = PYTORCH) -> str:
    """Return what `kubectl get` shows."""
    return str(world.get(sort.kind, "j")["status"]["conditions"][-1]["type"])


def test_a_job_starts_whole_and_its_pods_find_each_other() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 2), torch(nprocPerNode="2"))
        await world.settle()
        assert phases(world) == {}
        await world.create(gpu_node("n2", 1))
        await world.settle()
        running = dict.fromkeys(["j-master-0", "j-worker-0", "j-worker-1"], "Running")
        assert phases(world) == running
        assert state(world) == "Running"
        env = env_of(pods(world)["j-worker-1"])
        assert {name: env[name] for name in ("MASTER_ADDR", "MASTER_PORT", "RANK")} == {
            "MASTER_ADDR": "j-master-0",
            "MASTER_PORT": "23456",
            "RANK": "2",
        }
        assert (env["WORLD_SIZE"], env["PET_NNODES"], env["PET_NODE_RANK"]) == ("6", "3", "2")
        selector = world.get(SERVICE, "j-worker-1")["spec"]["selector"]
        assert selector.items() <= pods(world)["j-worker-1"]["metadata"]["labels"].items()
        counts = world.get(PYTORCH.kind, "j")["status"]["replicaStatuses"]
        assert (counts["Master"]["active"], counts["Worker"]["active"]) == (1, 2)

    told(story)


def test_the_master_ends_the_job() -> None:
    async def story(world: World) -> None:
        job = torch(replica(run_seconds="20"), run={"ttlSecondsAfterFinished": 60})
        await world.create(gpu_node("n1", 3), job)
        await world.settle()
        await world.pass_time(21)
        assert state(world) == "Succeeded"
        assert phases(world) == {"j-master-0": "Succeeded"}
        assert conditions(world)["Finished"] == "True Succeeded"
        await world.pass_time(61)
        assert world.every(PYTORCH.kind) == []
        assert world.every(POD) == []

    told(story)


FAILS: dict[str, Any] = {"fail_after": "5", "fail_index": "1"}


@pytest.mark.parametrize(
    ("worker", "run", "end", "attempts"),
    [
        pytest.param(replica(2, fail_times="1", **FAILS), {}, "Running", 1, id="once"),
        pytest.param(replica(2, **FAILS), {"backoffLimit": 2}, "Failed", 2, id="too often"),
        pytest.param(replica(2, policy="Never", **FAILS), {}, "Failed", 0, id="never"),
        pytest.param(
            replica(2, policy="ExitCode", exit_code="3", **FAILS), {}, "Failed", 0, id="for good"
        ),
        pytest.param(
            replica(2, policy="ExitCode", exit_code="137", fail_times="1", **FAILS),
            {},
            "Running",
            1,
            id="a signal",
        ),
        pytest.param(replica(2), {"activeDeadlineSeconds": 30}, "Failed", 0, id="too long"),
    ],
)
def test_failures(worker: Json, run: Json, end: str, attempts: int) -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 3), torch(worker=worker, run=run))
        await world.settle()
        before = nodes_of(world)
        await world.pass_time(120)
        assert state(world) == end
        annotations = world.get(PYTORCH.kind, "j")["metadata"].get("annotations") or {}
        assert int(annotations.get("unisono.dev/attempt", "0")) == attempts
        if end == "Running":
            assert nodes_of(world) == before
            assert set(phases(world).values()) == {"Running"}
        else:
            assert "Running" not in phases(world).values()
            assert conditions(world)["Finished"] == "True Failed"

    told(story)


def test_a_lost_pod_starts_the_job_over_and_counts_for_nothing() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 3), torch(run={"backoffLimit": 0}))
        await world.settle()
        before = {name: pod["metadata"]["uid"] for name, pod in pods(world).items()}
        await delete(world, POD, "j-worker-0")
        await world.pass_time(1)
        after = {name: pod["metadata"]["uid"] for name, pod in pods(world).items()}
        assert before.keys() == after.keys()
        assert not set(before.values()) & set(after.values())
        assert state(world) == "Running"
        incident = world.get(PYTORCH.kind, "j")["metadata"]["annotations"]
        assert json.loads(incident["unisono.dev/last-incident"])["class"] == "disruption"
        assert conditions(world)["Admitted"] == "True Admitted"

    told(story)


def test_a_job_in_a_queue_is_suspended_and_resumed() -> None:
    async def story(world: World) -> None:
        labels = {"kueue.x-k8s.io/queue-name": "lq-cq"}
        await world.create(*queue_of(2), gpu_node("n1", 3), torch(labels=labels))
        await world.settle()
        assert (state(world), phases(world)) == ("Suspended", {})
        change = {"spec": {"resourceGroups": queue_of(3)[1]["spec"]["resourceGroups"]}}
        await world.client.patch(CLUSTER_QUEUE, "cq", "", change)
        await world.settle()
        assert state(world) == "Running"
        await world.client.patch(CLUSTER_QUEUE, "cq", "", {"spec": {"stopPolicy": "HoldAndDrain"}})
        await world.settle()
        assert (state(world), phases(world)) == ("Suspended", {})
        template = world.get(PYTORCH.kind, "j")["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
        assert "kueue.x-k8s.io/workload" not in template["metadata"]["annotations"]

    told(story)


@pytest.mark.parametrize("policy", ["AtStartup", "WaitForWorkersReady"])
def test_an_mpi_job(policy: str) -> None:
    async def story(world: World) -> None:
        replicas = {
            "Launcher": replica(gpus=0, run_seconds="20"),
            "Worker": replica(2, ready_seconds="10"),
        }
        job = kubeflow_job(MPI, replicas, slotsPerWorker=2, launcherCreationPolicy=policy)
        await world.create(gpu_node("n1", 2), job)
        await world.settle()
        launchers = [name for name in phases(world) if "-launcher-" in name]
        assert bool(launchers) == (policy == "AtStartup")
        assert {"j-worker-0", "j-worker-1"} <= phases(world).keys()
        assert world.get(CONFIG_MAP, "j-config")["data"]["hostfile"].splitlines() == [
            "j-worker-0.j.default.svc slots=2",
            "j-worker-1.j.default.svc slots=2",
        ]
        assert world.get(SECRET, "j-ssh")["type"] == "kubernetes.io/ssh-auth"
        worker = pods(world)["j-worker-1"]["spec"]
        assert (worker["hostname"], worker["subdomain"]) == ("j-worker-1", "j")
        assert worker["containers"][0]["command"] == ["/usr/sbin/sshd", "-De"]
        await world.pass_time(11)
        (launcher,) = (pod for name, pod in pods(world).items() if "-launcher-" in name)
        assert env_of(launcher)["OMPI_MCA_orte_default_hostfile"] == "/etc/mpi/hostfile"
        await world.pass_time(21)
        assert state(world, MPI) == "Succeeded"
        assert set(phases(world).values()) == {"Succeeded"}

    told(story)


def test_the_words_of_the_other_kinds() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 16))
        made = {
            TENSORFLOW: {"PS": replica(), "Worker": replica(2)},
            XGBOOST: {"Master": replica(), "Worker": replica()},
            JAX: {"Worker": replica(2)},
            PADDLE: {"Master": replica(), "Worker": replica(2)},
        }
        for sort, replicas in made.items():
            job = kubeflow_job(sort, replicas)
            job["metadata"]["name"] = sort.kind.kind.lower()
            await world.create(job)
        await world.settle()
        assert set(phases(world).values()) == {"Running"}
        config = json.loads(env_of(pods(world)["tfjob-worker-1"])["TF_CONFIG"])
        assert config["cluster"]["ps"] == ["tfjob-ps-0.default.svc:2222"]
        assert config["task"] == {"type": "worker", "index": 1}
        env = env_of(pods(world)["xgboostjob-worker-0"])
        assert (env["MASTER_ADDR"], env["RANK"]) == ("xgboostjob-master-0", "1")
        env = env_of(pods(world)["jaxjob-worker-1"])
        assert (env["COORDINATOR_ADDRESS"], env["PROCESS_ID"]) == ("jaxjob-worker-0", "1")
        env = env_of(pods(world)["paddlejob-worker-1"])
        assert env["PADDLE_MASTER"] == "paddlejob-master-0:36543"
        assert (env["PADDLE_NNODES"], env["PADDLE_TRAINER_NUM"]) == ("3", "1")
        assert "PADDLE_SERVER_NUM" not in env
        leader = pods(world)["paddlejob-master-0"]["spec"]["containers"][0]["env"]
        (address,) = (one for one in leader if one["name"] == "POD_IP_DUMMY")
        assert address["valueFrom"]["fieldRef"]["fieldPath"] == "status.podIP"
        assert {"name": "PADDLE_MASTER", "value": "$(POD_IP_DUMMY):36543"} in leader
        assert {"name": "PADDLE_SERVER_NUM", "value": "1"} in leader

    told(story)
