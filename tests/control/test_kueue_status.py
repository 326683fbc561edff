"""What Kueue writes beside a decision: events, requests of pending workloads, reasons."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.control.scheduler.test_read_again import queue, runs, workload
from tests.support.control_objects import node
from tests.support.control_world import World
from unisono.control import names
from unisono.control.conditions import find, is_true
from unisono.kinds.kueue.waiting import WAITING

Json = dict[str, Any]


def story(tell: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        async with World().running() as world:
            await world.create(node("n1"))
            await tell(world)

    asyncio.run(main())


def preemptible(cpu: int) -> list[Json]:
    made = queue(cpu=cpu)
    made[1]["spec"]["preemption"] = {"withinClusterQueue": "LowerPriority"}
    return made


def status(world: World, name: str) -> Json:
    return dict(world.get(names.WORKLOAD, name).get("status") or {})


def test_a_pending_workload_says_what_it_asks_for() -> None:
    async def tell(world: World) -> None:
        await world.create(*queue(cpu=2))
        await world.create(workload("runs", cpu="2"))
        waits = workload("waits", cpu="1500m")
        waits["spec"]["podSets"][0]["count"] = 2
        await world.create(waits)
        await world.settle()
        requests = [{"name": "main", "resources": {"cpu": "3"}}]
        assert status(world, "waits")["resourceRequests"] == requests
        assert "resourceRequests" not in status(world, "runs")
        fewer = {"spec": {"podSets": [{**waits["spec"]["podSets"][0], "count": 1}]}}
        await world.client.patch(names.WORKLOAD, "waits", "default", fewer)
        await world.settle()
        requests = [{"name": "main", "resources": {"cpu": "1500m"}}]
        assert status(world, "waits")["resourceRequests"] == requests
        await world.client.delete(names.WORKLOAD, "runs", "default")
        await world.settle()
        assert runs(world) == ["waits"]
        assert "resourceRequests" not in status(world, "waits")

    story(tell)


def test_kueue_s_sentence_stands_in_its_own_condition() -> None:
    async def tell(world: World) -> None:
        await world.create(*queue(cpu=5), workload("runs", cpu="4"), workload("waits", cpu="2"))
        await world.create(workload("large", cpu="6"))
        nowhere = workload("nowhere", cpu="1")
        nowhere["spec"]["queueName"] = "gone"
        uncovered = workload("uncovered", cpu="1")
        container = uncovered["spec"]["podSets"][0]["template"]["spec"]["containers"][0]
        container["resources"]["requests"]["memory"] = "1Gi"
        await world.create(nowhere, uncovered)
        await world.settle()
        await world.pass_time(5)

        def message(name: str, kind: str = "QuotaReserved") -> str:
            found = find(status(world, name)["conditions"], kind)
            assert found is not None
            return str(found["message"])

        assigning = "couldn't assign flavors to pod set main:"
        assert message("waits") == (
            f"{assigning} insufficient unused quota for cpu in flavor f, 1 more needed"
        )
        assert "default/runs" in message("waits", WAITING), "our own words name what is in the way"
        assert message("large") == (
            f"{assigning} insufficient quota for cpu in flavor f, previously considered podsets "
            "requests (0) + current podset request (6) > maximum capacity (5)"
        )
        assert message("uncovered") == (f"{assigning} resource memory unavailable in ClusterQueue")
        assert message("nowhere") == "LocalQueue gone doesn't exist"
        await world.client.delete(names.WORKLOAD, "runs", "default")
        await world.settle()
        assert "waits" in runs(world)
        assert find(status(world, "waits")["conditions"], WAITING) is None

    story(tell)


def test_a_preemptor_says_what_it_lacks_until_its_victims_have_left() -> None:
    async def tell(world: World) -> None:
        await world.create(*preemptible(4))
        for name in ("low-1", "low-2"):
            low = workload(name, cpu="2")
            low["metadata"]["ownerReferences"] = [
                {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "name": "default",
                    "uid": world.get(names.NAMESPACE, "default", "")["metadata"]["uid"],
                    "controller": True,
                }
            ]
            await world.create(low)
        await world.settle()
        high = workload("high", cpu="3")
        high["spec"]["priority"] = 9
        await world.create(high)
        await world.settle()
        reserved = find(status(world, "high")["conditions"], "QuotaReserved")
        assert reserved is not None
        assert reserved["reason"] == "WaitingForPreemptedWorkloads"
        assert reserved["message"] == (
            "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor "
            "f, 3 more needed. Pending the preemption of 2 workload(s)"
        )

    story(tell)


def test_a_preemptor_has_one_event_for_all_that_leave() -> None:
    async def tell(world: World) -> None:
        await world.create(*preemptible(4))
        for number in range(4):
            await world.create(workload(f"low-{number}", cpu="1"))
        await world.settle()
        high = workload("high", cpu="4")
        high["spec"]["priority"] = 9
        await world.create(high)
        await world.settle()
        told = [one.message for one in world.notes if one.reason == "PreemptedWorkload"]
        [message] = told
        assert message.startswith("Preempted workload default/low-")
        assert message.endswith(" in ClusterQueue cq, and 3 more")
        evicted = {one.about.name for one in world.notes if one.reason == "EvictedDueToPreempted"}
        assert evicted == {f"low-{number}" for number in range(4)}

    story(tell)


def test_conditions_of_kueue_say_which_generation_they_are_about() -> None:
    async def tell(world: World) -> None:
        await world.create(*preemptible(2))
        await world.create(workload("low", cpu="2"))
        await world.settle()
        high = workload("high", cpu="2")
        high["spec"]["priority"] = 9
        await world.create(high)
        await world.settle()
        left = {one["type"]: one for one in status(world, "low")["conditions"]}
        for kind in ("QuotaReserved", "Admitted", "Evicted", "Preempted", "Requeued"):
            assert left[kind].get("observedGeneration") == 1, kind
        await world.client.delete(names.WORKLOAD, "high", "default")
        await world.settle()
        again = {one["type"]: one for one in status(world, "low")["conditions"]}
        assert again["Preempted"]["status"] == "False"
        for kind in ("QuotaReserved", "Admitted", "Evicted", "Preempted", "Requeued"):
            assert again[kind].get("observedGeneration") == 1, kind

    story(tell)


def test_a_preemption_has_kueue_s_events() -> None:
    async def tell(world: World) -> None:
        await world.create(*preemptible(2))
        await world.create(workload("low", cpu="2"))
        await world.settle()
        high = workload("high", cpu="2")
        high["spec"]["priority"] = 9
        await world.create(high)
        await world.settle()
        events = {(one.about.name, one.reason): one.message for one in world.notes}
        evicted = events["low", "EvictedDueToPreempted"]
        preempted = find(status(world, "low")["conditions"], "Preempted")
        assert preempted is not None
        assert evicted == preempted["message"].replace("Previously: ", "")
        assert "default/high" in events["low", "Preempted"]
        uid = world.get(names.WORKLOAD, "low")["metadata"]["uid"]
        assert events["high", "PreemptedWorkload"] == (
            f"Preempted workload default/low (UID: {uid}) in ClusterQueue cq"
        )

    story(tell)


def test_an_eviction_by_a_stopped_queue_has_its_event() -> None:
    async def tell(world: World) -> None:
        await world.create(*queue(cpu=2), workload("runs", cpu="2"))
        await world.settle()
        stop = {"spec": {"stopPolicy": "HoldAndDrain"}}
        await world.client.patch(names.CLUSTER_QUEUE, "cq", "", stop)
        await world.settle()
        events = {(one.about.name, one.reason): one.message for one in world.notes}
        assert events["runs", "EvictedDueToClusterQueueStopped"] == "The ClusterQueue is stopped"

    story(tell)


def test_a_drained_local_queue_has_kueue_s_words() -> None:
    async def tell(world: World) -> None:
        await world.create(*queue(cpu=2), workload("runs", cpu="2"))
        await world.settle()
        stop = {"spec": {"stopPolicy": "HoldAndDrain"}}
        await world.client.patch(names.LOCAL_QUEUE, "lq", "default", stop)
        await world.settle()
        await world.pass_time(5)
        evicted = find(status(world, "runs")["conditions"], "Evicted")
        assert evicted is not None
        assert (evicted["reason"], evicted["message"]) == (
            "LocalQueueStopped",
            "The LocalQueue is stopped",
        )
        active = find(world.get(names.LOCAL_QUEUE, "lq")["status"]["conditions"], "Active")
        assert active is not None
        assert (active["status"], active["reason"], active["message"]) == (
            "False",
            "Stopped",
            "LocalQueue is stopped",
        )

    story(tell)


def test_an_inactive_queue_suspends_its_workloads() -> None:
    async def tell(world: World) -> None:
        await world.create(*queue()[1:], workload("waits", cpu="1"))  # without its flavor
        await world.settle()
        reserved = find(status(world, "waits")["conditions"], "QuotaReserved")
        assert reserved is not None
        assert (reserved["reason"], reserved["message"]) == (
            "Suspended",
            "ClusterQueue cq is inactive",
        )

    story(tell)


def test_a_label_with_the_uid_of_a_job_makes_no_orphan() -> None:
    async def tell(world: World) -> None:
        await world.create(*queue(cpu=2))
        made = workload("by-hand", cpu="2")
        made["metadata"]["labels"] = {"kueue.x-k8s.io/job-uid": "some-job"}
        await world.create(made)
        await world.settle()
        await world.pass_time(3600)
        assert runs(world) == ["by-hand"]
        conditions = status(world, "by-hand")["conditions"]
        assert not is_true(conditions, "Finished")
        assert not is_true(conditions, "Evicted")
        await world.client.delete(names.NODE, "n1", "")
        await world.pass_time(3600)
        conditions = status(world, "by-hand")["conditions"]
        evicted = find(conditions, "Evicted")
        assert evicted is None or evicted["reason"] != "NodeFailures"

    story(tell)


_INVALID = "resources validation failed: pod set main: "
_OUTSIDE = "resources didn't satisfy LimitRange constraints: pod set main: "


@pytest.mark.parametrize(
    ("resources", "of_the_pod", "bounds", "message"),
    [
        ({"requests": "3", "limits": "2"}, {}, {}, _INVALID),
        ({"requests": "1"}, {"requests": "3", "limits": "2"}, {}, _INVALID),
        ({"requests": "2", "limits": "3"}, {}, {"type": "Container", "max": "1"}, _OUTSIDE),
        ({"requests": "2", "limits": "3"}, {}, {"type": "Container", "min": "3"}, _OUTSIDE),
        ({"requests": "2", "limits": "3"}, {}, {"type": "Pod", "max": "1"}, _OUTSIDE),
        ({"requests": "2", "limits": "3"}, {}, {"type": "Pod", "min": "3"}, _OUTSIDE),
        (
            {"requests": "500m", "limits": "500m"},
            {"requests": "2", "limits": "3"},
            {"type": "Pod", "max": "1"},
            _OUTSIDE,
        ),
        ({"requests": "3", "limits": "2"}, {}, {"type": "Pod", "max": "1"}, _INVALID),
    ],
)
def test_requests_that_are_refused_begin_with_kueue_s_verdict(
    resources: Json, of_the_pod: Json, bounds: Json, message: str
) -> None:
    def of_cpu(amounts: Json) -> Json:
        return {name: {"cpu": amount} for name, amount in amounts.items()}

    async def tell(world: World) -> None:
        await world.create(*queue(cpu=5))
        if bounds:
            type_ = {"type": bounds["type"]}
            item = type_ | of_cpu({name: one for name, one in bounds.items() if name != "type"})
            metadata = {"name": "limits", "namespace": "default"}
            spec = {"limits": [item]}
            await world.create(
                {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": spec}
            )
        made = workload("waits")
        pod = made["spec"]["podSets"][0]["template"]["spec"]
        pod["containers"][0]["resources"] = of_cpu(resources)
        if of_the_pod:
            pod["resources"] = of_cpu(of_the_pod)
        await world.create(made)
        await world.settle()
        reserved = find(status(world, "waits")["conditions"], "QuotaReserved")
        assert reserved is not None
        assert reserved["reason"] == "Misconfigured"
        assert reserved["message"].startswith(message)

    story(tell)


GATED_BY = "kueue.x-k8s.io/admission-gated-by"


def gated(name: str, cpu: str) -> Json:
    made = workload(name, cpu=cpu)
    made["metadata"]["annotations"] = {GATED_BY: "example.com/a,example.com/b"}
    return made


@pytest.mark.parametrize("has_room", [True, False])
def test_a_gate_has_kueue_s_condition_and_events(has_room: bool) -> None:
    async def tell(world: World) -> None:
        await world.create(*queue(cpu=2))
        if not has_room:
            await world.create(workload("runs", cpu="2"))
        await world.create(gated("waits", "2"))
        await world.settle()
        reserved = find(status(world, "waits")["conditions"], "QuotaReserved")
        assert reserved is not None
        assert (reserved["reason"], reserved["message"]) == (
            "AdmissionGated",
            "Admission is gated by: example.com/a,example.com/b",
        )
        released = {"metadata": {"annotations": {GATED_BY: None}}}
        await world.client.patch(names.WORKLOAD, "waits", "default", released)
        await world.settle()
        assert ("waits" in runs(world)) == has_room
        events = [(one.reason, one.message) for one in world.notes if one.about.name == "waits"]
        gates = [one for one in events if "Gate" in one[0]]
        assert gates == [
            ("AdmissionGated", "Workload admission is gated by: example.com/a,example.com/b"),
            ("AdmissionGateCleared", "Admission gate cleared, workload is now admissible"),
        ]

    story(tell)


def test_sets_without_pods_have_the_flavors_that_their_pods_could_take() -> None:
    async def tell(world: World) -> None:
        taint = {"key": "spot", "value": "yes", "effect": "NoSchedule"}
        tainted = {"metadata": {"name": "spot"}, "spec": {"nodeTaints": [taint]}}
        made = queue(cpu=5)
        flavors = made[1]["spec"]["resourceGroups"][0]["flavors"]
        flavors.insert(0, {**flavors[0], "name": "spot"})
        await world.create(made[0] | tainted, *made)
        none, two = workload("none", cpu="1"), workload("two", cpu="1")
        none["spec"]["podSets"][0]["count"] = 0
        pods = two["spec"]["podSets"]
        tolerant = workload("x", cpu="9", tolerations=[{"key": "spot", "operator": "Exists"}])
        pods.append({**tolerant["spec"]["podSets"][0], "name": "later", "count": 0})
        await world.create(none, two)
        await world.settle()

        def assigned(name: str) -> list[Json]:
            sets = status(world, name)["admission"]["podSetAssignments"]
            return [
                {"count": one["count"], **one["flavors"], "used": one["resourceUsage"]}
                for one in sets
            ]

        empty = {"count": 0, "cpu": "f", "used": {"cpu": "0"}}
        assert assigned("none") == [empty]
        assert assigned("two") == [
            {"count": 1, "cpu": "f", "used": {"cpu": "1"}},
            empty | {"cpu": "spot"},
        ]

    story(tell)


@pytest.mark.parametrize("leaves", [{}, {"admission": None}])
def test_a_check_to_be_retried_is_reset_once_a_foreign_owner_gave_the_quota_back(
    leaves: Json,
) -> None:
    async def tell(world: World) -> None:
        check = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "AdmissionCheck",
            "metadata": {"name": "check"},
            "spec": {"controllerName": "example.com/check"},
        }
        await world.create(check)
        active = {"type": "Active", "status": "True", "reason": "Active", "message": ""}
        active["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        conditions = {"status": {"conditions": [active]}}
        await world.client.patch(
            names.ADMISSION_CHECK, "check", "", conditions, subresource="status"
        )
        made = queue(cpu=2)
        made[1]["spec"]["admissionChecksStrategy"] = {"admissionChecks": [{"name": "check"}]}
        foreign = workload("foreign", cpu="2")
        await world.create(*made)
        flavor = world.get(names.FLAVOR, "f", "")  # any object that is there, and no job of ours
        owner = {"name": "f", "uid": flavor["metadata"]["uid"], "controller": True}
        kind = {"apiVersion": flavor["apiVersion"], "kind": "ResourceFlavor"}
        foreign["metadata"]["ownerReferences"] = [kind | owner]
        await world.create(foreign)
        await world.settle()
        assert runs(world) == ["foreign"]

        async def write(changes: Json) -> None:
            body = {"status": changes}
            await world.client.patch(
                names.WORKLOAD, "foreign", "default", body, subresource="status"
            )
            await world.settle()

        (state,) = status(world, "foreign")["admissionChecks"]
        await write({"admissionChecks": [state | {"state": "Retry"}]})
        conditions_now = status(world, "foreign")["conditions"]
        assert is_true(conditions_now, "Evicted")
        released = [
            one | {"status": "False", "reason": "Pending"}
            if one["type"] == "QuotaReserved"
            else one
            for one in conditions_now
        ]
        await write({"conditions": released, **leaves})
        assert runs(world) == ["foreign"], "it has quota again, and its check starts over"
        assert [one["state"] for one in status(world, "foreign")["admissionChecks"]] == ["Pending"]

    story(tell)
