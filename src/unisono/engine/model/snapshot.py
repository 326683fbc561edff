"""A snapshot: everything a decision depends on, as one value that encodes.

`state.views.snapshot` makes one, `engine.cluster.restore` reads one back; a flight-recorder file
is a snapshot with the plan that was made from it. The auditor reads nothing else.
"""

from __future__ import annotations

import msgspec

from unisono.engine.model.dependency import Result
from unisono.engine.model.explanation import Explanation
from unisono.engine.model.multifactor import UsageRecord
from unisono.engine.model.names import Instant, QueueName, WorkloadKey
from unisono.engine.model.node import Node, NodePod, Topology
from unisono.engine.model.plan import Wait
from unisono.engine.model.policy import Policy
from unisono.engine.model.provisioning import Market
from unisono.engine.model.queue import ClusterQueue, Cohort, Flavor, LocalQueue
from unisono.engine.model.resources import Amounts
from unisono.engine.model.selection import Labels
from unisono.engine.model.workload import Holding, Workload


class Namespace(msgspec.Struct, frozen=True):
    """A namespace and its labels, for namespaceSelectors."""

    name: str
    labels: Labels = ()


class AdmissionCheck(msgspec.Struct, frozen=True):
    """An admission check that exists; an inactive one makes its queues inactive."""

    name: str
    active: bool = True
    brings_nodes: bool = False  # nodes are there only when it has agreed


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The world as the engine knows it at one version of its state."""

    version: int = 0
    now: Instant = Instant(0)
    policy: Policy = Policy()
    flavors: tuple[Flavor, ...] = ()
    cohorts: tuple[Cohort, ...] = ()
    queues: tuple[ClusterQueue, ...] = ()
    local_queues: tuple[LocalQueue, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    checks: tuple[AdmissionCheck, ...] = ()
    topologies: tuple[Topology, ...] = ()
    nodes: tuple[Node, ...] = ()  # none at all: quota alone decides
    pods: tuple[NodePod, ...] = ()  # on nodes, but not of workloads that hold quota here
    holdings: tuple[Holding, ...] = ()
    # Workloads that made others leave and go first in their queues until they are admitted.
    preemptors: tuple[WorkloadKey, ...] = ()
    waiting: tuple[Workload, ...] = ()
    # What was found out before and still holds: verdicts on workloads that are set aside, and
    # queues with nothing new to examine. Without it a decision would start from scratch.
    admitted_lately: tuple[Amounts, ...] = ()  # requests of pods, for scoring by fragmentation
    shared_lately: tuple[Amounts, ...] = ()  # the same, where pods share GPUs
    verdicts: tuple[Wait, ...] = ()
    # With backfill: of all workloads of one kind, the newest verdict; the first of them is named.
    shared_verdicts: tuple[Explanation, ...] = ()
    asleep: tuple[QueueName, ...] = ()
    # Instants at which a workload is looked at again; some only because of what it was before.
    reminders: tuple[tuple[Instant, WorkloadKey], ...] = ()
    # What accounts, users and QOS used so far, and since when those who need leave to age do so.
    usage: tuple[UsageRecord, ...] = ()
    accruing: tuple[tuple[WorkloadKey, Instant], ...] = ()
    market: Market | None = None  # what can be bought; None: nothing
    # What became of jobs, for those who depend on them; the newest last.
    results: tuple[Result, ...] = ()
