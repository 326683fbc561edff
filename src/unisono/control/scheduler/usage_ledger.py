"""The usage of accounts, users and QOS in a ConfigMap: fair shares survive a restart.

Only with a SchedulingPolicy (spec priority §3). The scheduler reads it before any workload;
this controller writes it down now and then, if anything ran since. What was used between the last
time and a crash is counted again for workloads that still run, and lost for ended ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from unisono.control import names
from unisono.control.actions import Again, Create, Json, Note, Patch, Ref, Steps
from unisono.control.controller import own_key
from unisono.control.view import View
from unisono.engine.model.multifactor import UsageRecord
from unisono.engine.model.names import Instant
from unisono.engine.ordering.priority_order import multifactor_of
from unisono.engine.state.cluster import ClusterState
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

NAME = "unisono-usage"
FIELD = "usage.json"
# A negligible share of a week's half-life, for one write.
EVERY_S = 300.0
# A ConfigMap may have a megabyte; the smallest of more are forgotten.
MOST_RECORDS = 5000


class _Written(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in the ConfigMap."""

    records: tuple[tuple[str, str, float, int], ...]  # owner, what, amount, at (ms)


class UsageLedger:
    """Writes the ConfigMap; `place` is its namespace and name."""

    name = "usage-ledger"
    watches: Sequence[Kind] = (names.CONFIG_MAP,)
    routes_by_name = True

    def __init__(self, state: Callable[[], ClusterState], place: Key) -> None:
        """Take what returns the engine's state; the scheduler may have built it anew."""
        self._state = state
        self._place = place
        self._written: int | None = None  # how much had happened when it was written

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """Our own ConfigMap, if it was deleted or changed."""
        if own_key(obj) == self._place:
            yield self._place

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Write down what was used, if that is more than time alone tells."""
        multifactor = multifactor_of(self._state())
        if multifactor is None:
            return
        obj = view.get(names.CONFIG_MAP, key.name, key.namespace)
        happened = multifactor.usage.moves
        if obj is None or multifactor.running or happened != self._written:
            written = _encoded(multifactor.usage.settled(Instant(int(now) * 1000)))
            if obj is None:
                yield Create(_config_map(key, written))
            elif (obj.get("data") or {}).get(FIELD) != written:
                yield Patch(Ref.to(obj), {"data": {FIELD: written}})
            self._written = happened
        yield Again(now + EVERY_S)


def recorded_usage(view: View, place: Key) -> tuple[tuple[UsageRecord, ...], Note | None]:
    """Return what was written down; and a complaint if that cannot be read."""
    obj = view.get(names.CONFIG_MAP, place.name, place.namespace)
    text = ((obj or {}).get("data") or {}).get(FIELD)
    if obj is None or text is None:
        return (), None
    try:
        read = msgspec.json.decode(text, type=_Written)
    except msgspec.MsgspecError as error:
        message = f"The recorded usage of accounts cannot be read and starts from zero: {error}"
        return (), Note(Ref.to(obj), "UsageUnreadable", message, "Warning")
    return tuple(
        UsageRecord(owner=owner, what=what, amount=amount, at=Instant(at))
        for owner, what, amount, at in read.records
    ), None


def _encoded(records: Sequence[UsageRecord]) -> str:
    largest = sorted(records, key=lambda one: (-one.amount, one.owner, one.what))[:MOST_RECORDS]
    rows = sorted((one.owner, one.what, round(one.amount, 3), int(one.at)) for one in largest)
    return msgspec.json.encode(_Written(records=tuple(rows))).decode()


def _config_map(key: Key, written: str) -> Json:
    return {
        "apiVersion": names.CONFIG_MAP.api_version,
        "kind": names.CONFIG_MAP.kind,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": {"app.kubernetes.io/managed-by": "unisono"},
        },
        "data": {FIELD: written},
    }
