"""TrainJobs: what they become, how they are held back, restart and end (jobs §1, §9)."""

from __future__ import annotations

import pytest

from tests.control.training_world import (
    Json,
    World,
    conditions,
    crash,
    events,
    gpu_node,
    incident,
    node,
    places,
    play,
    pods,
    queues,
    state,
    status,
    t5_large,
    train_job,
)
from unisono.control import names
from unisono.control.conditions import timestamp

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


def workload_conditions(world: World) -> dict[str, tuple[str, str]]:
    (found,) = world.every(names.WORKLOAD)
    return conditions(world, names.WORKLOAD, found["metadata"]["name"])


async def edit_runtime(world: World, name: str, spec: Json) -> None:
    await world.client.patch(names.CLUSTER_TRAINING_RUNTIME, name, "", {"spec": spec})
    await world.settle()


# ---- scenario 1, 27: the seed's job ------------------------------------------------------------


def test_the_seed_s_job_becomes_a_jobset_a_job_a_service_and_two_pods() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1"), t5_large())
        await world.settle()
        assert pods(world) == []
        assert state(world, "t5-large") == "Suspended"
        await world.create(gpu_node("n2"))
        await world.settle()
        assert state(world, "t5-large") == "Running"
        assert places(world) == {"t5-large-node-0-0": "n1", "t5-large-node-0-1": "n2"}
        job = world.get(names.JOB, "t5-large-node-0")
        assert job["spec"]["completionMode"] == "Indexed"
        assert (job["spec"]["parallelism"], job["spec"]["completions"]) == (2, 2)
        assert world.get(names.SERVICE, "t5-large")["spec"]["clusterIP"] == "None"
        assert world.get(SET, "t5-large")["metadata"]["ownerReferences"][0]["kind"] == "TrainJob"
        for index, pod in enumerate(pods(world)):
            assert pod["metadata"]["name"].startswith(f"t5-large-node-0-{index}-")
            assert pod["spec"]["subdomain"] == "t5-large"
            assert pod["spec"]["nodeSelector"] == {
                "node.kubernetes.io/instance-type": "g6e.48xlarge",
                "topology.kubernetes.io/zone": "ap-northeast-2a",
            }
            (volume,) = [one for one in pod["spec"]["volumes"] if one["name"] == "dshm"]
            assert volume["emptyDir"] == {"medium": "Memory", "sizeLimit": "64Gi"}
            (main,) = pod["spec"]["containers"]
            assert {"name": "dshm", "mountPath": "/dev/shm"} in main["volumeMounts"]
            assert [port["containerPort"] for port in main["ports"]] == [29500]
            found = variables(main)
            assert found["PET_NNODES"] == "2"
            assert found["PET_NPROC_PER_NODE"] == "auto"
            assert found["PET_MASTER_ADDR"] == "t5-large-node-0-0.t5-large"
            assert found["PET_MASTER_PORT"] == "29500"
            assert found["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] == "1"
            (rank,) = [one for one in main["env"] if one["name"] == "PET_NODE_RANK"]
            assert rank["valueFrom"]["fieldRef"]["fieldPath"] == (
                "metadata.annotations['batch.kubernetes.io/job-completion-index']"
            )
            annotations = pod["metadata"]["annotations"]
            assert annotations["batch.kubernetes.io/job-completion-index"] == str(index)
            assert main["resources"]["limits"] == {"nvidia.com/gpu": "8"}

    play(story)


def test_state_says_what_a_job_does() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1"), *queues(), train_job(nodes=1))
        await world.settle()
        assert state(world, "t") == "Running"
        assert conditions(world, JOB, "t")["Suspended"] == ("False", "Resumed")
        await crash(world, pods(world)[0])
        await world.settle()
        assert state(world, "t") == "Restarting"
        assert "ended with exit code 1" in events(world, "Restarting")[0]
        await world.pass_time(11)
        assert state(world, "t") == "Running"
        pod = pods(world)[0]["metadata"]["name"]
        await world.set_status(names.POD, pod, {"phase": "Succeeded"})
        await world.settle()
        assert state(world, "t") == "Complete"
        assert conditions(world, JOB, "t")["Complete"] == ("True", "AllJobsCompleted")
        assert workload_conditions(world)["Finished"] == ("True", "Succeeded")

    play(story)


# ---- scenario 2: what is wrong -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"containers": [{"name": "worker"}]},
            "spec.podTemplateOverrides[0].spec.containers[0].name",
        ),
        ({"target": "nodes"}, "spec.podTemplateOverrides[0].targetJobs[0].name"),
        ({"runtime": "torch-distribute"}, "torch-distributed"),
    ],
)
def test_a_job_that_does_not_go_with_its_runtime_waits_with_a_sentence(
    change: Json, sentence: str
) -> None:
    async def story(world: World) -> None:
        job = t5_large()
        override = job["spec"]["podTemplateOverrides"][0]
        if "containers" in change:
            override["spec"]["containers"] = change["containers"]
        if "target" in change:
            override["targetJobs"] = [{"name": change["target"]}]
        if "runtime" in change:
            job["spec"]["runtimeRef"]["name"] = change["runtime"]
        await world.create(gpu_node("n1"), gpu_node("n2"), job)
        await world.settle()
        assert world.every(SET) == []
        assert world.every(names.WORKLOAD) == []
        found = status(world, JOB, "t5-large")["conditions"][-1]
        assert (found["type"], found["reason"]) == ("Suspended", "TrainJobResourcesCreationFailed")
        assert sentence in found["message"]
        assert sentence in events(world, "TrainJobResourcesCreationFailed")[0]

    play(story)


