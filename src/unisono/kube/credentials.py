"""Proof of who we are, kept fresh: tokens, certificates, and what an exec plugin says.

    files        read again once a minute: tokens and certificates in pods are renewed in place
    exec plugin  asked again 60 s before what it gave expires, and once more after a 401
    the rest     never changes

One task at a time renews; the others wait for it and use what it found.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from unisono.kube.clock import Clock
from unisono.kube.config import Access, Login, Pem
from unisono.kube.exec_plugin import Credential, Run, ask_plugin, run_program
from unisono.kube.trouble import BadConfig

FILE_AGE_S = 60.0
# A token is renewed so long before it expires: a request may be on its way for a while.
RENEW_BEFORE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What is shown to the API."""

    headers: tuple[tuple[str, str], ...] = ()
    authority: bytes | None = None
    certificate: bytes = b""
    key: bytes = b""


class Credentials:
    """The proof of one user, for one cluster."""

    def __init__(
        self,
        access: Access,
        *,
        clock: Clock,
        environ: Mapping[str, str] = os.environ,
        interactive: bool = False,
        run: Run = run_program,
    ) -> None:
        """Prepare; nothing is read or run before the first request."""
        self._access = access
        self._clock = clock
        self._environ = environ
        self._interactive = interactive
        self._run = run
        self._lock = asyncio.Lock()
        self._proof: Proof | None = None
        self._fresh_until = 0.0  # of the files, monotonic
        self._given: Credential | None = None  # by the plugin

    async def proof(self) -> Proof:
        """Return what to show now."""
        if self._proof is not None and not self._is_stale():
            return self._proof
        async with self._lock:
            if self._proof is None or self._is_stale():
                self._proof = await self._renew()
            return self._proof

    async def renewed(self, refused: Proof) -> Proof | None:
        """Return another proof than one that got a 401, or None if there is no other."""
        async with self._lock:
            if self._proof is not None and self._proof != refused:
                return self._proof  # somebody else was here before
            self._given = None
            self._proof = await self._renew()
            return self._proof if self._proof != refused else None

    def _is_stale(self) -> bool:
        expires = self._given.expires_at if self._given is not None else None
        if expires is not None and self._clock.now() >= expires - RENEW_BEFORE_S:
            return True
        return self._clock.monotonic() >= self._fresh_until

    async def _renew(self) -> Proof:
        access, login = self._access, self._access.login
        given = await self._plugin_gave(login)
        token = given.token if given is not None else login.token
        if login.token_file is not None:
            token = _read(login.token_file, "token").decode().strip()
        certificate, key = _content(login.certificate), _content(login.key)
        if given is not None and given.certificate:
            certificate, key = given.certificate, given.key
        if bool(certificate) != bool(key):
            raise BadConfig("a client certificate needs its key, and a key its certificate")
        self._fresh_until = self._clock.monotonic() + FILE_AGE_S
        return Proof(
            headers=tuple(_headers(login, token, over_tls=access.server.startswith("https://"))),
            authority=None if access.authority is None else _content(access.authority),
            certificate=certificate,
            key=key,
        )

    async def _plugin_gave(self, login: Login) -> Credential | None:
        """Return what the plugin gave last, or ask it if that is too old."""
        if login.plugin is None:
            return None
        given = self._given
        if given is not None and (
            given.expires_at is None or self._clock.now() < given.expires_at - RENEW_BEFORE_S
        ):
            return given
        self._given = await ask_plugin(
            login.plugin,
            clock=self._clock,
            environ=self._environ,
            interactive=self._interactive,
            run=self._run,
        )
        return self._given


def _headers(login: Login, token: str, *, over_tls: bool) -> list[tuple[str, str]]:
    headers = list(login.impersonation)
    # Nothing secret goes over an open wire; kubectl leaves it out there, too.
    if over_tls and token:
        headers.append(("Authorization", f"Bearer {token}"))
    elif over_tls and login.username:
        pair = base64.b64encode(f"{login.username}:{login.password}".encode()).decode()
        headers.append(("Authorization", f"Basic {pair}"))
    return headers


def _content(pem: Pem | None) -> bytes:
    if pem is None:
        return b""
    return _read(pem, "certificate or key") if isinstance(pem, Path) else pem


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadConfig(f"{path}: the {what} cannot be read: {error.strerror}") from error
