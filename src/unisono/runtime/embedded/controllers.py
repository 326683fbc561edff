"""The controllers and the runner of an embedded cluster, at work on its API in the same process."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from unisono.apiserver.api import Api
from unisono.apiserver.bootstrap import SYSTEM
from unisono.control.assembly import EMBEDDED_KINDS, INDEXES, LANES, embedded
from unisono.control.reconciling.driver import Driver
from unisono.control.reconciling.event_routing import Task
from unisono.control.reconciling.workers import Crashes, LiveControllers
from unisono.control.scheduler.loop import CYCLE, LEDGER, Scheduler
from unisono.control.view import View
from unisono.engine.cycle import Decides, plan
from unisono.kinds.policy.settings import DEFAULTS, Settings
from unisono.kube.client import Client
from unisono.kube.connect import client_over
from unisono.kube.errors import NotFound
from unisono.kube.form import Key
from unisono.kube.mapping import Kind
from unisono.kube.priority_lanes import Lanes
from unisono.notify import assembly as notify
from unisono.provision import assembly as provisioning
from unisono.provision.offerings import OfferingsReader
from unisono.runner.addresses import Addresses
from unisono.runner.logs import LogFolder
from unisono.runner.run_mode import RunMode
from unisono.runner.simulated.agents import GpuFaults, TrainingProgress, Usage, pod_usage
from unisono.runner.simulated.kubelet import SimulatedKubelet, Simulation
from unisono.runtime.clock import RealClock
from unisono.runtime.embedded.in_process import InProcess
from unisono.runtime.ids import new_uid, random_source
from unisono.runtime.log import warn
from unisono.runtime.recording import Refusals

if TYPE_CHECKING:
    from unisono.runner.process.runner import ProcessRunner
    from unisono.runner.process.system_users import SystemUsers


@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """How pods run."""

    directory: Path  # for what processes need: volumes, tools
    logs: Path
    mode: RunMode = "simulated"
    speed: float = 1.0  # of simulated ones
    # What processes do not see of this machine, with the entries of each that they do.
    hidden: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    accounts: SystemUsers | None = None  # of process pods; none: our own


class AtWork(NamedTuple):
    """Controllers that run."""

    view: View
    driver: Driver
    crashes: Crashes
    scheduler: Scheduler
    synced: Callable[[], Awaitable[None]]  # waits until the view is whole


@contextlib.asynccontextmanager
async def controlling(
    api: Api,
    pods: Pods,
    settings: Settings = DEFAULTS,
    *,
    refusals: Path,
    needs_nodes: bool = True,
    decides: Decides | None = None,
) -> AsyncIterator[AtWork]:
    """Run them while the block lasts; plans that the auditor refuses are kept in `refusals`."""
    clock = RealClock()
    client = client_over(
        InProcess(api, SYSTEM),
        clock=clock,
        random_source=random_source(),
        ids=new_uid,
        lanes=Lanes(clock, rate=math.inf),  # our own API needs no protection from ourselves
    )
    live = LiveControllers(
        client,
        (*EMBEDDED_KINDS, *provisioning.KINDS),
        clock=clock,
        resume_from=clock.resume_from,
        random_source=random_source(),
        indexes={**INDEXES, **provisioning.INDEXES},
        report=_report_crash,
        stored=lambda kind, one: api.direct.record_of(*kind, *one.key, one.resource_version),
    )
    addresses = Addresses()
    simulation = Simulation(speed=pods.speed, default=pods.mode)
    kubelet = SimulatedKubelet(simulation, addresses=addresses, logs=LogFolder(pods.logs))
    # Commands of manifests become processes of ours only with --pods process.
    runner = _process_runner(pods, addresses, clock) if pods.mode == "process" else None
    processes = () if runner is None else (runner.kubelet, runner.checkpoints)
    epoch = await _next_epoch(client)
    reader = OfferingsReader(pods.speed)
    decider = decides or plan
    assembly = embedded(
        live.view,
        settings,
        epoch=epoch,
        needs_nodes=needs_nodes,
        decides=decider,
        offerings=reader,
        report=lambda where, error: _report_crash(Task(where, CYCLE), error),
        keep_refusal=Refusals(refusals),
        usage=pod_usage,
    )
    machines = provisioning.simulated(
        settings, reader, assembly.scheduler.can_replace, speed=pods.speed
    )
    notifications = notify.assembled(
        settings,
        client,
        LEDGER.namespace,
        clock=clock,
        complain=warn,
    )
    others = (
        *machines,
        *notifications.controllers,
        kubelet,
        TrainingProgress(simulation),
        GpuFaults(),
        *processes,
    )
    driver = live.driver((*assembly.controllers, *others), LANES)
    notifications.sender.settled = driver.want
    if runner is not None:
        name = runner.kubelet.name
        from unisono.runner.process.exec import enter

        api.start_exec = enter
        runner.begin(lambda namespace, pod: driver.want(name, Key(namespace, pod)))
    api.before_log = kubelet.write_down
    api.endpoints.usage = Usage(live.view, clock.now)
    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(live.run(driver))
        sending = tasks.create_task(notifications.sender.run())
        try:
            yield AtWork(live.view, driver, live.crashes, assembly.scheduler, live.synced)
        finally:
            work.cancel()
            sending.cancel()
            if runner is not None:
                await runner.close()


async def _next_epoch(client: Client) -> int:
    """Return the number of this leadership; a Lease counts them."""
    lease = Kind("coordination.k8s.io/v1", "Lease")
    name, namespace = "unisono-scheduler", "kube-system"
    try:
        found = await client.get(lease, name, namespace)
    except NotFound:
        await client.create(
            {
                "apiVersion": lease.api_version,
                "kind": lease.kind,
                "metadata": {"name": name, "namespace": namespace},
                "spec": {"holderIdentity": "unisono", "leaseTransitions": 0},
            }
        )
        return 1
    before = int((found.get("spec") or {}).get("leaseTransitions") or 0)
    await client.patch(lease, name, namespace, {"spec": {"leaseTransitions": before + 1}})
    return before + 2


def _process_runner(pods: Pods, addresses: Addresses, clock: RealClock) -> ProcessRunner:
    # Only process pods need all of that.
    from unisono.runner.process.kubelet import KubeletOptions
    from unisono.runner.process.runner import process_runner

    return process_runner(
        pods.directory,
        pods.logs,
        now=clock.now,
        env=os.environ,
        addresses=addresses,
        options=KubeletOptions(default="process"),
        is_root=os.geteuid() == 0,
        hidden=pods.hidden,
        system_users=pods.accounts,
    )


def _report_crash(task: Task, error: Exception) -> None:
    """Tell the operator about a bug of ours; the cluster goes on."""
    place = "/".join(filter(None, task.key))
    sys.stderr.write(f"unisono: {task.controller} {place} failed:\n")
    traceback.print_exception(error, limit=8)
