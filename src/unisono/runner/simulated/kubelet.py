"""The kubelet of simulated pods: a controller that writes the statuses their scripts lead to.

It keeps what a status cannot hold (exact times, addresses); after a restart all of it is recovered
from the statuses, to the second. Logs follow from that as well, so a log becomes a file only when
it is read; thousands of pods that start at once touch no disk.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from unisono.control import names
from unisono.control.actions import Action, Again, Delete, Json, Note, Patch, Ref, Steps
from unisono.control.conditions import seconds
from unisono.control.controller import own_key
from unisono.control.gangs.recovery import deleted_at
from unisono.control.view import View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind
from unisono.runner.addresses import Addresses
from unisono.runner.containers import (
    Container,
    Containers,
    Running,
    Terminated,
    Waiting,
    matches_status,
    read,
)
from unisono.runner.logs import Logs, NoLogs, stamped
from unisono.runner.run_mode import RunMode, is_our_node, run_mode_of
from unisono.runner.simulated.script import (
    NextStatus,
    PodLifecycle,
    attempts_before,
    counts_attempts,
)
from unisono.runner.status import (
    TERMINAL,
    PodAddress,
    first_seen,
    host_ip,
    loss_of,
    lost,
    status_of,
    unready_since,
)

# Pending, Running, its end, deletion: a pod goes through no more in one moment.
_MOST_PHASES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """Settings of the simulation."""

    speed: float = 1.0  # so many seconds of a pod pass in one of ours
    # A node that is not ready, or gone, for so long has lost its pods. Shorter than the minutes of
    # a real cluster: users of a simulation watch it on a screen.
    lost_after_s: float = 10.0
    default: RunMode = "simulated"
    is_every_node_ours: bool = True  # false beside real kubelets: only `unisono:///` nodes are


@dataclass(slots=True)
class _Memory:
    """What is known of a pod more exactly than its status says."""

    uid: str
    namespace: str
    seen_at: float
    containers: Containers | None = None
    missing_since: float | None = None  # when its node was not there
    unready_since: float = math.inf  # its node; never later than we first saw it
    told_at: float = math.inf  # to stop; never later than we first saw it
    is_simulated: bool = False
    is_read: bool = False  # its log was read: from then on there are files
    may_have_files: bool = False  # also if it began before we did
    # In this version of the pod there is nothing to do before that time.
    settled: tuple[str, float] = ("", 0.0)


class SimulatedKubelet:
    """The kubelet of every simulated pod."""

    name = "simulated-kubelet"
    watches: Sequence[Kind] = (names.POD, names.NODE)
    ignores_own_writes = True

    def __init__(
        self,
        simulation: Simulation = Simulation(),
        *,
        addresses: Addresses | None = None,
        logs: Logs | None = None,
    ) -> None:
        """Share `addresses` with the other runner of this instance."""
        self._simulation = simulation
        self._addresses = addresses if addresses is not None else Addresses()
        self._logs: Logs = logs if logs is not None else NoLogs()
        self._memory: dict[Key, _Memory] = {}
        self._has_begun = False

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A pod that has a node, or those of a node that came, went, or stopped being ready."""
        if kind == names.POD:
            if obj["spec"].get("nodeName"):
                yield own_key(obj)
            return
        name = obj["metadata"]["name"]
        node = view.get(names.NODE, name)
        concerns_all = node is None or unready_since(node) is not None
        concerns_all = concerns_all or unready_since(obj) is not None
        for pod in view.by(names.POD, "node", name):
            if concerns_all or (pod.get("status") or {}).get("phase", "Pending") == "Pending":
                yield own_key(pod)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Bring one pod to its present state."""
        pod = view.get(names.POD, key.name, key.namespace)
        memory = self._remember(key, pod, view, now)
        if pod is None or memory is None or not self._is_ours(pod, view):
            return
        memory.is_simulated = True
        if self._is_settled(pod, memory, view, now):
            # A timer of the pod that had this name before may have brought us here, too early.
            if memory.settled[1] < math.inf:
                yield Again(memory.settled[1])
            return
        for _ in range(_MOST_PHASES):
            metadata = pod["metadata"]
            is_deleted = "deletionTimestamp" in metadata
            if (pod.get("status") or {}).get("phase") in TERMINAL:
                if is_deleted and metadata.get("deletionGracePeriodSeconds"):
                    yield Delete(Ref.to(pod), grace=0)
                return
            containers = _with_exact_times(memory.containers, read(pod))
            found = self._next(pod, containers, memory, view, now)
            is_first = not (pod.get("status") or {}).get("podIP")
            if found.containers is not containers or is_first or found.failure or found.is_over:
                pod = yield from self._write(pod, found, view, now)
                if memory.is_read:
                    self._write_logs(pod, containers, found.containers, now)
                memory.containers = found.containers
            again_at = found.again_at if found.again_at is not None else math.inf
            if again_at > now and not (found.failure or found.is_over):
                memory.settled = (pod["metadata"]["resourceVersion"], again_at)
                if found.again_at is not None:
                    yield Again(found.again_at)
                return

    def _is_settled(self, pod: Json, memory: _Memory, view: View, now: float) -> bool:
        """Say whether this is the pod as we left it, on a node that is well: the usual echo."""
        version, again_at = memory.settled
        if pod["metadata"]["resourceVersion"] != version or now >= again_at:
            return False
        node = view.get(names.NODE, pod["spec"]["nodeName"])
        return node is not None and unready_since(node) is None and memory.missing_since is None

    def write_down(self, pod: Json) -> None:
        """Write the logs of a pod's containers so far, because they are to be read."""
        memory = self._memory.get(own_key(pod))
        metadata = pod["metadata"]
        if memory is None or memory.uid != metadata["uid"] or memory.is_read:
            return
        if not memory.is_simulated:
            return  # real processes write themselves
        memory.is_read = memory.may_have_files = True
        place = (memory.namespace, memory.uid)
        for one in _full_logs(pod, _with_exact_times(memory.containers, read(pod))):
            self._logs.rewrite(*place, one.container, one.lines, one.previous)

    # ---- what is to be ------------------------------------------------------------------------

    def _next(
        self, pod: Json, containers: Containers, memory: _Memory, view: View, now: float
    ) -> NextStatus:
        node_name = pod["spec"]["nodeName"]
        node = view.get(names.NODE, node_name)
        lost_at = self._lost_at(node, memory, now)
        if lost_at is not None:
            if now >= lost_at:
                return NextStatus(lost(containers, now), failure=loss_of(node_name))
            return NextStatus(containers, lost_at)  # the node does not respond
        said = (node["metadata"].get("annotations") or {}) if node is not None else {}
        life = PodLifecycle(pod, _attempts(pod, view), self._simulation.speed, said)
        if (told_at := deleted_at(pod)) is not None:
            memory.told_at = first_seen(memory.told_at, told_at, now)
            return life.stop(containers, memory.told_at, now)
        return life.live(containers, memory.seen_at, now)

    def _lost_at(self, node: Json | None, memory: _Memory, now: float) -> float | None:
        """Return when the pods of a node are lost; None if the node is well."""
        if node is None:
            # A node that was just made may come later than its pods: that is not a loss.
            memory.missing_since = memory.missing_since if memory.missing_since is not None else now
            return memory.missing_since + self._simulation.lost_after_s
        memory.missing_since = None
        unready = unready_since(node)
        if unready is None:
            memory.unready_since = math.inf
            return None
        memory.unready_since = first_seen(memory.unready_since, unready, now)
        return memory.unready_since + self._simulation.lost_after_s

    def _is_ours(self, pod: Json, view: View) -> bool:
        node_name = pod["spec"].get("nodeName")
        if not node_name:
            return False
        node = view.get(names.NODE, node_name)
        if not self._simulation.is_every_node_ours and (node is None or not is_our_node(node)):
            return False
        return run_mode_of(pod, node, self._simulation.default) == "simulated"

    # ---- writing ------------------------------------------------------------------------------

    def _write(
        self, pod: Json, found: NextStatus, view: View, now: float
    ) -> Generator[Action, Any, Json]:
        metadata = pod["metadata"]
        where = PodAddress(
            self._addresses.of(metadata["uid"]),
            host_ip(view.get(names.NODE, pod["spec"]["nodeName"])),
        )
        status = status_of(
            pod, found.containers, where, now, failure=found.failure, is_over=found.is_over
        )
        written: Json = yield Patch(Ref.to(pod), {"status": status}, "status")
        if found.failure is not None:
            ref = Ref.to(written)
            yield Note(ref, found.failure.reason, found.failure.message, "Warning")
        return written

    def _write_logs(self, pod: Json, before: Containers, after: Containers, now: float) -> None:
        """Write the new log lines of the containers."""
        metadata = pod["metadata"]
        place = (metadata.get("namespace", ""), metadata["uid"])
        for tale in _new_lines(pod, before, after, now):
            if tale.begins:
                self._logs.begin(*place, tale.container, is_restart=tale.is_restart)
            self._logs.append(*place, tale.container, tale.lines)

    # ---- memory -------------------------------------------------------------------------------

    def _remember(self, key: Key, pod: Json | None, view: View, now: float) -> _Memory | None:
        if not self._has_begun:
            self._has_begun = True
            for other in view.all(names.POD):
                self._learn(other)
            self._logs.sweep(other["metadata"]["uid"] for other in view.all(names.POD))
        memory = self._memory.get(key)
        if memory is not None and (pod is None or pod["metadata"]["uid"] != memory.uid):
            del self._memory[key]
            self._addresses.release(memory.uid)
            if memory.may_have_files or not memory.is_simulated:
                self._logs.remove(memory.namespace, memory.uid)
            memory = None
        if pod is None or not pod["spec"].get("nodeName"):
            return None
        self._learn(pod)
        if memory is None:
            metadata = pod["metadata"]
            started = (pod.get("status") or {}).get("startTime")
            seen_at = min(seconds(started), now) if started else now
            memory = _Memory(metadata["uid"], metadata.get("namespace", ""), seen_at)
            memory.may_have_files = bool(started)
            self._memory[key] = memory
        return memory

    def _learn(self, pod: Json) -> None:
        address = (pod.get("status") or {}).get("podIP")
        if address:
            self._addresses.learn(pod["metadata"]["uid"], address)


