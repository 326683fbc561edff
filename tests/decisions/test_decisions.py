"""The engine decides as it did when these cases were recorded.

A difference that is meant to be is recorded anew: `python -m tests.decisions record --only CASE`,
with every case named in the commit.
"""

from __future__ import annotations

import msgspec
import pytest

from tests.decisions import adapter, store
from tests.decisions.compare import differences
from tests.decisions.coverage import TABLE, counted_all, gaps, table

# So many cases in one test: a quarter of a second at most, and enough to share among workers.
_TOGETHER = 4
_SLOW = {"long-reservation-table"}  # each of its cases has hundreds of workloads
LINES = {area: store.lines(area) for area in store.areas()}
GROUPS = [
    pytest.param(area, first, marks=[pytest.mark.slow] if area in _SLOW else [])
    for area, lines in LINES.items()
    for first in range(0, len(lines), _TOGETHER)
]


@pytest.mark.parametrize(("area", "first"), GROUPS, ids=str)
def test_the_same_is_decided(area: str, first: int) -> None:
    found = [
        line
        for each in LINES[area][first : first + _TOGETHER]
        for line in differences(store.read(each))
    ]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.slow
def test_the_table_of_what_is_covered_agrees_with_the_data_and_has_no_gap() -> None:
    counts = counted_all()
    assert TABLE.read_text() == table(counts), "write it with `python -m tests.decisions coverage`"
    assert gaps(counts) == []


def test_a_difference_names_the_case_the_decision_and_both_values() -> None:
    case = store.read(LINES["classical"][0])
    changed = next(one for one in case.decided if "admit" in one)
    number = case.decided.index(changed) + 1
    changed["admit"][0]["admission"]["pod_sets"][0]["count"] += 7
    told = "\n".join(differences(case))
    assert told.startswith(f"{case.name}: decision {number} of {len(case.decided)} (step ")
    assert "admit[0].admission.pod_sets[0].count\n    recorded " in told


@pytest.mark.parametrize("area", LINES)
def test_values_survive_being_recorded(area: str) -> None:
    """Workloads as the engine keeps them are read back to what they were."""
    case = store.read(LINES[area][0])
    world = adapter.World(case.policy, case.now)
    for step in case.steps:
        world.take(step)
    held = [one["workload"] for one in world.holding().values()]
    for told in (*world.pending().values(), *held):
        again = adapter.dump(adapter.load_workload(told))
        assert msgspec.json.encode(again) == msgspec.json.encode(told)
