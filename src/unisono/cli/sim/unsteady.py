"""What `unisono sim run` is told about trouble: nodes that fail, and numbers that make no sense."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unisono.engine.model.node import Node
    from unisono.sim.faults import Faults


def faults_of(text: str | None, nodes: tuple[Node, ...], seed: int) -> Faults | None:
    """Return when nodes fail, by settings or by a file."""
    if text is None:
        return None
    from unisono.sim.faults import random_faults, scheduled_faults
    from unisono.sim.traces.files import read_bytes

    names = [node.name for node in nodes]
    if "=" in text and not Path(text).exists():
        return random_faults(text, names, seed)
    lines = read_bytes(Path(text)).decode("utf-8", errors="replace").splitlines()
    return scheduled_faults(lines, names, text)


def check_options(arguments: argparse.Namespace) -> None:
    """Refuse numbers that mean nothing, before anything is read."""
    from unisono.engine.model.errors import InvalidManifest

    least = {"seeds": 1, "jobs": 1, "procs": 0, "checkpoint": 0, "restore": 0}
    for name, value in least.items():
        given = getattr(arguments, name)
        if given is not None and not given >= value:
            raise InvalidManifest(f"--{name}", f"must be at least {value}, and is {given}")
    for name in ("html", "ledger"):  # before minutes of simulation are lost
        path = getattr(arguments, name)
        if path is not None and not Path(path).absolute().parent.is_dir():
            raise InvalidManifest(f"--{name}", f"there is no folder {Path(path).parent}")
    if arguments.restore and not (arguments.checkpoint or arguments.suspend):
        message = "is what going on costs; give --checkpoint or --suspend, too"
        raise InvalidManifest("--restore", message)
    if arguments.faults is not None and (arguments.pools is not None or arguments.fill):
        raise InvalidManifest(
            "--faults", "is of nodes that are there; leave out --pools and --fill"
        )
