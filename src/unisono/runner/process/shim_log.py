"""The log of one run: lines with times, in files that do not grow for ever.

Only the standard library.
"""

from __future__ import annotations

import contextlib
import os
import time

# A line longer than this is written in pieces.
_LONGEST_LINE = 16 << 10
# Enough for the last lines with their times, whoever asks.
_TAIL_BYTES = 64 << 10
_NANO = 1_000_000_000


class LogFile:
    """Takes what a container writes, as it comes."""

    def __init__(self, path: str, most_bytes: int, files: int) -> None:
        """Write to a file; after so many bytes a new one is begun, and so many are kept."""
        self._path = path
        self._most = most_bytes
        self._files = files
        self._rest = b""
        self._second = -1
        self._text = b""
        self._open()

    def _open(self) -> None:
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        self._file = os.open(
            self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640
        )
        self._size = os.fstat(self._file).st_size

    def write(self, data: bytes) -> None:
        """Take what came; the last line may not be whole yet."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        while len(self._rest) > _LONGEST_LINE:
            lines.append(self._rest[:_LONGEST_LINE])
            self._rest = self._rest[_LONGEST_LINE:]
        if lines:
            stamp = self._stamp()
            self._append(b"".join(stamp + line + b"\n" for line in lines))

    def line(self, text: bytes) -> None:
        """Write a line of our own."""
        self._append(self._stamp() + text + b"\n")

    def close(self) -> None:
        """Write what is left, even if its line was never ended."""
        if self._rest:
            self.line(self._rest)
            self._rest = b""
        os.close(self._file)

    def tail(self, most: int) -> str:
        """Return the last lines, without their times."""
        with open(self._path, "rb") as file:
            file.seek(max(0, os.path.getsize(self._path) - _TAIL_BYTES))
            lines = [line.partition(b" ")[2] for line in file.read().splitlines()]
        return b"\n".join(lines)[-most:].decode(errors="replace").strip()

    def _append(self, data: bytes) -> None:
        while data:
            try:
                data = data[os.write(self._file, data) :]
            except OSError:  # a full disk must not stop the container
                return
        self._size = os.fstat(self._file).st_size
        if self._size >= self._most:
            self._rotate()

    def _rotate(self) -> None:
        """Begin a new file; older ones move on, the oldest goes."""
        os.close(self._file)
        for number in range(self._files - 1, 0, -1):
            older = f"{self._path}.{number}"
            newer = f"{self._path}.{number - 1}" if number > 1 else self._path
            with contextlib.suppress(FileNotFoundError):
                os.replace(newer, older)
        self._open()

    def _stamp(self) -> bytes:
        second, nano = divmod(time.time_ns(), _NANO)
        if second != self._second:
            self._second = second
            self._text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)).encode()
        return b"%s.%09dZ " % (self._text, nano)
