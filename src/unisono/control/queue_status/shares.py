"""Fair shares: how far each queue and cohort is above what it owns, as statuses show it.

A share depends on a whole tree, so all of them are worked out together, at most once a second, and
from the stored Workloads. Without fair sharing no queue has a share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from unisono.control import names
from unisono.control.actions import Again, Json, Patch, Ref, Steps, Together
from unisono.control.controller import Reads
from unisono.control.manifests import Manifests
from unisono.control.queue_status.tally import REST_SECONDS, Tally, counted_of
from unisono.control.view import View
from unisono.engine.model.names import FlavorName, ResourceName
from unisono.engine.model.policy import Policy
from unisono.engine.model.queue import ClusterQueue
from unisono.engine.quota.share import dominant_share, weighted_share
from unisono.engine.state.charges import flavor_resource_of
from unisono.engine.state.cohort_trees import CohortTrees
from unisono.engine.state.config import Config
from unisono.engine.state.quota_tree import Node, charge
from unisono.kinds.kueue.queue_rules import cohort_of, queue_of
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

_ALL = Key("", "shares")


class FairShares:
    """Writes `fairSharing.weightedShare` of ClusterQueues and Cohorts."""

    name = "fair-shares"
    wants_unreadable = True
    watches: Sequence[Kind] = (names.CLUSTER_QUEUE, names.COHORT, names.LOCAL_QUEUE, names.WORKLOAD)
    reads: Mapping[Kind, Reads] = {names.WORKLOAD: counted_of}

    def __init__(self, tally: Tally, manifests: Manifests, policy: Policy) -> None:
        """Take the tally and the decoded manifests."""
        self._tally = tally
        self._manifests = manifests
        self._policy = policy
        self._last = float("-inf")

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """Any change may move every share of its tree."""
        if kind in (names.WORKLOAD, names.LOCAL_QUEUE):
            self._tally.mark(kind, obj)
        return (_ALL,)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Write the shares that are others now."""
        if self._policy.fair_sharing is None:
            return
        if now < self._last + REST_SECONDS:
            yield Again(self._last + REST_SECONDS)
            return
        self._last = now
        patches = list(self._patches(view))
        if patches:
            yield Together(patches)

    def _patches(self, view: View) -> Iterator[Patch]:
        trees = self._forest(view)
        for kind in (names.CLUSTER_QUEUE, names.COHORT):
            for obj in view.all(kind):
                node = self._node(trees, kind, obj)
                if node is None:
                    continue
                share = {"weightedShare": weighted_share(dominant_share(node))}
                if (obj.get("status") or {}).get("fairSharing") != share:
                    changes = {"status": {"fairSharing": share}}
                    # Right in every state of the object: no other controller writes this field.
                    yield Patch(Ref.to(obj), changes, "status", exact=False)

    def _node(self, trees: CohortTrees, kind: Kind, obj: Json) -> Node | None:
        name = obj["metadata"]["name"]
        if kind == names.COHORT:
            return trees.cohort(name)
        cq = trees.queues.get(name)
        return cq.node if cq is not None else None

    def _forest(self, view: View) -> CohortTrees:
        """Build the trees of all queues, with what is held in each."""
        config = Config(self._policy)
        trees = CohortTrees(config)
        for cohort in self._manifests.every(names.COHORT):
            made = cohort_of(cohort)
            config.cohorts[made.name] = made
            trees.set_cohort(made)
        for written in self._manifests.every(names.CLUSTER_QUEUE):
            queue = queue_of(written, strict=self._policy.strict)
            config.queues[queue.name] = queue
            trees.set_queue(queue)
        for _ in trees.relink():
            pass
        for queue in config.queues.values():
            self._charge(queue, trees.queues[queue.name].node)
        return trees

    def _charge(self, queue: ClusterQueue, node: Node) -> None:
        group_of = {resource: group for group in queue.groups for resource in group.covered}
        for use, amount in self._tally.of_queue(queue.name).reserved.items():
            flavor, resource = FlavorName(use.flavor), ResourceName(use.resource)
            flavor_resource = flavor_resource_of(flavor, resource, group_of.get(resource))
            if flavor_resource is not None:
                charge(node.cell(flavor_resource), amount)
