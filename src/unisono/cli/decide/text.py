"""A decision as people read it in a terminal."""

from __future__ import annotations

import msgspec

from unisono.cli.decide.decision import (
    Admitted,
    Decision,
    Evicted,
    NodeClaims,
    Pending,
    PodSetDecision,
    Shrunk,
)
from unisono.cli.tables import paragraph, table

NODES_SHOWN = 8  # of one pod set, before a line gets too long to read


def render(decision: Decision) -> str:
    """Return the whole decision as text."""
    parts = [_warnings(decision), _evicted(decision.evicted), _shrunk(decision.shrunk)]
    parts += [_admitted(decision.admitted), _bought(decision.node_claims)]
    parts.append(_pending(decision.pending))
    changed = decision.admitted or decision.evicted or decision.shrunk
    if not changed and not decision.pending:
        parts.append("Nothing is pending, and nothing has to change.")
    parts.append(_closing(decision))
    return "\n\n".join(part for part in parts if part) + "\n"


def _warnings(decision: Decision) -> str:
    lines = []
    for warning in decision.warnings:
        place = f"{warning.file}: document {warning.document}" if warning.document else warning.file
        where = f"{place}: {warning.path}" if warning.path else place
        lines.append(f"warning: {where}: {warning.message}")
    return "\n".join(lines)


def _admitted(admitted: list[Admitted]) -> str:
    if not admitted:
        return ""
    rows = [
        [item.cycle, item.workload, item.queue, pod_set.name, pod_set.count, _flavors(pod_set)]
        for item in admitted
        for pod_set in item.pod_sets
    ]
    headings = ["CYCLE", "WORKLOAD", "QUEUE", "POD SET", "PODS", "FLAVORS"]
    placed = [
        [item.workload, pod_set.name, _nodes(pod_set.nodes, pod_set.devices or {})]
        for item in admitted
        for pod_set in item.pod_sets
        if pod_set.nodes is not msgspec.UNSET
    ]
    text = "Admitted:\n" + table(headings, rows)
    if placed:
        text += "\n\nPlaced:\n" + table(["WORKLOAD", "POD SET", "NODES"], placed)
    return text


def _bought(claims: list[NodeClaims]) -> str:
    """List the machines that are bought first, and their price."""
    if not claims:
        return ""
    headings = ["WORKLOAD", "POOL", "MACHINES", "ZONE", "CAPACITY", "US$/H"]
    rows = [
        [
            one.workload,
            one.pool,
            f"{one.count} × {one.type}",
            one.zone,
            one.capacityType,
            f"{one.pricePerHour:.4f}".rstrip("0").rstrip("."),
        ]
        for one in claims
    ]
    return "Bought before it starts:\n" + table(headings, rows)


def _nodes(nodes: dict[str, int], devices: dict[str, list[int]]) -> str:
    """Write pods per node; a large gang shows its first nodes and how many more there are."""
    shown = [
        (name if pods == 1 else f"{name}:{pods}") + _gpus(devices.get(name, []))
        for name, pods in nodes.items()
    ]
    if len(shown) <= NODES_SHOWN:
        return " ".join(shown)
    return " ".join(shown[:NODES_SHOWN]) + f" and {len(shown) - NODES_SHOWN} more"


def _gpus(devices: list[int]) -> str:
    """Write which GPUs of a node pods share."""
    numbers = ",".join(str(device) for device in sorted(set(devices)))
    return f"(gpu {numbers})" if devices else ""


def _flavors(pod_set: PodSetDecision) -> str:
    by_flavor: dict[str, list[str]] = {}
    for resource, flavor in pod_set.flavors.items():
        by_flavor.setdefault(flavor, []).append(resource)
    return " ".join(f"{flavor}({','.join(names)})" for flavor, names in by_flavor.items())


def _evicted(evicted: list[Evicted]) -> str:
    if not evicted:
        return ""
    rows = [[item.cycle, item.workload, item.reason, item.by] for item in evicted]
    return "Evicted:\n" + table(["CYCLE", "WORKLOAD", "REASON", "FOR"], rows)


def _shrunk(shrunk: list[Shrunk]) -> str:
    if not shrunk:
        return ""
    rows = [
        [item.cycle, item.workload, pod_set.name, pod_set.count, item.reason, item.by]
        for item in shrunk
        for pod_set in item.pod_sets
    ]
    headings = ["CYCLE", "WORKLOAD", "POD SET", "PODS LEFT", "REASON", "FOR"]
    return "Shrunk:\n" + table(headings, rows)


def _pending(pending: list[Pending]) -> str:
    if not pending:
        return ""
    lines = ["Pending:"]
    for item in pending:
        queue = f" in {item.queue}" if item.queue else ""
        lines.append(f"  {item.workload}{queue}: {item.reason} ({item.stage})")
        lines.append(paragraph(item.message, indent="      "))
        if item.estimated_start is not None:
            lines.append(f"      estimated start: {item.estimated_start}")
    return "\n".join(lines)


def _closing(decision: Decision) -> str:
    cycles = "1 cycle" if decision.cycles == 1 else f"{decision.cycles} cycles"
    shrunk = f"{len(decision.shrunk)} shrunk, " if decision.shrunk else ""
    return (
        f"{len(decision.admitted)} admitted, {len(decision.evicted)} evicted, {shrunk}"
        f"{len(decision.pending)} pending after {cycles}."
    )
