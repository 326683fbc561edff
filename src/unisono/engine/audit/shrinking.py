"""Victims that shrink instead of being evicted: which part is released (placement §8.7)."""

from __future__ import annotations

import msgspec

from unisono.engine.model.names import NodeName
from unisono.engine.model.plan import Victim
from unisono.engine.model.workload import Admission, AdmittedWorkload, PodSet, PodSetAssignment


def released_part(admitted: AdmittedWorkload, keeps: Admission | None) -> AdmittedWorkload:
    """Return an admitted workload of only the part that is released."""
    if keeps is None:
        return admitted
    kept = {each.name: each for each in keeps.pod_sets}
    released = tuple(_difference(each, kept.get(each.name)) for each in admitted.admission.pod_sets)
    # Reclaimable pods count among those that stay, as far as there are as many.
    done = tuple(
        (name, max(0, pods - kept[name].count) if name in kept else pods)
        for name, pods in admitted.workload.reclaimable
    )
    return msgspec.structs.replace(
        admitted,
        workload=msgspec.structs.replace(admitted.workload, reclaimable=done),
        admission=msgspec.structs.replace(admitted.admission, pod_sets=released),
    )


def _difference(each: PodSetAssignment, kept: PodSetAssignment | None) -> PodSetAssignment:
    if kept is None:
        return each
    there, staying = dict(each.nodes), dict(kept.nodes)
    nodes = [(name, pods - staying.get(name, 0)) for name, pods in there.items()]
    return msgspec.structs.replace(
        each,
        count=each.count - kept.count,
        nodes=tuple((name, pods) for name, pods in nodes if pods > 0),
    )


def was_requested(victim: Victim, admitted: AdmittedWorkload) -> bool:
    """Say whether an earlier plan requested the same of the victim."""
    if admitted.evicting:
        return True
    if victim.keeps is None or admitted.keeps is None:
        return False
    return _counts(victim.keeps) == _counts(admitted.keeps)


def why_not_shrinkable(victim: Victim, admitted: AdmittedWorkload) -> str:
    """Say why a victim cannot shrink to what it keeps, or nothing."""
    keeps, workload = victim.keeps, admitted.workload
    if keeps is None:
        return ""
    if not workload.can_shrink and admitted.keeps is None:
        return "it cannot do with fewer pods"
    before, after = _counts(admitted.admission), _counts(keeps)
    if keeps.queue != admitted.admission.queue or before.keys() != after.keys():
        return "it would go on in another queue, or with other pod sets"
    if sum(after.values()) >= sum(before.values()):
        return "it gives up nothing"
    if workload.min_total is not None and sum(after.values()) < workload.min_total:
        return f"{sum(after.values())} pods stay, and {workload.min_total} have to run together"
    requested = {} if admitted.keeps is None else _counts(admitted.keeps)
    old = {each.name: each for each in admitted.admission.pod_sets}
    sets = {pod_set.name: pod_set for pod_set in workload.pod_sets}
    for each in keeps.pod_sets:
        least = _least(sets.get(each.name), old[each.name].count)
        if not least <= each.count <= old[each.name].count:
            return f"{each.name}: {each.count} pods stay, at least {least} have to"
        if each.count > requested.get(each.name, each.count):
            return f"{each.name}: {requested[each.name]} pods were to stay, now {each.count}"
        if each.flavors != old[each.name].flavors:
            return f"{each.name}: its flavors change"
        if _node_per_pod(each.nodes) != _node_per_pod(old[each.name].nodes)[: each.count]:
            return f"{each.name}: those that stay are not its first pods, where they are"
    return ""


def _least(pod_set: PodSet | None, count: int) -> int:
    return count if pod_set is None or pod_set.min_count is None else pod_set.min_count


def _counts(admission: Admission) -> dict[str, int]:
    return {each.name: each.count for each in admission.pod_sets}


def _node_per_pod(nodes: tuple[tuple[NodeName, int], ...]) -> list[NodeName]:
    """List the node of every pod, in rank order."""
    return [name for name, pods in nodes for _ in range(pods)]


def smaller_release(victim: Victim, admitted: AdmittedWorkload) -> AdmittedWorkload | None:
    """Return the next smaller part that the victim could release; None if there is none.

    A victim that is evicted whole might shrink to its minimum; one that shrinks might keep one pod
    more. Only for gangs in which one pod set alone can shrink: with several there is a choice.
    """
    sets = {pod_set.name: pod_set for pod_set in admitted.workload.pod_sets}
    spare = [
        (each, each.count - _least(sets.get(each.name), each.count))
        for each in admitted.admission.pod_sets
    ]
    elastic = [(each, pods) for each, pods in spare if pods > 0]
    workload = admitted.workload
    sliced = any(one.topology and one.topology.slice_size > 1 for one in workload.pod_sets)
    if len(elastic) != 1 or sliced or workload.reclaimable or not workload.can_shrink:
        return None
    assigned, pods = elastic[0]
    if workload.min_total is not None:
        total = sum(each.count for each in admitted.admission.pod_sets)
        pods = min(pods, total - workload.min_total)
    if victim.keeps is not None:
        pods = assigned.count - _counts(victim.keeps).get(assigned.name, 0) - 1
    requested = (
        0
        if admitted.keeps is None
        else assigned.count - _counts(admitted.keeps).get(assigned.name, 0)
    )
    if pods < max(1, requested) or not admitted.may_start:
        return None
    nodes = _node_per_pod(assigned.nodes)[: assigned.count - pods]
    stays = msgspec.structs.replace(
        assigned,
        count=assigned.count - pods,
        nodes=tuple((name, nodes.count(name)) for name in dict.fromkeys(nodes)),
    )
    others = (stays if each is assigned else each for each in admitted.admission.pod_sets)
    return released_part(
        admitted, msgspec.structs.replace(admitted.admission, pod_sets=tuple(others))
    )
