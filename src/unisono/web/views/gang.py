"""One gang: how far it is, why it waits and what would change that, its members and their nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from unisono.control.admission.kueue_messages import eviction_message
from unisono.control.admission.purchases import UNDER_WAY, is_holding, purchase_of
from unisono.control.health.progress import progress_of
from unisono.control.names import EXPLANATION
from unisono.kinds.digits import whole_number
from unisono.kinds.json_texts import read_json
from unisono.kinds.kueue.topology_assignment import pods_per_host
from unisono.kinds.scalar import instant_ms
from unisono.kube.form import Json
from unisono.monitor.active_alerts import dashboard_of
from unisono.monitor.cache import WORKLOAD
from unisono.monitor.records import PodRecord, WorkloadRecord
from unisono.web.auth import Permissions
from unisono.web.dashboard import Dashboard
from unisono.web.gpus import Gpus, laggards
from unisono.web.view_models import PageModel
from unisono.web.views.rows import workload_row

_MOST_PODS = 512
_MOST_PLACES = 512
_DATES = ("Planned", "Expected")


def gang(
    dashboard: Dashboard,
    asked: Mapping[str, str],
    permissions: Permissions,
    *,
    gpus: Gpus | None = None,
    grafana: str = "",
) -> PageModel:
    """Return one gang."""
    namespace, name = asked.get("namespace", ""), asked.get("name", "")
    one = dashboard.workload(namespace, name) if permissions.sees(namespace) else None
    if one is None:
        return PageModel({"absent": True})
    written = dashboard.look(WORKLOAD, name, namespace) or {}
    pods = sorted(dashboard.pods_of.get(one.key, {}).values(), key=_rank)
    head = {
        **workload_row(dashboard, one),
        "times": {
            "created": one.created,
            "quota": one.reserved,
            "nodes": one.admitted,
            "start": _started(pods),
            "ready": one.ready,
            "over": one.finished,
        },
        "limit": one.limit or one.waits.limit,
        "changes": one.waits.changes,
        "local": one.local_queue,
        "inLine": sum(
            each.order is not None for each in dashboard.lines.get(dashboard.queue_of(one), ())
        )
        if one.is_waiting
        else 0,
        "evictions": [{"reason": reason, "count": count} for reason, count in one.evictions],
        "restarts": dashboard.cache.restarts.get((one.namespace, one.owner_name), 0),
        "members": len(pods),
        "phases": _phases(pods),
        "use": gpus.gang(one) if gpus is not None else None,
        "panel": dashboard_of(grafana, "workload", {"namespace": namespace, "workload": name}),
        **_from_object(written, one, dashboard.by_jobs),
    }
    slower = laggards(pods)
    shown = pods[:_MOST_PODS] if permissions.sees_pods(namespace) else []
    return PageModel(
        head,
        {
            pod.name: {
                "node": pod.node,
                "phase": pod.phase,
                "ready": pod.is_ready,
                "gpus": sum(gpus for _, gpus in pod.gpus),
                "rank": pod.rank,
                "since": pod.started or pod.bound or pod.created,
                "slower": slower.get(pod.name, 0),
                "use": gpus.pod(pod) if gpus is not None and not pod.is_over else None,
            }
            for pod in shown
        },
    )


def _rank(pod: PodRecord) -> tuple[int, str]:
    return whole_number(pod.rank) or 0, pod.name


def _started(pods: Iterable[PodRecord]) -> float:
    """Return when the first pod began."""
    return min((pod.started for pod in pods if pod.started), default=0.0)


def _phases(pods: Iterable[PodRecord]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for pod in pods:
        counts[pod.phase] = counts.get(pod.phase, 0) + 1
    return counts


# ---- what only the object itself says ------------------------------------------------------------


def _from_object(
    written: Mapping[str, Any], one: WorkloadRecord, by_jobs: Callable[[str], str]
) -> Json:
    if not written:
        return {"facts": [], "rootCause": None, "asks": [], "places": []}
    status = written.get("status") or {}
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    reached = progress_of(written["metadata"].get("annotations"))
    finished = conditions.get("Finished") or {}
    return {
        "facts": list(_facts(conditions, by_jobs)) if one.is_waiting else [],
        "rootCause": _root_cause(conditions, by_jobs) if one.is_waiting else None,
        "asks": [_asks(each) for each in written["spec"].get("podSets") or ()],
        "places": list(_places(status.get("admission") or {}))[:_MOST_PLACES],
        "progress": {"step": reached.step, "total": reached.total} if reached else None,
        "purchase": _purchase(dict(written)),
        "lastEviction": eviction_message(status.get("conditions")),
        "ended": str(finished.get("message") or "") if one.finished else "",
    }


def _root_cause(conditions: Mapping[str, Any], by_jobs: Callable[[str], str]) -> Json | None:
    """Return what is in the way, as one set that is enough, and what refuses in each flavor."""
    try:
        found = read_json(conditions[EXPLANATION]["message"])["rootCause"]
        return {
            "verdict": str(found["verdict"]),
            "says": by_jobs(str(found["says"])),
            "inTheWay": [by_jobs(str(one["says"])) for one in found["inTheWay"]],
            "more": int(found.get("more") or 0),
            "ways": [by_jobs(str(one["says"])) for one in found["ways"]],
            "nearest": found.get("nearest"),
            "startsBy": instant_ms(found["startsBy"]) / 1000 if found.get("startsBy") else 0,
            "endless": any(
                one.get("workload") and not one.get("ends") for one in found["inTheWay"]
            ),
        }
    except (KeyError, ValueError, TypeError):
        return None  # not known, or written by another version


def _facts(conditions: Mapping[str, Any], by_jobs: Callable[[str], str]) -> Iterator[Json]:
    """Yield why it waits, fact by fact, each with what would change it."""
    try:
        facts = read_json(conditions[EXPLANATION]["message"])["facts"]
    except (KeyError, ValueError, TypeError):
        return
    seen: set[str] = set()
    for fact in facts if isinstance(facts, list) else ():
        if not isinstance(fact, dict) or fact.get("fact") in _DATES:
            continue
        says = by_jobs(str(fact.get("says") or ""))
        if says and says not in seen:
            seen.add(says)
            changes = str(fact.get("changes") or "")
            yield {"fact": str(fact.get("fact") or ""), "says": says, "changes": changes}


def _asks(pod_set: Mapping[str, Any]) -> Json:
    each: dict[str, str] = {}
    template = (pod_set.get("template") or {}).get("spec") or {}
    for container in template.get("containers") or ():
        resources = container.get("resources") or {}
        wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        for name, amount in wanted.items():
            each[name] = f"{each[name]} + {amount}" if name in each else str(amount)
    return {"name": pod_set["name"], "pods": pod_set.get("count", 1), "each": each}


def _places(admission: Mapping[str, Any]) -> Iterator[Json]:
    for one in admission.get("podSetAssignments") or ():
        for host, pods in pods_per_host(one.get("topologyAssignment")):
            yield {"podSet": one["name"], "node": host, "pods": pods}


def _purchase(written: Json) -> Json | None:
    found = purchase_of(written)
    if found is None:
        return None
    phase, bought = found
    if phase not in (*UNDER_WAY, "Ready") or not is_holding(written):
        return None  # taken back: there are no machines, and its dates are over
    return {
        "ready": phase == "Ready",
        "readyBy": bought.ready_by,
        "price": bought.price_micro / 1_000_000,
        "machines": [
            {"type": one.type, "zone": one.zone, "sold": one.sold, "count": len(one.nodes)}
            for one in bought.machines
        ],
    }
