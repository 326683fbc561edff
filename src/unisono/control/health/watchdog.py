"""Gangs that cannot go on restart: those that hang, and those on a broken GPU (jobs §7.3).

The progress of programs that report it is watched, and written to their Workloads:

    no progress for 3 steps, at least 2 minutes, all pods running    the gang hangs: it restarts,
                                                                     which counts
    a checkpoint was written since a node broke, and there is        the gang moves: it restarts
    another node                                                     without the broken one
    one rank's steps take longer than those of the others            it and its node are named,
                                                                     see `health/stragglers.py`

A gang is restarted by failing the pod that lags behind, with the reason on it; its operator does
what it does about any pod that failed. About programs that report no progress nothing is guessed;
a gang of theirs restarts on other nodes when one of its GPUs broke, at once where that is certain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from unisono.control import names
from unisono.control.actions import Again, Json, Note, Patch, Ref, Steps
from unisono.control.admission.placement import COMMITTED, placement_of
from unisono.control.conditions import is_true, seconds, with_condition
from unisono.control.gangs.controller import BY_WORKLOAD, workload_of
from unisono.control.gangs.recovery import HANG
from unisono.control.health import stragglers
from unisono.control.health.node_health import LOST, Record
from unisono.control.health.progress import PROGRESS, Progress, after, furthest, progress_of
from unisono.control.health.stragglers import REASON as STRAGGLER
from unisono.control.view import View
from unisono.engine.model.resources import is_gpu
from unisono.kinds.pace import Rank, pace_of, ranked
from unisono.kinds.quantity import Quantity
from unisono.kinds.views import Node, Object, Pod
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

MOVED = "NodeQuarantined"
_LEAST_SECONDS = 120.0
_MOST_STEPS = 3
_LEAST_STEPS = 3  # a single one may be odd

# Says whether a workload would get other nodes for these.
CanReplace = Callable[[str, Sequence[str]], bool]


class Watchdog:
    """Looks at the progress of gangs."""

    name = "watchdog"
    watches: Sequence[Kind] = (names.POD,)

    def __init__(self, can_replace: CanReplace) -> None:
        """Take what knows whether there are other nodes."""
        self._can_replace = can_replace
        self._compared: dict[Key, float] = {}  # when the ranks of gangs were; forgetting is cheap

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """The workload of a pod that reports."""
        if _reports(obj):
            for full in workload_of(obj):
                namespace, _, name = full.partition("/")
                yield Key(namespace, name)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Write down how far one gang is, and see whether it still moves."""
        workload = view.get(names.WORKLOAD, key.name, key.namespace)
        if workload is None:
            self._compared.pop(key, None)
            return
        pods = _pods_of(key, view)
        received = [one for pod in pods if (one := _report(pod)) is not None]
        if not received:
            return
        before = progress_of(Object(workload).metadata.annotations)
        reached = after(before, furthest(received))
        if reached != before:
            changes = {"metadata": {"annotations": {PROGRESS: reached.text()}}}
            workload = yield Patch(Ref.to(workload), changes, exact=False)
        if not is_at_work(workload, pods):
            return
        yield from self._compare(key, workload, pods, view, now)
        verdict = self._on_broken_node(key, reached, pods, view)
        if verdict is None:
            last = max(one.when for one in received)
            limit = max(_MOST_STEPS * reached.step_seconds, _LEAST_SECONDS)
            if now <= last + limit:
                yield Again(last + limit + 1)
                return
            verdict = _hang(pods, now - last, reached)
        yield from fail(workload, verdict, now)

    def _compare(
        self, key: Key, workload: Json, pods: Sequence[Json], view: View, now: float
    ) -> Steps:
        """Once a minute, find the ranks that hold the others up, and since when."""
        if now < self._compared.get(key, 0.0) + stragglers.WINDOW_SECONDS:
            return
        self._compared[key] = now
        annotations = Object(workload).metadata.annotations
        before = stragglers.known(annotations)
        after, findings = stragglers.follow(before, ranked(_times(pods)), now)
        if after != before:
            changes = {"metadata": {"annotations": {stragglers.KNOWN: stragglers.text_of(after)}}}
            yield Patch(Ref.to(workload), changes, exact=False)
        moves = annotations.get(stragglers.REACTION) == stragglers.REPLACE
        where = {pod.name: pod.spec.node_name for pod in map(Pod, pods)}
        for pod, rank, level in findings:
            node = view.get(names.NODE, where[pod])
            yield Note(Ref.to(workload), "StragglerDetected", _told(pod, where, rank), "Warning")
            if node is not None:
                text = stragglers.named(
                    node, f"{key.namespace}/{key.name}", level, now, moves=moves
                )
                changes = {"metadata": {"annotations": {stragglers.NAMED: text}}}
                yield Patch(Ref.to(node), changes, exact=False)
        if after:
            yield Again(now + stragglers.WINDOW_SECONDS)

    def _on_broken_node(
        self, key: Key, reached: Progress, pods: Sequence[Json], view: View
    ) -> Verdict | None:
        """Return a pod that is to move: its node broke, its work is saved, and there is another."""
        for pod in pods:
            node = Pod(pod).spec.node_name
            found = view.get(names.NODE, node)
            health = Record.of(Object(found).metadata.annotations if found is not None else {})
            is_broken = health.reason and health.reason != LOST
            if not is_broken or seconds(reached.saved_at) <= seconds(health.since):
                continue
            if self._can_replace(f"{key.namespace}/{key.name}", [node]):
                why = f"node {node} is in quarantine ({health.reason})"
                saved = f"step {reached.checkpoint_step} is saved"
                return Verdict(pod, MOVED, f"{why}; {saved}, the gang moves")
        return None


