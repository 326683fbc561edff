"""Random nodes, and random sets of pods that look for a place on them.

Small on purpose: a handful of nodes with few values of everything, so that ties, full nodes and
domains of the same name in different places are the rule. Names that differ only in leading zeros
are among them, and nodes that lack a label.

Everything is made by a `Pick`, which chooses one of several. Hypothesis can be one, and then
examples shrink (towards what is listed first); a seeded generator can, and then thousands of
clusters take seconds.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import msgspec
from hypothesis import strategies as st

from tests.support.placement_oracle import Cluster
from unisono.engine.model.names import NodeName, ResourceName
from unisono.engine.model.node import (
    HOSTNAME,
    HostPort,
    Node,
    NodePod,
    PodRule,
    PodSelector,
    SpreadRule,
)
from unisono.engine.model.policy import Placement
from unisono.engine.model.resources import Amounts, amounts
from unisono.engine.model.selection import LabelSelector, Operator, Requirement, Taint, Toleration
from unisono.engine.model.workload import WeightedTerm
from unisono.engine.placement.demand import Constraint, Demand, Mode
from unisono.engine.placement.gang import Gang

GPU, CPU, FPGA = (ResourceName(name) for name in ("nvidia.com/gpu", "cpu", "example.com/fpga"))
ZONE, BLOCK, RACK = "topology.kubernetes.io/zone", "block", "rack"
NAMES = tuple(NodeName(name) for name in ("n1", "n2", "n10", "n01", "a", "b-2", "b-10", "z"))
LEVELS = ((BLOCK, RACK), (RACK,), (ZONE, BLOCK, RACK), ())
TAINTS = (
    Taint("spot"),
    Taint("old", "yes", "PreferNoSchedule"),
    Taint("spot", "2", "NoExecute"),
    Taint("dedicated", "ml"),
)
APPS = ((("app", "x"),), (("app", "y"),))
SPEAKS_OF_X = PodSelector(LabelSelector((Requirement("app", "In", ("x",)),)))
NOT_X = PodSelector(LabelSelector((Requirement("app", "NotIn", ("x",)),)))
RULES = (
    *(PodRule(SPEAKS_OF_X, key) for key in (HOSTNAME, RACK, ZONE)),
    PodRule(PodSelector(LabelSelector(), every_namespace=True), RACK),  # every pod
    PodRule(NOT_X, HOSTNAME),  # pods without any label, too
)
ME = "ns/me"
T = TypeVar("T")


class Pick(Protocol):
    """Chooses one of several."""

    def __call__(self, options: Sequence[T], /) -> T: ...


def by_dice(seed: int) -> Pick:
    """Choose with a seeded generator."""
    return random.Random(seed).choice


def by_hypothesis(data: st.DataObject) -> Pick:
    """Let Hypothesis choose."""
    return lambda options: data.draw(st.sampled_from(options))


def rarely(pick: Pick, usual: T, *rare: T) -> T:
    """Choose the usual value nine times out of ten."""
    return pick((usual,) * (9 * len(rare)) + rare)


# --- nodes ----------------------------------------------------------------------------------------

_VALUES: dict[str, tuple[str | None, ...]] = {
    ZONE: ("z1", "z1", "z2", None),
    BLOCK: ("b0", "b1", "b0", "b1", None),
    RACK: ("r0", "r1", "r0", "r1", "r01", "r10", None),
    "disk": (None, "ssd", "hdd", "7", "x7"),
}


def some_node(pick: Pick, name: NodeName, *, is_open: bool = False) -> Node:
    """Make a node; an open one takes everybody."""
    labels = {key: pick(values) for key, values in _VALUES.items()}
    has = {str(GPU): pick((8, 4, 3, 2, 4, 0)), str(CPU): pick((16, 8, 16, 3, 0))}
    if rarely(pick, False, True):
        has["pods"] = pick((0, 1, 2, 3))
    closed: dict[str, Any] = {}
    if not is_open:
        closed["taints"] = rarely(pick, (), *((taint,) for taint in TAINTS), TAINTS)
        closed["unschedulable"] = rarely(pick, False, True)
        closed["ready"] = rarely(pick, True, False)
        closed["held_for"] = rarely(pick, "", ME, "ns/you")
    return Node(
        name=name,
        labels=tuple(sorted((key, value) for key, value in labels.items() if value is not None)),
        allocatable=amounts(has),
        **closed,
    )


def some_pod(pick: Pick, key: str, *, with_rules: bool = False) -> NodePod:
    """Make a pod of somebody else, perhaps on a node that does not exist."""
    wanted = {str(GPU): pick((1, 0, 2)), str(CPU): pick((1, 0, 2))}
    if rarely(pick, False, True):
        wanted[str(FPGA)] = 1  # which no node has
    rules: dict[str, Any] = {}
    if with_rules:
        rules["labels"] = pick(((), *APPS))
        rules["host_ports"] = rarely(pick, (), (HostPort(80),), (HostPort(80, address="1"),))
        rules["anti_affinity"] = rarely(pick, (), *((rule,) for rule in RULES))
    return NodePod(key=key, node=pick(NAMES), requests=amounts(wanted), **rules)


def some_cluster(
    pick: Pick, *, most: int = 7, is_open: bool = False, with_rules: bool = False
) -> Cluster:
    """Make nodes and who is on them."""
    names = list(NAMES)
    size = pick((most, most, most - 1, 1, 2))
    chosen = [names.pop(names.index(pick(names))) for _ in range(size)]
    space = "ns" if with_rules else "kube-system"
    return Cluster(
        nodes=[some_node(pick, name, is_open=is_open) for name in chosen],
        pods=[
            some_pod(pick, f"{space}/p{number}", with_rules=with_rules)
            for number in range(pick(range(most)))
        ],
    )


# --- sets of pods ---------------------------------------------------------------------------------

_OPERATORS: tuple[Operator, ...] = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_TOLERATIONS = (
    (),
    (Toleration("spot", "Exists"),),
    (Toleration("spot", "Equal", "2"), Toleration("dedicated", "Equal", "ml", "NoSchedule")),
    (Toleration("", "Exists"),),
    (Toleration("", "Exists", "", "NoExecute"),),
    (Toleration("node.kubernetes.io/unschedulable", "Exists"), Toleration("old", "Exists")),
)


def some_requirement(pick: Pick) -> Requirement:
    """Make one clause of a node affinity term."""
    if rarely(pick, False, True):
        name_operators: tuple[Operator, ...] = ("NotIn", "In")
        return Requirement("metadata.name", pick(name_operators), (pick(NAMES),))
    operator = pick(_OPERATORS)
    values: tuple[str, ...]
    match operator:
        case "Exists" | "DoesNotExist":
            values = ()
        case "Gt" | "Lt":
            values = (pick(("6", "7", "many")),)
        case "In" | "NotIn":
            values = pick((("ssd",), ("hdd", "7"), ("z1",)))
    return Requirement(pick(("disk", ZONE, HOSTNAME)), operator, values)


def _some_term(pick: Pick) -> tuple[Requirement, ...]:
    return tuple(some_requirement(pick) for _ in range(pick((1, 1, 2, 0))))


def some_constraint(pick: Pick) -> Constraint:
    """Make what pods want of nodes."""
    return Constraint(
        selector=rarely(pick, (), (("disk", "ssd"),), ((ZONE, "z1"),)),
        affinity=tuple(_some_term(pick) for _ in range(pick((0, 0, 0, 1, 2)))),
        tolerations=pick(_TOLERATIONS),
        preferred=tuple(
            WeightedTerm(pick((1, 10, 100)), _some_term(pick)) for _ in range(pick((0, 0, 1, 2)))
        ),
    )


def some_requests(pick: Pick) -> Amounts:
    """Make what one pod asks for; a request of 0, and one that nobody can meet, are among them."""
    wanted = {str(GPU): pick((1, 1, 2, 3, 0, 4))}
    if pick((False, False, True)):
        wanted[str(CPU)] = pick((1, 0, 2, 3))
    if rarely(pick, False, True):
        wanted[str(FPGA)] = pick((0, 1))
    return amounts(wanted)


_MODES: tuple[Mode, ...] = ("preferred", "unconstrained", "required")
_SCORINGS: tuple[Any, ...] = ("leftover", "binpack", "spread", "fgd", "none", "spare")


def some_placement(pick: Pick) -> Placement:
    """Choose a scoring."""
    return Placement(scoring=pick(_SCORINGS))


def some_demand(
    pick: Pick,
    *,
    name: str = "main",
    most: int = 10,
    takes_all: bool = False,
    levels: tuple[str, ...] | None = None,
) -> Demand:
    """Make a set that only capacities limit, or not even taints and labels of nodes."""
    path = pick(LEVELS) if levels is None else levels
    pods = pick(range(1, most + 1))
    return Demand(
        name=name,
        least=pick(range(pods + 1)) if rarely(pick, False, True) else pods,
        most=pods,
        requests=some_requests(pick),
        constraint=Constraint() if takes_all or pick((True, False)) else some_constraint(pick),
        mode=pick(_MODES),
        levels=path,
        level=pick((*path, *path, "", HOSTNAME)),
        namespace="ns",
    )


def with_rule(pick: Pick, demand: Demand) -> Demand:
    """Give a set one kind of rule between pods, or none."""
    key = pick((HOSTNAME, RACK, ZONE))
    options: dict[str, Any] = {"labels": pick((*APPS, APPS[0]))}
    match pick(("ports", "apart", "spread", "none")):
        case "ports":
            options["host_ports"] = (HostPort(80),)
        case "apart":
            options["anti_affinity"] = (PodRule(SPEAKS_OF_X, key),)
        case "spread":
            rule = SpreadRule(
                selector=SPEAKS_OF_X,
                topology_key=key,
                max_skew=pick((1, 2)),
                min_domains=rarely(pick, 1, 2, 3),
            )
            options["spread"] = (rule,)
        case _:
            pass
    return msgspec.structs.replace(demand, **options)


def with_slices(pick: Pick, demand: Demand) -> Demand:
    """Let pods come in slices of two, no wider than the domain that all of them share."""
    at = demand.levels.index(demand.level) if demand.level in demand.levels else 0
    inner = demand.levels[at:] if demand.level in demand.levels else ()
    level = pick((*inner, HOSTNAME))
    if demand.mode == "unconstrained":
        level = pick((*demand.levels, HOSTNAME))
    return msgspec.structs.replace(demand, slice_size=2, slice_level=level)


def some_pair(pick: Pick, *, most: int = 3, with_rules: bool = False) -> Gang:
    """Make a gang of two sets, now and then in one group that has to share a domain."""
    levels = pick(LEVELS)
    first, second = (
        some_demand(pick, name=name, most=most, levels=levels, takes_all=True) for name in "ab"
    )
    if pick((False, False, True)):
        first = msgspec.structs.replace(first, group="g", mode="required")
        second = msgspec.structs.replace(second, group="g", mode="required", level=first.level)
    if with_rules:
        first, second = with_rule(pick, first), with_rule(pick, second)
    total = pick(range(1, first.most + second.most + 1)) if rarely(pick, False, True) else None
    return Gang(key=ME, demands=(first, second), min_total=total)
