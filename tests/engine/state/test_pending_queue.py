"""HeapQueue: the order inside one ClusterQueue, against a list that is sorted anew every time."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.support.effort import effort
from tests.support.quota_builders import job
from unisono.engine.model.explanation import Deactivated
from unisono.engine.model.names import Instant, LocalQueueKey
from unisono.engine.model.workload import Workload
from unisono.engine.state.gang_request import GangRequests
from unisono.engine.state.pending_queue import (
    EquivalenceClass,
    HeapQueue,
    PendingWorkload,
    equivalence_class_of,
)

WHY = (Deactivated(),)  # any fact will do
REQUESTS = GangRequests()


def waiting(
    name: str, size: int = 1, *, priority: int = 0, at: int = 0, lq: str = "q"
) -> PendingWorkload:
    workload = job(name, lq, size, priority=priority, created_at=Instant(at))
    return PendingWorkload(workload, REQUESTS.take(workload))


def head(queue: HeapQueue, workloads: list[PendingWorkload] | None = None) -> str | None:
    preemptor = next((w for w in workloads or () if w.workload.key == queue.preemptor), None)
    found = queue.head(preemptor)
    return found.workload.uid if found else None


def names(found: list[PendingWorkload]) -> list[str]:
    return [each.workload.uid for each in found]


def test_priority_then_time_then_identity() -> None:
    """Scenario 74: p2 has the higher priority, p1 is older than p3; b and a came together."""
    queue = HeapQueue()
    workloads = [
        waiting("p1", at=1),
        waiting("p2", priority=9, at=5),
        waiting("p3", 2, at=2),
        waiting("b", 2, at=7),
        waiting("a", 3, at=7),
    ]
    for each in workloads:
        assert queue.push(each)
    assert names(queue.in_order()) == ["p2", "p1", "p3", "a", "b"]
    order = []
    while (first := queue.head(None)) is not None:
        order.append(first.workload.uid)
        queue.drop(first)
    assert order == ["p2", "p1", "p3", "a", "b"]
    assert len(queue) == 0


def test_equals_become_inadmissible_and_active_together() -> None:
    """Scenario 5: one verdict sets fifty aside; another request is still examined."""
    queue = HeapQueue()
    equals = [waiting(f"w{number:02}", 2, at=number) for number in range(50)]
    for each in equals:
        queue.push(each)
    equivalence_class = equivalence_class_of(equals[0])
    queue.set_aside(equivalence_class, WHY)
    assert queue.head(None) is None
    assert len(queue) == 50
    assert not queue.push(waiting("late", 2, at=99))
    assert queue.push(waiting("small", 1, at=99))
    assert head(queue) == "small"
    assert queue.wake(equivalence_class)
    assert head(queue) == "w00"
    assert not queue.wake(equivalence_class)


def test_an_older_one_of_an_inadmissible_class_is_evaluated() -> None:
    queue = HeapQueue()
    queue.push(waiting("new", at=5))
    queue.set_aside(equivalence_class_of(waiting("other")), WHY)
    assert queue.push(waiting("old", at=1))
    assert head(queue) == "old"
    assert not queue.inadmissible


def test_a_preempted_workload_has_a_verdict_of_its_own() -> None:
    plain, other = waiting("plain"), waiting("marked")
    workload = msgspec.structs.replace(other.workload, may_preempt_at=Instant(60))
    marked = PendingWorkload(workload, other.request)
    assert equivalence_class_of(plain) != equivalence_class_of(marked)
    queue = HeapQueue()
    for each in (plain, marked):
        queue.push(each)
    queue.set_aside(equivalence_class_of(plain), WHY)
    assert head(queue) == "marked"


def test_a_preemptor_stays_first_until_it_is_no_longer_pending() -> None:
    queue = HeapQueue()
    workloads = [waiting("preemptor", at=9), waiting("important", 2, priority=5)]
    for each in workloads:
        queue.push(each)
    queue.preemptor = workloads[0].workload.key
    assert head(queue, workloads) == "preemptor"
    assert names(queue.in_order())[0] == "preemptor"
    queue.drop(workloads[0])
    assert not queue.preemptor
    assert head(queue, workloads) == "important"


def test_an_inadmissible_class_ends_with_its_last_member() -> None:
    queue = HeapQueue()
    only = waiting("only")
    queue.push(only)
    queue.set_aside(equivalence_class_of(only), WHY)
    queue.drop(only)
    assert not queue.inadmissible
    assert queue.push(waiting("next"))


def test_recent_usage_comes_before_priority() -> None:
    """Scenario 6: x used 10, y 4, so y's workload goes first although x's has priority 100."""
    usage: dict[str, int] = {"ns/x": 10, "ns/y": 4}
    queue = HeapQueue(usage_of=lambda key: usage[key])
    for each in (waiting("x", 2, priority=100, lq="x"), waiting("y", 2, lq="y")):
        queue.push(each)
    assert head(queue) == "y"
    assert names(queue.in_order()) == ["y", "x"]
    usage["ns/x"] = 2  # a weight of 4 makes it 2.5
    assert head(queue) == "x"


def test_one_local_queue_ending_does_not_wake_the_other() -> None:
    queue = HeapQueue(usage_of=lambda key: 0)
    mine, yours = waiting("mine", lq="x"), waiting("yours", lq="y")
    for each in (mine, yours):
        queue.push(each)
    queue.set_aside(equivalence_class_of(mine), WHY)
    queue.drop(mine)
    assert equivalence_class_of(yours) in queue.inadmissible
    assert queue.head(None) is None


# --- any sequence --------------------------------------------------------------------------------

ACTIONS = st.lists(
    st.tuples(st.sampled_from(("push", "push", "push", "drop", "park", "wake")), st.integers(0, 9)),
    max_size=60,
)


def _usage(key: LocalQueueKey) -> int:
    return {"ns/x": 3, "ns/y": 1}.get(key, 0)


@effort(150)
@given(ACTIONS, st.sampled_from((None, _usage)))
def test_the_head_is_the_first_that_is_not_inadmissible(
    actions: list[tuple[str, int]], usage_of: Callable[[LocalQueueKey], int] | None
) -> None:
    queue, present = HeapQueue(usage_of=usage_of), list[PendingWorkload]()
    inadmissible: set[EquivalenceClass] = set()

    def place(each: PendingWorkload) -> tuple[int, int, int, str]:
        w: Workload = each.workload
        return usage_of(w.queue) if usage_of else 0, -w.priority, w.created_at, w.uid

    for number, (action, choice) in enumerate(actions):
        if action == "push":
            fresh = waiting(
                f"w{number}", 1 + choice % 2, priority=choice % 3, at=choice, lq="xy"[choice % 2]
            )
            present.append(fresh)
            queue.push(fresh)
            inadmissible = set(
                queue.inadmissible
            )  # one older than its class makes the class active
        elif present and action == "drop":
            queue.drop(present.pop(choice % len(present)))
            inadmissible &= {equivalence_class_of(each) for each in present}
        elif present and action == "park":
            first = queue.head(None)
            if first is not None:
                queue.set_aside(equivalence_class_of(first), WHY)
                inadmissible.add(equivalence_class_of(first))
        elif present:
            equivalence_class = equivalence_class_of(present[choice % len(present)])
            assert queue.wake(equivalence_class) == (equivalence_class in inadmissible)
            inadmissible.discard(equivalence_class)
        active = sorted(
            (each for each in present if equivalence_class_of(each) not in inadmissible), key=place
        )
        assert head(queue) == (active[0].workload.uid if active else None)
        assert queue.in_order() == sorted(present, key=place)
        assert set(queue.inadmissible) == inadmissible
