"""Dependencies: how other jobs must end, or start, before a workload may (backfill §11)."""

from __future__ import annotations

from typing import Literal

import msgspec

from unisono.engine.model.names import Instant

DependencyKind = Literal["afterok", "afterany", "afternotok", "after", "singleton"]


class Dependency(msgspec.Struct, frozen=True, kw_only=True):
    """One dependency."""

    kind: DependencyKind
    on: str = ""  # namespace/name of a job; empty for a singleton
    delay_ms: int = 0  # `after`: time since the job has started


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How a job ended."""

    job: str  # namespace/name
    succeeded: bool
    ended_at: Instant
    started_at: Instant | None = None  # None: never, or unknown
