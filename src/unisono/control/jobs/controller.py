"""The controller of jobs of any kind: keeps a job and its Workload in step (jobs §7.1).

    the job is managed         it has a Workload; without admission it is suspended
    admitted                   node selectors and tolerations injected, then unsuspended
    evicted                    suspended; when nothing of it runs any more, its quota is released
    ended                      its Workload is Finished

The framework knows nothing about kinds; an adapter does. It decides from what is stored alone, so
it may be interrupted anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from unisono.control import names
from unisono.control.actions import Create, Delete, Json, Note, Patch, Read, Ref, Steps, and_again
from unisono.control.admission import kueue_messages
from unisono.control.admission.checks import additions
from unisono.control.admission.counts import whole_counts
from unisono.control.admission.elastic import pods_to_keep
from unisono.control.admission.evictions import checks_after
from unisono.control.admission.placement import COMMITTED, placement_of, without_placement
from unisono.control.admission.record import granted_ms
from unisono.control.conditions import find, is_true, seconds, with_condition
from unisono.control.controller import Reads, own_key, owner_key
from unisono.control.gangs.slots import assignments_left, committed_event, is_over, with_commitment
from unisono.control.jobs.adapter import End, Injection, JobAdapter, PodSetOfJob, Shrinkable
from unisono.control.jobs.queues import Queues
from unisono.control.jobs.scaling import is_growing, scale, without_slice
from unisono.control.jobs.workload import (
    named_class,
    new_words,
    new_workload,
    owner_reference,
    priority_of,
    same_sets,
    workload_name,
)
from unisono.control.view import Unreadable, View
from unisono.engine.model.errors import InvalidManifest
from unisono.engine.model.resources import MAX_COUNT
from unisono.kinds.job_annotations import DISRUPTABLE
from unisono.kinds.known import wrong_with
from unisono.kinds.kueue.workloads import MOST_SETS
from unisono.kinds.snapshot.local_queues import UNLIMITED_LOCAL_QUEUE
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

# The owner of a Slurm job requeued it.
REQUEUED = "Requeued"
# Evictions after which a workload queues again at once; the others wait to be told.
_REQUEUED_AT_ONCE = ("Preempted", "NodeFailures", "Consolidated", "NodesNeeded", REQUEUED)

# The reason of the event that says what is wrong with a job.
INVALID = "InvalidJob"
# Jobs that are not looked at again before they change: a few megabytes.
_MOST_SOUND = 16_384

# Conditions that say something only of the run that is over.
_OF_A_RUN = ("PodsReady", names.SHRINKING)


class JobController:
    """Suspends jobs of one kind until they are admitted, and unsuspends them then."""

    ignores_own_writes = True  # where something is left to do after a write, it looks again

    def __init__(self, adapter: JobAdapter, queues: Queues) -> None:
        """Take what knows the kind, and what knows which queue a job is in."""
        self._adapter = adapter
        self._sound: set[tuple[str, int | None]] = set()  # uids and generations
        self.reads: Mapping[Kind, Reads] = {names.WORKLOAD: _read_of_workload}
        self._queues = queues
        self.owner_kind = adapter.kind
        self.name = (
            f"queued-{adapter.kind.kind.lower()}.{adapter.kind.api_version.partition('/')[0]}"
        )
        self.watches: Sequence[Kind] = (
            adapter.kind,
            names.WORKLOAD,
            *(kind for kind in adapter.watches if kind not in (adapter.kind, names.WORKLOAD)),
        )

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A job itself, its Workload, or something that belongs to it."""
        if kind == self._adapter.kind:
            return (own_key(obj),)
        return owner_key(obj, self._adapter.kind)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Bring a job and its Workload in step."""
        try:
            yield from self._bring_in_step(key, view, now)
        except Unreadable:
            raise
        except InvalidManifest as error:
            # Of a declared kind, whose author could not know every object: it stops this one.
            yield from self._set_aside(key, view, error)

    def _set_aside(self, key: Key, view: View, error: InvalidManifest) -> Steps:
        job = view.get(self._adapter.kind, key.name, key.namespace)
        if job is None:
            return
        workload = self._workload(job, view)
        is_new = workload is None and self._queues.queue_of(job, view) is not None
        if is_new and not self._adapter.is_suspended(job):
            yield from self._adapter.stop(job, ())
        yield Note(Ref.to(job), INVALID, f"Not queued: {error}", "Warning")

    def _bring_in_step(self, key: Key, view: View, now: float) -> Steps:
        adapter = self._adapter
        job = view.get(adapter.kind, key.name, key.namespace)
        if job is None:
            return
        workload = self._workload(job, view)
        if "deletionTimestamp" in job["metadata"]:
            # Pods that it leaves behind are no longer its own, and still hold what it was given.
            is_left = workload is not None and _has_pods(workload, view)
            if workload is not None and not is_left and not adapter.is_active(job, view):
                yield from without_slice(workload, view)
                yield from remove_finalizer(workload)
            return
        end = adapter.end(job)
        if end is not None:
            if workload is not None:
                yield from without_slice(workload, view)
                yield from _finish(workload, end, now)
            return
        queue = self._queues.queue_of(job, view)
        if queue is None and workload is None:  # not ours to hold back
            if not (job.get("status") or {}).get("startTime"):
                yield from self._warn_of_bypass(job, view)
            if named := self._queues.inherited(job, view):
                yield Patch(Ref.to(job), {"metadata": {"labels": {names.QUEUE_LABEL: named}}})
            return
        if queue is None and workload is not None:
            if not adapter.is_active(job, view):
                # It left its queue. Nothing would start it, nor stop it and give its quota back.
                yield from without_slice(workload, view)
                yield from remove_finalizer(workload)
                yield Delete(Ref.to(workload))
                return
            queue = workload["spec"].get("queueName", "")  # a running job stays in its queue
        if workload is None:
            yield from self._begin(job, queue or "", view)
            return
        if "deletionTimestamp" in workload["metadata"]:
            yield from and_again(self._start_over(job, workload, view), now)
            return
        if is_true(_conditions(workload), "Finished"):
            # It was over and is to run again (a Volcano job that was resumed): queue anew.
            yield from remove_finalizer(workload)
            yield Delete(Ref.to(workload))
            return
        if not _belongs_to(workload, job):
            # Its owner reference was removed, so changes of it would no longer wake the job. The
            # view may not know yet that the job is just being orphaned: with an owner that is gone
            # the garbage collector would delete the Workload of pods that run on.
            there = yield Read(adapter.kind, key.namespace, key.name)
            if there is None or there["metadata"]["uid"] != job["metadata"]["uid"]:
                return
            if "deletionTimestamp" in there["metadata"]:
                return
            owners = [owner_reference(job), *(workload["metadata"].get("ownerReferences") or ())]
            workload = yield Patch(Ref.to(workload), {"metadata": {"ownerReferences": owners}})
        yield from self._keep_in_step(job, workload, queue or "", view, now)

    def _wrong_with(self, job: Json) -> str:
        """Return what is wrong with a job that an API server stored without asking us."""
        metadata = job["metadata"]
        seen = (metadata["uid"], metadata.get("generation"))
        if seen[1] is None or seen not in self._sound:
            wrong = wrong_with(job)
            if wrong:
                return wrong
            if len(self._sound) >= _MOST_SOUND:
                self._sound.clear()
            self._sound.add(seen)
        return ""

    def _workload(self, job: Json, view: View) -> Json | None:
        metadata = job["metadata"]
        name = workload_name(self._adapter.kind, metadata["name"], metadata["uid"])
        return view.get(names.WORKLOAD, name, metadata["namespace"])

    # ---- waiting -----------------------------------------------------------------------------

    def _begin(self, job: Json, queue: str, view: View) -> Steps:
        """Suspend a job that is not admitted, and give it a Workload."""
        adapter = self._adapter
        wrong = self._wrong_with(job)
        if wrong:
            if not adapter.is_suspended(job):
                yield from adapter.stop(job, ())
            yield Note(Ref.to(job), INVALID, f"Not queued: {wrong}", "Warning")
            return
        sets = adapter.pod_sets(job, view)
        if not adapter.is_suspended(job):
            yield from adapter.stop(job, sets)
        most = max((one.count for one in sets), default=0)
        if most > MAX_COUNT:  # what it is made from and what it says itself, multiplied
            wrong = f"it makes {most} pods; {MAX_COUNT} is the most"
        elif len(sets) > MOST_SETS:
            wrong = f"it has {len(sets)} kinds of pods; {MOST_SETS} is the most that a Workload has"
        if wrong:
            yield Note(Ref.to(job), INVALID, f"Not queued: {wrong}", "Warning")
        elif sets:
            may_name = self._queues.may_name
            workload = yield Create(new_workload(job, adapter.kind, queue, sets, view, may_name))
            about = Ref.to(job)
            message = f"Created Workload: {workload['metadata']['namespace']}/"
            yield Note(about, "CreatedWorkload", message + workload["metadata"]["name"])
            if queue == UNLIMITED_LOCAL_QUEUE:
                yield from self._warn_of_bypass(job, view)
            named = named_class(job, sets)
            if named and not may_name(named, job["metadata"]["namespace"], view):
                message = (
                    f"priority class {named} is not allowed in namespace "
                    f"{job['metadata']['namespace']} (priorityClasses in the policy) and is ignored"
                )
                yield Note(about, "PriorityClassNotAllowed", message, "Warning")

    def _warn_of_bypass(self, job: Json, view: View) -> Steps:
        """Say of a job without a queue that no quota holds it; embedded, the API has said so."""
        if self._queues.warns_of_bypass(job, view):
            message = (
                f"names no queue ({names.QUEUE_LABEL}), and its namespace has no default one: it "
                "runs outside of every quota"
            )
            yield Note(Ref.to(job), "OutsideQuota", message, "Warning")

    def _keep_in_step(self, job: Json, workload: Json, queue: str, view: View, now: float) -> Steps:
        adapter = self._adapter
        conditions = _conditions(workload)
        is_admitted = is_true(conditions, "Admitted") and not is_true(conditions, "Evicted")
        if adapter.scales and not is_admitted:
            yield from without_slice(workload, view)
        if is_true(conditions, "Evicted") and (workload.get("status") or {}).get("admission"):
            yield from and_again(self._stop_evicted(job, workload, view, now), now)
        elif is_admitted and adapter.is_suspended(job):
            yield from self._start(job, workload, view)
        elif is_admitted:
            yield from self._running(job, workload, view, now)
            if adapter.scales:
                sets = adapter.pod_sets(job, view)
                yield from and_again(scale(job, workload, sets, view, now), now)
        else:
            if not adapter.is_suspended(job):
                yield from and_again(adapter.stop(job, _sets_of(workload)), now)
            yield from self._follow_edits(job, workload, queue, view)

    def _follow_edits(self, job: Json, workload: Json, queue: str, view: View) -> Steps:
        """Let the Workload ask for what the job asks for now; while it waits that is allowed."""
        reserved = is_true(_conditions(workload), "QuotaReserved")
        if self._wrong_with(job):
            if not reserved:
                yield Delete(Ref.to(workload))
                yield from remove_finalizer(workload)
            return
        sets = self._adapter.pod_sets(job, view)
        if _holds_injection(sets, workload):
            # Not an edit: it ran, and its template could not be put back at once. As a new Workload
            # it would lose its place in the queue.
            yield from self._adapter.stop(job, _sets_of(workload))
            return
        if sets and not same_sets(workload, sets) and not reserved:
            yield Delete(Ref.to(workload))
            yield from remove_finalizer(workload)
            return
        changes: Json = {}
        if workload["spec"].get("queueName", "") != queue and not reserved:
            changes["queueName"] = queue or None
        _, _, priority = priority_of(job, sets, view, self._queues.may_name)
        if workload["spec"].get("priority", 0) != priority:
            changes["priority"] = priority
        words = new_words(job, workload)
        if changes or words:
            whole = {"spec": changes} if changes else {}
            yield Patch(Ref.to(workload), {**whole, **_annotated(words)})

    def _start_over(self, job: Json, workload: Json, view: View) -> Steps:
        """Stop a job whose Workload was deleted; once that is gone, there is a new one."""
        if not self._adapter.is_suspended(job):
            yield from self._adapter.stop(job, _sets_of(workload))
            yield Note(Ref.to(job), "Stopped", "The Workload was deleted")
        elif not self._adapter.is_active(job, view):
            yield from remove_finalizer(workload)

    # ---- running -----------------------------------------------------------------------------

    def _start(self, job: Json, workload: Json, view: View) -> Steps:
        if self._adapter.is_active(job, view):
            return  # something of the last run is still there; its end brings us back
        yield from self._adapter.start(job, injections(workload, view, self._queues))
        queue = workload["status"]["admission"]["clusterQueue"]
        message = f"Admitted by clusterQueue {queue} as Workload {workload['metadata']['name']}"
        yield Note(Ref.to(job), "Started", message, instead_of=("CreatedWorkload",))

    def _running(self, job: Json, workload: Json, view: View, now: float) -> Steps:
        """Say whether the pods are ready, and which of them are done for good."""
        adapter = self._adapter
        conditions = _conditions(workload)
        if isinstance(adapter, Shrinkable) and placement_of(conditions)[0] == COMMITTED:
            # One that still starts does that first.
            yield from and_again(adapter.shrink(job, pods_to_keep(workload)), now)
        ready = find(conditions, "PodsReady")
        are_ready = adapter.are_pods_ready(job, view)
        was_ready = ready is not None and ready["status"] == "True"
        status: Json = {}
        if are_ready and not was_ready:
            recovered = ready is not None and ready["reason"] == "WaitForRecovery"
            reason = "Recovered" if recovered else "Started"
            ready_now = with_condition(
                conditions,
                "PodsReady",
                "True",
                reason,
                kueue_messages.READY,
                now=now,
                generation=workload["metadata"].get("generation"),
            )
            status["conditions"] = with_commitment(workload, ready_now, view, now)
        elif adapter.scales and is_growing(workload, adapter.pod_sets(job, view)):
            pass  # what it has is ready; what it asks for on top has no place yet
        elif not are_ready and (was_ready or ready is None):
            reason, message = "WaitForStart", kueue_messages.NOT_READY
            if was_ready:
                reason, message = "WaitForRecovery", kueue_messages.WAITING_FOR_RECOVERY
            status["conditions"] = with_condition(
                conditions,
                "PodsReady",
                "False",
                reason,
                message,
                now=now,
                generation=workload["metadata"].get("generation"),
            )
        counts = {name: pods for name, pods in adapter.reclaimable(job, view).items() if pods > 0}
        done = [{"name": name, "count": pods} for name, pods in counts.items()]
        if done != ((workload.get("status") or {}).get("reclaimablePods") or []):
            status["reclaimablePods"] = done
        if counts and adapter.frees_places:
            left = assignments_left(workload, counts, view)
            if left is not None:
                status["admission"] = {"podSetAssignments": left}
        if status:
            written = yield Patch(Ref.to(workload), {"status": status}, "status")
            if placement_of(conditions)[0] != placement_of(_conditions(written))[0]:
                yield committed_event(written)
        _, _, priority = priority_of(job, _sets_of(workload), view, self._queues.may_name)
        if workload["spec"].get("priority", 0) != priority:
            yield Patch(Ref.to(workload), {"spec": {"priority": priority}}, exact=False)
        words = new_words(job, workload)
        if words:
            yield Patch(Ref.to(workload), _annotated(words), exact=False)

    def _stop_evicted(self, job: Json, workload: Json, view: View, now: float) -> Steps:
        """Stop an evicted job; once nothing of it runs, give its quota back."""
        adapter = self._adapter
        if not adapter.is_suspended(job):
            yield from adapter.stop(job, _sets_of(workload))
            evicted = find(_conditions(workload), "Evicted")
            message = evicted["message"] if evicted is not None else "Evicted"
            yield Note(Ref.to(job), "Stopped", message)
            return  # the job's own pods tell when they are gone
        if not adapter.is_active(job, view):
            yield Patch(Ref.to(workload), {"status": released(workload, now)}, "status")


def _read_of_workload(workload: Json) -> object:
    """Return what is read of a Workload: not how far its pods are on their way to their nodes."""
    metadata, status = workload["metadata"], workload.get("status") or {}
    conditions = _conditions(workload)
    return (
        metadata.get("deletionTimestamp"),
        metadata.get("finalizers"),
        metadata.get("annotations"),
        metadata.get("ownerReferences"),
        workload["spec"],
        {name: value for name, value in status.items() if name != "conditions"},
        [one for one in conditions if one["type"] != names.PLACEMENT],
        placement_of(conditions)[0] == COMMITTED,
    )


def _has_pods(workload: Json, view: View) -> bool:
    """Say whether a pod of a Workload is left that has not ended, with any owner."""
    metadata = workload["metadata"]
    full = f"{metadata['namespace']}/{metadata['name']}"
    return any(not is_over(pod) for pod in view.by(names.POD, names.BY_WORKLOAD, full))


def _belongs_to(workload: Json, job: Json) -> bool:
    uid = job["metadata"]["uid"]
    return any(one["uid"] == uid for one in workload["metadata"].get("ownerReferences") or ())


def _holds_injection(sets: Sequence[PodSetOfJob], workload: Json) -> bool:
    """Say whether a job's templates still say what we injected for this Workload."""
    own = workload["metadata"]["name"]
    return any(
        ((one.template.get("metadata") or {}).get("annotations") or {}).get(
            names.WORKLOAD_ANNOTATION
        )
        == own
        for one in sets
    )


