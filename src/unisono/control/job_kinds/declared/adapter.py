"""Objects of a declared kind in a queue: one adapter for all kinds that a WorkloadKind describes.

Where the declaration does not fit an object, that is an `InvalidManifest`, which stops that object
alone: the framework suspends it and says so.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from unisono.control import names
from unisono.control.actions import Json, Patch, Ref
from unisono.control.jobs.adapter import End, Injection, PodSetOfJob, injected, restored
from unisono.control.jobs.pods import is_ready, is_terminal, phase_of
from unisono.control.jobs.workload import workload_name
from unisono.control.view import View
from unisono.kinds.core.schema import PodTemplateSpec
from unisono.kinds.decode import decode
from unisono.kinds.known import refuse
from unisono.kinds.workload_kinds import Declaration
from unisono.kube.mapping import Kind


class DeclaredJobs:
    """How objects of one kind wait, start and stop."""

    scales = False
    frees_places = False

    def __init__(self, declaration: Declaration) -> None:
        """Take what was declared."""
        self.declaration = declaration
        self.kind = Kind(declaration.api_version, declaration.kind)
        self.watches: Sequence[Kind] = (names.POD,)

    def pod_sets(self, job: Json, view: View) -> Sequence[PodSetOfJob]:
        """The sets that the declaration finds, each with a template that pods can be made from."""
        found = self.declaration.pod_sets(job)
        for one in found:
            _, problems = decode(
                PodTemplateSpec, one.template, path=f"pod set {one.name}", ignore_unknown=True
            )
            refuse(problems)
        return [
            PodSetOfJob(
                name=one.name, count=one.count, template=one.template, min_count=one.min_count
            )
            for one in found
        ]

    def is_suspended(self, job: Json) -> bool:
        """Say whether the object is held back."""
        return self.declaration.is_suspended(job)

    def is_active(self, job: Json, view: View) -> bool:
        """Say whether pods of it run, or its own status says so."""
        if any(not is_terminal(pod) for pod in self._pods(job, view)):
            return True
        return bool(self.declaration.active(job))

    def are_pods_ready(self, job: Json, view: View) -> bool:
        """Say whether all of the gang is ready or through."""
        said = self.declaration.ready(job)
        if said is not None:
            return said
        pods = self._pods(job, view)
        there = sum(is_ready(pod) or phase_of(pod) == "Succeeded" for pod in pods)
        return there >= sum(one.count for one in self.declaration.pod_sets(job))

    def end(self, job: Json) -> End | None:
        """Return how it ended."""
        found = self.declaration.end(job)
        return None if found is None else End(*found)

    def reclaimable(self, job: Json, view: View) -> Mapping[str, int]:
        """Nothing: whether its operator starts pods again is not known."""
        return {}

    def start(self, job: Json, sets: Mapping[str, Injection]) -> Iterator[Patch]:
        """Inject and release in one write."""
        changed = copy.deepcopy(job)
        for one in self.declaration.pod_sets(job):
            if one.name in sets:
                _merge(_within(changed, one.place), injected(one.template, sets[one.name]))
        _set(changed, self.declaration.suspend, value=False)
        yield Patch(Ref.to(job), _difference(job, changed))

    def stop(self, job: Json, sets: Sequence[PodSetOfJob]) -> Iterator[Patch]:
        """Hold back and put the templates back as they were."""
        changed = copy.deepcopy(job)
        originals = {one.name: one.template for one in sets}
        for one in self.declaration.pod_sets(job) if originals else ():
            if one.name in originals:
                _merge(_within(changed, one.place), restored(one.template, originals[one.name]))
        _set(changed, self.declaration.suspend, value=True)
        yield Patch(Ref.to(job), _difference(job, changed))

    def _pods(self, job: Json, view: View) -> Sequence[Json]:
        """Return its pods, at any depth below it: each names the Workload in its template."""
        metadata = job["metadata"]
        name = workload_name(self.kind, metadata["name"], metadata["uid"])
        return view.by(names.POD, names.BY_WORKLOAD, f"{metadata['namespace']}/{name}")


# ---- changes -------------------------------------------------------------------------------------
#
# A merge patch replaces lists whole, and templates may stand in lists. So the new object is made
# first, and the patch is what differs.


def _within(obj: Any, place: Sequence[str | int]) -> Json:
    for step in place:
        obj = obj[step]
    assert isinstance(obj, dict)
    return obj


def _set(obj: Json, place: Sequence[str], *, value: bool) -> None:
    *parents, last = place
    for step in parents:
        below = obj.get(step)
        if not isinstance(below, dict):
            below = obj[step] = {}
        obj = below
    obj[last] = value


def _merge(target: Json, patch: Json) -> None:
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            if not isinstance(target.get(key), dict):
                target[key] = {}
            _merge(target[key], value)
            if not target[key]:
                del target[key]
        else:
            target[key] = value


def _difference(old: Json, new: Json) -> Json:
    """Return the merge patch that makes one object of another."""
    patch: Json = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            below = _difference(before, value)
            if below:
                patch[key] = below
        elif value != before:
            patch[key] = value
    return patch
