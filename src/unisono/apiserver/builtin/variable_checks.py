"""What Kubernetes refuses in the environment of a container."""

from __future__ import annotations

import re
from collections.abc import Iterator

from unisono.apiserver.builtin.causes import about, invalid, not_supported, required
from unisono.apiserver.builtin.reach import Json, at, numbered
from unisono.apiserver.errors import Cause
from unisono.kinds.meta import wrong_with_label_key, wrong_with_subdomain

# Variables may have any printable name without an equals sign.
_VARIABLE = re.compile(r"[ -<>-~]+")
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_ENTRY = re.compile(r"metadata\.(?:labels|annotations)\['([^']*)'\]")
# What a pod can say of itself in a variable, and what it knows besides.
_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_OTHER_FIELDS = (
    "metadata.labels",
    "metadata.annotations",
    "spec.restartPolicy",
    "spec.schedulerName",
    "status.phase",
)
_RESOURCES = tuple(
    f"{part}.{name}"
    for part in ("limits", "requests")
    for name in ("cpu", "memory", "ephemeral-storage")
)


def check_variables(container: Json, path: str) -> Iterator[Cause]:
    """Yield the faults of a container's variables."""
    for at_, variable in numbered(container, "env", path):
        name = str(variable.get("name") or "")
        if not name:
            yield required(f"{at_}.name")
        else:
            yield from about(f"{at_}.name", name, _wrong_with_variable(name))
        if isinstance(variable.get("valueFrom"), dict):
            yield from _check_source(variable, f"{at_}.valueFrom")
    for at_, source in numbered(container, "envFrom", path):
        prefix = str(source.get("prefix") or "")
        if prefix:
            yield from about(f"{at_}.prefix", prefix, _wrong_with_variable(prefix))
        given = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
        if len(given) != 1:
            yield invalid(f"{path}.envFrom", "", "must have exactly one of configMapRef, secretRef")
        elif not at(source, given[0]).get("name"):
            yield required(f"{at_}.{given[0]}.name")


def _wrong_with_variable(name: str) -> str:
    if _VARIABLE.fullmatch(name):
        return ""
    return "must consist only of printable ASCII characters other than '='"


def _check_source(variable: Json, path: str) -> Iterator[Cause]:
    source = variable["valueFrom"]
    given = [name for name, value in source.items() if value is not None]
    if variable.get("value"):
        yield invalid(path, "", "may not be specified when `value` is not empty")
    if len(given) != 1:
        yield invalid(path, "", "must specify exactly one source")
        return
    inside, at_ = at(source, given[0]), f"{path}.{given[0]}"
    match given[0]:
        case "configMapKeyRef" | "secretKeyRef":
            yield from _check_key(inside, at_)
        case "fieldRef":
            yield from _check_field(inside, at_)
        case "resourceFieldRef":
            resource = str(inside.get("resource") or "")
            if not resource:
                yield required(f"{at_}.resource")
            elif resource not in _RESOURCES and ".hugepages-" not in resource:
                yield not_supported(f"{at_}.resource", resource, _RESOURCES)
        case _:
            pass  # sources that came with later versions


def _check_key(inside: Json, path: str) -> Iterator[Cause]:
    name, key = str(inside.get("name") or ""), str(inside.get("key") or "")
    yield from about(f"{path}.name", name, wrong_with_subdomain(name))
    if not key:
        yield required(f"{path}.key")
    elif _KEY.fullmatch(key) is None:
        yield invalid(f"{path}.key", key, "has only letters, digits, '-', '_' or '.'")


def _check_field(inside: Json, path: str) -> Iterator[Cause]:
    field = str(inside.get("fieldPath") or "")
    entry = _ENTRY.fullmatch(field)
    if not field:
        yield required(f"{path}.fieldPath")
    elif entry is not None:
        yield from about(path, entry[1], wrong_with_label_key(entry[1].lower()))
    elif field in _OTHER_FIELDS:
        yield not_supported(f"{path}.fieldPath", field, _FIELDS)
    elif field not in _FIELDS:
        yield invalid(f"{path}.fieldPath", field, "there is no such field")
