"""A plain HTTP client for tests of a Kubernetes API: standard library only, one request at a time.

It shares no code with the client that Unisono ships, so that a mistake there cannot hide one here.
Every refusal to match an expectation prints the request, the answer's code and its body.
"""

from __future__ import annotations

import contextlib
import copy
import http.client
import json
import queue
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode

from unisono.kinds.overriding import override

Manifest = dict[str, Any]
Headers = Mapping[str, str | None]  # None leaves one out that is sent otherwise

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_WARNING = re.compile(r'299 - "((?:[^"\\]|\\.)*)"')

# Far more than any answer needs on a busy machine; only a server that hangs gets here.
SECONDS_TO_ANSWER = 30

# The garbage collector of a real control plane needs some seconds after its start.
SECONDS_TO_SETTLE = 60


@dataclass(frozen=True)
class Answer:
    """What a server answered, and to which request."""

    request: str
    code: int
    headers: Message
    body: bytes

    def json(self) -> Any:
        """Return the body, parsed."""
        return json.loads(self.body)

    def ok(self, code: int = 200) -> Any:
        """Return the parsed body of a success with this code."""
        assert self.code == code, f"expected {code}: {self}"
        return self.json()

    def refused(self, code: int, reason: str) -> Manifest:
        """Return the Status of a refusal with this code and reason."""
        assert self.code == code, f"expected {code} {reason}: {self}"
        status = self.json()
        assert isinstance(status, dict), f"expected a Status: {self}"
        shown = {name: status.get(name) for name in ("kind", "apiVersion", "status", "code")}
        wanted = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
        assert shown == wanted, f"expected a Status of failure: {self}"
        assert status.get("reason") == reason, f"expected reason {reason}: {self}"
        assert status.get("message"), f"expected a message: {self}"
        return status

    def causes(self, code: int = 422, reason: str = "Invalid") -> set[tuple[str, str]]:
        """Return (reason, field) of every cause of a refusal."""
        details = self.refused(code, reason)["details"]
        return {(each["reason"], each.get("field", "")) for each in details.get("causes", ())}

    @property
    def warnings(self) -> list[str]:
        """Return the texts of the Warning headers, without the hints that may follow them.

        One header may carry several.
        """
        found = _WARNING.findall(", ".join(self.headers.get_all("Warning") or []))
        plain = [text.replace('\\"', '"').replace("\\\\", "\\") for text in found]
        return [text.partition("; did you mean")[0] for text in plain]

    @override
    def __str__(self) -> str:
        return f"{self.request[:600]} -> {self.code} {self.body[:1500].decode(errors='replace')}"


