"""Objects against schemas: the three passes together, as the API calls them."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unisono.apiserver.errors import ApiError, Cause
from unisono.apiserver.objects import Json
from unisono.apiserver.schema.checker import Checker
from unisono.kinds.shapes.served import definition, served_kinds
from unisono.kinds.shapes.shape import Shape


def checker(spec: Json, *, typed: bool = False, **root: Any) -> Checker:
    schema = {"type": "object", "properties": {"spec": spec}, **root}
    return Checker(Shape(schema, definition), typed=typed)


def of(spec: Any, **more: Any) -> Json:
    return {"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}, "spec": spec, **more}


def fields(causes: list[Cause]) -> list[tuple[str, str]]:
    return [(cause.reason, cause.field) for cause in causes]


def builtin(kind: str, version: str = "v1", group: str = "") -> Checker:
    for served in served_kinds():
        if (served.kind, served.version, served.group) == (kind, version, group):
            return Checker(served.shape, typed="." not in group)
    raise AssertionError(kind)


def cluster_queue(**spec: Any) -> Json:
    flavor = {"name": "f", "resources": [{"name": "cpu", "nominalQuota": 9}]}
    group = {"coveredResources": ["cpu"], "flavors": [flavor]}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "q"},
        "spec": {"namespaceSelector": {}, "resourceGroups": [group], **spec},
    }


class TestPrune:
    def test_unknown_fields_go_and_are_named(self) -> None:
        leaf = {"type": "string"}
        inner = {"type": "object", "properties": {"known": leaf}}
        check = checker(
            {
                "type": "object",
                "properties": {
                    "list": {"type": "array", "items": inner},
                    "map": {"type": "object", "additionalProperties": inner},
                    "plain": leaf,
                },
            }
        )
        obj = of(
            {
                "list": [{"known": "a"}, {"known": "b", "foo": {"deep": 1}}],
                "map": {"x/y": {"bar": 1}},
                "plain": "c",
                "other": 1,
            },
            extra=True,
        )
        assert check.prune(obj) == [
            "spec.list[1].foo",
            "spec.map.x/y.bar",
            "spec.other",
            "extra",
        ]
        assert obj == of(
            {"list": [{"known": "a"}, {"known": "b"}], "map": {"x/y": {}}, "plain": "c"}
        )
        assert check.prune(obj) == []

    def test_open_places_keep_everything_but_prune_what_they_know(self) -> None:
        known = {"type": "object", "properties": {"a": {"type": "string"}}}
        check = checker(
            {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
                "properties": {"known": known},
            }
        )
        obj = of({"anything": {"goes": [1]}, "known": {"a": "x", "b": "y"}})
        assert check.prune(obj) == ["spec.known.b"]
        assert obj["spec"] == {"anything": {"goes": [1]}, "known": {"a": "x"}}

    def test_an_object_without_fields_is_empty(self) -> None:
        obj = of({"a": 1})
        assert checker({"type": "object"}).prune(obj) == ["spec.a"]

    def test_metadata_is_known_everywhere(self) -> None:
        obj = of({}, metadata={"name": "a", "labels": {"x": "y"}, "lables": {}})
        assert checker({"type": "object"}).prune(obj) == ["metadata.lables"]

    def test_an_embedded_object_is_a_whole_one(self) -> None:
        check = checker(
            {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "properties": {"spec": {"type": "object", "properties": {}}},
            }
        )
        inner = {"apiVersion": "v1", "kind": "B", "metadata": {"name": "b", "x": 1}, "y": 2}
        assert check.prune(of(inner)) == ["spec.metadata.x", "spec.y"]
        causes = check.check(of({"metadata": {}}), None)
        assert fields(causes) == [
            ("FieldValueRequired", "spec.apiVersion"),
            ("FieldValueRequired", "spec.kind"),
        ]

    def test_a_hint_names_the_nearest_field(self) -> None:
        check = builtin("ClusterQueue", "v1beta2", "kueue.x-k8s.io")
        obj = cluster_queue(quueingStrategy="StrictFIFO")
        obj["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQouta"] = 1
        hints = {path: check.hint(path) for path in check.prune(obj)}
        assert hints == {
            "spec.resourceGroups[0].flavors[0].resources[0].nominalQouta": (
                '; did you mean "nominalQuota"?'
            ),
            "spec.quueingStrategy": '; did you mean "queueingStrategy"?',
        }
        assert check.hint("") == check.hint("nothing.like.it") == check.hint("[") == ""

    def test_absurdly_deep_objects_are_refused(self) -> None:
        deep: Any = 1
        for _ in range(5000):
            deep = [deep]
        check = checker({"x-kubernetes-preserve-unknown-fields": True})
        with pytest.raises(ApiError, match="200 levels") as refusal:
            check.prune(of(deep))
        assert refusal.value.code == 400


class TestFill:
    def test_defaults_come_with_their_own_defaults(self) -> None:
        inner = {
            "type": "object",
            "default": {"b": 1},
            "properties": {"a": {"type": "string", "default": "x"}, "b": {"type": "integer"}},
        }
        check = checker({"type": "object", "properties": {"inner": inner}})
        one, other = of({}), of({})
        check.fill(one)
        check.fill(other)
        assert one["spec"] == {"inner": {"a": "x", "b": 1}}
        one["spec"]["inner"]["b"] = 2
        assert other["spec"]["inner"]["b"] == 1, "defaults are not shared"

    def test_no_default_appears_below_what_is_absent(self) -> None:
        inner = {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}
        obj = of({})
        checker({"type": "object", "properties": {"inner": inner}}).fill(obj)
        assert obj["spec"] == {}

    def test_null_means_absent_unless_it_may_stand(self) -> None:
        check = checker(
            {
                "type": "object",
                "properties": {
                    "default": {"type": "string", "default": "x"},
                    "nothing": {"type": "string"},
                    "null": {"type": "string", "nullable": True, "default": "x"},
                    "map": {"type": "object", "additionalProperties": {"type": "string"}},
                },
            }
        )
        obj = of({"default": None, "nothing": None, "null": None, "map": {"a": None, "b": "c"}})
        check.fill(obj)
        assert obj["spec"] == {"default": "x", "null": None, "map": {"b": "c"}}
        assert check.check(obj, None) == []

    def test_typed_kinds_write_amounts_canonically(self) -> None:
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "creationTimestamp": None},
            "spec": {
                "containers": [
                    {
                        "name": "c",
                        "resources": {
                            "limits": {"cpu": "1000m", "memory": "1024Mi", "nvidia.com/gpu": 1},
                            "requests": {"cpu": 0.5, "memory": "a lot"},
                        },
                    }
                ]
            },
        }
        check = builtin("Pod")
        assert check.prune(pod) == []
        check.fill(pod)
        resources = pod["spec"]["containers"][0]["resources"]  # type: ignore[index]
        assert resources["limits"] == {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
        assert resources["requests"]["cpu"] == "500m"
        path = "spec.containers[0].resources.requests[memory]"
        assert fields(check.check(pod, None)) == [("FieldValueInvalid", path)]

    def test_typed_kinds_drop_empty_lists_and_maps_that_are_optional(self) -> None:
        pod: Json = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "labels": {"gone": None}, "managedFields": []},
            "spec": {
                "containers": [],
                "schedulingGates": [],
                "nodeSelector": {},
                "securityContext": {},
                "volumes": [{"name": "v", "emptyDir": {}}],
            },
        }
        check = builtin("Pod")
        check.fill(pod)
        assert pod["metadata"] == {"name": "p", "managedFields": []}, "that is an order"
        spec = pod["spec"]
        assert spec["containers"] == [], "required"
        assert spec["securityContext"] == {}, "a struct"
        assert spec["volumes"][0]["emptyDir"] == {}
        assert "schedulingGates" not in spec
        assert "nodeSelector" not in spec

    def test_custom_kinds_keep_empty_ones(self) -> None:
        listed = {"type": "array", "items": {"type": "string"}}
        mapped = {"type": "object", "additionalProperties": {"type": "string"}}
        check = checker({"type": "object", "properties": {"list": listed, "map": mapped}})
        obj = of({"list": [], "map": {}})
        check.fill(obj)
        assert obj["spec"] == {"list": [], "map": {}}

    def test_a_typed_status_may_be_incomplete(self) -> None:
        pod: Json = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {"containers": [{"image": "x"}]},
            "status": {"containerStatuses": [{"name": "c", "ready": True}]},
        }
        check = builtin("Pod")
        check.fill(pod)
        status = pod["status"]["containerStatuses"][0]
        wanted = {"name": "c", "ready": True, "image": "", "imageID": "", "restartCount": 0}
        assert status == wanted
        assert fields(check.check(pod, None)) == [("FieldValueRequired", "spec.containers[0].name")]

    def test_custom_kinds_keep_the_text(self) -> None:
        obj = cluster_queue()
        resources = obj["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
        resources[0]["nominalQuota"] = "1000m"
        check = builtin("ClusterQueue", "v1beta2", "kueue.x-k8s.io")
        check.fill(obj)
        assert resources[0]["nominalQuota"] == "1000m"


class TestCheck:
    def test_two_mistakes_give_two_causes_and_rules_wait(self) -> None:
        """Scenario 19 of the specification."""
        obj = cluster_queue(queueingStrategy="Foo")
        obj["spec"]["resourceGroups"][0]["coveredResources"] = []
        check = builtin("ClusterQueue", "v1beta2", "kueue.x-k8s.io")
        check.fill(obj)
        assert sorted(fields(check.check(obj, None))) == [
            ("FieldValueInvalid", "spec.resourceGroups[0].coveredResources"),
            ("FieldValueNotSupported", "spec.queueingStrategy"),
        ]

    def test_a_rule_about_two_fields_names_their_parent(self) -> None:
        """Scenario 20 of the specification."""
        preemption = {
            "reclaimWithinCohort": "Never",
            "borrowWithinCohort": {"policy": "LowerPriority"},
        }
        obj = cluster_queue(preemption=preemption)
        check = builtin("ClusterQueue", "v1beta2", "kueue.x-k8s.io")
        check.fill(obj)
        assert fields(check.check(obj, None)) == [("FieldValueInvalid", "spec.preemption")]

    def test_names_have_the_rules_that_a_schema_gives_them(self) -> None:
        name = {"type": "string", "maxLength": 3}
        metadata = {"type": "object", "properties": {"name": name}}
        schema = {"type": "object", "properties": {"metadata": metadata}}
        check = Checker(Shape(schema, definition), typed=False)
        obj = {"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "long", "labels": {"a": 1}}}
        assert fields(check.check(obj, None)) == [
            ("FieldValueTypeInvalid", "metadata.labels[a]"),
            ("FieldValueTooLong", "metadata.name"),
        ]

    def test_too_deep_for_a_recursive_schema_is_a_cause(self) -> None:
        check = builtin("CustomResourceDefinition", "v1", "apiextensions.k8s.io")
        deep: Json = {"type": "string"}
        for _ in range(3000):
            deep = {"type": "array", "items": deep}
        version = {"name": "v1", "served": True, "storage": True}
        spec = {"versions": [{**version, "schema": {"openAPIV3Schema": deep}}]}
        causes = check.check(of(spec), None)
        assert [cause.message for cause in causes] == ["is nested too deeply"]

    def test_an_absurd_number_of_mistakes_is_cut(self) -> None:
        check = checker({"type": "array", "items": {"type": "string"}})
        assert len(check.check(of([1] * 1000), None)) == 50


class TestRatcheting:
    """An update is not blamed for what it left alone."""

    SPEC: ClassVar[Json] = {
        "type": "object",
        "properties": {
            "color": {"type": "string", "enum": ["red"]},
            "size": {"type": "integer", "maximum": 3},
            "items": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {
                        "name": {"type": "string"},
                        "size": {"type": "integer", "maximum": 3},
                    },
                },
            },
            "plain": {"type": "array", "items": {"type": "integer", "maximum": 3}},
        },
    }

    def test_an_old_mistake_is_let_be_and_a_new_one_is_not(self) -> None:
        check = checker(self.SPEC)
        old = of({"color": "blue", "size": 1})
        assert check.check(of({"color": "blue", "size": 2}), old) == []
        assert fields(check.check(of({"color": "blue", "size": 9}), old)) == [
            ("FieldValueInvalid", "spec.size")
        ]
        assert fields(check.check(of({"color": "green"}), old)) == [
            ("FieldValueNotSupported", "spec.color")
        ]

    def test_items_are_recognised_by_their_keys(self) -> None:
        check = checker(self.SPEC)
        old = of({"items": [{"name": "a", "size": 9}, {"name": "b", "size": 1}]})
        new = of({"items": [{"name": "b", "size": 2}, {"name": "a", "size": 9}]})
        assert check.check(new, old) == []
        new["spec"]["items"].append({"name": "c", "size": 9})
        assert fields(check.check(new, old)) == [("FieldValueInvalid", "spec.items[2].size")]

    def test_a_list_without_keys_is_one_value(self) -> None:
        check = checker(self.SPEC)
        old = of({"plain": [9], "size": 1})
        assert check.check(of({"plain": [9], "size": 2}), old) == []
        assert check.check(of({"plain": [9, 1]}), old) != []

    def test_a_missing_field_is_let_be_with_its_whole_object_only(self) -> None:
        spec = {
            "type": "object",
            "required": ["a"],
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        }
        check = checker({"type": "object", "properties": {"x": spec, "y": {"type": "string"}}})
        old = of({"x": {"b": "1"}})
        assert check.check(of({"x": {"b": "1"}, "y": "new"}), old) == []
        assert fields(check.check(of({"x": {"b": "2"}}), old)) == [
            ("FieldValueRequired", "spec.x.a")
        ]


def test_an_update_cannot_take_away_what_is_required() -> None:
    check = checker({"type": "object"}, required=["spec"])
    old = of({})
    new = {key: value for key, value in old.items() if key != "spec"}
    assert fields(check.check(new, old)) == [("FieldValueRequired", "spec")]
    assert check.check({**old, "metadata": {"name": "a", "labels": {"x": "y"}}}, old) == []


# ---- any object whatsoever -------------------------------------------------------------------

_NAMES = st.sampled_from(
    [
        *("spec", "metadata", "name", "containers", "resources", "limits", "cpu", "labels"),
        *("status", "template", "podSets", "conditions", "type", "env", "ports", "flavors"),
    ]
)
_SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
)
JSON = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(_NAMES | st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)
_KINDS = [
    ("Pod", "v1", ""),
    ("Job", "v1", "batch"),
    ("ClusterQueue", "v1beta2", "kueue.x-k8s.io"),
    ("Workload", "v1beta2", "kueue.x-k8s.io"),
    ("CustomResourceDefinition", "v1", "apiextensions.k8s.io"),
    ("RayCluster", "v1", "ray.io"),
]
_CHECKERS = [builtin(*kind) for kind in _KINDS]


@st.composite
def shaped(draw: st.DrawFn, shape: Shape, depth: int = 0) -> Any:
    """Make something that a schema mostly likes, so that the deep places are reached too."""
    if depth > 7 or draw(st.integers(0, 14)) == 0:
        return draw(_SCALARS)
    match shape.type:
        case "object" if shape.names:
            names = draw(st.lists(st.sampled_from(shape.names), max_size=4, unique=True))
            return {name: draw(shaped(shape.field(name), depth + 1)) for name in names}  # type: ignore[arg-type]
        case "object":
            keys = draw(st.lists(st.sampled_from(["cpu", "a/b", "x"]), max_size=2, unique=True))
            values = shape.values
            return {key: draw(shaped(values, depth + 1) if values else JSON) for key in keys}
        case "array":
            items = shape.items
            return draw(st.lists(shaped(items, depth + 1) if items else JSON, max_size=2))
        case "string" if "enum" in shape.raw:
            return draw(st.sampled_from(shape.raw["enum"]))
        case "string":
            return draw(st.sampled_from(["a", "1", "500m", "x-y", "2026-01-01T00:00:00Z", ""]))
        case "integer" | "number":
            return draw(st.integers(-2, 5))
        case "boolean":
            return draw(st.booleans())
        case _:
            return draw(JSON)


@st.composite
def objects(draw: st.DrawFn) -> tuple[Checker, Json, Json]:
    number = draw(st.integers(0, len(_KINDS) - 1))
    kind = _KINDS[number]
    shape = next(
        served.shape
        for served in served_kinds()
        if (served.kind, served.version, served.group) == kind
    )
    pair = []
    for _ in range(2):
        made = draw(shaped(shape) | st.dictionaries(_NAMES, JSON, max_size=4))
        pair.append(made if isinstance(made, dict) else {"spec": made})
    return _CHECKERS[number], pair[0], pair[1]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(objects())
def test_no_object_is_too_odd(made: tuple[Checker, Json, Json]) -> None:
    """Every pass copes with everything, changes nothing the second time, and keeps paths true."""
    check, obj, old = made
    check.check(copy.deepcopy(obj), None)  # even if it was not pruned
    for path in check.prune(obj):
        check.hint(path)
    assert check.prune(obj) == []
    check.fill(obj)
    once = copy.deepcopy(obj)
    check.fill(obj)
    assert obj == once
    assert check.prune(obj) == [], "defaults are known fields"
    causes = check.check(obj, None)
    assert all(cause.reason.startswith("FieldValue") and cause.message for cause in causes)
    assert len(check.check(obj, old)) <= 50
    same = check.check(obj, copy.deepcopy(obj))
    assert all("rule" in cause.message for cause in same), "structure is not judged again"
    assert obj == once, "checking changes nothing"
