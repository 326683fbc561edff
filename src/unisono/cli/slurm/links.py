"""`unisono slurm links DIR`: Slurm's programs as a folder to put in front of PATH."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from unisono.cli.slurm_programs import PROGRAMS

NAME = "links"
HELP = "make a folder of Slurm's programs to put in front of PATH"
DESCRIPTION = """\
Make small programs called sbatch, squeue and so on that call `unisono` of the same name, so that
scripts need not change. Other files are never overwritten.

examples:
  unisono slurm links ~/slurm && export PATH=~/slurm:$PATH"""
_MARK = "# made by unisono slurm links"
# Not `-m`, which loads twice as much; and nothing from the folder where a job is submitted (-P).
_CALL = "from unisono.cli.main import main; raise SystemExit(main())"


def add_arguments(one: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    one.add_argument("directory", type=Path, metavar="DIR")


def run(arguments: argparse.Namespace) -> int:
    """Make the folder."""
    directory: Path = arguments.directory
    directory.mkdir(parents=True, exist_ok=True)
    left: list[str] = []
    python = f"{shlex.quote(sys.executable)} -P -c {shlex.quote(_CALL)}"
    for name in PROGRAMS:
        path = directory / name
        if path.is_symlink() or (path.exists() and _MARK not in path.read_text(errors="replace")):
            left.append(name)
            continue
        path.write_text(f'#!/bin/sh\n{_MARK}\nexec {python} {name} "$@"\n')
        path.chmod(0o755)
    for name in left:
        print(f"unisono: {directory / name} is another program and was left alone", file=sys.stderr)
    print(f"export PATH={shlex.quote(str(directory.resolve()))}:$PATH")
    return 1 if left else 0
