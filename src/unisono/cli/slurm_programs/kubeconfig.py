"""How Slurm's programs reach clusters that are not ours: whatever kubectl would take."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import tempfile
from pathlib import Path

from unisono.engine.model.errors import InvalidManifest
from unisono.kube.errors import KubeError
from unisono.kube.kubeconfig import Access, ExecPlugin, Pem, find_access
from unisono.slurm.client import ApiAccess

_PLUGIN_SECONDS = 60


def api_access(path: str, context: str) -> ApiAccess:
    """Return the address of a cluster and our credentials there."""
    try:
        found = find_access(path=Path(path) if path else None, context=context)
    except KubeError as error:
        raise InvalidManifest("", str(error)) from error
    return ApiAccess(
        server=found.server,
        namespace=found.namespace,
        authority=_text(found.authority),
        token=_token(found),
        certificate=_certificate(found),
        skip_verify=found.skip_verify,
    )


def _text(pem: Pem | None) -> str:
    if pem is None:
        return ""
    return pem.decode() if isinstance(pem, bytes) else pem.read_text(encoding="ascii")


def _token(access: Access) -> str:
    login = access.login
    if login.token_file is not None:
        return login.token_file.read_text(encoding="ascii").strip()
    if login.plugin is not None:
        return _asked(login.plugin)
    return login.token


def _asked(plugin: ExecPlugin) -> str:
    """Ask the program that logs us in for a token."""
    info = {
        "apiVersion": plugin.api_version,
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }
    answer = subprocess.run(
        [plugin.command, *plugin.args],
        env={**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": json.dumps(info)},
        capture_output=True,
        timeout=_PLUGIN_SECONDS,
        check=False,
    )
    try:
        return str(json.loads(answer.stdout)["status"]["token"])
    except (ValueError, KeyError, TypeError):
        hint = plugin.install_hint or answer.stderr.decode(errors="replace").strip()
        raise InvalidManifest("", f"{plugin.command} gave no token: {hint}") from None


def _certificate(access: Access) -> tuple[str, str] | None:
    """Return files with the certificate and the key; ssl reads them from nowhere else."""
    login = access.login
    if login.certificate is None or login.key is None:
        return None
    return _file(login.certificate), _file(login.key)


def _file(pem: Pem) -> str:
    if isinstance(pem, Path):
        return str(pem)
    handle, name = tempfile.mkstemp(prefix="unisono-", suffix=".pem")  # for its owner alone
    with os.fdopen(handle, "wb") as file:
        file.write(pem)
    atexit.register(os.unlink, name)
    return name
