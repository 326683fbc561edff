"""An API for Slurm's programs that answers from memory and remembers what was written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from unisono.kinds.overriding import override
from unisono.kube.form import Json
from unisono.slurm.client import ApiAccess, ApiClient, ClientError
from unisono.slurm.commands.context import Context
from unisono.slurm.labels import JOBS

# 2026-11-15T18:00:00Z
NOW = 1_794_765_600.0


class FakeApi(ApiClient):
    """Lists and objects by path."""

    def __init__(
        self, jobs: list[Json] | None = None, objects: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(ApiAccess("https://127.0.0.1:1"))
        self.jobs = jobs or []
        self.objects = objects or {}
        self.written: list[tuple[str, str, Json]] = []
        self.would_warn: list[str] = []

    @override
    def warnings_about(self, path: str, obj: Json) -> list[str]:
        return self.would_warn

    @override
    def call(
        self, method: str, path: str, body: object = None, *, kind: str = "application/json"
    ) -> bytes:
        if method != "GET":
            assert isinstance(body, dict)
            self.written.append((method, path, body))
            made = (
                {**body, "metadata": {"uid": "u", "resourceVersion": "2", **body["metadata"]}}
                if ("metadata" in body)
                else body
            )
            return json.dumps(made).encode()
        if path.startswith(JOBS):
            return json.dumps({"items": self._selected(path)}).encode()
        if path not in self.objects:
            raise ClientError("not found", 404)
        return json.dumps(self.objects[path]).encode()

    def _selected(self, path: str) -> list[Json]:
        _, _, query = path.partition("?labelSelector=")
        key, _, value = query.replace("%2F", "/").partition("%3D")
        if not query:
            return self.jobs
        return [one for one in self.jobs if one["metadata"]["labels"].get(key) == value]


def context(api: ApiClient, files: Mapping[str, str] | None = None, **changes: Any) -> Context:
    """Return surroundings in which time stands still."""

    def read(path: str) -> str:
        if path not in (files or {}):
            raise FileNotFoundError(path)
        return (files or {})[path]

    made = Context(
        user="ann",
        user_id=1000,
        group_id=100,
        host="login",
        directory="/home/ann",
        environment={"HOME": "/home/ann", "PATH": "/bin"},
        now=NOW,
        connect=lambda options: api,
        read=read,
    )
    return made._replace(**changes)


def job(
    identity: int,
    name: str,
    user: str,
    state: str = "PENDING",
    reason: str = "None",
    *,
    nodes: int = 1,
    on: list[str] | None = None,
    options: Mapping[str, str] | None = None,
    status: Json | None = None,
    spec: Json | None = None,
) -> Json:
    """Return a job as the API lists it."""
    container = {"name": "batch", "resources": {"requests": {"cpu": "8", "memory": "1024Mi"}}}
    group = {"name": "batch", "nodes": nodes, "tasks": 1}
    labels = {"unisono.dev/slurm-job": str(identity)}
    task = (spec or {}).get("task")
    if task:
        labels["unisono.dev/slurm-array"] = str(task["arrayJobId"])
    return {
        "metadata": {
            "name": f"{name}-{identity}",
            "namespace": "default",
            "creationTimestamp": "2026-11-15T17:59:00Z",
            "labels": labels,
        },
        "spec": {
            "jobId": identity,
            "jobName": name,
            "user": user,
            "options": {"partition": "main", **(options or {})},
            "groups": [{**group, "template": {"spec": {"containers": [container]}}}],
            **(spec or {}),
        },
        "status": {"state": state, "reason": reason, "nodes": on or [], **(status or {})},
    }
