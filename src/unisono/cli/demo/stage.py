"""A throw-away cluster for one story, and the narration of what happens on it."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
import tempfile
import textwrap
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from unisono.apiserver.api import Api
from unisono.apiserver.bootstrap import SYSTEM
from unisono.apiserver.request import Request
from unisono.apiserver.times import timestamp
from unisono.cli.tables import WIDTH, paragraph, table
from unisono.cli.times import local_times
from unisono.control.admission.kueue_messages import eviction_message
from unisono.engine.model.errors import UnisonoError
from unisono.kinds.documents import read_documents
from unisono.kinds.kueue.waiting import waiting_message
from unisono.kinds.views.objects import Conditions
from unisono.kube.client import Client
from unisono.kube.connect import client_over
from unisono.kube.form import Json
from unisono.provision.catalog.nodes import nodes_of, parse_shape
from unisono.runner.run_mode import RunMode
from unisono.runtime.clock import RealClock, seconds_now
from unisono.runtime.embedded.controllers import AtWork
from unisono.runtime.embedded.in_process import InProcess
from unisono.runtime.embedded.server import Choices, running
from unisono.runtime.ids import new_uid, random_source
from unisono.runtime.instance import Instance
from unisono.runtime.policy_file import chosen_policy

_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_POLL_SECONDS = 0.02
_QUIET_SECONDS = 3.0  # a longer silence looks like a story that hangs


class StoryFailed(UnisonoError):
    """An expected step did not happen: the demo has found a bug."""


@dataclass(slots=True)
class Stage:
    """The cluster of one story."""

    api: Api
    client: Client
    at_work: AtWork
    kubeconfig: Path
    started: float = field(default_factory=time.monotonic)
    _told: dict[str, str] = field(default_factory=dict)
    _spoke: float = 0.0  # when the last line was printed

    # ---- telling -----------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Announce the next step."""
        sys.stdout.write(f"\n{paragraph(text, indent='')}\n")
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """Report what has just happened, with the time."""
        since = f"  {time.monotonic() - self.started:5.1f} s  "
        self._spoke = time.monotonic()
        wrapped = textwrap.wrap(
            text, WIDTH - len(since), subsequent_indent=" " * 4, break_on_hyphens=False
        )
        sys.stdout.write(f"\n{' ' * len(since)}".join([since + wrapped[0], *wrapped[1:]]) + "\n")
        sys.stdout.flush()

    async def show(self, command: str, path: str) -> None:
        """Print a list as kubectl would."""
        request = Request(method="GET", path=path, headers={"accept": _TABLE}, user=SYSTEM)
        answer = orjson.loads((await self.api.handle(request)).body)
        columns = [one for one in answer["columnDefinitions"] if one["priority"] == 0]
        names = [one["name"].upper() for one in columns]
        rows: list[list[object]] = []
        for row in answer["rows"]:
            cells = [
                cell
                for cell, one in zip(row["cells"], answer["columnDefinitions"], strict=True)
                if one["priority"] == 0
            ]
            rows.append(cells)
        if "-A" in command.split():
            names.insert(0, "NAMESPACE")
            for cells, row in zip(rows, answer["rows"], strict=True):
                cells.insert(0, row["object"]["metadata"].get("namespace", ""))
        sys.stdout.write(f"\n  $ {command}\n{table(names, rows)}\n")
        sys.stdout.flush()

    async def logs(self, pod: str) -> str:
        """Return what a pod of the namespace `default` wrote."""
        path = f"/api/v1/namespaces/default/pods/{pod}/log"
        answer = await self.api.handle(Request(method="GET", path=path, user=SYSTEM))
        if answer.chunks is None:
            return ""
        return b"".join([chunk async for chunk in answer.chunks]).decode()

    # ---- doing -------------------------------------------------------------------------------

    async def apply(self, path: Path) -> None:
        """Apply a file of manifests."""
        read = read_documents(path.name, path.read_bytes())
        for document in read.documents:
            await self.client.apply(dict(document.raw))
        self.note(f"kubectl apply -f {path.name}")

    async def create(self, *objects: Json) -> None:
        """Create objects."""
        for obj in objects:
            await self.client.apply(obj)

    # ---- watching ----------------------------------------------------------------------------

    def every(self, key: str) -> list[Json]:
        """Return all objects of a kind, by `group/plural`."""
        return [record.load() for record in self.api.store.listing(key)]

    def tell_changes(self) -> None:
        """Print the workloads with another state than at the last look."""
        pods = self.every("/pods")
        for workload in self.every("kueue.x-k8s.io/workloads"):
            name = workload["metadata"]["name"].rpartition("-")[0]
            state = _condition_of(workload, pods)
            if state and self._told.get(name) != state:
                self._told[name] = state
                self.note(f"{name:<27} {local_times(state, seconds_now())}")

    async def until(self, what: str, is_so: Callable[[], bool], seconds: float = 30.0) -> None:
        """Wait for a state, reporting changes meanwhile."""
        deadline = time.monotonic() + seconds
        self._spoke = time.monotonic()
        while True:
            self.tell_changes()
            if is_so():
                return
            if time.monotonic() - self._spoke > _QUIET_SECONDS:
                self.note(f"waiting until {what}")
            if time.monotonic() > deadline:
                raise StoryFailed(f"the story stops here: {what} did not happen in {seconds:g} s")
            await asyncio.sleep(_POLL_SECONDS)

    def job_is(self, name: str, condition: str) -> bool:
        """Say whether a Job has a condition."""
        for one in self.every("batch/jobs"):
            if one["metadata"]["name"] == name:
                conditions = (one.get("status") or {}).get("conditions") or ()
                return any(c["type"] == condition and c["status"] == "True" for c in conditions)
        return False

    def running(self, prefix: str) -> int:
        """Return how many pods with this prefix are running."""
        return sum(
            pod["metadata"]["name"].startswith(prefix)
            and (pod.get("status") or {}).get("phase") == "Running"
            for pod in self.every("/pods")
        )


