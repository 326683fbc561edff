"""Who owns which field of an object, whatever version they wrote it in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from unisono.apiserver.catalogue import Catalogue, Resource
from unisono.apiserver.conversion import convert
from unisono.apiserver.patch.versions import Translate
from unisono.apiserver.strategy import Json
from unisono.kinds.shapes.shape import Shape


def translator(catalogue: Catalogue, resource: Resource) -> Translate | None:
    """Return what shows an object in another version of its kind; None if there is only one."""
    served = resource.served
    if resource.is_only_version:
        return None

    def translate(obj: Mapping[str, Any], api_version: str) -> tuple[Json, Shape] | None:
        found = catalogue.find(served.group, api_version.rpartition("/")[2], served.plural)
        if found is None:
            return None
        return convert(served.key, dict(obj), found.served.version), found.served.shape

    return translate


def unowned(resource: Resource) -> Collection[str] | None:
    """Return which fields nobody owns at the main address; None for the usual ones.

    Where the status has no address of its own it is a field like others.
    """
    return None if resource.has_status or resource.strategy.is_typed else ()
