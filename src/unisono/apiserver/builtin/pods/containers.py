"""What Kubernetes refuses in containers (probes, lifecycle hooks, variables) and in volumes."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator

from unisono.apiserver.builtin.field_errors import (
    about,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from unisono.apiserver.errors import Cause
from unisono.apiserver.objects import Json, at, numbered
from unisono.kinds.meta import wrong_with_dns_label, wrong_with_label_key, wrong_with_subdomain
from unisono.kinds.quantity import Quantity

MAX_PORT = 65535

_ACTIONS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_SCHEMES = ("HTTP", "HTTPS")
_COUNTS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_PORT_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_MAX_PORT_NAME = 15


def check_probes(container: Json, path: str) -> Iterator[Cause]:
    """Yield the faults of a container's probes."""
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if not isinstance(probe, dict):
            continue
        at_ = f"{path}.{name}"
        yield from _check_action(probe, at_, grace=None)
        for field in _COUNTS:
            value = probe.get(field)
            if isinstance(value, int) and value < 0:
                yield invalid(f"{at_}.{field}", value, "must be greater than or equal to 0")
        if name != "readinessProbe" and probe.get("successThreshold") not in (None, 1):
            yield invalid(f"{at_}.successThreshold", probe["successThreshold"], "must be 1")
        grace = probe.get("terminationGracePeriodSeconds")
        if grace is not None and name == "readinessProbe":
            why = "must not be set for readinessProbes"
            yield invalid(f"{at_}.terminationGracePeriodSeconds", grace, why)
        elif isinstance(grace, int) and grace <= 0:
            yield invalid(f"{at_}.terminationGracePeriodSeconds", grace, "must be greater than 0")


def check_lifecycle(container: Json, path: str, grace: object) -> Iterator[Cause]:
    """Yield the faults of what a container does at its start and before its end."""
    lifecycle = at(container, "lifecycle")
    for name in ("postStart", "preStop"):
        if isinstance(lifecycle.get(name), dict):
            yield from _check_action(lifecycle[name], f"{path}.lifecycle.{name}", grace=grace)


def _check_action(action: Json, path: str, *, grace: object) -> Iterator[Cause]:
    given = [name for name in _ACTIONS if isinstance(action.get(name), dict)]
    if not given:
        yield required(path, "must specify a handler type")
        return
    for extra in given[1:]:
        yield forbidden(f"{path}.{extra}", "may not specify more than 1 handler type")
    first, at_ = action[given[0]], f"{path}.{given[0]}"
    match given[0]:
        case "exec":
            if not first.get("command"):
                yield required(f"{at_}.command")
        case "httpGet":
            if not first.get("path"):
                yield required(f"{at_}.path")
            yield from _check_port(first.get("port"), f"{at_}.port")
            if first.get("scheme") not in _SCHEMES:
                yield not_supported(f"{at_}.scheme", first.get("scheme"), _SCHEMES)
        case "tcpSocket" | "grpc":
            yield from _check_port(first.get("port"), f"{at_}.port")
        case _:
            seconds = first.get("seconds")
            most = grace if isinstance(grace, int) else 0
            if isinstance(seconds, int) and not 0 <= seconds <= most:
                why = f"must be non-negative and less than terminationGracePeriodSeconds ({most})"
                yield invalid(at_, seconds, why)


def _check_port(port: object, path: str) -> Iterator[Cause]:
    if isinstance(port, str):
        yield from about(path, port, wrong_with_port_name(port))
    elif not isinstance(port, int) or not 1 <= port <= MAX_PORT:
        yield invalid(path, port, f"must be between 1 and {MAX_PORT}, inclusive")


def wrong_with_port_name(name: str) -> str:
    """Say why a text is no name of a port; empty if it is one."""
    if len(name) > _MAX_PORT_NAME:
        return f"must be no more than {_MAX_PORT_NAME} characters"
    if _PORT_NAME.fullmatch(name) is None:
        return "must contain only lower-case letters, digits and hyphens inside"
    if not any(letter.isalpha() for letter in name):
        return "must contain at least one letter (a-z)"
    return "must not contain consecutive hyphens" if "--" in name else ""


# ---- environment variables -----------------------------------------------------------------------


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


# ---- volumes -------------------------------------------------------------------------------------


_HOST_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_MAX_MODE = 0o777
# Which field a source cannot do without.
_NEEDED = (
    ("hostPath", "path"),
    ("configMap", "name"),
    ("persistentVolumeClaim", "claimName"),
    ("secret", "secretName"),
    ("nfs", "server"),
    ("nfs", "path"),
    ("csi", "driver"),
)


def check_volumes(spec: Json, path: str) -> Generator[Cause, None, set[str]]:
    """Yield the faults of volumes; return their names."""
    seen: set[str] = set()
    for at_, volume in numbered(spec, "volumes", path):
        name = str(volume.get("name") or "")
        if not name:
            yield required(f"{at_}.name")
        else:
            yield from about(f"{at_}.name", name, wrong_with_dns_label(name))
        if name in seen:
            yield duplicate(f"{at_}.name", name)
        seen.add(name)
        sources = [key for key, value in volume.items() if key != "name" and value is not None]
        if len(sources) > 1:
            yield forbidden(f"{at_}.{sources[1]}", "may not specify more than 1 volume type")
        yield from _check_volume_source(volume, at_)
    return seen


def _check_volume_source(volume: Json, path: str) -> Iterator[Cause]:
    for source, field in _NEEDED:
        if isinstance(volume.get(source), dict) and not volume[source].get(field):
            yield required(f"{path}.{source}.{field}")
    host = at(volume, "hostPath")
    if ".." in str(host.get("path") or "").split("/"):
        yield invalid(f"{path}.hostPath.path", host["path"], "must not contain '..'")
    if host and host.get("type") not in (None, *_HOST_TYPES):
        yield not_supported(f"{path}.hostPath.type", host["type"], _HOST_TYPES)
    nfs = at(volume, "nfs").get("path")
    if nfs and not str(nfs).startswith("/"):
        yield invalid(f"{path}.nfs.path", nfs, "must be an absolute path")
    limit = at(volume, "emptyDir").get("sizeLimit")
    if limit is not None and _is_negative(limit):
        yield forbidden(f"{path}.emptyDir.sizeLimit", "must be a valid resource quantity")
    for source in ("secret", "configMap", "downwardAPI", "projected"):
        inside = at(volume, source)
        yield from _check_mode(inside.get("defaultMode"), f"{path}.{source}.defaultMode")
        if source in ("secret", "configMap"):
            yield from _check_files(inside, f"{path}.{source}")


def _check_files(source: Json, path: str) -> Iterator[Cause]:
    for at_, file in numbered(source, "items", path):
        if not file.get("key"):
            yield required(f"{at_}.key")
        target = str(file.get("path") or "")
        if not target:
            yield required(f"{at_}.path")
        yield from about(f"{at_}.path", target, wrong_with_relative_path(target))
        yield from _check_mode(file.get("mode"), f"{at_}.mode")


def wrong_with_relative_path(path: str) -> str:
    """Say why a path leads out of its place; empty if it does not."""
    if path.startswith("/"):
        return "must be a relative path"
    return "must not contain '..'" if ".." in path.split("/") else ""


def _check_mode(mode: object, path: str) -> Iterator[Cause]:
    if isinstance(mode, int) and not 0 <= mode <= _MAX_MODE:
        yield invalid(path, mode, "must be a number between 0 and 0777 (octal), both inclusive")


def _is_negative(amount: object) -> bool:
    try:
        return Quantity.from_raw(amount).nano < 0
    except ValueError:
        return False
