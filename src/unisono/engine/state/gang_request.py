"""Gang requests: workloads that ask for the same share one object, eligible flavors and a verdict.

The request holds every property that a decision depends on; names, identities and labels that no
rule reads stay out. Every Job's pods carry its name as a label: counting that would give as many
requests as jobs. Only pods that keep others away (required anti-affinity) make labels of others
count: those that their rules name, and the namespace. Pods with rules of their own count with all
labels.
"""

from __future__ import annotations

import msgspec

from unisono.engine.model.names import PODS, ResourceName, WorkloadKey, namespace_of
from unisono.engine.model.node import PodRule
from unisono.engine.model.resources import Amounts, is_share
from unisono.engine.model.workload import PodSet, Workload

_RequestKey = tuple[
    tuple[PodSet, ...], tuple[tuple[str, int], ...], WorkloadKey | None, int | None, str
]


class GangRequest:
    """Pod sets as they are asked for, with the counts that still have to run."""

    __slots__ = (
        "counts",
        "is_plain",
        "key",
        "least_in_total",
        "minimums",
        "most_steps",
        "number",
        "pod_sets",
        "shares",
        "shrinkable",
        "sociable",
        "users",
    )

    def __init__(self, number: int, key: _RequestKey) -> None:
        self.number = number
        self.key = key
        self.pod_sets, reclaimable, replaces, min_total, _ = key
        self.is_plain = not reclaimable and replaces is None and min_total is None
        done = dict(reclaimable)
        self.counts = tuple(
            max(0, pod_set.count - done.get(pod_set.name, 0)) for pod_set in self.pod_sets
        )
        self.minimums = tuple(
            count if pod_set.min_count is None else min(count, pod_set.min_count)
            for pod_set, count in zip(self.pod_sets, self.counts, strict=True)
        )
        # What all pods that have to start together ask of nodes.
        total: dict[ResourceName, int] = {PODS: sum(self.minimums)}
        for pod_set, least in zip(self.pod_sets, self.minimums, strict=True):
            wanted = pod_set.requests if pod_set.node_requests is None else pod_set.node_requests
            for resource, amount in wanted:
                total[resource] = total.get(resource, 0) + amount * least
        self.least_in_total: Amounts = tuple(total.items())
        self.shares = tuple(resource for resource in total if is_share(resource))
        # An elastic slice says with its minimum whether a part would do (spec quota §15).
        self.shrinkable = sum(self.counts) - sum(self.minimums)
        # How far it may shrink; the gang as a whole may need more than its sets' minimums.
        self.most_steps = self.shrinkable
        if min_total is not None:
            self.most_steps = max(0, min(self.shrinkable, sum(self.counts) - min_total))
        # Pods that others place may open nodes to it: it has to be near them, or evenly spread.
        self.sociable = any(p.affinity_to or p.spread for p in self.pod_sets)
        self.users = 0


def shrunk(request: GangRequest, steps: int) -> tuple[int, ...]:
    """Return the counts after `steps` of all possible pods were taken off, spread evenly."""
    return tuple(
        count - (count - least) * steps // request.shrinkable
        for count, least in zip(request.counts, request.minimums, strict=True)
    )


# So many classes that are not used any more are kept: the next of their kind is soon there.
UNUSED_KEPT = 256


class GangRequests:
    """Hands out one `GangRequest` for equal requests, for as long as it is used, and a while on."""

    __slots__ = ("_by_key", "_has_rules", "_next", "_plain", "_read", "_unused", "sociable")

    def __init__(self) -> None:
        self._by_key: dict[_RequestKey, GangRequest] = {}
        # By the identity of the request's own pod sets: those without labels or
        # rules between pods, and with nothing else to ask.
        self._plain: dict[int, GangRequest] = {}
        self._has_rules = False  # some pods have anti-affinity
        self._read: frozenset[str] = frozenset()  # the labels that they select by
        self._unused: dict[GangRequest, None] = {}  # those longest out of use first
        self._next = 0
        self.sociable = 0  # how many pending ones have rules about other pods

    def read_selectors(self, rules: tuple[PodRule, ...]) -> bool:
        """Take in the labels that anti-affinity selects by; say whether more count now."""
        read = {each.key for rule in rules for each in rule.selector.labels.requirements}
        if not rules or (self._has_rules and read <= self._read):
            return False
        self._has_rules, self._read = True, self._read | read
        return True

    def read_selectors_of(self, workload: Workload) -> bool:
        """Take in the same of a workload whose pods are on nodes, or may be soon."""
        found = False
        for pod_set in workload.pod_sets:
            if pod_set.anti_affinity:
                found |= self.read_selectors(pod_set.anti_affinity)
        return found

    def take_again(self, workload: Workload) -> GangRequest | None:
        """Do as `take` if a workload with the very same pod sets came before; else None.

        Then there are no selectors to read either: its pods have no anti-affinity.
        """
        pod_sets = workload.pod_sets
        request = self._plain.get(id(pod_sets))
        if (
            request is None
            or request.pod_sets is not pod_sets
            or self._has_rules
            or workload.reclaimable
            or workload.replaces is not None
            or workload.min_total is not None
        ):
            return None
        self._use(request)
        return request

    def take(self, workload: Workload) -> GangRequest:
        """Return the workload's request and count one more user."""
        pod_sets, has_rules = workload.pod_sets, self._has_rules
        for pod_set in pod_sets:
            if pod_set.affinity_to or pod_set.anti_affinity or pod_set.spread:
                has_rules = True
            elif pod_set.labels:
                pod_sets = tuple([self._stripped(each) for each in workload.pod_sets])
        # Rules between pods speak of namespaces, so where there are rules the namespace counts.
        namespace = namespace_of(workload.key) if has_rules else ""
        key = (
            pod_sets,
            workload.reclaimable,
            workload.replaces,
            workload.min_total,
            namespace,
        )
        request = self._by_key.get(key)
        if request is None:
            request = self._by_key[key] = GangRequest(self._next, key)
            self._next += 1
            if not has_rules and request.is_plain and not any(each.labels for each in pod_sets):
                self._plain[id(pod_sets)] = request
        self._use(request)
        return request

    def _use(self, request: GangRequest) -> None:
        if request.users == 0:
            if request in self._unused:
                del self._unused[request]
            self.sociable += request.sociable
        request.users += 1

    def _stripped(self, pod_set: PodSet) -> PodSet:
        """Return a pod set without the labels that no rule reads."""
        if pod_set.affinity_to or pod_set.anti_affinity or pod_set.spread:
            return pod_set
        read = tuple([label for label in pod_set.labels if label[0] in self._read])
        return msgspec.structs.replace(pod_set, labels=read)

    def give_back(self, request: GangRequest) -> None:
        """Count one user less; without any the request is forgotten, sooner or later."""
        request.users -= 1
        if request.users == 0:
            self.sociable -= request.sociable
            self._unused[request] = None
            if len(self._unused) > UNUSED_KEPT:
                oldest = next(iter(self._unused))
                del self._unused[oldest]
                del self._by_key[oldest.key]
                self._plain.pop(id(oldest.pod_sets), None)
