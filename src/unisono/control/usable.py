"""Whether pods may come to a node: what placement, repair and health all ask."""

from __future__ import annotations

from collections.abc import Callable

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.conditions import find
from unisono.control.view import View


def is_usable(node: Json) -> bool:
    """Say whether new pods may come to a node: it is ready, and nobody closed it."""
    spec = node.get("spec") or {}
    if "deletionTimestamp" in node["metadata"] or spec.get("unschedulable"):
        return False
    if any(taint["key"] == names.QUARANTINE for taint in spec.get("taints") or ()):
        return False
    return is_ready(node)


def is_ready(node: Json) -> bool:
    """Say whether a node is ready, or nobody said anything about it."""
    ready = find((node.get("status") or {}).get("conditions"), "Ready")
    return ready is None or ready["status"] == "True"


def node_name(host: str, view: View) -> str:
    """Return the node of a host name; assignments know nodes by that."""
    if view.get(names.NODE, host) is not None:
        return host
    found = view.by(names.NODE, "hostname", host)
    return found[0]["metadata"]["name"] if found else host


def host_names(view: View) -> Callable[[str], str]:
    """Return what tells the host name of a node."""

    def host(node: str) -> str:
        found = view.get(names.NODE, node)
        labels = (found["metadata"].get("labels") or {}) if found is not None else {}
        return str(labels.get(names.HOSTNAME, node))

    return host


def is_host_usable(host: str, view: View) -> bool:
    """Say whether new pods may come to a host."""
    node = view.get(names.NODE, node_name(host, view))
    return node is not None and is_usable(node)
