"""One case on a cluster: it is sent, controllers react, an innocent job comes, and all is checked.

What must hold, whatever was sent:

    the API answers, and never with a 5xx
    an innocent job in another namespace and queue runs within ten scheduling cycles,
        and the one that ran there before runs on
    `why` explains the hostile object, if it was stored
    nothing crashes, unless it is set aside after the first time
    once it is deleted, its queue has back what it used
    steps and memory are bounded by what was sent
"""

from __future__ import annotations

import resource
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import orjson

from tests.hostile.cases import Case, path_of
from tests.hostile.stage import (
    NOISY,
    QUIET,
    Answer,
    Crash,
    Meter,
    Runaway,
    Send,
    Stage,
    gang,
    place_of,
)
from unisono.cli.why.answer import answer as answer_why
from unisono.cli.why.read import gather
from unisono.cli.why.text import text
from unisono.control.assembly import EMBEDDED_KINDS, INDEXES, embedded
from unisono.control.conditions import find
from unisono.control.jobs.controller import JobController
from unisono.control.names import CLUSTER_QUEUE, POD, WORKLOAD
from unisono.control.view import KindStore, View
from unisono.kinds.policy.settings import DEFAULTS
from unisono.kinds.shapes.served import Served
from unisono.kube.errors import KubeError
from unisono.kube.form import Json

MOST_CYCLES = 10  # of the scheduler, until the innocent has its nodes
MOST_BYTES = 50 * 1024 * 1024  # by which the process may grow
# Steps that a case may take at all: a right job and the innocent take about 400,000 in their whole
# lives. A job of as many pods as the two nodes hold takes more.
STEPS = 4_000_000
# Steps for every byte that was sent: parsing, pruning, checking and storing look at a field a few
# times, and the shortest field has about six bytes.
STEPS_PER_BYTE = 20
_A_WHILE = 5.0  # seconds until the innocent has its pods, and until a deletion is through
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@dataclass(slots=True)
class Outcome:
    """What became of a case."""

    title: str
    number: int = -1
    verdict: str = ""  # refused, admitted, waiting, set aside, inert, …
    broken: list[str] = field(default_factory=list)
    steps: int = 0
    cpu_s: float = 0.0
    grown_bytes: int = 0
    said: str = ""  # what the API answered, or why does
    is_clean: bool = False  # the cluster is as it was before


async def tried(stage: Stage, case: Case) -> Outcome:
    """Try a case; it never raises."""
    outcome = Outcome(case.title)
    meter = Meter(STEPS + STEPS_PER_BYTE * case.size)
    start, before = time.process_time(), _memory()
    try:
        await _Trial(stage, case, outcome, meter).run()
    except Runaway as error:
        outcome.broken.append(f"runs away: {error}")
    except MemoryError:
        outcome.broken.append("memory is used up")
    except AssertionError as error:
        outcome.broken.append(str(error))
    outcome.cpu_s = time.process_time() - start
    outcome.steps = meter.steps
    outcome.grown_bytes = max(0, _memory() - before)
    if outcome.grown_bytes > MOST_BYTES:
        outcome.broken.append(f"memory grew by {outcome.grown_bytes / 1024**2:.0f} MB")
    return outcome


