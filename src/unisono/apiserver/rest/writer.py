"""The one way into the store, for clients, for controllers in this process and for the server.

    step        what                                                left out for
    normalise   other spellings, unknown fields, too many values    objects of our own code
    default     by the schema, then by what other fields say
    own         managedFields                                       our own code, server-side apply
    prepare     what only the server sets; admission (queues hold jobs, priority classes)
    validate    metadata, schema, rules of the kind, rights         objects of our own code
    stage       uid, resourceVersion and size against what is stored

A request and an object that a controller hands over (`direct_writes`) take the same steps in the
same order. What our own code made needs no second look: it has no misspelt fields and breaks no
rule, which tests make sure of by having the same writes checked as a client's.

The steps of a small object follow each other without a pause, so no other write can come between;
see `storage.store`. Those of a large one that look at nothing but the object are done in a thread,
and the last look at the store decides: if the object was changed meanwhile, they are done anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import orjson

from unisono.apiserver import admission
from unisono.apiserver.builtin.metadata import (
    check_counts,
    check_metadata,
    check_metadata_types,
    check_parts,
    drop_empty,
    is_over,
)
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
from unisono.apiserver.objects import Json
from unisono.apiserver.patch.managed_fields import record_update, without_idle_times
from unisono.apiserver.request import Origin, Request
from unisono.apiserver.rest.body import (
    LARGE_BODY_BYTES,
    advice_for,
    most_bytes_of,
    refuse_large,
    report_fields,
)
from unisono.apiserver.rest.context import RequestContext, ServerContext, WriteOptions
from unisono.apiserver.rest.route import Route
from unisono.apiserver.rest.spec_cache import CachedSpec, SpecCache
from unisono.apiserver.rest.versions import shown, shown_bytes, stored, translator, unowned
from unisono.apiserver.schema.body_checks import MAX_DEPTH
from unisono.apiserver.storage.record import Key, Record
from unisono.apiserver.storage.store import TooLarge
from unisono.apiserver.strategy import Strategy
from unisono.apiserver.times import timestamp

_MAX_GENERATED_BASE = 58
_GENERATED_ENDING = 5
_ATTEMPTS = 8
# How often the steps of a large object are begun anew because it was changed meanwhile. Then they
# are taken in one go: others have had their turns.
_MOST_ATTEMPTS = 3

Result = TypeVar("Result")

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


@dataclass(slots=True, kw_only=True)
class _Write:
    """One object on its way into the store."""

    request: Request
    route: Route
    options: WriteOptions
    context: RequestContext
    obj: Json
    record: Record | None = None  # what is stored now; None for a new object
    old: Json | None = None  # the same in the version of the request
    # Of a new object whose spec may be known: its key, what was made of it, and the one text in
    # which alike specs differ (`SpecCache`).
    spec_key: bytes = b""
    cached: CachedSpec | None = None
    distinct_field: str | None = None
    unknown: Sequence[str] = ()
    causes: Sequence[Cause] = ()  # what breaks the schema
    # Often asked for: the kind, in the version of the request, and whether our own code made the
    # object.
    resource: Resource = field(init=False)
    is_direct: bool = field(init=False)

    def __post_init__(self) -> None:
        """Read what is asked for often."""
        self.resource = self.route.resource
        self.is_direct = self.request.origin is Origin.DIRECT


# Work on one object alone; between two of these a write may let other requests have their turns.
_Steps = Iterator[Callable[[], None]]
# Makes a new state of an object from the one that is stored. Called anew if that has changed.
Change = Callable[[Json], Json]


class Writer:
    """Brings objects into the store; nothing else stages a change."""

    def __init__(self, server: ServerContext) -> None:
        """Take the store and the kinds."""
        self._server = server
        self._specs = SpecCache()
        self._direct_specs = SpecCache()  # of our own code: neither pruned nor owned

    # ---- new objects -------------------------------------------------------------------------

    async def create(
        self, request: Request, route: Route, obj: Json, options: WriteOptions
    ) -> WriteResult:
        """Create an object."""
        if is_large(request):
            write = self._new(request, route, obj, options)
            for step in self._creation(write):
                await asyncio.to_thread(step)
            self._check_namespace(obj, route)  # it may have gone meanwhile
            record, data = self._finish_create(write)
        else:
            record, data = self.stage_create(request, route, obj, options)
        if record is not None:
            await self._server.store.committed()
        return WriteResult(data, route.resource, 201)

    def stage_create(
        self, request: Request, route: Route, obj: Json, options: WriteOptions
    ) -> tuple[Record | None, bytes]:
        """Create an object without waiting for the disk, in one go."""
        write = self._new(request, route, obj, options)
        for step in self._creation(write):
            step()
        return self._finish_create(write)

    def _new(self, request: Request, route: Route, obj: Json, options: WriteOptions) -> _Write:
        context = RequestContext(self._server, request)
        return _Write(request=request, route=route, options=options, context=context, obj=obj)

    def _creation(self, write: _Write) -> _Steps:
        """Do what comes before the last look at the store; yield what needs the object alone."""
        resource, obj, options = write.resource, write.obj, write.options
        strategy = resource.strategy
        self._settle_namespace(obj, write.route)
        metadata = obj["metadata"]
        if metadata.get("resourceVersion") not in (None, "", "0"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        if not options.is_applied:
            metadata.pop("managedFields", None)
        for kept in _KEPT:
            if kept in metadata:
                del metadata[kept]
        specs = self._direct_specs if write.is_direct else self._specs
        if not options.is_applied:
            write.spec_key, write.distinct_field = specs.key_without_distinct_field(resource, obj)
        cached = write.cached = specs.find(resource, write.spec_key)
        if cached is not None:
            obj["spec"] = {}  # until it comes back whole
        if not write.is_direct:
            yield partial(self._normalise, write)
        if resource.has_status and strategy.clears_status:
            obj.pop("status", None)
        self._settle_name(obj, write.route)
        now = write.context.now
        metadata["uid"] = self._server.new_uid()
        metadata["creationTimestamp"] = timestamp(now)
        if strategy.has_generation:
            metadata["generation"] = 1
        yield partial(self._default, write)
        if not options.is_applied and not write.is_direct:
            # The server's own additions have no owner, so they come after this.
            yield partial(self._own, write, now)
        if cached is None and write.spec_key and not write.unknown and strategy.defaults_spec_alone:
            specs.keep(resource, write.spec_key, obj)
        if type(strategy).prepare_create is not Strategy.prepare_create:
            strategy.prepare_create(obj, write.context)
            if not strategy.prepares_whole:
                yield partial(self._fill, resource, obj)
        admission.mutate(resource.served, obj, None, write.context)
        if not write.is_direct:
            yield partial(self._check_schema, write)

    def _finish_create(self, write: _Write) -> tuple[Record | None, bytes]:
        """Check a new object against what is stored now, and stage it."""
        resource, obj = write.resource, write.obj
        self._validate(write)
        metadata = obj["metadata"]
        where = (resource.key, metadata.get("namespace", ""), metadata["name"])
        existing = self._server.store.newest(where)
        if existing is not None:
            is_ending = "deletionTimestamp" in existing.load()["metadata"]
            raise already_exists(
                resource.served.plural,
                metadata["name"],
                group=resource.served.group,
                why="object is being deleted: " if is_ending else "",
            )
        if write.options.is_dry:
            return None, orjson.dumps(obj)
        record = self._put(write.request, where, stored(obj, resource))
        return record, shown_bytes(record, resource)

    def _put(self, request: Request, where: Key, obj: Json) -> Record:
        """Stage an object; what clients store is bounded, since controllers have to read it."""
        try:
            most = 0 if request.origin is Origin.DIRECT else most_bytes_of(where[0])
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
        self._check_namespace(obj, route)

    def _check_namespace(self, obj: Json, route: Route) -> None:
        """Refuse a new object in a namespace that does not exist, or is being deleted."""
        if not route.resource.served.namespaced:
            return
        metadata = obj["metadata"]
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

    def _settle_name(self, obj: Json, route: Route) -> None:
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

    # ---- objects that exist ------------------------------------------------------------------

    async def update(
        self, request: Request, route: Route, change: Change, options: WriteOptions
    ) -> WriteResult:
        """Give an object the state that `change` makes of the stored one."""
        staged = None
        for _ in range(_MOST_ATTEMPTS if is_large(request) else 0):
            record = self._server.existing(route)
            obj = await asyncio.to_thread(change, shown(record, route.resource))
            write = self._changed(request, route, obj, record, options)
            for step in self._transition(write):
                await asyncio.to_thread(step)
            if self._server.store.newest(route.key) is record:
                staged = self._finish_update(write)
                break
        if staged is None:
            # Small, or changed by others again and again: in one go, which nothing interrupts.
            record = self._server.existing(route)
            obj = change(shown(record, route.resource))
            staged = self.stage_update(request, route, obj, record, options)
        changed, data = staged
        if changed is not None or not options.is_dry:
            await self._server.store.committed()
        return WriteResult(data, route.resource)

    def stage_update(
        self, request: Request, route: Route, obj: Json, record: Record, options: WriteOptions
    ) -> tuple[Record | None, bytes]:
        """Change an object without waiting for the disk; no record means that nothing changed."""
        write = self._changed(request, route, obj, record, options)
        for step in self._transition(write):
            step()
        return self._finish_update(write)

    def _changed(
        self, request: Request, route: Route, obj: Json, record: Record, options: WriteOptions
    ) -> _Write:
        write = self._new(request, route, obj, options)
        write.record, write.old = record, shown(record, route.resource)
        return write

    def _transition(self, write: _Write) -> _Steps:
        """Do what comes before the last look at the store; yield what needs the object alone."""
        resource, route, old = write.resource, write.route, write.old
        assert old is not None and write.record is not None, "an update has an old state"
        self._check_identity(write.obj, old, route, write.record, write.options)
        # A status as the main address sees it, and everything else as the status address does.
        if not write.is_direct:
            yield partial(self._normalise, write)
        obj = write.obj = self._only_this_part(write.obj, old, route)
        metadata = obj["metadata"]
        for kept in _KEPT:
            metadata.pop(kept, None)
            if kept in old["metadata"]:
                metadata[kept] = old["metadata"][kept]
        yield partial(self._default, write)
        if not write.options.is_applied:
            # As for new objects: the server's own additions have no owner.
            yield partial(self._own, write, write.context.now)
        strategy = resource.strategy
        if not route.subresource and type(strategy).prepare_update is not Strategy.prepare_update:
            strategy.prepare_update(obj, old, write.context)
            yield partial(self._fill, resource, obj)
        admission.mutate(resource.served, obj, old, write.context)
        if not write.is_direct:
            yield partial(self._check_schema, write)

    def _finish_update(self, write: _Write) -> tuple[Record | None, bytes]:
        """Check a change against what is stored now, and stage it."""
        resource, obj, old, record = write.resource, write.obj, write.old, write.record
        assert old is not None and record is not None, "an update has an old state"
        self._validate(write)
        self._check_finalizers(obj, old, resource)
        without_idle_times(old, obj)
        if obj == old:
            return None, shown_bytes(record, resource)
        if resource.strategy.has_generation and self._moves(obj, old, resource):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        if write.options.is_dry:
            return None, orjson.dumps(obj)
        if is_over(obj):
            gone = self.remove(record, stored(obj, resource))
            return gone, shown_bytes(gone, resource)
        changed = self._put(write.request, record.key, stored(obj, resource))
        return changed, shown_bytes(changed, resource)

    def stage_status(self, route: Route, record: Record, content: Json) -> tuple[Record, Json]:
        """Merge a status that a controller of ours wrote into the state that it saw.

        Most writes of a busy cluster are these, and nothing else looks at their fields: only what
        keeps two writers apart is checked.
        """
        version = (content.get("metadata") or {}).get("resourceVersion")
        if version and version != str(record.rv):
            served = route.resource.served
            why = "the object has been modified"
            raise conflict(served.plural, route.name, why, group=served.group)
        obj = self._server.known.read(record)
        old = obj.get("status") or {}
        status = merged(old, content.get("status") or {})
        if status == old:
            return record, obj
        # What is known is shared, so only what changes is made anew.
        obj = {**obj, "metadata": {**obj["metadata"]}, "status": status}
        return self.put(record, obj), obj

    # ---- what the server itself decides --------------------------------------------------------

    def put(self, record: Record, obj: Json) -> Record:
        """Stage a state that the server decided on: a binding, a deletion, a dropped owner."""
        return self._server.store.put(record.key, obj)

    def remove(self, record: Record, obj: Json) -> Record:
        """Stage the end of an object; `obj` is its last state."""
        return self._server.store.remove(record.key, obj)

    def put_or_remove(self, record: Record, obj: Json) -> Record:
        """Stage a state; if the object is being deleted and nothing holds it, stage its end."""
        return self.remove(record, obj) if is_over(obj) else self.put(record, obj)

    def _moves(self, obj: Json, old: Json, resource: Resource) -> bool:
        """Say whether a change counts as a new generation.

        A custom resource without a status of its own address has a field of that name.
        """
        if not resource.strategy.is_typed and not resource.has_status:
            if obj.get("status") != old.get("status"):
                return True
        return resource.strategy.generation_moves(obj, old)

    def _check_identity(
        self, obj: Json, old: Json, route: Route, record: Record, options: WriteOptions
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
            if options.needs_version and not route.resource.strategy.allows_unconditional_update:
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

    # ---- the steps of every write ----------------------------------------------------------------

    def _normalise(self, write: _Write) -> None:
        write.unknown = self.inspect(
            write.request,
            write.resource,
            write.obj,
            write.old,
            is_patched=write.old is not None and not write.options.needs_version,
        )

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
        sent = request.most_values if old is None else None
        unknown = resource.checker.prune(obj, is_shallow=sent is not None and sent < MAX_DEPTH)
        refuse_large(resource.key, obj, old, sent)
        if crowded := [*check_counts(obj, old)]:
            name = str(obj["metadata"].get("name", ""))
            raise invalid(resource.served.kind, name, crowded, group=resource.served.group)
        report_fields(request, unknown, duplicates=not is_patched, hint=resource.checker.hint)
        if resource.served.deprecated and not is_patched:
            request.warnings.append(resource.served.deprecated)
        return unknown

    def _default(self, write: _Write) -> None:
        resource, obj = write.resource, write.obj
        self._fill(resource, obj, write.cached)
        if write.cached is not None and write.distinct_field is not None:
            obj["spec"][resource.strategy.distinct_field] = write.distinct_field

    def _fill(self, resource: Resource, obj: Json, cached: CachedSpec | None = None) -> None:
        """Fill in what is left unsaid: by the schema, then by what other fields say."""
        resource.checker.fill(obj)
        check_parts(obj)
        check_metadata_types(resource.served.kind, resource.served.group, obj["metadata"])
        drop_empty(obj["metadata"])
        if cached is None:
            resource.strategy.default(obj)
        else:
            obj["spec"] = orjson.loads(cached.filled)

    def _own(self, write: _Write, now: float) -> None:
        """Record in managedFields which manager wrote which field."""
        resource, obj = write.resource, write.obj
        given = obj["metadata"].get("managedFields")
        if write.old is not None and given in ([], [{}]):
            # The documented way to forget all managers.
            obj["metadata"].pop("managedFields")
            return
        record_update(
            write.old,
            obj,
            manager=write.options.manager,
            api_version=resource.served.api_version,
            subresource=write.route.subresource,
            now=now,
            shape=resource.served.shape,
            ignored=unowned(resource),
            translate=translator(self._server.catalogue, resource),
            known={"spec": write.cached.owned} if write.cached is not None else None,
        )

    def _check_schema(self, write: _Write) -> None:
        obj, served = write.obj, write.resource.served
        write.causes = [*check_metadata(obj, served), *self._schema_causes(write)]

    def _schema_causes(self, write: _Write) -> list[Cause]:
        """Return what breaks the schema; a new spec that was sound before is not looked at.

        What the server adds to a spec (its own labels, a priority, a class) is sound by itself, so
        the spec as it came decides.
        """
        resource, obj = write.resource, write.obj
        if write.old is not None:
            return resource.checker.check(obj, write.old)
        key = write.spec_key if resource.strategy.clears_status else b""
        if self._specs.is_sound(resource, key):
            return resource.checker.check_rest(obj)
        causes = resource.checker.check(obj, None)
        if not causes:
            self._specs.note_sound(resource, key)
        return causes

    def _validate(self, write: _Write) -> None:
        """Refuse what breaks the schema, the rules of the kind, or the rights of its author."""
        if write.is_direct:
            return
        obj, old, context = write.obj, write.old, write.context
        strategy, served, causes = write.resource.strategy, write.resource.served, [*write.causes]
        # Of typed kinds everything is told at once, unless a field is not even of its type.
        is_readable = not any(cause.reason == "FieldValueTypeInvalid" for cause in causes)
        if not causes or (strategy.is_typed and is_readable):
            reported = {cause.field for cause in causes}
            causes.extend(
                cause for cause in strategy.check(obj, old, context) if cause.field not in reported
            )
        if causes:
            name = str(obj["metadata"].get("name", ""))
            raise invalid(served.kind, name, causes, group=served.group)
        self._server.check_object(context.user, write.resource.key, obj, old)
        if old is None:
            for text in admission.advise(served, obj, context):
                context.warn(text)


def is_large(request: Request) -> bool:
    """Say whether a body can take tens of milliseconds to handle."""
    return len(request.body) >= LARGE_BODY_BYTES


async def apart_if_large(request: Request, step: Callable[[], Result]) -> Result:
    """Do a step that looks at no shared state; of a large request in a thread.

    The interpreter switches threads every few milliseconds, so the event loop answers others
    meanwhile, however large the object is and wherever in it the work lies.
    """
    return await asyncio.to_thread(step) if is_large(request) else step()


def merged(target: object, patch: Json) -> Json:
    """Return what a merge patch makes of a value, sharing what it leaves alone; neither changes."""
    result: Json = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            result[name] = merged(result.get(name), value)
        else:
            result[name] = value
    return result
