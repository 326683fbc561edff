"""A job over a limit of an account or a QOS starts when enough counted jobs have ended."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.ordering.test_priority_order import GPU, SECOND, limited, settle, submit
from tests.support.priority_builders import cluster, job
from unisono.engine.estimates import estimates
from unisono.engine.model.names import Instant, WorkloadKey


@pytest.mark.parametrize(
    ("limits", "wanted", "seconds"),
    [
        ({"tres_per_user": ((GPU, 4000),)}, 1, 100),  # either of the two is enough
        ({"tres_per_user": ((GPU, 4000),)}, 3, 200),
        ({"group_tres": ((GPU, 4000),)}, 3, 200),
        ({"jobs_per_user": 2}, 3, 100),
        ({"group_jobs": 2}, 3, 100),
    ],
)
def test_a_job_over_a_limit_starts_when_enough_others_have_ended(
    limits: dict[str, Any], wanted: int, seconds: int
) -> None:
    state = cluster(limited(**limits))
    mine: dict[str, Any] = {"account": "vision", "user": "games"}
    submit(state, job("a", gpu=2, time_limit_ms=100 * SECOND, **mine))
    submit(state, job("b", gpu=2, time_limit_ms=200 * SECOND, **mine))
    assert settle(state) == ["a", "b"]
    submit(state, job("c", gpu=wanted, time_limit_ms=50 * SECOND, **mine))
    settle(state)
    found = estimates(state, state.now)[WorkloadKey("ns/c")]
    assert (found.start, found.position) == (Instant(seconds * SECOND), 0)


def test_no_estimate_behind_a_job_without_a_time_limit() -> None:
    state = cluster(limited(group_jobs=1))
    submit(state, job("a", gpu=2, account="vision", user="games"))
    settle(state)
    submit(state, job("b", gpu=2, account="vision", user="games"))
    settle(state)
    assert estimates(state, state.now) == {}
