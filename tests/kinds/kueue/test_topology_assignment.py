"""Where pods were placed, in both forms."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unisono.kinds.kueue.topology_assignment import compressed, expanded, is_sound, pods_per_host

OLD: dict[str, Any] = {
    "levels": ["block", "host"],
    "domains": [
        {"values": ["b1", "node-1.local"], "count": 2},
        {"values": ["b1", "node-2.local"], "count": 2},
    ],
}
NEW: dict[str, Any] = {
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


def on_hosts(assignment: dict[str, Any]) -> dict[str, Any]:
    return assignment | {"levels": ["block", "kubernetes.io/hostname"]}


@pytest.mark.parametrize("assignment", [OLD, NEW])
def test_pods_are_counted_by_host(assignment: dict[str, Any]) -> None:
    assert is_sound(assignment)
    assert pods_per_host(on_hosts(assignment)) == (("node-1.local", 2), ("node-2.local", 2))
    # Another lowest level says nothing about hosts.
    assert pods_per_host(assignment) == ()


@pytest.mark.parametrize(
    "broken",
    [
        {"levels": "host", "domains": []},
        {"levels": [1], "domains": []},
        OLD | {"domains": [{"values": ["b1"], "count": 2}]},
        OLD | {"domains": [{"values": ["b1", "n1"], "count": True}]},
        OLD | {"domains": [{"values": ["b1", "n1"], "count": -1}]},
        OLD | {"domains": ["b1"]},
        NEW | {"slices": {}},
        NEW | {"slices": [{}]},
        NEW | {"slices": [NEW["slices"][0] | {"domainCount": 3}]},
        NEW | {"slices": [NEW["slices"][0] | {"domainCount": 10**12}]},
        NEW | {"slices": [NEW["slices"][0] | {"valuesPerLevel": [{}, {}]}]},
        NEW | {"slices": [NEW["slices"][0] | {"podCounts": {"individual": [1]}}]},
        NEW | {"slices": [NEW["slices"][0] | {"podCounts": None}]},
    ],
)
def test_nothing_is_read_from_what_makes_no_sense(broken: Any) -> None:
    assert not is_sound(broken)
    assert compressed(broken) == expanded(broken) == broken
    assert pods_per_host(broken) == ()
