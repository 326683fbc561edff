"""PATCH in its four forms, and PUT."""

from __future__ import annotations

import asyncio
from typing import Any

from unisono.apiserver.errors import (
    Cause,
    bad_request,
    conflict,
    invalid,
    not_found,
    unsupported_media_type,
)
from unisono.apiserver.patch.apply import apply
from unisono.apiserver.patch.json_patch import json_patch, merge_patch
from unisono.apiserver.patch.strategic import strategic_merge
from unisono.apiserver.request import Request
from unisono.apiserver.rest.body import (
    media_type,
    of_kind,
    parse_json,
    parse_object,
    parse_yaml,
    report_fields,
)
from unisono.apiserver.rest.context import ServerContext
from unisono.apiserver.rest.route import Route
from unisono.apiserver.rest.size_limits import LARGE_BODY_BYTES
from unisono.apiserver.rest.versions import shown, translator, unowned
from unisono.apiserver.rest.write_options import WriteOptions
from unisono.apiserver.rest.writer import Writer, WriteResult
from unisono.apiserver.schema.body_checks import refuse_deep
from unisono.apiserver.storage.record import Record
from unisono.apiserver.strategy import Json

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


# How often the merging of a large object is begun anew because somebody changed it meanwhile. Then
# it is done in one go: others have had their turns.
_MOST_TURNS = 3


