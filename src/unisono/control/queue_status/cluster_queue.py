"""The status of a ClusterQueue, a controller for each part.

Pending and admitted workloads, usage, and whether it is active; the finalizer while it is in use;
the order of its pending workloads; fair shares, its own and those of cohorts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal

from unisono.control import names
from unisono.control.actions import Again, Json, Patch, Ref, Steps, Together
from unisono.control.conditions import find, with_condition
from unisono.control.controller import Reads, own_key
from unisono.control.manifests import Manifests
from unisono.control.queue_status.tally import REST_SECONDS, Pace, Tally, counted_of, flavors_usage
from unisono.control.view import View
from unisono.engine.explain.messages import remedy, sentence
from unisono.engine.model.errors import InvalidManifest
from unisono.engine.model.explanation import QueueInactive, QueueStopped
from unisono.engine.model.names import CohortName, FlavorName, QueueName, ResourceName
from unisono.engine.model.policy import Policy
from unisono.engine.model.queue import ClusterQueue
from unisono.engine.quota.share import PER_MILLE, Share, dominant_share, weighted_share
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.cohort_trees import CohortTrees, flavor_resource_of
from unisono.engine.state.config import Config
from unisono.engine.state.quota_tree import Node, charge
from unisono.kinds.kueue.flavors import check_of, flavor_of
from unisono.kinds.kueue.queue_order import PENDING_ORDER
from unisono.kinds.kueue.queue_rules import cohort_of, queue_of
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

BY_REFERENCE = "reference"


def referred_to(queue: Json) -> Iterable[str]:
    """Index ClusterQueues by what they name: `flavor/x`, `check/y`."""
    spec = queue.get("spec") or {}
    for group in spec.get("resourceGroups") or ():
        for flavor in group.get("flavors") or ():
            yield f"flavor/{flavor['name'] if isinstance(flavor, dict) else flavor}"
    checks = (spec.get("admissionChecksStrategy") or {}).get("admissionChecks") or ()
    for check in checks:
        yield f"check/{check['name']}"


class ClusterQueueStatus:
    """Keeps the statuses of ClusterQueues up to date."""

    name = "cluster-queues"
    wants_unreadable = True
    watches: Sequence[Kind] = (
        names.CLUSTER_QUEUE,
        names.LOCAL_QUEUE,
        names.WORKLOAD,
        names.FLAVOR,
        names.TOPOLOGY,
        names.ADMISSION_CHECK,
        names.COHORT,
    )
    reads: Mapping[Kind, Reads] = {names.WORKLOAD: counted_of}

    def __init__(self, tally: Tally, manifests: Manifests, policy: Policy) -> None:
        """Take the tally, the decoded manifests, and how queues are read."""
        self._tally = tally
        self._manifests = manifests
        self._policy = policy
        self._pace = Pace()
        # What was last seen of a cohort; a change of its status concerns no queue.
        self._cohorts: dict[str, object] = {}

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A queue, a workload that counts in it, or something that it needs to be open."""
        name = obj["metadata"]["name"]
        match kind:
            case names.CLUSTER_QUEUE:
                yield own_key(obj)
            case names.LOCAL_QUEUE:
                self._tally.mark(kind, obj)
                yield Key("", obj["spec"]["clusterQueue"])
            case names.WORKLOAD:
                self._tally.mark(kind, obj)
                yield from (Key("", queue) for queue in self._tally.queues_of(obj))
            case names.FLAVOR:
                yield from _naming(f"flavor/{name}", view)
            case names.ADMISSION_CHECK:
                yield from _naming(f"check/{name}", view)
            case names.TOPOLOGY:
                for flavor in view.all(names.FLAVOR):
                    if (flavor.get("spec") or {}).get("topologyName") == name:
                        yield from _naming(f"flavor/{flavor['metadata']['name']}", view)
            case _:  # a cohort: its place in the tree may close every queue below it
                cohort = view.get(names.COHORT, name)
                spec = cohort.get("spec") if cohort is not None else None
                if name not in self._cohorts or self._cohorts[name] != spec:
                    self._cohorts[name] = spec
                    yield from (own_key(queue) for queue in view.all(names.CLUSTER_QUEUE))

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Write the status of one queue if it is another now."""
        obj = view.get(names.CLUSTER_QUEUE, key.name)
        if obj is None:
            self._pace.forget(key)
            self._manifests.forget(names.CLUSTER_QUEUE, "", key.name)
            return
        sums = self._tally.of_queue(key.name)
        rest = self._pace.rests_until(key, sums, now)
        if rest is not None:
            yield Again(rest)
            return
        try:
            written = self._manifests.of(obj)
        except InvalidManifest as error:
            wrong = _active(obj, "False", "InvalidSpec", f"Can't admit: {error}", now)
            yield from self._pace.write(key, obj, {"conditions": wrong}, now)
            return
        if written is None:
            return
        queue = queue_of(written, strict=self._policy.strict)
        status: Json = {
            "pendingWorkloads": sums.pending,
            "reservingWorkloads": sums.reserving,
            "admittedWorkloads": sums.admitted,
            "flavorsReservation": flavors_usage(queue, sums.reserved, tells_borrowed=True),
            "flavorsUsage": flavors_usage(queue, sums.used, tells_borrowed=True),
            "conditions": self._conditions(obj, queue, now),
        }
        yield from self._pace.write(key, obj, status, now)

    def _conditions(self, obj: Json, queue: ClusterQueue, now: float) -> list[Json]:
        config = self._surroundings(queue)
        blocker = config.queue_blocker(queue, config.cyclic_cohorts())
        state: Literal["True", "False"] = "True" if blocker is None else "False"
        return _active(obj, state, *_words(blocker, queue, config), now)

    def _surroundings(self, queue: ClusterQueue) -> Config:
        """Return what is there of all that a queue refers to."""
        find = self._manifests.find
        config = Config(self._policy)
        for group in queue.groups:
            for quota in group.flavors:
                flavor = find(names.FLAVOR, quota.flavor)
                if flavor is not None:
                    made = config.flavors[quota.flavor] = flavor_of(flavor)
                    topology = find(names.TOPOLOGY, made.topology) if made.topology else None
                    if topology is not None:
                        config.topologies[made.topology] = topology
        for rule in queue.checks:
            check = find(names.ADMISSION_CHECK, rule.name)
            if check is not None:
                config.checks[rule.name] = check_of(check)
        name: CohortName | None = queue.cohort
        while name is not None and name not in config.cohorts:
            cohort = find(names.COHORT, name)
            if cohort is None:
                break
            made_cohort = config.cohorts[name] = cohort_of(cohort)
            name = made_cohort.parent
        return config


def _naming(reference: str, view: View) -> Iterable[Key]:
    return [own_key(queue) for queue in view.by(names.CLUSTER_QUEUE, BY_REFERENCE, reference)]


def _active(
    queue: Json, state: Literal["True", "False"], reason: str, message: str, now: float
) -> list[Json]:
    return with_condition(
        (queue.get("status") or {}).get("conditions"),
        "Active",
        state,
        reason,
        message,
        now=now,
        generation=queue["metadata"].get("generation"),
    )


def _words(
    blocker: QueueInactive | QueueStopped | None, queue: ClusterQueue, config: Config
) -> tuple[str, str]:
    """Return reason and message of the condition Active, in Kueue's words where it has some."""
    if blocker is None:
        return "Ready", "Can admit new workloads"
    if isinstance(blocker, QueueInactive) and blocker.why == "Terminating":
        return blocker.why, "Can't admit new workloads; clusterQueue is terminating"
    found = [("Stopped", "is stopped")] if isinstance(blocker, QueueStopped) else []
    found += _lacks(queue, config)
    if found:
        return found[0][0], f"Can't admit new workloads: {', '.join(text for _, text in found)}."
    helps = remedy(blocker)
    message = sentence(blocker) + (f". To change that: {helps}" if helps else "")
    return ("Stopped" if isinstance(blocker, QueueStopped) else blocker.why), message


