"""The kubeconfig of an instance: its address, its authority, and the token of its owner."""

from __future__ import annotations

import base64
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


def kubeconfig(*, url: str, authority_pem: bytes, token: str, name: str) -> dict[str, Any]:
    """Return a kubeconfig with one cluster, one user and one context, all of the same name."""
    authority = base64.b64encode(authority_pem).decode()
    cluster = {"server": url, "certificate-authority-data": authority}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def merged(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Return a user's kubeconfig with ours added, and ours chosen.

    Entries of our names are replaced; everything else stays as it is.
    """
    made = {"apiVersion": "v1", "kind": "Config", **theirs}
    for section in ("clusters", "users", "contexts"):
        names = {entry["name"] for entry in ours[section]}
        kept = [entry for entry in made.get(section) or () if entry.get("name") not in names]
        made[section] = [*kept, *ours[section]]
    made["current-context"] = ours["current-context"]
    return made


def write_kubeconfig(
    path: Path, *, url: str, authority_pem: bytes, token: str, name: str = "unisono"
) -> None:
    """Write it, readable by its owner only; leave the file alone if it says the same."""
    config = kubeconfig(url=url, authority_pem=authority_pem, token=token, name=name)
    content = yaml.safe_dump(config, sort_keys=False).encode()
    if not path.exists() or path.read_bytes() != content:
        write_privately(path, content)


def read_token(path: Path) -> str:
    """Return the token in a file of ours; empty if there is none."""
    try:
        config: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
        token = config["users"][0]["user"]["token"]
    except (OSError, UnicodeDecodeError, yaml.YAMLError, LookupError, TypeError):
        return ""
    return token if isinstance(token, str) else ""


# ---- files for their owner alone -----------------------------------------------------------------


_OTHERS = 0o077


class Exposed(Exception):
    """A file with a secret that others can read; the message says how to close it."""


def refuse_exposed(path: Path) -> None:
    """Raise if there is such a file and others than its owner can read or change it."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return
    if status.st_mode & _OTHERS:
        mode = "700" if path.is_dir() else "600"
        raise Exposed(
            f"{path} is open to other users of this machine (mode {status.st_mode & 0o777:04o}); "
            f"close it with: chmod {mode} {shlex.quote(str(path))}"
        )
    if status.st_uid != os.geteuid():
        raise Exposed(
            f"{path} belongs to another user; take it over with: "
            f"chown $(id -u) {shlex.quote(str(path))}"
        )


def write_privately(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    temporary = path.with_name(f"{path.name}.new")
    temporary.unlink(missing_ok=True)
    # O_EXCL: no file or link that was put there is filled.
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
