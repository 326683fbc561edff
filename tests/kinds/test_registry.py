"""Looking kinds up by what documents say of themselves."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unisono.kinds.known import KNOWN
from unisono.kinds.meta import OwnerReference
from unisono.kinds.registry import Kind, UnknownKind, UnknownVersion, least_of_each, registry


def kind(version: str, name: str, group: str = "x.dev") -> Kind:
    return Kind(group=group, version=version, kind=name, struct=OwnerReference, namespaced=True)


SMALL = registry([kind("v1", "Queue"), kind("v2", "Queue")], [kind("v1", "Pod", group="")])


def test_a_kind_is_found_by_version_and_name() -> None:
    found = SMALL.look_up("x.dev/v2", "Queue")
    assert isinstance(found, Kind)
    assert found.api_version == "x.dev/v2"
    core = SMALL.look_up("v1", "Pod")
    assert isinstance(core, Kind)
    assert core.api_version == "v1"


def test_an_unknown_version_names_those_that_are_known() -> None:
    assert SMALL.look_up("x.dev/v3", "Queue") == UnknownVersion(("x.dev/v1", "x.dev/v2"))
    assert SMALL.look_up("v2", "Pod") == UnknownVersion(("v1",))


def test_an_unknown_kind_is_only_unknown() -> None:
    assert SMALL.look_up("y.dev/v1", "Queue") == UnknownKind()
    assert SMALL.look_up("x.dev/v1", "Queu") == UnknownKind(near="Queue")


def test_a_kind_cannot_be_defined_twice() -> None:
    with pytest.raises(AssertionError, match="defined twice"):
        registry([kind("v1", "Queue")], [kind("v1", "Queue")])


@pytest.mark.parametrize(
    ("api_version", "name"),
    [
        (f"kueue.x-k8s.io/{version}", name)
        for version in ("v1beta1", "v1beta2")
        for name in (
            "AdmissionCheck",
            "ClusterQueue",
            "Cohort",
            "LocalQueue",
            "ResourceFlavor",
            "Topology",
            "Workload",
            "WorkloadPriorityClass",
        )
    ]
    + [
        ("kueue.x-k8s.io/v1alpha1", "Cohort"),
        ("kueue.x-k8s.io/v1alpha1", "Topology"),
        ("unisono.dev/v1", "Policy"),
        ("config.kueue.x-k8s.io/v1beta1", "Configuration"),
        ("config.kueue.x-k8s.io/v1beta2", "Configuration"),
        ("v1", "Namespace"),
        ("v1", "Node"),
        ("v1", "Pod"),
        ("v1", "LimitRange"),
        ("scheduling.k8s.io/v1", "PriorityClass"),
        ("batch/v1", "Job"),
        ("batch.volcano.sh/v1alpha1", "Job"),
        ("jobset.x-k8s.io/v1alpha2", "JobSet"),
        ("ray.io/v1", "RayCluster"),
        ("trainer.kubeflow.org/v1alpha1", "TrainJob"),
    ],
)
def test_what_is_known(api_version: str, name: str) -> None:
    assert isinstance(KNOWN.look_up(api_version, name), Kind)


def test_every_kind_can_be_decoded_from_nothing_without_an_exception() -> None:
    from unisono.kinds.decode import decode

    for one in KNOWN.kinds.values():
        decode(one.struct, {"apiVersion": one.api_version, "kind": one.kind})


@given(st.lists(st.integers(0, 3), max_size=4), st.integers(0, 12))
def test_a_minimum_is_the_fewest_pods_with_which_the_gang_can_be_complete(
    counts: list[int], least: int
) -> None:
    least = min(least, sum(counts))
    complete = [
        chosen
        for chosen in product(*(range(count + 1) for count in counts))
        if sum(chosen) >= least
    ]
    fewest = tuple(min(chosen[index] for chosen in complete) for index in range(len(counts)))
    assert least_of_each(least, counts) == fewest
