"""`unisono why`: the answer for what waits, runs, left, ended or is not managed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from tests.cli.conftest import Shell, config_map, pod
from tests.control.training_world import job_set
from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import GPU, job, node, priority, queue
from tests.support.control_world import World
from unisono.cli.why.answer import answer
from unisono.cli.why.read import Found, gather
from unisono.cli.why.surroundings import around
from unisono.cli.why.text import text
from unisono.cli.workload_state import state_of
from unisono.control import names
from unisono.control.apps import DEPLOYMENT
from unisono.kube.form import Json
from unisono.kube.mapping import Kind

Story = Callable[[World], Coroutine[Any, Any, None]]


def play(story: Story) -> None:
    """Run a story on a new cluster."""

    async def run() -> None:
        async with simulated_world().running() as world:
            await story(world)

    asyncio.run(run())


async def why(world: World, name: str, kind: Kind = names.JOB) -> tuple[Json, str]:
    """Ask, and return the answer as a value and in words."""
    found = answer(await gather(world.client, world.get(kind, name)))
    return found, text(found, world.clock.now())


def test_what_waits_for_nodes_has_numbers_and_a_remedy() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), *queue(), job("train"))
        await world.settle()
        found, words = await why(world, "train")
        assert found["state"] == "waiting"
        assert found["position"] == {"place": 1, "of": 1}
        assert found["stage"] == "placement"
        assert found["facts"][0] | {"pods": 2, "pods_placeable": 1} == found["facts"][0]
        assert found["asks"] == [{"podSet": "main", "pods": 2, "each": {GPU: "8"}}]
        assert words.startswith(
            "Job default/train waits in queue lq-cq (ClusterQueue cq), position 1 of 1."
        )
        assert "1 of 2 pods fit" in words
        assert "room for 1 more pod: nodes that join, or workloads that end" in words
        assert words.endswith("(unisono.dev/time-limit)\n")

    play(story)


def test_what_lost_a_node_says_which_and_until_when_the_rest_is_kept() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), node("n2"), *queue(), job("train", seconds=5000))
        await world.settle()
        (workload,) = world.every(names.WORKLOAD)
        reached = '{"step":7,"total":90,"at":"2023-11-14T22:13:20Z"}'
        said = {"metadata": {"annotations": {"unisono.dev/progress": reached}}}
        name = workload["metadata"]["name"]
        await world.client.patch(names.WORKLOAD, name, "default", said)
        lost = {"conditions": [{**node("n2")["status"]["conditions"][0], "status": "False"}]}
        await world.set_status(names.NODE, "n2", lost)
        await world.pass_time(60)
        found, words = await why(world, "train")
        assert (found["state"], found["reason"]) == ("repairing", "NodesLost")
        assert "lost node n2 with 1 of its 2 pods" in words
        assert found["keptUntil"] == "2023-11-14T22:23:26Z"
        assert "the whole job is requeued at 22:23, in 9 min" in " ".join(words.split())
        assert "progress  step 7 of 90" in words

    play(story)


def test_a_broken_gpu_under_a_running_pod_is_named() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), *queue(), job("train", pods=1, gpus=2, seconds=5000))
        await world.settle()
        assert "nodeTrouble" not in (await why(world, "train"))[0]
        ready = node("n1")["status"]["conditions"][0]
        broken = {
            "type": "GPUProblem",
            "status": "True",
            "reason": "Xid79",
            "message": "GPU 0 reports Xid79",
            "lastTransitionTime": "2023-11-14T22:13:20Z",
        }
        await world.set_status(names.NODE, "n1", {"conditions": [ready, broken]})
        await world.settle()
        found, words = await why(world, "train")
        assert found["state"] == "running"
        assert found["nodeTrouble"][0]["state"] == "quarantined"
        assert "problems:\n  - node n1 is quarantined since 22:13: GPU 0 reports Xid79" in words

    play(story)


def test_the_straggler_of_a_running_gang_is_named() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), node("n2"), *queue(), job("train", seconds=5000))
        await world.settle()
        (workload,) = world.every(names.WORKLOAD)
        slow = (
            '{"p-1":{"since":"2023-11-14T22:13:20Z","told":"slow"},'
            '"p-2":{"since":"2023-11-14T22:13:20Z"}}'
        )
        said = {"metadata": {"annotations": {"unisono.dev/stragglers": slow}}}
        await world.client.patch(names.WORKLOAD, workload["metadata"]["name"], "default", said)
        await world.pass_time(600)
        found, words = await why(world, "train")
        assert [one["pod"] for one in found["slow"]] == ["p-1"]  # of the other it is not sure yet
        assert "slow      pod p-1 delays the others (10m" in words

    play(story)


def test_what_waits_for_quota_stands_in_line() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), node("n2"), *queue(gpus=8), priority("high", 10))
        await world.create(job("first", pods=1))
        await world.settle()
        await world.create(job("second", pods=1), job("third", pods=1))
        await world.create(job("urgent", pods=1, priority_class="high"))
        await world.settle()
        found, words = await why(world, "third")
        assert found["position"]["place"] == 3
        assert found["position"]["of"] == 3
        assert found["position"]["behind"].startswith("default/job-urgent-")
        assert "8 nvidia.com/gpu freed in flavor f, or that much more quota" in words
        assert (await why(world, "urgent"))[0]["priority"] == 10

    play(story)


def test_times_in_facts_are_local_and_limits_of_holders_count() -> None:
    fact = {
        "fact": "PreemptionBackoff",
        "says": "may not preempt others before 2026-01-01T12:10:00Z",
    }
    use: Json = {"of": "ClusterQueue cq", "resource": GPU, "used": "8", "nominal": "8"}
    use |= {"holders": [{"job": "default/job/a", "amount": "8"}], "more": 0}
    about: Json = {
        "kind": "Job",
        "namespace": "default",
        "name": "train",
        "state": "waiting",
        "queue": "lq",
        "facts": [fact],
    }
    noon = 1_767_268_800.0
    limited = text({**about, "use": {**use, "areLimited": True}}, noon)
    assert "12:10, in 10 min" in limited
    assert "T12:10" not in limited
    assert limited.endswith("estimate: not made yet; starts are estimated once a minute\n")
    assert "no time limit" in text({**about, "use": {**use, "areLimited": False}}, noon)


def test_a_held_workload_has_no_position() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), *queue(gpus=8), job("first", pods=1))
        await world.settle()
        held = job("held", pods=1)
        held["metadata"]["annotations"] = {"unisono.dev/hold": "admin"}
        await world.create(held)
        await world.settle()
        await world.create(job("next", pods=1))
        await world.settle()
        found, words = await why(world, "held")
        assert "position" not in found
        assert "JobHeldAdmin: held by an administrator" in words
        assert (await why(world, "next"))[0]["position"] == {"place": 1, "of": 1}

    play(story)


def test_what_runs_says_where_and_a_pod_leads_to_its_job() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), node("n2"), *queue(), job("train", seconds=500))
        await world.pass_time(5)
        found, words = await why(world, "train")
        assert found["state"] == "running"
        assert found["pods"] == {"Running": 2}
        assert {place["node"] for place in found["places"]} == {"n1", "n2"}
        assert "node n1: 1 pod of main" in words
        assert "facts" not in found, "it was admitted, so nothing is left to explain"
        member = world.every(names.POD)[0]["metadata"]["name"]
        of_pod, told = await why(world, member, names.POD)
        assert of_pod["workload"] == found["workload"]
        assert told.startswith(f"Pod {member} is part of Job default/train, which runs")
        by_name, _ = await why(world, found["workload"], names.WORKLOAD)
        assert by_name == found

    play(story)


def test_what_was_preempted_tells_its_history() -> None:
    async def story(world: World) -> None:
        rules = {"withinClusterQueue": "LowerPriority"}
        await world.create(node("n1"), node("n2"), *queue(preemption=rules), priority("high", 100))
        await world.create(job("low", seconds=500))
        await world.settle()
        await world.create(job("high", seconds=500, priority_class="high"))
        await world.pass_time(60)
        found, words = await why(world, "low")
        assert found["state"] == "waiting"
        assert found["history"]["evictions"] == {"Preempted": 1}
        assert "evicted once: Preempted 1" in words
        assert "last eviction: Preempted to accommodate default/job-high-" in words

    play(story)


def test_what_is_over_says_how_it_ended() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), *queue(), job("short", pods=1, seconds=5))
        await world.pass_time(30)
        found, words = await why(world, "short")
        assert (found["state"], found["reason"]) == ("finished", "Succeeded")
        assert "has finished" in words

    play(story)


def test_what_is_in_no_queue_is_not_managed() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), job("free", pods=1, queue_name=""))
        await world.settle()
        found, words = await why(world, "free")
        assert found["state"] == "unmanaged"
        assert "to queue it, label it: kueue.x-k8s.io/queue-name=NAME" in words
        member = world.every(names.POD)[0]["metadata"]["name"]
        of_pod, _ = await why(world, member, names.POD)
        assert of_pod["state"] == "unmanaged"

    play(story)


def test_a_pod_that_fits_nowhere_says_why() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), job("free", pods=1, gpus=64, queue_name=""))
        await world.settle()
        member = world.every(names.POD)[0]["metadata"]["name"]
        found, words = await why(world, member, names.POD)
        assert found["state"] == "waiting"
        assert "the best node has 8 of 64 nvidia.com/gpu" in " ".join(words.split())

    play(story)


# ---- at the terminal -----------------------------------------------------------------------------


def test_the_command_answers_in_every_form(shell: Shell) -> None:
    shell.type("apply", "-f", shell.file(pod("p"), config_map("c"))).ok()
    assert shell.type("why", "pod/p").ok().startswith(f"Pod {shell.namespace}/p is in no queue")
    assert "is not a job" in shell.type("why", "cm/c").ok()
    assert '"state": "unmanaged"' in shell.type("why", "pod/p", "-o", "json").ok()
    assert "state: unmanaged" in shell.type("why", "pod", "p", "-o", "yaml").ok()


def test_wrong_questions_say_what_to_do(shell: Shell) -> None:
    assert shell.type("why", "nope").code == 1
    assert "`unisono workloads -A` lists" in shell.type("why", "job/nope").err
    shell.type("apply", "-f", shell.file(pod("lonely"))).ok()
    said = shell.type("why", "pod/lonely", "-n", "kube-system")
    assert said.code == 1
    assert said.err.endswith(f"there is one in {shell.namespace}: add -n {shell.namespace}\n")
    said = shell.type("why", "jbos/x")
    assert said.code == 2
    assert "did you mean" in said.err


def test_the_api_refusing_pods_of_a_part_is_said_of_the_whole() -> None:
    """A TrainJob is a JobSet is Jobs, and only those have pods."""

    async def story(world: World) -> None:
        owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "controller": True}
        await world.create(job_set(name="js"))
        above = {**owner, "name": "js", "uid": world.get(names.JOB_SET, "js")["metadata"]["uid"]}
        part = job("js-w-0", queue_name="", suspend=True)
        part["metadata"]["ownerReferences"] = [above]
        other = job("other", queue_name="", suspend=True)
        await world.create(part, other)
        for number, name in enumerate(("js-w-0", "other")):
            about = world.get(names.JOB, name)["metadata"]
            await world.create(
                {
                    "apiVersion": "v1",
                    "kind": "Event",
                    "metadata": {"name": f"e{number}", "namespace": "default"},
                    "type": "Warning",
                    "reason": "FailedCreate",
                    "message": f"Error creating: pods of {name}: exceeded quota",
                    "involvedObject": {
                        "apiVersion": "batch/v1",
                        "kind": "Job",
                        "namespace": "default",
                        "name": name,
                        "uid": about["uid"],
                    },
                }
            )
        _, words = await why(world, "js", names.JOB_SET)
        said = "FailedCreate: Job js-w-0: Error creating: pods of js-w-0: exceeded quota"
        assert said in " ".join(words.split())
        assert "pods of other" not in words

    play(story)


def pod_group(name: str) -> Json:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": 2},
    }


def test_a_name_alone_is_searched_among_all_kinds_of_jobs(shell: Shell) -> None:
    next_job = job("next", queue_name="", suspend=True)
    next_job["metadata"]["namespace"] = shell.namespace
    assert shell.type("apply", "-f", shell.file(next_job)).code == 0  # it may warn: it has no queue
    assert shell.type("why", "next").ok().startswith(f"Job {shell.namespace}/next is in no queue")
    shell.type("apply", "-f", shell.file(pod("next"))).ok()
    said = shell.type("why", "next")
    assert said.code == 1
    assert "several objects are called next: pod/next, job.batch/next; say which one" in said.err


def test_a_job_and_its_part_with_one_name_are_the_job(shell: Shell) -> None:
    whole = job("train", queue_name="", suspend=True)
    whole["metadata"]["namespace"] = shell.namespace
    assert shell.type("apply", "-f", shell.file(whole)).code == 0  # it may warn: it has no queue
    uid = shell.json("job", "train")["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": uid}
    shell.type(
        "apply", "-f", shell.file(pod("train", ownerReferences=[{**owner, "controller": True}]))
    ).ok()
    assert shell.type("why", "train").ok().startswith(f"Job {shell.namespace}/train")


def test_a_kind_of_several_groups_is_searched_in_all_of_them(shell: Shell) -> None:
    shell.type("apply", "-f", shell.file(pod_group("g1"))).ok()
    assert shell.type("why", "podgroup/g1").ok().startswith(f"PodGroup {shell.namespace}/g1")
    assert shell.type("why", "podgroups.scheduling.volcano.sh/g1").code == 1


def test_a_group_of_pods_is_found_by_that_name(shell: Shell) -> None:
    """Kueue's groups have no object but their Workload."""
    template = {key: pod("p")[key] for key in ("metadata", "spec")}
    workload = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": "g2"},
        "spec": {"podSets": [{"name": "main", "count": 1, "template": template}]},
    }
    shell.type("apply", "-f", shell.file(workload)).ok()
    said = shell.type("why", "podgroup/g2").ok()
    assert said.startswith(f"Workload {shell.namespace}/g2 ")


