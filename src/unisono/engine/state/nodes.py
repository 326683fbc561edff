"""Node state: nodes and the pods on them, as events left them; `placement` finds places there.

While no node is known, placement is skipped and quota alone decides, unless the policy says that
nodes are needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from unisono.engine.model.names import Instant, NodeName, ResourceName, WorkloadKey, namespace_of
from unisono.engine.model.node import NodePod
from unisono.engine.model.resources import Amounts, share_in
from unisono.engine.model.selection import label_map
from unisono.engine.model.workload import Admission, PodSet, Workload
from unisono.engine.state import changes
from unisono.engine.state.cluster_queue import Running
from unisono.engine.state.config import Config
from unisono.engine.state.node_table import NodeTable
from unisono.engine.state.occupancy import Occupancy, PlacedPods, PodIndex
from unisono.engine.state.pod_mix import PodMix, SharedPodMix
from unisono.engine.state.timers import NODES, Timers

# A pod that is so much overdue may hang, and is not counted on any longer.
OVERDUE_MS = 60_000
# Admissions of plans that may never be applied are not kept for long.
EXPECTED_KEPT: Final = 512

TerminatingPod = tuple[NodePod, PlacedPods]  # a pod of others that is being deleted


class NodeState:
    """Nodes and the pods on them."""

    def __init__(self, config: Config, timers: Timers) -> None:
        self.table = NodeTable()
        self.occupancy = Occupancy(self.table, PodIndex())
        self.pods: dict[
            str, tuple[NodePod, PlacedPods]
        ] = {}  # that no workload here owns, by their keys
        self._terminating: dict[str, None] = {}  # those that are being deleted
        self.mix = PodMix()
        self.shared_mix = SharedPodMix()
        self._expected: dict[WorkloadKey, tuple[Admission, tuple[PlacedPods, ...]]] = {}
        self._config = config
        self._timers = timers

    @property
    def has_nodes(self) -> bool:
        """Say whether placement is part of the decision."""
        offerings = self._config.offerings
        sells = offerings is not None and bool(offerings.pools)
        return bool(self.table.row_of) or sells or self._config.policy.placement.needs_nodes

    def apply(self, change: changes.NodeChange) -> None:
        """Take in a change of nodes, or of pods that no workload here owns."""
        match change:
            case changes.NodeSet(node):
                self.occupancy.put_node(node)
            case changes.NodeGone(name):
                self.occupancy.drop_node(name)
            case changes.PodOnNode(pod):
                self._remove_pod(pod.key)
                placed = _placed_pod(pod)
                self.pods[pod.key] = (pod, placed)
                self.occupancy.occupy(placed)
                if pod.leaves_at is not None:
                    self._terminating[pod.key] = None
                    wait_ms = self._config.policy.placement.wait_for_leaving_ms
                    if wait_ms:  # then it is close enough to its end to be waited for
                        self._timers.remind(Instant(pod.leaves_at - wait_ms), NODES)
            case changes.PodGone(key):
                self._remove_pod(key)

    def _remove_pod(self, key: str) -> None:
        known = self.pods.pop(key, None)
        if known is not None:
            self._terminating.pop(key, None)
            self.occupancy.vacate(known[1])

    def terminating(self, now: Instant) -> list[TerminatingPod]:
        """Return the pods that a gang may wait for, by their names."""
        wait_ms = self._config.policy.placement.wait_for_leaving_ms
        if not wait_ms or not self._terminating:
            return []
        return [
            self.pods[key]
            for key in sorted(self._terminating)
            if -OVERDUE_MS < self._leaves_at(key) - now <= wait_ms
        ]

    @property
    def has_terminating(self) -> bool:
        """Say whether some pod is being deleted."""
        return bool(self._terminating)

    def terminating_by(self, now: Instant) -> list[tuple[Instant, PlacedPods]]:
        """Return when pods that are being deleted have to be gone, unless they are overdue."""
        if not self._terminating:
            return []
        there = sorted((self._leaves_at(key), key) for key in self._terminating)
        return [(at, self.pods[key][1]) for at, key in there if now - at < OVERDUE_MS]

    def _leaves_at(self, key: str) -> Instant:
        leaves_at = self.pods[key][0].leaves_at
        assert leaves_at is not None, f"{key} is being deleted"
        return leaves_at

    def label(self, name: NodeName, key: str) -> str:
        """Return a node's label, or nothing."""
        row = self.table.row_of.get(name)
        node = self.table.nodes[row] if row is not None else None
        return dict(node.labels).get(key, "") if node is not None else ""

    def domain(self, name: NodeName, levels: tuple[str, ...], level: str) -> dict[str, str]:
        """Return the labels that make a node's domain of a level: those of wider ones, too.

        Racks of different blocks may have the same name.
        """
        wider = levels[: levels.index(level)] if level in levels else ()
        return {key: self.label(name, key) for key in (*wider, level)}

    def add_pods(self, running: Running, *, fits: bool = False) -> None:
        """Count an admitted workload's pods on its nodes; `fits`: there is room for them."""
        admission = running.admitted.admission
        known = self._expected.get(running.key)
        if known is not None:
            del self._expected[running.key]
        if known is not None and known[0] is admission:
            running.placed_pods = known[1]
        else:
            running.placed_pods = placed_pods_of(running.admitted.workload, admission)
        for placed in running.placed_pods:
            self.occupancy.occupy(placed, fits=fits)

    def expect(
        self, key: WorkloadKey, admission: Admission, placed_pods: tuple[PlacedPods, ...]
    ) -> None:
        """Remember the pods of a planned admission, which will be applied soon, mostly."""
        if len(self._expected) >= EXPECTED_KEPT:
            self._expected.clear()
        self._expected[key] = admission, placed_pods

    def open_devices(self, shares: tuple[ResourceName, ...]) -> bool:
        """Add columns for devices that pods share; say whether some are new."""
        new = [share for share in shares if share not in self.table.devices]
        for share in new:
            self.table.open_devices(share)
        return bool(new)

    def note_admission(self, workload: Workload) -> None:
        """Remember what pods were admitted, if scoring reads it."""
        if self._config.policy.placement.scoring == "fgd":
            for pod_set in workload.pod_sets:
                self.mix.note(pod_set.requests)
        if self.table.devices:
            self._note_parts(workload)

    def _note_parts(self, workload: Workload) -> None:
        """Remember all pods while some share GPUs, and none when none does any more."""
        if not self.shares_gpus:
            self.shared_mix.forget()
            return
        for pod_set in workload.pod_sets:
            self.shared_mix.note(node_requests(pod_set))

    def fix_mix(self, pod_sets: Iterable[PodSet]) -> None:
        """Set which pods are typical, instead of learning it; for experiments."""
        self.shared_mix.fix(map(node_requests, pod_sets))

    @property
    def shares_gpus(self) -> bool:
        """Say whether pods share GPUs, or did lately."""
        return self.occupancy.sharing > 0 or self.shared_mix.has_parts

    def restore_mix(self, recent: tuple[Amounts, ...], shared: tuple[Amounts, ...]) -> None:
        """Take over what a snapshot recorded of earlier admissions."""
        for requests in recent:
            self.mix.note(requests)
        for requests in shared:
            self.shared_mix.note(requests)
            if (part := share_in(requests)) is not None:
                self.table.open_devices(part[0])

    def remove_pods(self, running: Running) -> bool:
        """Take a workload's pods off its nodes; say whether there were any."""
        placed_pods, running.placed_pods = running.placed_pods, ()
        for placed in placed_pods:
            self.occupancy.vacate(placed)
        return bool(placed_pods)


