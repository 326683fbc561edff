"""Machines that a simulated run buys, and releases when they are idle.

    decided ──launch──▶ it costs money ──ready──▶ a node; its gang starts with the last of its nodes
    no pods on it ──idle──▶ released
    its gang lost its quota ──▶ orphaned: taken over by another gang, or released

The engine decides what to buy, which gang takes over an orphaned machine, and which short jobs use
held nodes opportunistically, as it does live; here time passes and money is counted. What is not
launched yet when a gang loses its quota is cancelled at once. Spec provisioning §5.8, §5.11 and
§5.16.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from unisono.engine.model.names import Instant, NodeName, WorkloadKey
from unisono.engine.model.node import HOSTNAME, Node
from unisono.engine.model.plan import Admit
from unisono.engine.model.provisioning import NodeClaim, Offerings, PendingNodeClaims, Purchase
from unisono.engine.model.workload import Admission
from unisono.engine.provisioning.catalogue import Catalogue, Offering
from unisono.engine.state.changes import NodeGone, NodeSet, OfferingsSet, WorkloadHolds
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.purchases import after_arrival, after_return, without_node_claims
from unisono.sim.cost import Item


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisioningRules:
    """What can be bought, and how soon: seconds from the decision, by the machine's name."""

    offerings: Offerings
    launch_s: Callable[[str], float]  # until it costs money
    ready_s: Callable[[str], float]  # until it takes pods
    idle_s: Mapping[str, float]  # by pool: how long it stays without pods

    def model_nodes(self) -> tuple[Node, ...]:
        """Return a node of every type that can be bought: what jobs can be like."""
        kinds = {
            offering.machine.name: offering for offering in Catalogue(self.offerings).offerings
        }
        return tuple(_node(NodeName(f"model-{name}"), offering) for name, offering in kinds.items())


@dataclass(slots=True)
class _Machine:
    node_claim: NodeClaim
    launched: float
    ready: float
    pods: int = 0
    idle_since: float | None = None
    orphaned_since: float | None = None  # since when no gang waits for it


# How long an orphaned machine is offered to other gangs (the policy's default).
REUSE_S = 60.0


