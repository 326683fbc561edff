"""The expected outcome of every manifest, with its reason: `expected.tsv`.

Columns: file, outcome (or several, divided by `|`, of which one has to come true), a part of what
is said (empty: anything), and the reason why that is right.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.corpus.trial import OUTCOMES, Outcome

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]
RIGHT = ("runs", "waits", "refused")


class Row(NamedTuple):
    """What is expected of one file."""

    file: str
    outcome: str
    says: str
    reason: str


def folder_of() -> Path | None:
    """Return the folder of manifests; None where there is none."""
    named = os.environ.get("UNISONO_CORPUS")
    folder = Path(named) if named else _ROOT.parent / "shared" / "corpus"
    return folder if folder.is_dir() else None


def expected() -> dict[str, Row]:
    """Return the table by file."""
    lines = (_HERE / "expected.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [Row(*line.split("\t")) for line in lines]
    return {row.file: row for row in rows}


def is_as_expected(row: Row, outcome: Outcome) -> bool:
    """Say whether an outcome is one that a row allows, and says what it has to."""
    return outcome.word in row.outcome.split("|") and row.says in " ".join(outcome.says.split())


def summary(found: Mapping[str, Outcome]) -> str:
    """Return a table of counts per project."""
    projects = sorted({name.partition("/")[0] for name in found})
    lines = [f"{'project':<20}{'files':>7}" + "".join(f"{word:>9}" for word in OUTCOMES)]
    for project in (*projects, "all"):
        counts = Counter(
            one.word for name, one in found.items() if project in ("all", name.partition("/")[0])
        )
        total = sum(counts.values())
        lines.append(
            f"{project:<20}{total:>7}" + "".join(f"{counts[word]:>9}" for word in OUTCOMES)
        )
    right = sum(one.word in RIGHT for one in found.values())
    share = 100 * right / max(1, len(found))
    lines.append(f"{share:.1f} % run, rightly wait or are rightly refused")
    return "\n".join(lines)
