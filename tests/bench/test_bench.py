"""The benchmarks run, count right and report honestly. How fast anything is, is not tested here."""

from __future__ import annotations

import doctest
import json
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from bench import decide, drain, harness, output, plot
from bench.__main__ import FAMILIES, main, measure
from bench.harness import Family, Note, Result, Row, run, use_clock
from bench.traces import NO_TRACES
from bench.worlds import (
    Layout,
    backlog,
    cycle,
    empty_cluster,
    full_cluster,
    settle,
    small_holder,
    submit,
)
from unisono.engine.state import changes


@pytest.fixture(autouse=True)
def _wall_clock() -> Iterator[None]:
    yield
    use_clock("wall")


def _row(what: str = "plan", n: int = 1, median: float = 1.0, **options: object) -> Row:
    fields: dict[str, object] = {"of": "queues", "unit": "ms", "samples": 5}
    fields |= {"p95": 2 * median, "best": median, "worst": 2 * median}
    return Row(what=what, n=n, median=median, **{**fields, **options})  # type: ignore[arg-type]  # one of Row's fields each


# --- arithmetic ----------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [harness, output, drain])
def test_examples_in_docstrings(module: object) -> None:
    tried = doctest.testmod(module)  # type: ignore[arg-type]  # they are modules
    assert tried.attempted > 0
    assert tried.failed == 0


@pytest.mark.parametrize("power", [-1.0, 0.0, 0.5, 1.0, 2.0])
def test_exponent_of_a_power_is_that_power(power: float) -> None:
    points = [(size, 7.0 * size**power) for size in (10, 100, 2_000, 50_000)]
    assert harness.exponent(points) == pytest.approx(power)


@pytest.mark.parametrize(
    ("values", "expected"), [([3.0], 3.0), ([1, 2, 3], 3), (range(1, 21), 20), (range(100), 95)]
)
def test_percentile(values: list[float], expected: float) -> None:
    assert harness.percentile_95(values) == expected


def test_a_row_summarises_seconds_in_its_unit() -> None:
    made = harness.row("plan", 10, "queues", [0.003, 0.001, 0.002], "ms")
    assert (made.median, made.p95, made.samples) == pytest.approx((2.0, 3.0, 3))


def test_rows_of_one_name_are_a_series_in_order_of_size() -> None:
    rows = [_row("b", 1), _row("a", 100, 20.0), _row("a", 10, 2.0), _row("a", 10, 5.0, of="heads")]
    (only,) = harness.series(rows)
    assert [row.n for row in only] == [10, 100]
    (growth,) = harness.growths(rows)
    assert (growth.what, growth.sizes, growth.costs) == ("a", (10, 100), (2.0, 20.0))
    assert growth.exponent == pytest.approx(1.0)


def test_rates_are_not_fitted() -> None:
    assert not [*harness.growths([_row(n=1, unit="1/s"), _row(n=2, unit="1/s")])]


def test_sampling_stops_when_the_budget_is_spent_but_not_before_a_median_is_worth_it() -> None:
    assert len(harness.repeated(lambda: 1.0, samples=7)) == 7
    assert len(harness.repeated(lambda: 1.0, samples=7, budget_s=0)) == harness.FEWEST_SAMPLES
    assert len(harness.repeated(lambda: 1.0, samples=1, budget_s=0)) == 1


def test_tenths_of_a_drain_share_a_cycle_by_its_admissions() -> None:
    costs = drain.costs_by_tenth([(15, 30.0), (5, 5.0)])
    assert costs == pytest.approx([2.0] * 7 + [1.5] + [1.0] * 2)


# --- clusters ------------------------------------------------------------------------------------


def test_a_deep_cluster_is_one_tree_of_four_levels_of_cohorts() -> None:
    state = empty_cluster(Layout(600, "deep"))
    paths = [[*book.node.path()] for book in state.queues.values()]
    assert {len(path) for path in paths} == {5}  # the queue itself, too
    assert len({path[-1] for path in paths}) == 1
    assert len({path[1] for path in paths}) == 12
    assert not [book.blocker for book in state.queues.values() if book.blocker]


def test_a_flat_cluster_has_cohorts_of_fifty() -> None:
    state = empty_cluster(Layout(120))
    roots = [book.node.root() for book in state.queues.values()]
    assert sorted(roots.count(root) for root in set(roots)) == [20, 50, 50]


@pytest.mark.parametrize("form", ["flat", "deep"])
def test_in_a_full_cluster_nothing_fits_even_after_the_small_release(form: str) -> None:
    state = full_cluster(Layout(4, form), 40)  # type: ignore[arg-type]  # two literals
    assert len(state.waiting) == 40
    assert settle(state) == 1
    state.apply(changes.WorkloadGone(small_holder(2)))
    settle(state)
    assert len(state.waiting) == 40


def test_a_backlog_is_the_same_every_time() -> None:
    assert backlog(20, 3) == backlog(20, 3)
    assert backlog(20, 3) != backlog(20, 3, seed=2)


def test_a_cycle_says_whether_it_changed_anything() -> None:
    state = empty_cluster(Layout(1, gpus=100))
    submit(state, backlog(1, 1))
    assert [cycle(state), cycle(state)] == [True, False]


