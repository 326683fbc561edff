"""The quota tree by its definitions: spec quota §4 and the shares of §9, and nothing else.

`Tree` holds the configuration: parents, quotas, and what follows from them alone. `QuotaUsage` adds
what every queue uses. Both are values: `QuotaUsage.after` returns another usage and leaves this one
as it is. A number is computed from its definition when it is first needed, and cached. The
recursive definitions are unrolled (from the leaves up, or from the root down), because a chain of
cohorts may be deeper than Python's stack.

A queue without a cohort, and a cohort without a parent, is a root; limits mean nothing there.
Cohorts whose parents form a cycle are each taken as a root, so that every way up ends; nothing
below them may be admitted anyway (`Tree.is_in_cycle`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Literal, NamedTuple

from unisono.engine.model.names import CohortName, QueueName, ResourceName
from unisono.engine.model.queue import ClusterQueue, Cohort, ResourceGroup
from unisono.engine.model.resources import FlavorResource, pool_name


class Node(NamedTuple):
    """A queue or a cohort; the two may have the same name."""

    kind: Literal["queue", "cohort"]
    name: str


class Limits(NamedTuple):
    """The quota of one node for one flavor-resource; None means no limit."""

    nominal: int = 0
    borrowing: int | None = None
    lending: int | None = None


class Charge(NamedTuple):
    """What one workload uses, and the queue that is charged."""

    queue: QueueName
    amounts: Mapping[FlavorResource, int]


class Share(NamedTuple):
    """A dominant resource share; it compares as spec quota §9 says, infinite ones by usage."""

    is_infinite: bool
    value: Fraction


NO_SHARE = Share(is_infinite=False, value=Fraction(0))


def queue_node(name: QueueName) -> Node:
    """Name the tree node of a ClusterQueue."""
    return Node("queue", name)


def cohort_node(name: CohortName) -> Node:
    """Name the tree node of a cohort."""
    return Node("cohort", name)


def quotas_of(groups: Iterable[ResourceGroup]) -> dict[FlavorResource, Limits]:
    """List the flavor-resources that resource groups give quota to; a pool is one of them."""
    limits: dict[FlavorResource, Limits] = {}
    for group in groups:
        if group.pool is None:
            listed = [(str(each.flavor), each.resources) for each in group.flavors]
        else:
            listed = [(pool_name(each.flavor for each in group.flavors), group.pool)]
        for flavor, quotas in listed:
            for quota in quotas:
                flavor_resource = FlavorResource(flavor, quota.resource)
                limits[flavor_resource] = Limits(
                    quota.nominal, quota.borrowing_limit, quota.lending_limit
                )
    return limits


class Tree:
    """The configured tree: parents, and how much each node owns, lends and may borrow."""

    def __init__(self, queues: Iterable[ClusterQueue], cohorts: Iterable[Cohort]) -> None:
        """Read the configuration; a cohort that is only named exists and owns nothing."""
        self._limits: dict[Node, dict[FlavorResource, Limits]] = {}
        self._weights: dict[Node, int] = {}
        self._named_parents: dict[Node, Node] = {}
        for cohort in cohorts:
            self._add(cohort_node(cohort.name), cohort.parent, cohort.groups, cohort.weight_milli)
        for queue in queues:
            self._add(queue_node(queue.name), queue.cohort, queue.groups, queue.weight_milli)
        self._cyclic = {node for node in self._named_parents if self._is_own_ancestor(node)}
        self._children: dict[Node, list[Node]] = {}
        for node in sorted(self._named_parents):
            if node not in self._cyclic:
                self._children.setdefault(self._named_parents[node], []).append(node)
        self._subtrees: dict[tuple[Node, FlavorResource], int] = {}

    def _add(
        self,
        node: Node,
        parent: CohortName | None,
        groups: Iterable[ResourceGroup],
        weight_milli: int,
    ) -> None:
        self._limits[node] = quotas_of(groups)
        self._weights[node] = weight_milli
        if parent is not None:
            self._named_parents[node] = cohort_node(parent)

    def _is_own_ancestor(self, node: Node) -> bool:
        seen: set[Node] = set()
        above = self._named_parents.get(node)
        while above is not None and above not in seen:
            if above == node:
                return True
            seen.add(above)
            above = self._named_parents.get(above)
        return False

    def parent(self, node: Node) -> Node | None:
        """Return the cohort above, or None for a root."""
        return None if node in self._cyclic else self._named_parents.get(node)

    def is_in_cycle(self, node: Node) -> bool:
        """Say whether the way up, as configured, never ends."""
        return self.root(node) in self._cyclic

    def path(self, node: Node) -> list[Node]:
        """List the node and all its ancestors, the root last."""
        nodes = [node]
        while (above := self.parent(nodes[-1])) is not None:
            nodes.append(above)
        return nodes

    def root(self, node: Node) -> Node:
        """Return the top of the node's tree."""
        return self.path(node)[-1]

    def children(self, node: Node) -> list[Node]:
        """List what is directly below."""
        return self._children.get(node, [])

    def below(self, node: Node) -> Iterator[Node]:
        """Visit the node and everything under it, parents before their children."""
        ahead = [node]
        while ahead:
            yield (each := ahead.pop())
            ahead.extend(self.children(each))

    def sides(self, one: Node, other: Node) -> tuple[Node, Node] | None:
        """Return the two children of their lowest common ancestor, or None in other trees."""
        above_one = self.path(one)
        above_other = self.path(other)
        for node in above_one:
            if node in above_other:
                first, second = above_one.index(node), above_other.index(node)
                assert first > 0 and second > 0, f"{one} and {other} are not beside each other"
                return above_one[first - 1], above_other[second - 1]
        return None

    def weight_milli(self, node: Node) -> int:
        """Return the fair-sharing weight; a cohort without an object weighs 1."""
        return self._weights.get(node, 1000)

    def limits(self, node: Node, flavor_resource: FlavorResource) -> Limits:
        """Return the node's own quota; at a root the limits mean nothing."""
        limits = self._limits.get(node, {}).get(flavor_resource, Limits())
        return Limits(limits.nominal) if self.parent(node) is None else limits

    def flavor_resources(self, node: Node) -> set[FlavorResource]:
        """Collect the flavor-resources with a quota at the node or anywhere below it."""
        return {
            flavor_resource
            for each in self.below(node)
            for flavor_resource in self._limits.get(each, {})
        }

    def subtree(self, node: Node, flavor_resource: FlavorResource) -> int:
        """Add up what the node owns and what its children lend."""
        if (node, flavor_resource) not in self._subtrees:
            for each in reversed(list(self.below(node))):
                lent = sum(
                    self._subtrees[child, flavor_resource] - self.local(child, flavor_resource)
                    for child in self.children(each)
                )
                self._subtrees[each, flavor_resource] = (
                    self.limits(each, flavor_resource).nominal + lent
                )
        return self._subtrees[node, flavor_resource]

    def local(self, node: Node, flavor_resource: FlavorResource) -> int:
        """Return the part that the node does not lend."""
        lending = self.limits(node, flavor_resource).lending
        return 0 if lending is None else max(0, self.subtree(node, flavor_resource) - lending)

    def potential(self, node: Node, flavor_resource: FlavorResource) -> int:
        """Return what the node could use if the cluster were empty."""
        root, *down = reversed(self.path(node))
        most = self.subtree(root, flavor_resource)
        for each in down:
            most += self.local(each, flavor_resource)
            borrowing = self.limits(each, flavor_resource).borrowing
            if borrowing is not None:
                most = min(most, self.subtree(each, flavor_resource) + borrowing)
        return most

    def height(self, node: Node) -> int:
        """Return how many levels there are below the node."""
        depth = len(self.path(node))
        return max(len(self.path(each)) for each in self.below(node)) - depth


