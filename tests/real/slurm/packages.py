"""The programs of a real Slurm: found, or installed where that is possible.

`python -m tests.real.slurm.packages` installs them (root on Debian or Ubuntu); tests only look.
"""

from __future__ import annotations

import os
import shutil
import sys

from tests.real import debian

# No package of them starts a service that a test would meet: tests have daemons of their own.
PACKAGES = (
    "slurmctld",
    "slurmd",
    "slurm-client",
    "munge",
    "slurmdbd",
    "slurm-wlm-mysql-plugin",
    "mariadb-server",
)
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "munged")
ACCOUNTING = ("slurmdbd", "sacctmgr", "mariadbd", "mariadb-install-db")


class NoSlurm(Exception):
    """The programs are missing; the text is one line and says what to do."""


def program(name: str) -> str:
    """Return the path of a program, wherever administrators keep theirs."""
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if path is None:
        raise NoSlurm(f"{name} is not installed; see: python -m tests.real.slurm.packages")
    return path


def find(*, accounting: bool = False) -> None:
    """Raise NoSlurm unless everything is there."""
    for name in (*PROGRAMS, *(ACCOUNTING if accounting else ())):
        program(name)


def install() -> None:
    """Install what is missing."""
    try:
        find(accounting=True)
    except NoSlurm:
        print("slurm: installing it from the distribution (once; a minute)", flush=True)
        try:
            debian.install(PACKAGES, "the tests with a real Slurm")
        except debian.CannotInstall as problem:
            raise NoSlurm(str(problem)) from None


def main() -> int:
    """Install, and say in one line what is wrong if that fails."""
    try:
        install()
    except NoSlurm as problem:
        print(f"slurm: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
