"""Priorities and shares in a ConfigMap: what sprio, sshare and sdiag show.

One ConfigMap with the priority of every job of Slurm that waits, part by part, the tree of accounts
with shares and usage, and how decisions go. With many jobs it is written less often: they are
numbers for people (Slurm's own are up to five minutes old).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Protocol

import orjson

from unisono.control import names
from unisono.control.actions import Again, Create, Json, Patch, Ref, Steps
from unisono.control.job_kinds import slurm
from unisono.control.view import View
from unisono.engine.model.names import WorkloadKey
from unisono.engine.ordering.fair_share import level_shares
from unisono.engine.ordering.priority_order import multifactor_of, priority_factors
from unisono.engine.state.cluster import ClusterState
from unisono.kube.form import Key
from unisono.kube.mapping import Kind
from unisono.slurm.labels import NAMESPACE
from unisono.slurm.listing import PUBLISHED_MAP

PLACE = Key(NAMESPACE, PUBLISHED_MAP)
_LEAST_SECONDS = 2.0
# So many jobs more make it a second less often.
_JOBS_A_SECOND = 100
# What is written has to fit into one object.
_MOST_JOBS = 10_000


class Deciding(Protocol):
    """What is shown of the scheduler."""

    state: ClusterState
    cycles: int


class PriorityOrders:
    """Writes the numbers of the scheduler down."""

    name = "slurm-turns"
    watches: Sequence[Kind] = (slurm.JOB,)

    def __init__(self, scheduler: Deciding, place: Key = PLACE) -> None:
        """Take the scheduler; `place` is the ConfigMap's namespace and name."""
        self._scheduler = scheduler
        self._place = place
        self._due = 0.0
        # Read once for each job: to look at thousands of them for every write takes too long.
        self._numbers: dict[WorkloadKey, int] = {}

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """Any job of Slurm."""
        return (self._place,)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Write, unless that was only just done."""
        if now < self._due:
            yield Again(self._due)
            return
        state = self._scheduler.state
        stored = view.get(names.CONFIG_MAP, key.name, key.namespace)
        jobs = self._jobs(view)
        self._due = now + max(_LEAST_SECONDS, len(jobs) / _JOBS_A_SECOND)
        text = orjson.dumps(self._report(jobs)).decode()
        if stored is None:
            metadata = {"name": key.name, "namespace": key.namespace}
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
            yield Create({**made, "data": {"turns": text}})
        elif (stored.get("data") or {}).get("turns") != text:
            yield Patch(Ref.to(stored), {"data": {"turns": text}}, exact=False)
        if jobs or any(state.running):
            yield Again(now + max(60.0, len(jobs) / _JOBS_A_SECOND))

    def _jobs(self, view: View) -> list[tuple[int, WorkloadKey]]:
        """Return the jobs of Slurm that wait, with the keys of their Workloads."""
        found: list[tuple[int, WorkloadKey]] = []
        for key, waiting in self._scheduler.state.waiting.items():
            if not key.partition("/")[2].startswith("slurmjob-"):
                continue
            number = self._numbers.get(key) or _number(waiting.workload.job_name, view)
            if number:
                found.append((number, key))
            if len(found) >= _MOST_JOBS:
                break
        self._numbers = {key: number for number, key in found}
        return found

    def _report(self, jobs: list[tuple[int, WorkloadKey]]) -> Json:
        state = self._scheduler.state
        history = {
            "at": int(state.now),
            "cycles": self._scheduler.cycles,
            "queue": len(state.waiting),
            "running": len(state.running),
        }
        if not state.priority_order.is_on:
            return history
        parts: Json = {}
        priorities: Json = {}
        for identity, key in jobs:
            factors = priority_factors(state, key)
            if factors is None:
                continue
            priorities[str(identity)] = factors.priority
            parts[str(identity)] = [
                factors.site,
                factors.age,
                factors.association,
                factors.fair_share,
                factors.job_size,
                factors.partition,
                factors.qos,
                factors.nice,
                dict(factors.tres),
            ]
        return {
            **history,
            "weights": self._weights(),
            "priorities": priorities,
            "factors": parts,
            "shares": self._shares(),
        }

    def _weights(self) -> Json:
        multifactor = multifactor_of(self._scheduler.state)
        assert multifactor is not None
        weights = multifactor.rules.weights
        return {
            "age": weights.age,
            "assoc": weights.association,
            "fairshare": weights.fair_share,
            "jobsize": weights.job_size,
            "partition": weights.partition,
            "qos": weights.qos,
            "tres": dict(weights.tres),
            "classic": multifactor.rules.fair_share != "tree",
        }

    def _shares(self) -> list[list[object]]:
        """Return the tree of accounts, parents first: name, user, depth, shares, usage, factors."""
        multifactor = multifactor_of(self._scheduler.state)
        assert multifactor is not None
        accounts, usage = multifactor.accounts, list(multifactor.usage.billing(multifactor.now))
        fair, levels = multifactor.fair_shares(), level_shares(accounts, usage)
        children: dict[int, list[int]] = {}
        for number, parent in enumerate(accounts.parents):
            children.setdefault(parent, []).append(number)
        made: list[list[object]] = []

        def walk(number: int, depth: int) -> None:
            spec, parent = accounts.specs[number], accounts.parents[number]
            beside = [accounts.specs[one].shares or 0 for one in children.get(parent, ())]
            total = sum(beside) if parent >= 0 else 0
            level = float(levels[number])
            made.append(
                [
                    spec.account,
                    spec.user,
                    depth,
                    spec.shares,
                    (spec.shares or 0) / total if total else 0.0,
                    usage[number],
                    usage[number] / usage[0] if usage[0] else 0.0,
                    usage[number] / usage[parent] if parent >= 0 and usage[parent] else 0.0,
                    float(fair[number]),
                    None if math.isnan(level) else "inf" if math.isinf(level) else level,
                ]
            )
            own = children.get(number, ())
            for one in sorted(own, key=lambda one: (not accounts.is_user(one), one)):
                walk(one, depth + 1)

        walk(0, 0)
        return made


def _number(job_name: str, view: View) -> int:
    """Return the number of a job; 0 if there is no such job any more."""
    namespace, _, name = job_name.partition("/")
    job = view.get(slurm.JOB, name, namespace)
    return int(job["spec"]["jobId"]) if job is not None else 0
