"""Nodes: the map of every GPU, the list with prices and purchases, and one node by itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

from unisono.kube.form import Json
from unisono.monitor.karpenter_records import ClaimRecord, PoolRecord
from unisono.web.auth import Permissions
from unisono.web.dashboard import FREE, Dashboard
from unisono.web.gpus import Gpus
from unisono.web.view_models import PageModel
from unisono.web.views.workloads import PAGE, number

_MOST_CLAIMS = 200
_MOST_TYPES = 4
_DENIED = PageModel({"denied": "list nodes"})


def gpu_map(
    dashboard: Dashboard,
    asked: Mapping[str, str],
    permissions: Permissions,
    *,
    gpus: Gpus | None = None,
) -> PageModel:
    """Return every node with the workloads that use its GPUs, and what colours them."""
    if not permissions.nodes:
        return _DENIED
    rows = dashboard.nodes()
    colour = asked.get("colour", "")
    values = gpus if colour in ("busy", "celsius") else None
    head = {
        "measured": gpus is not None and gpus.is_known,
        "ends": _ends(dashboard, permissions) if colour == "left" else {},
    }
    return PageModel(
        head,
        {
            name: _on_map(row, permissions)
            | {"jobs": _jobs(dashboard, row, permissions)}
            | ({} if values is None else {"values": values.map_values(name, row["gpus"], colour)})
            for name, row in rows.items()
        },
    )


def _ends(dashboard: Dashboard, permissions: Permissions) -> dict[str, float]:
    """Return when running workloads end at the latest, by name; without those that did not say."""
    return {
        f"{one.namespace}/{one.name}": (one.admitted or one.reserved) + one.limit
        for one in dashboard.running
        if one.limit and permissions.sees(one.namespace)
    }


def _jobs(dashboard: Dashboard, row: Json, permissions: Permissions) -> dict[str, str]:
    """Return the names of the jobs on a node, by the names of their workloads."""
    found = {}
    for namespace, name in dict.fromkeys(row["by"]):
        one = dashboard.workload(namespace, name) if permissions.sees(namespace) else None
        if one is not None and one.owner_name:
            found[f"{namespace}/{name}"] = one.owner_name
    return found


def _on_map(row: Json, permissions: Permissions) -> Json:
    """Return the little that the map needs of a node: holders as runs, `[holder, count]`."""
    return {
        "type": row["type"] or row["model"],
        "zone": row["zone"],
        "pool": row["pool"],
        "bad": _bad(row),
        "by": _runs(row["by"], permissions),
    }


def _runs(by: Iterable[tuple[str, str]], permissions: Permissions) -> list[tuple[str, int]]:
    return [
        ("" if holder == FREE else permissions.named(*holder), len(list(same)))
        for holder, same in groupby(by)
    ]


def _bad(row: Json) -> str:
    """Say what is wrong with a node."""
    reasons = [str(one).replace("=", ": ", 1).rstrip(": ") for one in row["why"]]
    if not row["ready"]:
        reasons.insert(0, "not ready")
    elif row["closed"] and not reasons:
        reasons.append("cordoned")
    if row["broken"]:
        reasons.append(f"{row['broken']} GPUs unhealthy")
    return ", ".join(reasons)


def nodes(
    dashboard: Dashboard,
    asked: Mapping[str, str],
    permissions: Permissions,
    *,
    reuse: float = 0.0,
    gpus: Gpus | None = None,
) -> PageModel:
    """Return the list of nodes, and what was bought and is being bought."""
    if not permissions.nodes:
        return _DENIED
    words = asked.get("q", "").lower().split()
    page = number(asked.get("at", ""))
    rows = dashboard.nodes()
    found = [row for row in rows.values() if all(word in _text(row) for word in words)]
    shown = found[(page - 1) * PAGE : page * PAGE]
    claims = dashboard.cache.claims if permissions.machines else {}
    by_node = {one.node: one for one in claims.values() if one.node}
    pools = dashboard.cache.pools if permissions.machines else {}
    head = {
        "found": len(found),
        "page": page,
        "pages": max(1, -(-len(found) // PAGE)),
        "nodes": len(rows),
        "gpus": sum(one["gpus"] for one in rows.values()),
        "cost": round(sum(one["price"] for one in rows.values()), 2),
        "idleCost": round(sum(one["price"] for one in rows.values() if _is_idle(one)), 2),
        "pools": [_pool(dashboard, pools[name], rows.values()) for name in sorted(pools)],
        "claims": [_claim(one, permissions) for one in _on_their_way(claims.values())],
    }
    return PageModel(
        head,
        {
            row["name"]: {
                **{key: row[key] for key in row if key not in ("by", "pods", "why", "model")},
                "bad": _bad(row),
                "jobs": _jobs(dashboard, row, permissions),
                "by": [[name, count] for name, count in _gathered(row, permissions)],
                "idleUntil": _idle_until(by_node.get(row["name"]), pools, reuse),
                "idle": _is_idle(row),
                **(gpus.node_now(row["name"], row["gpus"]) if gpus is not None else {}),
            }
            for row in shown
        },
    )


def _text(row: Json) -> str:
    return f"{row['name']} {row['type']} {row['zone']} {row['pool']} {row['sold']}".lower()


def _is_idle(row: Json) -> bool:
    return bool(row["gpus"]) and not row["held"]


def _gathered(row: Json, permissions: Permissions) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for holder in row["by"]:
        if holder != FREE:
            name = permissions.named(*holder)
            counts[name] = counts.get(name, 0) + 1
    return list(counts.items())


def _pool(dashboard: Dashboard, pool: PoolRecord, rows: Iterable[Json]) -> Json:
    own = [one for one in rows if one["pool"] == pool.name]
    return {
        "name": pool.name,
        "weight": pool.weight,
        "limits": dict(pool.limits),
        "types": pool.types[:_MOST_TYPES],
        "moreTypes": max(0, len(pool.types) - _MOST_TYPES),
        "sold": pool.capacity_types,
        "keeps": pool.keeps,
        "replicas": pool.replicas,
        "ready": pool.is_ready,
        "says": pool.says if not pool.is_ready else "",
        "nodes": len(own),
        "gpus": sum(one["gpus"] for one in own),
        "cost": round(sum(one["price"] for one in own), 2),
        "coming": sum(
            one.pool == pool.name and one.state in ("launching", "launched")
            for one in dashboard.cache.claims.values()
        ),
    }


def _on_their_way(claims: Iterable[ClaimRecord]) -> list[ClaimRecord]:
    """Return the machines that are not nodes at work: coming, held, refused or going."""
    found = [one for one in claims if one.state != "ready" or one.held_for]
    return sorted(found, key=lambda one: (-one.created, one.name))[:_MOST_CLAIMS]


def _claim(one: ClaimRecord, permissions: Permissions) -> Json:
    namespace, _, name = one.held_for.partition("/")
    return {
        "name": one.name,
        "pool": one.pool,
        "type": one.instance_type,
        "zone": one.zone,
        "sold": one.capacity_type,
        "price": one.price,
        "state": one.state,
        "says": one.says,
        "for": permissions.named(namespace, name) if one.held_for else "",
        "since": one.created,
    }


def _idle_until(claim: ClaimRecord | None, pools: Mapping[str, PoolRecord], reuse: float) -> float:
    return claim.idle_until(pools.get(claim.pool), reuse) if claim is not None else 0.0


def node(
    dashboard: Dashboard,
    asked: Mapping[str, str],
    permissions: Permissions,
    *,
    reuse: float = 0.0,
    gpus: Gpus | None = None,
) -> PageModel:
    """Return one node, device by device."""
    if not permissions.nodes:
        return _DENIED
    row = dashboard.nodes().get(asked.get("name", ""))
    if row is None:
        return PageModel({"absent": True})
    claim = next((one for one in dashboard.cache.claims.values() if one.node == row["name"]), None)
    pods = sorted(dashboard.pods_on(row["name"]), key=lambda one: (one.namespace, one.name))
    head = {
        **{key: one for key, one in row.items() if key not in ("by", "pods", "why")},
        "bad": _bad(row),
        "by": ["" if one == FREE else permissions.named(*one) for one in row["by"]],
        "idleUntil": _idle_until(claim, dashboard.cache.pools, reuse)
        if permissions.machines
        else 0.0,
        "heldFor": _claim(claim, permissions)["for"]
        if claim is not None and permissions.machines
        else "",
        "jobs": _jobs(dashboard, row, permissions),
        "use": gpus.node(row["name"], row["gpus"]) if gpus is not None else None,
        "devices": [gpus.device((row["name"], at)) for at in range(row["gpus"])]
        if gpus is not None
        else [],
    }
    return PageModel(
        head,
        {
            f"{pod.namespace}/{pod.name}": {
                "phase": pod.phase,
                "gpus": sum(gpus for _, gpus in pod.gpus),
                "gang": f"{pod.namespace}/{pod.workload}" if pod.workload else "",
                "since": pod.started or pod.bound or pod.created,
            }
            for pod in pods
            if permissions.sees_pods(pod.namespace)
        },
    )
