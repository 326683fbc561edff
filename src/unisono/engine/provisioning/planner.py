"""Which machines to buy for a gang: the cheapest complete set, or the reason why there is none.

    tiers of pools by weight ─▶ zone ─▶ how it is sold ─▶ model of GPU ─▶ `fill`, set by set

The first tier in which all pods get a place wins; within it the lowest price, the risk of
interruptions included. Every step is deterministic. Spec provisioning §5.3 and §5.4.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from unisono.engine.model.names import CPU, Instant
from unisono.engine.model.provisioning import (
    MAX_PURCHASED_NODES,
    Alternative,
    CapacityType,
    Offerings,
)
from unisono.engine.placement.demand import Demand
from unisono.engine.provisioning.candidates import Candidates
from unisono.engine.provisioning.catalogue import Catalogue, Refusal
from unisono.engine.provisioning.filling import Attempt, at_least, fill
from unisono.engine.provisioning.order import (
    FIRM,
    Filled,
    Order,
    Refused,
    has_gpus,
    is_accelerator,
)

# Other ways to do it that are named beside the chosen one.
MOST_ALTERNATIVES = 3
_HOUR_MS = 3_600_000
ANYWHERE = ""


def choose(order: Order, catalogue: Catalogue) -> Filled | Refused:
    """Return the cheapest complete way, or why there is none."""
    return _Search(order, catalogue).best()


def alternatives_to(order: Order, catalogue: Catalogue, chosen: Filled) -> tuple[Alternative, ...]:
    """Return other complete ways with their prices, the cheapest first."""
    search = _Search(order, catalogue)
    for weight in search.weights:
        search.try_tier(weight)
    return _alternatives(search.found, besides=chosen)


@dataclass(slots=True)
class _Search:
    order: Order
    catalogue: Catalogue
    found: list[Filled] = field(default_factory=list)
    weights: list[int] = field(init=False)
    candidates: Candidates = field(init=False)
    demands: tuple[Demand, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.weights = sorted(
            {offering.pool.weight for offering in self.catalogue.offerings}, reverse=True
        )
        self.demands = tuple(sorted(self.order.demands, key=_size))
        self.candidates = Candidates(self.order, self.catalogue, self.demands)

    def best(self) -> Filled | Refused:
        """Try tier after tier."""
        for weight in self.weights:
            self.try_tier(weight, only_best=True)
            if self.found:
                best = min(self.found, key=lambda one: one.key())
                machines = sum(box.count for box in best.bought)
                if machines > MAX_PURCHASED_NODES:
                    return self._too_many(machines)
                return self._within_budget(best)
        return self._refused()

    def try_tier(self, weight: int, *, only_best: bool = False) -> None:
        """Try every zone, every way to buy and every model, with pools of at least this weight.

        If only the best is wanted, what cannot become cheaper is left out.
        """
        order, lead = self.order, self.demands[0]
        attempts = [
            Attempt(zone, sold, model, weight)
            for sold in self._ways_to_buy()
            for zone in self._zones()
            for model in self._models(zone)
        ]
        bounds = [at_least(order, self.candidates, lead, attempt) for attempt in attempts]
        best: int | None = None
        for number in sorted(range(len(attempts)), key=lambda one: (bounds[one], one)):
            if only_best and best is not None and bounds[number] > best:
                break
            filled = fill(order, self.candidates, self.demands, attempts[number])
            if filled is not None:
                filled.effective = self._effective(filled)
                best = filled.effective if best is None else min(best, filled.effective)
                self.found.append(filled)

    def _zones(self) -> list[str]:
        if not self.order.wants_one_zone:
            return [ANYWHERE]
        return self.candidates.zones()

    def _ways_to_buy(self) -> list[tuple[CapacityType, ...]]:
        """Return which capacity types may be bought together."""
        if not self.order.is_gang:
            return [("reserved", "spot", "on-demand")]
        if self.order.policy.spot == "never":
            return [FIRM]
        if self.order.buying.spot == "mixed":
            return [FIRM, ("spot",), ("reserved", "on-demand", "spot")]
        return [FIRM, ("spot",)]  # without opt-in there are no spot candidates

    def _models(self, zone: str) -> list[str]:
        """Return the models that the leading pod set could have; one of them for all machines."""
        lead = self.demands[0]
        if not has_gpus(lead) or self.order.buying.mixed_models or not self.order.policy.same_model:
            return [ANYWHERE]
        return self.candidates.models(lead, zone)

    def _effective(self, filled: Filled) -> int:
        """Add what interruptions are expected to cost (spec provisioning §5.4)."""
        rate = 0  # of interruptions of any of its machines in an hour, in thousandths
        for box in filled.bought:
            if box.offering is not None and box.offering.offer.capacity_type == "spot":
                own = box.offering.pool.interruptions_milli
                rate += box.count * (self.order.policy.interruptions_milli if own is None else own)
        if not rate or not self.order.is_gang:
            return filled.price
        own_loss = self.order.buying.restart_ms
        lost = self.order.policy.restart_ms if own_loss is None else own_loss
        return filled.price + filled.price * rate * lost // (1000 * _HOUR_MS)

    def _too_many(self, machines: int) -> Refused:
        """Refuse to buy more than a cluster can have, whatever the pools allow."""
        text = f"needs {machines} machines; at most {MAX_PURCHASED_NODES} are bought at a time"
        pools = sorted({offering.pool.name for offering in self.catalogue.offerings})
        refusals = tuple((name, Refusal("LimitExceeded", text)) for name in pools)
        return Refused("LimitExceeded", self.demands[0].name, refusals)

    def _within_budget(self, best: Filled) -> Filled | Refused:
        most = self.order.policy.most_per_hour_micro
        spent = self.catalogue.source.spent_micro
        if most is None or spent + best.price <= most:
            return best
        alternatives = _alternatives(
            self.found, lacks=f"above the limit of ${most / 1e6:.2f} an hour"
        )
        return Refused("BudgetExceeded", self.demands[0].name, alternatives=alternatives)

    def _refused(self) -> Refused:
        demand, code, pools = self.candidates.reasons(self.demands)
        unbounded = _Search(self.order, Catalogue(_without_bounds(self.catalogue.source)))
        unbounded.candidates.ignores_stock = True
        for weight in unbounded.weights:
            unbounded.try_tier(weight)
        lacks = {"StockOut": "out of stock", "LimitExceeded": "above the limit of the pool"}
        alternatives = _alternatives(
            unbounded.found, lacks=lacks.get(code, "not allowed"), spot=self._spot_lacks()
        )
        return Refused(code, demand, pools, alternatives, self.candidates.retry_at())

    def _spot_lacks(self) -> str:
        """Say what stands between a gang and spot machines; empty: nothing but stock or limits."""
        if not self.order.is_gang or self.order.buying.spot or self.order.policy.spot == "allow":
            return ""
        if any(pool.allows_gang_spot for pool in self.catalogue.source.pools):
            return ""
        return "spot, which the job does not allow"


def _without_bounds(offerings: Offerings) -> Offerings:
    """Return what could be bought if everything is in stock, and no pool has a limit."""
    pools = tuple(msgspec.structs.replace(pool, limits=()) for pool in offerings.pools)
    return msgspec.structs.replace(offerings, pools=pools, outages=())


def _size(demand: Demand) -> tuple[int, int, str]:
    """Order pod sets: the most accelerators first, then the most cores."""
    devices = sum(amount for name, amount in demand.requests if is_accelerator(name))
    cores = sum(amount for name, amount in demand.requests if name == CPU)
    return -devices, -cores, demand.name


def _alternatives(
    found: list[Filled], *, besides: Filled | None = None, lacks: str = "", spot: str = ""
) -> tuple[Alternative, ...]:
    """Return the cheapest ways, each choice of machines once; `spot`: what those on spot lack."""
    seen = {_machines(besides)} if besides is not None else set()
    alternatives: list[Alternative] = []
    for filled in sorted(found, key=lambda one: one.key()):
        machines = _machines(filled)
        if machines in seen or not filled.bought or len(alternatives) == MOST_ALTERNATIVES:
            continue
        seen.add(machines)
        first = next(box.offering for box in filled.bought if box.offering is not None)
        alternatives.append(
            Alternative(
                machines=machines[0],
                zone=first.offer.zone,
                capacity_type=first.offer.capacity_type,
                price_micro=filled.price,
                lacks=spot if spot and "spot" in machines[1] else lacks,
            )
        )
    return tuple(alternatives)


def _machines(filled: Filled) -> tuple[tuple[tuple[str, int], ...], str]:
    counts: dict[str, int] = {}
    capacity_types: set[str] = set()
    for box in filled.bought:
        if box.offering is not None:
            counts[box.offering.machine.name] = counts.get(box.offering.machine.name, 0) + box.count
            capacity_types.add(box.offering.offer.capacity_type)
    return tuple(sorted(counts.items())), "+".join(sorted(capacity_types))


def ready_by(catalogue: Catalogue, now: Instant) -> Instant:
    """Return when machines bought now are ready, mostly."""
    return Instant(now + catalogue.source.soon_ms)
