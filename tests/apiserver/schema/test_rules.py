"""Rules in schemas: when they run, where their complaints point to."""

from __future__ import annotations

from typing import Any

from unisono.apiserver.objects import Json
from unisono.apiserver.schema.checker import Checker
from unisono.apiserver.schema.rules import program, rule_problem
from unisono.kinds.shapes.served import definition, served_kinds
from unisono.kinds.shapes.shape import Shape


def checker(spec: Json) -> Checker:
    schema = {"type": "object", "properties": {"spec": spec}}
    return Checker(Shape(schema, definition), typed=False)


def of(spec: Any) -> Json:
    return {"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}, "spec": spec}


def ruled(rule: str, **more: Any) -> Json:
    return {"x-kubernetes-validations": [{"rule": rule, **more}]}


NUMBERS: Json = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
}


def test_a_rule_complains_in_its_own_words() -> None:
    check = checker({**NUMBERS, **ruled("self.a <= self.b", message="a is more than b")})
    assert check.check(of({"a": 1, "b": 2}), None) == []
    (cause,) = check.check(of({"a": 3, "b": 2}), None)
    assert (cause.reason, cause.message, cause.field) == (
        "FieldValueInvalid",
        "a is more than b",
        "spec",
    )


def test_reason_place_and_computed_message() -> None:
    check = checker(
        {
            **NUMBERS,
            **ruled(
                "self.a < 3",
                reason="FieldValueForbidden",
                fieldPath=".a",
                messageExpression="'a is ' + string(self.a)",
            ),
        }
    )
    (cause,) = check.check(of({"a": 3}), None)
    assert (cause.reason, cause.message, cause.field) == ("FieldValueForbidden", "a is 3", "spec.a")


def test_without_words_the_rule_itself_is_shown() -> None:
    check = checker({**NUMBERS, **ruled("self.a\n  < 3", messageExpression="1")})
    (cause,) = check.check(of({"a": 3}), None)
    assert cause.message == "breaks the rule self.a < 3"


def test_a_rule_that_fails_is_broken() -> None:
    check = checker({**NUMBERS, **ruled("self.a < 3", message="too many")})
    (cause,) = check.check(of({}), None)
    assert cause.message == "too many (the rule fails: no field 'a')"


def test_rules_about_the_change_run_on_updates_only() -> None:
    check = checker({**NUMBERS, **ruled("self.a >= oldSelf.a", message="never less")})
    assert check.check(of({"a": 1}), None) == []
    assert check.check(of({"a": 2}), of({"a": 1})) == []
    assert len(check.check(of({"a": 1}), of({"a": 2}))) == 1
    assert check.check(of({"a": 1}), {"metadata": {}}) == [], "there was no spec before"


def test_the_old_value_may_be_optional() -> None:
    rule = "oldSelf.hasValue() ? self.a > oldSelf.value().a : self.a == 0"
    check = checker({**NUMBERS, **ruled(rule, optionalOldSelf=True)})
    assert check.check(of({"a": 0}), None) == []
    assert len(check.check(of({"a": 1}), None)) == 1
    assert check.check(of({"a": 1}), of({"a": 0})) == []
    assert len(check.check(of({"a": 0}), of({"a": 0}))) == 1


def test_an_unchanged_value_is_not_judged_again() -> None:
    check = checker(
        {
            "type": "object",
            "properties": {
                "old": {**NUMBERS, **ruled("self.a < 3")},
                "new": {"type": "integer"},
            },
        }
    )
    old = of({"old": {"a": 9}, "new": 1})
    assert check.check(of({"old": {"a": 9}, "new": 2}), old) == []
    assert len(check.check(of({"old": {"a": 8}, "new": 2}), old)) == 1


def test_items_and_entries() -> None:
    item = {**NUMBERS, **ruled("self.a < 3")}
    check = checker(
        {
            "type": "object",
            "properties": {
                "list": {"type": "array", "items": item},
                "map": {"type": "object", "additionalProperties": item},
            },
        }
    )
    causes = check.check(of({"list": [{"a": 1}, {"a": 3}], "map": {"x/y": {"a": 4}}}), None)
    assert [cause.field for cause in causes] == ["spec.list[1]", "spec.map.x/y"]


def test_old_items_are_found_by_their_keys() -> None:
    named = {**NUMBERS, "properties": {**NUMBERS["properties"], "name": {"type": "string"}}}
    items = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {**named, **ruled("self.a >= oldSelf.a")},
    }
    check = checker({"type": "object", "properties": {"items": items}})
    old = of({"items": [{"name": "x", "a": 5}, {"name": "y", "a": 1}]})
    assert check.check(of({"items": [{"name": "y", "a": 2}, {"name": "new", "a": 0}]}), old) == []
    (cause,) = check.check(of({"items": [{"name": "y", "a": 2}, {"name": "x", "a": 4}]}), old)
    assert cause.field == "spec.items[1]"


def test_null_and_absent_values_are_not_judged() -> None:
    leaf = {"type": "integer", "nullable": True, **ruled("self > 3")}
    check = checker({"type": "object", "properties": {"a": leaf}})
    assert check.check(of({}), None) == check.check(of({"a": None}), None) == []
    assert len(check.check(of({"a": 1}), None)) == 1


def test_what_cannot_run_here_is_not_enforced() -> None:
    check = checker({**NUMBERS, **ruled("quantity(self.a).isLessThan(quantity('3'))")})
    assert check.check(of({"a": 5}), None) == []
    assert program("quantity(self.a).isLessThan(self.b)").missing == ["isLessThan", "quantity"]


def test_problems_of_rules() -> None:
    assert rule_problem("self.a > 1") == ""
    assert rule_problem("self.a >") == "unexpected the end at character 9"
    assert "characters" in rule_problem("1+" * 3000 + "1")


def test_every_rule_of_the_kinds_we_serve_can_run() -> None:
    rules = set()
    seen = set()

    def walk(raw: Any) -> None:
        if isinstance(raw, dict):
            if "$ref" in raw and isinstance(raw["$ref"], str) and raw["$ref"] not in seen:
                seen.add(raw["$ref"])
                walk(definition(raw["$ref"]))
            for rule in raw.get("x-kubernetes-validations", ()):
                if isinstance(rule, dict) and isinstance(rule.get("rule"), str):
                    rules.add(rule["rule"])
            for below in raw.values():
                walk(below)

    for served in served_kinds():
        walk(dict(served.schema))
    assert len(rules) > 50
    assert [rule for rule in rules if rule_problem(rule) or program(rule).missing] == []
