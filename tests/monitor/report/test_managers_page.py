"""What a manager decides by: what was wasted, why, what it would save; and what is not known."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.monitor.report.test_reconciled import PERIOD, History, node, pod, workload
from unisono.monitor.ledger.rows import NodeRow, PodRow
from unisono.monitor.report import formats
from unisono.monitor.report.html import html

HOUR = 3600
SINCE, UNTIL = PERIOD
LONG = UNTIL - SINCE


def lines(history: History) -> dict[str, tuple[str, str]]:
    return {name: (value, more) for name, value, more in formats.headline_lines(history.report())}


def used(*nodes: NodeRow, **changes: object) -> History:
    """Return a cluster in which one job had a GPU for two hours, from the beginning on."""
    job = workload("w", "kim", "vision", "cq", SINCE, SINCE + 2 * HOUR)
    made = pod("p", job, "n", 1, SINCE, SINCE + 2 * HOUR, busy=0.9)
    return History([replace(made, **changes)], [job], list(nodes))


def test_time_without_nodes_is_neither_free_nor_compared_with() -> None:
    there = node("n", SINCE, SINCE + 6 * HOUR, 1, 1_000_000)
    again = node("n", UNTIL - 6 * HOUR, 0, 1, 1_000_000)
    history = used(there, again)
    made = history.report()
    assert made.gaps == ((SINCE + 6 * HOUR, UNTIL - 6 * HOUR),)
    assert sum(one.free + one.allocated for one in made.capacity) == 12
    assert made.headline.overhead_cents == 1000
    told = lines(history)
    assert told["Recorded"] == ("17%", "no GPUs known for 2d12h: off, or not recorded")
    assert told["Wait, median"][1] == "nothing is recorded before"
    assert told["Cost of jobs"][1] == "nothing is recorded before"
    assert "<title>off, or not recorded</title>" in html(made)


@pytest.mark.parametrize(
    ("since", "more"),
    [
        (SINCE - LONG, "period before: -"),
        (SINCE - LONG // 2, "GPUs were known for 50% of the period before"),
        (SINCE, "nothing is recorded before"),
    ],
)
def test_a_period_is_compared_with_one_that_was_recorded(since: int, more: str) -> None:
    told = lines(used(node("n", since, 0, 1, 1_000_000)))
    assert told["Wait, median"][1] == more
    assert "Recorded" not in told


def test_wasted_dollars_are_said_of_teams_users_and_queues() -> None:
    made = used(node("n", SINCE, 0, 1, 6_000_000), busy=0.0).report()
    for title, name in (("Teams", "vision"), ("Users", "kim"), ("Bill by queue", "cq")):
        (table,) = [one for one in formats.tables(made) if one.title == title]
        (row,) = table.lines
        cells = dict(zip(table.columns, row, strict=True))
        assert (row[0], cells["WASTED"], cells["COST"]) == (name, "$12.00", "$12.00")


def advice(history: History) -> str:
    (row,) = next(one for one in formats.tables(history.report()) if one.title == "Waste").lines
    return row[-1]


MEASURED = 2.0 * HOUR


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"busy": 0.4 * MEASURED}, "waits for data; more loader workers"),
        ({"busy": 0.7 * MEASURED}, "between steps or at its end"),
        ({"busy": 0.1 * MEASURED}, "look at the input pipeline"),
        ({"busy": 0.0, "idle_devices": 1}, "its GPUs did nothing: end it"),
        ({"outcome": "Failed"}, "write checkpoints more often"),
        ({"outcome": "Failed", "saved": SINCE + 7_000, "tensor": HOUR}, "idle 10% of the time"),
    ],
)
def test_every_waste_has_a_cause_and_what_it_would_save(
    changes: dict[str, object], said: str
) -> None:
    text = advice(used(node("n", SINCE, 0, 1, 6_000_000), **changes))
    assert said in text
    assert "$" in text


def test_short_jobs_have_a_cause_as_well() -> None:
    job = workload("w", "kim", "vision", "cq", SINCE, SINCE + 600)
    short: PodRow = pod("p", job, "n", 1, SINCE, SINCE + 600, busy=0.0)
    nodes = [node("n", SINCE, 0, 1, 60_000_000)]
    idle = History([replace(short, idle_devices=1)], [job], nodes)
    assert advice(idle) == "its GPUs did nothing: start with fewer, or fail early (up to $10.00)"
    failed = History([replace(short, outcome="Failed")], [job], nodes)
    lost = "work since its last checkpoint was lost: write them more often (up to $10.00)"
    assert advice(failed) == lost


def test_a_job_that_waited_for_a_slow_node_is_told_its_name() -> None:
    slow = replace(node("n", SINCE, 0, 1, 6_000_000), problem="Straggler")
    text = advice(used(slow, busy=0.5 * MEASURED))
    assert text.startswith("waited for its slowest rank on n: annotate it with unisono.dev/stragg")
    assert "up to $6.00" in text
