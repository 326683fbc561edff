"""The benchmarks of placement measure what they say: clusters, traces, the placer beside ours."""

from __future__ import annotations

import gzip
import random
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

from bench import backlog, openb, place
from bench.floors import BLOCK, GPUS, LEVELS, RACK, ZONE, gang, node, placer_of, request, table_of
from bench.harness import Note, Row, Target, figures
from bench.traces import NO_TRACES, pod_list, read_published
from bench.worlds import GPU
from tests.support.pod_by_pod import PodByPod
from tests.support.simulations import published
from unisono.engine.model.explanation import GangDoesNotFit
from unisono.engine.model.names import PODS
from unisono.sim.clusters import capacity_of, read_cluster
from unisono.sim.traces.published import read_openb_fill

# --- nodes ---------------------------------------------------------------------------------------


def test_racks_have_sixteen_nodes_and_blocks_sixteen_racks() -> None:
    labels = [dict(node(number).labels) for number in range(5_000)]
    for level, size in ((RACK, 16), (BLOCK, 256), (ZONE, 4096)):
        assert Counter(each[level] for each in labels).most_common(1)[0][1] == size
    assert LEVELS == (ZONE, BLOCK, RACK)


def test_a_cluster_is_about_half_full_and_the_same_every_time() -> None:
    table, again = table_of(2_000), table_of(2_000)
    column = table.resources[GPU]
    assert table.free.tobytes() == again.free.tobytes()
    assert 4.3 < table.free[column, :2_000].mean() < 4.7
    assert set(table.free[column, :2_000].tolist()) == set(range(1, GPUS + 1))


def test_a_shape_of_its_own_fits_as_often_as_the_plain_one() -> None:
    placer = placer_of(table_of(16))
    plain, fresh = placer.place(gang(8)), placer.place(gang(8, more_bytes=1000))
    assert not isinstance(plain, GangDoesNotFit)
    assert not isinstance(fresh, GangDoesNotFit)
    assert plain == fresh


def test_columns_of_the_specification() -> None:
    def named(what: str) -> Row:
        return figures(what, 1, "nodes", [1.0], "ms")

    assert place._is_in(named("cold, 4,096 pods, 2 sets"), "cold", 2, range(5000))
    assert not place._is_in(named("cold, 4,096 pods, 2 sets"), "cold", 2, range(513))
    assert not place._is_in(named("cold, 8 pods, 1 set"), "warm", 1, range(513))
    assert not place._is_in(named("cold, infeasible"), "cold", 1, range(513))


def test_gangs_of_a_backloghave_many_shapes() -> None:
    gangs = backlog.backlog(1_000, 10)
    assert gangs == backlog.backlog(1_000, 10)
    assert len({each.pod_sets for each in gangs}) == len(backlog.PODS) * len(backlog.GPUS) * 2
    gpus = sum(
        pod_set.count * dict(pod_set.requests)[GPU] for each in gangs for pod_set in each.pod_sets
    )
    assert 0.8 < gpus / (2_000 * GPUS) < 0.95  # on two nodes a gang


# --- pod by pod ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_pod_by_pod_and_the_engine_agree_on_what_fits(seed: int) -> None:
    """With one set of equal pods no order of binding can miss a place."""
    dice = random.Random(seed)
    table = table_of(dice.randint(1, 20), seed=seed)
    placer = placer_of(table)
    other = PodByPod(each for each in table.nodes if each is not None)
    for plain, row in zip(other.nodes, table.row_of.values(), strict=True):
        plain.free = {
            name: int(table.free[column, row]) for name, column in table.resources.items()
        }
    before = [dict(plain.free) for plain in other.nodes]
    for _ in range(10):
        asked = gang(dice.randint(1, 6 * len(other.nodes)))
        bound = other.place(asked.demands)
        assert (bound is None) == isinstance(placer.place(asked), GangDoesNotFit)
        if bound is not None:
            assert len(bound) == asked.demands[0].least
            assert all(min(plain.free.values()) >= 0 for plain in other.nodes)
            other.release(bound, {"set-1": asked.demands[0].requests})
        assert [plain.free for plain in other.nodes] == before  # all or nothing, undone exactly


