"""`sbatch --wait`: stay until a job is over, and end as it did."""

from __future__ import annotations

from typing import Any

from unisono.kinds.digits import whole_number
from unisono.slurm.client import Quick
from unisono.slurm.commands.context import Around, path_of
from unisono.slurm.states import is_over

Json = dict[str, Any]


def wait_for(api: Quick, job: Json, around: Around) -> int:
    """Wait for the end of a job; return its exit code."""
    path = path_of(job["metadata"]["namespace"], job["metadata"]["name"])
    while True:
        found = api.find(path)
        if found is None:
            return 1
        status = found.get("status") or {}
        if is_over(status.get("state", "")):
            code, _, signal = str(status.get("exitCode") or "1:0").partition(":")
            killed_by = whole_number(signal)
            return whole_number(code) or (128 + killed_by if killed_by else 0)
        around.pause(1.0)