class QuotaUsage:
    """What every queue uses, and what follows from that."""

    def __init__(self, tree: Tree, charges: Iterable[Charge] = ()) -> None:
        """Add up the charges."""
        self.tree = tree
        self._used: dict[Node, dict[FlavorResource, int]] = {}
        self._usages: dict[tuple[Node, FlavorResource], int] = {}
        self._add(charges, 1)

    def _add(self, charges: Iterable[Charge], sign: int) -> None:
        for charge in charges:
            node = queue_node(charge.queue)
            used = dict(self._used.get(node, {}))  # other usages share the dictionary
            for flavor_resource, amount in charge.amounts.items():
                used[flavor_resource] = used.get(flavor_resource, 0) + sign * amount
            self._used[node] = used

    def after(
        self, *, charged: Iterable[Charge] = (), released: Iterable[Charge] = ()
    ) -> QuotaUsage:
        """Return the usage with some charges added and others released."""
        usage = QuotaUsage(self.tree)
        usage._used = dict(self._used)
        usage._add(charged, 1)
        usage._add(released, -1)
        return usage

    def used(self, node: Node, flavor_resource: FlavorResource) -> int:
        """Return what a queue uses, or what a cohort's children use beyond their local quota."""
        if node.kind == "queue":
            return self._used.get(node, {}).get(flavor_resource, 0)
        if (node, flavor_resource) not in self._usages:
            cohorts = [each for each in self.tree.below(node) if each.kind == "cohort"]
            for each in reversed(cohorts):
                self._usages[each, flavor_resource] = sum(
                    max(
                        0,
                        self.used(child, flavor_resource) - self.tree.local(child, flavor_resource),
                    )
                    for child in self.tree.children(each)
                )
        return self._usages[node, flavor_resource]

    def local_available(self, node: Node, flavor_resource: FlavorResource) -> int:
        """Return what is left of the quota that the node does not lend."""
        return max(0, self.tree.local(node, flavor_resource) - self.used(node, flavor_resource))

    def available(self, node: Node, flavor_resource: FlavorResource) -> int:
        """Return what the node may still use; negative when more is used than there is."""
        tree = self.tree
        root, *down = reversed(tree.path(node))
        most = tree.subtree(root, flavor_resource) - self.used(root, flavor_resource)
        for each in down:
            borrowing = tree.limits(each, flavor_resource).borrowing
            if borrowing is not None:
                local = tree.local(each, flavor_resource)
                shared = tree.subtree(each, flavor_resource) - local
                shared_used = max(0, self.used(each, flavor_resource) - local)
                most = min(most, shared - shared_used + borrowing)
            most += self.local_available(each, flavor_resource)
        return most

    def is_borrowing_with(self, node: Node, flavor_resource: FlavorResource, amount: int) -> bool:
        """Say whether the node, with that much more, uses more than its subtree owns."""
        return self.tree.subtree(node, flavor_resource) < self.used(node, flavor_resource) + amount

    def level(self, queue: Node, flavor_resource: FlavorResource, amount: int) -> tuple[int, bool]:
        """Return from which height the amount is borrowed, and whether reclaiming could help."""
        above = self.tree.path(queue)[1:]
        if not above or not self.is_borrowing_with(queue, flavor_resource, amount):
            return 0, bool(above)
        rest = amount - self.local_available(queue, flavor_resource)
        for cohort in above:
            if not self.is_borrowing_with(cohort, flavor_resource, rest):
                return self.tree.height(cohort), self.tree.parent(cohort) is not None
            rest -= self.local_available(cohort, flavor_resource)
        return self.tree.height(above[-1]), False

    def fits(self, charge: Charge) -> bool:
        """Say whether a workload could start beside this usage."""
        node = queue_node(charge.queue)
        return all(
            amount <= max(0, self.available(node, flavor_resource))
            for flavor_resource, amount in charge.amounts.items()
        )

    def share(self, node: Node) -> Share:
        """Return the dominant resource share, in thousandths of what the parent could use."""
        parent = self.tree.parent(node)
        if parent is None:
            return NO_SHARE
        usage = self._dominant(node, parent)
        weight_milli = self.tree.weight_milli(node)
        if weight_milli > 0:
            return Share(is_infinite=False, value=usage * 1000 / weight_milli)
        return Share(is_infinite=usage > 0, value=usage)

    def _dominant(self, node: Node, parent: Node) -> Fraction:
        used_below = {
            flavor_resource
            for each in self.tree.below(node)
            for flavor_resource in self._used.get(each, {})
        }
        over: dict[ResourceName, int] = {}
        for flavor_resource in self.tree.flavor_resources(node) | used_below:
            excess = self.used(node, flavor_resource) - self.tree.subtree(node, flavor_resource)
            over[flavor_resource.resource] = over.get(flavor_resource.resource, 0) + max(0, excess)
        lendable: dict[ResourceName, int] = {}
        for flavor_resource in self.tree.flavor_resources(self.tree.root(node)):
            potential = self.tree.potential(parent, flavor_resource)
            lendable[flavor_resource.resource] = (
                lendable.get(flavor_resource.resource, 0) + potential
            )
        return max(
            (
                Fraction(excess * 1000, lendable[resource])
                for resource, excess in over.items()
                if lendable.get(resource, 0) > 0
            ),
            default=Fraction(0),
        )
