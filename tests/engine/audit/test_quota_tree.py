"""The naive tree gives the numbers that the specification prints, and obeys its own laws."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.quota_builders import ACCOUNT, GPU, cohort, group, pool, queue, quota
from unisono.engine.audit.quota_tree import NO_SHARE, Charge, Node, QuotaUsage, Tree
from unisono.engine.model.names import QueueName, ResourceName
from unisono.engine.model.queue import ResourceGroup
from unisono.engine.model.resources import FlavorResource


def q(name: str) -> Node:
    return Node("queue", name)


def c(name: str) -> Node:
    return Node("cohort", name)


def use(tree: Tree, **amounts: int) -> QuotaUsage:
    return QuotaUsage(tree, [Charge(QueueName(name), {ACCOUNT: n}) for name, n in amounts.items()])


def test_scenario_7_a_borrowing_limit_bounds_a_queue() -> None:
    tree = Tree([queue("a", "4/bl2", "c"), queue("b", "6", "c")], [])
    assert tree.potential(q("a"), ACCOUNT) == 6
    assert tree.potential(q("b"), ACCOUNT) == 10
    assert use(tree, b=5).available(q("a"), ACCOUNT) == 5
    both = use(tree, b=5, a=4)
    assert both.available(q("a"), ACCOUNT) == 1
    assert both.available(q("b"), ACCOUNT) == 1


def test_scenario_8_a_lending_limit_keeps_some_back() -> None:
    tree = Tree([queue("a", "4", "c"), queue("b", "6/ll2", "c")], [])
    assert tree.subtree(c("c"), ACCOUNT) == 6
    assert tree.potential(q("a"), ACCOUNT) == 6
    assert tree.potential(q("b"), ACCOUNT) == 10
    usage = use(tree, b=5)
    assert usage.used(c("c"), ACCOUNT) == 1
    assert usage.available(q("a"), ACCOUNT) == 5
    assert usage.available(q("b"), ACCOUNT) == 5


def test_scenario_9_cohorts_in_cohorts() -> None:
    tree = Tree(
        [queue("ta", "4", "research"), queue("tb", "2/ll0", "research"), queue("tp", "8", "prod")],
        [
            cohort("org", "6"),
            cohort("research", "2/bl3/ll4", "org"),
            cohort("prod", "0/ll5", "org"),
        ],
    )
    assert tree.subtree(c("org"), ACCOUNT) == 15
    assert tree.subtree(c("research"), ACCOUNT) == 6
    assert tree.local(c("research"), ACCOUNT) == 2
    assert tree.subtree(c("prod"), ACCOUNT) == 8
    assert tree.local(c("prod"), ACCOUNT) == 3
    assert [tree.potential(q(name), ACCOUNT) for name in ("ta", "tb", "tp")] == [9, 11, 18]
    usage = use(tree, ta=7)
    assert usage.used(c("research"), ACCOUNT) == 7
    assert usage.used(c("org"), ACCOUNT) == 5
    assert [usage.available(q(name), ACCOUNT) for name in ("ta", "tb", "tp")] == [2, 4, 13]


def test_scenario_10_over_use_is_negative() -> None:
    tree = Tree([queue("a", "2", "c"), queue("b", "2", "c")], [])
    usage = use(tree, a=6)
    assert usage.available(q("a"), ACCOUNT) == -2
    assert usage.available(q("b"), ACCOUNT) == -2
    assert not usage.fits(Charge(QueueName("b"), {ACCOUNT: 1}))


def test_scenario_14_levels() -> None:
    tree = Tree(
        [queue("x", "0", "left"), queue("y", "0", "right")],
        [cohort("root", "4"), cohort("left", "3", "root"), cohort("right", "0", "root")],
    )
    usage = use(tree)
    assert usage.level(q("x"), ACCOUNT, 3) == (1, True)
    assert usage.level(q("y"), ACCOUNT, 3) == (2, False)
    assert usage.level(q("y"), ACCOUNT, 99) == (2, False)
    assert usage.level(q("y"), ACCOUNT, 0) == (0, True)


def test_a_queue_without_a_cohort_never_borrows_from_afar() -> None:
    tree = Tree([queue("a", "2/bl5/ll0")], [])
    assert use(tree).level(q("a"), ACCOUNT, 3) == (0, False)
    assert tree.potential(q("a"), ACCOUNT) == 2  # limits mean nothing without a cohort
    assert tree.local(q("a"), ACCOUNT) == 0


def test_scenario_42_shares() -> None:
    tree = Tree(
        [
            queue("a", "4", "k"),
            queue("b", "4", "k", weight_milli=2000),
            queue("c", "4", "k", weight_milli=0),
        ],
        [],
    )
    usage = use(tree, a=7, b=5)
    assert usage.share(q("a")).value == 250
    assert usage.share(q("b")).value == Fraction(1000, 24)
    assert usage.share(q("c")) == NO_SHARE
    infinite = use(tree, a=12, c=5).share(q("c"))
    assert infinite.is_infinite
    assert usage.share(q("a")) < infinite
    assert infinite < use(tree, c=6).share(q("c"))
    assert usage.share(c("k")).value == 0  # a root


def test_scenario_42_the_dominant_resource_counts_per_flavor() -> None:
    cpu = ResourceName("cpu")
    own = group({"h": {"gpu": "4", "cpu": "40"}, "t": {"gpu": "4", "cpu": "40"}})
    rest = group({"h": {"gpu": "8", "cpu": "60"}, "t": {"gpu": "8", "cpu": "60"}})
    tree = Tree([queue("a", cohort="k", groups=(own,)), queue("b", cohort="k", groups=(rest,))], [])
    used = {
        FlavorResource("h", GPU): 7,
        FlavorResource("h", cpu): 20,
        FlavorResource("t", GPU): 5,
        FlavorResource("t", cpu): 90,
    }
    assert QuotaUsage(tree, [Charge(QueueName("a"), used)]).share(q("a")).value == 250


def test_scenario_76_a_pool_is_one_account_whatever_its_order() -> None:
    x, y = pool(["A", "B"], "100"), pool(["B", "A"], "20/bl30")
    z = ResourceGroup(covered=(GPU,), flavors=group({"A": {"gpu": "40"}}).flavors)
    named = {"x": x, "y": y, "z": z}
    tree = Tree([queue(n, cohort="k", groups=(g,)) for n, g in named.items()], [])
    pooled = FlavorResource("pool:A+B", GPU)
    assert tree.potential(q("x"), pooled) == 120
    assert tree.potential(q("y"), pooled) == 50
    assert tree.potential(q("z"), FlavorResource("A", GPU)) == 40
    assert tree.potential(q("z"), pooled) == 120  # it has none of its own, and may borrow


def test_a_cycle_of_cohorts_ends_at_each_of_them() -> None:
    tree = Tree(
        [queue("a", "1", "one"), queue("b", "1", "below"), queue("z", "1", "apart")],
        [cohort("one", "0", "two"), cohort("two", "0", "one"), cohort("below", "0", "one")],
    )
    assert tree.is_in_cycle(q("a"))
    assert tree.is_in_cycle(q("b"))
    assert not tree.is_in_cycle(q("z"))
    assert QuotaUsage(tree).available(q("b"), ACCOUNT) == 2  # below lends b's, one owns a's


def test_a_chain_of_cohorts_may_be_deeper_than_the_stack() -> None:
    depth = 3000
    chain = [cohort(f"c{i}", "1", f"c{i + 1}") for i in range(depth)]
    tree = Tree([queue("a", "1", "c0")], chain)
    assert tree.subtree(c(f"c{depth}"), ACCOUNT) == depth + 1
    assert use(tree, a=5).available(q("a"), ACCOUNT) == depth + 1 - 5


def test_sides_are_the_children_of_the_lowest_common_ancestor() -> None:
    tree = Tree(
        [queue("a", cohort="left"), queue("b", cohort="left"), queue("z", cohort="root")],
        [cohort("left", parent="root")],
    )
    assert tree.sides(q("a"), q("b")) == (q("a"), q("b"))
    assert tree.sides(q("a"), q("z")) == (c("left"), q("z"))
    assert tree.sides(q("a"), q("elsewhere")) is None


QUOTAS = st.builds(
    lambda nominal, bl, ll: f"{nominal}{bl}{ll}",
    st.integers(0, 6),
    st.sampled_from(["", "/bl0", "/bl2", "/bl5"]),
    st.sampled_from(["", "/ll0", "/ll1", "/ll3"]),
)


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    cohorts = [
        cohort("root", str(draw(st.integers(0, 4)))),
        cohort("left", draw(QUOTAS), "root"),
        cohort("right", draw(QUOTAS), "left"),
    ]
    homes = st.sampled_from(["root", "left", "right", None])
    return Tree([queue(name, draw(QUOTAS), draw(homes)) for name in "abc"], cohorts)


USES = st.dictionaries(st.sampled_from("abc"), st.integers(0, 9))


@given(trees(), USES, st.sampled_from("abc"), st.integers(0, 9))
def test_charging_lowers_what_is_available_by_exactly_that(
    tree: Tree, uses: dict[str, int], name: str, amount: int
) -> None:
    before = use(tree, **uses)
    after = before.after(charged=[Charge(QueueName(name), {ACCOUNT: amount})])
    assert after.available(q(name), ACCOUNT) == before.available(q(name), ACCOUNT) - amount
    for other in "abc":
        assert after.available(q(other), ACCOUNT) <= before.available(q(other), ACCOUNT)
    back = after.after(released=[Charge(QueueName(name), {ACCOUNT: amount})])
    for node in (*map(q, "abc"), *map(c, ("root", "left", "right"))):
        assert back.used(node, ACCOUNT) == before.used(node, ACCOUNT)


@given(trees(), USES, st.sampled_from("abc"), st.sampled_from("abc"), st.integers(1, 9))
def test_a_charge_that_fits_puts_no_queue_over_its_limit(
    tree: Tree, uses: dict[str, int], name: str, other: str, amount: int
) -> None:
    """The reason why `quota` may look at the usage once, at the end."""
    before = use(tree, **uses)
    charge = Charge(QueueName(name), {ACCOUNT: amount})
    if before.fits(charge) and before.available(q(other), ACCOUNT) >= 0:
        assert before.after(charged=[charge]).available(q(other), ACCOUNT) >= 0


@given(trees(), USES, st.sampled_from("abc"), st.integers(0, 9))
def test_adding_along_the_path_is_the_same_as_adding_up(
    tree: Tree, uses: dict[str, int], name: str, amount: int
) -> None:
    """Spec quota §4 also says how usage changes step by step; both readings must agree."""
    before = use(tree, **uses)
    expected = {node: before.used(node, ACCOUNT) for node in tree.path(q(name))}
    rest = amount
    for node in tree.path(q(name)):
        left = before.local_available(node, ACCOUNT)
        expected[node] += rest
        if rest <= left:
            break
        rest -= left
    after = before.after(charged=[Charge(QueueName(name), {ACCOUNT: amount})])
    assert {node: after.used(node, ACCOUNT) for node in expected} == expected


@pytest.mark.parametrize(("text", "limits"), [("4", (4, None, None)), ("4/bl2/ll1", (4, 2, 1))])
def test_the_notation_of_the_specification(
    text: str, limits: tuple[int, int | None, int | None]
) -> None:
    read = quota(text)
    assert (read.nominal, read.borrowing_limit, read.lending_limit) == limits
