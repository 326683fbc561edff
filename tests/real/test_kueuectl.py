"""Kueue's own command, unmodified, on `unisono up`: every subcommand, and as a plugin of kubectl.

It is built by `make test-suites ARGS="kueue --kueuectl"`, or named by KUEUECTL.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.cluster import until
from tests.suites.kueue.build import directory
from tests.suites.kueue.cluster import Embedded

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed"),
]

# Each with a priority of its own: jobs of one second have no order that a test could know.
_JOB = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {{name: {name}}}
value: {priority}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  labels: {{kueue.x-k8s.io/queue-name: lq, kueue.x-k8s.io/priority-class: {name}}}
spec:
  suspend: true
  template:
    metadata:
      annotations: {{unisono.dev/run-seconds: forever}}
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: train:1
        resources: {{limits: {{cpu: 1, nvidia.com/gpu: 8}}}}
---
"""


class Kubectl:
    """kubectl with the plugin on its path."""

    def __init__(self, folder: Path, kubeconfig: str) -> None:
        self._environment = {
            "PATH": f"{folder}:{os.environ['PATH']}",
            "HOME": str(folder),
            "KUBECONFIG": kubeconfig,
        }

    def __call__(self, *arguments: str, given: str = "", code: int = 0) -> str:
        """Run it and return what it printed."""
        done = subprocess.run(
            ["kubectl", *arguments],
            input=given,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def workloads(self, *flags: str) -> dict[str, dict[str, str]]:
        """Return the columns of `list workload` by the name of the job."""
        head, *lines = self("kueue", "list", "workload", *flags).splitlines()
        starts = [(head.index(name), name) for name in _COLUMNS]
        ends = [at for at, _ in starts[1:]] + [None]
        rows = [
            {name: line[at:end].strip() for (at, name), end in zip(starts, ends, strict=True)}
            for line in lines
        ]
        return {row["JOB NAME"]: row for row in rows}


_COLUMNS = (
    *("NAME", "JOB TYPE", "JOB NAME", "LOCALQUEUE", "CLUSTERQUEUE", "STATUS"),
    *("POSITION IN QUEUE", "EXEC TIME", "AGE"),
)


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    program = Path(os.environ.get("KUEUECTL") or directory() / "kueuectl")
    if not os.access(program, os.X_OK):
        pytest.skip('no kueuectl; see make test-suites ARGS="kueue --kueuectl"')
    folder = tmp_path_factory.mktemp("kueuectl")
    shutil.copy(program, folder / "kubectl-kueue")
    cluster = Embedded(folder, nodes="2x{gpu=8,cpu=32,memory=128Gi}")
    try:
        made = Kubectl(folder, cluster.begin())
        _create(made)
        yield made
    finally:
        cluster.end()


def _create(kubectl: Kubectl) -> None:
    """Have a queue for one of three jobs."""
    kubectl("kueue", "create", "resourceflavor", "gpu", "--node-labels=kubernetes.io/os=linux")
    quota = "--nominal-quota=gpu:cpu=10;memory=100Gi;nvidia.com/gpu=8"
    kubectl("kueue", "create", "clusterqueue", "cq", quota)
    kubectl("kueue", "create", "localqueue", "lq", "-c", "cq")
    for name, priority in (("a", 3), ("b", 2), ("c", 1)):
        kubectl("apply", "-f", "-", given=_JOB.format(name=name, priority=priority))
        until(f"{name} is queued", lambda name=name: name in kubectl.workloads())  # type: ignore[misc]  # bound now


def test_create_says_what_is_wrong(kubectl: Kubectl) -> None:
    said = kubectl("kueue", "create", "localqueue", "other", "-c", "none", code=1)
    assert 'clusterqueues.kueue.x-k8s.io "none" not found' in said
    said = kubectl("kueue", "create", "localqueue", "other", "-c", "none", "--ignore-unknown-cq")
    assert "localqueue.kueue.x-k8s.io/other created" in said
    kubectl("kueue", "delete", "localqueue", "other")


def test_a_queue_with_every_option(kubectl: Kubectl) -> None:
    flags = (
        *("--cohort", "all", "--queuing-strategy", "StrictFIFO"),
        *("--namespace-selector", "kubernetes.io/metadata.name=default"),
        *("--reclaim-within-cohort", "Any", "--preemption-within-cluster-queue", "LowerPriority"),
        *("--nominal-quota", "gpu:cpu=1", "--borrowing-limit", "gpu:cpu=1"),
        *("--lending-limit", "gpu:cpu=1"),
    )
    kubectl("kueue", "create", "clusterqueue", "other", *flags)
    assert "all" in kubectl("kueue", "list", "clusterqueue")
    changes = ("--type", "merge", "-p", '{"spec":{"cohortName":"some"}}')
    kubectl("kueue", "patch", "clusterqueue", "other", *changes)
    assert "some" in kubectl("kueue", "list", "clusterqueue")
    kubectl("kueue", "delete", "clusterqueue", "other")


def test_lists(kubectl: Kubectl) -> None:
    until("one is admitted", lambda: kubectl.workloads()["a"]["STATUS"] == "ADMITTED")
    found = kubectl.workloads()
    assert {row["CLUSTERQUEUE"] for row in found.values()} == {"cq"}
    assert [found[name]["POSITION IN QUEUE"] for name in ("a", "b", "c")] == ["", "0", "1"]
    assert set(kubectl.workloads("--status", "pending")) == {"b", "c"}
    assert set(kubectl.workloads("--for", "job/a")) == {"a"}
    assert "kubernetes.io/os=linux" in kubectl("kueue", "list", "resourceflavor")
    assert "lq" in kubectl("kueue", "list", "localqueue", "-A")
    until("its pod is there", lambda: "a-" in kubectl("kueue", "list", "pods", "--for", "job/a"))
    assert "Cluster Queue:  cq" in kubectl("kueue", "describe", "localqueue", "lq")


def test_stop_and_resume(kubectl: Kubectl) -> None:
    def status(name: str) -> str:
        return kubectl.workloads()[name]["STATUS"]

    until("one is admitted", lambda: status("a") == "ADMITTED")
    workload = kubectl.workloads()["a"]["NAME"]
    kubectl("kueue", "stop", "workload", workload)
    until("the next one runs", lambda: status("b") == "ADMITTED")
    assert status("a") == "PENDING"
    kubectl("kueue", "resume", "workload", workload)
    until("it queues again", lambda: kubectl.workloads()["a"]["POSITION IN QUEUE"] == "0")
    for kind, name in (("localqueue", "lq"), ("clusterqueue", "cq")):
        kubectl("kueue", "stop", kind, name, "--keep-already-running")
        assert status("b") == "ADMITTED"
        kubectl("kueue", "resume", kind, name)
    kubectl("kueue", "stop", "clusterqueue", "cq")
    until("it is drained", lambda: status("b") == "PENDING")
    kubectl("kueue", "resume", "clusterqueue", "cq")
    until("the first one runs", lambda: status("a") == "ADMITTED")


def test_delete_a_workload_with_its_job(kubectl: Kubectl) -> None:
    workload = kubectl.workloads()["c"]["NAME"]
    assert "jobs.batch/c deleted" in kubectl("kueue", "delete", "workload", workload, "-y")
    until("it is gone", lambda: "c" not in kubectl.workloads())


def test_version(kubectl: Kubectl) -> None:
    assert "Client Version" in kubectl("kueue", "version")
