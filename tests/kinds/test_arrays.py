"""Arrays as jobs name them."""

from __future__ import annotations

import pytest

from unisono.kinds.arrays import ARRAY, array_of, read_array
from unisono.kinds.notes import Notes
from unisono.kinds.times import wrong_with_times


@pytest.mark.parametrize("text", ["", "sweep", "sweep%0", "%2", "sweep%", "sweep%x", "a b%2"])
def test_what_cannot_be_read_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="write it like sweep%2"):
        read_array(text)
    assert list(wrong_with_times({ARRAY: text})) == [f"metadata.annotations[{ARRAY}]"]


def test_a_name_counts_within_its_namespace() -> None:
    assert read_array("sweep-1.a%12") == ("sweep-1.a", 12)
    assert wrong_with_times({ARRAY: "sweep%2"}) == {}
    notes = Notes("jobs.yaml", 0)
    assert array_of({ARRAY: "sweep%2"}, "ml", notes) == ("ml/sweep", 2)
    assert array_of({}, "ml", notes) == ("", 0)
    assert not notes.problems
    assert array_of({ARRAY: "sweep"}, "ml", notes) == ("", 0)
    assert [one.path for one in notes.problems] == [f"metadata.annotations[{ARRAY}]"]
