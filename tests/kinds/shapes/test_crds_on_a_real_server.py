"""A real API server accepts every definition, finds it structural, and takes our examples."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.binaries import NoControlPlane
from tests.real.control_plane import running
from unisono.kinds.shapes.crds import crds_of, custom_groups

pytestmark = pytest.mark.real
EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Start a control plane of our own: others test with one that has no such kinds."""
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl")
    try:
        with running(tmp_path_factory.mktemp("crds"), controllers=()) as plane:
            file = plane.kubeconfig.with_name("crds.json")
            items = list(crds_of(custom_groups()))
            file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
            _kubectl(plane.kubeconfig, "apply", "-f", str(file))
            _kubectl(plane.kubeconfig, "wait", "--for=condition=Established", "crd", "--all")
            yield plane.kubeconfig
    except NoControlPlane as problem:
        pytest.skip(f"no real control plane: {problem}")


def test_all_of_them_are_structural(kubeconfig: Path) -> None:
    found = json.loads(_kubectl(kubeconfig, "get", "crd", "-o", "json"))["items"]
    assert len(found) == len(list(crds_of(custom_groups())))
    for definition in found:
        conditions = {one["type"]: one["status"] for one in definition["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}


def test_examples_are_accepted(kubeconfig: Path) -> None:
    _kubectl(kubeconfig, "create", "namespace", "ml")
    _kubectl(kubeconfig, "apply", "-f", str(EXAMPLES / "gang/queue.yaml"))
    _kubectl(
        kubeconfig,
        "apply",
        "-n",
        "ml",
        "-f",
        str(EXAMPLES / "seed-001-kueue-volcano/30-volcano-horovod.yaml"),
    )
    printed = _kubectl(kubeconfig, "get", "clusterqueues")
    assert printed.split()[:2] == ["NAME", "COHORT"]


def test_what_breaks_a_rule_is_refused_in_our_words(kubeconfig: Path) -> None:
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "wrong"},
        "spec": {
            "preemption": {
                "reclaimWithinCohort": "Never",
                "borrowWithinCohort": {"policy": "LowerPriority"},
            }
        },
    }
    answer = subprocess.run(
        ["kubectl", "--kubeconfig", kubeconfig, "apply", "-f", "-"],
        input=json.dumps(queue),
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode != 0
    assert "while reclaimWithinCohort is Never" in answer.stderr


def _kubectl(kubeconfig: Path, *arguments: str) -> str:
    command = ["kubectl", "--kubeconfig", str(kubeconfig), *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout
