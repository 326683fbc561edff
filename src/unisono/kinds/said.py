"""What a job or a Workload says of itself in annotations of ours: priority, times, dependencies.

Both are read alike, so that a job and the Workload that stands for it ask for the same.
"""

from __future__ import annotations

import msgspec

from unisono.engine.model.dependency import Dependency
from unisono.engine.model.multifactor import SubmitOptions
from unisono.engine.model.names import Instant
from unisono.engine.model.provisioning import ProvisioningOptions
from unisono.engine.model.workload import Workload
from unisono.kinds.arrays import array_of
from unisono.kinds.buying import buying_of
from unisono.kinds.dependencies import dependencies_of
from unisono.kinds.meta import ObjectMeta
from unisono.kinds.notes import Notes
from unisono.kinds.policy.multifactor import turn_of
from unisono.kinds.times import Times, times_of


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What was read."""

    turn: SubmitOptions
    times: Times
    array: str
    array_limit: int
    depends: tuple[Dependency, ...]
    depends_on_any: bool
    buying: ProvisioningOptions

    def of(self, workload: Workload) -> Workload:
        """Return the workload with all of it."""
        return msgspec.structs.replace(
            workload,
            turn=self.turn,
            time_limit_ms=self.times.limit_ms,
            limit_from=self.times.limit_from,
            least_limit_ms=self.times.least_ms,
            begin_at=self.times.begin_at,
            deadline=self.times.deadline,
            array=self.array,
            array_limit=self.array_limit,
            depends=self.depends,
            depends_on_any=self.depends_on_any,
            buying=self.buying,
        )


def read_said(
    metadata: ObjectMeta,
    namespace: str,
    notes: Notes,
    *,
    created_at: Instant,
    active_s: int | None,
) -> Said:
    """Read labels and annotations; what cannot be read is a problem of that field."""
    annotations = metadata.annotations
    times = times_of(annotations, notes, created_at=created_at, active_s=active_s)
    array, array_limit = array_of(annotations, namespace, notes)
    depends, on_any = dependencies_of(annotations, namespace, notes)
    return Said(
        turn=turn_of(metadata, notes),
        times=times,
        array=array,
        array_limit=array_limit,
        depends=depends,
        depends_on_any=on_any,
        buying=buying_of(annotations, notes),
    )
