"""Nodes and namespaces."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from tests.apiserver.surroundings import created, refusals

Json = dict[str, Any]
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def node(**fields: Any) -> Json:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, **fields}


def test_a_new_node_is_tainted_as_not_ready() -> None:
    other = {"key": "a", "effect": "NoExecute"}
    made = created("/nodes", node(spec={"taints": [other]}))
    assert made["spec"]["taints"] == [other, NOT_READY]
    assert created("/nodes", node(spec={"taints": [NOT_READY]}))["spec"]["taints"] == [NOT_READY]


def test_a_node_gives_what_it_has() -> None:
    made = created("/nodes", node(status={"capacity": {"cpu": "4"}}))
    assert made["status"]["allocatable"] == {"cpu": "4"}
    assert made["status"]["nodeInfo"]["kubeletVersion"] == ""


def test_what_a_node_cannot_be() -> None:
    assert refusals("/nodes", node(status={"capacity": {"cpu": "-4"}})) == [
        ("Invalid", "status.allocatable[cpu]"),
        ("Invalid", "status.capacity[cpu]"),
    ]
    taint = {"key": "b", "effect": "NoSchedule"}
    assert refusals("/nodes", node(spec={"taints": [taint, taint]})) == [
        ("Duplicate", "spec.taints[1]")
    ]


def test_a_node_keeps_its_machine() -> None:
    old = created("/nodes", node(spec={"providerID": "a"}))
    new = deepcopy(old)
    new["spec"]["unschedulable"] = True
    assert refusals("/nodes", new, old) == []
    new["spec"]["providerID"] = "b"
    assert refusals("/nodes", new, old) == [("Forbidden", "spec.providerID")]


def namespace(**fields: Any) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "t"}, **fields}


def test_a_namespace_has_its_name_as_label_and_is_active() -> None:
    made = created("/namespaces", namespace(status={"phase": "Terminating"}))
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "t"}
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    assert made["status"] == {"phase": "Active"}


def test_finalizers_of_a_namespace_stay() -> None:
    old = created("/namespaces", namespace(spec={"finalizers": ["a.b/c"]}))
    assert old["spec"]["finalizers"] == ["a.b/c", "kubernetes"]
    new = deepcopy(old)
    new["spec"]["finalizers"] = []
    assert refusals("/namespaces", new, old) == []
    assert new["spec"]["finalizers"] == ["a.b/c", "kubernetes"]