def test_a_job_starts_when_its_runtime_comes() -> None:
    async def story(world: World) -> None:
        await world.create(node(), train_job(queue="", gpus=0, nodes=1, runtime="mine"))
        await world.settle()
        assert "mine" in events(world, "TrainJobResourcesCreationFailed")[0]
        stock = world.get(names.CLUSTER_TRAINING_RUNTIME, "torch-distributed")
        await world.create(
            {
                "apiVersion": stock["apiVersion"],
                "kind": stock["kind"],
                "metadata": {"name": "mine"},
                "spec": stock["spec"],
            }
        )
        await world.settle()
        assert state(world, "t") == "Running"
        assert len(places(world)) == 1

    play(story)


# ---- scenario 4, 5: accounting -----------------------------------------------------------------


async def restart_in_place(world: World, count: int) -> None:
    """Let every container of every pod have been started again so often."""
    for pod in pods(world):
        statuses = [{**one, "restartCount": count} for one in pod["status"]["containerStatuses"]]
        await world.set_status(names.POD, pod["metadata"]["name"], {"containerStatuses": statuses})
    await world.settle()


def test_upstream_accounting_adds_up_containers() -> None:
    async def story(world: World) -> None:
        upstream = {"unisono.dev/restart-accounting": "upstream"}
        await world.create(
            gpu_node("n1"), gpu_node("n2"), *queues(), train_job(annotations=upstream)
        )
        await world.settle()
        job = world.get(names.JOB, "t-node-0")
        assert job["spec"]["backoffLimit"] == 6
        assert job["spec"]["template"]["spec"]["restartPolicy"] == "OnFailure"
        await restart_in_place(world, 2)
        assert state(world, "t") == "Running"  # the sum is 4
        await restart_in_place(world, 3)
        await world.pass_time(60)
        failed = {
            one["type"]: one["reason"] for one in status(world, names.JOB, "t-node-0")["conditions"]
        }
        assert failed["Failed"] == "BackoffLimitExceeded"
        assert conditions(world, SET, "t")["Failed"] == ("True", "FailedJobs")
        assert conditions(world, JOB, "t")["Failed"] == ("True", "FailedJobs")
        assert state(world, "t") == "Failed"

    play(story)


@pytest.mark.parametrize(("written", "survived"), [(None, 6), (10, 10)])
def test_gang_accounting_counts_incidents(written: int | None, survived: int) -> None:
    async def story(world: World) -> None:
        if written is not None:
            policy = {"failurePolicy": {"maxRestarts": written}}
            await edit_runtime(world, "torch-distributed", {"template": {"spec": policy}})
        await world.create(gpu_node("n1"), gpu_node("n2"), *queues(), train_job())
        await world.settle()
        for number in range(1, survived + 1):
            await incident(world)
            assert state(world, "t") == "Running", number
            annotations = world.get(JOB, "t")["metadata"]["annotations"]
            assert annotations["unisono.dev/attempt"] == str(number)
            assert status(world, SET, "t")["restarts"] == number
        await incident(world)
        assert state(world, "t") == "Failed"
        assert conditions(world, JOB, "t")["Failed"] == ("True", "ReachedMaxRestarts")
        assert workload_conditions(world)["Finished"] == ("True", "Failed")

    play(story)


def test_a_runtime_that_is_edited_while_a_job_runs_changes_nothing() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1"), gpu_node("n2"), *queues(), train_job())
        await world.settle()
        policy = {"failurePolicy": {"maxRestarts": 10}}
        await edit_runtime(world, "torch-distributed", {"template": {"spec": policy}})
        for _ in range(7):
            await incident(world)
        assert state(world, "t") == "Failed"
        assert status(world, SET, "t")["restarts"] == 6

    play(story)


def test_a_runtime_that_is_edited_while_a_job_waits_is_followed() -> None:
    async def story(world: World) -> None:
        await world.create(*queues(gpus=8), train_job(trainer={"image": None}))
        await world.settle()
        runtime = world.get(names.CLUSTER_TRAINING_RUNTIME, "torch-distributed")
        jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"]
        jobs[0]["template"]["spec"]["template"]["spec"]["containers"][0]["image"] = "newer"
        changed = {"template": {"spec": {"replicatedJobs": jobs}}}
        await edit_runtime(world, "torch-distributed", changed)
        assert container(world)["image"] == "newer"

    play(story)


# ---- scenario 6, 7: queues ---------------------------------------------------------------------


