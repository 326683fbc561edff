"""Roles and bindings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.apiserver.tables.printer import (
    AGE,
    CREATED_AT,
    NAME,
    Cell,
    Content,
    column,
    printer,
    wide,
)


def _role(binding: Mapping[str, Any], now: float) -> Content:
    role = binding.get("roleRef") or {}
    return f"{role.get('kind', '')}/{role.get('name', '')}"


def _subjects(kind: str) -> Cell:
    def cell(binding: Mapping[str, Any], now: float) -> Content:
        names = []
        for subject in binding.get("subjects") or ():
            if subject.get("kind") == kind:
                space = subject.get("namespace")
                name = subject.get("name", "")
                names.append(f"{space}/{name}" if kind == "ServiceAccount" and space else name)
        return ", ".join(names)

    return cell


ROLES = printer(NAME, CREATED_AT)

BINDINGS = printer(
    NAME,
    column("Role", _role, "The role that is given."),
    AGE,
    wide("Users", _subjects("User"), "The users who get it."),
    wide("Groups", _subjects("Group"), "The groups that get it."),
    wide("ServiceAccounts", _subjects("ServiceAccount"), "The service accounts that get it."),
)
