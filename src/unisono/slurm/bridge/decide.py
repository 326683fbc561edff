"""The actions for a Slurm job and its gang: a pure table from both states.

    the job in Slurm        its gang               action
    held by the gate        none                   a gang is created: it queues in Kubernetes
                            pending                the job's mark says why
                            whole                  pinned to the gang's nodes and released
    pending, pinned         whole, the same nodes  none; after `start_s` it is held, the gang is
                                                   deactivated, and tried again later
                            anything else          held
    has nodes               whole, the same nodes  none: it runs
                            preempted              requeued and held
                            not whole in time      requeued and held: the deadlock ends
                            deleted by a user      cancelled
                            none                   a gang is created for the nodes it has
    over, or unknown        any                    the gang is deleted

Between reconciliations only Slurm and Kubernetes keep state: the job's mark and the gang's
annotations. The one exception is since when a job has nodes without a whole gang (`UnboundTimer`),
which a restarted bridge counts anew. So the bridge may die between any two actions.

Slurm evaluates dependencies only of jobs that are not held, and the gate holds all; so
`is_satisfied` evaluates them to say when to create a gang. Once the job is released, Slurm
evaluates them itself.

    afterok:16(unfulfilled),afterany:17_*(unfulfilled)?after:18+5
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping

import msgspec

from unisono.slurm.bridge.actions import (
    Action,
    Cancel,
    Deactivate,
    DeletePod,
    DropGang,
    Explain,
    Hold,
    MakeGang,
    Reactivate,
    RevokeNodes,
    Start,
    StartNow,
)
from unisono.slurm.bridge.cluster_view import ClusterView, Gang
from unisono.slurm.bridge.gang import requested_nodes, shape_of
from unisono.slurm.bridge.marks import GATE, HOLD, PINNED, PLACEHOLDER, Mark, read_mark
from unisono.slurm.bridge.slurm_view import PENDING, SlurmJob, SlurmView

# Slurm's reason while it cleans up: the job is pending already, its nodes are not free yet.
_CLEANING = "Cleaning"
_BEGIN_TIME = "BeginTime"


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Timeouts of the bridge."""

    bind_s: float = 60.0  # a job that has nodes must have a whole gang by then
    start_s: float = 60.0  # a job that was released must have nodes by then
    first_retry_s: float = 5.0
    longest_retry_s: float = 300.0
    forget_s: float = 10.0  # a job that Slurm has not listed for so long is gone
    tasks_ahead: int = 16  # tasks of one array that have a gang at a time


def retry_after(tries: int, timeouts: Timeouts) -> float:
    """Return how long a gang is deactivated after so many tries: doubled each time, bounded.

    >>> [retry_after(tries, Timeouts()) for tries in (0, 1, 2, 20)]
    [5.0, 10.0, 20.0, 300.0]
    """
    return min(timeouts.longest_retry_s, timeouts.first_retry_s * 2.0 ** min(tries, 30))


class UnboundTimer:
    """Since when jobs have nodes without a whole gang."""

    def __init__(self) -> None:
        """Begin without any."""
        self._since: dict[str, float] = {}

    def waited(self, key: str, now: float) -> float:
        """Return how long ago this was first seen."""
        return now - self._since.setdefault(key, now)

    def forget(self, key: str) -> None:
        """Forget a job whose gang is whole."""
        self._since.pop(key, None)

    def keep(self, keys: Container[str]) -> None:
        """Forget all others."""
        self._since = {key: at for key, at in self._since.items() if key in keys}


def decide(
    slurm_view: SlurmView,
    cluster_view: ClusterView,
    timeouts: Timeouts,
    unbound: UnboundTimer,
    now: float,
) -> Iterator[Action]:
    """Yield the actions due now, jobs in the order in which Slurm lists them."""
    unbound.keep({*slurm_view.jobs, *cluster_view.gangs})
    for job in _in_turn(slurm_view, cluster_view, timeouts):
        gang = cluster_view.gangs.get(job.key)
        mark = read_mark(job.comment)
        if mark.state == PLACEHOLDER:
            continue
        if not job.is_holding:
            unbound.forget(job.key)
        if job.state == PENDING:
            yield from _pending(job, gang, mark, slurm_view, timeouts, now)
        elif job.is_holding:
            yield from _holding(job, gang, mark, timeouts, unbound, now)
        elif gang is not None:
            yield DropGang(gang, f"its job is over ({job.state})")
    for key, gang in cluster_view.gangs.items():
        if key not in slurm_view.jobs and unbound.waited(key, now) >= timeouts.forget_s:
            yield DropGang(gang, "Slurm does not know its job")
    yield from _free(slurm_view, cluster_view)


