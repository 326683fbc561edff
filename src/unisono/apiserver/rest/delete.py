"""DELETE: at once, after a grace period, or when the last finalizer is gone.

Dependents of a deleted object are deleted by `controllers.garbage_collector`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from unisono.apiserver.builtin.metadata import is_over
from unisono.apiserver.errors import Cause, bad_request, conflict, forbidden, invalid
from unisono.apiserver.objects import Json
from unisono.apiserver.request import Request
from unisono.apiserver.rest.body import parse
from unisono.apiserver.rest.context import RequestContext, ServerContext, is_dry_run
from unisono.apiserver.rest.read import Reader
from unisono.apiserver.rest.route import Route
from unisono.apiserver.rest.versions import shown
from unisono.apiserver.rest.writer import Writer, WriteResult
from unisono.apiserver.storage.record import Record
from unisono.apiserver.strategy import Strategy
from unisono.apiserver.times import seconds, timestamp

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
CRD_CLEANUP = "customresourcecleanup.apiextensions.k8s.io"

_PROTECTED = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
_POLICIES = ("Background", "Foreground", "Orphan")
_DEFAULT_POD_GRACE = 30
_MOST = 2**63 - 1  # as many seconds as fit where other clients read them
# Most deletions are answered with a Status; those of some old kinds with what was deleted.
_ANSWERED_WITH_THE_OBJECT = frozenset(
    {
        "/pods",
        "/services",
        "/serviceaccounts",
        "/persistentvolumeclaims",
        "/persistentvolumes",
        "/resourcequotas",
        "/podtemplates",
        "/replicationcontrollers",
        "storage.k8s.io/storageclasses",
    }
)
_TERMINAL = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to delete."""

    grace: int | None = None
    policy: str = ""
    uid: str = ""
    rv: str = ""
    is_dry: bool = False

    @staticmethod
    def of(request: Request) -> Options:
        """Read them from the body, or from the query."""
        return Options.read(parse(request) if request.body else {}, request)

    @staticmethod
    def read(raw: Any, request: Request) -> Options:
        """Read them from an object, or else from the query."""
        if not isinstance(raw, dict):
            raise bad_request("the delete options are not an object")
        grace = raw.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
        if grace is not None:
            try:
                grace = int(grace)
            except (TypeError, ValueError, OverflowError) as error:
                raise bad_request("gracePeriodSeconds is not a number") from error
            if abs(grace) > _MOST:
                raise bad_request("gracePeriodSeconds is out of range")
        policy = raw.get("propagationPolicy") or request.query.get("propagationPolicy", "")
        if raw.get("orphanDependents") is not None:
            policy = policy or ("Orphan" if raw["orphanDependents"] else "Background")
        if policy and policy not in _POLICIES:
            message = f'Unsupported value: "{policy}": supported values: ' + ", ".join(
                f'"{one}"' for one in _POLICIES
            )
            cause = Cause("FieldValueNotSupported", message, "propagationPolicy")
            raise invalid("DeleteOptions", "", [cause], group="meta.k8s.io")
        preconditions = raw.get("preconditions") or {}
        if not isinstance(preconditions, dict):
            raise bad_request("preconditions is not an object")
        is_dry = bool(raw.get("dryRun")) or is_dry_run(request)
        return Options(
            grace=grace,
            policy=policy,
            uid=str(preconditions.get("uid") or ""),
            rv=str(preconditions.get("resourceVersion") or ""),
            is_dry=is_dry,
        )


