"""The listener of the page.

    GET /                 the page and its files, without sign-in: they hold no data
    GET /live?page=…      a page as data, and then what becomes different in it, line by line
    GET /report/FORMAT    a report of a time, to keep
    GET /session          the user, and how to sign in here
    POST /session         sign in, with the token in a header; sets a cookie where one is used
    DELETE /session       sign out
    GET /details/…        events, manifest and logs of a gang, read as the user (`details`)
    …    /actions         what people do with the page, as themselves (`actions.requests`)

Nothing else is answered. A line on `/live` is sent when the page
became another, at most three times a second, and after a while without any so that both ends know
of each other. What a visitor may see is asked anew every minute.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import zlib
from collections.abc import AsyncIterator, Callable

import orjson

from unisono.kinds.digits import whole_number
from unisono.kube.form import Json
from unisono.monitor.ledger.store import LedgerError
from unisono.net.allowed_hosts import Hosts, host_of, is_loopback
from unisono.net.http.messages import Limits, Response
from unisono.net.http.pages import FORWARDED_PROTOCOL, PageApplication, PageRequest
from unisono.net.http.server import serving as http_serving
from unisono.net.listener import bound
from unisono.web import http, static_files
from unisono.web.actions import requests
from unisono.web.actions.page_actions import PageActions
from unisono.web.auth import COOKIE, AuthenticationError, Authenticator, Permissions, token_of
from unisono.web.details import Details, is_detail
from unisono.web.pages import Pages
from unisono.web.view_models import PageUpdates

# Only actions have a body.
_LIMITS = Limits(
    head_bytes=32_768,
    body_bytes=requests.MOST_BYTES,
    body_seconds=10.0,
    head_seconds=5.0,
    keeps_alive=False,
)
_MOST_FIELDS = 16  # of a query
_ANSWER_S = 60.0  # a report of a year takes some seconds
_MOST_VISITORS = 64  # when so many look, the user with most of them makes room for others
_GZIP = 31  # zlib's way to say it
_PAUSE_S = 0.35
# Pages of one process may take this part of a processor each; else they come less often.
_MOST_SHARE = 0.04
_MOST_SHARES = 8  # all of them together, in such parts: the scheduler runs in the same loop
_KEEP_ALIVE_S = 15.0
_PERMISSIONS_S = 60.0
_MOST_COOKIE_BYTES = 3_800  # what browsers keep, with its name
_LONGEST_REPORT_S = 400 * 86_400
# `figures` is JSON without the single jobs: what the page of reports itself shows.
_FORMATS = ("html", "csv", "json", "md", "figures")
_LINES = "application/x-ndjson"
_JSON = "application/json"


class Site:
    """Answers requests, and streams changes of a page while it is open."""

    def __init__(
        self,
        pages: Pages,
        authenticator: Authenticator,
        *,
        now: Callable[[], float],
        ticks: Callable[[], float],
        hosts: Hosts | None = None,
        actions: PageActions | None = None,
        details: Details | None = None,
    ) -> None:
        """Show pages to users that the authenticator lets in; `ticks` measures how long that takes.

        Without `actions` the page is read only. `hosts` are the names under which it may be
        asked: those of loopback, if none are given.
        """
        self._pages = pages
        self._authenticator = authenticator
        self._hosts = hosts or Hosts()
        self._now = now
        self._ticks = ticks
        self._actions = actions
        self._details = details
        self._visitors: dict[str, list[asyncio.Event]] = {}  # by user; set: it has to go
        self._closing = asyncio.Event()

    def close(self) -> None:
        """Send visitors away."""
        self._closing.set()

    async def answer(self, request: PageRequest) -> Response:
        """Answer one request of a visitor."""
        try:
            return await self._answer(request)
        except (AuthenticationError, LedgerError) as error:
            return http.refusal(503, str(error))

    async def _answer(self, request: PageRequest) -> Response:
        if not self._hosts.know(request.headers.get("host", "")):
            return http.refusal(403, "this page is not that host's; see --host")
        if request.path == "/session":
            return await self._session(request)
        if requests.is_action(request.path):
            return await self._act(request)
        if request.method not in ("GET", "HEAD"):
            return http.refusal(405, "only GET")
        if is_detail(request.path):
            return await self._detail(request)
        if (file := static_files.answer(request)) is not None:
            return file
        if request.path == "/live" and request.method == "GET":
            return await self._live(request)
        if request.path.startswith("/report/"):
            return await self._report(request)
        return http.refusal(404, "there is no such page")

    # ---- signing in ------------------------------------------------------------------------------

    async def _session(self, request: PageRequest) -> Response:
        if request.method in ("GET", "HEAD"):
            permissions = await self._authenticator.admit(request.headers)
            return _json(self._about(permissions))
        if not http.is_same_origin(request):
            return http.refusal(403, "another site asked for that")
        if request.method == "DELETE":
            gone = f"{COOKIE}=; {_kept(request)}; Max-Age=0"
            return http.answer(204, b"", "", Set_Cookie=gone)
        if request.method != "POST":
            return http.refusal(405, "GET, POST or DELETE")
        # In a header, which no form of another site can set.
        if "authorization" not in request.headers:
            return http.refusal(400, "the token belongs in the header Authorization")
        token = token_of(request.headers)
        if self._authenticator.uses_cookie and len(token) > _MOST_COOKIE_BYTES:
            return http.refusal(413, "the token is longer than a cookie can be")
        permissions = await self._authenticator.admit(
            {"authorization": request.headers["authorization"]}
        )
        if permissions is None:
            return http.refusal(401, "the token is not valid")
        about = self._about(permissions)
        if not self._authenticator.uses_cookie:
            return _json(about)
        return _json(about, Set_Cookie=f"{COOKIE}={token}; {_kept(request)}")

    def _about(self, permissions: Permissions | None) -> Json:
        return {
            "name": permissions.name if permissions is not None else "",
            "cookie": self._authenticator.uses_cookie,
            "reports": permissions is not None
            and permissions.reports
            and self._pages.report is not None,
            "acts": self._actions is not None,
            "details": self._details is not None,
            "everything": permissions is not None and permissions.workloads is None,
            "now": round(self._now(), 3),
        }

    # ---- actions ---------------------------------------------------------------------------------

    async def _act(self, request: PageRequest) -> Response:
        if self._actions is None:
            return http.refusal(404, "this page is read only")
        permissions = await self._authenticator.admit(request.headers)
        if permissions is None:
            return http.refusal(401, "the token is missing or wrong")
        return await requests.answer(self._actions, request, permissions)

    async def _detail(self, request: PageRequest) -> Response:
        if self._details is None:
            return http.refusal(404, "this page shows no events, manifests and logs")
        if await self._authenticator.admit(request.headers) is None:
            return http.refusal(401, "the token is missing or wrong")
        return await self._details.answer(request)

    # ---- pages -----------------------------------------------------------------------------------

    async def _live(self, request: PageRequest) -> Response:
        permissions = await self._permissions(request)
        if permissions is None:
            return http.refusal(401, "the token is missing or wrong")
        if not self._pages.has(request.query.get("page", "")):
            return http.refusal(404, "there is no such page")
        if self._how_many() >= _MOST_VISITORS and not self._makes_room(permissions.name):
            return http.refusal(503, "too many are looking already")
        about = {**http.NEVER_KEPT, "X-Accel-Buffering": "no", **http.headers()}
        if request.takes_gzip:
            about["Content-Encoding"] = "gzip"
        lines = self._lines(request, permissions)
        return Response(chunks=lines, content_type=_LINES, headers=about)

    def _how_many(self) -> int:
        return sum(map(len, self._visitors.values()))

    def _makes_room(self, user: str) -> bool:
        """Send away the oldest page of the user with most, unless that would be no fairer."""
        busiest = max(self._visitors, key=lambda one: (len(self._visitors[one]), one))
        if len(self._visitors[busiest]) <= len(self._visitors.get(user, ())) + 1:
            return False
        self._visitors[busiest].pop(0).set()
        return True

    async def _permissions(self, request: PageRequest) -> Permissions | None:
        permissions = await self._authenticator.admit(request.headers)
        if permissions is not None and request.query.get("page") == "gang":
            return await self._authenticator.may_see_pods(
                permissions, request.query.get("namespace", "")
            )
        return permissions

    async def _lines(self, request: PageRequest, permissions: Permissions) -> AsyncIterator[bytes]:
        """Yield a line whenever the page became another, until the visitor goes."""
        packing = zlib.compressobj(1, zlib.DEFLATED, _GZIP) if request.takes_gzip else None
        gone = asyncio.Event()
        user = permissions.name
        self._visitors.setdefault(user, []).append(gone)
        try:
            async for message in self._messages(request, permissions, gone):
                yield _line(message, packing)
        finally:
            left = self._visitors.get(user, [])
            if gone in left:
                left.remove(gone)
            if not left:
                self._visitors.pop(user, None)

    async def _messages(
        self, request: PageRequest, permissions: Permissions, gone: asyncio.Event
    ) -> AsyncIterator[Json]:
        updates = PageUpdates()
        seen: tuple[int, int] | None = None
        last = looked = self._now()
        while not (self._closing.is_set() or gone.is_set()):
            now = self._now()
            if now - looked >= _PERMISSIONS_S:
                looked = now
                try:
                    again = await self._permissions(request)
                except AuthenticationError:
                    return  # the page asks again by itself, and is refused then
                if again is None:
                    yield {"signedOut": True}
                    return
                if again != permissions:
                    permissions, seen = again, None
            began = self._ticks()
            version = self._pages.version(request.query)
            if version != seen:
                seen = version
                news = updates.news(await self._pages.show(request.query, permissions))
                if news is not None:
                    yield {"now": round(now, 3), **news}
                    last = now
            if now - last >= _KEEP_ALIVE_S:
                yield {}
                last = now
            shares = max(1.0, self._how_many() / _MOST_SHARES)
            pause = max(_PAUSE_S, (self._ticks() - began) * shares / _MOST_SHARE)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), min(pause, _KEEP_ALIVE_S))

    # ---- reports ---------------------------------------------------------------------------------

    async def _report(self, request: PageRequest) -> Response:
        permissions = await self._authenticator.admit(request.headers)
        if permissions is None:
            return http.refusal(401, "the token is missing or wrong")
        if not permissions.reports:
            return http.refusal(403, "you may not see the usage of all users")
        if self._pages.report is None:
            return http.refusal(404, "no ledger is kept here, so there are no reports")
        form = request.path.removeprefix("/report/")
        since, until = (whole_number(request.query.get(name)) for name in ("since", "until"))
        if form not in _FORMATS or since is None or until is None:
            formats = ", ".join(_FORMATS)
            return http.refusal(400, f"one of {formats}, with since= and until= in seconds")
        if not 0 < until - since <= _LONGEST_REPORT_S:
            return http.refusal(400, "a report is of some time, and of 400 days at most")
        file = await self._pages.report(since, until, form)
        named = f'attachment; filename="{file.name}"'
        if not request.takes_gzip:
            return http.answer(200, file.body, file.content_type, Content_Disposition=named)
        packed = await asyncio.to_thread(zlib.compress, file.body, 6, _GZIP)
        return http.answer(
            200, packed, file.content_type, Content_Disposition=named, Content_Encoding="gzip"
        )


@contextlib.asynccontextmanager
async def serving(
    site: Site,
    host: str,
    port: int,
    context: ssl.SSLContext | None = None,
    *,
    option: str = "--web",
) -> AsyncIterator[str]:
    """Serve the page while the block lasts, over TLS with a context; yields its address.

    `option` is the one that chooses the address, for the message that it is taken.
    """
    sock = bound(host, port, option)
    application = PageApplication(
        site.answer,
        _LIMITS,
        answer_seconds=_ANSWER_S,
        most_fields=_MOST_FIELDS,
        on_stop=site.close,
    )
    async with http_serving(application, sock, context):
        taken = sock.getsockname()[1]
        scheme = "http" if context is None else "https"
        yield f"{scheme}://{f'[{host}]' if ':' in host else host}:{taken}/"


def _kept(request: PageRequest) -> str:
    """Say how a cookie is kept: for this site, out of reach of scripts, until the browser ends.

    It is for TLS only, whatever way the request came here: a proxy may forget to say that it was
    TLS. But for this machine itself: not every browser sends such a cookie to http://localhost.
    """
    is_here = is_loopback(host_of(request.headers.get("host", "")))
    is_secure = not is_here or request.headers.get(FORWARDED_PROTOCOL, "") == "https"
    return f"Path=/; HttpOnly; SameSite=Strict{'; Secure' if is_secure else ''}"


def _json(value: Json, **more: str) -> Response:
    return http.answer(200, orjson.dumps(value), _JSON, **more)


def _line(message: Json, packing: zlib._Compress | None) -> bytes:
    text = orjson.dumps(message) + b"\n"
    if packing is None:
        return text
    return packing.compress(text) + packing.flush(zlib.Z_SYNC_FLUSH)
