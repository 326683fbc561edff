"""A client for programs that live for a moment: one connection, calls one after another.

The other client (`client`) watches, repeats and shares a connection among many tasks, and takes a
fifth of a second to load. `sbatch` and `squeue` are called from scripts, thousands of times; they
need a handful of plain calls. Only `ssl`, `socket` and `json` of the standard library.
"""

from __future__ import annotations

import base64
import json
import re
import socket
import ssl
from typing import Any, NamedTuple

Json = dict[str, Any]

_TIMEOUT_SECONDS = 30.0
_PIECE = 1 << 18
MERGE = "application/merge-patch+json"


class QuickTrouble(Exception):
    """The API could not be asked, or said no."""

    def __init__(self, message: str, status: int = 0) -> None:
        """Take what it said, and the code of HTTP (0: nobody answered)."""
        super().__init__(message)
        self.status = status


class QuickAccess(NamedTuple):
    """Where the API is, whom to trust, who we are."""

    server: str
    namespace: str = "default"
    authority: str = ""  # PEM
    token: str = ""
    certificate: tuple[str, str] | None = None  # files: certificate and key
    skip_verify: bool = False


def access_of(kubeconfig: str) -> QuickAccess | None:
    """Read a kubeconfig of our own making; None if it is another one.

    Ours has one cluster, one user and one line for each value, so no parser of YAML is needed.
    """
    try:
        with open(kubeconfig, encoding="utf-8") as file:
            text = file.read()
    except OSError:
        return None
    values = {}
    for key in ("server", "certificate-authority-data", "token", "current-context"):
        found = re.findall(rf"^ *(?:- )?{key}: (\S+)$", text, re.MULTILINE)
        if len(found) != 1:
            return None
        values[key] = found[0].strip("'\"")
    if "namespace:" in text or "exec:" in text:
        return None
    try:
        authority = base64.b64decode(values["certificate-authority-data"]).decode()
    except ValueError:
        return None
    return QuickAccess(values["server"], authority=authority, token=values["token"])


class _Place(NamedTuple):
    host: str
    port: int
    path: str
    is_safe: bool


def _place(server: str) -> _Place:
    """Take an address apart.

    >>> tuple(_place("https://[::1]:6443/k8s/")), tuple(_place("http://cluster"))
    (('::1', 6443, '/k8s', True), ('cluster', 80, '', False))
    """
    found = re.fullmatch(r"(https?)://(\[[^\]]+\]|[^:/]+)(?::(\d+))?(/.*)?", server)
    if found is None:
        raise ValueError(f"{server} is no address")
    is_safe = found[1] == "https"
    port = int(found[3] or (443 if is_safe else 80))
    return _Place(found[2].strip("[]"), port, (found[4] or "").rstrip("/"), is_safe)


def _dial(where: _Place) -> socket.socket:
    """Connect; a plain address is not looked up, which would load tables of international names."""
    if re.fullmatch(r"[0-9.]+", where.host) is None:
        return socket.create_connection((where.host, where.port), timeout=_TIMEOUT_SECONDS)
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.settimeout(_TIMEOUT_SECONDS)
    try:
        made.connect((where.host, where.port))
    except OSError:
        made.close()
        raise
    return made


