"""Recordings of decisions as files: compressed, private, bounded, and whole up to the last line.

A folder holds `000001.flight`, `000002.flight`, …; each begins with a whole state, so each can be
replayed by itself. One is as long as its base several times over, so that bases stay a small part
of the work; then the next one begins, and the oldest ones go. Every line is one write; what a crash
left of the last one is noticed and skipped by readers.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path

from unisono import __version__
from unisono.engine.flight import Tape, Unreadable, recorded_once
from unisono.engine.model.errors import InvalidManifest
from unisono.engine.model.plan import Plan
from unisono.engine.state.cluster import ClusterState
from unisono.kinds.digits import is_digits
from unisono.runtime.log import warn

SUFFIX = ".flight"
# A recording ends after so many compressed bytes, or four times its base if that is more.
_LEAST_BYTES = 4 << 20
_TIMES_BASE = 4
# All recordings of a folder together; about a million small decisions.
MOST_BYTES = 256 << 20
_MOST_FILES = 1000
# Of plans that the auditor refused: each holds a whole state, and the newest few tell the story.
MOST_REFUSED_BYTES = 64 << 20
# Fast is what counts: names and shapes repeat so much that the quickest level shrinks them tenfold.
_LEVEL = 1
_GZIP = 31  # zlib's number for a gzip header
_PIECE = 1 << 20


def recorder(directory: Path) -> Tape:
    """Return what decides and records into a folder."""
    return Tape(Folder(directory), program=__version__)


class Refusals:
    """Keeps plans that the auditor refused, each as a recording of one decision."""

    def __init__(self, directory: Path) -> None:
        """Write into a folder, which is made when there is something to keep."""
        self._directory = directory
        self._folder: Folder | None = None

    def __call__(self, state: ClusterState, made: Plan) -> None:
        """Keep one plan and the state that it was made from."""
        if self._folder is None:
            self._folder = Folder(self._directory, most_bytes=MOST_REFUSED_BYTES)
        base, decision = recorded_once(state, made, program=__version__)
        self._folder.begin(base)
        self._folder.add(decision)
        self._folder.close()


class Folder:
    """A folder of recordings that is written to."""

    def __init__(self, directory: Path, *, most_bytes: int = MOST_BYTES) -> None:
        """Make the folder, readable by its owner alone."""
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidManifest("--record", f"{directory}: {error.strerror}") from error
        self._directory = directory
        self._most_bytes = most_bytes
        self._file: int | None = None
        self._packer: zlib._Compress | None = None
        self._written = 0
        self._base = 0
        self._has_failed = False

    @property
    def is_full(self) -> bool:
        """Say whether the recording is long enough."""
        return self._written > max(_LEAST_BYTES, _TIMES_BASE * self._base)

    def begin(self, base: bytes) -> None:
        """Begin the next recording."""
        self.close()
        if self._has_failed:
            return
        number = max((_number(path) for path in recordings(self._directory)), default=0) + 1
        path = self._directory / f"{number:06d}{SUFFIX}"
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            self._fail(error)
            return
        self._packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
        self._written = 0
        self.add(base)
        self._base = self._written
        self._tidy()

    def add(self, decision: bytes) -> None:
        """Write one line, whole or not at all as far as readers can tell."""
        if self._file is None or self._packer is None:
            return
        packed = self._packer.compress(decision + b"\n") + self._packer.flush(zlib.Z_SYNC_FLUSH)
        try:
            self._written += os.write(self._file, packed)
        except OSError as error:
            self._fail(error)

    def close(self) -> None:
        """End the recording."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _fail(self, error: OSError) -> None:
        """Go on without recording: decisions matter more."""
        self._has_failed = True
        self.close()
        message = f"{self._directory}: {error.strerror}; decisions are not recorded any more"
        warn(message)

    def _tidy(self) -> None:
        """Delete the oldest recordings beyond the bounds; the newest always stays."""
        found = recordings(self._directory)
        sizes = [path.stat().st_size for path in found]
        while len(found) > 1 and (sum(sizes) > self._most_bytes or len(found) > _MOST_FILES):
            found.pop(0).unlink(missing_ok=True)
            sizes.pop(0)


def recordings(directory: Path) -> list[Path]:
    """Return the recordings of a folder, the oldest first."""
    found = [path for path in directory.glob(f"*{SUFFIX}") if is_digits(path.stem)]
    return sorted(found, key=_number)


def _number(path: Path) -> int:
    return int(path.stem)


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield the lines of a recording; the last one only if it is whole."""
    unpacker = zlib.decompressobj(_GZIP)
    rest = b""
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            try:
                rest += unpacker.decompress(piece)
            except zlib.error as error:
                raise Unreadable(f"{path} is no recording, or damaged: {error}") from None
            *whole, rest = rest.split(b"\n")
            yield from whole
