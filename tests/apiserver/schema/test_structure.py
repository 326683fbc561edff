"""What is said about values of one type, and about schemas made of schemas."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from unisono.apiserver.objects import Json
from unisono.apiserver.schema.node import node_of
from unisono.apiserver.schema.structure import compile_check
from unisono.kinds.shapes.served import definition
from unisono.kinds.shapes.shape import Shape

TYPE, INVALID = "FieldValueTypeInvalid", "FieldValueInvalid"


def faults(schema: Json, value: Any, *, typed: bool = False) -> list[tuple[str, str]]:
    check = node_of(Shape(schema, definition), typed=typed).compiled(compile_check)
    found = [] if check is None else check(value) or []
    return [(each.cause().reason, each.cause().field) for each in found]


def message(schema: Json, value: Any) -> str:
    check = node_of(Shape(schema, definition), typed=False).compiled(compile_check)
    assert check is not None
    (found,) = check(value)
    return str(found.cause().message)


@pytest.mark.parametrize(
    ("schema", "fine", "wrong"),
    [
        ({"type": "string"}, ["", "a"], [1, None, True, [], {}]),
        ({"type": "boolean"}, [True, False], [0, "true", None]),
        ({"type": "integer"}, [0, -3, 2.0], ["1", True, 1.5, None]),
        ({"type": "number"}, [0, 1.5], ["1", True, None]),
        ({"type": "object", "properties": {}}, [{}, {"a": 1}], [[], "a", None]),
        ({"type": "array", "items": {"type": "string"}}, [[], ["a"]], [{}, "a", None]),
        ({"x-kubernetes-int-or-string": True}, [1, 2.0, "http"], [1.5, True, None, []]),
        ({"type": "string", "nullable": True}, ["a", None], [1]),
        ({"format": "quantity"}, [1, 2.0, "500m"], [True, None, 1.5]),
        ({}, [None, 1, "a", [], {}], []),
    ],
)
def test_types(schema: Json, fine: list[Any], wrong: list[Any]) -> None:
    for value in fine:
        assert faults(schema, value) == [], value
    for value in wrong:
        assert faults(schema, value) == [(TYPE, "")], value


@pytest.mark.parametrize(
    ("schema", "fine", "wrong", "reason"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 3}, [1, 3], [0, 4], INVALID),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, [2], [1], INVALID),
        ({"type": "number", "maximum": 1, "exclusiveMaximum": True}, [0.9], [1, 1.1], INVALID),
        ({"type": "integer", "multipleOf": 5}, [0, 10], [3], INVALID),
        ({"type": "integer", "format": "int32"}, [2**31 - 1], [2**31], INVALID),
        ({"type": "integer"}, [2**63 - 1], [2**63], INVALID),
        ({"type": "string", "maxLength": 2}, ["äö"], ["abc"], "FieldValueTooLong"),
        ({"type": "string", "minLength": 1}, ["a"], [""], INVALID),
        ({"type": "string", "pattern": "^a+$"}, ["aa"], ["b", "aa\n"], INVALID),
        ({"type": "string", "enum": ["a", "b"]}, ["a"], ["c", ""], "FieldValueNotSupported"),
        ({"type": "integer", "enum": [1, 2]}, [1], [3], "FieldValueNotSupported"),
        (
            {"type": "string", "format": "date-time"},
            ["2026-02-28T01:02:03.5+01:00"],
            ["2026"],
            TYPE,
        ),
        ({"type": "string", "format": "date-time"}, [], ["2026-02-30T00:00:00Z", ""], TYPE),
        ({"type": "string", "format": "byte"}, ["aGk=", ""], ["a", "?"], TYPE),
        ({"type": "string", "format": "uuid"}, ["0" * 32], ["x"], TYPE),
        ({"type": "string", "format": "ipv4"}, ["10.0.0.1"], ["::1", "10"], TYPE),
        ({"type": "string", "format": "cidr"}, ["10.0.0.0/8", "::/0"], ["10.0.0.1"], TYPE),
        ({"type": "string", "format": "duration"}, ["1h30m", "0"], ["1", "h"], TYPE),
        ({"type": "string", "format": "date"}, ["2026-01-31"], ["2026-01-32"], TYPE),
        ({"type": "string", "format": "whatever"}, ["x"], [], TYPE),
        ({"format": "quantity"}, ["1.5Gi"], ["1 Gi", "", "1Xi"], INVALID),
        ({"type": "array", "maxItems": 1}, [["a"]], [["a", "b"]], "FieldValueTooMany"),
        ({"type": "array", "minItems": 1}, [["a"]], [[]], INVALID),
        (
            {"type": "object", "maxProperties": 1},
            [{"a": 1}],
            [{"a": 1, "b": 2}],
            "FieldValueTooMany",
        ),
        ({"type": "object", "minProperties": 1}, [{"a": 1}], [{}], INVALID),
        ({"type": "array", "enum": [["a"]]}, [["a"]], [["b"]], "FieldValueNotSupported"),
    ],
)
def test_bounds(schema: Json, fine: list[Any], wrong: list[Any], reason: str) -> None:
    for value in fine:
        assert faults(schema, value) == [], value
    for value in wrong:
        assert faults(schema, value) == [(reason, "")], value


def test_a_broken_pattern_blocks_no_object() -> None:
    assert faults({"type": "string", "pattern": "("}, "anything") == []


def test_required_fields() -> None:
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}
    assert faults(schema, {}) == [("FieldValueRequired", "a")]
    listed = {"type": "object", "properties": {"x": {"type": "array", "items": schema}}}
    assert faults(listed, {"x": [{"a": ""}, {}]}) == [("FieldValueRequired", "x[1].a")]
    mapped = {"type": "object", "additionalProperties": schema, "required": ["k"]}
    assert faults(mapped, {"a/b": {}}) == [
        ("FieldValueRequired", "a/b.a"),
        ("FieldValueRequired", "k"),
    ]


class TestLists:
    KEYED: ClassVar[Json] = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "protocol"],
        "items": {"type": "object", "properties": {}},
    }

    def test_items_must_differ_in_their_keys(self) -> None:
        udp, tcp = {"port": 1, "protocol": "UDP"}, {"port": 1, "protocol": "TCP"}
        assert faults(self.KEYED, [udp, tcp]) == []
        assert faults(self.KEYED, [udp, tcp, {**udp, "x": 1}]) == [("FieldValueDuplicate", "[2]")]
        assert faults(self.KEYED, [{}, {}]) == [("FieldValueDuplicate", "[1]")]

    def test_sets_have_no_item_twice(self) -> None:
        schema = {"type": "array", "x-kubernetes-list-type": "set", "items": {}}
        assert faults(schema, ["a", "b", {"a": 1}]) == []
        assert faults(schema, ["a", "a", {"a": 1}, {"a": 1}]) == [
            ("FieldValueDuplicate", "[1]"),
            ("FieldValueDuplicate", "[3]"),
        ]

    def test_typed_kinds_judge_for_themselves(self) -> None:
        assert faults(self.KEYED, [{}, {}], typed=True) == []


class TestCombinedSchemas:
    def test_any_of_wants_one_form(self) -> None:
        schema = {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        }
        assert faults(schema, {"b": "x"}) == []
        assert faults(schema, {}) == [("FieldValueRequired", "a")]

    def test_one_of_wants_just_one_form(self) -> None:
        schema = {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        }
        assert faults(schema, {"b": "x"}) == []
        assert faults(schema, {"a": "x", "b": "x"}) == [(INVALID, "")]

    def test_all_of_and_not(self) -> None:
        schema = {
            "type": "string",
            "allOf": [{"minLength": 2}, {"pattern": "^a"}],
            "not": {"enum": ["ab"]},
        }
        assert faults(schema, "aa") == []
        assert faults(schema, "ab") == [(INVALID, "")]
        assert faults(schema, "b") == [(INVALID, ""), (INVALID, "")]

    def test_rules_without_a_type_concern_only_what_they_fit(self) -> None:
        schema = {"allOf": [{"minimum": 3}, {"maxItems": 1}, {"maxLength": 1}]}
        for fine in (3, [1], "a", {"a": 1}, None, True):
            assert faults(schema, fine) == []
        for wrong in (2, [1, 2], "ab"):
            assert len(faults(schema, wrong)) == 1

    def test_a_reference_inside_is_ignored(self) -> None:
        assert faults({"type": "string", "allOf": [{"$ref": "nowhere"}]}, "a") == []


def test_messages_name_the_value_and_the_way_out() -> None:
    assert message({"type": "string"}, 5) == "must be a string, not a number"
    assert message({"type": "object"}, ["x"]) == "must be an object, not a list"
    assert message({"type": "string", "enum": ["Never", "Always"]}, "never") == (
        '"never" is not supported; use "Never", "Always"; did you mean "Never"?'
    )
    assert message({"type": "string", "enum": ["", "A"]}, "x") == ('"x" is not supported; use "A"')
    assert (
        message({"type": "integer", "minimum": 1}, 0)
        == "is 0; it should be greater than or equal to 1"
    )
    assert (
        message({"type": "string", "minLength": 1}, "")
        == "is empty; it should be at least 1 chars long"
    )
    long = message({"type": "string", "pattern": "^a$"}, "b" * 500)
    assert len(long) < 150
