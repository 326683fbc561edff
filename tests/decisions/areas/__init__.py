"""The areas that situations are drawn for: one class for every policy and family of rules."""

from __future__ import annotations

from tests.decisions.areas import machines, nodes, quota, time
from tests.decisions.situations import Situation

# How many cases are drawn of each.
AREAS: dict[type[Situation], int] = {
    quota.Classical: 45,
    quota.Fair: 35,
    quota.AdmissionFair: 30,
    quota.Configuration: 40,
    quota.Lifecycle: 40,
    quota.Elastic: 40,
    quota.Contended: 30,
    quota.ContendedFair: 30,
    quota.FairTies: 30,
    quota.ContendedNodes: 30,
    time.PriorityOrder: 50,
    time.PriorityBackfill: 25,
    time.Easy: 30,
    time.Conservative: 30,
    time.SeveralReservations: 15,
    time.AdvanceReservations: 20,
    time.Dependencies: 30,
    time.Batch: 40,
    time.EasyBatch: 24,
    time.Calendar: 2,
    time.LearnedLimits: 14,
    nodes.Topology: 40,
    nodes.BalancedTopology: 15,
    nodes.Grouped: 20,
    nodes.PodRules: 40,
    nodes.Terminating: 20,
    nodes.SharedGpus: 30,
    nodes.SharedBackfill: 20,
    nodes.Repair: 25,
    nodes.SharedRepair: 15,
    nodes.CheckedNodes: 15,
    machines.Provisioning: 50,
    machines.Loans: 30,
    machines.StockOuts: 12,
    machines.LargePurchases: 15,
}
