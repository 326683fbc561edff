"""Webhooks on a real API server that has no mutating policies: installed, trusted, asked.

There is no network of pods here: the Service is an external name, so the API server comes to
loopback, and still demands the certificate of the Service's own name.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control.job_kinds.test_volcano_policies import task, vcjob
from tests.real.cluster import account, asked, put, replica, there, unisono, until
from tests.real.control_plane import ControlPlane, free_ports, running
from tests.real.test_tenancy import (
    CLASS,
    HOME,
    MADE,
    MOST_TASKS,
    RULES,
    TENANT,
    WORD,
    batch_job,
    bound,
    pod,
    tried,
    with_,
)
from tests.real.test_tenancy import account as controller_account
from unisono.control import names
from unisono.kube.client import Client
from unisono.kube.errors import Invalid, KubeError
from unisono.kube.form import Json
from unisono.kube.mapping import Kind
from unisono.runtime.cluster.preconditions import DEPLOYMENT
from unisono.runtime.webhook.configuration import KINDS, WEBHOOK, Which

pytestmark = [pytest.mark.real, pytest.mark.slow]

_HOME = "unisono-system"
_SERVICE = Kind("v1", "Service")


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    from tests.real.binaries import NoControlPlane

    directory = tmp_path_factory.mktemp("webhook")
    try:
        with running(directory, controllers=(), has_mutating_policies=False) as found:
            yield found
    except NoControlPlane as problem:
        pytest.skip(f"no real control plane: {problem}")


@pytest.fixture(scope="module")
def port(plane: ControlPlane) -> int:
    """Install, and have the API server come to loopback; nothing listens there yet."""
    checked = unisono(plane, "install", "--check")
    assert "missing   MutatingWebhookConfiguration unisono" in checked.stdout.splitlines()
    installed = unisono(plane, "install")
    assert (installed.returncode, installed.stderr) == (0, "")
    (chosen,) = free_ports(1)
    asked(plane, lambda client: _redirect(client, chosen, "mutating"))
    return chosen


async def _redirect(client: Client, port: int, *which: Which) -> None:
    """Have the API server come to a port of this machine instead of the Service's pods."""
    external = {"type": "ExternalName", "externalName": "localhost"}
    service = {"spec": {**external, "clusterIP": None, "clusterIPs": None, "selector": None}}
    await client.patch(_SERVICE, WEBHOOK, _HOME, service)
    for one in which:
        found = await client.get(KINDS[one], "unisono")
        reached = [
            {"op": "replace", "path": f"/webhooks/{number}/{_PORT}", "value": port}
            for number in range(len(found["webhooks"]))
        ]
        await client.patch(KINDS[one], "unisono", "", reached, form="json")


_PORT = "clientConfig/service/port"


def _job(name: str, queue: str, namespace: str = "default") -> Json:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1"}]}
    labels = {names.QUEUE_LABEL: queue} if queue else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"template": {"spec": pod}},
    }


def _pod(name: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {names.QUEUE_LABEL: "team", "kueue.x-k8s.io/pod-group-name": "g"},
        },
        "spec": {"containers": [{"name": "main", "image": "train:1"}]},
    }


def test_each_rule_comes_the_way_that_the_server_has(plane: ControlPlane, port: int) -> None:
    policies = there(plane, Kind("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"))
    named = [str(one["metadata"]["name"]) for one in policies]
    assert sum(name.startswith("unisono-queue-of-") for name in named) == 3
    assert any(name.startswith("unisono-counts-of-") for name in named), "what a job may ask for"
    assert there(plane, KINDS["validating"]) == []
    (deployment,) = there(plane, DEPLOYMENT, _HOME)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert "--webhook" in container["args"]


def test_without_a_replica_only_new_jobs_of_queues_are_refused(
    plane: ControlPlane, port: int
) -> None:
    async def work(client: Client) -> None:
        once = client.variant(most_tries=1)
        with pytest.raises(KubeError, match=r"hold\.unisono\.dev"):
            await once.create(_job("queued", "team"))
        await once.create(_job("free", ""))
        await once.create(_job("system", "team", "kube-system"))

    until("the configuration is in force", lambda: _refuses(plane))
    asked(plane, work)


def _refuses(plane: ControlPlane) -> bool:
    async def work(client: Client) -> bool:
        try:
            await client.variant(most_tries=1).create(_job("probe", "team"), dry_run=True)
        except KubeError:
            return True
        return False

    return asked(plane, work)


