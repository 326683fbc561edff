"""Volcano's queues as one quota tree."""

from __future__ import annotations

from typing import Any

from unisono.engine.model.names import CPU
from unisono.engine.model.queue import ClusterQueue, Cohort, ResourceGroup
from unisono.engine.model.resources import UNLIMITED
from unisono.kinds.decode import decode
from unisono.kinds.volcano.queue_quota import QueueQuota, quota_of
from unisono.kinds.volcano.queues import Queue


def queue(name: str, **spec: Any) -> Queue:
    found, problems = decode(Queue, {"metadata": {"name": name}, "spec": spec})
    assert found is not None, problems
    return found


def cpus(groups: tuple[ResourceGroup, ...]) -> tuple[int, int | None, int | None]:
    """Return nominal quota and limits of borrowing and lending, in whole cores."""
    (quota,) = [one for one in groups[0].flavors[0].resources if one.resource == CPU]
    values = (quota.nominal, quota.borrowing_limit, quota.lending_limit)
    nominal, borrowing, lending = (
        value if value in (None, UNLIMITED) else value // 1000 for value in values
    )
    assert nominal is not None
    return nominal, borrowing, lending


def named(found: QueueQuota, name: str) -> ClusterQueue:
    (one,) = [each for each in found.queues if each.name == f"volcano/{name}"]
    return one


def cohort(found: QueueQuota, name: str) -> Cohort:
    (one,) = [each for each in found.cohorts if each.name == f"volcano/{name}"]
    return one


def test_without_shares_every_queue_is_by_itself() -> None:
    found = quota_of([queue("a", capability={"cpu": "4"}), queue("b"), queue("root")])
    assert found.cohorts == ()
    assert {one.cohort for one in found.queues} == {None}
    assert cpus(named(found, "a").groups) == (4, None, None)
    assert named(found, "b").groups == ()
    assert named(found, "a").preemption.reclaim == "Never"


def test_what_a_queue_deserves_is_its_own() -> None:
    shares = {"deserved": {"cpu": "4"}, "capability": {"cpu": "6"}}
    kept = {"deserved": {"cpu": "3"}, "guarantee": {"resource": {"cpu": "1"}}}
    found = quota_of([queue("a", **shares), queue("b", **kept), queue("c")])
    assert cpus(named(found, "a").groups) == (4, 2, None)
    assert cpus(named(found, "b").groups) == (3, None, 2)
    assert cpus(named(found, "c").groups) == (0, None, None)
    assert {one.cohort for one in found.queues} == {"volcano/root"}
    assert named(found, "c").preemption.reclaim == "Any"


def test_children_share_what_their_parent_has() -> None:
    found = quota_of(
        [
            queue("org", deserved={"cpu": "8"}, capability={"cpu": "10"}),
            queue("a", parent="org", deserved={"cpu": "3"}),
            queue("b", parent="org", deserved={"cpu": "2"}),
        ]
    )
    assert cohort(found, "org").parent == "volcano/root"
    assert cpus(cohort(found, "org").groups) == (3, 2, None)
    assert named(found, "a").cohort == named(found, "org").cohort == "volcano/org"
    assert cpus(named(found, "org").groups)[0] == 0


def test_the_root_lends_what_there_is_where_a_part_is_guaranteed() -> None:
    kept = {"cpu": "4"}
    queues = [queue("a", deserved=kept, guarantee={"resource": kept}), queue("b")]
    assert cpus(cohort(quota_of(queues), "root").groups)[0] == UNLIMITED
    assert cpus(cohort(quota_of(queues, {"cpu": 16_000}), "root").groups)[0] == 12
    only = [queue("a", deserved=kept), queue("b")]
    assert cpus(cohort(quota_of(only, {"cpu": 16_000}), "root").groups)[0] == UNLIMITED
    most = queue("root", capability={"cpu": "10"})
    assert cpus(cohort(quota_of([*only, most]), "root").groups)[0] == 6


def test_a_parent_that_is_missing_or_goes_round_counts_as_the_root() -> None:
    found = quota_of([queue("a", parent="gone"), queue("b", parent="c"), queue("c", parent="b")])
    assert named(found, "a").cohort == "volcano/root"
    assert {one.parent for one in found.cohorts} == {None, "volcano/root"}


def test_a_queue_may_say_that_nothing_is_taken_back() -> None:
    found = quota_of([queue("a", reclaimable=False), queue("b", deserved={"cpu": "1"})])
    assert not named(found, "a").preemption.may_be_reclaimed
    assert named(found, "b").preemption.may_be_reclaimed
