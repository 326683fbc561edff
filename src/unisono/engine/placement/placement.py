"""Placement on the nodes of one cluster: the way into this package for every other rule.

`placement_of(state)` returns what places gangs on the nodes as they are now, pods of the running
cycle included. It keeps masks, capacities, rankings and answers from cycle to cycle; all of that
follows from the state and may be dropped at any time. A workload with flavors becomes a gang that
wants nodes on the way (`GangBuilder`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from unisono.engine.model.explanation import GangDoesNotFit
from unisono.engine.model.names import FlavorName, ResourceName, namespace_of
from unisono.engine.model.node import DEFAULT_LEVELS, HOSTNAME, Topology
from unisono.engine.model.policy import Placement
from unisono.engine.model.queue import Flavor
from unisono.engine.model.resources import share_in, wants_gpus
from unisono.engine.model.selection import label_map
from unisono.engine.model.workload import PodSet, Workload
from unisono.engine.placement.demand import Constraint, Demand, Mode, anonymised, constraint_for
from unisono.engine.placement.feasibility import FEW_NODES, Feasibility, Mask
from unisono.engine.placement.gang import Gang, Placer, PodSetPlacement
from unisono.engine.placement.shared_gpus import SharedGpuRanking
from unisono.engine.state.advance_reservations import ExcludedNodes
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.config import Config
from unisono.engine.state.node_table import Integers, NodeTable, Rows
from unisono.engine.state.nodes import NodeState
from unisono.engine.state.occupancy import selects_pod
from unisono.engine.state.pod_mix import TypicalPod

# The heads of so many queues are placed before one of them is decided and pods move.
ANSWERS_KEPT = 1024

Answer = tuple[PodSetPlacement, ...] | GangDoesNotFit
# Everything that an answer depends on, besides the nodes.
Question = tuple[int | None, tuple[Demand, ...], tuple[TypicalPod, ...]]


class PlacementListener(Protocol):
    """Hears when a search for nodes begins and ends: the engine has no clock, a listener may."""

    def search_begins(self) -> None:
        """A search for nodes begins."""

    def search_ends(self, answer: Answer) -> None:
        """The search that began last has ended, with this result."""


def placement_of(state: ClusterState) -> ClusterPlacement:
    """Return the placement on a state's nodes; ask once a cycle, not once a workload."""
    found = state.derived.get(ClusterPlacement)
    if found is None:
        found = state.derived[ClusterPlacement] = ClusterPlacement(state.config, state.nodes)
    assert isinstance(found, ClusterPlacement), "derived data is kept by its type"
    return found


