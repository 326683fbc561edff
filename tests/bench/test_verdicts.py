"""What is said of a figure: verdicts, growth, changes since another run, and exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import harness, servers
from bench.__main__ import FAMILIES, main, measure
from bench.compare import changed, changes_text, has_changed
from bench.harness import Better, Family, Finding, Peer, Row, Scale, figures
from bench.output import Report, targets_table
from bench.real import kueue
from bench.real.admissions import RATE
from tests.real.binaries import NoControlPlane

SIZES = (1_000, 2_000, 4_000, 8_000)
TIMES = (1.0, 2.1, 4.1, 8.3)


def _series(times: tuple[float, ...] = TIMES) -> list[Row]:
    return [harness.row("plan", n, "jobs", [t], "s") for n, t in zip(SIZES, times, strict=False)]


# --- verdicts ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("better", "median", "verdict"),
    [
        ("below", 9.9, "ok"),
        ("below", 10.0, "below bar"),
        ("above", 10.0, "ok"),
        ("above", 9.9, "below bar"),
    ],
)
def test_a_result_is_ok_or_below_its_bar(better: Better, median: float, verdict: str) -> None:
    made = harness.target("plan", figures("plan", 1, "job", [median], "ms"), 10, better=better)
    assert (made.verdict, made.median, made.samples) == (verdict, median, 1)
    assert made.ratio == pytest.approx(median / 10)


@pytest.mark.parametrize(("rate", "verdict"), [(250.0, "below bar"), (400.0, "ok")])
def test_beside_a_peer_it_is_the_ratio_that_counts(rate: float, verdict: str) -> None:
    peer = Peer(name="AccaSim", version="1.1.3", value=40.0)
    made = harness.times_peer("jobs", figures("ours", 10, "jobs", [rate], "1/s"), peer, 10)
    assert (made.verdict, made.ratio, made.peer) == (verdict, rate / 40, peer)


def test_the_best_of_a_rate_is_the_highest_and_of_a_cost_the_lowest() -> None:
    rate, cost = (figures("x", 1, "job", [3.0, 1.0, 2.0], unit) for unit in ("1/s", "ms"))
    assert (rate.best, rate.worst) == (3.0, 1.0)
    assert (cost.best, cost.worst) == (1.0, 3.0)


# --- growth --------------------------------------------------------------------------------------


def test_growth_of_the_specification() -> None:
    (growth,) = harness.growths(_series())
    assert f"{growth.exponent:.2f}" == "1.01"
    assert growth.r2 == pytest.approx(0.9996, abs=1e-4)
    made = harness.growth_target("growth", _series(), 1.1)
    assert (made.median, made.verdict) == (1.01, "ok")
    assert harness.growth_target("growth", _series(), 1.0).verdict == "below bar"


def test_growth_over_a_few_sizes_is_not_judged() -> None:
    made = harness.growth_target("growth", _series(TIMES[:3]), 1.1)
    assert (made.verdict, made.median) == ("not run", None)
    assert made.why == "3 sizes; growth is judged over 4"


def test_a_series_that_size_does_not_explain_has_a_small_r2() -> None:
    assert harness.fit([(1, 1.0), (10, 2.0), (100, 1.0)]).r2 == pytest.approx(0)
    assert harness.fit([(1, 3.0), (10, 3.0)]) == (0, 1)


# --- compare -------------------------------------------------------------------------------------


def _ranged(median: float, low: float, high: float) -> Row:
    return figures("plan", 10, "jobs", [low, median, high], "ms")


@pytest.mark.parametrize(
    ("before", "now", "differs"),
    [
        ((100, 95, 106), (108, 101, 112), False),
        ((100, 98, 102), (125, 120, 131), True),
        ((125, 120, 131), (100, 98, 102), True),
        ((100, 99, 101), (109, 108, 110), False),  # ranges apart, but hardly a difference
        ((100, 80, 130), (150, 129, 160), False),  # a difference, but ranges overlap
    ],
)
def test_a_change_is_more_than_noise(
    before: tuple[float, float, float], now: tuple[float, float, float], differs: bool
) -> None:
    assert has_changed(_ranged(*before), _ranged(*now)) is differs


def _report(*rows: Row) -> Report:
    def found(_: Scale) -> Iterator[Finding]:
        yield from rows

    return measure([Family("fake", "nothing", found)], "full", clock="wall", as_table=False)


def test_a_change_is_reported_with_both_medians_and_ranges() -> None:
    old, new = _report(_ranged(100, 98, 102)), _report(_ranged(125, 120, 131))
    title, _, line = changes_text(old, new).splitlines()
    assert title == f"changed since {old.when}"
    assert " ".join(line.split()) == ("fake plan 10 jobs 100 [98.0, 102] 125 [120, 131] ms +25 %")


def test_what_only_one_run_has_is_no_change() -> None:
    old, new = _report(_ranged(100, 98, 102)), _report(figures("else", 10, "jobs", [1.0], "ms"))
    assert not [*changed(old, new)]
    assert changes_text(old, new) == f"no change since {old.when}"


# --- command line --------------------------------------------------------------------------------


@pytest.fixture
def cost(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let the only benchmark measure these milliseconds; ten are its bar."""
    values = [5.0]

    def found(_: Scale) -> Iterator[Finding]:
        made = figures("plan", 10, "jobs", values, "ms")
        yield made
        yield harness.target("plan", made, 10, better="below")

    monkeypatch.setattr("bench.__main__.FAMILIES", (Family("fake", "nothing", found),))
    return values


