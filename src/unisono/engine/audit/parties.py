"""Who sits on which nodes: in the snapshot, and in what a plan makes of it.

A party is the pods of one template that one workload, or somebody else, has on nodes. The auditor
looks at two pictures, as it does with quota:

    started   everybody is still there, evicted ones included; those admitted have come
    kept      the plan's victims are gone; those admitted and those who preempt have come
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from unisono.engine.audit.seats import Party, Seats, add_up, parties_of, seat_of_pod
from unisono.engine.audit.snapshot_index import Decided, SnapshotIndex, started_by
from unisono.engine.model.names import PODS, NodeName, WorkloadKey
from unisono.engine.model.node import (
    HOSTNAME,
    Node,
    PodRule,
    PodSelector,
    SpreadRule,
)
from unisono.engine.model.plan import Plan
from unisono.engine.model.selection import selects
from unisono.engine.model.workload import Admission, Holding

# How many pods a node takes if its manifest does not say: what the kubelet starts with.
PODS_PER_NODE = 110
NAME_FIELD = "metadata.name"  # node affinity may ask for it as if it were a label


class Floor:
    """The nodes, and everybody who is on them in one picture.

    The picture is the seats as they are, without some, and with those who come.
    """

    def __init__(
        self,
        nodes: Mapping[NodeName, Node],
        seats: Seats,
        *,
        without: Collection[str] = (),
        coming: Iterable[Party] = (),
    ) -> None:
        """Let some get up and others sit down."""
        self.nodes = nodes
        self._seats = seats
        self._without = without
        self._coming = tuple(coming)
        self.newcomers: dict[str, list[Party]] = {}
        self._labels: dict[NodeName, dict[str, str]] = {}
        self._moved: dict[NodeName, dict[str, int]] = {}  # what coming and leaving makes of use
        for party in self._coming:
            self.newcomers.setdefault(party.who, []).append(party)
            add_up(self._moved, party, 1)
        for who in without:
            for party in seats.parties.get(who, ()):
                add_up(self._moved, party, -1)

    @property
    def parties(self) -> Iterator[Party]:
        """Everybody."""
        yield from _of_others(self._seats.parties, self._without)
        yield from self._coming

    @property
    def repelling(self) -> list[Party]:
        """Those who want others away."""
        there = _of_others(self._seats.repelling, self._without)
        return [*there, *(party for party in self._coming if party.anti_affinity)]

    def with_ports(self, name: NodeName) -> list[Party]:
        """Return those who have ports of a node."""
        there = self._staying(self._seats.with_ports.get(name, ()))
        return there + [party for party in self._coming if party.host_ports and name in party.on]

    def sharing(self, name: NodeName) -> list[Party]:
        """Return those who have parts of a node's GPUs."""
        there = self._staying(self._seats.sharing.get(name, ()))
        return there + [party for party in self._coming if name in party.devices]

    def _staying(self, parties: Iterable[Party]) -> list[Party]:
        return [
            party
            for party in parties
            # Pods have no set.
            if (party.who if party.pod_set else seat_of_pod(party.who)) not in self._without
        ]

    def labels(self, name: NodeName) -> dict[str, str]:
        """Return a node's labels, with its name as the two that every node has."""
        if name not in self._labels:
            node = self.nodes[name]
            self._labels[name] = {HOSTNAME: name, **dict(node.labels), NAME_FIELD: name}
        return self._labels[name]

    def free(self, name: NodeName, resource: str) -> int:
        """Return how much nobody uses; less than nothing if a node is overfull."""
        has: dict[str, int] = {PODS: PODS_PER_NODE, **dict(self.nodes[name].allocatable)}
        used = self._seats.used.get(name, {}).get(resource, 0)
        return has.get(resource, 0) - used - self._moved.get(name, {}).get(resource, 0)

    def counted(
        self, rule: PodRule | SpreadRule, namespace: str, among: Iterable[Party] | None = None
    ) -> dict[str, int]:
        """Count the pods that a rule speaks of, by the value of the label that it names."""
        counts: dict[str, int] = {}
        key = rule.topology_key
        for party in self.parties if among is None else among:
            if not speaks_of(rule.selector, namespace, party):
                continue
            for name, pods in party.on.items():
                if name in self.nodes and key in self.labels(name):
                    value = self.labels(name)[key]
                    counts[value] = counts.get(value, 0) + pods
        return counts


def speaks_of(selector: PodSelector, namespace: str, party: Party) -> bool:
    """Say whether a rule of a pod in `namespace` is about these pods."""
    if not selector.every_namespace and party.namespace not in (
        selector.namespaces or (namespace,)
    ):
        return False
    return selects(selector.labels, dict(party.labels))


def started(index: SnapshotIndex, plan: Plan, *, lent_by: Collection[WorkloadKey] = ()) -> Floor:
    """Seat those who are admitted among everybody who is there now, but for those who lend."""
    replaced = {admit.replaces for admit in plan.admissions if admit.replaces is not None}
    return _floor(index, without={*replaced, *lent_by}, coming=plan.admissions)


def kept(index: SnapshotIndex, plan: Plan, *, lent_by: Collection[WorkloadKey] = ()) -> Floor:
    """Seat everybody whom the plan starts, as if its victims, and pods it waits for, had left."""
    decided = started_by(plan)
    coming = [index.waiting[each.workload] for each in decided if each.workload in index.waiting]
    replaced = {workload.replaces for workload in coming if workload.replaces is not None}
    leaving = index.victims(plan.preemptions)
    gone = {seat_of_pod(pod) for each in plan.awaits for pod in each.pods}
    return _floor(index, without={*replaced, *gone, *lent_by}, leaving=leaving, coming=decided)


def alone(index: SnapshotIndex, decided: Decided, leaving: Mapping[WorkloadKey, Holding]) -> Floor:
    """Seat one workload in the snapshot as if these had left, and nobody else had come."""
    workload = index.waiting[decided.workload]
    without = [workload.replaces] if workload.replaces is not None else []
    return _floor(index, without=without, leaving=leaving, coming=(decided,))


def _floor(
    index: SnapshotIndex,
    *,
    without: Collection[str],
    coming: Iterable[Decided],
    leaving: Mapping[WorkloadKey, Holding] | None = None,
) -> Floor:
    """Seat those who come; some get up, and of those who are leaving the part that leaves."""
    up = leaving or {}
    rest = [
        _less(party, up[key].admission)
        for key in up
        if key not in without
        for party in index.seats.parties.get(key, ())
    ]
    staying = [party for party in rest if party.on]
    return Floor(
        index.nodes,
        index.seats,
        without={*without, *up},
        coming=(*staying, *_coming(index, coming)),
    )


def _of_others(
    parties: Mapping[str, tuple[Party, ...]], without: Collection[str]
) -> Iterator[Party]:
    return (party for who, some in parties.items() if who not in without for party in some)


def _less(party: Party, gone: Admission) -> Party:
    """Return what stays of a party."""
    leaves = {
        name: pods
        for each in gone.pod_sets
        if each.name == party.pod_set
        for name, pods in each.nodes
    }
    left = {name: pods - leaves.get(name, 0) for name, pods in party.on.items()}
    left = {name: pods for name, pods in left.items() if pods > 0}
    devices = {name: party.devices[name][: left[name]] for name in left if name in party.devices}
    return replace(party, on=left, devices=devices)


def _coming(index: SnapshotIndex, decided: Iterable[Decided]) -> Iterator[Party]:
    for each in decided:
        if each.workload in index.waiting:
            yield from parties_of(index.waiting[each.workload], each.admission, comes=True)
