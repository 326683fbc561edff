"""Drain: a backlog over many queues, a cluster with room for all, cycles until nothing waits.

The promise is about 50,000 workloads over 1,000 queues in 100 cohorts. Each asks for CPU, memory
and GPUs; a second series asks for GPUs alone. The cost of an admission must not depend on how many
still wait: it is compared between backlogs of different length and, within one drain, between its
first, middle and last tenth. `audited` adds the independent second opinion, which reads the whole
picture on every cycle by design.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import msgspec

from bench.harness import (
    FEWEST_SAMPLES,
    Finding,
    Note,
    Row,
    Scale,
    figures,
    growth_target,
    row,
    seconds,
    target,
)
from bench.worlds import GPU, Layout, backlog, cycle, empty_cluster, submit
from unisono.engine.cycle import plan
from unisono.engine.dry_run import refuse_if_broken
from unisono.engine.model.workload import Workload
from unisono.engine.state.apply_plan import apply_plan
from unisono.engine.state.cluster import ClusterState

ADMISSIONS_PER_S = 10_000
MOST_DEARER = 1.25  # first tenth against last: "independent", with room for noise
MOST_GROWTH = 1.1  # of the whole drain, with its length
ROOM = 1 << 40  # GPUs a queue owns: enough for any backlog


@dataclass(frozen=True)
class Sizes:
    """How many wait, where."""

    pending: tuple[int, ...]
    some: int  # waiting, where something else is varied
    queues: int
    cohort_size: int
    kinds: tuple[int, ...]  # in a queue, at the smallest backlog
    alone: tuple[int, ...]  # waiting in a single queue
    audited: tuple[int, ...]
    audited_queues: int


SIZES: dict[Scale, Sizes] = {
    "full": Sizes(
        (1_500, 5_000, 15_000, 50_000),
        5_000,
        1_000,
        10,
        (1, 4, 16),
        (2_000, 10_000),
        (500, 2_000),
        100,
    ),
    "quick": Sizes((1_000, 4_000), 1_000, 100, 10, (1, 8), (500, 2_000), (100, 400), 20),
    "tiny": Sizes((20, 40), 20, 4, 2, (1, 2), (10, 20), (10, 20), 2),
}


def measure(scale: Scale) -> Iterator[Finding]:
    """Drain backlogs of several lengths."""
    sizes = SIZES[scale]
    layout = Layout(sizes.queues, cohort_size=sizes.cohort_size, gpus=ROOM)
    yield Note(f"{layout.queues:,} queues in {layout.queues // layout.cohort_size} cohorts")
    whole: list[Row] = []
    most, largest = 0, list[Cycles]()
    for most in sizes.pending:
        largest = _drains(layout, backlog(most, layout.queues))
        yield _cost("CPU, memory and GPUs", largest)
        whole.append(row("all of them", most, "pending", [*map(_taken, largest)], "s"))
        yield whole[-1]
    rate = figures("admissions per second", most, "pending", [*map(_rate, largest)], "1/s")
    yield rate
    tenths = [costs_by_tenth(cycles) for cycles in largest]
    for name, part in (("first", 0), ("middle", 5), ("last", 9)):
        taken = [costs[part] for costs in tenths]
        yield row(f"one admission, {name} tenth", most, "pending", taken, "us")
    gpus_alone = [_asking_for_gpus_alone(each) for each in backlog(sizes.some, layout.queues)]
    yield _cost("GPUs alone", _drains(layout, gpus_alone))
    for kinds in sizes.kinds:
        mixed = backlog(sizes.some, layout.queues, kinds=kinds)
        costs = [1 / _rate(cycles) for cycles in _drains(layout, mixed)]
        yield row("one admission, by kinds", kinds, "kinds in a queue", costs, "us")
    for count in sizes.alone:
        yield _cost("one queue", _drains(Layout(1, gpus=ROOM), backlog(count, 1)))
    small = Layout(sizes.audited_queues, cohort_size=sizes.cohort_size, gpus=ROOM)
    for count in sizes.audited:
        drains = _drains(small, backlog(count, small.queues), one_cycle=_audited_cycle)
        yield _cost("audited", drains)
    yield target("admissions per second", rate, ADMISSIONS_PER_S, better="above")
    ratios = [costs[0] / costs[9] for costs in tenths]
    compared = figures("first tenth / last tenth", most, "pending", ratios, "ratio")
    what = f"cost of an admission, {compared.what}"
    yield growth_target("growth of a drain", whole, MOST_GROWTH)
    yield target(what, compared, MOST_DEARER, better="below")


# Admissions and duration in seconds of every cycle of a drain.
Cycles = list[tuple[int, float]]


def _cost(what: str, drains: list[Cycles]) -> Row:
    """Summarise what one admission costs."""
    return row(
        f"one admission, {what}",
        sum(admitted for admitted, _ in drains[0]),
        "pending",
        [1 / _rate(cycles) for cycles in drains],
        "us",
    )


def _rate(cycles: Cycles) -> float:
    return sum(admitted for admitted, _ in cycles) / _taken(cycles)


def _taken(cycles: Cycles) -> float:
    return sum(taken for _, taken in cycles)


def _asking_for_gpus_alone(workload: Workload) -> Workload:
    (pod_set,) = workload.pod_sets
    requests = tuple((name, amount) for name, amount in pod_set.requests if name == GPU)
    alone = msgspec.structs.replace(pod_set, requests=requests)
    return msgspec.structs.replace(workload, pod_sets=(alone,))


def _drains(
    layout: Layout,
    waiting: list[Workload],
    *,
    one_cycle: Callable[[ClusterState], bool] = cycle,
) -> list[Cycles]:
    """Drain the same backlog into a fresh cluster a few times."""
    return [_drain(layout, waiting, one_cycle) for _ in range(FEWEST_SAMPLES)]


def _drain(
    layout: Layout, waiting: list[Workload], one_cycle: Callable[[ClusterState], bool]
) -> Cycles:
    state = empty_cluster(layout)
    submit(state, waiting)
    gc.collect()
    cycles: Cycles = []
    while state.waiting:
        before = len(state.waiting)
        taken = seconds(partial(one_cycle, state))
        cycles.append((before - len(state.waiting), taken))
        assert cycles[-1][0], "there is room for all"
    return cycles


def costs_by_tenth(cycles: Cycles) -> list[float]:
    """Return the cost of one admission in each tenth of a drain.

    A cycle that lies in two tenths counts in each by its part of the admissions.

    >>> [round(cost) for cost in costs_by_tenth([(5, 50.0), (5, 10.0)])]
    [10, 10, 10, 10, 10, 2, 2, 2, 2, 2]
    """
    total = sum(admitted for admitted, _ in cycles)
    costs = [0.0] * 10
    done = 0
    for admitted, taken in cycles:
        for tenth in range(10):
            low, high = total * tenth / 10, total * (tenth + 1) / 10
            inside = min(high, done + admitted) - max(low, done)
            if inside > 0:
                costs[tenth] += taken * inside / admitted
        done += admitted
    return [cost / (total / 10) for cost in costs]


def _audited_cycle(state: ClusterState) -> bool:
    """Decide one cycle, ask the auditor, file it."""
    made = plan(state, state.now)
    refuse_if_broken(state, made)
    return apply_plan(state, made)
