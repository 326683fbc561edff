"""JobFlows: Volcano jobs that are made one after another, each of a JobTemplate.

    Pending ──a job runs──▶ Running ──all completed──▶ Succeed
       └──────────────────────┴──one failed──▶ Failed

A job is made once the jobs that it depends on are Completed. A flow that has failed makes no more
jobs; one with `jobRetainPolicy: delete` deletes them when all have completed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unisono.control.actions import Create, Delete, Json, Note, Patch, Ref, Steps, Together
from unisono.control.conditions import timestamp
from unisono.control.controller import own_key, owner_key
from unisono.control.job_kinds import volcano
from unisono.control.job_kinds.volcano.phases import ENDED, job_phase
from unisono.control.jobs.pods import is_deleting
from unisono.control.jobs.workload import owner_reference
from unisono.control.view import View
from unisono.kinds.volcano.flows import patched
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

# On a job: `NAMESPACE.NAME` of its template and of its flow.
BY_TEMPLATE = "volcano.sh/createdByJobTemplate"
BY_FLOW = "volcano.sh/createdByJobFlow"
_LISTS = {
    "Pending": "pendingJobs",
    "Running": "runningJobs",
    "Failed": "failedJobs",
    "Completed": "completedJobs",
    "Terminated": "terminatedJobs",
}
_PASSING = ("Completing", "Terminating", "Restarting", "Aborting", "")
_MOST_HISTORY = 16


class JobFlows:
    """Makes the jobs of flows."""

    name = "job-flows"
    watches: Sequence[Kind] = (volcano.FLOW, volcano.JOB_TEMPLATE, volcano.JOB)
    owner_kind: Kind = volcano.FLOW
    dependent_kinds: Sequence[Kind] = (volcano.JOB,)
    idle_without: Kind = volcano.FLOW

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A flow, one of its jobs, or the flows that wait for a template."""
        if kind == volcano.FLOW:
            yield own_key(obj)
        elif kind == volcano.JOB:
            yield from owner_key(obj, volcano.FLOW)
        else:
            metadata = obj["metadata"]
            for flow in view.within(volcano.FLOW, metadata["namespace"]):
                if any(one["name"] == metadata["name"] for one in _flows(flow)):
                    yield own_key(flow)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Make the jobs that are due, and say how far the flow is."""
        flow = view.get(volcano.FLOW, key.name, key.namespace)
        if flow is None or is_deleting(flow):
            return
        uid = flow["metadata"]["uid"]
        jobs = {job["metadata"]["name"]: job for job in view.owned(volcano.JOB, uid)}
        phase = _phase_of(flow)
        if phase == "Succeed" and flow["spec"].get("jobRetainPolicy") == "delete":
            going = [job for job in jobs.values() if not is_deleting(job)]
            if going:
                yield Together([Delete(Ref.to(job)) for job in going])
            return
        if phase in ("Succeed", "Failed"):
            return
        for one in _due(flow, jobs):
            template = view.get(volcano.JOB_TEMPLATE, one["name"], key.namespace)
            if template is None:
                message = f"there is no JobTemplate {one['name']}; the flow waits for it"
                yield Note(Ref.to(flow), "JobTemplateNotFound", message, "Warning")
                continue
            job = yield Create(_job(flow, one, template))
            jobs[job["metadata"]["name"]] = job
            yield Note(Ref.to(flow), "Created", f"create a job named {job['metadata']['name']}!")
        status = _status(flow, [jobs[name] for name in sorted(jobs)], now)
        old = flow.get("status") or {}
        if not jobs and not old:
            return  # as upstream, which says nothing of a flow that has no job yet
        if any((old.get(name) or None) != (value or None) for name, value in status.items()):
            gone = {name: None for name in old.get("conditions") or () if name not in jobs}
            status["conditions"] = {**status["conditions"], **gone}
            yield Patch(Ref.to(flow), {"status": status}, "status")


def _flows(flow: Json) -> list[Json]:
    """Return the jobs of a flow, one of each name."""
    return list({one["name"]: one for one in flow["spec"].get("flows") or ()}.values())


def _phase_of(flow: Json) -> str:
    return str(((flow.get("status") or {}).get("state") or {}).get("phase", ""))


def job_name(flow: Json, one: Json) -> str:
    """Return the name of one job of a flow."""
    return f"{flow['metadata']['name']}-{one['name']}"


def _due(flow: Json, jobs: dict[str, Json]) -> list[Json]:
    done = {name for name, job in jobs.items() if job_phase(job) == "Completed"}
    prefix = flow["metadata"]["name"]
    return [
        one
        for one in _flows(flow)
        if job_name(flow, one) not in jobs
        and all(
            f"{prefix}-{target}" in done
            for target in (one.get("dependsOn") or {}).get("targets") or ()
        )
    ]


def _job(flow: Json, one: Json, template: Json) -> Json:
    metadata = flow["metadata"]
    namespace = metadata["namespace"]
    made_by = {
        BY_TEMPLATE: f"{namespace}.{one['name']}",
        BY_FLOW: f"{namespace}.{metadata['name']}",
    }
    patch = (one.get("patch") or {}).get("jobSpec") or {}
    return {
        "apiVersion": volcano.JOB.api_version,
        "kind": volcano.JOB.kind,
        "metadata": {
            "name": job_name(flow, one),
            "namespace": namespace,
            "labels": {**_inherited(template), **made_by},
            "annotations": dict(made_by),
            "ownerReferences": [owner_reference(flow)],
        },
        "spec": patched(template.get("spec") or {}, patch),
    }


def _inherited(template: Json) -> dict[str, str]:
    """Return the labels of a template that its jobs have, too: those that say how they queue."""
    labels = template["metadata"].get("labels") or {}
    return {name: value for name, value in labels.items() if name.startswith("kueue.x-k8s.io/")}


def _status(flow: Json, jobs: Sequence[Json], now: float) -> Json:
    lists: dict[str, list[str]] = {field: [] for field in _LISTS.values()}
    unknown: list[str] = []
    conditions: Json = {}
    for job in jobs:
        name, phase = job["metadata"]["name"], job_phase(job)
        if phase in _LISTS:
            lists[_LISTS[phase]].append(name)
        elif phase not in _PASSING:
            unknown.append(name)
        counted = job.get("status") or {}
        entry = {
            "phase": phase,
            "createTime": job["metadata"].get("creationTimestamp"),
            "runningDuration": counted.get("runningDuration"),
            "taskStatusCount": counted.get("taskStatusCount"),
        }
        conditions[name] = {key: value for key, value in entry.items() if value}
    known = {one["name"]: one for one in (flow.get("status") or {}).get("jobStatusList") or ()}
    return {
        **lists,
        "unKnowJobs": unknown,
        "conditions": conditions,
        "jobStatusList": [_history(job, known, now) for job in jobs],
        "state": {"phase": _next_phase(flow, lists)},
    }


def _next_phase(flow: Json, lists: dict[str, list[str]]) -> str:
    if lists["failedJobs"] or lists["terminatedJobs"]:
        return "Failed"
    flows = _flows(flow)
    if flows and len(lists["completedJobs"]) == len(flows):
        return "Succeed"
    return "Running" if lists["runningJobs"] or lists["completedJobs"] else "Pending"


def _history(job: Json, known: dict[str, Json], now: float) -> Json:
    """Return what became of a job: every phase that it went through, the latest of many."""
    metadata, phase = job["metadata"], job_phase(job)
    past = [*(known.get(metadata["name"]) or {}).get("runningHistories", ())]
    if phase and (not past or past[-1].get("state") != phase):
        if past:
            past[-1] = {**past[-1], "endTimestamp": timestamp(now)}
        past.append({"startTimestamp": timestamp(now), "state": phase})
    made: Json = {
        "name": metadata["name"],
        "state": phase,
        "startTimestamp": metadata.get("creationTimestamp"),
        "restartCount": (job.get("status") or {}).get("retryCount", 0),
        "runningHistories": past[-_MOST_HISTORY:],
    }
    if phase in ENDED:
        made["endTimestamp"] = (job["status"].get("state") or {}).get("lastTransitionTime")
    return {name: value for name, value in made.items() if value}


class JobTemplates:
    """Says which jobs were made of each template."""

    name = "job-templates"
    watches: Sequence[Kind] = (volcano.JOB_TEMPLATE, volcano.JOB)
    idle_without: Kind = volcano.JOB_TEMPLATE

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A template, or that of a job."""
        if kind == volcano.JOB_TEMPLATE:
            yield own_key(obj)
            return
        named = (obj["metadata"].get("labels") or {}).get(BY_TEMPLATE, "")
        namespace = obj["metadata"]["namespace"]
        if named.startswith(f"{namespace}."):
            yield Key(namespace, named.removeprefix(f"{namespace}."))

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """List the jobs."""
        template = view.get(volcano.JOB_TEMPLATE, key.name, key.namespace)
        if template is None or is_deleting(template):
            return
        made = sorted(
            job["metadata"]["name"]
            for job in view.within(volcano.JOB, key.namespace)
            if (job["metadata"].get("labels") or {}).get(BY_TEMPLATE)
            == f"{key.namespace}.{key.name}"
        )
        if made != ((template.get("status") or {}).get("jobDependsOnList") or []):
            status = {"status": {"jobDependsOnList": made}}
            yield Patch(Ref.to(template), status, "status")
