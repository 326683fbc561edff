"""`unisono sbatch`, `squeue` and the others: Slurm's programs, called by their names.

Not through argparse, and loading as little as can be: they are called from scripts, many times.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from unisono.cli.slurm_programs import examples_of
from unisono.slurm.client import SOCKET_NAME, ApiAccess, ApiClient, ClientError, access_of
from unisono.slurm.commands.context import Context, Outcome, PlannedStart, PrintAndEnd, Refused
from unisono.slurm.lite_typing import Any


def call(name: str, arguments: Sequence[str]) -> int:
    """Do what a program of Slurm does, and end as it does."""
    collects = gc.isenabled()
    gc.disable()  # it is short-lived, and the collector would walk lists of thousands for nothing
    try:
        return _call(name, arguments)
    finally:
        if collects:  # a caller that lives longer continues
            gc.enable()


def _call(name: str, arguments: Sequence[str]) -> int:
    try:
        outcome = _program(name)(arguments, context())
    except PrintAndEnd as answer:
        outcome = Outcome(f"{answer}\n")
    except Refused as error:
        for line in str(error).splitlines():
            print(f"{name}: error: {line}", file=sys.stderr)
        return error.code
    except ClientError as error:
        print(f"{name}: error: {error}", file=sys.stderr)
        return 1
    if outcome.error:
        sys.stderr.write(outcome.error)
    sys.stdout.write(outcome.text)
    if "--help" in arguments and outcome.code == 0:
        sys.stdout.write(examples_of(name))
    return outcome.code


def _program(name: str) -> Callable[[Sequence[str], Context], Outcome]:
    """Load one program; the others would only cost time."""
    match name:
        case "sbatch":
            from unisono.slurm.commands import sbatch

            return sbatch.run
        case "squeue":
            from unisono.slurm.commands import squeue

            return squeue.run
        case "scancel":
            from unisono.slurm.commands import scancel

            return scancel.run
        case "sinfo":
            from unisono.slurm.commands import sinfo

            return sinfo.run
        case "scontrol":
            from unisono.slurm.commands import scontrol

            return scontrol.run
        case "sprio":
            from unisono.slurm.commands import sprio

            return sprio.run
        case "sshare":
            from unisono.slurm.commands import sshare

            return sshare.run
        case "sacct":
            from unisono.slurm.commands import sacct

            return sacct.run
        case "sdiag":
            from unisono.slurm.commands import sdiag

            return sdiag.run
        case "sreport":
            from unisono.slurm.commands import sreport

            return sreport.run
        case _:
            raise AssertionError(name)


def context() -> Context:
    """Return what this process knows of its surroundings."""
    uid = os.getuid()
    return Context(
        user=_user(uid),
        user_id=uid,
        group_id=os.getgid(),
        host=socket.gethostname().partition(".")[0],
        directory=os.getcwd(),
        environment=os.environ,
        now=time.time_ns() / 1e9,
        connect=connect,
        read=_read,
        dry_run=_rehearse,
        pause=_pause,
        save=_save,
        say=_say,
    )


def _user(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _read(path: str) -> str:
    if path == "-":
        return sys.stdin.read()
    with open(path, encoding="utf-8") as file:
        return file.read()


def _save(path: str, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o700)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)


def _say(text: str) -> None:
    print(text, end="", flush=True)


def _rehearse(api: ApiClient, job: dict[str, Any], now: float) -> PlannedStart:
    from unisono.cli.slurm_programs.test_only import planned_start

    return planned_start(api, job, now)


def _pause(seconds: float) -> float:
    time.sleep(seconds)
    return time.time_ns() / 1e9


def connect(options: Mapping[str, str]) -> ApiClient:
    """Return a client of the cluster that the options, or the environment, choose."""
    environment = os.environ
    if "kubeconfig" in options:
        return ApiClient(_access(options["kubeconfig"], options.get("context", "")))
    directory = options.get("data-dir") or environment.get("UNISONO_DATA_DIR")
    if directory:
        return ApiClient(_access(f"{directory}/kubeconfig", ""))
    if not environment.get("KUBECONFIG"):
        default = os.path.expanduser("~/.unisono/default/kubeconfig")
        if os.path.exists(default):
            return ApiClient(_access(default, ""))
    chosen = environment.get("KUBECONFIG", "")
    if chosen and os.pathsep not in chosen and "context" not in options:
        return ApiClient(_access(chosen, ""))
    return ApiClient(_any_access("", options.get("context", "")))


def _access(path: str, context: str) -> ApiAccess:
    directory = os.path.dirname(path)
    if os.path.exists(f"{directory}/lock") and not os.path.exists(f"{directory}/{SOCKET_NAME}"):
        # An instance that does not answer yet, or a path that is too long for a socket.
        from unisono.cli.connection import wait_for_instance_of

        wait_for_instance_of(path)
    return (access_of(path) if not context else None) or _any_access(path, context)


def _any_access(path: str, context: str) -> ApiAccess:
    """Read any kubeconfig."""
    from unisono.cli.slurm_programs.kubeconfig import api_access

    return api_access(path, context)
