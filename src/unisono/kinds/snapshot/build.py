"""All documents to one engine snapshot: what `unisono decide` (and a simulation) starts from.

    files -> documents -> objects -> configuration, then workloads -> Snapshot

Nothing is decided here. What the user must mend is in `problems` (there should be no decision while
there are any), what he may want to know in `warnings`; both name file, document and field.

A job stands for its workload, named `NAMESPACE/KIND-NAME`, unless its Workload is given, too. Order
comes from creation times; an object without one was created `now`, and documents keep their order
because the place of the document then stands in for the uid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from unisono.engine.model.multifactor import UsageRecord
from unisono.engine.model.names import Instant, LocalQueueKey, WorkloadKey
from unisono.engine.model.node import Node, Topology
from unisono.engine.model.provisioning import Pool
from unisono.engine.model.snapshot import Namespace, Snapshot
from unisono.kinds.core.nodes import node_of
from unisono.kinds.core.selection import labels_of
from unisono.kinds.documents import Document, Documents, read_documents
from unisono.kinds.karpenter import Overlay, overlay_of, pool_of, problem_of_overlay
from unisono.kinds.known import KNOWN
from unisono.kinds.kueue.flavors import check_of, flavor_of
from unisono.kinds.kueue.queue_rules import cohort_of, local_queue_of, queue_of
from unisono.kinds.kueue.queues import ResourceGroup
from unisono.kinds.kueue.quota_rules import covered_resources, flavor_names, is_pool
from unisono.kinds.meta import NAMESPACE_LABEL
from unisono.kinds.nearest import did_you_mean
from unisono.kinds.notes import REFERENCE, Finding
from unisono.kinds.objects import Entry, Objects, read_objects
from unisono.kinds.policy.multifactor import usage_of
from unisono.kinds.policy.scheduling import SchedulingPolicy
from unisono.kinds.policy.schema import Configuration, Policy
from unisono.kinds.policy.settings import Settings, settings_of
from unisono.kinds.registry import Registry
from unisono.kinds.snapshot.bound_pods import BoundPods, hosts_of
from unisono.kinds.snapshot.local_queues import UNLIMITED, QueueChoice
from unisono.kinds.snapshot.workloads import Surroundings, populate
from unisono.kinds.times import default_limit_of
from unisono.kinds.volcano.network_topology import hypernode_labels, hypernode_topology
from unisono.kinds.volcano.queues import ANY_NODE

_POLICY_KINDS = frozenset(
    {
        ("unisono.dev", "Policy"),
        ("unisono.dev", "SchedulingPolicy"),
        ("config.kueue.x-k8s.io", "Configuration"),
    }
)


class World(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was read, ready for the engine."""

    snapshot: Snapshot
    problems: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    unmanaged: tuple[WorkloadKey, ...] = ()  # jobs that run without us
    pools: tuple[Pool, ...] = ()  # from which machines may be bought
    overlays: tuple[Overlay, ...] = ()  # by which their prices differ


def read_world(
    files: Sequence[tuple[str, bytes]], *, now: Instant, registry: Registry = KNOWN
) -> World:
    """Read all files (a name to call each by, and its content) as of an instant.

    A policy is a document like any other: hand its file in with the rest.
    """
    read = [read_documents(name, content) for name, content in files]
    documents = list(enumerate(document for found in read for document in found.documents))
    objects = Objects()
    settings, usage = _settings(documents, registry, objects, now)
    rest = [pair for pair in documents if not _is_policy(pair[1])]
    read_objects(rest, registry, strict=settings.policy.strict, into=objects)
    # An unreadable document may be what a reference looks for.
    is_complete = not any(found.problems for found in read)
    snapshot, unmanaged = _snapshot(objects, settings, now, registry, is_complete=is_complete)
    problems = _in_order(files, read, objects, "problems")
    return World(
        snapshot=msgspec.structs.replace(snapshot, usage=usage),
        problems=tuple(one for one in problems if one.code != REFERENCE),
        # What waits for another object does not make a whole dump of a cluster unusable.
        warnings=(
            *_in_order(files, read, objects, "warnings"),
            *(one for one in problems if one.code == REFERENCE),
        ),
        unmanaged=unmanaged,
        pools=tuple(pool_of(entry.manifest) for entry in objects.entries("NodePool")),
        overlays=tuple(
            overlay_of(entry.manifest)
            for entry in objects.entries("NodeOverlay")
            if not problem_of_overlay(entry.manifest)
        ),
    )


def read_settings(
    files: Sequence[tuple[str, bytes]], *, registry: Registry = KNOWN
) -> tuple[Settings, tuple[Finding, ...], tuple[Finding, ...]]:
    """Read files that hold nothing but a policy: what it says, its problems, its warnings."""
    read = [read_documents(name, content) for name, content in files]
    documents = list(enumerate(document for found in read for document in found.documents))
    objects = Objects()
    settings, _ = _settings(documents, registry, objects, Instant(0))
    others = [
        Finding(
            file=one.file,
            document=one.number,
            path="kind",
            message=f"is {one.kind}; only a Policy, a SchedulingPolicy or a Kueue Configuration "
            "belongs here",
        )
        for _, one in documents
        if not _is_policy(one)
    ]
    problems = (*_in_order(files, read, objects, "problems"), *others)
    return settings, problems, _in_order(files, read, objects, "warnings")


def _is_policy(document: Document) -> bool:
    return (document.api_version.rpartition("/")[0], document.kind) in _POLICY_KINDS


