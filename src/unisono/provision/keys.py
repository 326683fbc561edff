"""Labels, annotations and names by which machines, pools and workloads know each other."""

from __future__ import annotations

from unisono.control.names import DO_NOT_DISRUPT
from unisono.kinds.core.nodes import HELD_FOR

__all__ = ["DO_NOT_DISRUPT", "HELD_FOR"]

NODE_POOL = "karpenter.sh/nodepool"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
REGISTERED = "karpenter.sh/registered"
INITIALIZED = "karpenter.sh/initialized"
DISRUPTED = "karpenter.sh/disrupted"  # a taint: the node is about to go
WHEN_EMPTY = "when-empty"  # the value of that taint: it goes when the gang on it has ended
UNREGISTERED = "karpenter.sh/unregistered"
TERMINATION = "karpenter.sh/termination"  # a finalizer: the machine has to be given back first

PLAN = "unisono.dev/plan"  # which purchase a machine is of
PLAN_SIZE = "unisono.dev/plan-size"  # how many machines that has
PRICE = "unisono.dev/price-usd-hour"
IDLE_SINCE = "unisono.dev/idle-since"
RELEASED = "unisono.dev/released"  # of a purchase that failed: offered to others for a while
CONSOLIDATING = "unisono.dev/consolidating"  # since when the gang on it is moving away
STATIC = "unisono.dev/static"  # the number of a machine of a static pool
FORCE = "unisono.dev/force"

SYSTEM = "kube-system"
STOCK = "unisono-stock"  # a ConfigMap: what was refused lately
CLOUD = "unisono-cloud"  # a ConfigMap: what the simulated cloud is like
