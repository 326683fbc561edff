"""The decoded pod sets of Workloads: read once, as they cannot change without a new generation.

Templates are most of a Workload, and a status of it is read at every step. What a LimitRange or a
RuntimeClass adds to a pod set is what it added when the Workload was first seen.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from unisono.control.actions import Json
from unisono.engine.model.names import WorkloadKey
from unisono.engine.model.workload import PodSet, Workload


class _Read(NamedTuple):
    uid: str
    generation: int
    pod_sets: tuple[PodSet, ...]
    misconfigured: str


class SetsRead:
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
