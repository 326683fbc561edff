"""The cluster of a story: its objects as the scenario words them, told to the engine.

An edit names only the fields that change, so the words of every object are kept and read anew.
Flavors without a description, and a local queue for every queue in every namespace, are made here.
Several nodes that are alike may share one entry: `n1, n2: {gpu: 8, rack: r1}`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tests.scenarios import nodes, values
from tests.scenarios.offerings import Stalls
from tests.scenarios.reading import Part
from tests.scenarios.words import DEFAULT_NAMESPACE, key_of, labels
from unisono.engine.cluster import new_cluster
from unisono.engine.model.names import Instant, LocalQueueKey, NodeName
from unisono.engine.model.policy import Policy
from unisono.engine.model.queue import ClusterQueue, Flavor, LocalQueue, ResourceGroup
from unisono.engine.model.snapshot import AdmissionCheck, Namespace
from unisono.engine.model.workload import Workload
from unisono.engine.state import changes


class Cluster:
    """What is configured, and the engine's picture of it."""

    def __init__(self, chosen: Policy, part: Part) -> None:
        self.state = new_cluster(chosen)
        self._words: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        self._queues: dict[str, ClusterQueue] = {}
        self._every: dict[str, dict[str, Any]] = {}  # by kind: what all of them start with
        self.stalls = Stalls()
        self._topology = ""  # of flavors without a description
        self.configure(part)

    def configure(self, part: Part) -> None:
        """Create or edit objects."""
        given = part.fields(
            "every_queue", "every_node", "levels", "checks", "region", "stock", "pools", *_KINDS
        )
        self._set_offerings(given)
        for every, kind in (("every_queue", "queues"), ("every_node", "nodes")):
            if every in given:
                self._every[kind] = given[every].value
        if "levels" in given:
            self._topology = nodes.TOPOLOGY
            self.state.apply(changes.TopologySet(nodes.topology(given["levels"])))
        for kind, (bare, tell) in _KINDS.items():
            for names, body in given[kind].entries() if kind in given else ():
                body = values.as_mapping(body, bare) if bare else body
                for name in names.split(", "):
                    start = self._every.get(kind, {})
                    words = self._words[kind].setdefault(name, dict(start))
                    words.update(body.value or {})
                    tell(self, name, Part(words, body.path))
        for name in given["checks"].names() if "checks" in given else []:
            self.state.apply(changes.CheckSet(AdmissionCheck(name)))

    def _set_offerings(self, given: Mapping[str, Part]) -> None:
        if "region" in given:
            self.stalls.region = given["region"].text()
        if "stock" in given:
            self.stalls.set_stock(given["stock"])
        for name, body in given["pools"].entries() if "pools" in given else ():
            words = self._words["pools"].setdefault(name, {})
            words.update(body.value or {})
            self.stalls.set_pool(name, Part(words, body.path))
        if {"region", "stock", "pools"} & given.keys():
            self.state.apply(changes.OfferingsSet(self.stalls.offerings()))

    def refuse(self, part: Part, now: Instant) -> None:
        """Mark offers as out of stock, as far as purchases have tried."""
        self.stalls.refuse(part, now)
        self.state.apply(changes.OfferingsSet(self.stalls.offerings()))

    def lose(self, part: Part) -> None:
        """Take nodes away, with the pods on them."""
        for name in part.names():
            if self._words["nodes"].pop(name, None) is None:
                part.fail(f"there is no node {name}")
            self.state.apply(changes.NodeGone(NodeName(name)))

    def forget_pods(self, part: Part) -> None:
        """Take pods of others off their nodes."""
        for name in part.names():
            if self._words["pods"].pop(name, None) is None:
                part.fail(f"there is no pod {name}")
            self.state.apply(changes.PodGone(key_of(name)))

    def queue_of(self, wanted: Workload, body: Part) -> ClusterQueue:
        """Return the ClusterQueue that a workload's local queue leads to."""
        local_queue = self._words["local_queues"].get(wanted.queue.partition("/")[2])
        name = local_queue["queue"] if local_queue else body["queue"].text()
        if name not in self._queues:
            body.fail(f"there is no queue {name}")
        return self._queues[name]

    def _set_namespace(self, name: str, part: Part) -> None:
        self.state.apply(changes.NamespaceSet(Namespace(name, labels(part))))
        for queue in self._queues:
            self._open_local_queue(name, queue)

    def _set_flavor(self, name: str, part: Part) -> None:
        self.state.apply(changes.FlavorSet(values.flavor(name, part)))

    def _set_cohort(self, name: str, part: Part) -> None:
        made = values.cohort(name, part)
        self._make_flavors(made.groups)
        self.state.apply(changes.CohortSet(made))

    def _set_queue(self, name: str, part: Part) -> None:
        made = self._queues[name] = values.cluster_queue(name, part)
        self._make_flavors(made.groups)
        self.state.apply(changes.QueueSet(made))
        for namespace in [DEFAULT_NAMESPACE, *self._words["namespaces"]]:
            self._open_local_queue(namespace, name)

    def _make_flavors(self, groups: Iterable[ResourceGroup]) -> None:
        """Create the flavors that a quota names and the scenario does not describe."""
        for group in groups:
            for quota in group.flavors:
                if quota.flavor not in self._words["flavors"]:
                    self._words["flavors"][quota.flavor] = {}
                    made = Flavor(name=quota.flavor, topology=self._topology)
                    self.state.apply(changes.FlavorSet(made))

    def _open_local_queue(self, namespace: str, queue: str) -> None:
        """Give a namespace a local queue named like the ClusterQueue."""
        local_queue = LocalQueue(
            key=LocalQueueKey(f"{namespace}/{queue}"), queue=self._queues[queue].name
        )
        self.state.apply(changes.LocalQueueSet(local_queue))

    def _set_local_queue(self, name: str, part: Part) -> None:
        self.state.apply(changes.LocalQueueSet(values.local_queue(name, part)))

    def _set_node(self, name: str, part: Part) -> None:
        self.state.apply(changes.NodeSet(nodes.node(name, part)))

    def _set_pod(self, name: str, part: Part) -> None:
        self.state.apply(changes.PodOnNode(nodes.pod(name, part)))


_Tell = Callable[[Cluster, str, Part], None]

# In the order in which they are told: for each the field that a bare value stands for, if any.
_KINDS: Mapping[str, tuple[str, _Tell]] = {
    "namespaces": ("", Cluster._set_namespace),
    "flavors": ("", Cluster._set_flavor),
    "cohorts": ("quota", Cluster._set_cohort),
    "queues": ("quota", Cluster._set_queue),
    "local_queues": ("queue", Cluster._set_local_queue),
    "nodes": ("gpu", Cluster._set_node),
    "pods": ("", Cluster._set_pod),
}
