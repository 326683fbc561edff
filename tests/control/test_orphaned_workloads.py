"""Workloads whose job is gone end; those that never had one stay as long as they want."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.control.stories import told
from tests.faults.jobs import JOB_KINDS, Gang, Wish
from tests.support.control_objects import GPU, KUEUE, job, node, priority, queue
from tests.support.control_world import World
from unisono.control import names
from unisono.control.conditions import find, is_true
from unisono.kube.form import Json
from unisono.kube.mapping import Kind

# What a user makes as one object; the others are pods and perhaps their group.
JOBS = tuple(sort for sort in JOB_KINDS if sort not in ("podgroup", "kueuegroup"))
SECONDS = 20


def gang(sort: str, name: str = "zeta", seconds: int = SECONDS) -> Gang:
    """Return a gang of two pods with a GPU each."""
    return JOB_KINDS[sort](
        Wish(
            name=name,
            pods=2,
            gpus=1,
            seconds=seconds,
            queue="lq-cq",
            priority="",
            fails_once=False,
        )
    )


async def begin(world: World, *, gpus: int = 2) -> None:
    """Make a cluster with room for one gang."""
    made = queue(gpus=gpus)
    (group,) = made[1]["spec"]["resourceGroups"]
    for name in ("cpu", "memory"):
        group["coveredResources"].append(name)
        group["flavors"][0]["resources"].append({"name": name, "nominalQuota": "10000G"})
    await world.create(priority("high", 100), node("n1"), *made)
    await world.settle()


def workload(world: World, name: str = "zeta") -> Json:
    """Return the Workload of a gang, the newest if there are several."""
    found = [one for one in world.every(names.WORKLOAD) if name in one["metadata"]["name"]]
    return found[-1]


def condition(of: Json, kind: str) -> tuple[str, str]:
    """Return status and reason of a condition."""
    found = find((of.get("status") or {}).get("conditions"), kind)
    return (found["status"], found["reason"]) if found is not None else ("", "")


async def orphan(world: World, kind: Kind, name: str) -> None:
    """Delete an object and leave what belongs to it, as `--cascade=orphan` does."""
    await world.client.delete(kind, name, "default", propagation="Orphan")
    await world.settle()


async def others_start(world: World) -> None:
    """Check that nothing holds the quota: a gang that needs all of it starts."""
    await world.create(job("next", pods=2, gpus=1, seconds=600))
    await world.pass_time(5)
    assert is_true(workload(world, "next")["status"]["conditions"], "Admitted")


@pytest.mark.parametrize("sort", JOBS)
def test_a_waiting_workload_whose_job_was_orphaned_ends(sort: str) -> None:
    """It was admitted later, evicted as NodeFailures, and kept its quota for good."""

    async def story(world: World) -> None:
        await begin(world)
        await world.create(job("first", pods=2, gpus=1, seconds=600))
        one = gang(sort)
        await world.create(*one.objects)
        await world.settle()
        assert not (workload(world).get("status") or {}).get("admission")
        await orphan(world, one.kind, "zeta")
        ended = workload(world)
        assert condition(ended, "Finished") == ("True", "OwnerNotFound")
        assert not ended["metadata"].get("finalizers")
        await world.client.delete(names.JOB, "first", "default")
        await world.pass_time(300)
        assert not (world.get(names.WORKLOAD, ended["metadata"]["name"])["status"]).get("admission")
        if sort not in ("trainjob", "rayjob"):  # what those left behind is a job, and has it now
            await others_start(world)

    told(story)


@pytest.mark.parametrize("sort", [sort for sort in JOBS if sort not in ("trainjob", "rayjob")])
def test_pods_that_were_left_behind_keep_their_quota_until_they_are_over(sort: str) -> None:
    async def story(world: World) -> None:
        await begin(world)
        one = gang(sort, seconds=600)
        await world.create(*one.objects)
        await world.pass_time(10)
        assert is_true(workload(world)["status"]["conditions"], "Admitted")
        await orphan(world, one.kind, "zeta")
        await world.pass_time(200)
        assert condition(workload(world), "Finished") == ("", "")
        held = world.assembly.scheduler.state.running
        assert len(held) == 1
        for below in world.every(names.JOB):  # what a JobSet had made, and makes pods itself
            await world.client.delete(names.JOB, below["metadata"]["name"], "default")
        for pod in world.every(names.POD):
            await world.client.delete(names.POD, pod["metadata"]["name"], "default")
        await world.pass_time(60)
        assert condition(workload(world), "Finished") == ("True", "OwnerNotFound")
        await others_start(world)

    told(story)


@pytest.mark.parametrize("sort", ["trainjob", "rayjob"])
def test_a_job_that_was_left_behind_by_another_is_queued_by_itself(sort: str) -> None:
    async def story(world: World) -> None:
        await begin(world)
        one = gang(sort, seconds=600)
        await world.create(*one.objects)
        await world.pass_time(10)
        first = workload(world)["metadata"]["name"]
        await orphan(world, one.kind, "zeta")
        await world.pass_time(700)  # a RayJob also has a pod of its own, which goes on
        ended = world.get(names.WORKLOAD, first)
        assert condition(ended, "Finished") == ("True", "OwnerNotFound")
        (other,) = (one for one in world.every(names.WORKLOAD) if one["metadata"]["name"] != first)
        assert other["metadata"]["ownerReferences"][0]["kind"] in ("JobSet", "RayCluster")
        assert other["spec"]["queueName"] == "lq-cq"

    told(story)


@pytest.mark.parametrize("sort", ["trainjob", "rayjob"])
def test_a_job_that_was_left_behind_waiting_does_not_pass_by_the_quota(sort: str) -> None:
    """It named no queue itself, and so went into the one without limits."""

    async def story(world: World) -> None:
        await begin(world)
        await world.create(job("first", pods=2, gpus=1, seconds=6000))
        one = gang(sort)
        await world.create(*one.objects)
        await world.settle()
        await orphan(world, one.kind, "zeta")
        await world.pass_time(300)
        waiting = [
            one
            for one in world.every(names.WORKLOAD)
            if "zeta" in one["metadata"]["name"] and condition(one, "Finished") == ("", "")
        ]
        assert [one["spec"]["queueName"] for one in waiting] in ([], ["lq-cq"])
        assert not any((one.get("status") or {}).get("admission") for one in waiting)
        pods = [one["metadata"]["name"] for one in world.every(names.POD)]
        assert [name for name in pods if name.startswith("zeta")] == []

    told(story)


def test_a_job_that_went_while_nothing_ran_is_noticed_at_the_start() -> None:
    async def story(world: World) -> None:
        await begin(world)
        await world.create(job("first", pods=2, gpus=1, seconds=600))
        await world.create(*gang("job").objects)
        await world.settle()
        await world.client.delete(names.JOB, "zeta", "default", propagation="Orphan")
        world.restart()
        await world.settle()
        assert condition(workload(world), "Finished") == ("True", "OwnerNotFound")

    told(story)


def test_pods_of_a_job_that_was_orphaned_while_nothing_ran_can_be_deleted() -> None:
    """The finalizer of their Job stayed on them for ever."""

    async def story(world: World) -> None:
        await begin(world)
        await world.create(*gang("job", seconds=600).objects)
        await world.pass_time(10)
        await world.client.delete(names.JOB, "zeta", "default", propagation="Orphan")
        while not world.api.garbage_collector.is_idle:  # it is done before controllers look
            await asyncio.sleep(0)
        await world.store.committed()
        world.restart()
        await world.settle()
        for pod in world.every(names.POD):
            await world.client.delete(names.POD, pod["metadata"]["name"], "default")
        await world.pass_time(60)
        assert world.every(names.POD) == []
        assert condition(workload(world), "Finished") == ("True", "OwnerNotFound")

    told(story)


@pytest.mark.parametrize("policy", ["Background", "Orphan"])
def test_pods_of_a_job_that_was_replaced_give_their_places_back(policy: Any) -> None:
    """Only the pods of the new job were counted; those of the old one kept their finalizer."""

    async def story(world: World) -> None:
        await begin(world)
        await world.create(*gang("job", seconds=600).objects)
        await world.pass_time(10)
        old = workload(world)["metadata"]["name"]
        await world.client.delete(names.JOB, "zeta", "default", propagation=policy)
        while not world.api.garbage_collector.is_idle:
            await asyncio.sleep(0)
        await world.store.committed()
        await world.create(*gang("job", seconds=600).objects)
        await world.pass_time(60)
        if policy == "Orphan":
            assert world.get(names.WORKLOAD, old)["status"]["admission"]
            for pod in world.every(names.POD):
                await world.client.delete(names.POD, pod["metadata"]["name"], "default")
            await world.pass_time(60)
        assert len(world.every(names.POD)) == 2
        assert world.get(names.JOB, "zeta")["status"]["active"] == 2
        assert len(world.assembly.scheduler.state.running) == 1

    told(story)


def test_a_workload_of_pods_that_run_on_is_not_collected_with_its_job() -> None:
    """Put back on a Workload, an owner that was just gone had the collector delete it."""

    async def story(world: World) -> None:
        await begin(world)
        await world.create(*gang("mpijob", seconds=600).objects)
        await world.pass_time(10)
        kind = gang("mpijob").kind
        await world.client.delete(kind, "zeta", "default", propagation="Orphan")
        while not world.api.garbage_collector.is_idle:
            await asyncio.sleep(0)
        await world.store.committed()
        # The watch of Workloads is quicker than the one of jobs.
        name = workload(world)["metadata"]["name"]
        stripped = world.get(names.WORKLOAD, name)
        world.driver.changed(names.WORKLOAD, world.view.upsert(names.WORKLOAD, stripped))
        while await world.driver.step() is not None:
            pass
        await world.pass_time(60)
        assert "deletionTimestamp" not in workload(world)["metadata"]
        assert len(world.assembly.scheduler.state.running) == 1

    told(story)


def test_a_new_job_of_that_name_has_a_workload_of_its_own() -> None:
    async def story(world: World) -> None:
        await begin(world)
        await world.create(job("first", pods=2, gpus=1, seconds=600))
        await world.create(*gang("job").objects)
        await world.settle()
        old = workload(world)["metadata"]["name"]
        await world.client.delete(names.JOB, "zeta", "default", propagation="Orphan")
        await world.create(*gang("job").objects)
        await world.settle()
        assert condition(world.get(names.WORKLOAD, old), "Finished") == ("True", "OwnerNotFound")
        (new,) = (
            one
            for one in world.every(names.WORKLOAD)
            if one["metadata"]["name"].startswith("job-zeta-") and one["metadata"]["name"] != old
        )
        assert condition(new, "Finished") == ("", "")
        await world.client.delete(names.JOB, "first", "default")
        await world.pass_time(5)
        assert is_true(workload(world, new["metadata"]["name"])["status"]["conditions"], "Admitted")

    told(story)


def test_a_workload_that_names_a_job_that_is_gone_is_left_to_the_collector_for_a_minute() -> None:
    """Its kind is no longer served, so no collector takes it away."""

    async def story(world: World) -> None:
        await begin(world)
        made = external("zeta")
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "zeta", "uid": "0-gone"}
        made["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
        janitor = world.api.garbage_collector
        janitor._uids["0-gone"] = ("/pods", "default", "unknown")  # it cannot say that it is gone
        await world.create(made)
        await world.pass_time(30)
        assert condition(workload(world), "Finished") == ("", "")
        await world.pass_time(60)
        assert condition(workload(world), "Finished") == ("True", "OwnerNotFound")
        await others_start(world)

    told(story)


def test_a_workload_whose_owner_was_taken_off_gets_it_back() -> None:
    async def story(world: World) -> None:
        await begin(world)
        await world.create(job("first", pods=2, gpus=1, seconds=600))
        await world.create(*gang("job").objects)
        await world.settle()
        name = workload(world)["metadata"]["name"]
        stripped = {"metadata": {"ownerReferences": None}}
        await world.client.patch(names.WORKLOAD, name, "default", stripped)
        await world.settle()
        (owner,) = workload(world)["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("Job", "zeta", True)
        await world.client.delete(names.JOB, "first", "default")
        await world.pass_time(10)
        assert world.get(names.JOB, "zeta")["status"]["active"] == 2

    told(story)


def test_a_job_that_leaves_its_queue_takes_its_workload_along() -> None:
    """It was admitted later and the job was not started."""

    async def story(world: World) -> None:
        await begin(world)
        await world.create(job("first", pods=2, gpus=1, seconds=600))
        await world.create(*gang("job").objects)
        await world.settle()
        label = {"metadata": {"labels": {names.QUEUE_LABEL: None}}}
        await world.client.patch(names.JOB, "zeta", "default", label)
        await world.settle()
        assert [one["metadata"]["name"][:9] for one in world.every(names.WORKLOAD)] == ["job-first"]

    told(story)


@pytest.mark.parametrize("is_owned", [True, False])
def test_a_foreign_finalizer_keeps_a_deleted_workload_but_not_its_quota(*, is_owned: bool) -> None:
    async def story(world: World) -> None:
        await begin(world)
        await world.create(*(gang("job", seconds=600).objects if is_owned else [external("zeta")]))
        await world.pass_time(10)
        name = workload(world)["metadata"]["name"]
        kept = [*(workload(world)["metadata"].get("finalizers") or ()), "example.com/mine"]
        await world.client.patch(
            names.WORKLOAD, name, "default", {"metadata": {"finalizers": kept}}
        )
        await world.client.delete(names.WORKLOAD, name, "default")
        if is_owned:
            await world.client.delete(names.JOB, "zeta", "default")
        await world.pass_time(60)
        assert workload(world)["metadata"]["finalizers"] == ["example.com/mine"]
        assert not world.assembly.scheduler.state.running
        await others_start(world)

    told(story)


# ---- groups of pods ----------------------------------------------------------------------------


@pytest.mark.parametrize("sort", ["podgroup", "kueuegroup"])
@pytest.mark.parametrize("is_running", [True, False])
def test_groups_whose_pods_were_orphaned_give_their_quota_back(
    sort: str, *, is_running: bool
) -> None:
    async def story(world: World) -> None:
        await begin(world)
        if not is_running:
            await world.create(job("first", pods=2, gpus=1, seconds=600))
            await world.settle()
        one = gang(sort, seconds=600)
        await world.create(*one.objects)
        await world.pass_time(10)
        assert bool(workload(world)["status"].get("admission")) is is_running
        for obj in one.objects:
            kind = Kind(obj["apiVersion"], obj["kind"])
            name = obj["metadata"]["name"]
            await world.client.delete(kind, name, "default", propagation="Orphan", grace_s=0)
        if not is_running:
            await world.client.delete(names.JOB, "first", "default")
        await world.pass_time(300)
        assert not world.assembly.scheduler.state.running
        await others_start(world)

    told(story)


def test_a_group_without_pods_gives_its_quota_back_after_a_while() -> None:
    async def story(world: World) -> None:
        await begin(world)
        one = gang("podgroup", seconds=600)
        await world.create(*one.objects)
        await world.pass_time(10)
        for pod in one.pods:
            await world.client.delete(names.POD, pod["metadata"]["name"], "default", grace_s=0)
        await world.pass_time(60)
        assert len(world.assembly.scheduler.state.running) == 1
        await world.pass_time(120)
        assert not world.assembly.scheduler.state.running

    told(story)


# ---- without a job -----------------------------------------------------------------------------


def external(name: str, *, gpus: int = 1, **more: Any) -> Json:
    """Return a Workload as a foreign controller makes it, without any pods."""
    requests = {"resources": {"limits": {GPU: str(gpus)}}}
    container = {"name": "main", "image": "busybox", **requests}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "queueName": "lq-cq",
            "podSets": [{"name": "main", "count": 2, "template": template}],
            **more,
        },
    }


OTHERS = {"apiVersion": "v1", "kind": "ConfigMap", "name": "theirs"}


@pytest.mark.parametrize("is_owned", [False, True])
def test_a_workload_without_pods_lives_as_long_as_it_wants(*, is_owned: bool) -> None:
    """It was evicted as NodeFailures after two minutes, and Admitted stayed True."""

    async def story(world: World) -> None:
        await begin(world)
        made = external("zeta")
        if is_owned:
            owner = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}}
            stored = await world.client.create({**owner, "metadata": {"name": "theirs"}})
            reference = {**OTHERS, "uid": stored["metadata"]["uid"], "controller": True}
            made["metadata"]["ownerReferences"] = [reference]
        await world.create(made)
        await world.pass_time(3600)
        assert condition(workload(world), "Admitted")[0] == "True"
        assert condition(workload(world), "Evicted") == ("", "")
        await world.client.delete(names.NODE, "n1")
        await world.pass_time(600)
        assert condition(workload(world), "Admitted")[0] == "True"
        world.restart()
        await world.pass_time(600)
        assert condition(workload(world), "Admitted")[0] == "True"
        await world.client.delete(names.WORKLOAD, "zeta", "default")
        await world.create(node("n2"))
        await others_start(world)

    told(story)


def test_a_workload_without_pods_that_is_told_to_leave_has_left() -> None:
    async def story(world: World) -> None:
        await begin(world)
        await world.create(external("zeta"))
        await world.pass_time(300)
        off = {"spec": {"active": False}}
        await world.client.patch(names.WORKLOAD, "zeta", "default", off)
        await world.pass_time(5)
        left = workload(world)
        assert condition(left, "Evicted") == ("True", "Deactivated")
        assert condition(left, "Admitted")[0] == "False"
        assert condition(left, "QuotaReserved")[0] == "False"
        assert not left["status"].get("admission")
        await others_start(world)

    told(story)


def test_a_workload_with_late_pods_starts_whole() -> None:
    async def story(world: World) -> None:
        await begin(world)
        await world.create(external("zeta"))
        await world.pass_time(600)
        told_which = {names.WORKLOAD_ANNOTATION: "zeta"}
        for number in range(2):
            template = external("zeta")["spec"]["podSets"][0]["template"]
            await world.create(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {
                        "name": f"p{number}",
                        "namespace": "default",
                        "annotations": {**told_which, "unisono.dev/run-seconds": "600"},
                        "labels": {names.POD_SET_LABEL: "main"},
                    },
                    "spec": template["spec"],
                }
            )
        await world.pass_time(10)
        assert {pod["status"]["phase"] for pod in world.every(names.POD)} == {"Running"}
        off = {"spec": {"active": False}}
        await world.client.patch(names.WORKLOAD, "zeta", "default", off)
        await world.pass_time(5)
        assert condition(workload(world), "Admitted")[0] == "True"  # its pods hold it
        for pod in world.every(names.POD):
            await world.client.delete(names.POD, pod["metadata"]["name"], "default", grace_s=0)
        await world.pass_time(5)
        assert condition(workload(world), "Admitted")[0] == "False"

    told(story)
