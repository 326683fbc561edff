"""Tells a story to the engine, step by step, and compares what it does.

    cluster, policy  ->  changes  ->  ClusterState
    each step        ->  more changes, or a question whose answer the story knows

Every plan is audited before it is carried out, and made a second time: the same picture must give
the same bytes, and leave the nodes as they were. Time is moved by hand: a workload without `at`
arrives one second after the one before it, and `time` sets the clock.
"""

from __future__ import annotations

import traceback
from collections import defaultdict
from collections.abc import Callable, Mapping
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tests.scenarios import values
from tests.scenarios.cluster import Cluster
from tests.scenarios.manifests import Manifests
from tests.scenarios.multifactor_checks import check_multifactor, check_shares, check_usage
from tests.scenarios.numbers import check_numbers
from tests.scenarios.outcomes import check_cycle, check_explanation, mismatch
from tests.scenarios.policies import policy
from tests.scenarios.reading import Part, read_yaml
from tests.scenarios.words import key_of
from unisono.engine.audit import audit
from unisono.engine.cycle import plan
from unisono.engine.dry_run import dry_run, give_up, leave
from unisono.engine.explain.waiting import explanation
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import DueEviction, Plan, evictions
from unisono.engine.model.policy import Policy
from unisono.engine.model.workload import AdmittedWorkload, CheckState, Workload
from unisono.engine.state import changes
from unisono.engine.state.apply_plan import apply_plan
from unisono.engine.state.snapshots import pending, snapshot

# No story of the specification needs more; one that does not come to rest is a failure.
_MOST_CYCLES = 100


def run(path: Path) -> None:
    """Run one scenario file; raise BadScenario or Mismatch."""
    file = read_yaml(path)
    given = file.fields("story", "spec", "twice", "policy", "cluster", "steps", "live")
    for field in ("story", "spec"):
        if field not in given:
            file.fail(f"has no {field}")
    if ("live" in given) == ("steps" in given):
        file.fail("has either steps, or the name of a story on a living cluster")
    if "live" in given:
        _tell_live(given["live"])
        return
    plans = _tell(given)
    if "twice" in given and given["twice"].flag() and _tell(given) != plans:
        raise mismatch(given["twice"], "told again, the story has other plans")


def _tell_live(part: Part) -> None:
    """Tell a story that needs controllers, a cloud and a clock: `module:function`."""
    module, _, function = part.text().partition(":")
    try:
        getattr(import_module(module), function)()
    except AssertionError as error:
        raise mismatch(part, str(error) or traceback.format_exc(limit=-1)) from error


def _tell(given: dict[str, Part]) -> list[bytes]:
    """Tell a story from its beginning; return its plans."""
    chosen = policy(given["policy"]) if "policy" in given else Policy()
    story = Story(Cluster(chosen, given.get("cluster", Part({}, "cluster"))))
    for step in given["steps"].items():
        story.take(step)
    return story.plans


