"""Long queues: which workloads are evaluated when one ends, and which do not delay each other.

Scenarios 10 to 12 and 20 of the specification of performance, with fewer workloads: what counts is
how often the engine evaluates, which does not depend on how long that takes.
"""

from __future__ import annotations

import pytest

from tests.support.quota_builders import group, job, pods, queue, running, snapshot
from unisono.engine import candidates
from unisono.engine.cluster import restore
from unisono.engine.dry_run import dry_run
from unisono.engine.explain.waiting import explanation
from unisono.engine.model.explanation import GangDoesNotFit
from unisono.engine.model.names import Instant, NodeName, WorkloadKey
from unisono.engine.model.node import Node
from unisono.engine.model.plan import Plan
from unisono.engine.model.resources import amounts
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.nominate import nominate
from unisono.engine.state.changes import TimePassed, WorkloadGone
from unisono.engine.state.cluster import ClusterState

MANY = 400


class Evaluations:
    """Counts the workloads that the engine evaluates."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0

        def counted(*given: object, **more: object) -> object:
            self.count += 1
            return nominate(*given, **more)  # type: ignore[arg-type]  # whatever it takes

        monkeypatch.setattr(candidates, "nominate", counted)

    def taken(self) -> int:
        """Return how often since the last question."""
        count, self.count = self.count, 0
        return count


def admitted(plans: list[Plan]) -> list[WorkloadKey]:
    return [admit.workload for made in plans for admit in made.admissions]


def at_rest(world: Snapshot) -> tuple[ClusterState, list[Plan]]:
    state = restore(world)
    return state, dry_run(state, Instant(1))


def test_only_workloads_it_concerns_are_evaluated_when_one_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evaluations = Evaluations(monkeypatch)
    both = group({"f": {"gpu": "4"}}), group({"g": {"cpu": "4"}})
    holder, other = job("holder", "a", 4), job("other", "a", pod_sets=(pods(1, {"cpu": 4}),))
    waiting = tuple(job(f"w{number:03}", "a", 4) for number in range(MANY))
    state, plans = at_rest(
        snapshot(
            queue("a", groups=both),
            admitted_workloads=(running(holder), running(other, "g")),
            waiting=waiting,
        )
    )
    assert (admitted(plans), evaluations.taken()) == (
        [],
        1,
    )  # all are of one shape: one verdict for all
    state.apply(WorkloadGone(other.key))
    state.apply(TimePassed(Instant(2)))
    assert (dry_run(state, Instant(2)), evaluations.taken()) == ([], 0)
    state.apply(WorkloadGone(holder.key))
    assert admitted(dry_run(state, Instant(3))) == [waiting[0].key]
    assert evaluations.taken() == 2  # the one that starts, and the first of the others


def test_a_workload_that_needs_other_things_is_not_delayed_by_those_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evaluations = Evaluations(monkeypatch)
    both = group({"f": {"gpu": "4"}}), group({"g": {"cpu": "1000"}})
    ahead = tuple(job(f"a{number:03}", "a", 5) for number in range(MANY))
    behind = tuple(
        job(f"b{number:03}", "a", pod_sets=(pods(1, {"cpu": 1}),), created_at=Instant(1))
        for number in range(100)
    )
    _, plans = at_rest(snapshot(queue("a", groups=both), waiting=ahead + behind))
    assert sorted(admitted(plans)) == [each.key for each in behind]
    assert evaluations.taken() <= len(behind) + 2  # not at all those ahead, for each of them again


def test_as_many_as_fit_start_at_once() -> None:
    waiting = tuple(job(f"w{number:03}", "a") for number in range(540))
    state, plans = at_rest(snapshot(queue("a", "536"), waiting=waiting))
    assert sorted(admitted(plans)) == [each.key for each in waiting[:536]]
    assert len(state.waiting) == 4


def test_reports_how_many_pods_of_a_gang_have_a_place() -> None:
    eight = amounts({"gpu": 8})
    nodes = tuple(Node(name=NodeName(f"n{number}"), allocatable=eight) for number in range(3))
    gang = job("gang", "a", pod_sets=(pods(4, {"gpu": 8}),))
    state, plans = at_rest(snapshot(queue("a", "1000"), nodes=nodes, waiting=(gang,)))
    assert (admitted(plans), len(state.running)) == ([], 0)
    found = explanation(state, gang.key)
    assert found is not None
    (fact,) = found.blockers
    assert isinstance(fact, GangDoesNotFit)
    assert (fact.pods, fact.pods_placeable) == (4, 3)