def test_a_replica_with_the_role_of_the_installation_is_trusted_and_holds_jobs_back(
    plane: ControlPlane, port: int, tmp_path: Path
) -> None:
    async def work(client: Client) -> None:
        queued = await client.create(_job("queued", "team"))
        assert queued["spec"]["suspend"] is True
        pod = await client.create(_pod("member"))
        assert [one["name"] for one in pod["spec"]["schedulingGates"]] == [
            "kueue.x-k8s.io/admission",
            names.GATE,
        ]
        assert pod["metadata"]["finalizers"] == ["kueue.x-k8s.io/managed"]
        with pytest.raises(Invalid, match="is not the name of a queue"):
            await client.create(_job("bad", "Team_A"))

    role = account(plane, _HOME, "unisono", tmp_path / "role")
    with replica(role, tmp_path / "log", "--webhook", f"127.0.0.1:{port}") as one:
        one.until_told("answering for the webhooks")
        until("the server trusts it", lambda: not _refuses(plane))
        asked(plane, work)
        assert one.told("the certificate of the webhooks is stuck") is None
        before = there(plane, KINDS["mutating"])
        again = unisono(plane, "install", "--without-crds", "--image", "other:1")
        assert again.returncode == 0, again.stderr
        (after,) = there(plane, KINDS["mutating"])
        trusted = after["webhooks"][0]["clientConfig"]["caBundle"]
        assert trusted == before[0]["webhooks"][0]["clientConfig"]["caBundle"]


def test_a_webhook_without_an_endpoint_is_reported(plane: ControlPlane, port: int) -> None:
    refused = unisono(plane, "install", "--without-crds", "--admission", "policy")
    assert refused.returncode == 1
    remedy = "first: kubectl delete mutatingwebhookconfiguration unisono"
    assert remedy in refused.stderr


@pytest.fixture(scope="module")
def alone(plane: ControlPlane, port: int) -> ControlPlane:
    """Have webhooks and no policies."""
    installed = unisono(plane, "install", "--without-crds", "--admission", "webhook")
    assert (installed.returncode, installed.stderr) == (0, "")
    policies = Kind("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding")

    async def prepare(client: Client) -> None:
        for one in (await client.list(policies)).items:
            await client.delete(policies, one["metadata"]["name"])
        await _redirect(client, port, *KINDS)

    asked(plane, prepare)
    return plane


def test_with_webhooks_alone_names_are_judged_there_too(
    alone: ControlPlane, port: int, tmp_path: Path
) -> None:
    async def work(client: Client) -> None:
        with pytest.raises(Invalid, match=r"judge\.unisono\.dev.*is not the name of a queue"):
            await client.create(_job("bad", "Team_A"))
        await client.create(_job("moves", "team"))
        other = {"metadata": {"labels": {names.QUEUE_LABEL: "other"}}}
        await client.patch(names.JOB, "moves", "default", other)
        await client.patch(names.JOB, "moves", "default", {"spec": {"suspend": False}})
        back = {"metadata": {"labels": {names.QUEUE_LABEL: "team"}}}
        with pytest.raises(Invalid, match="not suspended cannot change"):
            await client.patch(names.JOB, "moves", "default", back)

    role = account(alone, _HOME, "unisono", tmp_path / "role")
    with replica(role, tmp_path / "log", "--webhook", f"127.0.0.1:{port}") as one:
        one.until_told("answering for the webhooks")
        until("the server trusts it", lambda: not _refuses(alone))
        asked(alone, work)


def test_with_webhooks_alone_tenants_write_no_decision(
    alone: ControlPlane, port: int, tmp_path: Path
) -> None:
    put(
        alone,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}},
        bound("tenants", "unisono:batch-user", "tenant"),
        RULES,
    )
    until("tenants have rights", lambda: tried(alone, TENANT, batch_job()) == "")
    urgent = batch_job(labels={CLASS: "urgent"})
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "x", "uid": "1", "controller": True}
    part = pod(ownerReferences=[owner], annotations={WORD: "x"}, labels={CLASS: "urgent"})
    controller = controller_account("job-controller")
    assert tried(alone, controller, part) == "", "no webhook is asked about it"
    role = account(alone, _HOME, "unisono", tmp_path / "role")
    with replica(role, tmp_path / "log", "--webhook", f"127.0.0.1:{port}") as one:
        one.until_told("answering for the webhooks")
        until("the server trusts it", lambda: not _refuses(alone))
        until("the rules are written", lambda: tried(alone, TENANT, urgent) != "")
        for kind, (made, template) in MADE.items():
            assert tried(alone, TENANT, made) == "", kind
            word = with_(made, f"{template}/metadata/annotations", {WORD: "theirs"})
            assert "is written by the scheduler's controllers alone" in tried(alone, TENANT, word)
            assert tried(alone, (), word) == "", "an administrator may"
            owned = with_(made, "metadata/ownerReferences", [owner])
            assert "only a controller makes an object part" in tried(alone, TENANT, owned)
            if kind != "TrainJob":  # which has no such field
                chosen = with_(made, f"{template}/spec/nodeName", "n1")
                assert "only users who may create pods/binding" in tried(alone, TENANT, chosen)
        why = "it is for users alice; groups oncall; namespaces prod"
        assert why in tried(alone, TENANT, urgent)
        assert tried(alone, (*TENANT, "--as-group=oncall"), urgent) == ""
        assert tried(alone, controller, part) == ""
        wrong = with_(vcjob(task("w", 2)), "spec/tasks/0/replicas", -1)
        assert "spec.tasks" in tried(alone, (), wrong)
        many = vcjob(*({**task("w", 1), "name": f"w{number}"} for number in range(MOST_TASKS)))
        assert tried(alone, TENANT, many) == "", "expressions have a budget"
    assert tried(alone, TENANT, batch_job()) == "", "a job is no decision; no webhook is asked"
