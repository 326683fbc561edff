"""`networkTopology` of Volcano jobs and groups: how close to each other their pods must be.

    mode: hard, with a tier     required: all pods below one HyperNode of that tier
    mode: hard, without a tier  Volcano sees no constraint in it; here it is a wish like soft, with
                                a warning
    mode: soft                  preferred: at the narrowest tier, else one tier wider, …

A tier that has no HyperNodes stands for the next lower one that has. HyperNodes become labels of
nodes (`hypernodes`), so a tier is a level like any other. Spec placement §1.3 and §7.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from unisono.engine.model.workload import TopologyRequest
from unisono.kinds.decode import Schema
from unisono.kinds.notes import Notes
from unisono.kinds.registry import Context
from unisono.kinds.volcano.hypernodes import tier_label


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
