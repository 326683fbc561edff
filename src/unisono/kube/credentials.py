"""Credentials, kept fresh: tokens, certificates, and what an exec plugin says.

    files        read again once a minute: tokens and certificates in pods are renewed in place
    exec plugin  asked again 60 s before what it gave expires, and once more after a 401
    the rest     never changes

One task at a time renews; the others wait for it and use what it found.
"""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec
import orjson

from unisono.kube.clock import Clock, within
from unisono.kube.errors import BadConfig, LoginFailed
from unisono.kube.kubeconfig import Access, ExecPlugin, Login, Pem

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
# Some of them open a browser and wait for a person; none takes longer than this without one.
PATIENCE_S = 60.0
PATIENCE_WITH_A_PERSON_S = 600.0
# Of what a failing program prints, the end is shown: that is where the reason is.
_MOST_SHOWN = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """What a program gave us; `expires_at` is in seconds since 1970."""

    token: str = ""
    certificate: bytes = b""
    key: bytes = b""
    expires_at: float | None = None


class Run(Protocol):
    """How a program is run; tests pass their own."""

    async def __call__(
        self, command: tuple[str, ...], env: Mapping[str, str], *, interactive: bool
    ) -> tuple[int, bytes, bytes]:
        """Return exit code, stdout and stderr."""


async def run_program(
    command: tuple[str, ...], env: Mapping[str, str], *, interactive: bool
) -> tuple[int, bytes, bytes]:
    """Run a program; its stderr goes to the person if there is one."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env=dict(env),
        stdin=None if interactive else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if interactive else subprocess.PIPE,
    )
    try:
        out, err = await process.communicate()
    finally:
        if process.returncode is None:  # we are being cancelled
            process.kill()
            await process.wait()
    return process.returncode or 0, out, err or b""


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    status: _Answer | None = None


_decode = msgspec.json.Decoder(_ExecCredential).decode


async def ask_plugin(
    plugin: ExecPlugin,
    *,
    clock: Clock,
    environ: Mapping[str, str],
    interactive: bool = False,
    run: Run = run_program,
) -> Credential:
    """Run the program once; raises BadConfig with what it said if that fails."""
    if plugin.api_version not in API_VERSIONS:
        raise BadConfig(
            f"exec plugin {plugin.command}: apiVersion {plugin.api_version!r} is not one of "
            f"{', '.join(API_VERSIONS)}"
        )
    if plugin.interactive_mode == "Always" and not interactive:
        raise BadConfig(
            f"exec plugin {plugin.command}: interactiveMode is Always, but there is no terminal"
        )
    with_person = interactive and plugin.interactive_mode != "Never"
    env = {**environ, **plugin.env, "KUBERNETES_EXEC_INFO": _exec_info(plugin, with_person)}
    patience = PATIENCE_WITH_A_PERSON_S if with_person else PATIENCE_S
    running = run((plugin.command, *plugin.args), env, interactive=with_person)
    try:
        code, out, err = await within(clock, patience, running)
    except FileNotFoundError as error:
        hint = f"; {plugin.install_hint.strip()}" if plugin.install_hint else ""
        raise BadConfig(f"exec plugin {plugin.command} is not installed{hint}") from error
    except TimeoutError as error:
        raise LoginFailed(
            f"exec plugin {plugin.command} gave no answer within {patience:g} s"
        ) from error
    except OSError as error:
        raise BadConfig(f"exec plugin {plugin.command} cannot be run: {error}") from error
    if code != 0:
        output = err[-_MOST_SHOWN:].decode(errors="replace").strip()
        raise LoginFailed(f"exec plugin {plugin.command} failed with exit code {code}: {output}")
    return _credential(plugin, out)


def _exec_info(plugin: ExecPlugin, interactive: bool) -> str:
    """Return what the program finds in KUBERNETES_EXEC_INFO."""
    spec: dict[str, object] = {"interactive": interactive}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    return orjson.dumps(info).decode()


def _credential(plugin: ExecPlugin, out: bytes) -> Credential:
    """Read what the program printed."""
    try:
        answer = _decode(out)
    except msgspec.DecodeError as error:
        raise LoginFailed(
            f"exec plugin {plugin.command} printed no ExecCredential: {error}"
        ) from error
    if answer.kind != "ExecCredential" or answer.api_version != plugin.api_version:
        raise LoginFailed(
            f"exec plugin {plugin.command} printed {answer.kind} {answer.api_version}; "
            f"ExecCredential {plugin.api_version} was expected"
        )
    status = answer.status
    if status is None or not (status.token or status.client_certificate_data):
        raise LoginFailed(
            f"exec plugin {plugin.command} printed neither a token nor a client certificate"
        )
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise LoginFailed(
            f"exec plugin {plugin.command} printed a certificate without key, or a key without"
        )
    return Credential(
        token=status.token,
        certificate=status.client_certificate_data.encode(),
        key=status.client_key_data.encode(),
        expires_at=_instant(status.expiration_timestamp),
    )


def _instant(when: datetime | None) -> float | None:
    if when is None:
        return None
    return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()


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
                return self._proof  # another task renewed it meanwhile
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
