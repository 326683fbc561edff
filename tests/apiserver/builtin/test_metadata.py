"""The rules that hold for the metadata of every kind."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.surroundings import served_as
from unisono.apiserver.builtin.metadata import check_metadata
from unisono.apiserver.objects import Json


def wrong(key: str, **metadata: Any) -> list[tuple[str, str]]:
    served = served_as(key)
    home = {"namespace": "default"} if served.namespaced else {}
    causes = check_metadata({"metadata": {"name": "it", **home, **metadata}}, served)
    return [(cause.reason.removeprefix("FieldValue"), cause.field) for cause in causes]


@pytest.mark.parametrize(
    ("key", "good", "bad"),
    [
        ("/pods", ["a", "a.b-1", "1", "a" * 253], ["A", "a_b", "-a", "a..b", "a" * 254]),
        ("/namespaces", ["a", "1-a", "a" * 63], ["a.b", "a" * 64]),
        ("/services", ["a-1"], ["1a", "a.b", "a" * 64]),
        ("batch/cronjobs", ["a" * 52], ["a" * 53]),
        ("rbac.authorization.k8s.io/roles", ["system:node", "A b"], ["a/b", "a%b", ".", ".."]),
        ("kueue.x-k8s.io/clusterqueues", ["team.a"], ["Team"]),
    ],
)
def test_names(key: str, good: list[str], bad: list[str]) -> None:
    for name in good:
        assert wrong(key, name=name) == [], name
    for name in bad:
        assert wrong(key, name=name) == [("Invalid", "metadata.name")], name


def test_a_name_or_the_beginning_of_one_is_required() -> None:
    assert wrong("/pods", name="") == [("Required", "metadata.name")]
    assert wrong("/pods", name="", generateName="job-") == []
    assert wrong("/pods", name="", generateName="Job-") == [("Invalid", "metadata.generateName")]


def test_namespaces() -> None:
    assert wrong("/pods", namespace="") == [("Required", "metadata.namespace")]
    assert wrong("/pods", namespace="a.b") == [("Invalid", "metadata.namespace")]
    assert wrong("/nodes", namespace="a") == [("Forbidden", "metadata.namespace")]


def test_labels_and_annotations() -> None:
    assert wrong("/pods", labels={"a.b/c": "d", "e": ""}) == []
    assert wrong("/pods", labels={"a b": "c"}) == [("Invalid", "metadata.labels")]
    assert wrong("/pods", labels={"a": "c d"}) == [("Invalid", "metadata.labels")]
    assert wrong("/pods", labels={"a": "x" * 64}) == [("Invalid", "metadata.labels")]
    assert wrong("/pods", annotations={"A.b/C": "any text\n"}) == []
    assert wrong("/pods", annotations={"a b": "c"}) == [("Invalid", "metadata.annotations")]
    big = {"a": "x" * 262_144}
    assert wrong("/pods", annotations=big) == [("TooLong", "metadata.annotations")]


def test_finalizers() -> None:
    assert wrong("/pods", finalizers=["a.b/c", "orphan"]) == []
    assert wrong("/pods", finalizers=["c"]) == [("Invalid", "metadata.finalizers")]
    assert wrong("/pods", finalizers=["a b/c"]) == [("Invalid", "metadata.finalizers")]
    assert wrong("kueue.x-k8s.io/clusterqueues", finalizers=["c"]) == [], "as upstream: accepted"
    both = ["orphan", "foregroundDeletion"]
    assert wrong("/pods", finalizers=both) == [("Invalid", "metadata.finalizers")]


def owner(**fields: Any) -> Json:
    return {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", **fields}


def test_owners() -> None:
    assert wrong("/pods", ownerReferences=[owner(controller=True), owner(uid="v")]) == []
    assert wrong("/pods", ownerReferences=[owner(uid="")]) == [
        ("Required", "metadata.ownerReferences[0].uid")
    ]
    twice = [owner(controller=True), owner(uid="v", controller=True)]
    assert wrong("/pods", ownerReferences=twice) == [("Invalid", "metadata.ownerReferences")]
    event = owner(apiVersion="v1", kind="Event")
    assert wrong("/pods", ownerReferences=[event]) == [("Invalid", "metadata.ownerReferences[0]")]
