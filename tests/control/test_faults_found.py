"""What the runs with faults found, each as the smallest story that shows it."""

from __future__ import annotations

from tests.control.pod_gangs.test_pod_gangs import in_group, member, podgroup
from tests.control.stories import delete, gpu_node, nodes_of, phases, queue_of, told
from tests.support.control_objects import job, node, priority, queue
from tests.support.control_world import World
from unisono.control import names
from unisono.control.actions import Delete, Patch, Together
from unisono.control.admission.placement import is_of_earlier_leader, placement_of
from unisono.control.conditions import find, is_true
from unisono.control.gangs.controller import GangController
from unisono.control.job_kinds.batch.operator import JobOperator
from unisono.kube.form import Json, Key


def workload(world: World) -> Json:
    """Return the only Workload that is not on its way out."""
    (found,) = (
        one for one in world.every(names.WORKLOAD) if "deletionTimestamp" not in one["metadata"]
    )
    return found


async def stop(world: World, policy: str) -> None:
    """Stop the queue, or let it go on."""
    await world.client.patch(names.CLUSTER_QUEUE, "cq", "", {"spec": {"stopPolicy": policy}})
    await world.settle()


def test_placements_are_numbered_upwards_across_evictions() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), *queue(), job("j", pods=1, seconds=600))
        await world.settle()
        assert placement_of(workload(world)["status"]["conditions"])[1]["gen"] == "1"
        for number in ("2", "3"):
            await stop(world, "HoldAndDrain")
            assert placement_of(workload(world)["status"]["conditions"])[0] == ""
            await stop(world, "None")
            phase, about = placement_of(workload(world)["status"]["conditions"])
            assert (phase, about["gen"]) == ("Committed", number)

    told(story)


def test_a_drained_queue_that_goes_on_takes_its_workloads_back() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), *queue(), job("j", pods=1, seconds=600))
        await world.settle()
        await stop(world, "HoldAndDrain")
        requeued = find(workload(world)["status"]["conditions"], "Requeued")
        assert requeued is not None
        assert (requeued["status"], requeued["reason"]) == ("False", "ClusterQueueStopped")
        await stop(world, "None")
        requeued = find(workload(world)["status"]["conditions"], "Requeued")
        assert requeued is not None
        assert (requeued["status"], requeued["reason"]) == ("True", "ClusterQueueRestarted")
        assert set(phases(world).values()) == {"Running"}

    told(story)


def test_a_deleted_job_keeps_its_nodes_until_its_pods_are_gone() -> None:
    async def story(world: World) -> None:
        says = {"stop-seconds": "20"}
        first = job("first", pods=1, seconds=600, says=says)
        await world.create(node("n1"), *queue(), first, job("second", pods=1))
        await world.settle()
        await delete(world, names.JOB, "first")
        assert [pod["metadata"]["labels"]["job-name"] for pod in world.every(names.POD)] == [
            "first"
        ]
        await world.pass_time(21)
        assert [pod["metadata"]["labels"]["job-name"] for pod in world.every(names.POD)] == [
            "second"
        ]

    told(story)


def test_an_evicted_job_gives_its_nodes_back_when_its_pods_are_gone() -> None:
    async def story(world: World) -> None:
        slow = job("first", pods=2, gpus=4, seconds=600, says={"stop-seconds": "20"})
        await world.create(node("n1"), *queue(), slow)
        await world.settle()
        name = workload(world)["metadata"]["name"]
        await world.client.patch(names.WORKLOAD, name, "default", {"spec": {"active": False}})
        await world.create(job("second", pods=1))
        await world.settle()
        assert set(phases(world).values()) == {"Terminating"}
        await world.pass_time(21)
        assert set(phases(world).values()) == {"Running"}

    told(story)


def test_a_pod_that_is_through_needs_no_place_among_new_nodes() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), *queue(), job("j", pods=2, gpus=4, seconds=600))
        await world.settle()
        first = next(pod for pod in world.every(names.POD) if "j-0" in pod["metadata"]["name"])
        await world.set_status(names.POD, first["metadata"]["name"], {"phase": "Succeeded"})
        await world.settle()
        await stop(world, "HoldAndDrain")
        await delete(world, names.NODE, "n1")
        await world.create(node("n2"))
        await stop(world, "None")
        await world.pass_time(5)
        assert sorted(phases(world).values()) == ["Running", "Succeeded"]

    told(story)