def _in_turn(
    slurm_view: SlurmView, cluster_view: ClusterView, timeouts: Timeouts
) -> Iterator[SlurmJob]:
    """Yield all jobs, but of every array only as many waiting tasks as may soon start."""
    ahead: dict[int, int] = {}
    for job in slurm_view.jobs.values():
        if job.array and not job.is_over and not job.is_held:
            ahead[job.array] = ahead.get(job.array, 0) + 1
    for job in slurm_view.jobs.values():
        if not job.array or not job.is_held:
            yield job
            continue
        most = min(job.most_at_once or timeouts.tasks_ahead, timeouts.tasks_ahead)
        if job.key in cluster_view.gangs or ahead.get(job.array, 0) < most:
            ahead[job.array] = ahead.get(job.array, 0) + 1
            yield job


# ---- pending jobs ------------------------------------------------------------------------------


def _pending(
    job: SlurmJob,
    gang: Gang | None,
    mark: Mark,
    slurm_view: SlurmView,
    timeouts: Timeouts,
    now: float,
) -> Iterator[Action]:
    if job.reason == _CLEANING:
        return
    if job.is_held:
        if mark.state in (GATE, PINNED):
            may_begin = job.eligible <= now or job.restarts > 0
            if may_begin and is_satisfied(job, slurm_view.jobs, now):
                yield from _gated(job, gang, mark, slurm_view, timeouts, now)
            elif gang is not None:
                yield DropGang(gang, "its job may not begin yet")
        elif gang is not None:
            yield DropGang(gang, "its job is held by its user or an administrator")
    elif mark.state == PINNED:
        yield from _released(job, gang, slurm_view, timeouts, now)
    elif mark.state in (GATE, HOLD):
        # The prolog refused it, or it passed the gate while job_submit.lua was not installed.
        yield Hold(job, mark.text or "it was released without a reservation")


def _gated(
    job: SlurmJob,
    gang: Gang | None,
    mark: Mark,
    slurm_view: SlurmView,
    timeouts: Timeouts,
    now: float,
) -> Iterator[Action]:
    """Get a reservation for a job that is held by the gate, and start it once it is whole."""
    wanted = len(requested_nodes(job))
    if gang is None and 0 < wanted < job.nodes:
        why = f"--nodelist names {wanted} of its {job.nodes} nodes; name all of them or none"
        if mark.text != why:
            yield Explain(job, why)
    elif gang is None:
        yield MakeGang(job)
    elif gang.is_deleted:
        yield Cancel(job, "its gang was deleted")
    elif gang.shape != shape_of(job) and not gang.released_at:
        yield DropGang(gang, "its job now requests something else")
    elif not gang.is_active:
        if now >= gang.retry_at:
            yield Reactivate(gang)
    elif gang.is_whole:
        if away := _away(gang, slurm_view):
            yield Deactivate(gang, now + retry_after(gang.tries, timeouts), away)
        else:
            yield Start(job, gang)
    elif gang.why and gang.why != mark.text:
        yield Explain(job, gang.why)


def _away(gang: Gang, slurm_view: SlurmView) -> str:
    """Name a node of a gang on which Slurm would start nothing."""
    for name in gang.nodes:
        node = slurm_view.nodes.get(name)
        if node is not None and not node.takes_jobs:
            return f"Slurm would start nothing on {name}" + (
                f" ({node.reason})" if node.reason else ""
            )
    return ""


def _released(
    job: SlurmJob, gang: Gang | None, slurm_view: SlurmView, timeouts: Timeouts, now: float
) -> Iterator[Action]:
    """Follow a job that was released to Slurm."""
    if gang is None:
        yield Hold(job, "its reservation is gone")
    elif gang.is_deleted:
        yield Cancel(job, "its gang was deleted")
    elif not gang.is_whole:
        yield Hold(job, "its reservation is no longer whole")
    elif set(job.required) != set(gang.nodes):
        yield Hold(job, "its reservation has moved to other nodes")
    elif away := _away(gang, slurm_view):
        yield Hold(job, away)
        yield Deactivate(gang, now + retry_after(gang.tries, timeouts), away)
    elif job.reason == _BEGIN_TIME and job.restarts:
        yield StartNow(job)
    elif now - max(gang.released_at, job.submitted) > timeouts.start_s:  # a requeue submits it anew
        why = f"Slurm did not start it within {timeouts.start_s:g} s ({job.reason})"
        yield Hold(job, why)
        yield Deactivate(gang, now + retry_after(gang.tries, timeouts), why)


# ---- jobs that have nodes ----------------------------------------------------------------------


