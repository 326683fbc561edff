"""Places of pods that are done for good: they are given back one by one (placement §9).

Quota follows from the count of such pods (`status.reclaimablePods`); which places are free again
has to stand on the Workload as well, or they would be kept until the last pod is done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.admission.record import COMMITTED, placement_of, places
from unisono.control.gangs.slots import is_living, is_over, set_of
from unisono.control.usable import node_name
from unisono.control.view import View
from unisono.kinds.kueue.topology_assignment import pods_per_host


def assignments_left(workload: Json, done: Mapping[str, int], view: View) -> list[Json] | None:
    """Return a running gang's assignments without the places of pods that are done.

    None where there is nothing to give back, or not yet.
    """
    status = workload["status"]
    phase, about = placement_of(status.get("conditions"))
    if phase != COMMITTED or about.get("devices"):  # parts of GPUs are counted with their places
        return None
    metadata = workload["metadata"]
    pods = view.by(names.POD, names.BY_WORKLOAD, f"{metadata['namespace']}/{metadata['name']}")
    before = status["admission"].get("podSetAssignments") or []
    after = [
        _left(one, [pod for pod in pods if set_of(pod) == one["name"]], done[one["name"]], view)
        if done.get(one["name"])
        else one
        for one in before
    ]
    return after if after != before else None


def _left(one: Json, pods: Sequence[Json], done: int, view: View) -> Json:
    """Return the assignment of one set, with at least one place."""
    on: Counter[str] = Counter()
    for host, count in pods_per_host(one.get("topologyAssignment")):
        on[host] += count
    there = sum(on.values())
    free = min(done - (one.get("count", 0) - there), there - 1)
    if free <= 0 or any(is_living(pod) and not pod["spec"].get("nodeName") for pod in pods):
        return one  # somebody is on the way to one of the places, and nobody here knows to which
    nodes = {host: node_name(host, view) for host in on}
    taken = Counter(pod["spec"].get("nodeName") for pod in pods if not is_over(pod))
    for host in reversed(list(on)):
        gone = min(free, max(0, on[host] - taken[nodes[host]]))
        on[host] -= gone
        free -= gone
    left = ((host, count) for host, count in on.items() if count)
    return {**one, "topologyAssignment": places(left)}
