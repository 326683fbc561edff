"""What agents on real nodes report, invented for simulated ones: progress, GPU faults, usage."""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from unisono.control import names
from unisono.control.actions import Again, Json, Patch, Ref, Steps
from unisono.control.conditions import find, is_true, seconds, timestamp, with_condition
from unisono.control.controller import own_key
from unisono.control.health.progress import PROGRESS, Progress, of_rank, progress_of
from unisono.control.view import View
from unisono.engine.model.resources import bounded, is_gpu
from unisono.kinds.digits import finite_number, whole_number
from unisono.kinds.quantity import Quantity
from unisono.kube.form import Key
from unisono.kube.mapping import Kind
from unisono.monitor.gpu_faults import Faults, fault_at, faults_of, problem_of
from unisono.runner.lifecycle import sidecars
from unisono.runner.run_mode import run_mode_of
from unisono.runner.simulated.kubelet import Simulation

# ---- progress of training ------------------------------------------------------------------------
#
# Progress of simulated training: steps that pods report, slower on a slow GPU.
#
# | annotation of the pod           | meaning                                            |
# | ------------------------------- | -------------------------------------------------- |
# | `unisono.dev/step-seconds`      | how long a step takes; without it none is reported |
# | `unisono.dev/checkpoint-steps`  | after so many steps a checkpoint is written        |
#
# Ranks wait for each other after every step, so all advance at the pace of the slowest; each tells
# the time that it worked itself. A device that was slowed down (`unisono gpu inject NODE 0 --slow
# 0.6`) makes its pod that much slower. A gang that starts again goes on from its checkpoint.


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


# ---- GPU faults ----------------------------------------------------------------------------------
#
# Reports injected GPU faults as an agent on a real node would: a condition, and fewer devices.
#
#     unisono.dev/gpu-faults on a node ──▶ condition GPUProblem, and allocatable without GPUs off
# the     bus
#
# What follows is decided elsewhere: to the controllers this looks like a broken device.

_CONDITION = "GPUProblem"
_WELL = ("NoGPUProblem", "all GPUs are healthy")


class GpuFaults:
    """Watches the nodes of an embedded cluster."""

    name = "gpu-faults"
    watches: Sequence[Kind] = (names.NODE,)

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A node."""
        return (own_key(obj),)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Write the faults of a node's devices into its status."""
        node = view.get(names.NODE, key.name)
        if node is None or "deletionTimestamp" in node["metadata"]:
            return
        status = node.get("status") or {}
        faults = faults_of(node["metadata"].get("annotations"))
        reason, message = problem_of(faults)
        changes: Json = {}
        allocatable = _allocatable(status, faults)
        if allocatable != status.get("allocatable"):
            changes["allocatable"] = allocatable
        conditions = status.get("conditions")
        current = find(conditions, _CONDITION)
        is_news = (
            (current or {}).get("reason") != reason if reason else is_true(conditions, _CONDITION)
        )
        if is_news:
            condition = (reason, message) if reason else _WELL
            changes["conditions"] = with_condition(
                conditions, _CONDITION, "True" if reason else "False", *condition, now=now
            )
        if changes:
            yield Patch(Ref.to(node), {"status": changes}, "status", exact=True)


def _allocatable(status: Json, faults: Faults) -> Json | None:
    """Return what a node can give out: its GPUs are those that did not fall off the bus.

    A node that was never reported is left alone: it may offer less for reasons of its own.
    """
    allocatable: Json | None = status.get("allocatable")
    capacity = status.get("capacity") or {}
    if not faults and not is_true(status.get("conditions"), _CONDITION):
        return allocatable
    resource = next((name for name in capacity if is_gpu(name)), None)
    if resource is None or allocatable is None:
        return allocatable
    there = bounded(resource, Quantity.from_raw(capacity[resource]).units)
    lost = sum(
        1
        for index in range(there)
        if (fault := fault_at(faults, index)) is not None and fault.fallen_off
    )
    left = str(there - lost)
    return allocatable if allocatable.get(resource) == left else {**allocatable, resource: left}


# ---- usage ---------------------------------------------------------------------------------------
#
# What pods and nodes use, for `kubectl top`: invented from their requests.
#
# A running pod uses between half and nine tenths of its requests. How much follows from its uid and
# the minute, so that the same question gets the same answer and numbers still move.

