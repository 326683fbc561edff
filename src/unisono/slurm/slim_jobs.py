"""Jobs as squeue needs them, decoded without the rest: ten thousand take a tenth of a second.

Apart from `listing` because it loads msgspec, which only a long list is worth.
"""

from __future__ import annotations

from typing import Any, TypedDict

import msgspec

from unisono.slurm.lite_typing import Json


class _Metadata(TypedDict, total=False):
    name: str
    namespace: str
    labels: dict[str, str]
    creationTimestamp: str


class _Group(TypedDict, total=False):
    name: str
    nodes: int
    tasks: int


class _Spec(TypedDict, total=False):
    jobId: int
    jobName: str
    user: str
    userId: int
    groupId: int
    command: str
    workDir: str
    options: dict[str, str]
    tasks: int
    groups: list[_Group]
    array: dict[str, Any]
    task: dict[str, int]


class _Job(TypedDict, total=False):
    metadata: _Metadata
    spec: _Spec
    status: dict[str, Any]


class _Jobs(TypedDict, total=False):
    items: list[_Job]


def jobs_of(listing: bytes) -> list[Json]:
    """Return the jobs of a list, as plain dictionaries with what is named above."""
    found: Any = msgspec.json.decode(listing, type=_Jobs)
    jobs: list[Json] = found.get("items") or []
    return jobs