def test_queues_of_the_older_version_share_a_cohort() -> None:
    def cluster_queue(name: str) -> Json:
        group = {"flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": "2"}]}]}
        return {"metadata": {"name": name}, "spec": {"cohort": "all", "resourceGroups": [group]}}

    used = {"podSetAssignments": [{"resourceUsage": {"cpu": "3"}}], "clusterQueue": "b"}
    holder = {
        "metadata": {"name": "w", "namespace": "default"},
        "status": {"admission": used, "conditions": [{"type": "QuotaReserved", "status": "True"}]},
    }
    queues = [cluster_queue("a"), cluster_queue("b")]
    found = Found({}, {}, cluster_queue=queues[0], queues=queues, every=[holder])
    (use,) = around(found, [{"fact": "QuotaExhausted", "resource": "cpu"}]).values()
    assert (use["of"], use["used"], use["nominal"]) == ("cohort all", "3", "4")


def test_what_nothing_acts_on_is_said_to_be_stored_only() -> None:
    async def story(world: World) -> None:
        kind = Kind("monitoring.coreos.com/v1", "PodMonitor")
        monitor = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": "pods", "namespace": "default"},
            "spec": {},
        }
        stored = await world.client.create(monitor)
        found = answer(await gather(world.client, stored))
        assert found["state"] == "unsupported"
        words = text(found, world.clock.now())
        headline = "PodMonitor default/pods is stored, and nothing acts on it here."
        assert words.startswith(headline)
        assert "a Prometheus operator reads it" in words

    play(story)


