"""The tasks of a Volcano job, with everything filled in that may be left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from unisono.control.actions import Json
from unisono.control.job_kinds.volcano import api
from unisono.kinds.gang_rules import least_of_each


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """So many pods of one template."""

    name: str
    replicas: int
    own_least: int  # how many of them must run, if the job as a whole asks for all of these
    template: Json
    policies: Sequence[Json] = field(default_factory=list)
    max_restarts: int = api.DEFAULT_RETRIES  # of containers; below 0 there is no limit
    after: Sequence[str] = ()  # tasks that must run first
    after_any: bool = False  # one of them will do


def tasks_of(job: Json) -> list[Task]:
    """Return the tasks of a job."""
    return [
        Task(
            name=task.get("name") or f"default{place}",
            replicas=task.get("replicas", 0),
            own_least=task.get("minAvailable", task.get("replicas", 0)),
            template=_template(job, task.get("template") or {}),
            policies=task.get("policies") or [],
            max_restarts=task.get("maxRetry") or api.DEFAULT_RETRIES,
            after=(task.get("dependsOn") or {}).get("name") or (),
            after_any=(task.get("dependsOn") or {}).get("iteration") == "any",
        )
        for place, task in enumerate(job["spec"].get("tasks") or ())
    ]


def _template(job: Json, template: Json) -> Json:
    """Return a template with what the job says for all of its pods.

    A pod of unknown restart policy would be restarted for ever and its task never complete, so
    here that means OnFailure.
    """
    spec = dict(template.get("spec") or {})
    spec["restartPolicy"] = spec.get("restartPolicy") or "OnFailure"
    for field_name in ("schedulerName", "priorityClassName"):
        if job["spec"].get(field_name) and not spec.get(field_name):
            spec[field_name] = job["spec"][field_name]
    return {**template, "spec": spec}


def least_pods(job: Json) -> int:
    """Return how many pods must start together."""
    return job["spec"].get("minAvailable") or sum(task.own_least for task in tasks_of(job))


def task_minima(job: Json) -> list[int]:
    """Return how many pods of each task must start together; at least as many as the job asks for.

    Where the job wants more than its tasks demand, the first tasks give the rest: a Workload can
    say how many pods of each set it needs, but not of all sets together.
    """
    tasks, least = tasks_of(job), least_pods(job)
    own = [task.own_least for task in tasks]
    minima = list(least_of_each(least, [task.replicas for task in tasks]))
    if sum(own) <= least:
        minima = [max(pair) for pair in zip(minima, own, strict=True)]
    missing = least - sum(minima)
    for place, task in enumerate(tasks):
        more = min(max(0, missing), task.replicas - minima[place])
        minima[place] += more
        missing -= more
    return minima


def host_name(job: Json, task: str, index: int) -> str:
    """Return how the pods of a job call one of them.

    >>> host_name({"metadata": {"name": "ddp"}}, "worker", 0)
    'ddp-worker-0.ddp'
    """
    name = job["metadata"]["name"]
    return f"{pod_name(job, task, index)}.{name}"


def pod_name(job: Json, task: str, index: int) -> str:
    """Return the name of a pod, which is the same in every attempt."""
    return f"{job['metadata']['name']}-{task}-{index}"


def max_retries(job: Json) -> int:
    """Return at which retry a job has failed; upstream reads 0 as the default, too."""
    return job["spec"].get("maxRetry") or api.DEFAULT_RETRIES
