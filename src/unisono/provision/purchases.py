"""Carries a purchase out: writes its claims, waits until every machine is ready, lets the gang go.

    Planned   every claim is written (names follow from the plan, so twice is once)
    Waiting   until all machines are ready with their GPUs; then the gang is admitted
    failed    a machine cannot be had, or not in time: the admission is taken back as a whole

No pod of the gang exists before it is admitted, so taking it back stops nothing. What becomes of
its machines is `node_lifecycle`'s to say. Spec provisioning §5.5 to §5.7.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from unisono.control import names
from unisono.control.actions import Again, Create, Json, Note, Patch, Ref, Steps, Together
from unisono.control.admission.checks import admitted, open_checks
from unisono.control.admission.evictions import evicted_for
from unisono.control.admission.placement import hosts_of, places, without_placement
from unisono.control.admission.purchases import (
    BY_HOLDER,
    UNDER_WAY,
    Phase,
    Written,
    holders_of,
    is_holding,
    purchase_of,
    with_phase,
)
from unisono.control.conditions import find, is_true, timestamp, with_condition
from unisono.control.controller import own_key
from unisono.control.nodes import is_ready
from unisono.control.view import View
from unisono.engine.explain.formatting import format_counts, format_price
from unisono.kinds.kueue.topology_assignment import pods_per_host
from unisono.kinds.policy.provisioning import BuyingTimes
from unisono.kube.form import Key
from unisono.kube.mapping import Kind
from unisono.provision import keys, offerings
from unisono.provision.claims import (
    State,
    claim_of,
    created_at,
    launched_at,
    node_name,
    plan_id,
    requests_on,
    state_of,
)

# So many claims are written at once; a large gang is several such writes.
_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a purchase is given up."""

    reason: Literal["StockOut", "Timeout", "PoolGone", "Lost"]
    message: str