class ClusterPlacement:
    """Finds nodes for gangs among those of a cluster."""

    def __init__(self, config: Config, nodes: NodeState) -> None:
        self.nodes = nodes
        self.listener: PlacementListener | None = None
        self._config = config
        self._feasibility = Feasibility(nodes.table, FEW_NODES)
        self._shared_ranking = SharedGpuRanking(self._feasibility, nodes.shared_mix)
        self._answers = Answers(self.placer_on(self._feasibility))
        self._builder = self._make_builder()
        self._read = (config.edition, config.policy.placement)

    def _refresh(self) -> None:
        """Read flavors, topologies and policy again if they changed."""
        read = (self._config.edition, self._config.policy.placement)
        if self._read != read:
            self._read = read
            self._builder = self._make_builder()
            self._answers.ask(self.placer_on(self._feasibility))

    def _make_builder(self) -> GangBuilder:
        config = self._config
        rules = config.policy.placement
        return GangBuilder(config.flavors, config.topologies, rules, self.nodes.table)

    def place(self, gang: Gang) -> Answer:
        """Find nodes for a gang as things are now."""
        self._refresh()
        nodes, answers, listener = self.nodes, self._answers, self.listener
        if nodes.table.devices:
            answers.placer.shared_ranking = self._ranking_for(gang)
        if listener is None:
            return answers.place(gang, nodes.occupancy.moves)
        listener.search_begins()
        answer = answers.place(gang, nodes.occupancy.moves)
        listener.search_ends(answer)
        return answer

    def _ranking_for(self, gang: Gang) -> SharedGpuRanking | None:
        """Return what ranks nodes for single pods, if pods share GPUs and scoring leaves it so."""
        scoring = self._config.policy.placement.scoring
        if scoring == "none":
            return None
        if not self.nodes.shares_gpus and not any(share_in(one.requests) for one in gang.demands):
            return None
        self._shared_ranking.score_by("spare" if scoring == "auto" else scoring)
        return self._shared_ranking

    def placer_on(self, feasibility: Feasibility) -> Placer:
        """Return a placer for other nodes than those of now."""
        placement, nodes = self._config.policy.placement, self.nodes
        return Placer(feasibility, nodes.occupancy.pod_index, placement, nodes.mix)

    def gang_of(
        self,
        workload: Workload,
        least: tuple[int, ...],
        most: tuple[int, ...],
        flavors: Mapping[tuple[int, ResourceName], FlavorName],
        excluded: ExcludedNodes | None = None,
    ) -> Gang:
        """Return what has to be placed of a workload, given counts, flavors and excluded nodes."""
        self._refresh()
        return self._builder.gang(workload, least, most, flavors, excluded)

    def default_levels(self) -> tuple[str, ...]:
        """Return the levels of topology for pods that ask for none."""
        self._refresh()
        return self._builder.default_levels()

    def allowed(self, constraint: Constraint) -> Mask:
        """Say for every row of the node table whether a constraint lets pods go there."""
        return self._feasibility.allowed(constraint)

    def preference(self, constraint: Constraint) -> Integers | None:
        """Return how much every row is preferred; None if all are alike."""
        return self._feasibility.preference(constraint)

    def in_order(self, levels: tuple[str, ...]) -> Rows:
        """Return the rows of nodes in the order of these levels."""
        return self._feasibility.view(levels).rows

    def rows_with_capacity(self, demand: Demand) -> Rows:
        """Return the rows of nodes that would take at least one pod of a demand."""
        found = self._feasibility.capacity(demand.constraint, demand.requests, ())
        return found.view.rows[found.caps > 0]

    @property
    def hits_and_misses(self) -> tuple[int, int]:
        """Return how many searches an earlier answer saved, and how many were made."""
        return self._answers.hits, self._answers.misses


class Answers:
    """What a placer answered since pods last moved: gangs that ask for the same share one answer.

    The heads of many queues often ask for the same: then one of them is placed, or refused, and
    the others get the same answer. The name of a gang makes no difference unless a node is held
    for one or pods have rules about each other; such gangs are placed every time. Spec placement
    §8.9.
    """

    def __init__(self, placer: Placer) -> None:
        self.placer = placer
        self.hits = 0
        self.misses = 0
        self._known: dict[Question, Answer] = {}
        self._moves = 0

    def ask(self, placer: Placer) -> None:
        """Answer as another placer does from now on; what was counted goes on."""
        self.placer = placer
        self._known.clear()

    def place(self, gang: Gang, moves: int) -> Answer:
        """Find nodes for a gang; `moves` is a number that grows when anything changes on nodes."""
        if moves != self._moves or len(self._known) >= ANSWERS_KEPT:
            self._known.clear()
            self._moves = moves
        question = self._question(gang)
        known = self._known.get(question) if question is not None else None
        if known is not None:
            self.hits += 1
            return known
        self.misses += 1
        found = self.placer.place(gang)
        if question is not None:
            self._known[question] = found
        return found

    def _question(self, gang: Gang) -> Question | None:
        """Return what is asked, without the gang's name; None if the name matters."""
        placer = self.placer
        if placer.feasibility.table.has_held_rows or placer.pod_index.has_rules:
            return None
        if not all(demand.is_plain for demand in gang.demands):
            return None
        demands = gang.anonymous or tuple(map(anonymised, gang.demands))
        typical = placer.mix.typical if placer.placement.scoring == "fgd" else ()
        return gang.min_total, demands, typical


# --- from a workload to a gang --------------------------------------------------------------------

# Spec placement §7.


# Pod sets with GPUs that ask for no topology share a domain: they will talk to each other.
TOGETHER = "unisono.dev/together"

# Gang requests with counts and flavors whose demands are kept; few are in use at a time.
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
