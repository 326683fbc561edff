"""Shrinking instead of eviction: what an elastic gang can do without (spec placement §8.7).

A gang that may shrink gives up its highest ranks, never more than takes it to the minimum of each
of its sets and of all together. Ranks follow the order of an admission's nodes, so what stays is
the first pods of each set, on the nodes where they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from unisono.engine.model.workload import (
    Admission,
    AdmittedWorkload,
    PodSet,
    PodSetAssignment,
    first_pods,
)
from unisono.engine.state.cluster_queue import Running
from unisono.engine.state.cohort_trees import charges_of
from unisono.engine.state.nodes import placed_pods_of
from unisono.engine.state.occupancy import PlacedPods
from unisono.engine.state.quota_tree import Cell
from unisono.engine.state.transaction import Charges


@dataclass(slots=True, frozen=True, eq=False)
class Portion:
    """A part of an admitted workload: what stays, or what it gives up; a `transaction.Booked`."""

    admission: Admission
    charges: Charges
    placed_pods: tuple[PlacedPods, ...]


def most_given_up(admitted: AdmittedWorkload) -> int:
    """Return how many pods a workload can do without; none if it has to stay whole."""
    workload = admitted.workload
    if not workload.can_shrink or not admitted.may_start:
        return 0
    if workload.reclaimable:  # which ranks are done, once some are, is not known here
        return 0
    spare = sum(_spare(admitted))
    if workload.min_total is None:
        return spare
    running = sum(assigned.count for assigned in admitted.admission.pod_sets)
    return max(0, min(spare, running - workload.min_total))


def given_up_already(admitted: AdmittedWorkload) -> int:
    """Return how many pods an earlier plan made it give up."""
    if admitted.keeps is None:
        return 0
    before = sum(assigned.count for assigned in admitted.admission.pod_sets)
    return before - sum(assigned.count for assigned in admitted.keeps.pod_sets)


def without(admitted: AdmittedWorkload, pods: int) -> Admission:
    """Return the admission of a workload that gave up so many pods, each set its share of them."""
    spare = _spare(admitted)
    total, seen, taken, kept = sum(spare), 0, 0, []
    for assigned, more in zip(admitted.admission.pod_sets, spare, strict=True):
        seen += more
        due = seen * pods // total  # rounded over all sets so far: in the end exactly `pods`
        kept.append(_first(assigned, assigned.count - (due - taken)))
        taken = due
    return msgspec.structs.replace(admitted.admission, pod_sets=tuple(kept))


def what_stays(running: Running, pods: int) -> Portion:
    """Return what is left of a workload that gives up so many pods."""
    return _portion(running, without(running.admitted, pods))


def what_goes(running: Running, stays: Portion) -> Portion:
    """Return what a workload gives up."""
    kept = {assigned.name: assigned for assigned in stays.admission.pod_sets}
    gone = tuple(_last(each, kept[each.name]) for each in running.admitted.admission.pod_sets)
    staying: dict[Cell, int] = dict(stays.charges)
    return Portion(
        admission := msgspec.structs.replace(running.admitted.admission, pod_sets=gone),
        tuple((cell, amount - staying.get(cell, 0)) for cell, amount in running.charges),
        placed_pods_of(running.admitted.workload, admission),
    )


def _portion(running: Running, admission: Admission) -> Portion:
    workload, cq = running.admitted.workload, running.cq
    return Portion(
        admission,
        charges_of(workload, admission, cq.spec, cq.node),
        placed_pods_of(workload, admission),
    )


def _spare(admitted: AdmittedWorkload) -> list[int]:
    """Return for each set how many of its pods are above its minimum."""
    sets = {pod_set.name: pod_set for pod_set in admitted.workload.pod_sets}
    return [
        max(0, assigned.count - _least(sets.get(assigned.name), assigned.count))
        for assigned in admitted.admission.pod_sets
    ]


def _least(pod_set: PodSet | None, count: int) -> int:
    if pod_set is None or pod_set.min_count is None:
        return count
    sliced = pod_set.topology is not None and pod_set.topology.slice_size > 1
    return count if sliced else pod_set.min_count  # a slice is whole or of no use


def _first(assigned: PodSetAssignment, count: int) -> PodSetAssignment:
    return msgspec.structs.replace(
        assigned,
        count=count,
        nodes=first_pods(assigned.nodes, count),
        devices=assigned.devices[:count],
    )


def _last(assigned: PodSetAssignment, kept: PodSetAssignment) -> PodSetAssignment:
    staying = dict(kept.nodes)
    gone = ((name, count - staying.get(name, 0)) for name, count in assigned.nodes)
    return msgspec.structs.replace(
        assigned,
        count=assigned.count - kept.count,
        nodes=tuple((name, count) for name, count in gone if count),
        devices=assigned.devices[len(kept.devices) :],
    )
