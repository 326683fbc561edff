"""Kueue's topology annotations."""

from __future__ import annotations

import pytest

from unisono.engine.model.workload import TopologyRequest
from unisono.kinds.core.topology import (
    GROUP,
    PREFERRED,
    REQUIRED,
    SLICE_LEVEL,
    SLICE_SIZE,
    UNCONSTRAINED,
    check_topology,
    topology_request,
)

RACK = "cloud.provider.com/rack"


@pytest.mark.parametrize(
    ("annotations", "request_"),
    [
        ({}, None),
        ({REQUIRED: RACK}, TopologyRequest("required", RACK)),
        ({PREFERRED: RACK}, TopologyRequest("preferred", RACK)),
        ({UNCONSTRAINED: "true"}, TopologyRequest("unconstrained")),
        ({UNCONSTRAINED: "T"}, TopologyRequest("unconstrained")),
        ({UNCONSTRAINED: "false"}, None),
        (
            {PREFERRED: "block", SLICE_LEVEL: RACK, SLICE_SIZE: "2"},
            TopologyRequest("preferred", "block", RACK, 2),
        ),
        ({SLICE_LEVEL: RACK, SLICE_SIZE: "2"}, TopologyRequest("preferred", "", RACK, 2)),
        ({SLICE_LEVEL: RACK}, None),
    ],
)
def test_what_is_asked_for(annotations: dict[str, str], request_: TopologyRequest | None) -> None:
    assert topology_request(annotations) == request_


def faults(annotations: dict[str, str]) -> list[tuple[str, str]]:
    return [(one.path, one.message) for one in check_topology(annotations, "m.annotations")]


@pytest.mark.parametrize(
    "annotations",
    [
        {},
        {REQUIRED: RACK, GROUP: "pair"},
        {UNCONSTRAINED: "false"},
        {SLICE_LEVEL: RACK, SLICE_SIZE: "12"},
    ],
)
def test_right_annotations_are_accepted(annotations: dict[str, str]) -> None:
    assert faults(annotations) == []


def test_wishes_exclude_each_other() -> None:
    ((path, message),) = faults({REQUIRED: RACK, PREFERRED: RACK})
    assert path == "m.annotations"
    assert message == f"only one of {REQUIRED} and {PREFERRED} may be set"


@pytest.mark.parametrize(
    ("annotations", "key", "message"),
    [
        ({UNCONSTRAINED: "yes"}, UNCONSTRAINED, 'must be "true" or "false"'),
        ({SLICE_LEVEL: RACK}, SLICE_LEVEL, f"needs {SLICE_SIZE} beside it"),
        ({SLICE_SIZE: "2"}, SLICE_SIZE, f"needs {SLICE_LEVEL} beside it"),
        (
            {SLICE_LEVEL: RACK, SLICE_SIZE: "0"},
            SLICE_SIZE,
            '"0" must be a number of pods, at least 1',
        ),
        ({REQUIRED: RACK, GROUP: "7"}, GROUP, '"7" must be a name, not a number'),
        ({GROUP: "pair"}, GROUP, f"needs {REQUIRED} or {PREFERRED} beside it"),
    ],
)
def test_wrong_annotations_are_named(annotations: dict[str, str], key: str, message: str) -> None:
    assert faults(annotations) == [(f"m.annotations[{key}]", message)]


def test_a_level_is_a_label_key() -> None:
    ((path, message),) = faults({REQUIRED: "no spaces"})
    assert path == f"m.annotations[{REQUIRED}]"
    assert message.startswith("must be the key of a node label: ")


def test_a_group_has_no_slices() -> None:
    found = faults({REQUIRED: RACK, GROUP: "pair", SLICE_LEVEL: RACK, SLICE_SIZE: "1"})
    assert found == [(f"m.annotations[{GROUP}]", "cannot be combined with slices")]
