"""Pods that declare a gang themselves, and the Workload that stands for them.

    enough pods exist ──▶ Workload ──admitted──▶ each pod gets its workload's name, loses its gate
                             │                        │ bound by `gangs`
                             │◀──evicted: bound pods are deleted, the others wait again
                             └──all pods over──▶ Finished

A pod that runs cannot be suspended, only deleted; its owner may make another. A Workload without
pods is deleted: when there are enough again, there is a new one. An admitted one is kept for a
while, as the owner of its pods may be replacing all of them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import Any

from unisono.control import names
from unisono.control.actions import (
    Action,
    Again,
    Create,
    Delete,
    Json,
    Note,
    Patch,
    Ref,
    Steps,
    Together,
)
from unisono.control.admission import kueue_messages
from unisono.control.admission.counts import whole_counts
from unisono.control.admission.placement import PODS_CREATED_SECONDS, placement_of
from unisono.control.conditions import find, is_true, seconds, with_condition
from unisono.control.gangs.slots import assignments_left, committed_event, with_commitment
from unisono.control.jobs.controller import released
from unisono.control.jobs.pods import is_deleting, is_ready, is_terminal, phase_of
from unisono.control.jobs.queues import Queues
from unisono.control.jobs.workload import new_workload, same_sets, workload_name
from unisono.control.manifests import LiveContext, Manifests
from unisono.control.pod_gangs.membership import (
    BY_GANG,
    GANG,
    GROUPS,
    MANAGED,
    SOLO,
    UPSTREAM_WORKLOAD,
    Gang,
    alone,
    gang_of,
    groups_named,
    is_bare_and_ours,
    is_made_by_job,
    is_of_a_job,
    is_solo,
)
from unisono.control.pod_gangs.pod_sets import Asked, asked_by, role_of, set_names
from unisono.control.view import View
from unisono.kinds.core.pod_groups import RETRIABLE, TOTAL_COUNT
from unisono.kinds.digits import whole_number
from unisono.kinds.kueue.waiting import waiting_message
from unisono.kinds.policy.settings import Settings
from unisono.kinds.snapshot.local_queues import UNLIMITED_LOCAL_QUEUE
from unisono.kinds.views.objects import Conditions
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

GATE = "kueue.x-k8s.io/admission"


class PodGangs:
    """Makes workloads of pods."""

    name = "pod-gangs"

    def __init__(
        self, view: View, settings: Settings, queues: Queues, groups: Sequence[Kind] = GROUPS
    ) -> None:
        """Take what knows which queue a group is in, and the kinds of groups that are ours."""
        self._groups = groups
        self._manifests = Manifests(view)
        self._settings = settings
        self._queues = queues
        self.watches: Sequence[Kind] = (names.POD, names.WORKLOAD, *groups)

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A pod that names a gang, what makes a gang of it, or its Workload."""
        metadata = obj["metadata"]
        namespace = metadata.get("namespace", "")
        if kind == names.POD:
            found = gang_of(obj)
            if found is not None and is_made_by_job(obj, view):
                found = None
            elif found is None and is_bare_and_ours(obj):
                found = alone(obj)
            if found is not None:
                yield Key(namespace, found.text)
        elif kind == names.WORKLOAD:
            text = (metadata.get("annotations") or {}).get(GANG)
            if text:
                yield Key(namespace, text)
        else:
            has_parts = kind == UPSTREAM_WORKLOAD
            pods = view.within(names.POD, namespace) if has_parts else ()
            for text in groups_named(kind, obj, pods):
                yield Key(namespace, text)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take one gang a step further."""
        gang = Gang.read(key.name)
        if gang.kind is not None and gang.kind not in self._groups:
            return
        group = view.get(gang.kind, gang.name, key.namespace) if gang.kind is not None else None
        if gang.is_alone:
            yield from self._enqueue(view.get(names.POD, gang.name, key.namespace), view)
        named = view.by(names.POD, BY_GANG, f"{key.namespace}/{key.name}")
        name = self._workload_name(gang, group, named)
        workload = view.get(names.WORKLOAD, name, key.namespace) if name else None
        pods = [pod for pod in named if not is_of_a_job(pod, name) and not is_solo(pod)]
        yield from _release_pods(pods, workload)
        living = [pod for pod in pods if not is_deleting(pod) and not is_terminal(pod)]
        if workload is None:
            yield from _forget(pods, name)
            yield from self._begin(gang, group, pods, living, view, now)
        elif is_deleting(workload):
            if not (yield from _delete_pods(workload, pods, "The Workload was deleted")):
                yield from _remove_finalizer(workload)
        else:
            yield from self._keep(gang, group, workload, pods, living, view, now)

    def _enqueue(self, pod: Json | None, view: View) -> Steps:
        """Put a pod that named no queue into one, as our own API would have."""
        if pod is None or is_deleting(pod) or not is_bare_and_ours(pod):
            return
        queue = self._queues.queue_of(pod, view)
        if queue is not None:
            named = {names.QUEUE_LABEL: queue} if queue else {}
            yield Patch(Ref.to(pod), {"metadata": {"labels": {MANAGED: "true", **named}}})

    def _workload_name(self, gang: Gang, group: Json | None, pods: Sequence[Json]) -> str:
        if gang.is_kueue_group:
            return gang.name
        if gang.is_alone:
            uid = pods[0]["metadata"]["uid"] if pods else ""
            return workload_name(names.POD, gang.name, uid)
        if group is None or gang.kind is None:
            return ""
        name = "-".join(filter(None, (gang.name, gang.part, gang.replica)))
        return workload_name(gang.kind, name, group["metadata"]["uid"])

    # ---- waiting -----------------------------------------------------------------------------

    def _begin(
        self,
        gang: Gang,
        group: Json | None,
        pods: Sequence[Json],
        living: Sequence[Json],
        view: View,
        now: float,
    ) -> Steps:
        if not living:
            return
        asked = self._asked(gang, group, pods, living)
        if not asked.is_gang:
            yield Together([_annotated(pod, {SOLO: "true"}) for pod in living])
            return
        if not asked.sets:
            yield from _explain(living, asked.why_not, now)
            return
        workload = yield Create(self._workload(gang, group, living, asked, view))
        name = workload["metadata"]["name"]
        about = Ref.to(group if group is not None else living[0])
        yield Note(about, "CreatedWorkload", f"Created Workload: {name}")

    def _asked(
        self, gang: Gang, group: Json | None, pods: Sequence[Json], living: Sequence[Json]
    ) -> Asked:
        namespace = living[0]["metadata"]["namespace"]
        context = LiveContext(self._manifests, namespace, self._settings.rules)
        done = sum(1 for pod in pods if phase_of(pod) == "Succeeded")
        return asked_by(gang, group, living, context, done=done)

    def _workload(
        self, gang: Gang, group: Json | None, living: Sequence[Json], asked: Asked, view: View
    ) -> Json:
        owner = group if group is not None else living[0]
        kind = Kind(owner["apiVersion"], owner["kind"])
        queue = self._queue(owner, living[0], view)
        made = new_workload(owner, kind, queue, asked.sets, view, self._queues.may_name)
        metadata = made["metadata"]
        metadata["name"] = self._workload_name(gang, group, living)
        metadata["annotations"] = {**metadata["annotations"], GANG: gang.text}
        if gang.is_kueue_group:
            metadata["ownerReferences"] = [_owner(pod) for pod in living]
        return made

    def _queue(self, owner: Json, first: Json, view: View) -> str:
        """Return the queue of a gang; empty if it waits until it names one."""
        labels = first["metadata"].get("labels") or {}
        queue = labels.get(names.QUEUE_LABEL) or self._queues.queue_of(owner, view)
        return UNLIMITED_LOCAL_QUEUE if queue is None else queue

    # ---- admitted or not ---------------------------------------------------------------------

    def _keep(
        self,
        gang: Gang,
        group: Json | None,
        workload: Json,
        pods: Sequence[Json],
        living: Sequence[Json],
        view: View,
        now: float,
    ) -> Steps:
        status = workload.get("status") or {}
        conditions = status.get("conditions") or []
        if is_true(conditions, "Finished"):
            if living:
                yield from _remove(workload)  # the group begins anew
            return
        end = _end(gang, pods)
        if end is not None:
            yield from _finish(workload, end, now)
        elif is_true(conditions, "Evicted") and status.get("admission"):
            yield from self._stop_evicted(workload, pods, now)
        elif is_true(conditions, "Admitted"):
            gone = find(conditions, "PodsReady")
            is_gone = not pods and gone is not None and gone["status"] == "False"
            due = seconds(gone["lastTransitionTime"]) + PODS_CREATED_SECONDS if gone else now
            if is_gone and now >= due:
                yield from _remove(workload)
                return
            yield from self._start(workload, living)
            yield from _running(workload, pods, view, now)
            if not pods:
                yield Again(due if is_gone else now + PODS_CREATED_SECONDS)
        elif not living:
            yield from _remove(workload)
        else:
            yield from self._wait(gang, group, workload, pods, living, view, now)

    def _wait(
        self,
        gang: Gang,
        group: Json | None,
        workload: Json,
        pods: Sequence[Json],
        living: Sequence[Json],
        view: View,
        now: float,
    ) -> Steps:
        """Follow pods that come and go, and write what they wait for."""
        conditions = (workload.get("status") or {}).get("conditions")
        asked = self._asked(gang, group, pods, living)
        is_reserved = is_true(conditions, "QuotaReserved")
        if not is_reserved and (not asked.sets or not same_sets(workload, asked.sets)):
            yield from _remove(workload)
            return
        queue = self._queue(group if group is not None else living[0], living[0], view)
        if not is_reserved and not workload["spec"].get("queueName") and queue:
            yield Patch(Ref.to(workload), {"spec": {"queueName": queue}})
            return
        waits = find(conditions, "QuotaReserved")
        if waits is not None and waits["status"] == "False":
            yield from _explain(living, waiting_message(Conditions(conditions)), now)

    def _start(self, workload: Json, living: Sequence[Json]) -> Steps:
        """Annotate pods with workload and pod set, lift their gate; surplus pods run alone."""
        name = workload["metadata"]["name"]
        sets = set_names(workload)
        room = whole_counts(workload)
        newcomers = []
        for pod in living:
            if _is_told(pod, name):
                labels = pod["metadata"].get("labels") or {}
                place = labels.get(names.POD_SET_LABEL, "main")
                room[place] = room.get(place, 0) - 1
            else:
                newcomers.append(pod)
        patches = []
        for pod in newcomers:
            place = sets.get(role_of(pod), "")
            if room.get(place, 0) > 0:
                room[place] -= 1
                patches.append(_told(pod, name, place))
            elif not _is_gated(pod):
                patches.append(_annotated(pod, {SOLO: "true"}))
        if patches:
            yield Together(patches)

    def _stop_evicted(self, workload: Json, pods: Sequence[Json], now: float) -> Steps:
        """Delete the pods; when none is left, release the quota."""
        evicted = find(workload["status"]["conditions"], "Evicted")
        message = evicted["message"] if evicted is not None else "Evicted"
        if not (yield from _delete_pods(workload, pods, message)):
            yield Patch(Ref.to(workload), {"status": released(workload, now)}, "status")


def _delete_pods(
    workload: Json, pods: Sequence[Json], message: str
) -> Generator[Action, Any, Sequence[Json]]:
    """Delete bound pods, detach the others from the workload; return bound pods not gone yet."""
    name = workload["metadata"]["name"]
    living = [pod for pod in pods if not is_terminal(pod)]
    bound = [pod for pod in living if pod["spec"].get("nodeName")]
    going = [pod for pod in bound if not is_deleting(pod)]
    if going:
        yield Together([Delete(Ref.to(pod)) for pod in going])
        for pod in going:
            yield Note(Ref.to(pod), "Stopped", message)
    told = [pod for pod in living if _is_told(pod, name) and pod not in bound]
    if told:
        yield Together([_annotated(pod, {names.WORKLOAD_ANNOTATION: None}) for pod in told])
    return bound


def _is_told(pod: Json, workload: str) -> bool:
    annotations = pod["metadata"].get("annotations") or {}
    return bool(annotations.get(names.WORKLOAD_ANNOTATION) == workload)


def _forget(pods: Sequence[Json], workload: str) -> Steps:
    """Let pods that are over forget a Workload that is gone; the next has the same name."""
    past = [pod for pod in pods if is_terminal(pod) and _is_told(pod, workload)]
    if past:
        yield Together([_annotated(pod, {names.WORKLOAD_ANNOTATION: None}) for pod in past])


def _is_gated(pod: Json) -> bool:
    return any(gate["name"] == GATE for gate in pod["spec"].get("schedulingGates") or ())


def _told(pod: Json, workload: str, pod_set: str) -> Patch:
    metadata = {
        "annotations": {names.WORKLOAD_ANNOTATION: workload},
        "labels": {names.POD_SET_LABEL: pod_set},
    }
    changes: Json = {"metadata": metadata}
    if _is_gated(pod):
        gates = [gate for gate in pod["spec"]["schedulingGates"] if gate["name"] != GATE]
        changes["spec"] = {"schedulingGates": gates or None}
    return Patch(Ref.to(pod), changes)


def _annotated(pod: Json, annotations: dict[str, Any]) -> Patch:
    return Patch(Ref.to(pod), {"metadata": {"annotations": annotations}})


def _owner(pod: Json) -> Json:
    metadata = pod["metadata"]
    return {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}


def _end(gang: Gang, pods: Sequence[Json]) -> bool | None:
    """Say whether a gang ended well; None if it has not ended."""
    over = [pod for pod in pods if is_terminal(pod)]
    succeeded = [pod for pod in over if phase_of(pod) == "Succeeded"]
    if not pods or len(over) < len(pods):
        if not gang.is_kueue_group or not pods:
            return None
    if gang.is_kueue_group:
        total = whole_number((pods[0]["metadata"].get("annotations") or {}).get(TOTAL_COUNT))
        if total is not None and len(succeeded) >= total:
            return True
        final = any(
            (pod["metadata"].get("annotations") or {}).get(RETRIABLE) == "false" for pod in pods
        )
        return False if final and len(over) == len(pods) else None
    return len(succeeded) == len(pods)


def _finish(workload: Json, succeeded: bool, now: float) -> Steps:
    conditions = (workload.get("status") or {}).get("conditions")
    reason = "Succeeded" if succeeded else "Failed"
    message = "Pods succeeded" if succeeded else "Pods failed"
    generation = workload["metadata"].get("generation")
    done = with_condition(
        conditions, "Finished", "True", reason, message, now=now, generation=generation
    )
    workload = yield Patch(Ref.to(workload), {"status": {"conditions": done}}, "status")
    yield from _remove_finalizer(workload)


def _remove(workload: Json) -> Steps:
    yield from _remove_finalizer(workload)
    yield Delete(Ref.to(workload))


def _remove_finalizer(workload: Json) -> Steps:
    finalizers = workload["metadata"].get("finalizers") or []
    if names.RESOURCE_IN_USE in finalizers:
        left = [one for one in finalizers if one != names.RESOURCE_IN_USE]
        yield Patch(Ref.to(workload), {"metadata": {"finalizers": left}}, exact=False)


def _running(workload: Json, pods: Sequence[Json], view: View, now: float) -> Steps:
    """Say whether the pods are ready, and which are done for good."""
    status = workload["status"]
    conditions = status["conditions"]
    name = workload["metadata"]["name"]
    told = [pod for pod in pods if _is_told(pod, name)]
    wanted = sum(whole_counts(workload).values())
    done: dict[str, int] = {}
    for pod in told:
        if phase_of(pod) == "Succeeded":
            place = (pod["metadata"].get("labels") or {}).get(names.POD_SET_LABEL, "main")
            done[place] = done.get(place, 0) + 1
    are_ready = sum(map(is_ready, told)) + sum(done.values()) >= wanted
    ready = find(conditions, "PodsReady")
    was_ready = ready is not None and ready["status"] == "True"
    changes: Json = {}
    if are_ready != was_ready or ready is None:
        waits, message = "WaitForStart", kueue_messages.NOT_READY
        if was_ready:
            waits, message = "WaitForRecovery", kueue_messages.WAITING_FOR_RECOVERY
        changed = with_condition(
            conditions,
            "PodsReady",
            "True" if are_ready else "False",
            "Started" if are_ready else waits,
            kueue_messages.READY if are_ready else message,
            now=now,
            generation=workload["metadata"].get("generation"),
        )
        changes["conditions"] = with_commitment(workload, changed, view, now)
    reclaimable = [{"name": place, "count": count} for place, count in sorted(done.items())]
    if reclaimable != (status.get("reclaimablePods") or []):
        changes["reclaimablePods"] = reclaimable
    left = assignments_left(workload, done, view) if done else None
    if left is not None:
        changes["admission"] = {"podSetAssignments": left}
    if changes:
        written = yield Patch(Ref.to(workload), {"status": changes}, "status")
        if placement_of(conditions)[0] != placement_of(written["status"]["conditions"])[0]:
            yield committed_event(written)


def _release_pods(pods: Sequence[Json], workload: Json | None) -> Steps:
    """Take Kueue's finalizer off pods that need not be counted any more.

    One that succeeded counts until its group is over, or all of the group are deleted; one that
    is on its way out, once it is over.
    """
    conditions = (workload.get("status") or {}).get("conditions") if workload is not None else None
    is_given_up = all(is_deleting(pod) and is_terminal(pod) for pod in pods)
    is_over = workload is None or is_true(conditions, "Finished") or is_given_up
    free = []
    for pod in pods:
        if MANAGED not in (pod["metadata"].get("finalizers") or ()):
            continue
        is_idle = is_terminal(pod) or not pod["spec"].get("nodeName")
        is_left = is_deleting(pod) and is_idle and phase_of(pod) != "Succeeded"
        if is_left or (is_over and is_terminal(pod)):
            free.append(pod)
    if free:
        yield Together(
            [
                Patch(
                    Ref.to(pod),
                    {
                        "metadata": {
                            "finalizers": [
                                one for one in pod["metadata"]["finalizers"] if one != MANAGED
                            ]
                        }
                    },
                    exact=False,
                )
                for pod in free
            ]
        )


def _explain(pods: Sequence[Json], message: str, now: float) -> Steps:
    """Tell pods without a gate why they have no node; a gate is an explanation by itself."""
    patches = []
    for pod in pods:
        conditions = (pod.get("status") or {}).get("conditions")
        old = find(conditions, "PodScheduled")
        if pod["spec"].get("nodeName") or pod["spec"].get("schedulingGates"):
            continue
        if old is not None and old.get("message") == message:
            continue
        changed = with_condition(
            conditions, "PodScheduled", "False", "Unschedulable", message, now=now
        )
        patches.append(Patch(Ref.to(pod), {"status": {"conditions": changed}}, "status"))
    if patches:
        yield Together(patches)