# --- benchmarks ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_benchmark_runs(family: Family) -> None:
    result = run(family, "tiny")
    assert result.rows or result.notes == (Note(NO_TRACES),) or family.name == "servers"
    for each in result.rows:
        assert each.n > 0
        assert each.samples > 0
        assert 0 <= each.median <= each.p95
        assert min(each.best, each.worst) <= each.median <= max(each.best, each.worst)
    for promise in result.targets:
        assert (promise.verdict == "not run") == (promise.median is None)
        assert (promise.verdict == "not run") == bool(promise.why)
    assert family.name in output.as_text(result)


def test_decide_is_skipped_where_there_is_no_such_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (found,) = decide.measure("tiny")
    assert found == Note("there is no `unisono decide` yet")


def test_manifests_for_decide_leave_half_without_room() -> None:
    kinds = [str(document["kind"]) for document in decide.manifests(100)]
    assert kinds.count("Workload") == 100
    assert kinds.count("ClusterQueue") == kinds.count("LocalQueue") == 10


# --- output --------------------------------------------------------------------------------------


def _fake(scale: object) -> Iterator[harness.Finding]:
    yield from (_row("plan", 10, 1.0), _row("plan", 100, 10.0), _row("file", 10, 0.5))
    yield Note("only pretending")
    yield harness.target("plan", _row("plan", 100, 10.0), 5, better="below")


FAKE = Family("fake", "nothing at all", _fake)


def _fake_result() -> Result:
    return run(FAKE, "full")


def test_the_table_is_aligned_and_shows_growth_once_a_series() -> None:
    title, head, *rows, note = output.as_text(_fake_result()).splitlines()
    assert title.startswith("fake: nothing at all (")
    assert [row.split() for row in rows] == [
        ["plan", "10", "queues", "1.00", "2.00", "1.00", "2.00", "ms", "5"],
        [
            "plan",
            "100",
            "queues",
            "10.0",
            "20.0",
            "10.0",
            "20.0",
            "ms",
            "5",
            "n^1.00,",
            "r2",
            "1.00",
        ],
        ["file", "10", "queues", "0.5000", "1.00", "0.5000", "1.00", "ms", "5"],
    ]
    end = head.index("median") + len("median")
    assert all(row[end - 1] != " " and row[end] == " " for row in (head, *rows))
    assert note == "  note: only pretending"


def test_targets_come_with_a_verdict() -> None:
    table = output.targets_table([_fake_result()]).splitlines()
    assert table[0] == "targets"
    figures = "10.0 ms 10.0 20.0 < 5.00 2.00 below bar"
    assert table[2].split() == ["plan", "100", "queues", *figures.split()]
    assert output.targets_table([]) == ""


def test_json_holds_everything(capsys: pytest.CaptureFixture[str]) -> None:
    report = measure([FAKE], "full", clock="cpu", as_table=False)
    found = json.loads(output.as_json(report))
    assert found["schema"] == "unisono.bench/v1"
    assert datetime.fromisoformat(found["when"]).tzinfo is not None
    assert found["scale"] == "full"
    assert found["clock"] == "cpu"
    assert found["host"].keys() >= {"cores", "cpu", "mem_gb", "python", "load_before"}
    assert found["host"]["cpu"]
    assert found["host"]["mem_gb"] > 0
    (result,) = found["results"]
    assert result["benchmark"] == "fake"
    assert result["rows"][1]["median"] == 10.0
    growth = result["growth"][0]
    assert (growth["exponent"], growth["r2"]) == pytest.approx((1.0, 1.0))
    assert (growth["sizes"], growth["costs"]) == ([10, 100], [1.0, 10.0])
    (promise,) = result["targets"]
    assert (promise["median"], promise["best"], promise["worst"]) == (10.0, 10.0, 20.0)
    assert (promise["samples"], promise["unit"], promise["limit"]) == (5, "ms", 5.0)
    assert (promise["ratio"], promise["verdict"], promise["peer"]) == (2.0, "below bar", None)
    assert capsys.readouterr().out == ""


# --- command line --------------------------------------------------------------------------------


@pytest.fixture
def only_fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.__main__.FAMILIES", (FAKE,))


def test_list_names_every_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == [family.name for family in FAMILIES]


def test_an_unknown_benchmark_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["drian"]) == 2
    assert "there is no benchmark 'drian'; there are drain, " in capsys.readouterr().err


@pytest.mark.usefixtures("only_fake")
def test_tables_then_targets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fake", "--quick"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("quick run, wall time · ")
    assert printed.index("fake: nothing at all") < printed.index("targets")


@pytest.mark.usefixtures("only_fake")
def test_json_on_stdout_and_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bench.json"
    assert main(["-o", "json", "--json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.usefixtures("only_fake")
def test_a_plot_without_matplotlib_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["--plot", str(tmp_path / "bench.png")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "--plot needs matplotlib" in printed.err


def test_a_curve_is_a_series_of_durations() -> None:
    (curve,) = plot.curves(_fake_result())
    assert plot.label(curve) == "plan: n^1.00"
