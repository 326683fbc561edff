"""What `unisono plan` lists: pending workloads by expected start, and what would be bought."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from unisono.cli.decide import DIAGNOSED_OBJECTS, MOST_ESTIMATES
from unisono.cli.job_names import by_jobs, job_names
from unisono.cli.start_times import cause_of, facts_of, limit_of, root_cause_of, start_of
from unisono.cli.tables import paragraph
from unisono.cli.workload_state import condition, job_of, pods_of, state_of
from unisono.engine.diagnosis import diagnose
from unisono.engine.diagnosis.trial import Budget
from unisono.engine.dry_run import dry_run
from unisono.engine.estimates import estimates
from unisono.engine.explain.diagnosis import adds_to_facts, headline, message_with
from unisono.engine.explain.formatting import format_duration, format_instant
from unisono.engine.explain.messages import reason_of, sentence, stage_of
from unisono.engine.explain.purchases import alternative_sentence, purchase_sentence
from unisono.engine.explain.waiting import explanations
from unisono.engine.model.explanation import Expected, Explanation, Planned
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import Plan
from unisono.engine.model.provisioning import MICRO, Purchase
from unisono.engine.model.workload import Workload
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot
from unisono.kinds import views
from unisono.kinds.kueue.queue_order import OrderKey, order_key, positions
from unisono.kinds.kueue.waiting import waiting_message
from unisono.kube.form import Json

if TYPE_CHECKING:
    from unisono.kube.form import Json

_LAST = 1 << 30
_AFTER_ALL: OrderKey = (True, (_LAST, Instant(0), ""))

# ---- a living cluster ----------------------------------------------------------------------------


def living_rows(
    workloads: list[Json],
    local_queues: Mapping[tuple[str, str], Json],
    queues: Mapping[str, Json],
) -> list[Json]:
    """Return pending workloads by their expected start, each with its position in its queue."""

    def local_queue(workload: Json) -> Json | None:
        metadata, spec = workload["metadata"], workload["spec"]
        return local_queues.get((metadata["namespace"], spec.get("queueName", "")))

    def queue_name(workload: Json) -> str:
        found = local_queue(workload)
        return str(found["spec"].get("clusterQueue", "")) if found is not None else ""

    names = job_names(workloads)
    pending = [one for one in workloads if state_of(one) == "waiting"]
    places = positions(pending, queue_name, queues)
    pending.sort(
        key=lambda one: (order_key(views.Workload(one)) or _AFTER_ALL, one["metadata"]["uid"])
    )
    return _by_start(
        [
            _living_row(
                one,
                local_queue(one),
                queues.get(queue_name(one)),
                queue_name(one),
                places.get(one["metadata"]["uid"]),
                names,
            )
            for one in pending
        ]
    )


def _rank(workload: Json) -> tuple[OrderKey, str]:
    return order_key(views.Workload(workload)) or _AFTER_ALL, workload["metadata"]["uid"]


def _living_row(
    workload: Json,
    local_queue: Json | None,
    queue: Json | None,
    behind: str,
    place: int | None,
    names: Mapping[str, str],
) -> Json:
    facts = facts_of(workload)
    start, limit = start_of(facts), limit_of(workload, facts, local_queue, queue)
    known = condition(workload, "QuotaReserved") or {}
    root_cause = root_cause_of(workload) or {}
    return {
        "position": place,
        "namespace": workload["metadata"]["namespace"],
        "name": job_of(workload),
        "workload": workload["metadata"]["name"],
        "queue": workload["spec"].get("queueName", ""),
        "clusterQueue": behind,
        "priority": workload["spec"].get("priority", 0),
        "pods": pods_of(workload),
        "start": start["start"] if start is not None else None,
        "promised": start is not None and start["promised"],
        "order": None if place is None else (start or {}).get("position") or _LAST,
        "behind": start.get("behind") if start is not None else None,
        "limit": limit,
        "reason": known.get("reason", ""),
        "message": by_jobs(waiting_message(views.Workload(workload).conditions), names),
        "verdict": root_cause.get("verdict"),
        "cause": by_jobs(cause_of(workload), names),
        "startsBy": root_cause.get("startsBy"),
    }


# ---- manifests -----------------------------------------------------------------------------------


def rehearsed_rows(state: ClusterState, now: Instant) -> tuple[list[Json], list[Plan]]:
    """Start what can start; return the workloads that wait then, and what was decided."""
    plans = dry_run(state, now)
    recorded, budget = snapshot(state), Budget(objects=DIAGNOSED_OBJECTS)
    expected = estimates(state, now, most=MOST_ESTIMATES)
    places = {
        waiting.workload.key: place
        for queue in state.queues.values()
        for place, waiting in enumerate(queue.pending.in_order(), start=1)
    }
    rows = []
    for why in explanations(state):
        workload = state.waiting[why.workload].workload
        found = diagnose(recorded, why.workload, now, budget=budget)
        known = found if found is not None and adds_to_facts(found) else None
        by_limits = known is not None and known.verdict == "later" and known.basis == "limits"
        fact = _date_in(why) or expected.get(why.workload)
        limit = workload.longest_ms
        rows.append(
            {
                "position": None if stage_of(why) == "hold" else places.get(why.workload),
                "namespace": why.workload.partition("/")[0],
                "name": _name(why.workload),
                "workload": _name(why.workload),
                "queue": workload.queue.partition("/")[2],
                "clusterQueue": why.queue or "",
                "priority": workload.priority,
                "pods": _pods(workload),
                "start": format_instant(fact.start) if fact is not None else None,
                "promised": isinstance(fact, Planned),
                "order": None
                if stage_of(why) == "hold"
                else (fact.position if fact is not None else 0) or _LAST,
                "behind": fact.behind if isinstance(fact, Planned) else None,
                "limit": None
                if limit is None
                else {"seconds": limit // 1000, "from": workload.longest_from},
                "reason": reason_of(why),
                "message": message_with(why, found),
                "verdict": known.verdict if known is not None else None,
                "cause": headline(known) if known is not None else sentence(why.blockers[0]),
                "startsBy": format_instant(known.starts_at)
                if known is not None and known.starts_at is not None and by_limits
                else None,
            }
        )
    return _by_start(rows), plans


def _date_in(why: Explanation) -> Planned | Expected | None:
    return next((fact for fact in why.blockers if isinstance(fact, Planned)), None)


def _name(key: WorkloadKey) -> str:
    return key.partition("/")[2]


def _pods(workload: Workload) -> int:
    return sum(one.count for one in workload.pod_sets)


def _by_start(rows: list[Json]) -> list[Json]:
    """Sort by expected start, as far as it is known; what is in no pending queue comes last."""

    def rank(row: Json) -> int:
        order = row.pop("order")
        return _LAST + 1 if order is None else order

    ranks = [rank(row) for row in rows]
    return [rows[at] for at in sorted(range(len(rows)), key=ranks.__getitem__)]


# ---- purchases -----------------------------------------------------------------------------------


def bought_by(plans: Iterable[Plan]) -> list[Purchase]:
    """Return what plans buy, in the order of decision."""
    return [
        admit.purchase for made in plans for admit in made.admissions if admit.purchase is not None
    ]


def purchase_json(purchase: Purchase) -> Json:
    """Return a purchase as a script reads it."""
    machines: dict[tuple[str, str, str, str], list[int]] = {}
    for node_claim in purchase.node_claims:
        alike = (node_claim.pool, node_claim.machine, node_claim.zone, node_claim.capacity_type)
        machines.setdefault(alike, []).append(node_claim.price_micro)
    return {
        "workload": purchase.workload,
        "machines": [
            {
                "pool": pool,
                "type": machine,
                "zone": zone,
                "capacityType": sold,
                "count": len(prices),
                "pricePerHour": sum(prices) / MICRO,
            }
            for (pool, machine, zone, sold), prices in machines.items()
        ],
        "pricePerHour": purchase.price_micro / MICRO,
        "readyBy": format_instant(purchase.ready_by),
        "alternatives": [
            {
                "machines": dict(one.machines),
                "zone": one.zone,
                "capacityType": one.capacity_type,
                "pricePerHour": one.price_micro / MICRO,
            }
            for one in purchase.alternatives
        ],
    }


def purchases_text(purchases: Iterable[Purchase], now: Instant) -> str:
    """Say what would be bought, for how much, how soon, and what else would do."""
    parts = []
    for purchase in purchases:
        soon = format_duration(max(0, purchase.ready_by - now))
        lines = [
            f"{purchase.workload} starts when its machines are ready, in about {soon}:",
            paragraph(f"buys {purchase_sentence(purchase)}", indent="  "),
        ]
        for one in purchase.alternatives:
            lines.append(paragraph(f"instead of {alternative_sentence(one)}", indent="  "))
        parts.append("\n".join(lines))
    return "\n\n".join(parts)
