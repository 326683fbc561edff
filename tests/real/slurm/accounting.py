"""A real Slurm with accounts: MariaDB and slurmdbd besides the other daemons, on loopback."""

from __future__ import annotations

import os
import pwd
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tests.real.control_plane import free_ports
from tests.real.slurm.daemons import (
    Shape,
    Slurm,
    directory_for,
    end,
    start_daemons,
    start_munge,
    write_configuration,
)
from tests.real.slurm.packages import find, program

_SECONDS = 60.0
_SLURMDBD = """\
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket
DbdAddr=127.0.0.1
DbdHost=localhost
DbdPort={port}
SlurmUser={user}
PidFile={directory}/slurmdbd.pid
LogFile={directory}/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database}
StorageUser=slurm
StoragePass=test
StorageLoc=slurm
"""


@dataclass(frozen=True)
class Account:
    """An account or a user in one, with its shares."""

    name: str
    parent: str = "root"
    shares: int = 1
    is_user: bool = False


@contextmanager
def accounted(
    shape: Shape, accounts: Sequence[Account], qos: dict[str, int], lines: Sequence[str]
) -> Iterator[Slurm]:
    """Run a Slurm whose database has these accounts and QOS."""
    find(accounting=True)
    with directory_for() as directory:
        slurm = Slurm(directory, shape)
        try:
            start_munge(slurm)
            database, port = free_ports(2)
            _start_database(slurm, database)
            write_configuration(
                slurm,
                (
                    "AccountingStorageType=accounting_storage/slurmdbd",
                    "AccountingStorageHost=127.0.0.1",
                    f"AccountingStoragePort={port}",
                    f"AccountingStoragePass={directory}/munge.socket",
                    "AccountingStorageTRES=gres/gpu,gres/gpu:a100",
                    "AccountingStorageEnforce=associations,limits,qos",
                    *lines,
                ),
            )
            _start_slurmdbd(slurm, port, database)
            _fill(slurm, accounts, qos)
            start_daemons(slurm)
            yield slurm
        finally:
            end(slurm)


def _start_database(slurm: Slurm, port: int) -> None:
    data = slurm.directory / "database"
    user = pwd.getpwuid(os.getuid()).pw_name
    subprocess.run(
        [
            *(program("mariadb-install-db"), "--no-defaults", f"--datadir={data}"),
            *(f"--user={user}", "--auth-root-authentication-method=normal", "--skip-test-db"),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    socket = slurm.directory / "db.sock"
    slurm.start(
        "mariadbd",
        *("--no-defaults", f"--datadir={data}", f"--socket={socket}", f"--port={port}"),
        *("--bind-address=127.0.0.1", f"--user={user}", f"--pid-file={slurm.directory}/db.pid"),
        "--innodb-flush-log-at-trx-commit=0",
    )
    statements = (
        "CREATE DATABASE slurm; CREATE USER 'slurm'@'%' IDENTIFIED BY 'test'; "
        "GRANT ALL ON slurm.* TO 'slurm'@'%';"
    )
    _tried(slurm, program("mariadb"), "--no-defaults", f"--socket={socket}", "-e", statements)


def _start_slurmdbd(slurm: Slurm, port: int, database: int) -> None:
    conf = slurm.directory / "slurmdbd.conf"
    conf.touch(mode=0o600)
    user = pwd.getpwuid(os.getuid()).pw_name
    conf.write_text(
        _SLURMDBD.format(directory=slurm.directory, port=port, database=database, user=user)
    )
    slurm.start("slurmdbd", "-D")
    _tried(slurm, program("sacctmgr"), "-i", "-n", "show", "cluster")


def _fill(slurm: Slurm, accounts: Sequence[Account], qos: dict[str, int]) -> None:
    def manage(*words: str) -> None:
        slurm("sacctmgr", "-i", *words)

    manage("add", "cluster", "test")
    for name, priority in qos.items():
        if name != "normal":
            manage("add", "qos", name)
        manage("modify", "qos", name, "set", f"priority={priority}")
    for one in accounts:
        shares = f"fairshare={one.shares}"
        if one.is_user:
            manage("add", "user", one.name, f"account={one.parent}", shares, "cluster=test")
        else:
            manage("add", "account", one.name, f"parent={one.parent}", shares, "cluster=test")
        where = ("user" if one.is_user else "account", one.name)
        manage("modify", *where, "set", f"qos={','.join(qos)}", "defaultqos=normal")


def _tried(slurm: Slurm, *command: str) -> None:
    """Run a command until it works: the daemon that it needs is starting."""
    deadline = time.monotonic() + _SECONDS
    while True:
        done = subprocess.run(
            command, env=slurm.environment, capture_output=True, text=True, timeout=60, check=False
        )
        if done.returncode == 0:
            return
        assert time.monotonic() < deadline, f"{command}: {done.stderr}"
        time.sleep(0.1)
