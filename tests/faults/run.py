"""One run: a cluster in trouble, and then the good end that all gangs must come to."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from tests.faults.cluster import Broken, Cluster
from tests.faults.disturbances import Disturbances
from tests.faults.fault_rates import NO_FAULTS
from tests.faults.invariants import Invariants
from tests.faults.jobs import Gang
from tests.faults.plan import TROUBLE_S, Trouble, plan_of
from tests.faults.snapshot_text import snapshot_text
from unisono.control import names
from unisono.control.assembly import EMBEDDED_KINDS
from unisono.kube.form import Json
from unisono.kube.mapping import Kind

# Longer than any back-off: a gang that is not done by then never will be.
_PATIENCE_S = 4 * 3600.0
_ROUND_S = 120.0
_TIDY_S = 900.0
_MOST_TOLD = 60


@dataclass(slots=True)
class Outcome:
    """What became of a run."""

    seed: int
    broken: str = ""  # the promise that was; empty if none
    trace: list[str] = field(default_factory=list)
    moves: int = 0
    writes: int = 0
    deaths: int = 0
    checks: int = 0
    gangs: int = 0
    longest: Mapping[str, float] = field(default_factory=dict)
    again: str = ""  # the command that repeats it

    @property
    def line(self) -> str:
        """How to see it again."""
        hashes = os.environ.get("PYTHONHASHSEED", "random")
        command = self.again or f"python -m tests.faults --seed {self.seed} --trace"
        return f"PYTHONHASHSEED={hashes} {command}"

    @property
    def story(self) -> str:
        """What broke, how it came to that, and how to see it again."""
        last = "\n".join(self.trace[-_MOST_TOLD:])
        return f"seed {self.seed}: {self.broken}\n{last}\nsee it again: {self.line}"


def run(seed: int) -> Outcome:
    """Run a seed."""
    return asyncio.run(_run(seed))


async def _run(seed: int) -> Outcome:
    plan = plan_of(seed)
    cluster = Cluster(seed, workers=plan.workers, is_checked=plan.is_checked)
    outcome = Outcome(seed, gangs=len(plan.gangs))

    async def story(people: Disturbances) -> None:
        _schedule(cluster, people, plan.gangs, plan.troubles)
        cluster.rates = plan.rates
        await cluster.pass_time(TROUBLE_S)
        cluster.rates = NO_FAULTS
        cluster.note("* no more faults")

    await play(cluster, plan.surroundings, story, outcome)
    return outcome


async def play(
    cluster: Cluster,
    surroundings: Sequence[Json],
    story: Callable[[Disturbances], Awaitable[None]],
    outcome: Outcome,
) -> None:
    """Let a story happen on a new cluster, and all gangs come to a good end afterwards."""
    outcome.trace = cluster.trace
    async with cluster.running():
        invariants = Invariants(cluster)
        people = Disturbances(cluster, surroundings)
        try:
            await people.prepare()
            await cluster.pass_time(1.0)
            before = _everything(cluster)
            await story(people)
            await _come_to_an_end(cluster, people)
            await _leave_nothing(cluster, people, before)
        except Broken as broken:
            outcome.broken = str(broken)
            cluster.trace += snapshot_text(cluster)
        outcome.moves, outcome.writes = cluster.moves, cluster.writes
        outcome.deaths, outcome.checks = cluster.deaths, invariants.checks
        outcome.longest = invariants.longest


def _schedule(
    cluster: Cluster,
    people: Disturbances,
    gangs: Sequence[tuple[float, Gang]],
    troubles: Sequence[Trouble],
) -> None:
    begin = cluster.clock.time
    for after, gang in gangs:
        cluster.at(begin + after, f"submit {gang.name}", partial(_submit, people, gang))
    for error in troubles:
        cluster.at(begin + error.at, error.what, partial(_do, people, error))


async def _submit(people: Disturbances, gang: Gang, _: Cluster) -> None:
    await people.submit(gang)


async def _do(people: Disturbances, error: Trouble, _: Cluster) -> None:
    await people.do(error)


# ---- the end -----------------------------------------------------------------------------------


async def _come_to_an_end(cluster: Cluster, people: Disturbances) -> None:
    """Wait until every gang that was not deleted has done its work."""
    end = cluster.clock.time + _PATIENCE_S
    while True:
        await cluster.pass_time(_ROUND_S)
        await people.take_away_what_was_left_behind()
        left = {
            gang.name: people.end_of(gang)
            for gang in people.gangs
            if gang.name not in people.deleted
        }
        for gang in people.gangs:
            if left.get(gang.name) == "runs":
                await people.delete(gang)  # it would run for ever, and others wait
        for gang in people.gangs:
            if left.get(gang.name) == "failed":
                if not gang.pods:
                    raise Broken(f"{gang.name} failed for good")
                await people.start_over(gang)  # nothing else would
                left[gang.name] = None
        undone = [name for name, ended in left.items() if ended is None]
        if not undone:
            return
        if cluster.clock.time > end:
            raise Broken(f"{undone[0]} never ends")
        await people.replace_lost_pods()


async def _leave_nothing(cluster: Cluster, people: Disturbances, before: set[str]) -> None:
    """Check that nothing is held, delete everything, and look what is left."""
    await cluster.pass_time(2 * _ROUND_S)  # what was left behind may just have been deleted
    state = cluster.assembly.scheduler.state
    if state.running:
        raise Broken(f"the scheduler still holds places for {next(iter(state.running))}")
    if state.waiting:
        raise Broken(f"the scheduler still has {next(iter(state.waiting))} in line")
    for gang in people.gangs:
        await people.delete(gang)
    await cluster.pass_time(_ROUND_S)
    await people.take_away_what_was_left_behind()
    await cluster.pass_time(_TIDY_S)
    left = sorted(_everything(cluster) - before)
    if left:
        raise Broken(f"left behind: {', '.join(left)}")
    gone = sorted(before - _everything(cluster))
    if gone:
        raise Broken(f"lost: {', '.join(gone)}")
    if any(state.nodes.pods):
        raise Broken(f"the scheduler still sees pods: {sorted(state.nodes.pods)}")


_FLEETING: tuple[Kind, ...] = (names.NAMESPACE,)


def _everything(cluster: Cluster) -> set[str]:
    return {
        f"{kind.kind} {'/'.join(filter(None, key))}"
        for kind in EMBEDDED_KINDS
        if kind not in _FLEETING
        for key in cluster.objects[kind]
    }
