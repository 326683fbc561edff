"""Values that a pod's environment and files refer to: its own fields, config maps, secrets."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.view import View
from unisono.kinds.quantity import Quantity
from unisono.runner.status import PodAddress

_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_NODE_AMOUNTS = ("cpu", "memory", "ephemeral-storage")


class CannotStartYet(Exception):
    """A container cannot start now: its status says why, and it is tried again."""

    def __init__(self, message: str, reason: str = "CreateContainerConfigError") -> None:
        """Take the words for the status."""
        super().__init__(message)
        self.message = message
        self.reason = reason


@dataclass(frozen=True, slots=True)
class References:
    """Everything that a value may refer to."""

    pod: Json
    view: View
    where: PodAddress

    # ---- config maps and secrets --------------------------------------------------------------

    def config_map(self, name: str, *, is_optional: bool) -> Mapping[str, bytes] | None:
        """Return the contents of a config map; None if it may be missing, and is."""
        found = self.view.get(names.CONFIG_MAP, name, self._namespace)
        if found is None:
            _may_be_missing("configmap", name, is_optional=is_optional)
            return None
        plain = {key: str(value).encode() for key, value in (found.get("data") or {}).items()}
        return plain | _decoded(found.get("binaryData"))

    def secret(self, name: str, *, is_optional: bool) -> Mapping[str, bytes] | None:
        """Return the contents of a secret; None if it may be missing, and is."""
        found = self.view.get(names.SECRET, name, self._namespace)
        if found is None:
            _may_be_missing("secret", name, is_optional=is_optional)
            return None
        return _decoded(found.get("data"))

    @property
    def _namespace(self) -> str:
        return str(self.pod["metadata"].get("namespace", ""))

    # ---- fields -------------------------------------------------------------------------------

    def field(self, path: str) -> str:
        """Return a field of the pod, as environments and files show it."""
        metadata, spec = self.pod["metadata"], self.pod["spec"]
        if found := _SUBSCRIPT.fullmatch(path):
            return str((metadata.get(found[1]) or {}).get(found[2], ""))
        match path:
            case "metadata.name" | "metadata.namespace" | "metadata.uid":
                return str(metadata.get(path.partition(".")[2], ""))
            case "metadata.labels" | "metadata.annotations":
                return _listed(metadata.get(path.partition(".")[2]) or {})
            case "spec.nodeName":
                return str(spec.get("nodeName", ""))
            case "spec.serviceAccountName":
                return str(spec.get("serviceAccountName", "default"))
            case "status.podIP" | "status.podIPs":
                return self.where.pod_ip
            case "status.hostIP" | "status.hostIPs":
                return self.where.host_ip
            case _:
                raise CannotStartYet(f"unsupported fieldPath: {path}")

    def resource(self, ref: Json, container: str) -> str:
        """Return an amount of a container in units of a divisor, rounded up.

        What a container does not limit is limited by its node.
        """
        part, _, resource = str(ref.get("resource", "")).partition(".")
        name = ref.get("containerName") or container
        spec = self.pod["spec"]
        every = (*(spec.get("initContainers") or ()), *spec["containers"])
        found = next((one for one in every if one["name"] == name), None)
        if found is None or part not in ("limits", "requests"):
            raise CannotStartYet(f"unsupported resourceFieldRef: {ref.get('resource')} of {name}")
        resources = found.get("resources") or {}
        amount = (resources.get(part) or {}).get(resource)
        if amount is None and part == "requests":
            amount = (resources.get("limits") or {}).get(resource, 0)
        if amount is None:
            amount = self._allocatable(resource)
        divisor = Quantity.from_raw(ref.get("divisor") or "1").nano or 10**9
        return str(-(-Quantity.from_raw(amount).nano // divisor))

    def _allocatable(self, resource: str) -> object:
        node = self.view.get(names.NODE, self.pod["spec"].get("nodeName", "")) or {}
        amounts = (node.get("status") or {}).get("allocatable") or {}
        return amounts.get(resource, 0) if resource in _NODE_AMOUNTS else 0


def _may_be_missing(kind: str, name: str, *, is_optional: bool) -> None:
    if not is_optional:
        raise CannotStartYet(f'{kind} "{name}" not found')


def _decoded(raw: Mapping[str, str] | None) -> dict[str, bytes]:
    found = {}
    for key, value in (raw or {}).items():
        try:
            found[key] = base64.b64decode(value)
        except binascii.Error as error:
            raise CannotStartYet(f"the value of {key} is not base64") from error
    return found


def _listed(texts: Mapping[str, str]) -> str:
    """Return labels as files show them: one `key="value"` per line."""
    return "\n".join(f"{key}={json.dumps(value)}" for key, value in sorted(texts.items()))
