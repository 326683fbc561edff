"""A purchase as a Workload's status records it: the machines, and its phase.

    Planned ──claims written──▶ Waiting ──all ready──▶ Ready
       │                           │
       └───── refused, too late, quota lost ─────▶ RolledBack | TimedOut

The admission names nodes that do not exist yet; this condition says what they are. It is written
with the admission in one patch, so that a restarted controller knows what was decided.
Spec provisioning §5.5.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.conditions import find, is_true, with_condition
from unisono.engine.explain.purchases import alternative_sentence, purchase_sentence
from unisono.engine.model.names import NodeName
from unisono.engine.model.provisioning import CapacityType, NodeClaim, Purchase

Phase = Literal["Planned", "Waiting", "Ready", "RolledBack", "TimedOut"]
# The index of opportunistic workloads by the gangs that hold their nodes.
BY_HOLDER = "lender"
# The index of workloads by the machines that they wait for.
BY_MACHINE = "machine"
UNDER_WAY: tuple[Phase, ...] = ("Planned", "Waiting")


class Alike(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Machines of a purchase that are alike, with their names."""

    pool: str
    type: str
    zone: str
    sold: CapacityType
    price: int  # millionths of a dollar an hour, each
    pods: dict[str, int]
    nodes: tuple[str, ...]
    taken_over: bool = False  # on their way already, for a workload that gave them up


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What a Workload says of its purchase."""

    attempt: int
    planned_at: int  # seconds
    ready_by: int
    machines: tuple[Alike, ...]

    @property
    def nodes(self) -> list[str]:
        """The names of all machines."""
        return [name for alike in self.machines for name in alike.nodes]

    @property
    def price_micro(self) -> int:
        """What all of it costs an hour."""
        return sum(alike.price * len(alike.nodes) for alike in self.machines)

    def node_claims(self) -> Iterable[NodeClaim]:
        """Yield every machine."""
        for alike in self.machines:
            for name in alike.nodes:
                yield NodeClaim(
                    node=NodeName(name),
                    pool=alike.pool,
                    machine=alike.type,
                    zone=alike.zone,
                    capacity_type=alike.sold,
                    price_micro=alike.price,
                    pods=tuple(alike.pods.items()),
                    taken_over=alike.taken_over,
                )


def purchase_of(workload: Json) -> tuple[Phase, Written] | None:
    """Return what a Workload says of its purchase; None if it has none."""
    found = find((workload.get("status") or {}).get("conditions"), names.PURCHASE)
    if found is None:
        return None
    try:
        return found["reason"], msgspec.json.decode(found["message"], type=Written)
    except msgspec.DecodeError:
        return None


def is_holding(workload: Json) -> bool:
    """Say whether a Workload holds quota, and was not told to leave."""
    status = workload.get("status") or {}
    evicted = find(status.get("conditions"), "Evicted")
    is_evicted = evicted is not None and evicted["status"] == "True"
    return bool(status.get("admission")) and not is_evicted


def bought(conditions: list[Json], purchase: Purchase, now: float) -> list[Json]:
    """Add to an admission what has to be bought for it first."""
    old = purchase_of({"status": {"conditions": conditions}})
    attempt = 1 if old is None else old[1].attempt + (old[0] == "TimedOut")
    written = Written(
        attempt=attempt,
        planned_at=int(now),
        ready_by=purchase.ready_by // 1000,
        machines=tuple(_alike(purchase)),
    )
    conditions = with_phase(conditions, "Planned", written, now)
    conditions = with_condition(
        conditions,
        "Admitted",
        "False",
        "WaitingForMachines",
        "Waiting for the purchased machines to join",
        now=now,
    )
    return with_condition(
        conditions, names.CAPACITY_PLANNED, "True", "Planned", planned_text(purchase), now=now
    )


def replacing(conditions: list[Json], purchase: Purchase, now: float) -> list[Json]:
    """Add machines to a gang that runs, for nodes that it lost."""
    written = Written(
        attempt=1,
        planned_at=int(now),
        ready_by=purchase.ready_by // 1000,
        machines=tuple(_alike(purchase)),
    )
    conditions = with_phase(conditions, "Planned", written, now)
    text = planned_text(purchase)
    return with_condition(conditions, names.CAPACITY_PLANNED, "True", "Planned", text, now=now)


def is_buying(workload: Json) -> bool:
    """Say whether machines for a workload are on their way."""
    found = purchase_of(workload)
    return found is not None and found[0] in UNDER_WAY


def machines_due(workload: Json) -> int | None:
    """Return when the last machine of a gang that has started nothing is expected, in seconds."""
    found = purchase_of(workload)
    if found is None or found[0] not in UNDER_WAY:
        return None
    is_running = is_true(workload["status"].get("conditions"), "Admitted")
    return None if is_running else found[1].ready_by


def holders_of(workload: Json) -> list[str]:
    """Return the keys of the gangs that hold the nodes of an opportunistic job."""
    found = find((workload.get("status") or {}).get("conditions"), names.ON_LOAN)
    return found["message"].split() if found is not None else []


def nodes_to_come(workload: Json) -> frozenset[str]:
    """Return the machines of a purchase that is under way: not to be used before all are ready."""
    found = purchase_of(workload)
    return frozenset(found[1].nodes) if found is not None and found[0] in UNDER_WAY else frozenset()


def planned_text(purchase: Purchase) -> str:
    """Say what is bought, and what else would have done."""
    others = [f"instead of {alternative_sentence(one)}" for one in purchase.alternatives[:2]]
    return "; ".join([f"buys {purchase_sentence(purchase)}", *others])


def with_phase(conditions: list[Json], phase: Phase, written: Written, now: float) -> list[Json]:
    """Set how far a purchase is."""
    text = msgspec.json.encode(written).decode()
    status: Literal["True", "False"] = "True" if phase == "Ready" else "False"
    return with_condition(conditions, names.PURCHASE, status, phase, text, now=now)


def without_purchase(conditions: list[Json]) -> list[Json]:
    """Take a purchase back that an admission no longer has."""
    ours = (names.PURCHASE, names.CAPACITY_PLANNED)
    return [one for one in conditions if one["type"] not in ours]


def _alike(purchase: Purchase) -> Iterable[Alike]:
    groups: dict[NodeClaim, list[str]] = {}
    for node_claim in purchase.node_claims:
        same = msgspec.structs.replace(node_claim, node=NodeName(""))
        groups.setdefault(same, []).append(node_claim.node)
    for node_claim, nodes in groups.items():
        yield Alike(
            pool=node_claim.pool,
            type=node_claim.machine,
            zone=node_claim.zone,
            sold=node_claim.capacity_type,
            price=node_claim.price_micro,
            pods=dict(node_claim.pods),
            nodes=tuple(nodes),
            taken_over=node_claim.taken_over,
        )
