"""Why a gang has no place: counts over nodes, and the best that was possible (placement §8.10)."""

from __future__ import annotations

import numpy as np

from unisono.engine.model.explanation import GangDoesNotFit
from unisono.engine.model.names import PODS, ResourceName
from unisono.engine.model.resources import WHOLE_GPU, is_gpu, is_share
from unisono.engine.placement.demand import Demand, in_quarantine, reaching, without_taints
from unisono.engine.placement.domains import whole_slices
from unisono.engine.placement.feasibility import Capacity, Feasibility
from unisono.engine.state.devices import free_by_device, pods_that_fit


def misfit(
    key: str,
    demand: Demand,
    need: int,
    capacity: Capacity,
    feasibility: Feasibility,
    *,
    level: int | None,
) -> GangDoesNotFit:
    """Describe a demand that found no place. `level` is the one it had to stay within, if any."""
    table, view = feasibility.table, capacity.view
    best, holds = "", capacity.total
    if demand.slice_size > 1:
        holds = int(whole_slices(capacity, demand, 0).sum())
    if level is not None:
        sums = whole_slices(capacity, demand, level)
        domain = int(np.argmax(sums)) if sums.shape[0] else 0
        if level < len(view.levels):
            labelled = view.levels[level].labelled
            sums = np.where(labelled, sums, 0)
            # Nodes without the label are in no domain, which is none to be told of.
            domain = int(np.argmax(np.where(labelled, sums, -1))) if sums.shape[0] else 0
        holds = int(sums[domain]) if sums.shape[0] else 0
        if sums.shape[0]:
            at_node = level >= len(view.levels)
            best = (
                table.names(view.rows[domain : domain + 1])[0]
                if at_node
                else view.name(level, domain, table)
            )
    resource, wanted, has, largest = _scarcest(demand, capacity, feasibility)
    refusals = _refusals(key, demand, capacity, feasibility)
    unlabelled = _without_domain(demand, capacity)
    if unlabelled:
        refusals = (("topology", unlabelled), *refusals)
    return GangDoesNotFit(
        resource=resource,
        wanted_of_node=wanted,
        best_node_has=has,
        largest_node_has=largest,
        pod_set=demand.name,
        pods=need,
        pods_placeable=min(need, holds),
        level=demand.level if level is not None else "",
        best_domain=best,
        cluster_holds=capacity.total,
        nodes=int(view.rows.shape[0]),
        refusals=refusals,
        labels=_unknown(demand, capacity, feasibility) if "selector" in dict(refusals) else (),
        slice_level=demand.slice_level if demand.slice_size > 1 else "",
    )


def _without_domain(demand: Demand, capacity: Capacity) -> int:
    """Count the nodes with room that are in no domain of the level that slices have to share."""
    keys = capacity.view.keys
    if demand.slice_size <= 1 or demand.slice_level not in keys:
        return 0
    level = capacity.view.levels[keys.index(demand.slice_level)]
    return int((~level.labelled[level.domain_of] & (capacity.caps > 0)).sum())


def _scarcest(
    demand: Demand, capacity: Capacity, feasibility: Feasibility
) -> tuple[ResourceName, int, int, int]:
    """Name the resource of which no node has enough for one pod; nothing if some node has.

    With it: what a pod wants, the most that a node has free, and the most that one has at all.
    """
    table = feasibility.table
    nothing = ResourceName(""), 0, 0, 0
    if capacity.total:
        return nothing
    open_ = np.flatnonzero(feasibility.allowed(demand.constraint))
    by_scarcity = sorted(demand.requests, key=lambda p: not (is_gpu(p[0]) or is_share(p[0])))
    for resource, amount in by_scarcity:
        column = table.column(resource)
        most = largest = 0
        if resource in table.devices:
            devices = table.devices[resource]
            most = int(free_by_device(table.free, devices, open_).max(initial=0))
            largest = WHOLE_GPU if table.allocatable[devices.whole, open_].any() else 0
        elif column is not None:
            most = int(table.free_of(column)[open_].max(initial=0))
            largest = int(table.allocatable[column, open_].max(initial=0))
        if amount > most:
            return resource, amount, most, largest
    return nothing


def _unknown(demand: Demand, capacity: Capacity, feasibility: Feasibility) -> tuple[str, ...]:
    """Return the labels of a selector that no node has: those are what is wrong with it."""
    rows, missing = capacity.view.rows, []
    for key, value in demand.constraint.selector:
        codes, known = feasibility.table.label_codes(key)
        # A node that had it may be gone since.
        if value not in known or not (codes[rows] == known[value]).any():
            missing.append(f"{key}={value}")
    return tuple(missing)


def _refusals(
    key: str, demand: Demand, capacity: Capacity, feasibility: Feasibility
) -> tuple[tuple[str, int], ...]:
    """Count nodes that take no pod, by the first reason of each."""
    table = feasibility.table
    closed = capacity.view.rows[capacity.caps == 0]
    counts: dict[str, int] = {}

    def count(reason: str, refused: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
        nonlocal closed
        number = int(refused.sum())
        if number:
            counts[reason] = counts.get(reason, 0) + number
            closed = closed[~refused]

    count("not ready", ~table.usable[closed])
    for volume in demand.volumes:
        count("volume", ~feasibility.allowed(reaching(volume))[closed])
    count("selector", ~feasibility.allowed(without_taints(demand.constraint))[closed])
    excluded = demand.constraint.excluded
    if excluded is not None:
        count("reserved", excluded.rows(table)[closed])
    tainted = ~feasibility.allowed(demand.constraint)[closed]
    if tainted.any():
        well = feasibility.allowed(in_quarantine(demand.constraint))[closed]
        count("quarantined", tainted & well)
        count("taint", ~feasibility.allowed(demand.constraint)[closed])
    for resource, amount in ((PODS, 1), *demand.requests):
        if amount > 0:
            column = table.column(resource)
            free = table.free_of(column)[closed] if column is not None else np.zeros_like(closed)
            if resource in table.devices:
                free = pods_that_fit(table.free, table.devices[resource], amount, closed) * amount
            count(resource, free < amount)
    count("held for others", np.isin(closed, table.held_rows(key)))
    count("rules between pods", np.ones(closed.shape[0], np.bool_))
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
