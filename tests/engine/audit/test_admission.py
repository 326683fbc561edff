"""Workloads that may not start, or not there, are caught."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.support.audit_plans import breaks, passes
from tests.support.quota_builders import (
    GPU,
    admission,
    admit,
    assignment,
    cohort,
    group,
    job,
    plan,
    pods,
    preempt,
    queue,
    running,
    snapshot,
)
from unisono.engine.audit import Rule, audit
from unisono.engine.audit.snapshot_index import SnapshotIndex
from unisono.engine.model.names import PODS, FlavorName, Instant, QueueName, ResourceName
from unisono.engine.model.node import Topology
from unisono.engine.model.plan import Plan
from unisono.engine.model.policy import PodsReady, Policy
from unisono.engine.model.queue import CheckRule, ClusterQueue, Flavor, LocalQueue, PreemptionRules
from unisono.engine.model.resources import FlavorResource
from unisono.engine.model.selection import LabelSelector, Requirement, Taint, Toleration
from unisono.engine.model.snapshot import AdmissionCheck, Namespace, Snapshot
from unisono.engine.model.workload import (
    Admission,
    CheckState,
    PodSet,
    PodSetAssignment,
    TopologyRequest,
    Workload,
)

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
    breaks("pods-not-ready", *admits(msgspec.structs.replace(world, admitted_workloads=(leaving,))))


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


# --- counts and flavors ---------------------------------------------------------------------------


F, G = FlavorName("f"), FlavorName("g")
TWO = queue("q", groups=(group({"f": {"gpu": "8"}, "g": {"gpu": "8"}}),))


def of(*pod_sets: PodSet, **options: Any) -> Workload:
    return job("a", "q", pod_sets=pod_sets, **options)


def case(
    workload: Workload, *assignments: PodSetAssignment, where: ClusterQueue = TWO, **options: Any
) -> tuple[Snapshot, Plan]:
    given = Admission(queue=QueueName("q"), pod_sets=assignments)
    world = snapshot(where, waiting=(workload,), **options)
    return world, plan(admissions=(admit(workload, admission=given),))


def take(name: str, count: int, **flavors: str) -> PodSetAssignment:
    return PodSetAssignment(
        name=name,
        count=count,
        flavors=tuple((ResourceName(res), FlavorName(f)) for res, f in sorted(flavors.items())),
    )


MAIN = pods(2, {"gpu": 1})


def test_every_pod_set_is_assigned_once() -> None:
    head = pods(1, {"gpu": 1}, "head")
    passes(*case(of(head, MAIN), take("head", 1, gpu="f"), take("main", 2, gpu="g")))
    breaks("pod-sets", *case(of(head, MAIN), take("main", 2, gpu="f")))
    breaks("pod-sets", *case(of(MAIN), take("main", 2, gpu="f"), take("main", 2, gpu="f")))
    breaks("pod-sets", *case(of(MAIN), take("other", 2, gpu="f")))


def test_partial_admission_shrinks_all_sets_by_one_step() -> None:
    """Scenario 27: cpu 20; m 1×1, w 10×2 minimum 5, e 6×1 minimum 3 gives 1, 7, 5."""
    where = queue("q", groups=(group({"f": {"cpu": "20"}}),))
    workload = of(
        pods(1, {"cpu": 1}, "m"),
        pods(10, {"cpu": 2}, "w", min_count=5),
        pods(6, {"cpu": 1}, "e", min_count=3),
    )

    def given(m: int, w: int, e: int) -> tuple[Snapshot, Plan]:
        sets = (take("m", m, cpu="f"), take("w", w, cpu="f"), take("e", e, cpu="f"))
        return case(workload, *sets, where=where)

    passes(*given(1, 7, 5))
    breaks("count", *given(1, 8, 3))  # each in its range, but of no common step
    breaks("count", *given(1, 4, 3))  # below the minimum
    breaks("count", *given(0, 7, 5))  # m has no minimum to shrink to


def test_without_a_minimum_nothing_shrinks() -> None:
    breaks("count", *case(of(MAIN), take("main", 1, gpu="f")))
    breaks("count", *case(of(MAIN), take("main", 3, gpu="f")))


def test_a_slice_is_partial_only_if_it_says_so() -> None:
    old = running(job("old", "q", 1))
    whole = of(pods(4, {"gpu": 1}), replaces=old.workload.key)
    breaks("count", *case(whole, take("main", 3, gpu="f"), admitted_workloads=(old,)))
    loose = of(pods(4, {"gpu": 1}, min_count=2), replaces=old.workload.key)
    world, made = case(loose, take("main", 3, gpu="f"), admitted_workloads=(old,))
    assert "count" not in {one.rule for one in audit(world, made)}
    breaks("count", *case(loose, take("main", 1, gpu="f"), admitted_workloads=(old,)))


def test_every_covered_resource_gets_a_flavor() -> None:
    breaks("flavor", *case(of(MAIN), take("main", 2)))
    passes(*case(of(pods(2, {"gpu": 0})), take("main", 2)))


def test_one_flavor_serves_a_group_of_resources() -> None:
    """Scenario 20: cpu and memory come from one flavor, gpu is another group's business."""
    where = queue(
        "q",
        groups=(
            group({"f": {"cpu": "8", "memory": "64"}, "g": {"cpu": "8", "memory": "64"}}),
            group({"h": {"gpu": "4"}}),
        ),
    )
    workload = of(pods(2, {"cpu": 2, "memory": 12, "gpu": 1}))
    passes(*case(workload, take("main", 2, cpu="g", memory="g", gpu="h"), where=where))
    breaks("flavor", *case(workload, take("main", 2, cpu="f", memory="g", gpu="h"), where=where))
    breaks("flavor", *case(workload, take("main", 2, cpu="g", memory="g", gpu="g"), where=where))


