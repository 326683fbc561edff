"""Nodes as placement sees them."""

from __future__ import annotations

import pytest

from tests.support.manifests import problems, read, sound
from unisono.engine.model.names import CPU, NodeName, ResourceName
from unisono.engine.model.node import Node
from unisono.engine.model.selection import Taint
from unisono.kinds.core.nodes import node_of


def node(meta: str = "", spec: str = "", status: str = "") -> str:
    return (
        f"apiVersion: v1\nkind: Node\nmetadata: {{name: n0{meta}}}\n"
        f"spec: {{{spec}}}\nstatus: {{{status}}}\n"
    )


def made(meta: str = "", spec: str = "", status: str = "") -> Node:
    return node_of(read(node(meta, spec, status)), {})


def conditions(**statuses: str) -> str:
    listed = ", ".join(f"{{type: {type_}, status: '{it}'}}" for type_, it in statuses.items())
    return f"conditions: [{listed}]"


def taints(**statuses: str) -> list[str]:
    return [
        f"{taint.key.removeprefix('node.kubernetes.io/')}:{taint.effect}"
        for taint in made(status=conditions(**statuses)).taints
    ]


def test_everything_arrives() -> None:
    found = made(
        ", labels: {b: '2', a: '1'}",
        "taints: [{key: k, value: v, effect: NoExecute}]",
        "allocatable: {cpu: 3920m, memory: 1Ki, nvidia.com/gpu: 8}, capacity: {cpu: 4}",
    )
    assert found == Node(
        name=NodeName("n0"),
        labels=(("a", "1"), ("b", "2")),
        taints=(Taint("k", "v", "NoExecute"),),
        allocatable=((CPU, 3920), (ResourceName("memory"), 1024), (_gpu(), 8)),
    )


def _gpu() -> ResourceName:
    return ResourceName("nvidia.com/gpu")


def test_a_bare_node_is_ready_and_has_what_its_capacity_says() -> None:
    assert made() == Node(name=NodeName("n0"))
    assert made(status="capacity: {cpu: 4}").allocatable == ((CPU, 4000),)


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ({"Ready": "True", "MemoryPressure": "False"}, []),
        ({"Ready": "False"}, ["not-ready:NoSchedule"]),
        ({"Ready": "Unknown"}, ["unreachable:NoSchedule"]),
        ({"MemoryPressure": "True"}, ["memory-pressure:NoSchedule"]),
        ({"DiskPressure": "True"}, ["disk-pressure:NoSchedule"]),
        ({"PIDPressure": "True"}, ["pid-pressure:NoSchedule"]),
        ({"NetworkUnavailable": "True"}, ["network-unavailable:NoSchedule"]),
        ({"MemoryPressure": "Unknown", "Other": "True"}, []),
    ],
)
def test_conditions_become_taints(statuses: dict[str, str], expected: list[str]) -> None:
    assert taints(**statuses) == expected


def test_a_taint_that_is_there_already_is_not_added() -> None:
    written = "taints: [{key: node.kubernetes.io/not-ready, effect: NoSchedule}]"
    assert len(made(spec=written, status=conditions(Ready="False")).taints) == 1
    other = written.replace("NoSchedule", "NoExecute")
    assert len(made(spec=other, status=conditions(Ready="False")).taints) == 2


def test_a_cordoned_node() -> None:
    found = made(spec="unschedulable: true")
    assert found.unschedulable
    assert found.ready
    assert found.taints == (Taint("node.kubernetes.io/unschedulable"),)


@pytest.mark.parametrize(
    ("found", "ready"),
    [
        (made(status=conditions(Ready="True")), True),
        (made(status=conditions(MemoryPressure="True")), True),
        (made(status=conditions(Ready="False")), False),
        (made(status=conditions(Ready="Unknown")), False),
        (made(", deletionTimestamp: '2026-01-01T00:00:00Z'"), False),
        (made(spec="taints: [{key: karpenter.sh/unregistered, effect: NoExecute}]"), False),
    ],
)
def test_ready(found: Node, ready: bool) -> None:
    assert found.ready is ready


def test_a_snapshot_has_nodes_in_document_order() -> None:
    found = sound(node().replace("n0", "n9"), node()).snapshot
    assert [one.name for one in found.nodes] == ["n9", "n0"]


def test_faults() -> None:
    assert problems(node(status="allocatable: {cpu: -1}")) == [
        ("status.allocatable[cpu]", "is -1; it must not be negative")
    ]
    assert problems(node(spec="taints: [{key: a}]")) == [("spec.taints[0].effect", "is required")]
