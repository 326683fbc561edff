"""`ssh` between pods without a server: the command runs in the pod that a name stands for.

MPI and Horovod start their parts with `ssh HOST COMMAND`. A small program of that name comes first
on the path of every container; hosts that are not pods go to the real one. Only the standard
library.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import time
from collections.abc import Sequence
from ipaddress import IPv4Address
from pathlib import Path

from unisono.runner.process import exec_socket

# Options of ssh that take a value.
_VALUED = frozenset("bcDEeFIiJLlmOopQRSWwB")
# A pod that was just started needs a moment until it can be entered.
_TRIES = 50
_PAUSE_SECONDS = 0.1
_FIRST, _LAST = IPv4Address("127.64.0.0"), IPv4Address("127.127.255.255")


def destination(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """Return the host and the command of a call of ssh.

    >>> destination(["-x", "-o", "A=b", "-p22", "me@worker-0.job", "env", "X=1", "orted"])
    ('worker-0.job', ['env', 'X=1', 'orted'])
    """
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option == "--":
            break
        if option[-1] in _VALUED and len(option) == 2 and rest:
            rest.pop(0)
    host = rest.pop(0) if rest else ""
    while rest and rest[0].startswith("-"):  # options may come after the host, too
        option = rest.pop(0)
        if option[-1] in _VALUED and len(option) == 2 and rest:
            rest.pop(0)
    return host.rpartition("@")[2], rest


def main(arguments: Sequence[str]) -> int:
    """Run a command in a pod, or hand over to the real ssh."""
    host, command = destination(arguments)
    address = address_of(host)
    if not address:
        return _real(arguments)
    words = ["sh", "-c", " ".join(command)] if command else ["sh", "-i"]
    for left in range(_TRIES, -1, -1):
        try:
            return exec_socket.code_of(exec_socket.send(address, words, [0, 1, 2]))
        except ConnectionRefusedError as error:  # the pod has only just been started
            if not left:
                sys.stderr.write(f"ssh: {host} ({address}): {error.strerror}\n")
        except (BrokenPipeError, ConnectionResetError):  # it hung up on us
            sys.stderr.write(f"ssh: {host} ({address}) is a pod of another user\n")
            break
        time.sleep(_PAUSE_SECONDS)
    return 255


def address_of(host: str) -> str:
    """Return the address of a pod; empty if a host is none."""
    try:
        found = IPv4Address(socket.gethostbyname(host))
    except (OSError, ValueError):
        return ""
    return str(found) if _FIRST <= found <= _LAST else ""


def _real(arguments: Sequence[str]) -> int:
    own = os.path.dirname(os.path.realpath(sys.argv[0]))
    path = [one for one in os.environ.get("PATH", "").split(os.pathsep) if one != own]
    found = shutil.which("ssh", path=os.pathsep.join(path))
    if found is not None:
        os.execv(found, [found, *arguments])
    sys.stderr.write(
        f"ssh: {' '.join(arguments)}: the host is not a pod, and ssh is not installed\n"
    )
    return 255


# Programs of Slurm that scripts call; they are the same inside a job as outside.
_SLURM = ("sbatch", "squeue", "scancel", "sinfo", "scontrol", "sacct", "sprio", "sshare")


def install(directory: Path) -> None:
    """Put the programs that containers call into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    root = Path(__file__).resolve().parents[3]
    for name in _SLURM:
        # Not isolated: these speak to the cluster, with everything that takes.
        _write(
            directory / name,
            f"#!{sys.executable}\n"
            f"import sys\n"
            f"sys.path.insert(0, {str(root)!r})\n"
            f"from unisono.cli.main import main\n"
            f"sys.exit(main([{name!r}, *sys.argv[1:]]))\n",
        )
    for name, module in (("ssh", "remote_shell"), ("rsh", "remote_shell"), ("srun", "steps")):
        text = (
            f"#!{sys.executable} -IS\n"
            f"import sys\n"
            f"sys.path.insert(0, {str(root)!r})\n"
            f"from unisono.runner.process.{module} import main\n"
            f"sys.exit(main(sys.argv[1:]))\n"
        )
        _write(directory / name, text)


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
        path.chmod(0o755)
