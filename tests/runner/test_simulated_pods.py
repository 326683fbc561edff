"""What becomes of simulated pods, over time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from tests.runner.simulated_world import kubelet_of, node, pod, simulated_world, word
from tests.support.control_world import World
from unisono.control.names import JOB, NODE, POD
from unisono.kube.form import Json
from unisono.runner.logs import LogFolder
from unisono.runner.simulated.kubelet import Simulation

ALWAYS_FAILS = {"run-seconds": "1", "exit-code": "3"}


def new_lines(
    story: Callable[[World], Awaitable[None]], simulation: Simulation | None = None
) -> World:
    """Run a story in a world with one node."""
    world = simulated_world(simulation)

    async def run() -> None:
        async with world.running():
            await world.create(node())
            await world.settle()
            await story(world)

    asyncio.run(run())
    return world


# What a pod says, and how it stands after so many seconds.
LIVES: Mapping[str, tuple[Json, Mapping[float, str]]] = {
    "sleep": (pod(command=["sleep", "5"]), {0: "Ready", 4: "Ready", 6: "Succeeded"}),
    "a script that sleeps": (
        pod(command=["sh", "-c", "sleep 1m; sleep 2"]),
        {61: "Ready", 63: "Succeeded"},
    ),
    "a script that exits": (pod(command=["sh", "-c", "echo hello; exit 4"]), {0: "Failed"}),
    "anything else": (pod(command=["python", "train.py"]), {9: "Ready", 11: "Succeeded"}),
    "an endless service": (pod(command=["nginx"], restart="Always"), {120: "Ready"}),
    "an endless sleep": (pod(command=["sleep", "infinity"]), {120: "Ready"}),
    "an annotation is stronger": (
        pod(command=["sleep", "500"], says={"run-seconds": "2"}),
        {1: "Ready", 3: "Succeeded"},
    ),
    "forever": (pod(says={"run-seconds": "forever"}), {120: "Ready"}),
    "fails": (pod(says={"run-seconds": "3", "exit-code": "7"}), {2: "Ready", 4: "Failed"}),
    "fails early": (
        pod(command=["sleep", "60"], says={"fail-after": "5"}),
        {4: "Ready", 6: "Failed"},
    ),
    "a slow start": (
        pod(says={"start-seconds": "20"}),
        {19: "Pending", 21: "Ready", 31: "Succeeded"},
    ),
    "slow to be ready": (
        pod(says={"ready-seconds": "4"}),
        {3: "Running", 5: "Ready", 11: "Succeeded"},
    ),
    "never ready": (pod(says={"ready-seconds": "never"}), {9: "Running", 11: "Succeeded"}),
    "a crash loop": (
        pod(says=ALWAYS_FAILS, restart="OnFailure"),
        {0: "Ready", 1.5: "Ready/1", 3: "CrashLoopBackOff", 12.5: "Ready/2"}
        | {14: "CrashLoopBackOff", 33.5: "Ready/3", 35: "CrashLoopBackOff"},
    ),
    "recovers": (
        pod(says={**ALWAYS_FAILS, "fail-times": "2"}, restart="OnFailure"),
        {1.5: "Ready/1", 3: "CrashLoopBackOff", 14: "Succeeded/2"},
    ),
    "always again, even after a good end": (
        pod(says={"run-seconds": "5"}, restart="Always"),
        {4: "Ready", 6: "Ready/1", 11: "CrashLoopBackOff"},
    ),
    "a deadline": (
        pod(activeDeadlineSeconds=30, command=["sleep", "100"]),
        {29: "Ready", 31: "Failed"},
    ),
    "init containers": (
        pod(
            initContainers=[
                {"name": "one", "image": "busybox", "command": ["sleep", "3"]},
                {"name": "two", "image": "busybox"},
            ]
        ),
        {2: "Pending", 4: "Ready", 12: "Ready", 14: "Succeeded"},
    ),
    "a failed init container": (
        pod(initContainers=[{"name": "one", "image": "x", "command": ["sh", "-c", "exit 1"]}]),
        {0: "Failed"},
    ),
    "a sidecar does not keep a pod": (
        pod(initContainers=[{"name": "one", "image": "x", "restartPolicy": "Always"}]),
        {9: "Ready", 11: "Succeeded"},
    ),
    "two containers": (
        pod(
            containers=[
                {"name": "main", "image": "x", "command": ["sleep", "5"]},
                {"name": "more", "image": "x", "command": ["sleep", "9"]},
            ]
        ),
        {4: "Ready", 6: "Running", 10: "Succeeded"},
    ),
}


@pytest.fixture(scope="module")
def lives() -> Mapping[str, Mapping[float, str]]:
    """Run all of them side by side, and record their statuses at every reconciliation."""
    seen: dict[str, dict[float, str]] = {name: {} for name in LIVES}

    async def story(world: World) -> None:
        begin = world.clock.time
        for number, (manifest, _) in enumerate(LIVES.values()):
            named = {**manifest["metadata"], "name": f"p{number}"}
            await world.client.create({**manifest, "metadata": named})
        await world.settle()
        for at in sorted({at for _, phases in LIVES.values() for at in phases}):
            await world.pass_time(begin + at - world.clock.time)
            for number, name in enumerate(LIVES):
                seen[name][at] = word(world, f"p{number}")

    new_lines(story)
    return seen


@pytest.mark.parametrize("name", LIVES)
def test_a_pod_follows_its_script(name: str, lives: Mapping[str, Mapping[float, str]]) -> None:
    _, phases = LIVES[name]
    assert {at: lives[name][at] for at in phases} == phases


def test_a_sidecar_stops_with_its_pod() -> None:
    async def story(world: World) -> None:
        beside = {"name": "proxy", "image": "x", "restartPolicy": "Always"}
        await world.client.create(pod(initContainers=[beside]))
        await world.settle()
        await world.pass_time(11)
        status = world.get(POD, "p")["status"]
        assert status["phase"] == "Succeeded"
        assert status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0

    new_lines(story)


def test_a_pod_runs_ten_times_as_fast() -> None:
    async def story(world: World) -> None:
        await world.client.create(pod(command=["sleep", "300"]))
        await world.settle()
        await world.pass_time(29)
        assert word(world) == "Ready"
        await world.pass_time(2)
        assert word(world) == "Succeeded"

    new_lines(story, Simulation(speed=10))


def test_a_running_pod_has_the_whole_status_of_a_kubelet() -> None:
    async def story(world: World) -> None:
        before = world.store.rv
        await world.client.create(pod(command=["sleep", "60"]))
        await world.settle()
        assert world.store.rv == before + 2, "it is made, and it runs: two writes"

    status = new_lines(story).get(POD, "p")["status"]
    assert status["phase"] == "Running"
    assert status["podIP"].startswith("127.")
    assert status["podIPs"] == [{"ip": status["podIP"]}]
    assert status["hostIP"] == "10.0.0.1"
    assert status["startTime"] == "2023-11-14T22:13:21Z"
    (container,) = status["containerStatuses"]
    assert container["state"] == {"running": {"startedAt": "2023-11-14T22:13:21Z"}}
    assert (container["ready"], container["started"], container["restartCount"]) == (True, True, 0)
    assert {one["type"]: one["status"] for one in status["conditions"]} == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
        "PodScheduled": "True",
    }


@pytest.mark.parametrize(
    ("says", "gone_after", "code"),
    [({}, 0, 143), ({"stop-seconds": "7"}, 7, 143), ({"stop-seconds": "999"}, 30, 137)],
    ids=["at once", "slowly", "not at all"],
)
def test_a_deleted_pod_stops_in_its_grace(says: dict[str, str], gone_after: int, code: int) -> None:
    async def story(world: World) -> None:
        await world.client.create(pod(command=["sleep", "999"], says=says))
        await world.settle()
        await world.client.patch(POD, "p", "default", {"metadata": {"finalizers": ["a/b"]}})
        await world.client.delete(POD, "p", "default")
        if gone_after:
            await world.pass_time(gone_after - 1)
            assert word(world) == "Ready"
            await world.pass_time(2)
        await world.settle()
        found = world.get(POD, "p")
        assert found["status"]["phase"] == "Failed"
        ended = found["status"]["containerStatuses"][0]["state"]["terminated"]
        assert ended["exitCode"] == code
        assert found["metadata"]["deletionGracePeriodSeconds"] == 0
        await world.client.patch(POD, "p", "default", {"metadata": {"finalizers": None}})
        await world.settle()
        assert word(world) == "gone"

    new_lines(story)


@pytest.mark.parametrize("is_gone", [True, False], ids=["gone", "not ready"])
def test_pods_of_a_lost_node_fail_after_a_while(is_gone: bool) -> None:
    async def story(world: World) -> None:
        await world.client.create(pod(command=["sleep", "999"]))
        await world.settle()
        if is_gone:
            await world.client.delete(NODE, "n1", "")
            await world.settle()
        else:
            await unready(world)
        await world.pass_time(9)
        assert word(world) == "Ready"
        await world.pass_time(2)
        found = world.get(POD, "p")["status"]
        assert (found["phase"], found["reason"]) == ("Failed", "NodeLost")
        target = next(one for one in found["conditions"] if one["type"] == "DisruptionTarget")
        assert (target["status"], target["reason"]) == ("True", "DeletionByTaintManager")

    new_lines(story)


def test_a_node_that_recovers_in_time_keeps_its_pods() -> None:
    async def story(world: World) -> None:
        await world.client.create(pod(command=["sleep", "30"]))
        await world.settle()
        await unready(world)
        await world.pass_time(5)
        await world.set_status(NODE, "n1", node()["status"], namespace="")
        await world.pass_time(20)
        assert word(world) == "Ready"
        await world.pass_time(6)
        assert word(world) == "Succeeded"

    new_lines(story)


async def unready(world: World) -> None:
    """Let the node stop answering."""
    (ready,) = node()["status"]["conditions"]
    since = "2023-11-14T22:13:21Z"
    assert world.clock.time == 1700000001
    changed = {**ready, "status": "Unknown", "lastTransitionTime": since}
    await world.set_status(NODE, "n1", {"conditions": [changed]}, namespace="")


def test_a_pod_may_come_before_its_node() -> None:
    async def story(world: World) -> None:
        await world.client.create(pod(command=["sleep", "5"], on="late"))
        await world.settle()
        assert word(world) == "Pending"
        await world.create(node("late"))
        await world.pass_time(1)
        assert word(world) == "Ready"

    new_lines(story)


def test_a_restart_of_the_whole_program_changes_nothing() -> None:
    async def story(world: World) -> None:
        await world.client.create(pod(command=["sleep", "60"]))
        await world.settle()
        before = world.get(POD, "p")
        await world.pass_time(30)
        world.restart()
        await world.settle()
        assert world.get(POD, "p") == before
        await world.pass_time(31)
        assert word(world) == "Succeeded"

    new_lines(story)


def test_addresses_are_unique_and_return() -> None:
    async def story(world: World) -> None:
        for number in range(50):
            await world.client.create(pod(f"p{number}", command=["sleep", "60"]))
        await world.settle()
        found = {one["status"]["podIP"] for one in world.every(POD)}
        assert len(found) == 50

    new_lines(story)


def test_a_job_fails_once_and_recovers() -> None:
    template = pod(command=["sleep", "5"], says={"exit-code": "1", "fail-times": "1"}, on=None)
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {
            "completions": 2,
            "parallelism": 2,
            "completionMode": "Indexed",
            "template": {
                "metadata": {"annotations": template["metadata"]["annotations"]},
                "spec": template["spec"],
            },
        },
    }

    async def story(world: World) -> None:
        await world.create(job)
        await world.settle()
        await world.pass_time(120)
        status = world.get(JOB, "j")["status"]
        assert (status["succeeded"], status["failed"]) == (2, 2)
        assert any(one["type"] == "Complete" for one in status["conditions"])
        assert "uncountedTerminatedPods" not in status, "all of them are counted"

    new_lines(story)


def test_logs_are_written_when_they_are_first_read(tmp_path: Path) -> None:
    world = simulated_world(logs=LogFolder(tmp_path))
    first = (
        "2023-11-14T22:13:21.000000000Z simulated on n1: the command of busybox\n"
        "2023-11-14T22:13:22.000000000Z ended after 1 s with exit code 3\n"
    )

    async def run() -> None:
        async with world.running():
            await world.create(node())
            await world.client.create(pod(says=ALWAYS_FAILS, restart="OnFailure"))
            await world.settle()
            await world.pass_time(1.5)
            assert not list(tmp_path.iterdir()), "no log was read"
            asked = world.get(POD, "p")
            folder = tmp_path / "default" / asked["metadata"]["uid"]
            kubelet_of(world).write_down(asked)
            assert (folder / "main.previous.log").read_text() == first
            current = (folder / "main.log").read_text()
            assert current.startswith("2023-11-14T22:13:22.000000000Z simulated on n1, restart 1:")
            await world.pass_time(1)
            assert (folder / "main.log").read_text() == current + (
                "2023-11-14T22:13:23.000000000Z ended after 1 s with exit code 3\n"
            )
            world.restart()
            await world.settle()
            kubelet_of(world).write_down(world.get(POD, "p"))
            assert (folder / "main.log").read_text().startswith(current), "told from the status"
            await world.client.delete(POD, "p", "default")
            await world.settle()
            assert not folder.exists()
            (tmp_path / "default" / "of-a-pod-that-went-unseen").mkdir(parents=True)
            world.restart()
            await world.client.create(pod("q", command=["sleep", "60"]))
            await world.settle()
            kubelet_of(world).write_down(world.get(POD, "q"))
            assert len(list((tmp_path / "default").iterdir())) == 1

    asyncio.run(run())