def _settings(
    documents: Iterable[tuple[int, Document]], registry: Registry, objects: Objects, now: Instant
) -> tuple[Settings, tuple[UsageRecord, ...]]:
    """Read what the operator chose; it decides how everything else is read."""
    policies = [pair for pair in documents if _is_policy(pair[1])]
    chosen: dict[type, Entry] = {}
    for entry in read_objects(policies, registry, strict=False, into=objects):
        first = chosen.setdefault(type(entry.manifest), entry)
        if first is not entry:
            entry.notes.problem("kind", f"there is already a {entry.kind.kind} in {first.place}")
    found = {cls: entry.manifest for cls, entry in chosen.items()}
    scheduling = found.get(SchedulingPolicy)
    settings = settings_of(found.get(Configuration), found.get(Policy), scheduling)
    return settings, usage_of(scheduling, now) if scheduling is not None else ()


def _snapshot(
    objects: Objects,
    settings: Settings,
    now: Instant,
    registry: Registry,
    *,
    is_complete: bool,
) -> tuple[Snapshot, tuple[WorkloadKey, ...]]:
    if is_complete:
        check_references(objects)
    check_cycles(objects)
    check_pools(objects)
    strict = settings.policy.strict
    flavors = [flavor_of(entry.manifest) for entry in objects.entries("ResourceFlavor")]
    queues = [queue_of(entry.manifest, strict=strict) for entry in objects.entries("ClusterQueue")]
    local_queues = [
        local_queue_of(entry.manifest, entry.namespace) for entry in objects.entries("LocalQueue")
    ]
    namespaces = _namespaces(objects)
    queue_choice = QueueChoice(objects, settings, {one.name: one for one in namespaces})
    if queue_choice.volcano_quota.needs_flavor:
        flavors.append(ANY_NODE)
    population = populate(
        Surroundings(
            objects=objects,
            registry=registry,
            settings=settings,
            now=now,
            queue_choice=queue_choice,
            queues={one.name: one for one in (*queues, *queue_choice.volcano.values(), UNLIMITED)},
            local_queues={local_queue.key: local_queue for local_queue in local_queues},
            flavors={flavor.name: flavor for flavor in flavors},
            hosts=hosts_of(objects),
            bound=BoundPods(objects),
            default_limits=_default_limits(objects),
            is_complete=is_complete,
        )
    )
    snapshot = Snapshot(
        now=now,
        policy=settings.policy,
        flavors=tuple(flavors),
        cohorts=(
            *(cohort_of(entry.manifest) for entry in objects.entries("Cohort")),
            *queue_choice.volcano_quota.cohorts,
        ),
        queues=(*queues, *queue_choice.implicit_queues()),
        local_queues=(
            *local_queues,
            *sorted(queue_choice.implicit.values(), key=lambda one: one.key),
        ),
        namespaces=namespaces,
        checks=tuple(check_of(entry.manifest) for entry in objects.entries("AdmissionCheck")),
        topologies=_topologies(objects),
        nodes=_nodes(objects),
        pods=tuple(population.other_pods),
        admitted_workloads=tuple(population.admitted_workloads),
        waiting=tuple(population.waiting),
    )
    return snapshot, tuple(population.unmanaged)


def _default_limits(objects: Objects) -> dict[LocalQueueKey, int]:
    """Return how long jobs of each local queue run that do not say so; its own word comes first."""
    of_queue = {
        entry.name: default_limit_of(entry.metadata.annotations, entry.notes)
        for entry in objects.entries("ClusterQueue")
    }
    found: dict[LocalQueueKey, int] = {}
    for entry in objects.entries("LocalQueue"):
        own = default_limit_of(entry.metadata.annotations, entry.notes)
        limit = of_queue.get(entry.manifest.spec.cluster_queue) if own is None else own
        if limit is not None:
            found[LocalQueueKey(f"{entry.namespace}/{entry.name}")] = limit
    return found


def _nodes(objects: Objects) -> tuple[Node, ...]:
    """Return the nodes; HyperNodes above them show as labels."""
    entries = objects.entries("Node")
    hypernodes = [entry.manifest for entry in objects.entries("HyperNode")]
    more = hypernode_labels(hypernodes, (entry.manifest for entry in entries))
    return tuple(node_of(entry.manifest, more.get(entry.name, {})) for entry in entries)


def _topologies(objects: Objects) -> tuple[Topology, ...]:
    """Return the topologies that were given, and the one that HyperNodes make."""
    given = [
        Topology(entry.name, tuple(level.node_label for level in entry.manifest.spec.levels))
        for entry in objects.entries("Topology")
    ]
    made = hypernode_topology(entry.manifest for entry in objects.entries("HyperNode"))
    if made is None:
        return tuple(given)
    if made.name in {one.name for one in given}:
        made = Topology(f"unisono.dev/{made.name}", made.levels)
    return (*given, made)


def _namespaces(objects: Objects) -> tuple[Namespace, ...]:
    """Return the namespaces that were given, and those that objects are in, by name."""
    labels: dict[str, dict[str, str]] = {
        entry.namespace: {} for entry in objects.all() if entry.namespace
    }
    for entry in objects.entries("Namespace"):
        labels[entry.name] = dict(entry.metadata.labels)
    return tuple(
        Namespace(name, labels_of({**labels[name], NAMESPACE_LABEL: name}))
        for name in sorted(labels)
    )


def _in_order(
    files: Sequence[tuple[str, bytes]], read: Sequence[Documents], objects: Objects, which: str
) -> tuple[Finding, ...]:
    """Gather findings from every stage, by file and document."""
    found: list[Finding] = [finding for one in read for finding in getattr(one, which)]
    found.extend(getattr(objects, which))
    for entry in objects.all():
        found.extend(getattr(entry.notes, which))
    place = {name: index for index, (name, _) in reversed(list(enumerate(files)))}
    return tuple(sorted(found, key=lambda finding: (place[finding.file], finding.document)))


# ---- checks across objects -----------------------------------------------------------------------


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
