"""Which object is meant: `job/train`, `podgroup/g` of any group, or only `train`.

A kind may be served by several groups (Volcano, coscheduling and Kubernetes each have a PodGroup),
and `unisono workloads` prints only its name; so each of them is asked for the object. Without a
kind all kinds of jobs are asked, pods and Workloads. Of a job and its parts with one name the job
is meant; if more than one is left, they are listed rather than guessed between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from unisono.cli.targets import Target
from unisono.control.names import WORKLOAD
from unisono.kube.api_resources import ApiResource, ApiResources
from unisono.kube.client import Client
from unisono.kube.errors import Forbidden, KubeError, NotFound, UnknownKind
from unisono.kube.form import Json
from unisono.runtime import AnswerIsNo

# Kinds that run something and are not called a job.
_OTHER_JOBS = ("Pod", "JobSet", "RayCluster", "PodGroup")


def is_job_kind(kind: str) -> bool:
    """Say whether objects of a kind run something."""
    return kind.endswith("Job") or kind in _OTHER_JOBS


def kinds_of_jobs(lookup: ApiResources) -> list[ApiResource]:
    """Return the kinds among which a name alone is searched: Workloads, jobs and pods."""
    return [
        one
        for one in lookup.every()
        if "get" in one.verbs
        and one.resource.namespaced
        and (one.kind == WORKLOAD or is_job_kind(one.kind.kind))
    ]


async def find(client: Client, kinds: Sequence[ApiResource], name: str, namespace: str) -> Json:
    """Return the one object of these kinds that has this name; raises AnswerIsNo."""
    answers = await asyncio.gather(*(_get(client, one, name, namespace) for one in kinds))
    found = [
        (one, obj)
        for one, obj in zip(kinds, answers, strict=True)
        if obj is not None and not isinstance(obj, Forbidden)
    ]
    uids = {obj["metadata"]["uid"] for _, obj in found}
    whole = [(one, obj) for one, obj in found if not _is_part(obj, uids)]
    if len(whole) == 1:
        return whole[0][1]
    if whole:
        labels = ", ".join(Target(one, name).label for one, _ in whole)
        raise AnswerIsNo(f"several objects are called {name}: {labels}; say which one")
    if all(isinstance(one, Forbidden) for one in answers):
        raise next(one for one in answers if isinstance(one, Forbidden))
    raise AnswerIsNo(await _elsewhere(client, kinds, name, namespace))


async def _get(
    client: Client, one: ApiResource, name: str, namespace: str
) -> Json | Forbidden | None:
    try:
        return await client.get(one.kind, name, namespace if one.resource.namespaced else "")
    except (NotFound, UnknownKind):
        return None
    except Forbidden as refused:  # of several kinds the others may be ours to see
        return refused


def _is_part(obj: Json, uids: set[str]) -> bool:
    owners = obj["metadata"].get("ownerReferences") or ()
    return any(one.get("controller") and one["uid"] in uids for one in owners)


async def _elsewhere(
    client: Client, kinds: Sequence[ApiResource], name: str, namespace: str
) -> str:
    """Say that there is no such object, and where there is one of that name."""
    what = kinds[0].full_name if len({one.kind.kind for one in kinds}) == 1 else "jobs, pods"
    missing = f'{what} "{name}" not found'
    places: set[str] = set()
    for one in kinds:
        try:
            listing = await client.list(one.kind, fields=f"metadata.name={name}")
        except KubeError:  # not for us to see
            continue
        places |= {str(obj["metadata"].get("namespace", "")) for obj in listing.items}
    others = sorted(places - {namespace, ""})
    if not others:
        return f"{missing}; `unisono workloads -A` lists what there is"
    return f"{missing}; there is one in {', '.join(others)}: add -n {others[0]}"
