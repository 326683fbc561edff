"""`srun` inside a batch script: a step over the pods of its job (spec slurm §6).

Tasks are processes in the job's pods, started through exec sockets. Their output comes back through
pipes of ours, line by line, so that lines of different tasks never mix. Only the standard library:
it is started in a bare interpreter, often.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from unisono.runner.process import exec_socket
from unisono.runner.process.remote_shell import address_of
from unisono.slurm.environment import repeated
from unisono.slurm.getopt import BadOption, Option, parse, table
from unisono.slurm.host_list import expand, fold

_OPTIONS = table(
    Option("ntasks", "n"),
    Option("nodes", "N"),
    Option("ntasks-per-node"),
    Option("cpus-per-task", "c"),
    Option("label", "l", "nothing"),
    Option("unbuffered", "u", "nothing"),
    Option("kill-on-bad-exit", "K", "optional"),
    Option("no-kill", "k", "optional"),
    Option("chdir", "D"),
    Option("output", "o"),
    Option("error", "e"),
    Option("input", "i"),
    Option("job-name", "J"),
    Option("nodelist", "w"),
    Option("exclude", "x"),
    Option("relative", "r"),
    Option("distribution", "m"),
    Option("exclusive", "", "optional"),
    Option("exact", "", "nothing"),
    Option("overlap", "", "nothing"),
    Option("gres"),
    Option("gpus", "G"),
    Option("gpus-per-node"),
    Option("gpus-per-task"),
    Option("mem"),
    Option("mem-per-cpu"),
    Option("mpi"),
    Option("cpu-bind"),
    Option("gpu-bind"),
    Option("export"),
    Option("time", "t"),
    Option("partition", "p"),
    Option("account", "A"),
    Option("qos", "q"),
    Option("quiet", "Q", "nothing"),
    Option("verbose", "v", "nothing"),
    Option("multi-prog", "", "nothing"),
    Option("pty", "", "nothing"),
    Option("container-image"),
    Option("container-mounts"),
    Option("container-workdir"),
    Option("container-name"),
    Option("hint"),
    Option("threads-per-core"),
    Option("wait", "W"),
    Option("signal"),
    Option("comment"),
    Option("help", "h", "nothing"),
    Option("version", "V", "nothing"),
)
_TRIES = 100
_PAUSE_SECONDS = 0.1
_PIECE = 1 << 16


class Task(NamedTuple):
    """One process of a step."""

    rank: int
    node: int  # of the job
    local: int


class _Running(NamedTuple):
    task: Task
    connection: socket.socket
    output: int
    errors: int


def main(arguments: Sequence[str]) -> int:
    """Run a step and return the highest exit code of its tasks."""
    try:
        given = parse(arguments, _OPTIONS, ends_at_word=True)
        pods = os.environ["UNISONO_SLURM_PODS"].split()
        if "help" in given.options or not given.words:
            sys.stderr.write("Usage: srun [OPTIONS...] executable [args...]\n")
            return 0 if "help" in given.options else 1
        tasks = placed(given.options, os.environ)
    except KeyError:
        sys.stderr.write("srun: error: no job allocation; srun runs inside sbatch scripts only\n")
        return 1
    except (BadOption, ValueError) as error:
        sys.stderr.write(f"srun: error: {error}\n")
        return 1
    return _Step(given.options, given.words, pods, tasks).run()


def placed(options: Mapping[str, str], environment: Mapping[str, str]) -> list[Task]:
    """Return the tasks of a step, and the nodes of the job that they run on.

    In blocks where there are more tasks than nodes, one after another otherwise; `-m cyclic` and
    `-m block` choose.

    >>> env = {"SLURM_NTASKS": "4", "UNISONO_SLURM_TASKS": "2 2", "SLURM_JOB_NODELIST": "n[1-2]"}
    >>> [(one.rank, one.node, one.local) for one in placed({}, env)]
    [(0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 1)]
    >>> [one.node for one in placed({"ntasks": "3", "nodes": "2"}, env)]
    [0, 0, 1]
    """
    task_counts = [int(one) for one in environment["UNISONO_SLURM_TASKS"].split()]
    hosts = expand(environment.get("SLURM_JOB_NODELIST", "")) or [
        str(n) for n in range(len(task_counts))
    ]
    nodes = list(range(len(task_counts)))
    if options.get("nodelist"):
        wanted = set(expand(options["nodelist"]))
        nodes = [node for node in nodes if hosts[node] in wanted]
        if len(nodes) < len(wanted):
            raise ValueError("Requested nodes are not of this job")
    if options.get("exclude"):
        off = set(expand(options["exclude"]))
        nodes = [node for node in nodes if hosts[node] not in off]
    nodes = nodes[int(options.get("relative") or 0) :]
    if options.get("nodes"):
        count = int(options["nodes"].partition("-")[0])
        if count > len(nodes):
            raise ValueError("Unable to create step: More nodes requested than are in the job")
        nodes = nodes[:count]
    each = int(options.get("ntasks-per-node") or 0)
    if options.get("ntasks"):
        total = int(options["ntasks"])
    elif each:
        total = each * len(nodes)
    elif options.get("nodes") or options.get("nodelist") or options.get("relative"):
        total = sum(max(1, task_counts[node]) for node in nodes)
    else:
        total = int(environment.get("SLURM_NTASKS") or len(nodes))
    if total < len(nodes):
        nodes = nodes[:total]
    shares = _shares(total, nodes, task_counts, options, each)
    kind = options.get("distribution") or environment.get("SLURM_DISTRIBUTION") or ""
    if kind.startswith("cyclic"):
        return _cyclic(nodes, shares)
    made: list[Task] = []
    for node, share in zip(nodes, shares, strict=True):
        made += [Task(len(made) + local, node, local) for local in range(share)]
    return made


def _shares(
    total: int,
    nodes: Sequence[int],
    task_counts: Sequence[int],
    options: Mapping[str, str],
    each: int,
) -> list[int]:
    """Return how many tasks each node gets: as the job has seats, else evenly."""
    own = [task_counts[node] for node in nodes]
    if each:
        return [min(each, max(0, total - each * place)) for place in range(len(nodes))]
    if sum(own) == total:
        return own
    small, more = divmod(total, len(nodes))
    return [small + (place < more) for place in range(len(nodes))]


def _cyclic(nodes: Sequence[int], shares: Sequence[int]) -> list[Task]:
    made: list[Task] = []
    for local in range(max(shares, default=0)):
        for node, share in zip(nodes, shares, strict=True):
            if local < share:
                made.append(Task(len(made), node, local))
    return made


class _Step:
    """A step while it runs."""

    def __init__(
        self,
        options: Mapping[str, str],
        words: Sequence[str],
        pods: Sequence[str],
        tasks: list[Task],
    ) -> None:
        self._options = options
        self._words = list(words)
        self._pods = pods
        self._tasks = tasks
        self._number = _next_step()
        self._selector = selectors.DefaultSelector()
        self._rest: dict[int, bytes] = {}
        self._codes: dict[int, int] = {}
        self._stops = False

    def run(self) -> int:
        """Start all tasks, pass on what they write, and wait for them."""
        running: list[_Running] = []
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop(running))
        try:
            for task in self._tasks:
                running.append(self._start(task))
            self._follow(running)
        except OSError as error:
            sys.stderr.write(f"srun: error: {error.strerror or error}\n")
            self._stop(running)
            return 1
        return max(self._codes.values(), default=0)

    def _start(self, task: Task) -> _Running:
        own_out, out = os.pipe()
        own_err, err = os.pipe()
        given = os.open(self._options.get("input") or "/dev/null", os.O_RDONLY)
        if task.rank == 0 and "input" not in self._options:
            os.close(given)
            given = os.dup(0)
        address = address_of(self._pods[task.node])
        try:
            connection = _sent(
                address,
                self._words,
                [given, out, err],
                self._environment(task),
                self._options.get("chdir") or os.getcwd(),
            )
        finally:
            for handle in (out, err, given):
                os.close(handle)
        made = _Running(task, connection, own_out, own_err)
        for handle in (own_out, own_err):
            self._selector.register(handle, selectors.EVENT_READ, made)
            self._rest[handle] = b""
        self._selector.register(connection, selectors.EVENT_READ, made)
        return made

    def _environment(self, task: Task) -> dict[str, str]:
        hosts = expand(os.environ.get("SLURM_JOB_NODELIST", ""))
        nodes = list(dict.fromkeys(one.node for one in self._tasks))
        used = [hosts[node] if node < len(hosts) else str(node) for node in nodes]
        counts = [sum(one.node == node for one in self._tasks) for node in nodes]
        ranks = ",".join(str(one.rank) for one in self._tasks if one.node == task.node)
        kept = {
            name: value
            for name, value in os.environ.items()
            if name
            not in (
                "SLURMD_NODENAME",
                "SLURM_TOPOLOGY_ADDR",
                "HOSTNAME",
                "CUDA_VISIBLE_DEVICES",
                "UNISONO_POD_UID",
            )
        }
        return kept | {
            "SLURM_STEP_ID": str(self._number),
            "SLURM_STEPID": str(self._number),
            "SLURM_STEP_NODELIST": fold(used),
            "SLURM_STEP_NUM_NODES": str(len(nodes)),
            "SLURM_STEP_NUM_TASKS": str(len(self._tasks)),
            "SLURM_STEP_TASKS_PER_NODE": repeated(counts),
            "SLURM_STEP_GPUS": os.environ.get("SLURM_JOB_GPUS", ""),
            "SLURM_NTASKS": str(len(self._tasks)),
            "SLURM_NPROCS": str(len(self._tasks)),
            "SLURM_PROCID": str(task.rank),
            "SLURM_LOCALID": str(task.local),
            "SLURM_NODEID": str(nodes.index(task.node)),
            "SLURM_GTIDS": ranks,
            "SLURM_LAUNCH_NODE_IPADDR": address_of(self._pods[0]),
            "SLURM_SRUN_COMM_HOST": address_of(self._pods[0]),
            "SLURM_DISTRIBUTION": self._options.get("distribution") or "block",
            "SLURM_UMASK": "0022",
        }

    def _follow(self, running: list[_Running]) -> None:
        files = _Files(self._options)
        while self._selector.get_map():
            for key, _ in self._selector.select():
                one: _Running = key.data
                if key.fileobj is one.connection:
                    self._ended(one, running)
                    continue
                handle = key.fd
                piece = os.read(handle, _PIECE)
                self._rest[handle] += piece
                lines = self._rest[handle].split(b"\n")
                self._rest[handle] = lines.pop()
                if not piece:
                    lines += [self._rest[handle]] if self._rest[handle] else []
                    self._selector.unregister(handle)
                    os.close(handle)
                if lines:
                    files.write(one.task, b"\n".join(lines) + b"\n", is_error=handle == one.errors)

    def _ended(self, one: _Running, running: list[_Running]) -> None:
        self._selector.unregister(one.connection)
        code = exec_socket.code_of(one.connection)
        self._codes[one.task.rank] = code
        if code and not self._stops:
            host = os.environ.get("SLURM_JOB_NODELIST", "")
            what = f"Exited with exit code {code}"
            names = expand(host)
            node = names[one.task.node] if one.task.node < len(names) else ""
            sys.stderr.write(f"srun: error: {node}: task {one.task.rank}: {what}\n")
            if self._options.get("kill-on-bad-exit", "0") != "0":
                self._stop(running)

    def _stop(self, running: list[_Running]) -> None:
        """End all tasks: a shim ends a command when its client closes the connection."""
        self._stops = True
        for one in running:
            if one.task.rank not in self._codes:
                try:
                    one.connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue


class _Files:
    """Where the output of tasks goes."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._is_labelled = "label" in options
        self._names = options.get("output", ""), options.get("error", "")
        self._open: dict[str, int] = {}

    def write(self, task: Task, lines: bytes, *, is_error: bool) -> None:
        if self._is_labelled:
            mark = f"{task.rank}: ".encode()
            lines = b"".join(mark + line + b"\n" for line in lines.split(b"\n")[:-1])
        name = self._names[1] or self._names[0] if is_error else self._names[0]
        handle = self._handle(name, task) if name else 2 if is_error else 1
        while lines:
            lines = lines[os.write(handle, lines) :]

    def _handle(self, name: str, task: Task) -> int:
        from unisono.slurm.file_names import file_name

        signs = {
            "j": os.environ.get("SLURM_JOB_ID", "0"),
            "s": os.environ.get("SLURM_STEP_ID", "0"),
            "t": str(task.rank),
            "n": str(task.node),
            "x": os.environ.get("SLURM_JOB_NAME", ""),
            "u": os.environ.get("SLURM_JOB_USER", ""),
        }
        path = file_name(name, signs)
        if path not in self._open:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            self._open[path] = os.open(path, flags, 0o644)
        return self._open[path]


def _next_step() -> int:
    """Return the number of this step: how many the job had before, counted in its own folder."""
    folder = os.path.join("/tmp", f"unisono-steps-{os.environ.get('SLURM_JOB_ID', '0')}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    number = 0
    while True:
        try:
            os.close(os.open(os.path.join(folder, str(number)), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            number += 1
        else:
            return number


def _sent(
    address: str, words: Sequence[str], handles: Sequence[int], env: Mapping[str, str], cwd: str
) -> socket.socket:
    """Start a command in a pod; one that was just started needs a moment."""
    for left in range(_TRIES, -1, -1):
        try:
            return exec_socket.send(address, words, handles, env=env, cwd=cwd)
        except ConnectionRefusedError:
            if not left:
                raise
        time.sleep(_PAUSE_SECONDS)
    raise AssertionError("unreachable")
