"""When a job at the gate may begin as far as other jobs are concerned."""

from __future__ import annotations

import pytest

from tests.slurm.bridge.worlds import job
from unisono.slurm.bridge.decide import is_satisfied

NOW = 1_000_000.0
JOBS = {
    one.key: one
    for one in (
        job("1", state="COMPLETED", name="a"),
        job("2", state="FAILED", name="b"),
        job("3", on=("n1",), started=NOW - 90, name="c"),
        job("4", name="d", user="ann"),
        job("5_0", state="COMPLETED", array=5),
        job("5_1", on=("n2",), array=5),
    )
}


@pytest.mark.parametrize(
    ("text", "may_begin"),
    [
        ("", True),
        ("afterok:1(unfulfilled)", True),
        ("afterok:2(unfulfilled)", False),
        ("afternotok:2", True),
        ("afternotok:1", False),
        ("afterany:2,afterok:1", True),
        ("afterany:3(unfulfilled)", False),
        ("afterok:1,afterok:2", False),
        ("afterok:1?afterok:2", True),
        ("after:3+1", True),
        ("after:3+2", False),
        ("after:4", False),
        ("afterok:5_0", True),
        ("afterok:5_*(unfulfilled)", False),
        ("aftercorr:5_*", True),
        ("afterok:99", True),
        ("singleton(unfulfilled)", False),
        ("quitenew:1", False),
    ],
)
def test_a_dependency(text: str, may_begin: bool) -> None:
    key = "9_0" if text.startswith("aftercorr") else "9"
    asks = job(key, dependency=text, name="d", user="ann")
    assert is_satisfied(asks, JOBS, NOW) == may_begin
