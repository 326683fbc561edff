"""May they? Roles and bindings, evaluated.

A rule allows verbs on resources of groups, or on paths. Bindings give the rules of a role to users
and groups: a ClusterRoleBinding everywhere, a RoleBinding in its namespace. Nothing forbids; what
no rule allows is refused. Members of `system:masters` may do everything.

Reading the roles costs more than using them, so what each user and group holds is worked out once
and again whenever a role or binding changed, which a counter tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from unisono.apiserver.access.roles import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, GROUP
from unisono.apiserver.errors import ApiError, forbidden
from unisono.apiserver.request import MASTERS, User
from unisono.apiserver.storage.record import Change
from unisono.apiserver.storage.store import Store

# The stored objects of a kind, by `group/plural`: all of them, in any order.
Every = Callable[[str], Iterable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Rule:
    """What one rule of a role allows."""

    verbs: frozenset[str]
    groups: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    paths: tuple[str, ...] = ()

    @staticmethod
    def of(raw: Mapping[str, Any]) -> Rule:
        """Read a rule as a role writes it."""
        return Rule(
            frozenset(raw.get("verbs") or ()),
            frozenset(raw.get("apiGroups") or ()),
            frozenset(raw.get("resources") or ()),
            frozenset(raw.get("resourceNames") or ()),
            tuple(raw.get("nonResourceURLs") or ()),
        )

    def as_json(self) -> dict[str, list[str]]:
        """Return it as a review lists it."""
        listed = {
            "verbs": sorted(self.verbs),
            "apiGroups": sorted(self.groups),
            "resources": sorted(self.resources),
            "resourceNames": sorted(self.names),
            "nonResourceURLs": list(self.paths),
        }
        return {key: values for key, values in listed.items() if values}

    def allows(self, verb: str, group: str, resource: str, subresource: str, name: str) -> bool:
        """Say whether it covers an object; an empty name covers only rules for all names."""
        if self.paths or not _has(self.verbs, verb) or not _has(self.groups, group):
            return False
        if self.names and name not in self.names:
            return False
        whole = f"{resource}/{subresource}" if subresource else resource
        return (
            "*" in self.resources
            or whole in self.resources
            or (bool(subresource) and f"*/{subresource}" in self.resources)
        )

    def allows_path(self, verb: str, path: str) -> bool:
        """Say whether it covers an address that is not an object's."""
        return _has(self.verbs, verb) and any(
            path == each or (each.endswith("*") and path.startswith(each[:-1]))
            for each in self.paths
        )


# Subject → its rules, each with the namespace of its binding (empty: everywhere).
_Held = dict[tuple[str, str], list[tuple[str, Rule]]]