def test_a_job_of_another_manager_is_left_alone() -> None:
    async def story(world: World) -> None:
        theirs = job("train")
        theirs["spec"]["managedBy"] = "acme.io/runner"
        await world.create(node("n1"), node("n2"), *queue(), theirs)
        await world.settle()
        assert not list(world.every(names.WORKLOAD))
        assert not world.get(names.JOB, "train")["spec"].get("suspend")
        found, words = await why(world, "train")
        assert found["state"] == "unsupported"
        assert "waits for acme.io/runner, which does not run here (spec.managedBy)" in words

    play(story)


def test_what_waits_for_admission_checks_names_them_and_their_controllers() -> None:
    def check(name: str) -> Json:
        api_version = "kueue.x-k8s.io/v1beta2"
        spec = {"controllerName": "example.com/budget"}
        metadata = {"name": name}
        return {
            "apiVersion": api_version,
            "kind": "AdmissionCheck",
            "metadata": metadata,
            "spec": spec,
        }

    async def story(world: World) -> None:
        made = queue()
        (cluster_queue,) = (one for one in made if one["kind"] == "ClusterQueue")
        cluster_queue["spec"]["admissionChecksStrategy"] = {"admissionChecks": [{"name": "money"}]}
        await world.create(check("money"), node("n1"), *made, job("train", pods=1))
        await world.settle()
        found, words = await why(world, "train")
        assert found["state"] == "checked"
        assert "admission check money is Pending (answered by example.com/budget)" in words
        assert "example.com/budget sets it to Ready; or take money out of ClusterQueue cq" in words
        assert words.endswith("estimate: unknown: admission checks have no end time\n")

    play(story)


