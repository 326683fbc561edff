"""Volcano jobs from submission to their end (jobs §4, scenarios 13 to 16)."""

from __future__ import annotations

import pytest

from tests.control.stories import (
    SEEDS,
    conditions,
    delete,
    documents,
    env_of,
    gpu_node,
    in_default,
    nodes_of,
    phases,
    pods,
    told,
)
from tests.support.control_world import World
from unisono.control.job_kinds import volcano
from unisono.control.job_kinds.volcano.tasks import task_minima
from unisono.control.names import CONFIG_MAP, POD, SECRET, SERVICE, WORKLOAD
from unisono.kube.form import Json

DDP = "pytorch-ddp-training"
WORKERS = [f"{DDP}-worker-{number}" for number in range(4)]


def ddp(**says: str) -> Json:
    """Return the job of the seed; its pods run until told otherwise."""
    (job,) = documents(SEEDS / "seed-001-ddp.yaml")
    annotations = {"unisono.dev/run-seconds": "forever"}
    annotations |= {f"unisono.dev/{key.replace('_', '-')}": value for key, value in says.items()}
    job["spec"]["tasks"][0]["template"]["metadata"] = {"annotations": annotations}
    return in_default(job)


def horovod() -> Json:
    """Return the other job of the seed: the master ends, the workers are servers."""
    (job,) = documents(SEEDS / "seed-001-horovod.yaml")
    for task, runs in zip(job["spec"]["tasks"], ("30", "forever"), strict=True):
        task["template"]["metadata"] = {"annotations": {"unisono.dev/run-seconds": runs}}
    return in_default(job)


def state(world: World, name: str = DDP) -> Json:
    """Return what a job says of itself."""
    status = world.get(volcano.JOB, name).get("status") or {}
    return {
        "phase": status["state"]["phase"],
        **{key: status[key] for key in ("retryCount", "version", "running") if status.get(key)},
    }


def test_a_job_waits_whole_until_all_of_its_pods_have_a_place() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 3), ddp())
        await world.settle()
        assert state(world) == {"phase": "Pending"}
        assert phases(world) == {}
        (group,) = world.every(volcano.POD_GROUP)
        assert group["status"]["phase"] == "Pending"
        assert group["spec"]["minMember"] == 4
        assert group["spec"]["minTaskMember"] == {"worker": 4}
        counted = ("pods", "count/pods", "nvidia.com/gpu", "requests.nvidia.com/gpu")
        assert group["spec"]["minResources"] == dict.fromkeys(counted, "4")
        (waits,) = group["status"]["conditions"]
        assert (waits["type"], waits["status"]) == ("Unschedulable", "True")
        assert waits["message"].startswith("4/4 tasks in gang unschedulable: ")

        await world.create(gpu_node("n2", 1))
        await world.settle()
        assert phases(world) == dict.fromkeys(WORKERS, "Running")
        assert sorted(nodes_of(world).values()) == ["n1", "n1", "n1", "n2"]
        assert state(world) == {"phase": "Running", "running": 4}
        (group,) = world.every(volcano.POD_GROUP)
        (ready,) = group["status"].pop("conditions")
        assert (ready["type"], ready["status"]) == ("Scheduled", "True")
        assert group["status"] == {"phase": "Running", "running": 4, "succeeded": 0, "failed": 0}

    told(story)


def test_the_variables_of_the_seed_are_set() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 4), ddp())
        await world.settle()
        pod = pods(world)[f"{DDP}-worker-2"]
        env = env_of(pod)
        assert env["VC_WORKER_0_SVC"] == f"{DDP}-worker-0.{DDP}"
        assert "VC_WORKER_1_SVC" not in env
        assert (env["VC_TASK_INDEX"], env["VK_TASK_INDEX"]) == ("2", "2")
        assert env["VC_WORKER_HOSTS"]["configMapKeyRef"]["name"] == f"{DDP}-svc"
        assert env["NCCL_DEBUG"] == "INFO"
        hosts = world.get(CONFIG_MAP, f"{DDP}-svc")["data"]
        assert hosts["VC_WORKER_HOSTS"].split(",") == [f"{name}.{DDP}" for name in WORKERS]
        assert hosts["VC_WORKER_NUM"] == "4"
        assert hosts["worker.host"].splitlines()[3] == f"{DDP}-worker-3.{DDP}"
        assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == (f"{DDP}-worker-2", DDP)
        mounts = {one["mountPath"] for one in pod["spec"]["containers"][0]["volumeMounts"]}
        assert {"/etc/volcano", "/root/.ssh"} <= mounts
        service = world.get(SERVICE, DDP)["spec"]
        assert (service["clusterIP"], service["publishNotReadyAddresses"]) == ("None", True)
        assert set(world.get(SECRET, f"{DDP}-ssh")["data"]) == {
            "id_rsa",
            "id_rsa.pub",
            "authorized_keys",
            "config",
        }

    told(story)


