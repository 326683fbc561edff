"""Other spellings of fields."""

from __future__ import annotations

from tests.apiserver.surroundings import served_as
from unisono.apiserver.admission import normalise
from unisono.apiserver.objects import Json

FLAVORS = served_as("kueue.x-k8s.io/resourceflavors", "v1beta1")
QUEUES = served_as("kueue.x-k8s.io/clusterqueues", "v1beta1")


def test_a_flavor_s_node_selector_is_its_node_labels() -> None:
    obj = {"spec": {"nodeSelector": {"a": "b"}}}
    [warning] = normalise(FLAVORS, obj)
    assert obj == {"spec": {"nodeLabels": {"a": "b"}}}
    assert "nodeLabels" in warning
    assert normalise(FLAVORS, obj) == []


def test_two_spellings_that_disagree_are_left_for_the_schema_to_refuse() -> None:
    obj = {"spec": {"nodeSelector": {"a": "b"}, "nodeLabels": {"a": "c"}}}
    assert normalise(FLAVORS, obj) == []
    assert "nodeSelector" in obj["spec"]


def test_a_pool_says_what_it_covers() -> None:
    pool: Json = {"flavors": ["a", "b"], "resources": [{"name": "gpu", "nominalQuota": 8}]}
    obj = {"spec": {"resourceGroups": [pool]}}
    assert normalise(QUEUES, obj) == []
    assert pool["coveredResources"] == ["gpu"]
    assert pool["flavors"] == ["a", "b"], "stored as it was written"


def test_other_things_are_left_alone() -> None:
    for obj in ({"spec": 5}, {}, {"spec": {"nodeSelector": "x"}}, {"spec": {"resourceGroups": 1}}):
        before = dict(obj)
        assert normalise(FLAVORS, obj) == []
        assert normalise(QUEUES, obj) == []
        assert obj == before


def test_a_train_job_that_says_nothing() -> None:
    obj: Json = {"spec": None}
    [warning] = normalise(served_as("trainer.kubeflow.org/trainjobs"), obj)
    assert obj["spec"] == {"runtimeRef": {"name": "torch-distributed"}}
    assert warning.startswith("spec: is empty")
