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
from unisono.engine.state.equivalence import Shapes
from unisono.engine.state.pending_queue import HeapQueue, Kind, Waiting, kind_of

WHY = (Deactivated(),)  # any fact will do
SHAPES = Shapes()


def waiting(name: str, size: int = 1, *, priority: int = 0, at: int = 0, lq: str = "q") -> Waiting:
    workload = job(name, lq, size, priority=priority, created_at=Instant(at))
    return Waiting(workload, SHAPES.take(workload))


def head(lines: HeapQueue, everybody: list[Waiting] | None = None) -> str | None:
    sticky = next((w for w in everybody or () if w.workload.key == lines.sticky), None)
    found = lines.head(sticky)
    return found.workload.uid if found else None


def names(found: list[Waiting]) -> list[str]:
    return [each.workload.uid for each in found]


def test_priority_then_time_then_identity() -> None:
    """Scenario 74: p2 has the higher priority, p1 is older than p3; b and a came together."""
    lines = HeapQueue()
    everybody = [
        waiting("p1", at=1),
        waiting("p2", priority=9, at=5),
        waiting("p3", 2, at=2),
        waiting("b", 2, at=7),
        waiting("a", 3, at=7),
    ]
    for each in everybody:
        assert lines.push(each)
    assert names(lines.in_order()) == ["p2", "p1", "p3", "a", "b"]
    order = []
    while (first := lines.head(None)) is not None:
        order.append(first.workload.uid)
        lines.drop(first)
    assert order == ["p2", "p1", "p3", "a", "b"]
    assert len(lines) == 0


def test_equals_are_parked_and_woken_together() -> None:
    """Scenario 5: one verdict sets fifty aside; another shape is still examined."""
    lines = HeapQueue()
    equals = [waiting(f"w{number:02}", 2, at=number) for number in range(50)]
    for each in equals:
        lines.push(each)
    kind = kind_of(equals[0])
    lines.park(kind, WHY)
    assert lines.head(None) is None
    assert len(lines) == 50
    assert not lines.push(waiting("late", 2, at=99))
    assert lines.push(waiting("small", 1, at=99))
    assert head(lines) == "small"
    assert lines.wake(kind)
    assert head(lines) == "w00"
    assert not lines.wake(kind)


def test_an_older_one_of_a_parked_kind_is_looked_at() -> None:
    lines = HeapQueue()
    lines.push(waiting("new", at=5))
    lines.park(kind_of(waiting("other")), WHY)
    assert lines.push(waiting("old", at=1))
    assert head(lines) == "old"
    assert not lines.parked


def test_who_was_preempted_has_a_verdict_of_its_own() -> None:
    plain, other = waiting("plain"), waiting("marked")
    workload = msgspec.structs.replace(other.workload, may_preempt_at=Instant(60))
    marked = Waiting(workload, other.shape)
    assert kind_of(plain) != kind_of(marked)
    lines = HeapQueue()
    for each in (plain, marked):
        lines.push(each)
    lines.park(kind_of(plain), WHY)
    assert head(lines) == "marked"


def test_a_preemptor_stays_first_until_it_leaves() -> None:
    lines = HeapQueue()
    everybody = [waiting("sticky", at=9), waiting("important", 2, priority=5)]
    for each in everybody:
        lines.push(each)
    lines.sticky = everybody[0].workload.key
    assert head(lines, everybody) == "sticky"
    assert names(lines.in_order())[0] == "sticky"
    lines.drop(everybody[0])
    assert not lines.sticky
    assert head(lines, everybody) == "important"


def test_a_parked_kind_ends_with_its_last_member() -> None:
    lines = HeapQueue()
    only = waiting("only")
    lines.push(only)
    lines.park(kind_of(only), WHY)
    lines.drop(only)
    assert not lines.parked
    assert lines.push(waiting("next"))


def test_recent_usage_comes_before_priority() -> None:
    """Scenario 6: x used 10, y 4, so y's workload goes first although x's has priority 100."""
    usage: dict[str, int] = {"ns/x": 10, "ns/y": 4}
    lines = HeapQueue(usage_of=lambda key: usage[key])
    for each in (waiting("x", 2, priority=100, lq="x"), waiting("y", 2, lq="y")):
        lines.push(each)
    assert head(lines) == "y"
    assert names(lines.in_order()) == ["y", "x"]
    usage["ns/x"] = 2  # a weight of 4 makes it 2.5
    assert head(lines) == "x"


def test_one_local_queue_leaving_does_not_wake_the_other() -> None:
    lines = HeapQueue(usage_of=lambda key: 0)
    mine, yours = waiting("mine", lq="x"), waiting("yours", lq="y")
    for each in (mine, yours):
        lines.push(each)
    lines.park(kind_of(mine), WHY)
    lines.drop(mine)
    assert kind_of(yours) in lines.parked
    assert lines.head(None) is None


# --- any sequence --------------------------------------------------------------------------------

ACTIONS = st.lists(
    st.tuples(st.sampled_from(("push", "push", "push", "drop", "park", "wake")), st.integers(0, 9)),
    max_size=60,
)


def _usage(key: LocalQueueKey) -> int:
    return {"ns/x": 3, "ns/y": 1}.get(key, 0)


@effort(150)
@given(ACTIONS, st.sampled_from((None, _usage)))
def test_the_head_is_the_first_that_is_not_parked(
    actions: list[tuple[str, int]], usage_of: Callable[[LocalQueueKey], int] | None
) -> None:
    lines, present = HeapQueue(usage_of=usage_of), list[Waiting]()
    parked: set[Kind] = set()

    def place(each: Waiting) -> tuple[int, int, int, str]:
        w: Workload = each.workload
        return usage_of(w.queue) if usage_of else 0, -w.priority, w.created_at, w.uid

    for number, (action, choice) in enumerate(actions):
        if action == "push":
            fresh = waiting(
                f"w{number}", 1 + choice % 2, priority=choice % 3, at=choice, lq="xy"[choice % 2]
            )
            present.append(fresh)
            lines.push(fresh)
            parked = set(lines.parked)  # a newcomer in front of its line wakes the kind
        elif present and action == "drop":
            lines.drop(present.pop(choice % len(present)))
            parked &= {kind_of(each) for each in present}
        elif present and action == "park":
            first = lines.head(None)
            if first is not None:
                lines.park(kind_of(first), WHY)
                parked.add(kind_of(first))
        elif present:
            kind = kind_of(present[choice % len(present)])
            assert lines.wake(kind) == (kind in parked)
            parked.discard(kind)
        active = sorted((each for each in present if kind_of(each) not in parked), key=place)
        assert head(lines) == (active[0].workload.uid if active else None)
        assert lines.in_order() == sorted(present, key=place)
        assert set(lines.parked) == parked
