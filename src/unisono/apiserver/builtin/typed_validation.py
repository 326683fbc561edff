"""Our typed manifests as judges of what is written: their problems as causes, warnings as texts.

`kinds` says what is wrong with a document in one sentence and a field path; programs that talk to
an API also want a reason. The decoder gives one. Rules only give the sentence, but they word the
few things that have a reason of their own alike everywhere, so it is read off the beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from unisono.apiserver.errors import Cause
from unisono.apiserver.objects import Json
from unisono.apiserver.strategy import Context, Strategy
from unisono.kinds.decode import Problem
from unisono.kinds.known import KNOWN, examine
from unisono.kinds.notes import Finding
from unisono.kinds.overriding import override
from unisono.kinds.registry import Kind
from unisono.kinds.shapes.served import Served

_WORDS = {
    "Required": "Required value",
    "Invalid": "Invalid value",
    "NotSupported": "Unsupported value",
    "TypeInvalid": "Invalid value",
    "TooLong": "Too long",
    "TooMany": "Too many",
    "Duplicate": "Duplicate value",
    "Forbidden": "Forbidden",
}
# How rules word what has a reason of its own.
_SENTENCES = (
    ("Required", re.compile(r"is required")),
    (
        "Duplicate",
        re.compile(r".*(stands twice|is used twice|is there twice|stands at .* already)"),
    ),
    ("Required", re.compile(r".* needs at least one value")),
    ("Forbidden", re.compile(r"must be empty for ")),
    ("TooMany", re.compile(r"has [0-9]+ .*; at most [0-9]+ are allowed")),
)


def known_kind(api_version: str, kind: str) -> Kind | None:
    """Return the typed manifest of a kind, if we have one."""
    return KNOWN.kinds.get((api_version, kind))


def judge(kind: Kind, obj: Mapping[str, Any]) -> tuple[list[Cause], list[str]]:
    """Return what is wrong with an object, and what deserves a warning."""
    found = examine(kind, obj)
    return causes_of(found.problems), [_warning(one) for one in found.warnings]


def cause_of(problem: Problem) -> Cause:
    """Return a problem of a typed manifest as a cause."""
    reason: str = problem.reason
    if reason == "Invalid":
        reason = _reason(problem.message)
    return _cause(reason, problem.message, problem.path)


def causes_of(problems: Iterable[Problem]) -> list[Cause]:
    """Return problems of typed manifests as causes."""
    return [cause_of(problem) for problem in problems]


def _reason(message: str) -> str:
    return next((reason for reason, words in _SENTENCES if words.match(message)), "Invalid")


def _cause(reason: str, message: str, path: str) -> Cause:
    return Cause(f"FieldValue{reason}", f"{_WORDS.get(reason, 'Invalid value')}: {message}", path)


def _warning(finding: Finding) -> str:
    return f"{finding.path}: {finding.message}" if finding.path else finding.message


# ---- custom kinds with typed manifests -----------------------------------------------------------
#
# What `unisono decide` would refuse in a file is refused here, with the same sentence;
# what it would warn about becomes a warning that kubectl prints.


class TypedStrategy(Strategy):
    """A custom kind with rules of ours."""

    allows_unconditional_update = False
    is_metadata_in_status = False
    is_typed = False

    def __init__(self, kind: Kind) -> None:
        """Take the typed manifest that judges."""
        self._kind = kind

    @staticmethod
    def of(served: Served) -> TypedStrategy | None:
        """Return the strategy of a kind in one version, or None if we have no manifest for it."""
        kind = known_kind(served.api_version, served.kind)
        return TypedStrategy(kind) if kind is not None else None

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield the problems of a new or changed spec; warn about the rest."""
        if old is not None and _written(obj) == _written(old):
            return
        causes, warnings = judge(self._kind, obj)
        yield from causes
        for text in warnings:
            context.warn(text)


def _written(obj: Json) -> Json:
    """Return what users write: everything but the status and the server's own metadata."""
    metadata = obj.get("metadata") or {}
    kept = {name: metadata.get(name) or {} for name in ("labels", "annotations")}
    return {**{key: obj[key] for key in obj if key not in ("metadata", "status")}, "metadata": kept}