def _annotated(changes: Json) -> Json:
    return {"metadata": {"annotations": changes}} if changes else {}


def released(workload: Json, now: float) -> Json:
    """Return the status of a workload that has left: its quota is free, and it queues again."""
    status = workload.get("status") or {}
    conditions = list(status.get("conditions") or ())
    evicted = find(conditions, "Evicted")
    reason = evicted["reason"] if evicted is not None else "Preempted"
    message = evicted["message"] if evicted is not None else ""
    admitted = find(conditions, "Admitted")
    past = status.get("accumulatedPastExecutionTimeSeconds") or 0
    if admitted is not None and admitted["status"] == "True":
        past += max(0, int(now - seconds(admitted["lastTransitionTime"])))
    is_free = reason in _REQUEUED_AT_ONCE
    written: tuple[tuple[str, Literal["True", "False"], str, str], ...] = (
        ("QuotaReserved", "False", "PendingEvaluation", message),
        ("Admitted", "False", "NoReservation", kueue_messages.NO_RESERVATION),
        ("Requeued", "True" if is_free else "False", reason, message),
    )
    generation = workload["metadata"].get("generation")
    for kind, state, why, text in written:
        conditions = with_condition(
            conditions, kind, state, why, text, now=now, generation=generation
        )
    conditions = [one for one in conditions if one["type"] not in _OF_A_RUN]
    return {
        "admission": None,
        **checks_after(status, now),  # what was said since it was evicted
        "conditions": without_placement(conditions, now),
        "reclaimablePods": None,
        "unhealthyNodes": None,
        "accumulatedPastExecutionTimeSeconds": past,
    }


