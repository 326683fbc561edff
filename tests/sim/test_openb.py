"""Pods that share GPUs, replayed: a cluster that is filled, and published results."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tests.support.simulations import published
from unisono.cli.main import main
from unisono.engine.model.policy import Placement
from unisono.sim.clusters import capacity_of, read_cluster
from unisono.sim.loop import simulate
from unisono.sim.measures import measure
from unisono.sim.setup import POLICIES, policy_for
from unisono.sim.traces.published import read_openb, read_openb_fill

replace = msgspec.structs.replace
PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time
a,1000,1,1,600,,LS,Running,0,100
b,1000,1,1,400,,LS,Running,1,90
c,1000,1,2,1000,,LS,Running,2,80
d,1000,1,1,300,T4,LS,Running,3,70
e,1000,1,0,0,,LS,Running,4,60
"""
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,64000,9999,2,T4\nn2,64000,9999,2,A10\nn3,8000,9,0,\n"


def written(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "pods.csv").write_text(PODS)
    (tmp_path / "nodes.csv").write_text(NODES)
    return tmp_path / "pods.csv", tmp_path / "nodes.csv"


@pytest.mark.parametrize("policy", ["fifo", "best-effort", "kueue", "easy", "conservative"])
def test_parts_run_beside_each_other_under_any_policy(tmp_path: Path, policy: str) -> None:
    pods, nodes = written(tmp_path)
    found = simulate(read_openb(pods), read_cluster(nodes), POLICIES[policy], checked=True)
    assert found.start.tolist() == [0, 1, 2, 3, 4]
    assert found.depth.gpu_milli.max() == 600 + 400 + 2000 + 300


def test_fills_a_cluster_and_drops_pods_that_do_not_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pods, nodes = written(tmp_path)
    trace = read_openb_fill(pods, gpu_milli=4000, seed=3)
    found = simulate(trace, read_cluster(nodes), POLICIES["best-effort"], checked=True)
    assert np.isnan(found.end).all()
    assert found.depth.pending.max() <= 1
    assert found.depth.gpu_milli[-1] == trace.job_gpu_milli[~np.isnan(found.start)].sum()
    command = ["sim", "run", "--fill", "--trace", str(pods), "--nodes", str(nodes), "-o", "json"]
    assert main([*command, "--scoring", "fgd,spare", "--policy", "best-effort"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [each["policy"].partition("/")[2] for each in shown["policies"]] == ["fgd", "spare"]
    assert main([*command, "--scoring", "best"]) == 2
    assert 'there is no scoring "best"' in capsys.readouterr().err


def test_endless_jobs_get_no_reservations(tmp_path: Path) -> None:
    pods, nodes = written(tmp_path)
    trace = read_openb_fill(pods, gpu_milli=4000, seed=3)
    started = []
    for name in ("best-effort", "easy", "conservative", "multifactor+conservative"):
        assert policy_for(POLICIES[name], trace).backfill is None
        found = simulate(trace, read_cluster(nodes), POLICIES[name], checked=True)
        started.append(np.isnan(found.start).tolist())
    assert True in started[0]
    assert all(each == started[0] for each in started)


# Of all GPUs, in percent, when 1.3 times as many have been asked for: published mean of ten seeds.
FGD, BEST_FIT, APART = 95.4, 93.1, 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scoring", "least", "most"),
    [
        ("fgd", FGD - APART, FGD + APART),
        ("binpack", BEST_FIT - APART, BEST_FIT + APART),
        ("auto", FGD, 100),
    ],
)
def test_the_cluster_of_2023_is_filled_as_published(
    scoring: str, least: float, most: float
) -> None:
    nodes = read_cluster(published("openb/openb_node_list_gpu_node.csv"))
    pods = published("openb/openb_pod_list_default.csv")
    trace = read_openb_fill(pods, gpu_milli=capacity_of(nodes).gpu_milli, seed=42)
    rules = POLICIES["best-effort"]
    scored = replace(rules.policy, placement=Placement(scoring=scoring))  # type: ignore[arg-type]
    found = measure(simulate(trace, nodes, replace(rules, policy=scored)))
    assert least <= 100 * found.gpu_allocation_peak <= most
