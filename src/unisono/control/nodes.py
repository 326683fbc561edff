"""Nodes: taints that follow from readiness on an embedded cluster, and which nodes are usable.

A new node carries the taint `not-ready`, as on any Kubernetes, until it says that it is ready; a
node that stops being ready gets it back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from unisono.control import names
from unisono.control.actions import Json, Patch, Ref, Steps
from unisono.control.conditions import find
from unisono.control.controller import own_key
from unisono.control.view import View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

_NOT_READY = "node.kubernetes.io/not-ready"
_UNREACHABLE = "node.kubernetes.io/unreachable"


class ReadinessTaints:
    """Keeps taints in step with readiness."""

    name = "nodes"
    watches: Sequence[Kind] = (names.NODE,)

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A node."""
        return (own_key(obj),)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Set or take the taints that readiness means."""
        node = view.get(names.NODE, key.name)
        if node is None or "deletionTimestamp" in node["metadata"]:
            return
        taints = node["spec"].get("taints") or []
        wanted = _wanted(node)
        kept = [one for one in taints if one["key"] not in (_NOT_READY, _UNREACHABLE)]
        for key_ in wanted:
            kept += [{"key": key_, "effect": "NoSchedule"}, {"key": key_, "effect": "NoExecute"}]
        if _plain(kept) != _plain(taints):
            yield Patch(Ref.to(node), {"spec": {"taints": kept or None}})


def _wanted(node: Json) -> tuple[str, ...]:
    ready = find((node.get("status") or {}).get("conditions"), "Ready")
    if ready is None or ready["status"] == "True":
        return ()
    return (_UNREACHABLE,) if ready["status"] == "Unknown" else (_NOT_READY,)


def _plain(taints: Sequence[Json]) -> list[tuple[str, str]]:
    return sorted((one["key"], one["effect"]) for one in taints)


# ---- usable nodes --------------------------------------------------------------------------------
#
# Whether pods may come to a node: what placement, repair and health all ask.


def is_usable(node: Json) -> bool:
    """Say whether new pods may come to a node: it is ready and not cordoned or quarantined."""
    spec = node.get("spec") or {}
    if "deletionTimestamp" in node["metadata"] or spec.get("unschedulable"):
        return False
    if any(taint["key"] == names.QUARANTINE for taint in spec.get("taints") or ()):
        return False
    return is_ready(node)


def is_ready(node: Json) -> bool:
    """Say whether a node is ready, or has no condition Ready yet."""
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
