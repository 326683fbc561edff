"""PATCH in its four forms, and PUT."""

from __future__ import annotations

from functools import partial
from typing import Any

from unisono.apiserver.catalogue import Resource
from unisono.apiserver.errors import (
    ApiError,
    Cause,
    bad_request,
    conflict,
    invalid,
    not_found,
    unsupported_media_type,
)
from unisono.apiserver.objects import Json
from unisono.apiserver.patch.apply import apply
from unisono.apiserver.patch.json_patch import json_patch, merge_patch
from unisono.apiserver.patch.strategic import strategic_merge
from unisono.apiserver.request import Origin, Request
from unisono.apiserver.rest.body import (
    media_type,
    of_kind,
    parse_json,
    parse_object,
    parse_yaml,
    report_fields,
)
from unisono.apiserver.rest.context import ServerContext, WriteOptions
from unisono.apiserver.rest.route import Route
from unisono.apiserver.rest.versions import translator, unowned
from unisono.apiserver.rest.writer import Writer, WriteResult, apart_if_large, is_large
from unisono.apiserver.schema.body_checks import refuse_deep
from unisono.apiserver.storage.record import Record

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class Patcher:
    """Turns patches and replacements into new states."""

    def __init__(self, server: ServerContext, writer: Writer) -> None:
        """Take the store, and what writes to it."""
        self._server = server
        self._writer = writer

    async def replace(self, request: Request, route: Route) -> WriteResult:
        """PUT: the whole object anew."""
        read = partial(parse_object, request, route.resource)
        parsed = [await apart_if_large(request, read)]

        def replaced(old: Json) -> Json:
            return parsed.pop() if parsed else read()

        options = WriteOptions.of(request, needs_version=True)
        return await self._writer.update(request, route, replaced, options)

    async def patch(self, request: Request, route: Route) -> WriteResult:
        """PATCH: by what the content type says."""
        kind = media_type(request)
        if kind == APPLY_PATCH:
            return await self._apply(request, route)
        is_own = request.origin is not Origin.CLIENT
        if is_own and route.subresource == "status" and kind == MERGE_PATCH:
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

        def change(old: Json) -> Json:
            patched = self.patched(request, route, old)
            for field in ("apiVersion", "kind"):
                if patched.get(field) != old[field]:
                    raise bad_request("a patch may not change apiVersion or kind")
            if not isinstance(patched.get("metadata"), dict):
                raise bad_request("metadata is not an object")
            refuse_deep(patched)
            return patched

        return await self._writer.update(request, route, change, WriteOptions.of(request))

    async def _own_status(self, request: Request, route: Route) -> WriteResult | None:
        """Take the status that a controller of ours wrote as it is; None if it has more in it.

        Tests have the same controllers take the usual way.
        """
        record = self._server.existing(route)
        changes = parse_json(request.body)
        if not is_status_alone(changes, route.resource):
            return None
        record, _ = self._writer.stage_status(route, record, changes)
        await self._server.store.committed()
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
        await apart_if_large(request, partial(self._writer.inspect, request, resource, config))
        options = WriteOptions.of(request, is_applied=True)
        apply_to = partial(self._applied, request, route, config, manager)
        while True:
            record = self._server.store.newest(route.key)
            if record is None and route.subresource:
                raise not_found(resource.served.plural, route.name, group=resource.served.group)
            self._check_uid(config, record, route)
            if record is not None:
                return await self._writer.update(request, route, apply_to, options)
            made = await apart_if_large(request, partial(apply_to, None))
            try:
                return await self._writer.create(request, route, made, options)
            except ApiError as error:
                if error.reason != "AlreadyExists" or not is_large(request):
                    raise  # else it was created meanwhile

    def _applied(
        self, request: Request, route: Route, config: Json, manager: str, live: Json | None
    ) -> Json:
        """Return what an applied configuration makes of an object."""
        resource = route.resource
        return apply(
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
        """Refuse a uid that is not the one of the stored object."""
        uid = config["metadata"].get("uid")
        served = route.resource.served
        if uid and record is None:
            why = f"uid mismatch: the provided object specified uid {uid}, and no object was found"
            raise conflict(served.plural, route.name, why, group=served.group)
        if uid and record is not None and uid != record.uid:
            cause = Cause("FieldValueInvalid", "field is immutable", "metadata.uid")
            raise invalid(served.kind, route.name, [cause], group=served.group)


def is_status_alone(content: Json, resource: Resource) -> bool:
    """Say whether a patch is about the status alone, in the version in which it is stored."""
    metadata = content.get("metadata") or {}
    return (
        resource.is_as_stored
        and not content.keys() - {"metadata", "status"}
        and not metadata.keys() - {"resourceVersion"}
    )
