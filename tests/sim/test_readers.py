"""The other readers: openb, Philly, CSV by a map, our own lines, and finding out which is which."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from tests.support.simulations import published
from unisono.sim.sources import Reading, open_trace
from unisono.sim.trace import (
    CANCELLED,
    FAILED,
    FINISHED,
    UNKNOWN,
    BadTrace,
    Dropped,
    Trace,
    make_trace,
)
from unisono.sim.traces.journal import read_journal, write_journal
from unisono.sim.traces.mapped import PRESETS, parse_map, read_mapped
from unisono.sim.traces.published import read_openb, read_openb_fill

OPENB = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time
b,4000,1024,1,460,,LS,Running,5,65
a,8000,2048,2,1000,V100M32|T4,BE,Succeeded,0,100
c,1000,512,0,0,,LS,Failed,7,7
"""
PHILLY = """\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:01:55,66.0,1,66.0,vc2
2017-10-09 06:13:03,2951.0,12,35412.0,vc1
2017-10-09 06:14:00,0.0,1,0.0,vc1
"""


def write(tmp_path: Path, text: str, name: str = "list.csv") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def same(one: Trace, other: Trace) -> bool:
    """Say whether two traces are equal in every column."""
    pairs = [(getattr(one, field.name), getattr(other, field.name)) for field in fields(Trace)]
    return all(
        np.array_equal(left, right) if isinstance(left, np.ndarray) else left == right
        for left, right in pairs
    )


# --- openb ---------------------------------------------------------------------------------------


def test_openb_pods_arrive_and_leave(tmp_path: Path) -> None:
    trace = read_openb(write(tmp_path, OPENB))
    assert trace.names == ("a", "b")
    assert trace.run.tolist() == [100, 60]
    assert (trace.gpus.tolist(), trace.gpu_milli.tolist()) == ([2, 1], [1000, 460])
    assert trace.model_sets == ((), ("T4", "V100M32"))
    assert trace.model.tolist() == [1, 0]
    assert trace.memory.tolist() == [2048, 1024]
    assert trace.status.tolist() == [FINISHED, UNKNOWN]
    assert trace.dropped == Dropped(no_run=1)


def test_openb_fills_until_demand_is_met(tmp_path: Path) -> None:
    path = write(tmp_path, OPENB)
    trace = read_openb_fill(path, gpu_milli=100_000, seed=3)
    arrived = np.cumsum(trace.job_gpu_milli)
    assert arrived[-1] >= 130_000
    assert arrived[-1] < 130_000 + 2000
    assert np.isinf(trace.run).all()
    assert trace.submit.tolist() == list(range(len(trace)))
    assert same(trace, read_openb_fill(path, gpu_milli=100_000, seed=3))
    assert trace.names != read_openb_fill(path, gpu_milli=100_000, seed=4).names


def test_openb_fill_cuts_a_list_that_wants_more(tmp_path: Path) -> None:
    trace = read_openb_fill(write(tmp_path, OPENB), gpu_milli=1000, seed=1)
    assert 1 <= len(trace) <= 3
    assert trace.job_gpu_milli.sum() >= 1300


def test_openb_lists_without_times_only_fill(tmp_path: Path) -> None:
    path = write(tmp_path, "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,1,1000\n")
    assert len(read_openb_fill(path, gpu_milli=10_000, seed=1)) == 13
    with pytest.raises(BadTrace, match="can only be replayed as fill"):
        read_openb(path)
    path.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,0,0\n")
    with pytest.raises(BadTrace, match="no pod of the list requests a GPU"):
        read_openb_fill(path, gpu_milli=10_000, seed=1)


# --- Philly --------------------------------------------------------------------------------------


def test_philly_is_sorted_and_has_a_queue_per_cluster(tmp_path: Path) -> None:
    trace = open_trace(str(write(tmp_path, PHILLY)))
    assert trace.submit.tolist() == [0, 2932]
    assert trace.epoch == 1507529583
    assert (trace.pods.tolist(), trace.gpus.tolist()) == ([2, 1], [6, 1])
    assert [trace.queues[queue] for queue in trace.queue] == ["vc1", "vc2"]
    assert trace.dropped == Dropped(no_run=1)


def test_a_bad_time_is_named_by_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, PHILLY.replace("2017-10-09 06:13:03", "yesterday"))
    with pytest.raises(BadTrace, match='line 3: timestamp is "yesterday", which is not a time'):
        open_trace(str(path))


