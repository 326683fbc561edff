"""What Volcano's webhook refuses in a job, whatever else there is in the cluster."""

from __future__ import annotations

import pytest

from tests.support.manifests import job, problems, warnings
from unisono.kinds.volcano.disruption_annotations import (
    MAX_UNAVAILABLE,
    MIN_AVAILABLE,
    wrong_with_budget,
)

HEAD = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec:\n"
TASK = (
    "    template: {spec: {restartPolicy: Never, containers: [{name: a, image: x,"
    " resources: {requests: {cpu: 1500m}}}]}}\n"
)


def manifest(spec: str = "", task: str = "") -> str:
    return f"{HEAD}  {spec}\n  tasks:\n  - name: w\n    replicas: 4\n{TASK}    {task}\n"


@pytest.mark.parametrize("where", ["spec", "task"])
@pytest.mark.parametrize(
    ("policies", "path", "said"),
    [
        ("{event: PodFailed, action: RestartJob}", "", ""),
        ("{events: [PodFailed, PodEvicted], action: AbortJob}", "", ""),
        ("{exitCode: 3, action: RestartTask}", "", ""),
        ("{event: '*', action: RestartJob}", "", ""),
        ("{event: PodFailed, exitCode: 3, action: AbortJob}", "[0]", "event and exitCode simul"),
        ("{action: AbortJob}", "[0]", "either event and exitCode should be specified"),
        ("{event: PodGone, action: AbortJob}", "[0].event", 'invalid policy event "PodGone"'),
        ("{event: PodRunning, action: AbortJob}", "[0].event", "invalid policy event"),
        ("{event: PodFailed, action: Explode}", "[0].action", 'invalid policy action "Explode"'),
        ("{event: PodFailed, action: SyncJob}", "[0].action", "invalid policy action"),
        ("{exitCode: 0, action: AbortJob}", "[0].exitCode", "0 is not a valid error code"),
        (
            "{event: PodFailed, action: AbortJob}, {events: [PodFailed], action: RestartJob}",
            "[1].event",
            "duplicate event PodFailed",
        ),
        (
            "{exitCode: 3, action: AbortJob}, {exitCode: 3, action: RestartJob}",
            "[1].exitCode",
            "duplicate exitCode 3",
        ),
        (
            "{event: '*', action: AbortJob}, {event: PodFailed, action: RestartJob}",
            "[0].event",
            "if there's * here, no other policy should be here",
        ),
    ],
)
def test_policies(where: str, policies: str, path: str, said: str) -> None:
    line = f"policies: [{policies}]"
    found = problems(manifest(line) if where == "spec" else manifest(task=line))
    at = "spec.policies" if where == "spec" else "spec.tasks[0].policies"
    assert [one for one, _ in found] == ([at + path] if said else [])
    assert all(said in message for _, message in found)


@pytest.mark.parametrize(
    ("volumes", "said"),
    [
        ("{mountPath: /a, volumeClaimName: c}", ""),
        ("{mountPath: /a, volumeClaim: {accessModes: [ReadWriteOnce]}}", ""),
        ("{volumeClaimName: c}", "mountPath is required"),
        ("{mountPath: /a}", "either VolumeClaim or VolumeClaimName must be specified"),
        ("{mountPath: /a, volumeClaimName: Bad_Name}", "is not a valid name"),
        (
            "{mountPath: /a, volumeClaimName: c}, {mountPath: /a, volumeClaimName: d}",
            "duplicated mountPath: /a",
        ),
    ],
)
def test_volumes(volumes: str, said: str) -> None:
    found = problems(manifest(f"volumes: [{volumes}]"))
    assert len(found) == bool(said)
    assert all(said in message for _, message in found)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("plugins: {svc: [], ssh: [], env: []}", ""),
        ("plugins: {big_plugin: []}", "unable to find job plugin: big_plugin"),
        ("plugins: {mpi: []}", "The specified mpi master task was not found"),
        ("plugins: {mpi: [--master=w]}", ""),
        ("maxRetry: -1", "should be greater than or equal to 0"),
        ("ttlSecondsAfterFinished: -1", "should be greater than or equal to 0"),
    ],
)
def test_plugins_and_numbers(spec: str, said: str) -> None:
    found = problems(manifest(spec))
    assert len(found) == bool(said)
    assert all(said in message for _, message in found)


def test_a_plugin_that_makes_nothing_here_is_told() -> None:
    assert [path for _, path in warnings(manifest("plugins: {hcclrank: []}"))] == [
        "spec.plugins[hcclrank]"
    ]


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("topologyPolicy: none", ""),
        ("topologyPolicy: single-numa-node", "a whole number of cpu"),
        ("partitionPolicy: {totalPartitions: 2, partitionSize: 3}", "makes 6 pods"),
        (
            "minAvailable: 3\n    partitionPolicy: {totalPartitions: 2, partitionSize: 2,"
            " minPartitions: 1}",
            "makes 2 pods the least; minAvailable says 3",
        ),
    ],
)
def test_tasks(task: str, said: str) -> None:
    found = problems(manifest(task=task))
    assert len(found) == bool(said)
    assert all(said in message for _, message in found)


def test_names_that_no_pod_could_have() -> None:
    assert job(manifest().replace("name: j", f"name: {'j' * 64}")).problems[0][0] == "metadata.name"
    ((path, said),) = job(manifest().replace("name: j", f"name: {'j' * 60}")).problems
    assert path == "spec.tasks[0].name"
    assert "of more than 63 characters" in said


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({MIN_AVAILABLE: "2"}, ""),
        ({MAX_UNAVAILABLE: "50%"}, ""),
        ({MIN_AVAILABLE: "-1"}, "must be a positive integer"),
        ({MIN_AVAILABLE: "0"}, "must be a positive integer"),
        ({MIN_AVAILABLE: "0%"}, "percentage which between 1% ~ 99%"),
        ({MAX_UNAVAILABLE: "100%"}, "percentage which between 1% ~ 99%"),
        ({MAX_UNAVAILABLE: "many"}, "must be a positive integer"),
        ({MIN_AVAILABLE: "2", MAX_UNAVAILABLE: "50%"}, "not allow configure multiple"),
    ],
)
def test_budgets_of_pods(annotations: dict[str, str], said: str) -> None:
    found = [*wrong_with_budget(annotations)]
    assert len(found) == bool(said)
    assert all(said in one.message for one in found)
