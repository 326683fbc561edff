"""Manifests in the spelling that their own projects accept today.

We read old versions and some shorthands; the projects whose kinds these are refuse them. `spelled`
returns an object as they want it, and says in words what that changed. What it means stays as it
is, but for a pooled quota: only we have those, and what is said of it names what to look at.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from unisono.kinds.core.versions import raise_pod_groups
from unisono.kinds.digits import whole_number
from unisono.kinds.kueue import convert as kueue
from unisono.kinds.meta import Json
from unisono.kinds.shapes.served import Served, served_kinds

_KUEUE = "kueue.x-k8s.io"


class Spelled(NamedTuple):
    """An object as its project wants it, and what was changed for that."""

    obj: Json
    changes: tuple[str, ...]


def spelled(obj: Json) -> Spelled:
    """Return an object of any kind in today's spelling; the one that is given stays as it is."""
    made = copy.deepcopy(obj)
    changes = [*_to_stored_version(made)]
    served = _served().get((_group(made), str(made.get("kind"))))
    if served is not None and not served.namespaced:
        changes += _without_namespace(made)
    fix = _FIXES.get((_group(made), str(made.get("kind"))))
    if fix is not None:
        changes += fix(made)
    return Spelled(made, tuple(changes))


def _group(obj: Json) -> str:
    return str(obj.get("apiVersion")).rpartition("/")[0]


def _served() -> dict[tuple[str, str], Served]:
    return {(one.group, one.kind): one for one in served_kinds() if one.is_storage}


def _to_stored_version(obj: Json) -> Iterator[str]:
    group, _, version = str(obj.get("apiVersion")).rpartition("/")
    stored = _served().get((group, str(obj.get("kind"))))
    if stored is None or version == stored.version or not _is_older(version, stored.version):
        return
    if group == _KUEUE:
        kueue.raise_version(stored.plural, obj)
    elif group == "scheduling.k8s.io" and version == "v1alpha2":
        raise_pod_groups(stored.plural, obj)
    obj["apiVersion"] = stored.api_version
    yield f"apiVersion: {version} is {stored.version} today"


def _is_older(one: str, other: str) -> bool:
    """Say whether a version comes before another; those of other projects are left alone.

    >>> _is_older("v1beta1", "v1beta2"), _is_older("v1", "v1beta2"), _is_older("v1alpha1", "v1")
    (True, False, True)
    """
    return _age(one) < _age(other)


def _age(version: str) -> tuple[int, int, int]:
    major, _, rest = version.removeprefix("v").partition("alpha")
    step = 0
    if not rest:
        major, _, rest = major.partition("beta")
        step = 1 if rest else 2
    return (
        whole_number(major) or 0,
        step,
        whole_number(rest) or 0,
    )


def _without_namespace(obj: Json) -> Iterator[str]:
    metadata = obj.get("metadata")
    if isinstance(metadata, dict) and "namespace" in metadata:
        del metadata["namespace"]
        yield "metadata.namespace: objects of this kind have none; left out"


# ---- Kueue ---------------------------------------------------------------------------------------


def _fix_flavor(obj: Json) -> Iterator[str]:
    spec = obj.get("spec")
    if isinstance(spec, dict) and "nodeSelector" in spec and "nodeLabels" not in spec:
        obj["spec"] = {_NODE_LABELS.get(key, key): value for key, value in spec.items()}
        yield "spec.nodeSelector: is called nodeLabels"


_NODE_LABELS = {"nodeSelector": "nodeLabels"}


def _fix_queue(obj: Json) -> Iterator[str]:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    if "namespaceSelector" not in spec:
        obj["spec"] = spec = {"namespaceSelector": {}, **spec}
        yield "spec.namespaceSelector: added, for all namespaces; without it Kueue admits nothing"
    groups = spec.get("resourceGroups")
    for index, group in enumerate(groups if isinstance(groups, list) else ()):
        if isinstance(group, dict):
            yield from _fix_group(group, f"spec.resourceGroups[{index}]")


def _fix_group(group: Json, at: str) -> Iterator[str]:
    flavors, pool = group.get("flavors"), group.get("resources")
    if isinstance(pool, list) and isinstance(flavors, list) and flavors:
        yield from _divide(group, [_name(one) for one in flavors], pool, at)
    if "coveredResources" not in group:
        first = next((one for one in group.get("flavors") or () if isinstance(one, dict)), {})
        covered = [_name(one) for one in first.get("resources") or ()]
        rest = dict(group)
        group.clear()
        group.update({"coveredResources": covered, **rest})
        yield f"{at}.coveredResources: added"
    yield from _in_order(group, at)


def _divide(group: Json, names: list[str], pool: list[Json], at: str) -> Iterator[str]:
    """Give every flavor quota of its own: the first all of it, so that the sum stays the same."""
    nothing = [{"name": _name(one), "nominalQuota": 0} for one in pool]
    first, *others = names
    group["flavors"] = [
        {"name": first, "resources": pool},
        *({"name": name, "resources": copy.deepcopy(nothing)} for name in others),
    ]
    del group["resources"]
    remedy = f"{at}.resources: quota is per flavor; all of it is with {first} now"
    yield f"{remedy}, divide it as you like" if others else remedy


def _in_order(group: Json, at: str) -> Iterator[str]:
    covered = group.get("coveredResources")
    for index, flavor in enumerate(group.get("flavors") or ()):
        quotas = flavor.get("resources") if isinstance(flavor, dict) else None
        if not isinstance(covered, list) or not isinstance(quotas, list):
            continue
        place = {name: number for number, name in enumerate(covered)}
        ordered = sorted(quotas, key=lambda one: place.get(_name(one), len(place)))
        if ordered != quotas:
            flavor["resources"] = ordered
            yield f"{at}.flavors[{index}].resources: in the order of coveredResources"


def _name(one: Any) -> str:
    return str(one.get("name")) if isinstance(one, dict) else str(one)


# ---- jobs ----------------------------------------------------------------------------------------


def _fix_job(obj: Json) -> Iterator[str]:
    template = (obj.get("spec") or {}).get("template")
    yield from _with_restart_policy(template, "Never", "spec.template.spec")


def _fix_volcano_job(obj: Json) -> Iterator[str]:
    for index, task in enumerate((obj.get("spec") or {}).get("tasks") or ()):
        at = f"spec.tasks[{index}].template.spec"
        yield from _with_restart_policy(task.get("template"), "OnFailure", at)


def _with_restart_policy(template: Any, policy: str, at: str) -> Iterator[str]:
    spec = template.get("spec") if isinstance(template, dict) else None
    if isinstance(spec, dict) and "restartPolicy" not in spec:
        template["spec"] = {"restartPolicy": policy, **spec}
        yield f"{at}.restartPolicy: added, {policy}"


_FIXES: dict[tuple[str, str], Callable[[Json], Iterator[str]]] = {
    (_KUEUE, "ResourceFlavor"): _fix_flavor,
    (_KUEUE, "ClusterQueue"): _fix_queue,
    ("batch", "Job"): _fix_job,
    ("batch.volcano.sh", "Job"): _fix_volcano_job,
}
