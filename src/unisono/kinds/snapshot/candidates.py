"""Which objects stand for workloads: jobs at the top, groups of pods, and single pods.

    a job                                     is one workload, `KIND-NAME`
    pods of one Kueue group                   are one, named like the group
    pods that name a group of another API     are one with that group, `podgroup-NAME`; groups under
                                              a composite one are one together
    a pod by itself                           is one, `pod-NAME`

Left out are objects that belong to a job which was given as well, jobs that are over, and jobs
whose Workload was given: that one knows more (spec quota §16).
Which queue each of them is in is worked out in `local_queues`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from unisono.kinds.core.pod_groups import GroupLink, group_link, group_of
from unisono.kinds.objects import Entry, Objects
from unisono.kinds.registry import OUR_SCHEDULERS, Context, JobHooks, MemberHooks, Registry
from unisono.kinds.snapshot.bound_pods import BoundPods
from unisono.kinds.snapshot.pod_gangs import Gang, JobRequest, Part, read_gang

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
QUEUE_LABEL_PATH = f"metadata.labels[{QUEUE_LABEL}]"
DEFAULT_QUEUE = "default"
KUEUE_WORKLOAD = "Workload.kueue.x-k8s.io"
_MOST_COMPOSITES = 8  # Kubernetes allows a depth of four


@dataclass(frozen=True, slots=True)
class Candidate:
    """One future workload: a job, pods that belong together, or a gang."""

    entry: Entry  # the job, the group, or the first of the pods
    name: str  # of the workload, without its namespace
    subject: Any  # what the hooks are called with: the manifest, or all of them; or the gang
    hooks: JobHooks | MemberHooks | None  # None for gangs, which are all read alike
    pods: tuple[Entry, ...] = ()  # those it is made of
    named_queue: str = ""  # by its kind, besides the label

    def read(self, context: Context) -> JobRequest:
        """Return what it asks for."""
        if self.hooks is None:
            return read_gang(self.subject, context)
        return JobRequest(
            pod_sets=self.hooks.pod_sets(self.subject, context),
            min_total=self.hooks.min_total(self.subject)
            if isinstance(self.hooks, JobHooks)
            else None,
            reclaimable=self.hooks.reclaimable(self.subject),
            priority_class=self.hooks.priority_class(self.subject),
        )

    @property
    def is_finished(self) -> bool:
        """Whether it is over."""
        if self.hooks is None:
            gang: Gang = self.subject
            return gang.is_finished
        return self.hooks.is_finished(self.subject)

    @property
    def part(self) -> str:
        """What tells it from other gangs of the same object; empty if there are none."""
        if self.hooks is not None:
            return ""
        link = self.subject.parts[0].link
        return f"/{link.part}/{link.replica}" if link.part else ""

    @property
    def queue_label(self) -> str:
        """The LocalQueue that its label names: the object's own, or that of one of its pods."""
        labels = (entry.metadata.labels.get(QUEUE_LABEL, "") for entry in (self.entry, *self.pods))
        return next((label for label in labels if label), "")

    @property
    def is_ours_to_place(self) -> bool:
        """Whether nodes have to be found for it even if it is in no queue."""
        return self.hooks is None or self.hooks.scheduler(self.subject) in OUR_SCHEDULERS

    @property
    def is_plain_pod(self) -> bool:
        """Whether it is a single pod in no group, which is not ours without a queue."""
        return isinstance(self.hooks, MemberHooks) and not group_of(self.subject[0])


def candidates(objects: Objects, registry: Registry, bound: BoundPods) -> Iterator[Candidate]:
    """Yield what stands for a workload, in document order."""
    owned = _owners_of_workloads(objects)
    taken: set[tuple[str, str]] = set()
    for candidate in _all(objects, registry, bound):
        entry = candidate.entry
        if candidate.is_finished or _is_owner(candidate, owned):
            continue
        # `batch/v1` and Volcano both have a kind Job; the second of one name says its group.
        name = candidate.name
        if (entry.namespace, name) in taken:
            word = entry.kind.kind.lower()
            name = f"{word}.{entry.kind.group}-{name.removeprefix(f'{word}-')}"
        while (entry.namespace, name) in taken:
            name = f"{name}-{entry.index}"
        taken.add((entry.namespace, name))
        yield replace(candidate, name=name)


def _all(objects: Objects, registry: Registry, bound: BoundPods) -> Iterator[Candidate]:
    members: dict[tuple[str, str], list[Entry]] = {}
    linked: dict[tuple[str, GroupLink], list[Entry]] = {}
    found: list[Candidate] = []
    for entry in objects.all():
        hooks = entry.kind.job or entry.kind.members
        if hooks is None or _has_managed_owner(entry, objects, registry):
            continue
        if isinstance(hooks, JobHooks):
            name = f"{entry.kind.kind.lower()}-{entry.name}"
            queue = hooks.queue(entry.manifest)
            found.append(Candidate(entry, name, entry.manifest, hooks, named_queue=queue))
        elif bound.belongs(entry):
            continue
        elif (link := _gang_link(entry, objects)) is not None:
            linked.setdefault((entry.namespace, link), []).append(entry)
        elif workload := hooks.workload(entry.manifest):
            members.setdefault((entry.namespace, workload), []).append(entry)
    found.extend(_of_members(name, pods, objects) for (_, name), pods in members.items())
    found.extend(_gangs(linked, objects))
    yield from sorted(found, key=lambda candidate: candidate.entry.index)


