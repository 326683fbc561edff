"""The page about outcomes: small, whole, safe, and true in what it draws."""

from __future__ import annotations

import base64
import json
import re
from collections import defaultdict
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from tests.support.simulations import schedule
from unisono.kinds.overriding import override
from unisono.sim.comparison import compare
from unisono.sim.generators import lublin
from unisono.sim.outcome import Capacity, Outcome, Spans, make_outcome
from unisono.sim.page.gantt import ALL, Bar, Window, bars, windows_of
from unisono.sim.page.overview import (
    binned,
    edges_of,
    occupancy,
    overview,
    peaks,
    shares_up_to,
    wait_grid,
)
from unisono.sim.page.render import page
from unisono.sim.trace import BadTrace, make_trace


def page_of(*outcomes: Outcome) -> str:
    return page(outcomes, compare(outcomes))


def content_of(text: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="content">(.*?)</script>', text, re.S)
    assert found is not None
    content: dict[str, object] = json.loads(found[1])
    return content


# --- curves --------------------------------------------------------------------------------------


def test_means_of_a_step_series() -> None:
    time, values = np.array([1.0, 3.0, 4.0]), np.array([2.0, 4.0, 0.0])
    assert binned(time, values, np.array([0.0, 2.0, 4.0, 6.0])).tolist() == [1, 3, 0]
    assert binned(time, values, np.array([3.0, 3.5])).tolist() == [4]
    assert binned(np.array([]), np.array([]), np.array([0.0, 1.0])).tolist() == [0]


def test_peaks_count_what_a_part_begins_with() -> None:
    time, values = np.array([0.0, 1.0, 5.0]), np.array([7.0, 1.0, 3.0])
    assert peaks(time, values, np.array([0.0, 2.0, 4.0, 6.0])).tolist() == [7, 1, 3]
    assert peaks(np.array([]), np.array([]), np.array([0.0, 1.0])).tolist() == [0]


def test_area_survives_the_reduction() -> None:
    outcome = schedule(lublin(jobs=300, processors=64, seed=1), "easy")
    depth = outcome.depth
    edges = edges_of(float(depth.time[0]), float(depth.time[-1]))
    reduced = (binned(depth.time, depth.cpu / 1000, edges) * np.diff(edges)).sum()
    assert reduced == pytest.approx((outcome.trace.pods * outcome.trace.run).sum())


def test_shares_by_wait() -> None:
    grid = wait_grid(100.0)
    shares = shares_up_to(np.array([0.0, 0.5, 50.0, 100.0]), grid, 5)
    assert (grid[0], shares[0]) == (1, pytest.approx(0.4))
    assert shares[-1] == pytest.approx(0.8)  # the fifth never started
    assert (np.diff(shares) >= 0).all()


# --- bars ----------------------------------------------------------------------------------------


def assert_no_overlap(found: list[Bar]) -> None:
    by_job: dict[int, int] = defaultdict(int)
    for place, bar in enumerate(found):
        by_job[bar.job] += bar.high - bar.low
        for other in found[place + 1 :]:
            apart = (
                bar.high <= other.low
                or other.high <= bar.low
                or bar.end <= other.start
                or other.end <= bar.start
            )
            assert apart, (bar, other)


def test_bars_of_a_pool_fill_it_without_overlap() -> None:
    trace = lublin(jobs=200, processors=32, load=1.1, seed=5)
    outcome = schedule(trace, "easy")
    found = bars(outcome, windows_of([outcome])[0])
    assert_no_overlap(found)
    sizes: dict[int, int] = defaultdict(int)
    for bar in found:
        assert (bar.start, bar.end) == (outcome.start[bar.job], outcome.end[bar.job])
        assert 0 <= bar.low < bar.high <= 32_000
        sizes[bar.job] += bar.high - bar.low
    assert sizes == {row: 1000 * int(trace.pods[row]) for row in range(len(trace))}


def on_nodes(size: np.ndarray[tuple[int], np.dtype[np.int64]] | None) -> Outcome:
    """Three jobs on two nodes of four GPUs: one across both, two that share the second later."""
    trace = make_trace("t", submit=[0, 0, 0], run=[10, 5, 5], pods=[2, 1, 1], gpus=[2, 1, 4])
    spans = Spans(
        names=("n1", "n2"),
        job=np.array([0, 0, 1, 2]),
        node=np.array([0, 1, 1, 1]),
        start=np.array([0.0, 0.0, 3.0, 10.0]),
        end=np.array([10.0, 10.0, 8.0, 15.0]),
        pods=np.array([1, 1, 1, 1]),
        size=size,
    )
    return make_outcome(
        "p",
        trace,
        Capacity(nodes=2, gpu_milli=8000),
        start=np.array([0.0, 3.0, 10.0]),
        end=np.array([10.0, 8.0, 15.0]),
        spans=spans,
    )


@pytest.mark.parametrize("size", [None, np.array([4000, 4000])])
def test_bars_stay_on_their_nodes(
    size: np.ndarray[tuple[int], np.dtype[np.int64]] | None,
) -> None:
    found = bars(on_nodes(size), Window("all", 0, 15))
    assert_no_overlap(found)
    assert sorted(found, key=lambda bar: (bar.job, bar.low)) == [
        Bar(0, 0, 2000, 0, 10),
        Bar(0, 4000, 6000, 0, 10),
        Bar(1, 6000, 7000, 3, 8),
        Bar(2, 4000, 8000, 10, 15),
    ]
    assert bars(on_nodes(size), Window("late", 12, 15)) == [Bar(2, 4000, 8000, 10, 15)]


def test_neighbours_of_one_job_are_one_bar() -> None:
    outcome = on_nodes(None)
    assert outcome.spans is not None
    full = make_trace("t", submit=[0], run=[10], pods=[2], gpus=[4])
    spans = replace(
        outcome.spans,
        **{name: getattr(outcome.spans, name)[:2] for name in ("job", "node", "start", "end")},
        pods=np.array([1, 1]),
    )
    one = make_outcome(
        "p", full, outcome.capacity, start=np.array([0.0]), end=np.array([10.0]), spans=spans
    )
    assert bars(one, Window("all", 0, 10)) == [Bar(0, 0, 8000, 0, 10)]


def test_windows_of_long_runs_are_short_and_apart() -> None:
    trace = lublin(jobs=3000, processors=64, load=1.0, seed=6)
    outcomes = [schedule(trace, policy) for policy in ("fcfs", "easy")]
    found = windows_of(outcomes)
    assert 2 <= len(found) <= 5
    assert found[-1].title == "the first jobs"
    assert any("longest queue (easy)" in window.title for window in found)
    for window in found:
        assert len(bars(outcomes[0], window)) < 2000
    small = schedule(lublin(jobs=ALL, processors=64, seed=6), "easy")
    assert [window.title for window in windows_of([small])] == ["the whole run"]


def test_the_overview_counts_what_every_node_did() -> None:
    outcome = on_nodes(None)
    assert outcome.spans is not None
    cells = occupancy(outcome, outcome.spans, np.array([0.0, 5.0, 10.0, 15.0]))
    # The first node: half of it until 10. The second: half, and a quarter from 3 to 8; then all.
    assert cells.tolist() == [
        [pytest.approx(0.5), pytest.approx(0.5), 0],
        [pytest.approx(0.5 + 0.25 * 2 / 5), pytest.approx(0.5 + 0.25 * 3 / 5), pytest.approx(1.0)],
    ]
    assert overview([outcome]) is None  # three jobs are shown whole


def test_the_overview_is_small_on_a_large_cluster() -> None:
    jobs, nodes = ALL + 1, 1000
    trace = make_trace("t", submit=np.arange(float(jobs)), run=10, gpus=8)
    start = trace.submit + 1
    spans = Spans(
        names=tuple(f"n{node}" for node in range(nodes)),
        job=np.arange(jobs),
        node=np.arange(jobs),
        start=start,
        end=start + 10,
        pods=np.ones(jobs, np.int64),
    )
    capacity = Capacity(nodes=nodes, gpu_milli=8000 * nodes)
    found = overview([make_outcome("p", trace, capacity, start=start, end=start + 10, spans=spans)])
    assert found is not None
    (chart,) = found["charts"]
    assert len(chart["rows"]) == 96
    assert chart["rows"][0] == "n0 to n10"
    assert len(base64.b64decode(chart["cells"])) == 96 * chart["columns"]


# --- the whole -----------------------------------------------------------------------------------


class Outline(HTMLParser):
    """What a page refers to, and whether its elements are closed."""

    VOID = frozenset({"meta", "link", "br", "img", "hr", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []
        self.ids: list[str] = []

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href"):
                self.references.append(value or "")
            if name == "id":
                self.ids.append(value or "")

    @override
    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_asks_for_nothing() -> None:
    trace = lublin(jobs=600, processors=64, load=1.0, seed=3)
    text = page_of(*(schedule(trace, policy) for policy in ("fcfs", "easy", "easy-sjbf")))
    outline = Outline()
    outline.feed(text)
    assert outline.open == []
    assert outline.references == ["#table"]
    assert len(set(outline.ids)) == len(outline.ids)
    addresses = set(re.findall(r"https?://[^\s\"'`]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, not a place to go
    assert "default-src 'none'" in text
    assert "prefers-color-scheme: dark" in text
    used = set(re.findall(r'getElementById\("([\w-]+)"\)', text))
    assert used <= set(outline.ids)


def test_content_matches_the_outcomes() -> None:
    trace = lublin(jobs=600, processors=64, load=1.0, seed=3)
    outcomes = [schedule(trace, policy) for policy in ("fcfs", "easy")]
    content = content_of(page_of(*outcomes))
    policies = content["policies"]
    assert isinstance(policies, list)
    assert [policy["name"] for policy in policies] == ["fcfs", "easy"]
    assert max(policies[0]["peak"]) == int(outcomes[0].depth.pending.max())
    assert policies[1]["waits"][-1] <= 1000
    assert (content["capacity"], content["unit"]) == (64, "CPUs")


def test_it_stays_small_however_long_the_run() -> None:
    texts = [
        page_of(schedule(lublin(jobs=jobs, processors=128, load=0.9, seed=1), "fcfs"))
        for jobs in (2000, 20_000)
    ]
    assert len(texts[1]) < 1.3 * len(texts[0])
    assert len(texts[1]) < 300_000


def test_names_from_traces_are_only_text() -> None:
    bad = "</script><b>&"
    trace = make_trace(
        bad, submit=[0, 1], run=[5, 5], cpu=1000, queue=[bad, "x"], names=[bad, "fine"]
    )
    outcome = make_outcome(
        bad, trace, Capacity(cpu=2000), start=np.array([0.0, 1.0]), end=np.array([5.0, 6.0])
    )
    text = page_of(outcome)
    assert "<b>&" not in text
    assert text.count("</script>") == 2
    assert content_of(text)["queues"] == [bad, "x"]


def test_seeds_are_in_the_table_and_one_of_them_in_the_charts() -> None:
    outcomes = [
        replace(schedule(lublin(jobs=300, processors=64, load=1, seed=seed), policy), seed=seed)
        for policy in ("fcfs", "easy")
        for seed in (1, 2, 3)
    ]
    text = page_of(*outcomes)
    assert "table over 3 seeds, charts of the first" in text
    assert 'class="better"' in text
    assert re.search(r'title="[^"]+ to [^"]+"', text)
    assert len(content_of(text)["policies"]) == 2  # type: ignore[arg-type]  # a list


def test_refuses_a_page_without_outcomes() -> None:
    empty = make_outcome(
        "p", make_trace("t", submit=[], run=[]), Capacity(), start=np.array([]), end=np.array([])
    )
    with pytest.raises(BadTrace, match="nothing to show"):
        page_of(empty)


def test_a_run_in_which_no_job_started() -> None:
    trace = make_trace("t", submit=[0, 1], run=[5, 5], cpu=1000)
    never = np.array([np.nan, np.nan])
    text = page_of(make_outcome("p", trace, Capacity(cpu=1000), start=never, end=never))
    assert "<h2>p</h2>" in text
