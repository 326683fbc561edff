"""The jobs of a trace, as the engine knows them: workloads, made one by one as they arrive."""

from __future__ import annotations

import math

import numpy as np

from unisono.engine.model.names import Instant, LocalQueueKey, WorkloadKey
from unisono.engine.model.node import Node
from unisono.engine.model.resources import WHOLE_GPU, Amounts, amounts, share_of
from unisono.engine.model.selection import Requirement
from unisono.engine.model.turns import Turns
from unisono.engine.model.workload import PodSet, Workload
from unisono.sim.clusters import GPU, MIB, MODEL
from unisono.sim.layout import turns_of
from unisono.sim.trace import Trace

NAMESPACE = "sim"
_Asked = tuple[int, int, int, int, int, int]  # pods, CPU, memory, GPUs, part of each, models


class Jobs:
    """Makes the workload of a row; rows that ask for the same share their pod sets.

    What no node of the cluster lists (CPUs of `64x{gpu=8}`) is not asked for: nobody described it.
    """

    __slots__ = ("_limit", "_pod_sets", "_priority", "_queues", "_submit", "_whose", "keys")

    def __init__(self, trace: Trace, nodes: tuple[Node, ...], turns: Turns | None = None) -> None:
        listed = {str(name) for node in nodes for name, amount in node.allocatable if amount}
        columns = zip(
            trace.pods.tolist(),
            trace.cpu.tolist(),
            trace.memory.tolist(),
            trace.gpus.tolist(),
            trace.gpu_milli.tolist(),
            trace.model.tolist(),
            strict=True,
        )
        known: dict[_Asked, tuple[PodSet, ...]] = {}
        self._pod_sets: list[tuple[PodSet, ...]] = []
        for asked in columns:
            found = known.get(asked)
            if found is None:
                found = known[asked] = (_pod_set(asked, trace.model_sets[asked[-1]], listed),)
            self._pod_sets.append(found)
        self._submit: list[int] = np.floor(trace.submit * 1000).astype(np.int64).tolist()
        self._limit: list[int | None] = [
            None if math.isinf(request) else math.ceil(request * 1000)
            for request in trace.request.tolist()
        ]
        self._priority: list[int] = trace.priority.tolist()
        queue = [local_queue(number) for number in range(len(trace.queues))]
        self._queues = [queue[number] for number in trace.queue.tolist()]
        self._whose = turns_of(trace, turns)
        self.keys = [WorkloadKey(f"{NAMESPACE}/{row}") for row in range(len(trace))]  # by row

    def make(self, row: int) -> Workload:
        """Make the workload of a row."""
        return Workload(
            key=self.keys[row],
            uid=str(row).zfill(9),
            queue=self._queues[row],
            pod_sets=self._pod_sets[row],
            priority=self._priority[row],
            created_at=Instant(self._submit[row]),
            time_limit_ms=self._limit[row],
            turn=self._whose[row],
        )


def row_of(key: WorkloadKey) -> int:
    """Return the row that a workload stands for."""
    return int(key[len(NAMESPACE) + 1 :])


def local_queue(number: int) -> LocalQueueKey:
    """Return the LocalQueue that stands for a queue of the trace."""
    return LocalQueueKey(f"{NAMESPACE}/q{number}")


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
