"""The program that supervises one run of a container: starts it, writes its log, ends it.

    unisono ──launch (JSON on stdin)──▶ shim ──▶ the container's process (and all its children)
       │  SIGTERM: pass it on              │
       └─ SIGUSR2: end everything now      ├─▶ state.json  its own pid and start, to be found again
                                           ├─▶ NAME.log    the container's output, lines with times
                                           └─▶ exit.json   how it ended

It is a process of its own, so that a container outlives a restart of the runner and its exit code
is never lost. Only the standard library, in a bare interpreter: it is up within 30 ms.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

if __name__ == "__main__":  # a bare interpreter knows nothing of this package yet
    sys.path.insert(0, os.path.abspath(f"{__file__}/../../../.."))

from unisono.runner.process import sandbox
from unisono.runner.process.exec_socket import ExecServer
from unisono.runner.process.process_tree import descendants, memory_of, start_of

STOP, KILL = signal.SIGTERM, signal.SIGUSR2
_QUIETED = (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)
# How often memory is measured. Slower than the kernel would be, but it never misses a leak.
_WATCH_SECONDS = 1.0
# How long to wait for the log's end after all processes were killed.
_DRAIN_SECONDS = 1.0
_NOT_FOUND, _NOT_EXECUTABLE, _NOT_STARTED = 127, 126, 128
_MESSAGE_BYTES = 4096
# A line longer than this is written in pieces.
_LONGEST_LINE = 16 << 10
# Enough for the last lines with their times.
_TAIL_BYTES = 64 << 10
_NANO = 1_000_000_000

Launch = Mapping[str, Any]


class Shim:
    """One run."""

    def __init__(self, launch: Launch) -> None:
        """Take what to start."""
        self._launch = launch
        self._log = LogFile(launch["log"], launch["log_bytes"], launch["log_files"])
        self._main = 0
        self._status: int | None = None
        self._failure = b""
        self._is_out_of_memory = False
        owners = (launch["owner"][0],) if launch["owner"] else ()
        self._exec_server = ExecServer(launch["exec_names"], self._run_exec, owners)

    def run(self) -> None:
        """Run it to its end."""
        launch = self._launch
        wake, bell = os.pipe()
        os.set_blocking(bell, False)
        signal.set_wakeup_fd(bell, warn_on_full_buffer=False)
        for number in (STOP, KILL, signal.SIGCHLD):
            signal.signal(number, _on_signal)
        for number in _QUIETED:
            signal.signal(number, signal.SIG_IGN)
        with contextlib.suppress(OSError, AttributeError):
            sandbox.become_subreaper()
        started = time.time_ns() / 1e9
        _put(launch["directory"], "state.json", {**_me(), "run": launch["run"], "since": started})
        for note in launch["notes"]:
            self._log.line(note.encode())
        output, failure = self._start()
        self._watch(wake, output, failure)
        self._log.close()
        code, reason, message = self._end()
        exit_: dict[str, Any] = {"run": launch["run"], "since": started, "code": code}
        exit_ |= {"at": time.time_ns() / 1e9, "reason": reason, "message": message}
        _put(launch["directory"], "exit.json", exit_)

    # ---- starting -----------------------------------------------------------------------------

    def _start(self) -> tuple[int, int]:
        """Start the container's process; return where it writes, and where its failure shows."""
        output, its_output = os.pipe()
        failure, its_failure = os.pipe()
        # A signal that comes before the container has its handlers is held back.
        signal.pthread_sigmask(signal.SIG_BLOCK, {STOP})
        try:
            if self._launch["tier"]:
                sandbox.unshare()
            self._main = os.fork()
        except OSError as error:
            os.write(its_failure, f"{_NOT_STARTED} {error}".encode())
            self._status = 0
        if self._main == 0 and self._status is None:
            self._begin(its_output, its_failure)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {STOP})
        os.close(its_output)
        os.close(its_failure)
        return output, failure

    def _begin(self, output: int, failure: int) -> NoReturn:
        """Become the container, in a new process."""
        launch = self._launch
        code = _NOT_STARTED
        try:
            with contextlib.suppress(OSError, AttributeError):
                sandbox.die_with_parent(signal.SIGKILL)
            signal.set_wakeup_fd(-1)
            if launch["tier"]:
                _build_sandbox(launch)
                _run_init(launch, output)
            _become(launch, output)
        except FileNotFoundError:
            code, words = _NOT_FOUND, f'exec: "{launch["argv"][0]}": executable file not found'
        except PermissionError:
            code, words = _NOT_EXECUTABLE, f'exec: "{launch["argv"][0]}": permission denied'
        except OSError as error:
            words = f"{error.strerror or error} {error.filename or ''}".strip()
        os.write(failure, f"{code} {words}".encode())
        os._exit(code)

    # ---- watching -----------------------------------------------------------------------------

    def _watch(self, wake: int, output: int, failure: int) -> None:
        """Write the log, forward signals and run exec commands until the container is gone."""
        listening = selectors.DefaultSelector()
        listening.register(wake, selectors.EVENT_READ, lambda: self._answer(os.read(wake, 64)))
        listening.register(output, selectors.EVENT_READ, lambda: take(output, self._log.write))
        listening.register(failure, selectors.EVENT_READ, lambda: take(failure, self._note_failure))
        open_ends = {output, failure}

        def take(descriptor: int, use: Callable[[bytes], None]) -> None:
            data = os.read(descriptor, 1 << 16)
            if data:
                use(data)
            else:
                listening.unregister(descriptor)
                open_ends.discard(descriptor)

        def lose(client: socket.socket) -> None:
            listening.unregister(client)
            self._exec_server.client_closed(client)

        def accept(listener: socket.socket) -> None:
            client = self._exec_server.accept(listener)
            if client is not None:
                listening.register(client, selectors.EVENT_READ, lambda: lose(client))

        for listener in self._exec_server.listeners:
            listening.register(listener, selectors.EVENT_READ, lambda one=listener: accept(one))
        measures = bool(self._launch["memory_bytes"])
        drained_by = 0.0
        while self._status is None or open_ends:
            wait = _WATCH_SECONDS if measures or self._status is not None else None
            for key, _ in listening.select(wait):
                key.data()
            if self._status is None and measures:
                self._measure()
            if self._status is not None:
                drained_by = drained_by or time.monotonic() + _DRAIN_SECONDS
                self._end_all()
                if time.monotonic() > drained_by:
                    return

    def _note_failure(self, data: bytes) -> None:
        self._failure += data

    def _run_exec(self, request: Launch) -> NoReturn:
        """Become an exec command of the container, in a new process."""
        launch = self._launch
        if launch["tier"]:
            sandbox.enter(self._main)
            sandbox.become(_owner(launch))
        _default_signals()
        env = {**launch["env"], **request["env"]}
        os.chdir(request["cwd"] or launch["cwd"])
        os.execve(_program(request["argv"][0], env.get("PATH", os.defpath)), request["argv"], env)

    def _answer(self, signals: bytes) -> None:
        """Do what signals ask for."""
        if STOP in signals and self._status is None:
            self._signal(STOP)
        if KILL in signals:
            self._end_all()
        self._reap()

    def _signal(self, number: int) -> None:
        """Pass a signal on: to the first process of a sandbox, or to the process and its group."""
        try:
            if not self._launch["tier"]:
                os.killpg(self._main, number)
                return
        except ProcessLookupError:
            pass  # it has no group yet
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._main, number)

    def _end_all(self) -> None:
        """Kill everything that came of the container, and whatever came of that meanwhile."""
        for _ in range(1000):
            living = descendants(os.getpid())
            if not living:
                break
            for pid in living:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            self._reap()
            time.sleep(0.002)
        self._reap()

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._main:
                self._status = status
            else:
                self._exec_server.ended(pid, status)

    def _measure(self) -> None:
        used = sum(map(memory_of, descendants(os.getpid())))
        if used > self._launch["memory_bytes"]:
            self._is_out_of_memory = True
            self._end_all()

    # ---- the end ------------------------------------------------------------------------------

    def _end(self) -> tuple[int, str, str]:
        """Return the exit code, the reason if it is not the usual one, and a message."""
        if self._failure:
            number, _, words = self._failure.decode(errors="replace").partition(" ")
            return int(number), "StartError" if int(number) == _NOT_STARTED else "", words
        assert self._status is not None
        code = os.waitstatus_to_exitcode(self._status)
        code = 128 - code if code < 0 else code
        if self._is_out_of_memory:
            return 137, "OOMKilled", ""
        message = _read(f"{self._launch['directory']}/message")
        if not message and code and self._launch["says_log_on_error"]:
            message = self._log.tail(_MESSAGE_BYTES // 2)
        return code, "", message


def _build_sandbox(launch: Launch) -> None:
    """Build the sandbox of a container."""
    directory = launch["directory"]
    message = f"{directory}/message"
    mounts = [*launch["mounts"], {"source": message, "target": launch["message_path"]}]
    if launch["hosts"]:
        mounts.append({"source": launch["hosts"], "target": "/etc/hosts"})
    try:
        sandbox.build(
            f"{directory}/root",
            hostname=launch["hostname"],
            mounts=mounts,
            directories=[launch["cwd"]],
            private_tmp=f"{directory}/tmp",
            hidden=launch["hidden"],
            owner=_owner(launch),
        )
    except OSError as error:  # a missing volume is not a missing command
        raise OSError(f"{error.strerror or error} {error.filename or ''}".strip()) from error


def _owner(launch: Launch) -> sandbox.Owner | None:
    """Return the system user of a container; None if it is ours."""
    return sandbox.Owner(*launch["owner"]) if launch["owner"] else None


def _run_init(launch: Launch, output: int) -> NoReturn:
    """Be the init process of a sandbox: forward signals, reap orphans, exit with the container."""
    passed = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
    signals = {*passed, signal.SIGCHLD, signal.SIGQUIT, signal.SIGCONT, signal.SIGWINCH}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    main = os.fork()
    if main == 0:
        _become(launch, output)
    os.closerange(0, 1024)  # the log ends when the container does, whatever we hold
    while True:
        number = signal.sigwait(signals)
        if number != signal.SIGCHLD:
            with contextlib.suppress(ProcessLookupError):
                os.kill(main, number)
            continue
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                os._exit(0)
            if pid == 0:
                break
            if pid == main:
                code = os.waitstatus_to_exitcode(status)
                os._exit(128 - code if code < 0 else code)


def _become(launch: Launch, output: int) -> NoReturn:
    """Turn this process into the container's."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    _default_signals()
    if launch["tier"]:
        sandbox.become(_owner(launch))
    _enter(launch)
    if not launch["argv"]:
        while True:
            signal.pause()
    env = dict(launch["env"])
    os.execve(_program(launch["argv"][0], env.get("PATH", os.defpath)), list(launch["argv"]), env)


def _default_signals() -> None:
    """Restore the default signal handlers, as a new process has them."""
    signal.set_wakeup_fd(-1)
    for number in (*_QUIETED, STOP, KILL, signal.SIGCHLD, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _program(name: str, path: str) -> str:
    """Return the file of a program; directories that one may not look into have none."""
    if "/" in name:
        return name
    for directory in path.split(os.pathsep):
        found = os.path.join(directory, name)
        if os.path.isfile(found) and os.access(found, os.X_OK):
            return found
    raise FileNotFoundError(name)


def _enter(launch: Launch) -> None:
    """Go to the working directory; without a sandbox it may not exist."""
    try:
        os.chdir(launch["cwd"])
    except OSError as error:
        if launch["tier"]:
            raise OSError(f"workingDir {launch['cwd']}: {error.strerror}") from error
        instead = f"{launch['directory']}/tmp"
        os.write(
            1, f"unisono: workingDir {launch['cwd']} does not exist; using {instead}\n".encode()
        )
        os.chdir(instead)


def _on_signal(number: int, frame: object) -> None:
    """Do nothing: signals are read from the wake-up pipe."""


def _me() -> dict[str, int]:
    return {"pid": os.getpid(), "start": start_of(os.getpid())}


def _put(directory: str, name: str, contents: Mapping[str, Any]) -> None:
    """Write a file whole or not at all."""
    path = f"{directory}/{name}"
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(contents, file)
    os.replace(f"{path}.new", path)


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_MESSAGE_BYTES).decode(errors="replace").strip()
    except OSError:
        return ""


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


def main() -> None:
    """Run the launch on stdin, or probe whether sandboxes work."""
    if sys.argv[1:2] == ["--probe"]:
        sandbox.probe(sys.argv[2])
        return
    launch = json.load(sys.stdin)
    Shim(launch).run()


if __name__ == "__main__":
    main()