def placed_pods_of(workload: Workload, admission: Admission) -> tuple[PlacedPods, ...]:
    """Return the pods that an admission puts on nodes."""
    namespace = namespace_of(workload.key)
    placed_pods = []
    for assigned in admission.pod_sets:
        pod_set = _pod_set(workload, assigned.name) if assigned.nodes else None
        if pod_set is None:
            continue
        requests = node_requests(pod_set)
        placed_pods.append(
            PlacedPods(
                nodes=assigned.nodes,
                devices=assigned.devices,
                requests=requests,
                namespace=namespace,
                labels=label_map(pod_set.labels),
                host_ports=pod_set.host_ports,
                anti_affinity=pod_set.anti_affinity,
            )
        )
    return tuple(placed_pods)


def node_requests(pod_set: PodSet) -> Amounts:
    """Return what one pod takes of a node."""
    return pod_set.requests if pod_set.node_requests is None else pod_set.node_requests


def _pod_set(workload: Workload, name: str) -> PodSet | None:
    for pod_set in workload.pod_sets:
        if pod_set.name == name:
            return pod_set
    return None


def _placed_pod(pod: NodePod) -> PlacedPods:
    return PlacedPods(
        nodes=((pod.node, 1),),
        devices=() if pod.device is None else (pod.device,),
        requests=pod.requests,
        namespace=namespace_of(pod.key),
        labels=label_map(pod.labels),
        host_ports=pod.host_ports,
        anti_affinity=pod.anti_affinity,
    )
