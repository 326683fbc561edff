"""Events, logs and the manifest of a gang, as the user may read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

from tests.web.acting import Acting, acting, until


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acting]:
    with acting(tmp_path_factory.mktemp("details")) as made:
        made.workload_of("runs")
        yield made


@pytest.fixture(scope="module")
def gang(cluster: Acting) -> dict[str, str]:
    return {"namespace": "default", "name": cluster.workload_of("runs")["metadata"]["name"]}


def _read(cluster: Acting, user: str, part: str, **where: str) -> tuple[int, Any]:
    return cluster.ask(user, f"details/{part}?{urlencode(where)}")


def _pod(cluster: Acting) -> str:
    def found() -> str:
        pods = cluster.pods()
        return next((one["metadata"]["name"] for one in pods if one["spec"].get("nodeName")), "")

    return str(until(found))


def test_events_of_the_gang_and_its_job(cluster: Acting, gang: dict[str, str]) -> None:
    def abouts() -> set[str]:
        _, found = _read(cluster, "bob", "events", **gang)
        return {one["about"] for one in found["events"]}

    until(lambda: {"job/runs", f"workload/{gang['name']}"} <= abouts())
    _, found = _read(cluster, "bob", "events", **gang)
    times = [one["at"] for one in found["events"]]
    assert times == sorted(times, reverse=True)
    assert {"at", "about", "type", "reason", "message", "count"} == set(found["events"][0])


def test_the_manifest_is_what_the_user_wrote(cluster: Acting, gang: dict[str, str]) -> None:
    code, found = _read(cluster, "bob", "manifest", **gang)
    assert code == 200
    job = yaml.safe_load(found["manifest"])
    assert (job["kind"], job["metadata"]["name"], job["spec"]["parallelism"]) == ("Job", "runs", 2)
    assert "status" not in job
    assert set(job["metadata"]) <= {"name", "namespace", "labels", "annotations"}


def test_logs_of_a_pod_of_the_gang_and_of_no_other(cluster: Acting, gang: dict[str, str]) -> None:
    pod = _pod(cluster)
    until(lambda: _read(cluster, "alice", "logs", **gang, pod=pod)[0] == 200)
    _, found = _read(cluster, "alice", "logs", **gang, pod=pod, container="nonsense")
    assert (found["containers"], found["container"]) == (["main"], "main")
    assert isinstance(found["text"], str)
    for other in ("absent", "../secrets", ""):
        assert _read(cluster, "alice", "logs", **gang, pod=other)[0] == 404
    wrong = {**gang, "name": "another"}
    assert _read(cluster, "alice", "logs", **wrong, pod=pod)[0] == 404


def test_they_are_read_with_the_rights_of_the_user(cluster: Acting, gang: dict[str, str]) -> None:
    assert _read(cluster, "", "manifest", **gang)[0] == 401
    elsewhere = {**gang, "namespace": "kube-system"}
    for part in ("events", "manifest", "logs"):
        code, said = _read(cluster, "bob", part, **elsewhere, pod="a")
        assert code == 403
        assert 'User "bob" cannot' in said
    assert _read(cluster, "bob", "secrets", **gang)[0] == 404
    assert _read(cluster, "bob", "manifest", namespace="..", name="a")[0] == 404
