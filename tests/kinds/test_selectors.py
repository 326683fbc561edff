"""Label selectors."""

from __future__ import annotations

from typing import Any

import pytest

from unisono.engine.model.selection import selects
from unisono.kinds.decode import decode
from unisono.kinds.selectors import LabelSelector, check_selector, selector_of


def selector(raw: dict[str, Any]) -> LabelSelector:
    made, problems = decode(LabelSelector, raw)
    assert made is not None, problems
    return made


@pytest.mark.parametrize(
    ("raw", "matches"),
    [
        ({}, True),
        ({"matchLabels": {"team": "a"}}, True),
        ({"matchLabels": {"team": "b"}}, False),
        ({"matchLabels": {"team": "a", "env": "x"}}, False),
        ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}, False),
        ({"matchExpressions": [{"key": "env", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]}, True),
    ],
)
def test_selectors_match_as_in_kubernetes(raw: dict[str, Any], matches: bool) -> None:
    made = selector(raw)
    assert list(check_selector(made, "s")) == []
    assert selects(selector_of(made), {"team": "a"}) is matches


def test_faults_have_paths() -> None:
    made = selector(
        {
            "matchLabels": {"bad key": "x"},
            "matchExpressions": [
                {"key": "-", "operator": "In"},
                {"key": "k", "operator": "Exists", "values": ["v"]},
                {"key": "k", "operator": "In", "values": ["ok", "not ok"]},
            ],
        }
    )
    assert [problem.path for problem in check_selector(made, "spec.namespaceSelector")] == [
        "spec.namespaceSelector.matchLabels[bad key]",
        "spec.namespaceSelector.matchExpressions[0].key",
        "spec.namespaceSelector.matchExpressions[0].values",
        "spec.namespaceSelector.matchExpressions[1].values",
        "spec.namespaceSelector.matchExpressions[2].values[1]",
    ]
