"""The system user that the pods of one person run as, where several people share an instance.

    a person of the users file with a `uid`     that system user
    any other person                            one of their own out of a range, kept for good
    pods of system controllers                  one for each namespace

The kernel then isolates pods of different people: files, signals, memory, /proc. A number is never
reused, because files on claims still belong to it; that is why the table is a file of the instance.
Root is never used, not even for the owner: a user who may change one of the owner's jobs would be
root.
"""

from __future__ import annotations

import pwd
from collections.abc import Mapping
from pathlib import Path

import msgspec

from unisono.control.actions import Json
from unisono.runner.process.references import CannotStartYet

# Written by the API alone (`apiserver.admission.submitter`).
SUBMITTER = "unisono.dev/submitter"
# The name under which our own controllers write.
_SYSTEM = "system:unisono"


class SystemUser(msgspec.Struct, frozen=True):
    """A system user, as far as a process needs to know it."""

    uid: int
    gid: int
    name: str
    home: str = "/tmp"  # of its own: every container has one


class SystemUsers:
    """The system user of each person."""

    def __init__(self, path: Path, uids: tuple[int, int], given: Mapping[str, int]) -> None:
        """Keep the table in a file.

        `uids` are the first and the last number of the range, `given` those of the users file.
        """
        self._path = path
        self._uids = uids
        self._given = dict(given)
        self._taken = self._read()

    def of(self, pod: Json) -> SystemUser:
        """Return the account of a pod; raise NotYet if the range is used up."""
        metadata = pod["metadata"]
        name = str((metadata.get("annotations") or {}).get(SUBMITTER) or _SYSTEM)
        if name == _SYSTEM:
            name = f"{_SYSTEM}:{metadata.get('namespace', '')}"
        if name in self._given:
            return _known(self._given[name], name)
        uid = self._taken.get(name) or self._take(name)
        return SystemUser(uid=uid, gid=uid, name=name)

    def _take(self, name: str) -> int:
        used = {*self._taken.values(), *self._given.values()}
        first, last = self._uids
        uid = next((one for one in range(first, last + 1) if one not in used), None)
        if uid is None:
            raise CannotStartYet(
                f"no system user is left for {name} in --pod-uids {first}-{last}; start the "
                "instance with a larger range",
                "FailedCreatePodSandBox",
            )
        self._taken[name] = uid
        new = self._path.with_name(f"{self._path.name}.new")
        new.parent.mkdir(parents=True, exist_ok=True)
        new.write_bytes(msgspec.json.encode(self._taken))
        new.replace(self._path)
        return uid

    def _read(self) -> dict[str, int]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, int])
        except FileNotFoundError:
            return {}


def _known(uid: int, name: str) -> SystemUser:
    """Return the account of a number that an operator chose; it may be one of this machine."""
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return SystemUser(uid=uid, gid=uid, name=name)
    return SystemUser(uid=uid, gid=entry.pw_gid, name=entry.pw_name, home=entry.pw_dir)
