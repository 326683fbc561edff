"""From a workload with flavors to a gang that wants nodes (spec placement §7)."""

from __future__ import annotations

from collections.abc import Mapping

from unisono.engine.model.names import FlavorName, ResourceName, namespace_of
from unisono.engine.model.node import DEFAULT_LEVELS, HOSTNAME, Topology
from unisono.engine.model.policy import Placement
from unisono.engine.model.queue import Flavor
from unisono.engine.model.resources import wants_gpus
from unisono.engine.model.selection import label_map
from unisono.engine.model.workload import PodSet, Workload
from unisono.engine.placement.demand import Demand, Mode, anonymised, constraint_for
from unisono.engine.placement.gang import Gang
from unisono.engine.state.node_table import NodeTable
from unisono.engine.state.occupancy import selects_pod
from unisono.engine.state.reservations import ExcludedNodes

# Pod sets with GPUs that ask for no topology share a domain: they will talk to each other.
TOGETHER = "unisono.dev/together"

# Shapes with counts and flavors whose demands are kept; few are in use at a time.
DEMANDS_KEPT = 1024
_Demands = tuple[tuple[Demand, ...], tuple[Demand, ...]]  # as they are, and anonymised


class GangBuilder:
    """Turns workloads into gangs, given flavors, topologies, and the labels that nodes carry."""

    def __init__(
        self,
        flavors: Mapping[FlavorName, Flavor],
        topologies: Mapping[str, Topology],
        placement: Placement,
        table: NodeTable,
    ) -> None:
        self._flavors = flavors
        self._topologies = topologies
        self._placement = placement
        self._table = table
        self._found: tuple[int, tuple[str, ...]] | None = None
        self._known: dict[object, _Demands] = {}
        self._layout = -1  # of the nodes whose levels the demands name

    def gang(
        self,
        workload: Workload,
        least: tuple[int, ...],
        most: tuple[int, ...],
        taken: Mapping[tuple[int, ResourceName], FlavorName],
        excluded: ExcludedNodes | None = None,
    ) -> Gang:
        """Return what has to be placed, given how many pods, which flavors, and what is shut."""
        minimum = workload.min_total
        if minimum is not None:  # pods that are done count as members for ever
            minimum = max(0, minimum - sum(count for _, count in workload.reclaimable))
        demands, anonymous = self._demands(workload, least, most, taken, excluded)
        return Gang(key=workload.key, demands=demands, min_total=minimum, anonymous=anonymous)

    def _demands(
        self,
        workload: Workload,
        least: tuple[int, ...],
        most: tuple[int, ...],
        taken: Mapping[tuple[int, ResourceName], FlavorName],
        excluded: ExcludedNodes | None,
    ) -> _Demands:
        """Work demands out once for all workloads that ask for the same; levels are those now."""
        if self._layout != self._table.layout or len(self._known) >= DEMANDS_KEPT:
            self._layout = self._table.layout
            self._known.clear()
        pods, namespace = workload.pod_sets, namespace_of(workload.key)
        key = (pods, namespace, least, most, tuple(taken.items()), excluded)
        known = self._known.get(key)
        if known is None:
            made = self._make_demands(workload, least, most, taken, excluded)
            known = self._known[key] = (made, tuple(map(anonymised, made)))
        return known

    def _make_demands(
        self,
        workload: Workload,
        least: tuple[int, ...],
        most: tuple[int, ...],
        taken: Mapping[tuple[int, ResourceName], FlavorName],
        excluded: ExcludedNodes | None,
    ) -> tuple[Demand, ...]:
        demands = []
        for index, pod_set in enumerate(workload.pod_sets):
            names = dict.fromkeys(flavor for (i, _), flavor in taken.items() if i == index)
            flavors = tuple(self._flavors[name] for name in names if name in self._flavors)
            demand = self._demand(workload, pod_set, flavors, excluded, least[index], most[index])
            if demand.most:
                demands.append(demand)
        return tuple(demands)

    def _demand(
        self,
        workload: Workload,
        pod_set: PodSet,
        flavors: tuple[Flavor, ...],
        excluded: ExcludedNodes | None,
        least: int,
        most: int,
    ) -> Demand:
        topology = pod_set.topology
        requests = pod_set.requests if pod_set.node_requests is None else pod_set.node_requests
        mode: Mode
        if topology is not None:
            mode, level, group = topology.mode, topology.level, pod_set.group
        else:
            mode = self._placement.gpu_mode if wants_gpus(requests) else "unconstrained"
            together = TOGETHER if mode == "preferred" else ""
            level, group = "", pod_set.group or together
        own = self._own_affinity(workload, pod_set)
        if own is not None and mode != "required":
            mode, level = "required", own  # wherever the first pod goes, the others have to go
        return Demand(
            name=pod_set.name,
            least=least,
            most=most,
            requests=requests,
            constraint=constraint_for(pod_set, flavors, excluded),
            mode=mode,
            levels=self._levels(level, topology.slice_level if topology else "", flavors),
            level=level,
            slice_size=topology.slice_size if topology else 0,
            slice_level=topology.slice_level if topology else "",
            group=group,
            namespace=namespace_of(workload.key),
            labels=pod_set.labels,
            host_ports=pod_set.host_ports,
            affinity_to=pod_set.affinity_to,
            anti_affinity=pod_set.anti_affinity,
            spread=pod_set.spread,
            volumes=pod_set.volumes,
        )

    def _own_affinity(self, workload: Workload, pod_set: PodSet) -> str | None:
        """Return the label whose domain pods share because they attract each other."""
        namespace, labels = namespace_of(workload.key), label_map(pod_set.labels)
        for rule in pod_set.affinity_to:
            if selects_pod(rule.selector, namespace, namespace, labels):
                return rule.topology_key
        return None

    def _levels(self, level: str, slice_level: str, flavors: tuple[Flavor, ...]) -> tuple[str, ...]:
        """Return the levels a demand lives in: its flavor's, the requested one's, or the cluster's.

        The level of slices has to be among them. Where it is missing, no domain can hold a slice;
        taking single nodes instead would break the request in silence.
        """
        inner = "" if slice_level == HOSTNAME else slice_level
        if not level or level == HOSTNAME:
            return self._levels_with(inner, flavors)
        found = self._levels_with(level, flavors)
        if not inner or inner in found:
            return found
        narrow = self._levels_with(inner, flavors)
        return narrow if level in narrow else (level, *narrow)

    def _levels_with(self, level: str, flavors: tuple[Flavor, ...]) -> tuple[str, ...]:
        """Return the first list of levels that has this one; without one, the most likely list."""
        for flavor in flavors:
            topology = self._topologies.get(flavor.topology)
            if topology is not None and (not level or level in topology.levels):
                return _without_node(topology.levels)
        if not level:
            return self.default_levels()
        for name in sorted(self._topologies):
            if level in self._topologies[name].levels:
                return _without_node(self._topologies[name].levels)
        known = self.default_levels()
        return known if level in known else (level,)

    def default_levels(self) -> tuple[str, ...]:
        """Return the well-known levels that some node carries."""
        layout = self._table.layout
        if self._found is None or self._found[0] != layout:
            wanted = self._placement.levels or DEFAULT_LEVELS
            present = tuple(key for key in wanted if self._table.label_codes(key)[1])
            self._found = (layout, _without_node(present))
        return self._found[1]


def _without_node(levels: tuple[str, ...]) -> tuple[str, ...]:
    """A node is always the narrowest level, so views do not list it."""
    return tuple(level for level in levels if level != HOSTNAME)
