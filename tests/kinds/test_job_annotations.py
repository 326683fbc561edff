"""Arrays and dependencies, as jobs name them."""

from __future__ import annotations

import pytest

from unisono.engine.model.workload import Dependency
from unisono.kinds.job_annotations import (
    ARRAY,
    DEPENDS_ON,
    array_of,
    dependencies_of,
    read_array,
    read_dependencies,
    wrong_with_annotations,
)
from unisono.kinds.notes import Notes


@pytest.mark.parametrize("text", ["", "sweep", "sweep%0", "%2", "sweep%", "sweep%x", "a b%2"])
def test_reports_invalid_arrays(text: str) -> None:
    with pytest.raises(ValueError, match="write it like sweep%2"):
        read_array(text)
    assert list(wrong_with_annotations({ARRAY: text})) == [f"metadata.annotations[{ARRAY}]"]


def test_a_name_counts_within_its_namespace() -> None:
    assert read_array("sweep-1.a%12") == ("sweep-1.a", 12)
    assert wrong_with_annotations({ARRAY: "sweep%2"}) == {}
    notes = Notes("jobs.yaml", 0)
    assert array_of({ARRAY: "sweep%2"}, "ml", notes) == ("ml/sweep", 2)
    assert array_of({}, "ml", notes) == ("", 0)
    assert not notes.problems
    assert array_of({ARRAY: "sweep"}, "ml", notes) == ("", 0)
    assert [one.path for one in notes.problems] == [f"metadata.annotations[{ARRAY}]"]


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
def test_reports_invalid_dependencies(text: str) -> None:
    with pytest.raises(ValueError, match="write it like afterok:prepare"):
        read_dependencies(text, "ml")
    assert list(wrong_with_annotations({DEPENDS_ON: text})) == [
        f"metadata.annotations[{DEPENDS_ON}]"
    ]


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
