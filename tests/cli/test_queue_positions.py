"""Commands, page, metrics and the visibility API show the same position of a pending workload."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node, priority, queue
from tests.support.control_world import World
from unisono.cli.plan.rows import living_rows
from unisono.cli.why.answer import answer
from unisono.cli.why.read import gather
from unisono.cli.workloads import listed
from unisono.control import names
from unisono.engine.model.names import QueueName
from unisono.engine.model.policy import AdmissionFairSharing, Policy
from unisono.kinds.kueue.visibility import Window
from unisono.kinds.policy.settings import DEFAULTS, Settings
from unisono.kube.form import Json
from unisono.monitor.cache import FOLLOWED, ClusterCache, fill
from unisono.monitor.metrics import workloads as workload_metrics
from unisono.monitor.pending import PendingWorkloads
from unisono.web.dashboard import Dashboard

Positions = dict[str, int]
CHECK = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "AdmissionCheck",
    "metadata": {"name": "approval"},
    "spec": {"controllerName": "example.com/approval"},
    "status": {
        "conditions": [
            {
                "type": "Active",
                "status": "True",
                "reason": "Active",
                "message": "",
                "lastTransitionTime": "2023-11-14T00:00:00Z",
            }
        ]
    },
}


def play(
    story: Callable[[World], Coroutine[Any, Any, None]], settings: Settings = DEFAULTS
) -> None:
    """Run a story on a new cluster."""

    async def run() -> None:
        async with simulated_world(settings=settings).running() as world:
            await story(world)

    asyncio.run(run())


async def positions(world: World) -> dict[str, Positions]:
    """Return the position of each pending job, by which view shows it."""
    workloads = world.every(names.WORKLOAD)
    local_queues = world.every(names.LOCAL_QUEUE)
    cache = ClusterCache()
    for kind in FOLLOWED:
        fill(cache, kind, world.every(kind))
    dashboard = Dashboard(cache)
    dashboard.refresh()
    families = {one.name: one for one in workload_metrics.families(cache, world.clock.now())}
    jobs = {one["metadata"]["name"]: _job_of(one) for one in workloads}
    by_key = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in local_queues}
    queues = {one["metadata"]["name"]: one for one in world.every(names.CLUSTER_QUEUE)}
    explained = {
        name: answer(await gather(world.client, world.get(names.JOB, name)))
        for name in jobs.values()
    }
    engine = world.assembly.scheduler.state.queues[QueueName("cq")].pending.in_order()
    visible = PendingWorkloads(cache, world.get)
    return {
        "visibility": of_items(visible.of_cluster_queue("cq", Window()), jobs),
        "engine": {
            jobs[one.key.partition("/")[2]]: place for place, one in enumerate(engine, start=1)
        },
        "why": {
            name: one["position"]["place"] for name, one in explained.items() if "position" in one
        },
        "workloads": {
            one["name"].partition("/")[2]: one["position"]
            for one in listed(workloads, local_queues, queues)
            if "position" in one
        },
        "plan": {
            one["name"].partition("/")[2]: one["position"]
            for one in living_rows(workloads, by_key, queues)
            if one["position"] is not None
        },
        "page": {
            one.owner_name: place for one in dashboard.waiting if (place := dashboard.position(one))
        },
        "metrics": {
            jobs[sample.labels["workload"]]: int(sample.value)
            for sample in families["unisono_gang_position"].samples
        },
    }


def of_items(items: list[Json] | None, jobs: dict[str, str]) -> Positions:
    """Return the positions in an answer of the visibility API, which counts from 0 on."""
    assert items is not None
    return {jobs[one["metadata"]["name"]]: one["positionInClusterQueue"] + 1 for one in items}


def _job_of(workload: Json) -> str:
    return str(workload["metadata"]["ownerReferences"][0]["name"])


async def all_show(world: World, expected: Positions) -> None:
    """Assert that every view shows these positions and no other."""
    found = await positions(world)
    assert found == dict.fromkeys(found, expected)


async def retry_check(world: World, name: str) -> None:
    """Let the admission check of a job fail for now: its quota is taken back."""
    (workload,) = [one for one in world.every(names.WORKLOAD) if _job_of(one) == name]
    check = {
        "name": "approval",
        "state": "Retry",
        "message": "",
        "lastTransitionTime": "2023-11-14T22:14:00Z",
    }
    await world.set_status(
        names.WORKLOAD, workload["metadata"]["name"], {"admissionChecks": [check]}
    )


def test_an_evicted_and_requeued_workload_has_one_position_everywhere() -> None:
    async def story(world: World) -> None:
        flavor, cluster_queue, local_queue = queue(gpus=8)
        checks = {"admissionChecks": [{"name": "approval"}]}
        cluster_queue["spec"]["admissionChecksStrategy"] = checks
        await world.create(node("n1"), CHECK, flavor, cluster_queue, local_queue)
        for name in ("first", "second", "third"):
            await world.create(job(name, pods=1))
            await world.pass_time(5)
        await all_show(world, {"second": 1, "third": 2})
        await retry_check(world, "first")
        await world.pass_time(5)
        # The second has the quota now; the first queues again, behind the third.
        await all_show(world, {"third": 1, "first": 2})

    play(story)


def test_a_preempted_workload_keeps_its_place_by_age() -> None:
    async def story(world: World) -> None:
        preemption = {"withinClusterQueue": "LowerPriority"}
        await world.create(node("n1"), *queue(gpus=8, preemption=preemption))
        await world.create(priority("urgent", 100), job("first", pods=1, seconds=5000))
        await world.pass_time(5)
        await world.create(job("second", pods=1, seconds=5000))
        await world.pass_time(5)
        await all_show(world, {"second": 1})
        await world.create(job("urgent", pods=1, seconds=5000, priority_class="urgent"))
        await world.pass_time(60)
        await all_show(world, {"first": 1, "second": 2})

    play(story)


def test_a_held_workload_has_no_position() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), *queue(gpus=8), job("first", pods=1, seconds=5000))
        await world.pass_time(5)
        held = job("held", pods=1)
        held["metadata"].setdefault("annotations", {})["unisono.dev/hold"] = "user"
        await world.create(held, job("third", pods=1))
        await world.pass_time(5)
        await all_show(world, {"third": 1})

    play(story)


def test_recent_usage_of_a_local_queue_counts_in_every_view() -> None:
    rules = AdmissionFairSharing(half_life_ms=600_000, sampling_ms=60_000)
    settings = msgspec.structs.replace(DEFAULTS, policy=Policy(admission_fair_sharing=rules))

    async def story(world: World) -> None:
        flavor, cluster_queue, local_queue = queue(gpus=8)
        scope = {"admissionMode": "UsageBasedAdmissionFairSharing"}
        cluster_queue["spec"]["admissionScope"] = scope
        other = {**local_queue, "metadata": {**local_queue["metadata"], "name": "lq-other"}}
        await world.create(node("n1"), flavor, cluster_queue, local_queue, other)
        await world.create(job("first", pods=1, seconds=5000))
        await world.pass_time(300)
        await world.create(job("second", pods=1))
        await world.pass_time(30)
        await world.create(job("third", pods=1, queue_name="lq-other"))
        await world.pass_time(90)
        await all_show(world, {"third": 1, "second": 2})

    play(story, settings)
