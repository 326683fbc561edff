"""The controllers at work on a real cluster: checked, elected, watched, and ended in order.

    check ──▶ follow the API ──▶ stand by ──lease──▶ lead ──SIGTERM──▶ finish, release
                                                      │
                                       lease lost ────┴──▶ end; a new process begins anew

A replica that stands by follows the API like the one that leads, so that taking over is a matter of
moments. Writes are refused by our own client from the moment that the lease may be another's.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import socket
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from unisono import __version__
from unisono.control.assembly import INDEXES, LANES, cluster
from unisono.control.controller import Controller
from unisono.control.names import CONFIG_MAP, POLICY
from unisono.control.rbac import QUEUEING, WEB, kinds_read, kinds_unread
from unisono.control.reconciling.driver import Driver
from unisono.control.reconciling.event_routing import Task
from unisono.control.reconciling.workers import LiveControllers
from unisono.control.scheduler.loop import CYCLE, KeepRefusal, not_kept
from unisono.engine.cycle import Decides, plan
from unisono.engine.model.errors import UnisonoError
from unisono.kinds.policy.settings import DEFAULTS, Settings, counting_policy, settings_from
from unisono.kube.client import Client
from unisono.kube.clock import guarded, within
from unisono.kube.connect import connected
from unisono.kube.errors import Forbidden, KubeError
from unisono.kube.kubeconfig import Access
from unisono.kube.leader_election import Candidate
from unisono.kube.priority_lanes import Lanes
from unisono.notify import assembly as notify
from unisono.provision import assembly as provisioning
from unisono.provision.offerings import OfferingsReader
from unisono.runtime.clock import RealClock
from unisono.runtime.cluster.health import Observed
from unisono.runtime.cluster.preconditions import (
    check_kinds,
    check_namespace,
    check_rights,
    checks_classes,
    operators_to_run,
    others,
)
from unisono.runtime.ids import new_uid, random_source
from unisono.runtime.log import Journal
from unisono.runtime.memory import calm_collector
from unisono.runtime.probes import probes
from unisono.runtime.scheduler_metrics import Timed

if TYPE_CHECKING:
    from unisono.monitor.metrics.registry import MetricsRegistry
    from unisono.monitor.prometheus import Prometheus
    from unisono.runtime.cluster.followed import FollowedCache
    from unisono.runtime.cluster.web import ClusterWeb, WebChoices


# Shorter than the 30 seconds that Kubernetes gives a pod to end.
_GRACE_S = 20.0
# How often to look whether operators of others came or went.
_LOOK_AROUND_S = 60.0
_MOST_TRACE_LINES = 12
# A scheduler that cannot decide at all must still show metrics.
_LONGEST_WITHOUT_METRICS_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the operator chose."""

    access: Access
    namespace: str
    listen: tuple[str, int]
    webhook: tuple[str, int] | None
    visibility: tuple[str, int] | None = None
    operators: tuple[str, ...] | None
    adopted: frozenset[str]
    settings: Settings | None  # of a file; None: the Policy of the cluster counts
    rate: float
    decides: Decides = plan  # or a wrapper that also records decisions
    keep_refusal: KeepRefusal = not_kept  # plans that the auditor refused
    machines: Literal["none", "karpenter", "autoscaler"] = "none"  # what provisions nodes for gangs
    names: Sequence[str] = ()  # under which we may be asked, besides addresses
    web: WebChoices | None = None  # no web page if None
    ledger: Path | None = None  # where usage is written down; nowhere if None
    prometheus: Prometheus | None = None  # the source of GPU utilization and of alerts
    grafana: str = ""  # its address, to link to


class NeighboursChanged(UnisonoError):
    """Another operator came or went; a new process finds its place beside those that are there."""


class _Stopped(Exception):
    """We were told to end."""