# --- CSV by a map --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (OPENB.replace("b,4000", "b,many"), 'line 2: cpu_milli is "many", which is not a number'),
        (OPENB.replace("a,8000", "a,"), 'line 3: cpu_milli is "", which is not a number'),
        (OPENB.replace("BE,Succeeded,0,100", "BE"), "line 3: has 7 cells; 10 are named on top"),
        (PHILLY.replace("2017-10-09 07:01:55", "noon"), 'line 2: timestamp is "noon"'),
        (PHILLY.replace("2951.0,12", "2951.0,x"), 'line 3: num_gpus is "x"'),
    ],
)
def test_bad_rows_are_named_or_left_out(tmp_path: Path, text: str, problem: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(BadTrace, match=re.escape(problem)):
        open_trace(str(path), Reading())
    found = open_trace(str(path), Reading(skip_bad=True))
    assert found.dropped == Dropped(no_run=1, unreadable=1)
    assert len(found) == 1


def mapped(tmp_path: Path, text: str, map_: str, *, skip_bad: bool = False) -> Trace:
    return read_mapped(write(tmp_path, text), parse_map(map_), skip_bad=skip_bad)


def test_the_spot_list(tmp_path: Path) -> None:
    trace = mapped(
        tmp_path,
        "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,"
        "job_type\n"
        "j1,org1,GPU-series-1,12,0.5,1,100,60,Spot\n"
        "j2,org2,,96,8,4,50,3600,HP\n",
        "spot",
    )
    assert trace.names == ("j2", "j1")
    assert (trace.pods.tolist(), trace.cpu.tolist()) == ([4, 1], [96_000, 12_000])
    assert (trace.gpus.tolist(), trace.gpu_milli.tolist()) == ([8, 1], [1000, 500])
    assert trace.priority.tolist() == [100, 0]
    assert [trace.model_sets[model] for model in trace.model] == [(), ("GPU-series-1",)]
    assert trace.epoch == 50


def test_helios_and_pai(tmp_path: Path) -> None:
    helios = mapped(
        tmp_path,
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,duration\n"
        "1,u1,vc0,16,64,2,COMPLETED,2020-04-01 00:00:00,60\n"
        "2,u1,vc0,12,12,5,FAILED,2020-04-01 00:00:30,60\n"  # 5 nodes cannot share 12 equally
        "3,u2,vc1,0,4,1,CANCELLED,2020-04-01 00:01:00,5\n",
        "helios",
    )
    assert (helios.pods.tolist(), helios.gpus.tolist()) == ([2, 2, 1], [8, 6, 0])
    assert helios.cpu.tolist() == [32_000, 6000, 4000]
    assert helios.status.tolist() == [FINISHED, FAILED, CANCELLED]
    assert helios.submit.tolist() == [0, 30, 60]
    pai = mapped(
        tmp_path,
        "job_name,user,inst_num,plan_cpu,plan_gpu,plan_mem,gpu_type,start_time,end_time,status\n"
        "a,u,2,600,25,29.3,T4,10,70,Terminated\n"
        "b,u,1,600,200,29.3,MISC,20,,Running\n",
        "pai",
    )
    assert (pai.gpus.tolist(), pai.gpu_milli.tolist()) == ([1], [250])
    assert (pai.cpu.tolist(), pai.memory.tolist()) == ([6000], [30_004])
    assert pai.dropped == Dropped(no_run=1)


def test_later_parts_overrule_a_preset() -> None:
    assert parse_map("spot,queue=job_type")["queue"].name == "job_type"
    for preset in PRESETS:
        assert "submit" in parse_map(preset)


@pytest.mark.parametrize(
    ("map_", "problem"),
    [
        ("run=duration", "submit=COLUMN is missing"),
        ("submit=at", "run=COLUMN is missing"),
        ("submit=at,run=wrong,gpus=g", 'has no column "wrong"; it has at, run, g'),
        ("submit=at,speed=run", 'unknown field "speed"'),
        ("nonsense", '"nonsense" is not FIELD=COLUMN'),
        ("submit=at,run=run*fast", "is not FIELD=COLUMN"),
        ("submit=at,run=run,gpus=g,priority=g{7:1}", 'line 2: g is "1", which is not in the map'),
    ],
)
def test_a_wrong_map_is_explained(tmp_path: Path, map_: str, problem: str) -> None:
    with pytest.raises(BadTrace) as found:
        mapped(tmp_path, "at,run,g\n0,10,1\n", map_)
    assert problem in str(found.value)


def test_rows_without_what_is_needed(tmp_path: Path) -> None:
    text = "at,run,g\n0,10,1\n,10,1\n5,0,1\n6,10,0\n7\n"
    map_ = "submit=at,run=run,gpus=g"
    with pytest.raises(BadTrace, match="line 6: has 1 cells; 3 are named on top"):
        mapped(tmp_path, text, map_)
    with pytest.raises(BadTrace, match="line 3: the submit time is empty"):
        mapped(tmp_path, text.removesuffix("7\n"), map_)
    trace = mapped(tmp_path, text, map_, skip_bad=True)
    assert len(trace) == 1
    assert trace.dropped == Dropped(no_run=1, no_size=1, unreadable=2)


# --- our own lines -------------------------------------------------------------------------------


def test_our_own_form_loses_nothing(tmp_path: Path) -> None:
    trace = make_trace(
        "all of it",
        number=[9, 4, 12],
        submit=[0.1 + 0.2, 7, 1e9],
        run=[1 / 3, np.inf, 5],
        request=[60, np.inf, 5],
        pods=[2, 1, 1],
        cpu=[4000, 1, 0],
        memory=[0, 7, 0],
        gpus=[8, 0, 1],
        gpu_milli=[1000, 0, 250],
        models=[("B", "A"), (), ()],
        user=["12", "7", ""],
        group=["x", "", "é"],
        queue=["q", "q", "r"],
        priority=[-5, 0, 2**40],
        status=[FINISHED, UNKNOWN, CANCELLED],
        names=["a", "", "c"],
        dropped=Dropped(1, 2, 3, 4),
        processors=100,
        epoch=1507529583.5,
    )
    path = tmp_path / "own.jsonl"
    path.write_bytes(b"".join(write_journal(trace)))
    assert same(read_journal(path), trace)
    assert same(open_trace(str(path)), trace)


def test_our_own_form_says_where_it_is_wrong(tmp_path: Path) -> None:
    head = '{"schema": "unisono.trace/v1", "name": "x"}\n'
    job = '{"number": 1, "submit": 0, "run": 5}\n'
    path = write(tmp_path, head + job + '{"number": 2, "submit": "noon"}\n' + job, "x.jsonl")
    with pytest.raises(BadTrace, match="line 3: "):
        read_journal(path)
    assert read_journal(path, skip_bad=True).dropped == Dropped(unreadable=1)
    for wrong in ('"pods": 0', '"run": -5', '"gpuMilli": 2000', '"status": "lost"'):
        text = head + job.replace('"run": 5', f'"run": 5, {wrong}')
        with pytest.raises(BadTrace, match="line 2: "):
            read_journal(write(tmp_path, text, "x.jsonl"))
    with pytest.raises(BadTrace, match="line 1: is not the first line of a trace"):
        read_journal(write(tmp_path, job, "x.jsonl"))
    with pytest.raises(BadTrace, match=r"this version reads unisono\.trace/v1"):
        read_journal(write(tmp_path, '{"schema": "other"}', "x.jsonl"))


# --- which reader --------------------------------------------------------------------------------


def test_a_file_tells_its_reader(tmp_path: Path) -> None:
    assert len(open_trace(str(write(tmp_path, OPENB)))) == 2
    path = write(tmp_path, "at,run,g\n0,10,1\n")
    assert len(open_trace(str(path), Reading(map=parse_map("submit=at,run=run,gpus=g")))) == 1
    with pytest.raises(
        BadTrace, match="the meaning of its columns is unknown; give --map submit=COLUMN"
    ):
        open_trace(str(path))
    spot = ",".join(column.name for column in parse_map("spot").values())
    with pytest.raises(BadTrace, match="--map spot"):
        open_trace(str(write(tmp_path, spot + "\n")))
    with pytest.raises(BadTrace, match="the format is unknown"):
        open_trace(str(write(tmp_path, "", "jobs.txt")))
    with pytest.raises(BadTrace, match='unknown format "xml"'):
        open_trace(str(path), Reading(format="xml"))


def test_settings_of_generators() -> None:
    assert len(open_trace("lublin:jobs=10,load=0.5")) == 10
    assert same(open_trace("gpu:jobs=10,seed=3"), open_trace("gpu:jobs=10", seed=3))
    assert not same(open_trace("gpu:jobs=10,seed=3"), open_trace("gpu:jobs=10", seed=4))
    assert len(open_trace("kueue-perf:share=0.1", seed=7)) == 1500
    with pytest.raises(BadTrace, match='unknown setting "job=3"; did you mean "jobs"'):
        open_trace("lublin:job=3")
    with pytest.raises(BadTrace, match='jobs is "many", which is not a number'):
        open_trace("lublin:jobs=many")


@pytest.mark.slow
def test_published_lists() -> None:
    philly = open_trace(str(published("philly/philly_jobs.csv.gz")))
    assert len(philly) == 82_247
    assert round((philly.run * philly.job_gpu_milli).sum() / 3.6e6) == 978_078
    assert (len(philly.queues), float(np.median(philly.run))) == (15, 1144)
