"""The bridge's loop: it reads both sides, decides, acts, and answers Slurm's hooks.

    squeue, sinfo ────▶ SlurmView ───┐                       ┌──▶ scontrol
                                     ├──▶ decide ──▶ actions ┤
    watch of the API ──▶ ClusterView ┘                       └──▶ Kubernetes API

It reconciles when Kubernetes changes, when a hook calls, when job_submit.lua writes a request, and
periodically; the period depends on how long Slurm takes to answer. One bridge acts at a time: it
holds a lock beside its socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec

from unisono.kube.client import Client
from unisono.kube.clock import Clock, guarded
from unisono.kube.errors import AlreadyExists, KubeError
from unisono.kube.form import Dicts
from unisono.kube.informer import Informer
from unisono.kube.mapping import POD, Kind
from unisono.slurm.bridge import actions
from unisono.slurm.bridge.apply import JOB, NODE, WORKLOAD, ActionExecutor
from unisono.slurm.bridge.cluster_view import ClusterView, Gang, cluster_view_of
from unisono.slurm.bridge.decide import Timeouts, UnboundTimer, decide
from unisono.slurm.bridge.gang import Settings
from unisono.slurm.bridge.hooks import Answer, CannotListen, Question, listening, taken
from unisono.slurm.bridge.marks import PLACEHOLDER, read_mark
from unisono.slurm.bridge.mismatch import MISMATCH_KINDS, mismatches
from unisono.slurm.bridge.nodes import PLACEHOLDER_NAME, avoided, sync
from unisono.slurm.bridge.slurm_commands import SlurmCommands, SlurmRefused, SlurmUnreachable
from unisono.slurm.bridge.slurm_view import SlurmJob, SlurmView, read_jobs, read_nodes
from unisono.slurm.host_list import expand

# Nodes change more slowly than jobs.
_NODES_EVERY_S = 2.0
_MISMATCHES_EVERY_S = 10.0
# Slurm is asked at most a tenth of the time, however large its queue.
_LEAST_POLL_S, _POLL_FACTOR = 1.0, 10.0
_REQUESTS_EVERY_S = 0.1
# Other actions are done in batches, so that a thousand new jobs do not delay one that could start;
# explanations are written when nothing else is due.
_MOST_CREATED, _MOST_EXPLAINED = 50, 5


class LogsEvents(Protocol):
    """A structured log."""

    def __call__(self, event: str, **facts: str | int | float | bool) -> None:
        """Log one event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeOptions:
    """The operator's options."""

    settings: Settings
    socket: Path
    timeouts: Timeouts = field(default_factory=Timeouts)
    # How long a prolog may wait for a reservation of nodes that Slurm has chosen itself.
    check_s: float = 10.0
    syncs_nodes: bool = True
    has_features: bool = False
    has_placeholders: bool = False
    owner: int | None = None  # SlurmUser: the user of hooks and of job_submit.lua


@dataclass(slots=True)
class BridgeCounters:
    """Counters for metrics."""

    cycles: int = 0
    started: int = 0
    taken_back: int = 0
    deadlocks_resolved: int = 0
    refused: int = 0  # hooks that were answered no
    failures: int = 0  # actions that failed
    is_slurm_there: bool = False
    gangs: int = 0
    whole: int = 0
    mismatches: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MISMATCH_KINDS, 0))