class Quick:
    """One API, as one user."""

    def __init__(self, access: QuickAccess) -> None:
        """Take where it is; nothing is sent yet."""
        self._access = access
        self._socket: socket.socket | None = None
        self._rest = b""
        self.namespace = access.namespace

    # ---- objects ------------------------------------------------------------------------------

    def get(self, path: str) -> Json:
        """Return what is found at a path."""
        found: Json = json.loads(self.call("GET", path))
        return found

    def find(self, path: str) -> Json | None:
        """Return what is found at a path; None if there is nothing."""
        try:
            return self.get(path)
        except QuickTrouble as trouble:
            if trouble.status == 404:
                return None
            raise

    def create(self, path: str, obj: Json) -> Json:
        """Make an object."""
        made: Json = json.loads(self.call("POST", path, obj))
        return made

    def patch(self, path: str, changes: Json) -> Json:
        """Change fields of an object."""
        made: Json = json.loads(self.call("PATCH", path, changes, kind=MERGE))
        return made

    def delete(self, path: str) -> None:
        """Delete an object."""
        self.call("DELETE", path)

    def call(
        self, method: str, path: str, body: object = None, *, kind: str = "application/json"
    ) -> bytes:
        """Send one request and return the body of the answer; raise QuickTrouble."""
        content = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        try:
            status, answer = self._exchange(method, path, content, kind)
        except (OSError, ssl.SSLError, ValueError) as error:
            self.close()
            raise QuickTrouble(f"{self._access.server}: {error}") from error
        if status >= 300:
            raise QuickTrouble(_message(answer, status), status)
        return answer

    def close(self) -> None:
        """End the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            self._rest = b""

    # ---- HTTP ---------------------------------------------------------------------------------

    def _exchange(self, method: str, path: str, content: bytes, kind: str) -> tuple[int, bytes]:
        is_new = self._socket is None
        sock = self._socket or self._connect()
        where = _place(self._access.server)
        lines = [
            f"{method} {where.path}{path} HTTP/1.1",
            f"Host: {where.host}:{where.port}",
            "Accept: application/json",
            "User-Agent: unisono",
            f"Content-Length: {len(content)}",
        ]
        if content:
            lines.append(f"Content-Type: {kind}")
        if self._access.token:
            lines.append(f"Authorization: Bearer {self._access.token}")
        head = "\r\n".join(lines).encode() + b"\r\n\r\n"
        try:
            sock.sendall(head + content)
            return self._answer(sock)
        except (ConnectionError, ssl.SSLEOFError):
            self.close()
            if is_new or method != "GET":
                raise
            return self._exchange(method, path, content, kind)  # it had been kept for too long

    def _connect(self) -> socket.socket:
        where = _place(self._access.server)
        plain = _dial(where)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not where.is_safe:
            self._socket = plain
            return plain
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if self._access.skip_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif self._access.authority:
            context.load_verify_locations(cadata=self._access.authority)
        else:
            context.load_default_certs()
        if self._access.certificate is not None:
            context.load_cert_chain(*self._access.certificate)
        self._socket = context.wrap_socket(plain, server_hostname=where.host.encode())
        return self._socket

    def _answer(self, sock: socket.socket) -> tuple[int, bytes]:
        head = self._until(sock, b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        status = int(first.split(b" ", 2)[1])
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(b":") for line in lines)
        }
        if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
            return status, self._chunks(sock)
        return status, self._exactly(sock, int(headers.get(b"content-length", b"0")))

    def _chunks(self, sock: socket.socket) -> bytes:
        parts = []
        while True:
            size = int(self._until(sock, b"\r\n").split(b";")[0], 16)
            parts.append(self._exactly(sock, size))
            self._exactly(sock, 2)
            if not size:
                return b"".join(parts)

    def _until(self, sock: socket.socket, end: bytes) -> bytes:
        while end not in self._rest:
            self._rest += self._more(sock)
        found, _, self._rest = self._rest.partition(end)
        return found

    def _exactly(self, sock: socket.socket, size: int) -> bytes:
        if len(self._rest) >= size:
            found, self._rest = self._rest[:size], self._rest[size:]
            return found
        parts, have = [self._rest], len(self._rest)
        while have < size:
            piece = self._more(sock)
            parts.append(piece)
            have += len(piece)
        whole = b"".join(parts)
        self._rest = whole[size:]
        return whole[:size]

    def _more(self, sock: socket.socket) -> bytes:
        piece = sock.recv(_PIECE)
        if not piece:
            raise ConnectionResetError("the connection ended in the middle of an answer")
        return piece


def _message(answer: bytes, status: int) -> str:
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return answer.decode(errors="replace")[:200] or f"HTTP {status}"