class Patcher:
    """Turns patches and replacements into new states."""

    def __init__(self, server: ServerContext, writer: Writer) -> None:
        """Take the store, and who writes to it."""
        self._server = server
        self._writer = writer

    async def replace(self, request: Request, route: Route) -> WriteResult:
        """PUT: the whole object anew."""
        obj = parse_object(request, route.resource)
        record = self._server.existing(route)
        manner = WriteOptions.of(request, needs_version=True)
        return await self._writer.change(request, route, obj, record, manner)

    async def patch(self, request: Request, route: Route) -> WriteResult:
        """PATCH: by what the content type says."""
        kind = media_type(request)
        if kind == APPLY_PATCH:
            return await self._apply(request, route)
        if request.is_own and route.subresource == "status" and kind == MERGE_PATCH:
            outcome = await self._own_status(request, route)
            if outcome is not None:
                return outcome
        if "force" in request.query:
            cause = Cause(
                "FieldValueForbidden", "may only be given with server-side apply", "force"
            )
            raise invalid("PatchOptions", "", [cause], group="meta.k8s.io")
        if kind == STRATEGIC_PATCH and not route.resource.strategy.is_typed:
            raise unsupported_media_type(
                f"custom resources know no strategic merge patch; use {MERGE_PATCH}"
            )
        record = self._server.existing(route)
        old = shown(record, route.resource)
        patched = self.patched(request, route, old)
        if patched.get("apiVersion") != old["apiVersion"] or patched.get("kind") != old["kind"]:
            raise bad_request("a patch may not change apiVersion or kind")
        if not isinstance(patched.get("metadata"), dict):
            raise bad_request("metadata is not an object")
        refuse_deep(patched)
        return await self._writer.change(request, route, patched, record, WriteOptions.of(request))

    async def _own_status(self, request: Request, route: Route) -> WriteResult | None:
        """Take the status that a controller of ours wrote, in the state it saw, as it is.

        Most writes of a busy cluster are these. Only what keeps two writers apart is looked at;
        tests let the same controllers go the long way. None: this one has to go it, too.
        """
        record = self._server.existing(route)
        changes = parse_json(request.body)
        metadata = dict(changes.get("metadata") or {})
        version = metadata.pop("resourceVersion", None)
        if metadata or not route.resource.is_as_stored or changes.keys() - {"metadata", "status"}:
            return None
        if version and version != str(record.rv):
            served = route.resource.served
            why = "the object has been modified"
            raise conflict(served.plural, route.name, why, group=served.group)
        obj = record.load()
        status = merge_patch(obj.get("status") or {}, changes.get("status") or {})
        if status != (obj.get("status") or {}):
            obj["status"] = status
            record = self._server.store.put(record.key, obj)
        await self._server.store.landed()
        return WriteResult(record.data, route.resource)

    def patched(self, request: Request, route: Route, old: Json) -> Json:
        """Return an object with a patch applied; nothing is checked or stored."""
        kind = media_type(request)
        if kind not in (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH):
            raise unsupported_media_type(
                f"the body of a patch has type {kind or 'none'}; use {JSON_PATCH}, {MERGE_PATCH}, "
                f"{STRATEGIC_PATCH} or {APPLY_PATCH}"
            )
        body: Any = parse_yaml(request.body)
        refuse_deep(body)
        if kind == JSON_PATCH:
            if not isinstance(body, list):
                raise bad_request("a JSON patch is a list of operations")
            result: Any = json_patch(old, body)
        elif not isinstance(body, dict):
            raise bad_request("the patch is not an object")
        elif kind == MERGE_PATCH:
            result = merge_patch(old, body)
        else:
            result = strategic_merge(old, body, route.resource.served.shape)
        if not isinstance(result, dict):
            raise bad_request("the patched object is not an object")
        if kind != JSON_PATCH:
            report_fields(request, [])
        return result

    async def _apply(self, request: Request, route: Route) -> WriteResult:
        manager = request.query.get("fieldManager", "")
        if not manager:
            cause = Cause("FieldValueRequired", "is required for apply patch", "fieldManager")
            raise invalid("PatchOptions", "", [cause], group="meta.k8s.io")
        resource = route.resource
        raw = parse_yaml(request.body)
        if not isinstance(raw, dict):
            raise bad_request("the applied configuration is not an object")
        for field in ("apiVersion", "kind"):
            if not raw.get(field):
                raise bad_request(f"the applied configuration has no {field}")
        refuse_deep(raw)
        config = of_kind(raw, resource)
        if config["metadata"].get("managedFields"):
            raise bad_request("metadata.managedFields must be nil")
        name = config["metadata"].setdefault("name", route.name)
        if name != route.name:
            raise bad_request("the name of the object does not match the name on the URL")
        self._writer.inspect(request, resource, config)
        manner = WriteOptions.of(request, is_applied=True)
        turns = _MOST_TURNS if len(request.body) >= LARGE_BODY_BYTES else 0
        if turns:
            await asyncio.sleep(0)
        while True:
            record, merged = self._merged(request, route, config, manager)
            if not turns:
                break
            turns -= 1
            await asyncio.sleep(0)
            if self._server.store.newest(route.key) is record:
                break  # else somebody changed it meanwhile
        if record is None:
            return await self._writer.add(request, route, merged, manner)
        return await self._writer.change(request, route, merged, record, manner)

    def _merged(
        self, request: Request, route: Route, config: Json, manager: str
    ) -> tuple[Record | None, Json]:
        """Return the newest version of an object, and what an applied configuration makes of it."""
        resource = route.resource
        record = self._server.store.newest(route.key)
        if record is None and route.subresource:
            raise not_found(resource.served.plural, route.name, group=resource.served.group)
        self._check_uid(config, record, route)
        live = shown(record, resource) if record is not None else None
        return record, apply(
            live,
            config,
            manager=manager,
            force=request.flag("force"),
            api_version=resource.served.api_version,
            subresource=route.subresource,
            now=self._server.clock(),
            shape=resource.served.shape,
            ignored=unowned(resource),
            translate=translator(self._server.catalogue, resource),
        )

    def _check_uid(self, config: Json, record: Record | None, route: Route) -> None:
        """Whoever names a uid means an object that exists."""
        uid = config["metadata"].get("uid")
        served = route.resource.served
        if uid and record is None:
            why = f"uid mismatch: the provided object specified uid {uid}, and no object was found"
            raise conflict(served.plural, route.name, why, group=served.group)
        if uid and record is not None and uid != record.uid:
            cause = Cause("FieldValueInvalid", "field is immutable", "metadata.uid")
            raise invalid(served.kind, route.name, [cause], group=served.group)
