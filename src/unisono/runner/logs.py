"""The output of containers as files, in the form that the API reads.

    DIRECTORY/NAMESPACE/POD-UID/CONTAINER.log            the present run
    DIRECTORY/NAMESPACE/POD-UID/CONTAINER.previous.log   the one before

Every line begins with a time (RFC 3339, nanoseconds, UTC) and a space.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

_NANO = 1_000_000_000
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
_READABLE = 0o666  # what the umask leaves of it


def stamped(now: float, text: str) -> str:
    """Return a line as logs have it.

    >>> stamped(1.5, "hello")
    '1970-01-01T00:00:01.500000000Z hello\\n'
    """
    whole, fraction = divmod(round(now * _NANO), _NANO)
    time = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{time}.{fraction:09d}Z {text}\n"


class Logs(Protocol):
    """Storage for the output of containers."""

    def begin(self, namespace: str, uid: str, container: str, *, is_restart: bool) -> None:
        """Begin the log of a run; that of the run before stays as the previous one."""

    def append(self, namespace: str, uid: str, container: str, lines: str) -> None:
        """Add lines that have their times already."""

    def rewrite(self, namespace: str, uid: str, container: str, lines: str, previous: str) -> None:
        """Replace what is kept of a container; without lines of a previous run there is no such."""

    def remove(self, namespace: str, uid: str) -> None:
        """Forget a pod that is gone."""

    def sweep(self, living: Iterable[str]) -> int:
        """Forget pods that were deleted while this runner was down; return how many."""


@dataclass(frozen=True, slots=True)
class LogFolder:
    """Logs as files."""

    directory: Path

    def path(self, namespace: str, uid: str, container: str) -> Path:
        """Return the file of the present run."""
        return Path(self._file(namespace, uid, container))

    def _file(self, namespace: str, uid: str, container: str) -> str:
        # A text: thousands of pods begin at once, and a Path costs more than what is written there.
        return f"{self.directory}/{namespace}/{uid}/{container}.log"

    def begin(self, namespace: str, uid: str, container: str, *, is_restart: bool) -> None:
        """Begin the log of a run; that of the run before stays as the previous one."""
        if is_restart:
            path = self.path(namespace, uid, container)
            with contextlib.suppress(FileNotFoundError):
                path.replace(path.with_name(f"{container}.previous.log"))
        else:
            _make_folder(f"{self.directory}/{namespace}/{uid}")

    def append(self, namespace: str, uid: str, container: str, lines: str) -> None:
        """Add lines that have their times already."""
        path = self._file(namespace, uid, container)
        try:
            file = os.open(path, _APPEND, _READABLE)
        except FileNotFoundError:  # the folder was removed meanwhile
            _make_folder(f"{self.directory}/{namespace}/{uid}")
            file = os.open(path, _APPEND, _READABLE)
        try:
            # Without a file object: thousands of pods begin at once, each with a line or two.
            os.write(file, lines.encode())
        finally:
            os.close(file)

    def rewrite(self, namespace: str, uid: str, container: str, lines: str, previous: str) -> None:
        """Replace what is kept of a container; without lines of a previous run there is no such."""
        path = self.path(namespace, uid, container)
        _make_folder(str(path.parent))
        path.write_text(lines)
        before = path.with_name(f"{container}.previous.log")
        if previous:
            before.write_text(previous)
        else:
            before.unlink(missing_ok=True)

    def remove(self, namespace: str, uid: str) -> None:
        """Forget a pod that is gone."""
        shutil.rmtree(self.directory / namespace / uid, ignore_errors=True)
        with contextlib.suppress(OSError):  # others of the namespace are there
            (self.directory / namespace).rmdir()

    def sweep(self, living: Iterable[str]) -> int:
        """Remove the logs of pods that were deleted while this runner was down; return how many."""
        kept = frozenset(living)
        gone = [
            folder
            for namespace in _folders(self.directory)
            for folder in _folders(namespace)
            if folder.name not in kept
        ]
        for folder in gone:
            self.remove(folder.parent.name, folder.name)
        return len(gone)


def _make_folder(path: str) -> None:
    try:
        os.mkdir(path)
    except FileExistsError:
        pass
    except FileNotFoundError:
        os.makedirs(path, exist_ok=True)


def _folders(path: Path) -> list[Path]:
    try:
        return sorted(one for one in path.iterdir() if one.is_dir())
    except FileNotFoundError:
        return []


class NoLogs:
    """Keeps nothing."""

    def begin(self, namespace: str, uid: str, container: str, *, is_restart: bool) -> None:
        """Keep nothing."""

    def append(self, namespace: str, uid: str, container: str, lines: str) -> None:
        """Keep nothing."""

    def rewrite(self, namespace: str, uid: str, container: str, lines: str, previous: str) -> None:
        """Keep nothing."""

    def remove(self, namespace: str, uid: str) -> None:
        """Keep nothing."""

    def sweep(self, living: Iterable[str]) -> int:
        """Keep nothing."""
        return 0
