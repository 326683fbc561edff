"""Pods that share GPUs, on random clusters: no device holds too much, nothing is left behind."""

from __future__ import annotations

import random

import msgspec
import numpy as np
import pytest

from tests.support.effort import IS_LONG
from tests.support.quota_builders import group, pods, queue
from tests.support.quota_builders import snapshot as world
from unisono.engine.cluster import restore
from unisono.engine.cycle import plan
from unisono.engine.dry_run import one_cycle
from unisono.engine.model.names import Instant, LocalQueueKey, NodeName, WorkloadKey
from unisono.engine.model.node import Node, NodePod
from unisono.engine.model.policy import Backfill, Placement, Policy
from unisono.engine.model.resources import amounts, share_of
from unisono.engine.model.workload import Workload
from unisono.engine.state.changes import PodOnNode, TimePassed, WorkloadGone, WorkloadWaits
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot

GPU = "nvidia.com/gpu"
MILLI = str(share_of(GPU))
QUEUE = queue("q", groups=(group({"f": {GPU: "99", MILLI: "99000"}}),))
POLICIES = (
    Policy(),
    Policy(placement=Placement(scoring="fgd")),
    Policy(placement=Placement(scoring="spread", gpu_mode="unconstrained")),
    Policy(backfill=Backfill(dates=1)),
    Policy(backfill=Backfill()),
)


def cluster(dice: random.Random, policy: Policy) -> ClusterState:
    """Return a few nodes with up to four GPUs each, and a queue that may use them all."""
    nodes = tuple(
        Node(name=NodeName(f"n{i}"), allocatable=amounts({GPU: dice.choice((0, 1, 2, 4))}))
        for i in range(dice.choice((1, 2, 4)))
    )
    state = restore(world(QUEUE, policy=policy, nodes=nodes))
    state.refresh()
    return state


def job(dice: random.Random, number: int, now: int) -> Workload:
    """Return a gang, or a single pod, of parts or of whole GPUs."""
    asked = dice.choice(({MILLI: dice.choice((100, 300, 500, 700, 1000))}, {GPU: 1}, {GPU: 2}))
    return Workload(
        key=WorkloadKey(f"ns/{number}"),
        uid=f"{number:03}",
        queue=LocalQueueKey("ns/q"),
        pod_sets=(pods(dice.choice((1, 1, 2, 5)), asked),),
        created_at=Instant(now),
        time_limit_ms=dice.choice((1000, 5000, 9000)),
        priority=dice.choice((0, 0, 1)),
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_any_story_is_kept_by_the_auditor_and_leaves_nothing_behind(policy: Policy) -> None:
    for seed in range(400 if IS_LONG else 12):
        dice = random.Random(seed)
        state = cluster(dice, policy)
        if dice.random() < 0.5:  # a pod of another scheduler shares an unknown GPU
            pod = NodePod(key="x/y", node=NodeName("n0"), requests=amounts({MILLI: 400}))
            state.apply(PodOnNode(pod))
        ends: list[tuple[int, WorkloadKey]] = []
        for step in range(12):
            now = Instant(step * 1000)
            state.apply(TimePassed(now))
            for _, key in [end for end in ends if end[0] <= now]:
                state.apply(WorkloadGone(key))
            ends = [end for end in ends if end[0] > now]
            state.apply(WorkloadWaits(job(dice, step, now)))
            changed = True
            while changed:
                again = plan(restore(snapshot(state)), now)
                made, changed = one_cycle(state, now)  # the auditor looks at every plan
                same = msgspec.structs.replace(again, based_on=made.based_on)
                assert msgspec.json.encode(same.admissions) == msgspec.json.encode(made.admissions)
                ends += [(now + dice.choice((1000, 4000)), a.workload) for a in made.admissions]
            check_devices(state)
        for key in [*state.running, *state.waiting]:
            state.apply(WorkloadGone(key))
        free = state.nodes.table.free
        if not state.nodes.pods:
            assert np.array_equal(free, state.nodes.table.allocatable), seed


def check_devices(state: ClusterState) -> None:
    """Count plainly which pod has which GPU."""
    for node in state.nodes.table.nodes:
        assert node is not None
        parts: dict[int, int] = {}
        whole = 0
        for running in state.running.values():
            for pod_set, given in zip(
                running.admitted.workload.pod_sets, running.admitted.admission.pod_sets, strict=True
            ):
                wanted = dict(pod_set.requests)
                where = [name for name, count in given.nodes for _ in range(count)]
                whole += where.count(node.name) * wanted.get(GPU, 0)  # type: ignore[call-overload]
                for name, device in zip(where, given.devices, strict=False):
                    if name == node.name:
                        parts[device] = parts.get(device, 0) + wanted[share_of(GPU)]
        assert all(part <= 1000 for part in parts.values())
        assert whole + len(parts) <= dict(node.allocatable)[GPU]  # type: ignore[index]