def test_pod_by_pod_fills_the_fullest_node_first() -> None:
    other = PodByPod([node(0), node(1)])
    other.nodes[1].add(request(4), 1)
    bound = other.place(gang(5).demands)
    assert bound is not None
    assert [name for _, name in bound] == ["node-000001"] * 4 + ["node-000000"]
    assert other.nodes[1].free[PODS] == 110 - 5


# --- traces --------------------------------------------------------------------------------------


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder of traces with two nodes and three pods."""
    folder = tmp_path / "openb"
    folder.mkdir()
    (folder / "openb_node_list_gpu_node.csv").write_text(
        "sn,cpu_milli,memory_mib,gpu,model\nn0,96000,1024,8,G2\nn1,64000,1024,2,T4\n"
    )
    (folder / "openb_pod_list_default.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"
        "p0,4000,16,1,460,,LS\np1,8000,16,2,1000,T4|G2,LS\np2,1000,16,0,0,,LS\n"
    )
    with gzip.open(folder / "openb_pod_list_multigpu50.csv.gz", "wt") as packed:
        packed.write("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,4000,16,8,1000\n")
    columns = ",".join(f"mean_at_{mark}" for mark in (90, 95, 100, 130))
    lines = [f"alloc_pct,default,{policy},90,95,96,97,0.1" for policy in openb.PUBLISHED.values()]
    (folder / "fgd_published_means.csv").write_text(
        f"metric,workload,policy,{columns},std_at_130\n" + "\n".join(lines) + "\n"
    )
    monkeypatch.setenv("UNISONO_TRACES", str(tmp_path))
    return folder


def test_lists_are_found_plain_and_packed(traces: Path) -> None:
    assert pod_list(traces, "default").suffix == ".csv"
    assert len(read_openb_fill(pod_list(traces, "multigpu50"), gpu_milli=16_000, seed=1)) == 3
    assert read_published(traces, "alloc_pct", "default", "FGD")[130] == 97
    assert read_published(traces, "alloc_pct", "no-such-list", "FGD") == {}


@pytest.mark.usefixtures("traces")
def test_a_small_trace_is_filled_by_every_scoring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(openb.SIZES, "tiny", openb.Sizes(2, 1))
    found = [*openb.measure("tiny")]
    allocated = [each for each in found if isinstance(each, Row) and "allocated" in each.what]
    assert {each.n for each in allocated} == set(openb.MARKS)
    assert all(0 < each.median <= 100 for each in allocated)
    apart = [each for each in found if isinstance(each, Target) and "from published" in each.what]
    assert {each.verdict for each in apart} == {"not run"}


def test_without_traces_it_says_so_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNISONO_TRACES", str(tmp_path))
    assert [*openb.measure("tiny")] == [Note(NO_TRACES)]


@pytest.mark.parametrize("scoring", get_args(openb.Filling))
def test_placed_pods_are_counted(traces: Path, scoring: openb.Filling) -> None:
    nodes = read_cluster(traces / "openb_node_list_gpu_node.csv")
    order = read_openb_fill(pod_list(traces, "default"), gpu_milli=10_000, seed=7)
    filler = openb.Filler(nodes, order, scoring, random.Random(1))
    before = filler.idle_milli()
    seated = [filler.place(demand) for demand in filler.demands]
    assert before == 10_000
    assert before - filler.idle_milli() == int(order.job_gpu_milli[seated].sum())
    assert 0 <= filler.fragmented_milli() <= filler.idle_milli()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scoring", "least_at_95", "least", "most"),
    [("fgd", 94.0, 94.9, 95.9), ("binpack", 0.0, 92.6, 93.7), ("random", 0.0, 86.5, 88.5)],
)
def test_the_cluster_of_2023_is_filled_as_specified(
    scoring: openb.Filling, least_at_95: float, least: float, most: float
) -> None:
    nodes = read_cluster(published("openb/openb_node_list_gpu_node.csv"))
    pods = published("openb/openb_pod_list_default.csv")
    order = read_openb_fill(pods, gpu_milli=capacity_of(nodes).gpu_milli, seed=42)
    found = openb.fill(nodes, order, scoring, seed=42).allocated
    assert found[95] > least_at_95
    assert least <= found[130] <= most
