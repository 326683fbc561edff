"""How long the program takes to start, as a user feels it: a process from start to exit.

A bare interpreter is measured beside it, because no program in Python starts faster.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial

from bench.harness import Finding, Scale, repeated, row, target, wall_seconds

SIZES: dict[Scale, int] = {"full": 20, "quick": 5, "tiny": 1}
LIMITS_MS = {"unisono --help": 150, "import unisono": 80}

COMMANDS = {
    "unisono --help": ("-m", "unisono", "--help"),
    "import unisono": ("-c", "import unisono"),
    "python alone": ("-c", "pass"),
}


def measure(scale: Scale) -> Iterator[Finding]:
    """Start each program many times."""
    for name, arguments in COMMANDS.items():
        once = partial(_run, arguments)
        once()  # the first start may have to compile modules
        taken = repeated(partial(wall_seconds, once), samples=SIZES[scale], budget_s=10)
        measured = row(name, 1, "process", taken, "ms")
        yield measured
        if name in LIMITS_MS:
            yield target(name, measured, LIMITS_MS[name], better="below")


def _run(arguments: tuple[str, ...]) -> None:
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
