"""Whatever stands in a manifest, the answer is a list of problems or a gang, never an exception."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import test_batch, test_jobset, test_kubeflow, test_ray, test_volcano
from tests.kinds.core import test_pod_groups, test_schema
from tests.kinds.trainer import test_kinds
from tests.support.manifests import documents, job

MANIFESTS = {
    "Job": test_batch.TRAINING_JOB,
    "JobSet": test_jobset.JOB_SET,
    "PyTorchJob": test_kubeflow.manifest(
        "PyTorchJob", "pytorchReplicaSpecs", test_kubeflow.replica("Worker", 1, 2)
    ),
    "RayCluster": test_ray.CLUSTER,
    "RayJob": test_ray.JOB,
    "VolcanoJob": test_volcano.HOROVOD,
    "TrainJob": test_kinds.T5_LARGE,
    "Pod": test_schema.FULL_POD,
    "PodOfGroup": test_pod_groups.pod("a"),
}

junk = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        2**70,
        1.5,
        "",
        "x",
        "-1",
        "1e99",
        [],
        [None],
        ["x"],
        {},
        {"x": "y"},
        {"": 0},
    ]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of everything below a document's apiVersion and kind."""
    found: list[tuple[Any, ...]] = []
    pairs: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = list(enumerate(value))
    for key, item in pairs:
        if path or key not in ("apiVersion", "kind"):
            found.append((*path, key))
            found.extend(places(item, (*path, key)))
    return found


def changed(raw: Any, path: tuple[Any, ...], value: Any) -> Any:
    result = copy.deepcopy(raw)
    at = result
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return result


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_samples_are_without_fault(name: str) -> None:
    assert job(MANIFESTS[name]).problems == []


@pytest.mark.parametrize("name", MANIFESTS)
@settings(max_examples=30)  # a moment for each kind; the differences are between the kinds
@given(data=st.data())
def test_one_thing_is_wrong(name: str, data: st.DataObject) -> None:
    (raw,) = documents(MANIFESTS[name])
    broken = raw
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places(broken)))
        broken = changed(broken, path, data.draw(junk))

    made = job(json.dumps(broken))
    assert all(path and message for path, message in made.problems)
    assert all(one.count > 0 for one in made.pod_sets)
