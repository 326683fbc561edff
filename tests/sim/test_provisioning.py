"""Machines that a simulated run buys: when jobs start, and what it costs, to the second."""

from __future__ import annotations

import dataclasses
import math

import msgspec
import numpy as np
import pytest

from unisono.engine.model.names import NodeName
from unisono.engine.model.node import Node
from unisono.engine.model.provisioning import ZONE, InstanceType, Offer, Offerings, Pool
from unisono.engine.model.resources import amounts
from unisono.sim.loop import simulate
from unisono.sim.measures import measure
from unisono.sim.outcome import Outcome
from unisono.sim.provisioning import REUSE_S, ProvisioningRules
from unisono.sim.setup import POLICIES, Rules
from unisono.sim.trace import Trace, make_trace

GPU = "nvidia.com/gpu"
LAUNCH, READY, IDLE = 3.0, 93.0, 60.0
PRICE = 36.0  # US$ an hour: a cent a second
HAS = amounts({"cpu": 96_000, "memory": 1 << 40, "pods": 110, GPU: 8})


def terms(stock: int | None = None, limit: int | None = None) -> ProvisioningRules:
    """Return a cloud with one type of machine in one zone."""
    machine = InstanceType(name="big", labels=(), allocatable=HAS, capacity=HAS, model="H100")
    offer = Offer(machine="big", zone="a", price_micro=int(PRICE * 1e6), stock=stock)
    limits = () if limit is None else amounts({"nodes": limit})
    offerings = Offerings(
        machines=(machine,), offers=(offer,), pools=(Pool(name="gpu", limits=limits),)
    )
    return ProvisioningRules(
        offerings=offerings,
        launch_s=lambda name: LAUNCH,
        ready_s=lambda name: READY,
        idle_s={"gpu": IDLE},
    )


def jobs(*rows: tuple[float, int, float]) -> Trace:
    """Make a trace of gangs (submit, pods of eight GPUs, run)."""
    submit, pods, run = zip(*rows, strict=True)
    return make_trace(
        "test", submit=list(submit), run=list(run), request=list(run), pods=list(pods), gpus=8
    )


def rent(trace: Trace, chosen: ProvisioningRules, policy: str = "best-effort") -> Outcome:
    """Replay it, with the auditor looking at every plan."""
    return simulate(trace, (), POLICIES[policy], provisioning=chosen, checked=True, spans=True)


@pytest.mark.parametrize("policy", ["best-effort", "fifo", "easy", "kueue"])
def test_a_gang_starts_with_its_last_machine_and_pays_from_launch_to_release(
    policy: str,
) -> None:
    outcome = rent(jobs((0.0, 2, 600.0)), terms(), policy)
    assert outcome.start.tolist() == [READY]
    assert outcome.end.tolist() == [READY + 600]
    bill = outcome.bill
    assert bill is not None
    assert bill.start.tolist() == [LAUNCH, LAUNCH]
    assert bill.end.tolist() == [READY + 600 + IDLE] * 2
    assert bill.cost == pytest.approx(2 * (READY - LAUNCH + 600 + IDLE) / 100)
    assert measure(outcome).machines_peak == 2


def test_machines_that_are_still_there_are_used_again_and_paid_once() -> None:
    at = READY + 600 + IDLE - 1
    outcome = rent(jobs((0.0, 2, 600.0), (at, 2, 100.0)), terms())
    assert outcome.start.tolist() == [READY, at], "it need not wait for machines"
    assert outcome.bill is not None
    assert outcome.bill.end.tolist() == [at + 100 + IDLE] * 2


def test_buys_nothing_for_a_gang_that_cannot_get_all_machines() -> None:
    outcome = rent(jobs((0.0, 3, 100.0), (1.0, 2, 100.0)), terms(stock=4))
    assert outcome.start[0] == READY
    # One is left, two are needed: nothing is bought until the first gang's machines are free.
    assert outcome.start[1] == READY + 100
    assert outcome.bill is not None
    assert outcome.bill.peak() == 3


def test_a_limit_of_the_pool_holds_at_every_moment() -> None:
    rows = [(float(10 * number), 1 + number % 3, 200.0) for number in range(20)]
    outcome = rent(jobs(*rows), terms(limit=5))
    assert not np.isnan(outcome.end).any()
    assert outcome.bill is not None
    assert outcome.bill.peak() <= 5


def test_every_second_of_work_was_paid_for() -> None:
    rows = [(float(37 * number), 1 + number % 4, 50.0 + 13 * number) for number in range(25)]
    outcome = rent(jobs(*rows), terms())
    measures = measure(outcome)
    assert outcome.bill is not None
    seconds = float((outcome.bill.end - outcome.bill.start).sum())
    worked = float((outcome.running * 8 * outcome.trace.pods).sum())
    assert 0 < worked <= outcome.bill.paid(gpus=True)
    assert measures.paid_used == pytest.approx(worked / outcome.bill.paid(gpus=True))
    assert measures.cost == pytest.approx(seconds / 100)


def _preempting() -> Rules:
    chosen = POLICIES["best-effort"]
    rules = msgspec.structs.replace(chosen.preemption, within_queue="LowerPriority")
    return msgspec.structs.replace(chosen, preemption=rules)


def _urgent(*rows: tuple[float, int, float]) -> Trace:
    """Make a trace in which later jobs are more important."""
    priority = np.arange(len(rows), dtype=np.int64) * 10
    return dataclasses.replace(jobs(*rows), priority=priority)


