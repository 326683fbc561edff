"""The embedded API as one object: a request in, an answer out, over HTTP or in the same process.

    handle → authorise → route → read | watch | write | delete | below

Handlers raise `ApiError`; it becomes a Status here and nowhere else.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial

import orjson

from unisono.apiserver.catalogue import Catalogue
from unisono.apiserver.controllers import custom_resources
from unisono.apiserver.controllers.disruption_budgets import DisruptionBudgetController
from unisono.apiserver.controllers.garbage_collector import (
    GarbageCollector,
    expire_events,
    remove_ended_pods,
)
from unisono.apiserver.discovery import verbs_of
from unisono.apiserver.endpoints import NonResourceEndpoints
from unisono.apiserver.errors import ApiError, method_not_allowed
from unisono.apiserver.objects import Json
from unisono.apiserver.request import Request
from unisono.apiserver.rest.body import check_size, parse_object
from unisono.apiserver.rest.context import AccessControl, ServerContext, WriteOptions
from unisono.apiserver.rest.delete import Deleter
from unisono.apiserver.rest.direct_writes import DirectWrites
from unisono.apiserver.rest.exec_session import ExecStarter, enter, instead_of, no_command
from unisono.apiserver.rest.patching import Patcher
from unisono.apiserver.rest.pod_logs import LogFiles, LogOptions
from unisono.apiserver.rest.read import Reader, ResponseRenderer
from unisono.apiserver.rest.route import Route, Routes, UnknownPath
from unisono.apiserver.rest.subresources import Subresources
from unisono.apiserver.rest.watch import Watches
from unisono.apiserver.rest.writer import Writer, WriteResult, apart_if_large
from unisono.apiserver.storage.store import Store, WriteFailed
from unisono.net.http.messages import Response

_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_MAX_WARNING_BYTES = 4096

# What may be raised while a request is answered; all else is a mistake of ours.
_TOLD = (ApiError, UnknownPath, WriteFailed)

# Verbs as authorisation names them.
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What comes from the world: time, a random source, names, logs and access control."""

    clock: Callable[[], float]
    new_uid: Callable[[], str]
    random_source: random.Random
    version: str = "0.0.0"
    logs: LogFiles | None = None
    reviews: AccessControl = field(default_factory=AccessControl)


