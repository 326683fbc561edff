"""A wish to be close together, written on the template of a pod set (`kinds.core.topology`)."""

from __future__ import annotations

from unisono.control.actions import Json
from unisono.engine.model.workload import TopologyRequest
from unisono.kinds.core.topology import GROUP, PREFERRED, REQUIRED, SLICE_LEVEL, SLICE_SIZE


def with_topology(template: Json, request: TopologyRequest, group: str = "") -> Json:
    """Return a template whose set asks for a topology; sets of one group share a domain."""
    said: dict[str, str] = {}
    if request.mode == "required":
        said[REQUIRED] = request.level
    elif request.level:
        said[PREFERRED] = request.level
    if request.slice_size:
        said |= {SLICE_LEVEL: request.slice_level, SLICE_SIZE: str(request.slice_size)}
    elif group and said:
        said[GROUP] = group
    metadata = template.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), **said}
    return {**template, "metadata": {**metadata, "annotations": annotations}}
