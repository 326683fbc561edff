"""Pods and jobs of the tests with a real Slurm."""

from __future__ import annotations

import subprocess
import time

from tests.real.slurm.bridged import Both
from tests.real.slurm.daemons import Slurm
from unisono.kube.form import Json


def pod(name: str, *, gpus: int, node: str = "", labels: dict[str, str] | None = None) -> Json:
    """Return a pod that runs until it is deleted; with a node it is there from the beginning."""
    limits = {"nvidia.com/gpu": str(gpus), "cpu": "1", "memory": "1Gi"}
    spec: Json = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "x", "resources": {"limits": limits}}],
    }
    if node:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": labels or {},
            "annotations": {"unisono.dev/run-seconds": "forever"},
        },
        "spec": spec,
    }


def as_user(slurm: Slurm, user: str, command: str) -> subprocess.CompletedProcess[str]:
    """Run a client as another user (only root can)."""
    return subprocess.run(
        ["su", "-s", "/bin/sh", user, "-c", command],
        env=slurm.environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def comment(slurm: Slurm, number: int) -> str:
    """Return a job's AdminComment."""
    shown = slurm("scontrol", "show", "job", str(number))
    return shown.partition("AdminComment=")[2].partition("\n")[0].strip()


def states_of(slurm: Slurm, number: int, seconds: float) -> set[str]:
    """Return every state that a job was seen in for a while."""
    deadline, seen = time.monotonic() + seconds, set()
    while time.monotonic() < deadline:
        seen.add(slurm.job(number))
        time.sleep(0.05)
    return seen


def is_reserved(sides: Both, number: int | str) -> bool:
    """Say whether a job's pods are on exactly the nodes that Slurm gave it."""
    listed = sides.slurm("squeue", "-h", "-a", "-j", str(number), "-o", "%N").strip()
    nodes = sides.slurm("scontrol", "show", "hostnames", listed).split() if listed else []
    return bool(nodes) and sorted(sides.pods(number).values()) == sorted(nodes)


def clear(sides: Both) -> None:
    """End every job, and wait until both sides are empty."""
    sides.slurm.clear()
    for one in sides.objects("pods"):
        if one["metadata"]["namespace"] == "default":
            sides.delete("pods", one["metadata"]["name"])
    sides.until("no gang is left", lambda: not sides.objects("pods"))
