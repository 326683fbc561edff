"""What is not an object: versions, discovery, OpenAPI, health, metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from unisono.apiserver import discovery
from unisono.apiserver.errors import ApiError, method_not_allowed, not_found
from unisono.apiserver.objects import Json
from unisono.apiserver.pending_workloads import Asked, PendingLists, answer
from unisono.apiserver.request import Request
from unisono.apiserver.rest.context import ServerContext
from unisono.apiserver.rest.route import Route, UnknownPath
from unisono.kinds.shapes.served import METRICS
from unisono.net.http.messages import Response

_V2_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
# Which Kubernetes we behave like; clients choose features by it.
KUBERNETES = ("1", "34")


class NonResourceEndpoints:
    """Answers addresses that are about the API and not about objects."""

    def __init__(self, server: ServerContext, version: str) -> None:
        """Take the kinds; documents are made when they are asked for."""
        self._server = server
        self._version = version
        self._documents: dict[tuple[object, ...], tuple[bytes, str]] = {}
        self._at = -1
        # Named checks of /healthz, /livez and /readyz; each says what is wrong, or nothing. The
        # `ready_checks` are for /readyz only, and replace others of the same name there.
        self.checks: dict[str, Callable[[], str]] = {"ping": lambda: ""}
        self.ready_checks: dict[str, Callable[[], str]] = {}
        self.gauges: list[Callable[[], str]] = []  # more lines for /metrics
        # kind ("nodes", "pods") → its measured usage, once there is some.
        self.usage: Callable[[str], list[Json]] | None = None
        self.pending: PendingLists | None = None  # once controllers are at work

    def answer(self, request: Request) -> Response | None:
        """Return an answer, or None if the address is one of objects."""
        parts = request.path.strip("/").split("/")
        match parts:
            case ["healthz" | "livez" | "readyz" as name, *_]:
                return self._health(request, name)
            case ["version"]:
                return Response(body=orjson.dumps(self.version()))
            case ["metrics"]:
                return Response(body=self._metrics().encode(), content_type="text/plain")
            case ["openapi", "v2"]:
                return Response(body=discovery.V2_STUB, content_type=_V2_TYPE)
            case ["openapi", "v3", *rest]:
                return self._openapi(request, "/".join(rest))
            case ["api"] | ["apis"]:
                return self._groups(request, is_core=parts == ["api"])
            case ["api", version]:
                return self._resources("", version)
            case ["apis", group]:
                return self._group(group)
            case ["apis", group, version]:
                return self._resources(group, version)
            case [""]:
                return self._paths()
            case _:
                return None

    # ---- discovery ---------------------------------------------------------------------------

    def _served(self) -> Any:
        if self._at != self._server.catalogue.version:
            self._documents.clear()
            self._at = self._server.catalogue.version
        served = self._server.catalogue.served()
        if self.usage is None:
            return [one for one in served if one.group != METRICS]
        return served

    def _made(self, key: tuple[object, ...], make: Callable[[], Json | bytes]) -> tuple[bytes, str]:
        """Return a document and its ETag, made once for every state of the catalogue."""
        self._served()
        full = (*key, self.usage is None)
        found = self._documents.get(full)
        if found is None:
            document = make()
            body = document if isinstance(document, bytes) else orjson.dumps(document)
            tag = discovery.etag(body)
            found = self._documents[full] = (body, tag)
        return found

    def _groups(self, request: Request, *, is_core: bool) -> Response:
        version = discovery.asked_version(request.headers.get("accept", ""))
        if version:
            body, tag = self._made(
                ("aggregated", is_core, version),
                lambda: discovery.aggregated(self._served(), core=is_core, version=version),
            )
            return self._cached(request, body, tag, discovery.content_type(version))
        make = discovery.core_versions if is_core else discovery.group_list
        body, _ = self._made(("groups", is_core), lambda: make(self._served()))
        return Response(body=body)

    def _cached(self, request: Request, body: bytes, tag: str, kind: str) -> Response:
        headers = {"etag": tag, "vary": "Accept", "cache-control": "public"}
        if request.headers.get("if-none-match") == tag:
            return Response(code=304, content_type=kind, headers=headers)
        return Response(body=body, content_type=kind, headers=headers)

    def _group(self, group: str) -> Response:
        if not any(one.group == group for one in self._served()):
            raise UnknownPath(group)
        return Response(body=orjson.dumps(discovery.api_group(self._served(), group)))

    def _resources(self, group: str, version: str) -> Response:
        if not any(one.group == group and one.version == version for one in self._served()):
            raise UnknownPath(f"{group}/{version}")
        body, _ = self._made(
            ("resources", group, version),
            lambda: discovery.resource_list(self._served(), group, version),
        )
        return Response(body=body)

    def _paths(self) -> Response:
        listed = discovery.group_list(self._served())["groups"]
        paths = ["/api", "/api/v1", "/apis"]
        for group in listed:
            paths.append(f"/apis/{group['name']}")
            paths.extend(f"/apis/{one['groupVersion']}" for one in group["versions"])
        rest = [
            "/healthz",
            "/livez",
            "/metrics",
            "/openapi/v2",
            "/openapi/v3",
            "/readyz",
            "/version",
        ]
        return Response(body=orjson.dumps({"paths": [*paths, *rest]}))

    # ---- OpenAPI -----------------------------------------------------------------------------

    def _openapi(self, request: Request, path: str) -> Response:
        hashes, _ = self._made(
            ("openapi",), lambda: orjson.dumps(discovery.openapi_index(self._served()))
        )
        index: Mapping[str, str] = orjson.loads(hashes)
        if not path:
            listed = {
                one: {"serverRelativeURL": f"/openapi/v3/{one}?hash={mark}"}
                for one, mark in index.items()
            }
            body = orjson.dumps({"paths": listed})
            return self._cached(request, body, discovery.etag(body), "application/json")
        if path not in index:
            raise UnknownPath(path)
        parts = path.split("/")
        group, version = ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2])
        body, _ = self._made(
            ("openapi", group, version),
            lambda: discovery.openapi_document(self._served(), group, version),
        )
        response = self._cached(request, body, f'"{index[path]}"', "application/json")
        if request.query.get("hash") == index[path]:
            response.headers["cache-control"] = "public, immutable"
            in_a_year = datetime.fromtimestamp(self._server.clock(), UTC) + timedelta(days=365)
            response.headers["expires"] = in_a_year.strftime("%a, %d %b %Y %H:%M:%S GMT")
        return response

    # ---- health and figures ------------------------------------------------------------------

    def version(self) -> dict[str, str]:
        """Return the version, in the form of Kubernetes."""
        major, minor = KUBERNETES
        return {
            "major": major,
            "minor": minor,
            "gitVersion": f"v{major}.{minor}.0+unisono.{self._version}",
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "none",
            "compiler": "python",
            "platform": "any/any",
        }

    def _health(self, request: Request, name: str) -> Response:
        checks = {**self.checks, **self.ready_checks} if name == "readyz" else self.checks
        found = {check: ask() for check, ask in checks.items()}
        is_ok = not any(found.values())
        if is_ok and "verbose" not in request.query:
            return Response(body=b"ok", content_type="text/plain")
        lines = [
            f"[-]{check} failed: {wrong}" if wrong else f"[+]{check} ok"
            for check, wrong in found.items()
        ]
        lines.append(f"{name} check {'passed' if is_ok else 'failed'}")
        body = "\n".join(lines).encode() + b"\n"
        return Response(code=200 if is_ok else 500, body=body, content_type="text/plain")

    def _metrics(self) -> str:
        lines = [
            "# HELP unisono_api_objects Stored objects by kind.",
            "# TYPE unisono_api_objects gauge",
        ]
        for kind, count in sorted(self._server.store.kinds()):
            lines.append(f'unisono_api_objects{{kind="{kind.lstrip("/")}"}} {count}')
        lines += [
            "# HELP unisono_api_resource_version The newest resource version.",
            "# TYPE unisono_api_resource_version counter",
            f"unisono_api_resource_version {self._server.store.rv}",
        ]
        return "\n".join([*lines, *(gauge() for gauge in self.gauges)]) + "\n"

    def pending_workloads(self, request: Request, where: Route) -> Response:
        """Answer for `kubectl get --raw …/pendingworkloads`, and for kueuectl."""
        if self.pending is None:
            raise ApiError(503, "ServiceUnavailable", "queues are not read yet", retry_after=1)
        asked = Asked(
            served=where.resource.served,
            namespace=where.namespace,
            name=where.name,
            subresource=where.subresource,
        )
        return answer(self.pending, asked, request.method, request.query)

    def metrics(self, request: Request, where: Route) -> Response:
        """Answer for `kubectl top`."""
        if self.usage is None:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        if request.method != "GET":
            raise method_not_allowed()
        served = where.resource.served
        items = [
            one
            for one in self.usage(served.plural)
            if not where.namespace or one["metadata"].get("namespace") == where.namespace
        ]
        if where.name:
            for one in items:
                if one["metadata"]["name"] == where.name:
                    return Response(body=orjson.dumps(one))
            raise not_found(served.plural, where.name, group=served.group)
        body = {
            "kind": f"{served.kind}List",
            "apiVersion": served.api_version,
            "metadata": {},
            "items": items,
        }
        return Response(body=orjson.dumps(body))
