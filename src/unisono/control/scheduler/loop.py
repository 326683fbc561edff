"""The scheduler: keeps the engine's state up to date, decides, and writes the intent down.

It is a controller with a single key. Whatever changed since the last look is told to the engine;
then cycles are made until one changes nothing. Every plan passes the auditor before it counts, and
every admission and eviction is one status patch of a Workload in the state that the plan knew.

A patch that fails means that the engine believes something that is not so. Those workloads are
read again from the view before the next decision. A write that was not stored is never repeated as
it was, and one that may have been counts until that is known (`expiry.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from unisono.control import gpu_seats, names
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
from unisono.control.scheduler import record
from unisono.control.scheduler.estimating import Estimates, has_date
from unisono.control.scheduler.expiry import RESOLVE_AGAIN_S, Basis
from unisono.control.scheduler.implicit import written_queue
from unisono.control.scheduler.news import News
from unisono.control.scheduler.operator_policy import OperatorPolicy
from unisono.control.scheduler.repairs import Repairs
from unisono.control.scheduler.seating import Seating
from unisono.control.scheduler.taking_over import taken_over
from unisono.control.scheduler.translate import STRAY, Translator
from unisono.control.scheduler.unexamined import Unexamined
from unisono.control.scheduler.unwritten import Decided, has_room, only_admits
from unisono.control.scheduler.usage_ledger import NAME as LEDGER_NAME
from unisono.control.scheduler.usage_ledger import recorded_usage
from unisono.control.shrinking import telling
from unisono.control.usable import host_names, node_name
from unisono.control.view import View
from unisono.engine.audit import Standing
from unisono.engine.cycle import Decides, plan
from unisono.engine.model.explanation import Explanation, GangDoesNotFit
from unisono.engine.model.market import Market
from unisono.engine.model.names import Instant, NodeName, WorkloadKey
from unisono.engine.model.plan import Plan, evictions, shrinks
from unisono.engine.model.workload import Workload
from unisono.engine.rehearsal import refuse_if_broken
from unisono.engine.repair import repair
from unisono.engine.state.changes import MarketSet, PolicySet, TimePassed, UsageSet
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.filing import carry_out
from unisono.kinds.settings import Settings
from unisono.kube.form import Key
from unisono.kube.mapping import Kind
from unisono.kube.trouble import KubeTrouble

CYCLE = Key("", "cycle")
LEDGER = Key("kube-system", LEDGER_NAME)
# So many cycles in one go; then others get a turn and what changed meanwhile is heard.
_MOST_CYCLES = 50
# So many objects are read in one go, twenty milliseconds' worth.
_MOST_HEARD = 64


class MarketReader(Protocol):
    """Whoever knows what can be bought."""

    @property
    def kinds(self) -> Sequence[Kind]:
        """The kinds that it reads."""

    def concerns(self, kind: Kind, obj: Json) -> bool:
        """Say whether a change of an object may change what can be bought."""

    def read(self, view: View) -> Market | None:
        """Return what can be bought now; None: nothing."""


class Scheduler:
    """Decides. `explanations` holds why each workload waits, for those who tell people."""

    name = "scheduler"
    is_by_name = True

    def __init__(
        self,
        view: View,
        settings: Settings,
        *,
        epoch: int = 1,
        places_strays: bool = False,
        needs_nodes: bool = True,
        decides: Decides = plan,
        ledger: Key = LEDGER,
        market: MarketReader | None = None,
    ) -> None:
        """Begin with an empty state; everything in the view has to be told by `changed`.

        `market` says what can be bought; without it nothing can.

        With `places_strays` we are the only scheduler: pods that are in no queue get nodes, too.
        Without `needs_nodes` quota alone decides while there is not a single node.
        `decides` may be somebody who also records decisions; `ledger` is the ConfigMap that says
        what was used before.
        """
        self._decides = decides
        self._ledger = ledger
        self._operator = OperatorPolicy(settings)
        self._needs_nodes = needs_nodes
        settings = self._living(settings)
        self._translator = Translator(view, settings, places_strays=places_strays)
        self.sent = self._translator.sent
        self._in_doubt = self._translator.in_doubt
        self._basis = Basis()
        policies = (names.POLICY,) if view.has(names.POLICY) else ()
        self._market = market
        self._market_moved = market is not None
        sellers = () if market is None else tuple(market.kinds)
        others = (*self._translator.watches, *policies)
        self.watches: Sequence[Kind] = (
            *policies,
            *self._translator.watches,
            *(kind for kind in sellers if kind not in others),
        )
        self.state = ClusterState(settings.policy)
        self.state.apply(PolicySet(settings.policy))
        self._heard_kinds = frozenset((*policies, *self._translator.watches))
        self._dirty: dict[tuple[Kind, Key], None] = {}
        self._epoch = epoch
        self.explanations: dict[WorkloadKey, Explanation] = {}
        self._standing = Standing()
        self._unexamined = Unexamined(self.state)
        self.estimates = Estimates(self.state)
        self._news = News(minds_readiness=settings.policy.pods_ready is not None)
        self._menders = (Repairs(self.state, epoch), Seating(self.state, epoch))
        self._has_taken_over = False
        self.cycles = 0
        self.admitted_at = 0.0  # when the last step began that admitted somebody

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """Remember what changed; one look will do for all of it."""
        if self._market is not None and self._market.concerns(kind, obj):
            self._market_moved = True
            yield CYCLE
        metadata = obj["metadata"]
        if kind not in self._heard_kinds:
            return
        is_news = self._news.is_news(kind, obj, view)
        if is_news:
            self._basis.touched(kind, metadata["name"], view)
        elif kind != names.WORKLOAD or _key_of(metadata) not in self._in_doubt:
            return
        self._dirty[kind, Key(metadata.get("namespace", ""), metadata["name"])] = None
        yield CYCLE

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Hear what changed, and decide until nothing changes."""
        instant = Instant(int(now) * 1000)  # conditions have whole seconds
        yield from self._take_over(view, instant)
        if self._in_doubt:
            yield from self._in_doubt.resolve(now)
        self._dirty |= {(names.POD, pod): None for pod in self._translator.sent.expired(now)}
        for _ in self._hearing(view, instant):
            yield Breathe()
        if self._in_doubt:
            yield Again(now + RESOLVE_AGAIN_S)
        yield from self._repair(view, now)
        unwritten: list[Decided] = []
        for _ in range(_MOST_CYCLES):
            made = self._decides(self.state, instant)
            self.cycles += 1
            refuse_if_broken(self.state, made, self._standing)
            asked = {
                admit.workload: self.state.waiting[admit.workload].workload
                for admit in made.admissions
            }
            changed = carry_out(self.state, made)
            if made.admissions:
                self.admitted_at = now
            yield from self._explain(made)
            if changed:
                self._doubt(made)
                if not only_admits(made):  # it may take back what is not written yet
                    yield from self._write(unwritten, view, now)
                    unwritten = []
                unwritten.append(Decided(made, asked))
                if only_admits(made) and has_room(unwritten):
                    continue
            if not unwritten:
                break
            yield from self._write(unwritten, view, now)
            unwritten = []
            self._hear(view, instant)
        else:
            yield from self._write(unwritten, view, now)
            yield Again(now)
            return
        for explanation in self._unexamined.explanations():
            yield from self._tell(explanation)
        for other in self.estimates.refresh(instant):
            if other in self.explanations:
                yield from self._tell(self.explanations[other])
        due = self._next_due()
        if due is not None:
            yield Again(float(-(-due // 1000)))  # not before the whole second that it counts in

    def _hear(self, view: View, now: Instant) -> None:
        """Tell the engine what is different."""
        for _ in self._hearing(view, now):
            pass

    def _hearing(self, view: View, now: Instant) -> Iterator[None]:
        """Tell the engine what is different, configuration before what depends on it.

        Stops now and then, for others to have a turn; nobody may decide before it is through.
        """
        self._hear_policy(view)
        if self._market is not None and self._market_moved:
            self._market_moved = False
            self.state.apply(MarketSet(self._market.read(view)))
        dirty, self._dirty = self._dirty, {}
        self._basis.heard()
        if dirty:
            self.estimates.heard()
        order = {kind: place for place, kind in enumerate(self._translator.watches)}
        heard = sorted(dirty, key=lambda pair: order[pair[0]])
        for number, (kind, key) in enumerate(heard, 1):
            if number % _MOST_HEARD == 0:
                yield
            for change in self._translator.translate(kind, key):
                self.state.apply(change)
            if kind == names.WORKLOAD:
                workload = view.get(kind, key.name, key.namespace)
                for mender in self._menders:
                    mender.heard(workload, key)
                self._came(WorkloadKey(f"{key.namespace}/{key.name}"), workload)
            elif kind not in (names.NODE, names.POD):
                self._unexamined.configured()
                self._hear_limits(kind, key)
        if now > self.state.now:
            self.state.apply(TimePassed(now))

    def _take_over(self, view: View, now: Instant) -> Steps:
        """Put our mark on every gang that is on its way, before anything is decided."""
        if self._has_taken_over:
            return
        if self.state.turns.desk is not None:
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

    def _hear_policy(self, view: View) -> None:
        """Take over another policy before anything is read by it."""
        edits = [pair for pair in self._dirty if pair[0] == names.POLICY]
        for edit in edits:
            del self._dirty[edit]
        if names.POLICY not in self.watches or not (edits or self.cycles == 0):
            return
        settings = self._operator.settings_after(list(view.all(names.POLICY)))
        if settings is None or self._living(settings).policy == self.state.policy:
            return
        settings, old = self._living(settings), self.state.policy
        self._translator.use(settings)
        self.state.apply(PolicySet(settings.policy))
        if (old.pods_ready is None) != (settings.policy.pods_ready is None):
            self._news = News(minds_readiness=settings.policy.pods_ready is not None)
        for obj in view.all(names.WORKLOAD):  # a policy also says what some of their fields mean
            metadata = obj["metadata"]
            self._dirty[names.WORKLOAD, Key(metadata["namespace"], metadata["name"])] = None

    def _hear_limits(self, kind: Kind, key: Key) -> None:
        """Read those again who wait in a queue that has another time limit for them now."""
        if kind not in (names.LOCAL_QUEUE, names.CLUSTER_QUEUE):
            return
        if not self._translator.limits.changed(kind, key):
            return
        for door in [*self.state.doors.values()]:
            namespace, _, name = door.key.partition("/")
            leads = self.state.config.local_queues.get(door.key)
            is_it = (key.namespace, key.name) == (namespace, name)
            if kind == names.CLUSTER_QUEUE:
                is_it = leads is not None and leads.queue == key.name
            for workload in [*door.waiting] if is_it else ():
                space, _, own = workload.partition("/")
                for change in self._translator.translate(names.WORKLOAD, Key(space, own)):
                    self.state.apply(change)

    def can_replace(self, key: str, nodes: Sequence[str]) -> bool:
        """Say whether a workload would get other nodes for these, as things are."""
        if WorkloadKey(key) not in self.state.running:
            return False
        lost = frozenset(NodeName(node) for node in nodes)
        return not isinstance(repair(self.state, WorkloadKey(key), lost), GangDoesNotFit)

    def _repair(self, view: View, now: float) -> Steps:
        """Give gangs nodes that have quota and lack some, before anybody new gets those."""
        for mender in self._menders:
            for write, told in mender.writes(view, host_names(view), now):
                self._dirty[names.WORKLOAD, Key(write.ref.namespace, write.ref.name)] = None
                nodes = [node_name(host, view) for host, _ in record.hosts_of(write.changes)]
                holds = self._basis.holding(nodes)
                yield from self._store([msgspec.structs.replace(write, holds=holds)])
                yield Note(write.ref, mender.told_as, told)
                self._hear(view, self.state.now)

    def _store(self, writes: Sequence[Patch | Bind]) -> Steps:
        """Write decisions down, all of them; then raise what the first that failed failed for."""
        results: Sequence[Json | KubeTrouble | None] = yield Together(writes, tells=True)
        trouble: KubeTrouble | None = None
        for write, result in zip(writes, results, strict=True):
            if isinstance(result, KubeTrouble):
                trouble = trouble or result
                if isinstance(write, Patch):
                    self._in_doubt.note(write, result)
        if trouble is not None:
            raise trouble

    def _doubt(self, made: Plan) -> None:
        """Read everybody again whom a plan moves: what is not stored yet may never be."""
        moved = [
            *(admit.workload for admit in made.admissions),
            *(eviction.workload for eviction in evictions(made)),
            *(smaller.workload for smaller in shrinks(made)),
        ]
        for key in moved:
            kind = names.POD if key.startswith(STRAY) else names.WORKLOAD
            namespace, _, name = key.removeprefix(STRAY).partition("/")
            self._dirty[kind, Key(namespace, name)] = None

    def _write(self, decided: Sequence[Decided], view: View, now: float) -> Steps:
        """Write plans down, which share a commit; a gang that fails does not keep others."""
        if not decided:
            return
        with self._translator.sent.writing(now):
            yield from self._store(
                [write for one in decided for write in self._writes(*one, view, now)]
            )
        for one in decided:
            yield from _notes(one.made, view)

    def _writes(
        self, made: Plan, asked: Mapping[WorkloadKey, Workload], view: View, now: float
    ) -> Iterator[Patch | Bind]:
        hosts = host_names(view)
        for admit in made.admissions:
            pod = self._translator.stray(admit.workload)
            if pod is not None:
                (one,) = admit.admission.pod_sets
                shared = gpu_seats.told(one.devices[0]) if one.devices else {}
                self._translator.sent.note(pod, one.nodes[0][0])
                holds = self._basis.holding(one.nodes[0][:1])
                yield Bind(Ref.to(pod), one.nodes[0][0], shared, holds)
                continue
            workload = _get(view, admit.workload)
            if workload is not None:
                self.explanations.pop(admit.workload, None)
                changes = record.admitted(
                    workload,
                    admit,
                    asked[admit.workload],
                    hosts,
                    now=now,
                    epoch=self._epoch,
                    minds_readiness=self.state.policy.pods_ready is not None,
                )
                nodes = (node for one in admit.admission.pod_sets for node, _ in one.nodes)
                holds = self._basis.holding(nodes)
                yield Patch(Ref.to(workload), changes, "status", holds=holds)
        stops = {stop.workload: stop for stop in made.stops}
        holds = self._basis.holding()
        for eviction in evictions(made):
            workload = self._settled(view, eviction.workload)
            if workload is not None:
                stop = stops.get(eviction.workload)
                by = _described(view, eviction.by)
                changes = record.evicted(workload, eviction, stop, by, now=now)
                yield Patch(Ref.to(workload), changes, "status", holds=holds)
                if stop is not None and stop.deactivate and workload["spec"].get("active", True):
                    yield Patch(Ref.to(workload), {"spec": {"active": False}}, exact=False)
        for smaller in shrinks(made):
            workload = self._settled(view, smaller.workload)
            if workload is not None:
                changes = telling(workload, smaller, _described(view, smaller.by), now=now)
                yield Patch(Ref.to(workload), changes, "status", holds=holds)

    def _settled(self, view: View, key: WorkloadKey) -> Json | None:
        """Return a workload of which is known what it has."""
        return _get(view, key) if key not in self._in_doubt else None

    def _explain(self, made: Plan) -> Steps:
        for wait in made.waits:
            yield from self._tell(wait.explanation)

    def _tell(self, explanation: Explanation) -> Steps:
        key = explanation.workload
        before = self.explanations.get(key)
        if has_date(before) and not has_date(explanation):
            self.estimates.forget(key)  # made when it had the date that somebody else has now
        explanation = self.estimates.added_to(explanation)
        if before != explanation:
            self.explanations[key] = explanation
            namespace, _, name = key.partition("/")
            yield Wake("explainer", namespace, name)

    def _came(self, key: WorkloadKey, workload: Json | None) -> None:
        """Forget why somebody waits who does not any more; look at the others."""
        conditions = ((workload or {}).get("status") or {}).get("conditions")
        if key not in self.state.waiting or not conditions:
            self.explanations.pop(key, None)  # a new one of that name has not been told yet
        if key in self.state.waiting:
            self._unexamined.came(key)

    def _living(self, settings: Settings) -> Settings:
        """A living cluster without nodes has no place for anybody, unless pods run elsewhere."""
        replace = msgspec.structs.replace
        placement = replace(settings.policy.placement, needs_nodes=self._needs_nodes)
        return replace(settings, policy=replace(settings.policy, placement=placement))

    def _next_due(self) -> Instant | None:
        """Return when time alone may change something."""
        sent = self._translator.sent.next_due()
        doubt = Instant(int(sent * 1000) + 1) if sent is not None else None
        found = (self.state.timers.next(), self.estimates.next_due(), doubt)
        return min((due for due in found if due is not None), default=None)


def _key_of(metadata: Json) -> WorkloadKey:
    return WorkloadKey(f"{metadata['namespace']}/{metadata['name']}")


def _get(view: View, key: WorkloadKey) -> Json | None:
    namespace, _, name = key.partition("/")
    return view.get(names.WORKLOAD, name, namespace)


def _described(view: View, key: WorkloadKey | None) -> str:
    """Name a preemptor so that its owner can be found."""
    workload = _get(view, key) if key is not None else None
    if workload is None:
        return str(key or "")
    metadata = workload["metadata"]
    job = (metadata.get("labels") or {}).get("kueue.x-k8s.io/job-uid", "unknown")
    return f"{key} (UID: {metadata.get('uid', '')}, JobUID: {job})"


def _notes(made: Plan, view: View) -> Iterator[Note]:
    for admit in made.admissions:
        workload = _get(view, admit.workload)
        if workload is not None:
            queue = written_queue(admit.admission.queue)
            yield Note(Ref.to(workload), "QuotaReserved", f"Quota reserved in ClusterQueue {queue}")
    for eviction in evictions(made):
        workload = _get(view, eviction.workload)
        if workload is not None:
            who = f" for {_described(view, eviction.by)}" if eviction.by is not None else ""
            message = f"Evicted: {eviction.reason}{who}"
            yield Note(Ref.to(workload), "Evicted", message, "Warning")
    for smaller in shrinks(made):
        workload = _get(view, smaller.workload)
        if workload is not None:
            kept = sum(one.count for one in smaller.keeps.pod_sets)
            who = _described(view, smaller.by)
            message = f"Goes on with {kept} pods: {smaller.reason} for {who}"
            yield Note(Ref.to(workload), "Shrinking", message, "Warning")
