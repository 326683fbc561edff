"""Every figure of a report agrees with every other, and with the times of the pods themselves.

A history is drawn from a seed: nodes that come, go, break and change their price, and pods of jobs
of several teams, many of them seconds long. The expected figures are added up here from the pods'
own times, in fractions, without any code of the product.
"""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from fractions import Fraction
from random import Random
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from unisono.monitor.ledger.accounts import Period
from unisono.monitor.ledger.rows import NodeRow, PodRow, WorkloadRow
from unisono.monitor.report import formats
from unisono.monitor.report.build import Only, Rows, report
from unisono.monitor.report.model import Report
from unisono.monitor.report.other_tools import opencost, sreport

PERIOD = Period(1_767_225_600, 1_767_225_600 + 3 * 86_400)
_PRICES = (0, 1_010_000, 12_345_678, 55_040_000)


def rows_of(
    pods: list[PodRow], workloads: list[WorkloadRow], nodes: list[NodeRow], period: Period
) -> Rows:
    """Return what a ledger has about a period."""
    since, until = period
    return Rows(
        [one for one in pods if one.bound < until and (one.ended or until) >= since],
        [one for one in workloads if one.since < until and (one.ended or until) >= since],
        [one for one in nodes if one.since < until and (one.until or until) >= since],
        [],
    )


def node(
    name: str, since: int, until: int, gpus: int, price: int, *, is_up: bool = True
) -> NodeRow:
    """Return a node as it was for a while."""
    return NodeRow(
        uid=name,
        since=since,
        until=until,
        name=name,
        gpus=gpus,
        model=("H100", "A10G")[len(name) % 2],
        instance_type="",
        capacity_type="on-demand",
        pool="",
        micro_usd_hour=price,
        is_up=is_up,
    )


def workload(uid: str, user: str, team: str, queue: str, since: int, ended: int) -> WorkloadRow:
    """Return the only try of a job."""
    return WorkloadRow(
        uid=uid,
        attempt=1,
        namespace=team,
        name=uid,
        kind="Job",
        owner=uid,
        queue=queue,
        local_queue="q",
        user=user,
        team=team,
        priority_class="",
        flavor="f",
        gpus=1,
        pods=1,
        since=since,
        reserved=since,
        admitted=since,
        ready=since,
        ended=ended,
        outcome="Finished" if ended else "",
    )


def pod(
    uid: str, of: WorkloadRow, on: str, gpus: int, since: int, ended: int, *, busy: float = 0.0
) -> PodRow:
    """Return a pod of a job."""
    running = gpus * max(0, (ended or PERIOD.until) - since)
    return PodRow(
        uid=uid,
        namespace=of.namespace,
        name=uid,
        workload=of.uid,
        node=on,
        gpus=gpus,
        bound=since,
        started=since,
        ended=ended,
        outcome="Succeeded" if ended else "",
        covered=float(running),
        busy=busy * running,
    )


class History(NamedTuple):
    """What happened in a cluster."""

    pods: list[PodRow]
    workloads: list[WorkloadRow]
    nodes: list[NodeRow]

    def report(self, only: Only = Only()) -> Report:  # noqa: B008  (frozen)
        """Return the report about it."""
        return report(
            lambda wanted: rows_of(self.pods, self.workloads, self.nodes, wanted), PERIOD, only=only
        )


def history(seed: int) -> History:
    """Draw one."""
    random = Random(seed)
    first, last = PERIOD.since - 86_400, PERIOD.until
    pods: list[PodRow] = []
    workloads: list[WorkloadRow] = []
    nodes: list[NodeRow] = []
    for number in range(random.randint(1, 4)):
        name, gpus = "n" * (number + 1), random.choice((1, 2, 8))
        at = random.randint(first, last - 7200)
        while at < last:
            until = at + random.choice((3600, 20_000, 200_000))
            price = random.choice(_PRICES)
            is_open = until >= last
            made = node(name, at, 0 if is_open else until, gpus, price, is_up=random.random() < 0.9)
            nodes.append(made)
            at = until
            if not is_open and random.random() < 0.2:
                break  # it is gone
        begin, end = nodes[-1].until or last, nodes[-1].until or last
        begin = min(one.since for one in nodes if one.name == name)
        for _ in range(gpus):  # one GPU after the other, so no node has more pods than GPUs
            at = begin + random.randint(0, 600)
            while at < end and len(pods) < 400:
                lasting = random.choice((1, 7, 15, 120, 3_601, 40_000))
                ended = at + random.randint(1, lasting)
                user = random.randint(0, 5)
                job = workload(
                    f"w{len(workloads)}",
                    f"user-{user}",
                    f"team-{user % 3}",
                    f"queue-{random.randint(0, 2)}",
                    max(first, at - random.randint(0, 500)),
                    ended if ended < end else 0,
                )
                workloads.append(job)
                over = ended if ended < end else end if end < last else 0
                uid = f"p{len(pods)}"
                pods.append(pod(uid, job, name, 1, at, over, busy=random.random()))
                at = ended + random.choice((0, 0, 1, 30, 7_000))
    return History(pods, workloads, nodes)


