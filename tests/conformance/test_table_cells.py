"""Cells of tables: what a command line prints about pods, jobs, nodes and ages."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from tests.conformance.client import STRATEGIC_PATCH, Api, Manifest
from tests.conformance.objects import (
    config_map,
    container,
    cron_job,
    deployment,
    disruption_budget,
    event,
    job,
    lease,
    node,
    pod,
    secret,
)
from tests.conformance.test_tables import cells


def _waiting(reason: str) -> Manifest:
    return {"waiting": {"reason": reason}}


def _ended(code: int, **fields: Any) -> Manifest:
    return {"terminated": {"exitCode": code, **fields}}


_RUNNING = {"running": {"startedAt": "2024-01-01T00:00:00Z"}}
_READY = [{"type": "Ready", "status": "True"}]
_GATED = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]


def _container(state: Manifest, *, restarts: int = 0, ready: bool = False, **fields: Any) -> Any:
    return {
        "image": "busybox:1.36",
        "imageID": "",
        "state": state,
        "restartCount": restarts,
        "ready": ready,
        **fields,
    }


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({"phase": "Pending"}, "0/2 Pending 0"),
        ({"phase": "Failed", "reason": "Evicted"}, "0/2 Evicted 0"),
        ({"phase": "Pending", "conditions": _GATED}, "0/2 SchedulingGated 0"),
        ({"phase": "Running", "main": [_RUNNING, _RUNNING], "ready": True}, "2/2 Running 0"),
        (
            {"phase": "Pending", "main": [_waiting("ContainerCreating"), _RUNNING]},
            "0/2 ContainerCreating 0",
        ),
        (
            {"phase": "Running", "main": [_waiting("CrashLoopBackOff"), _waiting("Other")]},
            "0/2 CrashLoopBackOff 0",
        ),
        (
            {"phase": "Succeeded", "main": [_ended(0, reason="Completed")] * 2},
            "0/2 Completed 0",
        ),
        ({"phase": "Failed", "main": [_ended(3), _ended(4, reason="Error")]}, "0/2 ExitCode:3 0"),
        ({"phase": "Failed", "main": [_ended(137, signal=9)] * 2}, "0/2 Signal:9 0"),
        (
            {
                "phase": "Running",
                "main": [_ended(0, reason="Completed"), _RUNNING],
                "ready": True,
                "conditions": _READY,
            },
            "1/2 Running 0",
        ),
        (
            {"phase": "Running", "main": [_ended(0, reason="Completed"), _RUNNING], "ready": True},
            "1/2 NotReady 0",
        ),
        ({"phase": "Pending", "init": [_RUNNING, _waiting("PodInitializing")]}, "0/2 Init:0/2 0"),
        (
            {
                "phase": "Pending",
                "init": [_ended(0, reason="Completed"), _waiting("PodInitializing")],
            },
            "0/2 Init:1/2 0",
        ),
        (
            {"phase": "Pending", "init": [_waiting("ErrImagePull"), _waiting("PodInitializing")]},
            "0/2 Init:ErrImagePull 0",
        ),
        ({"phase": "Pending", "init": [_ended(5), _RUNNING]}, "0/2 Init:ExitCode:5 0"),
        ({"phase": "Pending", "init": [_ended(1, signal=7), _RUNNING]}, "0/2 Init:Signal:7 0"),
        ({"phase": "Pending", "init": [_ended(1, reason="Error"), _RUNNING]}, "0/2 Init:Error 0"),
    ],
    ids=str,
)
def test_the_status_of_a_pod(api: Api, namespace: str, status: Manifest, shown: str) -> None:
    pods = api.of("v1", "pods", namespace)
    names = ("one", "two")
    spec = {
        "nodeName": "n1",
        "containers": [container(name) for name in names],
        "initContainers": [container(f"init-{name}") for name in names],
    }
    pods.create(pod("a", spec)).ok(201)
    full: Manifest = {
        key: status[key] for key in ("phase", "reason", "conditions") if key in status
    }
    if "main" in status:
        full["containerStatuses"] = [
            _container(state, name=name, ready=state is _RUNNING and status.get("ready", False))
            for name, state in zip(names, status["main"], strict=True)
        ]
    if "init" in status:
        full["initContainerStatuses"] = [
            _container(state, name=f"init-{name}")
            for name, state in zip(names, status["init"], strict=True)
        ]
    pods.patch("a", {"status": full}, sub="status").ok()
    row = cells(api, pods.at("a"))
    assert f"{row['Ready']} {row['Status']} {row['Restarts']}" == shown


def test_a_pod_that_ends(api: Api, namespace: str) -> None:
    pods = api.of("v1", "pods", namespace)
    pods.create(pod("a", {"nodeName": "n1"})).ok(201)
    pods.delete("a").ok()
    assert cells(api, pods.at("a"))["Status"] == "Terminating"


def test_restarts_of_a_pod(api: Api, namespace: str) -> None:
    pods = api.of("v1", "pods", namespace)
    pods.create(pod("a", {"nodeName": "n1"})).ok(201)
    long_ago = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=5, minutes=10)
    last = _ended(1, finishedAt=long_ago.strftime("%Y-%m-%dT%H:%M:%SZ"))
    one = _container(_RUNNING, name="main", restarts=3, lastState=last)
    pods.patch("a", {"status": {"containerStatuses": [one]}}, sub="status").ok()
    assert cells(api, pods.at("a"))["Restarts"] == "3 (5h10m ago)"


def test_where_a_pod_is(api: Api, namespace: str) -> None:
    pods = api.of("v1", "pods", namespace)
    pods.create(pod("a", {"nodeName": "n1"})).ok(201)
    addresses = {"status": {"podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}]}}
    pods.patch("a", addresses, sub="status").ok()
    row = cells(api, pods.at("a"))
    assert (row["IP"], row["Node"]) == ("10.1.2.3", "n1")
    assert (row["Nominated Node"], row["Readiness Gates"]) == ("<none>", "<none>")


_JOB_TIMES = {"startTime": "2024-01-01T00:00:00Z", "completionTime": "2024-01-01T00:01:30Z"}


@pytest.mark.parametrize(
    ("spec", "status", "shown"),
    [
        ({}, {}, "Running 0/1 "),
        ({"suspend": True}, {}, "Running 0/1 "),
        (
            {"suspend": True},
            {"conditions": [{"type": "Suspended", "status": "True"}]},
            "Suspended 0/1 ",
        ),
        ({"completions": 3, "parallelism": 2}, {"active": 2}, "Running 0/3 "),
        ({"parallelism": 1}, {}, "Running 0/1 "),
        ({"parallelism": 4}, {}, "Running 0/1 of 4 "),
        (
            {"backoffLimit": 0},
            {
                "startTime": "2024-01-01T00:00:00Z",
                "conditions": [
                    {"type": "FailureTarget", "status": "True"},
                ],
            },
            "FailureTarget 0/1 *",
        ),
    ],
    ids=str,
)
def test_the_status_of_a_job(
    api: Api, namespace: str, spec: Manifest, status: Manifest, shown: str
) -> None:
    jobs = api.of("batch/v1", "jobs", namespace)
    jobs.create(job("a", spec)).ok(201)
    if status:
        jobs.patch("a", {"status": status}, kind=STRATEGIC_PATCH, sub="status").ok()
    row = cells(api, jobs.at("a"))
    duration = "*" if shown.endswith("*") and row["Duration"] else row["Duration"]
    assert f"{row['Status']} {row['Completions']} {duration}" == shown
    assert (row["Containers"], row["Images"]) == ("main", "busybox:1.36")


def test_a_complete_job(api: Api, namespace: str) -> None:
    jobs = api.of("batch/v1", "jobs", namespace)
    jobs.create(job("a")).ok(201)
    done = {
        **_JOB_TIMES,
        "succeeded": 1,
        "uncountedTerminatedPods": {},
        "conditions": [
            {"type": "SuccessCriteriaMet", "status": "True"},
            {"type": "Complete", "status": "True"},
        ],
    }
    jobs.patch("a", {"status": done}, kind=STRATEGIC_PATCH, sub="status").ok()
    row = cells(api, jobs.at("a"))
    assert (row["Status"], row["Completions"], row["Duration"]) == ("Complete", "1/1", "90s")


@pytest.mark.parametrize(
    ("spec", "conditions", "labels", "shown"),
    [
        ({}, [], {}, "Unknown <none>"),
        ({}, [{"type": "Ready", "status": "True"}], {}, "Ready <none>"),
        ({}, [{"type": "Ready", "status": "False"}], {}, "NotReady <none>"),
        (
            {"unschedulable": True},
            [{"type": "Ready", "status": "True"}],
            {"node-role.kubernetes.io/gpu": "", "node-role.kubernetes.io/a": ""},
            "Ready,SchedulingDisabled a,gpu",
        ),
        ({}, [], {"kubernetes.io/role": "worker"}, "Unknown worker"),
    ],
    ids=str,
)
def test_the_status_of_a_node(
    api: Api,
    namespace: str,
    spec: Manifest,
    conditions: list[Manifest],
    labels: dict[str, str],
    shown: str,
) -> None:
    nodes = api.of("v1", "nodes")
    nodes.create({**node(namespace, labels=labels), "spec": spec}).ok(201)
    status = {
        "conditions": conditions,
        "nodeInfo": {"kubeletVersion": "v1.36.0"},
        "addresses": [{"type": "InternalIP", "address": "10.0.0.9"}],
    }
    nodes.patch(namespace, {"status": status}, sub="status").ok()
    row = cells(api, nodes.at(namespace))
    assert f"{row['Status']} {row['Roles']}" == shown
    assert (row["Version"], row["Internal-IP"], row["External-IP"]) == (
        "v1.36.0",
        "10.0.0.9",
        "<none>",
    )


@pytest.mark.parametrize(
    ("age", "shown"),
    [
        ({"seconds": 90}, "90s 91s 92s 93s"),
        ({"minutes": 5, "seconds": 30}, "5m30s 5m31s 5m32s 5m33s"),
        ({"minutes": 20, "seconds": 30}, "20m"),
        ({"hours": 2, "seconds": 30}, "120m"),
        ({"hours": 5, "seconds": 30}, "5h"),
        ({"hours": 5, "minutes": 10, "seconds": 30}, "5h10m"),
        ({"hours": 20, "minutes": 10}, "20h"),
        ({"days": 1, "hours": 20, "minutes": 10}, "44h"),
        ({"days": 3, "hours": 4, "minutes": 10}, "3d4h"),
        ({"days": 100, "hours": 4}, "100d"),
        ({"days": 800, "hours": 4}, "2y70d"),
        ({"days": 365 * 9, "hours": 4}, "9y"),
    ],
    ids=str,
)
def test_ages(api: Api, namespace: str, age: dict[str, int], shown: str) -> None:
    events = api.of("v1", "events", namespace)
    then = datetime.datetime.now(datetime.UTC) - datetime.timedelta(**age)
    stamp = then.strftime("%Y-%m-%dT%H:%M:%SZ")
    events.create(event("a", namespace, firstTimestamp=stamp, lastTimestamp=stamp)).ok(201)
    assert cells(api, events.at("a"))["Last Seen"] in shown.split()


def test_cells_of_small_kinds(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    maps.create(config_map("a", {"j": "1", "k": "2"})).ok(201)
    assert cells(api, maps.at("a"))["Data"] == 2
    secrets = api.of("v1", "secrets", namespace)
    secrets.create(secret("a")).ok(201)
    row = cells(api, secrets.at("a"))
    assert (row["Type"], row["Data"]) == ("Opaque", 1)
    leases = api.of("coordination.k8s.io/v1", "leases", namespace)
    leases.create(lease("a")).ok(201)
    assert cells(api, leases.at("a"))["Holder"] == "one"
    budgets = api.of("policy/v1", "poddisruptionbudgets", namespace)
    budgets.create(disruption_budget("a", {"x": "y"}, minimum=2)).ok(201)
    row = cells(api, budgets.at("a"))
    assert (row["Min Available"], row["Max Unavailable"]) == ("2", "N/A")
    cron = api.of("batch/v1", "cronjobs", namespace)
    cron.create(cron_job("a")).ok(201)
    row = cells(api, cron.at("a"))
    assert (row["Schedule"], row["Timezone"], row["Suspend"], row["Active"]) == (
        "@daily",
        "<none>",
        "False",
        0,
    )
    assert row["Last Schedule"] == "<none>"
    deployments = api.of("apps/v1", "deployments", namespace)
    deployments.create(deployment("a", replicas=2)).ok(201)
    row = cells(api, deployments.at("a"))
    assert (row["Ready"], row["Up-to-date"], row["Available"]) == ("0/2", 0, 0)
    assert cells(api, api.of("v1", "namespaces").at(namespace))["Status"] == "Active"
