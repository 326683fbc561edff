"""Objects of the API as typed manifests, decoded once for every version of each."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple

import msgspec

from unisono.control.actions import Json
from unisono.control.view import View
from unisono.engine.model.errors import InvalidManifest
from unisono.engine.model.names import WorkloadKey
from unisono.engine.model.workload import PodSet, Workload
from unisono.kinds.decode import Problem, decode
from unisono.kinds.known import KNOWN, refuse, taken_in
from unisono.kinds.kueue.convert import raise_version
from unisono.kinds.kueue.workload_rules import check_status
from unisono.kinds.notes import Notes
from unisono.kinds.registry import Kind as KnownKind
from unisono.kinds.resource_rules import NO_RULES, ResourceRules
from unisono.kube.mapping import Kind


class Manifests:
    """Decodes what the view holds, and remembers it as long as the object does not change."""

    def __init__(self, view: View) -> None:
        """Begin with nothing decoded."""
        self._view = view
        self._decoded: dict[tuple[Kind, str, str], tuple[str, Any]] = {}
        # By name, and by name and group, as kinds ask for each other.
        self.kinds = {kind.kind: kind for kind in view.kinds()} | {
            f"{kind.kind}.{kind.api_version.rpartition('/')[0]}": kind for kind in view.kinds()
        }

    def of(self, obj: Json) -> Any | None:
        """Return the manifest of an object; None of a kind that we do not know.

        Raise InvalidManifest if something is wrong with it: what a real API server stores, it
        stores without having asked us.
        """
        metadata = obj["metadata"]
        kind = Kind(obj["apiVersion"], obj["kind"])
        key = (kind, metadata.get("namespace", ""), metadata["name"])
        version = metadata.get("resourceVersion", "")
        known = self._decoded.get(key)
        if known is not None and version and known[0] == version:
            made = known[1]
        else:
            try:
                made = self.read(obj)
            except InvalidManifest as error:
                made = error
            self._decoded[key] = (version, made)
        if isinstance(made, InvalidManifest):
            raise made
        return made

    def read(self, obj: Json) -> Any | None:
        """Return the manifest of an object without remembering it: for kinds of many objects."""
        found = KNOWN.look_up(obj["apiVersion"], obj["kind"])
        return taken_in(found, _raised(obj)) if isinstance(found, KnownKind) else None

    def without_sets(self, obj: Json) -> Any:
        """Return a Workload whose pod sets were read before, and need not be read again."""
        found = KNOWN.look_up(obj["apiVersion"], obj["kind"])
        assert isinstance(found, KnownKind), "Workload is one of our kinds"
        manifest, problems = decode(found.struct, without_sets(obj), ignore_unknown=True)
        refuse(problems)
        made: Any = found.upgrade(manifest) if found.upgrade is not None else manifest
        notes = Notes("", 0)
        names = {one.get("name", "main") for one in obj["spec"].get("podSets") or ()}
        check_status(made, names, notes)
        refuse([Problem(one.path, one.message) for one in notes.problems])
        return made

    def forget(self, kind: Kind, namespace: str, name: str) -> None:
        """Let go of an object that is gone."""
        self._decoded.pop((kind, namespace, name), None)

    def find(self, kind: Kind, name: str, namespace: str = "") -> Any | None:
        """Return an object by name."""
        if not self._view.has(kind):
            return None
        obj = self._view.get(kind, name, namespace)
        return self._readable(obj) if obj is not None else None

    def every(self, kind: Kind, namespace: str = "") -> tuple[Any, ...]:
        """Return all objects of a kind (in a namespace) that can be read."""
        if not self._view.has(kind):
            return ()
        objects = self._view.within(kind, namespace) if namespace else self._view.all(kind)
        return tuple(made for obj in objects if (made := self._readable(obj)) is not None)

    def _readable(self, obj: Json) -> Any | None:
        """Return the manifest of an object that others refer to; one with a fault is not there."""
        try:
            return self.of(obj)
        except InvalidManifest:
            return None


def _raised(obj: Json) -> Json:
    """Return a ClusterQueue without names of an older version.

    A real API server stores what was applied in v1beta1 as it is, under the name of v1beta2: it has
    no converter (`kinds.shapes.crds`).
    """
    if obj["kind"] != "ClusterQueue":
        return obj
    spec = obj.get("spec") or {}
    words = (spec.get("flavorFungibility") or {}).values()
    if not _OLD_NAMES.intersection(spec) and not _OLD_WORDS.intersection(words):
        return obj
    raised = deepcopy(obj)  # objects of the view are shared
    raise_version("clusterqueues", raised)
    return raised


_OLD_NAMES = frozenset({"cohort", "admissionChecks"})
_OLD_WORDS = frozenset({"Borrow", "Preempt"})


class LiveContext:
    """What a kind may look at while one of its objects is read (`kinds.registry.Context`)."""

    def __init__(
        self, manifests: Manifests, namespace: str, rules: ResourceRules = NO_RULES
    ) -> None:
        """Read in a namespace."""
        self.namespace = namespace
        self.notes = Notes("", 0)
        self.rules = rules
        self._manifests = manifests

    def find(self, kind: str, name: str, *, namespace: str = "") -> Any | None:
        """Return a decoded object by kind and name."""
        found = self._manifests.kinds.get(kind)
        return self._manifests.find(found, name, namespace) if found is not None else None

    def every(self, kind: str, *, namespace: str = "") -> tuple[Any, ...]:
        """Return all decoded objects of a kind."""
        found = self._manifests.kinds.get(kind)
        return self._manifests.every(found, namespace) if found is not None else ()


def without_sets(workload: Json) -> Json:
    """Return a Workload without what need not be read again."""
    return {**workload, "spec": {**workload["spec"], "podSets": []}}


# ---- pod sets ------------------------------------------------------------------------------------
#
# Those of Workloads are read once, as they cannot change without a new generation.
#
# Templates are most of a Workload, and a status of it is read at every step. When a LimitRange or a
# RuntimeClass changes, what waits is forgotten here (`scheduler.requests_by`); what runs is charged
# what was written when it was admitted.


class _Read(NamedTuple):
    uid: str
    generation: int
    pod_sets: tuple[PodSet, ...]
    misconfigured: str


class PodSetCache:
    """Remembers the pod sets of every Workload that the engine knows; they are the engine's own."""

    def __init__(self) -> None:
        """Begin with nothing read."""
        self._known: dict[WorkloadKey, _Read] = {}

    def is_known(self, key: WorkloadKey, metadata: Json) -> bool:
        """Say whether the sets of this very generation of a Workload were read before."""
        known = self._known.get(key)
        if known is None:
            return False
        return known[:2] == (metadata.get("uid"), metadata.get("generation"))

    def remember(self, made: Workload, metadata: Json) -> None:
        """Keep the sets of a Workload that was read as a whole."""
        uid, generation = metadata.get("uid"), metadata.get("generation")
        if uid and generation:
            self._known[made.key] = _Read(uid, generation, made.pod_sets, made.misconfigured)

    def given_back(self, made: Workload) -> Workload:
        """Return a Workload that was read without its sets, with them."""
        known = self._known[made.key]
        return msgspec.structs.replace(
            made, pod_sets=known.pod_sets, misconfigured=known.misconfigured
        )

    def forget(self, key: WorkloadKey) -> None:
        """Let go of a Workload that is over."""
        self._known.pop(key, None)


def claims_in(spec: Json) -> list[str]:
    """Return the claims that a pod mounts."""
    claims = (one.get("persistentVolumeClaim") or {} for one in spec.get("volumes") or ())
    return [one["claimName"] for one in claims if "claimName" in one]


def claims_of_sets(workload: Json) -> list[str]:
    """Return the claims that the pods of a Workload mount."""
    specs = (one["template"].get("spec") or {} for one in workload["spec"].get("podSets") or ())
    return [claim for spec in specs for claim in claims_in(spec)]
