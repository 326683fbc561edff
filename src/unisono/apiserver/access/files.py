"""Files that only their owner may read, and a refusal to use them otherwise."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

_OTHERS = 0o077


class Exposed(Exception):
    """A file with a secret that others can read; the message says how to close it."""


def refuse_exposed(path: Path) -> None:
    """Raise if there is such a file and anybody but its owner can read or change it."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return
    if status.st_mode & _OTHERS:
        mode = "700" if path.is_dir() else "600"
        raise Exposed(
            f"{path} is open to other users of this machine (mode {status.st_mode & 0o777:04o}); "
            f"close it with: chmod {mode} {shlex.quote(str(path))}"
        )
    if status.st_uid != os.geteuid():
        raise Exposed(
            f"{path} belongs to another user; take it over with: "
            f"chown $(id -u) {shlex.quote(str(path))}"
        )


def write_privately(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    temporary = path.with_name(f"{path.name}.new")
    temporary.unlink(missing_ok=True)
    # O_EXCL: nobody can have put a file or a link there for us to fill.
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