class Sums(NamedTuple):
    """GPU-seconds and dollars."""

    seconds: dict[str, int]
    usd: dict[str, Fraction]


def independently(found: History) -> Sums:
    """Add up from the pods' own times: in all, and by team, user and queue."""
    seconds: dict[str, int] = defaultdict(int)
    usd: dict[str, Fraction] = defaultdict(Fraction)
    jobs = {one.uid: one for one in found.workloads}
    for one in found.pods:
        job = jobs[one.workload]
        for part in found.nodes:
            if part.name != one.node:
                continue
            since = max(one.bound, part.since, PERIOD.since)
            until = min(one.ended or PERIOD.until, part.until or PERIOD.until, PERIOD.until)
            held = one.gpus * max(0, until - since)
            if not held:
                continue
            cost = Fraction(held * part.micro_usd_hour, 3600 * part.gpus * 1_000_000)
            for key in ("", f"team {job.team}", f"user {job.user}", f"queue {job.queue}"):
                seconds[key] += held
                usd[key] += cost
    return Sums(seconds, usd)


def told(made: Report) -> Sums:
    """Return what a report says of the same."""
    seconds = {"": made.headline.amounts.allocated}
    cents = {"": made.headline.amounts.cost_cents}
    for name, shares in (("team", made.teams), ("user", made.users), ("queue", made.by_queue)):
        for one in shares:
            seconds[f"{name} {one.name}"] = one.amounts.allocated
            cents[f"{name} {one.name}"] = one.amounts.cost_cents
    assert all(abs(one * 3600 - round(one * 3600)) < 1e-5 for one in seconds.values())
    return Sums(
        {key: round(one * 3600) for key, one in seconds.items()},
        {key: Fraction(one, 100) for key, one in cents.items()},
    )


def check(found: History) -> None:
    """Compare every figure with every other."""
    made = found.report()
    expected, here = independently(found), told(made)
    assert here.seconds == {"": 0, **expected.seconds}
    # In millionths of a dollar each pod is rounded where the price of its node changes.
    exact = Fraction(5 * len(found.pods), 2_000_000)
    cent = Fraction(1, 100)
    assert abs(here.usd[""] - expected.usd[""]) <= cent / 2 + exact
    for key, usd in here.usd.items():
        if key.startswith("team"):
            assert abs(usd - expected.usd[key]) <= cent + exact, key
    headline = made.headline.amounts
    for shares in (made.teams, made.users, made.by_queue):
        assert sum(one.amounts.cost_cents for one in shares) == headline.cost_cents
        assert sum(one.amounts.wasted_cents for one in shares) == headline.wasted_cents
    assert all(0 <= one.amounts.wasted_cents <= one.amounts.cost_cents for one in made.jobs)
    rows = list(csv.DictReader(io.StringIO(formats.as_csv(made))))
    in_csv = [one for one in rows if one["outcome"] != "waiting"]
    assert round(sum(float(one["gpu_hours"]) for one in in_csv) * 3600) == here.seconds[""]
    assert sum(round(float(one["cost_usd"]) * 100) for one in in_csv) == headline.cost_cents
    data = json.loads(formats.as_json(made))
    assert round(sum(data["byDay"].values()) * 3600) == here.seconds[""]
    assert round(sum(one["allocated"] for one in data["capacity"]) * 3600) == here.seconds[""]
    entries = json.loads(opencost(made))["data"][0]
    jobs = [one for name, one in entries.items() if name != "__idle__"]
    assert round(sum(one["gpuHours"] for one in jobs) * 3600) == here.seconds[""]
    assert (
        round(sum(one["totalCost"] for one in entries.values()) * 100) == made.headline.total_cents
    )
    accounts = [
        line.split("|")
        for line in sreport(
            made, "c", which="AccountUtilizationByUser", is_parsable=True
        ).splitlines()[1:]
    ]
    minutes = {one[1]: int(one[-1]) for one in accounts if not one[2]}
    assert all(abs(60 * minutes[name] - expected.seconds[f"team {name}"]) <= 30 for name in minutes)
    assert made.reconciliation.is_reconciled, made.reconciliation.differences
    assert round(made.reconciliation.gpu_hours * 3600) == expected.seconds[""]
    for team in made.teams:
        alone = found.report(Only(team=team.name))
        assert alone.headline.amounts == team.amounts
        assert alone.reconciliation.is_reconciled


