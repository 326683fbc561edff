"""Whether a held job's dependencies are satisfied.

Slurm evaluates dependencies only of jobs that are not held, and the gate holds all. The result only
says when to create the gang: once the job is released, Slurm evaluates them itself.

    afterok:16(unfulfilled),afterany:17_*(unfulfilled)?after:18+5
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from unisono.slurm.bridge.slurm_view import PENDING, SlurmJob

_TERM = re.compile(
    r"(?P<type>[a-z]+)(?::(?P<job>\d+)(?:_(?P<task>\d+|\*))?(?:\+(?P<minutes>\d+))?)?(?:\(\w+\))?"
)


def is_satisfied(job: SlurmJob, jobs: Mapping[str, SlurmJob], now: float) -> bool:
    """Say whether all dependencies of a job are satisfied."""
    text = job.dependency
    if not text:
        return True
    is_any = "?" in text
    answers = [_is_so(term, job, jobs, now) for term in re.split(r"[,?]", text) if term]
    return any(answers) if is_any else all(answers)


def _is_so(term: str, job: SlurmJob, jobs: Mapping[str, SlurmJob], now: float) -> bool:
    found = _TERM.fullmatch(term)
    if found is None:
        return False  # Slurm knows something that we do not; it waits until the term is gone
    if found["type"] == "singleton":
        return not any(
            one.name == job.name and one.user == job.user and one.number < job.number
            for one in jobs.values()
            if not one.is_over
        )
    minutes = int(found["minutes"] or 0)
    others = _others(found, job, jobs)
    return all(_has_come(found["type"], one, minutes, now) for one in others)


def _others(found: re.Match[str], job: SlurmJob, jobs: Mapping[str, SlurmJob]) -> list[SlurmJob]:
    """Return the jobs that a term speaks of; those that Slurm has forgotten count as done."""
    number, task = int(found["job"] or 0), found["task"]
    if found["type"] == "aftercorr" and "_" in job.key:
        task = job.key.partition("_")[2]
    if task is not None and task != "*":
        return [one for key, one in jobs.items() if key == f"{number}_{task}"]
    return [one for one in jobs.values() if number in (one.array, one.number)]


def _has_come(sort: str, other: SlurmJob, minutes: int, now: float) -> bool:
    match sort:
        case "after":
            return other.state != PENDING and (other.is_over or now >= other.started + minutes * 60)
        case "afterany" | "afterburstbuffer":
            return other.is_over
        case "afterok" | "aftercorr":
            return other.state == "COMPLETED"
        case "afternotok":
            return other.is_over and other.state != "COMPLETED"
        case _:
            return False
