"""What a TrainJob changes in its runtime's pod templates."""

from __future__ import annotations

from typing import Any

from unisono.kinds.core.schema import PodSpec, PodTemplateSpec
from unisono.kinds.decode import decode
from unisono.kinds.trainer.overrides import check_override, overridden, overrides_of
from unisono.kinds.trainer.schema import TrainJobSpec

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def spec_of(raw: dict[str, Any]) -> TrainJobSpec:
    spec, problems = decode(TrainJobSpec, raw)
    assert spec is not None, problems
    return spec


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
        "runtimePatches": [{"manager": "nobody"}, patch],
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
