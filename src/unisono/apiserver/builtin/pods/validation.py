"""What Kubernetes refuses in a pod spec, wherever it stands.

What stands in a container has a file of its own (`containers`). Rules that only our decisions need
(`kinds`) are asked when Kubernetes has nothing to say against it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from unisono.apiserver.builtin.field_errors import (
    about,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from unisono.apiserver.builtin.metadata import check_annotations, check_labels
from unisono.apiserver.builtin.pods.containers import (
    MAX_PORT,
    check_lifecycle,
    check_probes,
    check_variables,
    check_volumes,
    wrong_with_port_name,
    wrong_with_relative_path,
)
from unisono.apiserver.builtin.typed_validation import cause_of
from unisono.apiserver.errors import Cause
from unisono.apiserver.objects import Json, at, items, numbered
from unisono.kinds.core.schema import PodTemplateSpec
from unisono.kinds.core.validate import check_pod_template
from unisono.kinds.decode import decode
from unisono.kinds.meta import (
    wrong_with_dns_label,
    wrong_with_label_key,
    wrong_with_label_value,
    wrong_with_subdomain,
)
from unisono.kinds.quantity import NANO, Quantity

_PULL = ("Always", "IfNotPresent", "Never")
_RESTART = ("Always", "OnFailure", "Never")
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_DNS = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_MESSAGES = ("FallbackToLogsOnError", "File")
_PROPAGATION = ("Bidirectional", "HostToContainer", "None")
_MAX_INT32 = 2**31 - 1
_MAX_NAME_SERVERS = 3


def check_template(template: Json, path: str, *, with_placement: bool = True) -> Iterator[Cause]:
    """Yield the faults of a pod template that stands at `path`.

    What decisions read is left out if the caller has a typed manifest look at it anyway.
    """
    metadata = at(template, "metadata")
    yield from check_labels(metadata.get("labels"), f"{path}.metadata.labels")
    yield from check_annotations(metadata.get("annotations"), f"{path}.metadata.annotations")
    spec = at(template, "spec")
    faults = list(_check_spec(spec, f"{path}.spec"))
    yield from faults
    if items(spec, "ephemeralContainers"):
        yield forbidden(f"{path}.spec.ephemeralContainers", "not allowed in pod templates")
    if with_placement and not faults:
        yield from _check_reading(template, path)


def check_pod_spec(pod: Json) -> Iterator[Cause]:
    """Yield the faults of a pod's spec."""
    spec = at(pod, "spec")
    yield from _check_spec(spec, "spec")
    gates = items(spec, "schedulingGates")
    if gates and spec.get("nodeName"):
        yield forbidden(
            "spec.nodeName", "cannot be set until all schedulingGates have been cleared"
        )


