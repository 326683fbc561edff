"""Reviews of users, rights and tokens; computed, never stored."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.client import Api, Manifest
from tests.conformance.objects import config_map
from tests.conformance.servers import Server

_AUTHN = "authentication.k8s.io/v1"
_AUTHZ = "authorization.k8s.io/v1"


def _review(api: Api, version: str, kind: str, spec: Manifest | None = None, **query: Any) -> Any:
    manifest: Manifest = {"apiVersion": version, "kind": kind}
    if spec is not None:
        manifest["spec"] = spec
    answer = api.of(version, f"{kind.lower()}s").create(manifest, **query)
    got = answer.ok(201)
    assert (got["kind"], got["apiVersion"]) == (kind, version)
    return got


@pytest.fixture
def guest(api: Api, server: Server) -> Api:
    """Return the way of a user who may do nothing."""
    if server.guest_token is None:
        pytest.skip("this server has one user")
    return api.another(server.guest_token)


def test_self_subject_review(api: Api) -> None:
    user = _review(api, _AUTHN, "SelfSubjectReview")["status"]["userInfo"]
    assert user["username"]
    assert "system:masters" in user["groups"]
    assert "system:authenticated" in user["groups"]


@pytest.mark.parametrize(
    "attributes",
    [
        {"namespace": "default", "verb": "create", "group": "batch", "resource": "jobs"},
        {"verb": "*", "group": "*", "resource": "*"},
        {"namespace": "default", "verb": "get", "resource": "pods", "subresource": "log"},
    ],
    ids=str,
)
def test_the_administrator_may(api: Api, attributes: Manifest) -> None:
    spec = {"resourceAttributes": attributes}
    got = _review(api, _AUTHZ, "SelfSubjectAccessReview", spec)
    assert got["status"]["allowed"] is True
    assert got["spec"] == spec


def test_the_administrator_may_see_paths(api: Api) -> None:
    spec = {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
    assert _review(api, _AUTHZ, "SelfSubjectAccessReview", spec)["status"]["allowed"] is True


def test_which_rules_apply(api: Api) -> None:
    got = _review(api, _AUTHZ, "SelfSubjectRulesReview", {"namespace": "default"})
    rules = got["status"]["resourceRules"]
    assert {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]} in rules


def test_token_review(api: Api, server: Server) -> None:
    got = _review(api, _AUTHN, "TokenReview", {"token": server.token})
    assert got["status"]["authenticated"] is True
    assert "system:masters" in got["status"]["user"]["groups"]
    other = _review(api, _AUTHN, "TokenReview", {"token": "unknown"})
    assert other["status"].get("authenticated", False) is False


def test_reviews_need_something_to_review(api: Api) -> None:
    empty = {"apiVersion": _AUTHZ, "kind": "SelfSubjectAccessReview", "spec": {}}
    answer = api.of(_AUTHZ, "selfsubjectaccessreviews").create(empty)
    assert answer.code in {400, 422}, str(answer)


def test_reviews_are_not_stored(api: Api) -> None:
    assert api.get(f"/apis/{_AUTHZ}/selfsubjectaccessreviews").code == 405


def test_a_request_without_a_token_is_refused(api: Api) -> None:
    for path in ("/api/v1/pods", "/api", "/apis", "/openapi/v3", "/version"):
        answer = api.get(path, headers={"Authorization": None})
        answer.refused(401, "Unauthorized")


def test_a_request_with_a_wrong_token_is_refused(api: Api) -> None:
    answer = api.get("/api/v1/pods", headers={"Authorization": "Bearer wrong"})
    answer.refused(401, "Unauthorized")


def test_a_guest_is_forbidden(guest: Api, namespace: str) -> None:
    maps = guest.of("v1", "configmaps", namespace)
    status = maps.create(config_map("a")).refused(403, "Forbidden")
    assert status["details"] == {"kind": "configmaps"}
    status = maps.read("a").refused(403, "Forbidden")
    assert status["details"] == {"name": "a", "kind": "configmaps"}
    attributes = {"namespace": namespace, "verb": "get", "resource": "configmaps"}
    got = _review(guest, _AUTHZ, "SelfSubjectAccessReview", {"resourceAttributes": attributes})
    assert got["status"]["allowed"] is False
    guest.close()


def test_the_administrator_may_act_as_another(api: Api, guest: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    api.get(path, headers={"Impersonate-User": "guest"}).refused(403, "Forbidden")
    headers = {"Impersonate-User": "guest", "Impersonate-Group": "system:masters"}
    api.get(path, headers=headers).ok()
    guest.get(path, headers={"Impersonate-User": "admin"}).refused(403, "Forbidden")
    guest.close()


def test_a_guest_may_do_what_a_role_allows(api: Api, guest: Api, namespace: str) -> None:
    rbac = "rbac.authorization.k8s.io"
    role = {
        "apiVersion": f"{rbac}/v1",
        "kind": "Role",
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}],
    }
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "readers"},
        "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": "guest"}],
    }
    api.of(f"{rbac}/v1", "roles", namespace).create(role).ok(201)
    api.of(f"{rbac}/v1", "rolebindings", namespace).create(binding).ok(201)
    maps = guest.of("v1", "configmaps", namespace)
    maps.list().ok()
    maps.create(config_map("a")).refused(403, "Forbidden")
    guest.close()
