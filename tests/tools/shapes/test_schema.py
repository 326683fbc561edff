"""Facts out of published schemas."""

from __future__ import annotations

from tools.shapes.schema import INT_OR_STRING, QUANTITY, TIME, facts


def test_prose_is_dropped_and_facts_are_kept() -> None:
    published = {
        "description": "Long prose.",
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"description": "More prose.", "type": "string", "minLength": 1},
            "tags": {
                "type": "array",
                "items": {"type": "string"},
                "x-kubernetes-list-type": "atomic",
            },
        },
    }
    assert facts(published, typed=False) == {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "minLength": 1},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
    }


def test_references_get_short_names() -> None:
    reference = "#/components/schemas/io.k8s.api.core.v1.PodSpec"
    assert facts({"$ref": reference}, typed=True) == {"$ref": "core.v1.PodSpec"}
    wrapped = {"allOf": [{"$ref": reference}], "default": {}, "description": "Prose."}
    assert facts(wrapped, typed=True) == {"$ref": "core.v1.PodSpec"}
    time = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Time"
    assert facts({"$ref": time}, typed=True) == TIME


def test_amounts_and_numbers_or_texts() -> None:
    either = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    port = either | {"x-kubernetes-int-or-string": True}
    assert facts(port, typed=False) == INT_OR_STRING
    assert facts(port | {"pattern": "^[0-9]"}, typed=False) == QUANTITY


def test_a_zero_is_no_default_of_a_built_in_kind() -> None:
    published = {
        "type": "object",
        "required": ["port"],
        "properties": {
            "port": {"type": "integer", "default": 0},
            "name": {"type": "string", "default": ""},
            "protocol": {"type": "string", "default": "TCP"},
            "isOptional": {"type": "boolean", "default": False},
        },
    }
    typed = facts(published, typed=True)["properties"]
    assert {name for name, field in typed.items() if "default" in field} == {
        "protocol",
        "isOptional",
    }
    custom = facts(published, typed=False)["properties"]
    assert custom["port"]["default"] == 0


def test_rules_lose_their_message() -> None:
    published = {
        "type": "string",
        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "Prose."}],
    }
    assert facts(published, typed=False)["x-kubernetes-validations"] == [
        {"rule": "self == oldSelf"}
    ]
