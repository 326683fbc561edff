"""Names for what stands several times."""

from __future__ import annotations

from tools.shapes.hoist import hoist
from unisono.kube.form import Json


def _quota() -> Json:
    names = ("nominalQuota", "borrowingLimit", "lendingLimit", "name", "somethingElse")
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}}


def _kind(**spec: Json) -> Json:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}


def test_what_two_versions_share_is_written_once() -> None:
    lists: Json = {"quotas": {"type": "array", "items": _quota() | {"description": "Quotas."}}}
    schemas = {
        "v1 Queue": _kind(**lists, a={"type": "string"}),
        "v1beta1 Queue": _kind(**lists, b={"type": "string"}),
    }
    made, definitions = hoist(schemas, "kueue")
    assert definitions == {"kueue.v1.Quota": _quota()}
    items = made["v1beta1 Queue"]["properties"]["spec"]["properties"]["quotas"]["items"]
    assert items == {"$ref": "kueue.v1.Quota", "description": "Quotas."}


def test_names_that_say_little_get_their_kind() -> None:
    schemas = {"v1 Queue": _kind(quota=_quota()), "v1beta1 Queue": _kind(quota=_quota())}
    _, definitions = hoist(schemas, "kueue")
    assert list(definitions) == ["kueue.v1.QueueSpec", "kueue.v1.Quota"]


def test_what_stands_once_stays_where_it_is() -> None:
    schemas = {"v1 Queue": _kind(quota=_quota())}
    assert hoist(schemas, "kueue") == (schemas, {})
