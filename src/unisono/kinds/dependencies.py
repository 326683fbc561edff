"""Dependencies between jobs, as Slurm writes them.

    unisono.dev/depends-on: afterok:prepare:clean,after:monitor+5     all of them
    unisono.dev/depends-on: afterok:a?afternotok:b                    any of them

Types are `afterok`, `afterany`, `afternotok`, `after` (optionally so many minutes later) and
`singleton`. Jobs are named like `prepare`, or `other-namespace/prepare`. Spec backfill §11.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import get_args

from unisono.engine.model.dependency import Dependency, DependencyKind
from unisono.kinds.notes import Notes

DEPENDS_ON = "unisono.dev/depends-on"

Dependencies = tuple[tuple[Dependency, ...], bool]  # on which, and whether any of them will do

_NAME = re.compile(r"(?:([a-z0-9][a-z0-9.-]*)/)?([a-z0-9][a-z0-9.-]*)(?:\+([0-9]{1,6}))?")
_KINDS: dict[str, DependencyKind] = {kind: kind for kind in get_args(DependencyKind)}
_FORMS = "write it like afterok:prepare, after:a:b+5 or singleton, joined by , (all) or ? (any)"
_MINUTE_MS = 60_000


def read_dependencies(text: str, namespace: str) -> Dependencies:
    """Return what a job depends on; raise ValueError with the reason.

    >>> [one.on for one in read_dependencies("afterok:a:b/c", "ml")[0]]
    ['ml/a', 'b/c']
    """
    told = text.strip()
    if "," in told and "?" in told:
        raise ValueError(f'"{text}" joins by , and by ?; {_FORMS}')
    is_any = "?" in told
    terms = told.split("?" if is_any else ",")
    found = tuple(one for term in terms for one in _term(term.strip(), namespace, text))
    return found, is_any


def _term(term: str, namespace: str, text: str) -> list[Dependency]:
    word, *names = term.split(":")
    kind = _KINDS.get(word)
    if kind is None or bool(names) == (kind == "singleton"):
        raise ValueError(f'"{text}" is not a dependency; {_FORMS}')
    if kind == "singleton":
        return [Dependency(kind=kind)]
    made = []
    for name in names:
        shape = _NAME.fullmatch(name)
        if shape is None or (shape[3] is not None and kind != "after"):
            raise ValueError(f'"{name}" is not the name of a job; {_FORMS}')
        on = f"{shape[1] or namespace}/{shape[2]}"
        made.append(Dependency(kind=kind, on=on, delay_ms=int(shape[3] or 0) * _MINUTE_MS))
    return made


def dependencies_of(annotations: Mapping[str, str], namespace: str, notes: Notes) -> Dependencies:
    """Return what a job says that it depends on."""
    text = annotations.get(DEPENDS_ON)
    if text is None:
        return (), False
    try:
        return read_dependencies(text, namespace)
    except ValueError as reason:
        notes.problem(f"metadata.annotations[{DEPENDS_ON}]", str(reason))
        return (), False
