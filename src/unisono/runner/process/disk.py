"""The directories of running pods: volumes, states of containers, hosts files.

PODS/uid/hosts                         names, as the pod sees them
PODS/uid/volumes/NAME/                 what lives as long as the pod
PODS/uid/progress/NAME.json            the progress that a container reports
PODS/uid/containers/NAME/record.json   what the run was given (launch.Record)
                         state.json    the process that supervises it (shim)
                         exit.json     how it ended (shim)
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from unisono.runner.process import sandbox
from unisono.runner.process.launch import Plan, Record
from unisono.runner.process.mounts import Files, Volume, wanted_directories

T = TypeVar("T")

_LONGEST_REPORT = 4096  # bytes of a file that are read for its last line


class State(msgspec.Struct, frozen=True):
    """The process that supervises a run."""

    pid: int
    start: int
    run: int
    since: float


class Exit(msgspec.Struct, frozen=True):
    """How a run ended."""

    run: int
    since: float
    at: float
    code: int
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Disk:
    """The directories of running pods."""

    pods: Path

    def prepare(self, plan: Plan) -> None:
        """Have everything there that a run needs; the traces of the run before are gone then."""
        launch = plan.launch
        pod = self.pods / launch.uid
        pod.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.write_hosts(launch.uid, plan.hosts_text)
        for inside, below in wanted_directories(plan.volumes, plan.mounts):
            _directory(Path(inside))
            # One step at a time: pods may have put links there, and we may be root.
            os.close(sandbox.beneath(inside, below.split("/") if below else (), creates=True))
        self.refresh(plan.volumes, launch.owner)
        own = Path(launch.directory)
        for name in ("root", "tmp"):
            (own / name).mkdir(parents=True, exist_ok=True)
        (own / "tmp").chmod(0o1777)
        for name in ("state.json", "exit.json"):
            (own / name).unlink(missing_ok=True)
        (own / "message").write_bytes(b"")
        (own / "message").chmod(0o666)
        _write(own / "record.json", msgspec.json.encode(plan.record))

    def refresh(self, volumes: Iterable[Volume], owner: tuple[int, int] | None = None) -> None:
        """Write the files of volumes that are made of files, all of a volume at once.

        They belong to the pod's system user, and may be readable by that user alone.
        """
        for volume in volumes:
            if volume.files is not None:
                put_files(Path(volume.path), volume.files, owner)

    def write_hosts(self, uid: str, text: str) -> None:
        """Write a pod's hosts file in place: it is the same file that containers have mounted."""
        path = self.pods / uid / "hosts"
        data = text.encode()
        if not path.exists() or path.read_bytes() != data:
            with path.open("r+b" if path.exists() else "xb") as file:
                file.write(data)
                file.truncate()

    def records(self) -> Iterator[tuple[Record, State | None, Exit | None]]:
        """Yield every run that is known of, as it was left."""
        for path in sorted(self.pods.glob("*/containers/*/record.json")):
            record = _read(path, Record)
            if record is not None:
                yield record, self.state(record), self.exit(record)

    def state(self, record: Record) -> State | None:
        """Return the process that supervises a run, if it is recorded."""
        found = _read(self._own(record) / "state.json", State)
        return found if found is not None and found.run == record.run else None

    def exit(self, record: Record) -> Exit | None:
        """Return how a run ended, if it did."""
        found = _read(self._own(record) / "exit.json", Exit)
        return found if found is not None and found.run == record.run else None

    def progress(self, uid: str, container: str) -> tuple[str, float] | None:
        """Return the last whole line in which a container said how far it is, and when."""
        path = self.pods / uid / "progress" / f"{container}.json"
        try:
            # The pod writes this file: a link might lead to files of others, and opening a pipe
            # would block until a writer comes.
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(handle, "rb") as file:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    return None
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - _LONGEST_REPORT))
                lines = file.read().decode(errors="replace").strip().splitlines()
                return (lines[-1], os.fstat(file.fileno()).st_mtime) if lines else None
        except OSError:
            return None

    def remove(self, uid: str) -> None:
        """Forget a pod."""
        shutil.rmtree(self.pods / uid, ignore_errors=True)

    def _own(self, record: Record) -> Path:
        return self.pods / record.uid / "containers" / record.container


def put_files(directory: Path, files: Files, owner: tuple[int, int] | None = None) -> None:
    """Have just these files in a directory; readers see all the old ones or all the new ones.

    As kubelets do it: names are links through `..data`, and that link is moved.
    """
    digest = hashlib.sha256()
    for path, file in sorted(files.items()):
        digest.update(
            b"%s\0%d\0%d\0%s" % (path.encode(), file.mode, len(file.content), file.content)
        )
    version = f"..{digest.hexdigest()[:16]}"
    link = directory / "..data"
    old = os.readlink(link) if link.is_symlink() else ""
    if old == version:
        return
    _directory(directory)
    for path, file in files.items():
        target = directory / version / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(file.mode)
        if owner is not None:
            os.chown(target, *owner)
    (directory / version).mkdir(exist_ok=True)
    new = directory / "..data.new"
    new.unlink(missing_ok=True)
    new.symlink_to(version)
    new.replace(link)
    tops = {path.partition("/")[0] for path in files}
    for top in tops:
        if not (directory / top).is_symlink():
            (directory / top).symlink_to(f"..data/{top}")
    for entry in list(directory.iterdir()):
        if entry.is_symlink() and entry.name not in tops and not entry.name.startswith(".."):
            entry.unlink()
    if old:
        shutil.rmtree(directory / old, ignore_errors=True)


def _directory(path: Path) -> None:
    """Make a directory that every user of a pod may write to."""
    if not path.exists():
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o777)


def _write(path: Path, data: bytes) -> None:
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(data)
    new.replace(path)


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError):
        return None
