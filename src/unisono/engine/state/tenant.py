"""A tenant: the pods of one template that one workload (or somebody else) has on nodes."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from unisono.engine.model.names import NodeName, ResourceName
from unisono.engine.model.node import HostPort, PodRule
from unisono.engine.model.resources import Amounts
from unisono.engine.state.move import Integers, Rows

NOWHERE: Rows = np.zeros(0, np.intp)
NOBODY: Integers = np.zeros(0, np.int64)


class Shared(NamedTuple):
    """Parts of devices: of which resource, how large, and the row and device of every pod."""

    share: ResourceName
    milli: int
    rows: list[int]
    devices: list[int]


class Tenant(msgspec.Struct, eq=False):
    """Pods of one template, and the nodes they are on."""

    nodes: tuple[tuple[NodeName, int], ...]
    requests: Amounts
    namespace: str = ""
    labels: dict[str, str] = {}
    host_ports: tuple[HostPort, ...] = ()
    anti_affinity: tuple[PodRule, ...] = ()
    devices: tuple[int, ...] = ()  # of pods that share GPUs, in the order of nodes
    rows: Rows = NOWHERE
    counts: Integers = NOBODY
    shared: Shared | None = None  # the parts of devices that its pods have now
    pods: int = 0  # on those rows
    layout: int = -1  # of the node table, for which the rows are right
