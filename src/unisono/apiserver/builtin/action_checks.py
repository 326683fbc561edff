"""What Kubernetes refuses in probes and lifecycle hooks: what to do, and how often."""

from __future__ import annotations

import re
from collections.abc import Iterator

from unisono.apiserver.builtin.causes import about, forbidden, invalid, not_supported, required
from unisono.apiserver.builtin.reach import Json, at
from unisono.apiserver.errors import Cause

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
