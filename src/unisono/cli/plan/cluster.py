"""A living cluster as one document and what it can buy, for plans of what is not applied yet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import orjson

from unisono.control import names
from unisono.control.admission.record import VOLCANO_LOCAL_QUEUE
from unisono.control.assembly import INDEXES
from unisono.control.view import KindStore, View
from unisono.engine.model.provisioning import Offerings
from unisono.kinds.snapshot.local_queues import UNLIMITED_LOCAL_QUEUE
from unisono.kube.client import Client
from unisono.kube.errors import Forbidden, NotFound, UnknownKind
from unisono.kube.form import Json
from unisono.kube.mapping import Kind
from unisono.provision import assembly as provisioning
from unisono.provision.keys import STOCK, SYSTEM
from unisono.provision.offerings import OfferingsReader

_READ: Sequence[Kind] = (
    names.POLICY,
    names.NAMESPACE,
    names.NODE,
    names.POD,
    names.LIMIT_RANGE,
    names.PRIORITY_CLASS,
    names.RUNTIME_CLASS,
    names.CLUSTER_TRAINING_RUNTIME,
    names.TRAINING_RUNTIME,
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
_PURCHASING: Sequence[Kind] = (names.NODE_POOL, names.NODE_CLAIM, names.CONFIG_MAP)


@dataclass(frozen=True, slots=True)
class There:
    """What is there."""

    file: tuple[str, bytes]  # everything that decides, as one list
    offerings: Offerings | None
    workloads: frozenset[str]  # those that are there already


async def read_cluster(client: Client) -> There:
    """Read everything that a decision depends on."""
    found = {kind: await _list(client, kind) for kind in (*_READ, *_PURCHASING)}
    indexes = {**INDEXES, **provisioning.INDEXES}
    view = View({kind: KindStore.of(kind, indexes.get(kind, {})) for kind in found})
    for kind, objects in found.items():
        for obj in objects:
            list(view.upsert(kind, obj))
    aside = {_key(one) for one in found[names.WORKLOAD] if _is_implicit(one)}
    found[names.WORKLOAD] = [one for one in found[names.WORKLOAD] if _key(one) not in aside]
    items = [
        one for kind in _READ for one in found[kind] if kind != names.POD or _is_other(one, aside)
    ]
    document = {"apiVersion": "v1", "kind": "List", "items": items}
    return There(
        file=("the cluster", orjson.dumps(document)),
        offerings=OfferingsReader(home=_home(found[names.CONFIG_MAP])).read(view),
        workloads=frozenset(_key(one) for one in found[names.WORKLOAD]),
    )


def _home(config_maps: Iterable[Json]) -> str:
    """Return the namespace where refusals are written down: a laptop's, or an installation's."""
    found = (one["metadata"] for one in config_maps if one["metadata"]["name"] == STOCK)
    return next((str(one["namespace"]) for one in found), SYSTEM)


async def _list(client: Client, kind: Kind) -> list[Json]:
    """Return all objects of a kind; none where it is not served or not ours to read."""
    try:
        items = (await client.list(kind)).items
    except (Forbidden, NotFound, UnknownKind):
        return []
    return [{**one, "apiVersion": kind.api_version, "kind": kind.kind} for one in items]


def _key(obj: Json) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def _is_implicit(workload: Json) -> bool:
    """Say whether a workload is in the queue without quota, which manifests cannot name.

    Only its pods count, then: they take room, and no quota.
    """
    lq = workload["spec"].get("queueName", "")
    return bool(lq == UNLIMITED_LOCAL_QUEUE or lq.startswith(VOLCANO_LOCAL_QUEUE))


def _is_other(pod: Json, aside: Collection[str]) -> bool:
    """Say whether a pod takes room that no Workload accounts for."""
    annotations = pod["metadata"].get("annotations") or {}
    is_over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    workload = annotations.get(names.WORKLOAD_ANNOTATION, "")
    is_ours = bool(workload) and f"{pod['metadata']['namespace']}/{workload}" not in aside
    return bool(pod["spec"].get("nodeName")) and not is_over and not is_ours
