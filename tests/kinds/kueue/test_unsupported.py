"""What Kueue knows and we do not is named, or held; a boost counts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kinds.core.test_device_claims import QUEUE, a_job, decided, template
from unisono.engine.cluster import restore
from unisono.engine.dry_run import one_cycle
from unisono.engine.model.names import Instant
from unisono.kinds.known import KNOWN, examine
from unisono.kinds.kueue.unsupported import NO_EFFECT
from unisono.kinds.snapshot.build import read_world

Json = dict[str, Any]
KUEUE = "kueue.x-k8s.io/v1beta2"


def workload(name: str, **spec: Any) -> Json:
    sets = [{"name": "main", "count": 1, "template": template(limits={"cpu": "6"})}]
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"queueName": "lq", "podSets": sets, **spec},
    }


def warnings(obj: Json) -> list[str]:
    kind = KNOWN.kinds[obj["apiVersion"], obj["kind"]]
    found = examine(kind, obj)
    assert not found.problems
    return [one.path for one in found.warnings]


@pytest.mark.parametrize("key", NO_EFFECT)
def test_annotations_without_effect_are_named(key: str) -> None:
    obj = a_job()
    obj["metadata"]["annotations"] = {key: "x"}
    _, _, said = decided(obj)
    assert any("has no effect here" in one for one in said)
    made = workload("w")
    made["metadata"]["annotations"] = {key: "x"}
    assert warnings(made) == [f"metadata.annotations[{key}]"]


def test_fields_without_effect_are_named() -> None:
    assert warnings(workload("w", preemptionGates=[{"name": "x"}])) == ["spec.preemptionGates"]
    check = {
        "apiVersion": KUEUE,
        "kind": "AdmissionCheck",
        "metadata": {"name": "m"},
        "spec": {"controllerName": "kueue.x-k8s.io/multikueue"},
    }
    assert warnings(check) == ["spec.controllerName"]


LAYER = {"topology": "rack", "size": 1}


@pytest.mark.parametrize("layers", [1, 2])
def test_several_levels_of_slices_are_held(layers: int) -> None:
    by_field = workload("w")
    by_field["spec"]["podSets"][0]["topologyRequest"] = {
        "podsetSliceRequiredTopologyConstraints": [LAYER] * layers
    }
    by_annotation = a_job()
    by_annotation["spec"]["template"]["metadata"] = {
        "annotations": {
            "kueue.x-k8s.io/podset-slice-required-topology-constraints": json.dumps(
                [LAYER] * layers
            )
        }
    }
    for obj in (by_field, by_annotation):
        started, waits, _ = decided(obj)
        assert started == (1 if layers == 1 else 0)
        assert not waits or "slices at several levels of a topology" in waits[0]


def test_a_boost_counts_for_the_order() -> None:
    first, boosted = workload("first"), workload("boosted")
    boosted["metadata"]["annotations"] = {"kueue.x-k8s.io/priority-boost": "5"}
    listed = {"apiVersion": "v1", "kind": "List", "items": [*QUEUE, first, boosted]}
    world = read_world([("cluster", json.dumps(listed).encode())], now=Instant(0))
    state = restore(world.snapshot)
    one_cycle(state, Instant(0), checked=True)
    assert list(state.running) == ["default/boosted"]


def test_a_boost_that_is_no_number_is_refused() -> None:
    made = workload("w")
    made["metadata"]["annotations"] = {"kueue.x-k8s.io/priority-boost": "high"}
    kind = KNOWN.kinds[KUEUE, "Workload"]
    assert [one.path for one in examine(kind, made).problems] == [
        "metadata.annotations[kueue.x-k8s.io/priority-boost]"
    ]
