"""Which flavors the pods of a gang could take in a queue: labels and taints, not numbers.

The answer depends on configuration only, so it is worked out once per queue and gang request
and reused for every attempt of every workload of that request. Spec quota §2 (pools, unmetered
resources), §3 (the `pods` resource) and §7 (which flavors match).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from unisono.engine.model.explanation import Blocker, FlavorMismatch, ResourceNotCovered
from unisono.engine.model.names import PODS, FlavorName, ResourceName
from unisono.engine.model.queue import ClusterQueue, Flavor, FlavorQuota, ResourceGroup
from unisono.engine.model.resources import FlavorResource, pool_name
from unisono.engine.model.selection import AffinityTerm, label_map, meets, tolerates
from unisono.engine.model.workload import Admission, PodSet, PodSetAssignment, Workload
from unisono.engine.state.cluster_queue import ClusterQueueState
from unisono.engine.state.config import Config
from unisono.engine.state.gang_request import GangRequest
from unisono.engine.state.quota_tree import Cell, Node

# A queue sees few equivalence classes at a time; finding flavors again is cheap, a leak is not.
ELIGIBLE_KEPT = 1024

# What one pod set takes of a cell for each pod: (index of the pod set, cell, amount a pod).
PerPod = tuple[int, Cell, int]


@dataclass(slots=True, frozen=True)
class Option:
    """One flavor for one choice: what it would be charged, or why it cannot be taken."""

    flavor: FlavorName
    per_pod: tuple[PerPod, ...]
    mismatch: FlavorMismatch | None


@dataclass(slots=True, frozen=True)
class Choice:
    """Resources of one group for one pod set (or several that share a flavor): take one option."""

    pod_sets: tuple[int, ...]
    resources: tuple[tuple[int, ResourceName], ...]  # what the chosen flavor is recorded for
    options: tuple[Option, ...]


@dataclass(slots=True, frozen=True)
class EligibleFlavors:
    """All choices a gang request has to make in a queue, in order."""

    choices: tuple[Choice, ...]
    refusals: tuple[Blocker, ...]  # resources that no group covers: nothing can be chosen
    # Admissions as written down before, by counts and flavors: equal workloads share one object.
    written: dict[object, Admission] = field(default_factory=dict)


def eligible_flavors_of(
    cq: ClusterQueueState, request: GangRequest, config: Config
) -> EligibleFlavors:
    """Return the flavors that are eligible for an equivalence class, worked out on first use."""
    known = cq.derived.get(EligibleFlavors)
    if not isinstance(known, dict):  # not there yet
        known = cq.derived[EligibleFlavors] = {}
    eligible: EligibleFlavors | None = known.get(request.number)
    if eligible is None:
        if len(known) >= ELIGIBLE_KEPT:
            known.clear()
        eligible = known[request.number] = eligible_flavors(
            request.pod_sets,
            cq.spec,
            cq.node,
            config.flavors,
            ignore_undeclared=config.policy.undeclared == "Ignore",
        )
    return eligible


def eligible_flavors(
    pod_sets: tuple[PodSet, ...],
    queue: ClusterQueue,
    node: Node,
    flavors: Mapping[FlavorName, Flavor],
    *,
    ignore_undeclared: bool,
) -> EligibleFlavors:
    """Work out the choices of a gang request in a queue."""
    group_of = {resource: group for group in queue.groups for resource in group.covered}
    listed = [flavors.get(quota.flavor) for group in queue.groups for quota in group.flavors]
    only_topology = all(flavor is not None and flavor.topology for flavor in listed)
    choices: list[Choice] = []
    refusals: list[Blocker] = []
    for members in _together(pod_sets):
        asked: dict[int, list[tuple[int, ResourceName, int]]] = {}
        order: list[ResourceGroup] = []
        for index in members:
            for resource, amount in _requests(pod_sets[index], group_of):
                group = group_of.get(resource)
                if group is not None:
                    if id(group) not in asked:
                        asked[id(group)] = []
                        order.append(group)
                    asked[id(group)].append((index, resource, amount))
                elif amount > 0 and not ignore_undeclared and not queue.unlimited:
                    name = pod_sets[index].name
                    refusals.append(
                        ResourceNotCovered(queue=queue.name, pod_set=name, resource=resource)
                    )
        for group in order:
            wanted = asked[id(group)]
            options = tuple(
                _option(
                    quota,
                    group,
                    wanted,
                    [pod_sets[i] for i in members],
                    node,
                    flavors,
                    only_topology=only_topology,
                )
                for quota in group.flavors
            )
            resources = tuple((index, resource) for index, resource, _ in wanted)
            choices.append(Choice(tuple(members), resources, options))
    return EligibleFlavors(tuple(choices), tuple(refusals))


def flavors_of_empty_sets(
    workload: Workload, cq: ClusterQueueState, config: Config
) -> tuple[PodSetAssignment, ...]:
    """Return the first flavors that pods would find labels and taints for, were there any."""
    eligible = eligible_flavors(
        workload.empty_sets, cq.spec, cq.node, config.flavors, ignore_undeclared=True
    )
    found: list[list[tuple[ResourceName, FlavorName]]] = [[] for _ in workload.empty_sets]
    for choice in eligible.choices:
        flavor = next((one.flavor for one in choice.options if one.mismatch is None), None)
        if flavor is not None:
            for index, resource in choice.resources:
                found[index].append((resource, flavor))
    return tuple(
        PodSetAssignment(name=one.name, count=0, flavors=tuple(sorted(flavors)))
        for one, flavors in zip(workload.empty_sets, found, strict=True)
    )


def _together(pod_sets: tuple[PodSet, ...]) -> list[list[int]]:
    """Return pod set indexes, those of one named group side by side at the first one's place."""
    units: list[list[int]] = []
    unit_of: dict[str, list[int]] = {}
    for index, pod_set in enumerate(pod_sets):
        if pod_set.group and pod_set.group in unit_of:
            unit_of[pod_set.group].append(index)
            continue
        units.append([index])
        if pod_set.group:
            unit_of[pod_set.group] = units[-1]
    return units


