"""Jobs become gangs on a real cluster: stock job controller and kube-scheduler, simulated nodes."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import uvloop

from bench.harness import Finding, Note, Scale, figures, target
from bench.real.ground import (
    Ground,
    client_of,
    cpu_s,
    difference,
    end,
    ground,
    in_lots,
    peak_bytes,
    told,
    without_events,
    writes_of,
)
from tests.real.cluster import kubelets
from tests.real.control_plane import CONTROLLERS
from tests.real.stage import WORKLOAD, gang, phase_of, queues
from unisono.kube.client import Client

GANGS: dict[Scale, int] = {"full": 200, "quick": 40, "tiny": 2}
PODS = 4
_AT_ONCE = 16
_LOOK_S = 0.5
_RUN_S = 36_000  # no gang ends while we measure


def measure(scale: Scale) -> Iterator[Finding]:
    """Submit gangs at once, with room for all of them."""
    count = GANGS[scale]
    with (
        ground(controllers=(*CONTROLLERS, "job-controller"), has_scheduler=True) as place,
        kubelets(place.plane, f"{count * PODS}x{{gpu=8,cpu=32,memory=256Gi}}", speed=1),
    ):
        replica = place.start("--rate", "2000")
        replica.until_told("leading")
        pid = replica.process.pid
        before, spent = writes_of(replica), cpu_s(pid)
        taken = uvloop.run(_drive(place, count))
        spent, peak = cpu_s(pid) - spent, peak_bytes(pid)
        writes = difference(writes_of(replica), before)
        end(replica)
    rate = figures(
        f"gangs of {PODS} on their nodes a second", count, "gangs", [count / taken], "1/s"
    )
    yield rate
    yield figures("processor time of the controller", count, "gangs", [spent / count * 1e3], "ms")
    yield figures("the controller's most memory", count, "gangs", [peak], "B")
    all_of_them = [without_events(writes) / count]
    yield figures("writes for each gang, without events", count, "gangs", all_of_them, "ratio")
    # What a Workload takes that is there already, as one of another controller would be.
    kinds = ("PATCH workloads/status", "PATCH pods", "POST pods/binding")
    own = [sum(writes.get(kind, 0) for kind in kinds) / count]
    each = figures("of them of workloads and pods that exist", count, "gangs", own, "ratio")
    yield each
    # Some conflict with a write of another client and are tried again.
    yield target("writes for each gang", each, 2.1 + PODS, better="below")
    yield Note(f"writes for each gang of {PODS}: {told(writes, count)}")


async def _drive(place: Ground, count: int) -> float:
    async with client_of(place.plane) as client:
        for obj in queues("default"):
            await client.apply(wide(obj))

        async def submit(number: int) -> None:
            await client.create(gang(f"gang-{number}", "default", PODS, _RUN_S))

        began = time.perf_counter()
        await in_lots(count, _AT_ONCE, submit)
        while await committed(client) < count:
            place.check()
            await pause()
        taken = time.perf_counter() - began
        await pause(6 * _LOOK_S)  # what is written after the commit is these gangs', too
        return taken


async def committed(client: Client) -> int:
    """Return how many gangs are whole."""
    found = (await client.list(WORKLOAD)).items
    return Counter(map(phase_of, found))["Committed"]


async def pause(seconds: float = _LOOK_S) -> None:
    """Let others work."""
    await asyncio.sleep(seconds)


def wide(obj: dict[str, Any]) -> dict[str, Any]:
    """Give a queue quota for all gangs."""
    for group in (obj.get("spec") or {}).get("resourceGroups") or ():
        for flavor in group["flavors"]:
            for one in flavor["resources"]:
                one["nominalQuota"] = "1000000Gi"
    return obj
