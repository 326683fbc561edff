"""Who waits, in turn, and when each is to start: rows of `unisono plan`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.cli.decide.decision import MOST_ESTIMATES
from unisono.cli.start_times import facts_of, limit_of, start_of
from unisono.cli.why.surroundings import is_aside
from unisono.cli.workload_state import condition, in_line, job_of, pods_of
from unisono.engine.dry_run import dry_run
from unisono.engine.estimates import estimates
from unisono.engine.explain.messages import message_of, reason_of, stage_of
from unisono.engine.explain.waiting import explanations
from unisono.engine.model.explanation import Expected, Explanation, Planned
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import Plan
from unisono.engine.model.workload import Workload
from unisono.engine.state.cluster import ClusterState

Json = dict[str, Any]

_LAST = 1 << 30


# ---- a living cluster ----------------------------------------------------------------------------


def living_rows(
    workloads: list[Json], doors: Mapping[tuple[str, str], Json], queues: Mapping[str, Json]
) -> list[Json]:
    """Return those who wait: who has a date or an estimate by its place, then the rest."""
    rows = []
    for one in in_line(workloads):
        door = doors.get((one["metadata"]["namespace"], one["spec"].get("queueName", "")))
        behind = door["spec"].get("clusterQueue", "") if door is not None else ""
        rows.append(_living_row(one, door, queues.get(behind), behind))
    return _numbered(rows)


def _living_row(workload: Json, door: Json | None, queue: Json | None, behind: str) -> Json:
    facts = facts_of(workload)
    start, limit = start_of(facts), limit_of(workload, facts, door, queue)
    told = condition(workload, "QuotaReserved") or {}
    return {
        "namespace": workload["metadata"]["namespace"],
        "name": job_of(workload),
        "workload": workload["metadata"]["name"],
        "queue": workload["spec"].get("queueName", ""),
        "clusterQueue": behind,
        "priority": workload["spec"].get("priority", 0),
        "pods": pods_of(workload),
        "start": start["start"] if start is not None else None,
        "promised": start is not None and start["promised"],
        "turn": None if is_aside(workload) else (start or {}).get("position") or _LAST,
        "behind": start.get("behind") if start is not None else None,
        "limit": limit,
        "reason": told.get("reason", ""),
        "message": told.get("message", ""),
    }


# ---- manifests -----------------------------------------------------------------------------------


def rehearsed_rows(state: ClusterState, now: Instant) -> tuple[list[Json], list[Plan]]:
    """Let start who can; return those who wait then, and what was decided."""
    from unisono.engine.explain.formatting import format_instant

    plans = dry_run(state, now)
    expected = estimates(state, now, most=MOST_ESTIMATES)
    rows = []
    for why in explanations(state):
        workload = state.waiting[why.workload].workload
        fact = _date_in(why) or expected.get(why.workload)
        limit = workload.longest_ms
        rows.append(
            {
                "namespace": why.workload.partition("/")[0],
                "name": _name(why.workload),
                "workload": _name(why.workload),
                "queue": workload.queue.partition("/")[2],
                "clusterQueue": why.queue or "",
                "priority": workload.priority,
                "pods": _pods(workload),
                "start": format_instant(fact.start) if fact is not None else None,
                "promised": isinstance(fact, Planned),
                "turn": None
                if stage_of(why) == "hold"
                else (fact.position if fact is not None else 0) or _LAST,
                "behind": fact.behind if isinstance(fact, Planned) else None,
                "limit": None
                if limit is None
                else {"seconds": limit // 1000, "from": workload.longest_from},
                "reason": reason_of(why),
                "message": message_of(why),
            }
        )
    return _numbered(rows), plans


def _date_in(why: Explanation) -> Planned | Expected | None:
    return next((fact for fact in why.blockers if isinstance(fact, Planned)), None)


def _name(key: WorkloadKey) -> str:
    return key.partition("/")[2]


def _pods(workload: Workload) -> int:
    return sum(one.count for one in workload.pod_sets)


def _numbered(rows: list[Json]) -> list[Json]:
    """Sort by turn, which is known of those with a date or an estimate, and count.

    Who stands in no line (held, not to begin yet, behind another job) has no place, and comes last.
    """
    turns = [row.pop("turn") for row in rows]
    order = sorted(range(len(rows)), key=lambda at: _LAST + 1 if turns[at] is None else turns[at])
    return [
        {"position": None if turns[at] is None else place, **rows[at]}
        for place, at in enumerate(order, start=1)
    ]
