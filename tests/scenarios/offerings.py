"""The short words of a scenario for machines that can be bought.

region: us-east-1
pools:  {gpu: {family: [g5], weight: 10, limits: {cpu: 1000}, used: {cpu: 576}}}
stock:  {p5.48xlarge us-east-1a: 6}        as many as there are, where that is known
a job:  {pods: 2, gpu: 8, buying: {spot: true, packing: MinCost}}
a cycle: {train: {buys: {machines: {g5.xlarge: 2}, zone: us-east-1a, price: 2.012}}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tests.scenarios.reading import Part
from tests.scenarios.words import labels, taint
from unisono.engine.model.names import Instant
from unisono.engine.model.provisioning import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    ZONE,
    CapacityType,
    Offerings,
    Pool,
    ProvisioningOptions,
    Purchase,
)
from unisono.engine.model.resources import amounts
from unisono.engine.model.selection import Requirement, Taint
from unisono.engine.provisioning.catalogue import Refused, after_refusal
from unisono.provision.catalog.offers import offerings_of

_AWS = "karpenter.k8s.aws/instance"
_KEYS = {
    "types": INSTANCE_TYPE,
    "family": f"{_AWS}-family",
    "category": f"{_AWS}-category",
    "zones": ZONE,
    "sold": CAPACITY_TYPE,
}
_PLAIN = ("weight", "gang_spot", "limits", "used", "labels", "taints", "requires")
_BUYS = ("machines", "zone", "sold", "price", "pods", "reuses")


class Stalls:
    """What is for sale in a story, and what was refused so far."""

    def __init__(self) -> None:
        self.region = "us-east-1"
        self._pools: dict[str, Pool] = {}
        self._stock: dict[tuple[str, str, CapacityType], int] = {}
        self._ends: dict[tuple[str, str, CapacityType], Instant] = {}
        self._refused: dict[tuple[str, str, CapacityType], Refused] = {}

    def set_pool(self, name: str, part: Part) -> None:
        """Take in a pool."""
        self._pools[name] = pool(name, part)

    def set_stock(self, part: Part) -> None:
        """Take in how many there are of an offer, or {count, ends} of a block of capacity."""
        for words, count in part.entries():
            offer = _offer(words)
            if count.is_scalar():
                self._stock[offer] = count.whole()
            else:
                given = count.fields("count", "ends")
                self._stock[offer] = given["count"].whole()
                self._ends[offer] = Instant(given["ends"].milliseconds())

    def refuse(self, part: Part, now: Instant) -> None:
        """Remember that so many of an offer were refused; 0 means that they were granted."""
        for words, count in part.entries():
            offer = _offer(words)
            if not count.whole():
                self._refused.pop(offer, None)
                continue
            before = self._refused.get(offer)
            self._refused[offer] = after_refusal(
                before, offer, count.whole(), now, "InsufficientCapacity"
            )

    def offerings(self) -> Offerings | None:
        """Return all of it as the engine reads it."""
        made = offerings_of(
            list(self._pools.values()),
            [self.region],
            refused=self._refused.values(),
        )
        if made is None:
            return None
        known = {(one.machine, one.zone, one.capacity_type): one for one in made.offers}
        for offer, count in self._stock.items():
            first = known.get((offer[0], offer[1], "on-demand"))
            assert first is not None, f"no pool sells {offer}"
            price = first.price_micro if offer[2] != "reserved" else 1000
            known[offer] = msgspec.structs.replace(
                known.get(offer, first),
                capacity_type=offer[2],
                stock=count,
                price_micro=known[offer].price_micro if offer in known else price,
                ends_at=self._ends.get(offer),
            )
        return msgspec.structs.replace(made, offers=tuple(known.values()))


def _offer(words: str) -> tuple[str, str, CapacityType]:
    """Read `TYPE ZONE [SOLD AS]`."""
    machine, zone, *sold = words.split()
    kinds: Mapping[str, CapacityType] = {"spot": "spot", "reserved": "reserved"}
    return machine, zone, kinds.get(sold[0], "on-demand") if sold else "on-demand"


def pool(name: str, part: Part) -> Pool:
    """Read a pool."""
    given = part.fields(*_KEYS, *_PLAIN)
    requirements = [
        Requirement(key, "In", tuple(given[word].names()))
        for word, key in _KEYS.items()
        if word in given
    ]
    for key, values in given["requires"].entries() if "requires" in given else ():
        requirements.append(Requirement(key, "In", tuple(values.names())))
    return Pool(
        name=name,
        weight=given["weight"].whole() if "weight" in given else 0,
        labels=labels(given["labels"]) if "labels" in given else (),
        taints=tuple(
            Taint(*taint(one)) for one in (given["taints"].items() if "taints" in given else ())
        ),
        requirements=tuple(requirements),
        limits=_amounts(given.get("limits")),
        used=_amounts(given.get("used")),
        allows_gang_spot="gang_spot" in given and given["gang_spot"].flag(),
    )


def _amounts(part: Part | None) -> tuple[Any, ...]:
    if part is None:
        return ()
    return amounts({name: value.amount(name) for name, value in part.entries()})


def buying(part: Part) -> ProvisioningOptions:
    """Read what a workload asks of machines."""
    given = part.fields("spot", "packing", "scope", "mixed", "accepts_block_end")
    found: dict[str, Any] = {}
    if "spot" in given:
        found["spot"] = "mixed" if given["spot"].value == "mixed" else "true"
    if "packing" in given:
        found["packing"] = given["packing"].one_of("MinCost", "Balanced", "FewestNodes")
    if "scope" in given:
        found["scope"] = given["scope"].text()
    if "mixed" in given:
        found["mixed_models"] = given["mixed"].flag()
    if "accepts_block_end" in given:
        found["accepts_block_end"] = given["accepts_block_end"].flag()
    return ProvisioningOptions(**found)


def compare(wanted: Part, purchase: Purchase, reused: int) -> str:
    """Say how a purchase differs from what a story expects; nothing if it does not."""
    given = wanted.fields(*_BUYS)
    node_claims = purchase.node_claims
    counts: dict[str, int] = {}
    for node_claim in node_claims:
        counts[node_claim.machine] = counts.get(node_claim.machine, 0) + 1
    actual: dict[str, Any] = {
        "machines": counts,
        "zone": sorted({node_claim.zone for node_claim in node_claims}),
        "sold": sorted({node_claim.capacity_type for node_claim in node_claims}),
        "price": purchase.price_micro,
        "pods": sorted(
            (sum(pods for _, pods in node_claim.pods) for node_claim in node_claims), reverse=True
        ),
        "reuses": reused,
    }
    expected: dict[str, Any] = {
        "machines": lambda part: {name: one.whole() for name, one in part.entries()},
        "zone": lambda part: [part.text()],
        "sold": lambda part: [part.text()],
        "price": lambda part: round(float(part.value) * 1_000_000),
        "pods": lambda part: [one.whole() for one in part.items()],
        "reuses": lambda part: part.whole(),
    }
    for word, part in given.items():
        if expected[word](part) != actual[word]:
            return f"{word}: expected {expected[word](part)}, got {actual[word]}"
    return ""
