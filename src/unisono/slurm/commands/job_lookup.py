"""Jobs by what users call them: 12, 48_3, 48_[2-5], 48."""

from __future__ import annotations

import re
from typing import NamedTuple

from unisono.slurm.client import ApiClient
from unisono.slurm.labels import JOBS
from unisono.slurm.listing import decoded
from unisono.slurm.lite_typing import Json
from unisono.slurm.sbatch.arrays import Array, BadArray, read_array

_CALLED = re.compile(r"(\d+)(?:_(\d+|\[[\d,:%-]+\]|\*))?(?:\.(\w+))?")


class Called(NamedTuple):
    """What a word names: a job, and perhaps tasks of it."""

    identity: int
    tasks: Array | None = None
    step: str = ""


class Found(NamedTuple):
    """The objects behind a word: jobs, and the array of tasks that are none yet."""

    jobs: list[Json]
    array: Json | None = None
    waiting: list[int] = []  # noqa: RUF012 - never changed


def called(word: str) -> Called | None:
    """Return what a word names; None if it is no job.

    >>> called("48_3"), called("x")
    (Called(identity=48, tasks=Array(parts=(range(3, 4),), limit=0), step=''), None)
    """
    found = _CALLED.fullmatch(word.strip())
    if found is None:
        return None
    tasks = None
    if found[2] and found[2] != "*":
        try:
            tasks = read_array(found[2].strip("[]"))
        except BadArray:
            return None
    return Called(int(found[1]), tasks, found[3] or "")


def find(api: ApiClient, one: Called) -> Found:
    """Return the objects that are meant; an array's own number means all of it."""
    selector = f"unisono.dev%2Fslurm-job%3D{one.identity}"
    own = decoded(api.call("GET", f"{JOBS}?labelSelector={selector}"))
    array = next((job for job in own if job["spec"].get("array")), None)
    if array is None or (one.tasks is None and len(own) == 1):
        jobs = own if one.tasks is None else []
        return Found(jobs, array if one.tasks is None else None)
    selector = f"unisono.dev%2Fslurm-array%3D{one.identity}"
    tasks = decoded(api.call("GET", f"{JOBS}?labelSelector={selector}"))
    if one.tasks is None:
        return Found([array], array)
    chosen = [
        job for job in tasks if one.tasks.place(int(job["spec"]["task"]["index"])) is not None
    ]
    whole = read_array(array["spec"]["array"]["tasks"])
    opened = int((array.get("status") or {}).get("opened") or 0)
    waiting = [
        number
        for part in whole.rest(opened)
        for number in part
        if one.tasks.place(number) is not None
    ]
    return Found(chosen, array, waiting)
