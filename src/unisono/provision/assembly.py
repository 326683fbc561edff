"""The controllers that bring machines, put together, and what they need to watch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unisono.control import names
from unisono.control.controller import Controller
from unisono.control.view import Index
from unisono.kinds.settings import Settings
from unisono.kube.mapping import Kind
from unisono.provision.buyer import Buyer
from unisono.provision.keeper import BY_NODE, BY_POOL, Keeper, node_of_claim, pool_of_claim
from unisono.provision.pools import Pools
from unisono.provision.reader import Reader
from unisono.provision.simulated import SimulatedCloud

KINDS: Sequence[Kind] = (names.NODE_POOL, names.NODE_CLAIM)
INDEXES: Mapping[Kind, Mapping[str, Index]] = {
    names.NODE_CLAIM: {BY_NODE: node_of_claim, BY_POOL: pool_of_claim}
}


def simulated(settings: Settings, reader: Reader, *, speed: float = 1.0) -> Sequence[Controller]:
    """Return those of a cluster whose machines exist only here."""
    return (
        Buyer(settings.buying),
        Keeper(settings.buying, gives_back=True),
        Pools(reader),
        SimulatedCloud(speed),
    )


def karpenter(settings: Settings) -> Sequence[Controller]:
    """Return those of a cluster on which Karpenter fulfils claims and gives machines back."""
    return (Buyer(settings.buying), Keeper(settings.buying, gives_back=False))
