"""Stories of machines that come, fail and go: told on a living cluster, in virtual time.

`make scenarios` tells them, too: the scenarios of provisioning.md that need more than one decision
name the function here that tells them.
"""

from __future__ import annotations

import pytest

from tests.support.control_objects import job, node, priority, queue
from tests.support.control_world import World
from tests.support.provisioning_world import (
    bound,
    claims,
    cloud,
    condition,
    nodes,
    only_workload,
    pool,
    told,
)
from unisono.control import names
from unisono.control.conditions import seconds
from unisono.kube.errors import Invalid
from unisono.kube.form import Json
from unisono.provision.disruption_budgets import most
from unisono.provision.simulated_cloud import Cloud

SEOUL = ("ap-northeast-2a",)
TYPE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"


def ready(world: World) -> int:
    """Count machines that are ready."""
    return sum(1 for claim in claims(world) if condition(claim, "Initialized")["status"] == "True")


def zones(world: World) -> set[str]:
    """Return where the machines are, or are to be."""
    return {
        one["values"][0]
        for claim in claims(world)
        for one in claim["spec"]["requirements"]
        if one["key"] == ZONE
    }


def started(world: World, name: str) -> bool:
    """Say whether all pods of a job have nodes."""
    wanted = world.get(names.JOB, name)["spec"]["parallelism"]
    return bool(sum(1 for pod in bound(world) if pod.startswith(name)) == wanted)


def no_pod_starts_before_the_last_machine() -> None:
    """Machines come one after the other; all pods start with the last one."""

    async def story(world: World) -> None:
        await world.create(*queue(gpus=32), pool(), cloud(latency={"spread": 1.0}, seed=3))
        await world.create(job("train", pods=4, gpus=8, seconds=600))
        seen: set[int] = set()
        for _ in range(120):
            await world.pass_time(5)
            count = ready(world)
            seen.add(count)
            assert (len(bound(world)) == 0) if count < 4 else started(world, "train")
            if count == 4:
                break
        assert len(seen & {1, 2, 3}) > 0, "they all came at once"
        assert started(world, "train")

    told(story)


def part_of_a_purchase_is_rolled_back() -> None:
    """A cloud starts six of eight; the gang gets all eight in the next zone."""

    async def story(world: World) -> None:
        both = ("us-east-1a", "us-east-1b")
        await world.create(*queue(gpus=64), pool(types=("p5.48xlarge",), zones=both))
        stock = {"p5.48xlarge:us-east-1a": 6, "p5.48xlarge:us-east-1b": 8}
        await world.create(cloud(atomic=False, stock=stock))
        await world.create(job("train", pods=8, gpus=8, seconds=900))
        await world.settle()
        assert zones(world) == {"us-east-1a"}
        await world.pass_time(10)
        assert bound(world) == {}
        assert zones(world) == {"us-east-1b"}
        assert len(claims(world)) == 8
        await world.pass_time(120)
        assert started(world, "train")
        assert len(nodes(world)) == 8

    told(story)


def with_nowhere_else_nothing_stays() -> None:
    """The same, and the other zone has none: nothing runs, nothing is paid for."""

    async def story(world: World) -> None:
        both = ("us-east-1a", "us-east-1b")
        await world.create(*queue(gpus=64), pool(types=("p5.48xlarge",), zones=both))
        stock = {"p5.48xlarge:us-east-1a": 6, "p5.48xlarge:us-east-1b": 0}
        await world.create(cloud(atomic=False, stock=stock))
        await world.create(job("train", pods=8, gpus=8, seconds=900))
        await world.pass_time(30)
        assert claims(world) == []
        assert nodes(world) == []
        assert bound(world) == {}
        assert "StockOut" in condition(only_workload(world), "QuotaReserved")["message"]

    told(story)


def _one_fails(world: World) -> Json:
    """Return a cloud in which exactly one of the machines that are wanted never registers."""
    found = sorted(Cloud().draw("fail-register", one["metadata"]["name"]) for one in claims(world))
    return cloud(failures={"register": (found[0] + found[1]) / 2})


async def _set_cloud(world: World, said: Json) -> None:
    changes = {"data": said["data"]}
    await world.client.patch(names.CONFIG_MAP, "unisono-cloud", "kube-system", changes)


