"""Fields that are unknown and fields that stand twice: ignored, warned of, or refused."""

from __future__ import annotations

import json

import pytest

from tests.conformance.client import APPLY_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Api
from tests.conformance.objects import config_map, container, job, pod

_UNKNOWN = pod("a", {"colour": "red", "containers": [container(imagine="b")]})


def _twice(name: str) -> bytes:
    text = json.dumps(job(name, {"parallelism": 2}))
    return text.replace('"parallelism": 2', '"parallelism": 1, "parallelism": 2').encode()


def test_unknown_fields_are_warned_of_by_default(api: Api, namespace: str) -> None:
    answer = api.of("v1", "pods", namespace).create(_UNKNOWN)
    assert "colour" not in answer.ok(201)["spec"]
    assert set(answer.warnings) == {
        'unknown field "spec.colour"',
        'unknown field "spec.containers[0].imagine"',
    }


def test_unknown_fields_are_warned_of(api: Api, namespace: str) -> None:
    answer = api.of("v1", "pods", namespace).create(_UNKNOWN, fieldValidation="Warn")
    assert answer.code == 201
    assert len(answer.warnings) == 2


def test_unknown_fields_are_ignored(api: Api, namespace: str) -> None:
    answer = api.of("v1", "pods", namespace).create(_UNKNOWN, fieldValidation="Ignore")
    assert "colour" not in answer.ok(201)["spec"]
    assert answer.warnings == []


def test_unknown_fields_are_refused(api: Api, namespace: str) -> None:
    pods = api.of("v1", "pods", namespace)
    status = pods.create(_UNKNOWN, fieldValidation="Strict").refused(400, "BadRequest")
    assert 'unknown field "spec.colour"' in status["message"]
    assert 'unknown field "spec.containers[0].imagine"' in status["message"]
    pods.read("a").refused(404, "NotFound")


def test_duplicate_fields_are_warned_of_and_the_last_counts(api: Api, namespace: str) -> None:
    answer = api.post(f"/apis/batch/v1/namespaces/{namespace}/jobs", _twice("a"))
    assert answer.ok(201)["spec"]["parallelism"] == 2
    assert answer.warnings == ['duplicate field "spec.parallelism"']


def test_duplicate_fields_are_ignored(api: Api, namespace: str) -> None:
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    answer = api.post(path, _twice("a"), fieldValidation="Ignore")
    assert answer.ok(201)["spec"]["parallelism"] == 2
    assert answer.warnings == []


def test_duplicate_fields_are_refused(api: Api, namespace: str) -> None:
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    status = api.post(path, _twice("a"), fieldValidation="Strict").refused(400, "BadRequest")
    assert 'duplicate field "spec.parallelism"' in status["message"]


def test_replace_is_validated_too(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    maps.create(config_map("a")).ok(201)
    odd = {**config_map("a"), "colour": "red"}
    maps.replace(odd, fieldValidation="Strict").refused(400, "BadRequest")
    assert maps.replace(odd).warnings == ['unknown field "colour"']


@pytest.mark.parametrize("kind", [MERGE_PATCH, STRATEGIC_PATCH])
def test_patches_are_validated_too(api: Api, namespace: str, kind: str) -> None:
    pods = api.of("v1", "pods", namespace)
    pods.create(pod("a")).ok(201)
    odd = {"metadata": {"labels": {"x": "1"}}, "spec": {"colour": "red"}}
    answer = pods.patch("a", odd, kind=kind, fieldValidation="Strict")
    assert answer.code in {400, 422}, str(answer)
    assert 'unknown field "spec.colour"' in answer.json()["message"]
    warned = pods.patch("a", odd, kind=kind)
    assert warned.ok()["metadata"]["labels"] == {"x": "1"}
    assert warned.warnings == ['unknown field "spec.colour"']


def test_apply_knows_every_field(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    odd = {**config_map("a"), "colour": "red"}
    answer = maps.patch("a", odd, kind=APPLY_PATCH, fieldManager="me", fieldValidation="Strict")
    assert answer.code >= 400
    assert "colour" in answer.json()["message"]


def test_unknown_metadata_is_an_unknown_field(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    answer = maps.create(config_map("a", colour="red"), fieldValidation="Strict")
    assert 'unknown field "metadata.colour"' in answer.refused(400, "BadRequest")["message"]


def test_any_other_mode_is_invalid(api: Api, namespace: str) -> None:
    answer = api.of("v1", "configmaps", namespace).create(config_map("a"), fieldValidation="Often")
    assert answer.causes() == {("FieldValueNotSupported", "fieldValidation")}


def test_names_of_fields_are_case_sensitive(api: Api, namespace: str) -> None:
    odd = {**config_map("a"), "Data": {"k": "v"}}
    answer = api.of("v1", "configmaps", namespace).create(odd, fieldValidation="Strict")
    answer.refused(400, "BadRequest")


@pytest.mark.parametrize("wrong", [{"data": "text"}, {"data": {"k": 1}}, {"metadata": []}])
def test_a_wrong_type_is_refused(api: Api, namespace: str, wrong: dict[str, object]) -> None:
    answer = api.of("v1", "configmaps", namespace).create({**config_map("a"), **wrong})
    assert answer.code in {400, 422}, str(answer)  # 422 can name the field: see wrong-types
