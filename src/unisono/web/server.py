"""The listener of the page.

    GET /                 the page and its files, without sign-in: they hold no data
    GET /live?page=…      a page as data, and then what becomes different in it, line by line
    GET /report/FORMAT    a report of a time, to keep
    GET /session          the user, and how to sign in here
    POST /session         sign in, with the token in a header; sets a cookie where one is used
    DELETE /session       sign out

Nothing else is answered, and nothing changes the cluster. A line on `/live` is sent when the page
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

from unisono.engine.model.errors import UnisonoError
from unisono.kinds.digits import whole_number
from unisono.monitor.ledger.store import LedgerError
from unisono.net.listener import bound, listening, streams
from unisono.web import http, static_files
from unisono.web.allowed_hosts import Hosts, host_of, is_loopback
from unisono.web.auth import COOKIE, AuthenticationError, Authenticator, Permissions, token_of
from unisono.web.http import Asked
from unisono.web.pages import Pages
from unisono.web.view_models import Json, PageUpdates

_MOST_HEADER_BYTES = 32_768
_PATIENCE_S = 5.0
_MOST_VISITORS = 64
_GZIP = 31  # zlib's way to say it
_PAUSE_S = 0.35
# Pages of one process may take this part of a processor each; else they come less often.
_MOST_SHARE = 0.04
_KEEP_ALIVE_S = 15.0
_SIGHT_S = 60.0
_MOST_COOKIE_BYTES = 3_800  # what browsers keep, with its name
_LONGEST_REPORT_S = 400 * 86_400
# `figures` is JSON without the single jobs: what the page of reports itself shows.
_FORMATS = ("html", "csv", "json", "md", "figures")
# Said by a proxy that speaks TLS before us, and by ourselves where we do.
_PROTOCOL = "x-forwarded-proto"
_LINES = "application/x-ndjson"
_JSON = "application/json"


class CannotServe(UnisonoError):
    """The address is taken, or not one of this machine."""


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
    ) -> None:
        """Show pages to users that the authenticator lets in; `ticks` measures how long that takes.

        `hosts` are the names under which it may be asked: those of loopback, if none are given.
        """
        self._pages = pages
        self._authenticator = authenticator
        self._hosts = hosts or Hosts()
        self._now = now
        self._ticks = ticks
        self._visitors = 0
        self._closing = asyncio.Event()

    def close(self) -> None:
        """Send visitors away."""
        self._closing.set()

    async def attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one visitor."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    head = await reader.readuntil(b"\r\n\r\n")
                asked = http.read(head)
                if writer.get_extra_info("ssl_object") is not None:
                    asked = asked._replace(headers={**asked.headers, _PROTOCOL: "https"})
                await self._answer(asked, writer)
                await writer.drain()
            except (asyncio.LimitOverrunError, ValueError):
                pass  # the page never sends headers that long, or so many fields
            finally:
                writer.close()

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        try:
            await self._attend(asked, writer)
        except (AuthenticationError, LedgerError) as trouble:
            writer.write(http.refusal(503, str(trouble)))

    async def _attend(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        if not self._hosts.know(asked.headers.get("host", "")):
            writer.write(http.refusal(403, "this page is not that host's; see --host"))
        elif asked.path == "/session":
            writer.write(await self._session(asked))
        elif asked.method not in ("GET", "HEAD"):
            writer.write(http.refusal(405, "only GET"))
        elif (file := static_files.answer(asked)) is not None:
            writer.write(file)
        elif asked.path == "/live" and asked.method == "GET":
            await self._live(asked, writer)
        elif asked.path.startswith("/report/"):
            writer.write(await self._report(asked))
        else:
            writer.write(http.refusal(404, "there is no such page"))

    # ---- signing in ------------------------------------------------------------------------------

    async def _session(self, asked: Asked) -> bytes:
        if asked.method in ("GET", "HEAD"):
            permissions = await self._authenticator.admit(asked.headers)
            return _json(self._about(permissions))
        if not asked.is_from_here:
            return http.refusal(403, "another site asked for that")
        if asked.method == "DELETE":
            gone = f"Set-Cookie: {COOKIE}=; {_kept(asked)}; Max-Age=0"
            return http.answer(204, b"", "", gone)
        if asked.method != "POST":
            return http.refusal(405, "GET, POST or DELETE")
        # In a header, which no form of another site can set.
        if "authorization" not in asked.headers:
            return http.refusal(400, "the token belongs in the header Authorization")
        token = token_of(asked.headers)
        if self._authenticator.uses_cookie and len(token) > _MOST_COOKIE_BYTES:
            return http.refusal(413, "the token is longer than a cookie can be")
        permissions = await self._authenticator.admit(
            {"authorization": asked.headers["authorization"]}
        )
        if permissions is None:
            return http.refusal(401, "the token is not valid")
        more = (
            (f"Set-Cookie: {COOKIE}={token}; {_kept(asked)}",)
            if self._authenticator.uses_cookie
            else ()
        )
        return _json(self._about(permissions), *more)

    def _about(self, permissions: Permissions | None) -> Json:
        return {
            "name": permissions.name if permissions is not None else "",
            "cookie": self._authenticator.uses_cookie,
            "reports": permissions is not None
            and permissions.reports
            and self._pages.report is not None,
            "everything": permissions is not None and permissions.workloads is None,
            "now": round(self._now(), 3),
        }

    # ---- pages -----------------------------------------------------------------------------------

    async def _live(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        permissions = await self._permissions(asked)
        if permissions is None:
            writer.write(http.refusal(401, "the token is missing or wrong"))
        elif not self._pages.has(asked.query.get("page", "")):
            writer.write(http.refusal(404, "there is no such page"))
        elif self._visitors >= _MOST_VISITORS:
            writer.write(http.refusal(503, "too many are looking already"))
        else:
            self._visitors += 1
            try:
                await self._tell(asked, permissions, writer)
            finally:
                self._visitors -= 1

    async def _permissions(self, asked: Asked) -> Permissions | None:
        permissions = await self._authenticator.admit(asked.headers)
        if permissions is not None and asked.query.get("page") == "gang":
            return await self._authenticator.may_see_pods(
                permissions, asked.query.get("namespace", "")
            )
        return permissions

    async def _tell(
        self, asked: Asked, permissions: Permissions, writer: asyncio.StreamWriter
    ) -> None:
        """Write a line whenever the page became another, until the visitor goes."""
        packing = zlib.compressobj(1, zlib.DEFLATED, _GZIP) if asked.takes_gzip else None
        more = ("Content-Encoding: gzip",) if packing is not None else ()
        writer.write(http.head(200, _LINES, http.NEVER_KEPT, "X-Accel-Buffering: no", *more))
        told = PageUpdates()
        seen: tuple[int, int] | None = None
        last = looked = self._now()
        while not self._closing.is_set():
            now = self._now()
            if now - looked >= _SIGHT_S:
                looked = now
                try:
                    again = await self._permissions(asked)
                except AuthenticationError:
                    return  # the page asks again by itself, and is refused then
                if again is None:
                    writer.write(_line({"signedOut": True}, packing))
                    return
                if again != permissions:
                    permissions, seen = again, None
            began = self._ticks()
            version = self._pages.version(asked.query)
            if version != seen:
                seen = version
                news = told.news(await self._pages.show(asked.query, permissions))
                if news is not None:
                    writer.write(_line({"now": round(now, 3), **news}, packing))
                    last = now
            if now - last >= _KEEP_ALIVE_S:
                writer.write(_line({}, packing))
                last = now
            await writer.drain()
            pause = max(_PAUSE_S, (self._ticks() - began) / _MOST_SHARE)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), min(pause, _KEEP_ALIVE_S))

    # ---- reports ---------------------------------------------------------------------------------

    async def _report(self, asked: Asked) -> bytes:
        permissions = await self._authenticator.admit(asked.headers)
        if permissions is None:
            return http.refusal(401, "the token is missing or wrong")
        if not permissions.reports:
            return http.refusal(403, "you may not see the usage of all users")
        if self._pages.report is None:
            return http.refusal(404, "no ledger is kept here, so there are no reports")
        form = asked.path.removeprefix("/report/")
        since, until = (whole_number(asked.query.get(name)) for name in ("since", "until"))
        if form not in _FORMATS or since is None or until is None:
            formats = ", ".join(_FORMATS)
            return http.refusal(400, f"one of {formats}, with since= and until= in seconds")
        if not 0 < until - since <= _LONGEST_REPORT_S:
            return http.refusal(400, "a report is of some time, and of 400 days at most")
        file = await self._pages.report(since, until, form)
        named = f'Content-Disposition: attachment; filename="{file.name}"'
        if not asked.takes_gzip:
            return http.answer(200, file.body, file.content_type, named)
        packed = await asyncio.to_thread(zlib.compress, file.body, 6, _GZIP)
        return http.answer(200, packed, file.content_type, named, "Content-Encoding: gzip")


@contextlib.asynccontextmanager
async def serving(
    site: Site, host: str, port: int, context: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """Serve the page while the block lasts, over TLS with a context; yields its address."""
    try:
        sock = bound(host, port)
    except OSError as error:
        raise CannotServe(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    serve = streams(site.attend, limit=_MOST_HEADER_BYTES)
    async with listening(sock, serve, context=context):
        try:
            taken = sock.getsockname()[1]
            scheme = "http" if context is None else "https"
            yield f"{scheme}://{f'[{host}]' if ':' in host else host}:{taken}/"
        finally:
            site.close()


def _kept(asked: Asked) -> str:
    """Say how a cookie is kept: for this site, out of reach of scripts, until the browser ends.

    It is for TLS only, whatever way the request came here: a proxy may forget to say that it was
    TLS. But for this machine itself: not every browser sends such a cookie to http://localhost.
    """
    is_here = is_loopback(host_of(asked.headers.get("host", "")))
    is_secure = not is_here or asked.headers.get(_PROTOCOL, "") == "https"
    return f"Path=/; HttpOnly; SameSite=Strict{'; Secure' if is_secure else ''}"


def _json(value: Json, *more: str) -> bytes:
    return http.answer(200, orjson.dumps(value), _JSON, *more)


def _line(message: Json, packing: zlib._Compress | None) -> bytes:
    text = orjson.dumps(message) + b"\n"
    if packing is None:
        return text
    return packing.compress(text) + packing.flush(zlib.Z_SYNC_FLUSH)
