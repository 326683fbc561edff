"""The controllers that bring machines, put together, and what they need to watch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unisono.control import names
from unisono.control.controller import Controller
from unisono.control.view import Index
from unisono.kinds.policy.settings import Settings
from unisono.kube.mapping import Kind
from unisono.provision import keys
from unisono.provision.catalog.offers import Overlays
from unisono.provision.consolidation import CanReplace, Consolidator
from unisono.provision.node_lifecycle import (
    BY_NODE,
    BY_POOL,
    NodeLifecycle,
    node_of_claim,
    pool_of_claim,
)
from unisono.provision.node_pools import NodePools
from unisono.provision.offerings import OfferingsReader
from unisono.provision.purchases import Purchases
from unisono.provision.request_objects import RequestChecks
from unisono.provision.requesting import (
    BY_OWNER,
    ProvisioningRequests,
    SimulatedAutoscaler,
    owner_of,
)
from unisono.provision.simulated_cloud import SimulatedCloud

# For provisioning machines directly, and for asking an autoscaler for nodes.
MACHINE_KINDS: Sequence[Kind] = (names.NODE_POOL, names.NODE_CLAIM, names.NODE_OVERLAY)
REQUEST_KINDS: Sequence[Kind] = (names.PROVISIONING_REQUEST, names.REQUEST_CONFIG)
KINDS: Sequence[Kind] = (*MACHINE_KINDS, *REQUEST_KINDS)
INDEXES: Mapping[Kind, Mapping[str, Index]] = {
    names.NODE_CLAIM: {BY_NODE: node_of_claim, BY_POOL: pool_of_claim},
    names.PROVISIONING_REQUEST: {BY_OWNER: owner_of},
}


def simulated(
    settings: Settings, reader: OfferingsReader, can_replace: CanReplace, *, speed: float = 1.0
) -> Sequence[Controller]:
    """Return the controllers of a cluster with simulated machines."""
    return (
        Purchases(settings.buying),
        NodeLifecycle(settings.buying, gives_back=True),
        Consolidator(can_replace, settings),
        NodePools(reader),
        Overlays(),
        SimulatedCloud(speed),
        *requests(settings),
        SimulatedAutoscaler(),
    )


def karpenter(settings: Settings, home: str = keys.SYSTEM) -> Sequence[Controller]:
    """Return the controllers of a cluster where Karpenter fulfils NodeClaims.

    They keep a note in the namespace `home`.
    """
    return (Purchases(settings.buying, home), NodeLifecycle(settings.buying, gives_back=False))


def requests(settings: Settings) -> Sequence[Controller]:
    """Return the controllers of admission checks that ask an autoscaler for nodes."""
    return (RequestChecks(), ProvisioningRequests(settings.buying))
