"""A simulated week of three teams: every format tells the same figures."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import UTC, datetime
from email import message_from_bytes
from email.policy import default
from html.parser import HTMLParser
from pathlib import Path

import pytest

from unisono.cli.main import ANSWER_IS_NO, main
from unisono.cli.report import _SREPORTS, whole
from unisono.cli.sim.usage import write_ledger
from unisono.cli.tables import width_of
from unisono.engine.model.names import NodeName
from unisono.engine.model.node import Node
from unisono.engine.model.resources import amounts
from unisono.kinds.overriding import override
from unisono.language.catalog import catalog
from unisono.monitor.ledger.accounts import Period
from unisono.monitor.ledger.rows import NodeRow, PodRow, WorkloadRow
from unisono.monitor.report import formats
from unisono.monitor.report.focus import focus
from unisono.monitor.report.html import html, mail
from unisono.monitor.report.model import Report, Waiting
from unisono.monitor.report.other_tools import SREPORTS, opencost, sreport
from unisono.runtime.usage_reports import read
from unisono.sim.generators import gpu
from unisono.sim.loop import simulate
from unisono.sim.setup import POLICIES

NOW = 1_767_571_200  # a Monday
WEEK = Period(NOW - 7 * 86_400, NOW)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the ledger of eight p5 under the jobs of three teams."""
    labels = (("node.kubernetes.io/instance-type", "p5.48xlarge"),)
    allocatable = amounts({"nvidia.com/gpu": 8, "cpu": 192_000, "memory": 2 << 40})
    nodes = tuple(
        Node(name=NodeName(f"n{at}"), labels=labels, allocatable=allocatable) for at in range(8)
    )
    trace = gpu(jobs=120, gpus=64, load=0.8, teams=3, seed=3)
    path = tmp_path_factory.mktemp("report") / "ledger.db"
    write_ledger(simulate(trace, nodes, POLICIES["easy"], spans=True), nodes, path, NOW)
    return path


@pytest.fixture(scope="module")
def report(ledger: Path) -> Report:
    """Return the report of the last week."""
    return read(ledger, WEEK)