@dataclass(slots=True)
class RentedMachines:
    """The machines of one run."""

    provisioning: ProvisioningRules
    state: ClusterState
    base: int = 0  # the instant of second 0
    joined: list[Node] = field(default_factory=list)  # every node that there ever was
    _machines: dict[NodeName, _Machine] = field(default_factory=dict)
    _coming: dict[WorkloadKey, tuple[Admit, Purchase]] = field(default_factory=dict)
    _homes: dict[WorkloadKey, Admission] = field(default_factory=dict)
    _opportunistic: dict[WorkloadKey, list[WorkloadKey]] = field(default_factory=dict)  # by holder
    _due: list[tuple[float, int, WorkloadKey | None, NodeName | None]] = field(default_factory=list)
    _items: list[Item] = field(default_factory=list)
    _offering_of: dict[tuple[str, str, str, str], Offering] = field(init=False)
    _number: int = 0

    def __post_init__(self) -> None:
        self._offering_of = {
            (
                offering.pool.name,
                offering.machine.name,
                offering.offer.zone,
                offering.offer.capacity_type,
            ): offering
            for offering in Catalogue(self.provisioning.offerings).offerings
        }
        self.state.apply(OfferingsSet(self.provisioning.offerings))

    def next_due(self) -> float:
        """Return when the next machine is due."""
        return self._due[0][0] if self._due else math.inf

    def buy(self, admit: Admit, now: float) -> None:
        """Order the machines of an admission; it starts when the last of them is there."""
        purchase = admit.purchase
        assert purchase is not None, "the caller asked"
        for node_claim in purchase.node_claims:
            if node_claim.taken_over:
                self._machines[node_claim.node].orphaned_since = None
                continue
            launched = now + self.provisioning.launch_s(node_claim.node)
            self._machines[node_claim.node] = _Machine(
                node_claim, launched, now + self.provisioning.ready_s(node_claim.node)
            )
        # Until then, short jobs may use the nodes that it holds.
        admitted = self.state.running[admit.workload].admitted
        self.state.apply(
            WorkloadHolds(msgspec.structs.replace(admitted, ready_by=purchase.ready_by))
        )
        last = max(self._machines[node_claim.node].ready for node_claim in purchase.node_claims)
        self._coming[admit.workload] = (admit, purchase)
        self._remind(last, key=admit.workload)

    def advance(self, now: float, instant: Instant) -> list[Admit]:
        """Do what is due; return the gangs that start because their machines are ready."""
        starting: list[Admit] = []
        while self._due and self._due[0][0] <= now:
            when, _, key, name = heapq.heappop(self._due)
            if key is not None:
                found = self._coming.get(key)
                if found is not None and self._last(found[1]) == when:
                    starting.append(self._arrive(key, instant))
            elif name is not None:
                self._check_machine(name, now)
        return starting

    def _check_machine(self, name: NodeName, now: float) -> None:
        """Make an orphaned machine a node, or release it."""
        machine = self._machines.get(name)
        if machine is None:
            return
        if machine.orphaned_since is not None:
            due = machine.orphaned_since + REUSE_S
            if machine.ready <= now and now < due:
                self._settle(name, machine)
                self._remind(due, name=name)
            elif due <= now:
                self._give_back(name, now)
        elif machine.idle_since is not None and not machine.pods:
            if machine.idle_since + self._stays(machine) <= now:
                self._give_back(name, now)

    def _settle(self, name: NodeName, machine: _Machine) -> None:
        """Make a ready machine a node that any workload may use."""
        offerings = self._on_offer
        left = without_node_claims(offerings.orphaned, {name})
        self.state.apply(OfferingsSet(msgspec.structs.replace(offerings, orphaned=left)))
        machine.idle_since, machine.orphaned_since = machine.orphaned_since, None
        self._join(machine)

    def record_opportunistic_use(self, job: WorkloadKey, holders: tuple[WorkloadKey, ...]) -> None:
        """Record a short job on nodes that gangs hold until their machines are ready."""
        for holder in holders:
            self._opportunistic.setdefault(holder, []).append(job)

    def jobs_to_evict(self, admit: Admit) -> list[WorkloadKey]:
        """Return the opportunistic jobs that are still on the nodes of a gang that starts now."""
        own = {name for name, _ in _places(admit.admission)}
        jobs = self._opportunistic.pop(admit.workload, [])
        return [
            one
            for one in jobs
            if one in self._homes and own & {name for name, _ in _places(self._homes[one])}
        ]

    def pods_started(self, key: WorkloadKey, admission: Admission) -> None:
        """Record which machines a job uses."""
        self._homes[key] = admission
        for name, pods in _places(admission):
            if (machine := self._machines.get(name)) is not None:
                machine.pods += pods
                machine.idle_since = None

    def pods_ended(self, key: WorkloadKey, now: float) -> None:
        """Record that a job has left; machines without pods are released after a while."""
        for name, pods in _places(self._homes.pop(key)):
            if (machine := self._machines.get(name)) is not None:
                machine.pods -= pods
                if not machine.pods:
                    self._rest(name, machine, now)

    def cancel(self, key: WorkloadKey, now: float) -> bool:
        """Cancel a purchase; say whether there was one."""
        found = self._coming.pop(key, None)
        if found is None:
            return False
        self.state.apply(OfferingsSet(after_arrival(self._on_offer, found[1])))
        for node_claim in found[1].node_claims:
            machine = self._machines[node_claim.node]
            if machine.ready <= now:
                self._join(machine)
                self._rest(node_claim.node, machine, now)
            elif machine.launched <= now:
                self._orphan(key, machine, now)
            else:
                self._give_back(node_claim.node, now)
        self._opportunistic.pop(key, None)  # opportunistic jobs stay on the nodes
        return True

    def _orphan(self, key: WorkloadKey, machine: _Machine, now: float) -> None:
        """Offer an orphaned machine to other gangs; it is released if none takes it over."""
        machine.orphaned_since = now
        offerings = self._on_offer
        node_claim = msgspec.structs.replace(machine.node_claim, pods=(), taken_over=False)
        due = Instant(self.base + int(machine.ready * 1000))
        offered = (
            *offerings.orphaned,
            PendingNodeClaims(workload=key, node_claims=(node_claim,), ready_by=due),
        )
        self.state.apply(OfferingsSet(msgspec.structs.replace(offerings, orphaned=offered)))
        for when in (machine.ready, now + REUSE_S):
            self._remind(when, name=node_claim.node)

    def items(self, end: float) -> list[Item]:
        """Return what was paid for until the end."""
        return [
            *self._items,
            *(self._item(machine, end) for machine in self._machines.values()),
        ]

    # ---- one machine -------------------------------------------------------------------------

    @property
    def _on_offer(self) -> Offerings:
        offerings = self.state.config.offerings
        assert offerings is not None, "machines can be bought"
        return offerings

    def _last(self, purchase: Purchase) -> float:
        return max(self._machines[node_claim.node].ready for node_claim in purchase.node_claims)

    def _arrive(self, key: WorkloadKey, instant: Instant) -> Admit:
        admit, purchase = self._coming.pop(key)
        self.state.apply(OfferingsSet(after_arrival(self._on_offer, purchase)))
        for node_claim in purchase.node_claims:
            self._join(self._machines[node_claim.node])
        admitted = self.state.running[key].admitted
        started = msgspec.structs.replace(
            admitted, may_start=True, admitted_at=instant, ready_by=None
        )
        self.state.apply(WorkloadHolds(started))
        return msgspec.structs.replace(admit, purchase=None)

    def _join(self, machine: _Machine) -> None:
        node_claim = machine.node_claim
        offering = self._offering_of[
            node_claim.pool, node_claim.machine, node_claim.zone, node_claim.capacity_type
        ]
        node = _node(node_claim.node, offering)
        self.joined.append(node)
        self.state.apply(NodeSet(node))

    def _rest(self, name: NodeName, machine: _Machine, now: float) -> None:
        machine.idle_since = now
        stays = self._stays(machine)
        if stays < math.inf:
            self._remind(now + stays, name=name)

    def _stays(self, machine: _Machine) -> float:
        return self.provisioning.idle_s.get(machine.node_claim.pool, 0.0)

    def _give_back(self, name: NodeName, now: float) -> None:
        machine = self._machines.pop(name)
        if machine.launched < now:
            self._items.append(self._item(machine, now))
        if machine.ready <= now and machine.orphaned_since is None:
            self.state.apply(NodeGone(name))
        self.state.apply(OfferingsSet(after_return(self._on_offer, machine.node_claim)))

    def _item(self, machine: _Machine, end: float) -> Item:
        node_claim = machine.node_claim
        offering = self._offering_of[
            node_claim.pool, node_claim.machine, node_claim.zone, node_claim.capacity_type
        ]
        return Item(machine.launched, end, node_claim.price_micro, offering.machine.allocatable)

    def _remind(
        self, when: float, *, key: WorkloadKey | None = None, name: NodeName | None = None
    ) -> None:
        self._number += 1  # so that equal times keep their order
        heapq.heappush(self._due, (when, self._number, key, name))


def _places(admission: Admission) -> list[tuple[NodeName, int]]:
    return [place for one in admission.pod_sets for place in one.nodes]


def _node(name: NodeName, offering: Offering) -> Node:
    labels = {**offering.labels, HOSTNAME: str(name)}
    return Node(
        name=name,
        labels=tuple(sorted(labels.items())),
        taints=offering.pool.taints,
        allocatable=offering.machine.allocatable,
    )
