"""What only shows when all objects are there: references, cycles, quota that is not shared."""

from __future__ import annotations

from collections.abc import Mapping

from unisono.kinds.kueue.queues import ResourceGroup
from unisono.kinds.kueue.quota_rules import covered_resources, flavor_names, is_pool
from unisono.kinds.nearest import did_you_mean
from unisono.kinds.objects import Entry, Objects

_MOST_NAMED = 3  # how many others a warning lists


def check_references(objects: Objects) -> None:
    """Warn about LocalQueues that lead to no ClusterQueue: their workloads wait."""
    known = [entry.name for entry in objects.entries("ClusterQueue")]
    for entry in objects.entries("LocalQueue"):
        name = entry.manifest.spec.cluster_queue
        if not objects.exists("ClusterQueue", name):
            message = f'there is no ClusterQueue "{name}"; its workloads wait'
            message += did_you_mean(name, known)
            entry.notes.warn("ReferenceNotFound", "spec.clusterQueue", message)


def check_cycles(objects: Objects) -> None:
    """Report every cycle of cohorts once, at the member that comes first."""
    parents = _parents(objects)
    reported: set[str] = set()
    for entry in objects.entries("Cohort"):
        cycle = _cycle_through(entry.name, parents)
        if cycle and not reported.intersection(cycle):
            reported.update(cycle)
            way = " -> ".join([*cycle, cycle[0]])
            message = f"makes a cycle ({way}); no queue below it can admit anything"
            path = "spec.parent" if _is_alpha(entry) else "spec.parentName"
            entry.notes.warn("CohortCycle", path, message)


def _is_alpha(entry: Entry) -> bool:
    return entry.kind.version == "v1alpha1"


def _parents(objects: Objects) -> dict[str, str]:
    return {
        entry.name: entry.manifest.spec.parent_name
        for entry in objects.entries("Cohort")
        if entry.manifest.spec.parent_name
    }


def _cycle_through(start: str, parents: Mapping[str, str]) -> list[str]:
    """Return the cycle that `start` itself is on, in order, or nothing."""
    way = [start]
    seen = {start}
    at = parents.get(start)
    while at is not None and at not in seen:
        way.append(at)
        seen.add(at)
        at = parents.get(at)
    return way if at == start else []


# ---- pools -------------------------------------------------------------------------------------


def check_pools(objects: Objects) -> None:
    """Warn of pools in a cohort tree where others count the same flavors on other accounts."""
    parents = _parents(objects)
    trees: dict[str, list[tuple[Entry, int, ResourceGroup]]] = {}
    for kind in ("ClusterQueue", "Cohort"):
        for entry in objects.entries(kind):
            above = entry.name if kind == "Cohort" else entry.manifest.spec.cohort_name
            if above:
                groups = trees.setdefault(_root(above, parents), [])
                groups.extend(
                    (entry, index, group)
                    for index, group in enumerate(entry.manifest.spec.resource_groups)
                )
    for groups in trees.values():
        if any(is_pool(group) for _, _, group in groups):
            _check_tree(groups)


def _root(name: str, parents: Mapping[str, str]) -> str:
    seen: set[str] = set()
    while name in parents and name not in seen:
        seen.add(name)
        name = parents[name]
    return name


def _check_tree(groups: list[tuple[Entry, int, ResourceGroup]]) -> None:
    for entry, index, group in groups:
        if not is_pool(group):
            continue
        others = [
            f"{other.kind.kind} {other.name}"
            for other, _, theirs in groups
            if other is not entry and _parts(group, theirs)
        ]
        if others:
            message = f"shares no quota with {_listed(others)}: other accounts of the same flavors"
            entry.notes.warn("PooledQuotaNotShared", f"spec.resourceGroups[{index}]", message)


def _parts(pool: ResourceGroup, other: ResourceGroup) -> bool:
    """Say whether two groups have a flavor and a resource in common, but not an account."""
    if not set(flavor_names(pool)) & set(flavor_names(other)):
        return False
    if not set(covered_resources(pool)) & set(covered_resources(other)):
        return False
    # A pool is known by the set of its flavors, whatever their order (spec quota §2.2).
    return not is_pool(other) or set(flavor_names(pool)) != set(flavor_names(other))


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown
