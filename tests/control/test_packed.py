"""Objects of a view: read when somebody looks, and not kept twice."""

from __future__ import annotations

import orjson

from unisono.control.packed import Packing
from unisono.kube.form import Identity, Key

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "a",
        "namespace": "default",
        "uid": "u",
        "resourceVersion": "7",
        "managedFields": [{"manager": "somebody"}],
    },
}
WITHOUT = {**POD, "metadata": {k: v for k, v in POD["metadata"].items() if k != "managedFields"}}  # type: ignore[attr-defined]  # a dictionary


def test_bytes_of_a_store_in_this_process_are_used_as_they_are() -> None:
    kept = orjson.dumps(POD)
    asked: list[Identity] = []

    def stored(identity: Identity) -> bytes | None:
        asked.append(identity)
        return kept

    packing = Packing("v1", "Pod", stored)
    packed = packing.decode(bytes(bytearray(kept)))
    assert asked == [Identity(Key("default", "a"), "u", "7")]
    assert packing.unpack(packed) == WITHOUT
    assert packed.raw is kept


def test_what_the_store_no_longer_has_is_kept_without_what_nobody_reads() -> None:
    packing = Packing("v1", "Pod", lambda _: None)
    packed = packing.decode(orjson.dumps(POD))
    assert packing.unpack(packed) == WITHOUT
    assert orjson.loads(packed.raw) == WITHOUT