def _times(pods: Sequence[Json]) -> dict[str, float]:
    """Return how long a step takes each pod, of those that have told of some."""
    found: dict[str, float] = {}
    for metadata in (Object(pod).metadata for pod in pods):
        pace = pace_of(metadata.annotations)
        if pace is not None and len(pace.steps) >= _LEAST_STEPS:
            found[metadata.name] = pace.seconds
    return found


def _told(pod: str, where: Mapping[str, str], rank: Rank) -> str:
    slower = f"its steps take {rank.seconds:g} s, {rank.factor:.2f} times the median"
    return f"pod {pod} on node {where[pod]} slows its gang down: {slower}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which pod fails so that its gang restarts, and why."""

    pod: Json
    reason: str
    message: str


def _hang(pods: Sequence[Json], silent: float, reached: Progress) -> Verdict:
    """Blame the pod that got least far; pods that never reported are blamed last."""

    def lag(pod: Json) -> tuple[bool, int, float, str]:
        report, name = _report(pod), Object(pod).name
        if report is None:
            return True, 0, 0.0, name
        return False, report.step, report.when, name

    pod = min(pods, key=lag)
    report = _report(pod)
    blamed = Pod(pod)
    where = f"pod {blamed.name} on node {blamed.spec.node_name}"
    behind = f"{where} lags behind, at step {report.step if report is not None else '?'}"
    pace = f", steps take {reached.step_seconds:g} s" if reached.paces else ""
    return Verdict(pod, HANG, f"no progress for {int(silent)} s{pace}; {behind}")


def fail(workload: Json, verdict: Verdict, now: float) -> Steps:
    """Fail a pod with the reason on it; it stays until its operator has seen why."""
    pod = verdict.pod
    conditions = with_condition(
        (pod.get("status") or {}).get("conditions"),
        "DisruptionTarget",
        "True",
        verdict.reason,
        verdict.message,
        now=now,
    )
    failed = {"phase": "Failed", "reason": verdict.reason, "message": verdict.message}
    yield Patch(Ref.to(pod), {"status": {**failed, "conditions": conditions}}, "status")
    about = "GangHangs" if verdict.reason == HANG else "GangMoves"
    yield Note(Ref.to(workload), about, verdict.message, "Warning")


