"""A snapshot: everything a decision depends on, as one value that encodes.

`state.views.snapshot` makes one, `engine.cluster.restore` reads one back; a flight-recorder file
is a snapshot with the plan that was made from it. The auditor reads nothing else.
"""

from __future__ import annotations

import msgspec

from unisono.engine.model.explanation import Explanation
from unisono.engine.model.multifactor import UsageRecord
from unisono.engine.model.names import Instant, QueueName, WorkloadKey
from unisono.engine.model.node import Node, NodePod, Topology
from unisono.engine.model.plan import Wait
from unisono.engine.model.policy import Policy
from unisono.engine.model.provisioning import Offerings
from unisono.engine.model.queue import ClusterQueue, Cohort, Flavor, LocalQueue
from unisono.engine.model.resources import Amounts
from unisono.engine.model.selection import Labels
from unisono.engine.model.workload import AdmittedWorkload, Result, Workload


class Namespace(msgspec.Struct, frozen=True):
    """A namespace and its labels, for namespaceSelectors."""

    name: str
    labels: Labels = ()


class AdmissionCheck(msgspec.Struct, frozen=True):
    """An admission check that exists; an inactive one makes its queues inactive."""

    name: str
    active: bool = True
    brings_nodes: bool = False  # nodes exist only once it is ready


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster as the engine knows it at one version of its state."""

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
    admitted_workloads: tuple[AdmittedWorkload, ...] = msgspec.field(default=(), name="holdings")
    # Preemptors with a pending preemption: the heads of their queues until they are admitted.
    preemptors: tuple[WorkloadKey, ...] = ()
    waiting: tuple[Workload, ...] = ()
    # Results of earlier cycles that still hold: inadmissible workloads, and queues with nothing new
    # to evaluate. Without them a decision would start from scratch.
    admitted_lately: tuple[Amounts, ...] = ()  # requests of pods, for scoring by fragmentation
    shared_lately: tuple[Amounts, ...] = ()  # the same, where pods share GPUs
    verdicts: tuple[Wait, ...] = ()
    # With backfill: the newest result of each equivalence class, under its first workload.
    shared_verdicts: tuple[Explanation, ...] = ()
    asleep: tuple[QueueName, ...] = ()
    # Instants at which a workload is evaluated again; some are left from its earlier state.
    reminders: tuple[tuple[Instant, WorkloadKey], ...] = ()
    # Usage of accounts, users and QOS, and since when workloads accrue age where that is limited.
    usage: tuple[UsageRecord, ...] = ()
    accruing: tuple[tuple[WorkloadKey, Instant], ...] = ()
    # What can be bought; None: nothing.
    offerings: Offerings | None = msgspec.field(default=None, name="market")
    # How jobs ended, for dependencies on them; the newest last.
    results: tuple[Result, ...] = ()
