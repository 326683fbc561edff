"""Create, replace and patch: one way through for every kind.

Everything between looking at an object and staging its new state runs without a pause, so nobody
can come between; see `storage.store`. The order of the steps is in `strategy`.
"""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from unisono.apiserver import admission
from unisono.apiserver.builtin.metadata import check_counts, check_metadata
from unisono.apiserver.catalogue import Resource
from unisono.apiserver.errors import (
    ApiError,
    Cause,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
)
from unisono.apiserver.patch.managed_fields import record_update, without_idle_times
from unisono.apiserver.request import Request
from unisono.apiserver.rest.body import report_fields
from unisono.apiserver.rest.context import RequestContext, ServerContext
from unisono.apiserver.rest.object_state import (
    check_metadata_types,
    check_parts,
    drop_empty,
    is_over,
)
from unisono.apiserver.rest.route import Route
from unisono.apiserver.rest.size_limits import advice_for, most_bytes_of, refuse_large
from unisono.apiserver.rest.spec_cache import CachedSpec, SpecCache
from unisono.apiserver.rest.versions import shown, shown_bytes, stored, translator, unowned
from unisono.apiserver.rest.write_options import WriteOptions
from unisono.apiserver.storage.record import Key, Record
from unisono.apiserver.storage.store import TooLarge
from unisono.apiserver.strategy import Json, Strategy
from unisono.apiserver.times import timestamp

_MAX_GENERATED_BASE = 58
_GENERATED_ENDING = 5
_ATTEMPTS = 8

