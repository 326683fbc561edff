"""The admission that a workload gets: flavors and counts from quota, nodes from placement."""

from __future__ import annotations

from unisono.engine.model.names import FlavorName, QueueName, ResourceName
from unisono.engine.model.workload import Admission, PodSetAssignment
from unisono.engine.placement.gang import PodSetPlacement
from unisono.engine.quota.assign import Assignment
from unisono.engine.state.equivalence import Shape


def build_admission(
    queue: QueueName, shape: Shape, assignment: Assignment, placements: tuple[PodSetPlacement, ...]
) -> Admission:
    """Return flavors, counts and nodes of every pod set."""
    taken: list[list[tuple[ResourceName, FlavorName]]] = [[] for _ in shape.pod_sets]
    for (index, resource), flavor in assignment.flavors.items():
        taken[index].append((resource, flavor))
    placed_of = {placed.demand: placed for placed in placements}
    return Admission(
        queue=queue,
        pod_sets=tuple(
            PodSetAssignment(
                name=pod_set.name,
                # Reclaimable pods stay in the count; they are only not charged (spec quota §15).
                count=assignment.counts[index] + pod_set.count - shape.counts[index],
                flavors=tuple(sorted(taken[index])),
                nodes=placed_of[pod_set.name].nodes if pod_set.name in placed_of else (),
                devices=placed_of[pod_set.name].devices if pod_set.name in placed_of else (),
            )
            for index, pod_set in enumerate(shape.pod_sets)
        ),
    )


def placed_counts(placements: tuple[PodSetPlacement, ...], shape: Shape) -> tuple[int, ...]:
    """Return how many pods of each set found a place."""
    got = {placed.demand: placed.pods for placed in placements}
    return tuple(got.get(pod_set.name, 0) for pod_set in shape.pod_sets)
