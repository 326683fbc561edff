"""`scheduling.volcano.sh/v1beta1` Queue: a share of the cluster; `queue_quota` makes quota of it.

`priority`, other clusters and quota of devices have no counterpart here and are ignored with a
warning. Spec placement §1.2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from unisono.engine.model import queue as engine
from unisono.engine.model.names import FlavorName
from unisono.kinds.decode import Schema
from unisono.kinds.meta import ObjectMeta
from unisono.kinds.notes import Notes
from unisono.kinds.quantity import Quantity
from unisono.kinds.registry import Kind

# Where quota is counted for queues that know no flavors. No ResourceFlavor can have such a name.
ANY_NODE = engine.Flavor(name=FlavorName("unisono.dev/any"))
ROOT = "root"  # the queue above all others
STATES = ("Open", "Closed", "Closing", "Unknown")
HIERARCHY = "volcano.sh/hierarchy"
HIERARCHY_WEIGHTS = "volcano.sh/hierarchy-weights"
_LONGEST_WEIGHT = 32


class Guarantee(Schema, frozen=True, kw_only=True):
    """What is kept for a queue."""

    resource: Mapping[str, Quantity] = {}


class QueueSpec(Schema, frozen=True, kw_only=True):
    """How much a queue may use, and how it shares."""

    weight: Annotated[int, Meta(ge=1, le=65535)] = 1
    capability: Mapping[str, Quantity] = {}
    deserved: Mapping[str, Quantity] = {}
    guarantee: Guarantee = Guarantee()
    reclaimable: bool | None = None
    parent: str = ""
    priority: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    dequeue_strategy: Literal["fifo", "traverse", ""] = ""
    type: str = ""
    affinity: Any = None
    extend_clusters: tuple[Any, ...] = ()
    dra: Any = None


class QueueStatus(Schema, frozen=True, kw_only=True):
    """Whether it is open, and what is in it."""

    is_open: ClassVar[bool] = True

    state: str = ""
    allocated: Mapping[str, Quantity] = {}


class Queue(Schema, frozen=True, kw_only=True):
    """A queue of Volcano."""

    api_version: str = "scheduling.volcano.sh/v1beta1"
    kind: str = "Queue"
    metadata: ObjectMeta = ObjectMeta()
    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()


def check_queue(queue: Queue, notes: Notes) -> None:
    """Report amounts that contradict each other, and fields that have no effect."""
    spec = queue.spec
    lists = (
        ("spec.guarantee.resource", spec.guarantee.resource),
        ("spec.deserved", spec.deserved),
        ("spec.capability", spec.capability),
    )
    for path, amounts in lists:
        for name, quantity in amounts.items():
            if quantity.nano < 0:
                notes.problem(f"{path}[{name}]", f"is {quantity.text}; it must not be negative")
    for name, kept in sorted(spec.guarantee.resource.items()):
        deserved = spec.deserved.get(name)
        if deserved is None or deserved.nano < kept.nano:
            is_now = f"is {deserved.text}" if deserved is not None else "is missing"
            message = f"{is_now}; it must be >= guarantee, which is {kept.text}"
            notes.problem(f"spec.deserved[{name}]", message)
    for name, deserved in sorted(spec.deserved.items()):
        most = spec.capability.get(name)
        if most is not None and deserved.nano > most.nano:
            message = f"is {deserved.text}; it must be <= capability, which is {most.text}"
            notes.problem(f"spec.deserved[{name}]", message)
    if spec.parent == queue.metadata.name:
        notes.problem("spec.parent", "is the queue itself")
    if queue.status.state not in ("", *STATES):
        notes.problem("status.state", f'"{queue.status.state}" is none of {", ".join(STATES)}')
    _check_hierarchy(queue.metadata.annotations, notes)
    for field, value in (
        ("priority", spec.priority),
        ("affinity", spec.affinity),
        ("extendClusters", spec.extend_clusters),
        ("dra", spec.dra),
    ):
        if value:
            notes.warn("FieldIgnored", f"spec.{field}", "has no effect yet; ignored")


def _check_hierarchy(annotations: Mapping[str, str], notes: Notes) -> None:
    """Report annotations of the older way to make a tree, which say nothing about quota here."""
    path, weights = annotations.get(HIERARCHY, ""), annotations.get(HIERARCHY_WEIGHTS, "")
    if not path and not weights:
        return
    parts = weights.split("/")
    at = f"metadata.annotations[{HIERARCHY_WEIGHTS}]"
    if not path or not weights:
        there, missing = (HIERARCHY, HIERARCHY_WEIGHTS) if path else (HIERARCHY_WEIGHTS, HIERARCHY)
        message = f"is denied without {missing}: one weight for each part"
        notes.problem(f"metadata.annotations[{there}]", message)
        return
    if len(path.split("/")) != len(parts):
        message = f"{HIERARCHY} must have the same length with {HIERARCHY_WEIGHTS}"
        notes.problem(f"metadata.annotations[{HIERARCHY}]", f"{message}: one weight for each part")
        return
    for weight in parts:
        try:
            number = float(weight) if len(weight) < _LONGEST_WEIGHT else math.nan
        except ValueError:
            number = math.nan
        if math.isnan(number):
            notes.problem(at, f'"{weight}" is invalid number')
        elif number <= 0:
            notes.problem(at, f"{weight} must be larger than 0")
    message = "has no effect; spec.parent makes a tree of queues"
    notes.warn("FieldIgnored", f"metadata.annotations[{HIERARCHY}]", message)


KINDS = (
    Kind(
        group="scheduling.volcano.sh",
        version="v1beta1",
        kind="Queue",
        struct=Queue,
        namespaced=False,
        check=check_queue,
    ),
)
