"""The extension server at work: discovery, documents, and pending workloads for users that may."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from functools import cache

import orjson

from unisono import __version__
from unisono.apiserver import discovery
from unisono.apiserver.errors import ApiError
from unisono.apiserver.pending_workloads import Asked, PendingLists, answer
from unisono.control.names import CONFIG_MAP
from unisono.kinds.shapes.served import VISIBILITY, Served, served_kinds
from unisono.kube.client import Client
from unisono.kube.clock import Clock, guarded
from unisono.kube.errors import KubeError, NotFound
from unisono.net.http.messages import Limits, Response
from unisono.net.http.pages import PageRequest, text
from unisono.runtime.log import Journal
from unisono.runtime.serving_certificate import ServingCertificate
from unisono.runtime.visibility.delegation import (
    Delegation,
    FrontProxy,
    Visitor,
    front_proxy_of,
    visitor_of,
)
from unisono.runtime.visibility.objects import (
    API_SERVICE,
    NAME,
    VERSIONS,
    api_service_name,
    host_names,
)

_LOOK_EVERY_S = 60.0
_SOON_S = 2.0
_LIMITS = Limits(body_bytes=64 * 1024, idle_seconds=75.0)
_AUTHENTICATION = "extension-apiserver-authentication"
_V2_TYPE = "application/com.github.proto-openapi.spec.v2"


class VisibilityServer:
    """One replica's."""

    def __init__(
        self, client: Client, namespace: str, lists: PendingLists, clock: Clock, journal: Journal
    ) -> None:
        """Prepare; nothing is read or served yet."""
        self._client = client
        self._lists = lists
        self._clock = clock
        self._journal = journal
        self._delegation = Delegation(client, clock.monotonic)
        self._proxy: FrontProxy | None = None  # until the API server's word was read
        self.certificate = ServingCertificate(
            client,
            namespace,
            clock,
            journal,
            secret=NAME,
            what="visibility API",
            hosts=host_names(namespace),
            have_trusted=self._have_trusted,
        )

    async def serve(self, host: str, port: int) -> None:
        """Answer API servers for as long as this runs, as soon as they can trust us."""
        await guarded(
            self._keep_knowing(), guarded(self.certificate.keep(), self._listen(host, port))
        )

    async def _listen(self, host: str, port: int) -> None:
        while self._proxy is None:
            await self._clock.sleep(_SOON_S)
        await self.certificate.serve(
            self.respond, _LIMITS, host=host, port=port, option="--visibility"
        )

    async def respond(self, request: PageRequest) -> Response:
        """Answer one request."""
        try:
            return await self._respond(request)
        except ApiError as error:
            return Response(code=error.code, body=orjson.dumps(error.status()))
        except KubeError as error:  # users that could not be asked about see nothing
            failed = ApiError(503, "ServiceUnavailable", f"the cluster's API: {error}")
            return Response(code=503, body=orjson.dumps(failed.status()))

    async def _respond(self, request: PageRequest) -> Response:
        parts = request.path.strip("/").split("/")
        if parts[0] in ("healthz", "livez", "readyz"):
            return text(200, "ok")
        visitor = await self._visitor(request)
        if visitor is None:
            raise ApiError(401, "Unauthorized", "Unauthorized")
        asked = _asked(parts)
        if asked is None:
            return _document(request, parts)
        about = {
            "verb": "get" if request.method == "GET" else request.method.lower(),
            "group": VISIBILITY,
            "version": asked.served.version,
            "resource": asked.served.plural,
            "subresource": asked.subresource,
            "namespace": asked.namespace,
            "name": asked.name,
        }
        if not await self._delegation.may(visitor, about):
            what = f"{asked.served.plural}/{asked.subresource}.{VISIBILITY}"
            message = f'{what} "{asked.name}" is forbidden: User "{visitor.name}" cannot get it'
            raise ApiError(403, "Forbidden", message, name=asked.name, group=VISIBILITY)
        return answer(self._lists, asked, request.method, request.query)

    async def _visitor(self, request: PageRequest) -> Visitor | None:
        named = visitor_of(request, self._proxy or FrontProxy())
        return named or await self._delegation.user_of_token(request.headers)

    # ---- what the API server has to know of us, and we of it ------------------------------------

    async def _have_trusted(self, trusted: str) -> None:
        for version in VERSIONS:
            try:
                found = await self._client.get(API_SERVICE, api_service_name(version))
            except NotFound:
                continue  # not wanted any more; `unisono install` would bring it
            if found["spec"].get("caBundle") != trusted:
                found["spec"] |= {"caBundle": trusted, "insecureSkipTLSVerify": False}
                await self._client.update(found)

    async def _keep_knowing(self) -> None:
        while True:
            try:
                await self.learn()
            except KubeError as error:
                self._journal.warning("the API server's own certificate", reason=str(error))
            await self._clock.sleep(_LOOK_EVERY_S if self._proxy is not None else _SOON_S)

    async def learn(self) -> None:
        """Read how the API server proves itself.

        A new authority is trusted besides the one before until this process ends.
        """
        found = await self._client.get(CONFIG_MAP, _AUTHENTICATION, "kube-system")
        proxy = front_proxy_of(found.get("data") or {})
        known = self._proxy.authority if self._proxy is not None else ""
        if proxy.authority and proxy.authority != known:
            context = self.certificate.context
            context.verify_mode = ssl.CERT_OPTIONAL  # others may come with a token
            context.load_verify_locations(cadata=proxy.authority)
        self._proxy = proxy