def a_late_purchase_is_given_up_as_a_whole() -> None:
    """Three of four machines come; at fifteen minutes all is taken back, and the pauses grow."""

    async def story(world: World) -> None:
        await world.create(*queue(gpus=32), pool(zones=SEOUL))
        await world.create(job("train", pods=4, gpus=8))
        await world.settle()
        await world.create(_one_fails(world))
        await world.pass_time(120)
        assert ready(world) == 3
        await world.pass_time(770)
        assert condition(only_workload(world), "QuotaReserved")["status"] == "True"
        assert ready(world) == 3
        assert bound(world) == {}
        await world.pass_time(20)  # fifteen minutes after the launch
        workload = only_workload(world)
        assert condition(workload, "QuotaReserved")["status"] == "False"
        assert condition(workload, names.CAPACITY_PLANNED)["reason"] == "Timeout"
        failed_at = _requeue_at(workload) - 60
        await world.pass_time(5)
        assert ready(world) == 3, "offered to others for a minute"
        await _set_cloud(world, cloud(failures={"register": 1.0}))
        for pause in (60, 120, 240):
            await world.pass_time(failed_at + pause - world.clock.time - 1)
            assert not only_workload(world)["status"].get("admission")
            await world.pass_time(2)
            assert only_workload(world)["status"].get("admission")
            await world.pass_time(16 * 60)
            failed_at = _requeue_at(only_workload(world)) - pause * 2
        await world.pass_time(200)
        assert nodes(world) == []

    told(story)


def _requeue_at(workload: Json) -> float:
    return seconds(workload["status"]["requeueState"]["requeueAt"])


def released_machines_go_to_the_next_gang() -> None:
    """What a failed purchase leaves is used by a gang that waits; the rest goes after a minute."""

    async def story(world: World) -> None:
        await world.create(*queue(gpus=64), pool(zones=SEOUL, limits={"nodes": "4"}))
        await world.create(job("big", pods=4, gpus=8))
        await world.settle()
        await world.create(_one_fails(world))
        await world.create(job("small", pods=2, gpus=8, seconds=3600))
        await world.pass_time(600)
        assert bound(world) == {}
        await world.pass_time(330)
        assert started(world, "small")
        assert not started(world, "big")
        assert len(nodes(world)) == 3
        await world.pass_time(25)
        assert len(nodes(world)) == 3
        await world.pass_time(15)
        assert len(nodes(world)) == 2

    told(story)


def running_gangs_are_not_disrupted() -> None:
    """A gang that uses little of its nodes keeps them; when it ends they go one by one."""

    async def story(world: World) -> None:
        lazy = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"}
        await world.create(*queue(gpus=32), pool(zones=SEOUL, disruption=lazy))
        made = job("train", pods=4, gpus=1, seconds=600)
        made["spec"]["template"]["metadata"].setdefault("labels", {})["app"] = "train"
        apart = {"labelSelector": {"matchLabels": {"app": "train"}}, "topologyKey": names.HOSTNAME}
        rule = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
        made["spec"]["template"]["spec"]["affinity"] = {"podAntiAffinity": rule}
        await world.create(made)
        await world.pass_time(500)
        assert started(world, "train")
        assert len(nodes(world)) == 4, "one of eight GPUs is used on each"
        left: list[int] = []
        for _ in range(400):
            await world.pass_time(1)
            tainted = [
                one
                for one in world.every(names.NODE)
                if any(t["key"] == "karpenter.sh/disrupted" for t in one["spec"].get("taints", ()))
            ]
            assert len(tainted) <= 1, "a tenth of four, rounded up, at a time"
            left.append(len(nodes(world)))
        assert left[-1] == 0
        assert {4, 3, 2, 1} <= set(left)

    told(story)


def a_pod_restarts_the_clock_of_an_empty_node() -> None:
    """Twenty minutes count from the last pod; a gang that comes in time keeps the node."""

    async def story(world: World) -> None:
        slow = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "20m"}
        await world.create(*queue(gpus=8), pool(zones=SEOUL, disruption=slow))
        await world.create(job("first", pods=1, gpus=8, seconds=60))
        await world.pass_time(170)
        (one,) = nodes(world)
        await world.pass_time(15 * 60)
        await world.create(job("second", pods=1, gpus=8, seconds=300))
        await world.pass_time(10)
        assert started(world, "second")
        assert nodes(world) == [one]
        await world.pass_time(300 + 19 * 60)
        assert nodes(world) == [one]
        await world.create(job("third", pods=1, gpus=8, seconds=300))
        await world.pass_time(200)
        assert nodes(world) == [one]
        await world.pass_time(150 + 19 * 60)
        assert nodes(world) == [one]
        await world.pass_time(120)
        assert nodes(world) == []

    told(story)