def test_below_its_bar_is_three_if_strict_else_zero(cost: list[float]) -> None:
    assert main(["--strict"]) == 0
    cost[:] = [20.0]
    assert main(["--strict"]) == 3
    assert main([]) == 0


def test_compare_reads_what_json_wrote(
    cost: list[float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "old.json"
    main(["--json", str(old)])
    capsys.readouterr()
    assert main(["--compare", str(old)]) == 0
    assert "no change since" in capsys.readouterr().out
    cost[:] = [8.0, 8.5, 9.0]
    assert main(["--compare", str(old)]) == 0
    assert "+70 %" in capsys.readouterr().out
    assert main(["--compare", str(old), "-o", "json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["results"]
    assert "+70 %" in printed.err


@pytest.mark.usefixtures("cost")
def test_another_file_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "old.json"
    assert main(["--compare", str(path)]) == 2
    path.write_text('{"schema": "another"}', encoding="utf-8")
    assert main(["--compare", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "cannot read" in printed.err
    assert "is not what --json writes" in printed.err


@pytest.mark.parametrize(
    ("words", "scale"),
    [([], "quick"), (["fake"], "full"), (["--full"], "full"), (["fake", "--quick"], "quick")],
)
@pytest.mark.usefixtures("cost")
def test_without_names_it_is_an_overview(
    words: list[str], scale: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    assert capsys.readouterr().out.startswith(f"{scale} run, ")


# --- peers ---------------------------------------------------------------------------------------


@pytest.fixture
def only_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    family = next(family for family in FAMILIES if family.name == "servers")
    monkeypatch.setattr("bench.__main__.FAMILIES", (family,))
    monkeypatch.setattr(servers._Choice, "kueue", None)


def _no_servers(_: Scale) -> Iterator[Finding]:
    raise NoControlPlane("no etcd")


def _some_servers(_: Scale) -> Iterator[Finding]:
    yield figures(RATE, 10, "workloads", [100.0], "1/s")


@pytest.mark.usefixtures("only_servers")
def test_an_overview_does_not_run_real_servers(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    assert main(["--strict", "--json", str(path)]) == 0
    (result,) = json.loads(path.read_text(encoding="utf-8"))["results"]
    assert result["ids"] == ["A2"]
    (promise,) = result["targets"]
    assert promise["verdict"] == "not run"
    assert promise["peer"] == {"name": "Kueue", "version": "", "value": None}


@pytest.mark.usefixtures("only_servers")
def test_servers_that_are_missing_are_not_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bench.servers.admissions.measure", _no_servers)
    assert main(["servers", "--strict"]) == 0
    assert "not run (no etcd)" in capsys.readouterr().out


@pytest.mark.usefixtures("only_servers")
@pytest.mark.parametrize(
    ("command", "why"), [("false", "it ended with 1"), ("no-such-program", "No such file")]
)
def test_a_peer_that_fails_or_is_missing_is_not_run(
    command: str,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def tried(_: Scale, *, command: str) -> Iterator[Finding]:
        with (tmp_path / "log").open("wb") as log, kueue._started([command], log) as process:
            raise kueue.NoKueue(f"it ended with {process.wait()}")

    monkeypatch.setattr("bench.servers.admissions.measure", _some_servers)
    monkeypatch.setattr("bench.servers.kueue.measure", tried)
    assert main(["servers", "--strict", "--peer", f"kueue={command}"]) == 0
    printed = capsys.readouterr().out
    assert "not run (" in printed
    assert why in printed


@pytest.mark.usefixtures("only_servers")
def test_a_peer_that_runs_gives_a_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    def slower(_: Scale, *, command: str) -> Iterator[Finding]:
        assert command == "./kueue --flag"
        yield figures(f"Kueue: {RATE}", 10, "workloads", [40.0], "1/s")

    monkeypatch.setattr("bench.servers.admissions.measure", _some_servers)
    monkeypatch.setattr("bench.servers.kueue.measure", slower)
    servers.choose(["kueue=./kueue --flag"])
    result = harness.run(next(one for one in FAMILIES if one.name == "servers"), "full")
    (promise,) = result.targets
    assert (promise.verdict, promise.ratio) == ("ok", 2.5)
    assert "≥ 1.50 x  Kueue: 40.0" in targets_table([result])


@pytest.mark.parametrize("words", ["volcano=./volcano", "kueue=", "kueue"])
def test_an_unknown_peer_is_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--peer", words]) == 2
    assert "the only peer with a command is kueue=COMMAND" in capsys.readouterr().err
