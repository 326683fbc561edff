"""Schedules of CronJobs."""

from __future__ import annotations

import pytest

from unisono.apiserver.builtin.cron_jobs import wrong_with_schedule

BAD = """
* * * *
60 * * * *
* 24 * * *
* * 0 * *
* * * 13 *
* * * * 7
5-1 * * * *
*/0 * * * *
x * * * *
@sometimes
@every soon
@every 0s
"""


@pytest.mark.parametrize("text", ["", *BAD.strip().splitlines()])
def test_no_schedules(text: str) -> None:
    assert wrong_with_schedule(text) != ""