class Bridge:
    """One bridge between a Slurm and a cluster."""

    def __init__(
        self,
        programs: SlurmCommands,
        client: Client,
        options: BridgeOptions,
        *,
        clock: Clock,
        random_source: random.Random,
        log_event: LogsEvents,
    ) -> None:
        """Prepare; nothing happens before `run`."""
        self.counters = BridgeCounters()
        self._slurm, self._client, self._options = programs, client, options
        self._clock, self._log_event = clock, log_event
        self._slurm_view = SlurmView()
        self._nodes_read, self._compared = float("-inf"), float("-inf")
        self._unbound = UnboundTimer()
        self._wake, self._looked = asyncio.Event(), asyncio.Event()
        namespace = options.settings.namespace
        self._informers = {
            kind: Informer(
                client,
                kind,
                Dicts(*kind),
                clock=clock,
                random_source=random_source,
                namespace=within,
            )
            for kind, within in ((JOB, namespace), (WORKLOAD, namespace), (POD, ""), (NODE, ""))
        }
        self._executor = ActionExecutor(
            programs, client, options.settings, clock.now, self._saw, self._hosts
        )

    # ---- the loop ----------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until cancelled."""
        with _alone(self._options.socket, self._options.owner):
            await self._make_namespace()
            for informer in self._informers.values():
                informer.on_change(lambda delta: self._wake.set())
            await guarded(self._follow(), self._work())

    async def _follow(self) -> None:
        async with asyncio.TaskGroup() as group:
            for informer in self._informers.values():
                group.create_task(informer.run())

    async def _work(self) -> None:
        for informer in self._informers.values():
            await informer.synced()
        async with listening(self._options.socket, self._respond, self._options.owner):
            self._log_event("listening to hooks", socket=str(self._options.socket))
            await guarded(self._hear_requests(), self._keep_looking())

    async def _keep_looking(self) -> None:
        while True:
            self._wake.clear()
            began = self._clock.monotonic()
            await self.reconcile()
            took = self._clock.monotonic() - began
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(_LEAST_POLL_S, _POLL_FACTOR * took)):
                    await self._wake.wait()

    async def _hear_requests(self) -> None:
        """Apply the requests of job_submit.lua: new jobs, or a user's hold or release."""
        while True:
            await self._clock.sleep(_REQUESTS_EVERY_S)
            for request in await taken(self._options.socket, self._clock):
                if request.mark:
                    await self._mark(request.job, request.mark)
                self._wake.set()

    async def _mark(self, number: int, mark: str) -> None:
        try:
            await self._slurm("scontrol", "update", f"JobId={number}", f"AdminComment={mark}")
        except (SlurmRefused, SlurmUnreachable) as error:
            self._log_event("an action failed", action="mark", text=str(error))

    async def reconcile(self) -> None:
        """Read both sides once, decide, and act."""
        try:
            slurm_view = await self._read()
        except SlurmUnreachable as error:
            if self.counters.is_slurm_there:
                self._log_event("Slurm does not answer", text=str(error))
            self.counters.is_slurm_there = False
            return
        self.counters.is_slurm_there = True
        self._slurm_view, cluster_view, now = slurm_view, self.cluster_view(), self._clock.now()
        decided = list(decide(slurm_view, cluster_view, self._options.timeouts, self._unbound, now))
        created = [one for one in decided if isinstance(one, actions.MakeGang)]
        explained = [one for one in decided if isinstance(one, actions.Explain)]
        urgent = [one for one in decided if not isinstance(one, actions.MakeGang | actions.Explain)]
        for action in urgent:
            await self._act(action, slurm_view)
        async with asyncio.TaskGroup() as group:
            for new in created[:_MOST_CREATED]:
                group.create_task(self._act(new, slurm_view))
        if not urgent and not created:
            for one in explained[:_MOST_EXPLAINED]:
                await self._act(one, slurm_view)
        if len(created) > _MOST_CREATED or (explained and (urgent or created)):
            self._wake.set()  # more to do
        await self._sync(slurm_view, cluster_view)
        self._count(slurm_view, cluster_view, now)
        self._looked.set()
        self._looked = asyncio.Event()

    async def _sync(self, slurm_view: SlurmView, cluster_view: ClusterView) -> None:
        """Keep node states in step, deciding again on a fresh reading of Slurm's nodes.

        Otherwise a drain that an administrator set a second ago would be taken for ours.
        """
        if any(self._for_nodes(slurm_view, cluster_view)):
            self._nodes_read = float("-inf")
            slurm_view = msgspec.structs.replace(slurm_view, nodes=await read_nodes(self._slurm))
            for action in [*self._for_nodes(slurm_view, cluster_view)]:
                await self._act(action, slurm_view)

    def _for_nodes(
        self, slurm_view: SlurmView, cluster_view: ClusterView
    ) -> Iterator[actions.Action]:
        yield from avoided(slurm_view, cluster_view)
        if self._options.syncs_nodes:
            yield from sync(
                slurm_view,
                cluster_view,
                has_features=self._options.has_features,
                has_placeholders=self._options.has_placeholders,
            )

    async def _read(self) -> SlurmView:
        now = self._clock.monotonic()
        nodes = self._slurm_view.nodes
        if now - self._nodes_read >= _NODES_EVERY_S:
            nodes, self._nodes_read = await read_nodes(self._slurm), now
        return SlurmView(await read_jobs(self._slurm), nodes)

    def cluster_view(self) -> ClusterView:
        """Return the cluster's view, as the watches have it."""
        stores = {kind: one.store for kind, one in self._informers.items()}
        return cluster_view_of(
            jobs=stores[JOB],
            workloads=stores[WORKLOAD],
            pods=stores[POD],
            nodes=stores[NODE],
            gpu=self._options.settings.gpu,
            cluster=self._options.settings.cluster,
        )

    async def _act(self, action: actions.Action, slurm_view: SlurmView) -> bool:
        try:
            await self._executor.do(action, slurm_view)
        except (SlurmRefused, SlurmUnreachable, KubeError) as error:
            self.counters.failures += 1
            self._log_event("an action failed", action=type(action).__name__, text=str(error))
            return False
        match action:
            case actions.Start(job, gang):
                self.counters.started += 1
                self._log_event("started", job=job.key, nodes=",".join(gang.nodes))
            case actions.RevokeNodes(job, why, is_deadlock):
                self.counters.taken_back += 1
                self.counters.deadlocks_resolved += is_deadlock
                self._log_event("taken back", job=job.key, why=why, deadlock=is_deadlock)
            case actions.Drain(node, why):
                self._log_event("drained", node=node, why=why)
            case actions.Resume(node):
                self._log_event("resumed", node=node)
            case actions.DropGang(gang, why) | actions.Deactivate(gang, _, why):
                self._log_event("gave back", job=gang.job, why=why, action=type(action).__name__)
            case actions.Cancel(job, why) | actions.Hold(job, why):
                self._log_event("held back", job=job.key, why=why, action=type(action).__name__)
            case _:
                pass
        return True

    def _count(self, slurm_view: SlurmView, cluster_view: ClusterView, now: float) -> None:
        counters = self.counters
        counters.cycles += 1
        counters.gangs = len(cluster_view.gangs)
        counters.whole = sum(one.is_whole for one in cluster_view.gangs.values())
        if now - self._compared >= _MISMATCHES_EVERY_S:
            self._compared = now
            counters.mismatches = dict.fromkeys(MISMATCH_KINDS, 0)
            for one in mismatches(
                slurm_view, cluster_view, bind_s=self._options.timeouts.bind_s, now=now
            ):
                counters.mismatches[one.kind] += 1

    # ---- hooks -------------------------------------------------------------------------------

    async def _respond(self, question: Question) -> Answer:
        self._wake.set()
        if question.hook in ("epilog", "submitted"):
            return Answer(ok=True)
        try:
            if question.hook == "stage":
                answer = await self._stage(question)
            else:
                answer = await self._may_start(question)
        except (SlurmRefused, SlurmUnreachable, KubeError) as error:
            answer = Answer(ok=False, text=str(error))
        if not answer.ok:
            self.counters.refused += 1
            self._log_event("refused", hook=question.hook, job=question.key, why=answer.text)
        return answer

    async def _may_start(self, question: Question) -> Answer:
        """Allow a job whose whole gang is on exactly its nodes."""
        nodes = set(expand(question.nodes))
        gang = self.cluster_view().gangs.get(question.key)
        if gang is not None and gang.is_whole and set(gang.nodes) == nodes:
            return Answer(ok=True)
        slurm_view = SlurmView(await read_jobs(self._slurm), self._slurm_view.nodes)
        job = slurm_view.jobs.get(question.key)
        if job is None:
            return Answer(ok=False, text="Slurm does not know this job")
        state = read_mark(job.comment).state
        if state == PLACEHOLDER or (not state and _is_placeholder(job)):
            return Answer(ok=True)
        if state:
            return Answer(ok=False, text=_shortage(gang))
        return await self._reserve_there(job, tuple(sorted(nodes)), slurm_view)

    async def _reserve_there(
        self, job: SlurmJob, nodes: tuple[str, ...], slurm_view: SlurmView
    ) -> Answer:
        """Reserve the nodes that Slurm chose itself; if that fails, the job is requeued."""
        await self._executor.do(actions.MakeGang(job, only=nodes), slurm_view)
        deadline = self._clock.monotonic() + self._options.check_s
        gang = await self._until_whole(job.key, deadline)
        if gang is not None and gang.is_whole and set(gang.nodes) == set(nodes):
            await self._executor.own(job, gang)
            return Answer(ok=True)
        why = _shortage(gang)
        if gang is not None:
            await self._act(actions.DropGang(gang, why), slurm_view)
        # Slurm requeues a job whose prolog fails, and cancels one that must not be requeued.
        await self._act(actions.Explain(job, why), slurm_view)
        return Answer(ok=False, text=why)

    async def _until_whole(self, key: str, deadline: float) -> Gang | None:
        while True:
            gang = self.cluster_view().gangs.get(key)
            left = deadline - self._clock.monotonic()
            if left <= 0 or (gang is not None and gang.is_whole):
                return gang
            await self._clock.sleep(min(0.05, left))

    async def _stage(self, question: Question) -> Answer:
        """Wait until the job has its reservation, before Slurm starts it."""
        while True:
            job = self._slurm_view.jobs.get(question.key)
            if job is not None and job.state != "PENDING":
                return Answer(ok=False, text=f"the job is {job.state}")
            gang = self.cluster_view().gangs.get(question.key)
            if job is not None and gang is None:
                await self._executor.do(actions.MakeGang(job), self._slurm_view)
            elif job is not None and gang is not None and gang.is_whole:
                await self._executor.pin(job, gang)
                return Answer(ok=True)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._looked.wait()

    # ---- small parts -------------------------------------------------------------------------

    async def _make_namespace(self) -> None:
        name = self._options.settings.namespace
        with contextlib.suppress(AlreadyExists):
            await self._client.create(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            )

    def _hosts(self) -> dict[str, str]:
        """Return what Kubernetes calls the nodes of Slurm."""
        return {one.slurm: one.host for one in self.cluster_view().nodes.values()}

    def _saw(self, obj: dict[str, Any]) -> None:
        """Put our own writes into the watched state at once."""
        informer = self._informers.get(Kind(obj.get("apiVersion", ""), obj.get("kind", "")))
        if informer is not None:
            informer.assume(obj)


def _is_placeholder(job: SlurmJob) -> bool:
    return job.name == PLACEHOLDER_NAME and job.user in ("root", "slurm")


def _shortage(gang: Gang | None) -> str:
    if gang is None:
        return "the job has no reservation"
    there = f"{len(gang.nodes)} of {gang.wanted} pods have a node"
    return f"{there}; {gang.why}" if gang.why else there


@contextlib.contextmanager
def _alone(socket: Path, owner: int | None) -> Iterator[None]:
    """Hold the socket's lock, so that only one bridge runs; the lock ends with the process."""
    if not socket.parent.exists():
        socket.parent.mkdir(mode=0o755, parents=True)
        if owner is not None and os.geteuid() == 0:
            os.chown(socket.parent, owner, -1)
    with socket.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"another bridge is running: it holds {lock.name}; stop it first"
            raise CannotListen(message) from None
        yield
