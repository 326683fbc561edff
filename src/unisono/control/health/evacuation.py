"""Gangs on a broken GPU restart on other nodes, at once where that is certain (jobs §7.3).

A node reports that a GPU is broken, hardly ever which pod uses it. A pod with all GPUs of its node
uses that one, too. A gang that reports steps leaves after its next checkpoint, or hangs: see
`watchdog.py`. One that reports none waits for a device that never answers, mostly for ever. So the
pod fails, with the reason on it, and the gang restarts elsewhere by its own rules; that counts
towards no limit. It stays while there is no other node, and for the first seconds, in which the
program may end by itself and say more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unisono.control import names
from unisono.control.actions import Again, Json, Steps
from unisono.control.conditions import seconds
from unisono.control.gangs.controller import BY_WORKLOAD, workload_of
from unisono.control.health.quarantine import LOST, Record
from unisono.control.health.stragglers import REASON as STRAGGLER
from unisono.control.health.watchdog import MOVED, CanReplace, Verdict, fail, is_at_work
from unisono.control.view import View
from unisono.engine.model.resources import is_gpu
from unisono.kinds.pace import PROGRESS
from unisono.kinds.quantity import Quantity
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

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
        for pod in view.by(names.POD, "node", obj["metadata"]["name"]):
            for full in workload_of(pod):
                namespace, _, name = full.partition("/")
                yield Key(namespace, name)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Have one gang start again, if one of its pods has a GPU that broke."""
        workload = view.get(names.WORKLOAD, key.name, key.namespace)
        full = f"{key.namespace}/{key.name}"
        pods = [
            pod
            for pod in view.by(names.POD, BY_WORKLOAD, full)
            if "deletionTimestamp" not in pod["metadata"]
        ]
        if workload is None or not is_at_work(workload, pods) or any(map(_reports, pods)):
            return
        for pod in pods:
            node = view.get(names.NODE, pod["spec"].get("nodeName", ""))
            if node is None or not (record := _broken(node)).reason or not _has_all(pod, node):
                continue
            due = seconds(record.since) + _PATIENCE_SECONDS
            name = node["metadata"]["name"]
            if now < due:
                yield Again(due)
            elif self._can_replace(full, [name]):
                why = f"a GPU of node {name} is broken ({record.reason}), and it has all of them"
                yield from fail(workload, Verdict(pod, MOVED, f"{why}; the gang moves"), now)
            else:
                yield Again(now + _AGAIN_SECONDS)
            return


def _broken(node: Json) -> Record:
    """Return the record of a node that is in quarantine for a device; an empty one if it is not."""
    record = Record.of(node["metadata"].get("annotations"))
    return record if record.reason not in (LOST, STRAGGLER) else Record()


def _reports(pod: Json) -> bool:
    return PROGRESS in (pod["metadata"].get("annotations") or {})


def _has_all(pod: Json, node: Json) -> bool:
    """Say whether a pod has every GPU of its node."""
    capacity = (node.get("status") or {}).get("capacity") or {}
    there = {name: Quantity.from_raw(one).units for name, one in capacity.items() if is_gpu(name)}
    asked = dict.fromkeys(there, 0)
    for container in pod["spec"].get("containers") or ():
        limits = (container.get("resources") or {}).get("limits") or {}
        for name in asked:
            asked[name] += Quantity.from_raw(limits.get(name, 0)).units
    return bool(there) and all(asked[name] >= count > 0 for name, count in there.items())
