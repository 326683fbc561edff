"""batch/v1 Job in a queue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from unisono.control import names
from unisono.control.actions import Json, Patch, Ref
from unisono.control.conditions import find
from unisono.control.jobs.adapter import End, Injection, PodSetOfJob, injected, restored
from unisono.control.view import View
from unisono.kinds.digits import whole_number
from unisono.kube.mapping import Kind

MIN_PARALLELISM = "kueue.x-k8s.io/job-min-parallelism"


class BatchJobs:
    """How a Job waits, starts and stops."""

    scales = True
    frees_places = True
    kind: Kind = names.JOB
    watches: Sequence[Kind] = ()

    def pod_sets(self, job: Json, view: View) -> Sequence[PodSetOfJob]:
        """One set: as many pods as run at once."""
        spec = job["spec"]
        parallelism = spec.get("parallelism", 1)
        completions = spec.get("completions")
        count = parallelism if completions is None else min(parallelism, completions)
        least = whole_number((job["metadata"].get("annotations") or {}).get(MIN_PARALLELISM))
        return (
            PodSetOfJob(
                name="main",
                count=count,
                template=spec["template"],
                min_count=least if least is not None and 0 < least < count else None,
            ),
        )

    def is_suspended(self, job: Json) -> bool:
        """Say whether the job is suspended."""
        return bool(job["spec"].get("suspend"))

    def is_active(self, job: Json, view: View) -> bool:
        """Say whether pods of it are there."""
        status = job.get("status") or {}
        return bool(status.get("active") or status.get("terminating"))

    def are_pods_ready(self, job: Json, view: View) -> bool:
        """Say whether as many pods are ready or through as run at once."""
        status = job.get("status") or {}
        done = status.get("succeeded", 0) + (status.get("ready") or 0)
        return bool(done >= self.pod_sets(job, view)[0].count)

    def end(self, job: Json) -> End | None:
        """Return how it ended."""
        conditions = (job.get("status") or {}).get("conditions")
        for kind, succeeded in (("Complete", True), ("Failed", False)):
            found = find(conditions, kind)
            if found is not None and found["status"] == "True":
                return End(succeeded, found.get("message", ""))
        return None

    def reclaimable(self, job: Json, view: View) -> Mapping[str, int]:
        """Return how many pods less than before will run from now on."""
        spec, status = job["spec"], job.get("status") or {}
        parallelism, completions = spec.get("parallelism", 1), spec.get("completions")
        succeeded = status.get("succeeded", 0)
        if parallelism == 1 or completions is None or not succeeded:
            return {}
        return {"main": max(0, parallelism - (completions - succeeded))}

    def start(self, job: Json, sets: Mapping[str, Injection]) -> Iterator[Patch]:
        """Inject and release in one write, in the state that was seen."""
        template = injected(job["spec"]["template"], sets["main"])
        changes: Json = {"template": template, "suspend": False}
        count = sets["main"].count
        if count and count < job["spec"].get("parallelism", 1):
            changes["parallelism"] = count
        yield Patch(Ref.to(job), {"spec": changes})

    def stop(self, job: Json, sets: Sequence[PodSetOfJob]) -> Iterator[Patch]:
        """Suspend, then put the template back as it was.

        The template can only be changed once the job has no start time, which its operator clears;
        until then the next start writes over what was injected.
        """
        changes: Json = {"suspend": True}
        if sets and sets[0].count > job["spec"].get("parallelism", 1):
            changes["parallelism"] = sets[0].count  # it was started with fewer, or shrank
        if not (job.get("status") or {}).get("startTime") and sets:
            changes["template"] = restored(job["spec"]["template"], sets[0].template)
        yield Patch(Ref.to(job), {"spec": changes})

    def shrink(self, job: Json, keeps: Mapping[str, int]) -> Iterator[Patch]:
        """Run fewer pods at once; the highest indexes end first."""
        if keeps and keeps["main"] < job["spec"].get("parallelism", 1):
            yield Patch(Ref.to(job), {"spec": {"parallelism": keeps["main"]}})
