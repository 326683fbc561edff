"""Where pods were placed, in both forms."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unisono.kinds.kueue.topology_assignment import compressed, expanded

OLD = {
    "levels": ["block", "host"],
    "domains": [
        {"values": ["b1", "node-1.local"], "count": 2},
        {"values": ["b1", "node-2.local"], "count": 2},
    ],
}
NEW = {
    "levels": ["block", "host"],
    "slices": [
        {
            "domainCount": 2,
            "valuesPerLevel": [
                {"universal": "b1"},
                {"individual": {"prefix": "node-", "suffix": ".local", "roots": ["1", "2"]}},
            ],
            "podCounts": {"universal": 2},
        }
    ],
}


def test_what_all_rows_share_is_written_once() -> None:
    assert compressed(OLD) == NEW
    assert expanded(NEW) == OLD


@pytest.mark.parametrize("other", [None, {}, "text", {"levels": []}])
def test_what_has_neither_form_is_left_alone(other: Any) -> None:
    assert compressed(other) == other
    assert expanded(other) == other


def test_nothing_placed() -> None:
    empty = {"levels": ["host"], "domains": []}
    assert compressed(empty) == {"levels": ["host"], "slices": []}
    assert expanded(compressed(empty)) == empty


names = st.text("ab-1", min_size=1, max_size=5)


@given(
    st.integers(1, 3).flatmap(
        lambda depth: st.lists(
            st.tuples(st.lists(names, min_size=depth, max_size=depth), st.integers(1, 3)),
            min_size=1,
            max_size=6,
        )
    )
)
def test_nothing_is_lost(rows: list[tuple[list[str], int]]) -> None:
    old = {
        "levels": [f"l{n}" for n in range(len(rows[0][0]))],
        "domains": [{"values": values, "count": count} for values, count in rows],
    }
    assert expanded(compressed(old)) == old