class Api:
    """Serves every kind that the catalogue has."""

    def __init__(self, store: Store, environment: Environment) -> None:
        """Put the parts together; call it inside the event loop that will serve."""
        self.store = store
        self.catalogue = Catalogue()
        self._routes = Routes(self.catalogue)
        random_source = environment.random_source
        self._server = ServerContext(
            store=store,
            catalogue=self.catalogue,
            clock=environment.clock,
            new_uid=environment.new_uid,
            letters=lambda count: "".join(random_source.choices(_NAME_LETTERS, k=count)),
            check_object=environment.reviews.check_object,
        )
        self._environment = environment
        # Called with a pod before its log is read, and while a client follows it: a runner may keep
        # logs elsewhere until then.
        self.before_log: Callable[[Json], None] = _nothing
        self._reader = Reader(self._server)
        self._writer = Writer(self._server)
        self._patcher = Patcher(self._server, self._writer)
        self._deleter = Deleter(self._server, self._reader, self._writer)
        self._below = Subresources(self._server, self._writer, self._patcher, self._deleter)
        self.direct = DirectWrites(self._server, self._writer, self._below)
        self.watches = Watches(self._server, random_source)
        self.endpoints = NonResourceEndpoints(self._server, environment.version)
        custom_resources.follow(self._server)
        self.garbage_collector = GarbageCollector(self._server, self._writer, self._deleter)
        self.garbage_collector.sweep()
        self.disruptions = DisruptionBudgetController(self._server, self._writer)
        self.start_exec: ExecStarter | None = None  # once pods run whose containers can be entered

    def tidy(self) -> int:
        """Remove what must not pile up; return how many objects, to be called again soon if any."""
        expired = expire_events(self._server, self._writer)
        return expired + remove_ended_pods(self._server, self._writer)

    def forget(self) -> None:
        """Let go of what is only kept for quick looking."""
        self._server.known.forget()

    async def handle(self, request: Request) -> Response:
        """Answer one request; never raises for what a client may send."""
        if request.method == "GET" and not request.command:
            return self.read(request)
        try:
            found = self._around(request)
            if isinstance(found, Route):
                check_size(request, found.resource.key)
            if isinstance(found, Response):
                response = found
            elif found.subresource:
                response = await self._write_below(request, found)
            elif found.name:
                response = await self._write_object(request, found)
            else:
                response = await self._write_collection(request, found)
        except _TOLD as error:
            response = _failure(error)
        return _with_warnings(response, request)

    def read(self, request: Request) -> Response:
        """Answer a GET, for which nothing has to be waited for."""
        try:
            found = self._around(request)
            if isinstance(found, Response):
                response = found
            elif found.subresource:
                response = self._read_below(request, found)
            elif found.name:
                response = self._answers(request, found).record(self._reader.get(found))
            else:
                response = self._read_collection(request, found)
        except _TOLD as error:
            response = _failure(error)
        return _with_warnings(response, request)

    def _around(self, request: Request) -> Route | Response:
        """Return what a request is about, if it is allowed; or the answer, if that is no object."""
        where = self._routes.known(request.path)
        if where is None:
            answer = self.endpoints.answer(request)
            if answer is not None:
                self._environment.reviews.check_path(request)
                return answer
            where = self._routes.find(request.path)
        verb = _verb(request, where)
        self._environment.reviews.check(request, where, verb)
        if not where.subresource and verb not in verbs_of(where.resource.served):
            raise method_not_allowed()
        reviewed = self._environment.reviews.answer(request, where)
        if reviewed is not None:
            return Response(code=201, body=orjson.dumps(reviewed))
        match where.resource.served.group:
            case "metrics.k8s.io":
                return self.endpoints.metrics(request, where)
            case "visibility.kueue.x-k8s.io":
                return self.endpoints.pending_workloads(request, where)
            case _:
                return where

    # ---- collections and objects -------------------------------------------------------------

    def _read_collection(self, request: Request, where: Route) -> Response:
        answers = self._answers(request, where)
        if request.flag("watch"):
            return Response(chunks=self.watches.open(request, where, answers))
        return answers.page(self._reader.page(request, where))

    async def _write_collection(self, request: Request, where: Route) -> Response:
        answers = self._answers(request, where)
        match request.method:
            case "POST":
                if where.resource.key == "/bindings":
                    return self._rendered(request, await self._below.bind(request, where))
                if where.resource.served.namespaced and not where.namespace:
                    raise method_not_allowed()
                parse = partial(parse_object, request, where.resource)
                obj = await apart_if_large(request, parse)
                outcome = await self._writer.create(request, where, obj, WriteOptions.of(request))
                return answers.one(outcome.data, outcome.code)
            case "DELETE":
                outcome = await self._deleter.delete_collection(request, where)
                return Response(body=outcome.data)
            case _:
                raise method_not_allowed()

    async def _write_object(self, request: Request, where: Route) -> Response:
        answers = self._answers(request, where)
        match request.method:
            case "PUT":
                outcome = await self._patcher.replace(request, where)
            case "PATCH":
                outcome = await self._patcher.patch(request, where)
            case "DELETE":
                outcome = await self._deleter.delete(request, where)
            case _:
                raise method_not_allowed()
        return answers.one(outcome.data, outcome.code)

    # ---- what hangs below a name -------------------------------------------------------------

    def _read_below(self, request: Request, where: Route) -> Response:
        _check_below(where)
        match where.subresource:
            case "status":
                return self._answers(request, where).record(self._reader.get(where))
            case "scale":
                scale = self._below.scale_of(where, self._reader.get(where).load())
                return Response(body=orjson.dumps(scale))
            case "log":
                return self._log(request, where)
            case "exec":
                raise no_command()
            case _:
                raise method_not_allowed()

    async def _write_below(self, request: Request, where: Route) -> Response:
        _check_below(where)
        match where.subresource, request.method:
            case "status", "PUT" | "PATCH":
                return await self._write_object(request, where)
            case "scale", "PUT" | "PATCH":
                outcome = await self._below.set_scale(request, where)
            case "binding", "POST":
                outcome = await self._below.bind(request, where)
            case "eviction", "POST":
                outcome = await self._below.evict(request, where)
            case "exec", "GET" | "POST":
                return await enter(request, self._reader.get(where).load(), self.start_exec)
            case "finalize", "PUT":
                outcome = await self._below.finalize(request, where)
            case _:
                raise method_not_allowed()
        return self._rendered(request, outcome)

    def _log(self, request: Request, where: Route) -> Response:
        pod = self._reader.get(where).load()
        options = LogOptions.of(request, pod, self._environment.clock())
        uid = pod["metadata"]["uid"]

        def is_over() -> bool:
            record = self.store.get(where.key)
            if record is None or record.uid != uid:
                return True
            found = record.load()
            self.before_log(found)
            return found.get("status", {}).get("phase") in ("Succeeded", "Failed")

        if self._environment.logs is None:
            raise ApiError(404, "NotFound", "no runner keeps logs here")
        self.before_log(pod)
        chunks: AsyncIterator[bytes] = self._environment.logs.open(pod, options, is_over=is_over)
        return Response(chunks=chunks, content_type="text/plain")

    def _answers(self, request: Request, where: Route) -> ResponseRenderer:
        return ResponseRenderer(request, where.resource, self._environment.clock)

    def _rendered(self, request: Request, outcome: WriteResult) -> Response:
        return Response(code=outcome.code, body=outcome.data)


