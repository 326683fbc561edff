"""`scheduling.volcano.sh/v1beta1` Queue: what it caps becomes the quota of a cluster queue.

A Queue `NAME` stands for the ClusterQueue `volcano/NAME`:

    capability             nominal quota, of one flavor that stands for every node; what it does not
                           list is not limited
    weight                 the weight in fair sharing
    dequeueStrategy: fifo  StrictFIFO: a job that does not fit holds up those behind it
    state Closed, Closing  no workload is admitted

Shares between queues (`deserved`, `guarantee`, `parent`, `priority`) and node groups (`affinity`)
have no counterpart here and are ignored with a warning. Spec placement §1.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from unisono.engine.model import queue as engine
from unisono.engine.model.names import FlavorName, QueueName, ResourceName
from unisono.engine.model.selection import LabelSelector
from unisono.kinds.decode import Schema
from unisono.kinds.meta import ObjectMeta
from unisono.kinds.notes import Notes
from unisono.kinds.quantity import Quantity
from unisono.kinds.registry import Kind

# Where quota is counted for queues that know no flavors. No ResourceFlavor can have such a name.
ANY_NODE = engine.Flavor(name=FlavorName("unisono.dev/any"))
_ROOT = "root"


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
    for place, (path, lower) in enumerate(lists):
        for above, upper in lists[place + 1 :]:
            for name in sorted(lower.keys() & upper.keys()):
                if lower[name].nano > upper[name].nano:
                    more = f"is {lower[name].text}, more than {above.removeprefix('spec.')}"
                    notes.problem(f"{path}[{name}]", f"{more}, which is {upper[name].text}")
    if spec.parent == queue.metadata.name:
        notes.problem("spec.parent", "is the queue itself")
    for field, value in (
        ("deserved", spec.deserved),
        ("guarantee", spec.guarantee.resource),
        ("parent", spec.parent not in ("", _ROOT)),
        ("priority", spec.priority),
        ("affinity", spec.affinity),
        ("extendClusters", spec.extend_clusters),
        ("dra", spec.dra),
    ):
        if value:
            notes.warn("FieldIgnored", f"spec.{field}", "has no effect yet; ignored")


def cluster_queue_of(queue: Queue) -> engine.ClusterQueue:
    """Return the cluster queue that a Volcano queue stands for."""
    spec = queue.spec
    quotas = tuple(
        engine.ResourceQuota(resource=ResourceName(name), nominal=quantity.amount(name))
        for name, quantity in sorted(spec.capability.items())
    )
    group = engine.ResourceGroup(
        covered=tuple(quota.resource for quota in quotas),
        flavors=(engine.FlavorQuota(ANY_NODE.name, quotas),),
    )
    return engine.ClusterQueue(
        name=QueueName(f"volcano/{queue.metadata.name}"),
        groups=(group,) if quotas else (),
        strategy="StrictFIFO" if spec.dequeue_strategy == "fifo" else "BestEffortFIFO",
        namespace_selector=LabelSelector(),
        stop="Hold" if queue.status.state in ("Closed", "Closing") else "None",
        weight_milli=spec.weight * engine.MILLI,
        terminating=queue.metadata.deletion_timestamp is not None,
        unlimited=True,
    )


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
