"""Flavor assignment: verdicts, fungibility and partial counts, with the numbers of spec quota §19.

Preemption is a stand-in here: a table from flavor to what making others leave would give.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.quota_builders import ACCOUNT, GPU, group, job, pods, queue, tree, use
from unisono.engine.model.explanation import ExceedsMaximum, QuotaExhausted, ResourceNotCovered
from unisono.engine.model.names import FlavorName, QueueName, ResourceName
from unisono.engine.model.queue import ClusterQueue, Flavor, FlavorFungibility
from unisono.engine.model.resources import FlavorResource
from unisono.engine.model.workload import PodSet
from unisono.engine.quota.assign import Assignment, Simulated, Verdict, assign
from unisono.engine.quota.flavors import eligible_flavors
from unisono.engine.state.gang_request import GangRequests, shrunk
from unisono.engine.state.quota_tree import Cell, Node, charge, link, set_groups


class Victims:
    """What a search for victims would find, by flavor; those not listed are never searched."""

    def __init__(
        self, found: Mapping[str, Simulated] | None = None, *, has_rules: bool = False
    ) -> None:
        self.found = found or {}
        self.has_rules = has_rules or bool(found)
        self.asked: list[tuple[str, int]] = []

    def may_try(self, cell: Cell, wanted: int, *, may_reclaim: bool) -> bool:
        return cell.flavor_resource.flavor in self.found

    def simulate(self, cell: Cell, wanted: int) -> Simulated:
        self.asked.append((cell.flavor_resource.flavor, wanted))
        return self.found[cell.flavor_resource.flavor]


def assigned(
    node: Node,
    of: ClusterQueue,
    *pod_sets: PodSet,
    victims: Victims | None = None,
    **options: Any,
) -> Assignment:
    """Assign flavors to pod sets in a queue whose node hangs in some tree."""
    request = GangRequests().take(job("w", "q", pod_sets=pod_sets))
    flavors = {each.flavor: Flavor(name=each.flavor) for g in of.groups for each in g.flavors}
    eligible = eligible_flavors(pod_sets, of, node, flavors, ignore_undeclared=False)
    return assign(
        request,
        eligible,
        options.pop("counts", request.counts),
        fungibility=of.fungibility,
        preemption=victims or Victims(),
        queue=QueueName("q"),
        **options,
    )


def planted(of: ClusterQueue, beside: ClusterQueue | None = None) -> Node:
    """Hang a queue, and perhaps another one, below a cohort."""
    root, node = Node("all", is_queue=False), Node(of.name, is_queue=True)
    set_groups(node, of.groups)
    link(node, root)
    if beside is not None:
        other = Node(beside.name, is_queue=True)
        set_groups(other, beside.groups)
        link(other, root)
    return node


def flavors_of(result: Assignment) -> list[str]:
    return [*result.flavors.values()]


# --- fungibility ---------------------------------------------------------------------------------

H_A = {"h100": {"gpu": "4"}, "a100": {"gpu": "8"}}


@pytest.mark.parametrize(
    ("rules", "a100", "wanted", "expected"),
    [
        (FlavorFungibility(), "8", 6, ("h100", 1)),
        (FlavorFungibility(when_can_borrow="TryNextFlavor"), "8", 6, ("a100", 0)),
        # Both would have to borrow: the first wins the tie.
        (FlavorFungibility(when_can_borrow="TryNextFlavor"), "2", 5, ("h100", 1)),
    ],
)
def test_scenario_17(
    rules: FlavorFungibility, a100: str, wanted: int, expected: tuple[str, int]
) -> None:
    quotas = {"h100": {"gpu": "4"}, "a100": {"gpu": a100}}
    of = queue("q", groups=(group(quotas),), fungibility=rules)
    beside = queue("b", groups=(group({"h100": {"gpu": "4"}, "a100": {"gpu": "2"}}),))
    result = assigned(planted(of, beside), of, pods(1, {"gpu": wanted}))
    assert (flavors_of(result)[0], result.level) == expected
    assert result.verdict is Verdict.FIT


@pytest.mark.parametrize(
    ("rules", "found", "a100", "expected"),
    [
        (FlavorFungibility(), Verdict.PREEMPT, "8", ("a100", Verdict.FIT)),
        (
            FlavorFungibility(when_can_preempt="MayStopSearch"),
            Verdict.PREEMPT,
            "8",
            ("h100", Verdict.PREEMPT),
        ),
        (FlavorFungibility(), Verdict.PREEMPT, "2", ("h100", Verdict.PREEMPT)),
        (
            FlavorFungibility(when_can_preempt="MayStopSearch"),
            Verdict.NO_VICTIMS,
            "8",
            ("a100", Verdict.FIT),
        ),
    ],
)
def test_scenario_18(
    rules: FlavorFungibility, found: Verdict, a100: str, expected: tuple[str, Verdict]
) -> None:
    quotas = {"h100": {"gpu": "4"}, "a100": {"gpu": a100}}
    of = queue("q", groups=(group(quotas),), fungibility=rules)
    node = planted(of)
    charge(node.cell(FlavorResource("h100", GPU)), 4)
    victims = Victims({"h100": Simulated(found, 0)})
    result = assigned(node, of, pods(1, {"gpu": 4}), victims=victims)
    assert (flavors_of(result)[0], result.verdict) == expected
    assert victims.asked == [("h100", 4)]


@pytest.mark.parametrize(
    ("preference", "expected"), [("", "a100"), ("PreemptionOverBorrowing", "h100")]
)
def test_scenario_19(preference: Any, expected: str) -> None:
    rules = FlavorFungibility(when_can_borrow="TryNextFlavor", preference=preference)
    quotas = {"h100": {"gpu": "4"}, "a100": {"gpu": "2"}}
    of = queue("q", groups=(group(quotas),), fungibility=rules)
    node = planted(of, queue("b", groups=(group({"a100": {"gpu": "4"}}),)))
    charge(node.cell(FlavorResource("h100", GPU)), 4)
    victims = Victims({"h100": Simulated(Verdict.PREEMPT, 0)})
    result = assigned(node, of, pods(1, {"gpu": 4}), victims=victims)
    assert flavors_of(result) == [expected]


# --- several resources and pod sets --------------------------------------------------------------


def test_one_flavor_serves_all_resources_of_a_group() -> None:
    """Scenario 20."""
    of = queue(
        "q",
        groups=(
            group({"small": {"cpu": "8", "memory": "16"}, "big": {"cpu": "8", "memory": "64"}}),
            group({"h100": {"gpu": "4"}}),
        ),
    )
    result = assigned(planted(of), of, pods(2, {"cpu": 2, "gpu": 1, "memory": 12}))
    assert {resource: flavor for (_, resource), flavor in result.flavors.items()} == {
        "cpu": "big",
        "memory": "big",
        "gpu": "h100",
    }


def test_later_pod_sets_see_what_earlier_ones_took() -> None:
    """Scenario 21."""
    of = queue("q", groups=(group({"spot": {"cpu": "6"}, "od": {"cpu": "10"}}),))
    result = assigned(
        planted(of), of, pods(1, {"cpu": 2}, "launcher"), pods(4, {"cpu": 2}, "worker")
    )
    assert flavors_of(result) == ["spot", "od"]
    assert [*result.charges.values()] == [2, 8]


def test_pod_sets_that_are_too_much_together_are_refused_as_a_whole() -> None:
    """Scenario 65: 6 + 6 > 8."""
    of = queue("q", "8")
    node = planted(of)
    result = assigned(node, of, pods(1, {"gpu": 6}, "head"), pods(3, {"gpu": 2}, "workers"))
    assert result.verdict is Verdict.NO_FIT
    (fact,) = result.blockers
    assert isinstance(fact, ExceedsMaximum)
    assert (fact.pod_set, fact.wanted, fact.maximum) == ("workers", 12, 8)
    assert node.cell(ACCOUNT).usage == 0


def test_pods_are_counted_where_the_queue_counts_them() -> None:
    """Scenario 24."""
    of = queue("q", groups=(group({"f": {"cpu": "100", "pods": "3"}}),))
    result = assigned(planted(of), of, pods(4, {"cpu": 1}))
    assert result.verdict is Verdict.NO_FIT
    assert [
        blocker.resource for blocker in result.blockers if isinstance(blocker, ExceedsMaximum)
    ] == ["pods"]


# --- reasons and wake-ups ------------------------------------------------------------------------


def test_a_shortage_is_reported_and_indexed_with_its_numbers() -> None:
    nodes = tree(queues={"q": ("2", "all"), "b": ("4", "all")})
    use(nodes["b"], 3)
    result = assigned(nodes["q"], queue("q", "2"), pods(1, {"gpu": 5}))
    assert result.verdict is Verdict.NO_FIT
    (fact,) = result.blockers
    assert isinstance(fact, QuotaExhausted)
    assert (fact.wanted, fact.available, fact.tried_preemption) == (5, 3, False)
    assert result.shortages == {ACCOUNT: 2}


def test_less_may_be_enough_where_the_rest_could_be_reclaimed() -> None:
    """The side owns 5 of which 2 are used: one more there, and the rest may be reclaimed.

    A queue without rules has to wait for all of it.
    """
    nodes = tree(
        cohorts={"side": ("3", "all")},
        queues={"q": ("2", "side"), "s": ("0", "side"), "b": ("4", "all")},
    )
    use(nodes["s"], 1)
    use(nodes["b"], 6)
    wants = pods(1, {"gpu": 5})
    patient = assigned(nodes["q"], queue("q", "2"), wants)
    assert patient.shortages == {ACCOUNT: 3}
    eager = assigned(nodes["q"], queue("q", "2"), wants, victims=Victims(has_rules=True))
    assert eager.shortages == {ACCOUNT: 1}


@pytest.mark.parametrize(("gap", "expected"), [(2, {ACCOUNT: 2}), (None, None)])
def test_what_victims_could_not_give_is_filed(
    gap: int | None, expected: dict[FlavorResource, int] | None
) -> None:
    nodes = tree(queues={"q": ("5", "all"), "b": ("4", "all")})
    use(nodes["q"], 5)
    use(nodes["b"], 2)
    victims = Victims({"f": Simulated(Verdict.NO_VICTIMS, 0, gap)})
    result = assigned(nodes["q"], queue("q", "5"), pods(1, {"gpu": 5}), victims=victims)
    assert result.verdict is Verdict.NO_VICTIMS
    assert result.shortages == expected


def test_what_can_never_fit_waits_for_configuration_only() -> None:
    """Scenario 66: b lends nothing, so a's maximum is its own 4."""
    nodes = tree(queues={"a": ("4", "all"), "b": ("4/ll0", "all")})
    result = assigned(nodes["a"], queue("a", "4"), pods(1, {"gpu": 5}))
    assert result.shortages == {}
    assert isinstance(result.blockers[0], ExceedsMaximum)
    other = assigned(nodes["b"], queue("b", "4/ll0"), pods(1, {"gpu": 8}))
    assert (other.verdict, other.level) == (Verdict.FIT, 1)


