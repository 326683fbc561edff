"""Processes and their descendants, read from /proc. Only the standard library."""

from __future__ import annotations

import os


def descendants(pid: int) -> list[int]:
    """Return the living processes below one; where /proc is missing, none are known."""
    children: dict[int, list[int]] = {}
    for name in _numbers():
        parent = _parent(name)
        if parent is not None:
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    line = [pid]
    while line:
        below = children.get(line.pop(), [])
        found += below
        line += below
    return found


def start_of(pid: int) -> int:
    """Return when a process started, in ticks since the machine did; 0 if it is not there.

    With the pid this names a process once and for all: pids come back, this time does not.
    """
    fields = _stat(str(pid))
    return int(fields[19]) if fields else 0


def memory_of(pid: int) -> int:
    """Return the bytes of memory that a process alone uses."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("RssAnon:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def processes_with_variable(words: bytes) -> list[int]:
    """Return the processes of this user that have a variable in their environment."""
    found = []
    for name in _numbers():
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if words in file.read().split(b"\0"):
                    found.append(int(name))
        except OSError:
            continue
    return found


def _numbers() -> list[str]:
    try:
        return [name for name in os.listdir("/proc") if name[0] in "123456789"]
    except FileNotFoundError:
        return []


def _parent(name: str) -> int | None:
    """Return the parent of a process; None if it is gone or dead already."""
    fields = _stat(name)
    if not fields or fields[0] in ("Z", "X"):
        return None
    return int(fields[1])


def _stat(name: str) -> list[str]:
    """Return the fields of a process from its state on; its name may have any signs in it."""
    try:
        with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []
