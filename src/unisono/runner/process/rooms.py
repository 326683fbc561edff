"""A room of its own for a container: namespaces of this machine, furnished for one launch.

    /            a small file system in memory with everything of the machine bound into it
    volumes      at their paths, made on the fly; a directory that has to grow is taken apart
    /etc/hosts   the pod's own, and its own hostname
    /tmp         its own; /proc shows only its own processes

Works without privileges where the kernel lets users make namespaces, and with them everywhere else.
Only the standard library: `shim` runs this in a bare interpreter. Linux only. Spec jobs §8.
"""

from __future__ import annotations

import ctypes
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_NEW_MOUNT, _NEW_UTS, _NEW_USER, _NEW_PID = 0x20000, 0x4000000, 0x10000000, 0x20000000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 32, 4096, 16384, 1 << 18
_DETACH = 2
_SUBREAPER, _DEATH_SIGNAL = 36, 1
# Flags of a file system that a mount of ours has to keep: (as told, as asked for).
_KEPT_FLAGS = ((2, 2), (4, 4), (8, 8), (1024, 1024), (2048, 2048), (4096, 1 << 21))
# Never bound as they are: of these, every room has its own.
_OWN = ("proc", "tmp")
# Consoles and disks: many, and of no use to a container.
_LEFT = re.compile(r"tty\w|vcs|loop|ram\d|sd[a-z]|vd[a-z]|nvme")


_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    """Call the system; raise OSError if it refuses."""
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def become_subreaper() -> None:
    """Have every orphan below this process become its child, so that nobody gets away."""
    _call("prctl", _SUBREAPER, 1, 0, 0, 0)


def die_with_parent(number: int) -> None:
    """Get a signal when the process that made this one is gone."""
    _call("prctl", _DEATH_SIGNAL, number, 0, 0, 0)


def leave() -> None:
    """Leave the common rooms: the next child is the first process of a new one.

    Whoever is all-powerful needs no new users; everybody else is the same user inside as outside.
    """
    rooms = _NEW_MOUNT | _NEW_UTS | _NEW_PID
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        try:
            _call("unshare", rooms)
        except OSError:
            pass
        else:
            return
    _call("unshare", rooms | _NEW_USER)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")


def join(pid: int) -> None:
    """Go into the room of a process that this one has made."""
    with open(f"/proc/{pid}/ns/mnt", "rb") as room:
        _call("setns", room.fileno(), _NEW_MOUNT)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def mount(
    source: str, target: str, kind: str | None = None, flags: int = 0, options: str = ""
) -> None:
    """Mount something somewhere."""
    _call(
        "mount",
        source.encode(),
        target.encode(),
        kind.encode() if kind else None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )


def furnish(
    root: str,
    *,
    hostname: str,
    mounts: Sequence[Mapping[str, Any]],
    directories: Iterable[str] = (),
    private_tmp: str,
) -> None:
    """Make a room below `root`, move into it, and close the door.

    Each mount has a source, a target, and perhaps read_only or memory_bytes; `directories` are made
    if they are missing.
    """
    _call("unshare", _NEW_MOUNT)  # the door of whoever looks after us stays open
    mount("none", "/", None, _RECURSIVE | _PRIVATE)
    mount("tmpfs", root, "tmpfs", 0, "mode=755")
    # Links are followed on the machine: inside they would lead out of the unfinished room.
    mounts = [{**one, "target": os.path.realpath(one["target"])} for one in mounts]
    wanted = {
        **dict.fromkeys(map(os.path.realpath, directories), True),
        **{one["target"]: _is_directory(one) for one in mounts},
        "/tmp": True,
        "/proc": True,
    }
    _bring("/", root, wanted)
    for path in sorted(wanted, key=lambda path: path.count("/")):
        _make(root + path, is_directory=wanted[path])
    mount("proc", f"{root}/proc", "proc")
    mount(private_tmp, f"{root}/tmp", None, _BIND)
    for one in sorted(mounts, key=lambda one: str(one["target"]).count("/")):
        _make(root + one["target"], is_directory=wanted[one["target"]])  # below another mount
        _place(one, root + one["target"])
    _call("sethostname", hostname.encode(), len(hostname.encode()))
    os.chdir(root)
    _call("pivot_root", b".", b".")
    _call("umount2", b".", _DETACH)
    os.chdir("/")


def _bring(path: str, root: str, wanted: Mapping[str, bool]) -> None:
    """Bind the entries of a directory of the machine into the same directory of a room."""
    base = path.rstrip("/")
    for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
        here = f"{base}/{entry.name}"
        there = root + here
        if (path == "/" and entry.name in _OWN) or (path == "/dev" and _LEFT.match(entry.name)):
            continue
        try:
            if entry.is_symlink():
                os.symlink(os.readlink(here), there)
            elif not entry.is_dir(follow_symlinks=False):
                _make(there, is_directory=False)
                mount(here, there, None, _BIND)
            else:
                os.mkdir(there, stat.S_IMODE(entry.stat().st_mode))
                if _has_to_grow(here, wanted):
                    _bring(here, root, wanted)
                else:
                    mount(here, there, None, _BIND | _RECURSIVE)
        except OSError:
            # What this user may not see is not in the room either.
            continue


def _has_to_grow(path: str, wanted: Mapping[str, bool]) -> bool:
    """Say whether something is to be in a directory that is not there."""
    return any(target.startswith(f"{path}/") and not os.path.exists(target) for target in wanted)


def _make(path: str, *, is_directory: bool) -> None:
    """Have something there to mount on."""
    if os.path.lexists(path):
        return
    if is_directory:
        os.makedirs(path, exist_ok=True)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))


def _is_directory(one: Mapping[str, Any]) -> bool:
    return one.get("memory_bytes") is not None or os.path.isdir(one["source"])


def _place(one: Mapping[str, Any], target: str) -> None:
    size = one.get("memory_bytes")
    if size is not None:
        mount("tmpfs", target, "tmpfs", 0, f"mode=1777,size={size}" if size else "mode=1777")
        return
    mount(one["source"], target, None, _BIND | _RECURSIVE)
    if one.get("read_only"):
        told = os.statvfs(target).f_flag
        kept = sum(asked for seen, asked in _KEPT_FLAGS if told & seen)
        mount("none", target, None, _REMOUNT | _BIND | _READ_ONLY | kept)


def probe(root: str) -> None:
    """Try it all once; raise OSError if this machine has no rooms for us."""
    leave()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            furnish(root, hostname="probe", mounts=(), private_tmp=root)
            code = 0 if os.path.exists("/proc/self") else 1
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise OSError("a room could not be furnished")
