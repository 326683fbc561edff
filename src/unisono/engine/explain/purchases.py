"""Words for machines: what is bought, what it costs, what else would do, and why nothing can be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from unisono.engine.model.explanation import CannotBuy
from unisono.engine.model.names import Instant, ResourceName
from unisono.engine.model.provisioning import MICRO, Alternative, Purchase

_REMEDIES = {
    "NoCompatibleNodePool": "let the pods tolerate the taints of a NodePool, or add a NodePool",
    "RequirementsUnsatisfiable": "change what the pods select, or the requirements of a NodePool",
    "NoInstanceFits": "ask for less in one pod, or allow larger machine types",
    "LimitExceeded": "raise spec.limits of the NodePool, or wait until others end",
    "SpotOptInRequired": "allow on-demand in the NodePool, or annotate the job "
    "unisono.dev/allow-spot=true",
    "BudgetExceeded": "raise provisioning.maxHourlyCost of the policy",
    "BlockEnds": "a shorter time limit, or another capacity type",
    "TopologyUnsatisfiable": "ask for a zone or a node instead, or prefer instead of require",
    "NotReady": "mend the NodePool",
}


def dollars(micro: int) -> str:
    """Write a price for people.

    >>> dollars(74_089_400), dollars(384_000)
    ('$74.09', '$0.384')
    """
    amount = micro / MICRO
    return f"${amount:.2f}" if amount >= 10 else f"${amount:.4f}".rstrip("0").rstrip(".")


def counted(names: Iterable[str]) -> str:
    """Count equal things.

    >>> counted(["a", "b", "a"])
    '2 × a, 1 × b'
    """
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{count} × {name}" for name, count in counts.items())


def purchase_sentence(purchase: Purchase) -> str:
    """Say what is bought, where, and for how much; what is on its way anyway last."""
    lots = sorted(purchase.lots, key=lambda node_claim: node_claim.taken_over)
    wares = counted(
        f"{node_claim.machine} {node_claim.capacity_type} in {node_claim.zone}"
        + (" that is on its way already" if node_claim.taken_over else "")
        for node_claim in lots
    )
    return f"{wares} for {dollars(purchase.price_micro)}/h"


def alternative_sentence(one: Alternative) -> str:
    """Say what else would do, and for how much."""
    wares = ", ".join(f"{count} × {name}" for name, count in one.machines)
    text = f"{wares} {one.capacity_type} in {one.zone} for {dollars(one.price_micro)}/h"
    return f"{text} ({one.lacks})" if one.lacks else text


def cannot_sentence(fact: CannotBuy, amount: Callable[[int, ResourceName], str]) -> str:
    """Say why nothing can be bought: pool by pool, and what would do."""
    each = ", ".join(amount(wanted, name) for name, wanted in fact.each)
    text = f"pod set {fact.pod_set} needs {fact.pods} × ({each}), and machines cannot be bought"
    pools = [f"pool {one.pool}: {one.detail or one.code}" for one in fact.pools]
    if fact.retry_at is not None:
        moment = datetime.fromtimestamp(fact.retry_at / 1000, tz=UTC)
        pools.append(f"asked again at {moment:%H:%M:%S} UTC")
    others = [alternative_sentence(one) for one in fact.alternatives]
    told = [f"{text} ({fact.code})", *pools]
    return "; ".join([*told, *(f"would do: {one}" for one in others)])


def buying_remedy(fact: CannotBuy) -> str:
    """Say what would change that."""
    if fact.code in _REMEDIES:
        return _REMEDIES[fact.code]
    return "stock that comes back; or allow another zone or machine type in a NodePool"


def soon(ready_by: Instant, now: Instant) -> int:
    """Return in how many seconds machines are expected."""
    return max(0, -(-(ready_by - now) // 1000))
