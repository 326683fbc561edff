"""Requests against roles, and questions about them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.apiserver.access.cluster import MASTER, Cluster, person, rule, user
from unisono.apiserver.access.filters import ANONYMOUS, Authenticator, hash_token
from unisono.apiserver.access.reviews import RoleBasedAccess
from unisono.apiserver.catalogue import Catalogue
from unisono.apiserver.errors import ApiError
from unisono.apiserver.objects import Json
from unisono.apiserver.request import Request, User
from unisono.apiserver.rest.route import route

ALICE = user("alice")
TOKENS = Authenticator({hash_token("t"): User(name="bob", groups=("ops",), uid="7")})
CATALOGUE = Catalogue()


def cluster() -> Cluster:
    made = Cluster()
    made.role("pods", rule("get list create", "pods pods/log namespaces"))
    made.bind("pods", person("alice"), namespace="a")
    return made


def reviews(of: Cluster | None = None) -> RoleBasedAccess:
    return RoleBasedAccess(of.authorizer if of else None, TOKENS)


def ask(
    by: RoleBasedAccess, path: str, spec: Json | None, caller: User = ALICE, method: str = "POST"
) -> Json | None:
    body = b"" if spec is None else orjson.dumps({"spec": spec})
    request = Request(method=method, path=path, user=caller, body=body)
    return by.answer(request, route(path, CATALOGUE))


def status(by: RoleBasedAccess, path: str, spec: Json, caller: User = ALICE) -> Any:
    answer = ask(by, path, spec, caller)
    assert answer is not None
    return answer["status"]


AUTHN, AUTHZ = "/apis/authentication.k8s.io/v1", "/apis/authorization.k8s.io/v1"


class TestRequests:
    def check(self, by: RoleBasedAccess, path: str, verb: str, caller: User = ALICE) -> None:
        request = Request(method="GET", path=path, user=caller)
        by.check(request, route(path, CATALOGUE), verb)

    def test_what_a_role_allows_passes(self) -> None:
        by = reviews(cluster())
        self.check(by, "/api/v1/namespaces/a/pods", "list")
        self.check(by, "/api/v1/namespaces/a/pods/p/log", "get")
        self.check(by, "/api/v1/namespaces/a", "get")
        self.check(by, "/api/v1/nodes/n", "delete", MASTER)

    def test_what_it_does_not_is_refused_by_name(self) -> None:
        by = reviews(cluster())
        with pytest.raises(ApiError) as refused:
            self.check(by, "/apis/batch/v1/namespaces/a/jobs/j/status", "patch")
        error = refused.value
        assert error.code == 403
        assert error.message == (
            'jobs.batch "j" is forbidden: User "alice" cannot patch resource "jobs/status" in API '
            'group "batch" in the namespace "a"'
        )
        with pytest.raises(ApiError, match="at the cluster scope"):
            self.check(by, "/api/v1/pods", "list")
        with pytest.raises(ApiError):
            self.check(by, "/api/v1/namespaces/b", "get")

    def test_alone_one_may_do_everything(self) -> None:
        self.check(reviews(), "/api/v1/nodes/n", "delete")

    def test_paths(self) -> None:
        by = reviews(cluster())
        by.check_path(Request(method="GET", path="/apis", user=ALICE))
        with pytest.raises(ApiError, match='cannot get path "/metrics"'):
            by.check_path(Request(method="GET", path="/metrics", user=ALICE))
        reviews().check_path(Request(method="GET", path="/metrics", user=ALICE))

    def test_strangers_get_no_details(self) -> None:
        plain = Request(method="GET", path="/readyz", user=ANONYMOUS)
        curious = Request(method="GET", path="/readyz", query={"verbose": ""}, user=ANONYMOUS)
        for by in (reviews(), reviews(cluster())):
            by.check_path(plain)
            with pytest.raises(ApiError) as refused:
                by.check_path(curious)
            assert refused.value.code == 401

    def test_roles_that_give_too_much(self) -> None:
        key = "rbac.authorization.k8s.io/roles"
        obj = {"metadata": {"name": "r", "namespace": "a"}, "rules": [rule("*", "*", "*")]}
        reviews().check_object(ALICE, key, obj, None)
        reviews(cluster()).check_object(MASTER, key, obj, None)
        with pytest.raises(ApiError, match="hand out rights"):
            reviews(cluster()).check_object(ALICE, key, obj, None)

    def test_acting_for_others(self) -> None:
        made = cluster()
        made.role("as", rule("impersonate", "users", resourceNames=["bob"]))
        made.bind("as", person("alice"))
        by = reviews(made)
        assert by.may_impersonate(ALICE, "users", "bob")
        assert not by.may_impersonate(ALICE, "users", "eve")
        assert not by.may_impersonate(ALICE, "groups", "bob")
        assert reviews().may_impersonate(ALICE, "groups", "x")


class TestQuestions:
    def test_self_subject_review(self) -> None:
        answer = ask(reviews(), f"{AUTHN}/selfsubjectreviews", {})
        assert answer is not None
        assert answer["kind"] == "SelfSubjectReview"
        assert answer["status"] == {
            "userInfo": {"username": "alice", "groups": ["system:authenticated"]}
        }

    def test_token_review(self) -> None:
        path = f"{AUTHN}/tokenreviews"
        assert status(reviews(), path, {"token": "t"}) == {
            "authenticated": True,
            "user": {"username": "bob", "groups": ["ops", "system:authenticated"], "uid": "7"},
        }
        assert status(reviews(), path, {"token": "x"})["authenticated"] is False
        assert status(reviews(), path, {})["authenticated"] is False

    @pytest.mark.parametrize(
        ("spec", "allowed"),
        [
            ({"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "a"}}, True),
            ({"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "b"}}, False),
            ({"resourceAttributes": {"verb": "get", "resource": "pods"}}, False),
            (
                {
                    "resourceAttributes": {
                        "verb": "get",
                        "resource": "pods",
                        "subresource": "log",
                        "namespace": "a",
                        "name": "p",
                        "version": "v1",
                    }
                },
                True,
            ),
            ({"nonResourceAttributes": {"verb": "get", "path": "/version"}}, True),
            ({"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}, False),
        ],
    )
    def test_may_i(self, spec: Json, *, allowed: bool) -> None:
        path = f"{AUTHZ}/selfsubjectaccessreviews"
        answer = status(reviews(cluster()), path, spec)
        assert answer["allowed"] is allowed
        assert ("reason" in answer) is not allowed
        assert status(reviews(), path, spec)["allowed"] is True
        about_her = {**spec, "user": "alice", "groups": ["system:authenticated"]}
        they = f"{AUTHZ}/subjectaccessreviews"
        assert status(reviews(cluster()), they, about_her, MASTER)["allowed"] is allowed

    def test_may_they_here(self) -> None:
        by = reviews(cluster())
        path = f"{AUTHZ}/namespaces/a/localsubjectaccessreviews"
        about = {"verb": "get", "resource": "pods", "namespace": "a"}
        assert status(by, path, {"resourceAttributes": about, "user": "alice"})["allowed"] is True
        assert status(by, path, {"resourceAttributes": about, "user": "eve"})["allowed"] is False
        with pytest.raises(ApiError) as refused:
            ask(by, path, {"resourceAttributes": {**about, "namespace": "b"}, "user": "alice"})
        assert refused.value.code == 422

    def test_what_may_i(self) -> None:
        path = f"{AUTHZ}/selfsubjectrulesreviews"
        answer = status(reviews(cluster()), path, {"namespace": "a"})
        assert {
            "verbs": ["create", "get", "list"],
            "apiGroups": [""],
            "resources": ["namespaces", "pods", "pods/log"],
        } in answer["resourceRules"]
        assert any("/version" in each["nonResourceURLs"] for each in answer["nonResourceRules"])
        assert answer["incomplete"] is False
        elsewhere = status(reviews(cluster()), path, {"namespace": "b"})
        assert all("pods" not in each["resources"] for each in elsewhere["resourceRules"])
        assert status(reviews(), path, {"namespace": "b"})["resourceRules"][0]["verbs"] == ["*"]

    @pytest.mark.parametrize(
        ("plural", "spec"),
        [
            ("selfsubjectaccessreviews", {}),
            ("selfsubjectaccessreviews", {"resourceAttributes": {}, "nonResourceAttributes": {}}),
            ("selfsubjectaccessreviews", {"resourceAttributes": 5}),
            ("subjectaccessreviews", {"user": "x"}),
            ("selfsubjectrulesreviews", {}),
            ("selfsubjectrulesreviews", {"namespace": 5}),
        ],
    )
    def test_questions_that_make_no_sense(self, plural: str, spec: Json) -> None:
        for by in (reviews(), reviews(cluster())):
            with pytest.raises(ApiError) as refused:
                ask(by, f"{AUTHZ}/{plural}", spec)
            assert refused.value.code == 422

    def test_a_review_can_only_be_asked(self) -> None:
        with pytest.raises(ApiError) as refused:
            ask(reviews(), f"{AUTHN}/tokenreviews", None, method="GET")
        assert refused.value.code == 405

    def test_other_requests_are_no_reviews(self) -> None:
        assert ask(reviews(), "/api/v1/namespaces/a/pods", {}) is None
