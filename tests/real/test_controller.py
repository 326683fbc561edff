"""`unisono controller` on a real control plane, beside the stock job controller and scheduler."""

from __future__ import annotations

import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real import older
from tests.real.cluster import (
    account,
    asked,
    kubelets,
    put,
    replica,
    there,
    unisono,
    until,
)
from tests.real.control_plane import CONTROLLERS, ControlPlane, running
from unisono.cli.install.compare import CRD
from unisono.control import names
from unisono.kinds.shapes.crds import crds_of
from unisono.kube.client import Client
from unisono.kube.errors import NotFound, UnknownKind
from unisono.kube.mapping import LEASE, Kind
from unisono.monitor.ledger.accounts import Period
from unisono.monitor.ledger.rows import PodRow, WorkloadRow
from unisono.monitor.ledger.store import LedgerStore
from unisono.runtime.cluster.preconditions import DEPLOYMENT
from unisono.runtime.usage_reports import read

pytestmark = [pytest.mark.real, pytest.mark.slow]

_KUEUE = "kueue.x-k8s.io/v1beta2"
_TRAINER = "trainer.kubeflow.org/v1alpha1"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run a control plane of our own: its controllers and its scheduler act on pods."""
    from tests.real.binaries import NoControlPlane

    directory = tmp_path_factory.mktemp("cluster")
    try:
        with running(
            directory, controllers=(*CONTROLLERS, "job-controller"), has_scheduler=True
        ) as found:
            yield found
    except NoControlPlane as problem:
        pytest.skip(f"no real control plane: {problem}")


def _container() -> dict[str, Any]:
    limits = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "8"}
    return {"name": "node", "image": "train:1", "resources": {"limits": limits}}


def _job(name: str, pods: int, seconds: int) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {names.QUEUE_LABEL: "team"},
        },
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "template": {
                "metadata": {"annotations": {"unisono.dev/run-seconds": str(seconds)}},
                "spec": {"restartPolicy": "Never", "containers": [_container()]},
            },
        },
    }


def _queues(gpus: int) -> list[dict[str, Any]]:
    quota = {"cpu": "1000", "memory": "1000Gi", "nvidia.com/gpu": str(gpus)}
    flavor = {
        "name": "any",
        "resources": [{"name": name, "nominalQuota": text} for name, text in quota.items()],
    }
    group = {"coveredResources": list(quota), "flavors": [flavor]}
    spec = {"namespaceSelector": {}, "resourceGroups": [group]}
    return [
        {"apiVersion": _KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "any"}},
        {"apiVersion": _KUEUE, "kind": "ClusterQueue", "metadata": {"name": "all"}, "spec": spec},
        {
            "apiVersion": _KUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": "team", "namespace": "default"},
            "spec": {"clusterQueue": "all"},
        },
    ]


def _train_job() -> list[dict[str, Any]]:
    annotations = {"unisono.dev/run-seconds": "20"}
    pods = {
        "metadata": {"annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [_container()]},
    }
    ancestor = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    job = {"metadata": {"labels": ancestor}, "spec": {"template": pods}}
    runtime = {
        "mlPolicy": {"numNodes": 2, "torch": {"numProcPerNode": 8}},
        "template": {"spec": {"replicatedJobs": [{"name": "node", "template": job}]}},
    }
    return [
        {
            "apiVersion": _TRAINER,
            "kind": "ClusterTrainingRuntime",
            "metadata": {"name": "torch", "labels": {"trainer.kubeflow.org/framework": "torch"}},
            "spec": runtime,
        },
        {
            "apiVersion": _TRAINER,
            "kind": "TrainJob",
            "metadata": {
                "name": "tune",
                "namespace": "default",
                "labels": {names.QUEUE_LABEL: "team"},
            },
            "spec": {"runtimeRef": {"name": "torch"}},
        },
    ]


def _is(obj: dict[str, Any], condition: str) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(one["type"] == condition and one["status"] == "True" for one in conditions)


def _page(address: str, path: str) -> str:
    with urllib.request.urlopen(f"{address}{path}", timeout=10) as answer:
        return str(answer.read().decode())


def test_a_cluster_without_our_kinds_is_told_in_a_line(plane: ControlPlane) -> None:
    ended = unisono(plane, "controller")
    assert ended.returncode == 1
    assert ended.stderr.endswith("; run: unisono install\n")
    assert len(ended.stderr.splitlines()) == 1


def test_install_brings_what_is_missing_and_nothing_else(plane: ControlPlane) -> None:
    foreign = next(crds_of(["topology.volcano.sh"]))
    foreign["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "another-tool"}
    put(plane, foreign, *older.DEFINITIONS)
    until("older kinds are served", lambda: _can_be_put(plane, older.FLAVOR, older.QUEUE))
    flavor = _stored(plane, names.FLAVOR, "v1beta1")
    before = unisono(plane, "install", "--check")
    assert before.returncode == 1
    assert "missing   Deployment unisono-system/unisono" in before.stdout.splitlines()
    first = unisono(plane, "install")
    assert (first.returncode, first.stderr) == (0, "")
    assert "created   CustomResourceDefinition workloads.kueue.x-k8s.io" in first.stdout
    assert "applied   CustomResourceDefinition clusterqueues.kueue.x-k8s.io" in first.stdout
    assert "hypernodes" not in first.stdout
    versions = {_identity(one): _version(one) for one in _installed(plane)}
    again = unisono(plane, "install")
    assert "created" not in again.stdout
    assert {_identity(one): _version(one) for one in _installed(plane)} == versions
    after = unisono(plane, "install", "--check")
    assert after.returncode == 0
    kept = "kept      CustomResourceDefinition hypernodes.topology.volcano.sh"
    assert f"{kept}: installed by others; it serves what we need" in after.stdout.splitlines()
    _survived(plane, flavor)


def _can_be_put(plane: ControlPlane, *objects: dict[str, Any]) -> bool:
    try:
        put(plane, *objects)
    except (NotFound, UnknownKind):
        return False
    return True


def _stored(plane: ControlPlane, kind: Kind, version: str) -> dict[str, Any]:
    group = kind.api_version.partition("/")[0]
    found = there(plane, Kind(f"{group}/{version}", kind.kind))
    return next(one for one in found if one["metadata"]["name"] == "older")


def _survived(plane: ControlPlane, flavor: dict[str, Any]) -> None:
    """What was stored by an earlier version is there in the new one, and can have its fields."""
    now = _stored(plane, names.FLAVOR, "v1beta2")
    assert now["metadata"]["uid"] == flavor["metadata"]["uid"]
    assert now["spec"] == flavor["spec"] == older.FLAVOR["spec"]
    assert (
        _stored(plane, names.CLUSTER_QUEUE, "v1beta2")["spec"]["resourceGroups"]
        == (older.QUEUE["spec"]["resourceGroups"])
    )
    taint = {"key": "a", "value": "b", "effect": "NoSchedule"}
    put(plane, older.FLAVOR | {"spec": {**older.FLAVOR["spec"], "nodeTaints": [taint]}})
    assert _stored(plane, names.FLAVOR, "v1beta2")["spec"]["nodeTaints"] == [taint]
    stored = {one["metadata"]["name"]: one["status"]["storedVersions"] for one in there(plane, CRD)}
    assert stored["resourceflavors.kueue.x-k8s.io"] == ["v1beta1", "v1beta2"]


def test_other_controllers_are_respected_or_reported(plane: ControlPlane) -> None:
    put(plane, *older.deployment("jobset-system", "jobset-controller-manager"))
    put(plane, *older.deployment("volcano-system", "volcano-scheduler"))
    put(plane, *older.deployment("kueue-system", "kueue-controller-manager"))
    checked = unisono(plane, "install", "--check", "--without-crds")
    assert checked.returncode == 1
    told = [line for line in checked.stdout.splitlines() if not line.startswith("there ")]
    jobset = "respected jobset runs (jobset-system/jobset-controller-manager)"
    volcano = "respected volcano runs (volcano-system/volcano-scheduler)"
    kueue = "Kueue runs (kueue-system/kueue-controller-manager) and manages the same queues"
    assert told == [
        f"{jobset}; ours steps aside, and queues what it runs",
        f"conflict  {kueue}; ClusterQueues there: 1",
        f"{volcano}; its jobs, pod groups and queues are left to it",
    ]
    for command in ("install", "controller"):
        refused = unisono(plane, command)
        assert refused.returncode == 1
        assert "Kueue runs" in refused.stderr

    async def leave(client: Client) -> None:
        for namespace in ("jobset-system", "volcano-system", "kueue-system"):
            for one in (await client.list(DEPLOYMENT, namespace)).items:
                await client.delete(DEPLOYMENT, one["metadata"]["name"], namespace)

    asked(plane, leave)


def test_a_user_without_rights_is_told_which_are_missing(
    plane: ControlPlane, tmp_path: Path
) -> None:
    role = {"apiVersion": "v1", "kind": "ServiceAccount"}
    put(plane, {**role, "metadata": {"name": "powerless", "namespace": "default"}})
    powerless = account(plane, "default", "powerless", tmp_path / "kubeconfig")
    ended = unisono(powerless, "controller")
    assert ended.returncode == 1
    assert "workloads" in ended.stderr
    assert "forbidden" in ended.stderr


def test_a_right_that_is_missing_is_named_with_its_verb(
    plane: ControlPlane, tmp_path: Path
) -> None:
    subject = {"kind": "ServiceAccount", "name": "almost", "namespace": "default"}
    rbac = "rbac.authorization.k8s.io"
    (role,) = (one for one in there(plane, _ROLE) if one["metadata"]["name"] == "unisono")
    rules = [
        {**one, "verbs": [verb for verb in one["verbs"] if verb != "patch"]}
        if "nodes" in one["resources"]
        else one
        for one in role["rules"]
        if "pods/binding" not in one["resources"]
    ]
    put(
        plane,
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _place(subject)},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "almost"},
            "rules": rules,
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "almost"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "almost"},
            "subjects": [subject],
        },
    )
    almost = account(plane, "default", "almost", tmp_path / "kubeconfig")
    ended = unisono(almost, "controller", "--operators", "none")
    assert ended.returncode == 1
    assert ended.stderr.splitlines() == [
        "unisono: not allowed: patch nodes (queueing)",
        "unisono: not allowed: create pods/binding (queueing)",
        "unisono: not allowed: get, create, update leases.coordination.k8s.io",
        "unisono: not allowed: get, list, watch, create, patch configmaps",
        "unisono: `unisono install` makes roles that have all of it; --operators says for what",
    ]
    more = unisono(almost, "controller", "--operators", "ray")
    assert "unisono: not allowed: create pods (ray)" in more.stderr.splitlines()


def _place(subject: dict[str, str]) -> dict[str, str]:
    return {name: subject[name] for name in ("name", "namespace")}


_ROLE = Kind("rbac.authorization.k8s.io/v1", "ClusterRole")


def _installed(plane: ControlPlane) -> list[dict[str, Any]]:
    kinds = (CRD, DEPLOYMENT, _ROLE)
    return [one for kind in kinds for one in there(plane, kind)]


def _identity(obj: dict[str, Any]) -> tuple[str, str]:
    return obj["kind"], obj["metadata"]["name"]


def _version(obj: dict[str, Any]) -> str:
    """Return the part that users change; the API server itself only writes statuses."""
    metadata = obj["metadata"]
    return str(metadata.get("generation") or metadata["resourceVersion"])


def test_gangs_run_and_outlive_their_leader(plane: ControlPlane, tmp_path: Path) -> None:
    put(plane, *_queues(gpus=32))
    role = account(plane, "unisono-system", "unisono", tmp_path / "kubeconfig")
    ledger = tmp_path / "ledger.db"
    with (
        kubelets(plane, "4x{gpu=8,cpu=32,memory=256Gi}", speed=10),
        replica(role, tmp_path / "first.log", "--ledger", str(ledger)) as first,
    ):
        first.until_told("leading")
        address = str(first.until_told("listening")["address"])
        put(plane, _job("early", 3, 20), *_train_job())
        # Both ask for more than there is together, so one after the other has all of its nodes.
        until("both ended", lambda: _ended(plane, "early") and _trained(plane))
        for pod in there(plane, names.POD, "default"):
            assert (
                pod["metadata"]["annotations"][names.SLOT]
                .split("/")[1]
                .startswith(f"{pod['spec']['nodeName']}@")
            )
        assert _page(address, "/readyz") == "leading\n"
        assert _page(address, "/healthz") == "ok\n"
        assert "unisono_leader 1\n" in _page(address, "/metrics")
        until("figures of nodes", lambda: "unisono_node_idle_seconds" in _page(address, "/metrics"))

        with replica(role, tmp_path / "second.log", "--ledger", str(ledger)) as second:
            second.until_told("all is read")
            put(plane, _job("late", 4, 150), _job("last", 4, 20))
            until("late runs", lambda: _running(plane) == 4)
            first.end(signal.SIGKILL)
            assert second.until_told("leading")["epoch"] == 2
            until("all ended", lambda: _ended(plane, "late") and _ended(plane, "last"))
            assert first.told("a step failed") is None
            assert second.told("a step failed") is None
            assert second.end(signal.SIGTERM) == 0
            assert second.told("finished what was begun") is not None
    assert _holder(plane) == ""
    _check_ledger(ledger)


def test_the_policy_of_the_cluster_counts_from_the_start(
    plane: ControlPlane, tmp_path: Path
) -> None:
    policy = {
        "apiVersion": "unisono.dev/v1",
        "kind": "Policy",
        "metadata": {"name": "unisono"},
        "defaultQueues": [{"queue": "team", "namespaces": ["default"]}],
    }
    unnamed = _job("unnamed", 1, 20)
    del unnamed["metadata"]["labels"]
    put(plane, *_queues(gpus=32), policy, unnamed)
    role = account(plane, "unisono-system", "unisono", tmp_path / "kubeconfig")
    with replica(role, tmp_path / "log") as one:
        one.until_told("leading")

        def queues() -> list[str]:
            workloads = there(plane, names.WORKLOAD, "default")
            mine = [each for each in workloads if "unnamed" in each["metadata"]["name"]]
            return [each["spec"]["queueName"] for each in mine]

        until("the job has its namespace's queue", lambda: queues() == ["team"], instead=queues)
        assert one.end(signal.SIGTERM) == 0


def _check_ledger(path: Path) -> None:
    """Everything is in the ledger once, under every leader."""
    store = LedgerStore(path, is_read_only=True)
    pods = list(store.within(PodRow, 0, 1 << 40))
    tries = list(store.within(WorkloadRow, 0, 1 << 40))
    store.close()
    assert {one.outcome for one in pods} == {"Succeeded"}
    assert all(one.started and one.ended and one.workload for one in pods)
    assert len(pods) == 3 + 2 + 4 + 4
    assert sorted(one.owner for one in tries) == ["early", "last", "late", "tune"]
    assert {one.outcome for one in tries} == {"Finished"}
    whole = Period(min(one.bound for one in pods), max(one.ended for one in pods) + 1)
    made = read(path, whole)
    assert made.headline.jobs == 4
    assert made.headline.coverage == 0.0
    assert made.headline.amounts.unmeasured > 0


def _ended(plane: ControlPlane, name: str) -> bool:
    jobs = {one["metadata"]["name"]: one for one in there(plane, names.JOB, "default")}
    return _is(jobs[name], "Complete")


def _trained(plane: ControlPlane) -> bool:
    return all(_is(one, "Complete") for one in there(plane, names.TRAIN_JOB, "default"))


def _running(plane: ControlPlane) -> int:
    pods = there(plane, names.POD, "default")
    return sum((pod.get("status") or {}).get("phase") == "Running" for pod in pods)


def _holder(plane: ControlPlane) -> str:
    async def work(client: Client) -> str:
        lease = await client.get(LEASE, "unisono", "unisono-system")
        return str(lease["spec"].get("holderIdentity") or "")

    return asked(plane, work)
