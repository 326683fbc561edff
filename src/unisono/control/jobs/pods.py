"""Pods of jobs: made from templates, which are merged and added up; never too many at once.

A pod made from a template is named, owned and numbered; the same every time it is made. Templates
are merged as Kubernetes merges them, maps by key and some lists by an item's name: `strategic` is
what overrides of a TrainJob are (jobs §1.2), `merged` is a plain JSON merge patch. Both return a
new value and change none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from unisono.control import names
from unisono.control.actions import Again, Breathe, Create, Json, Note, Ref, Steps, Together
from unisono.control.admission.counts import whole_counts
from unisono.control.jobs.workload import owner_reference
from unisono.control.view import View
from unisono.engine.model.names import PODS
from unisono.engine.model.resources import bounded
from unisono.kinds.quantity import MILLI, Quantity, format_amount

# The letters that Kubernetes puts behind generated names.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_NAME = 63


def suffix(*why: object) -> str:
    """Return five letters that follow from why a pod exists, so that twice is once.

    >>> suffix("uid", 0, 1) == suffix("uid", 0, 1), len(suffix("uid"))
    (True, 5)
    """
    digest = hashlib.sha256("/".join(map(str, why)).encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:5])


def pod_from(
    template: Json,
    owner: Json,
    name: str,
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    finalizers: list[str] | None = None,
) -> Json:
    """Return a pod of a template that belongs to an owner."""
    written = template.get("metadata") or {}
    metadata: Json = {
        "name": name,
        "namespace": owner["metadata"]["namespace"],
        "labels": {**(written.get("labels") or {}), **(labels or {})},
        "annotations": {**(written.get("annotations") or {}), **(annotations or {})},
        "ownerReferences": [owner_reference(owner)],
    }
    if finalizers:
        metadata["finalizers"] = finalizers
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": dict(template.get("spec") or {}),
    }


def pod_name(base: str, *why: object) -> str:
    """Return a pod's name: a base, cut to fit, and five letters."""
    ending = suffix(*why)
    return f"{base[: _LONGEST_NAME - len(ending) - 1]}-{ending}"


def phase_of(pod: Json) -> str:
    """Return a pod's phase."""
    return str((pod.get("status") or {}).get("phase", "Pending"))