def _requests(
    pod_set: PodSet, group_of: Mapping[ResourceName, ResourceGroup]
) -> list[tuple[ResourceName, int]]:
    """Return what one pod asks for, with `pods: 1` where the queue counts pods."""
    wanted = [(resource, amount) for resource, amount in pod_set.requests if resource != PODS]
    if PODS in group_of:
        wanted.append((PODS, 1))
    return wanted


def _option(
    quota: FlavorQuota,
    group: ResourceGroup,
    wanted: list[tuple[int, ResourceName, int]],
    pod_sets: list[PodSet],
    node: Node,
    flavors: Mapping[FlavorName, Flavor],
    *,
    only_topology: bool,
) -> Option:
    """Describe one flavor of a group."""
    if group.pool is not None:
        account_name: str = pool_name(item.flavor for item in group.flavors)
        metered = {item.resource for item in group.pool}
    else:
        account_name = quota.flavor
        metered = {item.resource for item in quota.resources}
    per_pod = tuple(
        (index, node.cell(FlavorResource(account_name, resource)), amount)
        for index, resource, amount in wanted
        # A covered resource without quota is unmetered (spec quota §2.4); zero asks for nothing.
        if resource in metered and amount > 0
    )
    flavor = flavors.get(quota.flavor)
    mismatch = _first_mismatch(pod_sets, quota.flavor, flavor)
    if mismatch is None and flavor is not None and flavor.topology and not only_topology:
        # Nodes with a topology are kept for workloads that ask for one, unless there are no others.
        plain = next((pod_set for pod_set in pod_sets if pod_set.topology is None), None)
        if plain is not None:
            mismatch = FlavorMismatch(pod_set=plain.name, flavor=quota.flavor, why="topology")
    return Option(quota.flavor, per_pod, mismatch)


def _first_mismatch(
    pod_sets: list[PodSet], name: FlavorName, flavor: Flavor | None
) -> FlavorMismatch | None:
    """Say why some pod set cannot run on the flavor's nodes."""
    for pod_set in pod_sets:
        if flavor is None:
            return FlavorMismatch(pod_set=pod_set.name, flavor=name, why="missing")
        for taint in flavor.node_taints:
            tolerations = (*pod_set.tolerations, *flavor.tolerations)
            if taint.effect != "PreferNoSchedule" and not any(
                tolerates(toleration, taint) for toleration in tolerations
            ):
                detail = f"{taint.key}={taint.value}:{taint.effect}"
                return FlavorMismatch(pod_set=pod_set.name, flavor=name, why="taint", detail=detail)
        labels = label_map(flavor.node_labels)
        for key, value in pod_set.node_selector:
            if key in labels and labels[key] != value:
                detail = f"{key}={value}"
                return FlavorMismatch(
                    pod_set=pod_set.name, flavor=name, why="labels", detail=detail
                )
        if not _affinity_allows(pod_set.affinity, labels):
            return FlavorMismatch(
                pod_set=pod_set.name, flavor=name, why="labels", detail="required node affinity"
            )
    return None


def _affinity_allows(terms: tuple[AffinityTerm, ...], labels: dict[str, str]) -> bool:
    """Match required affinity, looking only at keys that the flavor itself labels.

    A term that says nothing about those keys leaves the flavor open, and terms are ORed, so one
    such term lets the whole affinity match.
    """
    if not terms:
        return True
    for term in terms:
        relevant = [requirement for requirement in term if requirement.key in labels]
        if all(meets(requirement, labels) for requirement in relevant):
            return True
    return False
