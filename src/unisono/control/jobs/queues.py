"""Which queue a job is in; None if we do not manage it (quota §16, `snapshot.local_queues`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.admission.record import VOLCANO_LOCAL_QUEUE
from unisono.control.conditions import is_true
from unisono.control.jobs.priority_class_rules import class_rules
from unisono.control.jobs.workload import workload_name
from unisono.control.view import View
from unisono.engine.model.selection import selects
from unisono.kinds.managers import other_manager
from unisono.kinds.meta import NAMESPACE_LABEL
from unisono.kinds.policy.settings import Settings
from unisono.kinds.snapshot.local_queues import UNLIMITED_LOCAL_QUEUE
from unisono.kube.mapping import Kind

DEFAULT_QUEUE = "default"


class Queues:
    """Knows which kinds are jobs, so that a job of a job is left to the one at the top."""

    def __init__(
        self,
        settings: Settings,
        job_kinds: Callable[[], frozenset[Kind]],
        *,
        names_queue: Mapping[Kind, Callable[[Json], str | None]] | None = None,
        gates: Sequence[str] = (),
        ungated: Collection[str] = (),
        shares_the_cluster: bool = False,
        api_checks_classes: bool = False,
    ) -> None:
        """Take the operator's choices; `names_queue` reads a queue that a kind names itself.

        None is read of a job that asks for nothing of its own, so that no queue has to admit it.

        `gates` hold pods of queued jobs back from schedulers other than ours; the schedulers of
        `ungated` have no pods but those that we bind. With `shares_the_cluster` the API is not
        ours: what our own would warn of or refuse is examined here, but for priority classes if
        `api_checks_classes`, which is what our policies have it do.
        """
        self._shares_the_cluster = shares_the_cluster
        self._api_checks_classes = api_checks_classes
        self._gates = gates
        self._ungated = ungated
        self._settings = settings
        self._job_kinds = job_kinds
        self._names_queue = names_queue or {}

    def gates_for(self, scheduler: str) -> Sequence[str]:
        """Return what holds pods of a scheduler back until the whole gang has its nodes."""
        return () if scheduler in self._ungated else self._gates

    def queue_of(self, job: Json, view: View) -> str | None:
        """Return the queue that a job's Workload is to name."""
        metadata = job["metadata"]
        namespace = metadata["namespace"]
        if self._has_managed_owner(job, view) or not self._is_managed(namespace, view):
            return None
        reads = self._names_queue.get(Kind(job["apiVersion"], job["kind"]))
        if reads is not None and reads(job) is None:
            return None
        label = (metadata.get("labels") or {}).get(names.QUEUE_LABEL, "")
        is_of_others = bool(other_manager(job)[1])
        if is_of_others and not (label and self._shares_the_cluster):
            return None  # where nothing else runs jobs, it would hold quota for ever
        if label:
            return str(label)
        own = self._own_queue(job, view)
        if own is not None:
            return own
        found = self._default(namespace, view)
        if found:
            return found
        return "" if self._settings.manages_unqueued else None

    def needs_queue(self, job: Json, view: View) -> bool:
        """Say whether a queue has to admit a job, be it one that it does not name yet."""
        return self.queue_of(job, view) is not None

    def inherited(self, job: Json, view: View) -> str:
        """Return the queue that a part of a job is to name, in case it is left behind alone.

        `--cascade=orphan` makes it a job of its own. Without a queue it would run without limits.
        Empty if there is nothing to be written.
        """
        if Kind(job["apiVersion"], job["kind"]) not in self._names_queue:
            return ""
        above = self._owner(job, view)
        if above is None:
            return ""
        theirs = (above["metadata"].get("labels") or {}).get(names.QUEUE_LABEL, "")
        own = (job["metadata"].get("labels") or {}).get(names.QUEUE_LABEL, "")
        return "" if own == theirs else str(theirs)

    def warns_of_bypass(self, job: Json, view: View) -> bool:
        """Say whether a job without a queue deserves a warning, because there is quota."""
        namespace = job["metadata"]["namespace"]
        return (
            self._shares_the_cluster
            and self._is_managed(namespace, view)
            and not self._has_managed_owner(job, view)
            and any(view.all(names.CLUSTER_QUEUE))
        )

    def may_name(self, priority_class: str, namespace: str, view: View) -> bool:
        """Say whether a class counts in a namespace.

        Our own API has refused users that may not name it, and so has a real one with policies that
        read what `ClassRules` wrote. Otherwise only the namespace of a job is known, so a rule that
        names none there is for none.
        """
        if not self._shares_the_cluster or self._api_checks_classes:
            return True
        rules = class_rules(self._settings, view).class_rules(priority_class)
        return not rules or any(namespace in rule.namespaces for rule in rules)

    def _default(self, namespace: str, view: View) -> str:
        """Return the queue of jobs that name none; empty if there is no such."""
        given = self._settings.default_queue(self._labels(namespace, view))
        if given:
            return given
        is_there = view.get(names.LOCAL_QUEUE, DEFAULT_QUEUE, namespace) is not None
        return DEFAULT_QUEUE if is_there else ""

    def _own_queue(self, job: Json, view: View) -> str | None:
        """Return the queue of kinds that always are in one, such as Volcano's."""
        kind = Kind(job["apiVersion"], job["kind"])
        reads = self._names_queue.get(kind)
        if reads is None:
            return None
        name = reads(job) or ""
        if name and view.get(names.LOCAL_QUEUE, name, job["metadata"]["namespace"]) is not None:
            return name
        # A job that names a missing queue waits for it.
        is_there = view.has(names.VOLCANO_QUEUE) and view.get(names.VOLCANO_QUEUE, name)
        if name and (is_there or name != DEFAULT_QUEUE):
            return f"{VOLCANO_LOCAL_QUEUE}{name}"
        given = self._default(job["metadata"]["namespace"], view)
        if given or self._settings.manages_unqueued:
            return given
        return UNLIMITED_LOCAL_QUEUE

    def _is_managed(self, namespace: str, view: View) -> bool:
        return selects(self._settings.managed_namespaces, self._labels(namespace, view))

    def _labels(self, namespace: str, view: View) -> dict[str, str]:
        found = view.get(names.NAMESPACE, namespace)
        labels = (found["metadata"].get("labels") or {}) if found is not None else {}
        return {**labels, NAMESPACE_LABEL: namespace}

    def _owner(self, job: Json, view: View) -> Json | None:
        """Return the job that a job is a part of."""
        metadata = job["metadata"]
        for owner in metadata.get("ownerReferences") or ():
            kind = Kind(owner["apiVersion"], owner["kind"])
            if owner.get("controller") and kind in self._job_kinds():
                found = view.find(kind, owner["name"], metadata["namespace"])
                return (
                    found
                    if found is not None and found["metadata"]["uid"] == owner["uid"]
                    else None
                )
        return None

    def _has_managed_owner(self, job: Json, view: View) -> bool:
        for owner in job["metadata"].get("ownerReferences") or ():
            kind = Kind(owner["apiVersion"], owner["kind"])
            if owner.get("controller") and kind in self._job_kinds():
                return True
        return False


# ---- may an operator make pods? ------------------------------------------------------------------
#
# A job that a queue has to admit is suspended when it is created. One that was created otherwise
# (it names no queue, but runs in a cluster where gangs start whole) is suspended a moment later;
# in that moment its operator must not be quicker.


def may_make_pods(job: Json, kind: Kind, queues: Queues, view: View) -> bool:
    """Say whether a job is admitted, or in no queue at all."""
    if queues.queue_of(job, view) is None:
        return True
    metadata = job["metadata"]
    name = workload_name(kind, metadata["name"], metadata["uid"])
    workload = view.get(names.WORKLOAD, name, metadata["namespace"])
    return workload is not None and is_true(
        (workload.get("status") or {}).get("conditions"), "Admitted"
    )
