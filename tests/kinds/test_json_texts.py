"""What any client may write into an annotation ends no reader of it."""

from __future__ import annotations

import pytest

from unisono.control.gangs.recovery import LAST_INCIDENT
from unisono.control.gangs.recovery import Record as Incident
from unisono.control.health.node_health import Record
from unisono.control.health.progress import read as read_progress
from unisono.kinds.device_faults import HEALTH, left_open
from unisono.kinds.json_texts import read_json
from unisono.kinds.pace import PROGRESS, pace_of

DEEP = "[" * 5000
TEXTS = (DEEP, '{"step":1e999,"at":"x"}', '{"attempt":1e999}', "NaN", "null", "[]", "x")


@pytest.mark.parametrize("text", [DEEP, '{"a":' * 5000, "x", ""])
def test_what_is_no_plain_json_is_one_kind_of_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_json(text)


@pytest.mark.parametrize("text", TEXTS)
def test_readers_of_annotations_find_nothing(text: str) -> None:
    assert read_progress(text) is None
    assert pace_of({PROGRESS: text}) is None
    assert left_open({HEALTH: text}) == ""
    assert Record.of({HEALTH: text}) == Record()
    assert Incident.of({LAST_INCIDENT: text}) is None


def test_a_report_with_a_loss_that_diverged_counts() -> None:
    found = read_progress('{"step": 7, "loss": NaN, "at": "2026-11-19T12:00:00Z"}')
    assert found is not None
    assert (found.step, found.loss) == (7, None)
