"""The processes of this machine that are containers: started, signalled, waited for, found again.

No decisions here: `kubelet` says what is to run. A container is supervised by a process of its
own (`shim`), which outlives us; after a restart `recover` finds those that still run.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from unisono.runner.containers import EndedRun, RunningRun, RunState, UnknownRun
from unisono.runner.logs import LogFolder
from unisono.runner.process import exec_socket, shim
from unisono.runner.process.disk import Disk, Exit, State
from unisono.runner.process.launch import HostSetup, Plan, Record
from unisono.runner.process.mounts import Volume
from unisono.runner.process.probes import Check
from unisono.runner.process.process_tree import processes_with_variable, start_of

# Where the system cannot tell us that a process ended, we look this often.
_POLL_SECONDS = 0.2
_PROBE_SECONDS = 10.0
# Longer than any grace; a hook that hangs ends with its container.
_HOOK_SECONDS = 3600.0
# A run whose shim has not recorded itself by then was never started.
_START_SECONDS = 2.0
_KILLED = 137
_LOST = "the process that supervised the container is gone"


@dataclass(slots=True)
class _Entry:
    record: Record
    seen: RunState
    pid: int = 0
    child: subprocess.Popen[bytes] | None = None
    watch: int = -1  # a descriptor that is readable when the process has ended
    is_told: bool = False  # to stop
    is_forgotten: bool = False


@dataclass(slots=True)
class Machine:
    """All runs of this instance."""

    host_setup: HostSetup
    now: Callable[[], float]
    is_shared: bool = False  # several people, each with a system user of their own
    on_change: Callable[[str, str], None] = lambda namespace, pod: None
    _entries: dict[tuple[str, str], _Entry] = field(default_factory=dict)
    _answers: dict[tuple[str, str, str], bool] = field(default_factory=dict)

    @property
    def _disk(self) -> Disk:
        return Disk(Path(self.host_setup.pods))

    # ---- looking ------------------------------------------------------------------------------

    def look(self, uid: str, container: str) -> RunState | None:
        """Return how the last run of a container stands; None if there was none."""
        entry = self._entries.get((uid, container))
        return entry.seen if entry is not None else None

    def records(self) -> Iterator[Record]:
        """Yield what every run was given."""
        return iter([entry.record for entry in self._entries.values()])

    def recover(self) -> int:
        """Find the runs of an earlier process of ours; return how many still go on."""
        count = 0
        for record, state, ended in self._disk.records():
            key = (record.uid, record.container)
            if ended is not None:
                self._entries[key] = _Entry(record, _down(ended))
                continue
            entry = self._entries[key] = _Entry(record, UnknownRun(record.run))
            count += self._find(key, entry, state)
        return count

    def _find(self, key: tuple[str, str], entry: _Entry, state: State | None) -> bool:
        """Follow a run that is still there; say whether it is."""
        if state is None:
            # This runner ended just as the run was started; its shim needs a moment to record
            # itself.
            loop = asyncio.get_running_loop()
            loop.call_later(_START_SECONDS, self._find_again, key, entry)
            return False
        entry.seen = RunningRun(state.run, state.since)
        if start_of(state.pid) == state.start:
            entry.pid = state.pid
            self._follow(key, entry)
            if self.is_shared and entry.record.owner is None:
                # It was started when the instance had one owner, as that user (perhaps root) and
                # with that kubeconfig: now any user allowed to exec in it would become the owner.
                self._signal(entry, shim.KILL)
                return False
            return True
        self._kill_leftovers(entry.record.uid)
        self._lose(entry)
        return False

    def _find_again(self, key: tuple[str, str], entry: _Entry) -> None:
        if self._entries.get(key) is not entry:
            return
        state, ended = self._disk.state(entry.record), self._disk.exit(entry.record)
        if ended is not None:
            entry.seen = _down(ended)
        elif state is not None:
            self._find(key, entry, state)
        else:
            del self._entries[key]  # it was never started
        self.on_change(entry.record.namespace, entry.record.pod)

    # ---- doing --------------------------------------------------------------------------------

    def start(self, plan: Plan) -> RunningRun:
        """Start a run."""
        launch = plan.launch
        self._disk.prepare(plan)
        logs = LogFolder(Path(self.host_setup.logs))
        logs.begin(launch.namespace, launch.uid, launch.container, is_restart=launch.run > 0)
        with (
            tempfile.TemporaryFile() as letter,  # it may hold secrets, so it has no name
            open(f"{launch.directory}/shim.err", "ab") as errors,
        ):
            letter.write(msgspec.json.encode(launch))
            letter.seek(0)
            child = subprocess.Popen(
                [sys.executable, "-I", "-S", shim.__file__],
                stdin=letter,
                stdout=errors,
                stderr=errors,
                start_new_session=True,
                cwd="/",
                env={},
            )
        up = RunningRun(launch.run, self.now())
        entry = _Entry(plan.record, up, child.pid, child)
        key = (launch.uid, launch.container)
        self._entries[key] = entry
        self._follow(key, entry)
        return up

    def stop(self, uid: str, container: str, first: Sequence[str] = ()) -> None:
        """Ask a container to stop, once; before that, a command may run in it."""
        entry = self._entries.get((uid, container))
        if entry is None or entry.is_told:
            return
        entry.is_told = True
        if first and isinstance(entry.seen, RunningRun):
            work = asyncio.get_running_loop().run_in_executor(
                None, _hook, _name(entry.record), tuple(first)
            )
            work.add_done_callback(lambda done: self._signal(entry, shim.STOP))
        else:
            self._signal(entry, shim.STOP)

    def ask(self, uid: str, container: str, which: str, check: Check) -> None:
        """Start a probe of a container; `on_change` is called when its result is there."""
        entry = self._entries.get((uid, container))
        if entry is None:
            return

        def answered(done: asyncio.Future[bool]) -> None:
            self._answers[uid, container, which] = not done.cancelled() and done.result()
            self.on_change(entry.record.namespace, entry.record.pod)

        loop = asyncio.get_running_loop()
        loop.run_in_executor(None, holds, check, _name(entry.record)).add_done_callback(answered)

    def answer(self, uid: str, container: str, which: str) -> bool | None:
        """Return an answer that came, once; None if none has come."""
        return self._answers.pop((uid, container, which), None)

    def progress(self, uid: str, container: str) -> tuple[str, float] | None:
        """Return the last line in which a container said how far it is, and when."""
        return self._disk.progress(uid, container)

    def kill(self, uid: str, container: str) -> None:
        """End a container and everything that came of it."""
        entry = self._entries.get((uid, container))
        if entry is not None:
            self._signal(entry, shim.KILL)

    def refresh(self, volumes: list[Volume], owner: tuple[int, int] | None = None) -> None:
        """Bring files of volumes up to date; they belong to a system user, or to us."""
        self._disk.refresh(volumes, owner)

    def write_hosts(self, uid: str, text: str) -> None:
        """Write the hosts file of a pod."""
        with contextlib.suppress(FileNotFoundError):
            self._disk.write_hosts(uid, text)

    def forget(self, uid: str) -> None:
        """End everything of a pod; its directory is removed when no process uses it."""
        for key, entry in self._entries.items():
            if key[0] == uid:
                entry.is_forgotten = True
                self._signal(entry, shim.KILL)
        self._tidy(uid)

    def _tidy(self, uid: str) -> None:
        entries = {key: entry for key, entry in self._entries.items() if key[0] == uid}
        if not any(isinstance(entry.seen, RunningRun) for entry in entries.values()):
            for key in entries:
                del self._entries[key]
            self._disk.remove(uid)

    async def close(self, grace_s: float = 5.0) -> None:
        """Stop everything that runs; after a while, kill it."""
        for entry in self._entries.values():
            self._signal(entry, shim.STOP)
        for number in (shim.STOP, shim.KILL):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    while any(isinstance(one.seen, RunningRun) for one in self._entries.values()):
                        await asyncio.sleep(0.05)
            if number == shim.STOP:
                for entry in self._entries.values():
                    self._signal(entry, shim.KILL)

    # ---- waiting ------------------------------------------------------------------------------

    def _follow(self, key: tuple[str, str], entry: _Entry) -> None:
        """Watch for the end of a run's process."""
        loop = asyncio.get_running_loop()
        try:
            entry.watch = os.pidfd_open(entry.pid)
        except (AttributeError, OSError):
            loop.call_later(_POLL_SECONDS, self._poll, key, entry)
            return
        loop.add_reader(entry.watch, self._ended, key, entry)

    def _poll(self, key: tuple[str, str], entry: _Entry) -> None:
        if _is_alive(entry):
            asyncio.get_running_loop().call_later(_POLL_SECONDS, self._poll, key, entry)
        else:
            self._ended(key, entry)

    def _ended(self, key: tuple[str, str], entry: _Entry) -> None:
        self._unfollow(entry)
        ended = self._disk.exit(entry.record)
        if ended is not None:
            entry.seen = _down(ended)
        else:
            self._kill_leftovers(entry.record.uid)
            self._lose(entry)
        if entry.is_forgotten:
            self._tidy(entry.record.uid)
        elif self._entries.get(key) is entry:
            self.on_change(entry.record.namespace, entry.record.pod)

    def _unfollow(self, entry: _Entry) -> None:
        if entry.watch >= 0:
            asyncio.get_running_loop().remove_reader(entry.watch)
            os.close(entry.watch)
            entry.watch = -1
        if entry.child is not None:
            entry.child.wait()
            entry.child = None

    def _lose(self, entry: _Entry) -> None:
        run = entry.seen.run
        since = self.now() if isinstance(entry.seen, UnknownRun) else entry.seen.since
        entry.seen = EndedRun(run, since, self.now(), _KILLED, "ContainerStatusUnknown", _LOST)

    def _signal(self, entry: _Entry, number: signal.Signals) -> None:
        if isinstance(entry.seen, RunningRun) and _is_alive(entry):
            with contextlib.suppress(ProcessLookupError):
                os.kill(entry.pid, number)

    def _kill_leftovers(self, uid: str) -> None:
        """Kill processes of a pod that have lost their shim."""
        for pid in processes_with_variable(f"UNISONO_POD_UID={uid}".encode()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _name(record: Record) -> str:
    return f"{record.address}/{record.container}"


def _hook(name: str, command: tuple[str, ...]) -> None:
    """Run what is to be done before a stop; whether it went well changes nothing."""
    with contextlib.suppress(OSError):
        run(name, command, _HOOK_SECONDS)


def _is_alive(entry: _Entry) -> bool:
    if entry.child is not None:
        return entry.child.poll() is None
    return entry.pid > 0 and start_of(entry.pid) > 0


def _down(ended: Exit) -> EndedRun:
    return EndedRun(ended.run, ended.since, ended.at, ended.code, ended.reason, ended.message)


def has_sandbox() -> bool:
    """Say whether this machine can sandbox containers (tier 1)."""
    with tempfile.TemporaryDirectory() as root:
        command = [sys.executable, "-I", "-S", shim.__file__, "--probe", root]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_PROBE_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return False
    return done.returncode == 0


def is_port_free(port: int) -> bool:
    """Say whether no process on this machine listens on a port."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("", port))
        except OSError:
            return False
    return True


_GOOD = range(200, 400)


def holds(check: Check, name: str) -> bool:
    """Run a probe and wait for its result; `name` is the container's exec socket."""
    try:
        if check.command:
            return run(name, check.command, check.timeout_s) == 0
        if check.path is None:
            with socket.create_connection((check.host, check.port), check.timeout_s):
                return True
        return _page(check)
    except (OSError, http.client.HTTPException):
        return False


def run(name: str, command: tuple[str, ...], timeout_s: float) -> int:
    """Run a command in a container; return its exit code, 137 if it takes too long."""
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        connection = exec_socket.send(name, command, [nothing] * 3)
    finally:
        os.close(nothing)
    connection.settimeout(timeout_s)
    try:
        return exec_socket.code_of(connection)
    except TimeoutError:
        return 137


def _page(check: Check) -> bool:
    if check.is_secure:
        # A probe asks for any answer: kubelets do not verify certificates either.
        context = ssl._create_unverified_context()
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            check.host, check.port, timeout=check.timeout_s, context=context
        )
    else:
        connection = http.client.HTTPConnection(check.host, check.port, timeout=check.timeout_s)
    try:
        connection.request("GET", check.path or "/", headers=dict(check.headers))
        return connection.getresponse().status in _GOOD
    finally:
        connection.close()
