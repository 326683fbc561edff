"""Placed pods: those of one template that one workload, or a stranger, has on nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unisono.engine.model.names import NodeName, ResourceName
from unisono.engine.model.node import HostPort, PodRule
from unisono.engine.model.resources import Amounts
from unisono.engine.state.change_journal import Integers, Move, Rows

NO_ROWS: Rows = np.zeros(0, np.intp)
NO_PODS: Integers = np.zeros(0, np.int64)
_UNLABELLED: dict[str, str] = {}  # the labels of placed pods are never changed


class Shared(NamedTuple):
    """Parts of devices: of which resource, how large, and the row and device of every pod."""

    share: ResourceName
    milli: int
    rows: list[int]
    devices: list[int]


class PlacedPods:
    """Pods of one template, and the nodes they are on."""

    __slots__ = (
        "anti_affinity",
        "came",
        "counts",
        "devices",
        "host_ports",
        "labels",
        "layout",
        "namespace",
        "nodes",
        "pods",
        "requests",
        "rows",
        "shared",
    )

    def __init__(
        self,
        nodes: tuple[tuple[NodeName, int], ...],
        requests: Amounts,
        namespace: str = "",
        labels: dict[str, str] | None = None,
        host_ports: tuple[HostPort, ...] = (),
        anti_affinity: tuple[PodRule, ...] = (),
        devices: tuple[int, ...] = (),
        rows: Rows = NO_ROWS,
        counts: Integers = NO_PODS,
        pods: int = 0,
        layout: int = -1,
    ) -> None:
        self.nodes = nodes
        self.requests = requests
        self.namespace = namespace
        self.labels: dict[str, str] = _UNLABELLED if labels is None else labels
        self.host_ports = host_ports
        self.anti_affinity = anti_affinity
        self.devices = devices  # of pods that share GPUs, in the order of nodes
        self.rows = rows
        self.counts = counts
        self.came: Move | None = None  # how it is counted in the node table
        self.shared: Shared | None = None  # the parts of devices that its pods have now
        self.pods = pods  # on those rows
        self.layout = layout  # of the node table, for which the rows are right
