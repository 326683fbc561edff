"""CustomResourceDefinitions as they are published, read into our entries of `kinds`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tools.shapes.schema import facts
from tools.shapes.union import unite
from unisono.kube.form import Json

_META = {"$ref": "meta.v1.ObjectMeta"}


def read_kind(files: list[Path]) -> Json:
    """Read one kind out of files of increasing age of the software; the newest comes last."""
    kind: Json = {}
    for file in files:
        older = kind
        kind = _read(file)
        if older:
            kind = unite_kinds(older, kind)
    return kind


def unite_kinds(older: Json, newer: Json) -> Json:
    """Return the newer entry with the versions, short names and fields of the older one, too."""
    versions = {version["name"]: version for version in newer["versions"]}
    for version in older["versions"]:
        name = version["name"]
        if name in versions:
            schema = unite(version["schema"], versions[name]["schema"])
            versions[name] = versions[name] | {"schema": schema}
        else:
            versions[name] = version | {"storage": False}
    names = [*newer["shortNames"], *older["shortNames"]]
    return newer | {
        "shortNames": list(dict.fromkeys(names)),
        "versions": sorted(versions.values(), key=lambda version: _age(version["name"])),
    }


def _age(version: str) -> tuple[int, int, int]:
    """Sort v1 before v1beta2 before v1beta1 before v1alpha2, as Kubernetes does.

    >>> sorted(["v1alpha1", "v1beta1", "v1", "v1beta2"], key=_age)
    ['v1', 'v1beta2', 'v1beta1', 'v1alpha1']
    """
    for rank, word in enumerate(("beta", "alpha"), start=1):
        if word in version:
            major, _, minor = version[1:].partition(word)
            return rank, -int(major), -int(minor)
    return 0, -int(version[1:]), 0


def _read(file: Path) -> Json:
    documents = yaml.load_all(file.read_text(), yaml.CSafeLoader)
    (document,) = [one for one in documents if one and one["kind"] == "CustomResourceDefinition"]
    spec = document["spec"]
    names = spec["names"]
    return {
        "kind": names["kind"],
        "plural": names["plural"],
        "singular": names["singular"],
        "shortNames": names.get("shortNames", []),
        "categories": names.get("categories", []),
        "namespaced": spec["scope"] == "Namespaced",
        "versions": [_version(version, names["kind"]) for version in spec["versions"]],
    }


def _version(published: Json, kind: str) -> Json:
    schema = facts(published["schema"]["openAPIV3Schema"], typed=False)
    schema["properties"]["metadata"] = dict(_META)
    subresources = published.get("subresources", {})
    version: dict[str, Any] = {
        "name": published["name"],
        "storage": published["storage"],
        "subresources": [name for name in ("status", "scale") if name in subresources],
        "selectable": [field["jsonPath"] for field in published.get("selectableFields", ())],
        "columns": [
            {
                key: column[key]
                for key in ("name", "type", "format", "priority", "jsonPath")
                if key in column
            }
            for column in published.get("additionalPrinterColumns", ())
        ],
        "schema": schema,
    }
    if published.get("deprecated"):
        version["deprecated"] = True  # the sentence is ours, see `assemble`
    if "scale" in subresources:
        paths = subresources["scale"]
        version["scale"] = {
            "spec": paths["specReplicasPath"],
            "status": paths["statusReplicasPath"],
            "selector": paths.get("labelSelectorPath", ""),
        }
    return version