@pytest.mark.parametrize("seed", range(12))
def test_report_agrees_with_an_independent_sum(seed: int) -> None:
    check(history(seed))


@pytest.mark.slow
def test_a_thousand_reports_agree_with_an_independent_sum() -> None:
    for seed in range(1_000):
        try:
            check(history(seed))
        except AssertionError as error:
            raise AssertionError(f"history({seed}): {error}") from error


@pytest.mark.parametrize(
    ("jobs", "lasting", "hours"), [(200, 15, "0.83"), (1_000, 120, "33.33"), (3_000, 1, "0.83")]
)
def test_many_short_jobs_are_not_rounded_away(jobs: int, lasting: int, hours: str) -> None:
    since = PERIOD.since
    nodes = [node("n", since - 60, 0, 1, 6_880_000)]
    workloads, pods = [], []
    for at in range(jobs):
        start = since + at * lasting
        job = workload(f"w{at}", f"user-{at % 2}", "a", "cq", start, start + lasting)
        workloads.append(job)
        pods.append(pod(f"p{at}", job, "n", 1, start, start + lasting))
    found = History(pods, workloads, nodes)
    check(found)
    made = found.report()
    assert ("GPU-hours allocated", hours) in [one[:2] for one in formats.headline_lines(made)]
    (line,) = next(one for one in formats.tables(made) if one.title == "Teams").lines
    assert line[2] == hours
    cents = round(jobs * lasting * 688 / 3600)
    assert (made.headline.amounts.cost_cents, made.teams[0].amounts.cost_cents) == (cents, cents)
    minutes = sreport(made, "c", which="TopUsage", is_parsable=True).splitlines()[1:]
    assert sum(int(one.split("|")[-1]) for one in minutes) == round(jobs * lasting / 60)
    (row,) = sreport(made, "c", which="SizesByAccount", is_parsable=True).splitlines()[1:]
    assert sum(map(int, row.split("|")[2:-1])) == round(jobs * lasting / 60)


def test_the_headline_says_that_it_is_reconciled() -> None:
    made = history(1).report()
    (line,) = [one for one in formats.headline_lines(made) if one[0] == "Reconciled"]
    assert line[1] == "yes"


def test_pods_that_hold_more_than_their_node_has_are_a_difference() -> None:
    since = PERIOD.since
    job = workload("w", "kim", "a", "cq", since, 0)
    both = [pod(f"p{at}", job, "n", 1, since, since + 3600) for at in range(2)]
    made = History(both, [job], [node("n", since, 0, 1, 1_000_000)]).report()
    assert not made.reconciliation.is_reconciled
    (line,) = [one for one in formats.headline_lines(made) if one[0] == "Reconciled"]
    assert line[1] == "NO"
    assert "jobs say 2.00 GPU-hours, what GPUs were allocated 1.00 (+3,600 GPU-seconds)" in line[2]


def test_time_without_a_node_is_in_no_figure_and_said() -> None:
    since = PERIOD.since
    job = workload("w", "kim", "a", "cq", since, 0)
    late = pod("p", job, "n", 1, since, since + 7200)
    made = History([late], [job], [node("n", since, since + 3600, 1, 1_000_000)]).report()
    assert made.headline.amounts.allocated == 1.0
    assert made.reconciliation.is_reconciled
    (line,) = [one for one in formats.headline_lines(made) if one[0] == "Reconciled"]
    assert "1.00 GPU-hours of pods without a node are not counted" in line[2]


def test_jobs_of_one_name_are_all_in_opencost() -> None:
    since = PERIOD.since
    first = workload("w1", "kim", "a", "cq", since, since + 3600)
    again = workload("w2", "kim", "a", "cq", since + 3600, since + 7200)
    again = replace(again, owner="w1")
    pods = [
        pod("p1", first, "n", 1, since, since + 3600),
        pod("p2", again, "n", 1, since + 3600, since + 7200),
    ]
    made = History(pods, [first, again], [node("n", since, 0, 1, 1_000_000)]).report()
    entries = json.loads(opencost(made))["data"][0]
    (entry,) = [one for name, one in entries.items() if name != "__idle__"]
    assert (entry["gpuHours"], entry["totalCost"]) == (2.0, 2.0)