def _attempts(pod: Json, view: View) -> int:
    """Return how often a pod's place was tried before; asked only where it matters."""
    if not counts_attempts(pod):
        return 0
    owners = [one for one in pod["metadata"].get("ownerReferences") or () if one.get("controller")]
    siblings = view.owned(names.POD, owners[0]["uid"]) if owners else []
    return attempts_before(pod, siblings)


def _with_exact_times(exact: Containers | None, stored: Containers) -> Containers:
    """Return the exact times if they tell the same story as the stored ones."""
    return exact if exact is not None and matches_status(exact, stored) else stored


# ---- logs ----------------------------------------------------------------------------------------
#
# The log of a simulated container: that it began, what it would do, how it ended.
#
# All of it follows from its status, so it is written only once it is read: whole at first
# (`_full_logs`), then line by line (`_new_lines`).

# Scripts in manifests may be long, and there are thousands of pods.
_LONGEST_LINE = 200


@dataclass(frozen=True, slots=True)
class _NewLines:
    """Lines of one container."""

    container: str
    lines: str
    begins: bool  # a run begins
    is_restart: bool


@dataclass(frozen=True, slots=True)
class _FullLog:
    """The whole log of a container: its last run, and the one before."""

    container: str
    lines: str
    previous: str  # empty if there was none, or it is unknown


