"""A running cluster as manifests: what a decision reads, listed once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unisono.kube.client import Client
    from unisono.kube.form import Json
    from unisono.kube.mapping import Kind


def _kinds() -> Sequence[Kind]:
    from unisono.control import names

    return (
        names.NAMESPACE,
        names.NODE,
        names.POD,
        names.LIMIT_RANGE,
        names.PRIORITY_CLASS,
        names.RUNTIME_CLASS,
        names.FLAVOR,
        names.TOPOLOGY,
        names.ADMISSION_CHECK,
        names.COHORT,
        names.CLUSTER_QUEUE,
        names.LOCAL_QUEUE,
        names.WORKLOAD_PRIORITY_CLASS,
        names.VOLCANO_QUEUE,
        names.HYPER_NODE,
        names.WORKLOAD,
    )


async def living_files(client: Client, *, with_policy: bool) -> list[tuple[str, bytes]]:
    """Return everything that decisions are made from; kinds that are not served are left out."""
    from unisono.control import names
    from unisono.kube.errors import NotFound, UnknownKind

    files = []
    for kind in (*_kinds(), *((names.POLICY,) if with_policy else ())):
        try:
            found = (await client.list(kind)).items
        except (NotFound, UnknownKind):
            continue
        items = [_whole(one, kind) for one in found if _matters(one, kind)]
        listed = {"apiVersion": "v1", "kind": "List", "items": items}
        files.append((f"<{kind.kind} of the cluster>", json.dumps(listed).encode()))
    return files


def _whole(obj: Json, kind: Kind) -> Json:
    return {"apiVersion": kind.api_version, "kind": kind.kind, **obj}


def _matters(obj: Json, kind: Kind) -> bool:
    """Leave out pods without a node: their Workloads stand for them."""
    from unisono.control import names

    if kind != names.POD:
        return True
    over = (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return bool(obj["spec"].get("nodeName")) and not over
