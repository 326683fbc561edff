"""Which objects stand for workloads: jobs at the top, and groups of pods.

Left out are objects that belong to a job which was given as well, jobs that are over, and those
whose Workload was given: that one knows more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from unisono.engine.model.workload import PodSet
from unisono.kinds.managing import has_managed_owner
from unisono.kinds.objects import Entry, Objects
from unisono.kinds.registry import Context, JobHooks, MemberHooks, Registry


@dataclass(frozen=True, slots=True)
class Candidate:
    """One future workload: a job, or pods that belong together."""

    entry: Entry  # the job, or the first of the pods
    name: str  # of the workload, without its namespace
    subject: Any  # what the hooks are called with: the manifest, or all of them
    hooks: JobHooks | MemberHooks

    def pod_sets(self, context: Context) -> tuple[PodSet, ...]:
        """Return the gang."""
        return self.hooks.pod_sets(self.subject, context)

    @property
    def own_class(self) -> str:
        """The PriorityClass that it names itself."""
        return self.hooks.priority_class(self.subject)

    @property
    def own_queue(self) -> str:
        """The queue that its kind names besides the label."""
        return self.hooks.queue(self.subject) if isinstance(self.hooks, JobHooks) else ""

    @property
    def reclaimable(self) -> tuple[tuple[str, int], ...]:
        """Pods of each set that are done for good."""
        return self.hooks.reclaimable(self.subject)


def candidates(objects: Objects, registry: Registry) -> Iterator[Candidate]:
    """Yield what stands for a workload, in document order."""
    owned = _owners_of_workloads(objects)
    taken: set[tuple[str, str]] = set()
    for candidate in _all(objects, registry):
        entry = candidate.entry
        if candidate.hooks.is_finished(candidate.subject) or _is_owner(candidate, owned):
            continue
        # `batch/v1` and Volcano both have a kind Job; the second of one name says its group.
        name = candidate.name
        if (entry.namespace, name) in taken:
            name = f"{entry.kind.kind.lower()}.{entry.kind.group}-{entry.name}"
        taken.add((entry.namespace, name))
        yield Candidate(entry, name, candidate.subject, candidate.hooks)


def _all(objects: Objects, registry: Registry) -> Iterator[Candidate]:
    groups: dict[tuple[str, str], list[Entry]] = {}
    found: list[Candidate] = []
    for entry in objects.all():
        hooks = entry.kind.job or entry.kind.members
        if hooks is None or has_managed_owner(entry, objects, registry):
            continue
        if isinstance(hooks, JobHooks):
            name = f"{entry.kind.kind.lower()}-{entry.name}"
            found.append(Candidate(entry, name, entry.manifest, hooks))
        elif workload := hooks.workload(entry.manifest):
            groups.setdefault((entry.namespace, workload), []).append(entry)
    for (_, workload), members in groups.items():
        hooks = members[0].kind.members
        assert hooks is not None
        subject = tuple(member.manifest for member in members)
        found.append(Candidate(members[0], workload, subject, hooks))
    yield from sorted(found, key=lambda candidate: candidate.entry.index)


def _owners_of_workloads(objects: Objects) -> set[tuple[str, str, str, str]]:
    return {
        (owner.api_version.rpartition("/")[0], owner.kind, workload.namespace, owner.name)
        for workload in objects.entries("Workload")
        for owner in workload.metadata.owner_references
    }


def _is_owner(candidate: Candidate, owned: set[tuple[str, str, str, str]]) -> bool:
    kind, namespace = candidate.entry.kind, candidate.entry.namespace
    members = candidate.subject if isinstance(candidate.subject, tuple) else (candidate.subject,)
    return any(
        (kind.group, kind.kind, namespace, member.metadata.name) in owned for member in members
    )