class Purchases:
    """Takes purchases of workloads a step further."""

    name = "purchases"
    watches: Sequence[Kind] = (names.WORKLOAD, names.NODE_CLAIM, names.NODE)

    def __init__(self, times: BuyingTimes, home: str = keys.SYSTEM) -> None:
        """Take how long purchases may take, and where refusals are remembered."""
        self._times = times
        self._home = home

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A workload, or the one that a machine is bought for."""
        if kind == names.WORKLOAD:
            if find((obj.get("status") or {}).get("conditions"), names.PURCHASE) is not None:
                yield own_key(obj)
            for key_of_holder in holders_of(obj):  # it may start when the others have left
                namespace, _, name = key_of_holder.partition("/")
                yield Key(namespace, name)
            return
        holder = (obj["metadata"].get("annotations") or {}).get(keys.HELD_FOR, "")
        if holder:
            namespace, _, name = holder.partition("/")
            yield Key(namespace, name)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take one purchase a step further."""
        workload = view.get(names.WORKLOAD, key.name, key.namespace)
        if workload is None or "deletionTimestamp" in workload["metadata"]:
            return
        found = purchase_of(workload)
        if found is None or found[0] not in UNDER_WAY:
            return
        phase, written = found
        if not is_holding(workload):
            if not workload["status"].get("admission"):  # else its eviction is not complete yet
                yield _cancelled(workload, written, now)
                yield Note(
                    Ref.to(workload), "CapacityRolledBack", "the workload lost its quota", "Warning"
                )
            return
        if phase == "Planned":
            yield from self._write_claims(workload, written, view, now)
        else:
            yield from self._wait(workload, written, view, now)

    # ---- buying ------------------------------------------------------------------------------

    def _write_claims(self, workload: Json, written: Written, view: View, now: float) -> Steps:
        plan, size = plan_id(workload, written.planned_at), len(written.nodes)
        holder = f"{workload['metadata']['namespace']}/{workload['metadata']['name']}"
        missing: list[Create] = []
        for node_claim in written.node_claims():
            claim = view.get(names.NODE_CLAIM, node_claim.node)
            if claim is not None:
                if "deletionTimestamp" in claim["metadata"]:
                    failure = _Failure(
                        "Lost", f"{node_claim.node} disappeared before it could be taken over"
                    )
                    yield from self._give_up(workload, written, failure, now)
                    return
                yield from _taken_over(claim, holder=holder, plan=plan, size=size)
                continue
            pool = view.get(names.NODE_POOL, node_claim.pool)
            if pool is None:
                failure = _Failure("PoolGone", f"NodePool {node_claim.pool} was deleted")
                yield from self._give_up(workload, written, failure, now)
                return
            requests = requests_on(workload, dict(node_claim.pods))
            made = claim_of(
                node_claim, pool, plan=plan, size=size, holder=holder, requests=requests
            )
            missing.append(Create(made))
        for start in range(0, len(missing), _AT_ONCE):
            yield Together(missing[start : start + _AT_ONCE])
        yield _to_phase(workload, "Waiting", written, now)
        existing = f"buys {_described(written)}; ready about {timestamp(written.ready_by)}"
        yield Note(Ref.to(workload), "CapacityPlanCreated", existing)

    # ---- waiting -----------------------------------------------------------------------------

    def _wait(self, workload: Json, written: Written, view: View, now: float) -> Steps:
        claims = {name: view.get(names.NODE_CLAIM, name) for name in written.nodes}
        states = {name: state_of(claim) for name, claim in claims.items()}
        lost = [name for name, state in states.items() if state in ("gone", "refused")]
        if lost:
            yield from self._refused(workload, written, lost, claims, view, now)
            return
        ready = [name for name, claim in claims.items() if _is_ready(claim, states[name], view)]
        if len(ready) == len(states):
            jobs = opportunistic_jobs_on(workload, view)
            for job in jobs:
                yield from evict_opportunistic(job, workload, now)
            if not jobs:
                yield from self._admit(workload, written, claims, view, now)
            return
        late, due = self._deadline(written, claims, states, now)
        if late:
            yield from self._give_up(workload, written, _Failure("Timeout", late), now)
            return
        about = timestamp(written.ready_by)
        if now < written.ready_by:
            when, due = f", about {about}", min(due, written.ready_by)
        else:
            when = f"; late, expected at {about}, given up at {timestamp(due)}"
        progress = f"{len(ready)}/{len(states)} machines ready{when}"
        yield from _progress(workload, f"{progress}; {_described(written)}", now)
        yield Again(due)

    def _deadline(
        self, written: Written, claims: dict[str, Json | None], states: dict[str, State], now: float
    ) -> tuple[str, float]:
        """Return which machine is late, and when to check again."""
        due = written.planned_at + self._times.gang
        if now >= due:
            waiting = [name for name, state in states.items() if state != "ready"]
            return f"{len(waiting)} machines are not ready: {', '.join(waiting[:4])}", due
        for name, claim in claims.items():
            if claim is None or states[name] == "ready":
                continue
            if states[name] == "launching":
                end, what = created_at(claim) + self._times.launch, "was not launched"
            else:
                end, what = launched_at(claim) + self._times.ready, "did not become ready"
            if now >= end:
                return f"{name} {what} in time", end
            due = min(due, end)
        return "", due

    def _admit(
        self,
        workload: Json,
        written: Written,
        claims: dict[str, Json | None],
        view: View,
        now: float,
    ) -> Steps:
        """All machines are ready: the gang is admitted, and its pods start together."""
        status = workload["status"]
        conditions = with_phase(status["conditions"], "Ready", written, now)
        conditions = with_condition(
            conditions,
            names.CAPACITY_PLANNED,
            "True",
            "Ready",
            f"{len(claims)} machines are ready: {_described(written)}",
            now=now,
        )
        if not is_true(conditions, "Admitted") and not open_checks(workload, view):
            conditions = admitted(workload, conditions, now)
        changes: Json = {"conditions": conditions}
        moved = _renamed(status["admission"], claims, view)
        if moved is not None:
            changes["admission"] = {"podSetAssignments": moved}
        yield Patch(Ref.to(workload), {"status": changes}, "status")
        yield Note(Ref.to(workload), "CapacityReady", f"{len(claims)} machines are ready")
        yield from offerings.forget(
            view, self._home, ((a.type, a.zone, a.sold) for a in written.machines)
        )

    # ---- giving up ---------------------------------------------------------------------------

    def _refused(
        self,
        workload: Json,
        written: Written,
        lost: Sequence[str],
        claims: dict[str, Json | None],
        view: View,
        now: float,
    ) -> Steps:
        """Remember what cannot be had, and take the whole purchase back; it is decided anew."""
        counts: dict[offerings.Offered, int] = {}
        for alike in written.machines:
            if set(alike.nodes) & set(lost) and not alike.taken_over:
                offer: offerings.Offered = (alike.type, alike.zone, alike.sold)
                counts[offer] = counts.get(offer, 0) + len(alike.nodes)
        if not counts:
            failure = _Failure("Lost", f"{', '.join(lost)} disappeared before all were ready")
            yield from self._give_up(workload, written, failure, now)
            return
        code = next((_code(claim) for name in lost if (claim := claims[name])), "")
        yield from offerings.remember(view, self._home, counts, now, code or "InsufficientCapacity")
        what = ", ".join(f"{n} × {o[0]} {o[2]} in {o[1]}" for o, n in counts.items())
        failure = _Failure("StockOut", f"{what} is unavailable")
        yield from self._give_up(workload, written, failure, now)

    def _give_up(self, workload: Json, written: Written, failure: _Failure, now: float) -> Steps:
        """Take the admission back; a purchase that was too slow is retried after a pause."""
        status = workload["status"]
        if is_true(status["conditions"], "Admitted"):
            yield from self._leave_to_repair(workload, written, failure, now)
            return
        is_late = failure.reason == "Timeout"
        phase: Phase = "TimedOut" if is_late else "RolledBack"
        conditions = with_phase(status["conditions"], phase, written, now)
        conditions = without_placement(conditions, now)
        conditions = with_condition(
            conditions, names.CAPACITY_PLANNED, "False", failure.reason, failure.message, now=now
        )
        for kind in ("QuotaReserved", "Admitted"):
            conditions = with_condition(
                conditions, kind, "False", "Pending", f"No machines: {failure.message}", now=now
            )
        changes: Json = {"admission": None, "conditions": conditions}
        if is_late:
            wait = self._times.retry_base * 2 ** min(written.attempt - 1, 20)
            at = timestamp(now + min(wait, self._times.retry_max))
            changes["requeueState"] = {"count": written.attempt, "requeueAt": at}
        yield Patch(Ref.to(workload), {"status": changes}, "status")
        reason = "CapacityStockOut" if failure.reason == "StockOut" else "CapacityRolledBack"
        yield Note(Ref.to(workload), reason, failure.message, "Warning")

    def _leave_to_repair(
        self, workload: Json, written: Written, failure: _Failure, now: float
    ) -> Steps:
        """A gang that runs keeps what it has; its repair looks for other nodes."""
        conditions = with_phase(workload["status"]["conditions"], "RolledBack", written, now)
        conditions = with_condition(
            conditions, names.CAPACITY_PLANNED, "False", failure.reason, failure.message, now=now
        )
        yield Patch(Ref.to(workload), {"status": {"conditions": conditions}}, "status")
        yield Note(Ref.to(workload), "CapacityRolledBack", failure.message, "Warning")