async def control_cluster(choices: Choices, clock: RealClock, journal: Journal) -> None:
    """Work until told to stop, or until the lease is lost."""
    calm_collector()  # once more when all is read
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    lanes = Lanes(clock, rate=choices.rate, burst=2 * choices.rate)
    async with connected(
        choices.access,
        clock=clock,
        random_source=random_source(),
        ids=new_uid,
        lanes=lanes,
        on_warning=lambda text: journal.warning("the API warns", text=text),
    ) as client:
        operators = await _found_fit(client.variant(most_tries=1), choices, journal)
        replica = _Replica(client, choices, operators, clock, journal)
        with contextlib.suppress(_Stopped):
            await replica.run(stop)
        journal.info("stopped")


async def _found_fit(client: Client, choices: Choices, journal: Journal) -> tuple[str, ...]:
    """Check the cluster, and return which operators are ours to run there."""
    await check_kinds(client)
    await check_namespace(client, choices.namespace)
    found = await others(client)
    operators = operators_to_run(choices.operators, choices.adopted, found)
    shows = WEB if choices.web is not None else ()
    await check_rights(client, choices.namespace, parts_of(operators, choices.machines), shows)
    for one in found:
        journal.info("another operator runs", operator=one.operator, deployment=one.deployment)
    journal.info(
        "starting",
        version=__version__,
        server=choices.access.server,
        namespace=choices.namespace,
        operators=",".join(operators),
    )
    return operators


def parts_of(operators: Sequence[str], machines: str) -> Sequence[str]:
    """Return the parts of us that are at work (`control.rights`)."""
    return (QUEUEING, *operators, *(() if machines == "none" else (machines,)))


