"""A lightweight API client for short-lived programs: one connection, one call after another.

The other client (`client`) watches, repeats and shares a connection among many tasks, and takes a
fifth of a second to load. `sbatch` and `squeue` are called from scripts, thousands of times; they
need a handful of plain calls: `socket` and `json` of the standard library are enough. An instance
of this machine is asked through the socket in its folder; anything else by TLS, which costs more
time than all the calls.
"""

from __future__ import annotations

import binascii
import json
import os
import re
import socket
import stat

from unisono.slurm.lite_typing import Json, NamedTuple

_TIMEOUT_SECONDS = 30.0
_PIECE = 1 << 18
# The name of an instance's socket, beside its kubeconfig.
SOCKET_NAME = "api.sock"
_READ = ("server", "certificate-authority-data", "token", "current-context")
MERGE = "application/merge-patch+json"


class ClientError(Exception):
    """The API did not answer, or refused the request."""

    def __init__(self, message: str, status: int = 0) -> None:
        """Take the message and the HTTP status (0: no answer)."""
        super().__init__(message)
        self.status = status


class ApiAccess(NamedTuple):
    """The address of the API, the authority to trust, and the credentials."""

    server: str
    namespace: str = "default"
    authority: str = ""  # PEM, or the same as kubeconfigs have it, in base64
    token: str = ""
    certificate: tuple[str, str] | None = None  # files: certificate and key
    skip_verify: bool = False
    unix_socket: str = ""  # the socket of an instance on this machine


def access_of(kubeconfig: str) -> ApiAccess | None:
    """Read a kubeconfig of our own making; None if it is another one.

    Ours has one cluster, one user and one line for each value, so no parser of YAML is needed.
    """
    try:
        with open(kubeconfig, encoding="utf-8") as file:
            text = file.read()
    except OSError:
        return None
    lines = re.findall(r"^ *(?:- )?(\S+): (\S+)$", text, re.MULTILINE)
    values = {key: value.strip("'\"") for key, value in lines if key in _READ}
    if sorted(key for key, _ in lines if key in _READ) != sorted(_READ):
        return None  # not each of them once
    if "namespace:" in text or "exec:" in text:
        return None
    authority = values["certificate-authority-data"]
    if re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", authority) is None:
        return None
    unix_socket = _socket_of(os.path.dirname(kubeconfig))
    return ApiAccess(
        values["server"], authority=authority, token=values["token"], unix_socket=unix_socket
    )


def _socket_of(directory: str) -> str:
    """Return the socket of an instance, only in a folder that no other user can write."""
    try:
        found = os.stat(directory or ".")
    except OSError:
        return ""
    is_private = found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077
    path = os.path.join(directory, SOCKET_NAME)
    return path if is_private and os.path.exists(path) else ""


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
        raise ValueError(f"{server} is not a URL; write https://HOST:PORT")
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


def _connect_unix(unix_socket: str) -> socket.socket | None:
    """Connect to an instance of this machine; None if nothing listens on its socket."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.settimeout(_TIMEOUT_SECONDS)
    try:
        made.connect(unix_socket)
    except OSError:
        made.close()
        return None
    return made


def _secured(plain: socket.socket, host: str, access: ApiAccess) -> socket.socket:
    """Return a connection over which only the right server is spoken to."""
    import ssl  # a fifth of the time that a short program needs to load

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if access.skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif access.authority:
        context.load_verify_locations(cadata=_pem(access.authority))
    else:
        context.load_default_certs()
    if access.certificate is not None:
        context.load_cert_chain(*access.certificate)
    return context.wrap_socket(plain, server_hostname=host.encode())


def _pem(authority: str) -> str:
    """Return certificates as text; kubeconfigs have them in base64.

    >>> _pem("LS0tLS1CRUdJTg=="), _pem("-----BEGIN")
    ('-----BEGIN', '-----BEGIN')
    """
    if authority.lstrip().startswith("-----BEGIN"):
        return authority
    return binascii.a2b_base64(authority).decode()


def _field(line: bytes) -> tuple[bytes, bytes, bytes]:
    return line.partition(b":")


class ApiClient:
    """One API, as one user."""

    def __init__(self, access: ApiAccess) -> None:
        """Take where it is; nothing is sent yet."""
        self._access = access
        self._socket: socket.socket | None = None
        self._rest = b""
        self._warning = b""  # the header of the last answer
        self.namespace = access.namespace

    def warnings(self) -> list[str]:
        """Return what the API warned about in its last answer."""
        found = re.findall(r'299 \S+ "((?:[^"\\]|\\.)*)"', self._warning.decode(errors="replace"))
        return [re.sub(r"\\(.)", r"\1", one) for one in found]

    def warnings_about(self, path: str, obj: Json) -> list[str]:
        """Return what the API would warn about if an object were made; nothing is stored."""
        self.call("POST", f"{path}?dryRun=All", obj)
        return self.warnings()

    # ---- objects ------------------------------------------------------------------------------

    def get(self, path: str) -> Json:
        """Return what is found at a path."""
        found: Json = json.loads(self.call("GET", path))
        return found

    def find(self, path: str) -> Json | None:
        """Return what is found at a path; None if there is nothing."""
        try:
            return self.get(path)
        except ClientError as error:
            if error.status == 404:
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
        """Send one request and return the body of the answer; raise ClientError."""
        content = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        try:
            status, answer = self._exchange(method, path, content, kind)
        except (OSError, ValueError) as error:  # a TLS failure is an OSError, too
            self.close()
            is_here = (
                isinstance(error, ConnectionRefusedError) and "//127.0.0.1:" in self._access.server
            )
            advice = "; start the cluster with `unisono up`" if is_here else ""
            raise ClientError(f"{self._access.server}: {error}{advice}") from error
        if status >= 300:
            raise ClientError(_message(answer, status), status)
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
        except OSError as error:
            self.close()
            if is_new or method != "GET" or isinstance(error, TimeoutError):
                raise
            return self._exchange(method, path, content, kind)  # it had been kept for too long

    def _connect(self) -> socket.socket:
        if self._access.unix_socket:
            near = _connect_unix(self._access.unix_socket)
            if near is not None:
                self._socket = near
                return near
        where = _place(self._access.server)
        plain = _dial(where)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not where.is_safe:
            self._socket = plain
            return plain
        self._socket = _secured(plain, where.host, self._access)
        return self._socket

    def _answer(self, sock: socket.socket) -> tuple[int, bytes]:
        head = self._until(sock, b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        status = int(first.split(b" ", 2)[1])
        named = [(name.strip().lower(), value.strip()) for name, _, value in map(_field, lines)]
        headers = dict(named)
        # An API may send one field for each of them.
        self._warning = b", ".join(value for name, value in named if name == b"warning")
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