def _taken_over(claim: Json, *, holder: str, plan: str, size: int) -> Steps:
    """Make a machine that is on its way that of another purchase, unless it is already."""
    metadata = claim["metadata"]
    if (metadata.get("labels") or {}).get(keys.PLAN) == plan:
        return
    about = {keys.HELD_FOR: holder, keys.PLAN_SIZE: str(size), keys.RELEASED: None}
    before = (metadata.get("annotations") or {}).get(keys.HELD_FOR, "")
    yield Patch(Ref.to(claim), {"metadata": {"labels": {keys.PLAN: plan}, "annotations": about}})
    yield Note(Ref.to(claim), "CapacityReused", f"taken over from {before} by {holder}")


def _is_ready(claim: Json | None, state: State, view: View) -> bool:
    """Say whether a machine is a node that takes pods, with everything that was asked for."""
    if claim is None or state != "ready":
        return False
    node = view.get(names.NODE, node_name(claim))
    if node is None or not is_ready(node) or "deletionTimestamp" in node["metadata"]:
        return False
    kept = (node["metadata"].get("annotations") or {}).get(keys.HELD_FOR)
    if kept not in (None, claim["metadata"]["annotations"].get(keys.HELD_FOR)):
        return False  # the node still names a holder that gave it up
    there = (node.get("status") or {}).get("allocatable") or {}
    asked = (claim["spec"].get("resources") or {}).get("requests") or {}
    return all(str(there.get(name, "0")) != "0" for name in asked if "/" in name)


