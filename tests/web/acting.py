"""A whole embedded cluster with a page and two users: alice may edit jobs, bob only look."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unisono.apiserver.times import timestamp
from unisono.engine.cycle import plan
from unisono.kube.client import Client
from unisono.kube.connect import client_over
from unisono.kube.form import Json
from unisono.kube.mapping import Kind
from unisono.provision.catalog.nodes import nodes_of, parse_shape
from unisono.runtime.clock import RealClock, seconds_now
from unisono.runtime.embedded.in_process import InProcess
from unisono.runtime.embedded.monitoring import monitored
from unisono.runtime.embedded.server import ADMIN, Choices, running
from unisono.runtime.ids import new_uid, random_source
from unisono.runtime.instance import Instance
from unisono.runtime.scheduler_metrics import Timed

KUEUE = "kueue.x-k8s.io/v1beta2"
RBAC = "rbac.authorization.k8s.io"
JOB = Kind("batch/v1", "Job")
WORKLOAD = Kind(KUEUE, "Workload")
NODE = Kind("v1", "Node")
POD = Kind("v1", "Pod")
_PATIENCE_S = 30.0


@dataclass
class Acting:
    """The cluster, asked over HTTP as its users."""

    address: str = ""
    tokens: dict[str, str] = field(default_factory=lambda: {"alice": "a-token", "bob": "b-token"})
    loop: asyncio.AbstractEventLoop | None = None
    api: Client | None = None

    def ask(
        self,
        user: str,
        path: str,
        body: object = None,
        **headers: str,
    ) -> tuple[int, Any]:
        """Return the code and what was answered: JSON, or a text."""
        data = None if body is None else body if isinstance(body, bytes) else _text(body)
        request = urllib.request.Request(f"{self.address}{path}", data=data)
        if data is not None:
            request.add_header("Content-Type", "application/json")
        if user:
            request.add_header("Authorization", f"Bearer {self.tokens[user]}")
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode().strip()

    def offers(self, user: str, target: str, name: str, namespace: str = "") -> dict[str, Json]:
        """Return the actions on an object by name."""
        where = {"target": target, "namespace": namespace, "name": name}
        code, found = self.ask(user, f"actions?{urllib.parse.urlencode(where)}")
        assert code == 200, found
        return {one["action"]: one for one in found["actions"]}

    def preview(self, user: str, body: Json) -> Json:
        """Return what would be done."""
        code, found = self.ask(user, "actions/preview", body)
        assert code == 200, found
        assert isinstance(found, dict)
        return found

    def do(self, user: str, action: str, target: str, name: str, **more: Any) -> str:
        """Preview an action, confirm it, and return what was done."""
        body = {"target": target, "action": action, "name": name, **more}
        shown = self.preview(user, body)
        assert not shown["refusal"], shown
        code, found = self.ask(user, "actions", {**body, "confirm": shown["confirm"]})
        assert code == 200, found
        return str(found["done"])

    def get(self, kind: Kind, name: str, namespace: str = "default") -> Json:
        """Return an object."""
        found: Json = self.run(lambda api: api.get(kind, name, namespace))
        return found

    def run(self, work: Callable[[Client], Any]) -> Any:
        """Do something in the loop of the cluster, as its owner."""
        assert self.loop is not None
        assert self.api is not None
        return asyncio.run_coroutine_threadsafe(work(self.api), self.loop).result(_PATIENCE_S)

    def pods(self) -> list[Json]:
        """Return the pods of the default namespace."""
        found: list[Json] = self.run(lambda api: api.list(POD, "default")).items
        return found

    def workload_of(self, job: str) -> Json:
        """Return the Workload of a job, once there is one."""

        def found() -> Json | None:
            items = self.run(lambda api: api.list(WORKLOAD, "default")).items
            owned = (one for one in items if one["metadata"]["ownerReferences"][0]["name"] == job)
            return next(owned, None)

        made: Json = until(found)
        return made


def until(found: Callable[[], Any]) -> Any:
    """Wait until something is so."""
    end = time.monotonic() + _PATIENCE_S
    while not (value := found()):
        assert time.monotonic() < end, "it never was so"
        time.sleep(0.02)
    return value


def _text(body: object) -> bytes:
    return json.dumps(body).encode()


@contextlib.contextmanager
def acting(folder: Path) -> Iterator[Acting]:
    """Run the cluster while the block lasts: 8 GPUs of quota, one job of 6 that runs."""
    made, ready = Acting(), threading.Event()
    stopping: list[asyncio.Event] = []
    error: list[BaseException] = []

    async def serve() -> None:
        instance = Instance(folder)
        folder.chmod(0o700)
        instance.prepare()
        users = folder / "users.yaml"
        users.write_text(_users(made.tokens))
        users.chmod(0o600)
        nodes = nodes_of(parse_shape("2xg6e.48xlarge"), now=timestamp(seconds_now()))
        timed = Timed(plan)
        choices = Choices(is_power_safe=False, users=users, objects=_objects(), decides=timed)
        async with (
            running(instance, choices, nodes) as cluster,
            monitored(cluster, instance, timed, port=None, reuse=60.0) as pages,
        ):
            made.address, _, made.tokens["owner"] = pages["web"].partition("#token=")
            made.loop = asyncio.get_running_loop()
            transport = InProcess(cluster.api, ADMIN)
            made.api = client_over(
                transport, clock=RealClock(), random_source=random_source(), ids=new_uid
            )
            stopping.append(asyncio.Event())
            ready.set()
            await stopping[0].wait()

    def work() -> None:
        try:
            asyncio.run(serve())
        except BaseException as problem:  # noqa: BLE001 (told in the thread of the test)
            error.append(problem)
        finally:
            ready.set()

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    try:
        if error:
            raise error[0]
        yield made
    finally:
        if made.loop is not None and stopping:
            made.loop.call_soon_threadsafe(stopping[0].set)
        thread.join()


def _users(tokens: dict[str, str]) -> str:
    users = [
        {"name": name, "tokenHash": f"sha256:{hashlib.sha256(token.encode()).hexdigest()}"}
        for name, token in tokens.items()
    ]
    return json.dumps({"users": users})


def _named(api_version: str, kind: str, name: str, **more: Any) -> Json:
    place = {"namespace": "default"} if kind in ("LocalQueue", "RoleBinding", "Job") else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **place}, **more}


def job(name: str, gpus: int = 3) -> Json:
    """Return a job of two pods that runs until it is stopped."""
    limits = {"limits": {"nvidia.com/gpu": str(gpus)}}
    container = {"name": "main", "image": "train:1", "resources": limits}
    template = {
        "metadata": {"annotations": {"unisono.dev/run-seconds": "forever"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    made = _named(
        "batch/v1", "Job", name, spec={"parallelism": 2, "completions": 2, "template": template}
    )
    made["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    return made


def _objects() -> tuple[Json, ...]:
    quota = [{"name": "nvidia.com/gpu", "nominalQuota": 8}]
    groups = [
        {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "any", "resources": quota}]}
    ]
    spec = {
        "namespaceSelector": {},
        "resourceGroups": groups,
        "preemption": {"withinClusterQueue": "LowerPriority"},
    }
    role = {"apiGroup": RBAC, "kind": "ClusterRole"}

    def bound(kind: str, name: str, role_name: str, *users: str) -> Json:
        subjects = [{"apiGroup": RBAC, "kind": "User", "name": user} for user in users]
        to = {"roleRef": {**role, "name": role_name}, "subjects": subjects}
        return _named(f"{RBAC}/v1", kind, name, **to)

    return (
        _named(KUEUE, "ResourceFlavor", "any"),
        _named(KUEUE, "ClusterQueue", "cq", spec=spec),
        _named(KUEUE, "ClusterQueue", "spare", spec=spec),
        _named(KUEUE, "LocalQueue", "q", spec={"clusterQueue": "cq"}),
        _named(KUEUE, "LocalQueue", "other", spec={"clusterQueue": "spare"}),
        _named(KUEUE, "WorkloadPriorityClass", "high", value=1000),
        _named(KUEUE, "WorkloadPriorityClass", "low", value=-5),
        bound("RoleBinding", "alice", "edit", "alice"),
        bound("RoleBinding", "bob", "view", "bob"),
        bound("ClusterRoleBinding", "readers", "unisono:reader", "alice", "bob"),
        job("runs"),
    )
