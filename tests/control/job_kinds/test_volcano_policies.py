"""What the policies of Volcano jobs lead to, one story per line (jobs §4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.control.stories import conditions, delete, gpu_node, pods, queue_of, told
from tests.support.control_objects import priority
from tests.support.control_world import World
from unisono.control.conditions import timestamp
from unisono.control.job_kinds import volcano
from unisono.control.names import NODE, POD, VOLCANO_QUEUE, WORKLOAD
from unisono.kube.errors import Invalid
from unisono.kube.form import Json


def task(name: str, replicas: int, *, gpus: int = 1, policies: Any = (), **says: str) -> Json:
    """Return a task whose pods run for ever, unless they say otherwise."""
    texts = {"run-seconds": "forever"} | {k.replace("_", "-"): v for k, v in says.items()}
    container: Json = {"name": "c", "image": "x"}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return {
        "name": name,
        "replicas": replicas,
        "policies": list(policies),
        "template": {
            "metadata": {"annotations": {f"unisono.dev/{k}": v for k, v in texts.items()}},
            "spec": {"restartPolicy": "Never", "containers": [container]},
        },
    }


def vcjob(*tasks: Json, labels: Json | None = None, policies: Any = (), **spec: Any) -> Json:
    """Return a job `j`."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default", "labels": labels or {}},
        "spec": {"tasks": list(tasks), "policies": list(policies), **spec},
    }


def on(event: str, action: str, **more: Any) -> Json:
    """Return a policy."""
    return {"event": event, "action": action, **more}


@dataclass(frozen=True)
class Story:
    """A job; what is done to it; what it is like after so many seconds."""

    job: Json
    kills: Sequence[str] = ()
    seconds: float = 1
    phase: str = "Running"
    retries: int = 0
    replaced: Sequence[str] = ()  # pods that are others than before
    pods: Mapping[str, int] = field(default_factory=dict)  # how many are in each phase


WORKERS = task("w", 2)
SERVERS = task("s", 1)
STORIES: Mapping[str, Story] = {
    "a lost pod is replaced by default": Story(vcjob(WORKERS), kills=["j-w-1"], replaced=["j-w-1"]),
    "RestartTask starts the pods of one task over": Story(
        vcjob(WORKERS, SERVERS, policies=[on("PodEvicted", "RestartTask")]),
        kills=["j-w-1"],
        retries=1,
        replaced=["j-w-0", "j-w-1"],
    ),
    "RestartPod starts one pod over": Story(
        vcjob(WORKERS, SERVERS, policies=[on("PodEvicted", "RestartPod")]),
        kills=["j-w-1"],
        retries=1,
        replaced=["j-w-1"],
    ),
    "the policy of a task goes before that of the job": Story(
        vcjob(
            task("w", 2, policies=[on("PodEvicted", "CompleteJob")]),
            policies=[on("PodEvicted", "RestartJob")],
        ),
        kills=["j-w-1"],
        phase="Completed",
    ),
    "any event": Story(
        vcjob(WORKERS, policies=[on("*", "TerminateJob")]), kills=["j-w-0"], phase="Terminated"
    ),
    "several events": Story(
        vcjob(WORKERS, policies=[{"events": ["PodFailed", "PodEvicted"], "action": "AbortJob"}]),
        kills=["j-w-0"],
        phase="Aborted",
    ),
    "a failed pod restarts the job": Story(
        vcjob(
            task("w", 2, fail_after="5", fail_times="1", fail_index="1"),
            policies=[on("PodFailed", "RestartJob")],
        ),
        seconds=8,
        retries=1,
        replaced=["j-w-0", "j-w-1"],
    ),
    "a failed pod without a policy stays": Story(
        vcjob(task("w", 2, fail_after="5", fail_index="1")),
        seconds=8,
        pods={"Running": 1, "Failed": 1},
    ),
    "an exit code": Story(
        vcjob(
            task("w", 2, fail_after="5", exit_code="17", fail_index="0", fail_times="1"),
            policies=[{"exitCode": 17, "action": "RestartJob"}],
        ),
        seconds=8,
        retries=1,
        replaced=["j-w-0", "j-w-1"],
    ),
    "another exit code": Story(
        vcjob(
            task("w", 2, fail_after="5", exit_code="18", fail_index="0"),
            policies=[{"exitCode": 17, "action": "RestartJob"}],
        ),
        seconds=8,
        pods={"Running": 1, "Failed": 1},
    ),
    "a job fails when it failed as often as it may": Story(
        vcjob(
            task("w", 2, fail_after="5", fail_index="1"),
            policies=[on("PodFailed", "RestartJob")],
            maxRetry=2,
        ),
        seconds=30,
        phase="Failed",
        retries=2,
        pods={"Failed": 1},
    ),
    "all through": Story(
        vcjob(task("w", 2, run_seconds="5")), seconds=8, phase="Completed", pods={"Succeeded": 2}
    ),
    "not enough are through": Story(
        vcjob(task("w", 2, run_seconds="5", exit_code="1", fail_index="0")),
        seconds=8,
        phase="Failed",
        pods={"Succeeded": 1, "Failed": 1},
    ),
    "enough are through": Story(
        vcjob(task("w", 2, run_seconds="5", exit_code="1", fail_index="0"), minAvailable=1),
        seconds=8,
        phase="Completed",
        pods={"Succeeded": 1, "Failed": 1},
    ),
    "minSuccess": Story(
        vcjob(task("w", 1, run_seconds="5"), SERVERS, minSuccess=1),
        seconds=8,
        phase="Completed",
        pods={"Succeeded": 1},
    ),
    "a task that is restarted too often has failed": Story(
        vcjob(
            {
                **task("w", 1, run_seconds="2", exit_code="1"),
                "maxRetry": 1,
                "policies": [on("TaskFailed", "TerminateJob")],
            }
        ),
        seconds=60,
        phase="Terminated",
    ),
    "a delayed action is called off when the pod runs again": Story(
        vcjob(
            task("w", 2, start_seconds="3"),
            policies=[on("PodEvicted", "AbortJob", timeout="10s")],
        ),
        kills=["j-w-0"],
        seconds=30,
        replaced=["j-w-0"],
    ),
    "a delayed action happens if the pod does not run in time": Story(
        vcjob(
            task("w", 2, start_seconds="20"),
            policies=[on("PodEvicted", "AbortJob", timeout="10s")],
        ),
        kills=["j-w-0"],
        seconds=15,
        phase="Aborted",
    ),
}