def _condition_of(workload: Json, pods: list[Json]) -> str:
    """Return the state of a workload in a few words."""
    conditions = {
        one["type"]: one for one in (workload.get("status") or {}).get("conditions") or ()
    }

    def holds(kind: str) -> bool:
        return kind in conditions and conditions[kind]["status"] == "True"

    if holds("Finished"):
        return f"finished: {conditions['Finished']['reason']}"
    if holds("Evicted"):
        # The preemptor, without the uids, which say nothing to a person.
        message = eviction_message(list(conditions.values()))
        message = re.sub(r" \(UID: [^)]*\)", "", message)
        return f"evicted: {message}"
    name = workload["metadata"]["name"]
    own = [
        pod
        for pod in pods
        if (pod["metadata"].get("annotations") or {}).get("kueue.x-k8s.io/workload") == name
    ]
    alive = [pod for pod in own if (pod.get("status") or {}).get("phase") == "Running"]
    if holds("PodsReady"):
        nodes = sorted({pod["spec"].get("nodeName", "") for pod in alive})
        amount = "1 pod" if len(alive) == 1 else f"{len(alive)} pods"
        return f"running: {amount} on {', '.join(nodes)}" if alive else ""
    buying = conditions.get("CapacityPlanned")
    if buying is not None and buying["reason"] == "Planned" and not holds("Admitted"):
        return f"provisioning: {buying['message']}"
    if holds("Admitted"):
        return "admitted: every pod has a node"
    if "QuotaReserved" in conditions:
        return f"pending: {waiting_message(Conditions(list(conditions.values())))}"
    return ""


@contextlib.asynccontextmanager
async def stage(
    title: str, nodes: str, *, speed: float = 1.0, pods: RunMode = "simulated", policy: str = ""
) -> AsyncIterator[Stage]:
    """Start a cluster with these nodes for one story."""
    sys.stdout.write(f"{title}\n{'=' * len(title)}\n")
    with tempfile.TemporaryDirectory(prefix="unisono-demo-") as directory:
        instance = Instance(Path(directory))
        instance.prepare()
        groups = parse_shape(nodes) if nodes else ()
        made = list(nodes_of(groups, now=timestamp(seconds_now())))
        chosen = None
        if policy:
            (Path(directory) / "chosen.yaml").write_text(policy, encoding="utf-8")
            chosen = chosen_policy(instance, str(Path(directory) / "chosen.yaml"))
        choices = Choices(pods=pods, speed=speed, is_power_safe=False, policy=chosen)
        async with running(instance, choices, made) as cluster:
            client = own_client(cluster.api)
            yield Stage(cluster.api, client, cluster.at_work, instance.kubeconfig)


def own_client(api: Api) -> Client:
    """Return a client of an API in this process."""
    return client_over(
        InProcess(api, SYSTEM), clock=RealClock(), random_source=random_source(), ids=new_uid
    )
