"""Starts that were told are kept with the workload, and scored when it starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.monitor import objects
from unisono.control.conditions import timestamp
from unisono.kinds.views import seconds_of
from unisono.monitor.cache import LOCAL_QUEUE, WORKLOAD, ClusterCache
from unisono.monitor.ledger.accounts import Period
from unisono.monitor.ledger.recorder import LedgerRecorder
from unisono.monitor.ledger.rows import WorkloadRow
from unisono.monitor.ledger.start_estimates import EstimateMetrics, Score, ToldStart, scores
from unisono.monitor.ledger.store import LedgerStore
from unisono.monitor.report.build import Rows, report
from unisono.monitor.report.formats import headline_lines

Json = dict[str, Any]
TEN = int(seconds_of("2026-01-01T10:00:00Z"))
HOUR = 3600


def waiting(start: int, *, fact: str = "Expected", position: int = 1) -> Json:
    """Return a pending workload with a start."""
    made = objects.workload("gang")
    made["status"] = {"conditions": []}
    facts = [
        {"fact": "QuotaExhausted", "says": "8 short"},
        {"fact": fact, "start": start * 1000, "position": position, "says": "expected"},
    ]
    for kind, message in (
        ("QuotaReserved", "8 short"),
        ("unisono.dev/Explanation", json.dumps({"stage": "quota", "facts": facts})),
    ):
        made["status"]["conditions"].append(
            {
                "type": kind,
                "status": "False" if kind == "QuotaReserved" else "True",
                "reason": "WaitingForQuota",
                "message": message,
                "lastTransitionTime": "2026-01-01T10:00:00Z",
            }
        )
    return made


def started(at: int) -> Json:
    when = timestamp(at)
    return objects.workload("gang", QuotaReserved=when, Admitted=when)


class Followed:
    """A cluster with one workload, and the rows of it."""

    def __init__(self) -> None:
        self.cache = ClusterCache()
        self.keeper = LedgerRecorder(self.cache)
        self.scored: list[Score] = []
        self.keeper.on_started = self.scored.extend
        self.cache.observe(LOCAL_QUEUE, None, objects.local_queue())
        self._object: Json | None = None

    def at(self, now: int, obj: Json) -> WorkloadRow:
        self.cache.observe(WORKLOAD, self._object, obj)
        self._object = obj
        self.keeper.settle(now)
        (row,) = [one for one in self.keeper.pending() if isinstance(one, WorkloadRow)]
        return row


def test_keeps_the_first_start_the_one_half_way_and_the_last() -> None:
    site = Followed()
    site.at(TEN, waiting(TEN + 2 * HOUR))
    site.at(TEN + HOUR // 2, waiting(TEN + 3 * HOUR))
    site.at(TEN + HOUR, waiting(TEN + 4 * HOUR))
    row = site.at(TEN + 2 * HOUR, started(TEN + 2 * HOUR))
    assert row.told_first == (TEN + 2 * HOUR, TEN, 0)
    assert row.told_half == (TEN + 3 * HOUR, TEN + HOUR // 2, 0), "it stood at half of the wait"
    assert row.told_last == (TEN + 4 * HOUR, TEN + HOUR, 0)
    assert [(one.when, round(one.error, 2)) for one in site.scored] == [
        ("first", 0.0),
        ("half", 0.4),
        ("last", 0.67),
    ]


def test_counts_a_start_once() -> None:
    site = Followed()
    site.at(TEN, waiting(TEN + HOUR))
    row = site.at(TEN + HOUR, started(TEN + HOUR))
    assert [one.when for one in site.scored] == ["first", "half", "last"]
    again = LedgerRecorder(site.cache)
    again.on_started = site.scored.extend
    again.resume([], [row], [], [], seen=TEN + HOUR)
    again.settle(TEN + 2 * HOUR)
    assert len(site.scored) == 3, "it was counted before the restart"


def test_a_start_if_it_fits_then_is_no_estimate() -> None:
    site = Followed()
    row = site.at(TEN, waiting(TEN + HOUR, position=0))
    assert row.told_first == (0, 0, 0)


@pytest.mark.parametrize(
    ("told", "started", "error", "kept"),
    [
        (ToldStart(TEN + HOUR, TEN, 0), TEN + HOUR // 2, 0.5, True),
        (ToldStart(TEN + HOUR, TEN, 0), TEN + 2 * HOUR, 1.0, False),
        (ToldStart(TEN + HOUR, TEN, 1), TEN + HOUR // 2, 0.0, True),
        (ToldStart(TEN + HOUR, TEN, 1), TEN + HOUR + 30, 0.01, True),
        (ToldStart(TEN + HOUR, TEN, 1), TEN + HOUR + 360, 0.1, False),
        (ToldStart(TEN + 5, TEN, 0), TEN + 11, 0.1, True),
    ],
)
def test_scores_by_the_wait_that_was_told(
    told: ToldStart, started: int, error: float, kept: bool
) -> None:
    found = Score("q", "first", told, started)
    assert (round(found.error, 2), found.is_kept) == (error, kept)


def row(number: int, *, late: int, reserved: int = 0) -> WorkloadRow:
    """Return a workload that was told an hour, and started so much later."""
    return WorkloadRow(
        uid=f"u{number}",
        attempt=1,
        namespace="ml",
        name=f"w{number}",
        kind="Job",
        owner=f"j{number}",
        queue="q",
        local_queue="lq",
        user="kim",
        team="ml",
        priority_class="",
        flavor="f",
        gpus=8,
        pods=1,
        since=TEN,
        reserved=TEN + HOUR + late,
        admitted=TEN + HOUR + late,
        ready=TEN + HOUR + late,
        told_first=(TEN + HOUR, TEN, reserved),
        told_half=(TEN + HOUR + late, TEN + HOUR // 2, 0),
        told_last=(TEN + HOUR + late, TEN + HOUR // 2, 0),
    )


def test_the_report_says_within_what_nine_of_ten_jobs_started(tmp_path: Path) -> None:
    rows = [row(number, late=432, reserved=number % 2) for number in range(9)]
    rows.append(row(9, late=9 * HOUR))
    store = LedgerStore(tmp_path / "ledger.db")
    store.write(rows, TEN)
    found = report(
        lambda period: Rows((), [*store.within(WorkloadRow, *period)], (), ()),
        Period(TEN - HOUR, TEN + 24 * HOUR),
    )
    lines = {name: (value, note) for name, value, note in headline_lines(found)}
    assert lines["9 of 10 jobs started within"] == (
        "12%",
        "of the wait that was told first; half way: 0%",
    )
    assert lines["Reservations kept"] == ("0 of 4", "started by the first start reserved")


def test_metrics_of_told_starts() -> None:
    metrics = EstimateMetrics()
    metrics.count(scores(row(1, late=432, reserved=1)))
    found = {
        (family.name, *sorted(sample.labels.items())): sample.value
        for family in metrics.families()
        for sample in family.samples
    }
    late = ("unisono_start_reservations_total", ("queue", "q"), ("result", "late"))
    assert found[late] == 1
    assert sum(value for key, value in found.items() if ("told", "first") in key) > 0
