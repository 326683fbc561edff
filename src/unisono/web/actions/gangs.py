"""Actions on a gang: hold and release, another priority, another queue, cancel.

A gang is a Workload and, as a rule, a job that owns it. What a job says is repeated on its Workload
by its controller, so that is where it is changed; only gangs of bare pods have no job, and their
Workload is changed itself. Jobs of Slurm are changed as `scontrol` and `scancel` do it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec.structs import replace

from unisono.control.conditions import is_true
from unisono.control.job_kinds.slurm import JOB as SLURM_JOB
from unisono.control.names import (
    LOCAL_QUEUE,
    POD,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    WORKLOAD,
    WORKLOAD_PRIORITY_CLASS,
)
from unisono.engine.model.names import LocalQueueKey, WorkloadKey
from unisono.engine.model.workload import Workload
from unisono.engine.state.changes import Change, WorkloadGone, WorkloadHolds, WorkloadWaits
from unisono.engine.state.cluster import ClusterState
from unisono.kinds.digits import whole_number
from unisono.kinds.holds import HOLD, hold_changes
from unisono.kube.errors import Forbidden, NotFound
from unisono.kube.form import Json
from unisono.kube.mapping import Kind
from unisono.slurm.commands.scancel import stop_changes
from unisono.slurm.commands.scontrol import job_changes
from unisono.slurm.sbatch.layout import BadRequest
from unisono.web.actions.action import (
    Action,
    Asked,
    CannotAct,
    Edit,
    Field,
    Here,
    Prepared,
    Right,
    Write,
    kind_of,
    line,
    patch,
    place,
    right_to,
    spoken,
)

_MOST_CHOICES = 200
_MOST_PODS = 512
_MOST_PRIORITY = 2_147_483_647


class _Gang(NamedTuple):
    """A gang: its Workload, and what is changed in its stead."""

    workload: Json
    job: Json  # the job that owns it; the Workload itself where there is none

    @property
    def key(self) -> str:
        metadata = self.workload["metadata"]
        return f"{metadata['namespace']}/{metadata['name']}"

    @property
    def is_pending(self) -> bool:
        conditions = (self.workload.get("status") or {}).get("conditions")
        return not is_true(conditions, "QuotaReserved") and not self.is_over

    @property
    def is_over(self) -> bool:
        return is_true((self.workload.get("status") or {}).get("conditions"), "Finished")

    @property
    def hold(self) -> str:
        """Whether its user or an administrator holds it (user, admin), or neither (empty)."""
        both = (self.workload, self.job)
        found = [(one["metadata"].get("annotations") or {}).get(HOLD, "") for one in both]
        return "admin" if "admin" in found else next(filter(None, found), "")

    @property
    def slurm_id(self) -> str:
        """The number of a job of Slurm; empty if it is none."""
        is_slurm = kind_of(self.job) == SLURM_JOB
        return str(self.job["spec"].get("jobId") or "") if is_slurm else ""

    @property
    def is_of_pods(self) -> bool:
        return self.job is self.workload


async def _gang(here: Here, workload: Json) -> _Gang:
    """Read the job of a Workload, as the user."""
    metadata = workload["metadata"]
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller") and owner["kind"] != POD.kind:
            kind = Kind(owner["apiVersion"], owner["kind"])
            try:
                return _Gang(workload, await here.get(kind, owner["name"], metadata["namespace"]))
            except NotFound:
                break
    return _Gang(workload, workload)


def _pending(gang: _Gang) -> None:
    if gang.is_over:
        raise CannotAct("it has finished")
    if not gang.is_pending:
        raise CannotAct("it is no longer pending")


def _edited(gang: _Gang, change: Callable[[Workload], Workload]) -> Edit:
    """Return what it means that a workload becomes another, pending or admitted."""

    def edit(state: ClusterState) -> Iterator[Change]:
        key = WorkloadKey(gang.key)
        if key in state.waiting:
            yield WorkloadWaits(change(state.waiting[key].workload))
        elif key in state.running:
            admitted = state.running[key].admitted
            yield WorkloadHolds(replace(admitted, workload=change(admitted.workload)))

    return edit


def _with_hold(gang: _Gang, hold: Literal["", "user"]) -> Edit:
    def held(one: Workload) -> Workload:
        # A priority of 0 holds as well, and is taken off with the hold.
        priority = one.submit_options.priority if hold else one.submit_options.priority or None
        return replace(
            one, submit_options=replace(one.submit_options, hold=hold, priority=priority)
        )

    return _edited(gang, held)


# ---- hold and release ----------------------------------------------------------------------------


async def _may_hold(here: Here, workload: Json) -> Sequence[Field] | None:
    gang = await _gang(here, workload)
    return () if gang.is_pending and not gang.hold else None


async def _hold(here: Here, workload: Json, asked: Asked) -> Prepared:
    gang = await _gang(here, workload)
    _pending(gang)
    if gang.hold:
        raise CannotAct("it is on hold already")
    job = gang.job
    command = (
        line("unisono", "scontrol", "hold", gang.slurm_id)
        if gang.slurm_id
        else line("kubectl", "annotate", *place(job), spoken(job), f"{HOLD}=user", "--overwrite")
    )
    return Prepared(
        title=f"Hold {spoken(job)}",
        done=f"{spoken(job)} is on hold",
        writes=(patch(job, hold_changes("user")),),
        commands=(command,),
        says=("It stays pending until it is released, whatever becomes free.",),
        edit=_with_hold(gang, "user"),
        workload=gang.key,
    )


async def _may_release(here: Here, workload: Json) -> Sequence[Field] | None:
    gang = await _gang(here, workload)
    return () if gang.is_pending and gang.hold else None


async def _release(here: Here, workload: Json, asked: Asked) -> Prepared:
    gang = await _gang(here, workload)
    _pending(gang)
    if not gang.hold:
        raise CannotAct("it is not on hold")
    held = _held(gang)
    commands = (
        (line("unisono", "scontrol", "release", gang.slurm_id),)
        if gang.slurm_id
        else tuple(
            line("kubectl", "annotate", *place(one), spoken(one), f"{HOLD}-") for one in held
        )
    )
    return Prepared(
        title=f"Release {spoken(gang.job)}",
        done=f"{spoken(gang.job)} is released",
        writes=tuple(patch(one, hold_changes(None)) for one in held),
        commands=commands,
        says=("It is evaluated again in the next scheduling cycle, in its place in the queue.",),
        edit=_with_hold(gang, ""),
        workload=gang.key,
    )


def _held(gang: _Gang) -> list[Json]:
    """Return the objects that a hold is taken off.

    An administrator's hold may be on the Workload itself, where the job's owner cannot take it off;
    `scontrol release` frees both, too.
    """
    return [
        one
        for one in ((gang.job,) if gang.is_of_pods else (gang.job, gang.workload))
        if (one["metadata"].get("annotations") or {}).get(HOLD)
        and (one is gang.job or gang.hold == "admin")
    ]


# ---- priority ------------------------------------------------------------------------------------


async def _classes(here: Here) -> Mapping[str, int]:
    """Return the priority classes that the user may list, the highest first."""
    try:
        found = (await here.api.list(WORKLOAD_PRIORITY_CLASS)).items
    except (Forbidden, NotFound):
        return {}
    values = {str(one["metadata"]["name"]): int(one.get("value") or 0) for one in found}
    highest_first = sorted(values.items(), key=lambda one: (-one[1], one[0]))
    return dict(highest_first[:_MOST_CHOICES])


async def _priority_fields(here: Here, workload: Json) -> Sequence[Field] | None:
    gang = await _gang(here, workload)
    if gang.is_over or gang.is_of_pods:
        return None
    if gang.slurm_id:
        return (Field(name="priority", label="Priority", kind="number"),) if _waits(gang) else None
    classes = await _classes(here)
    now = (gang.job["metadata"].get("labels") or {}).get(PRIORITY_LABEL, "")
    options = tuple((name, f"{name} ({value})") for name, value in classes.items())
    if not options:
        return (Field(name="class", label="WorkloadPriorityClass", value=now),)
    return (
        Field(
            name="class",
            label="WorkloadPriorityClass",
            kind="choice",
            value=now if now in classes else "",
            options=options,
        ),
    )


def _waits(gang: _Gang) -> bool:
    return gang.is_pending


async def _priority(here: Here, workload: Json, asked: Asked) -> Prepared:
    gang = await _gang(here, workload)
    if gang.is_over:
        raise CannotAct("it has finished")
    if gang.is_of_pods:
        raise CannotAct("the priority of bare pods is that of their class; create them anew")
    before, job = int(gang.workload["spec"].get("priority") or 0), gang.job
    if gang.slurm_id:
        _pending(gang)
        value = whole_number(asked.field("priority", "Priority"), _MOST_PRIORITY)
        if value is None:
            raise CannotAct(f"Priority: must be a whole number up to {_MOST_PRIORITY}")
        return Prepared(
            title=f"Give {spoken(job)} the priority {value}",
            done=f"{spoken(job)} has the priority {value}",
            writes=(patch(job, _slurm(job, {"priority": str(value)}, here.now)),),
            commands=(line(*_scontrol_update(gang), f"Priority={value}"),),
            says=("It counts in place of the computed one, for operators of the policy only.",),
            workload=gang.key,
        )
    name = asked.field("class", "WorkloadPriorityClass")
    classes = await _classes(here)
    if classes and name not in classes:
        raise CannotAct(f"WorkloadPriorityClass: there is no {name}")
    changes = {"metadata": {"labels": {PRIORITY_LABEL: name}}}
    now = classes.get(name)
    says = [] if now is None else [f"Its priority becomes {now}; it is {before}."]
    if not gang.is_pending:
        says.append("It runs on: the priority counts when others want to preempt it.")
    command = line(
        "kubectl", "label", *place(job), spoken(job), f"{PRIORITY_LABEL}={name}", "--overwrite"
    )
    return Prepared(
        title=f"Give {spoken(job)} the priority class {name}",
        done=f"{spoken(job)} has the priority class {name}",
        writes=(patch(job, changes),),
        commands=(command,),
        says=tuple(says),
        edit=_edited(gang, lambda one: replace(one, priority=now)) if now is not None else None,
        workload=gang.key,
    )


def _scontrol_update(gang: _Gang) -> tuple[str, ...]:
    return ("unisono", "scontrol", "update", f"JobId={gang.slurm_id}")


def _slurm(job: Json, assignments: Mapping[str, str], now: float) -> Json:
    """Return the patch that `scontrol update` would send."""
    try:
        return job_changes(assignments, job, now)
    except BadRequest as error:
        raise CannotAct(str(error)) from None


# ---- queue ---------------------------------------------------------------------------------------


async def _queues(here: Here, namespace: str) -> Mapping[str, str]:
    """Return the LocalQueues that the user may list, with their ClusterQueues."""
    try:
        found = (await here.api.list(LOCAL_QUEUE, namespace)).items
    except (Forbidden, NotFound):
        return {}
    names = sorted(
        (str(one["metadata"]["name"]), str(one["spec"].get("clusterQueue") or "")) for one in found
    )
    return dict(names[:_MOST_CHOICES])


async def _queue_fields(here: Here, workload: Json) -> Sequence[Field] | None:
    gang = await _gang(here, workload)
    if not gang.is_pending or gang.is_of_pods:
        return None
    now = str(workload["spec"].get("queueName") or "")
    queues = await _queues(here, workload["metadata"]["namespace"])
    options = tuple((name, f"{name} ({cq})") for name, cq in queues.items() if name != now)
    if not options:
        return None if queues else (Field(name="queue", label="LocalQueue"),)
    return (Field(name="queue", label="LocalQueue", kind="choice", options=options),)


async def _queue(here: Here, workload: Json, asked: Asked) -> Prepared:
    gang = await _gang(here, workload)
    _pending(gang)
    if gang.is_of_pods:
        raise CannotAct("bare pods stay in the queue that they were created for")
    name, job = asked.field("queue", "LocalQueue"), gang.job
    namespace = workload["metadata"]["namespace"]
    queues = await _queues(here, namespace)
    if queues and name not in queues:
        raise CannotAct(f"LocalQueue: there is no {name} in namespace {namespace}")
    if name == workload["spec"].get("queueName"):
        raise CannotAct(f"it is in queue {name} already")
    if gang.slurm_id:
        changes = _slurm(job, {"partition": name}, here.now)
        command = line(*_scontrol_update(gang), f"Partition={name}")
    else:
        changes = {"metadata": {"labels": {QUEUE_LABEL: name}}}
        label = f"{QUEUE_LABEL}={name}"
        command = line("kubectl", "label", *place(job), spoken(job), label, "--overwrite")
    queue = LocalQueueKey(f"{namespace}/{name}")
    into = f", of ClusterQueue {queues[name]}" if queues.get(name) else ""
    return Prepared(
        title=f"Move {spoken(job)} to queue {name}",
        done=f"{spoken(job)} is in queue {name}",
        writes=(patch(job, changes),),
        commands=(command,),
        says=(f"It waits in queue {name}{into}, in the place of its priority and age.",),
        edit=_edited(gang, lambda one: replace(one, queue=queue)),
        workload=gang.key,
    )


# ---- cancel --------------------------------------------------------------------------------------


async def _may_cancel(here: Here, workload: Json) -> Sequence[Field] | None:
    return None if (await _gang(here, workload)).is_over else ()


async def _cancel(here: Here, workload: Json, asked: Asked) -> Prepared:
    gang = await _gang(here, workload)
    if gang.is_over:
        raise CannotAct("it has finished")
    job = gang.job
    metadata = job["metadata"]
    ends = () if gang.is_pending else ("Its pods end; what they did not save is lost.",)
    if gang.slurm_id:
        writes: tuple[Write, ...] = (patch(job, stop_changes(0)),)
        commands: tuple[str, ...] = (line("unisono", "scancel", gang.slurm_id),)
        says: tuple[str, ...] = (*ends, "Its record stays, as CANCELLED.")
    elif gang.is_of_pods:
        writes = tuple(await _pods_of(here, workload))
        commands = (
            line("unisono", "delete", *(f"pod/{one.name}" for one in writes), *place(workload)),
        )
        says = (f"Its {len(writes)} pods are deleted.",)
    else:
        where = metadata["name"], metadata["namespace"]
        writes = (Write("delete", kind_of(job), *where, uid=metadata["uid"]),)
        commands = (line("unisono", "delete", spoken(job), *place(job)),)
        says = (*ends, f"{spoken(job)} is deleted with its pods and their logs.")
    return Prepared(
        title=f"Cancel {spoken(job)}",
        done=f"{spoken(job)} is cancelled",
        writes=writes,
        commands=commands,
        says=(*says, "It cannot be undone."),
        edit=_without(gang),
        workload=gang.key,
    )


async def _pods_of(here: Here, workload: Json) -> list[Write]:
    namespace = workload["metadata"]["namespace"]
    owners = {
        one["uid"]: one["name"]
        for one in workload["metadata"].get("ownerReferences") or ()
        if one["kind"] == POD.kind
    }
    found = [Write("delete", POD, name, namespace, None, uid) for uid, name in owners.items()]
    if not found:
        raise CannotAct("it has no job and no pods that could be deleted")
    if len(found) > _MOST_PODS:
        raise CannotAct(f"it has more than {_MOST_PODS} pods; delete them by label")
    return found


def _without(gang: _Gang) -> Edit:
    def edit(state: ClusterState) -> Iterator[Change]:
        key = WorkloadKey(gang.key)
        if key in state.waiting or key in state.running:
            yield WorkloadGone(key)

    return edit


# ---- permissions ---------------------------------------------------------------------------------


async def _patches_job(here: Here, workload: Json) -> Sequence[Right]:
    return (right_to("patch", (await _gang(here, workload)).job),)


async def _releases(here: Here, workload: Json) -> Sequence[Right]:
    return tuple(right_to("patch", one) for one in _held(await _gang(here, workload)))


async def _ends(here: Here, workload: Json) -> Sequence[Right]:
    gang = await _gang(here, workload)
    if gang.slurm_id:
        return (right_to("patch", gang.job),)
    if gang.is_of_pods:
        return (Right("delete", "", "pods", workload["metadata"]["namespace"]),)
    return (right_to("delete", gang.job),)


TARGET = WORKLOAD
ACTIONS: Sequence[Action] = (
    Action("hold", "Hold", _hold, _may_hold, _patches_job),
    Action("release", "Release", _release, _may_release, _releases),
    Action("priority", "Change priority", _priority, _priority_fields, _patches_job),
    Action("queue", "Move to another queue", _queue, _queue_fields, _patches_job),
    Action("cancel", "Cancel", _cancel, _may_cancel, _ends, is_grave=True),
)