def _lacks(queue: ClusterQueue, config: Config) -> Iterator[tuple[str, str]]:
    """Yield what a queue refers to and cannot use: reason and message."""
    named = dict.fromkeys(quota.flavor for group in queue.groups for quota in group.flavors)
    checks = {rule.name: config.checks.get(rule.name) for rule in queue.checks}
    lists: tuple[tuple[str, str, list[str]], ...] = (
        (
            "FlavorNotFound",
            "references missing ResourceFlavor(s)",
            [name for name in named if name not in config.flavors],
        ),
        (
            "AdmissionCheckNotFound",
            "references missing AdmissionCheck(s)",
            [name for name, check in checks.items() if check is None],
        ),
        (
            "AdmissionCheckInactive",
            "references inactive AdmissionCheck(s)",
            [name for name, check in checks.items() if check is not None and not check.active],
        ),
    )
    for reason, text, missing in lists:
        if missing:
            yield reason, f"{text}: {','.join(missing)}"
    for name in named:
        flavor = config.flavors.get(name)
        if flavor is not None and flavor.topology and flavor.topology not in config.topologies:
            yield (
                "TopologyNotFound",
                f'there is no Topology "{flavor.topology}" for TAS flavor "{name}"',
            )


# ---- in use --------------------------------------------------------------------------------------
#
# Queues, flavors and topologies in use are kept by a finalizer, as in Kueue. A ClusterQueue gets
# it with the first workload that holds its quota, a ResourceFlavor with the first ClusterQueue that
# lists it, a Topology with the first ResourceFlavor that names it. Once deleted they admit nothing
# more, and are gone with the last user.