# What the server alone writes in metadata; an update carries the old values on.
_KEPT = (
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "resourceVersion",
)


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What became of a write: the object as JSON, in the version that was asked for."""

    data: bytes
    resource: Resource
    code: int = 200


class Writer:
    """Brings objects into the store."""

    def __init__(self, server: ServerContext) -> None:
        """Take the store and the kinds."""
        self._server = server
        self._twins = SpecCache()
        self._own_twins = SpecCache()  # of what our own code wrote: neither pruned nor anybody's

    # ---- new objects -------------------------------------------------------------------------

    async def add(
        self, request: Request, route: Route, obj: Json, manner: WriteOptions
    ) -> WriteResult:
        """Create an object."""
        record, data = self.stage_new(request, route, obj, manner)
        if record is not None:
            await self._server.store.landed()
        return WriteResult(data, route.resource, 201)

    def stage_new(
        self, request: Request, route: Route, obj: Json, manner: WriteOptions
    ) -> tuple[Record | None, bytes]:
        """Create an object without waiting for the disk."""
        resource = route.resource
        context = RequestContext(self._server, request)
        self._settle_namespace(obj, route)
        metadata = obj["metadata"]
        if metadata.get("resourceVersion") not in (None, "", "0"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        for field in (*_KEPT, *(() if manner.is_applied else ("managedFields",))):
            metadata.pop(field, None)
        twins = self._own_twins if request.is_unchecked else self._twins
        key, apart = b"", None
        if not manner.is_applied:
            key, apart = twins.key_but_one(resource, obj)
        twin = twins.find(resource, key)
        if twin is not None:
            obj["spec"] = {}  # until it comes back whole
        unknown = [] if request.is_unchecked else self.inspect(request, resource, obj)
        if resource.has_status and resource.strategy.clears_status:
            obj.pop("status", None)
        name = self._settle_name(obj, route)
        now = context.now
        metadata["uid"] = self._server.new_uid()
        metadata["creationTimestamp"] = timestamp(now)
        if resource.strategy.has_generation:
            metadata["generation"] = 1
        self._fill(resource, obj, twin)
        if twin is not None and apart is not None:
            obj["spec"][resource.strategy.apart] = apart
        if not manner.is_applied and not request.is_unchecked:
            # What the server adds below belongs to nobody, so it is added after this.
            self._record(obj, None, resource, manner, "", now, twin)
        if twin is None and key and not unknown and resource.strategy.fills_spec_alone:
            twins.keep(resource, key, obj)
        if type(resource.strategy).prepare_create is not Strategy.prepare_create:
            resource.strategy.prepare_create(obj, context)
            if not resource.strategy.prepares_whole:
                self._fill(resource, obj)
        self._admit(context, resource, obj, None, key)
        where = (resource.key, metadata.get("namespace", ""), name)
        existing = self._server.store.newest(where)
        if existing is not None:
            is_ending = "deletionTimestamp" in existing.load()["metadata"]
            raise already_exists(
                resource.served.plural,
                name,
                group=resource.served.group,
                why="object is being deleted: " if is_ending else "",
            )
        if manner.is_dry:
            return None, orjson.dumps(obj)
        record = self._put(request, where, stored(obj, resource))
        return record, shown_bytes(record, resource)

    def _put(self, request: Request, where: Key, obj: Json) -> Record:
        """Stage an object; what clients store is bounded, and so is what others have to read."""
        try:
            most = 0 if request.is_unchecked else most_bytes_of(where[0])
            return self._server.store.put(where, obj, most_bytes=most)
        except TooLarge as error:
            advice = advice_for(where[0])
            message = f"{error}, with defaults and managedFields; {advice}"
            raise ApiError(413, "RequestEntityTooLarge", message) from error

    def _settle_namespace(self, obj: Json, route: Route) -> None:
        metadata = obj["metadata"]
        if not route.resource.served.namespaced:
            # Many a manifest of such a kind names one; kubectl's own client ignores it, too.
            metadata.pop("namespace", None)
            return
        given = metadata.setdefault("namespace", route.namespace)
        if given != route.namespace:
            if given:
                raise bad_request(
                    "the namespace of the provided object does not match the namespace sent "
                    "on the request"
                )
            metadata["namespace"] = route.namespace
        record = self._server.store.newest(("/namespaces", "", route.namespace))
        if record is None:
            raise not_found("namespaces", route.namespace)
        if b'"deletionTimestamp"' in record.data and (
            "deletionTimestamp" in record.load()["metadata"]
        ):
            served = route.resource.served
            why = (
                f"unable to create new content in namespace {route.namespace} because it is "
                "being terminated"
            )
            cause = Cause(
                "NamespaceTerminating",
                f"namespace {route.namespace} is being terminated",
                "metadata.namespace",
            )
            name = metadata.get("name", "")
            raise forbidden(served.plural, name, why, group=served.group, causes=[cause])

    def _settle_name(self, obj: Json, route: Route) -> str:
        metadata = obj["metadata"]
        served = route.resource.served
        name = metadata.get("name")
        if route.name and name and name != route.name:
            raise bad_request("the name of the object does not match the name on the URL")
        if route.name:
            name = metadata["name"] = route.name
        base = metadata.get("generateName")
        if not name and isinstance(base, str) and base:
            for _ in range(_ATTEMPTS):
                name = base[:_MAX_GENERATED_BASE] + self._server.letters(_GENERATED_ENDING)
                if self._server.store.newest((served.key, route.namespace, name)) is None:
                    break
            metadata["name"] = name
        if not isinstance(name, str) or not name:
            cause = Cause(
                "FieldValueRequired",
                "Required value: name or generateName is required",
                "metadata.name",
            )
            raise invalid(served.kind, "", [cause], group=served.group)
        return name

    # ---- objects that exist ------------------------------------------------------------------

    async def change(
        self, request: Request, route: Route, obj: Json, record: Record, manner: WriteOptions
    ) -> WriteResult:
        """Give an object a new state; the same state again changes nothing."""
        changed, data = self.stage_change(request, route, obj, record, manner)
        if changed is not None or not manner.is_dry:
            await self._server.store.landed()
        return WriteResult(data, route.resource)

    def stage_change(
        self, request: Request, route: Route, obj: Json, record: Record, manner: WriteOptions
    ) -> tuple[Record | None, bytes]:
        """Change an object without waiting for the disk; no record means that nothing changed."""
        resource = route.resource
        context = RequestContext(self._server, request)
        old = shown(record, resource)
        self._check_identity(obj, old, route, record, manner)
        # A status as the main address sees it, and everything else as the status address does.
        if not request.is_unchecked:
            self.inspect(request, resource, obj, old, is_patched=not manner.needs_version)
        obj = self._only_this_part(obj, old, route)
        metadata = obj["metadata"]
        for field in _KEPT:
            metadata.pop(field, None)
            if field in old["metadata"]:
                metadata[field] = old["metadata"][field]
        self._fill(resource, obj)
        if not manner.is_applied:
            # As for new objects: what the server changes below belongs to nobody.
            self._record(obj, old, resource, manner, route.subresource, context.now)
        strategy = type(resource.strategy)
        if not route.subresource and strategy.prepare_update is not Strategy.prepare_update:
            resource.strategy.prepare_update(obj, old, context)
            self._fill(resource, obj)
        self._admit(context, resource, obj, old)
        self._check_finalizers(obj, old, resource)
        without_idle_times(old, obj)
        if obj == old:
            return None, shown_bytes(record, resource)
        if resource.strategy.has_generation and self._moves(obj, old, resource):
            metadata["generation"] = old["metadata"].get("generation", 0) + 1
        if manner.is_dry:
            return None, orjson.dumps(obj)
        if is_over(obj):
            gone = self._server.store.remove(record.key, stored(obj, resource))
            return gone, shown_bytes(gone, resource)
        changed = self._put(request, record.key, stored(obj, resource))
        return changed, shown_bytes(changed, resource)

    def _moves(self, obj: Json, old: Json, resource: Resource) -> bool:
        """Say whether a change counts as a new generation.

        A custom resource without a status of its own address has a field of that name.
        """
        if not resource.strategy.is_typed and not resource.has_status:
            if obj.get("status") != old.get("status"):
                return True
        return resource.strategy.generation_moves(obj, old)

    def _check_identity(
        self, obj: Json, old: Json, route: Route, record: Record, manner: WriteOptions
    ) -> None:
        served = route.resource.served
        metadata = obj["metadata"]
        if metadata.setdefault("name", route.name) != route.name:
            raise bad_request("the name of the object does not match the name on the URL")
        if served.namespaced and metadata.setdefault("namespace", route.namespace) != (
            route.namespace
        ):
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the "
                "request"
            )
        uid = metadata.get("uid")
        if uid and uid != record.uid:
            why = (
                f"the UID in the precondition ({uid}) does not match the UID in record "
                f"({record.uid})"
            )
            raise conflict(served.plural, route.name, why, group=served.group)
        version = metadata.get("resourceVersion")
        if version in (None, "", "0"):
            if manner.needs_version and not route.resource.strategy.allows_unconditional_update:
                cause = Cause(
                    "FieldValueInvalid",
                    "must be specified for an update",
                    "metadata.resourceVersion",
                )
                raise invalid(served.kind, route.name, [cause], group=served.group)
        elif version != str(record.rv):
            why = (
                "the object has been modified; please apply your changes to the latest version "
                "and try again"
            )
            raise conflict(served.plural, route.name, why, group=served.group)

    def _only_this_part(self, obj: Json, old: Json, route: Route) -> Json:
        """Keep what the address may change, and the old state of the rest."""
        resource = route.resource
        if route.subresource == "status":
            whole = {**old, "metadata": dict(old["metadata"])}
            if "status" in obj:
                whole["status"] = obj["status"]
            else:
                whole.pop("status", None)
            if resource.strategy.is_metadata_in_status:
                whole["metadata"] = obj["metadata"]
            elif "managedFields" in obj["metadata"]:
                whole["metadata"]["managedFields"] = obj["metadata"]["managedFields"]
            return whole
        if resource.has_status:
            if "status" in old:
                obj["status"] = old["status"]
            else:
                obj.pop("status", None)
        return obj

    def _check_finalizers(self, obj: Json, old: Json, resource: Resource) -> None:
        if "deletionTimestamp" not in old["metadata"]:
            return
        before = set(old["metadata"].get("finalizers") or ())
        added = [one for one in obj["metadata"].get("finalizers") or () if one not in before]
        if added:
            message = (
                "Forbidden: no new finalizers can be added if the object is being deleted, "
                f"found new finalizers {added}"
            )
            cause = Cause("FieldValueForbidden", message, "metadata.finalizers")
            served = resource.served
            raise invalid(served.kind, obj["metadata"]["name"], [cause], group=served.group)

    # ---- common steps ------------------------------------------------------------------------

    def inspect(
        self,
        request: Request,
        resource: Resource,
        obj: Json,
        old: Json | None = None,
        *,
        is_patched: bool = False,
    ) -> list[str]:
        """Read other spellings of a field, then drop what the kind does not have; return that.

        Refuses what has too many values or entries, unless the object had as many before.
        """
        request.warnings.extend(admission.normalise(resource.served, obj))
        unknown = resource.checker.prune(obj)
        refuse_large(resource.key, obj, old)
        if crowded := [*check_counts(obj, old)]:
            name = str(obj["metadata"].get("name", ""))
            raise invalid(resource.served.kind, name, crowded, group=resource.served.group)
        report_fields(request, unknown, duplicates=not is_patched, hint=resource.checker.hint)
        if resource.served.deprecated and not is_patched:
            request.warnings.append(resource.served.deprecated)
        return unknown

    def _fill(self, resource: Resource, obj: Json, twin: CachedSpec | None = None) -> None:
        """Fill in what is left unsaid: by the schema, then by what other fields say."""
        resource.checker.fill(obj)
        check_parts(obj)
        check_metadata_types(resource.served.kind, resource.served.group, obj["metadata"])
        drop_empty(obj["metadata"])
        if twin is None:
            resource.strategy.default(obj)
        else:
            obj["spec"] = orjson.loads(twin.filled)

    def _admit(
        self,
        context: RequestContext,
        resource: Resource,
        obj: Json,
        old: Json | None,
        key: bytes = b"",
    ) -> None:
        """Hold back and check an object; `key` is what the spec of a new one was known by."""
        strategy, served = resource.strategy, resource.served
        admission.mutate(served, obj, old, context)
        if context.request.is_unchecked:
            return
        causes = [*check_metadata(obj, served), *self._schema_causes(resource, obj, old, key)]
        # Of typed kinds everything is told at once, unless a field is not even of its type.
        is_readable = not any(cause.reason == "FieldValueTypeInvalid" for cause in causes)
        if not causes or (strategy.is_typed and is_readable):
            told = {cause.field for cause in causes}
            causes.extend(
                cause for cause in strategy.check(obj, old, context) if cause.field not in told
            )
        if causes:
            name = str(obj["metadata"].get("name", ""))
            raise invalid(served.kind, name, causes, group=served.group)
        self._server.check_object(context.user, resource.key, obj, old)
        if old is None:
            for text in admission.advise(served, obj, context):
                context.warn(text)

    def _schema_causes(
        self, resource: Resource, obj: Json, old: Json | None, key: bytes
    ) -> list[Cause]:
        """Return what breaks the schema; a new spec that was sound before is not looked at.

        What the server adds to a spec (its own labels, a priority, a class) is sound by itself, so
        the spec as it came decides.
        """
        if old is not None:
            return resource.checker.check(obj, old)
        key = key if resource.strategy.clears_status else b""
        if self._twins.is_sound(resource, key):
            return resource.checker.check_rest(obj)
        causes = resource.checker.check(obj, None)
        if not causes:
            self._twins.note_sound(resource, key)
        return causes

    def _record(
        self,
        obj: Json,
        old: Json | None,
        resource: Resource,
        manner: WriteOptions,
        subresource: str,
        now: float,
        twin: CachedSpec | None = None,
    ) -> None:
        given = obj["metadata"].get("managedFields")
        if old is not None and given in ([], [{}]):
            # The documented way to forget who wrote what.
            obj["metadata"].pop("managedFields")
            return
        record_update(
            old,
            obj,
            manager=manner.manager,
            api_version=resource.served.api_version,
            subresource=subresource,
            now=now,
            shape=resource.served.shape,
            ignored=unowned(resource),
            translate=translator(self._server.catalogue, resource),
            known={"spec": twin.owned} if twin is not None else None,
        )
