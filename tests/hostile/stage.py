"""A small cluster with a noisy and a quiet namespace, whose every step is counted.

    noisy   a queue of 8 GPUs on two nodes, with a job that runs and one that waits
    quiet   a queue of 8 GPUs on a node that is kept for it, with a job that runs

The API is spoken to as over HTTP. What a controller raises is treated as a living cluster treats
it (`control.reconciling.workers`): noted, and tried again later, so that a story goes on and all
that is wrong is seen. The database is written in the same thread, and nothing else runs, so that a
process with such a cluster can be forked.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from tests.control.stories import namespace
from tests.faults.cluster import AtOnce
from tests.runner.simulated_world import node
from tests.support.control_objects import KUEUE, job
from tests.support.control_world import World
from unisono.apiserver.bootstrap import SYSTEM
from unisono.apiserver.errors import ApiError
from unisono.apiserver.http_entry import HttpEntry
from unisono.apiserver.request import User
from unisono.apiserver.storage.database import Database
from unisono.control.assembly import Assembly, embedded
from unisono.control.names import WORKLOAD
from unisono.control.reconciling.event_routing import Task
from unisono.control.view import Difference, View
from unisono.kinds.overriding import override
from unisono.kinds.policy.settings import DEFAULTS, Settings
from unisono.kube.form import Json, Key
from unisono.kube.mapping import Kind
from unisono.net.http.messages import Response
from unisono.runner.simulated.kubelet import SimulatedKubelet, Simulation
from unisono.runtime.embedded.in_process import InProcess

NOISY, QUIET = "noisy", "quiet"
ADMIN = User(name="admin", groups=("system:masters",))
_FOREVER = 1_000_000
_RESOURCES = {"nvidia.com/gpu": "8", "cpu": "100", "memory": "1000Gi"}
# More steps of controllers than this at one instant mean that they never come to rest. A job of two
# pods takes about fifty.
MOST_TASKS = 3000


class Runaway(BaseException):
    """More steps were taken than any case may take; only the trial catches this."""


class Meter:
    """Counts Python's calls and returns while it is on; stops code that takes too many.

    What is counted is the same on every machine, busy or not; seconds are not.
    """

    def __init__(self, most: int) -> None:
        self.steps = 0
        self.most = most

    def __enter__(self) -> Meter:
        sys.setprofile(self._count)
        return self

    def __exit__(self, *exception: object) -> None:
        sys.setprofile(None)

    def _count(self, frame: object, event: str, argument: object) -> None:
        self.steps += 1
        if self.steps > self.most:
            raise Runaway(f"more than {self.most} steps")


@dataclass(frozen=True, slots=True)
class Crash:
    """Something that a controller raised, or that came up while hearing of a change."""

    task: str
    error: str
    place: str  # file and line


@dataclass(frozen=True, slots=True)
class Send:
    """A request."""

    method: str
    path: str
    body: bytes = b""
    media: str = "application/json"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    code: int
    body: bytes
    warnings: tuple[str, ...]

    @property
    def message(self) -> str:
        """What a refusal says."""
        if not self.body.startswith(b"{"):
            return ""
        return str(orjson.loads(self.body).get("message", ""))


class Stage(World):
    """The cluster."""

    def __init__(self) -> None:
        def assemble(view: View, settings: Settings) -> Assembly:
            made = embedded(view, settings)
            kubelet = SimulatedKubelet(Simulation())
            return Assembly(made.scheduler, (*made.controllers, kubelet))

        super().__init__(settings=DEFAULTS, assemble=assemble)
        self.crashes: list[Crash] = []
        self.mistakes: list[str] = []  # behind answers of 500
        self.admitted_in: dict[str, int] = {}  # cycles until then, by the job that owns a Workload
        self._resources: dict[Kind, Any] = {}

    def open(self) -> None:
        """Begin to answer requests, on a cluster without anything."""
        self.store._writer.shutdown()
        self.store._writer = AtOnce()  # type: ignore[assignment]  # it only ever submits
        # Controllers write as they do in `unisono up`: what they write is not checked.
        self._controllers = self._client_over(InProcess(self.api, SYSTEM))
        self.restart()
        self.driver.listeners.append(self._watch)
        asyncio.get_running_loop().set_exception_handler(self._mistake)
        self._front = HttpEntry(self.api, lambda *_: ADMIN)

    async def set_up(self) -> None:
        """Bring up nodes, queues and three jobs."""
        self.open()
        await self.create(
            namespace(NOISY),
            namespace(QUIET),
            *(_node(f"{NOISY}-{number}", NOISY) for number in (1, 2)),
            _node(f"{QUIET}-1", QUIET),
            *queue(NOISY),
            *queue(QUIET),
        )
        await self.create(gang("busy", NOISY, pods=2), gang("settled", QUIET))
        await self.settle()
        await self.create(gang("waits", NOISY, pods=4, gpus=4))
        await self.settle()
        await self.pass_time(5)
        assert not self.crashes, self.crashes

    def write_to(self, path: Path) -> None:
        """Write what changes from now on to a file: memory is for what a living cluster keeps."""
        self.store._database = Database(path, is_power_safe=False)

    def _mistake(self, loop: object, context: Mapping[str, Any]) -> None:
        error = context.get("exception")
        self.mistakes.append(f"{error!r} at {place_of(error)}" if error else str(context))

    def _watch(self, kind: Kind, difference: Difference) -> None:
        """Note in which cycle a job of the quiet namespace got its nodes."""
        new = difference.new
        if kind != WORKLOAD or new is None or new["metadata"]["namespace"] != QUIET:
            return
        if (new.get("status") or {}).get("admission"):
            for owner in new["metadata"].get("ownerReferences") or ():
                self.admitted_in.setdefault(owner["name"], self.assembly.scheduler.cycles)

    # ---- requests ----------------------------------------------------------------------------

    async def send(self, send: Send) -> Answer:
        """Ask the API as an outside client would, body and all; SLIP is past all checks."""
        if send.method == "SLIP":
            return await self._slip(orjson.loads(send.body))
        headers = {"content-type": send.media, "user-agent": "kubectl/v1"}
        call = self._front.begin(send.method, send.path.encode(), headers)
        self._front.take(call, send.body)
        found = self._front.answer(call)
        response = found if isinstance(found, Response) else await found
        self._front.drop(call)
        self._front.leave(call)
        warned = tuple(value for name, value in response.headers.items() if name == "warning")
        return Answer(response.code, response.body, warned)

    async def _slip(self, obj: Json) -> Answer:
        """Store an unchecked object."""
        own = self.api.direct
        try:
            made = own.create(SYSTEM, obj["apiVersion"], obj["kind"], obj, is_checked=False)
            if "status" in obj:  # which no client creates together with the object
                metadata, status = obj["metadata"], {"status": obj["status"]}
                where = (metadata.get("namespace", ""), metadata["name"], "status")
                kind = (obj["apiVersion"], obj["kind"])
                made = own.patch(SYSTEM, *kind, where, status, is_checked=False)
        except ApiError as error:
            return Answer(error.status()["code"], orjson.dumps(error.status()), ())
        await own.committed()
        return Answer(201, orjson.dumps(made.obj), ())

    # ---- steps -------------------------------------------------------------------------------

    @override
    def _resource(self, kind: Kind) -> Any:
        found = self._resources.get(kind)
        if found is None:
            found = self._resources[kind] = super()._resource(kind)
        return found

    @override
    def pump(self) -> bool:
        try:
            return super().pump()
        except Exception as error:  # noqa: BLE001  (it would end a living cluster: that is the news)
            self._crashed("hearing of a change", error)
            return True

    @override
    async def settle(self, most: int = MOST_TASKS) -> None:
        """Work until no controller has anything left to do at this time."""
        idle = 0
        for _ in range(most):
            await self.store.committed()
            for _ in range(3):
                await asyncio.sleep(0)
            heard = self.pump()
            worked = await self._step()
            idle = 0 if heard or worked or not self.api.garbage_collector.is_idle else idle + 1
            if idle == 2:
                return
        raise AssertionError(f"the controllers do not come to rest after {most} tasks")

    async def _step(self) -> bool:
        task = self.driver.queue.take(self.clock.monotonic())
        if task is None:
            return False
        try:
            await self.driver.work(task)
        except Exception as error:  # noqa: BLE001  (a controller with a bug: that is the news)
            self._crashed(_spoken(task), error)
            self.driver.queue.retry(task, now=self.clock.monotonic())
        return True

    def _crashed(self, task: str, error: Exception) -> None:
        self.crashes.append(Crash(task, repr(error)[:500], place_of(error)))


def place_of(error: BaseException | None) -> str:
    """Return where an exception was raised: the last place in our own code, and the very last."""
    places = []
    trace = error.__traceback__ if error is not None else None
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        places.append((name, trace.tb_lineno))
        trace = trace.tb_next
    ours = [one for one in places if "/unisono/" in one[0]]
    found = dict.fromkeys((*ours[-2:], *places[-1:]))
    return ", ".join(f"{name.rpartition('/unisono/')[2]}:{line}" for name, line in found)


def _spoken(task: Task) -> str:
    key: Key = task.key
    return f"{task.controller} {key.namespace}/{key.name}"


# ---- objects -------------------------------------------------------------------------------------


def _node(name: str, pool: str) -> Json:
    made = node(name, **{"nvidia.com/gpu": "8"})
    made["metadata"]["labels"]["pool"] = pool
    if pool == QUIET:  # no pod without a queue may take what the innocent needs
        made["spec"]["taints"] = [{"key": "pool", "value": QUIET, "effect": "NoSchedule"}]
    return made


def queue(name: str) -> list[Json]:
    """Return a flavor, a ClusterQueue and a LocalQueue, all of one name."""
    quotas = [{"name": key, "nominalQuota": amount} for key, amount in _RESOURCES.items()]
    toleration = {"key": "pool", "operator": "Equal", "value": name, "effect": "NoSchedule"}
    group = {
        "coveredResources": [*_RESOURCES],
        "flavors": [{"name": name, "resources": quotas}],
    }
    return [
        {
            "apiVersion": KUEUE,
            "kind": "ResourceFlavor",
            "metadata": {"name": name},
            "spec": {"nodeLabels": {"pool": name}, "tolerations": [toleration]},
        },
        {
            "apiVersion": KUEUE,
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {"namespaceSelector": {}, "resourceGroups": [group]},
        },
        {
            "apiVersion": KUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": name, "namespace": name},
            "spec": {"clusterQueue": name},
        },
    ]


def gang(name: str, where: str, *, pods: int = 2, gpus: int = 1) -> Json:
    """Return a job in a namespace and its queue."""
    made = job(name, pods=pods, gpus=gpus, seconds=_FOREVER, queue_name=where)
    made["metadata"]["namespace"] = where
    return made
