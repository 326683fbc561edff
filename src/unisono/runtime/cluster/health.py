"""What `unisono controller` says about itself: health, readiness, and metrics for Prometheus."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unisono.control.reconciling.driver import Driver
from unisono.control.reconciling.workers import LiveControllers
from unisono.control.scheduler.health import Health
from unisono.kube.calls import Counts
from unisono.kube.leader_election import Candidate
from unisono.monitor.exposition import Family, Sample, negotiated, single
from unisono.runtime.clock import seconds_now
from unisono.runtime.probes import Asked, Page

if TYPE_CHECKING:  # loaded by the leader, after its first decision
    from unisono.monitor.metrics.registry import MetricsRegistry

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class Observed:
    """The parts of a running controller."""

    live: LiveControllers
    candidate: Candidate
    counts: Counts
    driver: Driver | None = None  # only on the leader
    figures: MetricsRegistry | None = None  # only on the leader
    crashes: int = 0
    is_trusted: asyncio.Event | None = None  # only with webhooks
    health: Health | None = None  # only on the leader

    def healthz(self, asked: Asked) -> Page:
        """Fail when a cache has not followed the API for so long that a restart is the best."""
        stale = [kind.kind for kind, one in self.live.informers.items() if one.is_stale()]
        if stale:
            return Page(503, f"not heard of for minutes: {', '.join(stale)}\n")
        wrong = self.health.why_unhealthy(seconds_now()) if self.health is not None else ""
        return Page(503, f"{wrong}\n") if wrong else Page(200, "ok\n")

    def readyz(self, asked: Asked) -> Page:
        """Be ready when all is read; a standby is as ready as the leader."""
        waiting = [kind.kind for kind, one in self.live.informers.items() if not one.has_synced]
        if waiting:
            return Page(503, f"still reading: {', '.join(waiting)}\n")
        if self.is_trusted is not None and not self.is_trusted.is_set():
            return Page(503, "the webhooks have no certificate yet\n")
        wrong = self.health.why_not_ready(seconds_now()) if self.health is not None else ""
        if wrong:
            return Page(503, f"{wrong}\n")
        return Page(200, "leading\n" if self.candidate.is_leading() else "standing by\n")

    def metrics(self, asked: Asked) -> Page:
        """Return the metrics as Prometheus reads them."""
        content_type, text = negotiated(self._families(), asked.accept)
        return Page(200, text, content_type)

    def _families(self) -> Iterator[Family]:
        leads = int(self.candidate.is_leading())
        yield single("unisono_leader", "gauge", "1 on the replica that leads.", leads)
        counts = self.counts
        calls = {
            "sent": counts.calls,
            "retried": counts.retries,
            "refused": counts.refused,
            "unreachable": counts.unreachable,
        }
        yield Family(
            "unisono_api_requests_total",
            "counter",
            "Requests to the API.",
            [Sample({"result": result}, count) for result, count in calls.items()],
        )
        yield Family(
            "unisono_api_writes_total",
            "counter",
            "Writes to the API, by resource.",
            [
                Sample({"method": method, "resource": resource}, count)
                for (method, resource), count in sorted(counts.writes.items())
            ],
        )
        informers = self.live.informers.items()
        yield Family(
            "unisono_cached_objects",
            "gauge",
            "Objects in memory, by kind.",
            [Sample(_labels(*kind), len(one.store)) for kind, one in informers],
        )
        yield Family(
            "unisono_informer_troubles_total",
            "counter",
            "Lists and watches that failed, by kind.",
            [Sample(_labels(*kind), one.errors) for kind, one in informers],
        )
        yield Family(
            "unisono_informer_relists_total",
            "counter",
            "How often everything of a kind was read anew.",
            [Sample(_labels(*kind), one.reflector.relists) for kind, one in informers],
        )
        crashes = "Steps that ended in a bug of ours."
        yield single("unisono_controller_crashes_total", "counter", crashes, self.crashes)
        if self.driver is not None:
            measures = self.driver.queue.measures
            yield single(
                "unisono_queue_depth",
                "gauge",
                "Keys that wait for a worker.",
                len(self.driver.queue),
            )
            yield single("unisono_steps_total", "counter", "Steps of controllers.", measures.done)
            retries = "Steps tried again."
            yield single("unisono_step_retries_total", "counter", retries, measures.retries)
            oldest = self.driver.oldest_wait()
            old = "How long the oldest waiting key has waited."
            yield single("unisono_oldest_key_seconds", "gauge", old, oldest)
            yield Family(
                "unisono_step_seconds_total",
                "counter",
                "Time of steps: waiting for a worker, and working.",
                [
                    Sample({"part": "waiting"}, measures.waited_s),
                    Sample({"part": "working"}, measures.worked_s),
                ],
            )
        if self.figures is not None:
            yield from self.figures.families()
        yield from process_families()


def process_families() -> Iterator[Family]:
    """Yield what this process uses."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime
    yield single("process_cpu_seconds_total", "counter", "CPU time used.", seconds)
    statm = Path("/proc/self/statm")
    if statm.exists():
        resident = int(statm.read_text().split()[1]) * _PAGE_BYTES
        yield single("process_resident_memory_bytes", "gauge", "Memory in use.", resident)


def _labels(api_version: str, kind: str) -> Mapping[str, str]:
    return {"group": api_version.rpartition("/")[0], "kind": kind}
