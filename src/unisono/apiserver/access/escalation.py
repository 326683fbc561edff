"""Users cannot grant rights that they do not have.

The author of a role must hold every right in it, or the verb `escalate` on it; the author of a
binding must hold all rights of its role, or the verb `bind`. Without this, the right to write roles
would be the right to everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from unisono.apiserver.access.authorize import Authorizer, Rule
from unisono.apiserver.access.roles import GROUP
from unisono.apiserver.errors import ApiError, forbidden
from unisono.apiserver.request import User

_ROLES = {f"{GROUP}/roles": "roles", f"{GROUP}/clusterroles": "clusterroles"}
_BINDINGS = {
    f"{GROUP}/rolebindings": "rolebindings",
    f"{GROUP}/clusterrolebindings": "clusterrolebindings",
}
# How many missing rights a refusal lists.
_MAX_LISTED = 5


def escalation(
    authorizer: Authorizer,
    user: User,
    key: str,
    obj: Mapping[str, Any],
    old: Mapping[str, Any] | None,
) -> ApiError | None:
    """Return why a user must not write a role or binding; None if they may, or it is neither."""
    if key in _ROLES:
        return _of_role(authorizer, user, _ROLES[key], obj, old)
    if key in _BINDINGS:
        return _of_binding(authorizer, user, _BINDINGS[key], obj, old)
    return None


def _of_role(
    authorizer: Authorizer,
    user: User,
    plural: str,
    obj: Mapping[str, Any],
    old: Mapping[str, Any] | None,
) -> ApiError | None:
    parts = ("rules", "aggregationRule")
    if old is not None and all(old.get(part) == obj.get(part) for part in parts):
        return None
    namespace, name = _place(obj)
    if authorizer.allows(user, "escalate", GROUP, plural, "", namespace, name):
        return None
    given = [Rule.of(raw) for raw in obj.get("rules") or ()]
    if obj.get("aggregationRule"):  # whatever may come to match it
        given.append(Rule(frozenset("*"), frozenset("*"), frozenset("*")))
    lacking = list(_lacking(given, list(authorizer.rules_of(user, namespace))))
    return _refusal(user, plural, name, lacking) if lacking else None


def _of_binding(
    authorizer: Authorizer,
    user: User,
    plural: str,
    obj: Mapping[str, Any],
    old: Mapping[str, Any] | None,
) -> ApiError | None:
    parts = ("roleRef", "subjects")
    if old is not None and all(old.get(part) == obj.get(part) for part in parts):
        return None
    namespace, name = _place(obj)
    reference = obj.get("roleRef") or {}
    kind, role = str(reference.get("kind")), str(reference.get("name"))
    roles = "clusterroles" if kind == "ClusterRole" else "roles"
    if authorizer.allows(user, "bind", GROUP, roles, "", namespace, role):
        return None
    given = authorizer.rules_of_role(kind, namespace, role)
    if given is None:
        why = f'{kind} "{role}" does not exist yet; naming it already needs the verb `bind`'
        return forbidden(plural, name, why, group=GROUP)
    lacking = list(_lacking(given, list(authorizer.rules_of(user, namespace))))
    return _refusal(user, plural, name, lacking) if lacking else None


def _place(obj: Mapping[str, Any]) -> tuple[str, str]:
    metadata = obj.get("metadata") or {}
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def _lacking(given: Iterable[Rule], held: list[Rule]) -> Iterator[str]:
    """Yield each single right in `given` that no rule in `held` covers."""
    for rule in given:
        for verb, path in product(sorted(rule.verbs), rule.paths):
            if not any(_covers_path(each, verb, path) for each in held):
                yield f"{verb} {path}"
        names = sorted(rule.names) or [""]
        for verb, group, resource, name in product(
            sorted(rule.verbs), sorted(rule.groups), sorted(rule.resources), names
        ):
            plain, _, below = resource.partition("/")
            if not any(each.allows(verb, group, plain, below, name) for each in held):
                where = f".{group}" if group else ""
                yield f"{verb} {resource}{where}" + (f' "{name}"' if name else "")


def _covers_path(rule: Rule, verb: str, path: str) -> bool:
    if not path.endswith("*"):
        return rule.allows_path(verb, path)
    return ("*" in rule.verbs or verb in rule.verbs) and any(
        each.endswith("*") and path.startswith(each[:-1]) for each in rule.paths
    )


def _refusal(user: User, plural: str, name: str, lacking: list[str]) -> ApiError:
    listed = ", ".join(lacking[:_MAX_LISTED])
    more = f" and {len(lacking) - _MAX_LISTED} more" if len(lacking) > _MAX_LISTED else ""
    why = f'User "{user.name}" would hand out rights that they do not have: {listed}{more}'
    return forbidden(plural, name, why, group=GROUP)