def test_pod_sets_of_one_group_are_alike() -> None:
    apart = (pods(1, {"gpu": 1}, "a"), pods(1, {"gpu": 1}, "b"))
    together = tuple(msgspec.structs.replace(each, group="x") for each in apart)
    differs = (take("a", 1, gpu="f"), take("b", 1, gpu="g"))
    passes(*case(of(*apart), *differs))
    breaks("flavor", *case(of(*together), *differs))
    passes(*case(of(*together), take("a", 1, gpu="g"), take("b", 1, gpu="g")))


def test_a_flavor_exists_and_belongs_to_the_queue() -> None:
    breaks("flavor", *case(of(MAIN), take("main", 2, gpu="h"), flavors=(Flavor(name=F),)))
    strange = (Flavor(name=F), Flavor(name=G), Flavor(name=FlavorName("h")))
    breaks("flavor", *case(of(MAIN), take("main", 2, gpu="h"), flavors=strange))
    breaks("flavor", *case(of(MAIN), take("main", 2, gpu="f", fpga="f")))


def on_f(pod_set: PodSet, *others: Flavor, **flavor: Any) -> tuple[Snapshot, Plan]:
    flavors = (Flavor(name=F, **flavor), *(others or (Flavor(name=G),)))
    given = assignment(pod_set, "f")
    return case(of(pod_set), given, flavors=flavors, topologies=(Topology("racks"),))


ONLY = Taint("gpu", "only", "NoSchedule")
GT, OTHER = Requirement("cores", "Gt", ("8",)), Requirement("zone", "In", ("z1",))
ARM = Requirement("arch", "In", ("arm",))


@pytest.mark.parametrize(
    ("pod_set", "flavor"),
    [
        ({}, {"node_taints": (ONLY,)}),
        ({"tolerations": (Toleration("gpu", value="other"),)}, {"node_taints": (ONLY,)}),
        ({}, {"node_taints": (Taint("gpu", "", "NoExecute"),)}),
        ({"node_selector": (("arch", "arm"),)}, {"node_labels": (("arch", "x86"),)}),
        ({"affinity": ((ARM,),)}, {"node_labels": (("arch", "x86"),)}),
        ({"affinity": ((ARM, OTHER), (GT,))}, {"node_labels": (("arch", "x"), ("cores", "8"))}),
        ({}, {"topology": "racks"}),
    ],
)
def test_pods_that_cannot_run_on_a_flavor(pod_set: dict[str, Any], flavor: dict[str, Any]) -> None:
    breaks("flavor-mismatch", *on_f(pods(1, {"gpu": 1}, **pod_set), **flavor))


