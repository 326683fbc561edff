"""The bridge at work: it looks at both sides, decides, acts, and answers Slurm's hooks.

    squeue, sinfo ──▶ belief ─┐                       ┌──▶ scontrol
                              ├──▶ decide ──▶ actions ┤
    watch of the API ▶ truth ─┘                       └──▶ Kubernetes API

A look is taken when Kubernetes changes, when a hook calls, when job_submit.lua leaves a note, and
every so often anyway; how often depends on how long Slurm takes to answer. One bridge acts at a
time: it holds a lock beside its socket.
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
from unisono.kube.form import Dicts
from unisono.kube.informer import Informer
from unisono.kube.mapping import POD, Kind
from unisono.kube.trouble import AlreadyExists, KubeTrouble
from unisono.slurm.bridge import actions
from unisono.slurm.bridge.apply import JOB, NODE, WORKLOAD, Hands
from unisono.slurm.bridge.cluster_view import Gang, Truth, truth_of
from unisono.slurm.bridge.decide import Patience, Terms, decide
from unisono.slurm.bridge.gang import Settings
from unisono.slurm.bridge.hooks import Answer, CannotListen, Question, listening
from unisono.slurm.bridge.marks import PLACEHOLDER, read_mark
from unisono.slurm.bridge.mismatch import SORTS, mismatches
from unisono.slurm.bridge.nodes import PLACEHOLDER_NAME, avoided, sync
from unisono.slurm.bridge.requests import taken
from unisono.slurm.bridge.slurm_commands import Programs, SlurmRefused, SlurmSilent
from unisono.slurm.bridge.slurm_view import Belief, SlurmJob, read_jobs, read_nodes
from unisono.slurm.host_list import expand

# Nodes change more slowly than jobs.
_NODES_EVERY_S = 2.0
_MISMATCHES_EVERY_S = 10.0
# Slurm is asked at most a tenth of the time, however large its queue.
_LEAST_POLL_S, _POLL_FACTOR = 1.0, 10.0
_REQUESTS_EVERY_S = 0.1
# What is not urgent is done in portions, so that a thousand new jobs do not keep one waiting that
# could start; explanations are for quiet moments.
_MOST_MADE, _MOST_TOLD = 50, 5


class Tells(Protocol):
    """Where events go."""

    def __call__(self, event: str, **facts: str | int | float | bool) -> None:
        """Tell one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the operator chose."""

    settings: Settings
    socket: Path
    terms: Terms = field(default_factory=Terms)
    # How long a prolog may wait for a reservation of nodes that Slurm has chosen itself.
    check_s: float = 10.0
    syncs_nodes: bool = True
    has_features: bool = False
    has_placeholders: bool = False
    owner: int | None = None  # SlurmUser, as whom hooks ask and job_submit.lua writes


@dataclass(slots=True)
class Figures:
    """What is counted."""

    cycles: int = 0
    started: int = 0
    taken_back: int = 0
    deadlocks_resolved: int = 0
    refused: int = 0  # hooks that heard a no
    failures: int = 0  # actions that did not work out
    is_slurm_there: bool = False
    gangs: int = 0
    whole: int = 0
    mismatches: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SORTS, 0))


class Bridge:
    """One bridge between a Slurm and a cluster."""

    def __init__(
        self,
        programs: Programs,
        client: Client,
        choices: Choices,
        *,
        clock: Clock,
        chance: random.Random,
        tell: Tells,
    ) -> None:
        """Prepare; nothing happens before `run`."""
        self.figures = Figures()
        self._slurm, self._client, self._choices = programs, client, choices
        self._clock, self._tell = clock, tell
        self._belief = Belief()
        self._nodes_read, self._compared = float("-inf"), float("-inf")
        self._patience = Patience()
        self._wake, self._looked = asyncio.Event(), asyncio.Event()
        namespace = choices.settings.namespace
        self._informers = {
            kind: Informer(client, kind, Dicts(*kind), clock=clock, chance=chance, namespace=within)
            for kind, within in ((JOB, namespace), (WORKLOAD, namespace), (POD, ""), (NODE, ""))
        }
        self._hands = Hands(programs, client, choices.settings, clock.now, self._saw, self._hosts)

    # ---- the loop ----------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until cancelled."""
        with _alone(self._choices.socket, self._choices.owner):
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
        async with listening(self._choices.socket, self._respond, self._choices.owner):
            self._tell("listening to hooks", socket=str(self._choices.socket))
            await guarded(self._hear_requests(), self._keep_looking())

    async def _keep_looking(self) -> None:
        while True:
            self._wake.clear()
            began = self._clock.monotonic()
            await self.look()
            took = self._clock.monotonic() - began
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(_LEAST_POLL_S, _POLL_FACTOR * took)):
                    await self._wake.wait()

    async def _hear_requests(self) -> None:
        """Do what job_submit.lua wrote down: there are new jobs, or a user holds one."""
        while True:
            await self._clock.sleep(_REQUESTS_EVERY_S)
            for request in await taken(self._choices.socket, self._clock):
                if request.mark:
                    await self._mark(request.job, request.mark)
                self._wake.set()

    async def _mark(self, number: int, mark: str) -> None:
        try:
            await self._slurm("scontrol", "update", f"JobId={number}", f"AdminComment={mark}")
        except (SlurmRefused, SlurmSilent) as trouble:
            self._tell("an action failed", action="mark", text=str(trouble))

    async def look(self) -> None:
        """Look once at both sides, and do what is to be done."""
        try:
            belief = await self._read()
        except SlurmSilent as trouble:
            if self.figures.is_slurm_there:
                self._tell("Slurm does not answer", text=str(trouble))
            self.figures.is_slurm_there = False
            return
        self.figures.is_slurm_there = True
        self._belief, truth, now = belief, self.truth(), self._clock.now()
        decided = list(decide(belief, truth, self._choices.terms, self._patience, now))
        made = [one for one in decided if isinstance(one, actions.MakeGang)]
        told = [one for one in decided if isinstance(one, actions.Tell)]
        urgent = [one for one in decided if not isinstance(one, actions.MakeGang | actions.Tell)]
        for action in urgent:
            await self._act(action, belief)
        async with asyncio.TaskGroup() as group:
            for new in made[:_MOST_MADE]:
                group.create_task(self._act(new, belief))
        if not urgent and not made:
            for one in told[:_MOST_TOLD]:
                await self._act(one, belief)
        if len(made) > _MOST_MADE or (told and (urgent or made)):
            self._wake.set()  # there is more to do
        await self._sync(belief, truth)
        self._count(belief, truth, now)
        self._looked.set()
        self._looked = asyncio.Event()

    async def _sync(self, belief: Belief, truth: Truth) -> None:
        """Keep nodes in step; what is to be done is decided anew on what Slurm says at that moment.

        Else a drain that an administrator made a second ago would be taken for ours.
        """
        if any(self._for_nodes(belief, truth)):
            self._nodes_read = float("-inf")
            belief = msgspec.structs.replace(belief, nodes=await read_nodes(self._slurm))
            for action in [*self._for_nodes(belief, truth)]:
                await self._act(action, belief)

    def _for_nodes(self, belief: Belief, truth: Truth) -> Iterator[actions.Action]:
        yield from avoided(belief, truth)
        if self._choices.syncs_nodes:
            yield from sync(
                belief,
                truth,
                has_features=self._choices.has_features,
                has_placeholders=self._choices.has_placeholders,
            )

    async def _read(self) -> Belief:
        now = self._clock.monotonic()
        nodes = self._belief.nodes
        if now - self._nodes_read >= _NODES_EVERY_S:
            nodes, self._nodes_read = await read_nodes(self._slurm), now
        return Belief(await read_jobs(self._slurm), nodes)

    def truth(self) -> Truth:
        """Return what Kubernetes has, as far as we have heard."""
        stores = {kind: one.store for kind, one in self._informers.items()}
        return truth_of(
            jobs=stores[JOB],
            workloads=stores[WORKLOAD],
            pods=stores[POD],
            nodes=stores[NODE],
            gpu=self._choices.settings.gpu,
            cluster=self._choices.settings.cluster,
        )

    async def _act(self, action: actions.Action, belief: Belief) -> bool:
        try:
            await self._hands.do(action, belief)
        except (SlurmRefused, SlurmSilent, KubeTrouble) as trouble:
            self.figures.failures += 1
            self._tell("an action failed", action=type(action).__name__, text=str(trouble))
            return False
        match action:
            case actions.Start(job, gang):
                self.figures.started += 1
                self._tell("started", job=job.key, nodes=",".join(gang.nodes))
            case actions.TakeBack(job, why, is_deadlock):
                self.figures.taken_back += 1
                self.figures.deadlocks_resolved += is_deadlock
                self._tell("taken back", job=job.key, why=why, deadlock=is_deadlock)
            case actions.Drain(node, why):
                self._tell("drained", node=node, why=why)
            case actions.Resume(node):
                self._tell("resumed", node=node)
            case actions.DropGang(gang, why) | actions.Park(gang, _, why):
                self._tell("gave back", job=gang.job, why=why, action=type(action).__name__)
            case actions.Cancel(job, why) | actions.HoldBack(job, why):
                self._tell("held back", job=job.key, why=why, action=type(action).__name__)
            case _:
                pass
        return True

    def _count(self, belief: Belief, truth: Truth, now: float) -> None:
        figures = self.figures
        figures.cycles += 1
        figures.gangs = len(truth.gangs)
        figures.whole = sum(one.is_whole for one in truth.gangs.values())
        if now - self._compared >= _MISMATCHES_EVERY_S:
            self._compared = now
            figures.mismatches = dict.fromkeys(SORTS, 0)
            for one in mismatches(belief, truth, bind_s=self._choices.terms.bind_s, now=now):
                figures.mismatches[one.sort] += 1

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
        except (SlurmRefused, SlurmSilent, KubeTrouble) as trouble:
            answer = Answer(ok=False, text=str(trouble))
        if not answer.ok:
            self.figures.refused += 1
            self._tell("refused", hook=question.hook, job=question.key, why=answer.text)
        return answer

    async def _may_start(self, question: Question) -> Answer:
        """Say yes to a job whose whole gang is on exactly its nodes."""
        nodes = set(expand(question.nodes))
        gang = self.truth().gangs.get(question.key)
        if gang is not None and gang.is_whole and set(gang.nodes) == nodes:
            return Answer(ok=True)
        belief = Belief(await read_jobs(self._slurm), self._belief.nodes)
        job = belief.jobs.get(question.key)
        if job is None:
            return Answer(ok=False, text="Slurm does not know this job")
        stand = read_mark(job.comment).stand
        if stand == PLACEHOLDER or (not stand and _is_placeholder(job)):
            return Answer(ok=True)
        if stand:
            return Answer(ok=False, text=_shortage(gang))
        return await self._reserve_there(job, tuple(sorted(nodes)), belief)

    async def _reserve_there(self, job: SlurmJob, nodes: tuple[str, ...], belief: Belief) -> Answer:
        """Reserve the nodes that Slurm chose by itself; if that fails, the job goes to the gate."""
        await self._hands.do(actions.MakeGang(job, only=nodes), belief)
        deadline = self._clock.monotonic() + self._choices.check_s
        gang = await self._until_whole(job.key, deadline)
        if gang is not None and gang.is_whole and set(gang.nodes) == set(nodes):
            await self._hands.own(job, gang)
            return Answer(ok=True)
        why = _shortage(gang)
        if gang is not None:
            await self._act(actions.DropGang(gang, why), belief)
        # Slurm requeues a job whose prolog says no, and cancels one that must not be requeued.
        await self._act(actions.Tell(job, why), belief)
        return Answer(ok=False, text=why)

    async def _until_whole(self, key: str, deadline: float) -> Gang | None:
        while True:
            gang = self.truth().gangs.get(key)
            left = deadline - self._clock.monotonic()
            if left <= 0 or (gang is not None and gang.is_whole):
                return gang
            await self._clock.sleep(min(0.05, left))

    async def _stage(self, question: Question) -> Answer:
        """Reserve before Slurm starts the job, for as long as that takes."""
        while True:
            job = self._belief.jobs.get(question.key)
            if job is not None and job.state != "PENDING":
                return Answer(ok=False, text=f"the job is {job.state}")
            gang = self.truth().gangs.get(question.key)
            if job is not None and gang is None:
                await self._hands.do(actions.MakeGang(job), self._belief)
            elif job is not None and gang is not None and gang.is_whole:
                await self._hands.pin(job, gang)
                return Answer(ok=True)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._looked.wait()

    # ---- small things ------------------------------------------------------------------------

    async def _make_namespace(self) -> None:
        name = self._choices.settings.namespace
        with contextlib.suppress(AlreadyExists):
            await self._client.create(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            )

    def _hosts(self) -> dict[str, str]:
        """Return what Kubernetes calls the nodes of Slurm."""
        return {one.slurm: one.host for one in self.truth().nodes.values()}

    def _saw(self, obj: dict[str, Any]) -> None:
        """Show our own writes at once."""
        informer = self._informers.get(Kind(obj.get("apiVersion", ""), obj.get("kind", "")))
        if informer is not None:
            informer.assume(obj)


def _is_placeholder(job: SlurmJob) -> bool:
    return job.name == PLACEHOLDER_NAME and job.user in ("root", "slurm")


def _shortage(gang: Gang | None) -> str:
    if gang is None:
        return "it has no reservation"
    there = f"{len(gang.nodes)} of {gang.wanted} pods have a node"
    return f"{there}; {gang.why}" if gang.why else there


@contextlib.contextmanager
def _alone(socket: Path, owner: int | None) -> Iterator[None]:
    """Be the only bridge that uses this socket; the lock goes with the process."""
    if not socket.parent.exists():
        socket.parent.mkdir(mode=0o755, parents=True)
        if owner is not None and os.geteuid() == 0:
            os.chown(socket.parent, owner, -1)
    with socket.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotListen(f"another bridge is at work: it holds {lock.name}") from None
        yield