def test_a_job_with_more_completions_than_pods_at_once_goes_on_to_its_end() -> None:
    async def story(world: World) -> None:
        waves = job("j", pods=2, gpus=4, seconds=10)
        waves["spec"]["completions"] = 5
        await world.create(node("n1"), *queue(), waves)
        await world.pass_time(35)
        assert list(phases(world).values()) == ["Succeeded"] * 5

    told(story)


def test_a_replacement_waits_until_the_pod_before_it_has_left_its_place() -> None:
    async def story(world: World) -> None:
        slow = job("j", pods=1, seconds=600, says={"stop-seconds": "20"})
        await world.create(node("n1"), *queue(), slow)
        await world.settle()
        (first,) = phases(world)
        await delete(world, names.POD, first)
        assert sorted(phases(world).values()) == ["Pending", "Terminating"]
        assert sorted(nodes_of(world).values()) == ["", "n1"]
        await world.pass_time(21)
        assert list(phases(world).values()) == ["Running"]

    told(story)


def test_a_requeued_workload_is_tried_when_nodes_come_free() -> None:
    async def story(world: World) -> None:
        rules = {"withinClusterQueue": "LowerPriority"}
        first = job("first", pods=1, gpus=4, seconds=600, says={"stop-seconds": "20"})
        urgent = job("urgent", pods=1, gpus=8, seconds=10, priority_class="high")
        other = job("other", pods=1, gpus=4, seconds=600, queue_name="lq-more")
        queues = [*queue(gpus=8, preemption=rules), *queue("more", gpus=8)[1:]]
        await world.create(node("n1"), *queues, priority("high", 10), first)
        await world.settle()
        await world.create(urgent)
        await world.settle()
        await world.create(other)
        await world.settle()
        assert not [name for name in phases(world) if name.startswith("other")]
        await world.pass_time(40)
        running = {name[:5] for name, phase in phases(world).items() if phase == "Running"}
        assert running == {"first", "other"}

    told(story)


def test_a_job_whose_workload_is_deleted_starts_over_whole() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), *queue(), job("j", pods=2, gpus=4, seconds=20))
        await world.settle()
        first = workload(world)["metadata"]
        old = set(phases(world))
        await delete(world, names.WORKLOAD, first["name"])
        assert workload(world)["metadata"]["uid"] != first["uid"]
        assert set(phases(world).values()) == {"Running"}
        assert not old & set(phases(world))
        await world.pass_time(25)
        assert set(phases(world).values()) == {"Succeeded"}

    told(story)


def test_a_new_workload_of_the_same_name_is_told_why_it_waits() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", 4), *queue(), job("j", pods=1, gpus=8))
        await world.settle()
        first = workload(world)["metadata"]
        await delete(world, names.WORKLOAD, first["name"])
        second = workload(world)
        assert second["metadata"]["uid"] != first["uid"]
        waits = find(second["status"]["conditions"], "QuotaReserved")
        assert waits is not None
        assert "0 of 1 pods fit" in waits["message"]

    told(story)


def test_a_group_whose_workload_is_deleted_before_it_starts_waits_again() -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(2), gpu_node("n1", 2), in_group("a", 2), in_group("b", 2))
        await world.settle()
        await delete(world, names.WORKLOAD, "g")
        assert phases(world) == {}
        assert world.every(names.WORKLOAD) == []
        await world.create(in_group("a", 2), in_group("b", 2))
        await world.settle()
        assert phases(world) == {"a": "Running", "b": "Running"}

    told(story)


def test_members_that_succeeded_count_when_a_lost_one_comes_back() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 2), podgroup("coscheduling"))
        await world.create(member("coscheduling", "a", run_seconds="10"))
        await world.create(member("coscheduling", "b", run_seconds="20"))
        await world.settle()
        await world.pass_time(12)
        await delete(world, names.POD, "b")
        await world.create(member("coscheduling", "b", run_seconds="10"))
        await world.settle()
        assert phases(world) == {"a": "Succeeded", "b": "Running"}
        await world.pass_time(12)
        assert phases(world) == {"a": "Succeeded", "b": "Succeeded"}

    told(story)