class _Cells(HTMLParser):
    """Reads the tables of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._is_cell = False

    @override
    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "tr":
            self.rows.append([])
        self._is_cell = tag in ("td", "th")
        if self._is_cell:
            self.rows[-1].append("")

    @override
    def handle_endtag(self, tag: str) -> None:
        self._is_cell = False

    @override
    def handle_data(self, data: str) -> None:
        if self._is_cell:
            self.rows[-1][-1] += data


def test_every_format_tells_the_same_to_the_cent(report: Report) -> None:
    """Scenarios 14 and 20."""
    rows = list(csv.DictReader(io.StringIO(formats.as_csv(report))))
    told = json.loads(formats.as_json(report))
    cents = sum(round(float(one["cost_usd"]) * 100) for one in rows)
    assert cents == told["headline"]["amounts"]["costCents"] > 0
    assert cents == sum(one["amounts"]["costCents"] for one in told["teams"])
    assert cents == sum(one["amounts"]["costCents"] for one in told["users"])
    page = html(report)
    assert f"<b>{formats.money(cents)}</b>" in page
    assert formats.money(cents) in formats.text(report)
    assert formats.money(cents) in formats.markdown(report)
    hours = sum(float(one["gpu_hours"]) for one in rows)
    assert hours == pytest.approx(told["headline"]["amounts"]["allocated"])
    cells = _Cells()
    cells.feed(page)
    for team in report.teams:
        line = next(row for row in cells.rows if row[:1] == [team.name])
        assert line[2] == formats.hours(team.amounts.allocated)
        assert line[-1] == formats.money(team.amounts.cost_cents)


def test_the_table_for_people_is_in_their_language(report: Report) -> None:
    text = formats.text(report, catalog("ko").say, width_of)
    assert text.startswith("GPU 사용 ")
    told = text.split("\n\n")[0]
    assert "사용 가능한 GPU 시간" in told
    assert not re.search(r"[a-z]{4}", told.partition("\n")[2]), told
    # Values stand below each other, however wide the letters before them are.
    ends = {width_of(re.split(r"(?<=\S)  +", line)[0]) for line in told.split("\n")[1:]}
    assert len(ends) > 1
    assert formats.money(report.headline.total_cents) in told


def test_three_teams_have_their_part(report: Report) -> None:
    assert len(report.teams) == 3
    there = sum(one.allocated + one.held + one.free + one.down for one in report.capacity)
    assert there == pytest.approx(report.headline.capacity)
    assert report.headline.amounts.efficiency is not None
    assert report.headline.coverage == pytest.approx(1.0, abs=0.01)
    assert len(report.waste) <= 10


def test_the_page_needs_nothing_from_elsewhere(report: Report) -> None:
    page = html(report)
    assert len(page) < 1_000_000
    assert "<script" not in page
    assert not re.search(r"(src|href)=|url\(|@import", page)
    assert "prefers-color-scheme:dark" in page
    titles = [one.title for one in formats.tables(report) if one.lines]
    assert all(f"<h2>{title}</h2>" in page for title in titles)


def test_a_message_has_text_page_and_table(report: Report) -> None:
    """Scenario 20."""
    message = message_from_bytes(mail(report, sender="a@b.c", to="d@e.f"), policy=default)
    kinds = [part.get_content_type() for part in message.walk() if not part.is_multipart()]
    assert kinds == ["text/plain", "text/html", "text/csv"]


def test_as_sreport_prints_it(report: Report) -> None:
    """Scenario 21."""
    told = sreport(report, "c", which="utilization", is_parsable=True)
    head, line = told.splitlines()
    assert head == "Cluster|TRES Name|Allocated|Down|PlannedDown|Idle|Planned|Reported"
    values = [int(one) for one in line.split("|")[2:]]
    assert sum(values[:-1]) == values[-1]


def test_accounts_users_and_sizes_as_sreport_prints_them(report: Report) -> None:
    def told(which: str) -> list[list[str]]:
        text = sreport(report, "c", which=which, is_parsable=True)
        return [line.split("|") for line in text.splitlines()]

    head, *lines = told("AccountUtilizationByUser")
    assert head == ["Cluster", "Account", "Login", "Proper Name", "TRES Name", "Used"]
    accounts = {one[1]: int(one[-1]) for one in lines if not one[2]}
    assert set(accounts) == {one.name for one in report.teams}
    for account, used in accounts.items():
        assert used == sum(int(one[-1]) for one in lines if one[1] == account and one[2])
    _, *top = told("TopUsage")
    assert [int(one[-1]) for one in top] == sorted((int(one[-1]) for one in top), reverse=True)
    head, *sizes = told("SizesByAccount")
    assert head[2:4] == ["0-1 GPUs", "2-7 GPUs"]
    for one in sizes:
        assert sum(map(int, one[2:-1])) == accounts[one[1]]
    assert "Top 10 Users" in sreport(report, "c", which="TopUsage", is_parsable=False)


def test_as_opencost_answers_it_balances(report: Report) -> None:
    told = json.loads(opencost(report))["data"][0]
    cents = sum(round(one["totalCost"] * 100) for one in told.values())
    assert cents == report.headline.total_cents
    hours = sum(one["gpuHours"] for one in told.values())
    assert hours == pytest.approx(report.headline.capacity, abs=0.5)


def test_focus_columns_add_up_to_the_total(report: Report) -> None:
    rows = list(csv.DictReader(io.StringIO(focus(report, "c"))))
    cents = sum(round(float(one["BilledCost"]) * 100) for one in rows)
    assert cents == report.headline.total_cents
    hours = sum(float(one["ConsumedQuantity"]) for one in rows)
    assert hours == pytest.approx(report.headline.capacity)
    for team in report.teams:
        of_team = [one for one in rows if one["SubAccountId"] == team.name]
        cost = sum(round(float(one["EffectiveCost"]) * 100) for one in of_team)
        assert cost == team.amounts.cost_cents
        wasted = sum(round(float(one["x_WastedCost"]) * 100) for one in of_team)
        assert wasted == team.amounts.wasted_cents
    first = rows[0]
    assert (first["BillingPeriodStart"], first["BillingPeriodEnd"]) == (
        "2025-12-01T00:00:00Z",
        "2026-01-01T00:00:00Z",
    )
    assert first["ChargePeriodStart"] == "2025-12-29T00:00:00Z"
    assert set(json.loads(first["Tags"])) == {"namespace", "queue", "user", "team"}


def test_waiting_workloads_are_in_the_table(ledger: Path) -> None:
    made = read(ledger, Period(WEEK.since, WEEK.since + 86_400))
    made.waiting = (Waiting("a", "w", "Job", "q", "t", "u", 8, 3600),)
    *_, last = csv.DictReader(io.StringIO(formats.as_csv(made)))
    assert (last["name"], last["outcome"], last["wait_seconds"]) == ("w", "waiting", "3600")
    assert last["cost_usd"] == "0.00"


def test_the_previous_period_equals_its_own_report(ledger: Path) -> None:
    half = Period(WEEK.since + 3 * 86_400, WEEK.since + 5 * 86_400)
    before = read(ledger, half).before
    own = read(ledger, Period(half.since - half.seconds, half.since)).headline
    assert before.amounts == own.amounts
    assert before.waits == own.waits
    assert before.capacity == pytest.approx(own.capacity, abs=0.02)
    assert before.total_cents == pytest.approx(own.total_cents, abs=5)


def test_names_are_written_safely(ledger: Path, report: Report) -> None:
    report.teams[0].name = "<b>&|"
    page, text = html(report), formats.markdown(report)
    assert "<td>&lt;b&gt;&amp;|</td>" in page
    assert "| <b>&\\| |" in text


def test_the_command_writes_files(ledger: Path, tmp_path: Path, capsys: object) -> None:
    asked = ["--ledger", str(ledger), "--until", "2026-01-05", "--since", "7d"]
    formats = "html,csv,json,eml,md,text,sreport,opencost,focus"
    assert main(["report", *asked, "--format", formats, "--out", str(tmp_path)]) == 0
    wanted = (
        ".focus.csv",
        ".csv",
        ".eml",
        ".html",
        ".json",
        ".md",
        ".txt",
        ".sreport.txt",
        ".opencost.json",
    )
    assert {"".join(one.suffixes) for one in tmp_path.iterdir()} == set(wanted)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--format", "pdf"], "pdf is none; there are text, md"),
        (["--format", "html,csv"], "say where: --out DIR"),
        (["--since", "yesterday"], "neither a date nor a time ago"),
        (["--since", "2026-02-01", "--until", "2026-01-01"], "is not before the end"),
    ],
)
def test_what_is_wrong_is_said(
    ledger: Path, arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--ledger", str(ledger), *arguments]) == 2
    assert complaint in capsys.readouterr().err


def test_only_one_team(ledger: Path, report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    team = report.teams[1]
    asked = ["--ledger", str(ledger), "--until", "2026-01-05", "--team", team.name]
    assert main(["report", *asked, "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in told["teams"]] == [team.name]
    assert told["headline"]["amounts"]["costCents"] == team.amounts.cost_cents


@pytest.mark.parametrize("option", ["--team", "--user", "--queue"])
def test_a_name_that_does_not_exist_is_refused(
    ledger: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--ledger", str(ledger), "--until", "2026-01-05", option, "nope"]
    assert main(["report", *asked]) == ANSWER_IS_NO
    said = capsys.readouterr()
    assert said.out == ""
    assert f'there is no {option[2:]} "nope"; there are ' in said.err


def test_a_name_that_is_nearly_right_is_suggested(
    ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--ledger", str(ledger), "--until", "2026-01-05", "--team", "taem-1"]
    assert main(["report", *asked]) == ANSWER_IS_NO
    assert '; did you mean "team-1"?' in capsys.readouterr().err


def test_no_bill_of_a_time_without_usage(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--since", "2020-01-01", "--until", "2020-02-01", "--team", "team-1"]
    assert main(["report", "--ledger", str(ledger), *asked]) == ANSWER_IS_NO
    assert "team team-1: no usage from 2020-01-01 to 2020-02-01" in capsys.readouterr().err


def test_advises_a_job_that_uses_two_of_eight_gpus() -> None:
    """Scenario 17."""
    from unisono.monitor.ledger.settlement import settle
    from unisono.monitor.report.advice import Advisor, Gpu

    hour = 3600
    pod = PodRow(
        uid="p",
        namespace="a",
        name="p",
        workload="w",
        node="n",
        gpus=8,
        bound=1,
        started=1,
        ended=1 + 2 * hour,
        outcome="Succeeded",
        covered=16.0 * hour,
        busy=4.0 * hour,
        tensor=2.0 * hour,
        idle_devices=6,
        peak_mib=18 * 1024,
    )
    node = NodeRow(
        uid="n",
        since=0,
        name="n",
        gpus=8,
        model="H100",
        instance_type="p5.48xlarge",
        capacity_type="on-demand",
        pool="",
        micro_usd_hour=55_040_000,
        is_up=True,
    )
    tries: dict[str, list[WorkloadRow]] = {}
    (used,) = settle(Period(0, 3 * hour), [pod], tries, [node]).used.values()
    gpus = [Gpu("A10G", 22_888, 1.01), Gpu("T4", 15_360, 0.5), Gpu("H100", 81_559, 6.88)]
    told = list(Advisor(gpus).advise(used, None, 6.88))
    assert told[0] == "only 2 of 8 GPUs were busy: request 2 (saves $41.28 an hour)"
    assert told[1].startswith("at most 18 GiB of GPU memory were used: A10G would do (saves $46.96")


@pytest.mark.parametrize(
    ("length", "since", "until"),
    [
        ("daily", "2026-03-03", "2026-03-04"),
        ("weekly", "2026-02-23", "2026-03-02"),
        ("monthly", "2026-02-01", "2026-03-01"),
    ],
)
def test_whole_days_weeks_and_months(length: str, since: str, until: str) -> None:
    found = whole(length, datetime(2026, 3, 4, 5, tzinfo=UTC))
    assert [f"{datetime.fromtimestamp(one, UTC):%Y-%m-%d}" for one in found] == [since, until]


def test_the_command_knows_every_sreport() -> None:
    assert SREPORTS == _SREPORTS
