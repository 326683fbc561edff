"""A gang with quota that does not fit on nodes, as text: how much fits, and what is missing."""

from __future__ import annotations

from unisono.engine.explain.formatting import format_amount
from unisono.engine.model.explanation import GangDoesNotFit
from unisono.engine.model.resources import is_share

# Remedies if all nodes refuse a pod for one of these reasons.
_REMEDIES = {
    "selector": "add a node with the labels that the pods or their flavor ask for, or change those",
    "topology": "label the nodes with the level that slices have to share, or drop that request",
    "volume": "add a node that reaches the volumes of the pods, or move the volumes",
    "taint": "let the pods tolerate the taints of the nodes, or add a node without",
    "not ready": "see why no node is ready",
    "quarantined": "repair the nodes; they leave quarantine once they are healthy",
    "reserved": "a shorter time limit, or wait until the reservation is over",
}

# How a refusing node is described; any other reason is a resource.
_REFUSING = {
    "selector": "without the labels that are asked for",
    "topology": "without the topology level of its slices",
    "volume": "out of reach of a volume",
    "taint": "tainted",
    "quarantined": "in quarantine",
    "not ready": "not ready",
    "reserved": "reserved",
    "held for others": "held for other workloads",
    "rules between pods": "excluded by affinity or spread of pods",
}


def gang_sentence(fact: GangDoesNotFit) -> str:
    """Return how many pods fit, and why the other nodes refuse them."""
    text = f"{fact.pods_placeable} of {fact.pods} pods fit"
    if _is_unlabelled(fact):
        text = (
            f"all {fact.pods} pods have to be in one {_domain(fact)}, and no node that they fit on "
        )
        text += f"has the label {fact.level}"
    elif fact.level:
        domain = _domain(fact)
        text = f"all {fact.pods} pods have to be in one {domain}; best {domain} {fact.best_domain} "
        text += f"holds {fact.pods_placeable} of {fact.pods}, the cluster {fact.cluster_holds}"
    text = f"pod set {fact.pod_set}: {text}"
    if not fact.nodes and fact.resource:
        text += ": there are no nodes"
    elif fact.refusals:
        refused = ", ".join(f"{count} {_refusal(fact, why)}" for why, count in fact.refusals)
        text += f" ({fact.nodes} node{'s' if fact.nodes != 1 else ''}: {refused})"
    if fact.resource in dict(fact.refusals):
        best = format_amount(fact.best_node_has, fact.resource).partition(" ")[0]
        where = "GPU" if is_share(fact.resource) else "node"
        wanted = format_amount(fact.wanted_of_node, fact.resource)
        text += f"; the best {where} has {best} of {wanted}"
    if fact.tried_preemption:
        text += ", even if every preemptible workload were evicted"
    return text


def gang_remedy(fact: GangDoesNotFit) -> str | None:
    """Return what to do if no node would ever accept a pod; None if nodes only have to be freed."""
    reason = _refused_everywhere(fact)
    if reason == "selector" and fact.labels:
        label = " and ".join(fact.labels)
        return f"add a node with the label {label}, or change what the pods or their flavor ask for"
    if _is_unlabelled(fact):
        return f"label nodes with {fact.level}, or drop the request for one {_domain(fact)}"
    if reason == "topology" and fact.slice_level:
        return f"label nodes with {fact.slice_level}, or drop the request for slices in one domain"
    if reason:
        return _REMEDIES[reason]
    if fact.resource and fact.largest_node_has < fact.wanted_of_node:
        part, amount = is_share(fact.resource), format_amount(fact.wanted_of_node, fact.resource)
        size = "a free GPU" if part else amount
        lacking = fact.pods - fact.pods_placeable
        more = f"a node with {size}" if lacking == 1 else f"nodes with {size} for {lacking} pods"
        return f"add {more}, or ask for less in one pod"
    return None


def gang_help(fact: GangDoesNotFit) -> str:
    """Return what would change that, also if it is only freed nodes."""
    remedy = gang_remedy(fact)
    if remedy is not None:
        return remedy
    lacking = fact.pods - fact.pods_placeable
    room = f"room for {lacking} more pod{'s' if lacking != 1 else ''}"
    within = f" in one {_domain(fact)}" if fact.level else ""
    ways = [f"{room}{within}: nodes that join, or workloads that end"]
    if fact.level and fact.cluster_holds >= fact.pods:
        ways.append(f"or prefer one {_domain(fact)} instead of requiring it: the cluster has room")
    if fact.resource and fact.best_node_has:
        most = format_amount(fact.best_node_has, fact.resource)
        ways.append(f"or ask for no more than {most} in one pod")
    return "; ".join(ways)


def _is_unlabelled(fact: GangDoesNotFit) -> bool:
    """Say whether no node is in any domain of the level that all pods have to share."""
    best = fact.best_domain.rpartition("/")[2]
    return bool(fact.level) and best in ("", "-") and not fact.pods_placeable and fact.nodes > 0


def _domain(fact: GangDoesNotFit) -> str:
    return fact.level.rpartition("/")[2].removeprefix("topology-")


def _refusal(fact: GangDoesNotFit, why: str) -> str:
    if why == "selector" and fact.labels:
        return f"without {' and '.join(fact.labels)}"
    if why == "topology" and fact.slice_level:
        return f"without the label {fact.slice_level}"
    return _REFUSING.get(why, f"short of {why}")


def _refused_everywhere(fact: GangDoesNotFit) -> str:
    """Return why all nodes refuse a pod however empty they are; empty if that is not so."""
    return next(
        (why for why, count in fact.refusals if count == fact.nodes and why in _REMEDIES), ""
    )
