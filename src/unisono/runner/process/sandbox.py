"""The sandbox of a container: Linux namespaces with a file system, built for one launch.

    /            a small file system in memory with the machine's directories bound into it
    volumes      at their paths, made on the fly; a directory that has to grow is taken apart
    /etc/hosts   the pod's own, and its own hostname
    /tmp         its own; /proc shows only its own processes
    hidden       folders of the instance are empty but for what is named (`Hidden`)
    for users    of another system user than ours: its own /var/tmp, /dev/shm and terminals, too

Works without privileges where the kernel lets users make namespaces, and with them everywhere else.
Only the standard library: `shim` runs this in a bare interpreter. Linux only. Spec jobs §8.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_NEW_MOUNT, _NEW_UTS, _NEW_USER, _NEW_PID = 0x20000, 0x4000000, 0x10000000, 0x20000000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 32, 4096, 16384, 1 << 18
_DETACH = 2
_SUBREAPER, _DEATH_SIGNAL, _NO_NEW_PRIVILEGES = 36, 1, 38
# Flags of a file system that a mount of ours has to keep: (as told, as asked for).
_KEPT_FLAGS = ((2, 2), (4, 4), (8, 8), (1024, 1024), (2048, 2048), (4096, 1 << 21))
# Never bound: every sandbox has its own.
_OWN = ("proc", "tmp")
# Shared by all users of a machine; a container of another user gets its own.
_APART = ("/var/tmp", "/dev/shm", "/dev/pts")
# Consoles and disks: many, and of no use to a container.
_LEFT = re.compile(r"tty\w|vcs|loop|ram\d|sd[a-z]|vd[a-z]|nvme")


_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    """Call the system; raise OSError if it refuses."""
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def become_subreaper() -> None:
    """Adopt every orphan below this process, so that no process escapes."""
    _call("prctl", _SUBREAPER, 1, 0, 0, 0)


def die_with_parent(number: int) -> None:
    """Get a signal when the process that made this one is gone."""
    _call("prctl", _DEATH_SIGNAL, number, 0, 0, 0)


class Owner(NamedTuple):
    """The system user that a container runs as, if that is not ours."""

    uid: int
    gid: int


def become(owner: Owner | None) -> None:
    """Be that user for good; no program that follows can get more rights than this one has."""
    _call("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if owner is not None:
        os.setgroups([])
        os.setresgid(owner.gid, owner.gid, owner.gid)
        os.setresuid(owner.uid, owner.uid, owner.uid)


def unshare() -> None:
    """Create new namespaces: the next child is their first process.

    Root needs no user namespace; any other user keeps its own id inside.
    """
    sandbox = _NEW_MOUNT | _NEW_UTS | _NEW_PID
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        try:
            _call("unshare", sandbox)
        except OSError:
            pass
        else:
            return
    _call("unshare", sandbox | _NEW_USER)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")


def enter(pid: int) -> None:
    """Enter the mount namespace of a child process."""
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


def build(
    root: str,
    *,
    hostname: str,
    mounts: Sequence[Mapping[str, Any]],
    directories: Iterable[str] = (),
    private_tmp: str,
    hidden: Mapping[str, Sequence[str]] | None = None,
    owner: Owner | None = None,
) -> None:
    """Build the sandbox below `root`, move into it, and detach the outer file system.

    Each mount has a source, a target, and perhaps read_only or memory_bytes; a source below
    `inside` is reached without a link, and `as_owner` says that it is left out where the owner
    could not have opened it. `directories` are made if they are missing. `hidden` are paths with
    what is still to be seen below each.
    """
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        table = file.read()
    kept_away = {
        place: below
        for path, below in (hidden or {}).items()
        for place in places_of(os.path.realpath(path), table)
    }
    _call("unshare", _NEW_MOUNT)  # the shim can still enter the outer namespace
    mount("none", "/", None, _RECURSIVE | _PRIVATE)
    mount("tmpfs", root, "tmpfs", 0, "mode=755")
    # Links are followed on the machine: inside they would lead out of the unfinished sandbox.
    mounts = [{**one, "target": os.path.realpath(one["target"])} for one in mounts]
    wanted = {
        **dict.fromkeys(map(os.path.realpath, directories), True),
        **{one["target"]: _is_directory(one) for one in mounts},
        "/tmp": True,
        "/proc": True,
        **dict.fromkeys(_APART if owner is not None else (), True),
    }
    _bind_entries("/", root, wanted, owner)
    _hide_below("/", root, kept_away)
    for path in sorted(wanted, key=lambda path: path.count("/")):
        _make(root + path, is_directory=wanted[path])
    mount("proc", f"{root}/proc", "proc")
    mount(private_tmp, f"{root}/tmp", None, _BIND)
    if owner is not None:
        _keep_apart(root, private_tmp)
    for one in sorted(mounts, key=lambda one: str(one["target"]).count("/")):
        with _source(one, kept_away, owner) as source:
            if source is None:
                continue
            _make(root + one["target"], is_directory=wanted[one["target"]])  # below another mount
            _place(one, source, root + one["target"])
            if source:
                _hide_below(os.path.realpath(source), root + one["target"], kept_away)
    _call("sethostname", hostname.encode(), len(hostname.encode()))
    os.chdir(root)
    _call("pivot_root", b".", b".")
    _call("umount2", b".", _DETACH)
    os.chdir("/")


def places_of(path: str, table: str) -> list[str]:
    """Return every path at which the machine shows a directory: mounts may show it elsewhere, too.

    `table` is what /proc/self/mountinfo says.

    >>> places_of("/a/b", "1 0 8:1 / / rw\\n2 1 8:1 /a /mnt\\\\040x rw\\n3 1 8:2 / /b rw")
    ['/a/b', '/mnt x/b']
    """
    mounts = []
    for line in table.splitlines():
        _, _, device, root, point, *_ = line.split(" ")
        mounts.append((device, _unescaped(root).rstrip("/"), _unescaped(point).rstrip("/")))
    # The last of the deepest is what one sees there.
    launch_context = [one for one in mounts if f"{path}/".startswith(f"{one[2]}/")]
    device, root, point = max(enumerate(launch_context), key=lambda one: (len(one[1][2]), one[0]))[
        1
    ]
    inside = root + path[len(point) :]
    others = (
        point + inside[len(root) :]
        for other, root, point in mounts
        if other == device and f"{inside}/".startswith(f"{root}/")
    )
    return list(dict.fromkeys((path, *others)))


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def _hide_below(source: str, target: str, hidden: Mapping[str, Sequence[str]]) -> None:
    """Hide what is not to be seen of a directory of the machine where a sandbox has it."""
    base = source.rstrip("/")
    for path, shown in sorted(hidden.items()):
        if f"{path}/".startswith(f"{base}/"):
            _hide(path, shown, target + path[len(base) :])


def _hide(path: str, shown: Sequence[str], there: str) -> None:
    """Put something empty over a path of the machine, with a few entries of it."""
    if not os.path.lexists(there):
        return  # the sandbox has its own /tmp
    if not os.path.isdir(there):
        mount("/dev/null", there, None, _BIND)
        return
    mount("tmpfs", there, "tmpfs", 0, "mode=755,size=64k")
    for name in shown:
        if os.path.exists(f"{path}/{name}"):
            _make(f"{there}/{name}", is_directory=False)
            mount(f"{path}/{name}", f"{there}/{name}", None, _BIND)
    mount("none", there, None, _REMOUNT | _BIND | _READ_ONLY)


def _keep_apart(root: str, private_tmp: str) -> None:
    """Give a container of another user what people of one machine usually share."""
    mount(private_tmp, f"{root}/var/tmp", None, _BIND)
    mount("tmpfs", f"{root}/dev/shm", "tmpfs", 0, "mode=1777")
    mount("devpts", f"{root}/dev/pts", "devpts", 0, "newinstance,ptmxmode=0666,mode=0600")
    _make(f"{root}/dev/ptmx", is_directory=False)
    mount(f"{root}/dev/pts/ptmx", f"{root}/dev/ptmx", None, _BIND)


@contextlib.contextmanager
def _source(
    one: Mapping[str, Any], hidden: Mapping[str, Sequence[str]], owner: Owner | None
) -> Iterator[str | None]:
    """Yield a path of what is to be mounted that cannot be redirected; None to leave it out.

    What a pod names itself is opened as the pod's user would, and never below a hidden path: a
    mount passes by the modes of all folders above it.
    """
    if one.get("memory_bytes") is not None:
        yield ""
        return
    handle = -1
    try:
        if one.get("as_owner"):
            handle = _opened_as(one["source"], owner)
            real = os.readlink(f"/proc/self/fd/{handle}") if handle >= 0 else ""
            is_seen = not any(f"{real}/".startswith(f"{path}/") for path in hidden)
            yield f"/proc/self/fd/{handle}" if real and is_seen else None
        elif one.get("inside"):
            below = one["source"][len(one["inside"]) :].strip("/")
            handle = beneath(one["inside"], below.split("/") if below else ())
            yield f"/proc/self/fd/{handle}"
        else:
            yield one["source"]
    finally:
        if handle >= 0:
            os.close(handle)


def _opened_as(path: str, owner: Owner | None) -> int:
    """Return a descriptor of what a user could open; -1 if they could not."""
    if owner is None:
        return os.open(path, os.O_PATH) if os.path.exists(path) else -1
    os.setgroups([])  # this process needs none of ours any more
    os.setegid(owner.gid)
    os.seteuid(owner.uid)
    try:
        return os.open(path, os.O_PATH)
    except OSError:
        return -1
    finally:
        os.seteuid(0)
        os.setegid(0)


def beneath(directory: str, parts: Sequence[str], *, creates: bool = False) -> int:
    """Return a descriptor of something in a directory that others write to.

    No link is followed on the way: a process that writes there could point it anywhere. With
    `creates`, missing directories are made, for every user of a pod to write to.
    """
    handle = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    for part in parts:
        try:
            below = _entered(part, handle, creates=creates)
        finally:
            os.close(handle)
        handle = below
        if stat.S_ISLNK(os.fstat(handle).st_mode):
            os.close(handle)
            raise OSError(errno.ELOOP, f"subPath: {part} is a link, which may lead anywhere")
    return handle


def _entered(part: str, above: int, *, creates: bool) -> int:
    """Return a descriptor of an entry of a directory, which may be a link."""
    if creates:
        try:
            os.mkdir(part, dir_fd=above)
        except FileExistsError:
            pass
        else:
            made = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
            os.fchmod(made, 0o777)  # by what was opened: a name may be another's by now
            return made
    return os.open(part, os.O_PATH | os.O_NOFOLLOW, dir_fd=above)


def _bind_entries(path: str, root: str, wanted: Mapping[str, bool], owner: Owner | None) -> None:
    """Bind the entries of a directory of the machine into the same directory of a sandbox."""
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
                if owner is not None and not _may_enter(entry.stat(), owner):
                    # Its owner's alone; to the others it is empty, and may be mounted into.
                    os.chmod(there, 0o755)
                elif _has_to_grow(here, wanted):
                    _bind_entries(here, root, wanted, owner)
                else:
                    mount(here, there, None, _BIND | _RECURSIVE)
        except OSError:
            # What this user may not see is not in the sandbox either.
            continue


def _may_enter(status: os.stat_result, owner: Owner) -> bool:
    """Say whether a user without other groups may go through a directory."""
    if status.st_uid == owner.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == owner.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


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


def _place(one: Mapping[str, Any], source: str, target: str) -> None:
    size = one.get("memory_bytes")
    if size is not None:
        mount("tmpfs", target, "tmpfs", 0, f"mode=1777,size={size}" if size else "mode=1777")
        return
    mount(source, target, None, _BIND | _RECURSIVE)
    if one.get("read_only"):
        mount_flags = os.statvfs(target).f_flag
        kept = sum(asked for seen, asked in _KEPT_FLAGS if mount_flags & seen)
        mount("none", target, None, _REMOUNT | _BIND | _READ_ONLY | kept)


def probe(root: str) -> None:
    """Build a sandbox once; raise OSError if this machine allows none."""
    unshare()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            build(root, hostname="probe", mounts=(), private_tmp=root)
            code = 0 if os.path.exists("/proc/self") else 1
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise OSError("a sandbox could not be built")