def budgets_by_reason_and_hour() -> None:
    """The published example of budgets, with nineteen nodes, at five and fifteen past midnight."""
    budgets = [
        {"nodes": "20%", "reasons": ["Empty", "Drifted"]},
        {"nodes": "5"},
        {"nodes": "0", "schedule": "@daily", "duration": "10m", "reasons": ["Underutilized"]},
    ]
    made = pool(disruption={"budgets": budgets})
    assert most(made, "Empty", 19, 5 * 60) == 4
    assert most(made, "Drifted", 19, 5 * 60) == 4
    assert most(made, "Underutilized", 19, 5 * 60) == 0
    assert most(made, "Underutilized", 19, 15 * 60) == 5
    broken = pool(disruption={"budgets": [{"nodes": "5", "schedule": "soon", "duration": "10m"}]})
    assert most(broken, "Empty", 19, 0) == 0


def quota_that_is_lost_cancels_the_purchase() -> None:
    """The queue is drained while machines come: nothing starts, and they are given back."""

    async def story(world: World) -> None:
        await world.create(*queue(gpus=16), pool(zones=SEOUL), cloud(latency={"spread": 1.0}))
        await world.create(job("train", pods=2, gpus=8))
        await world.pass_time(40)
        assert len(claims(world)) == 2
        stop = {"spec": {"stopPolicy": "HoldAndDrain"}}
        await world.client.patch(names.CLUSTER_QUEUE, "cq", "", stop)
        await world.pass_time(10)
        assert not only_workload(world)["status"].get("admission")
        assert bound(world) == {}
        await world.pass_time(300)
        assert claims(world) == []
        assert nodes(world) == []

    told(story)


def a_gang_of_higher_priority_takes_the_quota_and_the_machines() -> None:
    """Another gang is more important: the first gives up, starts nothing, and waits its turn."""

    async def story(world: World) -> None:
        rules = {"withinClusterQueue": "LowerPriority"}
        slow = {"latency": {"boot": "60s", "spread": 1.0}, "seed": 3}
        await world.create(*queue(gpus=16, preemption=rules), priority("high", 10))
        await world.create(pool(zones=SEOUL), cloud(**slow))
        await world.create(job("first", pods=2, gpus=8, seconds=120))
        for _ in range(200):
            await world.pass_time(1)
            if ready(world) == 1:
                break
        assert ready(world) == 1, "one machine of two is there"
        (there,) = [one for one in claims(world) if condition(one, "Initialized")["status"]]
        assert bound(world) == {}
        await world.create(job("second", pods=2, gpus=8, seconds=120, priority_class="high"))
        await world.pass_time(5)
        assert bound(world) == {}
        assert len(claims(world)) == 2, "the one that is there, and one more"
        assert there["metadata"]["name"] in {one["metadata"]["name"] for one in claims(world)}
        for _ in range(60):
            await world.pass_time(5)
            if started(world, "second"):
                break
        assert started(world, "second")
        assert there["metadata"]["name"] in bound(world).values()
        assert not started(world, "first")
        await world.pass_time(600)
        assert condition(world.get(names.JOB, "first"), "Complete")["status"] == "True"

    told(story)


def a_lost_node_is_bought_again_and_the_others_are_kept() -> None:
    """One of four nodes dies: exactly one machine is bought, of the same type, in the same zone."""

    async def story(world: World) -> None:
        slow = {"consolidateAfter": "20m"}
        await world.create(*queue(gpus=32), pool(disruption=slow))
        await world.create(job("train", pods=4, gpus=8, seconds=7200))
        await world.pass_time(200)
        assert started(world, "train")
        before = set(nodes(world))
        dead = sorted(before)[0]
        await world.client.delete(names.NODE_CLAIM, dead, "")
        await world.pass_time(20)
        assert len(claims(world)) == 4, "one machine is bought at once, and no more"
        assert not started(world, "train")
        await world.pass_time(120)
        assert started(world, "train")
        after = set(nodes(world))
        assert len(after) == 4
        assert before - after == {dead}
        assert zones(world) == {"ap-northeast-2a"}
        assert all("on-demand" in str(one["spec"]["requirements"]) for one in claims(world))

    told(story)


def startup_taints_have_to_be_gone() -> None:
    """A node counts as ready when its startup taint is gone, and no second one is bought for it."""

    async def story(world: World) -> None:
        taint = {"key": "node.cilium.io/agent-not-ready", "effect": "NoExecute", "value": "true"}
        await world.create(*queue(gpus=16), pool(zones=SEOUL, template={"startupTaints": [taint]}))
        await world.create(cloud(latency={"startup": "40s"}))
        await world.create(job("train", pods=2, gpus=8, seconds=600))
        await world.pass_time(110)
        assert len(nodes(world)) == 2
        assert bound(world) == {}
        assert len(claims(world)) == 2
        await world.pass_time(40)
        assert started(world, "train")
        assert len(claims(world)) == 2

    told(story)


def a_crash_at_any_step_buys_nothing_twice() -> None:
    """The process dies after every single step; eight machines come, never nine."""

    async def story(world: World) -> None:
        await world.create(*queue(gpus=64), pool(types=("p5.48xlarge",), zones=("us-east-1a",)))
        await world.create(job("train", pods=8, gpus=8, seconds=3600))
        highest = 0
        for _ in range(200):
            before = world.store.rv
            while world.store.rv == before:
                world.pump()
                if await world.driver.step() is None and not world.pump():
                    break
                await world.store.committed()
            highest = max(highest, len(claims(world)))
            assert highest <= 8
            if world.store.rv == before:
                break
            world.restart()
        assert highest == 8
        world.restart()
        await world.pass_time(200)
        assert started(world, "train")
        assert len(nodes(world)) == 8

    told(story)


def a_workload_waiting_for_its_next_attempt_holds_no_quota() -> None:
    """A gang in its pause gives its quota to one that fits on nodes that are there."""

    async def story(world: World) -> None:
        await world.create(*queue(gpus=64), pool(zones=SEOUL, types=("g6e.48xlarge",)))
        await world.create(node("mine-1"), node("mine-2"))
        await world.create(cloud(failures={"register": 1.0}))
        await world.create(job("big", pods=8, gpus=8))
        await world.pass_time(10)
        await world.create(job("small", pods=2, gpus=8, seconds=30))
        await world.pass_time(60)
        assert not started(world, "small"), "the big one holds all quota"
        await world.pass_time(16 * 60 - 70 + 10)
        assert (
            started(world, "small")
            or condition(world.get(names.JOB, "small"), "Complete")["status"] == "True"
        )
        assert not started(world, "big")

    told(story)


def static_pools_keep_their_number() -> None:
    """Three nodes are there without a job; one goes only when no pod is on it."""

    async def story(world: World) -> None:
        await world.create(*queue(gpus=24), pool("fixed", zones=SEOUL, replicas=3))
        await world.pass_time(120)
        assert len(nodes(world)) == 3
        await world.create(job("a", pods=2, gpus=8, seconds=300))
        await world.create(job("b", pods=1, gpus=8, seconds=3600))
        await world.pass_time(10)
        assert started(world, "a")
        assert started(world, "b")
        assert len(nodes(world)) == 3
        with pytest.raises(Invalid, match="weight"):
            await world.client.patch(names.NODE_POOL, "fixed", "", {"spec": {"weight": 10}})
        fewer = {"spec": {"replicas": 2}}
        await world.client.patch(names.NODE_POOL, "fixed", "", fewer, subresource="scale")
        await world.pass_time(60)
        assert len(nodes(world)) == 3
        await world.pass_time(400)
        assert len(nodes(world)) == 2

    told(story)


def pools_as_people_have_them() -> None:
    """A published NodePool applies as it is, and is ready."""

    async def story(world: World) -> None:
        made = pool(zones=SEOUL)
        made["metadata"]["namespace"] = "karpenter"
        made["spec"]["template"]["spec"]["nodeClassRef"] = {
            "group": "example.com",
            "kind": "Unheard",
            "name": "of",
        }
        del made["metadata"]["namespace"]  # clients drop it before they send it
        await world.create(made)
        await world.settle()
        stored = world.get(names.NODE_POOL, "gpu", "")
        assert condition(stored, "Ready")["status"] == "True"
        assert stored["status"]["nodes"] == 0

    told(story)


def karpenter_refuses_one_and_the_other_goes() -> None:
    """Karpenter deletes a claim that it cannot fulfil; the rest of the purchase goes, too."""

    async def story(world: World) -> None:
        await world.create(*queue(gpus=16), pool(zones=SEOUL))
        await world.create(job("train", pods=2, gpus=8))
        await world.settle()
        first, second = claims(world)
        for claim in (first, second):
            assert claim["metadata"]["labels"]["karpenter.sh/nodepool"] == "gpu"
            (types,) = [one for one in claim["spec"]["requirements"] if one["key"] == TYPE]
            assert types["values"] == ["g6e.48xlarge"]
            assert claim["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] == "true"
            requests = claim["spec"]["resources"]["requests"]
            assert requests["nvidia.com/gpu"] == "8"
        # What its documentation says of a lack of capacity: the claim is deleted at once.
        await world.client.delete(names.NODE_CLAIM, first["metadata"]["name"], "")
        await world.settle()
        assert claims(world) == []
        assert bound(world) == {}
        assert "StockOut" in condition(only_workload(world), "QuotaReserved")["message"]

    told(story, cloud_is_ours=False)
