"""Gangs that agreed to move leave machines for others that are paid for anyway, if that pays.

A node with a pod of a gang never goes (`node_lifecycle`), unless the gang's job says
`unisono.dev/disruptable: "true"` and its NodePool `WhenEmptyOrUnderutilized` or `Balanced`. Then
the gang is the unit: all of its pods move in one restart, onto nodes that are there and free, when

    saved an hour * hours left  >  2 * its GPUs * their price * (hours since checkpoint + restart)

    quiet for consolidateAfter ──▶ its machines are closed, it is evicted ──▶ they go when empty

A workload without a time limit does not move: the savings are unknown. Spec
provisioning §5.8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from unisono.control import names
from unisono.control.actions import Again, Json, Note, Patch, Ref, Steps
from unisono.control.admission.evictions import evicted_for
from unisono.control.admission.placement import COMMITTED, hosts_of, placement_of
from unisono.control.conditions import find, is_true, seconds, timestamp
from unisono.control.health.progress import progress_of
from unisono.control.nodes import node_name as node_of_host
from unisono.control.view import View
from unisono.kinds.digits import finite_number, whole_number
from unisono.kinds.job_annotations import DISRUPTABLE, RESTART_COST
from unisono.kinds.policy.settings import Settings
from unisono.kinds.quantity import Quantity
from unisono.kinds.scalar import duration_ms
from unisono.kube.form import Key
from unisono.kube.mapping import Kind
from unisono.provision import keys
from unisono.provision.claims import pool_name
from unisono.provision.disruption_budgets import allowed
from unisono.provision.occupancy import NEVER, only_user_of, stays_for
from unisono.provision.request_objects import run_seconds

# Of a machine for an hour; what costs more is a slip of the finger.
_HIGHEST_PRICE = 1e9

POLICIES = ("WhenEmptyOrUnderutilized", "Balanced")
EVICTED = "Consolidated"
_TWICE = 2.0
_HOUR = 3600.0
# What is not worth it now may be later, when others have left.
_LOOK_AGAIN = 60.0

# Says whether a workload would get other nodes for these, as things are.
CanReplace = Callable[[str, Sequence[str]], bool]


@dataclass(frozen=True, slots=True)
class Move:
    """Machines that a gang could leave, and what that would save."""

    claims: tuple[Json, ...]
    saved: float  # US$ an hour
    costs: float  # US$: what the restart loses, twice


class Consolidator:
    """Looks at one gang that agreed to move."""

    name = "consolidation"
    watches: Sequence[Kind] = (names.WORKLOAD,)

    def __init__(self, can_replace: CanReplace, settings: Settings) -> None:
        """Take the check for other nodes, and what a restart costs."""
        self._can_replace = can_replace
        self._restart = settings.policy.provisioning.restart_ms / 1000

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A workload that may be moved."""
        if (obj["metadata"].get("annotations") or {}).get(DISRUPTABLE) == "true":
            yield Key(obj["metadata"]["namespace"], obj["metadata"]["name"])

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Move one gang if that pays."""
        workload = view.get(names.WORKLOAD, key.name, key.namespace)
        if workload is None or not _is_running(workload):
            return
        move = self._move(workload, view, now)
        if move is None:
            yield Again(now + _LOOK_AGAIN)
            return
        quiet = max((_stable_from(workload, claim, view) for claim in move.claims), default=NEVER)
        if now < quiet:
            if quiet < NEVER:
                yield Again(quiet)
            return
        full = f"{key.namespace}/{key.name}"
        nodes = [str(claim["status"]["nodeName"]) for claim in move.claims]
        if not _within_budgets(move.claims, view, now) or not self._can_replace(full, nodes):
            yield Again(now + _LOOK_AGAIN)
            return
        yield from _carry_out(workload, move, view, now)

    def _move(self, workload: Json, view: View, now: float) -> Move | None:
        """Return what would be saved by moving; None if nothing, or not enough."""
        left = _seconds_left(workload, now)
        if left is None or left <= 0:
            return None
        claims = tuple(_claims_to_leave(workload, view))
        saved = sum(_price(claim) for claim in claims)
        costs = _TWICE * _hourly_cost(workload, view) * self._lost(workload, now) / _HOUR
        if not claims or saved * left / _HOUR <= costs:
            return None
        return Move(claims, saved, costs)

    def _lost(self, workload: Json, now: float) -> float:
        """Return the work that a restart would cost, in seconds."""
        annotations = workload["metadata"].get("annotations") or {}
        reached = progress_of(annotations)
        admitted = find(workload["status"].get("conditions"), "Admitted")
        since = seconds(admitted["lastTransitionTime"]) if admitted is not None else now
        if reached is not None and reached.saved_at:
            since = max(since, seconds(reached.saved_at))
        try:
            restart = duration_ms(annotations[RESTART_COST]) / 1000
        except (KeyError, ValueError):
            restart = self._restart
        return max(0.0, now - since) + restart


def _is_running(workload: Json) -> bool:
    conditions = (workload.get("status") or {}).get("conditions")
    is_up = is_true(conditions, "Admitted") and placement_of(conditions)[0] == COMMITTED
    return is_up and not is_true(conditions, "Evicted") and not is_true(conditions, "Finished")


def _seconds_left(workload: Json, now: float) -> float | None:
    """Return how long a workload still runs, if it says how long it runs at all."""
    limit = run_seconds(workload)
    admitted = find(workload["status"].get("conditions"), "Admitted")
    if limit is None or admitted is None:
        return None
    return seconds(admitted["lastTransitionTime"]) + limit - now


def _claims_to_leave(workload: Json, view: View) -> Iterable[Json]:
    """Yield machines used by this workload alone, of pools that may be emptied."""
    for host in dict.fromkeys(host for host, _ in hosts_of(workload)):
        node = view.get(names.NODE, node_of_host(host, view))
        if node is None or not only_user_of(node, workload, view):
            continue
        for claim in view.by(names.NODE_CLAIM, "node", node["metadata"]["name"]):
            pool = view.get(names.NODE_POOL, pool_name(claim))
            disruption = ((pool or {}).get("spec") or {}).get("disruption") or {}
            is_static = keys.STATIC in (claim["metadata"].get("annotations") or {})
            policy = disruption.get("consolidationPolicy", POLICIES[0])
            if pool is not None and not is_static and policy in POLICIES:
                yield claim


def _stable_from(workload: Json, claim: Json, view: View) -> float:
    """Return when a machine has been quiet long enough: no pod started or ended on it lately."""
    pool = view.get(names.NODE_POOL, pool_name(claim))
    last = seconds(claim["metadata"].get("creationTimestamp") or "")
    for pod in view.by(names.POD, "node", str(claim["status"]["nodeName"])):
        last = max(last, seconds((pod.get("status") or {}).get("startTime") or ""))
    return last + stays_for(claim, pool, reuse=0.0)


def _within_budgets(claims: Sequence[Json], view: View, now: float) -> bool:
    wanted: dict[str, int] = {}
    for claim in claims:
        wanted[pool_name(claim)] = wanted.get(pool_name(claim), 0) + 1
    for name, count in wanted.items():
        pool = view.get(names.NODE_POOL, name)
        if pool is None or allowed(pool, "Underutilized", view, now) < count:
            return False
    return True


def _price(claim: Json) -> float:
    text = (claim["metadata"].get("annotations") or {}).get(keys.PRICE, "")
    return finite_number(text, _HIGHEST_PRICE) or 0.0


def _hourly_cost(workload: Json, view: View) -> float:
    """Return what an hour of the GPUs that a gang uses costs; of its nodes, if it uses none."""
    total = 0.0
    for host in dict.fromkeys(host for host, _ in hosts_of(workload)):
        name = node_of_host(host, view)
        for claim in view.by(names.NODE_CLAIM, "node", name):
            has = (claim.get("status") or {}).get("allocatable") or {}
            gpus = sum(
                whole_number(str(text)) or 0 for key, text in has.items() if key.endswith("/gpu")
            )
            used = sum(
                _gpus_of(pod)
                for pod in view.by(names.POD, "node", name)
                if (pod["metadata"].get("annotations") or {}).get(names.WORKLOAD_ANNOTATION)
                == workload["metadata"]["name"]
            )
            total += _price(claim) * (used / gpus if gpus and used else 1.0)
    return total


def _gpus_of(pod: Json) -> int:
    return sum(
        Quantity.from_raw(amount).amount(name)
        for container in pod["spec"].get("containers") or ()
        for name, amount in ((container.get("resources") or {}).get("limits") or {}).items()
        if name.endswith("/gpu")
    )


def _carry_out(workload: Json, move: Move, view: View, now: float) -> Steps:
    """Close the machines, then let the gang go; machines found empty are given back."""
    for claim in move.claims:
        mark = {keys.CONSOLIDATING: timestamp(now)}
        yield Patch(Ref.to(claim), {"metadata": {"annotations": mark}})
        node = view.get(names.NODE, str(claim["status"]["nodeName"]))
        if node is not None:
            taint = {"key": keys.DISRUPTED, "effect": "NoSchedule", "timeAdded": timestamp(now)}
            taints = [*(node["spec"].get("taints") or ()), taint]
            yield Patch(Ref.to(node), {"spec": {"taints": taints}})
    count = len(move.claims)
    text = f"moves to nodes that are free: {count} machines for ${move.saved:.2f}/h are not needed"
    changes = {"status": evicted_for(workload, EVICTED, text, now=now)}
    yield Patch(Ref.to(workload), changes, "status")
    yield Note(Ref.to(workload), EVICTED, text)
