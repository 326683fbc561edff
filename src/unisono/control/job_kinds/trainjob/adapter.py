"""TrainJob in a queue: as its rendered JobSet, suspended and unsuspended by itself (jobs §7.1)."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

from unisono.control import names
from unisono.control.actions import Json, Patch, Ref
from unisono.control.conditions import find
from unisono.control.job_kinds.jobset.adapter import (
    are_ready,
    done_for_good,
    runs_something,
    sets_of,
)
from unisono.control.job_kinds.trainjob.parts import INJECTOR
from unisono.control.job_kinds.trainjob.render import rendered
from unisono.control.job_kinds.trainjob.runtimes import Faults, runtime_of
from unisono.control.jobs.adapter import End, Injection, PodSetOfJob
from unisono.control.view import View
from unisono.kube.mapping import Kind


class TrainJobs:
    """How a TrainJob waits, starts and stops.

    What is injected is one entry of `runtimePatches`. It stays when the TrainJob is stopped, for it
    must not change while pods of it run; it has no effect then, and the next start replaces it.
    """

    scales = False
    frees_places = False
    kind: Kind = names.TRAIN_JOB
    watches: Sequence[Kind] = (names.JOB_SET,)

    def __init__(self) -> None:
        """Begin with nothing read."""
        self._faults = Faults()

    def pod_sets(self, job: Json, view: View) -> Sequence[PodSetOfJob]:
        """Return the pod sets of the JobSet it becomes; empty while its runtime is missing."""
        runtime = runtime_of(job, view)
        if runtime is None or self._faults.of(job, runtime, view):
            return ()
        return sets_of(rendered(job, runtime, injected=False).job_set["spec"])

    def is_suspended(self, job: Json) -> bool:
        """Say whether the TrainJob is suspended."""
        return bool(job["spec"].get("suspend"))

    def is_active(self, job: Json, view: View) -> bool:
        """Say whether pods of it are there, or may come."""
        return any(
            runs_something(one, view) or not one["spec"].get("suspend")
            for one in view.owned(names.JOB_SET, job["metadata"]["uid"])
        )

    def are_pods_ready(self, job: Json, view: View) -> bool:
        """Say whether all Jobs that may run by now are ready."""
        job_sets = view.owned(names.JOB_SET, job["metadata"]["uid"])
        return bool(job_sets) and all(map(are_ready, job_sets))

    def end(self, job: Json) -> End | None:
        """Return how it ended, once nothing of it runs any more."""
        status = job.get("status") or {}
        if any(one["active"] for one in status.get("jobsStatus") or ()):
            return None
        for kind, succeeded in (("Complete", True), ("Failed", False)):
            found = find(status.get("conditions"), kind)
            if found is not None and found["status"] == "True":
                return End(succeeded, found.get("message", ""))
        return None

    def reclaimable(self, job: Json, view: View) -> Mapping[str, int]:
        """Return how many pods of each set will not run again."""
        for job_set in view.owned(names.JOB_SET, job["metadata"]["uid"]):
            return done_for_good(job_set)
        return {}

    def start(self, job: Json, sets: Mapping[str, Injection]) -> Generator[Patch, Any, None]:
        """Inject in an update of its own, then release."""
        others = [
            one for one in job["spec"].get("runtimePatches") or () if one.get("manager") != INJECTOR
        ]
        job = yield Patch(Ref.to(job), {"spec": {"runtimePatches": [*others, _patch(sets)]}})
        yield Patch(Ref.to(job), {"spec": {"suspend": False}})

    def stop(self, job: Json, sets: Sequence[PodSetOfJob]) -> Iterator[Patch]:
        """Suspend."""
        yield Patch(Ref.to(job), {"spec": {"suspend": True}})


def _patch(sets: Mapping[str, Injection]) -> Json:
    """Return what is injected, in the shape of a runtime."""
    jobs = []
    for name, one in sets.items():
        spec: Json = {}
        if one.node_selector:
            spec["nodeSelector"] = dict(one.node_selector)
        if one.tolerations:
            spec["tolerations"] = list(one.tolerations)
        if one.gates:
            spec["schedulingGates"] = [{"name": gate} for gate in one.gates]
        metadata = {"labels": dict(one.labels), "annotations": dict(one.annotations)}
        jobs.append(
            {"name": name, "template": {"spec": {"template": {"metadata": metadata, "spec": spec}}}}
        )
    template = {"spec": {"replicatedJobs": jobs}}
    return {"manager": INJECTOR, "trainingRuntimeSpec": {"template": template}}