class Story:
    """A cluster in the middle of a scenario."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.state = cluster.state
        self.clock = Instant(0)
        self.plans: list[bytes] = []
        self._last_arrival: Instant | None = None
        self._evicted_at: dict[WorkloadKey, list[Instant]] = defaultdict(list)
        self._stops: dict[WorkloadKey, DueEviction] = {}  # until they have left
        self._manifests = Manifests()

    def take(self, step: Part) -> None:
        """Take one step of the story."""
        fields = step.fields(*_VERBS)
        if len(fields) != 1:
            step.fail(f"is one step, with one verb, not {len(fields)}")
        for verb, part in fields.items():
            _VERBS[verb](self, part)

    # --- what happens ----------------------------------------------------------------------------

    def _submit(self, part: Part) -> None:
        for name, body in self._workloads(part):
            self.state.apply(changes.WorkloadWaits(self._workload(name, body)))

    def _running(self, part: Part) -> None:
        for name, body in self._workloads(part):
            wanted = self._workload(name, body)
            queue = self.cluster.queue_of(wanted, body)
            self.state.apply(changes.WorkloadHolds(values.admitted(wanted, body, queue)))

    def _workloads(self, part: Part) -> list[tuple[str, Part]]:
        """List the workloads of a step; `copies: 3` makes three, named -1, -2, -3."""
        found: list[tuple[str, Part]] = []
        for name, body in part.entries():
            copies = body["copies"].whole() if "copies" in body.value else 0
            names = [f"{name}-{index + 1}" for index in range(copies)] or [name]
            found.extend((one, body) for one in names)
        return found

    def _workload(self, name: str, body: Part) -> Workload:
        if "at" in body.value:
            arrival = body["at"].milliseconds()
        else:
            after = 0 if self._last_arrival is None else self._last_arrival + 1000
            arrival = max(after, self.clock)
        self._last_arrival = Instant(max(arrival, self._last_arrival or 0))
        self._set_clock(max(self.clock, arrival))
        return values.workload(name, body, created_at=Instant(arrival))

    def _leave(self, part: Part) -> None:
        for name in part.names():
            key = self._admitted(part, name).workload.key
            leave(self.state, key, self.clock, self._stops.pop(key, None))

    def _give_up(self, part: Part) -> None:
        for name in part.names():
            if self._admitted(part, name).keeps is None:
                raise mismatch(part, f"{key_of(name)} was not told to give up pods")
            give_up(self.state, key_of(name))

    def _gone(self, part: Part) -> None:
        for name in part.names():
            key = key_of(name)
            if key not in self._waiting() and key not in self.state.running:
                part.fail(f"there is no workload {key}")
            self.state.apply(changes.WorkloadGone(key))

    def _ready(self, part: Part) -> None:
        for name in part.names():
            self._replace(self._admitted(part, name), ready=True)

    def _reclaim(self, part: Part) -> None:
        for name, count in part.entries():
            old = self._admitted(part, name)
            pods = count if not count.is_scalar() else Part({"main": count.value}, count.path)
            done = tuple((pod_set, number.whole()) for pod_set, number in pods.entries())
            wanted = msgspec.structs.replace(old.workload, reclaimable=done)
            self._replace(old, workload=wanted)

    def _checks(self, part: Part) -> None:
        """Let admission checks of a workload answer; it is admitted when all of them are ready."""
        for name, answers in part.entries():
            old = self._admitted(part, name)
            states = {check.name: check for check in old.workload.checks}
            for check, answer in answers.entries():
                state = answer.one_of("Pending", "Ready", "Retry", "Rejected")
                states[check] = CheckState(check, state)
            wanted = msgspec.structs.replace(old.workload, checks=tuple(states.values()))
            needed = [rule.name for rule in self.state.config.queues[old.admission.queue].checks]
            agreed = all(check in states and states[check].state == "Ready" for check in needed)
            at = self.clock if agreed else None
            self._replace(old, workload=wanted, may_start=agreed, admitted_at=at)

    def _admitted(self, part: Part, name: str) -> AdmittedWorkload:
        running = self.state.running.get(key_of(name))
        if running is None:
            raise mismatch(part, f"{key_of(name)} holds no quota")
        return running.admitted

    def _replace(self, old: AdmittedWorkload, **news: Any) -> None:
        self.state.apply(changes.WorkloadHolds(msgspec.structs.replace(old, **news)))

    def _apply(self, part: Part) -> None:
        if self.state.waiting or self.state.running:
            self._set_clock(self.clock + 1000)  # what is applied later arrives later
        self._manifests.apply(part, self.clock)
        for change in [*self._manifests.changes(self.state)]:
            self.state.apply(change)

    def _set(self, part: Part) -> None:
        self.cluster.configure(part)

    def _join(self, part: Part) -> None:
        self.cluster.configure(Part({"nodes": part.value}, part.path))

    def _lose(self, part: Part) -> None:
        self.cluster.lose(part)

    def _pods_gone(self, part: Part) -> None:
        self.cluster.forget_pods(part)

    def _refused(self, part: Part) -> None:
        self.cluster.refuse(part, self.clock)

    # --- time ------------------------------------------------------------------------------------

    def _time(self, part: Part) -> None:
        to = part.milliseconds()
        if to < self.clock:
            part.fail(f"the clock says {self.clock // 1000} s already")
        self._set_clock(to)

    def _set_clock(self, to: int) -> None:
        if to != self.clock:
            self.clock = Instant(to)
            self.state.apply(changes.TimePassed(self.clock))

    # --- decisions -------------------------------------------------------------------------------

    def _decide(self, part: Part) -> Plan:
        """Make one plan, have it audited, and carry it out."""
        made = self._plan(part)
        violations = audit(snapshot(self.state), made)
        if violations:
            raise mismatch(part, "the auditor objects: " + "; ".join(map(str, violations)))
        apply_plan(self.state, made)
        self._stops.update((stop.workload, stop) for stop in made.evictions_due)
        for eviction in evictions(made):
            self._evicted_at[eviction.workload].append(self.clock)
        return made

    def _plan(self, part: Part) -> Plan:
        """Make a plan twice; all that was tried on the nodes must be undone."""
        self.state.refresh()
        free = self.state.nodes.table.free.copy()
        made = plan(self.state, self.clock)
        self.plans.append(msgspec.json.encode(made))
        if msgspec.json.encode(plan(self.state, self.clock)) != self.plans[-1]:
            raise mismatch(part, "the same picture gives two plans")
        if not np.array_equal(free, self.state.nodes.table.free):
            raise mismatch(part, "the plan left its traces on the nodes")
        return made

    def _cycle(self, part: Part) -> None:
        check_cycle(part, self._decide(part))

    def _settle(self, part: Part) -> list[WorkloadKey]:
        """Run cycles until one changes nothing, and return the evictions; victims end at once."""
        plans = dry_run(self.state, self.clock, most_cycles=_MOST_CYCLES)
        if len(plans) >= _MOST_CYCLES:
            raise mismatch(part, f"does not come to rest within {_MOST_CYCLES} cycles")
        self.plans.extend(map(msgspec.json.encode, plans))
        evicted = [eviction.workload for made in plans for eviction in evictions(made)]
        for key in evicted:
            self._evicted_at[key].append(self.clock)
        return evicted

    def _stable(self, part: Part) -> None:
        given = part.fields("runs", "waits", "evictions")
        evicted = self._settle(part)
        if "evictions" in given:
            self._check_evictions(given["evictions"], evicted)
        self._now(
            Part({name: given[name].value for name in given if name != "evictions"}, part.path)
        )

    def _check_evictions(self, part: Part, evicted: list[WorkloadKey]) -> None:
        actual = {key: evicted.count(key) for key in evicted}
        if part.is_scalar():
            if part.whole() != len(evicted):
                raise mismatch(part, f"expected {part.value} evictions, got {actual}")
            return
        wanted = {key_of(name): count.whole() for name, count in part.entries()}
        if wanted != actual:
            raise mismatch(part, f"expected evictions {wanted}, got {actual}")

    def _pass(self, part: Part) -> None:
        """Let time pass in small steps; the pauses between evictions of one workload must grow."""
        given = part.fields("time", "every", "between_evictions")
        until, every = given["time"].milliseconds(), given["every"].milliseconds()
        while self.clock < until:
            self._set_clock(self.clock + every)
            self._settle(part)
        pauses = [pause.milliseconds() for pause in given["between_evictions"].items()]
        if not any(len(times) > 1 for times in self._evicted_at.values()):
            raise mismatch(part, "no workload was evicted twice, so there is no pause to compare")
        for key, times in self._evicted_at.items():
            for index, (earlier, later) in enumerate(pairwise(times)):
                least = pauses[min(index, len(pauses) - 1)]
                if later - earlier < least:
                    problem = f"{key} was evicted at {earlier} and {later} ms: under {least} ms"
                    raise mismatch(part, problem)

    # --- questions -------------------------------------------------------------------------------

    def _now(self, part: Part) -> None:
        """Compare the running, reserved, terminating and pending workloads: exactly these."""
        given = part.fields("runs", "reserved", "leaving", "waits")
        admitted_workloads = snapshot(self.state).admitted_workloads
        actual = {
            "runs": [h.workload.key for h in admitted_workloads if h.may_start and not h.evicting],
            "reserved": [
                h.workload.key for h in admitted_workloads if not h.may_start and not h.evicting
            ],
            "leaving": [h.workload.key for h in admitted_workloads if h.evicting],
            "waits": self._waiting(),
        }
        for field, names in given.items():
            wanted = sorted(key_of(name) for name in names.names())
            if wanted != sorted(actual[field]):
                raise mismatch(names, f"expected {wanted}, got {sorted(actual[field])}")

    def _waiting(self) -> list[WorkloadKey]:
        return [workload.key for workload in snapshot(self.state).waiting]

    def _why(self, part: Part) -> None:
        for name, wanted in part.entries():
            found = explanation(self.state, key_of(name))
            if found is None:
                raise mismatch(wanted, f"{key_of(name)} has no explanation")
            check_explanation(wanted, found)

    def _positions(self, part: Part) -> None:
        self._check_positions(part, local=False)

    def _local_positions(self, part: Part) -> None:
        self._check_positions(part, local=True)

    def _check_positions(self, part: Part, *, local: bool) -> None:
        now = snapshot(self.state)
        local_queue_of = {workload.key: workload.queue for workload in now.waiting}
        queues = {local_queue.key: local_queue.queue for local_queue in now.local_queues}
        for name, wanted in part.entries():
            key = key_of(name)
            if key not in local_queue_of:
                raise mismatch(wanted, f"{key} does not wait")
            order = pending(self.state, queues[local_queue_of[key]])
            if local:
                order = [other for other in order if local_queue_of[other] == local_queue_of[key]]
            if order.index(key) != wanted.whole():
                raise mismatch(wanted, f"expected place {wanted.value}, got {order.index(key)}")

    def _numbers(self, part: Part) -> None:
        check_numbers(part, self.state)

    def _priorities(self, part: Part) -> None:
        now = snapshot(self.state)
        workloads = [*now.waiting, *(admitted.workload for admitted in now.admitted_workloads)]
        actual = {workload.key: workload.priority for workload in workloads}
        for name, wanted in part.entries():
            if actual.get(key_of(name)) != wanted.whole():
                raise mismatch(wanted, f"expected {wanted.value}, got {actual.get(key_of(name))}")

    def _multifactor(self, part: Part) -> None:
        check_multifactor(part, self.state)

    def _shares(self, part: Part) -> None:
        check_shares(part, self.state)

    def _usage(self, part: Part) -> None:
        check_usage(part, self.state)

    def _warnings(self, part: Part) -> None:
        self._manifests.check_warnings(part)

    def _unmanaged(self, part: Part) -> None:
        self._manifests.check_unmanaged(part)

    def _reads_as(self, part: Part) -> None:
        self._manifests.check_versions(part)


_VERBS: Mapping[str, Callable[[Story, Part], None]] = {
    "running": Story._running,
    "submit": Story._submit,
    "apply": Story._apply,
    "set": Story._set,
    "join": Story._join,
    "lose": Story._lose,
    "gone": Story._pods_gone,
    "refused": Story._refused,
    "time": Story._time,
    "leave": Story._leave,
    "give_up": Story._give_up,
    "finish": Story._gone,
    "delete": Story._gone,
    "ready": Story._ready,
    "reclaim": Story._reclaim,
    "checks": Story._checks,
    "cycle": Story._cycle,
    "stable": Story._stable,
    "pass": Story._pass,
    "now": Story._now,
    "why": Story._why,
    "positions": Story._positions,
    "local_positions": Story._local_positions,
    "numbers": Story._numbers,
    "priorities": Story._priorities,
    "multifactor": Story._multifactor,
    "shares": Story._shares,
    "usage": Story._usage,
    "warnings": Story._warnings,
    "unmanaged": Story._unmanaged,
    "reads_as": Story._reads_as,
}
