"""Hints for misspelt names."""

from __future__ import annotations

import pytest

from unisono.kinds.nearest import did_you_mean, nearest

FIELDS = ["cohortName", "coveredResources", "flavors", "name", "namespaceSelector", "nodeLabels"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("nodeLabel", "nodeLabels"),
        ("nodelabels", "nodeLabels"),
        ("falvors", "flavors"),  # a swap is one mistake
        ("flavor", "flavors"),
        ("nmae", "name"),
        ("cohort", "cohortName"),
        ("namespaceSelectors", "namespaceSelector"),
        ("foo", ""),
        ("x", ""),
        ("flags", ""),
        ("node", ""),
        ("", ""),
    ],
)
def test_the_nearest_name_is_found_or_none(written: str, meant: str) -> None:
    assert nearest(written, FIELDS) == meant


def test_ties_do_not_depend_on_order() -> None:
    assert nearest("aaaab", ["aaaac", "aaaad"]) == nearest("aaaab", ["aaaad", "aaaac"]) == "aaaac"


def test_the_hint_is_ready_for_a_message() -> None:
    assert did_you_mean("nmae", FIELDS) == '; did you mean "name"?'
    assert did_you_mean("banana", FIELDS) == ""