def injections(
    workload: Json, view: View, queues: Queues | None = None, scheduler: str = ""
) -> Mapping[str, Injection]:
    """Return what the pods of each set get: their flavors' labels and tolerations, and a name.

    `scheduler` binds the pods unless their template names another; `queues` knows which of them
    need gates.
    """
    found: dict[str, Injection] = {}
    schedulers = {
        one["name"]: one["template"]["spec"].get("schedulerName") or scheduler
        for one in workload["spec"].get("podSets") or ()
    }
    counts = whole_counts(workload)
    for one in workload["status"]["admission"].get("podSetAssignments") or ():
        # Without nodes the gate would never be lifted.
        gates: Sequence[str] = ()
        if queues is not None and one.get("topologyAssignment"):
            gates = queues.gates_for(schedulers.get(one["name"], ""))
        selector: dict[str, str] = {}
        tolerations: list[Json] = []
        for name in dict.fromkeys((one.get("flavors") or {}).values()):
            flavor = view.get(names.FLAVOR, name)
            spec = (flavor.get("spec") or {}) if flavor is not None else {}
            selector |= spec.get("nodeLabels") or spec.get("nodeSelector") or {}
            tolerations += [
                extra for extra in spec.get("tolerations") or () if extra not in tolerations
            ]
        added = additions(workload, one["name"])
        found[one["name"]] = Injection(
            count=counts[one["name"]],
            node_selector={**selector, **added.node_selector},
            tolerations=[*tolerations, *added.tolerations],
            labels={**added.labels, names.POD_SET_LABEL: one["name"]},
            annotations={
                **added.annotations,
                **_protection(workload, view),
                **_granted(workload),
                names.WORKLOAD_ANNOTATION: workload["metadata"]["name"],
            },
            gates=gates,
        )
    return found