def test_what_is_injected_comes_before_the_release() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1"), gpu_node("n2"), *queues(), train_job())
        await world.settle()
        seen = []
        for change in world.store.history("trainer.kubeflow.org/trainjobs").after(0):
            spec = change.record.load()["spec"]
            seen.append((bool(spec.get("runtimePatches")), bool(spec.get("suspend"))))
        assert (False, False) not in seen
        assert (True, True) in seen
        assert seen[-1] == (True, False)
        (patch,) = world.get(JOB, "t")["spec"]["runtimePatches"]
        assert patch["manager"] == "kueue.x-k8s.io/manager"
        assert pods(world)[0]["spec"]["nodeSelector"] == {
            "topology.kubernetes.io/zone": "ap-northeast-2a"
        }

    play(story)


def test_a_preempted_job_leaves_slowly_and_comes_back_with_its_count() -> None:
    async def story(world: World) -> None:
        preemption = {"withinClusterQueue": "LowerPriority"}
        important = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "WorkloadPriorityClass",
            "metadata": {"name": "high"},
            "value": 100,
        }
        slow: Json = {
            "podTemplateOverrides": [
                {
                    "targetJobs": [{"name": "node"}],
                    "metadata": {"annotations": {"unisono.dev/stop-seconds": "20"}},
                }
            ]
        }
        await world.create(
            gpu_node("n1"), gpu_node("n2"), *queues(preemption=preemption), important
        )
        await world.create(train_job("low", **slow))
        await world.settle()
        await incident(world)
        assert state(world, "low") == "Running"
        (waiting,) = world.every(names.WORKLOAD)
        high = train_job("high")
        high["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "high"
        await world.create(high)
        await world.settle()
        assert state(world, "low") == "Suspended"
        await world.pass_time(10)
        assert state(world, "high") == "Suspended"  # the others are still on their nodes
        (active,) = status(world, JOB, "low")["jobsStatus"]
        assert active["active"] == 1
        await world.pass_time(15)
        assert state(world, "high") == "Running"
        assert sorted(places(world)) == ["high-node-0-0", "high-node-0-1"]
        assert status(world, SET, "low")["restarts"] == 1
        uids = {one["metadata"]["uid"] for one in world.every(names.WORKLOAD)}
        assert waiting["metadata"]["uid"] in uids  # it keeps its turn
        await world.client.delete(JOB, "high", "default")
        await world.settle()
        await world.pass_time(600)
        assert state(world, "low") == "Running"
        assert sorted(places(world)) == ["low-node-0-0", "low-node-0-1"]
        assert status(world, SET, "low")["restarts"] == 1

    play(story)


# ---- scenario 26 -------------------------------------------------------------------------------


def test_a_job_that_failed_stays_so_when_its_jobset_is_gone() -> None:
    async def story(world: World) -> None:
        template = {"spec": {"ttlSecondsAfterFinished": 60, "failurePolicy": {"maxRestarts": 0}}}
        await edit_runtime(world, "torch-distributed", {"template": template})
        await world.create(gpu_node("n1"), *queues(), train_job(nodes=1))
        await world.settle()
        await incident(world, seconds=30)
        assert state(world, "t") == "Failed"
        assert len(world.every(SET)) == 1
        await world.pass_time(60)
        assert world.every(SET) == []
        await world.pass_time(600)
        assert world.every(SET) == []
        assert state(world, "t") == "Failed"

    play(story)


# ---- other ends --------------------------------------------------------------------------------


def test_a_deadline_ends_a_job() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1"), *queues(), train_job(nodes=1, activeDeadlineSeconds=100))
        await world.settle()
        await world.pass_time(90)
        assert state(world, "t") == "Running"
        await world.pass_time(60)
        assert conditions(world, JOB, "t")["Failed"] == ("True", "DeadlineExceeded")
        assert pods(world) == []
        assert workload_conditions(world)["Finished"] == ("True", "Failed")

    play(story)


def test_a_runtime_in_use_stays() -> None:
    async def story(world: World) -> None:
        await world.create(train_job())
        await world.settle()
        runtime = names.CLUSTER_TRAINING_RUNTIME
        kept = world.get(runtime, "torch-distributed")["metadata"]["finalizers"]
        assert kept == ["trainer.kubeflow.org/resource-in-use"]
        await world.client.delete(runtime, "torch-distributed", "")
        await world.settle()
        assert world.get(runtime, "torch-distributed")["metadata"]["deletionTimestamp"]
        await world.client.delete(JOB, "t", "default")
        await world.settle()
        left = [one["metadata"]["name"] for one in world.every(runtime)]
        assert "torch-distributed" not in left

    play(story)


def test_a_lost_node_does_not_count_and_the_gang_goes_elsewhere() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1"), gpu_node("n2"), gpu_node("n3"), *queues(), train_job())
        await world.settle()
        assert sorted(places(world).values()) == ["n1", "n2"]
        lost = {
            "type": "Ready",
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "",
            "lastTransitionTime": timestamp(world.clock.now()),
        }
        await world.set_status(names.NODE, "n1", {"conditions": [lost]})
        await world.settle()
        await world.pass_time(60)
        assert sorted(places(world).values()) == ["n2", "n3"]
        assert state(world, "t") == "Running"
        assert status(world, SET, "t")["restartsCountTowardsMax"] == 0

    play(story)
