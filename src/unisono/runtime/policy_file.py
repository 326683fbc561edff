"""The policy of an embedded cluster: a file that is given once and kept with the instance.

The controllers read all of it. The API has to know which jobs are managed, so that much of it (all
of a Policy, the same fields of a Kueue Configuration) is stored there as the Policy `unisono`.
Without a file, a Policy in the API counts from the next start on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unisono.engine.model.errors import InvalidManifest
from unisono.runtime.instance import Instance
from unisono.runtime.log import warn
from unisono.runtime.manifest_files import File, files_of

if TYPE_CHECKING:
    from unisono.kinds.policy.settings import Settings

NAME = "unisono"
API_VERSION = "unisono.dev/v1"
NONE = "none"
# What of Kueue's configuration says which jobs are managed, and what they cost.
_SHARED = ("manageJobsWithoutQueueName", "managedJobsNamespaceSelector", "resources")


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the operator chose, and how the API is to know it."""

    settings: Settings
    stored: Mapping[str, Any]


def chosen_policy(instance: Instance, given: str | None) -> Chosen | None:
    """Return the policy of an instance, and keep a new one; None if there is none."""
    kept = instance.directory / "policy.yaml"
    if given == NONE:
        kept.unlink(missing_ok=True)
        return None
    if given is None:
        return _read([(str(kept), kept.read_bytes())]) if kept.exists() else None
    files = files_of(given)
    found = _read(files)
    kept.write_bytes(b"\n---\n".join(content for _, content in files))
    return found


def policy_of(given: str) -> Chosen:
    """Return the policy of a file; nothing is kept."""
    return _read(files_of(path_of(given)))


def _read(files: list[File]) -> Chosen:
    # Most have no policy, and reading one takes a lot to load.
    from unisono.kinds.documents import read_documents
    from unisono.kinds.snapshot.build import read_settings

    settings, problems, warnings = read_settings(files)
    if problems:
        raise InvalidManifest("--policy", "\n".join(one.line() for one in problems))
    for warning in warnings:
        warn(warning.line())
    stored: dict[str, Any] = {}
    documents = [one for name, content in files for one in read_documents(name, content).documents]
    for document in sorted(documents, key=lambda one: one.kind):  # what a Policy says wins
        if document.kind == "SchedulingPolicy":
            continue  # priorities say nothing about what is managed
        raw = dict(document.raw)
        keys = _SHARED if document.kind == "Configuration" else tuple(raw)
        stored |= {key: raw[key] for key in keys if key in raw}
    metadata = {"name": NAME}
    whole = {**stored, "apiVersion": API_VERSION, "kind": "Policy", "metadata": metadata}
    return Chosen(settings, whole)


def path_of(text: str) -> str:
    """Refuse a file that is not there before anything starts."""
    if text != NONE and not Path(text).exists():
        raise InvalidManifest("--policy", f"there is no file {text}")
    return text
