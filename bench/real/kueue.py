"""Kueue itself with the load of `admissions`: a peer to compare with, if you have built it.

In any Go module that requires `sigs.k8s.io/kueue`, build the program that Kueue measures itself
with, or its manager, and give the command; where the cluster is is added to it:

    go build sigs.k8s.io/kueue/test/performance/scheduler/minimalkueue
    make bench-real ARGS="--quick admissions --kueue ./minimalkueue"
    make bench-real ARGS="--quick admissions --kueue './kueue --config=no-webhooks.yaml'"

It gets servers like ours, with the same definitions of its kinds. The program that drives Kueue's
own test can drive both, instead of what does the same here (see runner.py beside this):

    go build sigs.k8s.io/kueue/test/performance/scheduler/runner
    make bench-real ARGS="--quick admissions --kueue ./minimalkueue --runner ./runner"
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from bench.harness import Finding, Scale
from bench.real.admissions import Drives, driven, findings, ourselves
from bench.real.ground import Ground, ground
from tests.real.cluster import there, until
from unisono.kube.mapping import Kind

_SECONDS_TO_START = 60.0
_LOCAL_QUEUE = Kind("kueue.x-k8s.io/v1beta2", "LocalQueue")


class NoKueue(Exception):
    """Why there are no figures of Kueue."""


def measure(scale: Scale, *, command: str, drives: Drives = ourselves) -> Iterator[Finding]:
    """Drive the load with Kueue in our place."""
    with ground(controllers=()) as place:
        made = driven(place, scale, lambda: _at_work(place, command), drives)
    yield from findings(made, peer="Kueue: ")


def _started(line: list[str], out: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(line, stdout=out, stderr=out)
    except OSError as error:
        raise NoKueue(f"{line[0]}: {error.strerror}") from error


@contextmanager
def _at_work(place: Ground, command: str) -> Iterator[int]:
    """Run it until the block ends; yield its process."""
    log = place.directory / "kueue.log"
    line = [*shlex.split(command), f"--kubeconfig={place.plane.kubeconfig}"]
    with log.open("wb") as out, _started(line, out) as process:

        def works() -> bool:
            if (code := process.poll()) is not None:
                said = log.read_text().strip().splitlines() or ["it said nothing"]
                raise NoKueue(f"it ended with {code}: {said[-1]}")
            # It says of the queue that is there already that it leads nowhere.
            return any((one.get("status") or {}) for one in there(place.plane, _LOCAL_QUEUE))

        try:
            until("Kueue works", works, _SECONDS_TO_START, instead=log.read_text)
            yield process.pid
        finally:
            process.kill()
