"""Node selectors, affinity and tolerations as engine values."""

from __future__ import annotations

from typing import Any

from unisono.engine.model.selection import Requirement, Toleration, meets
from unisono.engine.model.workload import WeightedTerm
from unisono.kinds.core.schema import PodSpec
from unisono.kinds.core.selection import (
    affinity_terms,
    labels_of,
    preferred_terms,
    tolerations_of,
)
from unisono.kinds.decode import decode


def spec_of(raw: dict[str, Any]) -> PodSpec:
    spec, problems = decode(PodSpec, {"containers": [{"name": "c"}]} | raw)
    assert spec is not None, problems
    return spec


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {"nodeAffinity": {key: {"nodeSelectorTerms": list(terms)}}}}


def test_labels_are_in_canonical_order() -> None:
    assert labels_of({"b": "1", "a": "2"}) == (("a", "2"), ("b", "1"))


def test_no_affinity_demands_nothing() -> None:
    assert affinity_terms(spec_of({}).affinity) == ()
    assert affinity_terms(preferred({"weight": 1}).affinity) == ()


def preferred(*terms: dict[str, Any]) -> PodSpec:
    key = "preferredDuringSchedulingIgnoredDuringExecution"
    return spec_of({"affinity": {"nodeAffinity": {key: list(terms)}}})


def test_preferred_terms_have_weights() -> None:
    zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    name = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]}
    spec = preferred(
        {"weight": 5, "preference": zone | name},
        {"weight": 0, "preference": zone},
        {"weight": 9, "preference": {}},
        {"weight": 100, "preference": name},
    )
    not_there = Requirement("metadata.name", "NotIn", ("n1",))
    assert preferred_terms(spec.affinity) == (
        WeightedTerm(5, (Requirement("zone", "In", ("a",)), not_there)),
        WeightedTerm(100, (not_there,)),
    )
    assert preferred_terms(None) == preferred_terms(spec_of({"affinity": {}}).affinity) == ()


def test_terms_keep_their_order_and_their_clauses() -> None:
    spec = spec_of(
        required(
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]},
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
        )
    )
    assert affinity_terms(spec.affinity) == (
        (Requirement("zone", "In", ("a", "b")),),
        (Requirement("metadata.name", "In", ("n1",)),),
    )


def test_a_term_without_clauses_matches_no_node() -> None:
    ((clause,),) = affinity_terms(spec_of(required({})).affinity)
    assert not meets(clause, {"metadata.name": "n1", "zone": "a"})


def test_tolerations() -> None:
    spec = spec_of(
        {
            "tolerations": [
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                {"key": "team", "value": "a", "tolerationSeconds": 30},
                {"operator": "Exists"},
                {"key": "load", "operator": "Lt", "value": "5"},
                {"key": "x", "operator": "", "value": "1"},
            ]
        }
    )
    assert tolerations_of(spec.tolerations) == (
        Toleration("nvidia.com/gpu", "Exists", "", "NoSchedule"),
        Toleration("team", "Equal", "a"),
        Toleration("", "Exists"),
        Toleration("x", "Equal", "1"),
    )