def is_at_work(workload: Json, pods: Sequence[Json]) -> bool:
    """Say whether a gang is whole and running, and no pod of it is being ended."""
    conditions = (workload.get("status") or {}).get("conditions")
    if placement_of(conditions)[0] != COMMITTED or is_true(conditions, "Evicted"):
        return False
    return all(
        pod.phase == "Running" and not pod.conditions.is_true("DisruptionTarget")
        for pod in map(Pod, pods)
    )


def _pods_of(key: Key, view: View) -> list[Json]:
    """Return the pods of a gang that nothing has deleted."""
    found = view.by(names.POD, BY_WORKLOAD, f"{key.namespace}/{key.name}")
    return [pod for pod in found if not Object(pod).is_terminating]


def _report(pod: Json) -> Progress | None:
    return progress_of(Object(pod).metadata.annotations)


# ---- broken GPUs ---------------------------------------------------------------------------------
#
# A node reports that a GPU is broken, hardly ever which pod uses it. A pod with all GPUs of its
# node uses that one, too. A gang that reports steps leaves after its next checkpoint, or hangs (see
# above). One that reports none waits for a device that never answers, mostly for ever. So the pod
# fails, with the reason on it, and the gang restarts elsewhere by its own rules; that counts
# towards no limit. It stays while there is no other node, and for the first seconds, in which the
# program may end by itself and say more.

_PATIENCE_SECONDS = 10.0
# New nodes wake no gang, so it is asked again.
_AGAIN_SECONDS = 60.0


class Evacuation:
    """Looks at gangs on nodes whose GPUs broke."""

    name = "evacuation"
    watches: Sequence[Kind] = (names.NODE,)

    def __init__(self, can_replace: CanReplace) -> None:
        """Take what knows whether there are other nodes."""
        self._can_replace = can_replace

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """The workloads on a node that is in quarantine for a device."""
        if not _broken(obj).reason:
            return
        for pod in view.by(names.POD, "node", Object(obj).name):
            for full in workload_of(pod):
                namespace, _, name = full.partition("/")
                yield Key(namespace, name)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Have one gang start again, if one of its pods has a GPU that broke."""
        workload = view.get(names.WORKLOAD, key.name, key.namespace)
        pods = _pods_of(key, view)
        if workload is None or not is_at_work(workload, pods) or any(map(_reports, pods)):
            return
        for pod in pods:
            node = view.get(names.NODE, Pod(pod).spec.node_name)
            if node is None or not (record := _broken(node)).reason or not _has_all(pod, node):
                continue
            due = seconds(record.since) + _PATIENCE_SECONDS
            name = Object(node).name
            if now < due:
                yield Again(due)
            elif self._can_replace(f"{key.namespace}/{key.name}", [name]):
                why = f"a GPU of node {name} is broken ({record.reason}), and it has all of them"
                yield from fail(workload, Verdict(pod, MOVED, f"{why}; the gang moves"), now)
            else:
                yield Again(now + _AGAIN_SECONDS)
            return


def _broken(node: Json) -> Record:
    """Return the record of a node that is in quarantine for a device; an empty one if it is not."""
    record = Record.of(Object(node).metadata.annotations)
    return record if record.reason not in (LOST, STRAGGLER) else Record()


def _reports(pod: Json) -> bool:
    return PROGRESS in Object(pod).metadata.annotations


def _has_all(pod: Json, node: Json) -> bool:
    """Say whether a pod has every GPU of its node."""
    capacity = Node(node).status.capacity
    there = {name: Quantity.from_raw(one).units for name, one in capacity.items() if is_gpu(name)}
    asked = dict.fromkeys(there, 0)
    for container in Pod(pod).spec.containers:
        limits = container.resources.limits
        for name in asked:
            asked[name] += Quantity.from_raw(limits.get(name, 0)).units
    return bool(there) and all(asked[name] >= count > 0 for name, count in there.items())