class Watch:
    """A stream of events; leave the block to hang up."""

    def __init__(self, api: Api, target: str, headers: dict[str, str]) -> None:
        self.request = f"GET {target}"
        self._connection = api.connect()
        self._connection.request("GET", target, headers=headers)
        self._response = self._connection.getresponse()
        # Detach: a plain read of the buffered stream may wait for ever, a queue does not.
        self._events: queue.SimpleQueue[Manifest | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        if self._response.status != http.client.OK:
            told = f"{self.request} -> {self._response.status} {self._response.read()!r}"
            self._connection.close()
            raise AssertionError(told)
        self._reader.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._connection.sock is not None:
            with contextlib.suppress(OSError):  # the server may have been quicker
                self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._reader.join(timeout=SECONDS_TO_ANSWER)
        self._connection.close()

    def next(self) -> tuple[str, Manifest]:
        """Return type and object of the next event."""
        try:
            event = self._events.get(timeout=SECONDS_TO_ANSWER)
        except queue.Empty:
            raise AssertionError(f"{self.request}: no event") from None
        assert event is not None, f"{self.request}: the stream ended instead of an event"
        assert set(event) == {"type", "object"}, f"{self.request}: {event}"
        return event["type"], event["object"]

    def take(self, count: int) -> list[tuple[str, str]]:
        """Return type and name of the next events."""
        events = [self.next() for _ in range(count)]
        return [(kind, thing["metadata"].get("name", "")) for kind, thing in events]

    def rest(self) -> list[tuple[str, Manifest]]:
        """Return every further event until the server ends the stream by itself."""
        events: list[tuple[str, Manifest]] = []
        while True:
            try:
                event = self._events.get(timeout=SECONDS_TO_ANSWER)
            except queue.Empty:
                raise AssertionError(f"{self.request}: the stream does not end") from None
            if event is None:
                return events
            events.append((event["type"], event["object"]))

    def _read(self) -> None:
        try:
            for line in iter(self._response.readline, b""):
                self._events.put(json.loads(line))
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass  # hung up in the middle of a line
        self._events.put(None)


class Api:
    """One user's way to one server, over one kept connection."""

    def __init__(self, url: str, ca_file: Path, token: str | None) -> None:
        self._host = url.partition("://")[2]
        self._ca_file = ca_file
        self._context = ssl.create_default_context(cafile=str(ca_file))
        self._token = token
        self._connection: http.client.HTTPSConnection | None = None

    def connect(self) -> http.client.HTTPSConnection:
        """Return a new connection."""
        return http.client.HTTPSConnection(
            self._host, timeout=SECONDS_TO_ANSWER, context=self._context
        )

    def another(self, token: str | None = None) -> Api:
        """Return the same way on a connection of its own, perhaps as another user."""
        return Api(f"https://{self._host}", self._ca_file, token or self._token)

    def close(self) -> None:
        """Close the kept connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def request(
        self,
        method: str,
        path: str,
        body: Manifest | list[Any] | bytes | None = None,
        *,
        query: Manifest | None = None,
        headers: Headers | None = None,
    ) -> Answer:
        """Send one request; a header of None is left out."""
        target = target_of(path, query or {})
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = self._headers({"Content-Type": "application/json"} if content else {}, headers or {})
        for attempt in ("kept", "fresh"):
            fresh = self._connection is None
            if self._connection is None:
                self._connection = self.connect()
            try:
                self._connection.request(method, target, body=content, headers=sent)
                response = self._connection.getresponse()
                read = response.read()
            except (ConnectionError, http.client.RemoteDisconnected):
                self.close()
                if fresh or attempt == "fresh":
                    raise
                continue  # the server closed the kept connection meanwhile
            if response.will_close:
                self.close()
            return Answer(
                f"{method} {target} {content or b''!r}", response.status, response.headers, read
            )
        raise AssertionError("the second attempt answers or raises")

    def get(self, path: str, *, headers: Headers | None = None, **query: Any) -> Answer:
        """Read a path."""
        return self.request("GET", path, query=query, headers=headers)

    def post(self, path: str, body: Manifest | bytes, **query: Any) -> Answer:
        """Post to a path."""
        return self.request("POST", path, body, query=query)

    def watch(self, path: str, *, headers: Headers | None = None, **query: Any) -> Watch:
        """Watch a path."""
        target = target_of(path, {"watch": "true", **query})
        return Watch(self, target, self._headers({}, headers or {}))

    def of(self, api_version: str, plural: str, namespace: str | None = None) -> Collection:
        """Return the collection of a kind, in one namespace or over all."""
        return Collection(self, collection_path(api_version, plural, namespace))

    def _headers(self, first: dict[str, str], more: Headers) -> dict[str, str]:
        headers: dict[str, str | None] = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "conformance/1.0",
            **first,
        }
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        headers.update(more)
        return {name: value for name, value in headers.items() if value is not None}


class Collection:
    """The objects of one kind, in one namespace or over all; keywords become query parameters."""

    def __init__(self, api: Api, path: str) -> None:
        self._api = api
        self.path = path

    def at(self, name: str, sub: str | None = None) -> str:
        """Return the path of an object or of its subresource."""
        return f"{self.path}/{quote(name)}" + (f"/{sub}" if sub else "")

    def create(self, manifest: Manifest, **query: Any) -> Answer:
        """Create an object."""
        return self._api.request("POST", self.path, manifest, query=query)

    def read(self, name: str, *, sub: str | None = None, **query: Any) -> Answer:
        """Read an object."""
        return self._api.request("GET", self.at(name, sub), query=query)

    def replace(self, manifest: Manifest, *, sub: str | None = None, **query: Any) -> Answer:
        """Replace an object by one of the same name."""
        name = manifest["metadata"]["name"]
        return self._api.request("PUT", self.at(name, sub), manifest, query=query)

    def patch(
        self,
        name: str,
        patch: Manifest | list[Any] | bytes,
        *,
        kind: str = MERGE_PATCH,
        sub: str | None = None,
        **query: Any,
    ) -> Answer:
        """Patch an object, with a merge patch unless told otherwise."""
        return self._api.request(
            "PATCH", self.at(name, sub), patch, query=query, headers={"Content-Type": kind}
        )

    def apply(
        self,
        manifest: Manifest,
        *,
        manager: str | None = "tester",
        sub: str | None = None,
        **query: Any,
    ) -> Answer:
        """Apply an object on the server's side."""
        if manager is not None:
            query["fieldManager"] = manager
        return self.patch(
            manifest["metadata"]["name"], manifest, kind=APPLY_PATCH, sub=sub, **query
        )

    def delete(self, name: str, options: Manifest | None = None, **query: Any) -> Answer:
        """Delete an object."""
        return self._api.request("DELETE", self.at(name), options, query=query)

    def delete_all(self, **query: Any) -> Answer:
        """Delete the whole collection, or what a selector chooses of it."""
        return self._api.request("DELETE", self.path, query=query)

    def watch(self, **query: Any) -> Watch:
        """Watch the collection."""
        return self._api.watch(self.path, **query)

    def names(self, **query: Any) -> list[str]:
        """Return the names in a list, in its order."""
        return [item["metadata"]["name"] for item in self.list(**query).ok()["items"]]

    # Last, because from here on `list` is not the type any more.
    def list(self, **query: Any) -> Answer:
        """List the collection."""
        return self._api.request("GET", self.path, query=query)


def collection_path(api_version: str, plural: str, namespace: str | None = None) -> str:
    """Return the path of a collection.

    >>> collection_path("v1", "pods", "ml")
    '/api/v1/namespaces/ml/pods'
    >>> collection_path("batch/v1", "jobs")
    '/apis/batch/v1/jobs'
    """
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"


def target_of(path: str, query: Manifest) -> str:
    """Return path and query as they stand in a request line."""
    words = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in query.items()
    }
    return f"{path}?{urlencode(words, doseq=True)}" if words else path


def changed(manifest: Manifest, **top_level: Any) -> Manifest:
    """Return a deep copy with some top-level members replaced."""
    return {**copy.deepcopy(manifest), **top_level}


def eventually(holds: Callable[[], bool]) -> None:
    """Wait until a claim about the server holds; for what controllers do in their own time."""
    deadline = time.monotonic() + SECONDS_TO_SETTLE
    while not holds():
        assert time.monotonic() < deadline, f"not within {SECONDS_TO_SETTLE} s"
        time.sleep(0.02)
