"""Progress of simulated training: steps that pods report, slower on a slow GPU.

| annotation of the pod           | meaning                                            |
| ------------------------------- | -------------------------------------------------- |
| `unisono.dev/step-seconds`      | how long a step takes; without it none is reported |
| `unisono.dev/checkpoint-steps`  | after so many steps a checkpoint is written        |

Ranks wait for each other after every step, so all advance at the pace of the slowest; each tells
the time that it worked itself. A device that was slowed down (`unisono gpu inject NODE 0 --slow
0.6`) makes its pod that much slower. A gang that starts again goes on from its checkpoint.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from unisono.control import names
from unisono.control.actions import Again, Json, Patch, Ref, Steps
from unisono.control.conditions import seconds, timestamp
from unisono.control.controller import own_key
from unisono.control.health.progress import PROGRESS, Progress, of_rank, progress_of
from unisono.control.view import View
from unisono.kinds.digits import finite_number, whole_number
from unisono.kube.form import Key
from unisono.kube.mapping import Kind
from unisono.monitor.gpu_faults import faults_of
from unisono.runner.run_mode import run_mode_of
from unisono.runner.simulated.kubelet import Simulation

# More than a month for a step is none.
_SLOWEST_SECONDS = 1e7

PACE = "unisono.dev/step-seconds"
CHECKPOINTS = "unisono.dev/checkpoint-steps"
# Reports are writes; as often as an exporter is scraped is often enough.
_EVERY_SECONDS = 15.0
_LEAST_SECONDS = 1.0


class TrainingProgress:
    """Reports progress for the programs that simulated pods would run."""

    name = "simulated-steps"
    watches: Sequence[Kind] = (names.POD,)

    def __init__(self, simulation: Simulation) -> None:
        """Use the speed of the simulation."""
        self._simulation = simulation
        self._every = max(_LEAST_SECONDS, _EVERY_SECONDS / simulation.speed)

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A pod that makes steps."""
        if PACE in (obj["metadata"].get("annotations") or {}) and obj["spec"].get("nodeName"):
            yield own_key(obj)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Write the progress of a pod."""
        pod = view.get(names.POD, key.name, key.namespace)
        if pod is None or "deletionTimestamp" in pod["metadata"] or not _began(pod):
            return
        node = view.get(names.NODE, pod["spec"].get("nodeName", ""))
        if run_mode_of(pod, node, self._simulation.default) != "simulated":
            return
        before = progress_of(pod["metadata"].get("annotations"))
        begun = before.when if before is not None else _began(pod)
        slowest = max(self._pace(one, view) for one in _gang(pod, view))
        whole = math.ceil(self._every / slowest) * slowest  # no step is cut in two by a report
        due = begun + whole
        if now < due:
            yield Again(due)
            return
        reached = before.step if before is not None else _saved(pod, view)
        step, every = reached + int((now - begun) / slowest), _whole(pod, CHECKPOINTS)
        progress = Progress(
            step,
            timestamp(now),
            checkpoint_step=step // every * every if every else 0,
            paces=(round(self._pace(pod, view), 3),),
        )
        annotations = {PROGRESS: of_rank(before, progress).text()}
        yield Patch(Ref.to(pod), {"metadata": {"annotations": annotations}}, exact=False)
        yield Again(now + whole)

    def _pace(self, pod: Json, view: View) -> float:
        """Return how long a step takes a pod by itself, in seconds of ours."""
        node = view.get(names.NODE, pod["spec"].get("nodeName", ""))
        faults = faults_of(node["metadata"].get("annotations")) if node is not None else {}
        slow = min((one.slow for one in faults.values()), default=1.0)
        return _number(pod) / max(slow, 0.01) / self._simulation.speed


def _gang(pod: Json, view: View) -> Sequence[Json]:
    """Return the pods that wait for each other."""
    metadata = pod["metadata"]
    workload = (metadata.get("annotations") or {}).get(names.WORKLOAD_ANNOTATION)
    if not workload:
        return (pod,)
    others = view.by(names.POD, names.BY_WORKLOAD, f"{metadata['namespace']}/{workload}")
    return [one for one in others if PACE in (one["metadata"].get("annotations") or {})] or (pod,)


def _saved(pod: Json, view: View) -> int:
    """Return the checkpoint that a pod begins from."""
    metadata = pod["metadata"]
    name = (metadata.get("annotations") or {}).get(names.WORKLOAD_ANNOTATION, "")
    workload = view.peek(names.WORKLOAD, name, metadata["namespace"]) if name else None
    known = progress_of(workload["metadata"].get("annotations")) if workload is not None else None
    return known.checkpoint_step if known is not None else 0


def _began(pod: Json) -> float:
    """Return since when a pod's containers all run; 0 if they do not."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    running = [(one.get("state") or {}).get("running") for one in statuses]
    if not running or not all(running):
        return 0.0
    return max(seconds(one["startedAt"]) for one in running if one)


def _number(pod: Json) -> float:
    pace = finite_number(pod["metadata"]["annotations"][PACE], _SLOWEST_SECONDS)
    return 1.0 if pace is None else max(0.001, pace)


def _whole(pod: Json, key: str) -> int:
    text = pod["metadata"]["annotations"].get(key, "")
    return whole_number(text) or 0
