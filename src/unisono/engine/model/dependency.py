"""Dependencies: what has to become of other workloads before one may start (spec time §11)."""

from __future__ import annotations

from typing import Literal

import msgspec

from unisono.engine.model.names import Instant

DependencyKind = Literal["afterok", "afterany", "afternotok", "after", "singleton"]


class Dependency(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to wait for."""

    kind: DependencyKind
    on: str = ""  # namespace/name of a job; a singleton names nobody
    delay_ms: int = 0  # `after`: so long after it has started


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a job."""

    job: str  # namespace/name
    succeeded: bool
    ended_at: Instant
    started_at: Instant | None = None  # None: it never did, or nobody knows
