"""What hangs below a name: scale, binding, eviction, finalize.

Each is a small object of its own that stands for a change of the one above it.
"""

from __future__ import annotations

from typing import Any

import orjson

from unisono.apiserver.builtin.metadata import check_metadata
from unisono.apiserver.builtin.policy import allowed_disruptions, selects
from unisono.apiserver.errors import ApiError, Cause, bad_request, conflict, invalid
from unisono.apiserver.objects import Json
from unisono.apiserver.patch.json_patch import json_patch, merge_patch
from unisono.apiserver.request import Request
from unisono.apiserver.rest.body import media_type, parse
from unisono.apiserver.rest.context import ServerContext, WriteOptions, is_dry_run
from unisono.apiserver.rest.delete import Deleter, Options
from unisono.apiserver.rest.patching import JSON_PATCH, Patcher
from unisono.apiserver.rest.route import Route
from unisono.apiserver.rest.versions import shown
from unisono.apiserver.rest.writer import Writer, WriteResult
from unisono.apiserver.storage.record import Record
from unisono.apiserver.times import timestamp

_REPLICAS = ".spec.replicas"


class Subresources:
    """Serves the subresources that are not plain status."""

    def __init__(
        self, server: ServerContext, writer: Writer, patcher: Patcher, deleter: Deleter
    ) -> None:
        """Take what changes objects."""
        self._server = server
        self._writer = writer
        self._patcher = patcher
        self._deleter = deleter

    def record(self, route: Route) -> Record:
        """Return the object above as the next writer sees it."""
        return self._server.existing(route)

    # ---- scale -------------------------------------------------------------------------------

    def scale_of(self, route: Route, obj: Json) -> Json:
        """Return the Scale of an object."""
        paths = route.resource.served.scale
        spec, status = (paths.spec, paths.status) if paths else (_REPLICAS, ".status.replicas")
        metadata = obj["metadata"]
        kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        scale: Json = {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {key: metadata[key] for key in kept if key in metadata},
            "spec": {"replicas": _at(obj, spec) or 0},
            "status": {"replicas": _at(obj, status) or 0},
        }
        selector = _at(obj, paths.selector) if paths and paths.selector else None
        if selector:
            scale["status"]["selector"] = _selector_text(selector)
        return scale

    async def set_scale(self, request: Request, route: Route) -> WriteResult:
        """Set how many there are to be; everything else of a Scale is only shown."""
        record = self.record(route)
        obj = shown(record, route.resource)
        old = self.scale_of(route, obj)
        scale = parse(request) if request.method == "PUT" else self._patched_scale(request, old)
        if not isinstance(scale, dict) or not isinstance(scale.get("spec"), dict):
            raise bad_request("the body is not a Scale")
        replicas = scale["spec"].get("replicas", 0)
        if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
            cause = Cause(
                "FieldValueInvalid", "must be a whole number of at least 0", "spec.replicas"
            )
            raise invalid("Scale", route.name, [cause], group="autoscaling")
        given = _part(scale, "metadata").get("resourceVersion")
        if given and given != str(record.rv):
            served = route.resource.served
            raise conflict(
                served.plural, route.name, "the object has been modified", group=served.group
            )
        paths = route.resource.served.scale
        _set(obj, paths.spec if paths else _REPLICAS, replicas)
        main = Route(resource=route.resource, namespace=route.namespace, name=route.name)
        options = WriteOptions.of(request)
        changed, data = self._writer.stage_update(request, main, obj, record, options)
        if changed is not None or not options.is_dry:
            await self._server.store.committed()
        scale = self.scale_of(route, orjson.loads(data))
        return WriteResult(orjson.dumps(scale), route.resource)

    def _patched_scale(self, request: Request, old: Json) -> Any:
        if media_type(request) == JSON_PATCH:
            return json_patch(old, parse(_as_json(request)))
        patch = parse(_as_json(request))
        if not isinstance(patch, dict):
            raise bad_request("the patch is not an object")
        return merge_patch(old, patch)

    # ---- binding -----------------------------------------------------------------------------

    async def bind(self, request: Request, route: Route) -> WriteResult:
        """Give a pod its node, once and for all."""
        body = _parsed(request, "Binding")
        metadata, target = _part(body, "metadata"), _part(body, "target")
        name = metadata.get("name", route.name)
        if (route.name and name != route.name) or not isinstance(name, str):
            raise bad_request("the name of the Binding does not match the name on the URL")
        pods = self._server.catalogue.find("", "v1", "pods")
        assert pods is not None
        route = Route(resource=pods, namespace=route.namespace, name=name)
        node = target.get("name")
        if target.get("kind", "Node") not in ("", "Node"):
            message = 'Unsupported value: supported values: "Node"'
            cause = Cause("FieldValueNotSupported", message, "target.kind")
            raise invalid("Binding", name, [cause])
        if not isinstance(node, str) or not node:
            cause = Cause("FieldValueRequired", "a pod is bound to a node by name", "target.name")
            raise invalid("Binding", name, [cause])
        if is_dry_run(request):
            self._bound(self.record(route), route, metadata, node)
        else:
            self.stage_binding(route, metadata, node)
            await self._server.store.committed()
        return WriteResult(_success(), pods, 201)

    def stage_binding(self, route: Route, metadata: Json, node: str) -> Record:
        """Bind a pod without waiting for the disk; `metadata` is the Binding's."""
        record = self.record(route)
        pod = self._bound(record, route, metadata, node)
        stored = self._writer.put(record, pod)
        self._server.known.keep(stored, pod)
        return stored

    def _bound(self, record: Record, route: Route, metadata: Json, node: str) -> Json:
        """Return a pod as it is with a node."""
        unbound = self._server.known.of(record)
        self._check_bindable(unbound, record, route, metadata)
        status = {**(unbound.get("status") or {})}
        pod: Json = {
            **unbound,
            "metadata": {**unbound["metadata"]},
            "spec": {**unbound["spec"], "nodeName": node},
            "status": status,
        }
        conditions = [one for one in status.get("conditions", ()) if one["type"] != "PodScheduled"]
        scheduled = {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": timestamp(self._server.clock()),
        }
        status["conditions"] = [*conditions, scheduled]
        for part in ("annotations", "labels"):
            if more := _part(metadata, part):
                pod["metadata"][part] = {**(pod["metadata"].get(part) or {}), **more}
        causes = list(check_metadata(pod, route.resource.served))
        if causes:
            raise invalid("Binding", route.name, causes)
        return pod

    def _check_bindable(self, pod: Json, record: Record, route: Route, wanted: Json) -> None:
        """Refuse to bind another pod than the one that is meant, or in another state."""
        uid, version = wanted.get("uid"), wanted.get("resourceVersion")
        if uid and uid != record.uid:
            raise conflict("pods/binding", route.name, "the pod of that uid is gone")
        if version and version != str(record.rv):
            raise conflict("pods/binding", route.name, "the pod has been modified")
        if "deletionTimestamp" in pod["metadata"]:
            raise conflict("pods/binding", route.name, "the pod is being deleted")
        taken = pod["spec"].get("nodeName")
        if taken:
            why = f'pod {route.name} is already assigned to node "{taken}"'
            raise conflict("pods/binding", route.name, why)
        if pod["spec"].get("schedulingGates"):
            why = f"pod {route.name} has non-empty .spec.schedulingGates"
            raise conflict("pods/binding", route.name, why)

    # ---- eviction ----------------------------------------------------------------------------

    async def evict(self, request: Request, route: Route) -> WriteResult:
        """Delete a pod unless a disruption budget forbids it."""
        options = Options.read(_part(_parsed(request, "Eviction"), "deleteOptions"), request)
        record = self.record(route)
        pod = record.load()
        # A pod that does not run, or is being deleted, disrupts nothing.
        is_running = pod.get("status", {}).get("phase") not in ("Pending", "Succeeded", "Failed")
        if is_running and "deletionTimestamp" not in pod["metadata"]:
            self._check_budgets(pod, route)
        if not options.is_dry:
            self._mark_disrupted(pod, record)
            newest = self._server.store.newest(record.key)
            if newest is not None:
                self._deleter.stage(route, newest, options)
            await self._server.store.committed()
        return WriteResult(_success(), route.resource, 201)

    def _mark_disrupted(self, pod: Json, record: Record) -> None:
        status = pod.setdefault("status", {})
        kept = [one for one in status.get("conditions", ()) if one["type"] != "DisruptionTarget"]
        mark = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
            "lastProbeTime": None,
            "lastTransitionTime": timestamp(self._server.clock()),
        }
        status["conditions"] = [*kept, mark]
        self._writer.put(record, pod)

    def _check_budgets(self, pod: Json, route: Route) -> None:
        for record in self._server.store.newest_of("policy/poddisruptionbudgets"):
            if record.namespace != route.namespace:
                continue
            budget = record.load()
            if not selects(budget, pod["metadata"].get("labels") or {}):
                continue
            pods = [
                one.load()
                for one in self._server.store.newest_of("/pods")
                if one.namespace == route.namespace and selects(budget, one.labels)
            ]
            if allowed_disruptions(budget, pods) > 0:
                continue
            message = f"The disruption budget {record.name} needs its pods where they are"
            cause = Cause("DisruptionBudget", message)
            # No Retry-After: clients would wait by themselves instead of saying why they wait.
            raise ApiError(
                429,
                "TooManyRequests",
                "Cannot evict pod as it would violate the pod's disruption budget.",
                causes=[cause],
            )

    # ---- finalize ----------------------------------------------------------------------------

    async def finalize(self, request: Request, route: Route) -> WriteResult:
        """Set the finalizers of a namespace's spec."""
        body = _parsed(request, "Namespace")
        record = self.record(route)
        obj = record.load()
        finalizers = _part(body, "spec").get("finalizers") or []
        if not isinstance(finalizers, list) or not all(isinstance(one, str) for one in finalizers):
            raise bad_request("spec.finalizers is not a list of names")
        obj["spec"] = {**obj.get("spec", {}), "finalizers": finalizers}
        changed = self._writer.put_or_remove(record, obj)
        await self._server.store.committed()
        return WriteResult(changed.data, route.resource)


def _parsed(request: Request, kind: str) -> Json:
    """Return the body, which must be an object."""
    body = parse(request)
    if not isinstance(body, dict):
        raise bad_request(f"the body is not a {kind}")
    return body


def _part(body: Json, name: str) -> Json:
    """Return a part of the body, empty if it is not there."""
    part = body.get(name)
    if part is not None and not isinstance(part, dict):
        raise bad_request(f"{name} is not an object")
    return part or {}


def _as_json(request: Request) -> Request:
    """Return the same request with a body that is read as JSON."""
    headers = {**request.headers, "content-type": "application/json"}
    return Request(
        method=request.method,
        path=request.path,
        query=request.query,
        headers=headers,
        body=request.body,
        user=request.user,
    )


def _selector_text(selector: Any) -> str:
    """Write a selector as `kubectl -l` reads it: a text already, a map, or a LabelSelector."""
    if isinstance(selector, str):
        return selector
    is_map = all(isinstance(value, str) for value in selector.values())
    labels = selector if is_map else selector.get("matchLabels") or {}
    parts = [f"{key}={value}" for key, value in sorted(labels.items())]
    for clause in () if is_map else selector.get("matchExpressions") or ():
        key, values = clause["key"], ",".join(clause.get("values") or ())
        match clause["operator"]:
            case "In":
                parts.append(f"{key} in ({values})")
            case "NotIn":
                parts.append(f"{key} notin ({values})")
            case "Exists":
                parts.append(key)
            case _:
                parts.append(f"!{key}")
    return ",".join(parts)


def _at(obj: Any, path: str) -> Any:
    for part in path.strip(".").split("."):
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


def _set(obj: Json, path: str, value: Any) -> None:
    *above, last = path.strip(".").split(".")
    for part in above:
        obj = obj.setdefault(part, {})
    obj[last] = value


def _success() -> bytes:
    return orjson.dumps(
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    )
