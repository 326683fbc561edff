"""How the scheduler itself is: its progress, what it had to leave out, and what failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from unisono.monitor.exposition import Family, Sample, single


class SchedulerHealth(NamedTuple):
    """The scheduler at one time; this is one that is well and has done nothing yet."""

    quarantined: Mapping[tuple[str, str], int] = {}  # objects by kind and stage
    quarantines: int = 0  # how often an object was put there
    refused_plans: int = 0
    rebuilds: int = 0
    failing_keys: int = 0
    planned_at: float = 0.0
    written_at: float = 0.0
    behind_s: float = 0.0
    unwritten_s: float = 0.0
    unexplained_s: float = 0.0


def families(health: SchedulerHealth) -> Iterator[Family]:
    """Yield everything, as it is now."""
    yield Family(
        "unisono_quarantined_objects",
        "gauge",
        "Objects that the scheduler goes on without, by kind and by what failed.",
        [
            Sample({"kind": kind, "stage": stage}, count)
            for (kind, stage), count in sorted(health.quarantined.items())
        ],
    )
    quarantines = "How often an object was put into quarantine."
    yield single("unisono_quarantines_total", "counter", quarantines, health.quarantines)
    refused = "Plans that the auditor refused: each is a bug, and kept as a recording."
    yield single("unisono_refused_plans_total", "counter", refused, health.refused_plans)
    rebuilds = "How often the scheduler built its state anew after an exception."
    yield single("unisono_state_rebuilds_total", "counter", rebuilds, health.rebuilds)
    failing = "Keys on which a controller failed the last time."
    yield single("unisono_failing_keys", "gauge", failing, health.failing_keys)
    planned = "When the last plan was made."
    yield single("unisono_last_plan_timestamp_seconds", "gauge", planned, health.planned_at)
    written = "When a decision was last written."
    yield single("unisono_last_write_timestamp_seconds", "gauge", written, health.written_at)
    behind = "For how long no plan could be made; 0 if all is well."
    yield single("unisono_scheduler_behind_seconds", "gauge", behind, health.behind_s)
    unwritten = "For how long no decision could be written; 0 if all is well."
    yield single("unisono_unwritten_seconds", "gauge", unwritten, health.unwritten_s)
    unexplained = "How long the oldest workload without an explanation has waited."
    yield single("unisono_unexplained_seconds", "gauge", unexplained, health.unexplained_s)