class _Replica:
    """One process among several."""

    def __init__(
        self,
        client: Client,
        choices: Choices,
        operators: tuple[str, ...],
        clock: RealClock,
        journal: Journal,
    ) -> None:
        self._client = client
        self._choices = choices
        self._operators = operators
        self._clock = clock
        self._journal = journal
        self._candidate = Candidate(
            client,
            f"{socket.gethostname()}_{new_uid()}",
            clock=clock,
            random_source=random_source(),
            namespace=choices.namespace,
            on_leader=lambda holder: journal.info("leader", holder=holder),
        )
        self._buys = choices.machines == "karpenter"
        parts = parts_of(operators, choices.machines)
        self._live = LiveControllers(
            client.variant(permit=self._candidate.permit),
            kinds_read(parts),
            clock=clock,
            resume_from=clock.resume_from,
            random_source=random_source(),
            indexes={**INDEXES, **provisioning.INDEXES},
            report=self._report,
            may_lack_kinds=True,
            unread=kinds_unread(parts),
            namespaces={CONFIG_MAP: choices.namespace},
        )
        self._observed = Observed(self._live, self._candidate, client.caller.counts)
        self._web: ClusterWeb | None = None
        self._followed: FollowedCache | None = None
        if choices.web is not None or choices.visibility is not None:
            from unisono.runtime.cluster.followed import FollowedCache

            self._followed = FollowedCache(self._live)
        if choices.web is not None and self._followed is not None:
            from unisono.runtime.cluster.web import ClusterWeb  # only with a page

            reuse = (choices.settings or DEFAULTS).buying.reuse
            self._web = ClusterWeb(
                self._live,
                self._followed,
                client,
                choices.ledger,
                access=choices.access,
                prometheus=choices.prometheus,
                grafana=choices.grafana,
                reuse=reuse,
            )

    async def run(self, stop: asyncio.Event) -> None:
        observed = self._observed
        pages = {
            "/healthz": observed.healthz,
            "/readyz": observed.readyz,
            "/metrics": observed.metrics,
        }
        names = self._choices.names
        async with probes(*self._choices.listen, pages, names=names) as address:
            self._journal.info("listening", address=address)
            # A guard that is not wanted ends at once, so the one work is inside all of them.
            work = guarded(self._live.follow(), self._take_part(stop))
            for guard in (self._show(), self._answer_visibility(), self._answer_reviews()):
                work = guarded(guard, work)
            await work

    async def _answer_reviews(self) -> None:
        """Be a webhook if we are to be one: a standby answers like the leader."""
        if self._choices.webhook is None:
            return
        from unisono.runtime.webhook.serving import Webhook  # only with webhooks

        webhook = Webhook(self._client, self._choices.namespace, self._clock, self._journal)
        self._observed.is_trusted = webhook.is_trusted
        await webhook.serve(*self._choices.webhook)

    async def _answer_visibility(self) -> None:
        """Answer for pending workloads if we are to, as soon as all is read: a standby, too."""
        if self._choices.visibility is None or self._followed is None:
            return
        from unisono.monitor.pending import PendingWorkloads
        from unisono.runtime.visibility.serving import VisibilityServer

        await self._live.synced()
        lists = PendingWorkloads(self._followed.cache, self._live.view.peek)
        home = self._choices.namespace
        server = VisibilityServer(self._client, home, lists, self._clock, self._journal)
        await server.serve(*self._choices.visibility)

    async def _show(self) -> None:
        """Serve the web page, if there is to be one, as soon as all is read."""
        if self._web is None or self._choices.web is None:
            return
        await self._live.synced()
        await self._web.serve(self._choices.web, self._choices.names, self._clock, self._journal)

    async def _take_part(self, stop: asyncio.Event) -> None:
        """Stand by, and lead when it is our turn."""
        await guarded(self._end_on(stop), self._synced())
        await guarded(
            self._look_around(),
            guarded(self._end_on(stop), self._candidate.lead(lambda: self._lead(stop))),
        )

    async def _synced(self) -> None:
        await self._live.synced()
        calm_collector()
        counts = sum(len(one.store) for one in self._live.informers.values())
        self._journal.info("all is read", objects=counts)

    async def _lead(self, stop: asyncio.Event) -> None:
        lease = self._candidate.election.lease or {}
        epoch = int((lease.get("spec") or {}).get("leaseTransitions") or 0) + 1
        timed = Timed(self._choices.decides)
        home = self._choices.namespace
        settings = self._settings()
        assembly = cluster(
            self._live.view,
            settings,
            epoch=epoch,
            operators=self._operators,
            decides=timed,
            home=home,
            offerings=OfferingsReader(home=home) if self._buys else None,
            report=lambda where, error: self._report(Task(where, CYCLE), error),
            keep_refusal=self._choices.keep_refusal,
            api_checks_classes=await checks_classes(self._client),
        )
        machines: Sequence[Controller] = ()
        if self._choices.machines != "none":
            buying = provisioning.karpenter(settings, home)
            machines = buying if self._buys else provisioning.requests(settings)
        notifications = notify.assembled(
            settings,
            self._client.variant(permit=self._candidate.permit),
            home,
            clock=self._clock,
            complain=lambda text: self._journal.warning("notifications", text=text),
        )
        # By turns: a large cluster takes longer to hear of than a lease holds on a busy machine.
        controllers = (*assembly.controllers, *machines, *notifications.controllers)
        driver = await self._live.driver_in_steps(controllers, LANES)
        notifications.sender.settled = driver.want
        self._observed.driver = driver
        self._observed.health = assembly.scheduler.health
        if self._followed is not None:
            self._followed.lead(driver)
        if self._web is not None:
            self._web.lead(assembly.scheduler)
        denials = Denials(self._journal, self._clock.monotonic)
        driver.on_outcome = lambda outcome: denials.hear(outcome.error)
        self._journal.info("leading", epoch=epoch)
        await guarded(
            notifications.sender.run(),
            guarded(self._count(driver, timed), self._live.work(driver, stop)),
        )
        self._journal.info("finished what was begun")

    def _settings(self) -> Settings:
        """Return what counts when we begin to lead: the file, else the Policy of the cluster."""
        if self._choices.settings is not None:
            return self._choices.settings
        view = self._live.view
        return settings_from(counting_policy(view.all(POLICY) if view.has(POLICY) else ()))

    async def _count(self, driver: Driver, timed: Timed) -> None:
        """Keep figures and the ledger while we lead.

        From the first decision on: reading a large cluster takes a while, and a job that waits for
        a node should not wait for a graph. Loading what they need takes a while, too.
        """
        since = self._clock.now()
        with contextlib.suppress(TimeoutError):
            await within(self._clock, _LONGEST_WITHOUT_METRICS_S, timed.has_decided())
        from unisono.runtime.scheduler_metrics import metrics_in_steps

        figures = await metrics_in_steps(
            self._live.view,
            driver,
            timed,
            self._live.crashes,
            mode="cluster",
            since=since,
            home=self._choices.namespace,
        )
        figures.cache.on_unreadable = lambda what, why: self._journal.warning(
            "no figures of an object", about=what, error=repr(why)
        )
        self._observed.figures = figures
        async with self._recorded(figures):
            await asyncio.Event().wait()  # until the work is done, and we are cancelled

    def _recorded(self, figures: MetricsRegistry) -> AbstractAsyncContextManager[None]:
        """Keep the ledger, if one is configured."""
        ledger, prometheus = self._choices.ledger, self._choices.prometheus
        if ledger is None:
            return contextlib.nullcontext()
        from unisono.runtime.usage_ledger import PrometheusMeter, bookkeeping

        meter = None if prometheus is None else PrometheusMeter(prometheus)
        self._journal.info("recording usage", ledger=str(ledger), measured=prometheus is not None)
        return bookkeeping(
            ledger,
            figures,
            meter,
            self._live.synced,
            complain=lambda text: self._journal.warning("usage", text=text),
        )

    async def _end_on(self, stop: asyncio.Event) -> None:
        """Raise when we are told to end; the leader gets some time to end by itself."""
        await stop.wait()
        self._journal.info("stopping")
        if self._candidate.is_leading():
            await self._clock.sleep(_GRACE_S)
        raise _Stopped

    async def _look_around(self) -> None:
        """Notice operators of others that come and go."""
        while True:
            await self._clock.sleep(_LOOK_AROUND_S)
            try:
                found = await others(self._client)
            except KubeError:
                continue  # the controllers get the same error
            choices = self._choices
            if operators_to_run(choices.operators, choices.adopted, found) != self._operators:
                raise NeighboursChanged("other operators came or went; starting over")

    def _report(self, task: Task, error: Exception) -> None:
        self._observed.crashes += 1
        lines = traceback.format_exception(error)[-_MOST_TRACE_LINES:]
        place = "/".join(filter(None, task.key))
        self._journal.error(
            "a step failed", controller=task.controller, key=place, trace="".join(lines)
        )