class Deleter:
    """Ends objects."""

    def __init__(self, server: ServerContext, reader: Reader, writer: Writer) -> None:
        """Take the store."""
        self._server = server
        self._reader = reader
        self._writer = writer

    async def delete(self, request: Request, route: Route) -> WriteResult:
        """Delete one object, or begin to."""
        options = Options.of(request)
        record = self._server.existing(route)
        self._refuse(request, route, record)
        if route.resource.key == "batch/jobs" and not options.policy:
            request.warnings.append(
                "the pods of a deleted job are kept unless propagationPolicy says otherwise; "
                "Background removes them, Orphan silences this warning"
            )
        left = self.stage(route, record, options)
        if not options.is_dry:
            await self._server.store.committed()
        return WriteResult(orjson.dumps(left), route.resource)

    async def delete_collection(self, request: Request, route: Route) -> WriteResult:
        """Delete everything that a list would show."""
        options = Options.of(request)
        page = self._reader.page(request, route)
        for record in page.records:
            newest = self._server.store.newest(record.key)
            if newest is not None:
                namespace, name = record.key[1:]
                each = Route(resource=route.resource, namespace=namespace, name=name)
                self._refuse(request, each, newest)
                self.stage(each, newest, options)
        await self._server.store.committed()
        served = route.resource.served
        items = [shown(record, route.resource) for record in page.records]
        listing = {
            "apiVersion": served.api_version,
            "kind": f"{served.kind}List",
            "metadata": page.metadata(),
            "items": items,
        }
        return WriteResult(orjson.dumps(listing), route.resource)

    def stage(self, route: Route, record: Record, options: Options) -> Json:
        """Delete without waiting for the disk; return what the client is told."""
        served = route.resource.served
        obj = record.load()
        self._check(route, record, options)
        metadata = obj["metadata"]
        is_first = "deletionTimestamp" not in metadata
        before = orjson.dumps(obj)
        self._settle_finalizers(route, obj, options)
        grace = _grace(obj, options) if route.resource.key == "/pods" else 0
        self._settle_end(obj, grace)
        if is_over(obj):
            if is_first:
                # It goes without ever having been seen on its way out.
                metadata.pop("deletionTimestamp")
                metadata.pop("deletionGracePeriodSeconds")
            if not options.is_dry:
                self._writer.remove(record, obj)
            if route.resource.key in _ANSWERED_WITH_THE_OBJECT:
                return obj
            return {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Success",
                "details": {
                    "name": record.name,
                    **({"group": served.group} if served.group else {}),
                    "kind": served.plural,
                    "uid": record.uid,
                },
            }
        if is_first and route.resource.strategy.has_generation:
            metadata["generation"] = metadata.get("generation", 0) + 1
        if route.resource.key == "/namespaces":
            obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}
        if orjson.dumps(obj) == before or options.is_dry:
            return shown(record, route.resource) if not options.is_dry else obj
        return shown(self._writer.put(record, obj), route.resource)

    def _refuse(self, request: Request, route: Route, record: Record) -> None:
        """Refuse a client what the kind wants to keep; owners and namespaces take it along."""
        strategy, served = route.resource.strategy, route.resource.served
        if type(strategy).refuse_deletion is Strategy.refuse_deletion:
            return
        why = strategy.refuse_deletion(record.load(), RequestContext(self._server, request))
        if why:
            raise forbidden(served.plural, route.name, why, group=served.group)

    def _check(self, route: Route, record: Record, options: Options) -> None:
        served = route.resource.served
        for given, found, what in (
            (options.uid, record.uid, "UID"),
            (options.rv, str(record.rv), "ResourceVersion"),
        ):
            if given and given != found:
                why = (
                    f"the {what} in the precondition ({given}) does not match the {what} in "
                    f"record ({found})"
                )
                raise conflict(served.plural, route.name, why, group=served.group)
        if route.resource.key == "/namespaces" and route.name in _PROTECTED:
            raise forbidden("namespaces", route.name, "this namespace may not be deleted")

    def _settle_finalizers(self, route: Route, obj: Json, options: Options) -> None:
        metadata = obj["metadata"]
        policy = options.policy
        if not policy and route.resource.key == "batch/jobs":
            policy = "Orphan"
        finalizers = [
            one for one in metadata.get("finalizers") or () if one not in (FOREGROUND, ORPHAN)
        ]
        has = set(metadata.get("finalizers") or ())
        if policy == "Foreground" or (not policy and FOREGROUND in has):
            finalizers.append(FOREGROUND)
        elif policy == "Orphan" or (not policy and ORPHAN in has):
            finalizers.append(ORPHAN)
        is_definition = route.resource.key == "apiextensions.k8s.io/customresourcedefinitions"
        if is_definition and "deletionTimestamp" not in metadata and CRD_CLEANUP not in finalizers:
            finalizers.append(CRD_CLEANUP)
        if finalizers:
            metadata["finalizers"] = finalizers
        else:
            metadata.pop("finalizers", None)

    def _settle_end(self, obj: Json, grace: int) -> None:
        """Set when it is to end; a later deletion may bring that forward, never put it off."""
        metadata = obj["metadata"]
        now = self._server.clock()
        set_at = metadata.get("deletionTimestamp")
        if set_at is None:
            metadata["deletionTimestamp"] = timestamp(now + grace)
            metadata["deletionGracePeriodSeconds"] = grace
            return
        given = metadata.get("deletionGracePeriodSeconds") or 0
        if grace < given:
            asked_at = (seconds(set_at) or now) - given
            metadata["deletionTimestamp"] = timestamp(asked_at + grace)
            metadata["deletionGracePeriodSeconds"] = grace


def _grace(pod: Json, options: Options) -> int:
    """Return how long a pod may take to stop; none if nothing of it runs."""
    spec = pod.get("spec", {})
    if not spec.get("nodeName") or pod.get("status", {}).get("phase") in _TERMINAL:
        return 0
    grace = options.grace
    if grace is None:
        grace = spec.get("terminationGracePeriodSeconds", _DEFAULT_POD_GRACE)
    return 1 if grace < 0 else int(grace)
