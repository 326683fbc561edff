"""Ownership after an update: entries, times, and what is not tracked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.patch.gadgets import API_VERSION, GADGET, gadget
from unisono.apiserver.errors import ApiError
from unisono.apiserver.objects import Json, copied
from unisono.apiserver.patch.managed_fields import record_update, without_idle_times
from unisono.kinds.shapes.shape import Shape


def update(
    old: Json | None,
    new: Json,
    manager: str = "m",
    *,
    now: float = 0.0,
    subresource: str = "",
    **more: Any,
) -> Json:
    """Record an update and return the new object."""
    version = more.pop("api_version", API_VERSION)
    shape = more.pop("shape", GADGET)
    record_update(
        old,
        new,
        manager=manager,
        api_version=version,
        subresource=subresource,
        now=now,
        shape=shape,
        **more,
    )
    return new


def entries(obj: Json) -> dict[str, Any]:
    """Return the sets by manager, with the subresource behind a slash."""
    return {
        entry["manager"] + (f"/{entry['subresource']}" if "subresource" in entry else ""): entry[
            "fieldsV1"
        ]
        for entry in obj["metadata"].get("managedFields", ())
    }


def test_a_new_object_belongs_to_its_creator() -> None:
    spec = {"text": "a", "set": ["x"], "ports": [{"port": 80}], "whole": {"p": "1"}, "map": {}}
    made = update(None, gadget(spec, labels={"l": "1"}, uid="u", generation=1), now=3600)
    assert made["metadata"]["managedFields"] == [
        {
            "manager": "m",
            "operation": "Update",
            "apiVersion": API_VERSION,
            "time": "1970-01-01T01:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
                "f:spec": {
                    ".": {},
                    "f:text": {},
                    "f:set": {".": {}, 'v:"x"': {}},
                    "f:ports": {
                        ".": {},
                        'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}},
                    },
                    "f:whole": {},
                    "f:map": {},
                },
            },
        }
    ]


def test_an_update_takes_what_it_changes() -> None:
    old = update(None, gadget({"text": "a", "map": {"x": "1", "y": "1"}}), "maker")
    new = copied(old)
    new["spec"] = {"text": "b", "map": {"y": "1", "z": "1"}}
    before = copied(old)
    update(old, new, "editor", now=60)
    assert entries(new) == {
        "maker": {"f:spec": {".": {}, "f:map": {".": {}, "f:y": {}}}},
        "editor": {"f:spec": {"f:text": {}, "f:map": {"f:z": {}}}},
    }
    assert old == before
    assert [entry["time"] for entry in new["metadata"]["managedFields"]] == [
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:01:00Z",
    ]


def test_nothing_changed_nothing_written() -> None:
    old = update(None, gadget({"text": "a"}), "maker")
    new = copied(old)
    update(old, new, "other", now=60)
    assert new == old


def test_a_manager_that_owns_nothing_any_more_is_not_listed() -> None:
    old = update(None, gadget({"text": "a"}), "maker")
    new = gadget({"text": "b", "number": 1})
    assert set(entries(update(old, new, "editor"))) == {"maker", "editor"}
    bare = gadget()
    assert entries(update(new, bare, "third")) == {}
    assert "managedFields" not in bare["metadata"]


def test_a_write_without_the_list_keeps_it() -> None:
    old = update(None, gadget({"text": "a", "number": 1}), "maker")
    new = gadget({"text": "b", "number": 1})
    assert entries(update(old, new, "putter")) == {
        "maker": {"f:spec": {".": {}, "f:number": {}}},
        "putter": {"f:spec": {"f:text": {}}},
    }


@pytest.mark.parametrize("wiped", [[], [{}]])
def test_wiping(wiped: list[Any]) -> None:
    old = update(None, gadget({"text": "a"}), "maker")
    new = gadget({"text": "b"}, managedFields=wiped)
    assert "managedFields" not in update(old, new, "wiper")["metadata"]
    # From then on nothing is tracked until a configuration is applied.
    later = gadget({"text": "c"})
    assert "managedFields" not in update(new, later, "later")["metadata"]


def test_a_subresource_does_not_wipe() -> None:
    old = update(None, gadget({"text": "a"}), "maker")
    new = gadget({"text": "a"}, managedFields=[{}])
    assert set(entries(update(old, new, "wiper", subresource="status"))) == {"maker"}


def test_the_list_can_be_edited() -> None:
    old = update(None, gadget({"text": "a"}), "maker")
    entry = {
        "manager": "chosen",
        "operation": "Apply",
        "apiVersion": API_VERSION,
        "time": "1970-01-02T02:30:00.5+02:30",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:text": {".": {}}, "x:later": {}}},
    }
    new = update(old, gadget({"text": "a"}, managedFields=[entry]), "editor")
    assert new["metadata"]["managedFields"] == [
        {**entry, "time": "1970-01-02T00:00:00Z", "fieldsV1": {"f:spec": {"f:text": {}}}}
    ]


@pytest.mark.parametrize(
    "nonsense",
    [
        "text",
        5,
        {"a": 1},
        ["text"],
        [{"manager": "x"}],
        [{"operation": "Fly", "apiVersion": "v1", "fieldsType": "FieldsV1"}],
        [{"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV2"}],
        [{"operation": "Update", "apiVersion": 1, "fieldsType": "FieldsV1"}],
        [{"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": []}],
        [{"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "manager": 1}],
    ],
)
def test_a_list_that_makes_no_sense_changes_nothing(nonsense: Any) -> None:
    old = update(None, gadget({"text": "a"}), "maker")
    new = update(old, gadget({"text": "a"}, managedFields=nonsense), "editor")
    assert entries(new) == entries(old)


def test_a_time_that_is_none_is_invalid() -> None:
    entry = {"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "time": "noon"}
    with pytest.raises(ApiError) as refusal:
        update(None, gadget({}, managedFields=[entry]))
    assert refusal.value.code == 422
    assert refusal.value.causes[0].field == "metadata.managedFields[0].time"


def test_the_status_has_owners_of_its_own() -> None:
    old = update(None, gadget({"text": "a"}), "maker")
    new = copied(old)
    new["status"] = {"text": "up", "conditions": [{"type": "Ready", "status": "True"}]}
    new["metadata"]["labels"] = {"not": "here"}
    update(old, new, "controller", subresource="status")
    assert entries(new)["controller/status"] == {
        "f:status": {
            ".": {},
            "f:text": {},
            "f:conditions": {
                ".": {},
                'k:{"type":"Ready"}': {".": {}, "f:status": {}, "f:type": {}},
            },
        }
    }
    later = copied(new)
    later["status"] = {}
    assert entries(update(new, later, "maker")) == entries(new)


def test_a_kind_without_a_status_address_tracks_its_status() -> None:
    made = update(None, {**gadget(), "status": {"text": "up"}}, ignored=())
    assert entries(made) == {"m": {"f:status": {".": {}, "f:text": {}}}}


def test_the_same_manager_in_two_versions_has_two_entries() -> None:
    old = update(None, gadget({"text": "a", "number": 1}), "m", api_version="patch.example.com/v1")
    new = copied(old)
    new["spec"]["number"] = 2
    update(old, new, "m", api_version="patch.example.com/v2")
    assert [
        (entry["apiVersion"], entry["fieldsV1"]) for entry in new["metadata"]["managedFields"]
    ] == [
        ("patch.example.com/v1", {"f:spec": {".": {}, "f:text": {}}}),
        ("patch.example.com/v2", {"f:spec": {"f:number": {}}}),
    ]


def test_fields_that_another_version_calls_otherwise_are_found() -> None:
    """In v2 `text` is `words`; its owner in v1 loses it to the manager that writes it in v2."""
    renamed = Shape({"type": "object"}, lambda name: {})

    def translate(obj: Any, version: str) -> tuple[Json, Shape] | None:
        if version == "patch.example.com/v0":
            return None
        spec = dict(obj["spec"])
        if "words" in spec:
            spec["text"] = spec.pop("words")
        return {**obj, "spec": spec}, GADGET

    old = update(None, gadget({"text": "a", "number": 1}), "m")
    gone = {**old["metadata"]["managedFields"][0], "apiVersion": "patch.example.com/v0"}
    old["metadata"]["managedFields"].append(gone)
    old["spec"] = {"words": "a", "number": 1}
    new = copied(old)
    new["spec"]["words"] = "b"
    more: Json = {"shape": renamed, "translate": translate}
    update(old, new, "n", api_version="patch.example.com/v2", **more)
    assert entries(new) == {
        "m": {"f:spec": {".": {}, "f:number": {}}},
        "n": {"f:spec": {"f:words": {}}},
    }


def test_true_is_not_one() -> None:
    old = update(None, gadget({"open": {"a": {"b": 1, "c": 0}}, "either": 1}), "maker")
    new = copied(old)
    new["spec"]["open"]["a"] = {"b": True, "c": 0.0}
    assert entries(update(old, new, "editor"))["editor"] == {
        "f:spec": {"f:open": {"f:a": {"f:b": {}}}}
    }


def test_a_value_of_another_sort() -> None:
    old = update(None, gadget({"open": {"a": {"b": 1}, "c": 5}}), "maker")
    new = copied(old)
    new["spec"]["open"] = {"a": "text", "c": {"d": 1}}
    assert entries(update(old, new, "editor")) == {
        "maker": {"f:spec": {".": {}, "f:open": {}}},
        "editor": {"f:spec": {"f:open": {"f:a": {}, "f:c": {".": {}, "f:d": {}}}}},
    }


def test_items_that_are_there_twice() -> None:
    """Nothing forbids that in an old object; such items count as one value."""
    once, twice = [{"port": 1, "x": "1"}], [{"port": 1, "x": "1"}, {"port": 1, "x": "2"}]
    key = 'k:{"port":1,"protocol":"TCP"}'
    old = update(None, gadget({"ports": once}), "maker")
    doubled = update(old, gadget({"ports": twice}), "doubler")
    assert entries(doubled) == {
        "maker": {"f:spec": {".": {}, "f:ports": {}}},
        "doubler": {"f:spec": {"f:ports": {key: {}}}},
    }
    same = update(doubled, gadget({"ports": copied(twice)}), "third")
    assert entries(same) == entries(doubled)
    single = update(doubled, gadget({"ports": once}), "third")
    assert entries(single)["third"] == {
        "f:spec": {"f:ports": {key: {".": {}, "f:port": {}, "f:x": {}}}}
    }


def test_an_object_that_is_not_valid_is_left_alone() -> None:
    old = update(None, gadget({"text": "a"}), "maker")
    new = gadget({"text": "b", "set": [{"not": "plain"}], "ports": [5]})
    assert entries(update(old, new, "editor")) == entries(old)


@pytest.mark.parametrize("metadata", [None, 5, "text", []])
def test_metadata_must_be_an_object(metadata: Any) -> None:
    with pytest.raises(ApiError) as refusal:
        update(None, {"metadata": metadata})
    assert refusal.value.code == 400


def test_idle_times_are_put_back() -> None:
    old = update(None, gadget({"text": "a"}), "maker")
    new = copied(old)
    new["metadata"]["managedFields"][0]["time"] = "1999-01-01T00:00:00Z"
    without_idle_times(old, new)
    assert new == old
    new["spec"]["text"] = "b"
    new["metadata"]["managedFields"][0]["time"] = "1999-01-01T00:00:00Z"
    without_idle_times(old, new)
    assert new["metadata"]["managedFields"][0]["time"] == "1999-01-01T00:00:00Z"


def test_built_in_kinds_have_a_spec_from_the_start() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c"}], "nodeName": "n"},
    }
    keyed = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    spec = {"type": "object", "properties": {"containers": keyed}}
    shape = Shape({"type": "object", "properties": {"spec": spec}}, lambda name: {})
    assert entries(update(None, pod, shape=shape, api_version="v1")) == {
        "m": {
            "f:spec": {
                "f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}}},
                "f:nodeName": {},
            }
        }
    }
