"""Whatever is written in one version comes back unchanged after having been in another."""

from __future__ import annotations

from copy import deepcopy
from itertools import permutations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.apiserver.rest.shaped import objects_of
from unisono.apiserver.rest.versions import convert
from unisono.kinds.shapes.served import Served, served_kinds


def _pairs() -> list[tuple[Served, Served]]:
    by_key: dict[str, list[Served]] = {}
    for served in served_kinds():
        # Both faces of an event are one kind.
        key = "events" if served.plural == "events" else served.key
        by_key.setdefault(key, []).append(served)
    return [pair for versions in by_key.values() for pair in permutations(versions, 2)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "other"),
    _pairs(),
    ids=lambda served: f"{served.plural}.{served.api_version}",
)
@given(data=st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_there_and_back(one: Served, other: Served, data: st.DataObject) -> None:
    obj = data.draw(objects_of(one))
    before = deepcopy(obj)
    there = convert(other.key, obj, other.version)
    assert obj == before, "the original is not touched"
    assert there["apiVersion"] == other.api_version
    assert convert(one.key, there, one.version) == before
