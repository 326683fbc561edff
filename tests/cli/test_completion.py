"""What a shell completes of a cluster: names that fit, and nothing where no API answers."""

from __future__ import annotations

import json

import pytest

from unisono.cli.completion import offered
from unisono.cli.slurm_programs import dispatch as programs
from unisono.slurm.client import ClientError

OBJECTS = {
    "/apis/batch/v1/namespaces/default/jobs": ["train-a", "train-b", "other"],
    "/apis/batch/v1/namespaces/team-a/jobs": ["theirs"],
    "/apis/batch/v1/jobs": ["train-a", "theirs"],
    "/apis/kueue.x-k8s.io/v1beta2/clusterqueues": ["gpu", "cpu"],
    "/api/v1/nodes": ["n1", "n2"],
    "/api/v1/namespaces/default/pods": ["p-0"],
    "/api/v1/namespaces": ["default", "team-a"],
}


class Api:
    """Answers lists."""

    namespace = "default"

    def call(self, method: str, path: str) -> bytes:
        names = OBJECTS.get(path.partition("?")[0])
        if names is None:
            raise ClientError("there is no such kind", 404)
        return json.dumps({"items": [{"metadata": {"name": name}} for name in names]}).encode()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["why", "job/tr"], ["job/train-a", "job/train-b"]),
        (["why", "-n", "team-a", "job/"], ["job/theirs"]),
        (["why", "job"], ["job/", "jobset/"]),
        (["why", "raycluster/x"], []),
        (["get", "cq", ""], ["gpu", "cpu"]),
        (["get", "-A", "jobs", "t"], ["train-a", "theirs"]),
        (["describe", "nodep"], ["nodepool"]),
        (["logs", ""], ["p-0"]),
        (["gpu", "inject", "n"], ["n1", "n2"]),
        (["plan", "-q", "g"], ["gpu"]),
        (["queues", "-n", "t"], ["team-a"]),
        (["up", ""], []),
        (["get", "nonsense", "x"], []),
    ],
)
def test_names_that_fit(
    words: list[str], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "connect", lambda options: Api())
    assert offered(words) == expected
