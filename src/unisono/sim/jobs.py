"""The jobs of a trace, as the engine knows them: workloads, made one by one as they arrive."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from unisono.engine.model.multifactor import MultifactorRules, SubmitOptions
from unisono.engine.model.names import Instant, LocalQueueKey, WorkloadKey
from unisono.engine.model.node import Node
from unisono.engine.model.resources import WHOLE_GPU, Amounts, amounts, share_of
from unisono.engine.model.selection import Requirement
from unisono.engine.model.workload import PodSet, Workload
from unisono.sim.clusters import GPU, MIB, MODEL
from unisono.sim.trace import Trace

NAMESPACE = "sim"
_BEFORE_UIDS: Final = 1_000_000_000  # its first digit is cut off; zeros of the others stay
_Asked = tuple[int, int, int, int, int, int]  # pods, CPU, memory, GPUs, part of each, models
_Integers = npt.NDArray[np.int64]


class Jobs:
    """Makes the workload of a row; rows that ask for the same share their pod sets.

    Resources that no node lists (CPUs of `64x{gpu=8}`) are not requested: the shape leaves them
    out.
    """

    __slots__ = (
        "_limit",
        "_pod_sets",
        "_priority",
        "_queues",
        "_submit",
        "_submit_options",
        "keys",
    )

    def __init__(
        self, trace: Trace, nodes: tuple[Node, ...], multifactor: MultifactorRules | None = None
    ) -> None:
        listed = {str(name) for node in nodes for name, amount in node.allocatable if amount}
        columns = [trace.pods, trace.cpu, trace.memory, trace.gpus, trace.gpu_milli, trace.model]
        first, alike = _alike(columns)
        asked: list[_Asked] = [(*row,) for row in np.stack([c[first] for c in columns], 1).tolist()]
        known = [(_pod_set(each, trace.model_sets[each[-1]], listed),) for each in asked]
        self._pod_sets: list[tuple[PodSet, ...]] = [known[number] for number in alike.tolist()]
        submit = np.floor(trace.submit * 1000).astype(np.int64) + round(trace.epoch * 1000)
        self._submit: list[int] = submit.tolist()
        endless = np.isinf(trace.request)
        limits = np.ceil(np.where(endless, 0.0, trace.request) * 1000).astype(np.int64)
        self._limit: list[int | None] = limits.tolist()
        for row in np.flatnonzero(endless).tolist():
            self._limit[row] = None
        self._priority: list[int] = trace.priority.tolist()
        queue = [local_queue(number) for number in range(len(trace.queues))]
        self._queues = [queue[number] for number in trace.queue.tolist()]
        self._submit_options = _submit_options_of(trace, multifactor)
        self.keys = [WorkloadKey(f"{NAMESPACE}/{row}") for row in range(len(trace))]  # by row

    def make(self, row: int) -> Workload:
        """Make the workload of a row."""
        return Workload(
            key=self.keys[row],
            uid=str(_BEFORE_UIDS + row)[1:],
            queue=self._queues[row],
            pod_sets=self._pod_sets[row],
            priority=self._priority[row],
            created_at=Instant(self._submit[row]),
            time_limit_ms=self._limit[row],
            submit_options=self._submit_options[row],
        )


def local_queue(number: int) -> LocalQueueKey:
    """Return the LocalQueue that stands for a queue of the trace."""
    return LocalQueueKey(f"{NAMESPACE}/q{number}")


def _submit_options_of(trace: Trace, rules: MultifactorRules | None) -> list[SubmitOptions]:
    """Return user and account of each job; the account has the name of its queue or group."""
    without_account = SubmitOptions()
    if rules is None:
        return [without_account] * len(trace)
    accounts = {one.account for one in rules.associations}
    known: dict[tuple[int, int, int], SubmitOptions] = {}
    found: list[SubmitOptions] = []
    rows = zip(trace.queue.tolist(), trace.group.tolist(), trace.user.tolist(), strict=True)
    for row in rows:
        options = known.get(row)
        if options is None:
            queue, group, user = row
            names = (account_of(trace.queues[queue]), account_of(trace.groups[group]))
            account = next((name for name in names if name in accounts), "")
            options = known[row] = SubmitOptions(account=account, user=trace.users[user])
        found.append(options)
    return found


def account_of(name: str) -> str:
    """Return the account that stands for a queue or a group of the trace."""
    return name or "unnamed"


def _alike(columns: list[_Integers]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Number the rows that are alike in all columns; return the first row of each number, too."""
    alike = np.zeros(columns[0].shape[0], np.intp)
    for column in columns:
        if column.shape[0] and (column != column[0]).any():
            values, numbers = np.unique(column, return_inverse=True)
            alike = np.unique(alike * values.shape[0] + numbers, return_inverse=True)[1]
    return np.unique(alike, return_index=True)[1], alike


def _pod_set(asked: _Asked, models: tuple[str, ...], listed: set[str]) -> PodSet:
    count, cpu, memory, gpus, gpu_milli, _ = asked
    wanted: dict[str, int] = {"cpu": cpu, "memory": memory * MIB}
    if gpus:
        wanted = {name: amount for name, amount in wanted.items() if name in listed}
        shares = gpus == 1 and gpu_milli < WHOLE_GPU
        wanted |= {str(share_of(GPU)): gpu_milli} if shares else {GPU: gpus}
    requests: Amounts = amounts({name: amount for name, amount in wanted.items() if amount})
    affinity = ((Requirement(MODEL, "In", models),),) if models else ()
    return PodSet(count=count, requests=requests, affinity=affinity)
