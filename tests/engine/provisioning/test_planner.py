"""Whole plans: within every limit, complete or refused, and as cheap as trying everything."""

from __future__ import annotations

from itertools import product

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.support.provisioning_builders import demand, machine, offer, offerings, only, order
from unisono.engine.model.names import Instant
from unisono.engine.model.policy import Provisioning
from unisono.engine.model.provisioning import NODES, Offerings, Pool, UnavailableOffer
from unisono.engine.model.resources import amounts
from unisono.engine.model.selection import Taint
from unisono.engine.provisioning.catalogue import Catalogue
from unisono.engine.provisioning.order import Filled, Refused
from unisono.engine.provisioning.planner import alternatives_to, choose

CHEAPEST = Provisioning(packing="MinCost")
SMALL, LARGE = machine("small", 1, 8), machine("large", 4, 40)


def bought(answer: Filled | Refused) -> dict[str, int]:
    """Count machines of a plan."""
    assert isinstance(answer, Filled), answer
    counts: dict[str, int] = {}
    for box in answer.bought:
        assert box.offering is not None
        counts[box.offering.machine.name] = counts.get(box.offering.machine.name, 0) + box.count
    return counts


def refused(answer: Filled | Refused) -> Refused:
    """Return a refusal."""
    assert isinstance(answer, Refused), answer
    return answer


@given(
    st.integers(1, 10),
    st.lists(st.tuples(st.integers(1, 8), st.integers(1, 50)), min_size=1, max_size=3),
    st.integers(0, 12),
    st.integers(0, 80),
)
def test_limits_of_a_pool_are_kept_at_the_lowest_price(
    pods: int, sizes: list[tuple[int, int]], most_nodes: int, most_cores: int
) -> None:
    """The pool limits machines and cores; a machine has as many cores as GPUs."""
    machines = [machine(f"m{i}", gpus, gpus) for i, (gpus, _) in enumerate(sizes)]
    offers = [offer(f"m{i}", price) for i, (_, price) in enumerate(sizes)]
    limits = amounts({NODES: most_nodes, "cpu": most_cores * 1000})
    catalogue = Catalogue(offerings(machines, offers, [Pool(name="p", limits=limits)]))
    answer = choose(order(demand(pods), policy=CHEAPEST), catalogue)
    ways = [
        sum(n * price for n, (_, price) in zip(counts, sizes, strict=True))
        for counts in product(*[range(most_nodes + 1)] * len(sizes))
        if sum(n * gpus for n, (gpus, _) in zip(counts, sizes, strict=True)) >= pods
        and sum(counts) <= most_nodes
        and sum(n * gpus for n, (gpus, _) in zip(counts, sizes, strict=True)) <= most_cores
    ]
    if isinstance(answer, Refused):
        assert not ways, f"{min(ways)} would have done"
        assert answer.code == "LimitExceeded"
    else:
        assert answer.price == min(ways)


@given(st.integers(1, 30), st.integers(0, 20), st.integers(0, 20))
def test_every_pod_has_a_place_or_nothing_is_bought(pods: int, one: int, other: int) -> None:
    offers = [offer("small", 10, stock=one), offer("large", 35, stock=other)]
    answer = choose(order(demand(pods)), Catalogue(offerings([SMALL, LARGE], offers)))
    if isinstance(answer, Refused):
        assert one + 4 * other < pods
        assert answer.code == "StockOut"
    else:
        seated = sum(box.count * box.pods["main"] for box in answer.boxes)
        assert seated == pods


def test_a_gang_is_not_split_over_zones_or_models() -> None:
    offers = [offer("small", 10, "a", stock=1), offer("small", 10, "b", stock=1)]
    catalogue = Catalogue(offerings([SMALL], offers))
    assert refused(choose(order(demand(2)), catalogue)).code == "StockOut"
    apart = Provisioning(same_zone=False)
    assert bought(choose(order(demand(2), policy=apart), catalogue)) == {"small": 2}


def test_the_first_tier_that_holds_all_pods_wins() -> None:
    pools = [
        Pool(name="dear", weight=10, requirements=(only("large"),), limits=amounts({NODES: 1})),
        Pool(name="cheap", requirements=(only("small"),)),
    ]
    catalogue = Catalogue(
        offerings([SMALL, LARGE], [offer("small", 1), offer("large", 100)], pools)
    )
    assert bought(choose(order(demand(4)), catalogue)) == {"large": 1}
    assert bought(choose(order(demand(5)), catalogue)) == {"small": 5}


def test_each_pool_says_what_stood_in_the_way() -> None:
    pools = [
        Pool(name="tainted", taints=(Taint("gpu", "only"),)),
        Pool(name="tiny", requirements=(only("small"),)),
        Pool(name="broken", refused="it is broken"),
    ]
    catalogue = Catalogue(
        offerings([SMALL, LARGE], [offer("small", 1), offer("large", 100)], pools)
    )
    answer = refused(choose(order(demand(2, gpus=4)), catalogue))
    assert answer.code == "NoInstanceFits"
    assert {name: why.code for name, why in answer.pools} == {
        "tainted": "NoCompatibleNodePool",
        "tiny": "NoInstanceFits",
        "broken": "NotReady",
    }


def _out(count: int) -> Offerings:
    outage = UnavailableOffer(
        machine="large",
        zone="a",
        capacity_type="on-demand",
        count=count,
        until=Instant(180_000),
        fewer_from=Instant(60_000),
    )
    return offerings([LARGE], [offer("large", 100)], outages=(outage,))


def test_a_refusal_names_when_to_ask_again_and_what_it_would_cost() -> None:
    answer = refused(choose(order(demand(2, gpus=4)), Catalogue(_out(2))))
    assert (answer.code, answer.retry_at) == ("StockOut", Instant(180_000))
    assert [(one.machines, one.price_micro) for one in answer.alternatives] == [
        ((("large", 2),), 200)
    ]


def test_fewer_than_were_refused_may_be_bought_sooner() -> None:
    catalogue = Catalogue(_out(2))
    later = Instant(60_000)
    assert bought(choose(order(demand(1, gpus=4), now=later), catalogue)) == {"large": 1}
    assert refused(choose(order(demand(2, gpus=4), now=later), catalogue)).code == "StockOut"
    again = Instant(180_000)
    assert bought(choose(order(demand(2, gpus=4), now=again), catalogue)) == {"large": 2}


def test_alternatives_are_reported_with_their_prices() -> None:
    catalogue = Catalogue(
        offerings([SMALL, machine("other", 1, 8, "Y")], [offer("small", 9), offer("other", 7)])
    )
    wanted = order(demand(2))
    chosen = choose(wanted, catalogue)
    assert bought(chosen) == {"other": 2}
    assert isinstance(chosen, Filled)
    alternatives = alternatives_to(wanted, catalogue, chosen)
    assert [(one.machines, one.price_micro) for one in alternatives] == [((("small", 2),), 18)]


def test_a_budget_is_not_exceeded() -> None:
    policy = Provisioning(most_per_hour_micro=25)
    spent = offerings([SMALL], [offer("small", 10)], spent_micro=10)
    assert (
        refused(choose(order(demand(2), policy=policy), Catalogue(spent))).code == "BudgetExceeded"
    )
    fresh = msgspec.structs.replace(spent, spent_micro=5)
    assert bought(choose(order(demand(2), policy=policy), Catalogue(fresh))) == {"small": 2}
