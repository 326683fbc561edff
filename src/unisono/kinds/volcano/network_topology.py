"""HyperNodes (`topology.volcano.sh/v1alpha1`), and the `networkTopology` of jobs and groups.

A HyperNode is a switch, and the nodes or switches below it:

    tier       0, 1, 2, …: the lower, the closer are its nodes to each other
    members    nodes or HyperNodes, by name, by a pattern, or (nodes) by their labels

A tree of HyperNodes is the same as labels on nodes: a node gets one label for every tier,

    unisono.dev/hypernode-tier-T: NAME        (of several HyperNodes of one tier, the first by name)

and the Topology `hypernodes` has these labels as its levels, the highest tier first.

A networkTopology says how close to each other pods must be:

    mode: hard, with a tier     required: all pods below one HyperNode of that tier
    mode: hard, without a tier  Volcano sees no constraint in it; here it is a wish like soft, with
                                a warning
    mode: soft                  preferred: at the narrowest tier, else one tier wider, …

A tier that has no HyperNodes stands for the next lower one that has. Spec placement §1.3, §7, §8.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from unisono.engine.model.node import Topology
from unisono.engine.model.selection import selects
from unisono.engine.model.workload import TopologyRequest
from unisono.kinds.core.nodes import Node
from unisono.kinds.decode import Schema
from unisono.kinds.meta import LabelSelector, ObjectMeta, check_selector, selector_of
from unisono.kinds.notes import Notes
from unisono.kinds.registry import Context, Kind

TOPOLOGY = "hypernodes"
_LABEL = "unisono.dev/hypernode-tier-"
_MAX_PATTERN = 1000  # longer ones are lists of names, which exactMatch is for

Labels = Mapping[str, str]


class ExactMatch(Schema, frozen=True, kw_only=True):
    """One member, by name."""

    name: str


class RegexMatch(Schema, frozen=True, kw_only=True):
    """All members whose names contain a match of a pattern."""

    pattern: Annotated[str, Meta(max_length=_MAX_PATTERN)]


class MemberSelector(Schema, frozen=True, kw_only=True):
    """Which members: exactly one of the three."""

    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelector | None = None


class Member(Schema, frozen=True, kw_only=True):
    """Nodes, or HyperNodes, below this one."""

    type: Literal["Node", "HyperNode"]
    selector: MemberSelector = MemberSelector()


class HyperNodeSpec(Schema, frozen=True, kw_only=True):
    """How close the members are, and which they are."""

    tier: Annotated[int, Meta(ge=0, le=2**31 - 1)]
    tier_name: str = ""
    members: tuple[Member, ...] = ()


class HyperNodeStatus(Schema, frozen=True, kw_only=True):
    """What its controller counted."""

    is_open: ClassVar[bool] = True

    conditions: tuple[Any, ...] = ()
    node_count: int = 0


class HyperNode(Schema, frozen=True, kw_only=True):
    """Nodes that are equally close to each other."""

    api_version: str = "topology.volcano.sh/v1alpha1"
    kind: str = "HyperNode"
    metadata: ObjectMeta = ObjectMeta()
    spec: HyperNodeSpec
    status: HyperNodeStatus = HyperNodeStatus()


def check_hypernode(hypernode: HyperNode, notes: Notes) -> None:
    """Report members that are selected in no way, or in two."""
    for index, member in enumerate(hypernode.spec.members):
        at, selector = f"spec.members[{index}].selector", member.selector
        ways = (selector.exact_match, selector.regex_match, selector.label_match)
        if sum(way is not None for way in ways) != 1:
            notes.problem(at, "needs exactly one of exactMatch, regexMatch and labelMatch")
        if selector.regex_match is not None and _compiled(selector.regex_match) is None:
            pattern = selector.regex_match.pattern
            notes.problem(f"{at}.regexMatch.pattern", f'"{pattern}" is not a regular expression')
        if selector.label_match is not None:
            if member.type == "HyperNode":
                notes.problem(f"{at}.labelMatch", "only nodes can be matched by their labels")
            for problem in check_selector(selector.label_match, f"{at}.labelMatch"):
                notes.problem(problem.path, problem.message)


def _compiled(match: RegexMatch) -> re.Pattern[str] | None:
    try:
        return re.compile(match.pattern)
    except (re.error, OverflowError, RecursionError):
        return None


def tier_label(tier: int | str) -> str:
    """Return the label that nodes have for a tier.

    >>> tier_label(2)
    'unisono.dev/hypernode-tier-2'
    """
    return f"{_LABEL}{tier}"


def hypernode_topology(hypernodes: Iterable[HyperNode]) -> Topology | None:
    """Return the levels that HyperNodes make, the widest first; None if there are none."""
    tiers = sorted({one.spec.tier for one in hypernodes}, reverse=True)
    return Topology(TOPOLOGY, tuple(tier_label(tier) for tier in tiers)) if tiers else None


def hypernode_labels(hypernodes: Iterable[HyperNode], nodes: Iterable[Node]) -> dict[str, Labels]:
    """Return the labels that HyperNodes give to nodes, by the names of the nodes."""
    by_name = {one.metadata.name: one for one in hypernodes}
    node_labels = {node.metadata.name: node.metadata.labels for node in nodes}
    no_labels: dict[str, Labels] = {name: {} for name in by_name}
    above_node: dict[str, set[str]] = {}
    above: dict[str, set[str]] = {}
    for name, one in by_name.items():
        for member in one.spec.members:
            if member.type == "Node":
                for node in _matching(member.selector, node_labels):
                    above_node.setdefault(node, set()).add(name)
            else:
                for below in _matching(member.selector, no_labels):
                    above.setdefault(below, set()).add(name)
    return {node: _labels(first, above, by_name) for node, first in above_node.items()}


def _matching(selector: MemberSelector, candidates: Mapping[str, Labels]) -> Iterable[str]:
    if selector.exact_match is not None:
        name = selector.exact_match.name
        return (name,) if name in candidates else ()
    if selector.regex_match is not None:
        pattern = _compiled(selector.regex_match)
        return (name for name in candidates if pattern is not None and pattern.search(name))
    if selector.label_match is not None:
        wanted = selector_of(selector.label_match)
        return (name for name, labels in candidates.items() if selects(wanted, dict(labels)))
    return ()


def _labels(
    first: Iterable[str], above: Mapping[str, set[str]], by_name: Mapping[str, HyperNode]
) -> Labels:
    """Climb from the HyperNodes that hold a node itself; one that holds itself counts once."""
    seen: set[str] = set()
    ahead = list(first)
    while ahead:
        name = ahead.pop()
        if name not in seen:
            seen.add(name)
            ahead.extend(above.get(name, ()))
    labels: dict[str, str] = {}
    for name in sorted(seen, reverse=True):
        labels[tier_label(by_name[name].spec.tier)] = name
    return labels


# ---- networkTopology -----------------------------------------------------------------------------


class NetworkTopology(Schema, frozen=True, kw_only=True):
    """How close the pods must be."""

    mode: Literal["hard", "soft", ""] = ""
    highest_tier_allowed: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    highest_tier_name: str = ""


def check_network(topology: NetworkTopology | None, path: str, notes: Notes) -> None:
    """Report a topology that contradicts itself."""
    if (
        topology is not None
        and topology.highest_tier_name
        and topology.highest_tier_allowed is not None
    ):
        notes.problem(f"{path}.highestTierName", "and highestTierAllowed exclude each other")


def topology_of(
    topology: NetworkTopology | None, path: str, context: Context
) -> TopologyRequest | None:
    """Return what a network topology that stands at `path` asks for."""
    if topology is None:
        return None
    tiers = {one.spec.tier for one in context.every("HyperNode")}
    narrowest = TopologyRequest("preferred", tier_label(min(tiers)) if tiers else "")
    if topology.mode == "soft":
        return narrowest
    named = topology.highest_tier_name
    if named:
        known = [one.spec.tier for one in context.every("HyperNode") if one.spec.tier_name == named]
        allowed, wanted = known, f'"{named}"'
    elif topology.highest_tier_allowed is not None:
        most = topology.highest_tier_allowed
        allowed, wanted = [tier for tier in tiers if tier <= most], f"{most} or lower"
    else:
        message = "names no tier; the pods only prefer to be close to each other"
        context.notes.warn("NetworkTopologyWithoutTier", path, message)
        return narrowest
    if allowed:
        return TopologyRequest("required", tier_label(max(allowed)))
    if context.every("Node"):
        message = f"there is no HyperNode of tier {wanted}, so no node will do"
        context.notes.warn("TierNotFound", path, message)
    return TopologyRequest("required", tier_label(named or topology.highest_tier_allowed or 0))


def in_blocks(
    whole: TopologyRequest | None, block: TopologyRequest | None, size: int
) -> TopologyRequest | None:
    """Return a topology in which blocks of `size` pods have one of their own.

    Blocks can only be held together by force; blocks that merely prefer it make the whole set
    prefer it.
    """
    if block is None or block.mode != "required":
        return whole or block
    if whole is None:
        return TopologyRequest("preferred", block.level, block.level, size)
    return TopologyRequest(whole.mode, whole.level, block.level, size)


KINDS = (
    Kind(
        group="topology.volcano.sh",
        version="v1alpha1",
        kind="HyperNode",
        struct=HyperNode,
        namespaced=False,
        check=check_hypernode,
    ),
)
