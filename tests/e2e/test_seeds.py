"""What five published documents tell their readers to type, on `unisono up` and with kubectl.

Every manifest that they print in full stands in examples/ word for word; each must be accepted as
it is, with warnings where it says something that would not work elsewhere.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed"),
]

PATIENCE_SECONDS = 60

# What is printed in full, in the order of the documents, and what its author should be told.
MANIFESTS: dict[str, tuple[str, ...]] = {
    "seed-000-gang-quota/00-resource-flavors.yaml": ("spec.nodeSelector: is read as",),
    "seed-000-gang-quota/10-cluster-queue.yaml": (
        "here all flavors of the group share one quota",
        "spec.namespaceSelector: is absent: read as {}",
    ),
    "seed-000-gang-quota/20-local-queue.yaml": (),
    "seed-001-kueue-volcano/00-kueue.yaml": (
        "lists resources in another order than coveredResources",
        "has no quota for cpu and memory",
        "borrowingLimit: has no effect without spec.cohort",
    ),
    "seed-001-kueue-volcano/10-training-job.yaml": ("no node has the labels of flavor",),
    "seed-001-kueue-volcano/20-volcano-pytorch-ddp.yaml": (),
    "seed-001-kueue-volcano/30-volcano-horovod.yaml": ("restartPolicy: is not set",),
    "seed-002-one-scheduler/10-volcano-job.yaml": ("restartPolicy: is not set",),
    "seed-003-preemption/00-kueue.yaml": (),
    "seed-003-preemption/10-team-b-ray-cluster-dev.yaml": (),
    "seed-003-preemption/20-team-a-ray-cluster-prod.yaml": (),
    "seed-004-resilience/10-t5-large.yaml": (),
}


class Cluster:
    """A process of `unisono up`, and kubectl for it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(folder / "data" / "kubeconfig"),
            "KUBECACHEDIR": str(folder / "cache"),
        }
        command = [sys.executable, "-m", "unisono", "up", "--data-dir", str(folder / "data")]
        self._process = subprocess.Popen(
            [*command, "--nodes", "2xg6e.48xlarge"], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip() == "ready":
                return
        raise AssertionError("`unisono up` ended before it was ready")

    def stop(self) -> None:
        self._process.terminate()
        self._process.communicate(timeout=PATIENCE_SECONDS)
        assert self._process.returncode == 0

    def kubectl(self, *arguments: str, editor: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["kubectl", *arguments],
            env={**self._environment, "KUBE_EDITOR": editor},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    def ok(self, *arguments: str, editor: str = "") -> str:
        done = self.kubectl(*arguments, editor=editor)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def get(self, *arguments: str) -> Any:
        return json.loads(self.ok("get", *arguments, "-o", "json"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run a cluster in which the namespaces exist that the documents take for granted."""
    running = Cluster(tmp_path_factory.mktemp("seeds"))
    running.ok("create", "namespace", "ml-training")
    yield running
    running.stop()


@pytest.fixture(scope="module")
def applied(cluster: Cluster) -> dict[str, subprocess.CompletedProcess[str]]:
    """Apply every manifest, once, and return what kubectl said."""
    return {name: cluster.kubectl("apply", "-f", str(EXAMPLES / name)) for name in MANIFESTS}


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.1)


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_is_accepted(
    applied: dict[str, subprocess.CompletedProcess[str]], name: str
) -> None:
    done = applied[name]
    assert done.returncode == 0, done.stderr
    assert all(line.endswith((" created", " configured")) for line in done.stdout.splitlines())
    for warning in MANIFESTS[name]:
        assert warning in done.stderr


def test_applying_again_changes_nothing(
    cluster: Cluster, applied: dict[str, subprocess.CompletedProcess[str]]
) -> None:
    """A repeated apply may still send amounts that are numbers; the version stays."""

    def versions() -> dict[str, str]:
        kinds = "resourceflavors,clusterqueues,localqueues,workloadpriorityclasses"
        items = cluster.get(kinds, "-A")["items"]
        return {each["metadata"]["uid"]: str(each["metadata"]["generation"]) for each in items}

    before = versions()
    for name in MANIFESTS:
        cluster.ok("apply", "-f", str(EXAMPLES / name))
    assert versions() == before


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("clusterqueues", "NAME COHORT PENDING WORKLOADS"),
        ("localqueues", "NAME CLUSTERQUEUE PENDING WORKLOADS ADMITTED WORKLOADS"),
        ("trainjobs", "NAME STATE AGE"),
        (
            "rayclusters.ray.io",
            "NAME DESIRED WORKERS AVAILABLE WORKERS CPUS MEMORY GPUS STATUS AGE",
        ),
        ("jobs.batch.volcano.sh", "NAME STATUS MINAVAILABLE RUNNINGS AGE"),
        ("nodes", "NAME STATUS ROLES AGE VERSION"),
    ],
)
def test_the_columns_are_those_of_upstream(
    cluster: Cluster,
    applied: dict[str, subprocess.CompletedProcess[str]],
    kind: str,
    columns: str,
) -> None:
    head = cluster.ok("get", kind, "-A").splitlines()[0]
    assert " ".join(head.split()).removeprefix("NAMESPACE ") == columns


def test_all_of_them_in_one_command(
    cluster: Cluster, applied: dict[str, subprocess.CompletedProcess[str]]
) -> None:
    kinds = "clusterqueues,localqueues,trainjobs,rayclusters.ray.io,jobs.batch.volcano.sh,nodes"
    text = cluster.ok("get", kinds)
    for name in ("cluster-queue-gpu", "t5-large", "pytorch-ddp-training", "g6e-48xlarge-2"):
        assert name in text


def test_a_field_is_explained(cluster: Cluster) -> None:
    text = cluster.ok("explain", "trainjob.spec.podTemplateOverrides.spec")
    for field in ("nodeSelector\t<map[string]string>", "tolerations\t<[]", "volumes\t<[]"):
        assert field in text
    assert "trainer\t<Object>" in cluster.ok("explain", "trainjob.spec")


def test_nodes_in_columns_of_ones_own(cluster: Cluster) -> None:
    columns = (
        "NAME:.metadata.name, "
        "   INSTANCE:.metadata.labels['node\\.kubernetes\\.io/instance-type'], "
        "   ARCH:.status.nodeInfo.architecture, "
        "   OS:.status.nodeInfo.osImage, "
        "   GPU:.status.capacity['nvidia\\.com/gpu'], "
        "   CAPACITY:.metadata.labels['karpenter\\.sh/capacity-type']"
    )
    head, first, second = cluster.ok("get", "nodes", "-o", f"custom-columns={columns}").splitlines()
    assert head.split() == ["NAME", "INSTANCE", "ARCH", "OS", "GPU", "CAPACITY"]
    assert first.split()[:3] == ["g6e-48xlarge-1", "g6e.48xlarge", "amd64"]
    assert second.split()[-2:] == ["8", "on-demand"]


def test_a_runtime_is_edited(cluster: Cluster, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text(
        "#!/bin/sh\n"
        "sed -i 's/^      replicatedJobs:/      failurePolicy:\\n        maxRestarts: 10\\n&/' $1\n"
    )
    editor.chmod(0o755)
    said = cluster.ok("edit", "clustertrainingruntime", "torch-distributed", editor=str(editor))
    assert said.strip().endswith("/torch-distributed edited")
    runtime = cluster.get("clustertrainingruntime", "torch-distributed")
    assert runtime["spec"]["template"]["spec"]["failurePolicy"]["maxRestarts"] == 10


def test_production_takes_the_place_of_development(
    cluster: Cluster, applied: dict[str, subprocess.CompletedProcess[str]]
) -> None:
    """The third document's last table: one cluster ready, the other suspended."""

    def states() -> dict[str, str]:
        items = cluster.get("rayclusters", "-A")["items"]
        return {each["metadata"]["name"]: each["status"].get("state", "") for each in items}

    eventually(lambda: states() == {"raycluster-prod": "ready", "raycluster-dev": "suspended"})


def test_the_other_commands_of_the_documents(cluster: Cluster) -> None:
    assert "torch-distributed" in cluster.ok("get", "clustertrainingruntimes")
    assert cluster.ok("top", "nodes").split()[0] == "NAME"
    cluster.ok("get", "pods", "-l", "app=slurm-job", "-o", "wide")
    cluster.ok("taint", "nodes", "g6e-48xlarge-1", "nvidia.com/gpu=Exists:NoSchedule")
    cluster.ok("taint", "nodes", "g6e-48xlarge-1", "nvidia.com/gpu-")
    assert "deleted" in cluster.ok("delete", "trainjob", "t5-large")


def test_the_first_and_the_last_example_one_after_the_other(tmp_path: Path) -> None:
    """Both have a TrainJob of one name; each folder can be applied as its page says."""
    cluster = Cluster(tmp_path)
    try:
        cluster.ok("apply", "-f", str(EXAMPLES / "seed-000-gang-quota"))
        eventually(lambda: "t5-large" in cluster.ok("get", "trainjobs", "-o", "name"))
        first = cluster.get("trainjob", "t5-large")["metadata"]["uid"]
        cluster.ok("delete", "trainjob", "t5-large", "--ignore-not-found")
        cluster.ok("apply", "-f", str(EXAMPLES / "seed-004-resilience"))
        assert cluster.get("trainjob", "t5-large")["metadata"]["uid"] != first
        cluster.ok("create", "namespace", "ml-training")
        cluster.ok("apply", "-f", str(EXAMPLES / "seed-001-kueue-volcano"))
    finally:
        cluster.stop()
