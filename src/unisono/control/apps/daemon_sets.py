"""Keeps one pod on every node that its template accepts: DaemonSets.

A pod names its node by a rule on `metadata.name`, as Kubernetes' does, so it is scheduled as any
other: it counts on its node, and waits if that is full. A DaemonSet is in no queue: how many pods
it has is up to the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from unisono.control import names
from unisono.control.actions import Again, Create, Delete, Json, Note, Patch, Ref, Steps, Together
from unisono.control.apps import CONTROLLER_REVISION, DAEMON_SET
from unisono.control.apps.adoption import adopt
from unisono.control.apps.members import (
    available_at,
    is_available,
    is_its_own,
    released,
    share_of,
)
from unisono.control.apps.revisions import HASH, current, forget_old, revision_of, template_of
from unisono.control.controller import Reads, own_key, owner_key
from unisono.control.jobs.pods import (
    AT_ONCE,
    is_deleting,
    is_ready,
    is_terminal,
    pod_from,
    pod_name,
)
from unisono.control.view import View
from unisono.kinds.core.node_rules import NEW, RUNNING, accepts_node
from unisono.kinds.upstream_operators import built_in
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

# What a pod of a DaemonSet endures besides its own tolerations.
_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_TOLERATIONS = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in _TOLERATED]


def _read_of_node(node: Json) -> object:
    metadata, spec = node["metadata"], node.get("spec") or {}
    return metadata.get("labels"), spec.get("taints"), spec.get("unschedulable")


class DaemonSets:
    """Runs DaemonSets."""

    name = "daemonset"
    watches: Sequence[Kind] = (DAEMON_SET, names.POD, CONTROLLER_REVISION, names.NODE)
    owner_kind: Kind = DAEMON_SET
    dependent_kinds: Sequence[Kind] = (names.POD, CONTROLLER_REVISION)
    idle_without: Kind = DAEMON_SET
    reads: Mapping[Kind, Reads] = {names.NODE: _read_of_node}

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A DaemonSet, a pod of one, or all of them when a node changes."""
        if kind == names.NODE:
            return list(view.keys(DAEMON_SET))
        return (own_key(obj),) if kind == DAEMON_SET else owner_key(obj, DAEMON_SET)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Create, replace and delete pods, and count them."""
        owner = view.get(DAEMON_SET, key.name, key.namespace)
        if owner is None or is_deleting(owner) or built_in(owner):
            return
        yield from adopt(owner, view)
        owned = view.owned(names.POD, owner["metadata"]["uid"])
        foreign = [pod for pod in owned if not is_its_own(owner, pod) and not is_deleting(pod)]
        if foreign:
            yield Together([released(owner, pod) for pod in foreign])
        revisions = yield from current(owner, view)
        newest = revisions.newest
        template = template_of(newest)
        spec = _with_tolerations(template.get("spec") or {})
        by_node: dict[str, list[Json]] = {}
        for pod in owned:
            if pod not in foreign:
                by_node.setdefault(_node_of(pod), []).append(pod)
        wanted = {
            name
            for node in view.all(names.NODE)
            if accepts_node(spec, node, RUNNING if (name := _name(node)) in by_node else NEW)
        }
        going = _surplus(by_node, wanted)
        going += _outdated(owner, by_node, wanted, newest["metadata"]["name"], going, now)
        if going:
            yield Together([Delete(Ref.to(pod)) for pod in going[:AT_ONCE]])
            for pod in going[:AT_ONCE]:
                message = f"Deleted pod: {pod['metadata']['name']}"
                yield Note(Ref.to(owner), "SuccessfulDelete", message)
        missing = sorted(wanted - by_node.keys())
        made = [_pod(owner, newest, {**template, "spec": spec}, node) for node in missing[:AT_ONCE]]
        if made:
            yield Together([Create(pod) for pod in made])
            for pod in made:
                message = f"Created pod: {pod['metadata']['name']}"
                yield Note(Ref.to(owner), "SuccessfulCreate", message)
        if len(missing) > AT_ONCE or len(going) > AT_ONCE:
            yield Again(now)
        yield from _tell(owner, wanted, newest["metadata"]["name"], view, now)
        used = {revision_of(pod) for pod in owned}
        yield from forget_old(owner, revisions, used)


def _with_tolerations(spec: Json) -> Json:
    own = list(spec.get("tolerations") or ())
    more = [one for one in _TOLERATIONS if one not in own]
    if spec.get("hostNetwork"):
        key = "node.kubernetes.io/network-unavailable"
        more.append({"key": key, "operator": "Exists", "effect": "NoSchedule"})
    return {**spec, "tolerations": [*own, *more]}


def _name(node: Json) -> str:
    return str(node["metadata"]["name"])


def _node_of(pod: Json) -> str:
    """Return the node that a pod has, or is for."""
    if name := pod["spec"].get("nodeName"):
        return str(name)
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for clause in term.get("matchFields") or ():
            if clause.get("key") == "metadata.name" and clause.get("values"):
                return str(clause["values"][0])
    return ""


def _pod(owner: Json, revision: Json, template: Json, node: str) -> Json:
    metadata = owner["metadata"]
    name = pod_name(metadata["name"], metadata["uid"], revision["metadata"]["uid"], node)
    pod = pod_from(template, owner, name, labels={HASH: revision["metadata"]["name"]})
    affinity = dict(pod["spec"].get("affinity") or {})
    nodes = dict(affinity.get("nodeAffinity") or {})
    # It replaces the rules of the template: those were asked when this node was chosen.
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    nodes["requiredDuringSchedulingIgnoredDuringExecution"] = terms
    pod["spec"]["affinity"] = {**affinity, "nodeAffinity": nodes}
    return pod


def _surplus(by_node: Mapping[str, Sequence[Json]], wanted: set[str]) -> list[Json]:
    """Return pods that ended, those on nodes that want none, and second ones of a node."""
    found = []
    for node, pods in by_node.items():
        living = [pod for pod in pods if not is_deleting(pod)]
        keep = None
        if node in wanted:
            running = [pod for pod in living if not is_terminal(pod)]
            keep = next((pod for pod in running if is_ready(pod)), running[0] if running else None)
        found += [pod for pod in living if pod is not keep]
    return found


def _outdated(
    owner: Json,
    by_node: Mapping[str, Sequence[Json]],
    wanted: set[str],
    newest: str,
    going: Sequence[Json],
    now: float,
) -> list[Json]:
    """Return pods of an old revision that may be replaced now."""
    strategy = owner["spec"].get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return []
    rolling = strategy.get("rollingUpdate") or {}
    most = max(1, share_of(rolling.get("maxUnavailable", 1), len(wanted), rounds_up=True))
    least = float(owner["spec"].get("minReadySeconds") or 0)
    left = {
        node: [pod for pod in by_node.get(node, ()) if not is_deleting(pod) and pod not in going]
        for node in wanted
    }
    missing = sum(not any(is_available(pod, least, now) for pod in pods) for pods in left.values())
    found = []
    for node in sorted(left):
        for pod in left[node]:
            if revision_of(pod) == newest:
                continue
            if is_available(pod, least, now):
                if missing >= most:
                    continue
                missing += 1
            found.append(pod)
    return found


def _tell(owner: Json, wanted: set[str], newest: str, view: View, now: float) -> Steps:
    least = float(owner["spec"].get("minReadySeconds") or 0)
    pods = [
        pod
        for pod in view.owned(names.POD, owner["metadata"]["uid"])
        if not is_deleting(pod) and not is_terminal(pod)
    ]
    right = {_node_of(pod): pod for pod in pods if _node_of(pod) in wanted}
    available = sum(is_available(pod, least, now) for pod in right.values())
    status: Mapping[str, Any] = {
        "observedGeneration": owner["metadata"].get("generation", 1),
        "desiredNumberScheduled": len(wanted),
        "currentNumberScheduled": len(right),
        "numberMisscheduled": len({_node_of(pod) for pod in pods} - wanted),
        "numberReady": sum(map(is_ready, right.values())),
        "numberAvailable": available,
        "numberUnavailable": len(wanted) - available,
        "updatedNumberScheduled": sum(revision_of(pod) == newest for pod in right.values()),
    }
    optional = ("numberAvailable", "numberUnavailable", "updatedNumberScheduled")
    old = owner.get("status") or {}
    changed = {
        field: value if value or field not in optional else None for field, value in status.items()
    }
    if any(old.get(field) != value for field, value in changed.items()):
        yield Patch(Ref.to(owner), {"status": changed}, "status")
    later = available_at(pods, least, now)
    if later is not None:
        yield Again(later)
