"""The refusal of an apply that would change what others own: 409, with every field and owner."""

from __future__ import annotations

from collections.abc import Sequence

from unisono.apiserver.errors import ApiError, Cause
from unisono.apiserver.patch.entries import Who
from unisono.apiserver.patch.field_set import Tree, paths_of

# A refusal lists every conflict, but an answer must stay small enough to send.
MAX_CAUSES = 1000


def conflict_error(conflicts: Sequence[tuple[Who, Tree]]) -> ApiError:
    """Return the refusal for fields that others own."""
    listed = sorted((who.described, path) for who, fields in conflicts for path in paths_of(fields))
    if len(listed) == 1:
        who, path = listed[0]
        message = f"Apply failed with 1 conflict: conflict with {who}: {path}"
    else:
        lines = []
        for number, (who, path) in enumerate(listed):
            if number == 0 or listed[number - 1][0] != who:
                lines.append(f"conflicts with {who}:")
            lines.append(f"- {path}")
        text = "\n".join(lines[:MAX_CAUSES])
        message = f"Apply failed with {len(listed)} conflicts: {text}"
    causes = [
        Cause("FieldManagerConflict", f"conflict with {who}", path)
        for who, path in listed[:MAX_CAUSES]
    ]
    return ApiError(409, "Conflict", message, causes=causes)
