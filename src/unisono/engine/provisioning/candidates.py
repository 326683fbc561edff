"""Which offerings each pod set could use, and per pool how far the best of them came.

The filters stand in the order in which a person would ask: does the pool take such pods, does it
have such machines, are they large enough, may it be spot, is one in stock, is the pool's limit
high enough. What stops the offering that came furthest is the reason of its pool.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from unisono.engine.model.names import Instant
from unisono.engine.model.provisioning import CAPACITY_TYPE, NODES, Pool
from unisono.engine.placement.demand import Demand
from unisono.engine.provisioning.catalogue import (
    Catalogue,
    FreeAmounts,
    Offering,
    Refusal,
    allocatable_of,
    label_in_the_way,
    slots_in,
    taint_in_the_way,
    topology_in_the_way,
)
from unisono.engine.provisioning.order import Order

# How far an offering came, and so which reason of a pool is reported.
_STEPS = (
    "NotReady",
    "TopologyUnsatisfiable",
    "NoCompatibleNodePool",
    "RequirementsUnsatisfiable",
    "NoInstanceFits",
    "SpotOptInRequired",
    "BlockEnds",
    "PoolBusy",
    "LimitExceeded",
    "StockOut",
)
# A block of capacity is drained so long before its end.
BLOCK_MARGIN_MS = 40 * 60 * 1000
NO_END = 1 << 40


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A offering that holds pods of a demand."""

    offering: Offering
    slots: int
    stock: int
    is_scarce: bool = False  # the offer itself has an end, whichever pool buys it


