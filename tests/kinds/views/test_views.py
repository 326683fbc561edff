"""Views: what is written is read, and what is malformed is named."""

from __future__ import annotations

import contextlib
import pkgutil
from collections.abc import Iterator
from importlib import import_module

import pytest

from unisono.kinds import views
from unisono.kinds.views.base import Raw, View

MALFORMED: tuple[object, ...] = (
    None,
    "text",
    7,
    True,
    1.5,
    [],
    ["text"],
    [None],
    [[]],
    {},
    {"a": None},
)


def _kinds() -> list[type[View]]:
    found = [getattr(views, name) for name in views.__all__]
    return [one for one in found if isinstance(one, type) and issubclass(one, View)]


def _fields(kind: type[View]) -> Iterator[str]:
    for above in kind.__mro__:
        for name, value in vars(above).items():
            if not name.startswith("_") and hasattr(value, "__get__") and name != "raw":
                yield name


def _keys(kind: type[View]) -> Iterator[str]:
    for above in kind.__mro__:
        for value in vars(above).values():
            key = getattr(value, "_key", None)
            if isinstance(key, str):
                yield key


def _read_all(view: View, depth: int = 3) -> None:
    for name in _fields(type(view)):
        value = getattr(view, name)
        parts = value if isinstance(value, tuple) else (value,)
        for part in parts:
            if isinstance(part, View) and depth:
                _read_all(part, depth - 1)
            if isinstance(part, views.Conditions):
                assert not part.is_true("Missing")
                for condition in part:
                    _read_all(condition, 0)


@pytest.mark.parametrize("kind", _kinds(), ids=lambda kind: kind.__name__)
def test_malformed_values_raise_nothing_but_malformed(kind: type[View]) -> None:
    _read_all(kind({}))
    for key in _keys(kind):
        _read_all(kind({key: None}))
        for value in MALFORMED:
            with contextlib.suppress(views.Malformed):
                _read_all(kind({key: value}))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"queueName": 7}, "queueName: must be a text, not a number"),
        ({"priority": "high"}, "priority: must be a number, not a text"),
        ({"priority": True}, "priority: must be a number, not true or false"),
        ({"active": "no"}, "active: must be true or false, not a text"),
        ({"podSets": {}}, "podSets: must be a list, not an object"),
        ({"podSets": [{}, 7]}, "podSets[1]: must be an object, not a number"),
        ({"priorityClassRef": []}, "priorityClassRef: must be an object, not a list"),
    ],
)
def test_a_malformed_field_is_named(raw: Raw, message: str) -> None:
    with pytest.raises(views.Malformed) as error:
        _read_all(views.WorkloadSpec(raw))
    assert str(error.value) == message


def test_every_view_is_exported() -> None:
    for module in pkgutil.iter_modules(views.__path__):
        for name, value in vars(import_module(f"unisono.kinds.views.{module.name}")).items():
            if isinstance(value, type) and issubclass(value, View):
                assert name in views.__all__


def test_a_workload_reads_what_its_author_wrote() -> None:
    workload = views.Workload(
        {
            "metadata": {"namespace": "team-a", "name": "train", "labels": {"a": "b"}},
            "spec": {"queueName": "main", "podSets": [{"name": "workers", "count": 4}]},
            "status": {
                "admission": {
                    "clusterQueue": "gpus",
                    "podSetAssignments": [{"flavors": {"cpu": "spot"}}],
                },
                "conditions": [
                    {
                        "type": "QuotaReserved",
                        "status": "True",
                        "reason": "QuotaReserved",
                        "lastTransitionTime": "1970-01-01T00:01:00Z",
                    }
                ],
            },
        }
    )
    assert workload.key == ("team-a", "train")
    assert workload.metadata.labels == {"a": "b"}
    assert workload.spec.queue_name == "main"
    assert workload.spec.active
    assert [(one.name, one.count) for one in workload.spec.pod_sets] == [("workers", 4)]
    admission = workload.status.admission
    assert admission is not None
    assert admission.cluster_queue == "gpus"
    assert admission.pod_set_assignments[0].flavors == {"cpu": "spot"}
    assert workload.has_quota
    assert not workload.is_admitted
    assert workload.conditions.since("QuotaReserved") == 60
    assert workload.conditions.since("QuotaReserved", "False") == 0


def test_an_empty_admission_is_none() -> None:
    assert views.Workload({"status": {"admission": {}}}).status.admission is None


def test_a_container_state_counts_even_if_it_says_nothing_more() -> None:
    state = views.ContainerState({"running": {}})
    assert state.running is not None
    assert state.waiting is None
    assert state.terminated is None


def test_the_first_condition_of_a_type_counts() -> None:
    conditions = views.Conditions(
        [{"type": "A", "status": "True"}, {"type": "A", "status": "False"}]
    )
    assert conditions.is_true("A")
    assert [one.status for one in conditions] == ["True", "False"]
    assert conditions.get("B") is None


def test_a_view_looks_at_the_object_itself() -> None:
    raw: dict[str, object] = {"metadata": {"name": "a"}}
    view = views.Object(raw)
    raw["metadata"] = {"name": "b"}
    assert view.name == "b"
    assert view.raw is raw


def test_a_view_cannot_be_written() -> None:
    view = views.Taint({"key": "a"})
    with pytest.raises(AttributeError):
        view.key = "b"  # type: ignore[misc]


def test_pooled_quota_is_that_of_the_first_flavor() -> None:
    raw: Raw = {"flavors": ["a", "b"], "resources": [{"name": "cpu", "nominalQuota": "5"}]}
    (flavor,) = views.ResourceGroup(raw).flavors
    assert flavor.name == "a"
    assert flavor.resources[0].nominal_quota == "5"


@pytest.mark.parametrize(
    ("spec", "cohort"),
    [
        ({}, ""),
        ({"cohortName": "a"}, "a"),
        ({"cohort": "b"}, "b"),  # stored as it was applied in v1beta1
        ({"cohortName": "a", "cohort": "b"}, "a"),
    ],
)
def test_a_cohort_has_a_name_of_either_version(spec: Raw, cohort: str) -> None:
    assert views.ClusterQueue({"spec": spec}).spec.cohort_name == cohort