def _holding(
    job: SlurmJob,
    gang: Gang | None,
    mark: Mark,
    timeouts: Timeouts,
    unbound: UnboundTimer,
    now: float,
) -> Iterator[Action]:
    if job.state == "COMPLETING":
        return
    if gang is None:
        yield MakeGang(job, only=job.on)
        return
    if gang.is_deleted:
        yield Cancel(job, "its gang was deleted")
        return
    if gang.is_whole and set(gang.nodes) == set(job.on):
        unbound.forget(job.key)
        if mark.state and (more := _unreserved(job, gang)):
            yield RevokeNodes(job, f"it has {more} beyond its reservation")
        return
    if not mark.state and job.state != "CONFIGURING":
        return  # it ran before the bridge: `slurm doctor` names it, and it is not ended
    waited = unbound.waited(job.key, now)
    if gang.is_evicted and gang.released_at:
        yield RevokeNodes(job, "its reservation was preempted")
    elif gang.is_whole:
        yield RevokeNodes(job, f"its reservation is on {','.join(gang.nodes)} now")
    elif waited > timeouts.bind_s:
        there = f"{len(gang.nodes)} of {gang.wanted} pods have a node"
        why = f"it holds nodes in Slurm, but {there} after {timeouts.bind_s:g} s"
        yield RevokeNodes(job, f"{why}; {gang.why}" if gang.why else why, is_deadlock=True)
        yield Deactivate(gang, now + retry_after(gang.tries, timeouts), why)


def _unreserved(job: SlurmJob, gang: Gang) -> str:
    """Return what a job has on a node beyond what its pod there asked for."""
    asked = {one.node: one for one in gang.pods if not one.leaves and not one.is_ended}
    for held in job.held:
        pod = asked[held.node]
        if held.gpus > pod.gpus:
            return f"{held.gpus - pod.gpus} GPUs on {held.node}"
        if held.cpus * 1000 > pod.cpu_milli:
            return f"{held.cpus - pod.cpu_milli // 1000} cores on {held.node}"
    return ""


# ---- terminating pods --------------------------------------------------------------------------


def _free(slurm_view: SlurmView, cluster_view: ClusterView) -> Iterator[Action]:
    """Delete terminating pods whose node Slurm has left; until then they reserve it.

    Pods of a lost gang give way to the gang that replaces it.
    """
    for pod in cluster_view.pods:
        if not (pod.is_bridged and pod.leaves):
            continue
        job, gang = slurm_view.jobs.get(pod.job), cluster_view.gangs.get(pod.job)
        is_there = job is not None and (job.is_holding or job.reason == _CLEANING)
        is_on_it = job is not None and (pod.node in job.on or not job.on)
        is_replaced = gang is not None and gang.uid != pod.owner
        if is_replaced or not (is_there and is_on_it):
            yield DeletePod(pod)


_TERM = re.compile(
    r"(?P<type>[a-z]+)(?::(?P<job>\d+)(?:_(?P<task>\d+|\*))?(?:\+(?P<minutes>\d+))?)?(?:\(\w+\))?"
)


def is_satisfied(job: SlurmJob, jobs: Mapping[str, SlurmJob], now: float) -> bool:
    """Say whether all dependencies of a job are satisfied."""
    text = job.dependency
    if not text:
        return True
    is_any = "?" in text
    answers = [_is_so(term, job, jobs, now) for term in re.split(r"[,?]", text) if term]
    return any(answers) if is_any else all(answers)


def _is_so(term: str, job: SlurmJob, jobs: Mapping[str, SlurmJob], now: float) -> bool:
    found = _TERM.fullmatch(term)
    if found is None:
        return False  # Slurm knows something that we do not; it waits until the term is gone
    if found["type"] == "singleton":
        return not any(
            one.name == job.name and one.user == job.user and one.number < job.number
            for one in jobs.values()
            if not one.is_over
        )
    minutes = int(found["minutes"] or 0)
    others = _others(found, job, jobs)
    return all(_has_come(found["type"], one, minutes, now) for one in others)


def _others(found: re.Match[str], job: SlurmJob, jobs: Mapping[str, SlurmJob]) -> list[SlurmJob]:
    """Return the jobs that a term speaks of; those that Slurm has forgotten count as done."""
    number, task = int(found["job"] or 0), found["task"]
    if found["type"] == "aftercorr" and "_" in job.key:
        task = job.key.partition("_")[2]
    if task is not None and task != "*":
        return [one for key, one in jobs.items() if key == f"{number}_{task}"]
    return [one for one in jobs.values() if number in (one.array, one.number)]


def _has_come(sort: str, other: SlurmJob, minutes: int, now: float) -> bool:
    match sort:
        case "after":
            return other.state != PENDING and (other.is_over or now >= other.started + minutes * 60)
        case "afterany" | "afterburstbuffer":
            return other.is_over
        case "afterok" | "aftercorr":
            return other.state == "COMPLETED"
        case "afternotok":
            return other.is_over and other.state != "COMPLETED"
        case _:
            return False
