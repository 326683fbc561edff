"""Dominant resource shares, with the numbers of scenarios 42, 48 and 80."""

from __future__ import annotations

from tests.support.quota_builders import ACCOUNT, GPU, group, tree, use
from unisono.engine.model.names import CPU
from unisono.engine.model.resources import FlavorResource
from unisono.engine.quota.share import (
    NOTHING,
    PER_MILLE,
    WHOLE,
    dominant_share,
    is_borrowing,
    weighted_share,
)
from unisono.engine.state.quota_tree import Node, charge, link, set_groups


def test_scenario_42() -> None:
    nodes = tree(queues=dict.fromkeys("abc", ("4", "all")))
    nodes["b"].weight_milli, nodes["c"].weight_milli = 2000, 0
    use(nodes["a"], 7)
    use(nodes["b"], 5)
    assert dominant_share(nodes["a"]) == (0, WHOLE // 4)
    assert dominant_share(nodes["b"]) == (0, WHOLE // 24)  # 41.67 per mille
    assert dominant_share(nodes["c"]) == NOTHING
    assert [weighted_share(dominant_share(nodes[name])) for name in "abc"] == [250, 42, 0]


def test_flavors_of_a_resource_are_added_up_and_unused_quota_does_not_offset() -> None:
    """Scenario 42, second half: gpu (3+1)/24, cpu 50/200."""
    root, a, rest = (Node(name, is_queue=name != "root") for name in ("root", "a", "rest"))
    own = group({flavor: {"gpu": "4", "cpu": "40"} for flavor in ("h", "t")})
    set_groups(a, (own,))
    set_groups(rest, (group({flavor: {"gpu": "8", "cpu": "60"} for flavor in ("h", "t")}),))
    for node in (a, rest):
        link(node, root)
    used = {("h", GPU): 7, ("h", CPU): 20, ("t", GPU): 5, ("t", CPU): 90}
    for (flavor, resource), amount in used.items():
        charge(a.cell(FlavorResource(flavor, resource)), amount)
    assert dominant_share(a) == (0, 250 * PER_MILLE)


def test_a_queue_of_weight_zero_that_borrows_comes_after_all_others() -> None:
    nodes = tree(queues=dict.fromkeys("abc", ("4", "all")))
    nodes["b"].weight_milli = nodes["c"].weight_milli = 0
    for name, amount in (("a", 8), ("b", 5), ("c", 6)):
        use(nodes[name], amount)
    a, b, c = (dominant_share(nodes[name]) for name in "abc")
    assert a < b < c  # among infinite shares the usage decides
    assert weighted_share(c) == 2**63 - 1


def test_the_sides_of_a_tree_have_shares_too() -> None:
    """Scenario 48 with a1's GPU booked: orgA 4/8 is below orgB 5/8."""
    nodes = tree(
        cohorts={"root": ("8", None), "orgA": ("0", "root"), "orgB": ("0", "root")},
        queues={"a1": ("0", "orgA"), "a2": ("0", "orgA"), "b1": ("0", "orgB")},
    )
    for name, amount in (("a1", 1), ("a2", 3), ("b1", 5)):
        use(nodes[name], amount)
    shares = [dominant_share(nodes[name]) for name in ("orgA", "orgB", "a1", "a2")]
    assert shares == [(0, each * PER_MILLE) for each in (500, 625, 125, 375)]
    assert dominant_share(nodes["root"]) == NOTHING


def test_equal_fractions_are_equal_whatever_the_weights() -> None:
    """1/6 of weight a quarter is 4/6 of weight one, although sixths cannot be written exactly."""
    nodes = tree(cohorts={"root": ("6", None)}, queues={"a": ("0", "root"), "b": ("0", "root")})
    nodes["a"].weight_milli = 250
    use(nodes["a"], 1)
    use(nodes["b"], 4)
    assert dominant_share(nodes["a"]) == dominant_share(nodes["b"])


def test_what_is_lendable_counts_flavors_that_only_exist_further_up() -> None:
    root, left, c = (Node(name, is_queue=name == "c") for name in ("root", "left", "c"))
    link(left, root)
    link(c, left)
    set_groups(root, (group({"f": {"gpu": "1"}, "g": {"gpu": "1"}}),))
    charge(c.cell(ACCOUNT), 1)
    assert dominant_share(c) == (0, WHOLE // 2)


def test_borrowing_with_a_share_of_zero_is_still_borrowing() -> None:
    """Nothing can be lent, so there is nothing to take a share of."""
    nodes = tree(queues={"a": ("0", "all"), "b": ("0", "all")})
    use(nodes["a"], 2)
    assert dominant_share(nodes["a"]) == NOTHING
    assert is_borrowing(nodes["a"])
    assert not is_borrowing(nodes["b"])
