"""Workloads that may not start, or not there, are caught."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.support.audit_plans import breaks, passes
from tests.support.quota_builders import (
    admission,
    admit,
    cohort,
    group,
    job,
    plan,
    preempt,
    queue,
    running,
    snapshot,
)
from unisono.engine.audit import Rule
from unisono.engine.model.names import FlavorName, Instant, QueueName
from unisono.engine.model.policy import PodsReady, Policy
from unisono.engine.model.queue import CheckRule, Flavor, LocalQueue, PreemptionRules
from unisono.engine.model.selection import LabelSelector, Requirement
from unisono.engine.model.snapshot import AdmissionCheck, Namespace, Snapshot
from unisono.engine.model.workload import CheckState

JOB = job("a", "q", 2)
NOW = Instant(1000)
TEAM_A = LabelSelector((Requirement("team", "In", ("a",)),))


def admits(world: Snapshot, **options: Any) -> tuple[Snapshot, Any]:
    return world, plan(now=NOW, admissions=(admit(world.waiting[0], **options),))


@pytest.mark.parametrize(
    "change",
    [
        {"active": False},
        {"gated_by": "quota-team"},
        {"on_hold": True},
        {"requeue_at": Instant(1001)},
        {"misconfigured": "request above its limit"},
        {"checks": (CheckState("p", "Retry"),)},
        {"checks": (CheckState("p", "Rejected"),)},
    ],
)
def test_a_workload_that_may_not_queue_is_not_started(change: dict[str, Any]) -> None:
    broken = msgspec.structs.replace(JOB, **change)
    breaks("not-queueable", *admits(snapshot(queue("q"), waiting=(broken,))))


def test_an_expired_hold_does_not_block() -> None:
    back = msgspec.structs.replace(JOB, requeue_at=NOW, checks=(CheckState("p", "Pending"),))
    passes(*admits(snapshot(queue("q"), waiting=(back,))))


def test_a_workload_that_may_not_start_may_not_preempt() -> None:
    high = job("high", "q", 4, priority=9, active=False)
    world = snapshot(
        queue("q", preemption=PreemptionRules(within_queue="LowerPriority")),
        waiting=(high,),
        admitted_workloads=(running(job("low", "q", 4)),),
    )
    breaks("not-queueable", world, plan(preemptions=(preempt(high, "low"),)))


CLOSED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("stopped", {"stop": "Hold"}, {}),
    ("drained", {"stop": "HoldAndDrain"}, {}),
    ("terminating", {"terminating": True}, {}),
    ("no flavor", {}, {"flavors": ()}),
    ("no check", {"checks": (CheckRule("p"),)}, {}),
    ("check inactive", {"checks": (CheckRule("p"),)}, {"checks": (AdmissionCheck("p", False),)}),
    (
        "no topology",
        {},
        {"flavors": (Flavor(name=FlavorName("f"), topology="racks"),)},
    ),
    (
        "cycle",
        {"cohort": "one"},
        {"cohorts": (cohort("one", parent="two"), cohort("two", parent="one"))},
    ),
    ("no local queue", {}, {"local_queues": ()}),
    (
        "local queue stopped",
        {},
        {"local_queues": (LocalQueue(key=JOB.queue, queue=QueueName("q"), stop="Hold"),)},
    ),
]


@pytest.mark.parametrize(("of_queue", "of_world"), [each[1:] for each in CLOSED], ids=str)
def test_a_closed_queue_admits_nothing(of_queue: dict[str, Any], of_world: dict[str, Any]) -> None:
    passes(*admits(snapshot(queue("q"), waiting=(JOB,))))
    breaks("queue-closed", *admits(snapshot(queue("q", **of_queue), waiting=(JOB,), **of_world)))


def test_an_unused_flavor_that_is_missing_closes_the_queue_too() -> None:
    both = queue("q", groups=(group({"f": {"gpu": "4"}, "ghost": {"gpu": "4"}}),))
    world = snapshot(both, waiting=(JOB,), flavors=(Flavor(name=FlavorName("f")),))
    breaks("queue-closed", *admits(world))


def test_the_queue_is_the_one_that_the_local_queue_leads_to() -> None:
    world = snapshot(queue("q"), queue("r"), waiting=(JOB,))
    elsewhere = msgspec.structs.replace(admission(JOB), queue=QueueName("r"))
    breaks("wrong-queue", *admits(world, admission=elsewhere))
    nowhere = msgspec.structs.replace(admission(JOB), queue=QueueName("none"))
    breaks("queue-closed", *admits(world, admission=nowhere))


def test_a_queue_selects_namespaces() -> None:
    picky = queue("q", namespace_selector=TEAM_A)
    ours = Namespace("ns", (("team", "a"),))
    passes(*admits(snapshot(picky, waiting=(JOB,), namespaces=(ours,))))
    breaks("namespace", *admits(snapshot(picky, waiting=(JOB,))))
    breaks("namespace", *admits(snapshot(queue("q", namespace_selector=None), waiting=(JOB,))))


def test_an_unknown_namespace_still_has_its_name() -> None:
    by_name = LabelSelector((Requirement("kubernetes.io/metadata.name", "In", ("ns",)),))
    passes(*admits(snapshot(queue("q", namespace_selector=by_name), waiting=(JOB,))))


def test_block_admission_waits_for_pods() -> None:
    policy = Policy(pods_ready=PodsReady(block_admission=True))
    starting = running(job("first", "q", 1), ready=False)
    world = snapshot(queue("q"), waiting=(JOB,), admitted_workloads=(starting,), policy=policy)
    breaks("pods-not-ready", *admits(world))
    passes(*admits(snapshot(queue("q"), waiting=(JOB,), admitted_workloads=(starting,))))
    leaving = msgspec.structs.replace(starting, evicting=True)
    passes(*admits(msgspec.structs.replace(world, admitted_workloads=(leaving,))))


def test_block_admission_lets_one_start_at_a_time() -> None:
    policy = Policy(pods_ready=PodsReady(block_admission=True))
    other = job("b", "r", 2)
    world = snapshot(queue("q"), queue("r"), waiting=(JOB, other), policy=policy)
    breaks("pods-not-ready", world, plan(admissions=(admit(JOB), admit(other))))


CHECKED = queue(
    "q", checks=(CheckRule("p", (FlavorName("f"),)), CheckRule("x", (FlavorName("g"),)))
)
CHECKS = (AdmissionCheck("p"), AdmissionCheck("x"))


@pytest.mark.parametrize(
    ("said", "checks_pass", "rule"),
    [
        ((), False, None),
        ((), True, "checks"),
        ((CheckState("p", "Pending"),), True, "checks"),
        ((CheckState("p", "Ready"),), True, None),
    ],
)
def test_a_check_must_agree_first(
    said: tuple[CheckState, ...], checks_pass: bool, rule: Rule | None
) -> None:
    workload = msgspec.structs.replace(JOB, checks=said)
    case = admits(snapshot(CHECKED, waiting=(workload,), checks=CHECKS), checks_pass=checks_pass)
    if rule is None:
        passes(*case)
    else:
        breaks(rule, *case)


def test_without_checks_nothing_has_to_agree() -> None:
    breaks("checks", *admits(snapshot(queue("q"), waiting=(JOB,)), checks_pass=False))


OLD = job("old", "q", 2)
GROWN = job("grown", "q", 4, replaces=OLD.key)


def test_a_slice_replaces_the_one_it_grew_out_of() -> None:
    world = snapshot(queue("q"), waiting=(GROWN,), admitted_workloads=(running(OLD),))
    passes(*admits(world, replaces=OLD.key))
    breaks("slice", *admits(world))
    other = running(job("other", "q", 1))
    both = msgspec.structs.replace(world, admitted_workloads=(running(OLD), other))
    breaks("slice", *admits(both, replaces=other.workload.key))
    finished = snapshot(queue("q"), waiting=(GROWN,))
    passes(*admits(finished))


def test_a_slice_keeps_its_flavor() -> None:
    two = queue("q", groups=(group({"f": {"gpu": "4"}, "g": {"gpu": "4"}}),))
    world = snapshot(two, waiting=(GROWN,), admitted_workloads=(running(OLD, "g"),))
    breaks("slice", *admits(world, replaces=OLD.key))