def test_a_lost_pod_restarts_the_job_until_its_retries_are_used_up() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 2), gpu_node("n2", 2), ddp())
        await world.settle()
        before = nodes_of(world)
        for attempt in (1, 2):
            uids = {pod["metadata"]["uid"] for pod in world.every(POD)}
            await delete(world, POD, f"{DDP}-worker-1")
            await world.pass_time(1)
            assert state(world) == {
                "phase": "Running",
                "retryCount": attempt,
                "version": attempt,
                "running": 4,
            }
            assert not uids & {pod["metadata"]["uid"] for pod in world.every(POD)}
            assert nodes_of(world) == before
            held = conditions(world)
            assert held["Admitted"] == "True Admitted"
            assert "Evicted" not in held
        await delete(world, POD, f"{DDP}-worker-3")
        await world.pass_time(1)
        assert state(world) == {"phase": "Failed", "retryCount": 3, "version": 3}
        assert phases(world) == {}
        assert conditions(world)["Finished"] == "True Failed"

    told(story)


def test_the_end_of_the_master_completes_the_job() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 4), horovod())
        await world.settle()
        master = pods(world)["horovod-training-master-0"]
        assert master["spec"]["restartPolicy"] == "OnFailure"
        assert "VC_WORKER_HOSTS" in env_of(master)
        assert state(world, "horovod-training") == {"phase": "Running", "running": 5}
        await world.pass_time(31)
        assert state(world, "horovod-training") == {"phase": "Completed"}
        assert phases(world) == {"horovod-training-master-0": "Succeeded"}
        assert conditions(world)["Finished"] == "True Succeeded"
        (group,) = world.every(volcano.POD_GROUP)
        assert group["status"]["phase"] == "Completed"

    told(story)


@pytest.mark.parametrize(("starts", "phase"), [("40", "Running"), ("80", "Aborted")])
def test_a_pod_that_stays_pending_too_long_aborts_the_job(starts: str, phase: str) -> None:
    async def story(world: World) -> None:
        job = ddp(start_seconds=starts)
        job["spec"]["policies"] = [{"event": "PodPending", "timeout": "60s", "action": "AbortJob"}]
        await world.create(gpu_node("n1", 4), job)
        await world.settle()
        await world.pass_time(58)
        assert state(world)["phase"] == ("Running" if starts == "40" else "Pending")
        await world.pass_time(5)
        assert state(world)["phase"] == phase

    told(story)


def test_a_job_that_was_aborted_can_be_resumed_at_the_cost_of_a_retry() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 4), ddp())
        await world.settle()
        await world.create(command("AbortJob"))
        await world.settle()
        assert state(world) == {"phase": "Aborted"}
        assert phases(world) == {}
        assert world.every(volcano.COMMAND) == []
        await world.create(command("ResumeJob"))
        await world.settle()
        assert state(world) == {"phase": "Running", "retryCount": 1, "version": 1, "running": 4}
        (workload,) = world.every(WORKLOAD)
        assert workload["status"]["admission"]

    told(story)


def command(action: str) -> Json:
    """Return an order for the job."""
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"generateName": "command-", "namespace": "default"},
        "action": action,
        "target": {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "name": DDP,
            "uid": "1",
        },
    }


def test_a_running_job_grows_and_shrinks_in_place() -> None:
    async def story(world: World) -> None:
        def hosts() -> list[str]:
            data = world.get(CONFIG_MAP, "pytorch-ddp-training-svc")["data"]
            return str(data["worker.host"]).split()

        async def scale(pods: int) -> None:
            task = world.get(volcano.JOB, "pytorch-ddp-training")["spec"]["tasks"][0]
            changed = {"tasks": [{**task, "replicas": pods, "minAvailable": pods}]}
            spec = {"spec": {**changed, "minAvailable": pods}}
            await world.client.patch(volcano.JOB, "pytorch-ddp-training", "default", spec)
            await world.settle()

        await world.create(gpu_node("n1", 6), ddp())
        await world.settle()
        first = {name: pod["metadata"]["uid"] for name, pod in pods(world).items()}
        assert len(first) == len(hosts()) == 4
        await scale(6)
        assert len(hosts()) == 6
        now = {name: pod["metadata"]["uid"] for name, pod in pods(world).items()}
        assert set(phases(world).values()) == {"Running"}
        assert len(now) == 6
        assert now.items() >= first.items(), "those that ran go on"
        (group,) = world.every(volcano.POD_GROUP)
        assert group["spec"]["minMember"] == 6
        await scale(2)
        assert sorted(phases(world)) == sorted(WORKERS)[:2]
        assert len(hosts()) == 2
        await scale(7)
        assert len(phases(world)) == 2, "there is no node for as many"
        await scale(3)
        assert len(phases(world)) == 3

    told(story)


def test_minima_of_tasks_add_up_to_that_of_the_job() -> None:
    def minima(least: int, *replicas: int) -> list[int]:
        tasks = [{"name": f"t{place}", "replicas": pods} for place, pods in enumerate(replicas)]
        return task_minima({"spec": {"minAvailable": least, "tasks": tasks}})

    assert minima(4, 4, 4) == [3, 1]
    assert minima(8, 4, 4) == [4, 4]
    assert minima(6, 4, 4) == [4, 2]
    assert minima(5, 2, 2, 2) == [2, 2, 1]
    assert minima(1, 4, 4) == [1, 0]
