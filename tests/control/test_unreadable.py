"""A Workload with an unreadable status stops its own job and nothing else."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from unisono.apiserver.bootstrap import SYSTEM
from unisono.control import names
from unisono.control.assembly import Assembly, embedded
from unisono.control.view import View
from unisono.kinds.kueue.status_shape import readable, wrong_with_status
from unisono.kinds.policy.settings import Settings
from unisono.kube.form import Json
from unisono.runner.simulated.kubelet import SimulatedKubelet, Simulation
from unisono.runtime.embedded.in_process import InProcess


def with_kubelet(view: View, settings: Settings) -> Assembly:
    """Return an embedded cluster whose pods run."""
    made = embedded(view, settings)
    return Assembly(made.scheduler, (*made.controllers, SimulatedKubelet(Simulation())))


async def damaged(world: World, workload: Json, status: Json) -> None:
    """Write a status unchecked, as an API with another definition takes it."""
    metadata = workload["metadata"]
    kind = (workload["apiVersion"], workload["kind"])
    where = (metadata["namespace"], metadata["name"], "status")
    world.api.direct.patch(SYSTEM, *kind, where, {"status": status}, is_checked=False)
    await world.api.direct.committed()


def of(world: World, name: str) -> Json:
    """Return the Workload of a job."""
    (found,) = [
        one
        for one in world.every(names.WORKLOAD)
        if one["metadata"]["ownerReferences"][0]["name"] == name
    ]
    return found


def running(world: World) -> Counter[str]:
    """Return how many pods of each job run."""
    return Counter(
        pod["metadata"]["labels"]["job-name"]
        for pod in world.every(names.POD)
        if pod["status"]["phase"] == "Running"
    )


WRONG: list[tuple[Json, str]] = [
    ({"admission": ["x"]}, "status.admission: must be an object"),
    ({"admission": {"podSetAssignments": 7}}, "status.admission.podSetAssignments: must be a list"),
    ({"admission": {"clusterQueue": None}}, "status.admission.clusterQueue: must be a text"),
    ({"conditions": ["x"]}, "status.conditions[0]: must be an object"),
    ({"reclaimablePods": [{"name": "main", "count": "x"}]}, "status.reclaimablePods[0].count"),
]


@pytest.mark.parametrize(("status", "problem"), WRONG, ids=[text for _, text in WRONG])
def test_others_go_on_and_are_counted(status: Json, problem: str) -> None:
    world = World(assemble=with_kubelet, wrap=lambda _: InProcess(world.api, SYSTEM))

    async def main() -> None:
        async with world.running():
            nodes = [node(f"n{number}") for number in range(4)]
            await world.create(
                *nodes,
                *queue(),
                job("damaged", pods=1, gpus=1, seconds=9000),
                job("beside", pods=1, gpus=1, seconds=9000),
            )
            await world.settle()
            assert running(world) == {"damaged": 1, "beside": 1}
            await damaged(world, of(world, "damaged"), status)
            await world.settle()
            await world.create(job("after", pods=1, gpus=1, seconds=9000))
            await world.settle()
            await world.pass_time(30)
            assert running(world) == {"damaged": 1, "beside": 1, "after": 1}
            counted = world.get(names.CLUSTER_QUEUE, "cq", "")["status"]
            assert counted["admittedWorkloads"] == 2, "what cannot be read is not counted"
            told = {note.message for note in world.notes if note.reason == "Quarantined"}
            assert any(problem in text for text in told)
            # Deleted, it is let go of, and its job begins anew.
            broken = of(world, "damaged")["metadata"]
            await world.client.delete(names.WORKLOAD, broken["name"], broken["namespace"])
            await world.settle()
            await world.pass_time(60)
            assert of(world, "damaged")["metadata"]["uid"] != broken["uid"]
            assert running(world) == {"damaged": 1, "beside": 1, "after": 1}
            counted = world.get(names.CLUSTER_QUEUE, "cq", "")["status"]
            assert counted["admittedWorkloads"] == 3

    asyncio.run(main())


def test_what_is_mended_goes_on() -> None:
    world = World(assemble=with_kubelet, wrap=lambda _: InProcess(world.api, SYSTEM))

    async def main() -> None:
        async with world.running():
            await world.create(node("n1"), *queue(), job("train", pods=1, gpus=1, seconds=9000))
            await world.settle()
            sound = of(world, "train")["status"]["admission"]
            await damaged(world, of(world, "train"), {"admission": {"clusterQueue": None}})
            await world.settle()
            changed = {"spec": {"suspend": False, "activeDeadlineSeconds": 9000}}
            await world.client.patch(names.JOB, "train", "default", changed)
            await world.settle()
            told = [note for note in world.notes if note.about.kind == names.JOB]
            assert "cannot be read: status.admission.clusterQueue" in told[-1].message
            assert "delete it to have it created anew" in told[-1].message
            await damaged(world, of(world, "train"), {"admission": sound})
            await world.settle()
            counted = world.get(names.CLUSTER_QUEUE, "cq", "")["status"]
            assert counted["admittedWorkloads"] == 1
            assert running(world) == {"train": 1}

    asyncio.run(main())


def test_what_people_list_has_no_status_then() -> None:
    wrong = {"kind": "Workload", "status": {"admission": []}}
    assert wrong_with_status(wrong) == ("status.admission", "must be an object")
    assert readable(wrong) == {"kind": "Workload", "status": {}}
    fine = {"kind": "Workload", "status": {"admission": {"clusterQueue": "cq"}}}
    assert readable(fine) is fine
