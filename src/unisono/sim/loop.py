"""The simulator: virtual time around the engine that also decides live.

Events of one instant are taken in this order: nodes fail, jobs complete, nodes come back, jobs are
submitted; then the engine decides until nothing changes. What it admits runs for its true run time,
which the engine does not know; who has to leave starts over, or goes on from its last checkpoint.
The same inputs give the same log, byte for byte.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final

import numpy as np
import numpy.typing as npt

from unisono.engine.cycle import Decides, plan
from unisono.engine.dry_run import leave, refuse_if_broken
from unisono.engine.explain.messages import message_of
from unisono.engine.explain.waiting import explanation
from unisono.engine.model.names import Instant, NodeName, WorkloadKey
from unisono.engine.model.node import Node
from unisono.engine.model.plan import Admit, Plan, evictions
from unisono.engine.state.apply_plan import apply_plan
from unisono.sim.bill import Bill, bill_of, standing
from unisono.sim.clusters import capacity_of, node_sizes
from unisono.sim.collecting import few_collections
from unisono.sim.faults import Faults
from unisono.sim.jobs import Jobs
from unisono.sim.outcome import Capacity, Depth, Effort, Outcome, Spans, Stretches, make_outcome
from unisono.sim.outside import MOST_INTERRUPTIONS, Outside, given_up, jobs_text
from unisono.sim.renting import EvictionTriggers, Rental
from unisono.sim.restarts import Restarts
from unisono.sim.sampling import FragmentSampler
from unisono.sim.setup import Rules, entitlements, make_state
from unisono.sim.trace import Trace

Progress = Callable[[int, int], None]  # completed jobs, all jobs
# Kueue's own rules may let workloads evict each other for ever (spec quota §18).
MOST_CYCLES: Final = 10_000
NOT_RUNNING: Final = float("-inf")


@dataclass(slots=True)
class _Log:
    """What happened, in columns that grow."""

    # After each decision: when, how many wait, how many run, and what they have of CPUs and GPUs.
    time: list[float] = field(default_factory=list)
    pending: list[int] = field(default_factory=list)
    running: list[int] = field(default_factory=list)
    cpu: list[int] = field(default_factory=list)
    gpu: list[int] = field(default_factory=list)
    stretch_job: list[int] = field(default_factory=list)
    stretch_start: list[float] = field(default_factory=list)
    stretch_end: list[float] = field(default_factory=list)
    span_job: list[int] = field(default_factory=list)
    span_node: list[int] = field(default_factory=list)
    span_start: list[float] = field(default_factory=list)
    span_end: list[float] = field(default_factory=list)
    span_pods: list[int] = field(default_factory=list)


def simulate(
    trace: Trace,
    nodes: tuple[Node, ...],
    rules: Rules,
    *,
    restarts: Restarts | None = None,
    spans: bool = False,
    checked: bool = False,
    seed: int = 0,
    clock: Callable[[], float] | None = None,
    cpu_clock: Callable[[], float] | None = None,
    progress: Progress | None = None,
    complain: Callable[[str], None] | None = None,
    decides: Decides = plan,
    terms: EvictionTriggers | None = None,
    prices: Mapping[NodeName, int] | None = None,
    faults: Faults | None = None,
) -> Outcome:
    """Replay a trace under a policy; `checked` asks the auditor about every plan.

    By `terms` machines are bought beside the nodes, at `prices` an hour; by `faults` nodes fail.
    """
    run = _Run(trace, nodes, rules, restarts or Restarts(), spans, checked, terms, prices or {})
    run.decides = decides
    policy = run.state.policy
    if faults is not None or policy.reservations or policy.turns is not None:
        run.outside = Outside(run.state, run.base, nodes, faults)
    # An auditor reads why jobs wait, and whoever buys or looks at plans. Those that never start are
    # examined by the pass that always explains.
    run.state.explains = checked or terms is not None or decides is not plan
    clocks = [one or float for one in (clock, cpu_clock)]  # float() is 0.0
    began = [one() for one in clocks]
    with few_collections():
        run.go(progress)
    wall_s, cpu_s = (one() - first for one, first in zip(clocks, began, strict=True))
    never = run.why_never()
    if never and complain is not None:
        complain(never)
    effort = Effort(decisions=run.decisions, passes=run.passes, wall_s=wall_s, cpu_s=cpu_s)
    return run.outcome(seed, effort)


class _Run:
    """One simulation."""

    def __init__(
        self,
        trace: Trace,
        nodes: tuple[Node, ...],
        rules: Rules,
        restarts: Restarts,
        spans: bool,  # as `simulate` has them
        checked: bool,
        terms: EvictionTriggers | None,
        prices: Mapping[NodeName, int],
    ) -> None:
        count = len(trace)
        self.base = round(trace.epoch * 1000)  # the instant of second 0
        self.trace = trace
        self.nodes = nodes
        self.rules = rules
        self.restarts = restarts
        models = () if terms is None else terms.model_nodes()
        self.state = make_state(nodes, rules, trace, buys=terms is not None)
        self._rental = None if terms is None else Rental(terms, self.state, self.base)
        self._prices = prices
        # By row. Lists: one number at a time is what NumPy is slow at.
        self.start = [math.nan] * count
        self.end = [math.nan] * count
        self.lost = [0.0] * count
        self.ran = [0.0] * count
        self.preemptions = [0] * count
        self.reclaims = [0] * count
        self.interruptions: dict[int, int] = {}
        self.outside: Outside | None = None
        self.passes = 0
        self.decides: Decides = plan
        self.decisions = 0
        self.log = _Log()
        self._checked = checked
        self._one_pass_is_all = rules.policy.backfill is not None
        self._spans = spans
        self._row_of_node = {node.name: row for row, node in enumerate(nodes)}
        self._jobs = Jobs(trace, (*nodes, *models), self.state.policy.turns)
        self._row_of = {key: row for row, key in enumerate(self._jobs.keys)}
        if trace.is_endless:
            # As in the published experiments: what pods are like is known beforehand.
            everybody = [self._jobs.make(row) for row in range(count)]
            self.state.nodes.fix_mix(pod for one in everybody for pod in one.pod_sets)
        self._run_s: list[float] = trace.run.tolist()
        self._job_cpu: list[int] = trace.job_cpu.tolist()
        self._job_gpu: list[int] = trace.job_gpu_milli.tolist()
        self._since = [NOT_RUNNING] * count  # since when each runs
        self._running = 0  # how many do
        self._places: dict[int, Admit] = {}
        self._overhead: dict[int, float] = {}  # of those: what they first have to restore
        self._attempts = [0] * count
        self._ends: list[tuple[float, int, int]] = []  # time, attempt, row
        self._used_cpu = 0
        self._used_gpu = 0
        has_gpus = capacity_of(nodes).gpu_milli > 0 and terms is None and bool(trace.gpus.any())
        self._sampler = FragmentSampler(trace, nodes) if has_gpus else None

    def go(self, progress: Progress | None) -> None:
        """Let everything happen."""
        state, ends, trace = self.state, self._ends, self.trace
        attempts, since, jobs = self._attempts, self._since, self._jobs
        submits: list[float] = trace.submit.tolist()
        count, arrived, done = len(submits), 0, 0
        fills = trace.is_endless
        rental, outside, base = self._rental, self.outside, self.base
        while (
            ends
            or arrived < count
            or (rental is not None and rental.next_due() < math.inf)
            or (outside is not None and outside.is_awaited())
        ):
            now = ends[0][0] if ends else math.inf
            if arrived < count and submits[arrived] < now:
                now = submits[arrived]
            if rental is not None:
                now = min(now, rental.next_due())
            if outside is not None:
                now = min(now, outside.next_due())
            instant = outside.instant(now) if outside else Instant(base + int(now * 1000))
            if instant > state.now:
                state.advance(instant)
            if outside is not None:
                outside.fail(now, self._lose)
            while ends and ends[0][0] == now:
                _, attempt, row = heappop(ends)
                if since[row] > NOT_RUNNING and attempts[row] == attempt:
                    self._complete(row, now)
                    done += 1
            if rental is not None:
                for admit in rental.advance(now, instant):
                    self._send_away(admit, now)
                    self._start(admit, now)
            if outside is not None:
                outside.mend(self.decisions)
            while arrived < count and submits[arrived] == now:
                state.submit(jobs.make(arrived))
                arrived += 1
            self._decide(now, instant)
            if fills:  # nobody leaves, so who does not fit now never will
                self._turn_away()
            if progress is not None:
                progress(arrived if fills else done, count)

    def _turn_away(self) -> None:
        """Let everybody go who waits."""
        for key in [*self.state.waiting]:
            self.state.remove(key)

    def _complete(self, row: int, now: float) -> None:
        self.end[row] = now
        self._stop(row, now)
        if self._overhead and row in self._overhead:
            self.lost[row] += self._overhead[row]  # restoring is no progress
        self.state.remove(self._jobs.keys[row])

    def _decide(self, now: float, instant: Instant) -> None:
        """Decide until nothing changes."""
        state = self.state
        for _ in range(MOST_CYCLES):
            made = self.decides(state, instant)
            self.passes += 1
            if self._checked:
                refuse_if_broken(state, made)
            changed = apply_plan(state, made)
            for admit in made.admissions:
                self._start(admit, now)
            if not changed:
                break
            told = bool(made.preemptions or made.stops)
            if told:
                self._evict(made, now, instant)
            elif self._one_pass_is_all:
                break
        log = self.log
        log.time.append(now)
        log.pending.append(len(state.waiting))
        log.running.append(self._running)
        log.cpu.append(self._used_cpu)
        log.gpu.append(self._used_gpu)
        if self._sampler is not None:
            self._sampler.look(state, now)

    def _start(self, admit: Admit, now: float) -> None:
        row = self._row_of[admit.workload]
        if self._rental is not None:
            if admit.purchase is not None:
                self._rental.buy(admit, now)
                return
            self._rental.moved_in(admit.workload, admit.admission)
            self._rental.lend(admit.workload, admit.lent_by)
        self.decisions += 1
        attempt = self._attempts[row] + 1
        if attempt == 1:
            self.start[row] = now
        self._attempts[row] = attempt
        self._since[row] = now
        self._running += 1
        if self._spans:
            self._places[row] = admit
        self._used_cpu += self._job_cpu[row]
        self._used_gpu += self._job_gpu[row]
        left = self._run_s[row]
        if self._overhead and row in self._overhead:
            left += self._overhead[row]
        if left < math.inf:
            heappush(self._ends, (now + left, attempt, row))

    def _stop(self, row: int, now: float) -> float:
        """Take a job off its nodes; return how long it was there."""
        since, self._since[row] = self._since[row], NOT_RUNNING
        self._running -= 1
        if self._rental is not None:
            self._rental.moved_out(self._jobs.keys[row], now)
        self._used_cpu -= self._job_cpu[row]
        self._used_gpu -= self._job_gpu[row]
        self.ran[row] += now - since
        log = self.log
        log.stretch_job.append(row)
        log.stretch_start.append(since)
        log.stretch_end.append(now)
        if self._spans:
            for pod_set in self._places.pop(row).admission.pod_sets:
                for node, pods in pod_set.nodes:
                    log.span_job.append(row)
                    log.span_node.append(self._place_of(node))
                    log.span_start.append(since)
                    log.span_end.append(now)
                    log.span_pods.append(pods)
        return now - since

    def _place_of(self, node: NodeName) -> int:
        """Return the number of a node; those that were bought get theirs on first use."""
        return self._row_of_node.setdefault(node, len(self._row_of_node))

    def _evict(self, made: Plan, now: float, instant: Instant) -> None:
        """Let victims leave at once, with what they keep of their work."""
        stops = {stop.workload: stop for stop in made.stops}
        for eviction in evictions(made):
            row = self._row_of[eviction.workload]
            if self._rental is not None and self._rental.cancel(eviction.workload, now):
                self.preemptions[row] += 1  # it had not started, so it loses nothing
                leave(self.state, eviction.workload, instant, stops.get(eviction.workload))
                continue
            self._interrupt(row, now)
            self.preemptions[row] += 1
            self.reclaims[row] += eviction.reason.startswith("InCohort")
            leave(self.state, eviction.workload, instant, stops.get(eviction.workload))

    def _interrupt(self, row: int, now: float, *, is_lost: bool = False) -> None:
        """Stop a job that is not done, with what it keeps of its work."""
        stayed = self._stop(row, now)
        worked = max(0.0, stayed - self._overhead.get(row, 0.0))
        kept = self.restarts.kept(worked, is_lost=is_lost)
        self.lost[row] += stayed - kept
        self._run_s[row] -= kept
        self._overhead[row] = self.restarts.restore_s if kept else self._overhead.get(row, 0.0)

    def _send_away(self, admit: Admit, now: float) -> None:
        """Let short jobs leave that are still on nodes of a gang that starts."""
        assert self._rental is not None, "only who waited for machines lends"
        for guest in self._rental.guests_of(admit):
            self._interrupt(self._row_of[guest], now)
            self.state.submit(self.state.running[guest].holding.workload)

    def _lose(self, key: WorkloadKey, now: float) -> None:
        """Let a job queue again whose node failed, or give it up: some would never be done."""
        row = self._row_of[key]
        self._interrupt(row, now, is_lost=True)
        self.interruptions[row] = self.interruptions.get(row, 0) + 1
        if self.interruptions[row] < MOST_INTERRUPTIONS:
            self.state.submit(self.state.running[key].holding.workload)
        else:
            self.state.remove(key)

    def why_never(self) -> str:
        """Say how many jobs never started, and why the first of them did not."""
        left = np.flatnonzero(np.isnan(np.array(self.start)))
        if not left.shape[0]:
            return given_up(self.interruptions)
        first = int(left[0])
        found = explanation(self.state, self._jobs.keys[first])
        why = f": {message_of(found)}" if found is not None else ""
        return f"{jobs_text(len(left))} never started; job {self.trace.name_of(first)}{why}"

    def _known_nodes(self) -> tuple[Node, ...]:
        """Return every node that there ever was, in the order of their numbers."""
        joined = () if self._rental is None else self._rental.joined
        used = {node.name: node for node in joined if node.name in self._row_of_node}
        return (*self.nodes, *(used[name] for name in self._row_of_node if name in used))

    def _bill(self) -> Bill | None:
        """Return what all machines cost; None if nobody knows a price."""
        end = float(np.nanmax(np.concatenate([self.end, self.trace.submit, [0.0]])))
        items = standing(self.nodes, self._prices, float(self.trace.submit.min(initial=end)), end)
        if self._rental is not None:
            items += self._rental.items(end)
        return bill_of(items) if items or self._rental is not None else None

    def _capacity(self, bill: Bill | None) -> Capacity:
        """Return what there is; of machines that come and go, the most that there was at a time."""
        has = capacity_of(self.nodes)
        if self._rental is None or bill is None:
            return has
        bought = bill_of(self._rental.items(float(bill.end.max(initial=0.0))))
        return Capacity(
            nodes=has.nodes + bought.peak(),
            cpu=has.cpu + bought.most(bought.cpu),
            memory=has.memory,
            gpu_milli=has.gpu_milli + bought.most(bought.gpu_milli),
        )

    def outcome(self, seed: int, effort: Effort) -> Outcome:
        """Return everything as columns."""
        log, nodes, bill = self.log, self._known_nodes(), self._bill()
        spans = None
        if self._spans:
            spans = Spans(
                names=tuple(str(node.name) for node in nodes),
                job=_integers(log.span_job),
                node=_integers(log.span_node),
                start=_floats(log.span_start),
                end=_floats(log.span_end),
                pods=_integers(log.span_pods),
                size=node_sizes(nodes, in_gpus=bool(self.trace.gpus.any())),
            )
        return make_outcome(
            self.rules.name,
            self.trace,
            self._capacity(bill),
            start=_floats(self.start),
            end=_floats(self.end),
            running=_floats(self.ran),
            lost=_floats(self.lost),
            preemptions=_integers(self.preemptions),
            reclaims=_integers(self.reclaims),
            stretches=Stretches(
                job=_integers(log.stretch_job),
                start=_floats(log.stretch_start),
                end=_floats(log.stretch_end),
            ),
            depth=Depth(
                time=_floats(log.time),
                pending=_integers(log.pending),
                running=_integers(log.running),
                cpu=_integers(log.cpu),
                gpu_milli=_integers(log.gpu),
            ),
            entitlement=entitlements(self.trace),
            seed=seed,
            spans=spans,
            fragments=self._sampler.found() if self._sampler is not None else None,
            effort=effort,
            bill=bill,
            interruptions=sum(self.interruptions.values()),
        )


# Told that it iterates, NumPy does not ask of every number in a list what it is.


def _floats(values: list[float]) -> npt.NDArray[np.float64]:
    return np.fromiter(values, np.float64, len(values))


def _integers(values: list[int]) -> npt.NDArray[np.int64]:
    return np.fromiter(values, np.int64, len(values))