def test_machines_of_a_gang_that_lost_its_quota_are_taken_over() -> None:
    outcome = _under_quota(_urgent((0.0, 2, 600.0), (50.0, 2, 600.0)), _preempting(), gpus=16)
    assert outcome.start.tolist() == [READY + 600, READY], "as soon as the machines are there"
    assert outcome.preemptions.tolist() == [1, 0]
    assert outcome.bill is not None
    assert outcome.bill.start.tolist() == [LAUNCH, LAUNCH], "nothing is bought again"
    assert outcome.bill.end.tolist() == [READY + 1200 + IDLE] * 2


def test_releases_an_orphaned_machine_after_a_minute() -> None:
    outcome = _under_quota(_urgent((0.0, 3, 600.0), (50.0, 2, 600.0)), _preempting(), gpus=24)
    assert outcome.start[1] == READY
    assert outcome.bill is not None
    assert float(outcome.bill.end.min()) == 50.0 + REUSE_S, "one of three was left over"


def test_a_machine_that_was_not_launched_costs_nothing() -> None:
    outcome = _under_quota(_urgent((0.0, 2, 600.0), (1.0, 2, 600.0)), _preempting(), gpus=16)
    assert outcome.start[1] == READY + 1
    assert outcome.bill is not None
    assert float(outcome.bill.start.min()) == LAUNCH + 1


def _lent(runs: float, ready: float = READY) -> Outcome:
    """Replay a gang that keeps a node of its own until a second machine is there, and a job."""
    labels = ((ZONE, "a"), ("nvidia.com/gpu.product", "H100"))
    node = Node(name=NodeName("mine"), labels=labels, allocatable=HAS)
    sold = terms(limit=1)
    offerings = msgspec.structs.replace(sold.offerings, soon_ms=int(READY * 1000))
    chosen = dataclasses.replace(sold, offerings=offerings, ready_s=lambda name: ready)
    trace = jobs((0.0, 2, 600.0), (5.0, 1, runs))
    rules = POLICIES["best-effort"]
    return simulate(trace, (node,), rules, provisioning=chosen, checked=True, spans=True)


@pytest.mark.parametrize(("runs", "starts"), [(60.0, 5.0), (100.0, READY + 600)])
def test_a_short_job_uses_a_held_node_opportunistically(runs: float, starts: float) -> None:
    assert _lent(runs).start.tolist() == [READY, starts]


def test_an_opportunistic_job_is_evicted_when_the_machines_are_ready() -> None:
    outcome = _lent(60.0, ready=50.0)
    assert outcome.start.tolist() == [50.0, 5.0]
    assert outcome.end.tolist() == [650.0, 710.0]
    assert outcome.preemptions.tolist() == [0, 0], "an opportunistic eviction is not a preemption"
    assert outcome.lost.tolist() == [0.0, 45.0]


def _under_quota(trace: Trace, rules: Rules, gpus: int) -> Outcome:
    """Replay with a quota that the first gang uses up."""
    from unisono.engine.model.names import CPU, FlavorName, LocalQueueKey, QueueName, ResourceName
    from unisono.engine.model.queue import (
        ClusterQueue,
        Flavor,
        FlavorQuota,
        LocalQueue,
        ResourceGroup,
        ResourceQuota,
    )
    from unisono.engine.model.selection import LabelSelector
    from unisono.engine.model.snapshot import Snapshot

    quotas = tuple(
        ResourceQuota(resource=name, nominal=amount)
        for name, amount in ((CPU, 10**9), (ResourceName(GPU), gpus))
    )
    queue = ClusterQueue(
        name=QueueName("q"),
        namespace_selector=LabelSelector(),
        preemption=rules.preemption,
        groups=(
            ResourceGroup(
                covered=(CPU, ResourceName(GPU)),
                flavors=(FlavorQuota(FlavorName("f"), quotas),),
            ),
        ),
    )
    layout = Snapshot(
        flavors=(Flavor(name=FlavorName("f")),),
        queues=(queue,),
        local_queues=(LocalQueue(key=LocalQueueKey("sim/q0"), queue=QueueName("q")),),
    )
    return simulate(
        trace, (), msgspec.structs.replace(rules, layout=layout), provisioning=terms(), checked=True
    )


def test_the_bill_of_a_fixed_cluster_counts_all_nodes_throughout() -> None:
    nodes = tuple(Node(name=NodeName(f"n{number}"), allocatable=HAS) for number in range(4))
    prices = {node.name: int(PRICE * 1e6) for node in nodes}
    trace = jobs((0.0, 2, 600.0), (100.0, 4, 300.0))
    fixed = simulate(trace, nodes, POLICIES["fifo"], prices=prices)
    assert fixed.bill is not None
    assert fixed.bill.cost == pytest.approx(4 * 900 / 100)
    assert math.isnan(measure(simulate(trace, nodes, POLICIES["fifo"])).cost)


def test_uses_existing_nodes_before_buying() -> None:
    nodes = (Node(name=NodeName("own"), allocatable=HAS),)
    outcome = simulate(
        jobs((0.0, 1, 100.0), (1.0, 1, 100.0)), nodes, POLICIES["best-effort"], provisioning=terms()
    )
    assert outcome.start.tolist() == [0.0, 1.0 + READY]
    assert outcome.capacity.nodes == 2