def _code(claim: Json) -> str:
    launched = find((claim.get("status") or {}).get("conditions"), "Launched")
    reason = str(launched["reason"]) if launched is not None else ""
    return reason.removesuffix("Error")


def _to_phase(workload: Json, phase: Phase, written: Written, now: float) -> Patch:
    conditions = with_phase(workload["status"]["conditions"], phase, written, now)
    return Patch(Ref.to(workload), {"status": {"conditions": conditions}}, "status")


def _progress(workload: Json, text: str, now: float) -> Steps:
    """Say how far the machines are, where that is different from what stands there."""
    conditions = workload["status"]["conditions"]
    existing = find(conditions, names.CAPACITY_PLANNED)
    if existing is None or existing["message"] != text:
        changed = with_condition(
            conditions, names.CAPACITY_PLANNED, "True", "Planned", text, now=now
        )
        yield Patch(Ref.to(workload), {"status": {"conditions": changed}}, "status")


def _cancelled(workload: Json, written: Written, now: float) -> Patch:
    """Say that a purchase is over because its gang may not have it any more."""
    conditions = with_phase(workload["status"]["conditions"], "RolledBack", written, now)
    conditions = with_condition(
        conditions, names.CAPACITY_PLANNED, "False", "Cancelled", "It lost its quota", now=now
    )
    return Patch(Ref.to(workload), {"status": {"conditions": conditions}}, "status")


def _described(written: Written) -> str:
    machines = format_counts(
        f"{alike.type} {alike.sold} in {alike.zone}"
        + (" already being provisioned" if alike.taken_over else "")
        for alike in written.machines
        for _ in alike.nodes
    )
    return f"{machines} for {format_price(written.price_micro)}/h"


def _renamed(admission: Json, claims: dict[str, Json | None], view: View) -> list[Json] | None:
    """Return the assignment with the host names that machines have got; None if they had them."""
    hosts: dict[str, str] = {}
    for name, claim in claims.items():
        node = view.get(names.NODE, node_name(claim)) if claim is not None else None
        labels = (node["metadata"].get("labels") or {}) if node is not None else {}
        host = labels.get(names.HOSTNAME, name)
        if host != name:
            hosts[name] = host
    if not hosts:
        return None
    return [
        {
            **one,
            "topologyAssignment": places(
                (hosts.get(host, host), pods)
                for host, pods in pods_per_host(one.get("topologyAssignment"))
            ),
        }
        if one.get("topologyAssignment")
        else one
        for one in admission["podSetAssignments"]
    ]


_REASON = "NodesNeeded"


def opportunistic_jobs_on(gang: Json, view: View) -> list[Json]:
    """Return the jobs that are on nodes of a gang."""
    key = f"{gang['metadata']['namespace']}/{gang['metadata']['name']}"
    own = {host for host, _ in hosts_of(gang)}
    return [
        job
        for job in view.by(names.WORKLOAD, BY_HOLDER, key)
        if job["status"].get("admission")
        and not is_true(job["status"]["conditions"], "Finished")
        and own & {host for host, _ in hosts_of(job)}
    ]


def evict_opportunistic(job: Json, gang: Json, now: float) -> Steps:
    """Tell a job to leave, if it has not been told yet."""
    status = job["status"]
    if is_true(status["conditions"], "Evicted"):
        return
    text = f"the machines of {gang['metadata']['name']} are there, and it needs its nodes"
    changes = {"status": evicted_for(job, _REASON, text, now=now)}
    yield Patch(Ref.to(job), changes, "status")
    yield Note(Ref.to(job), "EvictedDueToNodesNeeded", text)
