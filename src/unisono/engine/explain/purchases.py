"""Purchases as text: what is bought, its price, alternatives, and why nothing can be bought."""

from __future__ import annotations

from unisono.engine.explain.formatting import (
    format_amount,
    format_counts,
    format_instant,
    format_price,
)
from unisono.engine.model.explanation import CannotBuy
from unisono.engine.model.provisioning import Alternative, Purchase

_REMEDIES = {
    "NoCompatibleNodePool": "let the pods tolerate the taints of a NodePool, or add a NodePool",
    "RequirementsUnsatisfiable": "change what the pods select, or the requirements of a NodePool",
    "NoInstanceFits": "ask for less in one pod, or allow larger machine types",
    "LimitExceeded": "raise spec.limits of the NodePool, or wait until workloads end",
    "SpotOptInRequired": "allow on-demand in the NodePool, or annotate the job "
    "unisono.dev/allow-spot=true",
    "BudgetExceeded": "raise provisioning.maxHourlyCost of the policy",
    "BlockEnds": "a shorter time limit, or another capacity type",
    "TopologyUnsatisfiable": "ask for a zone or a node instead, or prefer instead of require",
    "NotReady": "see why the NodePool is not ready",
}


def purchase_sentence(purchase: Purchase) -> str:
    """Return what is bought, where, and at what price; machines taken over come last."""
    node_claims = sorted(purchase.node_claims, key=lambda node_claim: node_claim.taken_over)
    machines = format_counts(
        f"{node_claim.machine} {node_claim.capacity_type} in {node_claim.zone}"
        + (" (already being provisioned)" if node_claim.taken_over else "")
        for node_claim in node_claims
    )
    return f"{machines} for {format_price(purchase.price_micro)}/h"


def alternative_sentence(one: Alternative) -> str:
    """Return another set of machines that would fit, with its price."""
    machines = ", ".join(f"{count} × {name}" for name, count in one.machines)
    text = f"{machines} {one.capacity_type} in {one.zone} for {format_price(one.price_micro)}/h"
    return f"{text} ({one.lacks})" if one.lacks else text


def cannot_buy_sentence(fact: CannotBuy) -> str:
    """Return why nothing can be bought, pool by pool, and what would fit."""
    each = ", ".join(format_amount(wanted, name) for name, wanted in fact.each)
    text = f"pod set {fact.pod_set} needs {fact.pods} × ({each}), and no machines can be bought"
    pools = [f"pool {one.pool}: {one.detail or one.code}" for one in fact.pools]
    if fact.retry_at is not None:
        pools.append(f"tried again at {format_instant(fact.retry_at)}")
    others = [alternative_sentence(one) for one in fact.alternatives]
    parts = [f"{text} ({fact.code})", *pools]
    return "; ".join([*parts, *(f"alternative: {one}" for one in others)])


def cannot_buy_remedy(fact: CannotBuy) -> str:
    """Return what would change that."""
    if fact.code in _REMEDIES:
        return _REMEDIES[fact.code]
    return "wait for stock, or allow another zone or machine type in a NodePool"
