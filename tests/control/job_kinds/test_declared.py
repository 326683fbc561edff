"""Kinds of jobs by declaration: the example of the manual, and what can go wrong (WorkloadKind)."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.control.stories import gpu_node, phases, queue_of, told
from tests.support.control_world import World
from unisono.cli.why.answer import answer
from unisono.cli.why.read import gather
from unisono.control.names import POD, WORKLOAD, WORKLOAD_KIND
from unisono.kube.errors import Invalid
from unisono.kube.form import Json
from unisono.kube.mapping import Kind

EXAMPLE = Path(__file__).parents[3] / "examples" / "workload-kind"
RUN = Kind("example.com/v1", "TrainingRun")


def read(name: str) -> Json:
    """Return an object of the example."""
    found = yaml.safe_load((EXAMPLE / f"{name}.yaml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def declared(**spec: Any) -> Json:
    """Return the declaration of the example, with some fields changed."""
    made = read("workload-kind")
    made["spec"] |= spec
    return made


def training_run(name: str = "bert", **changes: Any) -> Json:
    """Return a run in the queue of the stories."""
    made = read("run")
    made["metadata"] |= {"name": name, "namespace": "default"}
    made["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "lq-cq"}
    made["spec"] |= changes
    return made


async def operate(world: World, name: str = "bert") -> None:
    """Do what the controller of the kind would do: make pods of a run that is not suspended."""
    run = world.get(RUN, name)
    if run["spec"].get("suspend"):
        return
    wanted = [("driver", 1, run["spec"]["driver"]["template"])]
    wanted += [
        (one["name"], one.get("replicas", 1), one["template"]) for one in run["spec"]["groups"]
    ]
    owner = {
        "apiVersion": run["apiVersion"],
        "kind": run["kind"],
        "name": name,
        "uid": run["metadata"]["uid"],
        "controller": True,
    }
    for part, count, template in wanted:
        for index in range(count):
            metadata = copy.deepcopy(template.get("metadata") or {})
            metadata |= {"name": f"{name}-{part}-{index}", "namespace": "default"}
            metadata["ownerReferences"] = [owner]
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
            await world.client.create(pod | {"spec": copy.deepcopy(template["spec"])})
    await world.settle()


def ready(world: World, name: str = "trainingruns.example.com") -> tuple[str, str]:
    """Return status and reason of a declaration's condition."""
    (one,) = world.get(WORKLOAD_KIND, name)["status"]["conditions"]
    return one["status"], one["reason"]


def test_a_kind_of_your_own_joins_by_twenty_lines() -> None:
    text = (EXAMPLE / "workload-kind.yaml").read_text(encoding="utf-8").splitlines()
    assert sum(not line.startswith("#") for line in text) <= 20

    async def story(world: World) -> None:
        await world.create(read("definition"), read("workload-kind"))
        await world.settle()
        assert ready(world) == ("True", "Queued")
        await world.create(*queue_of(8), gpu_node("n1", 8), training_run(), training_run("next"))
        await world.settle()
        assert world.get(RUN, "bert")["spec"]["suspend"] is False
        assert world.get(RUN, "next")["spec"]["suspend"] is True
        why = answer(await gather(world.client, world.get(RUN, "next")))
        assert (why["state"], why["queue"]) == ("waiting", "lq-cq")
        assert "nvidia.com/gpu" in why["message"]
        assert {one["podSet"]: one["pods"] for one in why["asks"]} == {"driver": 1, "workers": 2}
        await operate(world)
        assert set(phases(world).values()) == {"Running"}
        assert len(phases(world)) == 3
        (first,) = (one for one in world.every(WORKLOAD) if "bert" in one["metadata"]["name"])
        (is_ready,) = (one for one in first["status"]["conditions"] if one["type"] == "PodsReady")
        assert (is_ready["status"], is_ready["reason"]) == ("True", "Started")
        for pod in world.every(POD):
            await world.client.delete(POD, pod["metadata"]["name"], "default", grace_s=0)
        done = {"phase": "Succeeded", "message": "loss 0.1"}
        await world.set_status(RUN, "bert", done)
        await world.settle()
        ended = world.get(WORKLOAD, first["metadata"]["name"])["status"]["conditions"]
        (finished,) = (one for one in ended if one["type"] == "Finished")
        assert (finished["reason"], finished["message"]) == ("Succeeded", "loss 0.1")
        assert world.get(RUN, "next")["spec"]["suspend"] is False

    told(story)


def test_an_evicted_one_is_held_back_and_gets_its_templates_back() -> None:
    async def story(world: World) -> None:
        await world.create(read("definition"), read("workload-kind"))
        await world.settle()
        await world.create(*queue_of(8), gpu_node("n1", 8), training_run())
        await world.settle()
        template = world.get(RUN, "bert")["spec"]["groups"][0]["template"]
        assert template["metadata"]["annotations"]["kueue.x-k8s.io/workload"]
        (workload,) = world.every(WORKLOAD)
        name = workload["metadata"]["name"]
        await world.client.patch(WORKLOAD, name, "default", {"spec": {"active": False}})
        await world.settle()
        run = world.get(RUN, "bert")
        assert run["spec"]["suspend"] is True
        groups = copy.deepcopy(run["spec"]["groups"])
        groups[0]["template"].pop("metadata", None)
        assert groups == read("run")["spec"]["groups"]
        await world.client.delete(RUN, "bert", "default")
        await world.settle()
        assert world.every(WORKLOAD) == []

    told(story)


