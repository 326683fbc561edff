"""What a job says about machines that are bought for it: annotations on the job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.engine.model.provisioning import Packing, ProvisioningOptions
from unisono.kinds.notes import Notes
from unisono.kinds.scalar import duration_ms

SCOPE = "unisono.dev/topology"
MIXED = "unisono.dev/mixed-gpu"
SPOT = "unisono.dev/allow-spot"
PACKING = "unisono.dev/packing"
RESTART_COST = "unisono.dev/restart-cost"
BLOCK_END = "unisono.dev/accept-block-end"
DISRUPTABLE = "unisono.dev/disruptable"  # it may be moved to save money
# What a Workload repeats of its job.
BUYING = (SCOPE, MIXED, SPOT, PACKING, RESTART_COST, BLOCK_END, DISRUPTABLE)
_PACKINGS: Mapping[str, Packing] = {
    "MinCost": "MinCost",
    "Balanced": "Balanced",
    "FewestNodes": "FewestNodes",
}


def buying_of(annotations: Mapping[str, Any], notes: Notes) -> ProvisioningOptions:
    """Return the wishes of a job; one that cannot be read is warned about and does not count."""
    if not any(key in annotations for key in BUYING):
        return ProvisioningOptions()
    spot = str(annotations.get(SPOT, ""))
    if spot not in ("", "true", "false", "mixed"):
        _warn(notes, SPOT, f'"{spot}" is not true, false or mixed')
    packing = str(annotations.get(PACKING, ""))
    if packing and packing not in _PACKINGS:
        _warn(notes, PACKING, f'"{packing}" is not {", ".join(_PACKINGS)}')
    return ProvisioningOptions(
        scope=str(annotations.get(SCOPE, "")),
        mixed_models=annotations.get(MIXED) == "true",
        spot="mixed" if spot == "mixed" else "true" if spot == "true" else "",
        packing=_PACKINGS.get(packing),
        restart_ms=_restart(annotations, notes),
        accepts_block_end=annotations.get(BLOCK_END) == "true",
    )


def _restart(annotations: Mapping[str, Any], notes: Notes) -> int | None:
    text = annotations.get(RESTART_COST)
    if text is None:
        return None
    try:
        return duration_ms(str(text))
    except ValueError as reason:
        _warn(notes, RESTART_COST, str(reason))
        return None


def _warn(notes: Notes, key: str, message: str) -> None:
    notes.warn("FieldIgnored", f"metadata.annotations[{key}]", message)