def _full_logs(pod: Json, containers: Containers) -> Iterator[_FullLog]:
    """Yield the logs of the containers until now; those that never ran have none."""
    for one in containers:
        if isinstance(one.state, Waiting):
            if one.last is not None:  # as a kubelet does, it answers with the last run for both
                lines = _run(pod, one.name, one.restarts, one.last)
                yield _FullLog(one.name, lines, lines)
            continue
        before = _run(pod, one.name, one.restarts - 1, one.last) if one.last is not None else ""
        yield _FullLog(one.name, _run(pod, one.name, one.restarts, one.state), before)


def _new_lines(pod: Json, before: Containers, after: Containers, now: float) -> Iterator[_NewLines]:
    """Yield the lines that containers log between two states."""
    for new in after:
        old = before.get(new.name)
        if new is old:
            continue
        begins = _run_number(new) > _run_number(old)
        lines = ""
        if begins:
            if _run_number(new) > 1 and new.last is not None and old.last != new.last:
                # It ended and began again at once; the end is the previous log's last line.
                yield _NewLines(new.name, _end(new.last), begins=False, is_restart=False)
            since = new.state.since if isinstance(new.state, Running | Terminated) else now
            lines = _beginning(pod, new.name, new.restarts, since)
        elif isinstance(old.state, Running) and new.last_end is not None:
            lines = _end(new.last_end)
        if begins and isinstance(new.state, Terminated):
            lines += _end(new.state)
        if lines:
            yield _NewLines(new.name, lines, begins, is_restart=new.restarts > 0)


def _run_number(container: Container) -> int:
    """Count the runs of a container, the present one included."""
    has_run = isinstance(container.state, Running | Terminated) or container.last is not None
    return container.restarts + 1 if has_run else 0


def _run(pod: Json, container: str, number: int, state: Running | Terminated) -> str:
    end = _end(state) if isinstance(state, Terminated) else ""
    return _beginning(pod, container, number, state.since) + end


def _beginning(pod: Json, container: str, restarts: int, since: float) -> str:
    specs = [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]
    spec = next(one for one in specs if one["name"] == container)
    words = [*(spec.get("command") or ()), *(spec.get("args") or ())]
    line = shlex.join(map(str, words)).replace("\n", " ") or f"the command of {spec.get('image')}"
    again = f", restart {restarts}" if restarts else ""
    return stamped(
        since, f"simulated on {pod['spec'].get('nodeName')}{again}: {line[:_LONGEST_LINE]}"
    )


def _end(ended: Terminated) -> str:
    return stamped(
        ended.at, f"ended after {ended.at - ended.since:g} s with exit code {ended.code}"
    )