class Authorizer:
    """Decides which user may do what."""

    def __init__(self, every: Every, version: Callable[[], int]) -> None:
        """Take the stored objects, and a number that changes when roles or bindings do."""
        self._every = every
        self._version = version
        self._seen: int | None = None
        self._held: _Held = {}
        self._roles: dict[tuple[str, str], tuple[Rule, ...]] = {}

    def allows(
        self,
        user: User,
        verb: str,
        group: str,
        resource: str,
        subresource: str = "",
        namespace: str = "",
        name: str = "",
    ) -> bool:
        """Say whether a user may do something to an object or a collection."""
        return any(
            rule.allows(verb, group, resource, subresource, name)
            for rule in self.rules_of(user, namespace)
        )

    def allows_path(self, user: User, verb: str, path: str) -> bool:
        """Say whether a user may ask for an address that is not an object's."""
        return any(rule.allows_path(verb, path) for rule in self.rules_of(user, ""))

    def rules_of(self, user: User, namespace: str) -> Iterator[Rule]:
        """Yield what a user holds in a namespace, or everywhere if it is empty."""
        if MASTERS in user.groups:
            yield from _EVERYTHING
        self._refresh()
        for holder in (("User", user.name), *(("Group", group) for group in user.groups)):
            for where, rule in self._held.get(holder, ()):
                if not where or where == namespace:
                    yield rule

    def rules_of_role(self, kind: str, namespace: str, name: str) -> tuple[Rule, ...] | None:
        """Return the rules of a Role or ClusterRole; None if there is no such role."""
        self._refresh()
        return self._roles.get(("" if kind == "ClusterRole" else namespace, name))

    # ---- what is held, from what is stored ---------------------------------------------------

    def _refresh(self) -> None:
        version = self._version()
        if version == self._seen:
            return
        self._roles = self._read_roles()
        self._held = {}
        stored = self._every(f"{GROUP}/clusterrolebindings")
        for binding in _by_name(*CLUSTER_ROLE_BINDINGS, *stored).values():
            self._bind(binding, "")
        for binding in self._every(f"{GROUP}/rolebindings"):
            self._bind(binding, str(binding["metadata"].get("namespace", "")))
        self._seen = version

    def _read_roles(self) -> dict[tuple[str, str], tuple[Rule, ...]]:
        roles: dict[tuple[str, str], tuple[Rule, ...]] = {}
        for role in self._every(f"{GROUP}/roles"):
            metadata = role["metadata"]
            roles[metadata.get("namespace", ""), metadata["name"]] = _rules(role)
        cluster = _by_name(*CLUSTER_ROLES, *self._every(f"{GROUP}/clusterroles"))
        for name, role in cluster.items():
            roles["", name] = _rules(role) + _gathered(role, cluster)
        return roles

    def _bind(self, binding: Mapping[str, Any], namespace: str) -> None:
        reference = binding.get("roleRef") or {}
        home = "" if reference.get("kind") == "ClusterRole" else namespace
        if reference.get("kind") == "Role" and not namespace:
            return
        rules = self._roles.get((home, str(reference.get("name"))), ())
        for subject in binding.get("subjects") or ():
            holder = _holder(subject, namespace)
            self._held.setdefault(holder, []).extend((namespace, rule) for rule in rules)


_EVERYTHING = tuple(Rule.of(raw) for raw in CLUSTER_ROLES[0]["rules"])


def _by_name(*objects: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return objects by name; the later one wins."""
    return {obj["metadata"]["name"]: obj for obj in objects}


def _rules(role: Mapping[str, Any]) -> tuple[Rule, ...]:
    return tuple(Rule.of(raw) for raw in role.get("rules") or ())


def _gathered(role: Mapping[str, Any], roles: Mapping[str, Mapping[str, Any]]) -> tuple[Rule, ...]:
    """Return the rules that a role takes over from others by their labels."""
    selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
    wanted = [selector.get("matchLabels") or {} for selector in selectors]
    found: list[Rule] = []
    for other in roles.values():
        labels = other["metadata"].get("labels") or {}
        if other is not role and any(each and each.items() <= labels.items() for each in wanted):
            found += _rules(other)
    return tuple(found)


def _holder(subject: Mapping[str, Any], namespace: str) -> tuple[str, str]:
    kind, name = str(subject.get("kind")), str(subject.get("name"))
    if kind == "ServiceAccount":
        home = subject.get("namespace") or namespace
        return "User", f"system:serviceaccount:{home}:{name}"
    return kind, name


def _has(allowed: frozenset[str], wanted: str) -> bool:
    return "*" in allowed or wanted in allowed


# ---- roles and bindings in the store -------------------------------------------------------------


def authorizer_for(store: Store) -> Authorizer:
    """Return an authoriser that goes by what a store holds, and notices when that changes."""
    changes = 0

    def count(change: Change) -> None:
        nonlocal changes
        if change.record.key[0].startswith(f"{GROUP}/"):
            changes += 1

    def every(key: str) -> Iterator[Mapping[str, Any]]:
        return (record.load() for record in store.listing(key))

    store.on_change.append(count)
    return Authorizer(every, lambda: changes)


# ---- escalation ----------------------------------------------------------------------------------
#
# Users cannot grant rights that they do not have.
#
# The author of a role must hold every right in it, or the verb `escalate` on it; the author of a
# binding must hold all rights of its role, or the verb `bind`. Without this, the right to write
# roles would be the right to everything.

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
