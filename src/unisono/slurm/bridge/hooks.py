"""Answers Slurm's hooks over a socket beside slurmctld: one line in, one line out.

| hook | asks | yes means |
| --- | --- | --- |
| `prolog` | may this job start on these nodes? (PrologSlurmctld: it is in CF) | it starts |
| `stage` | has this job its reservation? (burst buffer stage-in: it waits) | it may start |
| `epilog` | nothing: a job has ended | |
| `submitted` | nothing: there is a new job | |

A hook that gets no answer takes that as a no.

job_submit.lua runs inside slurmctld and must not wait, so it appends requests to a file; the bridge
renames the whole file and reads it. What is written while no bridge runs is read by the next one.

    submitted        there is a new job
    hold 17          its user holds a job that waits at the gate
    release 17       … and lets it queue again
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Literal

import msgspec

from unisono.engine.model.errors import UnisonoError
from unisono.kinds.digits import whole_number
from unisono.kube.clock import Clock
from unisono.slurm.bridge.marks import GATE, HOLD, PREFIX

_MOST_BYTES = 65_536
# How long a connected client may take to send its question.
_QUESTION_TIMEOUT_S = 5.0


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook asks."""

    hook: Literal["prolog", "stage", "epilog", "submitted"]
    job: int = 0
    array: int = 0
    task: int | None = None
    nodes: str = ""  # a host list

    @property
    def key(self) -> str:
        """The key of the job in the bridge."""
        return (
            f"{self.array}_{self.task}" if self.array and self.task is not None else str(self.job)
        )


class Answer(msgspec.Struct, frozen=True):
    """The bridge's answer."""

    ok: bool
    text: str = ""


class CannotListen(UnisonoError):
    """The socket is taken by another bridge, or its directory is missing."""


Responds = Callable[[Question], Awaitable[Answer]]
_decode = msgspec.json.Decoder(Question).decode


@contextlib.asynccontextmanager
async def listening(path: Path, respond: Responds, owner: int | None = None) -> AsyncIterator[None]:
    """Answer hooks while the block lasts; only our own user may ask, or the one that is named."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            try:
                async with asyncio.timeout(_QUESTION_TIMEOUT_S):
                    line = await reader.readuntil(b"\n")
                writer.write(msgspec.json.encode(await _answer(line, respond)) + b"\n")
                await writer.drain()
            except asyncio.LimitOverrunError:
                pass  # no hook says that much
            finally:
                writer.close()

    path.unlink(missing_ok=True)
    mask = os.umask(0o177)
    try:
        server = await asyncio.start_unix_server(answer, path, limit=_MOST_BYTES)
    except OSError as error:
        raise CannotListen(f"cannot listen at {path}: {error.strerror or error}") from error
    finally:
        os.umask(mask)
    if owner is not None and os.geteuid() == 0:
        os.chown(path, owner, -1)
    async with server:
        yield
    path.unlink(missing_ok=True)


async def _answer(line: bytes, respond: Responds) -> Answer:
    try:
        question = _decode(line)
    except msgspec.DecodeError as error:
        return Answer(ok=False, text=f"not understood: {error}")
    return await respond(question)


async def ask(path: Path, question: Question, timeout_s: float) -> Answer:
    """Ask as a hook does; no answer is a no."""
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                writer.write(msgspec.json.encode(question) + b"\n")
                return msgspec.json.decode(await reader.readline(), type=Answer)
            finally:
                writer.close()
    except (OSError, TimeoutError, msgspec.DecodeError) as error:
        return Answer(ok=False, text=f"the bridge does not answer: {error}")


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
