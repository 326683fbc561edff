"""What a kind of job must be able to do to be queued: one small adapter per kind.

An adapter is pure. It reads a job as it is stored (a dictionary) and the view, and says what the
framework needs to know; to start and stop a job it yields patches of that job, in order. What the
job's own operator then does (make pods, count failures) is not its business.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from unisono.control.actions import Json, Patch
from unisono.control.view import View
from unisono.engine.model.workload import TopologyRequest
from unisono.kinds.core.topology import GROUP, PREFERRED, REQUIRED, SLICE_LEVEL, SLICE_SIZE
from unisono.kube.mapping import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetOfJob:
    """Pods of one template, as a Workload lists them."""

    name: str
    count: int
    template: Json  # {"metadata": …, "spec": …}: what its pods are made from, nothing injected
    min_count: int | None = None
    # Its pods are made only when the others run: a place is kept, but the gang starts without them.
    comes_later: bool = False
    # Each of its pods is of use by itself: a job that grows may have some of them before the rest.
    is_loose: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """What the pods of one set get besides what their template says, when they start."""

    count: int
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Json] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    gates: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class End:
    """How a job ended."""

    succeeded: bool
    message: str = ""


class JobAdapter(Protocol):
    """One kind of job, as the framework sees it (jobs §7.1)."""

    @property
    def kind(self) -> Kind:
        """The kind in the version that is stored."""

    @property
    def scales(self) -> bool:
        """Whether a running job of this kind may be made larger and smaller."""

    @property
    def frees_places(self) -> bool:
        """Whether others may have the places of its pods that are done, as those never restart."""

    @property
    def watches(self) -> Sequence[Kind]:
        """Kinds of objects that belong to such a job and tell how it is doing."""

    def pod_sets(self, job: Json, view: View) -> Sequence[PodSetOfJob]:
        """Return the gang; empty while it cannot be said (a runtime is missing)."""

    def is_suspended(self, job: Json) -> bool:
        """Say whether the job is suspended."""

    def is_active(self, job: Json, view: View) -> bool:
        """Say whether anything of it runs, or may: quota is given back only when nothing does."""

    def are_pods_ready(self, job: Json, view: View) -> bool:
        """Say whether all of the gang is ready or already through."""

    def end(self, job: Json) -> End | None:
        """Return how it ended; None while it has not."""

    def reclaimable(self, job: Json, view: View) -> Mapping[str, int]:
        """Return how many pods of each set are done for good."""

    def start(self, job: Json, sets: Mapping[str, Injection]) -> Iterator[Patch]:
        """Yield the patches that unsuspend the job, with what is injected.

        One, unless the kind wants the injection first; then the driver hands back the job as the
        first patch left it (`job = yield …`), so that the next one can name its state.
        """

    def stop(self, job: Json, sets: Sequence[PodSetOfJob]) -> Iterator[Patch]:
        """Yield the patches that hold the job back and undo what was injected.

        `sets` are the templates as they were before the job was started.
        """


@runtime_checkable
class Shrinkable(Protocol):
    """A kind of job that can run with fewer pods, if the job says so."""

    def shrink(self, job: Json, keeps: Mapping[str, int]) -> Iterator[Patch]:
        """Yield the patches after which the job wants so many pods of each set; none of them: all.

        Its own operator ends the pods that are too many.
        """


# ---- templates -----------------------------------------------------------------------------------
#
# Pod templates with what an admission adds, and without it again. Both functions return a merge
# patch of a template: only the parts that may change while a job is suspended.


def injected(template: Json, more: Injection) -> Json:
    """Return the changes that let a template's pods run where they were admitted to."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    tolerations = list(spec.get("tolerations") or ())
    tolerations += [one for one in more.tolerations if one not in tolerations]
    gates = list(spec.get("schedulingGates") or ())
    gates += [{"name": name} for name in more.gates if {"name": name} not in gates]
    changed: Json = {
        "metadata": {
            "labels": {**(metadata.get("labels") or {}), **more.labels},
            "annotations": {**(metadata.get("annotations") or {}), **more.annotations},
        },
        "spec": {},
    }
    if more.node_selector:
        changed["spec"]["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **more.node_selector}
    if tolerations != list(spec.get("tolerations") or ()):
        changed["spec"]["tolerations"] = tolerations
    if gates != list(spec.get("schedulingGates") or ()):
        changed["spec"]["schedulingGates"] = gates
    if not changed["spec"]:
        del changed["spec"]
    return changed


def restored(template: Json, original: Json) -> Json:
    """Return the changes that bring a template back to what it was."""
    changed: Json = {"metadata": {}, "spec": {}}
    for part, keys in (
        ("metadata", ("labels", "annotations")),
        ("spec", ("nodeSelector",)),
    ):
        now, then = template.get(part) or {}, original.get(part) or {}
        for key in keys:
            added = {name: None for name in now.get(key) or {} if name not in (then.get(key) or {})}
            if added or then.get(key):
                changed[part][key] = {**added, **(then.get(key) or {})}
    for key in ("tolerations", "schedulingGates"):
        now_list = (template.get("spec") or {}).get(key)
        then_list = (original.get("spec") or {}).get(key)
        if now_list != then_list:
            changed["spec"][key] = then_list
    return changed


# ---- topology ------------------------------------------------------------------------------------
#
# A topology request, written on the template of a pod set (`kinds.core.topology`).


def with_topology(template: Json, request: TopologyRequest, group: str = "") -> Json:
    """Return a template whose set asks for a topology; sets of one group share a domain."""
    requested: dict[str, str] = {}
    if request.mode == "required":
        requested[REQUIRED] = request.level
    elif request.level:
        requested[PREFERRED] = request.level
    if request.slice_size:
        requested |= {SLICE_LEVEL: request.slice_level, SLICE_SIZE: str(request.slice_size)}
    elif group and requested:
        requested[GROUP] = group
    metadata = template.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), **requested}
    return {**template, "metadata": {**metadata, "annotations": annotations}}