def is_ready(pod: Json) -> bool:
    """Say whether a pod is ready."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def is_deleting(obj: Json) -> bool:
    """Say whether an object is on its way out."""
    return "deletionTimestamp" in obj["metadata"]


def is_terminal(pod: Json) -> bool:
    """Say whether a pod has ended."""
    return phase_of(pod) in ("Succeeded", "Failed")


# ---- merging -------------------------------------------------------------------------------------

# Lists whose items are merged, and the field that says which item is which. All other lists are
# replaced as a whole, tolerations among them.
_MERGE_KEYS: Mapping[str, str] = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
    "resourceClaims": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
}


def strategic(old: Json, change: Json) -> Json:
    """Return an object with a change merged into it.

    >>> strategic({"env": [{"name": "A", "value": "1"}]}, {"env": [{"name": "B", "value": "2"}]})
    {'env': [{'name': 'A', 'value': '1'}, {'name': 'B', 'value': '2'}]}
    """
    made = dict(old)
    for key, new in change.items():
        if new is None:
            made.pop(key, None)
        elif isinstance(new, dict):
            before = made.get(key)
            made[key] = strategic(before if isinstance(before, dict) else {}, new)
        elif isinstance(new, list) and key in _MERGE_KEYS and isinstance(made.get(key), list):
            made[key] = _merged_items(made[key], new, _MERGE_KEYS[key])
        else:
            made[key] = new
    return made


def _merged_items(old: Sequence[Json], new: Sequence[Json], key: str) -> list[Json]:
    items = list(old)
    for one in new:
        place = next((at for at, each in enumerate(items) if each.get(key) == one.get(key)), None)
        if place is None:
            items.append(one)
        else:
            items[place] = strategic(items[place], one)
    return items


def merged(old: Any, change: Any) -> Any:
    """Return a value with a JSON merge patch applied.

    >>> merged({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": 3}})
    {'b': {'c': 2, 'd': 3}}
    """
    if not isinstance(change, dict):
        return change
    made = dict(old) if isinstance(old, dict) else {}
    for key, new in change.items():
        if new is None:
            made.pop(key, None)
        else:
            made[key] = merged(made.get(key), new)
    return made


def with_variables(env: Sequence[Json] | None, new: Sequence[Json]) -> list[Json]:
    """Return variables with others set; those of the same name are replaced where they stand."""
    items = list(env or ())
    for one in new:
        place = next((at for at, each in enumerate(items) if each["name"] == one["name"]), None)
        if place is None:
            items.append(one)
        else:
            items[place] = one
    return items


# ---- amounts -------------------------------------------------------------------------------------


def requests_of(template: Json) -> dict[str, int]:
    """Return what the containers of a template ask for, limits where they name no request.

    >>> requests_of({"spec": {"containers": [{"resources": {"limits": {"cpu": "500m"}}}]}})
    {'cpu': 500}
    """
    found: dict[str, int] = {}
    for container in (template.get("spec") or {}).get("containers") or ():
        resources = container.get("resources") or {}
        asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        for name, quantity in asked.items():
            found[name] = found.get(name, 0) + Quantity.from_raw(quantity).amount(name)
    return found


def total_requests(parts: Iterable[tuple[int, Mapping[str, int]]]) -> dict[str, int]:
    """Add up so many times what each part asks for."""
    found: dict[str, int] = {}
    for count, amounts in parts:
        for name, amount in amounts.items():
            found[name] = found.get(name, 0) + count * amount
    return found


def written_amounts(amounts: Mapping[str, int]) -> dict[str, str]:
    """Write amounts as quantities.

    >>> written_amounts({"cpu": 1500, "memory": 16 * 10**9})
    {'cpu': '1500m', 'memory': '16G'}
    """
    return {name: format_amount(amount, name) for name, amount in sorted(amounts.items())}


def whole_units(amount: int, resource: str) -> int:
    """Return an amount in whole units, rounded up.

    >>> whole_units(1500, "cpu"), whole(3, "nvidia.com/gpu")
    (2, 3)
    """
    return -(-amount // MILLI) if resource == "cpu" else amount


# ---- how many are made ---------------------------------------------------------------------------
#
# As many as the cluster can use, some at a time.
#
# What a queue has admitted fits the cluster, whatever its manifest says. What runs in no queue was
# never counted: its numbers are those of a manifest, and 2147483647 is a number, too. So such a job
# gets pods only as far as the nodes of the whole cluster could take them, and one that asks for
# more waits with an event that says so. A Job's pods are of use one by one, so it runs with fewer
# of them, unless it asks for many times what there is; the pods of all other kinds need each other
# and come whole or not at all.

# Objects of one job that are made before others have a turn: what the Job controller of Kubernetes
# makes in one go, and a fraction of a second of the API's time.
AT_ONCE = 500
# As many pods as this may always be made. A cluster may have no nodes yet because an autoscaler
# brings them when pods wait, and a thousand pods cost a few megabytes.
_ALWAYS = 1_000
# A Job may ask for so many times what there is before none of it is made: nodes come and go, and
# people let sweeps of ten thousand runs trickle through a small cluster.
TIMES_TOO_MANY = 10
# Child Jobs that are made, suspended, of a JobSet that waits: enough to see what there will be.
HELD = 100
# Seconds after which a job that asks for too much is looked at again: nodes may have come.
_LOOK_AGAIN = 300.0

# Characters that all names of hosts have together, in one list. A ConfigMap and a Secret hold a
# mebibyte, and some list every host twice; with names of forty characters it is ten thousand hosts.
_LISTED = 400_000

_TOO_MANY = "TooManyPods"
# Kubernetes' default, for nodes that do not say how many pods they take.
_DEFAULT_PODS = 110


def most_pods(job: Json, wanted: int, templates: Iterable[Json], view: View) -> int:
    """Return how many of the wanted pods may exist; nodes are only counted if that matters.

    If a template names a Workload that was admitted, all of its pods may, wherever its nodes are.
    """
    if wanted <= _ALWAYS:
        return wanted
    namespace = job["metadata"]["namespace"]
    admitted = max((_admitted(one, namespace, view) for one in templates), default=0)
    return min(wanted, max(_ALWAYS, _slots(view), admitted))


def too_many(job: Json, wanted: int, view: View, now: float) -> Steps:
    """Say that a job asks for more pods than there can be, and look again later."""
    slots = _slots(view)
    message = (
        f"asks for {wanted} pods at once; all nodes of this cluster together take {slots}, and what"
        f" no queue admitted gets {max(_ALWAYS, slots)} at most: no more are made. Ask for fewer"
    )
    yield Note(Ref.to(job), _TOO_MANY, message, "Warning")
    yield Again(now + _LOOK_AGAIN)


def made(objects: Iterable[Json]) -> Steps:
    """Create objects, some at a time; they are worked out only then, and others have a turn."""
    rest = iter(objects)
    while batch := list(islice(rest, AT_ONCE)):
        yield Together([Create(obj) for obj in batch])
        if len(batch) == AT_ONCE:
            yield Breathe()


def nameable(count: int, longest: int) -> int:
    """Return how many of so many hosts a list can name, given the length of the longest name."""
    return min(count, _LISTED // (longest + 1))


def _slots(view: View) -> int:
    """Return how many pods all nodes take together."""
    return sum(map(_pods_of, view.all(names.NODE)))


def _pods_of(node: Json) -> int:
    written = ((node.get("status") or {}).get("allocatable") or {}).get("pods", _DEFAULT_PODS)
    try:
        pods = Quantity.from_raw(written).units
    except ValueError:
        return 0
    return bounded(PODS, pods)


def _admitted(template: Json, namespace: str, view: View) -> int:
    """Return how many pods the Workload has that a template was injected for."""
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    name = annotations.get(names.WORKLOAD_ANNOTATION)
    workload = view.peek(names.WORKLOAD, name, namespace) if isinstance(name, str) else None
    if workload is None or not (workload.get("status") or {}).get("admission"):
        return 0
    return sum(whole_counts(workload).values())
