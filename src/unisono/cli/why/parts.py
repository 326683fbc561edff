"""Workloads of an object that is not queued as a whole: a Deployment's pods, a CronJob's jobs.

Each of its pods, groups or jobs has a Workload of its own. The owners of those are followed up to
the object: through the ReplicaSet of a pod, the StatefulSet of a group, the JobSet of a Job.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from unisono.cli.workload_state import job_of, state_of
from unisono.control.apps import REPLICA_SET, STATEFUL_SET
from unisono.control.names import JOB, JOB_SET, POD, WORKLOAD
from unisono.control.view import owners
from unisono.kinds.kueue.status_shape import readable
from unisono.kube.client import Client
from unisono.kube.errors import Forbidden, NotFound, UnknownKind
from unisono.kube.form import Json
from unisono.kube.mapping import Kind

# What may stand between a Workload and the object, from below to above.
_BETWEEN: Sequence[Kind] = (POD, JOB, REPLICA_SET, STATEFUL_SET, JOB_SET)
_MOST_LEVELS = 8
# States that need an answer come first: one of these is described in full.
_FIRST = ("waiting", "checked", "buying", "deactivated", "repairing", "leaving", "starting")


@dataclass(slots=True)
class Parts:
    """The Workloads of an object's pods, groups or jobs."""

    workloads: list[Json] = field(default_factory=list)
    pods: list[Json] = field(default_factory=list)

    def states(self) -> dict[str, int]:
        """Return how many of them are in which state, those that need an answer first."""
        counted: Counter[str] = Counter(state_of(one) for one in self.workloads)
        known = [state for state in (*_FIRST, "running", "finished") if state in counted]
        return {state: counted[state] for state in known}

    def shown(self) -> Json | None:
        """Return the one to describe: the oldest in the first state that needs an answer."""
        for state in _FIRST:
            there = [one for one in self.workloads if state_of(one) == state]
            if there:
                return min(there, key=_age)
        return None

    def name_of_shown(self) -> str:
        """Return the pod, group or job of that one."""
        shown = self.shown()
        return job_of(shown) if shown is not None else ""


async def parts_of(client: Client, obj: Json) -> Parts:
    """Return the Workloads of what an object owns, in its namespace; none if it owns none."""
    namespace, uid = obj["metadata"]["namespace"], obj["metadata"]["uid"]
    workloads = await _all(client, WORKLOAD, namespace)
    if not workloads:
        return Parts()
    above: dict[str, Sequence[str]] = {}
    pods: list[Json] = []
    for kind in _BETWEEN:
        there = await _all(client, kind, namespace)
        above.update((one["metadata"]["uid"], owners(one)) for one in there)
        pods = there if kind == POD else pods
    return Parts(
        [readable(one) for one in workloads if _is_below(owners(one), uid, above)],
        [one for one in pods if _is_below(owners(one), uid, above)],
    )


def _is_below(parents: Iterable[str], uid: str, above: Mapping[str, Sequence[str]]) -> bool:
    """Say whether owners lead up to an object."""
    level = set(parents)
    for _ in range(_MOST_LEVELS):
        if uid in level:
            return True
        level = {higher for one in level for higher in above.get(one, ())}
    return False


def _age(workload: Json) -> tuple[str, str]:
    metadata = workload["metadata"]
    return str(metadata.get("creationTimestamp", "")), str(metadata["name"])


async def _all(client: Client, kind: Kind, namespace: str) -> list[Json]:
    with contextlib.suppress(Forbidden, NotFound, UnknownKind):
        return (await client.list(kind, namespace)).items
    return []
