"""The priority of a pod, from the class that it names or from the default class."""

from __future__ import annotations

from unisono.apiserver.builtin.reach import Json
from unisono.apiserver.errors import forbidden
from unisono.apiserver.strategy import Surroundings

CLASSES = "scheduling.k8s.io/priorityclasses"
PREEMPTS = "PreemptLowerPriority"

# Classes that exist in every cluster.
SYSTEM_CLASSES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}


def set_priority(name: str, spec: Json, around: Surroundings) -> None:
    """Write the number and the policy of a pod's class into its spec; refuse other numbers."""
    wanted = spec.get("priorityClassName") or ""
    if wanted:
        value, policy = _class(name, str(wanted), around)
    else:
        wanted, value, policy = _default_class(around)
        if wanted:
            spec["priorityClassName"] = wanted
    given = spec.get("priority")
    if given is not None and given != value:
        why = f"the priority {given} was given, but the class says {value}; leave it out"
        raise forbidden("pods", name, why)
    asked = spec.get("preemptionPolicy")
    if asked is not None and asked != policy:
        why = f"the preemptionPolicy {asked} was given, but the class says {policy}; leave it out"
        raise forbidden("pods", name, why)
    spec["priority"], spec["preemptionPolicy"] = value, policy


def _class(pod: str, name: str, around: Surroundings) -> tuple[int, str]:
    found = around.find(CLASSES, "", name)
    if found is not None:
        return int(found.get("value") or 0), str(found.get("preemptionPolicy") or PREEMPTS)
    if name in SYSTEM_CLASSES:
        return SYSTEM_CLASSES[name], PREEMPTS
    raise forbidden("pods", pod, f"no PriorityClass with name {name} was found")


def _default_class(around: Surroundings) -> tuple[str, int, str]:
    """Return the class for pods that name none; the lowest one, should there be several."""
    classes = sorted(
        (int(one.get("value") or 0), str(one["metadata"]["name"]), str(one.get("preemptionPolicy")))
        for one in around.every(CLASSES, saying=b'"globalDefault":true')
        if one.get("globalDefault") is True
    )
    if not classes:
        return "", 0, PREEMPTS
    value, name, policy = classes[0]
    return name, value, policy if policy != "None" else PREEMPTS
