"""Volcano's kinds as its webhook has them: what is filled in, and what depends on other objects.

    Job        a queue, a scheduler, retries, minima, names of tasks, helpers that others need;
               refused without an open queue that is a leaf; of an existing job only its numbers
               and its priority class change
    PodGroup   the queue that its namespace names (annotation); refused in a queue that is closed
    Queue      reclaimable, of weight 1; its place in the tree of queues; `default`, `root` and
               queues with others below them stay
    HyperNode  refused without members

A LocalQueue of the job's own namespace stands for a Volcano queue of the same name, and a queue
label goes before both (`snapshot.local_queues`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from unisono.apiserver.builtin.field_errors import forbidden, not_found, required
from unisono.apiserver.builtin.typed_validation import TypedStrategy, causes_of, known_kind
from unisono.apiserver.errors import Cause
from unisono.apiserver.objects import Json, annotations_of, at, child, items, labels_of, numbered
from unisono.apiserver.strategy import Context
from unisono.kinds.core.pod_groups import VOLCANO_QUEUE
from unisono.kinds.decode import Problem, decode
from unisono.kinds.notes import Notes
from unisono.kinds.overriding import override
from unisono.kinds.registry import Kind
from unisono.kinds.snapshot.candidates import QUEUE_LABEL
from unisono.kinds.volcano.defaults import fill_job, fill_queue
from unisono.kinds.volcano.queue_tree import check_in_tree
from unisono.kinds.volcano.queues import ROOT, Queue

QUEUES = "scheduling.volcano.sh/queues"
_LOCAL_QUEUES = "kueue.x-k8s.io/localqueues"
_DEFAULT = "default"


def _kind(api_version: str, kind: str) -> Kind:
    found = known_kind(api_version, kind)
    assert found is not None, f"{kind} is one of our kinds"
    return found


class VolcanoJobStrategy(TypedStrategy):
    """A batch.volcano.sh Job."""

    def __init__(self) -> None:
        """Judge by its typed manifest, too."""
        super().__init__(_kind("batch.volcano.sh/v1alpha1", "Job"))

    @override
    def default(self, obj: Json) -> None:
        """Fill in what the webhook does."""
        fill_job(obj)

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield a queue that takes no jobs, and changes of what stays as it is."""
        yield from super().check(obj, old, context)
        if old is None:
            yield from self._check_queue(obj, context)
            yield from _check_claims(obj)
        elif obj.get("spec") != old.get("spec"):
            yield from _check_change(at(obj, "spec"), at(old, "spec"))

    def _check_queue(self, job: Json, context: Context) -> Iterator[Cause]:
        if labels_of(job).get(QUEUE_LABEL):
            return
        name = str(at(job, "spec").get("queue") or _DEFAULT)
        namespace = str(at(job, "metadata").get("namespace") or "")
        if context.find(_LOCAL_QUEUES, namespace, name) is not None:
            return
        yield from _check_takes_jobs(name, context)


def _check_claims(job: Json) -> Iterator[Cause]:
    """Yield volumes of two claims; later the operator notes the claim that it made."""
    for path, volume in numbered(at(job, "spec"), "volumes", "spec"):
        if volume.get("volumeClaim") is not None and volume.get("volumeClaimName"):
            why = "names a claim that is there, which excludes volumeClaim, from which one is made"
            yield forbidden(f"{path}.volumeClaimName", why)


def _check_takes_jobs(name: str, context: Context) -> Iterator[Cause]:
    queue = context.find(QUEUES, "", name)
    if queue is None:
        if name != _DEFAULT:
            why = f"{not_found('spec.queue', name).message}: unable to find job queue; create it"
            yield Cause("FieldValueNotFound", f"{why} first, or name another one", "spec.queue")
        return
    state = at(queue, "status").get("state") or "Open"
    if state != "Open":
        why = f"queue {name} is {state}; can only submit job to queue with state `Open`"
        yield forbidden("spec.queue", why)
    below = _names_below(name, context)
    if name == ROOT:
        yield forbidden("spec.queue", "can not submit job to root queue; name one below it")
    elif below:
        why = f"can only submit job to leaf queue; queue {name} has {_listed(below)} below it"
        yield forbidden("spec.queue", why)


def _names_below(name: str, context: Context) -> list[str]:
    saying = f'"parent":"{name}"'.encode()
    return sorted(
        str(at(one, "metadata").get("name"))
        for one in context.every(QUEUES, saying=saying)
        if at(one, "spec").get("parent") == name
    )


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def _check_change(new: Json, old: Json) -> Iterator[Cause]:
    """Yield changes that no pod would ever hear of."""
    if len(items(new, "tasks")) != len(items(old, "tasks")):
        yield forbidden("spec.tasks", "job updates may not add or remove tasks")
    elif _fixed(new) != _fixed(old):
        changed = sorted(
            name
            for name in new.keys() | old.keys()
            if _fixed(new).get(name) != _fixed(old).get(name)
        )
        why = "job updates may not change fields other than minAvailable, priorityClassName, and"
        path = f"spec.{changed[0]}"
        yield forbidden(path, f"{why} replicas and minAvailable of tasks; this changes {path}")


