"""A cluster to which our manifests have been applied, once for all tests that need one.

kubectl and the API server need twenty seconds of work for that, and a minute on a busy machine. So
one is made for a whole run, and stopped; what its etcd wrote is where all others begin.
"""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path

from tests.real.cluster import kubectl, until
from tests.real.control_plane import ControlPlane, running

_CONDITIONS = ("get", "crd", "--no-headers", "-o", "custom-columns=C:.status.conditions")


def deployed_etcd(shared: Path) -> Path:
    """Return etcd's files of such a cluster; the first test makes them, others wait."""
    done = shared / "deployed-etcd"
    with (shared / "deployed.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            made = shared / "deployed"
            shutil.rmtree(made, ignore_errors=True)  # left by an interrupted run
            made.mkdir()
            _deploy(made)
            (made / "etcd").rename(done)
    return done


def _deploy(directory: Path) -> None:
    with running(directory, controllers=()) as plane:
        kubectl(plane, "apply", "-k", "deploy")
        until_established(plane)
        kubectl(plane, "apply", "-k", "deploy/runtimes")


def until_established(plane: ControlPlane) -> None:
    """Wait until all kinds that were defined are served."""
    # A new definition has no conditions yet, which `kubectl wait` takes for an error.
    until("every kind has conditions", lambda: "<none>" not in kubectl(plane, *_CONDITIONS))
    established = ("--for=condition=Established", "--timeout=240s")
    kubectl(plane, "wait", *established, "crd", "--all")