def _of_members(name: str, pods: list[Entry], objects: Objects) -> Candidate:
    hooks = pods[0].kind.members
    assert hooks is not None, "only pods that have the hooks are gathered"
    subject = tuple(pod.manifest for pod in pods)
    queue = hooks.queue(subject) or _group_queue(pods[0], objects)
    return Candidate(pods[0], name, subject, hooks, tuple(pods), queue)


def _group_queue(pod: Entry, objects: Objects) -> str:
    """Return the queue of the group that a pod names, although it makes no gang."""
    link = group_link(pod.manifest)
    group = objects.find(link.kind, link.name, namespace=pod.namespace) if link else None
    return group.kind.gang.queue(group.manifest) if group and group.kind.gang else ""


# ---- gangs -------------------------------------------------------------------------------------


def _gang_link(entry: Entry, objects: Objects) -> GroupLink | None:
    """Return the gang that a pod says it is in; None if its group lets pods start one by one."""
    link = None if group_of(entry.manifest) else group_link(entry.manifest)
    if link is None:
        return None
    group = objects.find(link.kind, link.name, namespace=entry.namespace)
    if group is None or group.kind.gang is None:
        return link
    is_gang = group.kind.gang.is_gang(group.manifest, link.part)
    return link if is_gang or _composite(group, objects)[0] is not None else None


def _gangs(
    linked: dict[tuple[str, GroupLink], list[Entry]], objects: Objects
) -> Iterator[Candidate]:
    under: dict[int, list[tuple[Part, list[Entry]]]] = {}
    children: dict[int, set[str]] = {}
    for (namespace, link), pods in linked.items():
        group = objects.find(link.kind, link.name, namespace=namespace)
        hooks = group.kind.gang if group is not None else None
        manifests = tuple(pod.manifest for pod in pods)
        part = Part(link, manifests, group.manifest if group else None, hooks)
        top, child = _composite(group, objects) if group is not None else (None, "")
        if top is not None:
            under.setdefault(top.index, []).append((part, pods))
            children.setdefault(top.index, set()).add(child)
            continue
        entry = group or pods[0]
        queue = hooks.queue(entry.manifest) if hooks is not None else ""
        yield Candidate(entry, link.workload, Gang((part,)), None, tuple(pods), queue)
    by_index = {entry.index: entry for entry in objects.entries("CompositePodGroup")}
    for index, parts in under.items():
        entry = by_index[index]
        gang = Gang(
            tuple(part for part, _ in parts),
            entry.manifest,
            entry.kind.gang,
            len(children[index]),
        )
        every = tuple(pod for _, pods in parts for pod in pods)
        yield Candidate(entry, f"compositepodgroup-{entry.name}", gang, None, every)


def _composite(group: Entry, objects: Objects) -> tuple[Entry | None, str]:
    """Climb to the widest composite group that makes one gang of those below it.

    Also return the name of the group right below it, on the way up.
    """
    top, below, at = None, "", group
    for _ in range(_MOST_COMPOSITES):
        named = at.kind.gang.parent(at.manifest) if at.kind.gang is not None else None
        above = objects.find(*named, namespace=group.namespace) if named is not None else None
        if above is None or above.kind.gang is None:
            break
        if not above.kind.gang.is_gang(above.manifest, ""):
            break
        top, below, at = above, f"{at.kind.kind}/{at.name}", above
    return top, below


# ---- jobs with a Workload ----------------------------------------------------------------------


def _owners_of_workloads(objects: Objects) -> set[tuple[str, str, str, str]]:
    return {
        (owner.api_version.rpartition("/")[0], owner.kind, workload.namespace, owner.name)
        for workload in objects.entries(KUEUE_WORKLOAD)
        for owner in workload.metadata.owner_references
    }


def _is_owner(candidate: Candidate, owned: set[tuple[str, str, str, str]]) -> bool:
    return any(
        (entry.kind.group, entry.kind.kind, entry.namespace, entry.metadata.name) in owned
        for entry in (candidate.entry, *candidate.pods)
    )


def _has_managed_owner(entry: Entry, objects: Objects, registry: Registry) -> bool:
    """Say whether a job or pod belongs to a job that was given, too."""
    for owner in entry.metadata.owner_references:
        kind = registry.kinds.get((owner.api_version, owner.kind))
        if kind is None or kind.job is None:
            continue
        if objects.exists(f"{kind.kind}.{kind.group}", owner.name, namespace=entry.namespace):
            return True
    return False
