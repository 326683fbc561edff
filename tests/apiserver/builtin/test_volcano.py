"""Volcano's kinds as its webhook has them: defaults, and what depends on other objects."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.apiserver.surroundings import Around, created, served_as, strategy_of
from unisono.apiserver.objects import Json

JOBS = "batch.volcano.sh/jobs"
GROUPS = "scheduling.volcano.sh/podgroups"
QUEUES = "scheduling.volcano.sh/queues"
POD = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "x"}]}}


def job(task: Json | None = None, **spec: Any) -> Json:
    tasks = [{"replicas": 2, "template": deepcopy(POD), **(task or {})}]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"tasks": tasks, **spec},
    }


def queue(name: str = "q", state: str = "", **spec: Any) -> Json:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"state": state} if state else {},
    }


def around(*queues: Json) -> Around:
    made = Around()
    for one in (queue("default"), queue("root"), *queues):
        made.add(QUEUES, one)
    return made


def told(key: str, obj: Json, context: Around, old: Json | None = None) -> list[str]:
    causes = strategy_of(served_as(key)).check(obj, old, context)
    return [f"{cause.field}: {cause.message}" for cause in causes]


def test_a_job_is_filled_in() -> None:
    spec = created(JOBS, job(plugins={"mpi": []}))["spec"]
    (task,) = spec.pop("tasks")
    assert spec == {
        "queue": "default",
        "schedulerName": "volcano",
        "maxRetry": 3,
        "minAvailable": 2,
        "plugins": {"mpi": [], "svc": [], "ssh": []},
    }
    assert (task["name"], task["minAvailable"], task["maxRetry"]) == ("default0", 2, 3)


def test_what_is_said_is_kept() -> None:
    given = job({"name": "w", "minAvailable": 1}, minAvailable=2, maxRetry=7, queue="q")
    spec = created(JOBS, deepcopy(given))["spec"]
    assert (spec["minAvailable"], spec["maxRetry"], spec["queue"]) == (2, 7, "q")
    assert spec["tasks"][0]["minAvailable"] == 1


def test_parts_give_the_least_of_a_task() -> None:
    parts = {"totalPartitions": 3, "partitionSize": 2, "minPartitions": 2}
    spec = created(JOBS, job({"replicas": 6, "partitionPolicy": parts}))["spec"]
    assert (spec["tasks"][0]["minAvailable"], spec["minAvailable"]) == (4, 4)


@pytest.mark.parametrize(
    ("named", "queues", "said"),
    [
        ("default", [], ""),
        ("q", [], "unable to find job queue"),
        ("q", [queue()], ""),
        ("q", [queue(state="Open")], ""),
        ("q", [queue(state="Closed")], "can only submit job to queue with state `Open`"),
        ("q", [queue(state="Closing")], "can only submit job to queue with state `Open`"),
        ("root", [], "can not submit job to root queue"),
        ("q", [queue(), queue("child", parent="q")], "can only submit job to leaf queue"),
    ],
)
def test_a_job_needs_an_open_queue_that_is_a_leaf(
    named: str, queues: list[Json], said: str
) -> None:
    found = told(JOBS, created(JOBS, job(queue=named)), around(*queues))
    assert len(found) == bool(said)
    assert said in "".join(found)


def test_a_local_queue_stands_for_a_queue_of_volcano() -> None:
    context = around()
    context.add(
        "kueue.x-k8s.io/localqueues", {"metadata": {"name": "team", "namespace": "default"}}
    )
    assert told(JOBS, created(JOBS, job(queue="team")), context) == []
    labelled = job(queue="missing")
    labelled["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team"}
    assert told(JOBS, created(JOBS, labelled), context) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda spec: spec["tasks"][0].update(replicas=1, minAvailable=1), ""),
        (lambda spec: spec.update(minAvailable=1, priorityClassName="high"), ""),
        (lambda spec: spec.update(queue="default"), "job updates may not change fields other"),
        (lambda spec: spec["tasks"][0].update(name="other"), "job updates may not change"),
        (lambda spec: spec["tasks"].append(deepcopy(spec["tasks"][0])), "add or remove tasks"),
    ],
)
def test_only_numbers_of_a_job_change(change: Any, said: str) -> None:
    old = created(JOBS, job(queue="q", minAvailable=1))
    new = deepcopy(old)
    change(new["spec"])
    found = told(JOBS, new, around(queue()), old)
    assert any(said in one for one in found) == bool(said)
    assert bool(found) == bool(said)


def group(**spec: Any) -> Json:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"minMember": 1, **spec},
    }


def test_a_group_goes_where_its_namespace_says() -> None:
    context = around(queue())
    annotations = {"scheduling.volcano.sh/queue-name": "q"}
    context.add("/namespaces", {"metadata": {"name": "default", "annotations": annotations}})
    assert created(GROUPS, group(queue="default"), context)["spec"]["queue"] == "q"
    assert created(GROUPS, group(queue="own"), context)["spec"]["queue"] == "own"


def test_a_group_needs_an_open_queue() -> None:
    assert told(GROUPS, group(queue="q"), around(queue())) == []
    assert "unable to find queue" in told(GROUPS, group(queue="q"), around())[0]
    closed = told(GROUPS, group(queue="q"), around(queue(state="Closed")))
    assert "can only submit PodGroup to queue with state `Open`" in closed[0]


def test_a_hypernode_needs_members() -> None:
    node = {"type": "Node", "selector": {"exactMatch": {"name": "n1"}}}
    made: Json = {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "leaf"},
        "spec": {"tier": 1, "members": [node]},
    }
    key = "topology.volcano.sh/hypernodes"
    assert told(key, made, around()) == []
    empty = {**made, "spec": {"tier": 1, "members": []}}
    assert told(key, empty, around()) == [
        "spec.members: Required value: member must have at least one member"
    ]


def test_a_queue_is_filled_in() -> None:
    assert created(QUEUES, queue())["spec"] == {"reclaimable": True, "weight": 1}
    named = queue(weight=3, reclaimable=False)
    named["metadata"]["annotations"] = {
        "volcano.sh/hierarchy": "eng/dev",
        "volcano.sh/hierarchy-weights": "2/8",
    }
    made = created(QUEUES, named)
    assert made["spec"] == {"reclaimable": False, "weight": 3}
    assert list(made["metadata"]["annotations"].values()) == ["root/eng/dev", "1/2/8"]
    assert created(QUEUES, deepcopy(made)) == made


@pytest.mark.parametrize(
    ("made", "queues", "said"),
    [
        (queue(parent="org"), [], 'there is no queue "org"'),
        (queue(parent="org"), [queue("org")], ""),
        (queue("org", parent="q"), [queue(parent="org"), queue("org")], "a circle"),
        (
            queue(parent="org", capability={"cpu": "9"}),
            [queue("org", capability={"cpu": "8"})],
            "more than the capability of queue org",
        ),
        (
            queue("org", capability={"cpu": "8"}),
            [queue("org"), queue(parent="org", capability={"cpu": "9"})],
            "more than the capability of queue org",
        ),
        (
            queue(parent="org", deserved={"cpu": "3"}),
            [queue("org", deserved={"cpu": "4"}), queue("o", parent="org", deserved={"cpu": "2"})],
            "the deserved of queue org's children adds up to more cpu than its own",
        ),
        (
            queue("org", deserved={"cpu": "1"}),
            [queue("org", deserved={"cpu": "4"}), queue("o", parent="org", deserved={"cpu": "2"})],
            "its deserved is 1",
        ),
        (
            queue(parent="e"),
            [
                queue("a"),
                *(queue(name, parent=above) for name, above in ("ba", "cb", "dc", "ed")),
            ],
            "makes 6 levels",
        ),
    ],
)
def test_a_queue_fits_into_the_tree(made: Json, queues: list[Json], said: str) -> None:
    context = around(*queues)
    stored = context.find(QUEUES, "", made["metadata"]["name"])
    old = dict(stored) if stored is not None else None
    found = told(QUEUES, created(QUEUES, made), context, old)
    assert bool(found) == bool(said)
    assert said in "".join(found)


@pytest.mark.parametrize(
    ("name", "queues", "said"),
    [
        ("default", [], "can not be deleted"),
        ("root", [], "can not be deleted"),
        ("q", [queue()], ""),
        ("q", [queue(), queue("child", parent="q")], "because it has child queues: child"),
        (
            "q",
            [{**queue(), "status": {"allocated": {"pods": "2"}}}],
            "because it has allocated Pods: 2",
        ),
    ],
)
def test_queues_that_are_needed_stay(name: str, queues: list[Json], said: str) -> None:
    context = around(*queues)
    found = context.find(QUEUES, "", name)
    assert found is not None
    why = strategy_of(served_as(QUEUES)).refuse_deletion(found, context)
    assert said in why
    assert bool(said) == bool(why)
