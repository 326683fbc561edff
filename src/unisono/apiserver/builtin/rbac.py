"""Roles and bindings."""

from __future__ import annotations

from collections.abc import Iterator

from unisono.apiserver.builtin.field_errors import immutable, invalid, not_supported, required
from unisono.apiserver.errors import Cause
from unisono.apiserver.objects import Json, at, child, fill_text, items, numbered
from unisono.apiserver.strategy import Context, Strategy
from unisono.kinds.overriding import override

GROUP = "rbac.authorization.k8s.io"

_SUBJECTS = ("Group", "ServiceAccount", "User")


class RoleStrategy(Strategy):
    """A Role or ClusterRole."""

    has_generation = False

    def __init__(self, *, is_for_cluster: bool) -> None:
        """Take whether it may speak of addresses that are no resources."""
        self._is_for_cluster = is_for_cluster

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield rules that allow nothing in particular."""
        for path, rule in numbered(obj, "rules", ""):
            at_ = path.removeprefix(".")
            if not rule.get("verbs"):
                yield required(f"{at_}.verbs", "verbs must contain at least one value")
            if rule.get("nonResourceURLs"):
                if not self._is_for_cluster:
                    why = "namespaced rules cannot apply to non-resource URLs"
                    yield invalid(f"{at_}.nonResourceURLs", rule["nonResourceURLs"], why)
                if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                    why = "rules cannot apply to both regular resources and non-resource URLs"
                    yield invalid(f"{at_}.nonResourceURLs", rule["nonResourceURLs"], why)
                continue
            if not rule.get("apiGroups"):
                yield required(
                    f"{at_}.apiGroups", "resource rules must supply at least one api group"
                )
            if not rule.get("resources"):
                yield required(
                    f"{at_}.resources", "resource rules must supply at least one resource"
                )


class BindingStrategy(Strategy):
    """A RoleBinding or ClusterRoleBinding."""

    has_generation = False

    def __init__(self, *, roles: tuple[str, ...]) -> None:
        """Take the kinds of roles that it may bind."""
        self._roles = roles

    @override
    def default(self, obj: Json) -> None:
        """Fill in where roles and subjects come from."""
        fill_text(child(obj, "roleRef"), apiGroup=GROUP)
        for subject in items(obj, "subjects"):
            if subject.get("kind") in ("User", "Group"):
                fill_text(subject, apiGroup=GROUP)

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield roles and subjects that cannot be, and a change of the role."""
        role = at(obj, "roleRef")
        if role.get("apiGroup") != GROUP:
            yield not_supported("roleRef.apiGroup", role.get("apiGroup"), (GROUP,))
        if role.get("kind") not in self._roles:
            yield not_supported("roleRef.kind", role.get("kind"), self._roles)
        if not role.get("name"):
            yield required("roleRef.name")
        for path, subject in numbered(obj, "subjects", ""):
            yield from _check_subject(subject, path.removeprefix("."))
            # In a RoleBinding an account without a namespace is one of the binding's own.
            is_everywhere = "Role" not in self._roles
            if is_everywhere and subject.get("kind") == "ServiceAccount":
                if not subject.get("namespace"):
                    yield required(f"{path.removeprefix('.')}.namespace")
        if old is not None and role != at(old, "roleRef"):
            yield immutable("roleRef", role)


def _check_subject(subject: Json, path: str) -> Iterator[Cause]:
    kind = subject.get("kind")
    if not subject.get("name"):
        yield required(f"{path}.name")
    if kind not in _SUBJECTS:
        yield not_supported(f"{path}.kind", kind, _SUBJECTS)
    elif kind != "ServiceAccount" and subject.get("apiGroup") != GROUP:
        yield not_supported(f"{path}.apiGroup", subject.get("apiGroup"), (GROUP,))