def _memory() -> int:
    """Return the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class _Trial:
    def __init__(self, stage: Stage, case: Case, outcome: Outcome, meter: Meter) -> None:
        self._stage = stage
        self._case = case
        self._outcome = outcome
        self._meter = meter
        self._answers: list[Answer] = []
        self._about: list[tuple[Served, str]] = []

    async def run(self) -> None:
        """Go through the story; what is wrong is noted, and the story goes on."""
        stage, outcome = self._stage, self._outcome
        for send in self._case.setup:
            answer = await stage.send(send)
            assert answer.code < 300, f"the right object was refused: {answer.message}"
        await stage.settle()
        before = stage.store.rv
        with self._meter:
            self._answers = [await stage.send(send) for send in self._case.hostile]
        self._check_answers()
        is_refused = all(answer.code >= 300 for answer in self._answers)
        outcome.said = " ".join(answer.message for answer in self._answers)[:300]
        if stage.store.rv == before and not stage.mistakes:
            outcome.verdict = "refused" if is_refused else "answered"
            outcome.is_clean = not self._case.setup and not outcome.broken
            return
        with self._meter:
            await stage.settle()
            await stage.pass_time(self._case.seconds)
        await self._look()
        with self._meter:
            await self._have_innocent_run()
        outcome.verdict = "refused" if is_refused else await self._explanation()
        self._check_crashes()
        self._check_usage()
        if self._case.check is not None:
            outcome.broken += self._case.check(stage)
        await self._take_away()
        self._note("a mistake behind an answer", stage.mistakes)

    def _note(self, what: str, found: list[str]) -> None:
        self._outcome.broken += [f"{what}: {one}" for one in found]

    def _check_answers(self) -> None:
        wrong = [f"{one.code} {one.message}" for one in self._answers if not 200 <= one.code < 500]
        self._note("the API answered", wrong)
        if wrong:
            self._note("a mistake behind an answer", self._stage.mistakes)
            self._stage.mistakes.clear()

    async def _look(self) -> None:
        """Read what is there as kubectl does."""
        for kind, name in self._case.about:
            for path in (path_of(kind), path_of(kind, name)):
                answer = await self._stage.send(Send("GET", path, media=_TABLE))
                if answer.code >= 500:
                    self._outcome.broken.append(f"GET {path} answered {answer.code}")

    # ---- the innocent ------------------------------------------------------------------------

    async def _have_innocent_run(self) -> None:
        stage = self._stage
        cycles = stage.assembly.scheduler.cycles
        answer = await stage.send(
            Send(
                "POST",
                f"/apis/batch/v1/namespaces/{QUIET}/jobs",
                orjson.dumps(gang("innocent", QUIET)),
            )
        )
        if answer.code != 201:
            self._outcome.broken.append(f"the innocent was refused: {answer.message}")
            return
        await stage.settle()
        await stage.pass_time(_A_WHILE)
        now = stage.assembly.scheduler.cycles
        took = stage.admitted_in.get("innocent", now) - cycles
        for name in ("innocent", "settled"):
            phases = self._phases(QUIET, name)
            if phases != {"Running": 2}:
                self._outcome.broken.append(
                    f"the innocent does not run: pods of {name} after {took} cycles: {phases}"
                )
        if took > MOST_CYCLES:
            self._outcome.broken.append(f"the innocent is admitted only after {took} cycles")

    def _phases(self, namespace: str, job: str) -> dict[str, int]:
        return dict(
            Counter(
                pod["status"]["phase"]
                for pod in self._stage.every(POD)
                if pod["metadata"]["namespace"] == namespace
                and (pod["metadata"].get("labels") or {}).get("job-name") == job
            )
        )

    # ---- the hostile one -----------------------------------------------------------------------

    async def _explanation(self) -> str:
        """Return how the hostile object stands; note it if nothing can tell."""
        self._about = [*self._names()]
        verdicts = [await self._standing(kind, name) for kind, name in self._about]
        return verdicts[0] if verdicts else "stored"

    def _names(self) -> Iterator[tuple[Served, str]]:
        """Say which objects there are: a hostile one may have got another name."""
        stored = [orjson.loads(one.body) for one in self._answers if one.code in (200, 201)]
        is_each = len(stored) == len(self._case.about)
        for number, (kind, name) in enumerate(self._case.about):
            metadata = stored[number].get("metadata") if is_each else None
            yield kind, str((metadata or {}).get("name", name))

    async def _standing(self, kind: Served, name: str) -> str:
        stage = self._stage
        answer = await stage.send(Send("GET", path_of(kind, name)))
        if answer.code != 200:
            return "gone"
        obj = orjson.loads(answer.body)
        set_aside = _set_aside(obj)
        try:
            why = answer_why(await gather(stage.client, obj))
            said = text(why, stage.clock.now())
        except KubeError as error:
            self._outcome.broken.append(f"why cannot be told: {error}")
            return "unknown"
        except Exception as error:  # noqa: BLE001  (that `why` breaks is the news)
            self._outcome.broken.append(f"why breaks: {error!r} at {place_of(error)}")
            return "unknown"
        self._outcome.said = " ".join(said.split())[:300]
        if set_aside or "Quarantined" in said:
            return "set aside"
        if not is_live(kind):
            return "inert"
        return self._judged(obj, why)

    def _judged(self, obj: Json, why: Json) -> str:
        state, running = why["state"], why.get("pods") or {}
        if running.get("Running") or running.get("Succeeded"):
            return "admitted"
        if why.get("message") or why.get("facts"):
            return "waiting" if state == "waiting" else "explained"
        if why.get("warnings") or self._warned() or self._noted(obj):
            return "explained"
        status = obj.get("status") or {}
        if state in ("finished", "running") or status.get("conditions"):
            return "explained"
        self._outcome.broken.append(f"nothing says how it stands: {self._outcome.said}")
        return "silent"

    def _warned(self) -> bool:
        return any(answer.warnings for answer in self._answers)

    def _noted(self, obj: Json) -> bool:
        """Say whether there is an event about an object."""
        metadata = obj["metadata"]
        key = (obj["kind"], metadata.get("namespace", ""), metadata["name"])
        about = (note.about for note in self._stage.notes)
        return any((one.kind.kind, one.namespace, one.name) == key for one in about)

    # ---- crashes and ghosts ----------------------------------------------------------------------

    def _check_crashes(self) -> None:
        crashes: Counter[str] = Counter(one.task for one in self._stage.crashes)
        for crash in _firsts(self._stage.crashes):
            if crashes[crash.task] > 1 or self._outcome.verdict != "set aside":
                times = crashes[crash.task]
                self._outcome.broken.append(
                    f"{crash.task} crashes {times}×: {crash.error} at {crash.place}"
                )
        self._stage.crashes.clear()

    def _check_usage(self) -> None:
        """See that no queue uses less than nothing: that would be room for others."""
        for queue in self._stage.every(CLUSTER_QUEUE):
            status = queue.get("status") or {}
            for flavor in (status.get("flavorsUsage") or []) + (
                status.get("flavorsReservation") or []
            ):
                for one in flavor.get("resources") or ():
                    if str(one["total"]).startswith("-"):
                        name = queue["metadata"]["name"]
                        self._outcome.broken.append(
                            f"queue {name} uses {one['total']} {one['name']}"
                        )

    async def _take_away(self) -> None:
        """Delete it in the middle of whatever it does, and see that nothing of it is left."""
        stage = self._stage
        for kind, name in self._about:
            if name == NOISY:  # the queue itself
                return
            path = f"{path_of(kind, name)}?propagationPolicy=Background"  # as kubectl has it
            answer = await stage.send(Send("DELETE", path))
            if answer.code >= 500:
                self._outcome.broken.append(f"DELETE answered {answer.code}")
        await stage.settle()
        await stage.pass_time(_A_WHILE)
        self._check_crashes()
        self._check_ghosts({"busy", "waits", *await self._not_gone()})

    async def _not_gone(self) -> list[str]:
        """Name what its own finalizers keep: it is being deleted, and uses its quota until then."""
        found = []
        for kind, name in self._about:
            answer = await self._stage.send(Send("GET", path_of(kind, name)))
            if answer.code == 200 and orjson.loads(answer.body)["metadata"].get("finalizers"):
                found.append(name)
        return found

    def _check_ghosts(self, expected: set[str]) -> None:
        """See that only the jobs that are still there are counted in the noisy queue."""
        for one in self._stage.every(WORKLOAD):
            metadata = one["metadata"]
            if metadata["namespace"] != NOISY or "deletionTimestamp" in metadata:
                continue
            owners = {owner["name"] for owner in metadata.get("ownerReferences") or ()}
            if owners & expected:
                continue
            admitted = find((one.get("status") or {}).get("conditions"), "QuotaReserved")
            is_over = find((one.get("status") or {}).get("conditions"), "Finished")
            if admitted and admitted["status"] == "True" and not is_over:
                self._outcome.broken.append(f"a ghost has quota: Workload {metadata['name']}")


def _firsts(crashes: list[Crash]) -> list[Crash]:
    return list({one.task: one for one in reversed(crashes)}.values())


def _set_aside(obj: Json) -> bool:
    found = (obj.get("status") or {}).get("conditions")
    if not isinstance(found, list):
        return False
    return any(isinstance(one, dict) and one.get("reason") == "Quarantined" for one in found)


@cache
def _live_kinds() -> frozenset[tuple[str, str]]:
    """Return the groups and kinds of jobs that some controller brings into a queue."""
    view = View({kind: KindStore.of(kind, INDEXES.get(kind, {})) for kind in EMBEDDED_KINDS})
    controllers = embedded(view, DEFAULTS).controllers
    jobs = [one._adapter.kind for one in controllers if isinstance(one, JobController)]
    return frozenset(
        (kind.api_version.rpartition("/")[0], kind.kind) for kind in (*jobs, POD, WORKLOAD)
    )


def is_live(kind: Served) -> bool:
    """Say whether something is done with a kind's objects: they run, or wait for it."""
    return (kind.group, kind.kind) in _live_kinds()
