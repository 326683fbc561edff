"""Which users may name which priority class, recorded for policies of a real API server.

An API server knows the user of a request; we do not. Its policies ask by a parameter, which is this
ConfigMap in the namespace of the installation: it has the rules of the Policy object, or of the
controller's own file if that object has none. Not the Policy itself: a server that was just started
does not know kinds that were defined for up to half a minute, and a policy that has no parameter
then either refuses every job and pod, or lets every class pass.

    data:
      "0.names": urgent        one to a line, as in `users`, `groups` and `namespaces`
      "0.users": alice
      "1.names": "*"
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from unisono.control import names
from unisono.control.actions import Create, Json, Patch, Ref, Steps
from unisono.control.view import View
from unisono.kinds.policy.schema import PriorityClassRule
from unisono.kinds.policy.settings import Settings, counting_policy, settings_from
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

CLASS_RULES = "unisono-priority-classes"


def class_rules(settings: Settings, view: View) -> Settings:
    """Return the settings whose rules about classes count: those of the Policy, if it has any."""
    policies = view.all(names.POLICY) if view.has(names.POLICY) else ()
    chosen = counting_policy(policies)
    has_rules = chosen is not None and chosen.get("priorityClasses")
    return settings_from(chosen) if has_rules else settings


class ClassRules:
    """Keeps the parameter in step with the rules."""

    name = "class-rules"

    def __init__(self, settings: Settings, view: View, home: str) -> None:
        """Take what the controller was started with, and the namespace of the installation."""
        self._settings = settings
        self._place = Key(home, CLASS_RULES)
        policies = (names.POLICY,) if view.has(names.POLICY) else ()
        self.watches: Sequence[Kind] = (names.NAMESPACE, names.CONFIG_MAP, *policies)

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A Policy, what was written, or the namespace for it, which is there from the start."""
        place, name = self._place, obj["metadata"]["name"]
        is_meant = {
            names.NAMESPACE: name == place.namespace,
            names.CONFIG_MAP: name == place.name
            and obj["metadata"].get("namespace") == place.namespace,
        }
        return (place,) if is_meant.get(kind, True) else ()

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Write the rules, unless they are written."""
        wanted = _written(class_rules(self._settings, view).priority_classes)
        stored = view.get(names.CONFIG_MAP, key.name, key.namespace)
        if stored is None:
            if wanted:
                metadata = {"name": key.name, "namespace": key.namespace}
                made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
                yield Create({**made, "data": wanted})
            return
        there = stored.get("data") or {}
        if there != wanted:
            gone = dict.fromkeys(there.keys() - wanted.keys())
            yield Patch(Ref.to(stored), {"data": {**wanted, **gone}})


def read_rules(data: Mapping[str, str]) -> tuple[PriorityClassRule, ...]:
    """Return the rules that a ConfigMap has.

    >>> read_rules({"0.names": "a\\nb", "0.groups": "staff"})[0].groups
    ('staff',)
    """

    def lines(number: str, field: str) -> tuple[str, ...]:
        return tuple(filter(None, data.get(f"{number}.{field}", "").split("\n")))

    numbers = (key.removesuffix(".names") for key in data if key.endswith(".names"))
    return tuple(
        PriorityClassRule(**{field: lines(number, field) for field in _FIELDS})
        for number in numbers
    )


_FIELDS = ("names", "users", "groups", "namespaces")


def _written(rules: Iterable[PriorityClassRule]) -> dict[str, str]:
    """Return rules as a ConfigMap has them; what is empty is left out.

    >>> _written([PriorityClassRule(names=("a", "b"), groups=("staff",))])
    {'0.names': 'a\\nb', '0.groups': 'staff'}
    """
    found = {}
    for number, rule in enumerate(rules):
        for field in _FIELDS:
            listed = getattr(rule, field)
            if listed:
                found[f"{number}.{field}"] = "\n".join(listed)
    return found