def test_a_restarted_controller_knows_the_declared_kinds_again() -> None:
    async def story(world: World) -> None:
        await world.create(read("definition"), read("workload-kind"))
        await world.create(*queue_of(8), gpu_node("n1", 8), training_run())
        await world.settle()
        world.restart()
        await world.create(training_run("next"))
        await world.settle()
        assert world.get(RUN, "next")["spec"]["suspend"] is True
        assert len(world.every(WORKLOAD)) == 2

    told(story)


def test_an_object_is_held_back_in_the_very_write_that_makes_it() -> None:
    async def story(world: World) -> None:
        await world.create(read("definition"), read("workload-kind"), *queue_of(8))
        made = await world.client.create(training_run())
        assert made["spec"]["suspend"] is True
        free = training_run("free")
        free["metadata"]["labels"] = {}
        made = await world.client.create(free)
        assert "suspend" not in made["spec"]

    told(story)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"groups": [{"name": "w", "replicas": -1, "template": {"spec": {}}}]}, "counted from 0"),
        ({"groups": [{"name": "w", "replicas": "x", "template": {"spec": {}}}]}, "says x"),
        ({"groups": [{"name": "w", "replicas": 1}]}, "no pod template at .spec.groups[0].template"),
        ({"groups": [{"name": "A b", "template": {"spec": {}}}]}, "is no name"),
        ({"groups": "many"}, "neither a list nor a map"),
        (
            {"groups": [{"name": "w", "template": {"spec": {"containers": 3}}}]},
            "containers: must be a list",
        ),
    ],
)
def test_an_object_that_the_declaration_does_not_fit_stops_alone(
    changes: Json, message: str
) -> None:
    async def story(world: World) -> None:
        await world.create(read("definition"), read("workload-kind"))
        await world.settle()
        await world.create(*queue_of(8), gpu_node("n1", 8), training_run("bad", **changes))
        await world.create(training_run())
        await world.settle()
        assert world.get(RUN, "bad")["spec"]["suspend"] is True
        assert world.get(RUN, "bert")["spec"]["suspend"] is False
        (note,) = {one.message for one in world.notes if one.reason == "InvalidJob"}
        assert message in note, note

    told(story)


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"suspend": "spec.suspend"}, "spec.suspend", "does not go from field to field"),
        ({"suspend": ".spec.items[*].suspend"}, "spec.suspend", "does not go from field to field"),
        ({"succeeded": "self.status.phase ="}, "spec.succeeded", "="),
        ({"succeeded": "status.phase == 'x'"}, "spec.succeeded", "there is no variable status"),
        ({"ready": "quantity('1')"}, "spec.ready", "there is no function quantity"),
        ({"ready": ".status[?("}, "spec.ready", "cannot read"),
        ({"podSets": [{"template": ""}]}, "spec.podSets[0].template", "is required"),
        ({"apiVersion": "v1"}, "spec.apiVersion", "needs a group and a version"),
    ],
)
def test_mistakes_are_told_when_it_is_written(spec: Json, field: str, message: str) -> None:
    async def story(world: World) -> None:
        with pytest.raises(Invalid) as refused:
            await world.client.create(declared(**spec))
        assert field in str(refused.value)
        assert message in str(refused.value)

    told(story)


def test_of_two_declarations_of_a_kind_the_first_counts() -> None:
    async def story(world: World) -> None:
        await world.create(read("definition"), read("workload-kind"))
        second = read("workload-kind")
        second["metadata"]["name"] = "second"
        await world.create(second)
        third = declared(apiVersion="batch/v1", kind="Job")
        third["metadata"]["name"] = "third"
        await world.create(third)
        await world.settle()
        assert ready(world) == ("True", "Queued")
        assert ready(world, "second") == ready(world, "third") == ("False", "Conflict")
        await world.client.delete(WORKLOAD_KIND, "trainingruns.example.com", "")
        await world.settle()
        assert ready(world, "second") == ("True", "Queued")
        await world.create(*queue_of(8), gpu_node("n1", 8), training_run())
        await world.settle()
        assert world.get(RUN, "bert")["spec"]["suspend"] is False
        assert len(world.every(WORKLOAD)) == 1

    told(story)


def test_a_kind_may_be_declared_before_it_is_defined() -> None:
    async def story(world: World) -> None:
        await world.create(read("workload-kind"), *queue_of(8), gpu_node("n1", 8))
        await world.settle()
        await world.create(read("definition"), training_run())
        await world.settle()
        assert len(world.every(WORKLOAD)) == 1

    told(story)
