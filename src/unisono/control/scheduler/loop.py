"""The scheduler: keeps the engine's state up to date, decides, and writes its decisions.

It is a controller with a single key. Changes since the last run go to the engine; then scheduling
cycles run until one changes nothing. Every plan passes the auditor before it counts, and every
admission and eviction is one status patch of a Workload in the state that the plan knew.

A patch that fails means that the engine's state is wrong. Those workloads are read again from the
view before the next decision. A write that was not stored is never repeated as it was, and one with
an unknown outcome counts until that is known (`writes_in_flight.py`).

An object that cannot be handled never stops the others. It goes into quarantine (`quarantine.py`),
and the rest of the plan is carried out: this is one of the two places that catch `Exception` (the
other is the driver's loop). After an exception the engine's state may be half changed; then it is
built anew from the view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from unisono.control import names
from unisono.control.actions import (
    Again,
    Bind,
    Breathe,
    Json,
    Note,
    Patch,
    Ref,
    Steps,
    Together,
    Wake,
)
from unisono.control.admission import placement
from unisono.control.nodes import host_names, node_name
from unisono.control.scheduler import root_causes
from unisono.control.scheduler.health import Health
from unisono.control.scheduler.live_policy import OperatorPolicy
from unisono.control.scheduler.missing_nodes import DelayedPlacement, Repairs
from unisono.control.scheduler.plan_writes import Decided, PlanWriter, has_room, only_admits
from unisono.control.scheduler.quarantine import Name, Quarantine
from unisono.control.scheduler.relevant_changes import RelevantChanges
from unisono.control.scheduler.requests_by import REQUESTS_BY
from unisono.control.scheduler.root_causes import RootCauses
from unisono.control.scheduler.start_estimates import Estimates, has_reservation
from unisono.control.scheduler.translate import STRAY, NeedsQueue, Translator, is_free
from unisono.control.scheduler.unevaluated import Unevaluated
from unisono.control.scheduler.usage_ledger import NAME as LEDGER_NAME
from unisono.control.scheduler.usage_ledger import recorded_usage
from unisono.control.scheduler.writes_in_flight import RESOLVE_AGAIN_S, Basis, taken_over
from unisono.control.view import View
from unisono.engine.audit import AuditCache, Violation, audit
from unisono.engine.cluster import new_cluster
from unisono.engine.cycle import Decides, plan
from unisono.engine.explain.messages import sentence
from unisono.engine.model.errors import UnisonoError
from unisono.engine.model.explanation import (
    Explanation,
    GangDoesNotFit,
    Quarantined,
    QuarantineStage,
)
from unisono.engine.model.names import Instant, NodeName, WorkloadKey
from unisono.engine.model.plan import Plan, evictions, shrinks
from unisono.engine.model.policy import Policy
from unisono.engine.model.provisioning import Offerings
from unisono.engine.repair import repair
from unisono.engine.salvage import blamed, single_decisions, without
from unisono.engine.state.apply_plan import apply_plan
from unisono.engine.state.changes import (
    Change,
    OfferingsSet,
    PolicySet,
    TimePassed,
    UsageSet,
    WorkloadGone,
)
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot_for
from unisono.kinds.policy.settings import Settings
from unisono.kube.errors import BadRequest, Forbidden, Invalid, KubeError
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

CYCLE = Key("", "cycle")
LEDGER = Key("kube-system", LEDGER_NAME)
# So many cycles at once; then other controllers run, and changes of the meantime are read.
_MOST_CYCLES = 50
# So many objects are read at once, twenty milliseconds' worth.
_MOST_READ = 64
# So often the state is built anew in one step. Each time one more object is left out; then other
# controllers run.
_MOST_REBUILDS = 8

# Reports a bug of ours: where it was, and what it was.
Report = Callable[[str, Exception], None]
# Keeps the recording of a plan that the auditor refused.
KeepRefusal = Callable[[ClusterState, Plan], None]


def not_reported(where: str, error: Exception) -> None:
    """Report nothing."""


def not_kept(state: ClusterState, made: Plan) -> None:
    """Keep nothing."""


class OfferingsSource(Protocol):
    """Reads what can be bought: the catalogue of offerings."""

    @property
    def kinds(self) -> Sequence[Kind]:
        """The kinds that it reads."""

    def concerns(self, kind: Kind, obj: Json) -> bool:
        """Say whether a change of an object may change what can be bought."""

    def read(self, view: View) -> Offerings | None:
        """Return what can be bought now; None: nothing."""


class Scheduler:
    """Decides. `explanations` holds why each workload waits, for the explainer."""

    name = "scheduler"
    routes_by_name = True
    wants_unreadable = True

    def __init__(
        self,
        view: View,
        settings: Settings,
        *,
        epoch: int = 1,
        places_strays: bool = False,
        needs_queue: NeedsQueue = is_free,
        needs_nodes: bool = True,
        decides: Decides = plan,
        ledger: Key = LEDGER,
        offerings: OfferingsSource | None = None,
        report: Report = not_reported,
        keep_refusal: KeepRefusal = not_kept,
    ) -> None:
        """Begin with an empty state; every object of the view has to arrive as a change.

        `offerings` says what can be bought; without it nothing can.

        With `places_strays` we are the only scheduler: pods that are in no queue get nodes, too,
        unless a pod that names us `needs_queue`.
        Without `needs_nodes` quota alone decides while there is not a single node.
        `decides` may also record decisions; `ledger` is the ConfigMap of usage so far. `report` is
        called with exceptions, `keep_refusal` with plans that the auditor refused, before anything
        else is done about them.
        """
        self._decides = decides
        self._report = report
        self._keep_refusal = keep_refusal
        self._ledger = ledger
        self._operator = OperatorPolicy(settings)
        self._needs_nodes = needs_nodes
        # On a cluster of others their scheduler places what quota alone has admitted.
        self._places_admitted = places_strays and not needs_nodes
        settings = self._with_node_requirement(settings)
        self.quarantine = Quarantine()
        # Workloads that are left out and hold what their status says; False: not even that works.
        self._recorded: dict[Name, bool] = {}
        self.health = Health()
        self._translator = Translator(
            view,
            settings,
            places_strays=places_strays,
            left_out=self.quarantine,
            needs_queue=needs_queue,
        )
        self.sent = self._translator.sent
        self._in_doubt = self._translator.in_doubt
        self._basis = Basis()
        policies = (names.POLICY,) if view.has(names.POLICY) else ()
        self._offerings = offerings
        self._offerings_changed = offerings is not None
        sellers = () if offerings is None else tuple(offerings.kinds)
        others = (*self._translator.watches, *policies)
        self.watches: Sequence[Kind] = (
            *policies,
            *self._translator.watches,
            *(kind for kind in sellers if kind not in others),
        )
        self._read_kinds = frozenset((*policies, *self._translator.watches))
        self._dirty: dict[Name, None] = {}
        self._epoch = epoch
        self.explanations: dict[WorkloadKey, Explanation] = {}
        self._writer = PlanWriter(self._translator, self._basis, self.explanations, epoch)
        self._relevant_changes = RelevantChanges(
            reads_readiness=settings.policy.pods_ready is not None
        )
        self._has_taken_over = False
        self._seconds = 0.0  # the time of the step
        self._last_read: Name = (names.POLICY, CYCLE)  # the object that was read last
        self._suspects: dict[Name, None] = {}  # changed since the last good cycle
        self._without_event: dict[Name, None] = {}  # left out, and no event was written yet
        self.cycles = 0
        self.refused = 0  # plans that the auditor refused
        self.rebuilds = 0  # how often the state was built anew after an exception
        self.admitted_at = 0.0  # when the last step began that admitted something
        self.estimates = Estimates()
        self.root_causes = RootCauses(report)
        self._begin(settings.policy)

    def _begin(self, policy: Policy) -> None:
        """Begin with an empty state, which every object has to reach."""
        self.state = new_cluster(policy)
        self.state.apply(PolicySet(policy))
        self.estimates.use(self.state)
        self.root_causes.use(self.state)
        self._audit_cache = AuditCache()
        self._unevaluated = Unevaluated(self.state)
        self._node_finders = (
            Repairs(self.state, self._epoch),
            DelayedPlacement(self.state, self._epoch, of_admitted=self._places_admitted),
        )

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """Remember what changed; one run will do for all of it."""
        if self._offerings is not None and self._offerings.concerns(kind, obj):
            self._offerings_changed = True
            yield CYCLE
        metadata = obj["metadata"]
        if kind not in self._read_kinds:
            return
        if self._is_relevant(kind, obj, view):
            self._basis.touched(kind, metadata["name"], view)
        elif kind != names.WORKLOAD or _key_of(metadata) not in self._in_doubt:
            return
        name = kind, Key(metadata.get("namespace", ""), metadata["name"])
        self._dirty[name] = self._suspects[name] = None
        yield CYCLE

    def _is_relevant(self, kind: Kind, obj: Json, view: View) -> bool:
        try:
            return self._relevant_changes.is_relevant(kind, obj, view)
        except Exception as error:  # noqa: BLE001 (reading it says what is wrong with it)
            self._report("scheduler", error)
            return True

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Read what changed, and decide until nothing changes."""
        instant = Instant(int(now) * 1000)  # conditions have whole seconds
        yield from self._take_over_gangs(view, instant)
        if self._in_doubt:
            yield from self._in_doubt.resolve(now)
        self.health.began(now)  # an API that takes no writes is no reason not to plan
        self._dirty |= {(names.POD, pod): None for pod in self._translator.sent.expired(now)}
        for _ in self._reading(view, instant):
            yield Breathe()
        if self._in_doubt:
            yield Again(now + RESOLVE_AGAIN_S)
        yield from self._repair(view, now)
        pending: list[Decided] = []
        for _ in range(_MOST_CYCLES):
            # The view does not know yet what is pending, so nothing may be read from it before.
            for name in () if pending else self.quarantine.trials(now):
                self._dirty[name] = None
                self._read(view, instant)
            left_out = self.quarantine.total
            done = self._cycle(instant, view)
            if done is None:
                pending = []  # the new state knows what is stored, and nothing else
                for _ in self._reading(view, instant):
                    yield Breathe()
                yield from self._write_quarantine_events(view)
                continue
            self.health.planned(now)
            self._suspects.clear()
            self.quarantine.acquit()
            yield from self._write_quarantine_events(view)
            for one in done:
                if one.made.admissions:
                    self.admitted_at = now
                yield from self._explain(one.made)
                if one.changed:
                    self._read_again(one.made)
                    if not only_admits(one.made):  # it may take back what is not written yet
                        yield from self._write(pending, view, now)
                        pending = []
                    pending.append(one)
            if (
                any(one.changed for one in done)
                and all(only_admits(one.made) for one in done)
                and has_room(pending)
            ):
                continue
            if pending:
                yield from self._write(pending, view, now)
                pending = []
                self._read(view, instant)
            elif self.quarantine.total == left_out and not self.quarantine.has_suspects:
                break
        else:
            yield from self._write(pending, view, now)
            yield Again(now)
            return
        yield from self._explain_others(view, instant)
        due = self._next_due()
        if due is not None:
            yield Again(float(-(-due // 1000)))  # not before the whole second that it counts in

    def _explain_others(self, view: View, now: Instant) -> Steps:
        """Explain what no cycle examined, and renew estimates."""
        try:
            found = [*self._unevaluated.explanations(), *self._unevaluated.places(now)]
            renewed = self.estimates.refresh(now)
        except Exception as error:  # noqa: BLE001 (whatever it was about goes into quarantine)
            self._blame(error, view, self.state.evaluating)
            yield Again(now / 1000)
            return
        for explanation in found:
            yield from self._explain_one(explanation)
        for other in renewed:
            if other in self.explanations:
                yield from self._explain_one(self.explanations[other])
        if self.root_causes.refresh(now, self.explanations):
            yield Wake(root_causes.NAME, root_causes.KEY.namespace, root_causes.KEY.name)

    # ---- deciding, and what cannot be decided --------------------------------------------------

    def _cycle(self, now: Instant, view: View) -> list[Decided] | None:
        """Decide once; return the plans that count now.

        None: an object was left out, and everything else has to reach the state again.
        """
        self.state.evaluating = None
        try:
            made = self._decides(self.state, now)
            self.cycles += 1
            violations = self._violations(made)
            if violations:
                return self._salvaged(made, violations, view)
            return [self._applied(made)]
        except Exception as error:  # noqa: BLE001 (one workload must not stop the others)
            self._blame(error, view, self.state.evaluating)
            return None

    def _violations(self, made: Plan) -> tuple[Violation, ...]:
        """Return what the auditor finds wrong; it recounts only what changed since the last."""
        try:
            return audit(snapshot_for(self.state, made), made, self._audit_cache)
        except Exception as error:  # noqa: BLE001 (a plan that cannot be judged is refused)
            self._report("auditor", error)
            self._audit_cache = AuditCache()
            return (Violation(rule="auditor", message=_problem(error)),)

    def _applied(self, made: Plan) -> Decided:
        """Apply a sound plan to the state."""
        waiting = self.state.waiting
        asked = {admit.workload: waiting[admit.workload].workload for admit in made.admissions}
        self.state.evaluating = None  # deciding is over
        return Decided(made, asked, changed=apply_plan(self.state, made))

    def _salvaged(self, made: Plan, violations: Sequence[Violation], view: View) -> list[Decided]:
        """Apply the sound part of a refused plan; its culprits go into quarantine."""
        self.refused += 1
        self._report("auditor", RefusedPlan("; ".join(map(str, violations))))
        try:
            self._keep_refusal(self.state, made)
        except Exception as error:  # noqa: BLE001 (a recording is not worth a decision)
            self._report("recording", error)
        culprits = blamed(made, violations)
        rest = without(made, culprits)
        if culprits and not self._violations(rest):
            done = [self._applied(rest)]
        else:
            done, refused = self._one_by_one(made)
            tried = {key for key, _ in single_decisions(made)}
            culprits = {key: why for key, why in culprits.items() if key not in tried} | refused
        for key, problem in culprits.items():
            self._leave_out(key, "audit", problem, view)
        self.state.timeline.invalidate()  # its reservations were made with what is left out now
        return done

    def _one_by_one(self, made: Plan) -> tuple[list[Decided], dict[WorkloadKey, str]]:
        """Apply every decision that is sound by itself; return the others, and why not."""
        done: list[Decided] = []
        refused: dict[WorkloadKey, str] = {}
        for key, single in single_decisions(made):
            part = msgspec.structs.replace(single, based_on=self.state.version)
            violations = self._violations(part)
            if violations:
                refused[key] = f"{violations[0].rule}: {violations[0].message}"
            else:
                done.append(self._applied(part))
        if not done:  # only explanations or reservations are wrong: the next cycle makes others
            done.append(self._applied(Plan(based_on=self.state.version, now=made.now)))
        return done, refused

    def _blame(self, error: Exception, view: View, culprit: WorkloadKey | None) -> None:
        """Leave out what an exception was about, and build the state anew without it."""
        self._report("scheduler", error)
        self.health.problem = _problem(error)
        culprits = self.quarantine.on_trial() if culprit is None else [_name_of(culprit)]
        for name in culprits:
            if name in self._recorded:
                self._recorded[name] = False  # what it holds cannot be decided about, either
            self._quarantine_object(name, view, "decide", _problem(error))
        if not culprits:
            suspects = self._waiting_suspects() or self._suspects
            objects = ((name, _object(view, name)) for name in suspects)
            count = self.quarantine.suspect(objects, _problem(error), self._seconds)
            if not count:
                raise error  # nothing is new, so nothing can be left out: the driver tries again
        self._begin_anew(view)

    def _waiting_suspects(self) -> dict[Name, None]:
        """Return the workloads without quota among the suspects."""
        waiting = map(_name_of, self.state.waiting)
        return {name: None for name in waiting if name in self._suspects}

    def _leave_out(
        self, key: WorkloadKey, stage: QuarantineStage, problem: str, view: View
    ) -> None:
        """Put a workload into quarantine, and let the engine forget it if it only waits."""
        self._quarantine_object(_name_of(key), view, stage, problem)
        if key in self.state.waiting:
            self.state.apply(WorkloadGone(key))

    def _quarantine_object(
        self, name: Name, view: View, stage: QuarantineStage, problem: str
    ) -> None:
        self.quarantine.add(name, _object(view, name), stage, problem, self._seconds)
        self._without_event[name] = None

    def _begin_anew(self, view: View) -> None:
        """Build the state anew: an exception may have left it half changed."""
        self.rebuilds += 1
        policy, now = self.state.policy, self.state.now
        self._begin(policy)
        if self.state.priority_order.is_on:
            self.state.apply(TimePassed(now))
            for one in recorded_usage(view, self._ledger)[0]:
                self.state.apply(UsageSet(one))
        self._offerings_changed = self._offerings is not None
        self._translator.forget()
        for kind in self._translator.watches:
            for obj in view.all(kind):
                metadata = obj["metadata"]
                self._dirty[kind, Key(metadata.get("namespace", ""), metadata["name"])] = None

    def _write_quarantine_events(self, view: View) -> Steps:
        """Write an event about each object that was left out, once for each time."""
        untold, self._without_event = self._without_event, {}
        for name in untold:
            entry = self.quarantine.left_out(name, obj := _object(view, name))
            if entry is None or obj is None:
                continue
            kind, key = name
            fact = Quarantined(
                stage=entry.stage,
                problem=entry.problem + self._counted(name, obj),
                retry_at=Instant(int(entry.retry_at) * 1000),
            )
            yield Note(Ref.to(obj), "Quarantined", sentence(fact), "Warning")
            if kind in (names.WORKLOAD, names.POD):
                prefix = STRAY if kind == names.POD else ""
                full = WorkloadKey(f"{prefix}{key.namespace}/{key.name}")
                self.estimates.forget(full)
                self.explanations.pop(full, None)
                yield from self._explain_one(
                    Explanation(workload=full, queue=None, blockers=(fact,))
                )

    def _counted(self, name: Name, obj: Json) -> str:
        """Say what happens to the quota of a Workload that is left out, if it holds any."""
        status = obj.get("status")
        admission = status.get("admission") if isinstance(status, Mapping) else None
        if name[0] != names.WORKLOAD or not isinstance(admission, Mapping):
            return ""
        queue = admission.get("clusterQueue")
        if WorkloadKey(f"{name[1].namespace}/{name[1].name}") in self.state.running:
            return f"; its quota in ClusterQueue {queue} stays reserved"
        return f"; ClusterQueue {queue} does not count what it uses: delete it to be safe"

    # ---- reading changes -----------------------------------------------------------------------

    def _read(self, view: View, now: Instant) -> None:
        """Apply what changed to the engine's state."""
        for _ in self._reading(view, now):
            pass

    def _reading(self, view: View, now: Instant) -> Iterator[None]:
        """Apply what changed to the engine's state, configuration before what depends on it.

        Pauses now and then for other controllers; no decision is made before it is through.
        """
        self._seconds = max(self._seconds, now / 1000)
        self._read_policy(view)
        self._read_offerings(view)
        self._basis.settled()
        if self._dirty:
            self.estimates.invalidate()
        order = {kind: place for place, kind in enumerate(self._translator.watches)}
        for _ in range(_MOST_REBUILDS):
            dirty, self._dirty = self._dirty, {}
            changed = sorted(dirty, key=lambda pair: order[pair[0]])
            for number, name in enumerate(changed, 1):
                if number % _MOST_READ == 0:
                    yield
                try:
                    self._read_object(name, view)
                except Exception as error:  # noqa: BLE001 (the state may be half changed now)
                    self._report("scheduler", error)
                    self._quarantine_object(self._last_read, view, "read", _problem(error))
                    if self._last_read in self._recorded:
                        self._recorded[self._last_read] = False
                    self._begin_anew(view)
                    break
            else:
                break
        if now > self.state.now:
            self.state.apply(TimePassed(now))

    def _read_object(self, name: Name, view: View) -> None:
        """Apply one object as it is now to the engine's state; leave it out if unreadable."""
        kind, key = self._last_read = name
        if self.quarantine.left_out(name, _object(view, name)) is not None:
            for change in self._instead_of(name, view):
                self.state.apply(change)
            return
        try:
            found = [*self._translator.translate(kind, key)]
            self._recorded.pop(name, None)
        except Exception as error:  # noqa: BLE001 (nothing is changed yet)
            if not isinstance(error, UnisonoError):
                self._report("scheduler", error)
            self._quarantine_object(name, view, "read", _problem(error))
            found = self._instead_of(name, view)
        for change in found:
            self.state.apply(change)
        if kind == names.WORKLOAD:
            workload = view.peek(kind, key.name, key.namespace)
            for finder in self._node_finders:
                finder.update(workload, key)
            self._arrived(WorkloadKey(f"{key.namespace}/{key.name}"), workload)
        elif kind == names.POD:
            alone = WorkloadKey(f"{STRAY}{key.namespace}/{key.name}")
            if alone in self.state.waiting:
                self._unevaluated.arrived(alone)
        elif kind != names.NODE:
            self._unevaluated.configured()
            for other in self._with_other_limits(kind, key):
                self._read_object(other, view)
        if kind in REQUESTS_BY:
            for other in self._with_other_requests(kind, key):
                self._read_object(other, view)

    def _instead_of(self, name: Name, view: View) -> list[Change]:
        """Return the changes for an object that is left out.

        What holds quota keeps it, and configuration stays as it was last understood. A
        Workload that the engine does not know any more, as after a restart, holds what was written
        when it was admitted, unless even that has failed.
        """
        kind, key = name
        if kind not in (names.WORKLOAD, names.POD):
            return []
        prefix = STRAY if kind == names.POD else ""
        full = WorkloadKey(f"{prefix}{key.namespace}/{key.name}")
        if full in self.state.running and name not in self._recorded:
            return []
        obj = _object(view, name)
        if kind == names.POD or obj is None or self._recorded.get(name) is False:
            return [WorkloadGone(full)]
        self._recorded[name] = False  # until it has worked
        found = [*self._translator.recorded(obj)]
        self._recorded[name] = True
        return found

    def _read_offerings(self, view: View) -> None:
        """Take over what can be bought; if that cannot be read, it stays as it was."""
        if self._offerings is None or not self._offerings_changed:
            return
        self._offerings_changed = False
        try:
            offerings = self._offerings.read(view)
        except Exception as error:  # noqa: BLE001 (queues and nodes are still there)
            self._report("market", error)
            return
        self.state.apply(OfferingsSet(offerings))

    def came_late(self, workload: Json) -> bool:
        """Say whether an earlier leader admitted a gang, and its write came after we took over.

        Its nodes may belong to another gang by now. Gangs that were on their way at that time bear
        our mark, so an older one can only be such a write (ADR 0028).
        """
        return self._has_taken_over and placement.is_of_earlier_leader(workload, self._epoch)

    def _take_over_gangs(self, view: View, now: Instant) -> Steps:
        """Mark every gang that is starting as ours, before anything is decided."""
        if self._has_taken_over:
            return
        if self.state.priority_order.is_on:
            if now > self.state.now:  # what runs already did not begin in 1970
                self.state.apply(TimePassed(now))
            used, complaint = recorded_usage(view, self._ledger)
            for one in used:
                self.state.apply(UsageSet(one))
            if complaint is not None:
                yield complaint
            yield Wake("usage-ledger", self._ledger.namespace, self._ledger.name)
        yield from taken_over(view, self._epoch)
        self._has_taken_over = True

    def _read_policy(self, view: View) -> None:
        """Take over another policy before anything is read by it."""
        edits = [pair for pair in self._dirty if pair[0] == names.POLICY]
        for edit in edits:
            del self._dirty[edit]
        if names.POLICY not in self.watches or not (edits or self.cycles == 0):
            return
        try:
            settings = self._operator.settings_after(list(view.all(names.POLICY)))
        except Exception as error:  # noqa: BLE001 (the policy stays as it was)
            self._report("policy", error)
            for edit in edits:
                self._quarantine_object(edit, view, "read", _problem(error))
            return
        if settings is None or self._with_node_requirement(settings).policy == self.state.policy:
            return
        settings, old = self._with_node_requirement(settings), self.state.policy
        self._translator.use(settings)
        self.state.apply(PolicySet(settings.policy))
        if (old.pods_ready is None) != (settings.policy.pods_ready is None):
            self._relevant_changes = RelevantChanges(
                reads_readiness=settings.policy.pods_ready is not None
            )
        for obj in view.all(names.WORKLOAD):  # a policy also says what some of their fields mean
            metadata = obj["metadata"]
            self._dirty[names.WORKLOAD, Key(metadata["namespace"], metadata["name"])] = None

    def _with_other_limits(self, kind: Kind, key: Key) -> list[Name]:
        """Return the workloads that wait in a queue which has another time limit for them now."""
        if kind not in (names.LOCAL_QUEUE, names.CLUSTER_QUEUE):
            return []
        if not self._translator.limits.changed(kind, key):
            return []
        found: list[Name] = []
        for lq in self.state.local_queues.values():
            namespace, _, name = lq.key.partition("/")
            leads = self.state.config.local_queues.get(lq.key)
            is_it = (key.namespace, key.name) == (namespace, name)
            if kind == names.CLUSTER_QUEUE:
                is_it = leads is not None and leads.queue == key.name
            found += map(_name_of, lq.waiting) if is_it else ()
        return found

    def _with_other_requests(self, kind: Kind, key: Key) -> list[Name]:
        """Return what waits and may ask for something else, now that this object is different.

        It keeps its place in its queue: it is read again, not submitted again.
        """
        waiting = map(_name_of, self.state.waiting)
        return [name for name in waiting if self._translator.is_to_be_read(name, kind, key)]

    def can_replace(self, key: str, nodes: Sequence[str]) -> bool:
        """Say whether a workload would get other nodes for these, as things are."""
        if WorkloadKey(key) not in self.state.running:
            return False
        lost = frozenset(NodeName(node) for node in nodes)
        return not isinstance(repair(self.state, WorkloadKey(key), lost), GangDoesNotFit)

    def _repair(self, view: View, now: float) -> Steps:
        """Give gangs nodes that have quota and lack some, before anything new gets those."""
        for finder in self._node_finders:
            writes = finder.writes(view, host_names(view), now)
            while True:
                try:
                    write, told = next(writes)
                except StopIteration:
                    break
                except Exception as error:  # noqa: BLE001 (the other gangs are looked at next time)
                    self._report("repair", error)
                    yield from finder.retries.gave_up(view, _problem(error))
                    yield Again(now)
                    break
                self._dirty[names.WORKLOAD, Key(write.ref.namespace, write.ref.name)] = None
                nodes = [node_name(host, view) for host, _ in placement.hosts_of(write.changes)]
                holds = self._basis.holding(nodes)
                yield from self._store([msgspec.structs.replace(write, holds=holds)], view)
                yield Note(write.ref, finder.told_as, told)
                self._read(view, self.state.now)

    def _store(self, writes: Sequence[Patch | Bind], view: View) -> Steps:
        """Write all decisions; then raise the first failure.

        An object whose write the API refuses for what is in it goes into quarantine instead: the
        next cycle would write the same, and the others would wait for it.
        """
        results: Sequence[Json | KubeError | None] = yield Together(writes, tells=True)
        error: KubeError | None = None
        is_any_stored = any(not isinstance(result, KubeError) for result in results)
        if is_any_stored:
            self.health.wrote(self._seconds)
        elif results:
            self.health.could_not_write(self._seconds)
        for write, result in zip(writes, results, strict=True):
            if not isinstance(result, KubeError):
                continue
            ref = write.pod if isinstance(write, Bind) else write.ref
            # Without any right to write, everything is forbidden: that is no object's fault.
            refused = (BadRequest, Invalid, Forbidden) if is_any_stored else (BadRequest, Invalid)
            if isinstance(result, refused):
                name = ref.kind, Key(ref.namespace, ref.name)
                self._quarantine_object(name, view, "write", str(result))
                self._take_back(name, view)
                continue
            error = error or result
            if isinstance(write, Patch):
                self._in_doubt.note(write, result)
        if error is not None:
            raise error

    def _take_back(self, name: Name, view: View) -> None:
        """Release an admission that was never stored."""
        kind, key = name
        stored = (_object(view, name) or {}).get("status") or {}
        if kind == names.WORKLOAD and stored.get("admission"):
            return  # another write about a workload that does hold quota
        prefix = STRAY if kind == names.POD else ""
        full = WorkloadKey(f"{prefix}{key.namespace}/{key.name}")
        if full in self.state.running:
            self.state.apply(WorkloadGone(full))

    def _read_again(self, made: Plan) -> None:
        """Read every workload again that a plan changes: what is not stored yet may never be."""
        moved = [
            *(admit.workload for admit in made.admissions),
            *(eviction.workload for eviction in evictions(made)),
            *(smaller.workload for smaller in shrinks(made)),
        ]
        for key in moved:
            self._dirty[_name_of(key)] = None

    def _write(self, decided: Sequence[Decided], view: View, now: float) -> Steps:
        """Write plans, which share a commit; a gang that fails does not hold up others."""
        if not decided:
            return
        with self._translator.sent.writing(now):
            writes = [write for one in decided for write in self._writes(one, view, now)]
            yield from self._store(writes, view)
        yield from self._write_quarantine_events(view)
        for one in decided:
            yield from self._writer.events(one.made, self.state, view)

    def _writes(self, decided: Decided, view: View, now: float) -> Iterator[Patch | Bind]:
        """Yield the writes of a plan; a workload that cannot be written holds up no other."""
        for key, writes in self._writer.writes(decided, self.state, view, now):
            try:
                yield from writes()
            except Exception as error:  # noqa: BLE001 (it is read again, and found in quarantine)
                self._report("scheduler", error)
                self._quarantine_object(_name_of(key), view, "write", _problem(error))
                if key in self.state.running and key in decided.asked:
                    self.state.apply(WorkloadGone(key))  # the admission was never written

    def _explain(self, made: Plan) -> Steps:
        for wait in made.waits:
            yield from self._explain_one(wait.explanation)

    def _explain_one(self, explanation: Explanation) -> Steps:
        key = explanation.workload
        before = self.explanations.get(key)
        if has_reservation(before) and not has_reservation(explanation):
            self.estimates.forget(key)  # from the time when it had the reservation
        self.health.explained(key)
        explanation = self.estimates.added_to(explanation)
        if before != explanation:
            self.explanations[key] = explanation
            namespace, _, name = key.partition("/")
            yield Wake("explainer", namespace, name)

    def _arrived(self, key: WorkloadKey, workload: Json | None) -> None:
        """Forget why a workload waits that does not any more; explain the others."""
        conditions = ((workload or {}).get("status") or {}).get("conditions")
        if (names.WORKLOAD, Key(*key.partition("/")[::2])) in self.quarantine:
            return
        if key not in self.state.waiting or not conditions:
            self.explanations.pop(key, None)  # a new one of that name has not been told yet
            self._unevaluated.forget(key)
        if key in self.state.waiting:
            self._unevaluated.arrived(key)
            if key not in self.explanations:
                self.health.unexplained(key, self._seconds)
        else:
            self.health.explained(key)

    def _with_node_requirement(self, settings: Settings) -> Settings:
        """Return settings by which nothing fits without nodes, unless pods run elsewhere."""
        replace = msgspec.structs.replace
        placement = replace(settings.policy.placement, needs_nodes=self._needs_nodes)
        return replace(settings, policy=replace(settings.policy, placement=placement))

    def _next_due(self) -> Instant | None:
        """Return when time alone may change something."""
        sent = self._translator.sent.next_due()
        doubt = Instant(int(sent * 1000) + 1) if sent is not None else None
        trial = self.quarantine.next_due()
        retry = Instant(int(trial * 1000) + 1) if trial is not None else None
        found = (
            self.state.timers.next(),
            self.estimates.next_due(),
            self._unevaluated.next_due(),
            self.root_causes.next_due(),
            doubt,
            retry,
        )
        return min((due for due in found if due is not None), default=None)


def _key_of(metadata: Json) -> WorkloadKey:
    return WorkloadKey(f"{metadata['namespace']}/{metadata['name']}")


class RefusedPlan(Exception):
    """The auditor found that a plan breaks a promise: a bug in the engine."""


def _problem(error: Exception) -> str:
    """Say what went wrong, for the owner of an object."""
    if isinstance(error, UnisonoError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _name_of(key: WorkloadKey) -> Name:
    """Return which object a workload of the engine is."""
    kind = names.POD if key.startswith(STRAY) else names.WORKLOAD
    namespace, _, name = key.removeprefix(STRAY).partition("/")
    return kind, Key(namespace, name)


def _object(view: View, name: Name) -> Json | None:
    """Return an object as it is: also one that is left out because it cannot be read."""
    kind, key = name
    return view.raw(kind, key.name, key.namespace)
