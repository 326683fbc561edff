"""Types of built-in kinds inside custom resources."""

from __future__ import annotations

from tools.shapes.shared import _LARGE, _SMALL, share
from unisono.kube.form import Json

TEXT: Json = {"type": "string"}


def _object(*names: str, **more: Json) -> Json:
    return {"type": "object", "properties": {**dict.fromkeys(names, TEXT), **more}}


POD = ("containers", "volumes", "nodeName", "nodeSelector", "tolerations")
DEFINITIONS: dict[str, Json] = {
    **{name: _object(f"{name} only") for name in (*_LARGE, *_SMALL)},
    "core.v1.PodSpec": _object(*POD),
    "core.v1.Toleration": _object("key", "value", "effect"),
    "meta.v1.ObjectMeta": _object("name", "labels", "annotations"),
}


def test_a_pod_template_is_known_by_most_of_its_fields() -> None:
    older = _object(*POD[:4])
    node = _object(template=_object(metadata={"type": "object"}, spec=older))
    assert share(node, DEFINITIONS)["properties"]["template"] == {"$ref": "core.v1.PodTemplateSpec"}


def test_a_few_fields_of_a_pod_are_no_pod() -> None:
    node = _object("nodeSelector", "tolerations")
    assert share(node, DEFINITIONS) == node


def test_small_types_are_known_by_all_of_their_fields() -> None:
    node: Json = {"type": "array", "items": _object("key", "value", "effect")}
    assert share(node, DEFINITIONS)["items"] == {"$ref": "core.v1.Toleration"}
    with_more: Json = {"type": "array", "items": _object("key", "value", "effect", "more")}
    assert share(with_more, DEFINITIONS) == with_more


def test_what_has_rules_of_its_own_is_left_alone() -> None:
    node = _object("key", "value", effect={"type": "string", "enum": ["NoSchedule"]})
    assert share(node, DEFINITIONS) == node


def test_what_belongs_to_the_field_stays_beside_the_reference() -> None:
    node = _object("key", "value", "effect") | {"default": {}, "nullable": True}
    assert share(node, DEFINITIONS) == {
        "$ref": "core.v1.Toleration",
        "default": {},
        "nullable": True,
    }


def test_metadata_is_metadata_however_little_is_listed() -> None:
    node = _object(metadata=_object("labels"), spec=TEXT)
    assert share(node, DEFINITIONS)["properties"]["metadata"] == {"$ref": "meta.v1.ObjectMeta"}
    texts = _object(metadata={"type": "object", "additionalProperties": TEXT})
    assert share(texts, DEFINITIONS) == texts
