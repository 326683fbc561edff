"""A real Slurm on loopback: munged, slurmctld and one slurmd per node, in a directory of its own.

    with running(Shape(nodes=4)) as slurm:
        slurm("sbatch", "-N4", "--wrap=srun hostname")

Up in about a second, on free ports, and gone with the block or with this process. No root, no
systemd and no cgroups are needed, but only root can submit jobs of other users. GPUs are made of
device files that every machine has. Daemons are started under the names `slurmctld` and `slurmd`:
under any other name they silently drop what slurm.conf says of GPUs.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.real.control_plane import DidNotStart, free_ports
from tests.real.slurm.packages import find, program

_SECONDS_TO_READY = 60
_SECONDS_TO_STOP = 10
_TETHER = Path(__file__).parents[1] / "tether.py"
# cred_expire 5 is the least that Slurm takes: how long a requeued job waits.
_DAEMONS = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool/%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd-%n.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=1024
GresTypes=gpu
MinJobAge=3600
KillWait=2
SlurmctldTimeout=10
SlurmdTimeout=20
"""
_SCHEDULER = (
    "SchedulerParameters=bf_interval=1,batch_sched_delay=0,sched_min_interval=0,sched_interval=5"
)
PARTITION = "PartitionName=main Nodes=ALL Default=YES MaxTime=7-0 State=UP"


@dataclass(frozen=True)
class Shape:
    """What kind of Slurm: its nodes, and lines of slurm.conf besides the usual ones."""

    nodes: int = 4
    cpus: int = 32
    memory_mib: int = 262_144
    gpus: int = 8
    prefix: str = "g-"
    partitions: Sequence[str] = (PARTITION,)
    lines: Sequence[str] = ()
    scheduler: str = _SCHEDULER

    @property
    def names(self) -> list[str]:
        """Return the names of the nodes."""
        return [f"{self.prefix}{number}" for number in range(1, self.nodes + 1)]


@dataclass
class Slurm:
    """A running one, and its clients."""

    directory: Path
    shape: Shape
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def conf(self) -> Path:
        """Return slurm.conf."""
        return self.directory / "slurm.conf"

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of a client."""
        kept = {name: text for name, text in os.environ.items() if not name.startswith("SLURM")}
        return {**kept, "SLURM_CONF": str(self.conf)}

    def __call__(self, *command: str, stdin: str = "") -> str:
        """Run a client and return what it printed; fail as it fails."""
        done = self.tried(*command, stdin=stdin)
        assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stderr}"
        return done.stdout

    def tried(self, *command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a client, whatever comes of it."""
        return subprocess.run(
            [program(command[0]), *command[1:]],
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd="/tmp",
        )

    def submit(self, *options: str, script: str = "sleep 600") -> int:
        """Submit a batch job and return its number."""
        said = self(
            "sbatch", "--parsable", "--output=/dev/null", *options, stdin=f"#!/bin/sh\n{script}\n"
        )
        return int(said.split(";")[0])

    def job(self, number: int | str, field: str = "%T") -> str:
        """Return one field of a job, in squeue's letters."""
        return self("squeue", "-h", "-a", "-t", "all", "-j", str(number), "-o", field).strip()

    def shown(self, number: int) -> dict[str, str]:
        """Return the fields of a job (only for jobs whose texts have no spaces)."""
        words = self("scontrol", "-o", "show", "job", str(number)).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def node(self, name: str) -> dict[str, str]:
        """Return the fields of a node."""
        words = self("scontrol", "-o", "show", "node", name).split(" ")
        found = dict(word.split("=", 1) for word in words if "=" in word)
        found["Reason"] = self("sinfo", "-h", "-N", "-n", name, "-o", "%E").strip()
        return found

    def until(self, what: str, number: int | str, *states: str, seconds: float = 90.0) -> str:
        """Wait until a job is in one of these states, and return which."""
        deadline = time.monotonic() + seconds
        while (state := self.job(number)) not in states:
            assert time.monotonic() < deadline, f"{what}: {self.job(number, '%T %r')}"
            time.sleep(0.1)
        return state

    # ---- daemons -----------------------------------------------------------------------------

    def start(self, name: str, *flags: str) -> None:
        """Start a daemon under its own name."""
        kind = name.partition("-")[0]
        tether = [sys.executable, "-S", str(_TETHER), str(os.getpid())]
        with (self.directory / f"{name}.out").open("ab") as out:
            self.processes[name] = subprocess.Popen(
                [*tether, program(kind), *flags],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=self.directory,
                env=self.environment,
            )

    def stop(self, name: str, number: signal.Signals = signal.SIGTERM) -> None:
        """End a daemon."""
        process = self.processes.pop(name)
        process.send_signal(number)
        process.wait(timeout=_SECONDS_TO_STOP)

    def start_controller(self) -> None:
        """Start slurmctld; what it saved before counts."""
        self.start("slurmctld", "-D", "-f", str(self.conf))

    def start_node(self, name: str) -> None:
        """Start the daemon of a node."""
        (self.directory / "spool" / name).mkdir(parents=True, exist_ok=True)
        self.start(f"slurmd-{name}", "-D", "-f", str(self.conf), "-N", name)

    def wait_until_idle(self) -> None:
        """Wait until every node is there."""
        deadline = time.monotonic() + _SECONDS_TO_READY
        while self.tried("sinfo", "-h", "-t", "idle", "-o", "%D").stdout.strip() != str(
            self.shape.nodes
        ):
            if time.monotonic() > deadline or self.processes["slurmctld"].poll() is not None:
                log = self.directory / "slurmctld.log"
                told = log.read_text() if log.exists() else ""
                raise DidNotStart(told[-2000:] + (self.directory / "slurmctld.out").read_text())
            time.sleep(0.05)

    def wait_until_answering(self) -> None:
        """Wait until slurmctld answers."""
        deadline = time.monotonic() + _SECONDS_TO_READY
        while self.tried("scontrol", "ping").returncode:
            assert time.monotonic() < deadline, "slurmctld does not answer"
            time.sleep(0.05)

    def clear(self) -> None:
        """End every job and wait until no node is busy."""
        self.tried("scancel", "--me")
        for user in {line.strip() for line in self("squeue", "-h", "-o", "%u").splitlines()}:
            self.tried("scancel", "-u", user)
        deadline = time.monotonic() + _SECONDS_TO_STOP
        while self.tried("squeue", "-h").stdout.strip() and time.monotonic() < deadline:
            time.sleep(0.1)


