"""Overcommitted shared GPUs, and whole GPUs that are shared, are caught."""

from __future__ import annotations

import msgspec

from tests.support.audit_plans import breaks, machine, of, on, passes
from tests.support.quota_builders import admission, admit, group, plan, pods, queue, running
from tests.support.quota_builders import snapshot as world
from unisono.engine.model.names import NodeName
from unisono.engine.model.node import Node, NodePod
from unisono.engine.model.plan import Plan
from unisono.engine.model.resources import amounts, share_of
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import Admission, AdmittedWorkload, Workload

replace = msgspec.structs.replace
GPU = "nvidia.com/gpu"
MILLI = str(share_of(GPU))
QUEUE = queue("q", groups=(group({"f": {GPU: "99", MILLI: "99000"}}),))


def node(gpus: int) -> Node:
    return machine("n", 0, more={GPU: gpus})


def cluster(gpus: int, *waiting: Workload, **options: object) -> Snapshot:
    return world(QUEUE, nodes=(node(gpus),), waiting=waiting, **options)


def on_devices(workload: Workload, *devices: int) -> Admission:
    given = on(admission(workload), {"n": workload.pod_sets[0].count})
    return replace(given, pod_sets=(replace(given.pod_sets[0], devices=devices),))


def starts(workload: Workload, *devices: int) -> Plan:
    return plan(admissions=(admit(workload, admission=on_devices(workload, *devices)),))


def runs(workload: Workload, *devices: int) -> AdmittedWorkload:
    return replace(running(workload), admission=on_devices(workload, *devices))


def test_a_device_holds_a_thousand() -> None:
    new, old = of(pods(2, {MILLI: 300})), of(pods(1, {MILLI: 500}), name="old")
    there = cluster(2, new, admitted_workloads=(runs(old, 0),))
    passes(there, starts(new, 0, 1))
    breaks("node-overfull", there, starts(new, 0, 0))
    other = NodePod(key="x/y", node=NodeName("n"), requests=amounts({MILLI: 800}), device=1)
    breaks("node-overfull", replace(there, pods=(other,)), starts(new, 0, 1))


def test_a_device_is_one_that_the_node_has() -> None:
    new = of(pods(1, {MILLI: 300}))
    breaks("node-overfull", cluster(2, new), starts(new, 2))


def test_every_pod_that_shares_has_a_device_and_no_other_pod() -> None:
    new, whole = of(pods(2, {MILLI: 300})), of(pods(1, {GPU: 1}))
    breaks("unplaced", cluster(2, new), starts(new, 0))
    passes(cluster(2, whole), starts(whole))
    breaks("unplaced", cluster(2, whole), starts(whole, 0))


def test_whole_gpus_are_not_shared() -> None:
    whole, part = of(pods(1, {GPU: 1})), of(pods(1, {MILLI: 100}), name="part")
    passes(cluster(2, whole, admitted_workloads=(runs(part, 0),)), starts(whole))
    breaks("node-overfull", cluster(1, whole, admitted_workloads=(runs(part, 0),)), starts(whole))
    breaks("node-overfull", cluster(1, part, admitted_workloads=(runs(whole),)), starts(part, 0))
