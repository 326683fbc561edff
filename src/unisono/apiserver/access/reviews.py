"""Every request measured against the roles, and answers to questions about them.

    SelfSubjectReview                     the user of this request
    SelfSubjectAccessReview               may I …?
    SelfSubjectRulesReview                what may I do here?
    SubjectAccessReview, Local…           may they …?
    TokenReview                           whose token is this?

Without an authoriser (one user, who owns the instance) everything is allowed. Reviews are computed,
never stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from unisono.apiserver.access.authorize import Authorizer, escalation
from unisono.apiserver.access.filters import ANONYMOUS, AUTHENTICATED, Authenticator
from unisono.apiserver.access.reserved_fields import overreach
from unisono.apiserver.errors import ApiError, Cause, forbidden, invalid, method_not_allowed
from unisono.apiserver.objects import Json
from unisono.apiserver.request import Request, User
from unisono.apiserver.rest.body import parse_object
from unisono.apiserver.rest.context import AccessControl
from unisono.apiserver.rest.route import Route
from unisono.kinds.overriding import override

_AUTHENTICATION = "authentication.k8s.io"
_AUTHORIZATION = "authorization.k8s.io"


class RoleBasedAccess(AccessControl):
    """Looks at roles; without an authoriser everything is allowed."""

    def __init__(self, authorizer: Authorizer | None, authenticator: Authenticator) -> None:
        """Take what decides by roles, and what knows the tokens."""
        self._authorizer = authorizer
        self._authenticator = authenticator
        self._answers: Mapping[tuple[str, str], Callable[[Json, User, str], Json]] = {
            (_AUTHENTICATION, "selfsubjectreviews"): self._self_subject,
            (_AUTHENTICATION, "tokenreviews"): self._token_review,
            (_AUTHORIZATION, "selfsubjectaccessreviews"): self._self_subject_access,
            (_AUTHORIZATION, "selfsubjectrulesreviews"): self._self_subject_rules,
            (_AUTHORIZATION, "subjectaccessreviews"): self._subject_access,
            (_AUTHORIZATION, "localsubjectaccessreviews"): self._local_subject_access,
        }

    # ---- may this request pass? --------------------------------------------------------------

    @override
    def check_path(self, request: Request) -> None:
        """Refuse an address that is not about objects, and details to strangers."""
        if request.user == ANONYMOUS:
            if "verbose" in request.query:
                raise ApiError(401, "Unauthorized", "Unauthorized")
            return  # filters let anonymous requests only to open paths
        verb = request.method.lower()
        if self._authorizer is None or self._authorizer.allows_path(
            request.user, verb, request.path
        ):
            return
        why = f'User "{request.user.name}" cannot {verb} path "{request.path}"'
        raise ApiError(403, "Forbidden", f"forbidden: {why}")

    @override
    def check(self, request: Request, where: Route, verb: str) -> None:
        """Refuse what the caller may not do."""
        if self._authorizer is None:
            return
        served = where.resource.served
        allowed = self._authorizer.allows(
            request.user,
            verb,
            served.group,
            served.plural,
            where.subresource,
            _namespace(where),
            where.name,
        )
        if not allowed:
            raise _refusal(request.user, where, verb)

    @override
    def check_object(
        self, user: User, key: str, obj: Mapping[str, Any], old: Mapping[str, Any] | None
    ) -> None:
        """Refuse a role or binding that hands out more than its author has, and overreach."""
        if self._authorizer is not None:
            refused = escalation(self._authorizer, user, key, obj, old) or overreach(
                self._authorizer, user, key, obj, old
            )
            if refused is not None:
                raise refused

    def may_impersonate(self, user: User, what: str, name: str) -> bool:
        """Say whether a user may act as another user or as a member of a group."""
        if self._authorizer is None:
            return True
        return self._authorizer.allows(user, "impersonate", "", what, name=name)

    # ---- questions ---------------------------------------------------------------------------

    @override
    def answer(self, request: Request, where: Route) -> Json | None:
        """Answer a review; None if the request is not one."""
        served = where.resource.served
        answer = self._answers.get((served.group, served.plural))
        if answer is None:
            return None
        if request.method != "POST" or where.name:
            raise method_not_allowed()
        review = parse_object(request, where.resource)
        spec = review.get("spec")
        status = answer(spec if isinstance(spec, dict) else {}, request.user, where.namespace)
        return {**review, "status": status}

    def _self_subject(self, spec: Json, user: User, namespace: str) -> Json:
        return {"userInfo": _user_json(user)}

    def _token_review(self, spec: Json, user: User, namespace: str) -> Json:
        token = spec.get("token")
        found = self._authenticator.user_of_token(token) if isinstance(token, str) else None
        if found is None:
            return {"authenticated": False, "error": "no user has this token"}
        return {"authenticated": True, "user": _user_json(found)}

    def _self_subject_access(self, spec: Json, user: User, namespace: str) -> Json:
        return self._verdict("SelfSubjectAccessReview", user, spec)

    def _subject_access(self, spec: Json, user: User, namespace: str) -> Json:
        return self._verdict("SubjectAccessReview", _subject(spec), spec)

    def _local_subject_access(self, spec: Json, user: User, namespace: str) -> Json:
        about = spec.get("resourceAttributes")
        if not isinstance(about, dict) or about.get("namespace") != namespace:
            path = "spec.resourceAttributes.namespace"
            message = f'must be "{namespace}", the namespace that the review is asked in'
            causes = [Cause("FieldValueInvalid", message, path)]
            raise invalid("LocalSubjectAccessReview", "", causes, group=_AUTHORIZATION)
        return self._verdict("LocalSubjectAccessReview", _subject(spec), spec)

    def _verdict(self, kind: str, user: User, spec: Json) -> Json:
        thing, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if isinstance(thing, dict) == isinstance(path, dict):
            message = "exactly one of resourceAttributes and nonResourceAttributes must be there"
            causes = [Cause("FieldValueInvalid", message, "spec.resourceAttributes")]
            raise invalid(kind, "", causes, group=_AUTHORIZATION)
        if self._authorizer is None:
            return {"allowed": True, "reason": "this instance has one user, who may do everything"}
        if isinstance(path, dict):
            where = str(path.get("path") or "")
            allowed = self._authorizer.allows_path(user, str(path.get("verb") or ""), where)
        else:
            about = {key: str(value) for key, value in (thing or {}).items() if value}
            allowed = self._authorizer.allows(
                user,
                about.get("verb", ""),
                about.get("group", ""),
                about.get("resource", ""),
                about.get("subresource", ""),
                about.get("namespace", ""),
                about.get("name", ""),
            )
        return {"allowed": allowed} if allowed else {"allowed": False, "reason": _NO_ROLE}

    def _self_subject_rules(self, spec: Json, user: User, namespace: str) -> Json:
        where = spec.get("namespace")
        if not isinstance(where, str) or not where:
            causes = [Cause("FieldValueRequired", "is required", "spec.namespace")]
            raise invalid("SelfSubjectRulesReview", "", causes, group=_AUTHORIZATION)
        if self._authorizer is None:
            every = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
            paths = [{"verbs": ["*"], "nonResourceURLs": ["*"]}]
            return {"resourceRules": every, "nonResourceRules": paths, "incomplete": False}
        rules = list(dict.fromkeys(self._authorizer.rules_of(user, where)))
        return {
            "resourceRules": [rule.as_json() for rule in rules if not rule.paths],
            "nonResourceRules": [rule.as_json() for rule in rules if rule.paths],
            "incomplete": False,
        }


_NO_ROLE = "no role that is bound to this user or their groups allows it"


def _namespace(where: Route) -> str:
    """Return where a rule must hold: a namespace is within itself, as in Kubernetes."""
    served = where.resource.served
    return where.name if served.key == "/namespaces" else where.namespace


def _refusal(user: User, where: Route, verb: str) -> ApiError:
    served = where.resource.served
    whole = f"{served.plural}/{where.subresource}" if where.subresource else served.plural
    place = f'in the namespace "{where.namespace}"' if where.namespace else "at the cluster scope"
    why = (
        f'User "{user.name}" cannot {verb} resource "{whole}" in API group "{served.group}" {place}'
    )
    return forbidden(served.plural, where.name, why, group=served.group)


def _subject(spec: Json) -> User:
    groups = spec.get("groups")
    listed = [each for each in groups if isinstance(each, str)] if isinstance(groups, list) else []
    return User(
        name=str(spec.get("user") or ""), groups=tuple(listed), uid=str(spec.get("uid") or "")
    )


def _user_json(user: User) -> Json:
    groups = list(dict.fromkeys((*user.groups, AUTHENTICATED)))
    made: Json = {"username": user.name, "groups": groups}
    return {**made, "uid": user.uid} if user.uid else made