@dataclass(slots=True)
class Candidates:
    """What each pod set could have, worked out once."""

    order: Order
    catalogue: Catalogue
    demands: tuple[Demand, ...]
    ignores_stock: bool = False  # as if everything were in stock and allowed
    _known: dict[str, list[Candidate]] = field(default_factory=dict)
    _among: dict[tuple[str, str, str], list[Candidate]] = field(default_factory=dict)
    _why: dict[str, dict[str, Refusal]] = field(default_factory=dict)
    _retry: list[Instant] = field(default_factory=list)
    _allocatable: dict[str, FreeAmounts] = field(default_factory=dict)

    def of(self, demand: Demand) -> list[Candidate]:
        """Return what a pod set could have."""
        found = self._known.get(demand.name)
        if found is None:
            why: dict[str, Refusal] = dict(self.catalogue.refused)
            found = self._known[demand.name] = self._find(demand, why)
            self._why[demand.name] = why
        return found

    def among(self, demand: Demand, zone: str, model: str) -> list[Candidate]:
        """Return what a pod set could have in a zone, of a model; empty: of any."""
        key = (demand.name, zone, model)
        found = self._among.get(key)
        if found is None:
            found = self._among[key] = [
                one
                for one in self.of(demand)
                if zone in ("", one.offering.offer.zone)
                and model in ("", one.offering.machine.model)
            ]
        return found

    def allocatable(self, offering: Offering) -> FreeAmounts:
        """Return what a new machine has for pods."""
        allocatable = self._allocatable.get(offering.machine.name)
        if allocatable is None:
            allocatable = self._allocatable[offering.machine.name] = allocatable_of(
                offering, self.catalogue.source.overhead
            )
        return allocatable

    def zones(self) -> list[str]:
        """Return the zones in which something is for sale, or nodes are free."""
        sold = {one.offering.offer.zone for demand in self.demands for one in self.of(demand)}
        return sorted(sold | {node.zone for node in self.order.free})

    def models(self, demand: Demand, zone: str) -> list[str]:
        """Return the models that a pod set could have in a zone."""
        sold = {
            one.offering.machine.model
            for one in self.of(demand)
            if zone in ("", one.offering.offer.zone)
        }
        there = {
            node.model
            for node in self.order.free
            if zone in ("", node.zone) and demand.name in node.takes
        }
        return sorted((sold | there) - {""})

    def retry_at(self) -> Instant | None:
        """Return when something may be in stock again that is not now."""
        return min(self._retry, default=None)

    def reasons(
        self, demands: tuple[Demand, ...]
    ) -> tuple[str, str, tuple[tuple[str, Refusal], ...]]:
        """Return the pod set that has no place, why, and the reason of each pool."""
        for demand in demands:
            if not self.of(demand):
                return self._reason(demand)
        return self._reason(demands[0])

    def _reason(self, demand: Demand) -> tuple[str, str, tuple[tuple[str, Refusal], ...]]:
        self.of(demand)
        why = dict(self._why[demand.name])
        for one in self.of(demand):  # each would do, but not enough of them
            _note(why, one.offering.pool, self._shortage(one))
        pools = tuple(sorted(why.items()))
        if not pools:
            return demand.name, "NoCompatibleNodePool", ()
        furthest = max(pools, key=lambda pair: _STEPS.index(pair[1].code))
        return demand.name, furthest[1].code, pools

    def _shortage(self, one: Candidate) -> Refusal:
        """Say why there are too few of something that would do."""
        if one.stock < NO_END:
            text, offer = (
                f"{one.stock} × {one.offering.machine.name} is all there is",
                one.offering.offer,
            )
            if self._headroom(one.offering) <= one.stock:
                return Refusal("LimitExceeded", self._over(one.offering, one.stock + 1))
            return Refusal("StockOut", f"{text} {offer.capacity_type} in {offer.zone}")
        return Refusal("StockOut", "no zone has enough for all of them")

    def _find(self, demand: Demand, why: dict[str, Refusal]) -> list[Candidate]:
        wide = topology_in_the_way(demand)
        if wide is not None:
            for pool in self.catalogue.source.pools:
                _note(why, pool, wide)
            return []
        found: list[Candidate] = []
        slots: dict[str, int] = {}
        shut: dict[str, Refusal | None] = {}
        for offering in self.catalogue.offerings:
            name = offering.pool.name
            if name not in shut:
                shut[name] = taint_in_the_way(offering.pool.taints, demand.constraint)
            refusal = shut[name] or label_in_the_way(offering, demand.constraint)
            if refusal is None:
                count = slots.get(offering.machine.name)
                if count is None:
                    count = slots[offering.machine.name] = slots_in(
                        self.allocatable(offering), demand
                    )
                refusal, stock = self._allowed(offering, demand, count)
                if refusal is None:
                    is_scarce = not self.ignores_stock and stock < self._headroom(offering)
                    found.append(Candidate(offering, count, stock, is_scarce))
                    continue
            _note(why, offering.pool, refusal)
        return found

    def _allowed(
        self, offering: Offering, demand: Demand, slots: int
    ) -> tuple[Refusal | None, int]:
        """Apply the filters that labels and taints are not."""
        if slots < 1:
            return Refusal("NoInstanceFits", "no machine type is large enough for one pod"), 0
        stock = NO_END if offering.offer.stock is None else offering.offer.stock
        if self.ignores_stock:
            return None, NO_END
        if not spot_is_fine(self.order, offering, demand):
            text = "its machines are spot; say unisono.dev/allow-spot to use them for a gang"
            return Refusal("SpotOptInRequired", text), 0
        if ends_too_soon(self.order, offering):
            return Refusal("BlockEnds", "the block of capacity ends before the gang would"), 0
        busy = dict(self.catalogue.source.under_way).get(offering.pool.name, 0)
        if busy >= self.order.policy.most_at_once:
            return Refusal("PoolBusy", f"{busy} purchases are under way in it"), 0
        headroom = self._headroom(offering)
        if headroom < 1:
            return Refusal("LimitExceeded", self._over(offering, 1)), 0
        left, refusal = self._in_stock(offering, -(-demand.needed // slots))
        return refusal, min(stock, headroom, left)

    def _in_stock(self, offering: Offering, wanted: int) -> tuple[int, Refusal | None]:
        """Return how many may be asked for; `wanted` is how many this alone would need."""
        offer = offering.offer
        outage = self.catalogue.outages.get((offer.capacity_type, offer.machine, offer.zone))
        if outage is None or outage.until <= self.order.now:
            return NO_END, None
        self._retry.append(outage.until)
        if outage.fewer_from <= self.order.now and outage.count > 1:
            return outage.count - 1, None
        if wanted < outage.count:
            self._retry.append(outage.fewer_from)
        text = f"{offer.machine} {offer.capacity_type} {offer.zone} out of stock"
        return 0, Refusal("StockOut", f"{text} (asked {outage.count})")

    def _headroom(self, offering: Offering) -> int:
        """Return how many machines of a type the limits of its pool still allow."""
        return headroom(offering, {})

    def _over(self, offering: Offering, count: int) -> str:
        """Say by which limit a pool refuses machines."""
        used, capacity = dict(offering.pool.used), dict(offering.machine.capacity)
        for name, limit in offering.pool.limits:
            each = 1 if name == NODES else capacity.get(name, 0)
            total = used.get(name, 0) + count * each
            if each and total > limit:
                return f"{name} {_plain(total, name)} > {_plain(limit, name)}"
        return "the limits of the pool"


def spot_is_fine(order: Order, offering: Offering, demand: Demand) -> bool:
    """Say whether a offering may be used for a pod set although it may be taken away."""
    if offering.offer.capacity_type != "spot" or not order.is_gang:
        return True
    policy = order.policy
    if policy.spot == "never":
        return False
    asked = (CAPACITY_TYPE, "spot") in demand.constraint.selector
    return bool(
        asked or order.buying.spot or policy.spot == "allow" or offering.pool.allows_gang_spot
    )


def ends_too_soon(order: Order, offering: Offering) -> bool:
    """Say whether a block of capacity would be over before the gang is."""
    ends = offering.offer.ends_at
    if ends is None or order.buying.accepts_block_end:
        return False
    return order.ends_at is None or order.ends_at > ends - BLOCK_MARGIN_MS


def headroom(offering: Offering, planned: dict[str, dict[str, int]]) -> int:
    """Return how many machines of a type its pool may still have, beside those that are planned."""
    capacity, used = dict(offering.machine.capacity), dict(offering.pool.used)
    mine = planned.get(offering.pool.name, {})
    most = NO_END
    for name, limit in offering.pool.limits:
        each = 1 if name == NODES else capacity.get(name, 0)
        if each:
            left = limit - used.get(name, 0) - mine.get(name, 0)
            most = min(most, max(0, left // each))
    return most


def _note(why: dict[str, Refusal], pool: Pool, refusal: Refusal) -> None:
    """Keep the reason of the offering that came furthest; of equals, the first."""
    known = why.get(pool.name)
    if known is None or _STEPS.index(refusal.code) > _STEPS.index(known.code):
        why[pool.name] = refusal


def _plain(amount: int, resource: str) -> str:
    return str(amount // 1000) if resource == "cpu" else str(amount)
