"""The Status, Ready and Restarts cells of pods, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest

from unisono.apiserver.objects import Json
from unisono.apiserver.tables.workloads import PODS
from unisono.apiserver.times import timestamp

NOW = 1_000_000.0

RUNNING: Json = {"running": {}}
DONE = {"terminated": {"exitCode": 0, "reason": "Completed"}}
READY = [{"type": "Ready", "status": "True"}]
INITIALIZED = [{"type": "Initialized", "status": "True"}]


def _shown(pod: Json) -> dict[str, Any]:
    names = [heading.name for heading in PODS.headings]
    return dict(zip(names, PODS.cells(pod, NOW), strict=True))


def _pod(*states: Json, phase: str = "Running", **status: Any) -> Json:
    """Return a pod with a container in each of the given states."""
    return {
        "metadata": {"name": "p", "creationTimestamp": timestamp(NOW - 90)},
        "spec": {"containers": [{"name": f"c{at}"} for at in range(len(states))]},
        "status": {
            "phase": phase,
            "containerStatuses": [
                {"name": f"c{at}", "state": state, "ready": state is RUNNING}
                for at, state in enumerate(states)
            ],
            **status,
        },
    }


def _init(*states: Json, **status: Any) -> Json:
    """Return a pod whose init containers are in the given states."""
    pod = _pod(RUNNING, phase="Pending", **status)
    pod["status"]["containerStatuses"] = [{"name": "c0", "state": {"waiting": {}}}]
    pod["spec"]["initContainers"] = [{"name": f"i{at}"} for at in range(len(states))]
    pod["status"]["initContainerStatuses"] = [
        {"name": f"i{at}", "state": state} for at, state in enumerate(states)
    ]
    return pod


@pytest.mark.parametrize(
    ("pod", "word"),
    [
        ({"metadata": {}}, ""),
        (_pod(phase="Pending"), "Pending"),
        (_pod(RUNNING), "Running"),
        (_pod(phase="Failed", reason="Evicted"), "Evicted"),
        (
            _pod(
                phase="Pending",
                conditions=[
                    {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
                ],
            ),
            "SchedulingGated",
        ),
        (_pod(RUNNING, {"waiting": {"reason": "CrashLoopBackOff"}}), "CrashLoopBackOff"),
        (_pod({"terminated": {"exitCode": 1, "reason": "Error"}}), "Error"),
        (_pod({"terminated": {"exitCode": 3}}), "ExitCode:3"),
        (_pod({"terminated": {"exitCode": 137, "signal": 9}}), "Signal:9"),
        (_pod(DONE, phase="Succeeded"), "Completed"),
        (_pod(DONE, RUNNING, conditions=READY), "Running"),
        (_pod(DONE, RUNNING), "NotReady"),
        (_pod(DONE, RUNNING, {"terminated": {"exitCode": 2, "reason": "Error"}}), "Error"),
        (_pod({"waiting": {}}, phase="Pending"), "Pending"),
    ],
)
def test_one_word_for_the_containers(pod: Json, word: str) -> None:
    assert _shown(pod)["Status"] == word


@pytest.mark.parametrize(
    ("pod", "word"),
    [
        (_init({"running": {}}, {}), "Init:0/2"),
        (_init(DONE, {"waiting": {"reason": "PodInitializing"}}), "Init:1/2"),
        (_init({"waiting": {"reason": "ImagePullBackOff"}}), "Init:ImagePullBackOff"),
        (_init({"terminated": {"exitCode": 1, "reason": "Error"}}), "Init:Error"),
        (_init({"terminated": {"exitCode": 2}}), "Init:ExitCode:2"),
        (_init({"terminated": {"exitCode": 137, "signal": 9}}), "Init:Signal:9"),
        (_init(DONE, DONE), "Pending"),
    ],
)
def test_one_word_for_the_init_containers(pod: Json, word: str) -> None:
    assert _shown(pod)["Status"] == word


@pytest.mark.parametrize(
    ("phase", "reason", "word"),
    [
        ("Running", "", "Terminating"),
        ("Succeeded", "", "Completed"),
        ("Failed", "", "Completed"),
        ("Running", "NodeLost", "Unknown"),
    ],
)
def test_a_pod_that_is_being_deleted(phase: str, reason: str, word: str) -> None:
    pod = _pod(DONE, phase=phase, reason=reason)
    pod["metadata"]["deletionTimestamp"] = timestamp(NOW)
    assert _shown(pod)["Status"] == word


def test_ready_counts_containers_and_sidecars() -> None:
    pod = _pod(RUNNING, {"waiting": {"reason": "ContainerCreating"}})
    pod["spec"]["initContainers"] = [{"name": "s", "restartPolicy": "Always"}, {"name": "i"}]
    pod["status"]["initContainerStatuses"] = [
        {"name": "s", "state": RUNNING, "started": True, "ready": True},
        {"name": "i", "state": DONE},
    ]
    assert _shown(pod)["Ready"] == "2/3"


def _restarted(name: str, times: int, seconds_ago: float) -> Json:
    ended = {"exitCode": 1, "finishedAt": timestamp(NOW - seconds_ago)}
    return {
        "name": name,
        "state": RUNNING,
        "ready": True,
        "restartCount": times,
        "lastState": {"terminated": ended},
    }


def test_restarts_say_how_long_ago_the_last_was() -> None:
    pod = _pod(RUNNING, RUNNING)
    assert _shown(pod)["Restarts"] == "0"
    pod["status"]["containerStatuses"] = [_restarted("c0", 2, 300), _restarted("c1", 1, 4000)]
    assert _shown(pod)["Restarts"] == "3 (5m ago)"
    pod["status"]["containerStatuses"][0].pop("lastState")
    pod["status"]["containerStatuses"][1].pop("lastState")
    assert _shown(pod)["Restarts"] == "3"


def test_restarts_of_init_containers_count_until_they_are_through() -> None:
    pod = _init({"waiting": {"reason": "CrashLoopBackOff"}})
    pod["status"]["initContainerStatuses"][0] |= {"restartCount": 4}
    assert _shown(pod)["Restarts"] == "4"
    pod["status"]["initContainerStatuses"][0]["state"] = DONE
    assert _shown(pod)["Restarts"] == "0"


def test_a_pod_that_was_initialised_once_shows_its_containers() -> None:
    pod = _init({"waiting": {"reason": "CrashLoopBackOff"}}, conditions=INITIALIZED)
    pod["status"]["containerStatuses"] = [_restarted("c0", 1, 60)]
    shown = _shown(pod)
    assert (shown["Ready"], shown["Restarts"]) == ("1/1", "1 (60s ago)")
    assert shown["Status"] == "Init:CrashLoopBackOff"


def test_the_wide_columns() -> None:
    assert list(_shown(_pod(RUNNING)).values())[5:] == ["<none>"] * 4
    pod = _pod(RUNNING, podIPs=[{"ip": "10.0.0.1"}, {"ip": "fd00::1"}], nominatedNodeName="n2")
    pod["spec"] |= {
        "nodeName": "n1",
        "readinessGates": [{"conditionType": "a/b"}, {"conditionType": "a/c"}],
    }
    pod["status"]["conditions"] = [{"type": "a/b", "status": "True"}]
    assert list(_shown(pod).values())[5:] == ["10.0.0.1", "n1", "n2", "1/2"]
    assert [heading.priority for heading in PODS.headings] == [0] * 5 + [1] * 4
