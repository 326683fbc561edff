"""The wake index: no workload is woken before it can matter, and none is forgotten."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.effort import effort
from tests.support.quota_builders import ACCOUNT, GPU
from unisono.engine.model.names import QueueName
from unisono.engine.model.resources import FlavorResource
from unisono.engine.state.wake_index import BlockedClass, Wakes

Q = QueueName("q")
OTHER = FlavorResource("g", GPU)


def blocked_class(number: int) -> BlockedClass:
    return Q, (number, 0, "")


def nothing_available(blocked_class: BlockedClass, flavor_resource: FlavorResource) -> int:
    return 0


def freed(wakes: Wakes, charges: list[tuple[FlavorResource, int]]) -> list[BlockedClass]:
    """Free something and return what should be evaluated again."""
    wakes.free(charges)
    return [*wakes.due(nothing_available)]


def test_what_was_taken_again_wakes_no_workload_that_needs_quota_only() -> None:
    available_to = {ACCOUNT: 1}
    wakes = Wakes()
    wakes.file(
        blocked_class(1),
        ((ACCOUNT, 4),),
        available_to=lambda _, flavor_resource: available_to[flavor_resource],
    )
    for _ in range(10):  # two are freed and taken again, over and over
        wakes.free([(ACCOUNT, 2)])
        assert [*wakes.due(lambda _, flavor_resource: available_to[flavor_resource])] == []
    available_to[ACCOUNT] = 5
    assert wakes.shortages(
        blocked_class(1), lambda _, flavor_resource: available_to[flavor_resource]
    ) == ((ACCOUNT, 0),)
    wakes.free([(ACCOUNT, 4)])
    assert [*wakes.due(lambda _, flavor_resource: available_to[flavor_resource])] == [
        blocked_class(1)
    ]


def test_preemptible_workloads_wake_classes_that_watch_admitted_ones() -> None:
    wakes = Wakes()
    wakes.file(blocked_class(1), ((ACCOUNT, 4),), admitted_workloads=True)
    wakes.file(blocked_class(2), ((ACCOUNT, 4),))
    wakes.file(blocked_class(3), None)
    assert sorted(wakes.admitted_changed()) == [blocked_class(1), blocked_class(3)]
    assert freed(wakes, [(ACCOUNT, 4)]) == [blocked_class(2)]


def test_a_blocked_class_wakes_when_its_shortage_has_been_freed() -> None:
    wakes = Wakes()
    wakes.file(blocked_class(1), ((ACCOUNT, 5),))
    assert freed(wakes, [(ACCOUNT, 2)]) == []
    assert wakes.shortages(blocked_class(1), nothing_available) == ((ACCOUNT, 3),)
    assert freed(wakes, [(OTHER, 99)]) == []
    assert freed(wakes, [(ACCOUNT, 3)]) == [blocked_class(1)]
    assert freed(wakes, [(ACCOUNT, 99)]) == []


def test_one_account_of_several_is_enough() -> None:
    wakes = Wakes()
    wakes.file(blocked_class(1), ((ACCOUNT, 5), (OTHER, 2)))
    assert freed(wakes, [(OTHER, 2)]) == [blocked_class(1)]
    assert freed(wakes, [(ACCOUNT, 5)]) == []


def test_what_was_freed_before_does_not_count() -> None:
    wakes = Wakes()
    assert freed(wakes, [(ACCOUNT, 4)]) == []
    wakes.file(blocked_class(1), ((ACCOUNT, 3),))
    assert freed(wakes, [(ACCOUNT, 2)]) == []
    assert freed(wakes, [(ACCOUNT, 1)]) == [blocked_class(1)]


def test_a_new_entry_replaces_the_old_one() -> None:
    wakes = Wakes()
    wakes.file(blocked_class(1), ((ACCOUNT, 1),))
    wakes.file(blocked_class(1), ((ACCOUNT, 5),))
    assert freed(wakes, [(ACCOUNT, 4)]) == []
    assert freed(wakes, [(ACCOUNT, 1)]) == [blocked_class(1)]
    wakes.file(blocked_class(2), ((ACCOUNT, 1),))
    wakes.file(blocked_class(2), None)
    assert freed(wakes, []) == [blocked_class(2)]


def test_none_means_anything_and_no_shortage_means_nothing() -> None:
    wakes = Wakes()
    wakes.file(blocked_class(1), None)
    wakes.file(blocked_class(2), ())
    assert wakes.shortages(blocked_class(1), nothing_available) is None
    assert wakes.shortages(blocked_class(2), nothing_available) == ()
    assert freed(wakes, [(OTHER, 1)]) == [blocked_class(1)]
    assert freed(wakes, [(ACCOUNT, 10**6)]) == []


def test_a_workload_that_left_is_not_woken() -> None:
    wakes = Wakes()
    for number, shortages in ((1, None), (2, ((ACCOUNT, 1),))):
        wakes.file(blocked_class(number), shortages)
        wakes.forget(blocked_class(number))
    assert freed(wakes, [(ACCOUNT, 9)]) == []


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(("file", "file", "free", "forget")),
        st.integers(0, 5),
        st.integers(1, 6),
        st.booleans(),
    ),
    max_size=80,
)


@effort(100)
@given(ACTIONS)
def test_it_equals_a_list_of_what_is_left_to_free(
    actions: list[tuple[str, int, int, bool]],
) -> None:
    wakes = Wakes()
    asleep: dict[BlockedClass, dict[FlavorResource, int]] = {}
    for action, number, amount, other in actions:
        flavor_resource = OTHER if other else ACCOUNT
        match action:
            case "file":
                wakes.file(blocked_class(number), ((ACCOUNT, amount), (OTHER, amount + 1)))
                asleep[blocked_class(number)] = {ACCOUNT: amount, OTHER: amount + 1}
            case "forget":
                wakes.forget(blocked_class(number))
                asleep.pop(blocked_class(number), None)
            case _:
                expected = set()
                for each, short in [*asleep.items()]:
                    short[flavor_resource] -= amount
                    if short[flavor_resource] <= 0:
                        expected.add(each)
                        del asleep[each]
                assert {*freed(wakes, [(flavor_resource, amount)])} == expected
