"""Are pods with a required topology in one domain? (spec placement §8.4, quota §14)

A domain is the nodes with the same value of a level's label and of all wider levels of the same
topology. The topology of a pod set is its flavor's, or the first by name that has the level, or the
policy's list of levels.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.audit.node_occupancy import NodeOccupancy
from unisono.engine.audit.snapshot_index import SnapshotIndex
from unisono.engine.audit.violation import Violation
from unisono.engine.model.names import NodeName
from unisono.engine.model.node import DEFAULT_LEVELS, HOSTNAME
from unisono.engine.model.workload import Admission, PodSet, PodSetAssignment, Workload

Domain = tuple[str, ...]


def check_topology(
    index: SnapshotIndex, occupancy: NodeOccupancy, workload: Workload, admission: Admission
) -> Iterator[Violation]:
    """Check every pod set that requires one domain, for all of its pods or for each slice."""
    given = {each.name: each for each in admission.pod_sets}
    together: dict[str, list[PodSet]] = {}
    for pod_set in workload.pod_sets:
        if pod_set.name not in given:
            continue
        request = pod_set.topology
        if request is not None and request.mode == "required":
            # A pod set without a group is on its own; "/" keeps it apart from group names.
            together.setdefault(pod_set.group or f"/{pod_set.name}", []).append(pod_set)
        if request is not None and request.slice_size > 1:
            yield from _check_slices(index, occupancy, workload, pod_set, given[pod_set.name])
    for pod_sets in together.values():
        yield from _check_domain(index, occupancy, workload, pod_sets, given)


def _broken(workload: Workload, message: str) -> Violation:
    return Violation(rule="topology", workload=workload.key, message=message)


def _check_domain(
    index: SnapshotIndex,
    occupancy: NodeOccupancy,
    workload: Workload,
    pod_sets: list[PodSet],
    given: dict[str, PodSetAssignment],
) -> Iterator[Violation]:
    domains: dict[Domain | None, NodeName] = {}
    for pod_set in pod_sets:
        assert pod_set.topology is not None, "only sets with a topology request were collected"
        path = _path(index, given[pod_set.name], pod_set.topology.level)
        for name, _ in given[pod_set.name].nodes:
            if name in occupancy.nodes:
                domains.setdefault(_domain(occupancy, name, path), name)
    names = " and ".join(pod_set.name for pod_set in pod_sets)
    if None in domains:
        yield _broken(workload, f"{names}: {domains[None]} is in no domain of that level")
    if len(domains) > 1:
        nodes = ", ".join(sorted(domains.values()))
        yield _broken(workload, f"{names} must share one domain, but are in those of {nodes}")


def _check_slices(
    index: SnapshotIndex,
    occupancy: NodeOccupancy,
    workload: Workload,
    pod_set: PodSet,
    given: PodSetAssignment,
) -> Iterator[Violation]:
    """Every domain of the slice level holds whole slices."""
    assert pod_set.topology is not None, "checked by the caller"
    size = pod_set.topology.slice_size
    path = _path(index, given, pod_set.topology.slice_level)
    pods: dict[Domain | None, int] = {}
    for name, count in given.nodes:
        if name in occupancy.nodes:
            domain = _domain(occupancy, name, path)
            pods[domain] = pods.get(domain, 0) + count
    for domain, count in pods.items():
        if domain is None:
            message = f"{pod_set.name}: {count} pods are in no domain of {path[-1]}"
            yield _broken(workload, message)
        elif count % size:
            message = f"{pod_set.name}: {count} pods in {'/'.join(domain)}, not slices of {size}"
            yield _broken(workload, message)


def _domain(occupancy: NodeOccupancy, name: NodeName, path: tuple[str, ...]) -> Domain | None:
    """Return which domain a node is in; None if it lacks the label of the narrowest level."""
    labels = occupancy.labels(name)
    if path[-1] not in labels:
        return None
    return tuple(labels.get(key, "") for key in path)


def _path(index: SnapshotIndex, assigned: PodSetAssignment, level: str) -> tuple[str, ...]:
    """Return the levels from the widest down to the requested one."""
    if level in ("", HOSTNAME):
        return (HOSTNAME,)
    flavors = [index.flavors.get(flavor) for _, flavor in assigned.flavors]
    own = [index.topologies.get(flavor.topology, ()) for flavor in flavors if flavor is not None]
    others = [index.topologies[name] for name in sorted(index.topologies)]
    for levels in (*own, *others, index.policy.placement.levels or DEFAULT_LEVELS):
        if level in levels:
            return levels[: levels.index(level) + 1]
    return (level,)
