"""Whatever stands in a manifest, the answer is a list of problems or a gang, never an exception."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import (
    test_batch,
    test_coscheduling,
    test_jobset,
    test_kubeflow,
    test_ray,
    test_scheduling,
)
from tests.kinds.core import test_nodes as test_core_nodes
from tests.kinds.core import test_pod_groups, test_schema
from tests.kinds.snapshot import test_node_assignment as assigned
from tests.kinds.trainer import test_kinds
from tests.kinds.volcano import test_groups, test_queues
from tests.kinds.volcano import test_jobs as test_volcano
from tests.support.manifests import documents, job, world

NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: first}\n"

MANIFESTS = {
    "Job": test_batch.TRAINING_JOB,
    "JobSet": test_jobset.JOB_SET,
    "PyTorchJob": test_kubeflow.manifest(
        "PyTorchJob", "pytorchReplicaSpecs", test_kubeflow.replica("Worker", 1, 2)
    ),
    "RayCluster": test_ray.CLUSTER,
    "RayJob": test_ray.JOB,
    "VolcanoJob": test_volcano.HOROVOD,
    "TrainJob": test_kinds.T5_LARGE,
    "Pod": test_schema.FULL_POD,
    "PodOfGroup": test_pod_groups.pod("a"),
}

junk = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        2**70,
        1.5,
        "",
        "x",
        "-1",
        "1e99",
        [],
        [None],
        ["x"],
        {},
        {"x": "y"},
        {"": 0},
    ]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of everything below a document's apiVersion and kind."""
    found: list[tuple[Any, ...]] = []
    pairs: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = list(enumerate(value))
    for key, item in pairs:
        if path or key not in ("apiVersion", "kind"):
            found.append((*path, key))
            found.extend(places(item, (*path, key)))
    return found


def changed(raw: Any, path: tuple[Any, ...], value: Any) -> Any:
    result = copy.deepcopy(raw)
    at = result
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return result


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_samples_are_without_fault(name: str) -> None:
    assert job(MANIFESTS[name]).problems == []


@pytest.mark.parametrize("name", MANIFESTS)
# A moment for each kind, the first time a longer one; the differences are between the kinds.
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_one_thing_is_wrong(name: str, data: st.DataObject) -> None:
    (raw,) = documents(MANIFESTS[name])
    broken = raw
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places(broken)))
        broken = changed(broken, path, data.draw(junk))

    made = job(json.dumps(broken))
    assert all(path and message for path, message in made.problems)
    assert all(one.count > 0 for one in made.pod_sets)


# ---- whole worlds --------------------------------------------------------------------------------

GANGS = {
    "coscheduling": (test_coscheduling.group(), test_coscheduling.pods(2)),
    "volcano": (
        test_groups.CLUSTER,
        test_groups.group(
            "minMember: 3, minTaskMember: {w: 2}, priorityClassName: x, minResources: {cpu: 1},"
            f" networkTopology: {{mode: hard, highestTierAllowed: 2}}, {test_groups.BLOCKS}"
        ),
        test_groups.pods("w", 4, labels="role: w, shard: x"),
        test_queues.queue("capability: {cpu: 4}, deserved: {cpu: 2}, weight: 2"),
    ),
    "upstream": (
        test_scheduling.group(more=", schedulingConstraints: {topology: [{key: rack}]}"),
        test_scheduling.pods(5),
        test_scheduling.OLD,
        test_scheduling.member("z", "workers", "0"),
    ),
    "composite": (
        test_scheduling.composite(),
        *test_scheduling.PREFILL,
        *test_scheduling.DECODE,
    ),
    "seats": (
        assigned.QUEUE,
        assigned.JOB,
        assigned.workload(assigned.SLICES),
        assigned.pod("p0", "n0", meta=assigned.OF_JOB),
        assigned.pod("p1", "n0", meta=assigned.OF_WORKLOAD),
        test_schema.FULL_POD,
        test_core_nodes.node(", labels: {a: b}", "unschedulable: true", "allocatable: {cpu: 4}"),
    ),
}


@pytest.mark.parametrize("name", GANGS)
def test_the_worlds_are_without_fault(name: str) -> None:
    made = world(NODE, *GANGS[name])
    assert made.problems == ()
    assert made.snapshot.waiting or made.snapshot.admitted_workloads


@pytest.mark.parametrize("name", GANGS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_one_thing_is_wrong_in_a_world(name: str, data: st.DataObject) -> None:
    raws = [raw for text in GANGS[name] for raw in documents(text)]
    for _ in range(data.draw(st.integers(1, 3))):
        index = data.draw(st.integers(0, len(raws) - 1))
        path = data.draw(st.sampled_from(places(raws[index])))
        raws[index] = changed(raws[index], path, data.draw(junk))

    made = world(NODE, *(json.dumps(raw) for raw in raws))
    assert all(one.message for one in made.problems)
    if not made.problems:
        workloads = [
            *made.snapshot.waiting,
            *(one.workload for one in made.snapshot.admitted_workloads),
        ]
        assert len({one.uid for one in workloads}) == len(workloads)
        assert len({one.key for one in workloads}) == len(workloads)
        for one in workloads:
            # As in Kueue, the pod sets of a Workload may have no pods now.
            assert one.pod_sets or _is_of_no_pods(raws, one.uid)
            assert len({pod_set.name for pod_set in one.pod_sets}) == len(one.pod_sets)
            pods = sum(pod_set.count for pod_set in one.pod_sets)
            assert one.min_total is None or 0 < one.min_total < pods


def _is_of_no_pods(raws: list[Any], uid: str) -> bool:
    """Say whether the Workload of a uid, or of a name without one, has pod sets of count 0 only."""
    return any(
        raw.get("kind") == "Workload"
        and {one.get("count") for one in raw["spec"].get("podSets") or ()} == {0}
        for raw in raws
        if (raw.get("metadata") or {}).get("uid") in (uid, None, "")
    )


def test_a_workload_may_have_pod_sets_of_no_pods() -> None:
    raws = [raw for text in GANGS["seats"] for raw in documents(text)]
    for raw in raws:
        if raw["kind"] == "Workload":
            for pod_set in raw["spec"]["podSets"]:
                pod_set["count"] = 0
    made = world(NODE, *(json.dumps(raw) for raw in raws))
    assert not made.problems
    (found,) = (one for one in made.snapshot.admitted_workloads if not one.workload.pod_sets)
    assert found.admission.pod_sets == ()
