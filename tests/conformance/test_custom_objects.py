"""Objects of custom kinds: defaults, pruning, validation, rules, and field ownership."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.client import (
    JSON_PATCH,
    STRATEGIC_PATCH,
    Answer,
    Api,
    Collection,
    Manifest,
    eventually,
)
from tests.conformance.objects import config_map, owned_by
from tests.conformance.test_apply import owners
from tests.conformance.widgets import VERSION, gadget, widget


def _causes(answer: Answer) -> set[tuple[str, str]]:
    """Return the causes without the remark that rules were not checked, which has no field."""
    return {(reason, field) for reason, field in answer.causes() if field != "<nil>"}


def test_it_lives_like_any_other(widgets: Collection, namespace: str) -> None:
    made = widgets.create(widget("a")).ok(201)
    assert (made["kind"], made["apiVersion"]) == ("Widget", VERSION)
    assert made["metadata"]["generation"] == 1
    listed = widgets.list().ok()
    assert (listed["kind"], listed["apiVersion"]) == ("WidgetList", VERSION)
    assert listed["items"] == [made]
    start = made["metadata"]["resourceVersion"]
    with widgets.watch(resourceVersion=start) as events:
        patched = widgets.patch("a", {"spec": {"size": 2}}).ok()
        status = widgets.delete("a").ok()
        assert events.next() == ("MODIFIED", patched)
        assert events.next()[0] == "DELETED"
    assert status["status"] == "Success"
    assert status["details"]["kind"] == "widgets"
    assert patched["metadata"]["generation"] == 2


def test_defaults_are_filled_in(widgets: Collection) -> None:
    made = widgets.create(widget("a", {"parts": [{"name": "x"}]})).ok(201)
    assert made["spec"] == {
        "size": 1,
        "replicas": 1,
        "colour": "red",
        "parts": [{"name": "x", "count": 1}],
    }


def test_null_takes_the_default_unless_it_is_allowed(widgets: Collection) -> None:
    made = widgets.create(widget("a", {"colour": None, "nothing": None})).ok(201)
    assert made["spec"]["colour"] == "red"
    assert made["spec"]["nothing"] is None


def test_unknown_fields_are_pruned(widgets: Collection) -> None:
    odd = {
        **widget("a", {"odd": 1, "free": {"any": {"thing": [1]}}, "labels": {"x": "y"}}),
        "top": 1,
    }
    answer = widgets.create(odd)
    made = answer.ok(201)
    assert "odd" not in made["spec"]
    assert "top" not in made
    assert made["spec"]["free"] == {"any": {"thing": [1]}}
    assert made["spec"]["labels"] == {"x": "y"}
    assert set(answer.warnings) == {
        'unknown field "spec.odd"',
        'unknown field "top"',
    }


def test_unknown_fields_are_refused_when_strict(widgets: Collection) -> None:
    odd = widget("a", {"odd": 1, "parts": [{"name": "x", "odd": 2}]})
    status = widgets.create(odd, fieldValidation="Strict").refused(400, "BadRequest")
    assert 'unknown field "spec.odd"' in status["message"]
    assert 'unknown field "spec.parts[0].odd"' in status["message"]
    widgets.create(widget("a")).ok(201)
    patch = {"spec": {"odd": 1}}
    assert widgets.patch("a", patch, fieldValidation="Strict").code in {400, 422}
    assert "odd" not in widgets.patch("a", patch).ok()["spec"]


def test_an_embedded_object_keeps_its_metadata(widgets: Collection) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"any": 1}}
    assert widgets.create(widget("a", {"pod": pod})).ok(201)["spec"]["pod"] == pod
    answer = widgets.create(widget("b", {"pod": {"metadata": {}}}))
    assert _causes(answer) == {
        ("FieldValueRequired", "spec.pod.apiVersion"),
        ("FieldValueRequired", "spec.pod.kind"),
    }


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        ({"size": None}, ("FieldValueRequired", "spec.size")),
        ({"size": "1"}, ("FieldValueTypeInvalid", "spec.size")),
        ({"size": 1.5}, ("FieldValueTypeInvalid", "spec.size")),
        ({"size": 0}, ("FieldValueInvalid", "spec.size")),
        ({"size": 101}, ("FieldValueInvalid", "spec.size")),
        ({"colour": "black"}, ("FieldValueNotSupported", "spec.colour")),
        ({"code": "ABC"}, ("FieldValueInvalid", "spec.code")),
        ({"code": "a"}, ("FieldValueInvalid", "spec.code")),
        ({"code": "abcdef"}, ("FieldValueTooLong", "spec.code")),
        ({"ratio": 0.3}, ("FieldValueInvalid", "spec.ratio")),
        ({"port": True}, ("FieldValueTypeInvalid", "spec.port")),
        ({"when": "yesterday"}, ("FieldValueTypeInvalid", "spec.when")),
        ({"free": "text"}, ("FieldValueTypeInvalid", "spec.free")),
        ({"labels": {"x": 1}}, ("FieldValueTypeInvalid", "spec.labels.x")),
        ({"tags": ["a", "a"]}, ("FieldValueDuplicate", "spec.tags[1]")),
        ({"steps": []}, ("FieldValueInvalid", "spec.steps")),
        ({"steps": list("abcd")}, ("FieldValueTooMany", "spec.steps")),
        ({"parts": [{"count": 1}]}, ("FieldValueRequired", "spec.parts[0].name")),
        (
            {"parts": [{"name": "x"}, {"name": "x"}]},
            ("FieldValueDuplicate", "spec.parts[1]"),
        ),
        ({"parts": {"name": "x"}}, ("FieldValueTypeInvalid", "spec.parts")),
    ],
    ids=str,
)
def test_the_schema_is_checked(widgets: Collection, spec: Manifest, cause: tuple[str, str]) -> None:
    answer = widgets.create(widget("a", spec))
    assert cause in answer.causes(), str(answer)
    assert answer.json()["details"]["kind"] == "Widget"


@pytest.mark.parametrize(
    "spec",
    [
        {"port": 80},
        {"port": "http"},
        {"ratio": 1.5},
        {"size": 7.0},
        {"when": "2024-01-01T00:00:00Z"},
        {"steps": ["a", "a"]},
        {"nothing": None},
        {"tags": []},
    ],
    ids=str,
)
def test_what_the_schema_allows(widgets: Collection, spec: Manifest) -> None:
    made = widgets.create(widget("a", spec)).ok(201)["spec"]
    assert {name: made[name] for name in spec} == spec


def test_every_mistake_is_told_at_once(widgets: Collection) -> None:
    answer = widgets.create(widget("a", {"size": 0, "colour": "black"}))
    assert _causes(answer) == {
        ("FieldValueInvalid", "spec.size"),
        ("FieldValueNotSupported", "spec.colour"),
    }


class TestRules:
    """Rules in CEL, checked once the schema is satisfied."""

    def test_a_rule_with_a_path_and_a_message_of_its_own(self, widgets: Collection) -> None:
        answer = widgets.create(widget("a", {"least": 2, "most": 1}))
        assert answer.causes() == {("FieldValueInvalid", "spec.least")}
        assert "a red widget has least above most" in answer.json()["message"]
        widgets.create(widget("a", {"least": 1, "most": 1})).ok(201)

    def test_a_rule_with_a_reason(self, widgets: Collection) -> None:
        answer = widgets.create(widget("a", {"colour": "blue"}))
        assert answer.causes() == {("FieldValueForbidden", "spec")}
        assert "blue widgets are big" in answer.json()["message"]
        widgets.create(widget("a", {"colour": "blue", "size": 11})).ok(201)

    def test_a_rule_about_the_old_value(self, widgets: Collection) -> None:
        widgets.create(widget("a", {"fixed": "x"})).ok(201)
        widgets.patch("a", {"spec": {"fixed": "x", "size": 2}}).ok()
        answer = widgets.patch("a", {"spec": {"fixed": "y"}})
        assert answer.causes() == {("FieldValueInvalid", "spec.fixed")}
        assert "fixed cannot change" in answer.json()["message"]
        widgets.patch("a", {"spec": {"fixed": None}}).ok()
        widgets.patch("a", {"spec": {"fixed": "y"}}).ok()

    def test_rules_wait_for_the_schema(self, widgets: Collection) -> None:
        answer = widgets.create(widget("a", {"colour": "black", "least": 2, "most": 1}))
        assert _causes(answer) == {("FieldValueNotSupported", "spec.colour")}


def test_a_replacement_needs_the_version(widgets: Collection) -> None:
    made = widgets.create(widget("a")).ok(201)
    answer = widgets.replace(widget("a", {"size": 2}))
    assert answer.causes() == {("FieldValueInvalid", "metadata.resourceVersion")}
    made["spec"]["size"] = 2
    widgets.replace(made).ok()
    widgets.replace(made).refused(409, "Conflict")


def test_strategic_merge_is_not_for_custom_kinds(widgets: Collection) -> None:
    widgets.create(widget("a")).ok(201)
    answer = widgets.patch("a", {"spec": {"size": 2}}, kind=STRATEGIC_PATCH)
    answer.refused(415, "UnsupportedMediaType")


def test_the_other_patches_are(widgets: Collection) -> None:
    widgets.create(widget("a", {"tags": ["x"]})).ok(201)
    assert widgets.patch("a", {"spec": {"tags": ["y"]}}).ok()["spec"]["tags"] == ["y"]
    add = [{"op": "add", "path": "/spec/tags/-", "value": "z"}]
    assert widgets.patch("a", add, kind=JSON_PATCH).ok()["spec"]["tags"] == ["y", "z"]


def test_a_kind_must_be_said(widgets: Collection) -> None:
    widgets.create({"metadata": {"name": "a"}, "spec": {"size": 1}}).refused(400, "BadRequest")


def test_fields_can_be_selected(widgets: Collection) -> None:
    widgets.create(widget("a")).ok(201)
    widgets.create(widget("b", {"colour": "green"})).ok(201)
    assert widgets.names(fieldSelector="spec.colour=green") == ["b"]
    assert widgets.names(fieldSelector="metadata.name=a") == ["a"]
    widgets.list(fieldSelector="spec.size=1").refused(400, "BadRequest")


class TestApply:
    """Server-side apply follows the schema's list and map types."""

    def _fields(self, thing: Any, manager: str = "tester") -> Any:
        return owners(thing)[manager, "Apply"]["f:spec"]

    def test_a_list_of_objects_with_keys(self, widgets: Collection) -> None:
        one = widgets.apply(widget("a", {"parts": [{"name": "x", "note": "n"}]}), manager="A")
        assert self._fields(one.ok(201), "A")["f:parts"] == {
            'k:{"name":"x"}': {".": {}, "f:name": {}, "f:note": {}}
        }
        wish = {**widget("a", {"parts": [{"name": "y", "count": 2}]})}
        both = widgets.apply(wish, manager="B").ok()
        assert [part["name"] for part in both["spec"]["parts"]] == ["x", "y"]
        less = widgets.apply(widget("a"), manager="A").ok()
        assert [part["name"] for part in less["spec"]["parts"]] == ["y"]

    def test_a_set(self, widgets: Collection) -> None:
        widgets.apply(widget("a", {"tags": ["x", "z"]}), manager="A").ok(201)
        both = widgets.apply(widget("a", {"tags": ["y", "z"]}), manager="B").ok()
        assert sorted(both["spec"]["tags"]) == ["x", "y", "z"]
        assert set(self._fields(both, "B")["f:tags"]) == {'v:"y"', 'v:"z"'}
        less = widgets.apply(widget("a"), manager="A").ok()
        assert sorted(less["spec"]["tags"]) == ["y", "z"]

    def test_atomic_members(self, widgets: Collection) -> None:
        wish = {"steps": ["x"], "whole": {"a": 1}, "free": {"q": {"r": 1}}}
        made = widgets.apply(widget("a", wish)).ok(201)
        fields = self._fields(made)
        assert (fields["f:steps"], fields["f:whole"]) == ({}, {})
        assert fields["f:free"] == {"f:q": {".": {}, "f:r": {}}}
        answer = widgets.apply(widget("a", {"whole": {"b": 2}}), manager="B")
        assert answer.causes(409, "Conflict") == {("FieldManagerConflict", ".spec.whole")}

    def test_unknown_fields(self, widgets: Collection) -> None:
        odd = widget("a", {"odd": 1})
        assert widgets.apply(odd, fieldValidation="Strict").code >= 400

    def test_an_invalid_object_is_not_applied(self, widgets: Collection) -> None:
        assert ("FieldValueInvalid", "spec.size") in widgets.apply(
            widget("a", {"size": 0})
        ).causes()
        widgets.read("a").refused(404, "NotFound")


def test_a_cluster_kind(api: Api, custom_kinds: None, namespace: str) -> None:
    gadgets = api.of(VERSION, "gadgets")
    made = gadgets.create(gadget(namespace, spec={"size": 1})).ok(201)
    assert "namespace" not in made["metadata"]
    assert gadgets.read(namespace).ok() == made
    assert api.of(VERSION, "gadgets", namespace).list().code == 404


@pytest.mark.controllers
@pytest.mark.slow
def test_a_custom_object_owns(api: Api, widgets: Collection, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    owner = widgets.create(widget("owner")).ok(201)
    maps.create(config_map("child", ownerReferences=owned_by(owner))).ok(201)
    widgets.delete("owner").ok()
    eventually(lambda: maps.read("child").code == 404)