def _fixed(spec: Json) -> Json:
    """Return a spec without what may change."""
    kept = {
        name: value
        for name, value in spec.items()
        if name not in ("minAvailable", "priorityClassName") and value not in (None, "", [], {})
    }
    if isinstance(spec.get("volumes"), list):
        # The operator notes the claims that it made.
        kept["volumes"] = [
            {name: value for name, value in one.items() if name != "volumeClaimName"}
            if one.get("volumeClaim") is not None
            else one
            for one in items(spec, "volumes")
        ]
    if isinstance(spec.get("tasks"), list):
        kept["tasks"] = [
            {
                name: value
                for name, value in task.items()
                if name not in ("replicas", "minAvailable", "partitionPolicy")
                and value not in (None, "", [], {})
            }
            for task in items(spec, "tasks")
        ]
    return kept


class VolcanoGroupStrategy(TypedStrategy):
    """A scheduling.volcano.sh PodGroup."""

    def __init__(self) -> None:
        """Judge by its typed manifest, too."""
        super().__init__(_kind("scheduling.volcano.sh/v1beta1", "PodGroup"))

    @override
    def prepare_create(self, obj: Json, context: Context) -> None:
        """Put a group that names no queue of its own into that of its namespace."""
        spec = child(obj, "spec")
        if spec.get("queue") != _DEFAULT:
            return
        namespace = context.find("/namespaces", "", str(at(obj, "metadata").get("namespace")))
        named = annotations_of(namespace or {}).get(VOLCANO_QUEUE)
        if named:
            spec["queue"] = named

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield a queue that takes nothing."""
        yield from super().check(obj, old, context)
        name = str(at(obj, "spec").get("queue") or _DEFAULT)
        namespace = str(at(obj, "metadata").get("namespace") or "")
        if old is not None or name == _DEFAULT or labels_of(obj).get(QUEUE_LABEL):
            return
        if context.find(_LOCAL_QUEUES, namespace, name) is not None:
            return
        queue = context.find(QUEUES, "", name)
        if queue is None:
            why = f"{not_found('spec.queue', name).message}: unable to find queue; create it first"
            yield Cause("FieldValueNotFound", why, "spec.queue")
        elif (state := at(queue, "status").get("state") or "Open") != "Open":
            why = f"can only submit PodGroup to queue with state `Open`; queue {name} is {state}"
            yield forbidden("spec.queue", why)


class VolcanoQueueStrategy(TypedStrategy):
    """A scheduling.volcano.sh Queue."""

    def __init__(self) -> None:
        """Judge by its typed manifest, too."""
        super().__init__(_kind("scheduling.volcano.sh/v1beta1", "Queue"))

    @override
    def default(self, obj: Json) -> None:
        """Fill in what the webhook does."""
        fill_queue(obj)

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield what does not fit into the tree of queues."""
        yield from super().check(obj, old, context)
        if old is not None and obj.get("spec") == old.get("spec"):
            return
        queue, problems = decode(Queue, obj, ignore_unknown=True)
        if queue is None or problems:
            return  # told already
        others = [_read(one) for one in context.every(QUEUES)]
        notes = Notes(file="", document=0)
        moves = old is None or at(obj, "spec").get("parent") != at(old, "spec").get("parent")
        check_in_tree(queue, [one for one in others if one is not None], notes, moves=moves)
        yield from causes_of(Problem(one.path, one.message) for one in notes.problems)

    @override
    def refuse_deletion(self, obj: Mapping[str, Any], context: Context) -> str:
        """Keep what every cluster has, and queues that others stand below."""
        name = str(at(obj, "metadata").get("name"))
        if name in (_DEFAULT, ROOT):
            return f"`{name}` queue can not be deleted"
        below = _names_below(name, context)
        if below:
            return f"queue {name} can not be deleted because it has child queues: {_listed(below)}"
        pods = at(obj, "status", "allocated").get("pods")
        if pods not in (None, "", "0"):
            return f"queue {name} cannot be deleted because it has allocated Pods: {pods}"
        return ""


class HyperNodeStrategy(TypedStrategy):
    """A topology.volcano.sh HyperNode."""

    def __init__(self) -> None:
        """Judge by its typed manifest, too."""
        super().__init__(_kind("topology.volcano.sh/v1alpha1", "HyperNode"))

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield that nothing is below it; in files that is read, and means nothing."""
        yield from super().check(obj, old, context)
        if not at(obj, "spec").get("members"):
            yield required("spec.members", "member must have at least one member")


def _read(obj: Mapping[str, Any]) -> Queue | None:
    found, problems = decode(Queue, copy.copy(dict(obj)), ignore_unknown=True)
    return found if not problems else None


VOLCANO = {
    "batch.volcano.sh/jobs": VolcanoJobStrategy(),
    "scheduling.volcano.sh/podgroups": VolcanoGroupStrategy(),
    QUEUES: VolcanoQueueStrategy(),
    "topology.volcano.sh/hypernodes": HyperNodeStrategy(),
}
