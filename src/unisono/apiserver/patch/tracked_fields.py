"""Which top-level fields of an object a write through some address is responsible for.

address     built-in kinds      custom resources
main        all but status      all but status
status      all but spec        status alone

Of those, what is in an object before any field is written (its skeleton) belongs to no writer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from unisono.kinds.shapes.served import BUILT_IN

Tracked = Callable[[str], bool]

_NEVER = frozenset({"apiVersion", "kind"})


def is_built_in(api_version: str) -> bool:
    """Say whether a kind of this version belongs to every Kubernetes."""
    return api_version.rpartition("/")[0] in BUILT_IN


def tracked_fields(
    api_version: str, subresource: str, ignored: Collection[str] | None = None
) -> Tracked:
    """Return a function that says whether the writers of a top-level field are remembered.

    `ignored` names those that are not; without it, the table above holds.
    """
    if ignored is None and subresource == "status" and not is_built_in(api_version):
        return _is_status
    if ignored is None:
        ignored = ("spec",) if subresource == "status" else ("status",)
    untracked = _NEVER.union(ignored)
    return lambda name: name not in untracked


def _is_status(name: str) -> bool:
    return name == "status"


# ---- skeleton ------------------------------------------------------------------------------------
#
# What is in an object of a built-in kind before any field is written.
#
# Built-in kinds are structs on a real server: their spec, their status and a few parts of them are
# always there, empty or zero. So no manager adds them, and the entry of the one that creates an
# object, or applies to an untracked one, does not list them. Custom resources have no such parts: a
# manager that creates one adds its spec.

_SPEC: Mapping[str, Any] = {"spec": {}, "status": {}}
_POD_SPEC = {"containers": None}
_TEMPLATE = {"metadata": {}, "spec": _POD_SPEC}
_JOB = {"template": _TEMPLATE}
_NODE_INFO = (
    *("architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion"),
    *("kubeletVersion", "machineID", "operatingSystem", "osImage", "systemUUID"),
)
_NODE_STATUS = {
    "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
    "nodeInfo": dict.fromkeys(_NODE_INFO, ""),
}
_DAEMONS = ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady")
_BUDGET = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")
_TIMES = dict.fromkeys(("eventTime", "firstTimestamp", "lastTimestamp"))
_OLD_EVENT: Mapping[str, Any] = {
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
    "deprecatedSource": {},
}
_NAMES = {"acceptedNames": {"kind": "", "plural": ""}, "conditions": None, "storedVersions": None}


def _with(spec: Any, status: Any = None) -> Mapping[str, Any]:
    return {"spec": spec, "status": status or {}}


_KINDS: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("", "Event"): {"source": {}, **_TIMES, "reportingComponent": "", "reportingInstance": ""},
    ("", "Node"): _with({}, _NODE_STATUS),
    ("", "PersistentVolumeClaim"): _with({"resources": {}}),
    ("", "Pod"): _with(_POD_SPEC),
    ("", "PodTemplate"): {"template": _TEMPLATE},
    ("", "Service"): _with({}, {"loadBalancer": {}}),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _with({"names": {}}, _NAMES),
    ("apps", "DaemonSet"): _with(
        {"template": _TEMPLATE, "updateStrategy": {}}, dict.fromkeys(_DAEMONS, 0)
    ),
    ("apps", "Deployment"): _with({"template": _TEMPLATE, "strategy": {}}),
    ("apps", "ReplicaSet"): _with({"template": _TEMPLATE}, {"replicas": 0}),
    ("apps", "StatefulSet"): _with(
        {"template": _TEMPLATE, "updateStrategy": {}}, {"replicas": 0, "availableReplicas": 0}
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): _with(
        {"scaleTargetRef": {}}, {"currentMetrics": None, "desiredReplicas": 0}
    ),
    ("batch", "CronJob"): _with({"jobTemplate": {"metadata": {}, "spec": _JOB}}),
    ("batch", "Job"): _with(_JOB),
    ("events.k8s.io", "Event"): _OLD_EVENT,
    ("networking.k8s.io", "Ingress"): _with({}, {"loadBalancer": {}}),
    ("policy", "PodDisruptionBudget"): _with({}, dict.fromkeys(_BUDGET, 0)),
}


def skeleton(obj: Mapping[str, Any], api_version: str) -> Mapping[str, Any]:
    """Return what was there before an object was created."""
    if not is_built_in(api_version):
        return {}
    group = api_version.rpartition("/")[0]
    return _KINDS.get((group, str(obj.get("kind"))), _SPEC)
