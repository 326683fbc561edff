"""managedFields of writes that are not applied: one entry for each manager."""

from __future__ import annotations

import pytest

from tests.conformance.client import JSON_PATCH, Api, Collection
from tests.conformance.objects import config_map, deployment
from tests.conformance.test_apply import owners


@pytest.fixture
def maps(api: Api, namespace: str) -> Collection:
    return api.of("v1", "configmaps", namespace)


def test_a_create_owns_what_it_sent(maps: Collection) -> None:
    made = maps.create(config_map("a", {"k": "v"}, labels={"x": "1"}), fieldManager="me").ok(201)
    (entry,) = made["metadata"]["managedFields"]
    assert entry["time"] == made["metadata"]["creationTimestamp"]
    assert (entry["apiVersion"], entry["fieldsType"]) == ("v1", "FieldsV1")
    assert owners(made) == {
        ("me", "Update"): {
            "f:data": {".": {}, "f:k": {}},
            "f:metadata": {"f:labels": {".": {}, "f:x": {}}},
        }
    }


def test_the_manager_is_the_user_agent_by_default(maps: Collection) -> None:
    assert set(owners(maps.create(config_map("a", {"k": "v"})).ok(201))) == {
        ("conformance", "Update")
    }


def test_an_empty_object_has_no_entry(maps: Collection) -> None:
    assert "managedFields" not in maps.create(config_map("a")).ok(201)["metadata"]


def test_an_update_takes_what_it_changes(maps: Collection) -> None:
    maps.create(config_map("a", {"j": "1", "k": "1"}), fieldManager="one").ok(201)
    patched = maps.patch("a", {"data": {"k": "2", "l": "2"}}, fieldManager="two").ok()
    assert owners(patched) == {
        ("one", "Update"): {"f:data": {".": {}, "f:j": {}}},
        ("two", "Update"): {"f:data": {"f:k": {}, "f:l": {}}},
    }


def test_what_is_removed_has_no_owner(maps: Collection) -> None:
    maps.create(config_map("a", {"j": "1", "k": "1"}), fieldManager="one").ok(201)
    patched = maps.patch("a", {"data": {"k": None}}, fieldManager="two").ok()
    assert owners(patched) == {("one", "Update"): {"f:data": {".": {}, "f:j": {}}}}


def test_status_writes_have_an_entry_of_their_own(api: Api, namespace: str) -> None:
    deployments = api.of("apps/v1", "deployments", namespace)
    deployments.create(deployment("a"), fieldManager="me").ok(201)
    status = {"status": {"replicas": 1}}
    patched = deployments.patch("a", status, sub="status", fieldManager="me").ok()
    entries = {
        entry.get("subresource", ""): entry["fieldsV1"]
        for entry in patched["metadata"]["managedFields"]
    }
    assert set(entries) == {"", "status"}
    assert entries["status"] == {"f:status": {"f:replicas": {}}}


@pytest.mark.parametrize("nothing", [[], [{}]])
def test_tracking_can_be_wiped(maps: Collection, nothing: list[object]) -> None:
    made = maps.create(config_map("a", {"k": "v"})).ok(201)
    made["metadata"]["managedFields"] = nothing
    assert "managedFields" not in maps.replace(made).ok()["metadata"]


def test_a_patch_can_wipe_tracking(maps: Collection) -> None:
    maps.create(config_map("a", {"k": "v"})).ok(201)
    wipe = [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]
    assert "managedFields" not in maps.patch("a", wipe, kind=JSON_PATCH).ok()["metadata"]


def test_the_first_apply_after_wiping_starts_with_everything_owned(maps: Collection) -> None:
    maps.create(config_map("a", {"j": "1", "k": "1"})).ok(201)
    maps.patch("a", {"metadata": {"managedFields": [{}]}}).ok()
    applied = maps.apply(config_map("a", {"k": "1"})).ok()
    assert owners(applied) == {
        ("before-first-apply", "Update"): {"f:data": {".": {}, "f:j": {}, "f:k": {}}},
        ("tester", "Apply"): {"f:data": {"f:k": {}}},
    }


def test_leaving_managed_fields_out_keeps_them(maps: Collection) -> None:
    made = maps.create(config_map("a", {"k": "v"}), fieldManager="one").ok(201)
    replaced = maps.replace(config_map("a", {"k": "v"}), fieldManager="two").ok()
    assert replaced["metadata"]["managedFields"] == made["metadata"]["managedFields"]


def test_of_many_managers_the_oldest_become_one(maps: Collection) -> None:
    maps.create(config_map("a", {"k0": "0"}), fieldManager="manager-0").ok(201)
    for number in range(1, 13):
        patch = {"data": {f"k{number}": str(number)}}
        maps.patch("a", patch, fieldManager=f"manager-{number}").ok()
    last = maps.read("a").ok()
    managers = [entry["manager"] for entry in last["metadata"]["managedFields"]]
    assert len(managers) == 10
    assert managers[0] == "ancient-changes"
    ancient = owners(last)["ancient-changes", "Update"]["f:data"]
    others = {f"f:k{manager.removeprefix('manager-')}" for manager in managers[1:]}
    assert set(ancient) == {".", *(f"f:k{number}" for number in range(13))} - others


@pytest.mark.parametrize("manager", ["m" * 129, "a\x07b"])
def test_the_manager_must_be_short_and_printable(maps: Collection, manager: str) -> None:
    answer = maps.create(config_map("a"), fieldManager=manager)
    assert {field for _, field in answer.causes()} == {"fieldManager"}
