"""Objects of a view: unpacked when they are read, and not kept twice."""

from __future__ import annotations

from typing import NamedTuple

import orjson

from unisono.control.view import MOST_KEPT_BYTES, Packing
from unisono.kube.form import Identity, Key

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "train",
        "namespace": "default",
        "uid": "u1",
        "resourceVersion": "7",
        "managedFields": [{"manager": "kubectl"}],
    },
}
WITHOUT = {**POD, "metadata": {k: v for k, v in POD["metadata"].items() if k != "managedFields"}}  # type: ignore[attr-defined]  # a dictionary


class _Record(NamedTuple):
    data: bytes
    name: str
    uid: str


def test_bytes_of_a_store_in_this_process_are_used_as_they_are() -> None:
    kept = _Record(orjson.dumps(POD), "".join(("tra", "in")), "".join(("u", "1")))
    asked: list[Identity] = []

    def stored(identity: Identity) -> _Record | None:
        asked.append(identity)
        return kept

    packing = Packing("v1", "Pod", stored)
    packed = packing.decode(bytes(bytearray(kept.data)))
    assert asked == [Identity(Key("default", "train"), "u1", "7")]
    assert packing.unpack(packed) == WITHOUT
    assert packed.raw is kept.data
    metadata = packing.unpack(packed)["metadata"]
    assert (metadata["name"], metadata["uid"]) == ("train", "u1")
    assert metadata["name"] is packed.identity.key.name is kept.name
    assert metadata["uid"] is packed.identity.uid is kept.uid


def test_what_was_unpacked_can_be_let_go() -> None:
    packing = Packing("v1", "Pod")
    packed = packing.decode(orjson.dumps(POD))
    first = packing.unpack(packed)
    assert packing.unpack(packed) is first
    packing.forget()
    assert packing.unpack(packed) is not first
    assert packing.unpack(packed) == first


def test_objects_gone_from_the_store_are_kept_without_unread_fields() -> None:
    packing = Packing("v1", "Pod", lambda _: None)
    packed = packing.decode(orjson.dumps(POD))
    assert packing.unpack(packed) == WITHOUT
    assert orjson.loads(packed.raw) == WITHOUT


def test_a_large_object_is_read_anew_each_time() -> None:
    packing = Packing("v1", "Pod")
    small, large = packing.pack(POD), packing.pack({**POD, "x": "x" * MOST_KEPT_BYTES})
    assert packing.unpack(small) is packing.unpack(small)
    assert packing.unpack(large) is not packing.unpack(large)
