"""What Kubernetes refuses in where a pod may go: tolerations, affinity, spread, gates."""

from __future__ import annotations

from collections.abc import Iterator

from unisono.apiserver.builtin.field_errors import (
    about,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from unisono.apiserver.builtin.fields import at, numbered
from unisono.apiserver.builtin.metadata import check_labels
from unisono.apiserver.errors import Cause
from unisono.apiserver.objects import Json
from unisono.kinds.meta import wrong_with_dns_label, wrong_with_label_key, wrong_with_label_value

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_EFFECTS = ("NoExecute", "NoSchedule", "PreferNoSchedule")
# Lt and Gt compare numbers; servers from 1.35 on know them.
_TOLERATION_OPERATORS = ("Equal", "Exists", "Gt", "Lt")
_WHEN = ("DoNotSchedule", "ScheduleAnyway")
_HEED = ("Honor", "Ignore")
_NODE_NAME = "metadata.name"


def check_placement_fields(spec: Json, path: str) -> Iterator[Cause]:
    """Yield the faults of everything that says where a pod may go."""
    yield from check_labels(spec.get("nodeSelector"), f"{path}.nodeSelector")
    for at_, toleration in numbered(spec, "tolerations", path):
        yield from _check_toleration(toleration, at_)
    yield from _check_affinity(at(spec, "affinity"), f"{path}.affinity")
    yield from _check_spread(spec, path)
    seen: set[str] = set()
    for at_, gate in numbered(spec, "schedulingGates", path):
        name = str(gate.get("name") or "")
        yield from about(at_, name, wrong_with_label_key(name))
        if name in seen:
            yield duplicate(at_, name)
        seen.add(name)


def _check_toleration(toleration: Json, path: str) -> Iterator[Cause]:
    key, operator = str(toleration.get("key") or ""), toleration.get("operator") or "Equal"
    if key:
        yield from about(f"{path}.key", key, wrong_with_label_key(key))
    elif operator != "Exists":
        yield invalid(f"{path}.operator", operator, "must be Exists when `key` is empty")
    value = str(toleration.get("value") or "")
    if operator == "Equal":
        yield from about(f"{path}.operator", value, wrong_with_label_value(value))
    elif operator == "Exists":
        if value:
            why = "value must be empty when `operator` is 'Exists'"
            yield invalid(f"{path}.operator", value, why)
    elif operator not in _TOLERATION_OPERATORS:
        yield not_supported(f"{path}.operator", operator, ("Equal", "Exists"))
    effect = toleration.get("effect") or ""
    if effect and effect not in _EFFECTS:
        yield not_supported(f"{path}.effect", effect, _EFFECTS)
    elif toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield invalid(f"{path}.effect", effect, "must be NoExecute when `tolerationSeconds` is set")


# ---- affinity ----------------------------------------------------------------------------------


def _check_affinity(affinity: Json, path: str) -> Iterator[Cause]:
    nodes = affinity.get("nodeAffinity")
    if isinstance(nodes, dict):
        at_ = f"{path}.nodeAffinity.{_REQUIRED}"
        if isinstance(nodes.get(_REQUIRED), dict):
            if not nodes[_REQUIRED].get("nodeSelectorTerms"):
                yield required(f"{at_}.nodeSelectorTerms", "must have at least one term")
            for where, term in numbered(nodes[_REQUIRED], "nodeSelectorTerms", at_):
                yield from _check_node_term(term, where)
        for where, liked in numbered(nodes, _PREFERRED, f"{path}.nodeAffinity"):
            yield from _check_weight(liked, where)
            yield from _check_node_term(at(liked, "preference"), f"{where}.preference")
    for name in ("podAffinity", "podAntiAffinity"):
        pods = at(affinity, name)
        for where, term in numbered(pods, _REQUIRED, f"{path}.{name}"):
            yield from _check_pod_term(term, where)
        for where, liked in numbered(pods, _PREFERRED, f"{path}.{name}"):
            yield from _check_weight(liked, where)
            yield from _check_pod_term(at(liked, "podAffinityTerm"), f"{where}.podAffinityTerm")


def _check_weight(liked: Json, path: str) -> Iterator[Cause]:
    weight = liked.get("weight")
    if not isinstance(weight, int) or not 1 <= weight <= 100:
        yield invalid(f"{path}.weight", weight, "must be in the range 1-100")


def _check_node_term(term: Json, path: str) -> Iterator[Cause]:
    for at_, clause in numbered(term, "matchExpressions", path):
        yield from _check_clause(clause, at_, ("Gt", "Lt"))
    for at_, clause in numbered(term, "matchFields", path):
        values = clause.get("values") or []
        if clause.get("operator") not in ("In", "NotIn"):
            yield invalid(
                f"{at_}.operator", clause.get("operator"), "not a valid selector operator"
            )
        elif len(values) != 1:
            yield required(f"{at_}.values", "must be only one value for a node field")
        if clause.get("key") != _NODE_NAME:
            yield invalid(f"{at_}.key", clause.get("key"), "not a valid field selector key")


def _check_clause(clause: Json, path: str, comparing: tuple[str, ...] = ()) -> Iterator[Cause]:
    operator, values = clause.get("operator"), clause.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden(f"{path}.values", why)
    elif operator in comparing:
        if len(values) != 1:
            yield required(f"{path}.values", f"must be a single value for {operator}")
    else:
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    key = str(clause.get("key") or "")
    yield from about(f"{path}.key", key, wrong_with_label_key(key))


def _check_selector(selector: Json, path: str) -> Iterator[Cause]:
    yield from check_labels(selector.get("matchLabels"), f"{path}.matchLabels")
    for at_, clause in numbered(selector, "matchExpressions", path):
        yield from _check_clause(clause, at_)


def _check_pod_term(term: Json, path: str) -> Iterator[Cause]:
    yield from _check_topology_key(term, path)
    for field in ("labelSelector", "namespaceSelector"):
        yield from _check_selector(at(term, field), f"{path}.{field}")
    for name in term.get("namespaces") or ():
        yield from about(f"{path}.namespace", name, wrong_with_dns_label(str(name)))


def _check_topology_key(term: Json, path: str) -> Iterator[Cause]:
    key = str(term.get("topologyKey") or "")
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    else:
        yield from about(f"{path}.topologyKey", key, wrong_with_label_key(key))


# ---- spread ------------------------------------------------------------------------------------


def _check_spread(spec: Json, path: str) -> Iterator[Cause]:
    seen: set[tuple[object, object]] = set()
    for at_, one in numbered(spec, "topologySpreadConstraints", path):
        skew, when = one.get("maxSkew"), one.get("whenUnsatisfiable")
        if not isinstance(skew, int) or skew < 1:
            yield invalid(f"{at_}.maxSkew", skew, "must be greater than zero")
        yield from _check_topology_key(one, at_)
        if when not in _WHEN:
            yield not_supported(f"{at_}.whenUnsatisfiable", when, _WHEN)
        pair = (one.get("topologyKey"), when)
        if pair in seen:
            where = f"{at_}.{{topologyKey, whenUnsatisfiable}}"
            yield duplicate(where, f"{{{pair[0]}, {pair[1]}}}")
        seen.add(pair)
        least = one.get("minDomains")
        if isinstance(least, int) and least < 1:
            yield invalid(f"{at_}.minDomains", least, "must be greater than zero")
        elif least is not None and when == "ScheduleAnyway":
            yield invalid(f"{at_}.minDomains", least, "needs whenUnsatisfiable: DoNotSchedule")
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if one.get(field) not in (None, *_HEED):
                yield not_supported(f"{at_}.{field}", one[field], _HEED)
        yield from _check_selector(at(one, "labelSelector"), f"{at_}.labelSelector")