def test_a_deployment_leads_to_the_workloads_of_its_pods() -> None:
    """Its pods are queued one by one; the first that waits is described in full."""

    async def story(world: World) -> None:
        await world.create(node("n1", gpus=8), *queue(gpus=2), _deployment("serve", replicas=3))
        await world.settle()
        found, words = await why(world, "serve", DEPLOYMENT)
        assert found["parts"]["states"] == {"waiting": 1, "running": 2}
        (waiting,) = (one for one in world.every(names.WORKLOAD) if state_of(one) == "waiting")
        assert found["workload"] == waiting["metadata"]["name"]
        shown = found["parts"]["shown"]
        assert words.startswith(
            "Deployment default/serve has 3 Workloads: 1 waiting, 2 running; this is about"
            f" {shown}."
        )
        assert "needs 1 nvidia.com/gpu" in words

    play(story)


def test_a_deployment_that_runs_says_so() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", gpus=8), *queue(gpus=8), _deployment("serve", replicas=2))
        await world.settle()
        found, words = await why(world, "serve", DEPLOYMENT)
        assert found["state"] == "running"
        assert words.startswith("Deployment default/serve has 2 Workloads: 2 running.")
        assert "no Workload" not in words

    play(story)


def _deployment(name: str, *, replicas: int) -> Json:
    container = {"name": "main", "image": "serve", "resources": {"limits": {GPU: "1"}}}
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "labels": {names.QUEUE_LABEL: "lq-cq"}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
