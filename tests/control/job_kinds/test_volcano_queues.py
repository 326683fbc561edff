"""Shares of Volcano's queues on live clusters: one story per test."""

from __future__ import annotations

from typing import Any

import pytest

from tests.control.job_kinds.test_volcano_policies import task, vcjob
from tests.control.stories import gpu_node, told
from tests.support.control_world import World
from unisono.control.job_kinds import volcano
from unisono.control.names import POD, VOLCANO_QUEUE
from unisono.kube.form import Json

GPU = "nvidia.com/gpu"
HIGH = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 100,
}


def queue(name: str, **spec: Any) -> Json:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def gang(name: str, in_queue: str, gpus: int, *, preemptable: bool = True, **spec: Any) -> Json:
    one = task("w", gpus)
    one["template"]["metadata"]["labels"] = (
        {"volcano.sh/preemptable": "true"} if preemptable else {}
    )
    made = vcjob(one, queue=in_queue, **spec)
    made["metadata"]["name"] = name
    return made


def running(world: World) -> dict[str, int]:
    found: dict[str, int] = {}
    for pod in world.every(POD):
        if (pod.get("status") or {}).get("phase") == "Running":
            job = pod["metadata"]["labels"]["volcano.sh/job-name"]
            found[job] = found.get(job, 0) + 1
    return found


def test_a_queue_takes_back_what_it_deserves() -> None:
    async def story(world: World) -> None:
        await world.create(
            gpu_node("n1", 8),
            queue("a", deserved={GPU: "4"}),
            queue("b", deserved={GPU: "4"}),
            gang("first", "a", 4),
            gang("second", "a", 4),
        )
        await world.settle()
        assert running(world) == {"first": 4, "second": 4}
        await world.create(gang("theirs", "b", 4))
        await world.settle()
        assert running(world)["theirs"] == 4
        assert sum(running(world).values()) == 8, "one of the borrower's jobs went"

    told(story)


def test_pods_that_do_not_say_so_are_never_victims() -> None:
    async def story(world: World) -> None:
        await world.create(
            gpu_node("n1", 4),
            queue("a", deserved={GPU: "0"}),
            queue("b", deserved={GPU: "4"}),
            gang("first", "a", 4, preemptable=False),
        )
        await world.settle()
        await world.create(gang("theirs", "b", 4))
        await world.settle()
        assert running(world) == {"first": 4}

    told(story)


def test_nothing_is_taken_back_from_a_queue_that_says_so() -> None:
    async def story(world: World) -> None:
        await world.create(
            gpu_node("n1", 4),
            queue("a", reclaimable=False),
            queue("b", deserved={GPU: "4"}),
            gang("first", "a", 4),
        )
        await world.settle()
        await world.create(gang("theirs", "b", 4))
        await world.settle()
        assert running(world) == {"first": 4}

    told(story)


@pytest.mark.parametrize("spec", [{}, {"capability": {GPU: "8"}}, {"deserved": {GPU: "2"}}])
def test_a_higher_priority_preempts_within_its_queue(spec: Json) -> None:
    async def story(world: World) -> None:
        await world.create(
            gpu_node("n1", 4),
            HIGH,
            queue("a", **spec),
            gang("low", "a", 4),
        )
        await world.settle()
        await world.create(gang("urgent", "a", 4, priorityClassName="high"))
        await world.settle()
        assert running(world) == {"urgent": 4}

    told(story)


def test_others_stay_clear_of_what_is_guaranteed() -> None:
    async def story(world: World) -> None:
        kept = {GPU: "4"}
        await world.create(
            gpu_node("n1", 8),
            queue("a", deserved=kept, guarantee={"resource": kept}),
            queue("b"),
            gang("large", "b", 6),
            gang("small", "b", 4),
        )
        await world.settle()
        assert running(world) == {"small": 4}
        await world.create(gpu_node("n2", 8))
        await world.settle()
        assert running(world) == {"small": 4, "large": 6}

    told(story)


def test_queues_below_a_closed_one_are_closed() -> None:
    async def story(world: World) -> None:
        def command(name: str, action: str, target: str) -> Json:
            return {
                "apiVersion": "bus.volcano.sh/v1alpha1",
                "kind": "Command",
                "metadata": {"name": name, "namespace": "default"},
                "action": action,
                "target": {
                    "apiVersion": "scheduling.volcano.sh/v1beta1",
                    "kind": "Queue",
                    "name": target,
                    "uid": "1",
                },
            }

        def states() -> dict[str, str]:
            found = world.every(VOLCANO_QUEUE)
            named = {one["metadata"]["name"]: one["status"]["state"] for one in found}
            return {name: named[name] for name in ("org", "team")}

        await world.create(queue("org"), queue("team", parent="org"))
        await world.create(command("c1", "CloseQueue", "org"))
        await world.settle()
        assert states() == {"org": "Closed", "team": "Closed"}
        await world.create(command("c2", "OpenQueue", "team"))
        await world.settle()
        assert states() == {"org": "Closed", "team": "Closed"}
        await world.create(command("c3", "OpenQueue", "org"))
        await world.settle()
        assert states() == {"org": "Open", "team": "Open"}
        assert world.every(volcano.COMMAND) == []

    told(story)
