"""Nodes, and what Karpenter makes them from: NodePools and NodeClaims."""

from __future__ import annotations

from unisono.kinds.views.base import (
    Amounts,
    Flag,
    NumberIfAny,
    Part,
    Parts,
    Raws,
    Text,
    Texts,
    View,
)
from unisono.kinds.views.objects import Object, ObjectMeta, Status
from unisono.kinds.views.pods import Resources

HOSTNAME = "kubernetes.io/hostname"


class Taint(View):
    """A mark that keeps pods away unless they tolerate it."""

    __slots__ = ()

    key = Text("key")
    value = Text("value")
    effect = Text("effect")
    time_added = Text("timeAdded")


class NodeAddress(View):
    """A name or an address at which a node is reached."""

    __slots__ = ()

    type = Text("type")
    address = Text("address")


class NodeSpec(View):
    """What an operator says about a node."""

    __slots__ = ()

    unschedulable = Flag("unschedulable")
    provider_id = Text("providerID")
    taints = Parts("taints", Taint)


class NodeStatus(Status):
    """What a node has, and how it feels."""

    __slots__ = ()

    capacity = Amounts("capacity")
    allocatable = Amounts("allocatable")
    addresses = Parts("addresses", NodeAddress)


class Node(Object):
    """A machine."""

    __slots__ = ()

    spec = Part("spec", NodeSpec)
    status = Part("status", NodeStatus)

    @property
    def is_ready(self) -> bool:
        """Whether its kubelet reports that pods can run."""
        return self.status.conditions.is_true("Ready")

    @property
    def hostname(self) -> str:
        """Its hostname label, which pods select it by; its name without one."""
        metadata = self.metadata
        return metadata.labels.get(HOSTNAME) or metadata.name


class Requirement(View):
    """What a label of a node has to be."""

    __slots__ = ()

    key = Text("key")
    operator = Text("operator")
    values = Texts("values")


class NodeClassRef(View):
    """Where the cloud's own settings of a machine are."""

    __slots__ = ()

    group = Text("group")
    kind = Text("kind")
    name = Text("name")


class NodeClaimSpec(View):
    """Which machine is wanted, and how long it may stay."""

    __slots__ = ()

    requirements = Parts("requirements", Requirement)
    resources = Part("resources", Resources)
    taints = Raws("taints")
    startup_taints = Raws("startupTaints")
    node_class_ref = Part("nodeClassRef", NodeClassRef)
    expire_after = Text("expireAfter")
    termination_grace_period = Text("terminationGracePeriod")

    def values_of(self, key: str) -> tuple[str, ...]:
        """Return the values that a label may have; none if every value will do."""
        for one in self.requirements:
            if one.key == key and one.operator == "In":
                return one.values
        return ()

    def value_of(self, key: str) -> str:
        """Return the first value that a label may have; empty if every value will do."""
        return next(iter(self.values_of(key)), "")


class NodeClaimStatus(Status):
    """How far a machine is."""

    __slots__ = ()

    node_name = Text("nodeName")
    provider_id = Text("providerID")
    capacity = Amounts("capacity")
    allocatable = Amounts("allocatable")


class NodeClaim(Object):
    """A machine that is wanted."""

    __slots__ = ()

    spec = Part("spec", NodeClaimSpec)
    status = Part("status", NodeClaimStatus)


class NodeClaimTemplate(View):
    """What every machine of a pool is made from."""

    __slots__ = ()

    metadata = Part("metadata", ObjectMeta)
    spec = Part("spec", NodeClaimSpec)


class DisruptionBudget(View):
    """How many machines of a pool may go at once."""

    __slots__ = ()

    nodes = Text("nodes")
    reasons = Texts("reasons")
    schedule = Text("schedule")
    duration = Text("duration")


class Disruption(View):
    """When machines of a pool may go."""

    __slots__ = ()

    consolidate_after = Text("consolidateAfter")
    consolidation_policy = Text("consolidationPolicy")
    budgets = Parts("budgets", DisruptionBudget)


class NodePoolSpec(View):
    """Which machines a pool may have."""

    __slots__ = ()

    template = Part("template", NodeClaimTemplate)
    disruption = Part("disruption", Disruption)
    limits = Amounts("limits")
    weight = NumberIfAny("weight")
    replicas = NumberIfAny("replicas")


class NodePool(Object):
    """Machines that can be bought."""

    __slots__ = ()

    spec = Part("spec", NodePoolSpec)
    status = Part("status", Status)
