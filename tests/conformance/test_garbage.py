"""Owners and what they own: what goes with an owner, what stays, and in which order."""

from __future__ import annotations

import pytest

from tests.conformance.client import Api, Collection, Manifest, eventually
from tests.conformance.objects import config_map, job, owned_by, pod

pytestmark = [pytest.mark.controllers, pytest.mark.slow]


@pytest.fixture
def maps(api: Api, namespace: str) -> Collection:
    return api.of("v1", "configmaps", namespace)


def _is_gone(things: Collection, name: str) -> bool:
    return things.read(name).code == 404


def _owner(maps: Collection) -> Manifest:
    made: Manifest = maps.create(config_map("owner")).ok(201)
    return made


@pytest.mark.parametrize("options", [None, {"propagationPolicy": "Background"}], ids=str)
def test_dependents_go_after_their_owner(maps: Collection, options: Manifest | None) -> None:
    owner = _owner(maps)
    maps.create(config_map("child", ownerReferences=owned_by(owner))).ok(201)
    child = maps.read("child").ok()
    maps.create(config_map("grandchild", ownerReferences=owned_by(child))).ok(201)
    status = maps.delete("owner", options).ok()
    assert status["status"] == "Success"
    eventually(lambda: _is_gone(maps, "child"))
    eventually(lambda: _is_gone(maps, "grandchild"))


def test_a_dependent_with_another_owner_stays(maps: Collection) -> None:
    owner = _owner(maps)
    other = maps.create(config_map("other")).ok(201)
    both = [*owned_by(owner), *owned_by(other)]
    maps.create(config_map("child", ownerReferences=both)).ok(201)
    maps.delete("owner").ok()

    def has_one_owner() -> bool:
        references = maps.read("child").ok()["metadata"]["ownerReferences"]
        return [each["name"] for each in references] == ["other"]

    eventually(has_one_owner)
    maps.delete("other").ok()
    eventually(lambda: _is_gone(maps, "child"))


def test_in_the_foreground_dependents_go_first(maps: Collection) -> None:
    owner = _owner(maps)
    blocking = owned_by(owner, blockOwnerDeletion=True)
    maps.create(config_map("child", ownerReferences=blocking, finalizers=["a.b/c"])).ok(201)
    deleted = maps.delete("owner", {"propagationPolicy": "Foreground"}).ok()
    assert deleted["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert deleted["metadata"]["deletionTimestamp"]
    eventually(lambda: "deletionTimestamp" in maps.read("child").ok()["metadata"])
    maps.read("owner").ok()
    maps.patch("child", {"metadata": {"finalizers": None}}).ok()
    eventually(lambda: _is_gone(maps, "child"))
    eventually(lambda: _is_gone(maps, "owner"))


def test_orphans_lose_their_owner_and_stay(maps: Collection) -> None:
    owner = _owner(maps)
    maps.create(config_map("child", ownerReferences=owned_by(owner))).ok(201)
    maps.delete("owner", {"propagationPolicy": "Orphan"}).ok()
    eventually(lambda: _is_gone(maps, "owner"))
    assert "ownerReferences" not in maps.read("child").ok()["metadata"]


def test_a_dependent_of_owners_that_never_existed_is_deleted(maps: Collection) -> None:
    ghost = {**config_map("ghost"), "metadata": {"name": "ghost", "uid": "no-such-uid"}}
    maps.create(config_map("child", ownerReferences=owned_by(ghost))).ok(201)
    eventually(lambda: _is_gone(maps, "child"))


def test_the_same_name_is_not_the_same_owner(maps: Collection) -> None:
    owner = _owner(maps)
    maps.delete("owner").ok()
    _owner(maps)
    maps.create(config_map("child", ownerReferences=owned_by(owner))).ok(201)
    eventually(lambda: _is_gone(maps, "child"))


def test_pods_of_a_job_go_with_it_unless_nothing_is_said(api: Api, namespace: str) -> None:
    jobs, pods = api.of("batch/v1", "jobs", namespace), api.of("v1", "pods", namespace)
    for name in ("kept", "gone"):
        owner = jobs.create(job(name)).ok(201)
        pods.create(pod(name, ownerReferences=owned_by(owner, controller=True))).ok(201)
    jobs.delete("kept").ok()
    jobs.delete("gone", {"propagationPolicy": "Background"}).ok()
    eventually(lambda: _is_gone(pods, "gone"))
    eventually(lambda: _is_gone(jobs, "kept"))
    assert "ownerReferences" not in pods.read("kept").ok()["metadata"]