@pytest.mark.parametrize("name", STORIES)
def test_policies(name: str) -> None:
    story = STORIES[name]
    if name == "a task that is restarted too often has failed":
        story.job["spec"]["tasks"][0]["template"]["spec"]["restartPolicy"] = "OnFailure"

    async def run(world: World) -> None:
        await world.create(gpu_node("n1", 4), story.job)
        await world.settle()
        if story.kills:
            await world.pass_time(25)
        before = {key: pod["metadata"]["uid"] for key, pod in pods(world).items()}
        for killed in story.kills:
            await delete(world, POD, killed)
        await world.pass_time(story.seconds)
        status = world.get(volcano.JOB, "j")["status"]
        assert (status["state"]["phase"], status.get("retryCount", 0)) == (
            story.phase,
            story.retries,
        )
        after = {key: pod["metadata"]["uid"] for key, pod in pods(world).items()}
        if story.phase == "Running":
            assert [key for key in sorted(after) if after[key] != before[key]] == list(
                story.replaced
            )
        if story.pods:
            there = [pod["status"]["phase"] for pod in pods(world).values()]
            assert {phase: there.count(phase) for phase in there} == story.pods

    told(run)


def test_a_policy_acts_at_once_although_the_node_s_clock_is_ahead() -> None:
    """It waited for the date of the failure; by then the job had ended without it."""

    async def story(world: World) -> None:
        restarts = [on("PodFailed", "RestartJob")]
        await world.create(gpu_node("n1", 8), vcjob(WORKERS, policies=restarts))
        await world.settle()
        before = {pod["metadata"]["uid"] for pod in world.every(POD)}
        at = timestamp(world.clock.now() + 3600)
        ended = {"exitCode": 1, "reason": "Error", "startedAt": at, "finishedAt": at}
        status = {"name": "c", "ready": False, "restartCount": 0, "image": "x", "imageID": ""}
        failed = {
            "phase": "Failed",
            "containerStatuses": [{**status, "state": {"terminated": ended}}],
        }
        await world.set_status(POD, "j-w-0", failed)
        await world.settle()
        after = [pod for pod in world.every(POD) if pod["status"]["phase"] == "Running"]
        assert len(after) == 2
        assert before.isdisjoint(pod["metadata"]["uid"] for pod in after)

    told(story)


