"""`kubectl apply -k deploy` on a real API server, and what its rules for jobs do there."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.cluster import ROOT, account, asked, put, there, unisono, until
from tests.real.control_plane import ControlPlane, running
from unisono.cli.install.compare import CRD
from unisono.cli.install.manifests import FLOW_SCHEMA
from unisono.control import names
from unisono.kinds.shapes.crds import crds_of
from unisono.kube.client import Client
from unisono.kube.errors import Invalid
from unisono.kube.mapping import Kind
from unisono.runtime.admission.policies import validating

pytestmark = [pytest.mark.real, pytest.mark.slow]

_KUBECTL = shutil.which("kubectl")
_FOREIGN = "hypernodes.topology.volcano.sh"
# Reads the expressions of policies against the schemas of what they are about.
_CHECKER = ("validatingadmissionpolicy-status-controller",)
_POLICY = Kind("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy")


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    from tests.real.binaries import NoControlPlane

    if _KUBECTL is None:
        pytest.skip("kubectl is not installed")
    try:
        with running(tmp_path_factory.mktemp("deploy"), controllers=_CHECKER) as found:
            foreign = next(crds_of(["topology.volcano.sh"]))
            foreign["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "another-tool"}
            foreign["spec"]["names"]["shortNames"] = ["theirs"]
            put(found, foreign)
            yield found
    except NoControlPlane as problem:
        pytest.skip(f"no real control plane: {problem}")


def _kubectl(plane: ControlPlane, *arguments: str) -> subprocess.CompletedProcess[str]:
    assert _KUBECTL is not None
    return subprocess.run(
        [_KUBECTL, "--kubeconfig", str(plane.kubeconfig), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=ROOT,
    )


def test_applies_everything_except_what_others_installed(plane: ControlPlane) -> None:
    applied = _kubectl(plane, "apply", "--server-side", "-k", "deploy")
    assert [line for line in applied.stderr.splitlines() if "conflict" in line.lower()]
    assert applied.returncode == 1
    found = {one["metadata"]["name"]: one for one in there(plane, CRD)}
    assert found[_FOREIGN]["spec"]["names"]["shortNames"] == ["theirs"]
    # What install would bring beyond that are the runtimes, which have a directory of their own.
    until("the runtimes are served", lambda: _kubectl(plane, *_RUNTIMES).returncode == 0)
    checked = unisono(plane, "install", "--check")
    assert checked.returncode == 0, checked.stdout
    kept = [line for line in checked.stdout.splitlines() if not line.startswith("there ")]
    assert kept == [
        f"kept      CustomResourceDefinition {_FOREIGN}: installed by others; "
        "it serves what we need"
    ]


_RUNTIMES = ("apply", "--server-side", "-k", "deploy/runtimes")


def test_install_finds_nothing_to_change_and_plain_apply_works_too(plane: ControlPlane) -> None:
    installed = unisono(plane, "install")
    assert (installed.returncode, installed.stderr) == (0, "")
    assert "created" not in installed.stdout
    plain = _kubectl(plane, "apply", "-k", "deploy/overlays/without-crds")
    assert plain.returncode == 0, plain.stderr


def test_the_server_finds_nothing_wrong_with_our_policies(plane: ControlPlane) -> None:
    def checked() -> dict[str, Any]:
        """Return what was said of each policy of ours that has been read."""
        return {
            one["metadata"]["name"]: one["status"].get("typeChecking") or {}
            for one in there(plane, _POLICY)
            if (one.get("status") or {}).get("observedGeneration") == one["metadata"]["generation"]
            and one["metadata"]["name"].startswith("unisono-")
        }

    ours = {
        one["metadata"]["name"]
        for one in validating("unisono-system")
        if one["kind"] == _POLICY.kind
    }
    until("all policies have been read", lambda: checked().keys() == ours, instead=checked)
    assert {name: said for name, said in checked().items() if said} == {}


def test_a_busy_server_puts_the_lease_before_other_requests(
    plane: ControlPlane, tmp_path: Path
) -> None:
    ours = account(plane, "unisono-system", "unisono", tmp_path / "kubeconfig")
    flows = {one["metadata"]["uid"]: one["metadata"]["name"] for one in there(plane, FLOW_SCHEMA)}

    def flow_of(*arguments: str) -> str | None:
        told = _kubectl(ours, "--v=8", *arguments).stderr.lower()
        found = re.search(r"x-kubernetes-pf-flowschema-uid[^0-9a-f]*([0-9a-f-]{36})", told)
        return flows.get(found[1]) if found else None

    # A server takes new schemas to heart a moment after they are there.
    lease = ("get", "--raw", "/apis/coordination.k8s.io/v1/namespaces/unisono-system/leases/none")
    until("the lease has its own", lambda: flow_of(*lease) == "unisono-lease")
    assert flow_of("get", "--raw", "/api/v1/pods") == "unisono"


def _job(name: str, queue: str) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1"}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {names.QUEUE_LABEL: queue} if queue else {},
        },
        "spec": {"template": {"spec": pod}},
    }


def _kubeflow_job(name: str) -> dict[str, Any]:
    job = _job(name, "team")
    replicas = {"Worker": {"replicas": 1, "template": job["spec"]["template"]}}
    return job | {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "spec": {"pytorchReplicaSpecs": replicas},
    }


def _pod(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "train:1"}]},
    }


def test_jobs_of_a_queue_are_held_back_by_the_server_itself(plane: ControlPlane) -> None:
    async def work(client: Client) -> None:
        queued = await client.create(_job("queued", "team"))
        assert queued["spec"]["suspend"] is True
        free = await client.create(_job("free", ""))
        assert free["spec"]["suspend"] is False
        kubeflow = await client.create(_kubeflow_job("kubeflow"))
        assert kubeflow["spec"]["runPolicy"]["suspend"] is True
        alone = await client.create(_pod("alone", **{names.QUEUE_LABEL: "team"}))
        assert [one["name"] for one in alone["spec"]["schedulingGates"]] == [
            "kueue.x-k8s.io/admission",
            names.GATE,
        ]
        group = {names.QUEUE_LABEL: "team", "kueue.x-k8s.io/pod-group-name": "g"}
        ours = _pod("ours", **group)
        ours["spec"]["schedulerName"] = names.SCHEDULER
        ours = await client.create(ours)
        assert [one["name"] for one in ours["spec"]["schedulingGates"]] == [
            "kueue.x-k8s.io/admission"
        ]
        assert ours["metadata"]["finalizers"] == ["kueue.x-k8s.io/managed"]
        unqueued = await client.create(_pod("unqueued"))
        assert "schedulingGates" not in unqueued["spec"]

    _once_rules_hold(plane)
    asked(plane, work)


def test_bad_queues_are_refused_and_running_jobs_keep_theirs(plane: ControlPlane) -> None:
    async def work(client: Client) -> None:
        with pytest.raises(Invalid, match="is not the name of a queue"):
            await client.create(_job("bad", "Team_A"))
        await client.create(_job("moves", "team"))
        other = {"metadata": {"labels": {names.QUEUE_LABEL: "other"}}}
        await client.patch(names.JOB, "moves", "default", other)
        await client.patch(names.JOB, "moves", "default", {"spec": {"suspend": False}})
        back = {"metadata": {"labels": {names.QUEUE_LABEL: "team"}}}
        with pytest.raises(Invalid, match="not suspended cannot change"):
            await client.patch(names.JOB, "moves", "default", back)
        await client.patch(names.JOB, "moves", "default", {"metadata": {"labels": {"a": "b"}}})

    _once_rules_hold(plane)
    asked(plane, work)


def _once_rules_hold(plane: ControlPlane) -> None:
    """Policies are in force a moment after they were stored."""

    async def is_held(client: Client) -> bool:
        made = await client.create(_job("probe", "team"), dry_run=True)
        return made["spec"]["suspend"] is True

    until("new jobs are suspended", lambda: asked(plane, is_held))


def test_an_mpi_job_of_one_version_is_whole_in_the_other(plane: ControlPlane) -> None:
    job = _kubeflow_job("mpi")
    template = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    job["apiVersion"], job["kind"] = "kubeflow.org/v2beta1", "MPIJob"
    job["spec"] = {
        "sshAuthMountPath": "/home/mpi/.ssh",
        "mpiReplicaSpecs": {"Worker": {"replicas": 1, "template": template}},
    }

    async def work(client: Client) -> None:
        await client.create(job)
        for version in ("v1", "v2beta1"):
            kind = Kind(f"kubeflow.org/{version}", "MPIJob")
            found = await client.get(kind, "mpi", "default")
            assert found["spec"]["sshAuthMountPath"] == "/home/mpi/.ssh"

    asked(plane, work)
