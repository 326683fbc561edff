"""Dependencies as jobs name them."""

from __future__ import annotations

import pytest

from unisono.engine.model.dependency import Dependency
from unisono.kinds.dependencies import DEPENDS_ON, dependencies_of, read_dependencies
from unisono.kinds.notes import Notes
from unisono.kinds.times import wrong_with_times


@pytest.mark.parametrize(
    "text",
    [
        "",
        "prepare",
        "before:a",
        "afterok",
        "afterok:",
        "afterok:A_b",
        "afterok:a+5",
        "after:a+x",
        "singleton:a",
        "afterok:a,afterok:b?afterok:c",
        "afterok:a,",
    ],
)
def test_what_cannot_be_read_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="write it like afterok:prepare"):
        read_dependencies(text, "ml")
    assert list(wrong_with_times({DEPENDS_ON: text})) == [f"metadata.annotations[{DEPENDS_ON}]"]


def test_terms_are_for_all_or_for_any() -> None:
    a = Dependency(kind="afterok", on="ml/a")
    b = Dependency(kind="afterok", on="x/b")
    later = Dependency(kind="after", on="ml/c", delay_ms=300_000)
    single = Dependency(kind="singleton")
    assert read_dependencies("afterok:a:x/b, after:c+5,singleton", "ml") == (
        (a, b, later, single),
        False,
    )
    assert read_dependencies("afterok:a?singleton", "ml") == ((a, single), True)
    notes = Notes("jobs.yaml", 0)
    assert dependencies_of({}, "ml", notes) == ((), False)
    assert dependencies_of({DEPENDS_ON: "afterok:a"}, "ml", notes) == ((a,), False)
    assert not notes.problems
    assert dependencies_of({DEPENDS_ON: "a"}, "ml", notes) == ((), False)
    assert [one.path for one in notes.problems] == [f"metadata.annotations[{DEPENDS_ON}]"]
