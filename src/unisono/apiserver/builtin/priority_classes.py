"""PriorityClasses: a name for a number that never changes."""

from __future__ import annotations

from collections.abc import Iterator

from unisono.apiserver.builtin.field_errors import forbidden, not_supported
from unisono.apiserver.errors import Cause
from unisono.apiserver.errors import forbidden as refuse
from unisono.apiserver.objects import Json, at, fill_text
from unisono.apiserver.strategy import Context, Strategy
from unisono.kinds.overriding import override

CLASSES = "scheduling.k8s.io/priorityclasses"
PREEMPTS = "PreemptLowerPriority"

# Classes that exist in every cluster.
SYSTEM_CLASSES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}

_HIGHEST = 1_000_000_000  # what is above belongs to the system itself
_POLICIES = ("Never", PREEMPTS)


class PriorityClassStrategy(Strategy):
    """A PriorityClass."""

    @override
    def default(self, obj: Json) -> None:
        """Fill in that its pods may make others leave, and 0 for a number that was left out."""
        fill_text(obj, preemptionPolicy=PREEMPTS)
        obj.setdefault("value", 0)

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield names and numbers that belong to the system, and changes of the number."""
        name, value = str(at(obj, "metadata").get("name")), obj.get("value")
        if name.startswith("system-"):
            if SYSTEM_CLASSES.get(name) != value:
                why = "priority class names with 'system-' prefix are reserved for system use only"
                yield forbidden("metadata.name", why)
        elif isinstance(value, int) and value > _HIGHEST:
            yield forbidden(
                "value", f"maximum allowed value of a user defined priority is {_HIGHEST}"
            )
        if obj.get("preemptionPolicy") not in _POLICIES:
            yield not_supported("preemptionPolicy", obj.get("preemptionPolicy"), _POLICIES)
        if old is not None:
            for field in ("value", "preemptionPolicy"):
                if obj.get(field) != old.get(field):
                    yield forbidden(field, "may not be changed in an update.")
        if obj.get("globalDefault") is True:
            _refuse_second_default(name, context)

    @override
    def generation_moves(self, obj: Json, old: Json) -> bool:
        """Nothing of it is ever acted upon anew."""
        return False


def _refuse_second_default(name: str, context: Context) -> None:
    for other in context.every(CLASSES):
        known = other["metadata"]["name"]
        if other.get("globalDefault") is True and known != name:
            why = f"PriorityClass {known} is already marked as default; only one can be"
            raise refuse("priorityclasses", name, why, group="scheduling.k8s.io")


# ---- the priority of a pod -----------------------------------------------------------------------


def set_priority(name: str, spec: Json, context: Context) -> None:
    """Write the number and the policy of a pod's class into its spec; refuse other numbers."""
    wanted = spec.get("priorityClassName") or ""
    if wanted:
        value, policy = _class(name, str(wanted), context)
    else:
        wanted, value, policy = _default_class(context)
        if wanted:
            spec["priorityClassName"] = wanted
    given = spec.get("priority")
    if given is not None and given != value:
        why = f"the priority {given} was given, but the class says {value}; leave it out"
        raise refuse("pods", name, why)
    asked = spec.get("preemptionPolicy")
    if asked is not None and asked != policy:
        why = f"the preemptionPolicy {asked} was given, but the class says {policy}; leave it out"
        raise refuse("pods", name, why)
    spec["priority"], spec["preemptionPolicy"] = value, policy


def _class(pod: str, name: str, context: Context) -> tuple[int, str]:
    found = context.find(CLASSES, "", name)
    if found is not None:
        return int(found.get("value") or 0), str(found.get("preemptionPolicy") or PREEMPTS)
    if name in SYSTEM_CLASSES:
        return SYSTEM_CLASSES[name], PREEMPTS
    raise refuse("pods", pod, f"no PriorityClass with name {name} was found")


def _default_class(context: Context) -> tuple[str, int, str]:
    """Return the class for pods that name none; the lowest one, should there be several."""
    classes = sorted(
        (int(one.get("value") or 0), str(one["metadata"]["name"]), str(one.get("preemptionPolicy")))
        for one in context.every(CLASSES, saying=b'"globalDefault":true')
        if one.get("globalDefault") is True
    )
    if not classes:
        return "", 0, PREEMPTS
    value, name, policy = classes[0]
    return name, value, policy if policy != "None" else PREEMPTS
