"""What placement is asked: pods of one template, how many, where they may go.

`Constraint` is everything that decides *whether* a node may be used; it is hashable, so that all
workloads with the same constraint share one mask.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from unisono.engine.model.node import QUARANTINE, HostPort, PodRule, SpreadRule
from unisono.engine.model.queue import Flavor
from unisono.engine.model.resources import Amounts
from unisono.engine.model.selection import AffinityTerm, Labels, Toleration
from unisono.engine.model.workload import PodSet, WeightedTerm
from unisono.engine.state.advance_reservations import ExcludedNodes

Mode = Literal["required", "preferred", "unconstrained"]


class Constraint(msgspec.Struct, frozen=True, cache_hash=True):
    """Which nodes a pod accepts and which accept it: labels, affinity, taints, reservations."""

    selector: Labels = ()
    affinity: tuple[AffinityTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    preferred: tuple[WeightedTerm, ...] = ()
    excluded: ExcludedNodes | None = None  # nodes that are reserved for others while it would run


class Demand(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Pods of one set that want nodes."""

    name: str
    least: int  # the gang needs this many
    most: int  # and can use this many
    requests: Amounts
    constraint: Constraint = Constraint()
    mode: Mode = "unconstrained"
    levels: tuple[str, ...] = ()  # of the topology they live in, widest first, without the node
    level: str = ""  # the label whose domain they share; empty: one node
    slice_size: int = 0  # pods come in blocks of this many ...
    slice_level: str = ""  # ... each inside one domain of this level
    group: str = ""  # demands of one group share their domain
    namespace: str = ""
    labels: Labels = ()
    host_ports: tuple[HostPort, ...] = ()
    affinity_to: tuple[PodRule, ...] = ()
    anti_affinity: tuple[PodRule, ...] = ()
    spread: tuple[SpreadRule, ...] = ()
    volumes: tuple[tuple[AffinityTerm, ...], ...] = ()  # from where each can be reached

    @property
    def needed(self) -> int:
        """How many pods must find a place: the minimum, in whole blocks."""
        if self.slice_size <= 1:
            return self.least
        return -(-self.least // self.slice_size) * self.slice_size

    @property
    def is_plain(self) -> bool:
        """Say whether no rule between pods applies: capacity alone decides."""
        return not (self.host_ports or self.affinity_to or self.anti_affinity or self.spread)


_QUARANTINED = Toleration(key=QUARANTINE, operator="Exists")
_EVERYTHING = (Toleration(operator="Exists"),)  # tolerates whatever a node is tainted with


def without_taints(constraint: Constraint) -> Constraint:
    """Return what selector and affinity alone ask for."""
    return Constraint(constraint.selector, constraint.affinity, _EVERYTHING)


def in_quarantine(constraint: Constraint) -> Constraint:
    """Return the same for pods that may go to nodes in quarantine."""
    known = (*constraint.tolerations, _QUARANTINED)
    return Constraint(constraint.selector, constraint.affinity, known, (), constraint.excluded)


def reaching(volume: tuple[AffinityTerm, ...]) -> Constraint:
    """Return what a volume alone asks for."""
    return Constraint((), volume, _EVERYTHING)


def constraint_for(
    pod_set: PodSet, flavors: tuple[Flavor, ...], excluded: ExcludedNodes | None = None
) -> Constraint:
    """Join a pod set's own constraint with those of its assigned flavors."""
    selector = dict(pod_set.node_selector)
    tolerations = list(pod_set.tolerations)
    for flavor in flavors:
        selector.update(flavor.node_labels)
        tolerations.extend(t for t in flavor.tolerations if t not in tolerations)
    return Constraint(
        selector=tuple(sorted(selector.items())),
        affinity=pod_set.affinity,
        tolerations=tuple(tolerations),
        preferred=pod_set.preferred,
        excluded=excluded,
    )


def anonymised(demand: Demand) -> Demand:
    """Return a demand without namespace and labels: only rules between pods read them."""
    return msgspec.structs.replace(demand, namespace="", labels=())


def narrowed(demand: Demand, labels: Labels) -> Demand:
    """Return a demand whose nodes need these labels, too."""
    if not labels:
        return demand
    constraint = demand.constraint
    selector = tuple(sorted({**dict(constraint.selector), **dict(labels)}.items()))
    return msgspec.structs.replace(
        demand, constraint=msgspec.structs.replace(constraint, selector=selector)
    )
