"""Kinds that users define: a CustomResourceDefinition becomes something that is served.

A definition of a kind that we have ourselves is kept, so that an install script finds what it
applied, but ours goes on being served; the client is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.apiserver.catalogue import Catalogue
from unisono.apiserver.rest.context import ServerContext
from unisono.apiserver.storage.record import Change, Kind
from unisono.kinds.digits import is_digits
from unisono.kinds.shapes.served import Served, read_served

CRDS = "apiextensions.k8s.io/customresourcedefinitions"


def follow(server: ServerContext) -> None:
    """Serve what is defined now, and whatever is defined later."""
    catalogue = server.catalogue
    for record in server.store.listing(CRDS):
        _define(record.load(), catalogue, record.rv)

    def changed(change: Change) -> None:
        if change.record.key[0] != CRDS:
            return
        definition = change.record.load()
        if change.kind is Kind.DELETED:
            spec = definition["spec"]
            catalogue.withdraw(f"{spec['group']}/{spec['names']['plural']}")
        else:
            _define(definition, catalogue, change.rv)

    server.store.on_change.append(changed)


def _define(definition: Mapping[str, Any], catalogue: Catalogue, rv: int) -> None:
    spec = definition["spec"]
    key = f"{spec['group']}/{spec['names']['plural']}"
    if catalogue.is_builtin(key):
        return
    versions = versions_of(definition)
    if versions:
        catalogue.define(versions, rv)


def versions_of(definition: Mapping[str, Any]) -> tuple[Served, ...]:
    """Return what a definition serves, preferred version first."""
    spec = definition["spec"]
    names = spec["names"]
    entry = {
        "kind": names["kind"],
        "plural": names["plural"],
        "singular": names.get("singular") or names["kind"].lower(),
        "shortNames": names.get("shortNames") or (),
        "categories": names.get("categories") or (),
        "namespaced": spec["scope"] == "Namespaced",
        "versions": [_version(version) for version in _in_order(spec["versions"])],
    }
    return tuple(read_served(entry, spec["group"]))


def _in_order(versions: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Sort versions as discovery does: v2 before v1, v1 before v1beta2 before v1alpha1."""
    served = [version for version in versions if version.get("served")]
    return sorted(served, key=lambda version: _rank(version["name"]))


def _rank(name: str) -> tuple[int, int, int, str]:
    rest = name.removeprefix("v")
    for stage, word in ((1, "beta"), (2, "alpha"), (0, "")):
        major, found, minor = rest.partition(word) if word else (rest, "", "")
        if (word and not found) or not is_digits(major) or (minor and not is_digits(minor)):
            continue
        return (stage, -int(major), -int(minor or 0), name)
    return (3, 0, 0, name)


def _version(version: Mapping[str, Any]) -> dict[str, Any]:
    subresources = version.get("subresources") or {}
    scale = subresources.get("scale")
    warning = ""
    if version.get("deprecated"):
        warning = version.get("deprecationWarning") or f"version {version['name']} is deprecated"
    return {
        "name": version["name"],
        "storage": bool(version.get("storage")),
        "deprecated": warning,
        "subresources": [name for name in ("status", "scale") if name in subresources],
        "scale": {
            "spec": scale["specReplicasPath"],
            "status": scale["statusReplicasPath"],
            "selector": scale.get("labelSelectorPath", ""),
        }
        if scale
        else None,
        "columns": version.get("additionalPrinterColumns") or (),
        "selectable": [one["jsonPath"] for one in version.get("selectableFields") or ()],
        "schema": (version.get("schema") or {}).get("openAPIV3Schema") or {},
    }
