"""Decisions on their way to the API: until when each counts (ADR 0028).

the API refuses a write     it is not repeated: the next cycle decides anew
quota, queues or a node     what has not been sent yet is not sent (`Basis`)
  change before it is sent
it is unknown whether it    the engine counts it as stored, so that no other workload gets the same
  was stored (`InDoubt`)    quota or nodes; the object is read, and if it is as it was, it is
                            written once more with nothing but a new number. From then on the
                            write in doubt cannot happen any more, however late it arrives: it
                            names a state that is past.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from unisono.control import names
from unisono.control.actions import Json, Patch, Read, Ref, Steps, Together
from unisono.control.admission import placement
from unisono.control.conditions import find
from unisono.control.controller import own_key
from unisono.control.nodes import is_usable
from unisono.control.view import View
from unisono.engine.model.names import WorkloadKey
from unisono.kube.errors import Invalid, KubeError, NotFound, is_in_doubt
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

# As many as are decided at once; more would keep new decisions waiting for old ones.
MOST_RESOLVED = 64
# How long after a vain attempt the next one is made: an API that restarts is back by then.
RESOLVE_AGAIN_S = 5.0
# What decides about one workload or pod alone. A write names the state of its own object anyway,
# and what becomes of the others does not make a place smaller that was found free.
_OF_ONE = frozenset({names.WORKLOAD, names.POD, names.CLAIM, names.VOLUME})


class Basis:
    """Counts changes of what every decision rests on: queues, quota, flavors, and each node."""

    def __init__(self) -> None:
        """Begin with no changes."""
        self._count = 0
        self._known = 0  # the count at which the engine knew everything
        self._configured = 0
        self._changed: dict[str, int] = {}  # nodes, and when
        self._nodes: dict[str, int] = {}

    def touched(self, kind: Kind, name: str, view: View) -> None:
        """Count a change of an object."""
        if kind in _OF_ONE:
            return
        self._count += 1
        if kind != names.NODE:
            self._configured = self._count
            return
        node = view.get(kind, name)
        worth = 0 if node is None else _worth(node)
        if self._nodes.get(name) != worth:
            self._changed[name] = self._count
            self._nodes[name] = worth

    def settled(self) -> None:
        """Note that the engine knows all changes now."""
        self._known = self._count

    def holding(self, nodes: Iterable[str] = ()) -> Callable[[], bool]:
        """Return what says whether a decision of this moment, about these nodes, still holds."""
        since, on = self._known, tuple(dict.fromkeys(nodes))

        def holds() -> bool:
            if self._configured > since:
                return False
            return all(self._changed.get(node, 0) <= since for node in on)

        return holds


def _worth(node: Json) -> int:
    """Return a number for what a placement reads of a node: not its heartbeats."""
    metadata, spec = node["metadata"], node.get("spec") or {}
    parts = (
        metadata.get("uid"),
        metadata.get("labels"),
        spec.get("taints"),
        is_usable(node),
        (node.get("status") or {}).get("allocatable"),
    )
    return hash(orjson.dumps(parts))


@dataclass(frozen=True, slots=True)
class _Doubt:
    ref: Ref
    status: Json


class InDoubt:
    """Knows the writes that gave a workload quota or nodes, until their outcome is known."""

    def __init__(self) -> None:
        """Begin with none. A restarted scheduler reads what is stored."""
        self._doubts: dict[WorkloadKey, _Doubt] = {}

    def __contains__(self, key: WorkloadKey) -> bool:
        """Say whether there is one about a workload."""
        return key in self._doubts

    def __bool__(self) -> bool:
        """Say whether there is any."""
        return bool(self._doubts)

    def note(self, patch: Patch, error: KubeError) -> None:
        """Note how a write failed; one that gave nothing is harmless even if it comes late."""
        status = patch.changes.get("status") or {}
        if is_in_doubt(error) and status.get("admission"):
            ref = patch.ref
            self._doubts[WorkloadKey(f"{ref.namespace}/{ref.name}")] = _Doubt(ref, status)

    def as_if(self, obj: Json) -> Json:
        """Return a Workload as it is, or will be, if the write in doubt is stored."""
        metadata = obj["metadata"]
        key = WorkloadKey(f"{metadata['namespace']}/{metadata['name']}")
        doubt = self._doubts.get(key)
        if doubt is None:
            return obj
        seen = (metadata.get("uid", ""), metadata.get("resourceVersion", ""))
        if seen != (doubt.ref.uid, doubt.ref.version):
            del self._doubts[key]  # it was stored, or comes too late for ever
            return obj
        return {**obj, "status": _merged(obj.get("status") or {}, doubt.status)}

    def gone(self, key: WorkloadKey) -> None:
        """Forget a workload that is gone."""
        self._doubts.pop(key, None)

    def resolve(self, now: float) -> Steps:
        """Find out what became of the writes in doubt, and see to it that nothing more does."""
        refs = [doubt.ref for doubt in self._doubts.values()][:MOST_RESOLVED]
        reads = [Read(ref.kind, ref.namespace, ref.name) for ref in refs]
        found: Sequence[Json | KubeError | None] = yield Together(reads, tells=True)
        fences = [
            Patch(Ref.to(obj), placement.fenced(obj, now), "status")
            for ref, obj in zip(refs, found, strict=True)
            if isinstance(obj, dict) and Ref.to(obj) == ref
        ]
        if fences:
            yield Together(fences, tells=True)


def _merged(old: Mapping[str, object], changes: Mapping[str, object]) -> Json:
    """Return what a JSON merge patch makes of an object; neither changes."""
    merged = dict(old)
    for name, value in changes.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            before = merged.get(name)
            merged[name] = _merged(before if isinstance(before, dict) else {}, value)
        else:
            merged[name] = value
    return merged


# ---- binds in flight -----------------------------------------------------------------------------
#
# Of pods without a workload: sent, and not in the view yet.
#
# A binding returns no object that could be shown, and its watch event may take a while. Meanwhile
# the pod has its place; by the view alone it would seem to wait, and its place to be free. If the
# answer was lost, the place is kept for a while, long enough for any watch event.

_DOUBT_SECONDS = 30.0


@dataclass(slots=True)
class _Sent:
    uid: str
    node: str
    until: float = math.inf


class BindsInFlight:
    """Remembers the nodes of pods. A restarted scheduler reads pods after all that was written."""

    def __init__(self) -> None:
        """Begin with none."""
        self._sent: dict[Key, _Sent] = {}
        self._written: list[_Sent] = []
        self.is_writing = False

    def note(self, pod: Json, node: str) -> None:
        """Hear that a pod is about to be bound."""
        self._sent[own_key(pod)] = made = _Sent(pod["metadata"]["uid"], node)
        self._written.append(made)

    @contextlib.contextmanager
    def writing(self, now: float) -> Iterator[None]:
        """Doubt the pods noted in this block if it ends before all are known to be bound."""
        self._written = []
        self.is_writing = True
        try:
            yield
        except BaseException:
            for one in self._written:
                one.until = now + _DOUBT_SECONDS
            raise
        finally:
            self.is_writing = False

    def node_of(self, pod: Json) -> str:
        """Return the node that a pod has, or was sent to."""
        node = str(pod["spec"].get("nodeName") or "")
        sent = self._sent.get(own_key(pod))
        if sent is None:
            return node
        if node or sent.uid != pod["metadata"]["uid"]:
            del self._sent[own_key(pod)]
            return node
        return sent.node

    def gone(self, key: Key) -> None:
        """Hear that a pod is no more."""
        self._sent.pop(key, None)

    def expired(self, now: float) -> Iterator[Key]:
        """Forget, and yield, pods without news for so long that they cannot be bound any more."""
        for key in [key for key, one in self._sent.items() if one.until <= now]:
            del self._sent[key]
            yield key

    def next_due(self) -> float | None:
        """Return when the next one expires."""
        due = min((one.until for one in self._sent.values()), default=math.inf)
        return due if due < math.inf else None


# ---- writes of the leader before -----------------------------------------------------------------
#
# How a new leader takes over starting gangs: it marks each, before it decides.

ON_ITS_WAY = "on-its-way"
_YES = "yes"

# As many as a client has out at once. One after the other, a thousand gangs took ten seconds, in
# which nothing was admitted.
MOST_MARKED = 64


def on_its_way(workload: Json) -> Iterable[str]:
    """Index gangs that have been sent somewhere and are not there yet."""
    found = find((workload.get("status") or {}).get("conditions"), names.PLACEMENT)
    return () if found is None or found["reason"] == placement.COMMITTED else (_YES,)


def taken_over(view: View, epoch: int) -> Steps:
    """Put our mark on every gang that is on its way.

    One that is gone needs none. One that the API refuses in any form will not be changed by the
    leader before us either; it must not keep all others waiting.
    """
    writes = [
        Patch(Ref.to(workload), changes, "status")
        for workload in view.by(names.WORKLOAD, ON_ITS_WAY, _YES)
        if (changes := placement.stamped(workload, epoch)) is not None
    ]
    for first in range(0, len(writes), MOST_MARKED):
        results = yield Together(writes[first : first + MOST_MARKED], tells=True)
        for result in results:
            if isinstance(result, KubeError) and not isinstance(result, Invalid | NotFound):
                raise result
