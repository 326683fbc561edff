"""Which paths differ between two objects, which an object has, which it claims, which are tracked.

Three walks over values and their merge schema, all ending in field sets:

    differences   what a write changed or added, and what it removed
    everything    all that a new value adds, interior nodes too
    claims        what a configuration claims when it is applied: its leaves, the items of its
                  lists, the keys of its maps, but not the objects around them

A node counts as added if there was nothing before, not even null. A list whose items have the same
key twice is looked at as a whole under that key.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from unisono.apiserver.objects import Json, equal
from unisono.apiserver.patch.field_set import SELF, Tree
from unisono.apiserver.patch.merge_schema import FIELDS, LEAF, UNOWNED, MergeSchema
from unisono.kinds.shapes.served import BUILT_IN

# Down to this level, parts that are alike are skipped by comparing them whole, which is quick.
# Below it they are walked: a whole comparison at each of two hundred levels would look at the last
# one two hundred times. Manifests differ at most six levels down, in a container's variables.
_COMPARED_WHOLE = 8


def everything(merge_schema: MergeSchema, value: Any) -> Tree:
    """Return the node of a value that was not there before: itself and all below."""
    kind = merge_schema.kind
    if kind == LEAF or not value:
        return {}
    tree: Tree = {SELF: {}}
    if kind == FIELDS:
        if type(value) is not dict:
            return {}
        if merge_schema.is_plain_map:
            for name in value:
                tree["f:" + name] = {}
            return tree
        leaf = merge_schema.leaves.get
        for name, child in value.items():
            text = leaf(name)
            if text is not None:
                tree[text] = {}
            else:
                text, below, _ = merge_schema.field(name)
                tree[text] = everything(below, child)
    else:
        if type(value) is not list:
            return {}
        items = merge_schema.items
        for item in value:
            text = merge_schema.text(item)
            tree[text] = {} if text in tree else everything(items, item)
    return tree


def differences(
    merge_schema: MergeSchema, old: Any, new: Any, levels: int = _COMPARED_WHOLE
) -> tuple[Tree | None, Tree | None]:
    """Return the nodes of what changed or came, and of what went; None for nothing.

    Both values are there (perhaps as null). They are not equal, unless no `levels` are left on
    which that was found out.
    """
    kind = merge_schema.kind
    container = dict if kind == FIELDS else list
    if not levels:
        is_walked = kind != LEAF and type(old) is type(new) is container and old and new
        if not is_walked and equal(new, old):
            return None, None
    if kind == LEAF:
        return {}, None
    old_fits = old is None or type(old) is container
    new_fits = new is None or type(new) is container
    if not old_fits or not new_fits:
        # One becomes the other: an object a text, a list a number.
        went = _below(merge_schema, old) if old_fits else None
        came = _below(merge_schema, new) if new_fits else None
        return {SELF: {}, **came} if came else {}, went
    if not old and not new:
        return {}, None  # null, {} and [] are values of their own
    if kind == FIELDS:
        return _fields_differ(merge_schema, old or {}, new or {}, (), levels)
    return _items_differ(merge_schema, old or [], new or [], levels)


def _below(merge_schema: MergeSchema, value: Any) -> Tree | None:
    tree = everything(merge_schema, value)
    return {key: node for key, node in tree.items() if key != SELF} or None


def _fields_differ(
    merge_schema: MergeSchema,
    old: Json,
    new: Json,
    skipped: Collection[str],
    levels: int = _COMPARED_WHOLE,
) -> tuple[Tree | None, Tree | None]:
    came: Tree = {}
    went: Tree = {}
    known = merge_schema.fields
    below_levels = max(0, levels - 1)
    for name, value in new.items():
        if name in skipped:
            continue
        if name in old:
            before = old[name]
            if levels and value == before and (value.__class__ is str or equal(value, before)):
                continue
            text, below, _ = known.get(name) or merge_schema.field(name)
            if below.kind == LEAF:
                if levels or not equal(value, before):
                    came[text] = {}
                continue
            changed, removed = differences(below, before, value, below_levels)
            if changed is not None:
                came[text] = changed
            if removed is not None:
                went[text] = removed
        else:
            text, below, _ = known.get(name) or merge_schema.field(name)
            came[text] = {} if below.kind == LEAF else everything(below, value)
    for name, value in old.items():
        if name not in new and name not in skipped:
            text, below, _ = merge_schema.field(name)
            went[text] = everything(below, value)
    return came or None, went or None


def _items_differ(
    merge_schema: MergeSchema, old: list[Any], new: list[Any], levels: int
) -> tuple[Tree | None, Tree | None]:
    came: Tree = {}
    went: Tree = {}
    before = _by_text(merge_schema, old)
    after = _by_text(merge_schema, new)
    items = merge_schema.items
    for text, now in after.items():
        then = before.get(text, ())
        if len(then) > 1 and len(now) > 1:
            if not equal(now, then):
                came[text] = {}
        elif len(now) > 1:
            came[text] = {}
            if then:
                went[text] = everything(items, then[0])
        elif len(then) > 1:
            came[text] = everything(items, now[0])
            went[text] = {}
        elif not then:
            came[text] = everything(items, now[0])
        elif not levels or not equal(now, then):
            changed, removed = differences(items, then[0], now[0], max(0, levels - 1))
            if changed is not None:
                came[text] = changed
            if removed is not None:
                went[text] = removed
    for text, then in before.items():
        if text not in after:
            went[text] = everything(items, then[0]) if len(then) == 1 else {}
    return came or None, went or None


def _by_text(merge_schema: MergeSchema, items: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(merge_schema.text(item), []).append(item)
    return found


def claims(merge_schema: MergeSchema, value: Any) -> Tree:
    """Return what is below a value of a configuration that is applied; `{}` for nothing."""
    tree: Tree = {}
    if merge_schema.kind == FIELDS and isinstance(value, dict):
        for name, child in value.items():
            text, below, is_declared = merge_schema.field(name)
            if below.kind == LEAF or child is None or child == {}:
                tree[text] = {}
                continue
            claimed = claims(below, child)
            is_whole = below.kind == FIELDS and not isinstance(child, dict)
            if is_whole or not is_declared:
                tree[text] = {SELF: {}, **claimed} if claimed else {}
            elif claimed:
                tree[text] = claimed
    elif merge_schema.kind not in (LEAF, FIELDS) and isinstance(value, list):
        for item in value:
            text = merge_schema.text(item)
            claimed = {} if text in tree else claims(merge_schema.items, item)
            tree[text] = {SELF: {}, **claimed} if claimed else {}
    return tree


# ---- whole objects -----------------------------------------------------------------------------


def object_differences(
    merge_schema: MergeSchema,
    old: Mapping[str, Any],
    new: Json,
    tracked: Tracked,
    known: Mapping[str, Tree | None] | None = None,
) -> tuple[Tree, Tree]:
    """Return what changed or came, and what went, among what is tracked.

    `known` says of some fields what came; nothing went there.
    """
    came: Tree = {}
    went: Tree = {}
    for name in (*new, *(name for name in old if name not in new)):
        if not tracked(name):
            continue
        text, below, _ = merge_schema.field(name)
        value, before = new.get(name, _ABSENT), old.get(name, _ABSENT)
        changed: Tree | None = None
        removed: Tree | None = None
        if known is not None and name in known:
            changed = known[name]
        elif name == "metadata":
            fields = value if isinstance(value, dict) else {}
            fields_before = before if isinstance(before, dict) else {}
            changed, removed = _fields_differ(below, fields_before, fields, UNOWNED)
        elif before is _ABSENT:
            changed = everything(below, value)
        elif value is _ABSENT:
            removed = everything(below, before)
        elif not equal(value, before):
            changed, removed = differences(below, before, value)
        if changed is not None:
            came[text] = changed
        if removed is not None:
            went[text] = removed
    return came, went


_ABSENT: Any = object()


def object_claims(merge_schema: MergeSchema, config: Json, tracked: Tracked) -> Tree:
    """Return the set that the manager of an applied configuration owns afterwards."""
    kept = {name: value for name, value in config.items() if tracked(name)}
    metadata = kept.get("metadata")
    if isinstance(metadata, dict):
        kept["metadata"] = {name: value for name, value in metadata.items() if name not in UNOWNED}
        if not kept["metadata"]:
            del kept["metadata"]
    return claims(merge_schema, kept)


# ---- tracked fields ------------------------------------------------------------------------------
#
# Which top-level fields of an object a write through some address is responsible for.
#
# address     built-in kinds      custom resources
# main        all but status      all but status
# status      all but spec        status alone
#
# Of those, what is in an object before any field is written (its skeleton) belongs to no writer.

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
