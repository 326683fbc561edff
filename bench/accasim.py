"""A peer: AccaSim, a published simulator of batch schedulers in Python.

It is installed into a folder of its own in the user's cache, never beside our dependencies, and run
as a child process on the same jobs, written in the Standard Workload Format (whole seconds). It is
the jobs per processor second of its simulation alone that counts; starting it is not timed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from unisono.sim.trace import Trace

VERSION = "1.1.3"
PACKAGES = (f"accasim=={VERSION}", "sortedcontainers", "psutil")
INSTALL_S = 180
RUN_S = 900  # longer than that is an answer, too
_CHILD = Path(__file__).with_name("accasim_child.py")


class NotRun(Exception):
    """Why there are no figures of the peer."""


@dataclass(frozen=True)
class Run:
    """What one simulation of the peer took."""

    jobs: int
    cpu_s: float
    wait_s: float


def accasim_folder(*, install: bool) -> Path:
    """Return where AccaSim is; fetch it if that is asked for."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "unisono-bench" / f"accasim-{VERSION}"
    if (folder / "accasim").is_dir():
        return folder
    if not install:
        raise NotRun("not installed; a full run of `sim` installs it")
    # What it draws charts with is large and not needed here.
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
    _call([*command, str(folder), *PACKAGES], INSTALL_S, dict(os.environ))
    return folder


def run_accasim(folder: Path, trace: Trace, nodes: int, cpus: int) -> Run:
    """Simulate a trace with EASY on so many nodes of so many processors."""
    with tempfile.TemporaryDirectory(prefix="bench-accasim-") as scratch:
        place = Path(scratch)
        (place / "jobs.swf").write_text(as_swf(trace), encoding="ascii")
        system = {
            "groups": {"all": {"core": cpus}},
            "resources": {"all": nodes},
            "equivalence": {"processor": {"core": 1}},
            "start_time": 0,
        }
        (place / "system.json").write_text(json.dumps(system), encoding="ascii")
        files = [str(place / name) for name in ("jobs.swf", "system.json", "results")]
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        # -P: this folder has a module of the same name.
        printed = _call([sys.executable, "-P", str(_CHILD), *files], RUN_S, environment)
    if not printed.strip():
        raise NotRun("it printed nothing")
    found = Run(**json.loads(printed.splitlines()[-1]))
    if found.jobs != len(trace):
        raise NotRun(f"it read {found.jobs} of {len(trace)} jobs")
    return found


def as_swf(trace: Trace) -> str:
    """Write jobs in the Standard Workload Format; times are whole seconds there, and never 0."""
    columns = zip(
        trace.submit.tolist(),
        trace.run.tolist(),
        trace.request.tolist(),
        trace.pods.tolist(),
        strict=True,
    )
    lines = [f"; MaxProcs: {trace.processors}"]
    for number, (submit, run, request, size) in enumerate(columns, start=1):
        ran = max(1, round(run))
        asked = max(ran, round(request))
        lines.append(
            f"{number} {round(submit)} -1 {ran} {size} -1 -1 {size} {asked} -1 1 1 1 1 1 1 -1 -1"
        )
    return "\n".join(lines) + "\n"


def _call(command: list[str], most_s: float, environment: dict[str, str]) -> str:
    """Return what a process prints; whatever goes wrong is a reason to have no figures."""
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=most_s, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotRun(str(error)) from error
    if done.returncode:
        raise NotRun((done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1])
    return done.stdout