# ---- addresses and documents ---------------------------------------------------------------------


@cache
def _served() -> tuple[Served, ...]:
    return tuple(one for one in served_kinds() if one.group == VISIBILITY)


def _asked(parts: Sequence[str]) -> Asked | None:
    """Return what the address of a queue names; None if it is none."""
    match parts:
        case ["apis", group, version, "namespaces", namespace, plural, name, *rest] if rest:
            pass
        case ["apis", group, version, plural, name, *rest] if plural != "namespaces":
            namespace = ""
        case _:
            return None
    for served in _served():
        if (served.group, served.version, served.plural) == (group, version, plural):
            if served.namespaced == bool(namespace):
                return Asked(
                    served=served, namespace=namespace, name=name, subresource="/".join(rest)
                )
    raise ApiError(404, "NotFound", "the server could not find the requested resource")


def _document(request: PageRequest, parts: Sequence[str]) -> Response:
    """Return discovery and OpenAPI, as API servers gather them."""
    match parts:
        case ["apis"]:
            version = discovery.asked_version(request.headers.get("accept", ""))
            if not version:
                return Response(body=orjson.dumps(discovery.group_list(_served())))
            body = orjson.dumps(discovery.aggregated(_served(), core=False, version=version))
            kind = discovery.content_type(version)
            return Response(body=body, content_type=kind, headers={"etag": discovery.etag(body)})
        case ["apis", group] if group == VISIBILITY:
            return Response(body=orjson.dumps(discovery.api_group(_served(), group)))
        case ["apis", group, version] if group == VISIBILITY and version in VERSIONS:
            listed = discovery.resource_list(_served(), group, version)
            return Response(body=orjson.dumps(listed))
        case ["openapi", "v2"]:
            return _openapi_v2(request)
        case ["openapi", "v3"]:
            index = discovery.openapi_index(_served())
            paths = {
                path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={mark}"}
                for path, mark in index.items()
            }
            return Response(body=orjson.dumps({"paths": paths}))
        case ["openapi", "v3", "apis", group, version] if (
            group == VISIBILITY and version in VERSIONS
        ):
            return Response(body=discovery.openapi_document(_served(), group, version))
        case _:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")


def _openapi_v2(request: PageRequest) -> Response:
    if _V2_TYPE in request.headers.get("accept", ""):
        return Response(body=discovery.V2_STUB, content_type=request.headers["accept"])
    info = {"title": "Unisono", "version": __version__}
    return Response(body=orjson.dumps({"swagger": "2.0", "info": info, "paths": {}}))
