"""What `unisono controller` tells about itself: health, readiness, and figures for Prometheus."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from unisono.cli.probes import Page
from unisono.control.driver import Driver
from unisono.control.live import Live
from unisono.kube.calls import Counts
from unisono.kube.candidate import Candidate

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class Observed:
    """The parts of a running controller."""

    live: Live
    candidate: Candidate
    counts: Counts
    driver: Driver | None = None  # only who leads has one
    crashes: int = 0

    def healthz(self) -> Page:
        """Fail when a cache has not followed the API for so long that a restart is the best."""
        stale = [kind.kind for kind, one in self.live.informers.items() if one.is_stale()]
        if stale:
            return Page(503, f"not heard of for minutes: {', '.join(stale)}\n")
        return Page(200, "ok\n")

    def readyz(self) -> Page:
        """Be ready when all is read; a standby is as ready as the one who leads."""
        waiting = [kind.kind for kind, one in self.live.informers.items() if not one.has_synced]
        if waiting:
            return Page(503, f"still reading: {', '.join(waiting)}\n")
        return Page(200, "leading\n" if self.candidate.is_leading() else "standing by\n")

    def metrics(self) -> Page:
        """Return the figures as Prometheus reads them."""
        return Page(200, "".join(self._lines()))

    def _lines(self) -> Iterator[str]:
        leads = int(self.candidate.is_leading())
        yield from _family("unisono_leader", "gauge", "1 on the replica that leads.", {"": leads})
        counts = self.counts
        calls = {
            '{result="sent"}': counts.calls,
            '{result="retried"}': counts.retries,
            '{result="refused"}': counts.refused,
            '{result="unreachable"}': counts.unreachable,
        }
        yield from _family("unisono_api_requests_total", "counter", "Requests to the API.", calls)
        informers = self.live.informers.items()
        yield from _family(
            "unisono_cached_objects",
            "gauge",
            "Objects in memory, by kind.",
            {_labelled(*kind): len(one.store) for kind, one in informers},
        )
        yield from _family(
            "unisono_informer_troubles_total",
            "counter",
            "Lists and watches that failed, by kind.",
            {_labelled(*kind): one.troubles for kind, one in informers},
        )
        yield from _family(
            "unisono_controller_crashes_total",
            "counter",
            "Steps that ended in a bug of ours.",
            {"": self.crashes},
        )
        if self.driver is not None:
            measures = self.driver.queue.measures
            for name, kind, text, value in (
                ("unisono_queue_depth", "gauge", "Keys in line.", len(self.driver.queue)),
                ("unisono_steps_total", "counter", "Steps of controllers.", measures.done),
                ("unisono_step_retries_total", "counter", "Steps tried again.", measures.retries),
            ):
                yield from _family(name, kind, text, {"": value})
        yield from _process_lines()


def _process_lines() -> Iterator[str]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime
    yield from _family("process_cpu_seconds_total", "counter", "CPU time used.", {"": seconds})
    statm = Path("/proc/self/statm")
    if statm.exists():
        resident = int(statm.read_text().split()[1]) * _PAGE_BYTES
        yield from _family(
            "process_resident_memory_bytes", "gauge", "Memory in use.", {"": resident}
        )


def _labelled(api_version: str, kind: str) -> str:
    group = api_version.rpartition("/")[0]
    return f'{{group="{group}",kind="{kind}"}}'


def _family(name: str, kind: str, text: str, values: Mapping[str, float]) -> Iterator[str]:
    yield f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
    for labels, value in values.items():
        yield f"{name}{labels} {value}\n"