def test_pod_sets_that_share_an_account_wait_for_anything() -> None:
    nodes = tree(queues={"q": ("4", "all"), "b": ("4", "all")})
    use(nodes["b"], 4)
    result = assigned(
        nodes["q"], queue("q", "4"), pods(1, {"gpu": 3}, "one"), pods(1, {"gpu": 3}, "two")
    )
    assert result.verdict is Verdict.NO_FIT
    assert result.shortages is None


def test_the_mildest_reason_of_a_group_and_the_worst_group_come_first() -> None:
    """Severity: waiting for quota < exceeds the maximum < no match (spec quota §7)."""
    of = queue(
        "q",
        groups=(group({"small": {"gpu": "2"}, "large": {"gpu": "8"}}), group({"c": {"cpu": "1"}})),
    )
    node = planted(of)
    charge(node.cell(FlavorResource("large", GPU)), 6)
    result = assigned(node, of, pods(1, {"gpu": 4, "cpu": 1, "fpga": 1}))
    assert [type(each) for each in result.blockers] == [
        ResourceNotCovered,
        QuotaExhausted,
        ExceedsMaximum,
    ]


def test_only_allowed_flavors_are_taken() -> None:
    of = queue("q", groups=(group(H_A),))
    only = {(0, ResourceName("gpu")): FlavorName("a100")}
    result = assigned(planted(of), of, pods(1, {"gpu": 2}), allowed=only)
    assert flavors_of(result) == ["a100"]


# --- partial admission ---------------------------------------------------------------------------


def test_counts_shrink_evenly() -> None:
    """Scenario 27: m 1, w 10 to 5, e 6 to 3; 5 of 8 steps leave 1, 7, 5."""
    sets = (
        pods(1, {"cpu": 1}, "m"),
        pods(10, {"cpu": 2}, "w", min_count=5),
        pods(6, {"cpu": 1}, "e", min_count=3),
    )
    request = GangRequests().take(job("w", "q", pod_sets=sets))
    assert request.shrinkable == 8
    assert [shrunk(request, steps) for steps in (0, 4, 5, 8)] == [
        (1, 10, 6),
        (1, 8, 5),
        (1, 7, 5),
        (1, 5, 3),
    ]


def test_reclaimable_pods_are_not_requested_again() -> None:
    workload = job(
        "w", "q", pod_sets=(pods(4, {"gpu": 1}, min_count=2),), reclaimable=(("main", 1),)
    )
    request = GangRequests().take(workload)
    assert (request.counts, request.minimums, request.shrinkable) == ((3,), (2,), 1)