def _protection(workload: Json, view: View) -> dict[str, str]:
    """Protect a gang's nodes from consolidation, where machines are bought (§5.12)."""
    pods = sum(one["count"] for one in workload["spec"].get("podSets") or ())
    says = workload["metadata"].get("annotations") or {}
    if pods < 2 or says.get(DISRUPTABLE) == "true":
        return {}
    is_bought = names.NODE_CLAIM in view.kinds() and view.is_any(names.NODE_CLAIM)
    return {names.DO_NOT_DISRUPT: "true"} if is_bought else {}


def _granted(workload: Json) -> dict[str, str]:
    """Say how long a workload may run that had left that open."""
    limit = granted_ms(workload)
    return {} if limit is None else {names.GRANTED_LIMIT: str(max(1, limit // 60_000))}


def _conditions(workload: Json) -> list[Json]:
    return (workload.get("status") or {}).get("conditions") or []


def _sets_of(workload: Json) -> list[PodSetOfJob]:
    """Return the pod sets as they were when the job was first seen: without what we injected."""
    return [
        PodSetOfJob(
            name=one["name"],
            count=one["count"],
            template=one["template"],
            min_count=one.get("minCount"),
        )
        for one in workload["spec"].get("podSets") or ()
    ]


def _finish(workload: Json, end: End, now: float) -> Steps:
    """Write that a workload is over; its quota is free from then on."""
    if not is_true(_conditions(workload), "Finished"):
        reason = "Succeeded" if end.succeeded else "Failed"
        conditions = with_condition(
            _conditions(workload),
            "Finished",
            "True",
            reason,
            end.message,
            now=now,
            generation=workload["metadata"].get("generation"),
        )
        workload = yield Patch(Ref.to(workload), {"status": {"conditions": conditions}}, "status")
    yield from remove_finalizer(workload)


def remove_finalizer(workload: Json) -> Steps:
    """Take our finalizer off, so that the Workload may go when its job does."""
    finalizers = workload["metadata"].get("finalizers") or []
    if names.RESOURCE_IN_USE in finalizers:
        left = [one for one in finalizers if one != names.RESOURCE_IN_USE]
        yield Patch(Ref.to(workload), {"metadata": {"finalizers": left}}, exact=False)