@pytest.mark.parametrize(
    ("pod_set", "flavor"),
    [
        ({"tolerations": (Toleration("gpu", value="only"),)}, {"node_taints": (ONLY,)}),
        ({}, {"node_taints": (ONLY,), "tolerations": (Toleration("gpu", "Exists"),)}),
        ({}, {"node_taints": (Taint("gpu", "", "PreferNoSchedule"),)}),
        ({"node_selector": (("zone", "z1"),)}, {"node_labels": (("arch", "x86"),)}),
        ({"affinity": ((ARM,), (OTHER,))}, {"node_labels": (("arch", "x86"),)}),
        ({"affinity": ((ARM, OTHER),)}, {"node_labels": (("arch", "arm"),)}),
        ({"topology": TopologyRequest("required", "rack")}, {"topology": "racks"}),
    ],
)
def test_pods_that_can(pod_set: dict[str, Any], flavor: dict[str, Any]) -> None:
    passes(*on_f(pods(1, {"gpu": 1}, **pod_set), **flavor))


def test_topology_request_is_optional_if_every_flavor_has_one() -> None:
    passes(*on_f(pods(1, {"gpu": 1}), Flavor(name=G, topology="racks"), topology="racks"))


def test_scenario_23_a_resource_without_quota() -> None:
    workload = of(pods(1, {"gpu": 1, "fpga": 1}))
    breaks("uncovered", *case(workload, take("main", 1, gpu="f")))
    ignore = Policy(undeclared="Ignore")
    passes(*case(workload, take("main", 1, gpu="f"), policy=ignore))
    passes(*case(of(pods(1, {"gpu": 1, "fpga": 0})), take("main", 1, gpu="f")))


def charged(
    workload: Workload, where: ClusterQueue, *given: PodSetAssignment
) -> dict[FlavorResource, int]:
    world = SnapshotIndex(snapshot(where, waiting=(workload,)))
    made = Admission(queue=where.name, pod_sets=given)
    return dict(world.charge(workload, made).amounts)


def test_what_is_charged() -> None:
    counted = queue("q", groups=(group({"f": {"pods": "9", "gpu": "9"}, "g": {"gpu": "9"}}),))
    workload = of(pods(5, {"gpu": 2}), reclaimable=(("main", 2),))
    on_f = charged(workload, counted, take("main", 5, gpu="f", pods="f"))
    assert on_f == {FlavorResource("f", GPU): 6, FlavorResource("f", PODS): 3}
    on_g = charged(workload, counted, take("main", 5, gpu="g", pods="g"))
    assert on_g == {FlavorResource("g", GPU): 6}  # g does not meter pods
    gone = charged(workload, queue("q", groups=()), take("main", 5, gpu="g"))
    assert gone == {FlavorResource("g", GPU): 6}  # no longer listed, still charged


def test_pods_need_a_flavor_where_they_are_covered() -> None:
    """Scenario 24: quota for 3 pods."""
    where = queue("q", groups=(group({"f": {"cpu": "100", "pods": "3"}}),))
    workload = of(pods(4, {"cpu": 1}))
    breaks("flavor", *case(workload, take("main", 4, cpu="f"), where=where))
    breaks("over-quota", *case(workload, take("main", 4, cpu="f", pods="f"), where=where))
    three = of(pods(3, {"cpu": 1}))
    passes(*case(three, take("main", 3, cpu="f", pods="f"), where=where))


def test_pods_that_are_done_need_nothing() -> None:
    done = of(MAIN, reclaimable=(("main", 2),))
    passes(*case(done, take("main", 2)))