def start_munge(slurm: Slurm) -> None:
    """Start munged with a key of its own."""
    directory = slurm.directory
    key = directory / "munge.key"
    key.touch(mode=0o400)
    key.write_bytes(os.urandom(1024))
    slurm.start(
        "munged",
        "--foreground",
        "--force",
        f"--key-file={key}",
        f"--socket={directory}/munge.socket",
        f"--pid-file={directory}/munge.pid",
        f"--log-file={directory}/munge.log",
        f"--seed-file={directory}/munge.seed",
    )
    deadline = time.monotonic() + _SECONDS_TO_READY
    while not (directory / "munge.socket").exists():
        assert time.monotonic() < deadline, (directory / "munged.out").read_text()
        time.sleep(0.02)


def write_configuration(slurm: Slurm, lines: Sequence[str] = ()) -> None:
    """Write slurm.conf, gres.conf and cgroup.conf."""
    shape, directory = slurm.shape, slurm.directory
    host = socket.gethostname().partition(".")[0]
    controller, *ports = free_ports(1 + shape.nodes)
    conf = _DAEMONS.format(
        host=host,
        port=controller,
        user=pwd.getpwuid(os.getuid()).pw_name,
        directory=directory,
    )
    nodes = [
        f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={shape.cpus} "
        f"RealMemory={shape.memory_mib} Gres=gpu:a100:{shape.gpus} State=UNKNOWN"
        for name, port in zip(shape.names, ports, strict=True)
    ]
    written = [conf, shape.scheduler, *shape.lines, *lines, *nodes, *shape.partitions]
    slurm.conf.write_text("\n".join(written) + "\n")
    files = f"/dev/tty[0-{shape.gpus - 1}]"
    (directory / "gres.conf").write_text(
        "".join(f"NodeName={name} Name=gpu Type=a100 File={files}\n" for name in shape.names)
    )
    (directory / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")


@contextmanager
def directory_for() -> Iterator[Path]:
    """Make a directory with a short name (sockets) that users' jobs can read."""
    directory = Path(tempfile.mkdtemp(prefix="unisono-slurm-", dir="/tmp"))
    directory.chmod(0o755)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def running(shape: Shape) -> Iterator[Slurm]:
    """Run a Slurm without accounting."""
    find()
    with directory_for() as directory:
        slurm = Slurm(directory, shape)
        try:
            start_munge(slurm)
            write_configuration(slurm)
            start_daemons(slurm)
            yield slurm
        finally:
            end(slurm)


def start_daemons(slurm: Slurm) -> None:
    """Start the controller and the nodes, and wait for them."""
    (slurm.directory / "state").mkdir(exist_ok=True)
    slurm.start_controller()
    for name in slurm.shape.names:
        slurm.start_node(name)
    slurm.wait_until_idle()


def end(slurm: Slurm) -> None:
    """End jobs, daemons, and what jobs left behind."""
    if "slurmctld" in slurm.processes:
        with suppress(AssertionError, subprocess.TimeoutExpired):
            slurm.clear()
    for name in list(reversed(slurm.processes)):
        with suppress(subprocess.TimeoutExpired):
            slurm.stop(name, signal.SIGKILL)
    for number in _left_behind(slurm.directory):
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


def _left_behind(directory: Path) -> Iterator[int]:
    """Yield processes that know our slurm.conf: steps and jobs of nodes that were killed."""
    mark = f"SLURM_CONF={directory}/slurm.conf".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            with suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name)