def test_a_group_whose_pods_are_all_deleted_holds_nothing_though_some_had_succeeded() -> None:
    """Pods that had succeeded were kept to be counted, and with them quota and nodes, for ever."""

    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 2), *queue_of(2))
        short, long = ({"unisono.dev/run-seconds": text} for text in ("5", "600"))
        await world.create(in_group("a", 2, says=short), in_group("b", 2, says=long))
        await world.pass_time(10)
        assert phases(world) == {"a": "Succeeded", "b": "Running"}
        for name in ("a", "b"):
            await world.client.delete(names.POD, name, "default")
        await world.pass_time(60)
        assert phases(world) == {}
        assert world.every(names.WORKLOAD) == []
        assert not world.assembly.scheduler.state.running

    told(story)


def test_a_second_round_of_a_group_starts_whole() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 2), podgroup("coscheduling"))
        for name in ("a", "b"):
            await world.create(member("coscheduling", name, run_seconds="5"))
        await world.pass_time(10)
        await world.create(member("coscheduling", "c", run_seconds="5"))
        await world.settle()
        assert phases(world)["c"] == "Pending"
        await world.create(member("coscheduling", "d", run_seconds="5"))
        await world.settle()
        assert (phases(world)["c"], phases(world)["d"]) == ("Running", "Running")

    told(story)


def test_a_pod_on_a_cordoned_node_stays_when_another_of_its_gang_moves() -> None:
    """All places were moved, so no pod was in its own any more, and the new pod waited for ever."""

    async def story(world: World) -> None:
        await world.create(node("n1"), *queue(), job("j", gpus=4, seconds=600))
        await world.settle()
        assert set(nodes_of(world).values()) == {"n1"}
        first, second = sorted(nodes_of(world))
        await world.create(node("n2"))
        await world.client.patch(names.NODE, "n1", "", {"spec": {"unschedulable": True}})
        await delete(world, names.POD, first)
        await world.pass_time(60)
        (other,) = nodes_of(world).keys() - {first, second}
        assert nodes_of(world) == {second: "n1", other: "n2"}
        assert set(phases(world).values()) == {"Running"}

    told(story)


def test_a_pod_on_a_node_that_its_gang_has_left_is_deleted() -> None:
    """Its node was gone for a moment, and its place had been moved: it ran on, booked nowhere."""

    async def story(world: World) -> None:
        await world.create(node("n1"), *queue(), job("j", gpus=4, seconds=600))
        await world.settle()
        _, about = placement_of(workload(world)["status"]["conditions"])
        assert (set(nodes_of(world).values()), about["gen"]) == ({"n1"}, "1")
        await world.create(node("n2"))
        moved = workload(world)["status"]
        places = moved["admission"]["podSetAssignments"][0]["topologyAssignment"]
        places["slices"][0]["valuesPerLevel"] = [{"universal": "n2"}]
        for one in moved["conditions"]:
            one["message"] = one["message"].replace("gen=1", "gen=2")
        await world.set_status(names.WORKLOAD, workload(world)["metadata"]["name"], moved)
        await world.pass_time(60)
        assert set(nodes_of(world).values()) == {"n2"}
        assert set(phases(world).values()) == {"Running"}

    told(story)


def test_nothing_is_bound_while_other_nodes_are_looked_for() -> None:
    """A node that came back was bound to while others could still be given instead."""

    async def story(world: World) -> None:
        await world.create(node("n1"), node("n2"), *queue(), job("j", seconds=600))
        await world.settle()
        await world.client.delete(names.NODE, "n2")
        await world.pass_time(60)
        assert placement_of(workload(world)["status"]["conditions"])[0] == "Repairing"
        await world.client.create(node("n2"))
        await world.store.committed()
        world.pump()
        key = Key("default", workload(world)["metadata"]["name"])
        steps = GangController().reconcile(key, world.view, world.clock.now())
        written = next(steps)
        assert isinstance(written, Patch)
        assert placement_of(written.changes["status"]["conditions"])[0] == "Committed"
        assert isinstance(steps.send(workload(world)), Together)

    told(story)


