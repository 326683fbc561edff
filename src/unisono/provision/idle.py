"""Whether anybody is, or is about to be, on a node; and when a node that nobody is on may go."""

from __future__ import annotations

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.conditions import is_true
from unisono.control.scheduler.record import hosts_of
from unisono.control.view import View
from unisono.kinds.scalar import duration_ms
from unisono.provision import words
from unisono.provision.claims import created_at

NEVER = float("inf")


def is_empty(node: Json, view: View) -> bool:
    """Say whether no pod is on a node, agents apart, and nobody was admitted to it."""
    for pod in view.by(names.POD, "node", node["metadata"]["name"]):
        is_over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if not is_over and not _is_agent(pod):
            return False
    return not any(is_on(workload, node) for workload in view.all(names.WORKLOAD))


def only_user_of(node: Json, workload: Json, view: View) -> bool:
    """Say whether nobody but one workload is on a node, and nothing there objects to moving."""
    own = workload["metadata"]
    for pod in view.by(names.POD, "node", node["metadata"]["name"]):
        is_over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if is_over or _is_agent(pod):
            continue
        about = pod["metadata"].get("annotations") or {}
        is_own = about.get(names.WORKLOAD_ANNOTATION) == own["name"]
        if not is_own or pod["metadata"]["namespace"] != own["namespace"]:
            return False
        if about.get(words.DO_NOT_DISRUPT) == "true":
            return False
    return not any(
        is_on(other, node)
        for other in view.all(names.WORKLOAD)
        if (other["metadata"]["namespace"], other["metadata"]["name"])
        != (own["namespace"], own["name"])
    )


def _is_agent(pod: Json) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(owner["kind"] in ("DaemonSet", "Node") for owner in owners)


def is_on(workload: Json, node: Json) -> bool:
    """Say whether a workload has, or is to have, pods on a node."""
    status = workload.get("status") or {}
    if not status.get("admission") or is_true(status.get("conditions"), "Finished"):
        return False
    name = node["metadata"]["name"]
    host = (node["metadata"].get("labels") or {}).get(names.HOSTNAME, name)
    return any(place in (name, host) for place, _ in hosts_of(workload))


def stays_for(claim: Json, pool: Json | None, *, reuse: float) -> float:
    """Return how long an empty node stays, in seconds."""
    if (claim["metadata"].get("annotations") or {}).get(words.RELEASED):
        return reuse
    disruption = ((pool or {}).get("spec") or {}).get("disruption") or {}
    return _seconds(str(disruption.get("consolidateAfter") or "0s"))


def expires_at(claim: Json) -> float:
    """Return when a node is too old for new gangs."""
    return created_at(claim) + _seconds(str(claim["spec"].get("expireAfter") or "Never"))


def ends_at(claim: Json) -> float:
    """Return when a node that is too old goes even if somebody is on it."""
    grace = claim["spec"].get("terminationGracePeriod")
    return expires_at(claim) + _seconds(str(grace)) if grace else NEVER


def _seconds(text: str) -> float:
    if text == "Never":
        return NEVER
    try:
        return duration_ms(text) / 1000
    except ValueError:
        return NEVER
