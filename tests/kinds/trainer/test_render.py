"""From a TrainJob and its runtime to pods."""

from __future__ import annotations

from typing import Any

import pytest

from unisono.kinds.core.requests import pod_cost
from unisono.kinds.decode import decode
from unisono.kinds.trainer.render import rendered
from unisono.kinds.trainer.schema import TrainingRuntimeSpec, TrainJobSpec
from unisono.kinds.trainer.stock import STOCK_RUNTIMES

ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"


def spec_of(raw: dict[str, Any]) -> TrainJobSpec:
    spec, problems = decode(TrainJobSpec, raw)
    assert spec is not None, problems
    return spec


def runtime_of(policy: dict[str, Any] | None, *jobs: dict[str, Any]) -> TrainingRuntimeSpec:
    raw = {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": list(jobs)}}}
    runtime, problems = decode(TrainingRuntimeSpec, raw)
    assert runtime is not None, problems
    return runtime


def replicated(name: str, role: str = "", container: str = "node", **more: Any) -> dict[str, Any]:
    limits = {"limits": {"nvidia.com/gpu": 2}}
    pod = {"spec": {"containers": [{"name": container, "resources": limits}]}}
    template = {"metadata": {"labels": {ANCESTOR: role}}} if role else {}
    job_fields = {key: more.pop(key) for key in ("parallelism", "completions") if key in more}
    return {"name": name, "template": template | {"spec": {"template": pod} | job_fields}} | more


def counts(trainer: dict[str, Any], runtime: TrainingRuntimeSpec) -> dict[str, int]:
    return {one.name: one.count for one in rendered(spec_of({"trainer": trainer}), runtime)}


def requests(trainer: dict[str, Any], runtime: TrainingRuntimeSpec) -> dict[str, dict[str, int]]:
    sets = rendered(spec_of({"trainer": trainer}), runtime)
    return {one.name: dict(pod_cost(one.template.spec).requests) for one in sets}


@pytest.mark.parametrize(
    ("policy", "trainer", "expected"),
    [
        ({"numNodes": 4, "torch": {}}, {}, 4),
        ({"torch": {}}, {}, 1),
        (None, {}, 1),
        ({"numNodes": 4, "torch": {}}, {"numNodes": 2}, 2),
        ({"numNodes": 4}, {"numNodes": 2}, 2),
        (None, {"numNodes": 2}, 2),
    ],
)
def test_how_many_trainers(
    policy: dict[str, Any] | None, trainer: dict[str, Any], expected: int
) -> None:
    runtime = runtime_of(policy, replicated("node", "trainer", parallelism=7))
    assert counts(trainer, runtime) == {"node": expected}


@pytest.mark.parametrize(
    ("as_node", "nodes", "expected"),
    [(True, 4, 3), (True, 2, 1), (True, 1, 1), (False, 4, 4), (False, None, 1)],
)
def test_mpi_nodes(as_node: bool, nodes: int | None, expected: int) -> None:
    runtime = runtime_of(
        {"numNodes": 1, "mpi": {"runLauncherAsNode": as_node}},
        replicated("launcher", "trainer"),
        replicated("node"),
    )
    trainer = {} if nodes is None else {"numNodes": nodes}
    assert counts(trainer, runtime) == {"launcher": 1, "node": expected}


def test_other_jobs_keep_their_own_counts() -> None:
    runtime = runtime_of(
        {"numNodes": 2, "torch": {}},
        replicated("dataset-initializer", "dataset-initializer", "dataset-initializer"),
        replicated("cache", container="cache", parallelism=4, completions=3, replicas=2),
        replicated("node", "trainer"),
    )
    assert counts({"numNodes": 8}, runtime) == {
        "dataset-initializer": 1,
        "cache": 6,
        "node": 8,
    }


def test_resources_per_node_replace_those_of_the_training_container() -> None:
    runtime = runtime_of(
        {"torch": {}},
        replicated("dataset-initializer", "dataset-initializer", "dataset-initializer"),
        replicated("node", "trainer"),
    )
    wanted = {"resourcesPerNode": {"requests": {"cpu": 4}}}
    assert requests(wanted, runtime) == {
        "dataset-initializer": {"nvidia.com/gpu": 2},
        "node": {"cpu": 4000},
    }
    assert requests({"resourcesPerNode": {}}, runtime)["node"] == {"nvidia.com/gpu": 2}


def test_resources_per_node_reach_the_mpi_nodes_if_the_launcher_trains_too() -> None:
    jobs = (replicated("launcher", "trainer"), replicated("node"))
    wanted = {"resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}}
    both = runtime_of({"mpi": {"runLauncherAsNode": True}}, *jobs)
    assert requests(wanted, both) == {
        "launcher": {"nvidia.com/gpu": 8},
        "node": {"nvidia.com/gpu": 8},
    }
    apart = runtime_of({"mpi": {}}, *jobs)
    assert requests(wanted, apart)["node"] == {"nvidia.com/gpu": 2}


def test_the_fine_tuning_runtimes_train_on_two_gpus() -> None:
    runtime = STOCK_RUNTIMES["torchtune-qwen2.5-1.5b"]
    assert requests({}, runtime)["node"] == {"nvidia.com/gpu": 2}
    assert requests({}, runtime)["model-initializer"] == {}
