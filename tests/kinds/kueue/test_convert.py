"""Converting raw objects and converting typed manifests must come to the same."""

from __future__ import annotations

from copy import deepcopy

import pytest

from unisono.kinds.decode import decode, encode
from unisono.kinds.known import KNOWN
from unisono.kinds.kueue.convert import lower_version, raise_version
from unisono.kube.form import Json

GROUP = "kueue.x-k8s.io"

TEMPLATE = {"spec": {"containers": [{"name": "a", "image": "x"}]}}
DOMAINS = [{"values": ["b1", "n1"], "count": 2}, {"values": ["b1", "n2"], "count": 1}]
ASSIGNED = {
    "clusterQueue": "cq",
    "podSetAssignments": [
        {"name": "main", "topologyAssignment": {"levels": ["b", "h"], "domains": DOMAINS}}
    ],
}


@pytest.mark.parametrize(
    ("kind", "version", "plural", "body"),
    [
        (
            "ClusterQueue",
            "v1beta1",
            "clusterqueues",
            {
                "spec": {
                    "cohort": "all",
                    "admissionChecks": ["a", "b"],
                    "flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"},
                    "namespaceSelector": {},
                }
            },
        ),
        ("Cohort", "v1alpha1", "cohorts", {"spec": {"parent": "root"}}),
        (
            "Workload",
            "v1beta1",
            "workloads",
            {
                "spec": {
                    "podSets": [{"name": "main", "count": 3, "template": TEMPLATE}],
                    "priorityClassName": "high",
                    "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass",
                },
                "status": {
                    "accumulatedPastExexcutionTimeSeconds": 9,
                    "admission": ASSIGNED,
                },
            },
        ),
    ],
)
def test_both_ways_of_converting_agree(kind: str, version: str, plural: str, body: Json) -> None:
    raw = {
        "apiVersion": f"{GROUP}/{version}",
        "kind": kind,
        "metadata": {"name": "x"},
        **deepcopy(body),
    }
    old = KNOWN.kinds[raw["apiVersion"], kind]
    typed, problems = decode(old.struct, raw)
    assert problems == []
    assert old.upgrade is not None
    raise_version(plural, raw)
    raw["apiVersion"] = f"{GROUP}/v1beta2"
    converted, problems = decode(KNOWN.kinds[raw["apiVersion"], kind].struct, raw)
    assert problems == []
    assert converted is not None
    assert encode(converted) == encode(old.upgrade(typed))


def test_there_and_back() -> None:
    spec = {"cohort": "all", "queueingStrategy": "StrictFIFO"}
    obj: Json = {"spec": dict(spec)}
    raise_version("clusterqueues", obj)
    lower_version("clusterqueues", obj, "v1beta1")
    assert obj["spec"] == spec


@pytest.mark.parametrize("plural", ["clusterqueues", "workloads", "cohorts", "nothing"])
@pytest.mark.parametrize("obj", [{}, {"spec": None}, {"spec": 5, "status": []}])
def test_anything_can_be_converted(plural: str, obj: Json) -> None:
    raise_version(plural, deepcopy(obj))
    lower_version(plural, deepcopy(obj), "v1beta1")
