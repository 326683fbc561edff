"""Roles and bindings for tests, as if they were stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from unisono.apiserver.access.authorize import Authorizer
from unisono.apiserver.access.roles import GROUP
from unisono.apiserver.objects import Json
from unisono.apiserver.request import User

MASTER = User(name="root", groups=("system:masters", "system:authenticated"))


def user(name: str, *groups: str) -> User:
    return User(name=name, groups=(*groups, "system:authenticated"))


def rule(verbs: str, resources: str, group: str = "", **more: Any) -> Json:
    return {
        "verbs": verbs.split(),
        "apiGroups": [group],
        "resources": resources.split(),
        **more,
    }


class Cluster:
    """Keeps roles and bindings and counts their changes."""

    def __init__(self) -> None:
        self.version = 0
        self.reads = 0
        self.stored: dict[str, list[Json]] = {}
        self.authorizer = Authorizer(self.every, lambda: self.version)

    def every(self, key: str) -> Iterable[Mapping[str, Any]]:
        self.reads += 1
        return self.stored.get(key, [])

    def add(self, plural: str, obj: Json) -> Json:
        self.stored.setdefault(f"{GROUP}/{plural}", []).append(obj)
        self.version += 1
        return obj

    def role(self, name: str, *rules: Json, namespace: str = "", **more: Any) -> Json:
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        metadata |= more.pop("metadata", {})
        plural = "roles" if namespace else "clusterroles"
        return self.add(plural, {"metadata": metadata, "rules": list(rules), **more})

    def bind(self, role: str, *subjects: Json, namespace: str = "", kind: str = "") -> Json:
        return self.add(
            "rolebindings" if namespace else "clusterrolebindings",
            {
                "metadata": {"name": f"{role}-{self.version}", "namespace": namespace},
                "roleRef": {"kind": kind or "ClusterRole", "name": role},
                "subjects": list(subjects),
            },
        )


def person(name: str) -> Json:
    return {"kind": "User", "name": name}


def team(name: str) -> Json:
    return {"kind": "Group", "name": name}
