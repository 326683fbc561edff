"""The simulator: virtual time around the engine that also decides live.

Events of one instant are taken in this order: nodes fail, jobs complete, nodes come back, jobs are
submitted; then the engine decides until nothing changes. What it admits runs for its true run time,
which the engine does not know; an evicted job starts over, or resumes from its last checkpoint.
The same inputs give the same log, byte for byte.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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
from unisono.sim.clusters import capacity_of, node_sizes
from unisono.sim.cost import Bill, bill_of, fixed_nodes
from unisono.sim.faults import MOST_INTERRUPTIONS, ExternalEvents, Faults, gave_up, jobs_text
from unisono.sim.fragmentation import FragmentSampler
from unisono.sim.jobs import Jobs
from unisono.sim.outcome import Capacity, Depth, Effort, Outcome, RunIntervals, Spans, make_outcome
from unisono.sim.provisioning import ProvisioningRules, RentedMachines
from unisono.sim.setup import Restarts, Rules, entitlements, make_state
from unisono.sim.trace import Trace

# Objects between two collections: a few megabytes.
COLLECTED_AFTER = 50_000


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect garbage rarely: the engine makes many values, and none of them in a cycle."""
    before = gc.get_threshold()
    gc.set_threshold(COLLECTED_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


Progress = Callable[[int, int], None]  # completed jobs, all jobs
# Under Kueue's rules workloads may evict each other for ever (spec quota §18).
MOST_CYCLES: Final = 10_000
NOT_RUNNING: Final = float("-inf")


@dataclass(slots=True)
class _Log:
    """What happened, in columns that grow."""

    # After each decision: time, pending jobs, running jobs, and the CPUs and GPUs that they use.
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
    provisioning: ProvisioningRules | None = None,
    prices: Mapping[NodeName, int] | None = None,
    faults: Faults | None = None,
) -> Outcome:
    """Replay a trace under a policy; `checked` has the auditor check every plan.

    With `provisioning`, machines are bought besides the nodes, which cost `prices` an hour; with
    `faults`, nodes fail.
    """
    run = _Run(
        trace, nodes, rules, restarts or Restarts(), spans, checked, provisioning, prices or {}
    )
    run.decides = decides
    policy = run.state.policy
    if faults is not None or policy.reservations or policy.multifactor is not None:
        run.external_events = ExternalEvents(run.state, run.base, nodes, faults)
    # Explanations are needed by the auditor, by provisioning, and by an own `decides`. For jobs
    # that never start, `explanation` works them out at the end.
    run.state.explains = checked or provisioning is not None or decides is not plan
    clocks = [one or float for one in (clock, cpu_clock)]  # float() is 0.0
    began = [one() for one in clocks]
    with rare_collections():
        run.go(progress)
    wall_s, cpu_s = (one() - first for one, first in zip(clocks, began, strict=True))
    never = run.never_started_text()
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
        provisioning: ProvisioningRules | None,
        prices: Mapping[NodeName, int],
    ) -> None:
        count = len(trace)
        self.base = round(trace.epoch * 1000)  # the instant of second 0
        self.trace = trace
        self.nodes = nodes
        self.rules = rules
        self.restarts = restarts
        models = () if provisioning is None else provisioning.model_nodes()
        self.state = make_state(nodes, rules, trace, buys=provisioning is not None)
        self._rented = (
            None if provisioning is None else RentedMachines(provisioning, self.state, self.base)
        )
        self._prices = prices
        # By row. Lists: one number at a time is what NumPy is slow at.
        self.start = [math.nan] * count
        self.end = [math.nan] * count
        self.lost = [0.0] * count
        self.ran = [0.0] * count
        self.preemptions = [0] * count
        self.reclaims = [0] * count
        self.interruptions: dict[int, int] = {}
        self.external_events: ExternalEvents | None = None
        self.passes = 0
        self.decides: Decides = plan
        self.decisions = 0
        self.log = _Log()
        self._checked = checked
        self._one_pass_is_all = rules.policy.backfill is not None
        self._spans = spans
        self._row_of_node = {node.name: row for row, node in enumerate(nodes)}
        self._jobs = Jobs(trace, (*nodes, *models), self.state.policy.multifactor)
        self._row_of = {key: row for row, key in enumerate(self._jobs.keys)}
        if trace.is_endless:
            # As in the published experiments, the mix of pods is known beforehand.
            workloads = [self._jobs.make(row) for row in range(count)]
            self.state.nodes.fix_mix(pod for one in workloads for pod in one.pod_sets)
        self._run_s: list[float] = trace.run.tolist()
        self._job_cpu: list[int] = trace.job_cpu.tolist()
        self._job_gpu: list[int] = trace.job_gpu_milli.tolist()
        self._since = [NOT_RUNNING] * count  # when its present run began, or NOT_RUNNING
        self._running = 0  # how many jobs run
        self._places: dict[int, Admit] = {}
        self._overhead: dict[int, float] = {}  # by row: seconds to restore its checkpoint
        self._attempts = [0] * count
        self._ends: list[tuple[float, int, int]] = []  # time, attempt, row
        self._used_cpu = 0
        self._used_gpu = 0
        has_gpus = (
            capacity_of(nodes).gpu_milli > 0 and provisioning is None and bool(trace.gpus.any())
        )
        self._sampler = FragmentSampler(trace, nodes) if has_gpus else None

    def go(self, progress: Progress | None) -> None:
        """Run until no event is left."""
        state, ends, trace = self.state, self._ends, self.trace
        attempts, since, jobs = self._attempts, self._since, self._jobs
        submits: list[float] = trace.submit.tolist()
        count, arrived, done = len(submits), 0, 0
        fills = trace.is_endless
        rental, external_events, base = self._rented, self.external_events, self.base
        while (
            ends
            or arrived < count
            or (rental is not None and rental.next_due() < math.inf)
            or (external_events is not None and external_events.may_unblock())
        ):
            now = ends[0][0] if ends else math.inf
            if arrived < count and submits[arrived] < now:
                now = submits[arrived]
            if rental is not None:
                now = min(now, rental.next_due())
            if external_events is not None:
                now = min(now, external_events.next_due())
            instant = (
                external_events.instant(now) if external_events else Instant(base + int(now * 1000))
            )
            if instant > state.now:
                state.advance(instant)
            if external_events is not None:
                external_events.fail(now, self._lose)
            while ends and ends[0][0] == now:
                _, attempt, row = heappop(ends)
                if since[row] > NOT_RUNNING and attempts[row] == attempt:
                    self._complete(row, now)
                    done += 1
            if rental is not None:
                for admit in rental.advance(now, instant):
                    self._send_away(admit, now)
                    self._start(admit, now)
            if external_events is not None:
                external_events.recover(self.decisions)
            while arrived < count and submits[arrived] == now:
                state.submit(jobs.make(arrived))
                arrived += 1
            self._decide(now, instant)
            if fills:  # no job ends, so one that does not fit now never will
                self._turn_away()
            if progress is not None:
                progress(arrived if fills else done, count)

    def _turn_away(self) -> None:
        """Remove every pending job."""
        for key in [*self.state.waiting]:
            self.state.remove(key)

    def _complete(self, row: int, now: float) -> None:
        self.end[row] = now
        self._stop(row, now)
        if self._overhead and row in self._overhead:
            self.lost[row] += self._overhead[row]  # restoring a checkpoint is not progress
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
            evicts = bool(made.preemptions or made.evictions_due)
            if evicts:
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
        if self._rented is not None:
            if admit.purchase is not None:
                self._rented.buy(admit, now)
                return
            self._rented.pods_started(admit.workload, admit.admission)
            self._rented.record_opportunistic_use(admit.workload, admit.opportunistic_on)
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
        """Take a job off its nodes; return how long it ran there."""
        since, self._since[row] = self._since[row], NOT_RUNNING
        self._running -= 1
        if self._rented is not None:
            self._rented.pods_ended(self._jobs.keys[row], now)
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
        """Return the number of a node; bought nodes are numbered on first use."""
        return self._row_of_node.setdefault(node, len(self._row_of_node))

    def _evict(self, made: Plan, now: float, instant: Instant) -> None:
        """Evict the plan's victims at once; each keeps the work of its last checkpoint."""
        due = {one.workload: one for one in made.evictions_due}
        for eviction in evictions(made):
            row = self._row_of[eviction.workload]
            if self._rented is not None and self._rented.cancel(eviction.workload, now):
                self.preemptions[row] += 1  # it had not started, so it loses nothing
                leave(self.state, eviction.workload, instant, due.get(eviction.workload))
                continue
            self._interrupt(row, now)
            self.preemptions[row] += 1
            self.reclaims[row] += eviction.reason.startswith("InCohort")
            leave(self.state, eviction.workload, instant, due.get(eviction.workload))

    def _interrupt(self, row: int, now: float, *, is_lost: bool = False) -> None:
        """Stop a job before its end; it keeps the work of its last checkpoint."""
        stayed = self._stop(row, now)
        worked = max(0.0, stayed - self._overhead.get(row, 0.0))
        kept = self.restarts.kept(worked, is_lost=is_lost)
        self.lost[row] += stayed - kept
        self._run_s[row] -= kept
        self._overhead[row] = self.restarts.restore_s if kept else self._overhead.get(row, 0.0)

    def _send_away(self, admit: Admit, now: float) -> None:
        """Evict opportunistic jobs from the nodes of a gang that starts."""
        assert self._rented is not None, "only gangs that wait for machines have opportunistic jobs"
        for opportunistic in self._rented.jobs_to_evict(admit):
            self._interrupt(self._row_of[opportunistic], now)
            self.state.submit(self.state.running[opportunistic].admitted.workload)

    def _lose(self, key: WorkloadKey, now: float) -> None:
        """Requeue a job whose node failed, or give it up after too many interruptions."""
        row = self._row_of[key]
        self._interrupt(row, now, is_lost=True)
        self.interruptions[row] = self.interruptions.get(row, 0) + 1
        if self.interruptions[row] < MOST_INTERRUPTIONS:
            self.state.submit(self.state.running[key].admitted.workload)
        else:
            self.state.remove(key)

    def never_started_text(self) -> str:
        """Say how many jobs never started, and why the first of them did not."""
        left = np.flatnonzero(np.isnan(np.array(self.start)))
        if not left.shape[0]:
            return gave_up(self.interruptions)
        first = int(left[0])
        found = explanation(self.state, self._jobs.keys[first])
        why = f": {message_of(found)}" if found is not None else ""
        return f"{jobs_text(len(left))} never started; job {self.trace.name_of(first)}{why}"

    def _known_nodes(self) -> tuple[Node, ...]:
        """Return every node of the run, in the order of their numbers."""
        joined = () if self._rented is None else self._rented.joined
        used = {node.name: node for node in joined if node.name in self._row_of_node}
        return (*self.nodes, *(used[name] for name in self._row_of_node if name in used))

    def _bill(self) -> Bill | None:
        """Return what all machines cost; None if no price is known."""
        end = float(np.nanmax(np.concatenate([self.end, self.trace.submit, [0.0]])))
        items = fixed_nodes(
            self.nodes, self._prices, float(self.trace.submit.min(initial=end)), end
        )
        if self._rented is not None:
            items += self._rented.items(end)
        return bill_of(items) if items or self._rented is not None else None

    def _capacity(self, bill: Bill | None) -> Capacity:
        """Return the capacity of the cluster; of bought machines, the most at one time."""
        has = capacity_of(self.nodes)
        if self._rented is None or bill is None:
            return has
        bought = bill_of(self._rented.items(float(bill.end.max(initial=0.0))))
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
            run_intervals=RunIntervals(
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


# From an iterator NumPy does not inspect the type of every number first.


def _floats(values: list[float]) -> npt.NDArray[np.float64]:
    return np.fromiter(values, np.float64, len(values))


def _integers(values: list[int]) -> npt.NDArray[np.int64]:
    return np.fromiter(values, np.int64, len(values))
