"""Every manifest that five published documents print in full, on a stock cluster with ours on it.

`kubectl apply -k deploy` brought the kinds; nothing of Kueue, Volcano, Trainer, JobSet or KubeRay
runs. Jobs and their pods come from our controllers and the stock job controller; pods are bound by
the stock kube-scheduler, but for those that name Volcano's, which are bound by ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.e2e.test_seeds import EXAMPLES, MANIFESTS
from tests.real.by_hand import NODES
from tests.real.cluster import kubectl, kubelets, put, there, until
from tests.real.control_plane import ControlPlane
from tests.real.stage import MOST_PARTIAL_S, WORKLOAD, Stage, staged
from unisono.control import names
from unisono.kube.form import Json
from unisono.kube.mapping import Kind

pytestmark = [pytest.mark.real, pytest.mark.slow]

_RAY_CLUSTER = Kind("ray.io/v1", "RayCluster")
_VOLCANO_JOB = Kind("batch.volcano.sh/v1alpha1", "Job")
# Gangs by namespace and the beginning of their pods' names: how many pods are to have nodes.
_GANGS = {
    ("ml-training", "training-job-"): 4,
    ("default", "pytorch-ddp-training-"): 4,
    ("default", "horovod-training-"): 5,
    ("default", "training-job-"): 1,
    ("default", "t5-large-"): 2,
    ("default", "first-"): 8,
    ("default", "second-"): 4,
    ("team-a", "raycluster-prod-"): 3,
}
# Ours: jobs for the queue of the first document, which leaves theirs out.
_MORE = (
    "seed-000-gang-quota/40-train-jobs.yaml",
    "seed-000-gang-quota/50-train-job-that-waits.yaml",
)


@pytest.fixture(scope="module")
def stage(deployed: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with (
        kubelets(deployed, NODES, speed=0.5),
        staged(deployed, "seeds", tmp_path_factory.mktemp("seeds")) as made,
    ):
        made.auditor.most_gpus = 1000  # queues of the documents; their quotas are looked at below
        made.replica().until_told("leading")
        put(
            deployed, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml-training"}}
        )
        # Volcano's ssh plugin makes keys; that right is given by hand (docs/reference/install.md).
        kubectl(
            deployed,
            *("create", "rolebinding", "unisono-job-keys", "-n", "default"),
            *("--clusterrole", "unisono-job-keys"),
            *("--serviceaccount", "unisono-system:unisono"),
        )
        yield made
        files = [part for name in (*MANIFESTS, *_MORE) for part in ("-f", str(EXAMPLES / name))]
        kubectl(deployed, "delete", "--ignore-not-found", "--wait=false", *files)
        until("nothing of it is left", lambda: there(deployed, names.POD) == [])


def test_all_of_them_are_taken_and_their_gangs_start_whole(stage: Stage) -> None:
    for name in (*MANIFESTS, *_MORE):
        if name.endswith("20-team-a-ray-cluster-prod.yaml"):  # the document waits, too
            until("development runs", lambda: _ray(stage)["raycluster-dev"] == "ready")
        kubectl(stage.plane, "apply", "-f", str(EXAMPLES / name))
    until("what does not fit into its queue is told why", lambda: _is_told(stage))
    until("every gang has its nodes", lambda: _on_nodes(stage) == _GANGS)
    states = {"raycluster-prod": "ready", "raycluster-dev": "suspended"}
    until("production has taken the place of development", lambda: _ray(stage) == states)
    until("Volcano's jobs are over", lambda: set(_volcano(stage)) == {"Completed"})
    assert stage.auditor.wrong == []
    assert stage.auditor.longest_partial_s <= MOST_PARTIAL_S
    assert stage.replicas[0].told("a step failed") is None


def test_pods_went_to_their_nodes_by_the_scheduler_that_they_name(stage: Stage) -> None:
    for pod in _pods(stage):
        is_stock = pod["spec"]["schedulerName"] == "default-scheduler"
        selector = pod["spec"].get("nodeSelector") or {}
        pinned = selector.get(names.HOSTNAME)
        assert pinned == (pod["spec"]["nodeName"] if is_stock else None), pod["metadata"]["name"]


def _is_told(stage: Stage) -> bool:
    """Say whether the job of 8 GPUs, for which 4 are left, has no pods and a reason."""
    for one in there(stage.plane, WORKLOAD, "default"):
        if one["metadata"]["name"].startswith("trainjob-third-"):
            conditions = (one.get("status") or {}).get("conditions") or ()
            return any(
                one["type"] == "QuotaReserved" and "4 more needed" in one["message"]
                for one in conditions
            )
    return False


def _pods(stage: Stage) -> list[Json]:
    return [pod for pod in there(stage.plane, names.POD) if pod["spec"].get("nodeName")]


def _on_nodes(stage: Stage) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for pod in _pods(stage):
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        longest = max(
            (one for one in _GANGS if name.startswith(one[1]) and one[0] == namespace),
            key=lambda one: len(one[1]),
            default=(namespace, name),
        )
        found[longest] += 1
    return found


def _ray(stage: Stage) -> dict[str, str]:
    return {
        one["metadata"]["name"]: (one.get("status") or {}).get("state", "")
        for one in there(stage.plane, _RAY_CLUSTER)
    }


def _volcano(stage: Stage) -> list[str]:
    return [
        ((one.get("status") or {}).get("state") or {}).get("phase", "")
        for one in there(stage.plane, _VOLCANO_JOB)
    ]