def test_a_preempted_job_waits_and_comes_back_without_a_retry() -> None:
    queued = {"kueue.x-k8s.io/queue-name": "lq-cq"}

    async def story(world: World) -> None:
        made = queue_of(2)
        made[1]["spec"]["preemption"] = {"withinClusterQueue": "LowerPriority"}
        await world.create(*made, priority("high", 100), gpu_node("n1", 2))
        await world.create(vcjob(WORKERS, labels=queued, policies=[on("PodEvicted", "RestartJob")]))
        await world.settle()
        assert conditions(world)["Admitted"].startswith("True")
        urgent = vcjob(
            task("w", 2, run_seconds="20"),
            labels={**queued, "kueue.x-k8s.io/priority-class": "high"},
        )
        urgent["metadata"]["name"] = "urgent"
        await world.create(urgent)
        await world.settle()
        assert sorted(pods(world)) == ["urgent-w-0", "urgent-w-1"]
        status = world.get(volcano.JOB, "j")["status"]
        assert (status["state"]["phase"], status.get("retryCount", 0)) == ("Pending", 0)
        await world.pass_time(25)
        status = world.get(volcano.JOB, "j")["status"]
        assert (status["state"]["phase"], status.get("retryCount", 0)) == ("Running", 0)

    told(story)


def test_a_finished_job_goes_when_its_time_is_up() -> None:
    async def story(world: World) -> None:
        job = vcjob(task("w", 1, run_seconds="5"), ttlSecondsAfterFinished=60)
        await world.create(gpu_node("n1", 4), job)
        await world.settle()
        await world.pass_time(64)
        assert len(world.every(volcano.JOB)) == 1
        await world.pass_time(4)
        assert world.every(volcano.JOB) == []
        assert world.every(POD) == []
        assert world.every(volcano.POD_GROUP) == []

    told(story)


def test_a_volcano_queue_limits_its_jobs() -> None:
    async def story(world: World) -> None:
        await world.create(
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "metadata": {"name": "small"},
                "spec": {"capability": {"nvidia.com/gpu": "2"}},
            },
            gpu_node("n1", 8),
            vcjob(WORKERS, queue="small"),
        )
        second = vcjob(task("w", 1), queue="small")
        second["metadata"]["name"] = "second"
        await world.create(second)
        await world.settle()
        assert sorted(pods(world)) == ["j-w-0", "j-w-1"]
        admitted = [one["status"].get("admission") for one in world.every(WORKLOAD)]
        assert [one and one["clusterQueue"] for one in admitted] == ["volcano.small", None]

        world.restart()
        await world.settle()
        assert sorted(pods(world)) == ["j-w-0", "j-w-1"]
        await delete(world, volcano.JOB, "j")
        assert sorted(pods(world)) == ["second-w-0"]

    told(story)


def test_a_queue_counts_its_groups_and_can_be_closed() -> None:
    async def story(world: World) -> None:
        await world.create(
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "metadata": {"name": "team"},
                "spec": {},
            },
            gpu_node("n1", 2),
            vcjob(WORKERS, queue="team"),
        )
        await world.settle()
        status = world.get(VOLCANO_QUEUE, "team")["status"]
        assert (status["state"], status["running"]) == ("Open", 1)
        assert status["allocated"] == {"nvidia.com/gpu": "2", "pods": "2"}
        await world.create(
            {
                "apiVersion": "bus.volcano.sh/v1alpha1",
                "kind": "Command",
                "metadata": {"name": "close", "namespace": "default"},
                "action": "CloseQueue",
                "target": {
                    "apiVersion": "scheduling.volcano.sh/v1beta1",
                    "kind": "Queue",
                    "name": "team",
                    "uid": "1",
                },
            }
        )
        await world.settle()
        assert world.get(VOLCANO_QUEUE, "team")["status"]["state"] == "Closing"
        assert world.every(volcano.COMMAND) == []
        await delete(world, volcano.JOB, "j")
        status = world.get(VOLCANO_QUEUE, "team")["status"]
        assert (status["state"], status["allocated"]) == ("Closed", {})
        with pytest.raises(Invalid, match="can only submit job to queue with state `Open`"):
            await world.create(vcjob(WORKERS, queue="team"))

    told(story)


# ---- back-off ------------------------------------------------------------------------------------


def restless(**spec: Any) -> Json:
    """Return a job that restarts whenever its pod is through, after two seconds."""
    pod = task("w", 1, run_seconds="2")
    return vcjob(pod, policies=[on("TaskCompleted", "RestartJob")], maxRetry=1_000_000, **spec)


def retries(world: World) -> int:
    """Return how often the job was restarted."""
    return int((world.get(volcano.JOB, "j").get("status") or {}).get("retryCount", 0))


def test_restarts_after_short_runs_back_off() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 4), *queue_of(4), restless(labels=QUEUED))
        await world.settle()
        gaps, last = [], world.clock.now()
        for number in range(1, 11):
            while retries(world) < number:
                await world.pass_time(1)
            gaps.append(world.clock.now() - last)
            last = world.clock.now()
        # Two seconds of a run, and the delay of the restart before it.
        delays = [0, 0, 10, 20, 40, 80, 160, 320, 600, 600]
        assert all(delay <= gap <= delay + 5 for gap, delay in zip(gaps, delays, strict=True)), gaps
        held = conditions(world)
        assert held["Admitted"] == "True Admitted"
        assert "Evicted" not in held

    told(story)


QUEUED = {"kueue.x-k8s.io/queue-name": "lq-cq"}


def test_a_back_off_says_until_when() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 4), restless())
        while retries(world) < 3:
            await world.pass_time(1)
        due = timestamp(world.clock.now() + 20)
        state = world.get(volcano.JOB, "j")["status"]["state"]
        assert (state["phase"], state["reason"]) == ("Pending", "BackOff")
        assert state["message"] == f"starts again at {due}"
        (*_, note) = [one.message for one in world.notes if one.reason == "ExecuteAction"]
        assert note.endswith(f"; starts again at {due} (back-off: restart 3 in a row)")
        assert pods(world) == {}
        world.restart()  # what is stored says when it goes on
        await world.pass_time(19)
        assert pods(world) == {}
        await world.pass_time(2)
        assert list(pods(world)) == ["j-w-0"]

    told(story)


def test_a_long_run_ends_a_back_off() -> None:
    async def story(world: World) -> None:
        pod = task("w", 1, run_seconds="700")
        job = vcjob(pod, policies=[on("TaskCompleted", "RestartJob")], maxRetry=1_000_000)
        await world.create(gpu_node("n1", 4), job)
        await world.settle()
        for number in (1, 2, 3):
            await world.pass_time(705)
            assert retries(world) == number
            assert world.get(volcano.JOB, "j")["status"]["state"]["phase"] == "Running"

    told(story)


def test_a_job_that_backs_off_obeys_commands() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 4), restless())
        while retries(world) < 4:
            await world.pass_time(1)
        uid = world.get(volcano.JOB, "j")["metadata"]["uid"]
        target = {"apiVersion": volcano.JOB.api_version, "kind": "Job", "name": "j", "uid": uid}
        await world.create(
            {
                "apiVersion": "bus.volcano.sh/v1alpha1",
                "kind": "Command",
                "metadata": {"name": "stop", "namespace": "default"},
                "action": "AbortJob",
                "target": target,
            }
        )
        await world.pass_time(1)
        assert world.get(volcano.JOB, "j")["status"]["state"]["phase"] == "Aborted"
        await world.pass_time(100)
        assert pods(world) == {}

    told(story)


def test_one_pod_backs_off_and_the_others_run_on() -> None:
    async def story(world: World) -> None:
        job = vcjob(
            task("w", 1, fail_after="2"),
            SERVERS,
            policies=[on("PodFailed", "RestartPod")],
            maxRetry=1_000_000,
            minAvailable=1,
        )
        await world.create(gpu_node("n1", 4), job)
        await world.settle()
        server = pods(world)["j-s-0"]["metadata"]["uid"]
        while retries(world) < 4:
            await world.pass_time(1)
        assert world.get(volcano.JOB, "j")["status"]["state"]["phase"] == "Running"
        assert list(pods(world)) == ["j-s-0"]
        await world.pass_time(39)
        assert list(pods(world)) == ["j-s-0"]
        await world.pass_time(2)
        assert sorted(pods(world)) == ["j-s-0", "j-w-0"]
        assert pods(world)["j-s-0"]["metadata"]["uid"] == server

    told(story)


# ---- a pod that finds no node --------------------------------------------------------------------


@pytest.mark.parametrize(("action", "phase"), [("AbortJob", "Aborted"), ("RestartJob", "Pending")])
def test_a_pod_whose_successor_finds_no_node_is_an_event(action: str, phase: str) -> None:
    async def story(world: World) -> None:
        await world.create(
            gpu_node("n1", 2), vcjob(task("w", 2), policies=[on("Unknown", action)], minAvailable=2)
        )
        await world.settle()
        await world.client.patch(NODE, "n1", "", {"spec": {"unschedulable": True}})
        await world.settle()
        await delete(world, POD, "j-w-0")
        await world.pass_time(5)
        state = world.get(volcano.JOB, "j")["status"]["state"]
        assert state["phase"] == phase
        assert world.get(volcano.JOB, "j")["status"].get("retryCount", 0) == (action != "AbortJob")

    told(story)