# ---- missing rights ------------------------------------------------------------------------------

# What is still so after this time is told again.
_AGAIN_S = 300.0
# A role has some hundred rights; the log of a replica that is denied more says enough.
_MOST_KEPT = 256
_CANNOT = re.compile(r'cannot (\w+) resource "([^"]+)" in API group "([^"]*)"')


class Denials:
    """Logs which verb on which resource is missing, once in a while and not at every try.

    Rights can be taken away while we run. Work that needs them is tried again anyway.
    """

    def __init__(self, journal: Journal, monotonic: Callable[[], float]) -> None:
        """Write to a journal; `monotonic` is in seconds."""
        self._journal = journal
        self._monotonic = monotonic
        self._told: dict[tuple[str, str], float] = {}

    def hear(self, error: KubeError | None) -> None:
        """Look at what stopped a task."""
        if not isinstance(error, Forbidden):
            return
        verb, resource = _right_of(str(error))
        now = self._monotonic()
        if now - self._told.get((verb, resource), -_AGAIN_S) < _AGAIN_S:
            return
        if len(self._told) >= _MOST_KEPT:
            self._told.clear()
        self._told[verb, resource] = now
        self._journal.error("not allowed", verb=verb, resource=resource, reason=str(error))


def _right_of(message: str) -> tuple[str, str]:
    """Read the right that an API server misses.

    >>> _right_of('pods "a" is forbidden: User "u" cannot patch resource "pods" in API group "x.y"')
    ('patch', 'pods.x.y')
    """
    found = _CANNOT.search(message)
    if found is None:
        return "", ""  # another reason to refuse: a policy, a quota
    verb, resource, group = found.groups()
    return verb, f"{resource}.{group}" if group else resource