def test_an_admission_that_an_earlier_leader_wrote_late_is_taken_back() -> None:
    """Its nodes were given to another gang before the write arrived (seed 70446)."""

    async def story(world: World) -> None:
        await world.create(node("n1"), node("n2"), *queue(), job("j", seconds=600))
        await world.settle()
        late = workload(world)
        conditions = late["status"]["conditions"]
        for one in conditions:
            if one["type"] == names.PLACEMENT:
                one |= {"reason": "Committing", "status": "False"}
        await world.store.committed()
        world.pump()
        key = Key("default", late["metadata"]["name"])
        await world.set_status(names.WORKLOAD, key.name, late["status"])
        await world.store.committed()
        world.pump()
        for epoch, written in ((1, False), (2, True)):
            gangs = GangController(came_late=lambda one: is_of_earlier_leader(one, epoch))  # noqa: B023
            steps = gangs.reconcile(key, world.view, world.clock.now())
            first = next(steps, None)
            is_evicted = isinstance(first, Patch) and is_true(
                first.changes["status"]["conditions"], "Evicted"
            )
            assert is_evicted is written

    told(story)


def test_a_pod_of_a_suspended_job_is_let_go_only_after_it_was_told_to_go() -> None:
    """After a crash in between it would end by itself, and not be counted."""

    async def story(world: World) -> None:
        await world.create(node("n1"), job("j", gpus=4, seconds=600, queue_name=""))
        await world.settle()
        await world.client.patch(names.JOB, "j", "default", {"spec": {"suspend": True}})
        await world.store.committed()
        world.pump()
        steps = JobOperator().reconcile(Key("default", "j"), world.view, world.clock.now())
        together = [step.actions for step in steps if isinstance(step, Together)]
        assert [[type(one) for one in actions] for actions in together] == [
            [Delete, Delete],
            [Patch, Patch],
        ]

    told(story)


def test_pods_that_were_sent_away_are_no_failures() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), job("j", gpus=4, seconds=600, queue_name=""))
        await world.settle()
        await world.client.patch(names.JOB, "j", "default", {"spec": {"suspend": True}})
        for name in phases(world):  # and here the controller crashes
            await world.client.delete(names.POD, name, "default")
            ended = {"exitCode": 143, "finishedAt": "2023-11-14T22:13:30Z"}
            terminated = [{"name": "main", "state": {"terminated": ended}}]
            await world.set_status(
                names.POD, name, {"phase": "Failed", "containerStatuses": terminated}
            )
        await world.settle()
        status = world.get(names.JOB, "j")["status"]
        assert (status.get("failed", 0), status.get("terminating", 0)) == (0, 0)
        assert phases(world) == {}

    told(story)


def test_a_pod_after_one_that_was_deleted_and_one_that_failed_has_a_name_of_its_own() -> None:
    """It was given the name of the one that had failed, and never made."""

    async def story(world: World) -> None:
        says = {"stop-seconds": "5", "fail-after": "20", "fail-times": "1"}
        made = job("j", pods=1, seconds=60, queue_name="", says=says)
        await world.create(node("n1"), made)
        await world.settle()
        (first,) = phases(world)
        await world.client.delete(names.POD, first, "default")  # it takes its time to go
        await world.pass_time(200)
        assert sorted(phases(world).values()) == ["Failed", "Succeeded"]

    told(story)


def test_a_node_still_has_the_pods_of_a_gang_that_is_placed_elsewhere_by_now() -> None:
    async def story(world: World) -> None:
        first = job("first", pods=1, seconds=600, says={"stop-seconds": "20"})
        await world.create(node("n1"), *queue(gpus=16), first)
        await world.settle()
        # The gang was rolled back while this node was not ready; it came back before the pod ended.
        await world.create(node("n2"))
        (pod,) = world.every(names.POD)
        kept = ("labels", "annotations", "ownerReferences", "namespace")
        metadata = {key: value for key, value in pod["metadata"].items() if key in kept}
        metadata["name"] = "left"
        spec = {**pod["spec"], "nodeName": "n2"}
        await world.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        await world.set_status(names.POD, "left", pod["status"])
        await world.settle()
        assert phases(world)["left"] == "Terminating"
        await world.create(job("second", pods=1))
        await world.pass_time(5)
        assert [name for name, on in nodes_of(world).items() if on == "n2"] == ["left"]
        await world.pass_time(20)
        (name,) = (name for name, on in nodes_of(world).items() if on == "n2")
        assert name.startswith("second-")

    told(story)
