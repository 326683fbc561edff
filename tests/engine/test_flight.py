"""A recorded decision can be made again, byte for byte, whatever happened before it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import msgspec
import pytest

from tests.support.quota_builders import job, pods, queue
from tests.support.quota_builders import snapshot as world
from unisono.engine.cluster import restore
from unisono.engine.dry_run import leave, refuse_if_broken
from unisono.engine.explain.waiting import explanations
from unisono.engine.flight import Tape, Unreadable, encoded, first_difference, replay
from unisono.engine.model.names import Instant, NodeName, WorkloadKey
from unisono.engine.model.node import Node
from unisono.engine.model.plan import evictions
from unisono.engine.model.policy import Backfill, FairSharing, Policy
from unisono.engine.model.queue import PreemptionRules
from unisono.engine.model.resources import amounts
from unisono.engine.state.apply_plan import apply_plan
from unisono.engine.state.changes import (
    NodeGone,
    NodeSet,
    PolicySet,
    QueueSet,
    TimePassed,
    WorkloadGone,
    WorkloadWaits,
)
from unisono.engine.state.cluster import ClusterState

WITHIN = PreemptionRules(within_queue="LowerPriority", reclaim="Any")
POLICIES = {
    "kueue": Policy(),
    "fair": Policy(fair_sharing=FairSharing()),
    "easy": Policy(backfill=Backfill(dates=1)),
    "three dates": Policy(backfill=Backfill(dates=3)),
    "conservative": Policy(backfill=Backfill()),
    "shortest first": Policy(backfill=Backfill(dates=1, shortest_first=True)),
}


@dataclass
class Reel:
    """Keeps recordings; each ends after so many lines."""

    most: int = 20
    recordings: list[list[bytes]] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        return len(self.recordings[-1]) > self.most

    def begin(self, base: bytes) -> None:
        self.recordings.append([base])

    def add(self, decision: bytes) -> None:
        self.recordings[-1].append(decision)


def node(number: int) -> Node:
    return Node(name=NodeName(f"n{number}"), allocatable=amounts({"gpu": 4}))


class Life:
    """A small cluster to which things happen by dice."""

    def __init__(self, policy: Policy, seed: int, *, most: int = 20) -> None:
        self.dice = random.Random(seed)
        self.state: ClusterState = restore(
            world(
                queue("a", "8", "all", preemption=WITHIN),
                queue("b", "8", "all"),
                policy=policy,
                nodes=tuple(node(number) for number in range(4)),
            )
        )
        self.reel = Reel(most)
        self.tape = Tape(self.reel)
        self.now = Instant(0)
        self.made = 0

    def step(self) -> None:
        """Let something happen, and decide until nothing changes."""
        dice, state = self.dice, self.state
        self.now = Instant(self.now + dice.randrange(0, 60_000))
        state.apply(TimePassed(self.now))
        for _ in range(dice.randrange(0, 3)):
            self._submit()
        if dice.random() < 0.5 and state.running:
            state.apply(WorkloadGone(dice.choice(sorted(state.running))))
        if dice.random() < 0.1 and state.waiting:
            state.apply(WorkloadGone(dice.choice(sorted(state.waiting))))
        if dice.random() < 0.1:
            change = NodeGone(NodeName("n3")) if dice.random() < 0.5 else NodeSet(node(3))
            state.apply(change)
        if dice.random() < 0.05:
            state.apply(QueueSet(queue("b", dice.choice(["6", "8"]), "all")))
        for _ in range(50):
            made = self.tape.plan(state, self.now)
            refuse_if_broken(state, made)
            changed = apply_plan(state, made)
            for eviction in evictions(made):
                leave(state, eviction.workload, self.now)
            if not changed:
                break
        else:
            raise AssertionError("workloads displace each other for ever")
        if dice.random() < 0.3:
            list(explanations(state))  # people look at it

    def _submit(self) -> None:
        dice, self.made = self.dice, self.made + 1
        limit = dice.choice([None, 30_000, 60_000, 300_000, 900_000])
        made = job(
            f"j{self.made}",
            dice.choice("ab"),
            pod_sets=(pods(dice.choice([1, 2, 4]), {"gpu": dice.choice([1, 2, 4])}),),
            priority=dice.choice([0, 0, 0, 5]),
            created_at=self.now,
            time_limit_ms=limit,
        )
        self.state.apply(WorkloadWaits(made))


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("seed", range(2))
def test_every_decision_of_a_random_life_is_made_again(name: str, seed: int) -> None:
    life = Life(POLICIES[name], seed)
    for _ in range(80):
        life.step()
    assert len(life.reel.recordings) > 1
    numbers = []
    for recording in life.reel.recordings:
        for again, _ in replay(recording):
            difference = first_difference(again.recorded, encoded(again.made))
            assert again.is_identical, f"decision {again.number}: {difference}"
            numbers.append(again.number)
    assert numbers == list(range(1, life.tape.decisions + 1))


def test_recording_changes_no_decision() -> None:
    """Only the work is another: where a recording begins, dates are worked out anew."""
    for policy in (POLICIES["kueue"], POLICIES["fair"]):
        recorded, plain = Life(policy, 1), Life(policy, 1, most=1 << 30)
        for life in (recorded, plain):
            for _ in range(40):
                life.step()
        last = [list(replay(life.reel.recordings[-1]))[-1][0].made for life in (recorded, plain)]
        assert last[0] == last[1]


def test_a_plan_that_was_not_carried_out_is_not_carried_out_again() -> None:
    life = Life(POLICIES["kueue"], 3, most=1 << 30)
    life.state.apply(WorkloadWaits(job("first", "a", 4)))
    refused = life.tape.plan(life.state, life.now)  # as if the auditor had refused it
    assert refused.admissions
    life.state.apply(WorkloadWaits(job("second", "b", 4)))
    apply_plan(life.state, life.tape.plan(life.state, life.now))
    for _ in range(10):
        life.step()
    assert all(again.is_identical for again, _ in replay(life.reel.recordings[0]))


def test_a_policy_that_is_changed_on_the_way_is_part_of_the_recording() -> None:
    life = Life(POLICIES["kueue"], 5, most=1 << 30)
    for policy in (*POLICIES.values(), POLICIES["kueue"]):
        for _ in range(5):
            life.step()
        life.state.apply(PolicySet(policy))
    assert all(again.is_identical for again, _ in replay(life.reel.recordings[0]))


def test_a_difference_is_found_and_the_rest_is_compared_on_what_happened() -> None:
    life = Life(POLICIES["kueue"], 7, most=1 << 30)
    for _ in range(20):
        life.step()
    lines = life.reel.recordings[0]
    whole = lines[3].replace(b'"based_on"', b'"based_on_"', 1)
    assert whole != lines[3]
    entry = msgspec.json.decode(lines[3])
    entry["plan"]["examined"] = ["somewhere else"]
    lines[3] = msgspec.json.encode(entry)
    found = list(replay(lines))
    differing = [again for again, _ in found if not again.is_identical]
    assert [again.number for again in differing] == [3]
    path, old, new = (
        first_difference(differing[0].recorded, encoded(differing[0].made)) or ("",) * 3
    )
    assert path.startswith("plan.examined[")
    assert old == "somewhere else"
    assert new != old


def test_what_cannot_be_read_says_so() -> None:
    with pytest.raises(Unreadable, match="its first line cannot be read"):
        list(replay([]))
    life = Life(POLICIES["kueue"], 9)
    life.state.apply(WorkloadWaits(job("w", "a", 1)))
    life.tape.plan(life.state, life.now)
    base = life.reel.recordings[0][0]
    with pytest.raises(Unreadable, match="decision 1 cannot be read"):
        list(replay([base, b"{}"]))
    other = base.replace(b'"format":1', b'"format":9')
    with pytest.raises(Unreadable, match="it is of format 9"):
        list(replay([other]))
    assert WorkloadKey("ns/w") in life.state.waiting
