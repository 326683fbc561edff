"""Nodes for a gang that has its quota and none yet: an admission check brought them (quota §12).

`seat(state, key, selectors)` reads a holding without nodes and returns its admission with a node
for every pod, or why there is no place for all of them. Quota is not asked: the gang holds it.
Nothing is changed; the auditor checks the answer as it checks a slice that grows.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from unisono.engine.model.explanation import GangDoesNotFit
from unisono.engine.model.names import WorkloadKey
from unisono.engine.model.selection import Labels
from unisono.engine.model.workload import Admission
from unisono.engine.placement.demand import narrowed
from unisono.engine.placement.gang import Gang, Spot
from unisono.engine.placement.placement import placement_of
from unisono.engine.repair import flavors_given, refuse_if_broken
from unisono.engine.state.cluster import ClusterState


def seat(
    state: ClusterState, key: WorkloadKey, selectors: Mapping[str, Labels] | None = None
) -> Admission | GangDoesNotFit:
    """Find nodes for all pods of a holding; `selectors` says which labels each pod set needs."""
    state.refresh()
    holding = state.running[key].holding
    workload, admission = holding.workload, holding.admission
    given = {one.name: one.count for one in admission.pod_sets}
    counts = tuple(given.get(one.name, 0) for one in workload.pod_sets)
    fence = state.reserved.fence(workload, state.now)
    flavors = flavors_given(workload, admission)
    placement = placement_of(state)
    gang = placement.gang_of(workload, counts, counts, flavors, fence)
    demands = tuple(narrowed(one, (selectors or {}).get(one.name, ())) for one in gang.demands)
    answer = placement.place(Gang(key=gang.key, demands=demands))
    if isinstance(answer, GangDoesNotFit):
        return answer
    found = {spot.demand: spot for spot in answer}
    seated = msgspec.structs.replace(
        admission,
        pod_sets=tuple(
            msgspec.structs.replace(one, nodes=spot.nodes, devices=spot.devices)
            for one in admission.pod_sets
            for spot in (found.get(one.name, Spot(one.name, ())),)
        ),
    )
    refuse_if_broken(state, workload, seated)
    return seated
