"""What containers wrote, read from the files that the runner keeps.

    DIRECTORY/NAMESPACE/POD-UID/CONTAINER.log            the present run
    DIRECTORY/NAMESPACE/POD-UID/CONTAINER.previous.log   the one before

Every line begins with a time (RFC 3339, nanoseconds, UTC) and a space.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from unisono.apiserver.errors import ApiError, bad_request
from unisono.apiserver.objects import Json
from unisono.apiserver.request import Request
from unisono.apiserver.times import seconds
from unisono.kinds.digits import is_digits

_MOST_PUT_ASIDE = 9
_POLL_SECONDS = 0.1
_CHUNK_BYTES = 64 * 1024
_MOST_DIGITS = 15  # of lines, bytes or seconds: more than there can be


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """Which lines of a log are wanted."""

    container: str
    previous: bool = False
    follow: bool = False
    tail: int | None = None
    since: float | None = None
    timestamps: bool = False
    limit: int | None = None

    @staticmethod
    def of(request: Request, pod: Json, now: float) -> LogOptions:
        """Read it from the query; a pod of one container needs no name."""
        since = None
        if "sinceSeconds" in request.query:
            since = now - _whole(request, "sinceSeconds")
        elif "sinceTime" in request.query:
            since = seconds(request.query["sinceTime"])
            if since is None:
                raise bad_request("sinceTime is not a time")
        return LogOptions(
            container=container_of(request, pod),
            previous=request.flag("previous"),
            follow=request.flag("follow"),
            tail=_whole(request, "tailLines") if "tailLines" in request.query else None,
            since=since,
            timestamps=request.flag("timestamps"),
            limit=_whole(request, "limitBytes") if "limitBytes" in request.query else None,
        )


def _whole(request: Request, name: str) -> int:
    text = request.query[name]
    if not is_digits(text) or len(text) > _MOST_DIGITS:
        raise bad_request(f"{name}: {text[:40]!r} is not a whole number")
    return int(text)


def container_of(request: Request, pod: Json) -> str:
    """Return which container of a pod is meant; the only one needs no name."""
    spec = pod.get("spec", {})
    names = [
        one["name"]
        for part in ("containers", "initContainers", "ephemeralContainers")
        for one in spec.get(part) or ()
    ]
    wanted = request.query.get("container", "")
    pod_name = pod["metadata"]["name"]
    if wanted and wanted not in names:
        raise bad_request(f"container {wanted} is not valid for pod {pod_name}")
    if wanted:
        return wanted
    if len(spec.get("containers") or ()) != 1:
        listed = ", ".join(names)
        raise bad_request(
            f"a container name must be specified for pod {pod_name}, choose one of: [{listed}]"
        )
    return str(spec["containers"][0]["name"])


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The logs of all pods of this instance."""

    directory: Path

    def open(
        self, pod: Json, options: LogOptions, *, is_over: Callable[[], bool]
    ) -> AsyncIterator[bytes]:
        """Return what was written; with `follow`, also what will be, until `is_over`."""
        metadata = pod["metadata"]
        ending = ".previous.log" if options.previous else ".log"
        folder = self.directory / metadata["namespace"] / metadata["uid"]
        path = folder / f"{options.container}{ending}"
        if not path.is_file():
            if options.previous:
                raise bad_request(
                    f'previous terminated container "{options.container}" in pod '
                    f'"{metadata["name"]}" not found'
                )
            if not options.follow:
                raise _not_started(pod, options)
        return _lines(path, options, is_over)


def _not_started(pod: Json, options: LogOptions) -> ApiError:
    reason = "waiting to start"
    for status in pod.get("status", {}).get("containerStatuses") or ():
        waiting = (status.get("state") or {}).get("waiting") or {}
        if status.get("name") == options.container and waiting.get("reason"):
            reason = f"waiting to start: {waiting['reason']}"
    name = pod["metadata"]["name"]
    return bad_request(f'container "{options.container}" in pod "{name}" is {reason}')


async def _lines(
    path: Path, options: LogOptions, is_over: Callable[[], bool]
) -> AsyncIterator[bytes]:
    while not path.is_file():
        # Asked before looking again: the runner may write the file because it is asked for.
        ends = is_over()
        if path.is_file():
            break
        if ends:
            return
        await asyncio.sleep(_POLL_SECONDS)
    left = options.limit
    file: BinaryIO = path.open("rb")
    try:
        pieces = _present(file, options)
        while True:
            for chunk in pieces:
                piece = chunk if left is None else chunk[:left]
                yield piece
                if left is not None:
                    left -= len(piece)
                    if left <= 0:
                        return
            if not options.follow:
                return
            # Asked before reading: what is written until then is still read below.
            ends, is_last = is_over(), _is_last(path, file)
            chunk = _shown(_complete_lines(file), options)
            pieces = [chunk] if chunk else []
            if chunk:
                continue
            if not is_last:
                following = _following(path, file)
                if following is None:
                    return
                file.close()
                file = following
            elif ends:
                return
            else:
                await asyncio.sleep(_POLL_SECONDS)
    finally:
        file.close()


def _is_last(path: Path, file: BinaryIO) -> bool:
    """Say whether a log goes on in this file; a moment without any changes nothing."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return True


def _following(path: Path, file: BinaryIO) -> BinaryIO | None:
    """Return the file in which a log goes on after one that was put aside.

    A log that grows too long is put aside as `.1`, that one as `.2`, and so on. A container that
    starts again begins another log, and a client that followed the one before has seen its end.
    """
    mine = os.fstat(file.fileno())
    newer = path
    for number in range(1, _MOST_PUT_ASIDE + 1):
        older = path.with_name(f"{path.name}.{number}")
        try:
            if os.path.samestat(older.stat(), mine):
                return newer.open("rb")
        except FileNotFoundError:
            return None
        newer = older
    return None


def _present(file: BinaryIO, options: LogOptions) -> list[bytes]:
    """Return what is there now, in pieces."""
    lines = file.readlines()
    if options.tail is not None:
        lines = list(deque(lines, maxlen=options.tail)) if options.tail else []
    pieces: list[bytes] = []
    held: list[bytes] = []
    size = 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size >= _CHUNK_BYTES:
            pieces.append(_shown(held, options))
            held, size = [], 0
    pieces.append(_shown(held, options))
    return [piece for piece in pieces if piece]


def _complete_lines(file: BinaryIO) -> list[bytes]:
    """Read on to the last line end; an unfinished line is left for later."""
    start = file.tell()
    data = file.read(_CHUNK_BYTES)
    end = data.rfind(b"\n") + 1
    if end == 0 and len(data) == _CHUNK_BYTES:
        end = len(data)
    file.seek(start + end)
    return data[:end].splitlines(keepends=True)


def _shown(lines: list[bytes], options: LogOptions) -> bytes:
    if options.since is not None:
        lines = [line for line in lines if _time(line) >= options.since]
    if options.timestamps:
        return b"".join(lines)
    return b"".join(line.partition(b" ")[2] for line in lines)


def _time(line: bytes) -> float:
    text = line.partition(b" ")[0].decode("ascii", "replace")
    # Nine digits of a second are more than the standard library reads.
    head, dot, fraction = text.rstrip("Z").partition(".")
    return seconds(f"{head}{dot}{fraction[:6]}+00:00") or 0.0