_WINDOW_SECONDS = 60
# What a node needs for itself.
_NODE_MILLI = 250
_NODE_BYTES = 1 << 30
# What a container uses that asks for nothing.
_LEAST_MILLI = 5
_LEAST_BYTES = 16 << 20


class Usage:
    """Answers what is used; `apiserver` asks with the plural of a kind."""

    def __init__(self, view: View, clock: Callable[[], float]) -> None:
        """Look at the pods of a view."""
        self._view = view
        self._clock = clock

    def __call__(self, plural: str) -> list[Json]:
        """Return NodeMetrics for `nodes`, PodMetrics for `pods`."""
        now = self._clock()
        return list(self._nodes(now) if plural == "nodes" else self._pods(now))

    def _pods(self, now: float) -> Iterator[Json]:
        for pod in self._view.all(names.POD):
            if (pod.get("status") or {}).get("phase") != "Running":
                continue
            metadata = pod["metadata"]
            yield {
                **_head("PodMetrics", metadata, now),
                "containers": [
                    {"name": name, "usage": _amounts(milli, size)}
                    for name, milli, size in _containers_usage(pod, now)
                ],
            }

    def _nodes(self, now: float) -> Iterator[Json]:
        used: dict[str, list[int]] = {}
        for pod in self._view.all(names.POD):
            if (pod.get("status") or {}).get("phase") == "Running":
                total = used.setdefault(pod["spec"].get("nodeName", ""), [0, 0])
                for _, milli, size in _containers_usage(pod, now):
                    total[0] += milli
                    total[1] += size
        for node in self._view.all(names.NODE):
            metadata = node["metadata"]
            milli, size = used.get(metadata["name"], (0, 0))
            yield {
                **_head("NodeMetrics", metadata, now),
                "usage": _amounts(milli + _NODE_MILLI, size + _NODE_BYTES),
            }


def pod_usage(pod: Json, now: float) -> dict[str, dict[str, int]] | None:
    """Return what the containers of a running pod use, in thousandths, by name and resource."""
    if (pod.get("status") or {}).get("phase") != "Running":
        return None
    return {
        name: {"cpu": milli, "memory": size * 1000}
        for name, milli, size in _containers_usage(pod, now)
    }


def _containers_usage(pod: Json, now: float) -> Iterator[tuple[str, int, int]]:
    """Yield the millicores and bytes that each running container uses."""
    beside = set(sidecars(pod))
    specs = [one for one in pod["spec"].get("initContainers") or () if one["name"] in beside]
    for spec in (*specs, *pod["spec"]["containers"]):
        resources = spec.get("resources") or {}
        asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        share = _share(f"{pod['metadata']['uid']}/{spec['name']}", now)
        milli = Quantity.from_raw(asked.get("cpu", 0)).milli * share // 1000
        size = Quantity.from_raw(asked.get("memory", 0)).units * share // 1000
        if spec["name"] not in beside:
            said = _said_usage(pod)
            milli = said.get("cpu", milli)
            size = said.get("memory", size)
        yield spec["name"], max(milli, _LEAST_MILLI), max(size, _LEAST_BYTES)


def _said_usage(pod: Json) -> dict[str, int]:
    """Return what a pod's annotations say that each container uses; what cannot be read is left."""
    annotations = pod["metadata"].get("annotations") or {}
    found = {}
    for resource in ("cpu", "memory"):
        text = annotations.get(f"unisono.dev/{resource}-usage")
        if text is not None:
            with contextlib.suppress(ValueError):
                found[resource] = max(0, Quantity.from_raw(text).amount(resource))
    return found


def _share(container: str, now: float) -> int:
    """Return how much of a request is used now, in thousandths: 500 to 900."""
    minute = int(now) // _WINDOW_SECONDS
    digest = hashlib.blake2b(f"{container}/{minute}".encode(), digest_size=4).digest()
    return 500 + int.from_bytes(digest, "big") % 401


def _head(kind: str, metadata: Json, now: float) -> Json:
    about = {"name": metadata["name"], "creationTimestamp": timestamp(now)}
    if metadata.get("namespace"):
        about["namespace"] = metadata["namespace"]
    if metadata.get("labels"):
        about["labels"] = metadata["labels"]
    return {
        "kind": kind,
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": about,
        "timestamp": timestamp(now),
        "window": f"{_WINDOW_SECONDS}s",
    }


def _amounts(milli: int, size: int) -> dict[str, str]:
    return {"cpu": f"{milli}m", "memory": f"{size >> 10}Ki"}
