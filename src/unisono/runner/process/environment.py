"""The environment of a container, built in Kubernetes' order, and `$(NAME)` in it (spec jobs §8).

    what the machine gives (PATH, HOME)  <  services  <  envFrom, in order  <  env, in order

A value may use the names before it; commands may use all of them, but not what the machine gives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.view import View
from unisono.runner.process.references import CannotStartYet, References

_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")


@dataclass(frozen=True, slots=True)
class Environment:
    """The variables of a container."""

    written: Mapping[str, str]  # what the pod says: known to `$(NAME)`
    given: Mapping[str, str]  # what the machine says

    @property
    def whole(self) -> dict[str, str]:
        """All of them."""
        return {**self.given, **self.written}


def environment(
    container: Json,
    references: References,
    given: Mapping[str, str],
    instead: Callable[[str, str], str] = lambda name, value: value,
) -> Environment:
    """Return the environment of a container; raise NotYet if something it needs is missing.

    `instead` may put another value in the place of a written one (a port that is free, a count).
    """
    found: dict[str, str] = {}
    if references.pod["spec"].get("enableServiceLinks", True):
        found.update(_services(references.view, references.pod["metadata"].get("namespace", "")))
    for source in container.get("envFrom") or ():
        found.update(_from(source, references))
    for variable in container.get("env") or ():
        value = _value(variable, container, references, found)
        if value is not None:
            found[variable["name"]] = instead(variable["name"], value)
    return Environment(found, given)


def _from(source: Json, references: References) -> Mapping[str, str]:
    prefix = source.get("prefix") or ""
    contents: Mapping[str, bytes] | None = None
    for key, read in (("configMapRef", references.config_map), ("secretRef", references.secret)):
        ref = source.get(key)
        if ref:
            contents = read(ref.get("name", ""), is_optional=bool(ref.get("optional")))
    return {
        prefix + key: value.decode(errors="replace")
        for key, value in (contents or {}).items()
        if _NAME.fullmatch(prefix + key)
    }


def _value(
    variable: Json, container: Json, references: References, before: Mapping[str, str]
) -> str | None:
    source = variable.get("valueFrom")
    if not source:
        return expand(str(variable.get("value") or ""), before)
    if ref := source.get("fieldRef"):
        return references.field(ref["fieldPath"])
    if ref := source.get("resourceFieldRef"):
        return references.resource(ref, container["name"])
    for key, what in (("configMapKeyRef", "configmap"), ("secretKeyRef", "secret")):
        if ref := source.get(key):
            return _key(ref, what, references)
    raise CannotStartYet(f"env {variable['name']}: valueFrom has no supported source")


def _key(ref: Json, what: str, references: References) -> str | None:
    is_optional = bool(ref.get("optional"))
    read = references.config_map if what == "configmap" else references.secret
    contents = read(ref.get("name", ""), is_optional=is_optional)
    if contents is None:
        return None
    if ref["key"] not in contents:
        if is_optional:
            return None
        raise CannotStartYet(f"couldn't find key {ref['key']} in {what} {ref.get('name', '')}")
    return contents[ref["key"]].decode(errors="replace")


def _services(view: View, namespace: str) -> Mapping[str, str]:
    """Return where services of the namespace are found, as variables."""
    if not view.has(names.SERVICE):
        return {}
    found: dict[str, str] = {}
    for service in view.within(names.SERVICE, namespace):
        address = service["spec"].get("clusterIP")
        ports = service["spec"].get("ports") or ()
        if not address or address == "None" or not ports:
            continue
        name = service["metadata"]["name"].upper().replace("-", "_")
        found[f"{name}_SERVICE_HOST"] = address
        found[f"{name}_SERVICE_PORT"] = str(ports[0]["port"])
        for port in ports:
            if port.get("name"):
                key = port["name"].upper().replace("-", "_")
                found[f"{name}_SERVICE_PORT_{key}"] = str(port["port"])
    return found


_REFERENCE = re.compile(r"\$(\$|\(([^)]*)\))")


def expand(text: str, known: Mapping[str, str]) -> str:
    """Return a text with what is known put in; what was put in is not looked at again.

    >>> expand("$(A) $$(A) $$$(A) $(date) $A ${A} $$ $(A", {"A": "x$(A)"})
    'x$(A) $(A) $x$(A) $(date) $A ${A} $ $(A'
    """

    def put(found: re.Match[str]) -> str:
        if found[1] == "$":
            return "$"
        return known.get(found[2], found[0])

    return _REFERENCE.sub(put, text)
