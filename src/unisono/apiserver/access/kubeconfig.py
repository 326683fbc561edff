"""The file that tells kubectl where the instance is, whom to trust, and who it is itself."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from unisono.apiserver.access.files import write_privately


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
    """Return somebody's kubeconfig with ours added, and ours chosen.

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
