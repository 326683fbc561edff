"""Objects that are kept as dictionaries: many small ones, and no large one."""

from __future__ import annotations

import orjson

from unisono.apiserver.storage.record import MOST_KNOWN_BYTES, DecodedCache, Record


def _record(name: str, size: int) -> Record:
    metadata = {"name": name}
    obj = {"metadata": metadata, "data": "x" * size}
    return Record(("/configmaps", "default", name), 1, orjson.dumps(obj), metadata)


def test_a_large_object_is_read_anew_each_time() -> None:
    known = DecodedCache()
    small, large = _record("small", 10), _record("large", MOST_KNOWN_BYTES)
    assert known.of(small) is known.of(small)
    assert known.of(large) is not known.of(large)
    assert known.of(large)["data"] == "x" * MOST_KNOWN_BYTES


def test_an_object_that_grew_is_not_known_as_it_was() -> None:
    known = DecodedCache()
    known.of(_record("a", 10))
    assert len(known.of(_record("a", MOST_KNOWN_BYTES))["data"]) == MOST_KNOWN_BYTES
