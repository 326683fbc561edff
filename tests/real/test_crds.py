"""A real API server accepts every definition, finds it structural, and takes our examples."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.real.cluster import kubectl, there
from tests.real.control_plane import ControlPlane
from tests.real.deployment import until_established
from unisono.cli.install.compare import CRD
from unisono.kinds.shapes.crds import crds_of, custom_groups

pytestmark = pytest.mark.real
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def plane(deployed: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    """Have all of our kinds there, also those that our manifests leave to others."""
    file = tmp_path_factory.mktemp("crds") / "crds.json"
    ours = {one["metadata"]["name"] for one in there(deployed, CRD)}
    items = [one for one in crds_of(custom_groups()) if one["metadata"]["name"] not in ours]
    assert items
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    kubectl(deployed, "apply", "-f", str(file))
    until_established(deployed)
    return deployed


def test_all_of_them_are_structural(plane: ControlPlane) -> None:
    found = json.loads(kubectl(plane, "get", "crd", "-o", "json"))["items"]
    assert len(found) == len(list(crds_of(custom_groups())))
    for definition in found:
        conditions = {one["type"]: one["status"] for one in definition["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}


def test_examples_are_accepted(plane: ControlPlane) -> None:
    kubectl(plane, "create", "namespace", "ml")
    kubectl(plane, "apply", "-f", str(EXAMPLES / "gang/queue.yaml"))
    kubectl(
        plane,
        "apply",
        "-n",
        "ml",
        "-f",
        str(EXAMPLES / "seed-001-kueue-volcano/30-volcano-horovod.yaml"),
    )
    printed = kubectl(plane, "get", "clusterqueues")
    assert printed.split()[:2] == ["NAME", "COHORT"]


def test_what_breaks_a_rule_is_refused_in_our_words(plane: ControlPlane) -> None:
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
        ["kubectl", "--kubeconfig", str(plane.kubeconfig), "apply", "-f", "-"],
        input=json.dumps(queue),
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode != 0
    assert "while reclaimWithinCohort is Never" in answer.stderr
