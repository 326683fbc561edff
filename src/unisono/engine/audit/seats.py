"""Who sits where: pods of one template as a party, and what all parties together take of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from unisono.engine.model.names import PODS, NodeName, namespace_of
from unisono.engine.model.node import HostPort, NodePod, PodRule
from unisono.engine.model.workload import Admission, Workload


@dataclass(frozen=True, slots=True)
class Party:
    """Pods of one template, and how many of them are on which node."""

    who: str  # the workload, or the pod of somebody else
    pod_set: str
    namespace: str
    labels: Mapping[str, str]
    requests: Mapping[str, int]
    host_ports: tuple[HostPort, ...]
    anti_affinity: tuple[PodRule, ...]
    on: Mapping[NodeName, int]
    comes: bool  # with this plan
    devices: Mapping[NodeName, tuple[int, ...]]  # of pods that share GPUs, where that is known


class Seats:
    """Everybody who has come and not left, and the sums of what they take."""

    def __init__(self) -> None:
        """Begin with empty nodes."""
        self.parties: dict[str, tuple[Party, ...]] = {}  # by who they belong to
        self.used: dict[NodeName, dict[str, int]] = {}
        self.with_ports: dict[NodeName, list[Party]] = {}
        self.sharing: dict[NodeName, list[Party]] = {}
        self.repelling: dict[str, tuple[Party, ...]] = {}

    def come(self, who: str, parties: Iterable[Party]) -> None:
        """Let somebody sit down."""
        self.leave(who)
        self.parties[who] = tuple(parties)
        repelling = tuple(party for party in self.parties[who] if party.anti_affinity)
        if repelling:
            self.repelling[who] = repelling
        for party in self.parties[who]:
            add_up(self.used, party, 1)
            if party.host_ports:
                for name in party.on:
                    self.with_ports.setdefault(name, []).append(party)
            for name in party.devices:
                self.sharing.setdefault(name, []).append(party)

    def leave(self, who: str) -> None:
        """Let somebody get up."""
        self.repelling.pop(who, None)
        for party in self.parties.pop(who, ()):
            add_up(self.used, party, -1)
            if party.host_ports:
                for name in party.on:
                    self.with_ports[name].remove(party)
            for name in party.devices:
                self.sharing[name].remove(party)


def add_up(used: dict[NodeName, dict[str, int]], party: Party, sign: int) -> None:
    """Add what a party takes of its nodes, or take it away again."""
    for name, pods in party.on.items():
        sums = used.setdefault(name, {})
        for resource, amount in party.requests.items():
            sums[resource] = sums.get(resource, 0) + sign * pods * amount


def parties_of(workload: Workload, admission: Admission, *, comes: bool) -> Iterator[Party]:
    """Yield the pods of a workload that an admission puts on nodes."""
    pod_sets = {pod_set.name: pod_set for pod_set in workload.pod_sets}
    for assigned in admission.pod_sets:
        pod_set = pod_sets.get(assigned.name)
        if pod_set is None or not assigned.nodes:
            continue
        requests = pod_set.requests if pod_set.node_requests is None else pod_set.node_requests
        on: dict[NodeName, int] = {}
        devices: dict[NodeName, tuple[int, ...]] = {}
        before = 0
        for name, pods in assigned.nodes:
            on[name] = on.get(name, 0) + pods
            if assigned.devices:
                devices[name] = devices.get(name, ()) + assigned.devices[before : before + pods]
                before += pods
        yield Party(
            who=workload.key,
            pod_set=pod_set.name,
            namespace=namespace_of(workload.key),
            labels=dict(pod_set.labels),
            requests={PODS: 1, **dict(requests)},
            host_ports=pod_set.host_ports,
            anti_affinity=pod_set.anti_affinity,
            on=on,
            comes=comes,
            devices=devices,
        )


def party_of_pod(pod: NodePod) -> Party:
    """Return a pod that is in nobody's queue as a party."""
    return Party(
        who=pod.key,
        pod_set="",
        namespace=namespace_of(pod.key),
        labels=dict(pod.labels),
        requests={PODS: 1, **dict(pod.requests)},
        host_ports=pod.host_ports,
        anti_affinity=pod.anti_affinity,
        on={pod.node: 1},
        comes=False,
        devices={} if pod.device is None else {pod.node: (pod.device,)},
    )


def seat_of_pod(pod: str) -> str:
    """Return how a pod's seat is called: a workload may have the same name."""
    return f"pod {pod}"
