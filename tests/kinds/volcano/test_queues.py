"""Volcano's queues as cluster queues."""

from __future__ import annotations

import pytest

from tests.support.manifests import only, problems, sound, warnings
from unisono.engine.model.names import CPU, QueueName, ResourceName
from unisono.engine.model.queue import (
    ClusterQueue,
    FlavorQuota,
    PreemptionRules,
    ResourceGroup,
    ResourceQuota,
)
from unisono.engine.model.selection import LabelSelector
from unisono.kinds.volcano.queue_quota import quota_of
from unisono.kinds.volcano.queues import ANY_NODE

GPU = ResourceName("nvidia.com/gpu")


def queue(spec: str = "", status: str = "", name: str = "research") -> str:
    return (
        f"apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {{name: {name}}}\n"
        f"spec: {{{spec}}}\nstatus: {{{status}}}\n"
    )


def made(spec: str = "", status: str = "") -> ClusterQueue:
    (found,) = quota_of([only(queue(spec, status))]).queues
    return found


def test_what_is_capped_becomes_quota() -> None:
    assert made("capability: {nvidia.com/gpu: 16, cpu: 500m}") == ClusterQueue(
        name=QueueName("volcano/research"),
        groups=(
            ResourceGroup(
                covered=(CPU, GPU),
                flavors=(
                    FlavorQuota(
                        ANY_NODE.name,
                        (
                            ResourceQuota(resource=CPU, nominal=500),
                            ResourceQuota(resource=GPU, nominal=16),
                        ),
                    ),
                ),
            ),
        ),
        namespace_selector=LabelSelector(),
        preemption=PreemptionRules(
            within_queue="LowerPriority", victims_have=("volcano.sh/preemptable", "true")
        ),
        unlimited=True,
    )


def test_without_a_capability_there_is_no_limit() -> None:
    assert made().groups == ()
    assert made().unlimited


def test_the_rest_that_has_a_meaning() -> None:
    assert made("dequeueStrategy: fifo").strategy == "StrictFIFO"
    assert made("dequeueStrategy: traverse").strategy == made().strategy == "BestEffortFIFO"
    assert made("weight: 4").weight_milli == 4000
    assert [made("", f"state: {state}").stop for state in ("Open", "Closed", "Closing")] == [
        "None",
        "Hold",
        "Hold",
    ]


def test_a_snapshot_has_them_with_the_flavor_they_count_in() -> None:
    found = sound(queue("capability: {cpu: 1}"), queue(name="free")).snapshot
    assert [one.name for one in found.queues] == ["volcano/research", "volcano/free"]
    assert found.flavors == (ANY_NODE,)
    assert sound(queue()).snapshot.flavors == ()
    assert found.local_queues == ()


@pytest.mark.parametrize(
    ("spec", "path", "message"),
    [
        ("weight: 0", "weight", "is 0; it must be at least 1"),
        ("weight: 70000", "weight", "is 70000; it must be at most 65535"),
        ("capability: {cpu: -1}", "capability[cpu]", "is -1; it must not be negative"),
        (
            "capability: {cpu: 1}, deserved: {cpu: 2}",
            "deserved[cpu]",
            "is 2; it must be <= capability, which is 1",
        ),
        (
            "deserved: {cpu: 2}, guarantee: {resource: {cpu: 3}}",
            "deserved[cpu]",
            "is 2; it must be >= guarantee, which is 3",
        ),
        ("parent: research", "parent", "is the queue itself"),
        ("dequeueStrategy: lifo", "dequeueStrategy", "must be one of"),
        ("weigth: 3", "weigth", 'unknown field; did you mean "weight"?'),
    ],
)
def test_faults(spec: str, path: str, message: str) -> None:
    ((found, said),) = problems(queue(spec))
    assert found == f"spec.{path}"
    assert said.startswith(message)


def test_what_has_no_effect_is_said() -> None:
    spec = (
        "deserved: {cpu: 1}, guarantee: {resource: {cpu: 1}}, parent: org, priority: 3,"
        " affinity: {nodeGroupAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [a]}}"
    )
    assert [path for _, path in warnings(queue(spec))] == [
        "spec.priority",
        "spec.affinity",
    ]
    assert warnings(queue("parent: root, weight: 2, capability: {cpu: 1}")) == []


@pytest.mark.parametrize(
    ("path", "weights", "said"),
    [
        ("root/a", "1/2", ""),
        ("root/a", "", "is denied without volcano.sh/hierarchy-weights"),
        ("", "1/2", "is denied without volcano.sh/hierarchy"),
        ("root/a", "1/2/3", "must have the same length"),
        ("root/a", "1/-1", "must be larger than 0"),
        ("root/a", "1/x", "is invalid number"),
        ("root/a", "1/nan", "is invalid number"),
    ],
)
def test_annotations_of_the_older_hierarchy(path: str, weights: str, said: str) -> None:
    annotations = f"volcano.sh/hierarchy: '{path}', volcano.sh/hierarchy-weights: '{weights}'"
    named = f"metadata: {{annotations: {{{annotations}}}, name:"
    found = problems(queue().replace("metadata: {name:", named))
    assert len(found) == bool(said)
    assert all(said in message for _, message in found)
