"""Pods without a node, on one that does not take them, or on one that is full, are caught."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.support.audit_plans import BIG, breaks, machine, of, on, passes, started, there, world
from tests.support.quota_builders import (
    admission,
    admit,
    group,
    job,
    plan,
    pods,
    preempt,
    queue,
    running,
    snapshot,
)
from unisono.engine.audit import Rule
from unisono.engine.model.names import FlavorName, NodeName
from unisono.engine.model.node import HOSTNAME, Node, NodePod
from unisono.engine.model.plan import Plan
from unisono.engine.model.queue import Flavor
from unisono.engine.model.resources import amounts
from unisono.engine.model.selection import Requirement, Taint, Toleration
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import TopologyRequest

replace = msgspec.structs.replace


def test_every_pod_has_a_node() -> None:
    gang = of(pods(3, {"gpu": 4}))
    cluster = world(machine("n1"), machine("n2"), waiting=(gang,))
    passes(cluster, started(gang, {"n1": 2, "n2": 1}))
    breaks("unplaced", cluster, started(gang, {"n1": 2}))
    breaks("unplaced", cluster, started(gang, {}))
    breaks("unplaced", cluster, started(gang, {"n1": 2, "n2": 2}))
    breaks("unplaced", cluster, started(gang, {"n1": 3, "n2": 0}))


def test_a_node_is_named_once() -> None:
    gang = of(pods(2, {"gpu": 4}))
    cluster = world(machine("n1"), waiting=(gang,))
    twice = (NodeName("n1"), 1)
    given = admission(gang)
    sets = (replace(given.pod_sets[0], nodes=(twice, twice)),)
    made = plan(admissions=(admit(gang, admission=replace(given, pod_sets=sets)),))
    breaks("unplaced", cluster, made)


def test_pods_that_are_done_need_no_node() -> None:
    gang = of(pods(3, {"gpu": 4}), reclaimable=(("main", 2),))
    cluster = world(machine("n1", 4), waiting=(gang,))
    passes(cluster, started(gang, {"n1": 1}))
    breaks("unplaced", cluster, started(gang, {"n1": 3}))


def test_without_nodes_none_is_named() -> None:
    gang = of(pods(1, {"gpu": 4}))
    empty = world(waiting=(gang,))
    passes(empty, started(gang, {}))
    breaks("unplaced", empty, started(gang, {"n1": 1}))


def test_an_elastic_set_takes_what_has_a_place() -> None:
    gang = of(pods(8, {"gpu": 8}, min_count=2), pods(4, {"gpu": 0}, "more", min_count=1))
    cluster = world(machine("n1"), machine("n2"), machine("n3"), waiting=(gang,))

    def with_counts(*counts: int) -> Plan:
        given = admission(gang)
        sets = tuple(
            replace(each, count=count) for each, count in zip(given.pod_sets, counts, strict=True)
        )
        places = ({f"n{i + 1}": 1 for i in range(counts[0])}, {"n1": counts[1]})
        made = on(replace(given, pod_sets=sets), *places)
        return plan(admissions=(admit(gang, admission=made),))

    passes(cluster, with_counts(3, 4))
    breaks("count", cluster, with_counts(1, 4))
    needs_six = replace(cluster, waiting=(replace(gang, min_total=6),))
    passes(needs_six, with_counts(2, 4))
    breaks("count", needs_six, with_counts(2, 3))


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (None, "no node n1"),
        (machine("n1", ready=False), "not ready"),
        (machine("n1", unschedulable=True), "unschedulable"),
        (machine("n1", held_for="ns/b"), "held for ns/b"),
    ],
)
def test_a_closed_node_accepts_no_pods(bad: Node | None, why: str) -> None:
    gang = of(pods(1, {"gpu": 1}))
    nodes = (machine("n2"),) if bad is None else (bad, machine("n2"))
    found = breaks("node-closed", world(*nodes, waiting=(gang,)), started(gang, {"n1": 1}))
    assert why in found.message


def test_a_held_or_cordoned_node_is_open_to_its_gang_and_to_tolerations() -> None:
    cordoned = machine("n1", unschedulable=True, held_for="ns/a")
    keen = of(
        pods(
            1,
            {"gpu": 1},
            tolerations=(Toleration("node.kubernetes.io/unschedulable", "Exists"),),
        )
    )
    passes(world(cordoned, waiting=(keen,)), started(keen, {"n1": 1}))


OLD, SSD = Requirement("gen", "Lt", ("3",)), Requirement("disk", "In", ("ssd",))
NOT_HERE = Requirement("metadata.name", "NotIn", ("n1",))


@pytest.mark.parametrize(
    ("labels", "taints", "options", "rule"),
    [
        ({}, (), {"node_selector": (("disk", "ssd"),)}, "node-mismatch"),
        ({"disk": "hdd"}, (), {"node_selector": (("disk", "ssd"),)}, "node-mismatch"),
        ({"disk": "ssd"}, (), {"node_selector": (("disk", "ssd"),)}, None),
        ({}, (), {"node_selector": ((HOSTNAME, "n1"),)}, None),
        ({"gen": "2"}, (), {"affinity": ((OLD,), (SSD,))}, None),
        ({"gen": "3", "disk": "ssd"}, (), {"affinity": ((OLD,), (SSD,))}, None),
        ({"gen": "3"}, (), {"affinity": ((OLD,), (SSD,))}, "node-mismatch"),
        ({"gen": "new"}, (), {"affinity": ((OLD,),)}, "node-mismatch"),
        ({"gen": "2"}, (), {"affinity": ((OLD, SSD),)}, "node-mismatch"),
        ({}, (), {"affinity": ((),)}, "node-mismatch"),
        ({}, (), {"affinity": ((NOT_HERE,),)}, "node-mismatch"),
        ({}, (Taint("spot"),), {}, "node-mismatch"),
        ({}, (Taint("spot", "", "NoExecute"),), {}, "node-mismatch"),
        ({}, (Taint("spot", "", "PreferNoSchedule"),), {}, None),
        ({}, (Taint("spot"),), {"tolerations": (Toleration("spot", "Exists"),)}, None),
        ({}, (Taint("spot"),), {"tolerations": (Toleration("other", "Exists"),)}, "node-mismatch"),
    ],
)
def test_selectors_affinity_and_taints(
    labels: dict[str, str], taints: tuple[Taint, ...], options: dict[str, Any], rule: Rule | None
) -> None:
    gang = of(pods(1, {"gpu": 1}, **options))
    cluster = world(machine("n1", 8, labels, taints=taints), waiting=(gang,))
    made = started(gang, {"n1": 1})
    if rule is None:
        passes(cluster, made)
    else:
        breaks(rule, cluster, made)


def test_a_flavor_brings_its_labels_and_tolerations() -> None:
    gang = of(pods(1, {"gpu": 1}))
    flavor = Flavor(
        name=FlavorName("f"),
        node_labels=(("kind", "f"),),
        tolerations=(Toleration("spot", "Exists"),),
    )
    good = machine("n1", 8, {"kind": "f"}, taints=(Taint("spot"),))
    passes(world(good, waiting=(gang,), flavors=(flavor,)), started(gang, {"n1": 1}))
    bad = machine("n1", 8, {"kind": "g"})
    found = breaks(
        "node-mismatch", world(bad, waiting=(gang,), flavors=(flavor,)), started(gang, {"n1": 1})
    )
    assert found.message == "main on n1: kind is g, not f"


def test_no_gpu_is_booked_twice() -> None:
    gang, other = of(pods(2, {"gpu": 4})), of(pods(1, {"gpu": 1}), name="b")
    daemon = NodePod(key="kube-system/daemon", node=NodeName("n1"), requests=amounts({"gpu": 1}))
    leaving = there(other, {"n1": 1}, evicting=True)
    passes(world(machine("n1"), waiting=(gang,)), started(gang, {"n1": 2}))
    for busy in ({"pods": (daemon,)}, {"admitted_workloads": (leaving,)}):
        found = breaks(
            "node-overfull",
            world(machine("n1"), waiting=(gang,), **busy),
            started(gang, {"n1": 2}),
        )
        assert found.message == "main on n1: gpu is overbooked by 1"


def test_two_admissions_share_a_node_only_if_both_fit() -> None:
    first, second = of(pods(1, {"gpu": 5})), job("b", "r", 4)
    queues = (queue("q", "99"), queue("r", "99"))
    cluster = snapshot(*queues, nodes=(machine("n1"), machine("n2")), waiting=(first, second))

    def both(node_of_second: str) -> Plan:
        one = admit(first, admission=on(admission(first), {"n1": 1}))
        two = admit(second, admission=on(admission(second), {node_of_second: 1}))
        return plan(admissions=(one, two))

    passes(cluster, both("n2"))
    breaks("node-overfull", cluster, both("n1"))


def test_what_pods_do_not_ask_for_is_not_their_fault() -> None:
    hungry = of(pods(1, {"gpu": 9}), name="b")
    quiet = of(pods(1, {"gpu": 0}))
    cluster = world(machine("n1"), waiting=(quiet,), admitted_workloads=(there(hungry, {"n1": 1}),))
    passes(cluster, started(quiet, {"n1": 1}))


def test_a_node_takes_only_so_many_pods() -> None:
    gang = of(pods(111, {"gpu": 0}))
    breaks("node-overfull", world(machine("n1"), waiting=(gang,)), started(gang, {"n1": 111}))
    roomy = machine("n1", more={"pods": 111})
    passes(world(roomy, waiting=(gang,)), started(gang, {"n1": 111}))


def test_requests_of_nodes_may_differ_from_quota() -> None:
    gang = of(pods(2, {"gpu": 1}, node_requests=amounts({"slots": 3})))
    passes(world(machine("n1", 0, more={"slots": 6}), waiting=(gang,)), started(gang, {"n1": 2}))
    breaks(
        "node-overfull",
        world(machine("n1", 9, more={"slots": 5}), waiting=(gang,)),
        started(gang, {"n1": 2}),
    )


HIGH = of(pods(1, {"gpu": 8}), name="high", priority=5)
LOW, LOWER = of(pods(1, {"gpu": 8}), name="low"), of(pods(1, {"gpu": 8}), name="lower")


def preempting(*victims: str, place: str) -> Plan:
    made = preempt(HIGH, *victims)
    return plan(preemptions=(replace(made, admission=on(made.admission, {place: 1})),))


def test_victims_free_the_preemptors_nodes() -> None:
    cluster = world(
        machine("n1"),
        machine("n2"),
        waiting=(HIGH,),
        admitted_workloads=(there(LOW, {"n1": 1}), there(LOWER, {"n2": 1})),
    )
    passes(cluster, preempting("low", place="n1"))
    breaks("node-overfull", cluster, preempting("low", place="n2"))


def test_no_admission_on_nodes_of_a_preemptor() -> None:
    small = job("small", "r", pod_sets=(pods(1, {"gpu": 1}),))
    cluster = snapshot(
        BIG,
        queue("r", "9"),
        nodes=(machine("n1", 9), machine("n2")),
        waiting=(HIGH, small),
        admitted_workloads=(there(LOW, {"n1": 1}), there(LOWER, {"n2": 1})),
    )
    leave = preempting("low", place="n1")
    fits = replace(leave, admissions=started(small, {"n1": 1}).admissions)
    passes(cluster, fits)
    narrow = replace(cluster, nodes=(machine("n1", 8), machine("n2")))
    breaks("node-overfull", narrow, fits)
    in_the_way = replace(
        cluster,
        nodes=(machine("n1", 9), machine("n2")),
        waiting=(replace(HIGH, pod_sets=(pods(1, {"gpu": 9}),)), small),
    )
    breaks("preemption-short", in_the_way, fits)


def test_a_victim_may_be_needed_for_its_nodes_alone() -> None:
    """Spec quota, scenario 64: there is quota, but no rack holds both pods."""
    close = TopologyRequest("required", "rack")
    racks = {"n1": "r1", "n2": "r1", "n3": "r2", "n4": "r2"}
    wide = of(pods(2, {"gpu": 8}, topology=close), name="high", priority=5)
    cluster = world(
        *(machine(name, 8, {"rack": rack}) for name, rack in racks.items()),
        waiting=(wide,),
        admitted_workloads=(there(LOW, {"n1": 1}), there(LOWER, {"n3": 1})),
    )

    def leaving(*victims: str) -> Plan:
        made = preempt(wide, *victims)
        place = {"n3": 1, "n4": 1}
        return plan(preemptions=(replace(made, admission=on(made.admission, place)),))

    passes(cluster, leaving("lower"))
    found = breaks("victim-needless", cluster, leaving("lower", "low"))
    assert "ns/low could stay" in found.message
    unseated = replace(cluster, admitted_workloads=(running(LOW), there(LOWER, {"n3": 1})))
    breaks("victim-needless", unseated, leaving("lower", "low"))


def test_a_victim_on_nodes_is_related_even_if_it_uses_no_quota_of_the_preemptor() -> None:
    cpu_only = of(pods(1, {"cpu": 1}), name="low")
    free = queue("q", preemption=BIG.preemption, groups=(group({"f": {"cpu": "9", "gpu": "9"}}),))
    held = there(cpu_only, {"n1": 1})
    bound = preempting("low", place="n1")
    nodes = (machine("n1", more={"pods": 1}),)
    cluster = snapshot(free, nodes=nodes, waiting=(HIGH,), admitted_workloads=(held,))
    passes(cluster, bound)
    nowhere = replace(cluster, admitted_workloads=(running(cpu_only),))
    breaks("victim-unrelated", nowhere, bound)


def test_an_elastic_job_keeps_the_nodes_that_its_pods_run_on() -> None:
    old = of(pods(2, {"gpu": 4}), name="old")
    nodes = (machine("n1"), machine("n2"))

    def grown(count: int, **places: int) -> tuple[Snapshot, Plan]:
        new = of(pods(count, {"gpu": 4}), replaces=old.key)
        decided = admit(new, admission=on(admission(new), places), replaces=old.key)
        cluster = world(*nodes, waiting=(new,), admitted_workloads=(there(old, {"n1": 2}),))
        return cluster, plan(admissions=(decided,))

    passes(*grown(3, n1=2, n2=1))
    passes(*grown(1, n1=1))
    breaks("slice", *grown(3, n1=1, n2=2))
    breaks("slice", *grown(1, n2=1))


def test_pods_that_run_stay_whatever_became_of_their_node() -> None:
    old, new = of(pods(1, {"gpu": 4}), name="old"), of(pods(2, {"gpu": 4}), replaces="ns/old")
    cordoned = machine("n1", unschedulable=True)
    cluster = world(
        cordoned, machine("n2"), waiting=(new,), admitted_workloads=(there(old, {"n1": 1}),)
    )

    def grown(**places: int) -> Plan:
        decided = admit(new, admission=on(admission(new), places), replaces=old.key)
        return plan(admissions=(decided,))

    passes(cluster, grown(n1=1, n2=1))
    breaks("node-closed", cluster, grown(n1=2))
