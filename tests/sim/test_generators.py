"""Generated traces: the same from the same seed, and shaped as their models say."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from unisono.sim.generators import (
    LUBLIN_LONGEST_S,
    POPULAR_S,
    arrivals,
    gpu,
    kueue_perf,
    lublin,
    requests,
)
from unisono.sim.random_source import random_source
from unisono.sim.sources import open_trace
from unisono.sim.trace import CANCELLED, FAILED, BadTrace


def test_lublin_is_the_model() -> None:
    trace = lublin(jobs=20_000, processors=256, load=0.8, seed=1)
    size = trace.pods
    assert (size == 1).mean() == pytest.approx(0.2927, abs=0.02)
    # Of the parallel ones, those rounded to a power of two and those that are one by chance.
    parallel = size[size > 1]
    assert ((parallel & (parallel - 1)) == 0).mean() > 0.6686
    assert size.max() <= 256
    assert trace.run.max() <= LUBLIN_LONGEST_S
    span = trace.submit[-1] - trace.submit[0]
    assert (size * trace.run).sum() / (256 * span) == pytest.approx(0.8)
    assert np.isin(trace.request, POPULAR_S).all()
    assert (trace.request >= trace.run).all()


def test_the_gpu_mix_is_calibrated() -> None:
    trace = gpu(jobs=50_000, gpus=8000, load=0.9, seed=2)
    wanted = trace.pods * trace.gpus
    assert (wanted == 1).mean() == pytest.approx(0.70, abs=0.01)
    assert (wanted == 8).mean() == pytest.approx(0.10, abs=0.01)
    assert 1.9 <= wanted.mean() <= 27  # of the published clusters
    assert 120 <= np.median(trace.run) <= 900
    assert 0.3 * 3600 <= trace.run.mean() <= 5 * 3600
    assert (trace.status == FAILED).mean() == pytest.approx(0.30, abs=0.01)
    assert 0.06 <= (trace.status == CANCELLED).mean() <= 0.22
    assert trace.gpus.max() == 8
    assert (wanted * trace.run).sum() / (8000 * trace.submit[-1]) == pytest.approx(0.9)
    work = wanted * trace.run
    longest = np.argsort(-trace.run)[: len(trace) // 10]
    assert work[longest].sum() > 0.7 * work.sum()
    assert gpu(jobs=2000, gpus=16, seed=1).job_gpu_milli.max() <= 16_000


def test_kueue_perf_is_the_published_load() -> None:
    trace = kueue_perf()
    assert len(trace) == 15_000
    assert len(trace.queues) == 30
    assert trace.groups == tuple(f"cohort-{place}" for place in range(5))
    assert sorted(np.unique(trace.cpu).tolist()) == [1000, 5000, 20_000]
    small = trace.cpu == 1000
    assert (small.sum(), trace.run[small][0], trace.priority[small][0]) == (350 * 30, 0.2, 50)
    assert trace.submit[small].max() == pytest.approx(34.9)
    assert trace.submit.max() == pytest.approx(49 * 1.2)
    # "The work in that load is only 66 s of quota time."
    assert (trace.job_cpu * trace.run).sum() / 1000 / trace.processors == pytest.approx(66)


@pytest.mark.parametrize(
    "text", ["lublin:jobs=0", "lublin:load=0", "gpu:gpus=0", "kueue-perf:share=2"]
)
def test_refuses_settings_without_jobs(text: str) -> None:
    with pytest.raises(BadTrace, match="needs"):
        open_trace(text)


def test_arrivals_keep_their_span_and_follow_the_day() -> None:
    gaps = random_source(1, "test").gamma(1.0225, size=50_000)
    submit = arrivals(gaps, 20 * 86_400.0)
    assert submit[0] == 0
    assert submit[-1] == pytest.approx(20 * 86_400)
    assert (np.diff(submit) >= 0).all()
    by_hour = np.bincount((submit / 3600 % 24).astype(int), minlength=24)
    assert by_hour.argmax() in (12, 13, 14, 15)
    assert by_hour[14] > 3 * by_hour[2]
    assert arrivals(gaps[:1], 5.0).tolist() == [0]


def test_requested_times_are_popular_values() -> None:
    run = np.array([1.0, 299.0, 86_400.0, 400_000.0])
    asked = requests(run, random_source(3, "test"))
    assert (asked >= run).all()
    assert np.isin(asked[:3], POPULAR_S).all()
    assert asked[3] == 400_000  # longer than anything popular


def test_random_streams_are_independent() -> None:
    assert random_source(1, "sizes").random() == random_source(1, "sizes").random()
    assert random_source(1, "sizes").random() != random_source(1, "runs").random()
    assert random_source(1, "sizes").random() != random_source(2, "sizes").random()


_PRINT = """
import hashlib
from unisono.sim.sources import open_trace
from unisono.sim.traces.journal import write_journal
whole = hashlib.sha256()
for text in ("gpu:jobs=10000,seed=5", "lublin:jobs=1000,seed=5", "kueue-perf:share=0.1"):
    for line in write_journal(open_trace(text)):
        whole.update(line)
print(whole.hexdigest())
"""


def _printed(program: str, hash_seed: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_traces_do_not_depend_on_the_hash_seed() -> None:
    assert len({_printed(_PRINT, seed) for seed in ("1", "2")}) == 1


_SIMULATE = """
import hashlib
from unisono.cli.sim.inputs import cluster_nodes
from unisono.sim.loop import simulate
from unisono.sim.setup import POLICIES
from unisono.sim.sources import open_trace
nodes, whole = cluster_nodes(["8x{gpu=8}"]), hashlib.sha256()
trace = open_trace("gpu:jobs=150,gpus=64,load=6,teams=3,seed=5")
for name in ("kueue-fair", "easy", "multifactor+conservative"):
    found = simulate(trace, nodes, POLICIES[name], spans=True)
    for column in (found.start, found.end, found.spans.node, found.spans.start):
        whole.update(column.tobytes())
print(whole.hexdigest())
"""


def test_simulations_do_not_depend_on_the_hash_seed() -> None:
    assert len({_printed(_SIMULATE, seed) for seed in ("1", "2")}) == 1