# These kinds have no namespace; it distinguishes their keys.
_QUEUE, _FLAVOR, _TOPOLOGY = "queue", "flavor", "topology"
_KINDS: Mapping[str, Kind] = {
    _QUEUE: names.CLUSTER_QUEUE,
    _FLAVOR: names.FLAVOR,
    _TOPOLOGY: names.TOPOLOGY,
}
# The index of flavors by the topology that they name.
BY_TOPOLOGY = "topology"


def topology_of(flavor: Json) -> Iterable[str]:
    """Index flavors by their topology."""
    name = (flavor.get("spec") or {}).get("topologyName")
    return (name,) if name else ()


class InUseFinalizers:
    """Keeps the finalizers."""

    name = "in-use"
    watches: Sequence[Kind] = (
        names.CLUSTER_QUEUE,
        names.FLAVOR,
        names.TOPOLOGY,
        names.WORKLOAD,
    )
    reads: Mapping[Kind, Reads] = {names.WORKLOAD: counted_of}

    def __init__(self, tally: Tally) -> None:
        """Take what counts the workloads of each queue."""
        self._tally = tally

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """What may be in use, what it uses itself, or the queue of a workload."""
        if kind == names.TOPOLOGY:
            yield Key(_TOPOLOGY, obj["metadata"]["name"])
        elif kind == names.FLAVOR:
            yield Key(_FLAVOR, obj["metadata"]["name"])
            for name in topology_of(obj):
                yield Key(_TOPOLOGY, name)
        elif kind == names.CLUSTER_QUEUE:
            yield Key(_QUEUE, obj["metadata"]["name"])
            for reference in referred_to(obj):
                prefix, _, name = reference.partition("/")
                if prefix == _FLAVOR:
                    yield Key(_FLAVOR, name)
        else:
            admission = (obj.get("status") or {}).get("admission") or {}
            if admission.get("clusterQueue"):
                yield Key(_QUEUE, admission["clusterQueue"])

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Set the finalizer on what is used; take it off what is to go and is used no more."""
        found = view.get(_KINDS[key.namespace], key.name)
        if found is None:
            return
        finalizers = found["metadata"].get("finalizers") or []
        is_used = self._is_used(key, view)
        is_going = "deletionTimestamp" in found["metadata"]
        if is_used and not is_going and names.RESOURCE_IN_USE not in finalizers:
            yield Patch(
                Ref.to(found), {"metadata": {"finalizers": [*finalizers, names.RESOURCE_IN_USE]}}
            )
        elif is_going and not is_used and names.RESOURCE_IN_USE in finalizers:
            left = [one for one in finalizers if one != names.RESOURCE_IN_USE]
            yield Patch(Ref.to(found), {"metadata": {"finalizers": left}})

    def _is_used(self, key: Key, view: View) -> bool:
        match key.namespace:
            case "queue":
                return self._tally.of_queue(key.name).reserving > 0
            case "flavor":
                users = view.by(names.CLUSTER_QUEUE, BY_REFERENCE, f"{_FLAVOR}/{key.name}")
                return bool(users)
            case _:
                return bool(view.by(names.FLAVOR, BY_TOPOLOGY, key.name))


# ---- the order of pending workloads --------------------------------------------------------------
#
# It is published with their ClusterQueue where only the engine knows it.
#
# By default the order follows from the Workloads, and every view works it out with
# `kinds.kueue.queue_order`. Recent usage of LocalQueues and multifactor priority are known to the
# scheduler alone, and so is a policy by which a time-out does not move a workload back. Then the
# first workloads of each queue are published here, in one condition per ClusterQueue; views put
# those first. Nothing is written for a single workload: one admission would change all of them.

# A message may have 32 KiB, and 316 characters per workload; later positions are estimates.
MOST_PUBLISHED = 100
# Usage decays and ages grow without an event; a published order is at most this old.
_PERIOD_SECONDS = 60.0
_REST_SECONDS = 5.0


def _needs_publishing(policy: Policy) -> bool:
    """Say whether Workloads alone do not tell the order of pending workloads."""
    rules = policy.pods_ready
    keeps_place = rules is not None and rules.requeue_by == "Creation"
    return (
        policy.multifactor is not None or policy.admission_fair_sharing is not None or keeps_place
    )


class PendingOrder:
    """Writes the condition `unisono.dev/PendingOrder` of ClusterQueues."""

    name = "pending-order"
    watches: Sequence[Kind] = (names.CLUSTER_QUEUE, names.WORKLOAD)

    def __init__(self, state: Callable[[], ClusterState]) -> None:
        """Take the scheduler's state, which knows the order and the policy."""
        self._state = state
        self._written: dict[Key, float] = {}

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A queue, or that of a workload."""
        if kind == names.CLUSTER_QUEUE:
            yield own_key(obj)
        elif _needs_publishing(self._state().policy):
            found = view.get(
                names.LOCAL_QUEUE, obj["spec"].get("queueName", ""), obj["metadata"]["namespace"]
            )
            if found is not None:
                yield Key("", found["spec"]["clusterQueue"])

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Publish the order of one queue if it is another now; take it back if it is not needed."""
        obj, state = view.get(names.CLUSTER_QUEUE, key.name), self._state()
        if obj is None:
            self._written.pop(key, None)
            return
        conditions = (obj.get("status") or {}).get("conditions")
        published = find(conditions, PENDING_ORDER)
        if not _needs_publishing(state.policy):
            if published is not None:
                left = [one for one in conditions or () if one["type"] != PENDING_ORDER]
                yield Patch(Ref.to(obj), {"status": {"conditions": left}}, "status")
            return
        due = self._written.get(key, 0.0) + _REST_SECONDS
        if now < due:
            yield Again(due)
            return
        queue = state.queues.get(QueueName(key.name))
        pending = queue.pending.in_order() if queue is not None else []
        order = [str(one.workload.key) for one in islice(pending, MOST_PUBLISHED)]
        message = json.dumps(order, separators=(",", ":"))
        if published is None or published["message"] != message:
            self._written[key] = now
            made = with_condition(conditions, PENDING_ORDER, "True", "Published", message, now=now)
            yield Patch(Ref.to(obj), {"status": {"conditions": made}}, "status")
        if order:
            yield Again(now + _PERIOD_SECONDS)


# ---- fair shares ---------------------------------------------------------------------------------
#
# How far each queue and cohort is above what it owns, as statuses show it.
#
# A share depends on a whole tree, so all of them are worked out together, at most once a second,
# and from the stored Workloads. Without fair sharing no queue has a share.

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
        # As metrics show them, by kind and name: per mille, not rounded; NaN where one is infinite.
        self.shares: dict[tuple[str, str], float] = {}

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
        trees = self._cohort_trees(view)
        self.shares = {}
        for kind in (names.CLUSTER_QUEUE, names.COHORT):
            for obj in view.all(kind):
                node = self._node(trees, kind, obj)
                if node is None:
                    continue
                found = dominant_share(node)
                self.shares[kind.kind, obj["metadata"]["name"]] = _exact(found)
                share = {"weightedShare": weighted_share(found)}
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

    def _cohort_trees(self, view: View) -> CohortTrees:
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


def _exact(share: Share) -> float:
    """Return the number that metrics show: per mille, not rounded; NaN if infinite."""
    tier, value = share
    return float("nan") if tier else value / PER_MILLE
