"""Pods: what they start with, what an update may change, and what their status says by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from unisono.apiserver.builtin.field_errors import forbidden, invalid
from unisono.apiserver.builtin.pods.defaults import add_default_tolerations, fill_pod
from unisono.apiserver.builtin.pods.validation import check_pod_spec
from unisono.apiserver.builtin.priority_classes import set_priority
from unisono.apiserver.builtin.typed_validation import causes_of, judge, known_kind
from unisono.apiserver.caches import VerdictCache
from unisono.apiserver.errors import Cause
from unisono.apiserver.objects import Json, at, child, items
from unisono.apiserver.strategy import Context, Strategy
from unisono.apiserver.times import timestamp
from unisono.kinds.overriding import override
from unisono.kinds.quantity import Quantity
from unisono.kinds.short_texts import cached_if_short
from unisono.kinds.volcano.disruption_annotations import wrong_with_budget

_POD = known_kind("v1", "Pod")
_SOUND: VerdictCache[bool] = VerdictCache()


class PodStrategy(Strategy):
    """A pod: filled in, given its priority and class of service, and then almost frozen."""

    prepares_whole = True
    defaults_spec_alone = True
    distinct_field = "hostname"  # pods of an indexed job have one each

    @override
    def prepare_create(self, obj: Json, context: Context) -> None:
        """A new pod waits; what it says about its status does not count."""
        spec = child(obj, "spec")
        obj["status"] = {"phase": "Pending", "qosClass": _qos_class(spec)}
        note_gates(obj, context.now)
        # No token is made for this account: pods get no credentials here.
        if not spec.get("serviceAccountName"):
            spec["serviceAccountName"] = spec.get("serviceAccount") or "default"
        spec["serviceAccount"] = spec["serviceAccountName"]
        set_priority(str(child(obj, "metadata").get("name") or ""), spec, context)
        add_default_tolerations(spec)

    @override
    def prepare_update(self, obj: Json, old: Json, context: Context) -> None:
        """Keep what the server added if a manifest is written again without it."""
        add_default_tolerations(child(obj, "spec"))

    @override
    def default(self, obj: Json) -> None:
        """Fill in the spec, and the status once there is one."""
        fill_pod(obj)
        if obj.get("status") is not None:
            _fill_pod_status(obj)

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """A new pod must be sound; an old one may change in a few ways only."""
        if old is not None:
            yield from check_pod_update(obj, old)
            if obj.get("spec") == old.get("spec"):
                return
        metadata = at(obj, "metadata")
        key = _SOUND.key(obj.get("spec"), metadata.get("labels"), metadata.get("annotations"))
        context.shape_key = key
        if _SOUND.get(key):
            return
        causes = list(_check_new(obj))
        if not causes:
            _SOUND.keep(key, verdict=True)
        yield from causes

    @override
    def generation_moves(self, obj: Json, old: Json) -> bool:
        """Only the spec counts."""
        return obj.get("spec") != old.get("spec")


def _check_new(obj: Json) -> Iterator[Cause]:
    found = list(check_pod_spec(obj))
    yield from found
    if not found:
        # Only what Kubernetes lets pass is asked whether our queues can read it.
        assert _POD is not None, "Pod is one of our kinds"
        yield from judge(_POD, obj)[0]
    if at(obj, "spec").get("schedulerName") == "volcano":
        yield from causes_of(wrong_with_budget(at(obj, "metadata", "annotations")))


# ---- updates -------------------------------------------------------------------------------------
#
# image of a container         at any time
# activeDeadlineSeconds        may be set, and lowered
# tolerations                  may be added; of those that are there, only the seconds may change
# schedulingGates              may only be removed
# nodeSelector, affinity       may be narrowed while the pod has gates


_ALLOWED = (
    "pod updates may not change fields other than `spec.containers[*].image`, "
    "`spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, `spec.tolerations` (only "
    "additions) and `spec.schedulingGates` (only removals)"
)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def check_pod_update(new: Json, old: Json) -> Iterator[Cause]:
    """Yield what an update of a pod must not do; both are the whole pods."""
    after, before = at(new, "spec"), at(old, "spec")
    if after == before:
        return
    for field in ("containers", "initContainers"):
        if len(items(after, field)) != len(items(before, field)):
            yield forbidden(f"spec.{field}", "pod updates may not add or remove containers")
            return
    yield from _check_deadline(after, before)
    yield from _check_gates(after, before)
    if not _keeps_tolerations(after, before):
        why = "existing tolerations can not be modified except their tolerationSeconds"
        yield forbidden("spec.tolerations", why)
    is_gated = bool(items(before, "schedulingGates"))
    if is_gated:
        yield from _check_narrowed(after, before)
    if _frozen(after, is_gated=is_gated) != _frozen(before, is_gated=is_gated):
        yield forbidden("spec", _ALLOWED)


def _frozen(spec: Json, *, is_gated: bool) -> Json:
    """Return a spec without what has rules of its own."""
    free = {"activeDeadlineSeconds", "tolerations", "schedulingGates"}
    if is_gated:
        free |= {"nodeSelector", "affinity"}
    rest = {
        key: value for key, value in spec.items() if key not in free and value not in (None, [])
    }
    for name in ("containers", "initContainers"):
        if name in rest:
            rest[name] = [{**one, "image": ""} for one in items(spec, name)]
    # A grace period below zero was let in by old servers and may be mended.
    grace = rest.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0:
        rest["terminationGracePeriodSeconds"] = 1
    if is_gated:
        affinity = at(spec, "affinity")
        rest["affinity"] = {key: affinity[key] for key in affinity if key != "nodeAffinity"}
    return rest


def _check_deadline(after: Json, before: Json) -> Iterator[Cause]:
    path = "spec.activeDeadlineSeconds"
    new, old = after.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if old is None or new == old:
        return
    if new is None:
        yield invalid(path, new, "must not be removed once it is set")
    elif new > old:
        yield invalid(path, new, f"must be less than or equal to previous value {old}")


def _check_gates(after: Json, before: Json) -> Iterator[Cause]:
    known = {gate.get("name") for gate in items(before, "schedulingGates")}
    for index, gate in enumerate(items(after, "schedulingGates")):
        if gate.get("name") not in known:
            why = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            yield forbidden(f"spec.schedulingGates[{index}].name", why)


def _keeps_tolerations(after: Json, before: Json) -> bool:
    kept = [_without_seconds(one) for one in items(after, "tolerations")]
    return all(_without_seconds(one) in kept for one in items(before, "tolerations"))


def _without_seconds(toleration: Json) -> Json:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


# ---- narrowing, while there are gates ----------------------------------------------------------


def _check_narrowed(after: Json, before: Json) -> Iterator[Cause]:
    """Only additions: a pod must not become able to run on further nodes."""
    old, new = at(before, "nodeSelector"), at(after, "nodeSelector")
    if any(new.get(key) != value for key, value in old.items()):
        yield invalid("spec.nodeSelector", new, "only additions are allowed")
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    before_terms = _terms(before)
    if before_terms is None:
        return
    after_terms = _terms(after) or []
    # Terms are alternatives, so none may be added; inside a term all clauses must hold.
    if len(after_terms) != len(before_terms):
        yield invalid(path, after_terms, "no additions/deletions to non-empty list are allowed")
        return
    for index, (narrow, wide) in enumerate(zip(after_terms, before_terms, strict=True)):
        if not _narrows(narrow, wide):
            yield invalid(f"{path}[{index}]", narrow, "only additions are allowed")


def _terms(spec: Json) -> list[Json] | None:
    required = at(spec, "affinity", "nodeAffinity", _REQUIRED)
    return items(required, "nodeSelectorTerms") if required else None


def _narrows(narrow: Json, wide: Json) -> bool:
    return all(
        items(narrow, field)[: len(items(wide, field))] == items(wide, field)
        for field in ("matchExpressions", "matchFields")
    )


# ---- status --------------------------------------------------------------------------------------
#
# What the server itself says in the status of a pod: its phase, its class, why it is held back.

_COMPUTE = ("cpu", "memory")
_SEEN: VerdictCache[str] = VerdictCache()


def _fill_pod_status(pod: Json) -> None:
    """Fill in the phase and the class of service."""
    status = child(pod, "status")
    if not status.get("phase"):
        status["phase"] = "Pending"
    if not status.get("qosClass"):
        status["qosClass"] = _qos_class(at(pod, "spec"))


def note_gates(pod: Json, now: float) -> None:
    """Say of a pod with gates that it is not to be scheduled yet."""
    status = child(pod, "status")
    conditions = items(status, "conditions")
    if items(at(pod, "spec"), "schedulingGates") and not any(
        one.get("type") == "PodScheduled" for one in conditions
    ):
        status["conditions"] = [
            *conditions,
            {
                "type": "PodScheduled",
                "status": "False",
                "lastTransitionTime": timestamp(now),
                "reason": "SchedulingGated",
                "message": "scheduling waits until all gates are removed",
            },
        ]


def _qos_class(spec: Mapping[str, Any]) -> str:
    """Return how well a pod is protected when a node runs short.

    Guaranteed if every container limits cpu and memory and requests just that; BestEffort if none
    asks for either; Burstable in all other cases.
    """
    own = at(spec, "resources")
    containers = [own] if at(own, "requests") or at(own, "limits") else list(_resources(spec))
    try:
        key = orjson.dumps(containers)
    except TypeError:  # a number that no kind has
        return _class_of(containers)
    found = _SEEN.get(key)
    if found is None:
        found = _class_of(containers)
        _SEEN.keep(key, found)
    return found


def _class_of(containers: Sequence[Json]) -> str:
    asked = [
        amount
        for resources in containers
        for part in ("requests", "limits")
        for name, amount in at(resources, part).items()
        if name in _COMPUTE and _nano(amount) != 0
    ]
    if not asked:
        return "BestEffort"
    return "Guaranteed" if all(_is_guaranteed(one) for one in containers) else "Burstable"


def _resources(spec: Mapping[str, Any]) -> Iterator[Json]:
    for name in ("initContainers", "containers"):
        for container in items(spec, name):
            yield at(container, "resources")


def _is_guaranteed(resources: Json) -> bool:
    requests, limits = at(resources, "requests"), at(resources, "limits")
    return all(
        name in limits
        and _nano(limits[name]) != 0
        and _nano(requests.get(name, limits[name])) == _nano(limits[name])
        for name in _COMPUTE
    )


def _nano(raw: object) -> int:
    return _nano_of_text(raw) if type(raw) is str else _nano_of(raw)


def _nano_of(raw: object) -> int:
    """Return an amount; what is none counts as nothing, since the schema complains about it."""
    try:
        return Quantity.from_raw(raw).nano
    except ValueError:
        return 0


_nano_of_text = cached_if_short(1024)(_nano_of)
