"""What job_submit.lua writes down for the bridge: a line for every event, in a file of their own.

    submitted        there is a new job
    hold 17          its user holds a job that waits at the gate
    release 17       … and lets it queue again

The script runs inside slurmctld and must not wait, so it appends; the bridge renames the whole
file. What is written while no bridge runs is read by the next one.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from unisono.kinds.digits import whole_number
from unisono.kube.clock import Clock
from unisono.slurm.bridge.marks import GATE, HOLD, PREFIX

# A script that had the file open when it was renamed has written by then.
_WRITTEN_BY_S = 0.02
_MARKS = {"hold": f"{PREFIX}{HOLD}", "release": f"{PREFIX}{GATE}"}


class Request(msgspec.Struct, frozen=True):
    """One line; `mark` is what the job's comment has to become, if anything."""

    job: int = 0
    mark: str = ""


def requests_of(socket: Path) -> Path:
    """Return the file, which is beside the socket."""
    return socket.with_suffix(".requests")


async def taken(socket: Path, clock: Clock) -> list[Request]:
    """Take the file away and return what it says; the same request twice counts once."""
    file = requests_of(socket)
    away = file.with_suffix(".taken")
    if not away.exists():  # else a bridge ended before it read it
        try:
            file.rename(away)
        except FileNotFoundError:
            return []
    await clock.sleep(_WRITTEN_BY_S)
    found = [_read(line) for line in away.read_text(errors="replace").splitlines()]
    away.unlink(missing_ok=True)
    return list(dict.fromkeys(found))


def _read(line: str) -> Request:
    word, _, number = line.partition(" ")
    identity = whole_number(number)
    if word in _MARKS and identity is not None:
        return Request(identity, _MARKS[word])
    return Request()
