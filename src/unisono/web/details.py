"""Events, manifest and logs of a gang, read from the API as the signed-in user.

    GET /details/events?namespace=…&name=…                 about the Workload, its job and its pods
    GET /details/manifest?namespace=…&name=…               of the job, without what the API wrote
    GET /details/logs?namespace=…&name=…&pod=…&container=… the last lines of one container

They are asked for when they are looked at, so the page follows no events and no logs. What the user
may not read with kubectl, the API refuses here, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import orjson
import yaml

from unisono.control.names import POD, WORKLOAD, WORKLOAD_ANNOTATION
from unisono.kinds.views import seconds_of
from unisono.kube.client import Client
from unisono.kube.errors import BadRequest, KubeError, NotFound, Status, StatusError, Unauthorized
from unisono.kube.form import Json
from unisono.kube.mapping import EVENT, Kind
from unisono.kube.pods import log
from unisono.net.http.messages import Response
from unisono.net.http.pages import PageRequest
from unisono.web import http
from unisono.web.actions.page_actions import ActsAs
from unisono.web.http import is_name

_PARTS = ("events", "manifest", "logs")
# Of one namespace; an API keeps events for an hour.
_MOST_EVENTS = 2000
_MOST_SHOWN = 100
_MOST_PODS = 512
_TAIL_LINES = 500
_MOST_LOG_BYTES = 256 * 1024
_MOST_LETTERS = 512 * 1024  # of a manifest
# In C, where PyYAML has it: ten times as fast.
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_JSON = "application/json"


def is_detail(path: str) -> bool:
    """Say whether a path is one of these."""
    return path.startswith("/details/")


class Details:
    """Reads what the page shows of a gang on demand."""

    def __init__(self, acts_as: ActsAs) -> None:
        """Read as the user of each request."""
        self._acts_as = acts_as

    async def answer(self, request: PageRequest) -> Response:
        """Answer a request of a signed-in user."""
        part = request.path.removeprefix("/details/")
        namespace, name = (request.query.get(key, "") for key in ("namespace", "name"))
        if part not in _PARTS or not (is_name(namespace) and is_name(name)):
            return http.refusal(404, "there is no such page")
        try:
            async with self._acts_as.acting(request.headers) as api:
                return _json(await self._read(api, part, namespace, name, request.query))
        except Unauthorized:
            return http.refusal(401, "the token is missing or wrong")
        except NotFound:
            return http.refusal(404, "it is not there any more")
        except BadRequest as refusal:  # of a container that has not started
            return http.refusal(409, _plain(refusal))
        except StatusError as refusal:
            return http.refusal(403 if refusal.code == 403 else 409, _plain(refusal))
        except KubeError as error:
            return http.refusal(503, f"the API server does not answer: {error}")

    async def _read(
        self, api: Client, part: str, namespace: str, name: str, asked: Mapping[str, str]
    ) -> Json:
        if part == "logs":
            return await _logs(api, namespace, name, asked)
        workload = await api.get(WORKLOAD, name, namespace)
        if part == "manifest":
            return await _manifest(api, workload)
        return await _events(api, workload)


# ---- events --------------------------------------------------------------------------------------


async def _events(api: Client, workload: Json) -> Json:
    metadata = workload["metadata"]
    namespace = metadata["namespace"]
    uids = {metadata["uid"]: f"workload/{metadata['name']}"}
    for owner in metadata.get("ownerReferences") or ():
        uids[owner["uid"]] = f"{owner['kind'].lower()}/{owner['name']}"
    try:
        for pod in await _pods(api, namespace, metadata["name"]):
            uids[pod["metadata"]["uid"]] = f"pod/{pod['metadata']['name']}"
    except StatusError as refusal:
        if refusal.code != 403:  # without that right, the events of its pods are left out
            raise
    found = []
    count = 0
    async for page in api.pages(EVENT, namespace):
        for one in page.items:
            about = uids.get((one.get("involvedObject") or {}).get("uid", ""))
            if about is not None:
                found.append(_event(one, about))
        count += len(page.items)
        if count >= _MOST_EVENTS:
            break
    found.sort(key=lambda one: (-one["at"], one["about"], one["reason"], one["message"]))
    return {"events": found[:_MOST_SHOWN], "isCut": count >= _MOST_EVENTS}


def _event(one: Json, about: str) -> Json:
    at = one.get("lastTimestamp") or one.get("eventTime") or one["metadata"]["creationTimestamp"]
    return {
        "at": seconds_of(at),
        "about": about,
        "type": str(one.get("type") or ""),
        "reason": str(one.get("reason") or ""),
        "message": str(one.get("message") or ""),
        "count": int(one.get("count") or 1),
    }


async def _pods(api: Client, namespace: str, workload: str) -> list[Json]:
    found = []
    async for page in api.pages(POD, namespace):
        found += [one for one in page.items if _workload_of(one) == workload]
        if len(found) >= _MOST_PODS:
            break
    return found[:_MOST_PODS]


def _workload_of(pod: Json) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(WORKLOAD_ANNOTATION, ""))


# ---- manifest ------------------------------------------------------------------------------------


async def _manifest(api: Client, workload: Json) -> Json:
    metadata = workload["metadata"]
    job = workload
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller") and owner["kind"] != POD.kind:
            kind = Kind(owner["apiVersion"], owner["kind"])
            found = await api.get(kind, owner["name"], metadata["namespace"])
            job = {"apiVersion": kind.api_version, "kind": kind.kind, **found}
            break
    # The largest takes longer to write than a scheduling cycle may wait.
    return {"manifest": await asyncio.to_thread(_written, job)}


def _written(job: Json) -> str:
    """Return an object as its user wrote it: without its status and the API's own notes."""
    kept = ("name", "namespace", "labels", "annotations")
    metadata = {key: job["metadata"][key] for key in kept if job["metadata"].get(key)}
    annotations = {k: v for k, v in metadata.get("annotations", {}).items() if k != _LAST_APPLIED}
    if annotations:
        metadata["annotations"] = annotations
    else:
        metadata.pop("annotations", None)
    rest = {
        key: value
        for key, value in job.items()
        if key not in ("apiVersion", "kind", "metadata", "status")
    }
    whole = {"apiVersion": job["apiVersion"], "kind": job["kind"], "metadata": metadata, **rest}
    made = yaml.dump(whole, Dumper=_DUMPER, sort_keys=False, allow_unicode=True)
    return f"{made[:_MOST_LETTERS]}\n# …\n" if len(made) > _MOST_LETTERS else str(made)


# ---- logs ----------------------------------------------------------------------------------------


async def _logs(api: Client, namespace: str, name: str, asked: Mapping[str, str]) -> Json:
    pod = asked.get("pod", "")
    found = await api.get(POD, pod, namespace) if is_name(pod) else {}
    if not found or _workload_of(found) != name:
        raise NotFound(Status(code=404, message=f"the gang has no pod {pod}"))
    names = [one["name"] for one in found["spec"].get("containers") or ()]
    container = asked.get("container", "")
    if container not in names:
        container = names[0]
    text = b""
    async with log(api, pod, namespace, container=container, tail_lines=_TAIL_LINES) as chunks:
        async for chunk in chunks:
            text = (text + chunk)[-_MOST_LOG_BYTES:]
    return {
        "containers": names,
        "container": container,
        "text": text.decode("utf-8", errors="replace"),
        "lines": _TAIL_LINES,
    }


def _plain(error: KubeError) -> str:
    return " ".join(str(error).split())


def _json(value: Json) -> Response:
    return http.answer(200, orjson.dumps(value), _JSON)
