"""Priorities: the integers that a real Slurm showed, and each factor by itself."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.support.priority_builders import QOS, TREE, WEIGHTS, cluster, job, multifactor_rules
from unisono.engine.cluster import restore
from unisono.engine.model.explanation import Held, NotEntitled
from unisono.engine.model.multifactor import Association, Factors, Partition, UsageRecord, Weights
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.workload import Workload
from unisono.engine.ordering.priority_order import priority_factors
from unisono.engine.state import changes
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot

USED = {
    "user/prod/mail": 321.762,
    "user/prod/news": 404.469,
    "account/prod": 726.231,
    "user/vision/games": 5457.1,
    "account/vision": 5457.1,
    "account/research": 5457.1,
    "account/root": 6183.331,
}
AGE = 39_000


def used_cluster(**changed: Any) -> ClusterState:
    records = tuple(UsageRecord(owner=owner, amount=amount) for owner, amount in USED.items())
    return cluster(multifactor_rules(**changed), now=AGE, usage=records)


def factors(state: ClusterState, workload: Workload) -> Factors:
    state.apply(changes.WorkloadWaits(workload))
    state.refresh()
    found = priority_factors(state, workload.key)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("workload", "priority"),
    [
        (job("m1", cpu=4, gpu=8, account="vision", user="man"), 5593),
        (job("l1", cpu=16, gpu=8, account="nlp", user="lp", qos="low"), 6095),
        (job("a1", cpu=1, gpu=8, account="prod", user="mail"), 10584),
        (job("m2", cpu=4, gpu=2, account="vision", user="man", nice=50), 5412),
    ],
)
@pytest.mark.parametrize("compat", [False, True])
def test_the_integers_of_sprio(workload: Workload, priority: int, compat: bool) -> None:
    assert factors(used_cluster(compat=compat), workload).priority == priority


def test_every_part_of_the_first_of_them() -> None:
    found = factors(used_cluster(), job("m1", cpu=4, gpu=8, account="vision", user="man"))
    assert found.age == pytest.approx(10.8333, abs=1e-4)
    assert found.fair_share == pytest.approx(3333.3333, abs=1e-4)
    assert (found.job_size, found.partition, found.qos) == (70.3125, 500.0, 1500.0)
    assert found.tres == (("cpu", 3.125), ("mem", 0.78125), ("gres/gpu", 175.0))


@pytest.mark.parametrize(("partition", "priority"), [("urgent", 3590), ("main", 2090)])
def test_before_anything_was_used_and_without_age(partition: str, priority: int) -> None:
    weights = msgspec.structs.replace(WEIGHTS, fair_share=0, age=0)
    wanted = job("pa", cpu=2, gpu=1, account="prod", user="mail", partition=partition)
    assert factors(used_cluster(weights=weights), wanted).priority == priority


def test_an_operator_may_set_a_priority() -> None:
    rules = multifactor_rules(associations=(*TREE, Association(account="prod", user="root")))
    wanted = job("op", account="prod", user="root", priority=10_000)
    found = factors(cluster(rules), wanted)
    assert found == Factors(priority=10_000, is_set=True)


def test_no_other_user_may_and_the_refusal_says_so() -> None:
    state = used_cluster()
    factors(state, job("a", account="prod", user="mail", priority=10_000))
    blocker = state.held[WorkloadKey("ns/a")]
    assert isinstance(blocker, NotEntitled)
    assert "only an operator may set a priority" in blocker.problem


def test_slurm_ignores_it_instead() -> None:
    state = used_cluster(compat=True)
    found = factors(state, job("a", cpu=1, gpu=8, account="prod", user="mail", priority=10_000))
    assert (found.priority, found.is_set) == (10584, False)
    assert not state.held


def test_a_negative_nice_is_for_operators() -> None:
    state = used_cluster()
    factors(state, job("a", account="prod", user="mail", nice=-1))
    assert isinstance(state.held[WorkloadKey("ns/a")], NotEntitled)


def test_held_is_priority_0() -> None:
    state = used_cluster()
    found = factors(state, job("a", account="prod", user="mail", hold="admin"))
    assert found.priority == 0
    assert state.held[WorkloadKey("ns/a")] == Held(by="admin")


@pytest.mark.parametrize(("from_submission", "age"), [(False, 5.0), (True, 1000 * 57 / 3600)])
def test_what_was_held_grows_no_older(from_submission: bool, age: float) -> None:
    state = used_cluster(age_from_submission=from_submission)
    factors(state, job("a", account="prod", user="mail", hold="user"))
    factors(state, job("a", account="prod", user="mail"))
    state.apply(changes.TimePassed(Instant(AGE + 18_000)))
    for again in (state, restore(snapshot(state))):
        found = priority_factors(again, WorkloadKey("ns/a"))
        assert found is not None
        assert found.age == pytest.approx(age)


def test_the_sum_is_cut_off_and_bounded() -> None:
    rules = {"weights": Weights(), "partitions": (), "qos": ()}
    wanted = job("a", account="prod", user="mail", nice=2_000_000_000)
    assert factors(used_cluster(**rules), wanted).priority == 1
    rules["weights"] = Weights(qos=10**12)
    rules["qos"] = QOS
    assert (
        factors(used_cluster(**rules), job("b", account="prod", qos="high")).priority == 2**32 - 1
    )


def test_age_stops_at_the_largest() -> None:
    state = used_cluster()
    state.apply(changes.TimePassed(Instant(10**9)))
    assert factors(state, job("a", account="prod", user="mail")).age == 1000.0


def test_raw_values_instead_of_parts() -> None:
    rules: dict[str, Any] = {
        "raw": ("partition", "qos", "tres", "association"),
        "weights": Weights(partition=2, qos=3, association=5, tres=(("gres/gpu", 7.0),)),
        "associations": (*TREE, Association(account="prod", user="ann", priority=11)),
    }
    found = factors(used_cluster(**rules), job("a", gpu=8, account="prod", user="ann"))
    assert (found.partition, found.qos, found.association) == (20.0, 150.0, 55.0)
    assert found.tres == (("gres/gpu", 56.0),)


def test_small_jobs_may_be_favored() -> None:
    state = used_cluster(favor_small=True, weights=Weights(job_size=1000))
    found = factors(state, job("a", cpu=4, account="prod", user="mail"))
    assert found.job_size == pytest.approx(1000 * (3 / 4 + 124 / 128) / 2)
    whole = factors(state, job("b", cpu=32, pods=4, account="prod", user="mail"))
    assert whole.job_size == 0


def test_size_may_be_relative_to_time() -> None:
    state = used_cluster(small_relative_to_time=True, weights=Weights(job_size=1000))
    wanted = job("a", cpu=32, account="prod", user="mail", max_execution_ms=600_000)
    assert factors(state, wanted).job_size == pytest.approx(1000 * (32 / 10 / 128))


def test_a_priority_class_is_added() -> None:
    state = used_cluster(weights=Weights())
    assert factors(state, job("a", account="prod", user="mail", priority=None)).priority == 1
    wanted = msgspec.structs.replace(job("b", account="prod", user="mail", site=5), priority=1000)
    assert factors(state, wanted).priority == 1005


def test_a_partition_is_measured_by_its_own_nodes() -> None:
    labelled = Partition(name="one", node_labels=(("kind", "big"),), job_factor=1)
    state = used_cluster(
        partitions=(labelled,), weights=Weights(tres=(("gres/gpu", 800.0),)), qos=()
    )
    node = state.nodes.table.nodes[state.nodes.table.row_of[next(iter(state.nodes.table.row_of))]]
    assert node is not None
    state.apply(changes.NodeSet(msgspec.structs.replace(node, labels=(("kind", "big"),))))
    wanted = job("a", gpu=4, account="prod", user="mail", partition="one")
    assert factors(state, wanted).tres == (("gres/gpu", 400.0),)
