"""The kubelet of process pods: starts and stops containers, and writes their pods' statuses.

Decides from the pod, the state of its processes and the time; has the machine start and stop them;
writes the status. It keeps nothing that it could not find again: runs on disk, the rest in the API.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from unisono.control import names
from unisono.control.actions import Action, Again, Delete, Json, Note, Patch, Ref, Steps
from unisono.control.conditions import seconds
from unisono.control.controller import own_key
from unisono.control.gangs.recovery import deleted_at
from unisono.control.health import progress
from unisono.control.view import View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind
from unisono.runner.containers import (
    Container,
    Containers,
    Running,
    UnknownRun,
    matches_status,
    next_run,
    read,
    with_runs,
)
from unisono.runner.lifecycle import next_actions, phase_of
from unisono.runner.process.node_resources import NodeResources
from unisono.runner.process.probes import ProbeTracker, is_probed
from unisono.runner.process.references import CannotStartYet
from unisono.runner.run_mode import RunMode, is_our_node, run_mode_of
from unisono.runner.status import (
    TERMINAL,
    Failure,
    first_seen,
    loss_of,
    lost,
    status_of,
    unready_since,
)

# A start that could not be is tried again this soon.
_RETRY_SECONDS = 2.0
# Shorter graces than this are lengthened: a process needs a moment to end well.
_LEAST_GRACE_SECONDS = 2.0
_DEFAULT_GRACE_SECONDS = 30.0
# While killed processes are on their way out.
_LOOK_SECONDS = 0.5
TIER = "unisono.dev/runner-tier"


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletOptions:
    """Which pods are run as processes, and when they are lost."""

    default: RunMode = "process"
    is_every_node_ours: bool = True
    lost_after_s: float = 10.0
    asks_after_s: float = 5.0  # how often a program's progress is read


@dataclass(slots=True)
class _Memory:
    uid: str
    containers: Containers | None = None
    missing_since: float | None = None
    # Never later than we first saw it: its node not ready, the pod told to stop, the pod started.
    unready_since: float = math.inf
    told_at: float = math.inf
    began_at: float = math.inf
    has_left: bool = False  # its devices and ports are free again


@dataclass(slots=True)
class _Next:
    containers: Containers
    again_at: float = math.inf
    failure: Failure | None = None
    is_over: bool = False
    is_stopping: bool = False
    notes: list[tuple[str, str, bool]] = field(default_factory=list)  # reason, message, is warning


class ProcessKubelet:
    """Runs pods as processes of this machine."""

    name = "process-kubelet"
    watches: Sequence[Kind] = (
        names.POD,
        names.NODE,
        names.CONFIG_MAP,
        names.SECRET,
        names.SERVICE,
    )

    def __init__(
        self, node_resources: NodeResources, options: KubeletOptions = KubeletOptions()
    ) -> None:
        """Share addresses with the other runner of this instance."""
        self._node_resources = node_resources
        self._machine = node_resources.machine
        self._probes = ProbeTracker(node_resources.machine)
        self._options = options
        self._memory: dict[Key, _Memory] = {}
        self._has_begun = False

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A pod, its node, what its files are made of, and names in its namespace."""
        namespace = obj["metadata"].get("namespace", "")
        if kind == names.POD:
            yield own_key(obj)
            if self._runs_in(namespace) and _has_names(obj, view):
                yield Key(namespace, "")
        elif kind == names.NODE:
            yield Key("", obj["metadata"]["name"])
            for pod in view.by(names.POD, "node", obj["metadata"]["name"]):
                yield own_key(pod)
        elif self._runs_in(namespace):
            yield from (key for key in self._memory if key.namespace == namespace)
            if kind == names.SERVICE:
                yield Key(namespace, "")

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Bring a pod to its desired state; or write the names of a namespace, or a node's tier."""
        if not self._has_begun:
            self._has_begun = True
            self._node_resources.learn(view)
        if not key.namespace:
            yield from self._mark(view.get(names.NODE, key.name))
            return
        if not key.name:
            pods = [view.get(names.POD, one.name, one.namespace) for one in self._living(key)]
            self._node_resources.write_names(key.namespace, [pod for pod in pods if pod], view)
            return
        pod = view.get(names.POD, key.name, key.namespace)
        self._forget_if_gone(key, pod)
        if pod is not None and self._is_ours(pod, view):
            memory = self._memory.setdefault(key, _Memory(pod["metadata"]["uid"]))
            yield from self._run(pod, memory, view, now)

    # ---- a pod --------------------------------------------------------------------------------

    def _run(self, pod: Json, memory: _Memory, view: View, now: float) -> Steps:
        metadata = pod["metadata"]
        is_deleted = "deletionTimestamp" in metadata
        if (pod.get("status") or {}).get("phase") in TERMINAL:
            self._end(memory, pod)
            if is_deleted and metadata.get("deletionGracePeriodSeconds"):
                yield Delete(Ref.to(pod), grace=0)
            return
        stored = read(pod)
        known = memory.containers
        known = known if known is not None and matches_status(known, stored) else stored
        containers = with_runs(known, lambda name: self._machine.look(memory.uid, name), now)
        found = self._next(pod, containers, memory, view, now)
        is_first = not (pod.get("status") or {}).get("podIP")
        if found.containers != known or is_first or found.failure or found.is_over:
            pod = yield from self._write(pod, found, view, now)
            memory.containers = found.containers
        yield from self._report(pod, found, now)
        for reason, message, is_warning in found.notes:
            yield Note(Ref.to(pod), reason, message, "Warning" if is_warning else "Normal")
        if (pod.get("status") or {}).get("phase") in TERMINAL:
            self._leave(memory)
            if is_deleted:
                yield Delete(Ref.to(pod), grace=0)
        elif found.again_at < math.inf:
            yield Again(found.again_at)

    def _report(self, pod: Json, found: _Next, now: float) -> Steps:
        """Write the progress that a running program reports onto its pod."""
        running = [one.name for one in found.containers if isinstance(one.state, Running)]
        if not running:
            return
        found.again_at = min(found.again_at, now + self._options.asks_after_s)
        uid = pod["metadata"]["uid"]
        reported = filter(None, (self._machine.progress(uid, name) for name in running))
        reports = [
            report for line, at in reported if (report := progress.read(line, at)) is not None
        ]
        before = progress.progress_of(pod["metadata"].get("annotations"))
        if reports and (before is None or progress.furthest(reports).step != before.step):
            reached = progress.of_rank(before, progress.furthest(reports))
            annotations = {progress.PROGRESS: reached.text()}
            yield Patch(Ref.to(pod), {"metadata": {"annotations": annotations}}, exact=False)

    def _next(
        self, pod: Json, containers: Containers, memory: _Memory, view: View, now: float
    ) -> _Next:
        node = pod["spec"]["nodeName"]
        lost_at = self._lost_at(view.get(names.NODE, node), memory, now)
        if lost_at is not None and now >= lost_at:
            self._kill(memory.uid, containers)
            return _Next(lost(containers, now), failure=loss_of(node))
        found = self._go_on(pod, containers, memory, view, now)
        if lost_at is not None:
            found.again_at = min(found.again_at, lost_at)
        return found

    def _go_on(
        self, pod: Json, containers: Containers, memory: _Memory, view: View, now: float
    ) -> _Next:
        metadata, spec = pod["metadata"], pod["spec"]
        if (told_at := deleted_at(pod)) is not None:
            memory.told_at = first_seen(memory.told_at, told_at, now)
            grace = float(metadata.get("deletionGracePeriodSeconds") or 0)
            # Times are written in whole seconds, and a grace is never shorter than it says.
            until = memory.told_at + max(grace, _LEAST_GRACE_SECONDS) + 1.0
            found = self._stop(pod, containers, until, now)
            found.is_over = not found.is_stopping
            return found
        expires = math.inf
        if spec.get("activeDeadlineSeconds") and (pod.get("status") or {}).get("startTime"):
            memory.began_at = first_seen(memory.began_at, seconds(pod["status"]["startTime"]), now)
            expires = memory.began_at + float(spec["activeDeadlineSeconds"])
        if now >= expires:
            found = self._stop(pod, containers, expires + _grace(pod), now)
            if not found.is_stopping:
                message = "Pod was active on the node longer than the specified deadline"
                found.failure = Failure("DeadlineExceeded", message)
            return found
        found = self._live(pod, containers, view, now)
        found.again_at = min(found.again_at, expires)
        return found

    def _live(self, pod: Json, containers: Containers, view: View, now: float) -> _Next:
        """Start what is due, and stop sidecars of a pod that is done."""
        found = _Next(containers)
        for _ in range(len(list(containers)) + 1):
            todo = next_actions(pod, found.containers, now)
            found.again_at = min(found.again_at, todo.again_at or math.inf)
            changed = [*todo.waits]
            is_held_up = False
            for name in todo.start:
                if isinstance(self._machine.look(pod["metadata"]["uid"], name), UnknownRun):
                    is_held_up = True
                    continue
                one = self._start(pod, found.containers.get(name), view, found)
                is_held_up = is_held_up or not isinstance(one.state, Running)
                changed.append(one)
            found.containers = found.containers.put(*changed)
            if is_held_up:
                found.again_at = min(found.again_at, now + _RETRY_SECONDS)
            if is_held_up or not changed:
                break
        if phase_of(pod, found.containers) in TERMINAL:
            until = _last_end(found.containers) + _grace(pod)
            beside = self._stop(pod, found.containers, until, now)
            found.is_stopping, found.again_at = beside.is_stopping, beside.again_at
        elif any(isinstance(one.state, Running) for one in found.containers):
            self._node_resources.refresh(pod, view)
            self._examine(pod, found, now)
        return found

    def _examine(self, pod: Json, found: _Next, now: float) -> None:
        """Run probes, and kill containers whose probes fail."""
        uid = pod["metadata"]["uid"]
        address = self._node_resources.addresses.of(uid)
        health = self._probes.examine(pod, found.containers, address, now)
        found.containers = health.containers
        found.again_at = min(found.again_at, health.again_at)
        for name, why in health.failing.items():
            self._machine.stop(uid, name)
            self._machine.kill(uid, name)
            found.notes.append(("Unhealthy", f"Container {name}: {why}; it is killed", True))

    def _start(self, pod: Json, one: Container, view: View, found: _Next) -> Container:
        """Start a container; if that cannot be now, return it waiting, with the reason."""
        spec = _spec(pod, one.name)
        try:
            up = self._node_resources.start(pod, spec, next_run(one), view)
        except CannotStartYet as error:
            waits = one.waiting(error.reason, error.message)
            if waits != one:
                found.notes.append((error.reason, error.message, True))
            return waits
        except OSError as error:
            message = f"{error.strerror or error} {error.filename or ''}".strip()
            return one.waiting("CreateContainerError", message)
        found.notes.append(("Started", f"Started container {one.name}", False))
        has_to_prove = bool(spec.get("readinessProbe") or spec.get("startupProbe"))
        is_asked = has_to_prove and is_probed(spec)
        return one.started(up.since, is_ready=not is_asked)

    def _stop(self, pod: Json, containers: Containers, until: float, now: float) -> _Next:
        """Stop all containers; kill them when the grace period is over."""
        uid = pod["metadata"]["uid"]
        running = [one.name for one in containers if isinstance(one.state, Running)]
        for name in running:
            self._machine.stop(uid, name, _hook(_spec(pod, name)))
            if now >= until:
                self._machine.kill(uid, name)
        again = until if now < until else now + _LOOK_SECONDS
        return _Next(containers, again if running else math.inf, is_stopping=bool(running))

    def _kill(self, uid: str, containers: Containers) -> None:
        for one in containers:
            if isinstance(one.state, Running):
                self._machine.kill(uid, one.name)

    def _write(
        self, pod: Json, found: _Next, view: View, now: float
    ) -> Generator[Action, Any, Json]:
        status = status_of(
            pod,
            found.containers,
            self._node_resources.where(pod, view),
            now,
            failure=found.failure,
            is_over=found.is_over,
            is_stopping=found.is_stopping,
        )
        written: Json = yield Patch(Ref.to(pod), {"status": status}, "status")
        if found.failure is not None:
            yield Note(Ref.to(written), found.failure.reason, found.failure.message, "Warning")
        return written

    def _mark(self, node: Json | None) -> Steps:
        """Write the isolation tier of its pods onto a node."""
        if node is None or self._options.default != "process" or not self._is_our_node(node):
            return
        tier = f"T{self._machine.host_setup.tier}"
        if (node["metadata"].get("annotations") or {}).get(TIER) != tier:
            yield Patch(Ref.to(node), {"metadata": {"annotations": {TIER: tier}}}, exact=False)

    def _forget_if_gone(self, key: Key, pod: Json | None) -> None:
        memory = self._memory.get(key)
        if memory is not None and (pod is None or pod["metadata"]["uid"] != memory.uid):
            del self._memory[key]
            self._leave(memory)
            self._machine.forget(memory.uid)
            self._node_resources.addresses.release(memory.uid)

    def _leave(self, memory: _Memory) -> None:
        if not memory.has_left:
            memory.has_left = True
            self._node_resources.release(memory.uid)
            self._probes.forget(memory.uid)

    def _end(self, memory: _Memory, pod: Json) -> None:
        """End what is left of a pod that another controller has failed."""
        if not memory.has_left:
            self._kill(memory.uid, read(pod))
        self._leave(memory)

    def _living(self, key: Key) -> Iterator[Key]:
        for one, memory in self._memory.items():
            if one.namespace == key.namespace and not memory.has_left:
                yield one

    def _is_ours(self, pod: Json, view: View) -> bool:
        node = (
            view.get(names.NODE, pod["spec"]["nodeName"]) if pod["spec"].get("nodeName") else None
        )
        if not pod["spec"].get("nodeName") or not self._is_our_node(node):
            return False
        return run_mode_of(pod, node, self._options.default) == "process"

    def _is_our_node(self, node: Json | None) -> bool:
        return self._options.is_every_node_ours or (node is not None and is_our_node(node))

    def _runs_in(self, namespace: str) -> bool:
        return any(key.namespace == namespace for key in self._memory)

    def _lost_at(self, node: Json | None, memory: _Memory, now: float) -> float | None:
        """Return when the pods of a node are lost; None if the node is well."""
        if node is None:
            memory.missing_since = memory.missing_since if memory.missing_since is not None else now
            return memory.missing_since + self._options.lost_after_s
        memory.missing_since = None
        unready = unready_since(node)
        if unready is None:
            memory.unready_since = math.inf
            return None
        memory.unready_since = first_seen(memory.unready_since, unready, now)
        return memory.unready_since + self._options.lost_after_s


def _has_names(pod: Json, view: View) -> bool:
    """Say whether a pod has a DNS name."""
    namespace = pod["metadata"].get("namespace", "")
    return bool(pod["spec"].get("subdomain")) or bool(view.within(names.SERVICE, namespace))


def _spec(pod: Json, name: str) -> Json:
    spec = pod["spec"]
    every: list[Json] = [*(spec.get("initContainers") or ()), *spec["containers"]]
    return next(one for one in every if one["name"] == name)


def _hook(container: Json) -> Sequence[str]:
    """Return what a container wants to run before it is stopped."""
    before = (container.get("lifecycle") or {}).get("preStop") or {}
    if command := (before.get("exec") or {}).get("command"):
        return [str(word) for word in command]
    if rest := (before.get("sleep") or {}).get("seconds"):
        return ["sleep", str(rest)]
    return ()


def _grace(pod: Json) -> float:
    given = pod["spec"].get("terminationGracePeriodSeconds")
    return max(_DEFAULT_GRACE_SECONDS if given is None else float(given), _LEAST_GRACE_SECONDS)


def _last_end(containers: Containers) -> float:
    return max((one.last_end.at for one in containers if one.last_end is not None), default=0.0)
