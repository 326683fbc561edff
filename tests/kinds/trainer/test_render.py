"""From a TrainJob and its runtime to pods."""

from __future__ import annotations

from typing import Any

import pytest

from unisono.kinds.core.requests import pod_cost
from unisono.kinds.core.schema import PodSpec, PodTemplateSpec
from unisono.kinds.decode import decode
from unisono.kinds.trainer.render import check_override, overridden, overrides_of, rendered
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


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def template_of(pod: dict[str, Any], annotations: dict[str, str] | None = None) -> PodTemplateSpec:
    raw = {"metadata": {"annotations": annotations or {}}, "spec": pod}
    template, problems = decode(PodTemplateSpec, raw)
    assert template is not None, problems
    return template


def merged(pod: dict[str, Any], *changes: dict[str, Any]) -> PodSpec:
    overrides = [{"targetJobs": [{"name": "node"}], "spec": change} for change in changes]
    template = template_of(pod)
    for override in overrides_of(spec_of({"podTemplateOverrides": overrides})):
        template = overridden(template, override)
    return template.spec


def zone(name: str) -> dict[str, Any]:
    clause = {"key": "zone", "operator": "In", "values": [name]}
    return {"nodeSelectorTerms": [{"matchExpressions": [clause]}]}


def test_node_selectors_merge_key_by_key_and_the_later_wins() -> None:
    spec = merged(
        {"nodeSelector": {"a": "1", "b": "1"}},
        {"nodeSelector": {"b": "2", "c": "2"}},
        {"nodeSelector": {"c": "3"}},
    )
    assert spec.node_selector == {"a": "1", "b": "2", "c": "3"}


def test_tolerations_are_replaced_as_a_whole() -> None:
    base = {"tolerations": [{"key": "a", "operator": "Exists"}]}
    assert [one.key for one in merged(base, {}).tolerations] == ["a"]
    change = {"tolerations": [{"key": "b", "operator": "Exists"}]}
    assert [one.key for one in merged(base, change).tolerations] == ["b"]
    assert merged(base, {"tolerations": []}).tolerations == ()


def test_affinity_merges_field_by_field() -> None:
    base = {
        "affinity": {
            "nodeAffinity": {REQUIRED: zone("a"), PREFERRED: [{"weight": 1}]},
            "podAffinity": {REQUIRED: [{"topologyKey": "x"}]},
        }
    }
    change = {
        "affinity": {
            "nodeAffinity": {REQUIRED: zone("b")},
            "podAffinity": {PREFERRED: [{"weight": 2, "podAffinityTerm": {"topologyKey": "z"}}]},
            "podAntiAffinity": {REQUIRED: [{"topologyKey": "y"}]},
        }
    }
    affinity = merged(base, change).affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    assert required is not None
    assert required.node_selector_terms[0].match_expressions[0].values == ("b",)
    assert affinity.node_affinity.preferred_during_scheduling_ignored_during_execution
    assert affinity.pod_affinity is not None
    assert affinity.pod_affinity.required_during_scheduling_ignored_during_execution
    assert affinity.pod_affinity.preferred_during_scheduling_ignored_during_execution
    assert affinity.pod_anti_affinity is not None
    assert merged(base, {}).affinity == merged(base).affinity


def test_metadata_merges_key_by_key() -> None:
    raw = {
        "podTemplateOverrides": [
            {
                "targetJobs": [{"name": "node"}],
                "metadata": {"annotations": {"b": "2"}, "labels": {"l": "1"}},
            }
        ]
    }
    (override,) = overrides_of(spec_of(raw))
    made = overridden(template_of({}, {"a": "1", "b": "1"}), override)
    assert made.metadata.annotations == {"a": "1", "b": "2"}
    assert made.metadata.labels == {"l": "1"}


def test_both_spellings_and_their_paths() -> None:
    patch = {
        "manager": "me",
        "trainingRuntimeSpec": {
            "template": {
                "spec": {
                    "replicatedJobs": [
                        {
                            "name": "node",
                            "template": {
                                "spec": {"template": {"spec": {"nodeSelector": {"a": "2"}}}}
                            },
                        },
                        {"name": "bare"},
                    ]
                }
            }
        },
    }
    raw = {
        "runtimePatches": [{"manager": "another"}, patch],
        "podTemplateOverrides": [{"targetJobs": [{"name": "x"}, {"name": "node"}]}],
    }
    found = list(overrides_of(spec_of(raw)))
    assert [one.job for one in found] == ["x", "node", "node", "bare"]
    jobs = "spec.runtimePatches[1].trainingRuntimeSpec.template.spec.replicatedJobs"
    assert found[2].job_path == f"{jobs}[0].name"
    assert found[2].spec_path == f"{jobs}[0].template.spec.template.spec"
    assert found[2].spec.node_selector == {"a": "2"}
    assert found[1].job_path == "spec.podTemplateOverrides[0].targetJobs[1].name"


def test_faults_that_need_no_runtime() -> None:
    raw = {
        "podTemplateOverrides": [
            {
                "targetJobs": [{"name": "node"}],
                "metadata": {"annotations": {"kueue.x-k8s.io/podset-slice-size": "2"}},
                "spec": {
                    "tolerations": [{"value": "x"}],
                    "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}},
                    "containers": [{"name": "node", "env": [{"name": "A", "value": "b"}]}],
                },
            }
        ]
    }
    (override,) = overrides_of(spec_of(raw))
    path = "spec.podTemplateOverrides[0]"
    assert [one.path for one in check_override(override)] == [
        f"{path}.metadata.annotations[kueue.x-k8s.io/podset-slice-size]",
        f"{path}.spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms",
        f"{path}.spec.tolerations[0].operator",
        f"{path}.spec.containers[0].env",
    ]
