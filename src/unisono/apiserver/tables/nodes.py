"""Nodes: whether they are ready and take pods, their roles, addresses and versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.apiserver.tables.age import UNKNOWN
from unisono.apiserver.tables.printer import (
    AGE,
    NAME,
    NONE,
    Cell,
    Content,
    column,
    inside,
    joined,
    of,
    printer,
    wide,
)

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def _status(node: Mapping[str, Any], now: float) -> Content:
    words = ["Unknown"]
    for condition in inside(node, "status", "conditions") or ():
        if condition.get("type") == "Ready":
            words = ["Ready" if condition.get("status") == "True" else "NotReady"]
    if inside(node, "spec", "unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(node: Mapping[str, Any], now: float) -> Content:
    labels = node["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles.add(labels.get(_ROLE_LABEL, ""))
    return joined(sorted(roles - {""}))


def _address(kind: str) -> Cell:
    def cell(node: Mapping[str, Any], now: float) -> Content:
        for address in inside(node, "status", "addresses") or ():
            if address.get("type") == kind:
                return str(address.get("address", ""))
        return NONE

    return cell


def _kernel(node: Mapping[str, Any], now: float) -> Content:
    about = inside(node, "status", "nodeInfo") or {}
    kernel, architecture = about.get("kernelVersion") or UNKNOWN, about.get("architecture")
    return f"{kernel} ({architecture})" if architecture else kernel


NODES = printer(
    NAME,
    column("Status", _status, "Whether the node is ready, and whether it takes new pods."),
    column("Roles", _roles, "What the node is for, by its role labels."),
    AGE,
    column("Version", of("status", "nodeInfo", "kubeletVersion"), "The version of its agent."),
    wide("Internal-IP", _address("InternalIP"), "Its address inside the cluster."),
    wide("External-IP", _address("ExternalIP"), "Its address outside the cluster."),
    wide("OS-Image", of("status", "nodeInfo", "osImage", absent=UNKNOWN), "Its operating system."),
    wide("Kernel-Version", _kernel, "Its kernel and its processor architecture."),
    wide(
        "Container-Runtime",
        of("status", "nodeInfo", "containerRuntimeVersion", absent=UNKNOWN),
        "What runs its containers.",
    ),
)