def _check_reading(template: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Yield what is wrong with what decisions read of a template."""
    manifest, problems = decode(PodTemplateSpec, template, path=path, ignore_unknown=True)
    if manifest is not None:
        problems = list(check_pod_template(manifest, path))
    yield from (cause_of(problem) for problem in problems)


# ---- the spec itself ---------------------------------------------------------------------------


def _check_spec(spec: Json, path: str) -> Iterator[Cause]:
    volumes = yield from check_volumes(spec, path)
    if not items(spec, "containers"):
        yield required(f"{path}.containers")
    claims = {str(claim.get("name")) for claim in items(spec, "resourceClaims")}
    grace = spec.get("terminationGracePeriodSeconds")
    seen: set[str] = set()
    for name in ("containers", "initContainers", "ephemeralContainers"):
        for at_, container in numbered(spec, name, path):
            yield from _check_container(container, at_, volumes, seen)
            yield from _check_claims(container, at_, claims)
            if name == "initContainers" and container.get("restartPolicy") != "Always":
                yield from _check_short_lived(container, at_)
            else:
                yield from check_probes(container, at_)
                yield from check_lifecycle(container, at_, grace)
    yield from _check_host_ports(spec, path)
    yield from _one_of(spec, "restartPolicy", _RESTART, path)
    yield from _check_dns(spec, path)
    yield from _check_numbers(spec, path)
    yield from _check_names(spec, path)
    yield from _check_placement_fields(spec, path)
    yield from _check_users(at(spec, "securityContext"), f"{path}.securityContext")


def _check_numbers(spec: Json, path: str) -> Iterator[Cause]:
    deadline = spec.get("activeDeadlineSeconds")
    if isinstance(deadline, int) and not 1 <= deadline <= _MAX_INT32:
        why = f"must be between 1 and {_MAX_INT32}, inclusive"
        yield invalid(f"{path}.activeDeadlineSeconds", deadline, why)


def _check_names(spec: Json, path: str) -> Iterator[Cause]:
    for field in ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"):
        if name := spec.get(field):
            yield from about(f"{path}.{field}", name, wrong_with_subdomain(str(name)))
    for field in ("hostname", "subdomain"):
        if name := spec.get(field):
            yield from about(f"{path}.{field}", name, wrong_with_dns_label(str(name)))
    for at_, alias in numbered(spec, "hostAliases", path):
        yield from about(f"{at_}.ip", alias.get("ip"), _wrong_with_address(alias.get("ip")))
        for index, name in enumerate(alias.get("hostnames") or ()):
            where = f"{at_}.hostnames[{index}]"
            yield from about(where, name, wrong_with_subdomain(str(name)))


def _check_dns(spec: Json, path: str) -> Iterator[Cause]:
    yield from _one_of(spec, "dnsPolicy", _DNS, path)
    servers = at(spec, "dnsConfig").get("nameservers") or []
    at_ = f"{path}.dnsConfig"
    if spec.get("dnsPolicy") == "None" and not isinstance(spec.get("dnsConfig"), dict):
        yield required(at_, "must provide `dnsConfig` when `dnsPolicy` is None")
    if len(servers) > _MAX_NAME_SERVERS:
        why = f"must not have more than {_MAX_NAME_SERVERS} nameservers"
        yield invalid(f"{at_}.nameservers", servers, why)
    for index, server in enumerate(servers):
        yield from about(f"{at_}.nameservers[{index}]", server, _wrong_with_address(server))


def _wrong_with_address(address: object) -> str:
    try:
        ipaddress.ip_address(str(address or ""))
    except ValueError:
        return "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
    return ""


def _check_users(context: Json, path: str) -> Iterator[Cause]:
    """Numbers of users and groups; of the pod or of a container."""
    why = f"must be between 0 and {_MAX_INT32}, inclusive"
    for field in ("runAsUser", "runAsGroup", "fsGroup"):
        number = context.get(field)
        if isinstance(number, int) and not 0 <= number <= _MAX_INT32:
            yield invalid(f"{path}.{field}", number, why)
    for index, number in enumerate(context.get("supplementalGroups") or ()):
        if isinstance(number, int) and not 0 <= number <= _MAX_INT32:
            yield invalid(f"{path}.supplementalGroups[{index}]", number, why)


# ---- containers --------------------------------------------------------------------------------


def _check_container(
    container: Json, path: str, volumes: set[str], seen: set[str]
) -> Iterator[Cause]:
    name = str(container.get("name") or "")
    if not name:
        yield required(f"{path}.name")
    else:
        yield from about(f"{path}.name", name, wrong_with_dns_label(name))
    if name in seen:
        yield duplicate(f"{path}.name", name)
    seen.add(name)
    if not container.get("image"):
        yield required(f"{path}.image")
    yield from _one_of(container, "imagePullPolicy", _PULL, path)
    yield from _one_of(container, "restartPolicy", _RESTART, path)
    yield from _one_of(container, "terminationMessagePolicy", _MESSAGES, path)
    yield from _check_ports(container, path)
    yield from check_variables(container, path)
    yield from _check_mounts(container, path, volumes)
    yield from check_resources(at(container, "resources"), f"{path}.resources")
    yield from _check_users(at(container, "securityContext"), f"{path}.securityContext")


def _check_short_lived(container: Json, path: str) -> Iterator[Cause]:
    """What ends before the pod begins is neither probed nor stopped."""
    for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(field) is not None:
            why = "may not be set for init containers without restartPolicy=Always"
            yield forbidden(f"{path}.{field}", why)


def _check_claims(container: Json, path: str, claims: set[str]) -> Iterator[Cause]:
    for at_, claim in numbered(at(container, "resources"), "claims", f"{path}.resources"):
        name = str(claim.get("name") or "")
        if name not in claims:
            yield not_found(at_, name)


def _check_ports(container: Json, path: str) -> Iterator[Cause]:
    names: set[str] = set()
    for at_, port in numbered(container, "ports", path):
        for field in ("containerPort", "hostPort"):
            number = port.get(field)
            if isinstance(number, int) and not 0 <= number <= MAX_PORT:
                yield invalid(f"{at_}.{field}", number, f"must be between 1 and {MAX_PORT}")
        if not port.get("containerPort"):
            yield required(f"{at_}.containerPort")
        yield from _one_of(port, "protocol", _PROTOCOLS, at_)
        name = str(port.get("name") or "")
        if name:
            yield from about(f"{at_}.name", name, wrong_with_port_name(name))
            if name in names:
                yield duplicate(f"{at_}.name", name)
        names.add(name)


def _check_host_ports(spec: Json, path: str) -> Iterator[Cause]:
    """No two containers that run at the same time can have one port of their node."""
    taken: set[str] = set()
    for name in ("containers", "initContainers"):
        for at_, container in numbered(spec, name, path):
            if name == "initContainers" and container.get("restartPolicy") != "Always":
                continue
            for where, port in numbered(container, "ports", at_):
                number = port.get("hostPort")
                key = f"{port.get('protocol')}/{port.get('hostIP') or ''}/{number}"
                if number and key in taken:
                    yield duplicate(f"{where}.hostPort", key)
                taken.add(key)


def _check_mounts(container: Json, path: str, volumes: set[str]) -> Iterator[Cause]:
    points: set[str] = set()
    for at_, mount in numbered(container, "volumeMounts", path):
        name, point = str(mount.get("name") or ""), str(mount.get("mountPath") or "")
        if not name:
            yield required(f"{at_}.name")
        elif name not in volumes:
            yield not_found(f"{at_}.name", name)
        if not point:
            yield required(f"{at_}.mountPath")
        elif point in points:
            yield invalid(f"{at_}.mountPath", point, "must be unique")
        points.add(point)
        inner = str(mount.get("subPath") or "")
        yield from about(f"{at_}.subPath", inner, wrong_with_relative_path(inner))
        yield from _one_of(mount, "mountPropagation", _PROPAGATION, at_)


def _one_of(obj: Json, field: str, allowed: tuple[str, ...], path: str) -> Iterator[Cause]:
    value = obj.get(field)
    if value is not None and value not in allowed:
        yield not_supported(f"{path}.{field}", value, allowed)


# ---- requests and limits -------------------------------------------------------------------------
#
# Requests stay within limits; devices are whole, and requested just as they are limited.


_STANDARD = ("cpu", "memory", "ephemeral-storage")


def check_resources(resources: Json, path: str) -> Iterator[Cause]:
    """Yield the faults of requests and limits that stand at `path`."""
    limits, requests = at(resources, "limits"), at(resources, "requests")
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            yield from _check_amount(name, amount, f"{path}.{part}[{name}]")
    for name, amount in requests.items():
        at_ = f"{path}.requests"
        if name not in limits:
            if is_device(name):
                yield required(f"{path}.limits", f"limit must be set for non overcommitable {name}")
        elif is_device(name) and _nano(amount) != _nano(limits[name]):
            yield invalid(at_, amount, f"must be equal to {name} limit of {limits[name]}")
        elif _nano(amount) > _nano(limits[name]):
            why = f"must be less than or equal to {name} limit of {limits[name]}"
            yield invalid(at_, amount, why)
    asked = {*limits, *requests}
    if any(name.startswith("hugepages-") for name in asked) and not asked & {"cpu", "memory"}:
        yield forbidden(path, "HugePages require cpu or memory")


def _check_amount(name: str, amount: object, path: str) -> Iterator[Cause]:
    if wrong := wrong_with_label_key(name):
        yield invalid(path, name, wrong)
    elif "/" not in name and name not in _STANDARD and not name.startswith("hugepages-"):
        yield invalid(path, name, "must be a standard resource type or fully qualified")
    elif _nano(amount) < 0:
        yield invalid(path, amount, "must be greater than or equal to 0")
    elif is_device(name) and _nano(amount) % NANO:
        yield invalid(path, amount, "must be an integer")


def is_device(resource: str) -> bool:
    """Say whether a resource cannot be promised to two pods: devices, and huge pages."""
    if resource.startswith("hugepages-"):
        return True
    domain, slash, _ = resource.partition("/")
    return bool(slash) and not (domain == "kubernetes.io" or domain.endswith(".kubernetes.io"))


def _nano(amount: object) -> int:
    try:
        return Quantity.from_raw(amount).nano
    except ValueError:
        return 0


# ---- scheduling ----------------------------------------------------------------------------------
#
# What Kubernetes refuses in where a pod may go: tolerations, affinity, spread, gates.

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_EFFECTS = ("NoExecute", "NoSchedule", "PreferNoSchedule")
# Lt and Gt compare numbers; servers from 1.35 on know them.
_TOLERATION_OPERATORS = ("Equal", "Exists", "Gt", "Lt")
_WHEN = ("DoNotSchedule", "ScheduleAnyway")
_HEED = ("Honor", "Ignore")
_NODE_NAME = "metadata.name"


def _check_placement_fields(spec: Json, path: str) -> Iterator[Cause]:
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
