"""Programs that log us in: `aws eks get-token` and the like (client.authentication.k8s.io).

The program is started without a shell and without a terminal unless there is one, told about the
cluster in `KUBERNETES_EXEC_INFO`, and prints an ExecCredential. The loop goes on meanwhile.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import msgspec
import orjson

from unisono.kube.clock import Clock, within
from unisono.kube.config import ExecPlugin
from unisono.kube.trouble import BadConfig, LoginFailed

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
    env = {**environ, **plugin.env, "KUBERNETES_EXEC_INFO": _told(plugin, with_person)}
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
        said = err[-_MOST_SHOWN:].decode(errors="replace").strip()
        raise LoginFailed(f"exec plugin {plugin.command} failed with exit code {code}: {said}")
    return _credential(plugin, out)


def _told(plugin: ExecPlugin, interactive: bool) -> str:
    """Return what the program finds in KUBERNETES_EXEC_INFO."""
    spec: dict[str, object] = {"interactive": interactive}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    told = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    return orjson.dumps(told).decode()


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
