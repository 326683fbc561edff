"""What would be bought: a part of `unisono plan`, as values and as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from unisono.cli.tables import paragraph
from unisono.engine.explain.formatting import format_duration, format_instant
from unisono.engine.explain.purchases import alternative_sentence, purchase_sentence
from unisono.engine.model.names import Instant
from unisono.engine.model.plan import Plan
from unisono.engine.model.provisioning import MICRO, Purchase

if TYPE_CHECKING:
    from unisono.kube.form import Json


def bought_by(plans: Iterable[Plan]) -> list[Purchase]:
    """Return what plans buy, in the order of decision."""
    return [
        admit.purchase for made in plans for admit in made.admissions if admit.purchase is not None
    ]


def as_json(purchase: Purchase) -> Json:
    """Return a purchase as a script reads it."""
    machines: dict[tuple[str, str, str, str], list[int]] = {}
    for node_claim in purchase.lots:
        alike = (node_claim.pool, node_claim.machine, node_claim.zone, node_claim.capacity_type)
        machines.setdefault(alike, []).append(node_claim.price_micro)
    return {
        "workload": purchase.workload,
        "machines": [
            {
                "pool": pool,
                "type": machine,
                "zone": zone,
                "capacityType": sold,
                "count": len(prices),
                "pricePerHour": sum(prices) / MICRO,
            }
            for (pool, machine, zone, sold), prices in machines.items()
        ],
        "pricePerHour": purchase.price_micro / MICRO,
        "readyBy": format_instant(purchase.ready_by),
        "alternatives": [
            {
                "machines": dict(one.machines),
                "zone": one.zone,
                "capacityType": one.capacity_type,
                "pricePerHour": one.price_micro / MICRO,
            }
            for one in purchase.alternatives
        ],
    }


def as_text(purchases: Iterable[Purchase], now: Instant) -> str:
    """Say what would be bought, for how much, how soon, and what else would do."""
    parts = []
    for purchase in purchases:
        soon = format_duration(max(0, purchase.ready_by - now))
        lines = [
            f"{purchase.workload} starts when its machines are ready, in about {soon}:",
            paragraph(f"buys {purchase_sentence(purchase)}", indent="  "),
        ]
        for one in purchase.alternatives:
            lines.append(paragraph(f"instead of {alternative_sentence(one)}", indent="  "))
        parts.append("\n".join(lines))
    return "\n\n".join(parts)
