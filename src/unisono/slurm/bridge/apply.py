"""Carries actions out: one call of Slurm or of the Kubernetes API after the other.

Every action is idempotent. Order matters where two writes are needed: a job is pinned before it is
released, and a gang is deleted only after Slurm has left its nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from unisono.kube.client import Client
from unisono.kube.errors import AlreadyExists, Conflict, NotFound
from unisono.kube.mapping import POD, Kind
from unisono.slurm.bridge import actions, gang
from unisono.slurm.bridge.cluster_view import Gang
from unisono.slurm.bridge.gang import Settings, gang_of, pin_fields, requested_nodes
from unisono.slurm.bridge.marks import GATE, PINNED, PLACEHOLDER, Mark, read_mark
from unisono.slurm.bridge.nodes import PLACEHOLDER_NAME
from unisono.slurm.bridge.slurm_commands import SlurmCommands
from unisono.slurm.bridge.slurm_view import SlurmJob, SlurmView
from unisono.slurm.lite_typing import Json

# LocalQueues are listed at most this often: a new one is used a few seconds later.
_QUEUES_FOR_S = 5.0

JOB = Kind("batch/v1", "Job")
NODE = Kind("v1", "Node")
WORKLOAD = Kind("kueue.x-k8s.io/v1beta2", "Workload")
LOCAL_QUEUE = Kind("kueue.x-k8s.io/v1beta2", "LocalQueue")


class ActionExecutor:
    """Carries actions out on a Slurm and a cluster."""

    def __init__(
        self,
        programs: SlurmCommands,
        client: Client,
        settings: Settings,
        clock: Callable[[], float],
        saw: Callable[[Json], None] = lambda obj: None,
        hosts: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """Act on a Slurm and on a cluster.

        `saw` is called with every object that was written; `hosts` maps Slurm's node names to those
        of Kubernetes.
        """
        self._hosts = hosts
        self._queues: set[str] = set()
        self._queues_until = 0.0
        self._saw = saw
        self._slurm = programs
        self._client = client
        self._settings = settings
        self._clock = clock

    async def do(self, action: actions.Action, slurm_view: SlurmView) -> None:
        """Carry one action out."""
        match action:
            case actions.MakeGang(job, only, tries):
                await self._make(job, slurm_view, only, tries)
            case actions.DropGang(dropped, _):
                await self._drop(dropped)
            case actions.Deactivate(one, until, _):
                await self._deactivate(one, until)
            case actions.Reactivate(one):
                await self._activate(one, is_active=True)
            case actions.Start(job, reserved):
                await self._start(job, reserved)
            case actions.StartNow(job):
                await self._update(job.key, "StartTime=now")
            case actions.Hold(job, why):
                await self._update(job.key, "Priority=0", _comment(job, GATE, why))
            case actions.RevokeNodes(job, why):
                await self._take_back(job, why)
            case actions.Cancel(job, why):
                await self._update(job.key, _comment(job, GATE, why))
                await self._slurm("scancel", job.key)
            case actions.Explain(job, why):
                await self._update(job.key, _comment(job, GATE, why))
            case actions.DeletePod(pod):
                await self._free(pod.name, pod.namespace, pod.uid)
            case actions.Drain(node, why):
                await self._slurm(
                    "scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={why}"
                )
            case actions.Resume(node):
                await self._slurm("scontrol", "update", f"NodeName={node}", "State=RESUME")
            case actions.MarkAway(node, is_away):
                labels = {gang.AWAY: "true" if is_away else None}
                changes = {"metadata": {"labels": labels}}
                self._saw(await self._client.patch(NODE, node, "", changes))
            case actions.SetFeatures(node, features):
                listed = ",".join(features)
                both = (f"AvailableFeatures={listed}", f"ActiveFeatures={listed}")
                await self._slurm("scontrol", "update", f"NodeName={node}", *both)
            case actions.SubmitPlaceholder(node, gpus):
                await self._occupy(node, gpus)
            case actions.CancelPlaceholder(job):
                await self._slurm("scancel", job.key)

    # ---- Slurm -------------------------------------------------------------------------------

    async def _update(self, key: str, *fields: str) -> None:
        await self._slurm("scontrol", "update", f"JobId={key}", *fields)

    async def _start(self, job: SlurmJob, reserved: Gang) -> None:
        """Pin and release; the time is written first, so that a later bridge can undo it."""
        annotations = {gang.RELEASED_AT: f"{self._clock():.3f}"}
        await self._annotate(reserved, annotations)
        fields = [*pin_fields(job, reserved.nodes), _pinned(job)]
        if job.restarts:
            fields.append("StartTime=now")  # else Slurm waits until its credentials are old
        await self._update(job.key, *fields)
        await self._slurm("scontrol", "release", job.key)

    async def own(self, job: SlurmJob, reserved: Gang) -> None:
        """Mark a job that Slurm started by itself as pinned, once it has its reservation."""
        await self._annotate(reserved, {gang.RELEASED_AT: f"{self._clock():.3f}"})
        await self._update(job.key, _pinned(job))

    async def pin(self, job: SlurmJob, reserved: Gang) -> None:
        """Pin a job that Slurm itself will start."""
        await self._annotate(reserved, {gang.RELEASED_AT: f"{self._clock():.3f}"})
        await self._update(job.key, *pin_fields(job, reserved.nodes), _pinned(job))

    async def _take_back(self, job: SlurmJob, why: str) -> None:
        await self._update(job.key, _comment(job, GATE, why))
        if job.can_requeue:
            await self._slurm("scontrol", "requeuehold", job.key)
        else:
            await self._slurm("scancel", job.key)

    async def _occupy(self, node: str, gpus: int) -> None:
        """Submit a placeholder job for other pods' GPUs; job_submit.lua admits it by its name.

        It has the partition's time limit; after that the next reconciliation makes another one.
        """
        output = await self._slurm(
            "sbatch",
            "--parsable",
            f"--job-name={PLACEHOLDER_NAME}",
            f"--nodelist={node}",
            "--nodes=1",
            "--ntasks=1",
            "--mem=1",
            f"--gres=gpu:{gpus}",
            "--no-requeue",
            "--output=/dev/null",
            stdin="#!/bin/sh\nexec sleep infinity\n",
        )
        number = output.strip().partition(";")[0]
        mark = Mark(PLACEHOLDER, text=f"{gpus} GPUs of {node} are used by pods")
        await self._update(number, f"AdminComment={mark.written()}")

    # ---- Kubernetes --------------------------------------------------------------------------

    async def _make(
        self, job: SlurmJob, slurm_view: SlurmView, only: tuple[str, ...], tries: int
    ) -> None:
        queue = await self.queue_for(job)
        made = gang_of(
            job,
            slurm_view.nodes,
            self._settings,
            queue=gang.UNLIMITED if only else queue,
            only=only or None,
            hosts=self._hosts(),
            tries=tries,
        )
        try:
            self._saw(await self._client.create(made))
        except AlreadyExists:
            return  # created before a crash, or by a hook at the same time

    async def queue_for(self, job: SlurmJob) -> str:
        """Return the LocalQueue named like the partition, else `default`, else an unlimited one."""
        now = self._clock()
        if now >= self._queues_until:
            listed = await self._client.list(LOCAL_QUEUE, self._settings.namespace)
            self._queues = {one["metadata"]["name"] for one in listed.items}
            self._queues_until = now + _QUEUES_FOR_S
        own = job.partition.partition(",")[0].lower().replace("_", "-")
        return next((one for one in (own, "default") if one in self._queues), gang.UNLIMITED)

    async def _drop(self, dropped: Gang) -> None:
        namespace = self._settings.namespace
        try:
            # Remove our finalizer first: a deleted gang that still has it was deleted by a user.
            changes = {"metadata": {"finalizers": None, "uid": dropped.uid}}
            self._saw(await self._client.patch(JOB, dropped.name, namespace, changes))
            await self._client.delete(JOB, dropped.name, namespace, uid=dropped.uid)
        except (NotFound, Conflict):
            return  # gone, or recreated: the next reconciliation shows it

    async def _deactivate(self, one: Gang, until: float) -> None:
        annotations = {
            gang.TRIES: str(one.tries + 1),
            gang.RETRY_AT: f"{until:.3f}",
            gang.RELEASED_AT: None,
        }
        await self._annotate(one, annotations)
        await self._activate(one, is_active=False)

    async def _activate(self, one: Gang, *, is_active: bool) -> None:
        if not one.workload:
            return
        try:
            changes = {"spec": {"active": is_active}}
            namespace = self._settings.namespace
            self._saw(await self._client.patch(WORKLOAD, one.workload, namespace, changes))
        except NotFound:
            return

    async def _annotate(
        self, one: Gang, annotations: dict[str, str] | dict[str, str | None]
    ) -> None:
        changes = {"metadata": {"annotations": annotations}}
        self._saw(await self._client.patch(JOB, one.name, self._settings.namespace, changes))

    async def _free(self, name: str, namespace: str, uid: str) -> None:
        try:
            await self._client.delete(POD, name, namespace, uid=uid, grace_s=0)
        except (NotFound, Conflict):
            return


def _pinned(job: SlurmJob) -> str:
    """Return the field that marks a job as pinned, and keeps the nodes that its user requested."""
    return _comment(job, PINNED, "", want=",".join(requested_nodes(job)))


def _comment(job: SlurmJob, state: str, why: str, **words: str) -> str:
    """Return the field that changes a job's mark; its other values are kept."""
    mark = read_mark(job.comment)
    kept = {**mark.words, **words}
    return f"AdminComment={Mark(state, kept, why).written()}"
