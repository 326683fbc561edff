"""An instance of the embedded cluster on disk: its folder, its lock, what it remembers.

DIRECTORY/            0700
  state.db            all objects; its own lock, too
  state.db.acknowledged  up to which version writers were told that theirs is stored
  kubeconfig          0600; how to reach it, with the token
  api.sock            0600; the same API for programs of this machine, without TLS
  tls/                its certificate authority and its certificate
  logs/               what pods wrote
  ledger.db           0600; GPU usage, for reports
  alerts.json         since when alerts have held
  reports/            a report of every week
  web-token           0600; signs people in to the web page
  instance.json       address and process of the running instance, last port
  lock                held by the running process
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unisono.engine.model.errors import InvalidManifest, UnisonoError
from unisono.slurm.client import SOCKET_NAME

# The system users of process pods, first and last: above everything that distributions, systemd and
# /etc/subuid hand out (up to 1,879,048,191), below what a signed number holds; as many as a user's
# subordinate range usually has.
POD_UIDS = (1_900_000_000, 1_900_065_535)


class InstanceError(UnisonoError):
    """The folder of an instance cannot be used; the message says why and what to do."""


def default_directory() -> Path:
    """Return the default folder of an instance."""
    chosen = os.environ.get("UNISONO_DATA_DIR")
    return Path(chosen) if chosen else Path.home() / ".unisono" / "default"


@dataclass(frozen=True, slots=True)
class Instance:
    """The files of one instance."""

    directory: Path

    @property
    def lock_file(self) -> Path:
        """Held by the running process."""
        return self.directory / "lock"

    @property
    def database(self) -> Path:
        """All objects."""
        return self.directory / "state.db"

    @property
    def kubeconfig(self) -> Path:
        """How kubectl reaches it."""
        return self.directory / "kubeconfig"

    @property
    def socket(self) -> Path:
        """Where programs of this machine reach it."""
        return self.directory / SOCKET_NAME

    @property
    def ledger(self) -> Path:
        """The usage ledger."""
        return self.directory / "ledger.db"

    @property
    def alert_timers(self) -> Path:
        """Since when alerts have held, so that a restart does not forget it."""
        return self.directory / "alerts.json"

    @property
    def reports(self) -> Path:
        """What was told of every week."""
        return self.directory / "reports"

    @property
    def tls(self) -> Path:
        """Certificates and keys."""
        return self.directory / "tls"

    @property
    def logs(self) -> Path:
        """What pods wrote."""
        return self.directory / "logs"

    def web_token(self) -> str:
        """Return what signs people in to the web page; made once, readable by the owner alone."""
        path = self.directory / "web-token"
        with contextlib.suppress(FileNotFoundError):
            if token := path.read_text(encoding="utf-8").strip():
                return token
        token = secrets.token_urlsafe(24)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(token)
        return token

    def prepare(self) -> None:
        """Make the folder; refuse one that others can look into."""
        if self.directory.exists() and not self.directory.is_dir():
            raise InvalidManifest("--data-dir", f"{self.directory} is not a folder")
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            message = f"{self.directory} cannot be made: {error.strerror}; choose another"
            raise InstanceError(f"{message} with --data-dir") from error
        found = self.directory.stat()
        if found.st_uid != os.geteuid():
            raise InstanceError(
                f"{self.directory} belongs to user {found.st_uid}, not to {os.geteuid()}; start it "
                "as that user, or choose another folder with --data-dir"
            )
        if not os.access(self.directory, os.W_OK | os.X_OK):
            raise InstanceError(
                f"{self.directory} cannot be written to; make it writable, or choose another "
                "folder with --data-dir"
            )
        mode = found.st_mode
        if mode & 0o077:
            raise InstanceError(
                f"{self.directory} is open to others; close it with: chmod 700 {self.directory}"
            )
        if self.kubeconfig.exists() and self.kubeconfig.stat().st_mode & 0o077:
            raise InstanceError(
                f"{self.kubeconfig} holds the key to the cluster and others can read it; close it "
                f"with: chmod 600 {self.kubeconfig}"
            )

    def lock(self) -> int:
        """Take the instance for this process until it ends; return the open file."""
        handle = os.open(self.lock_file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(handle)
            holder = self.pid()
            owner = f"process {holder}" if holder else "another process"
            raise InstanceError(
                f"{self.directory} is in use by {owner}; stop it with: unisono down --data-dir "
                f"{self.directory}"
            ) from error
        return handle

    def is_running(self) -> bool:
        """Say whether a process holds the lock; should that be gone, it also holds the database."""
        return _is_held(self.lock_file) or _is_held(self.database)

    def remembered(self) -> dict[str, Any]:
        """Return what the last process wrote about itself."""
        try:
            found = json.loads((self.directory / "instance.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def remember(self, **values: Any) -> None:
        """Write what others need to know about the running process; whole or not at all."""
        path = self.directory / "instance.json"
        temporary = path.with_suffix(".new")
        try:
            temporary.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
            temporary.replace(path)
        except OSError as error:
            message = f"{path} cannot be written: {error.strerror}"
            raise InstanceError(f"{message}; free some space and start again") from error

    def is_starting(self) -> bool:
        """Say whether a process holds it whose API does not answer yet."""
        return self.is_running() and not self.remembered().get("url")

    def pid(self) -> int:
        """Return the process that runs it; 0 if none is known."""
        pid = self.remembered().get("pid")
        return pid if isinstance(pid, int) else 0


def _is_held(path: Path) -> bool:
    """Say whether another process has locked a file."""
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False
