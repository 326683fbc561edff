"""Whatever is sent, a strategy answers: it never breaks."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.apiserver.rest.shaped import objects_of
from tests.apiserver.surroundings import Around, served_as
from unisono.apiserver.builtin import STRATEGIES
from unisono.apiserver.errors import ApiError, Cause
from unisono.kinds.shapes.served import served_kinds

KEYS = sorted(set(STRATEGIES) & {served.key for served in served_kinds()})
LEAF = st.none() | st.booleans() | st.integers(-2, 70000) | st.sampled_from(["", "a", "-1", "1Gi"])


def tree(names: list[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        LEAF,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(names), inner, max_size=4)
        ),
        max_leaves=12,
    )


NAMES = [
    "spec", "template", "metadata", "labels", "containers", "initContainers", "volumes", "name",
    "image", "resources", "limits", "requests", "cpu", "selector", "matchLabels", "ports", "port",
    "tolerations", "schedulingGates", "jobTemplate", "schedule", "versions", "names", "kind",
    "taints", "capacity", "data", "rules", "subjects", "roleRef", "affinity", "nodeAffinity",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
@given(data=st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_defaults_take_anything(key: str, data: st.DataObject) -> None:
    served = served_as(key)
    body = data.draw(
        st.dictionaries(
            st.sampled_from([*served.shape.names, "spec", "status"]), tree(NAMES), max_size=4
        )
    )
    obj = {**body, "metadata": {"name": "it", "namespace": "default", "uid": "u"}}
    strategy = STRATEGIES[key]
    try:
        strategy.prepare_create(obj, Around())
    except ApiError:
        return
    strategy.default(obj)
    once = deepcopy(obj)
    strategy.default(obj)
    assert obj == once, "filling in twice changes nothing"


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
@given(data=st.data())
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_checks_take_whatever_the_schema_takes(key: str, data: st.DataObject) -> None:
    served = served_as(key)
    strategy = STRATEGIES[key]
    made = []
    for _ in range(2):
        obj = data.draw(objects_of(served))
        obj["metadata"] = {"name": "it", "namespace": "default", "uid": "u"}
        try:
            strategy.prepare_create(obj, Around())
            strategy.default(obj)
            causes = list(strategy.check(obj, None, Around()))
        except ApiError:
            return
        assert all(isinstance(cause, Cause) for cause in causes)
        made.append(obj)
    old, new = made
    try:
        strategy.prepare_update(new, old, Around())
        strategy.default(new)
        list(strategy.check(new, old, Around()))
        strategy.generation_moves(new, old)
    except ApiError:
        return