def _nothing(pod: Json) -> None:
    """Keep nothing back."""


def _check_below(where: Route) -> None:
    if where.subresource not in where.resource.served.subresources:
        if where.resource.key == "/pods":
            instead_of(where.subresource)
        raise ApiError(404, "NotFound", "the server could not find the requested resource")


def _failure(error: Exception) -> Response:
    """Return what a client is told of something that was raised."""
    if isinstance(error, ApiError):
        return refusal(error)
    if isinstance(error, UnknownPath):
        return Response(code=404, body=b"404 page not found\n", content_type="text/plain")
    if isinstance(error, WriteFailed) and error.is_full:
        return refusal(ApiError(507, "InsufficientStorage", str(error)))
    return refusal(ApiError(503, "ServiceUnavailable", str(error), retry_after=1))


def _with_warnings(response: Response, request: Request) -> Response:
    if request.warnings:
        response.headers["warning"] = warning_header(request.warnings)
    return response


def _verb(request: Request, where: Route) -> str:
    """Return what a request does, as a role names it."""
    if where.subresource == "exec":
        return "create"  # however it is asked for: looking is not all that it does
    if request.method == "GET":
        if where.name:
            return "get"
        return "watch" if request.flag("watch") else "list"
    if request.method == "DELETE" and not where.name:
        return "deletecollection"
    return _VERBS.get(request.method, request.method.lower())


def refusal(error: ApiError) -> Response:
    """Return the Status of a refused request."""
    response = Response(code=error.code, body=orjson.dumps(error.status()))
    if error.retry_after:
        response.headers["retry-after"] = str(error.retry_after)
    return response


def warning_header(warnings: list[str]) -> str:
    """Return warnings as HTTP carries them: quoted, ASCII, not too long, none twice."""
    parts: list[str] = []
    size = 0
    for text in dict.fromkeys(warnings):
        plain = text.encode("ascii", "replace").decode().replace("\\", "\\\\").replace('"', '\\"')
        plain = "".join(one if one.isprintable() else "?" for one in " ".join(plain.split()))
        part = f'299 - "{plain}"'
        size += len(part) + 2
        if size > _MAX_WARNING_BYTES:
            break
        parts.append(part)
    return ", ".join(parts)
