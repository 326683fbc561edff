"""The quota tree: the arithmetic of spec quota §4 with the numbers of its scenarios 7 to 11."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.effort import effort
from tests.support.quota_builders import GPU, cell, group, numbers, pool, tree, use
from unisono.engine.model.resources import FlavorResource
from unisono.engine.state.quota_tree import (
    NO_LIMIT,
    Node,
    available,
    borrow_level,
    borrows_with,
    link,
    potential,
    set_groups,
    set_limits,
)
from unisono.engine.state.transaction import Transaction


def organisation() -> dict[str, Node]:
    """Return the two-level tree of scenario 9."""
    return tree(
        cohorts={
            "org": ("6", None),
            "research": ("2/bl3/ll4", "org"),
            "prod": ("0/ll5", "org"),
        },
        queues={"ta": ("4", "research"), "tb": ("2/ll0", "research"), "tp": ("8", "prod")},
    )


# --- questions -----------------------------------------------------------------------------------


def test_a_borrowing_limit_caps_what_may_be_used() -> None:
    """Scenario 7."""
    nodes = tree(queues={"a": ("4/bl2", "all"), "b": ("6", "all")})
    a, b = nodes["a"], nodes["b"]
    assert (potential(cell(a)), potential(cell(b))) == (6, 10)
    use(b, 5)
    assert available(cell(a)) == 5
    use(a, 4)
    assert (available(cell(a)), available(cell(b))) == (1, 1)


def test_a_lending_limit_hides_quota_from_the_cohort() -> None:
    """Scenario 8."""
    nodes = tree(queues={"a": ("4", "all"), "b": ("6/ll2", "all")})
    a, b, cohort = nodes["a"], nodes["b"], nodes["all"]
    assert cell(cohort).subtree == 6
    assert (potential(cell(a)), potential(cell(b))) == (6, 10)
    use(b, 5)
    assert cell(cohort).usage == 1
    assert (available(cell(a)), available(cell(b))) == (5, 5)


def test_cohorts_of_cohorts_add_up() -> None:
    """Scenario 9."""
    nodes = organisation()
    assert (cell(nodes["org"]).subtree, cell(nodes["research"]).subtree) == (15, 6)
    assert (cell(nodes["research"]).local, cell(nodes["prod"]).local) == (2, 3)
    queues = [nodes[name] for name in ("ta", "tb", "tp")]
    assert [potential(cell(each)) for each in queues] == [9, 11, 18]
    use(nodes["ta"], 7)
    assert (cell(nodes["research"]).usage, cell(nodes["org"]).usage) == (7, 5)
    assert [available(cell(each)) for each in queues] == [2, 4, 13]


def test_over_use_after_a_cut_makes_available_negative_for_all() -> None:
    """Scenario 10."""
    nodes = tree(queues={"a": ("2", "all"), "b": ("2", "all")})
    use(nodes["a"], 6)
    assert available(cell(nodes["a"])) == available(cell(nodes["b"])) == -2


def test_limits_of_a_root_mean_nothing() -> None:
    alone = tree(queues={"q": ("4/bl0/ll0", None)})["q"]
    assert (potential(cell(alone)), available(cell(alone))) == (4, 4)
    use(alone, 3)
    assert available(cell(alone)) == 1


def test_the_borrow_level_says_from_how_far_away() -> None:
    """Scenario 14: x borrows from its own side (height 1), y from the whole tree (height 2)."""
    nodes = tree(
        cohorts={"root": ("4", None), "left": ("3", "root"), "right": ("0", "root")},
        queues={"x": ("0", "left"), "y": ("0", "right")},
    )
    assert borrow_level(cell(nodes["x"]), 3) == (1, True)
    assert borrow_level(cell(nodes["y"]), 3) == (2, False)
    assert borrow_level(cell(nodes["x"]), 4) == (2, False)


def test_own_quota_is_level_zero_and_may_be_reclaimed_where_there_is_a_cohort() -> None:
    nodes = tree(queues={"a": ("4", "all"), "alone": ("4", None)})
    assert borrow_level(cell(nodes["a"]), 4) == (0, True)
    assert borrow_level(cell(nodes["alone"]), 4) == (0, False)
    assert borrow_level(cell(nodes["alone"]), 5) == (0, False)
    assert not borrows_with(cell(nodes["a"]), 4)
    assert borrows_with(cell(nodes["a"]), 5)


# --- edits ---------------------------------------------------------------------------------------


def test_heights_are_forgotten_when_something_is_hung_below() -> None:
    nodes = tree(cohorts={"top": ("0", None), "middle": ("0", "top")})
    assert [nodes[name].height() for name in ("top", "middle")] == [1, 0]
    queue = Node("q", is_queue=True)
    link(queue, nodes["middle"])
    assert [nodes[name].height() for name in ("top", "middle")] == [2, 1]
    link(queue, None)
    assert [nodes[name].height() for name in ("top", "middle")] == [1, 0]


def test_a_node_takes_its_quota_and_its_usage_along() -> None:
    """Scenario 68: a (4, using 6) moves to a cohort with an idle queue of 4."""
    nodes = tree(queues={"a": ("4", "X"), "c": ("4", "Y"), "stays": ("3", "X")})
    use(nodes["a"], 6)
    link(nodes["a"], nodes["Y"])
    assert numbers(nodes)["X"] == (3, 0, 0)
    assert numbers(nodes)["Y"] == (8, 0, 6)
    assert (available(cell(nodes["a"])), available(cell(nodes["c"]))) == (2, 2)


def test_hanging_up_and_taking_down_is_the_identity() -> None:
    nodes = organisation()
    use(nodes["ta"], 7)
    before = numbers(nodes)
    research, org = nodes["research"], nodes["org"]
    link(research, None)
    assert numbers(nodes)["org"] == (6 + 5, 0, 0)
    link(research, org)
    assert numbers(nodes) == before


def test_an_edit_of_quota_reaches_the_root_and_usage_keeps_its_place() -> None:
    nodes = organisation()
    use(nodes["tb"], 2)
    assert numbers(nodes)["research"][2] == 0  # all of it in what tb does not lend
    set_limits(cell(nodes["tb"]), nominal=1, borrowing_limit=NO_LIMIT, lending_limit=NO_LIMIT)
    fresh = tree(
        cohorts={
            "org": ("6", None),
            "research": ("2/bl3/ll4", "org"),
            "prod": ("0/ll5", "org"),
        },
        queues={"ta": ("4", "research"), "tb": ("1", "research"), "tp": ("8", "prod")},
    )
    use(fresh["tb"], 2)
    assert numbers(nodes) == numbers(fresh)


def test_an_account_that_is_no_longer_listed_keeps_its_usage() -> None:
    nodes = tree(queues={"a": ("4", "all"), "b": ("4", "all")})
    use(nodes["a"], 3)
    set_groups(nodes["a"], ())
    assert numbers(nodes) == {"a": (0, 0, 3), "b": (4, 0, 0), "all": (4, 0, 3)}
    assert borrows_with(cell(nodes["a"]), 0)


def test_a_pool_is_one_account_whatever_the_order_of_its_flavors() -> None:
    """Scenario 76: x and y name the same set, z quotes one of the flavors by itself."""
    root, x, y, z = (Node(name, is_queue=name != "root") for name in ("root", "x", "y", "z"))
    set_groups(x, (pool(["A", "B"], "100"),))
    set_groups(y, (pool(["B", "A"], "20/bl30"),))
    set_groups(z, (group({"A": {"gpu": "40"}}),))
    for node in (x, y, z):
        link(node, root)
    shared, single = FlavorResource("pool:A+B", GPU), FlavorResource("A", GPU)
    assert potential(x.cell(shared)) == 120
    assert potential(y.cell(shared)) == 50
    assert potential(z.cell(single)) == 40


# --- bookings ------------------------------------------------------------------------------------


BOOKINGS = st.lists(st.tuples(st.sampled_from(("ta", "tb", "tp")), st.integers(0, 12)), max_size=12)


@effort(100)
@given(BOOKINGS, st.data())
def test_taking_back_in_any_order_leaves_nothing(
    bookings: list[tuple[str, int]], data: st.DataObject
) -> None:
    nodes = organisation()
    before = numbers(nodes)
    for name, amount in bookings:
        use(nodes[name], amount)
    for name, amount in data.draw(st.permutations(bookings)):
        use(nodes[name], -amount)
    assert numbers(nodes) == before


@effort(100)
@given(BOOKINGS, BOOKINGS)
def test_a_transaction_rolls_back_to_its_marks(
    first: list[tuple[str, int]], second: list[tuple[str, int]]
) -> None:
    nodes, transaction = organisation(), Transaction()
    untouched = numbers(nodes)
    transaction.add((cell(nodes[name]), amount) for name, amount in first)
    mark, halfway = transaction.mark(), numbers(nodes)
    transaction.remove((cell(nodes[name]), amount) for name, amount in first)
    transaction.add((cell(nodes[name]), amount) for name, amount in second)
    transaction.rollback(mark)
    assert numbers(nodes) == halfway
    transaction.rollback()
    assert numbers(nodes) == untouched


@effort(100)
@given(BOOKINGS, st.sampled_from(("ta", "tb", "tp")), st.integers(1, 12))
def test_what_fits_lowers_what_is_available_by_its_amount(
    bookings: list[tuple[str, int]], name: str, amount: int
) -> None:
    nodes = organisation()
    for used, much in bookings:
        use(nodes[used], much)
    before = available(cell(nodes[name]))
    use(nodes[name], amount)
    assert available(cell(nodes[name])) == before - amount
