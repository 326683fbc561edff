"""Which user may name which priority class: `priorityClasses` of the policy (spec quota §16).

    priorityClasses:
    - names: [urgent]            # PriorityClass and WorkloadPriorityClass alike
      users: [alice]
      groups: [oncall]
      namespaces: [production]

A class that rules name may be named by the users and groups of any of them, and by all users in
their namespaces; `*` is every class without a rule of its own. Classes that no rule speaks of are
for all users, and cluster administrators may name all. What an object named before it may go on
naming: a rule that comes later stops no edit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from unisono.apiserver.admission.suspend import WORKLOADS, read_settings
from unisono.apiserver.errors import forbidden
from unisono.apiserver.objects import Json
from unisono.apiserver.request import MASTERS, User
from unisono.apiserver.strategy import Context
from unisono.kinds.policy.schema import PriorityClassRule
from unisono.kinds.policy.settings import Settings
from unisono.kinds.priorities import PRIORITY_LABEL
from unisono.kinds.shapes.served import Served

# Where kinds name a class besides the label: pods and templates, Volcano jobs and pod groups;
# Kubeflow's scheduling policy.
FIELDS = ("priorityClassName", "priorityClass")
# Deeper than any template of any kind.
_DEEPEST = 24


def refuse_class(served: Served, obj: Json, old: Json | None, context: Context) -> None:
    """Raise a 403 if an object names a class that its author may not name."""
    if MASTERS in context.user.groups:
        return
    settings = read_settings(context)
    if not settings.priority_classes:
        return
    name = str((obj.get("metadata") or {}).get("name") or "")
    why = class_of_others(settings, context.user, obj, old)
    if why:
        raise forbidden(served.plural, name, why, group=served.group)
    if served.key == WORKLOADS and _priority(obj) > _priority(old or {}):
        why = "spec.priority: follows from the job's priority class, and cannot be raised by hand"
        raise forbidden(served.plural, name, why, group=served.group)


def class_of_others(
    settings: Settings, user: User, obj: Mapping[str, Any], old: Mapping[str, Any] | None
) -> str:
    """Return why a user may not name a class that an object newly names; empty if they may."""
    namespace = str((obj.get("metadata") or {}).get("namespace") or "")
    known = {one for _, one in named_classes(old)} if old is not None else set()
    for path, wanted in named_classes(obj):
        concerned = settings.class_rules(wanted)
        if wanted not in known and concerned and not _may(user, namespace, concerned):
            why = f'{path}: User "{user.name}" may not name priority class "{wanted}"'
            return f"{why}; {_allowed(concerned)}"
    return ""


def named_classes(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield where an object, or a template in it, names a priority class, and which."""
    if depth > _DEEPEST:
        return
    if isinstance(value, Mapping):
        labels = (value.get("metadata") or {}) if isinstance(value.get("metadata"), Mapping) else {}
        found = labels.get("labels")
        if isinstance(found, Mapping) and isinstance(found.get(PRIORITY_LABEL), str):
            at = f"{path}.metadata.labels[{PRIORITY_LABEL}]".lstrip(".")
            yield at, found[PRIORITY_LABEL]
        for key, below in value.items():
            place = f"{path}.{key}".lstrip(".")
            if key in FIELDS and isinstance(below, str) and below:
                yield place, below
            elif key == "priorityClassRef" and isinstance(below, Mapping) and below.get("name"):
                yield f"{place}.name", str(below["name"])
            elif key not in ("metadata", "status") and isinstance(below, Mapping | list):
                yield from named_classes(below, place, depth + 1)
    elif isinstance(value, list):
        for index, below in enumerate(value):
            if isinstance(below, Mapping | list):
                yield from named_classes(below, f"{path}[{index}]", depth + 1)


def _may(user: User, namespace: str, rules: Iterable[PriorityClassRule]) -> bool:
    return any(
        user.name in rule.users
        or namespace in rule.namespaces
        or not set(rule.groups).isdisjoint(user.groups)
        for rule in rules
    )


def _allowed(rules: Iterable[PriorityClassRule]) -> str:
    """Return which users may name a class, in words."""
    every = list(rules)
    parts = [
        f"{what} {', '.join(sorted(names))}"
        for what, names in (
            ("users", {one for rule in every for one in rule.users}),
            ("groups", {one for rule in every for one in rule.groups}),
            ("namespaces", {one for rule in every for one in rule.namespaces}),
        )
        if names
    ]
    return f"it is for {'; '.join(parts)}" if parts else "only administrators may"


def _priority(workload: Mapping[str, Any]) -> int:
    spec = workload.get("spec")
    value = spec.get("priority") if isinstance(spec, Mapping) else None
    return value if isinstance(value, int) else 0
