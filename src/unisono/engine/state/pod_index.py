"""Which pods are on which node, for the rules that pods have about each other.

Only labels, ports and anti-affinity of pods are kept here, grouped by template: a gang of a
thousand equal pods is one entry. What pods use of nodes is in the node table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from unisono.engine.model.names import NodeName
from unisono.engine.model.node import HostPort, PodRule, PodSelector
from unisono.engine.model.selection import selects


@dataclass(slots=True)
class Members:
    """Pods of one template, and how many of them are on which node."""

    namespace: str
    labels: dict[str, str]
    host_ports: tuple[HostPort, ...]
    anti_affinity: tuple[PodRule, ...]
    pods_on: dict[NodeName, int] = field(default_factory=dict)


@dataclass(slots=True)
class PodIndex:
    """All pods on nodes that rules may be about, by what placed them."""

    groups: dict[object, Members] = field(default_factory=dict)
    # Pods without labels, ports and rules are most pods there are, and are not kept here. Selectors
    # that ask for the absence of a label, or for nothing, match them all the same, so they are read
    # from the occupancy when such a selector turns up.
    unlabelled: Callable[[], Iterable[Members]] = tuple
    _repelling: int = 0  # groups with anti-affinity rules

    @property
    def has_rules(self) -> bool:
        """Say whether some pod on a node keeps others away."""
        return self._repelling > 0

    def add(self, key: object, members: Members) -> None:
        """Add pods."""
        self.groups[key] = members
        self._repelling += bool(members.anti_affinity)

    def remove(self, key: object) -> None:
        """Forget pods."""
        members = self.groups.pop(key, None)
        if members is not None:
            self._repelling -= bool(members.anti_affinity)

    def matching(self, selector: PodSelector, namespace: str) -> Iterator[Members]:
        """Yield groups that a selector of a pod in `namespace` matches."""
        for members in self.groups.values():
            if selects_pod(selector, namespace, members.namespace, members.labels):
                yield members
        if selects(selector.labels, {}):
            for members in self.unlabelled():
                if selects_pod(selector, namespace, members.namespace, members.labels):
                    yield members

    def repelling(
        self, namespace: str, labels: dict[str, str]
    ) -> Iterator[tuple[PodRule, Members]]:
        """Yield anti-affinity rules of pods on nodes that a new pod would violate."""
        for members in self.groups.values():
            for rule in members.anti_affinity:
                if selects_pod(rule.selector, members.namespace, namespace, labels):
                    yield rule, members

    def with_ports(self) -> Iterator[Members]:
        """Yield groups that take ports of their nodes."""
        return (members for members in self.groups.values() if members.host_ports)


def selects_pod(
    selector: PodSelector, own_namespace: str, namespace: str, labels: dict[str, str]
) -> bool:
    """Say whether a rule of a pod in `own_namespace` speaks of a pod with these labels."""
    spoken_of = selector.namespaces or (own_namespace,)
    if not selector.every_namespace and namespace not in spoken_of:
        return False
    return selects(selector.labels, labels)


def conflict(one: HostPort, other: HostPort) -> bool:
    """Say whether two ports cannot be on one node; an empty address means all of them."""
    if one.port != other.port or one.protocol != other.protocol:
        return False
    anywhere = ("", "0.0.0.0")
    return one.address == other.address or one.address in anywhere or other.address in anywhere
