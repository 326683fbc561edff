"""Arrays: jobs that belong together, of which only so many run at a time.

    unisono.dev/array: sweep%2      on each of the jobs: at most two of `sweep` at a time

The name counts within a namespace. Slurm writes the same as `--array=0-15%2`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from unisono.kinds.notes import Notes

ARRAY = "unisono.dev/array"

_FORM = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?)%([1-9][0-9]{0,8})")


def read_array(text: str) -> tuple[str, int]:
    """Return name and limit; raise ValueError with the reason.

    >>> read_array("sweep%2")
    ('sweep', 2)
    """
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(f'"{text}" is not an array; write it like sweep%2: at most two at a time')
    return found[1], int(found[2])


def array_of(annotations: Mapping[str, str], namespace: str, notes: Notes) -> tuple[str, int]:
    """Return the array of a job and its limit, an empty name without one."""
    text = annotations.get(ARRAY)
    if text is None:
        return "", 0
    try:
        name, limit = read_array(text)
    except ValueError as reason:
        notes.problem(f"metadata.annotations[{ARRAY}]", str(reason))
        return "", 0
    return f"{namespace}/{name}", limit
