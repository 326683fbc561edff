"""How a write is to be done, as the query and the headers say."""

from __future__ import annotations

from dataclasses import dataclass

from unisono.apiserver.errors import Cause, invalid
from unisono.apiserver.request import Request

_LONGEST_MANAGER = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """How a write is to be done."""

    manager: str
    is_dry: bool = False
    is_applied: bool = False  # managedFields are settled already
    needs_version: bool = False  # a PUT of a custom resource

    @staticmethod
    def of(
        request: Request, *, is_applied: bool = False, needs_version: bool = False
    ) -> WriteOptions:
        """Read it from the query and the headers."""
        agent = request.headers.get("user-agent", "")
        manager = request.query.get("fieldManager", "")
        if len(manager) > _LONGEST_MANAGER or not manager.isprintable():
            message = f"must be printable and have at most {_LONGEST_MANAGER} characters"
            cause = Cause("FieldValueInvalid", message, "fieldManager")
            raise invalid("PatchOptions", "", [cause], group="meta.k8s.io")
        return WriteOptions(
            manager=manager or agent.partition("/")[0][:_LONGEST_MANAGER] or "unknown",
            is_dry=is_dry_run(request),
            is_applied=is_applied,
            needs_version=needs_version,
        )


def is_dry_run(request: Request) -> bool:
    """Say whether everything but storing is to be done."""
    chosen = request.query.get("dryRun", "")
    if chosen not in ("", "All"):
        message = f'Unsupported value: "{chosen}": supported values: "All"'
        cause = Cause("FieldValueNotSupported", message, "dryRun")
        raise invalid("CreateOptions", "", [cause], group="meta.k8s.io")
    return chosen == "All"
