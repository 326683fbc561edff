"""A reservation belongs to one workload; if it is withdrawn, the explanation changes."""

from __future__ import annotations

import random

import pytest

from tests.engine.backfill.test_backfill import CONSERVATIVE, EASY, SECOND, Machine, machine
from unisono.engine.model.explanation import Planned
from unisono.engine.model.policy import Backfill

TWO = Backfill(dates=2)
FEW = Backfill(most_tested=2)


def _named(here: Machine, *names: str) -> dict[str, int]:
    """Return the reservations that explanations name, by workload."""
    first = {name: here.why(name) for name in names if name not in here.starts}
    return {name: fact.start // SECOND for name, fact in first.items() if isinstance(fact, Planned)}


def test_only_the_first_of_a_group_has_the_one_reservation() -> None:
    here = machine(EASY, 8)
    here.submit("A", 8, 30)
    here.decide()
    for name in ("B1", "B2", "B3"):
        here.submit(name, 8, 60)
    here.go_to(0)
    assert _named(here, "B1", "B2", "B3") == {"B1": 30}
    here.go_to(30)
    assert here.starts["B1"] == 30
    assert _named(here, "B2", "B3") == {"B2": 90}


def test_a_later_arrival_of_higher_priority_gets_the_reservation() -> None:
    """Within one second the uid decides the order."""
    here = machine(EASY, 8)
    here.submit("A", 8, 30)
    here.decide()
    here.submit("C", 8, 60)
    here.go_to(0)
    here.submit("B", 8, 60)
    here.go_to(0)
    assert _named(here, "B", "C") == {"B": 30}


@pytest.mark.parametrize(("gpus", "spread"), [(8, 1), (1, 8)])
def test_an_overtaken_workload_loses_the_reservation_and_gets_it_back(
    gpus: int, spread: int
) -> None:
    """With one pod each, gangs are counted; otherwise they are tried on nodes."""
    here = machine(EASY, 8)
    here.submit("A", gpus, 30, n=spread)
    here.decide()
    here.submit("B", gpus, 60, n=spread)
    here.go_to(0)
    assert _named(here, "B") == {"B": 30}
    here.submit("C", 4, 60, priority=5)
    here.go_to(1)
    assert _named(here, "B", "C") == {"C": 30}
    here.go_to(30)
    assert _named(here, "B") == {"B": 90}


@pytest.mark.parametrize("rules", [EASY, TWO, FEW, CONSERVATIVE])
@pytest.mark.parametrize("seed", range(8))
def test_no_explanation_names_a_reservation_that_does_not_exist(rules: Backfill, seed: int) -> None:
    random_source = random.Random(seed)
    here = machine(rules, 4, 4)
    names = [f"j{number}" for number in range(14)]
    for name in names:
        here.now += random_source.randint(0, 3)
        size, n = random_source.choice(((1, 1), (1, 4), (2, 2), (4, 1), (4, 2)))
        limit = random_source.randint(1, 20)
        run = random_source.randint(1, limit)
        here.submit(name, size, limit, n=n, run=run, priority=random_source.randint(0, 2))
        here.reservations.clear()
        here.go_to(here.now)
        waiting = [one for one in names[: names.index(name) + 1] if one not in here.starts]
        named = _named(here, *waiting)
        assert named.items() <= here.reservations.items(), (
            "every reservation in an explanation exists"
        )
        if rules.dates == 1:
            first = here.state.timeline.first_reservation
            given = {first.workload.removeprefix("ns/"): first.start // SECOND} if first else {}
            assert named == given, "and the one that exists is in an explanation"
