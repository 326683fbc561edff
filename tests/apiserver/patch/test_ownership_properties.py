"""What holds for any writes by any managers in any order."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.apiserver.patch.gadgets import API_VERSION, GADGET, gadget
from tests.apiserver.patch.strategies import gadgets, json_objects, json_values
from tests.support.effort import effort
from unisono.apiserver.errors import ApiError
from unisono.apiserver.objects import Json, copied
from unisono.apiserver.patch.apply import apply
from unisono.apiserver.patch.compare import object_claims, object_differences, tracked_fields
from unisono.apiserver.patch.field_set import Tree, difference, intersection, read_fields
from unisono.apiserver.patch.managed_fields import record_update
from unisono.apiserver.patch.merge_schema import merge_schema_of

pytestmark = pytest.mark.slow

GRAIN = merge_schema_of(GADGET)
TRACKED = tracked_fields(API_VERSION, "")


def _apply(live: Json | None, config: Json, manager: str, *, force: bool = False) -> Json:
    return apply(
        live,
        config,
        manager=manager,
        force=force,
        api_version=API_VERSION,
        subresource="",
        now=0,
        shape=GADGET,
    )


def _update(live: Json | None, new: Json, manager: str) -> Json:
    record_update(
        live,
        new,
        manager=manager,
        api_version=API_VERSION,
        subresource="",
        now=0,
        shape=GADGET,
    )
    return new


def _sets(obj: Json) -> list[tuple[str, Tree]]:
    return [
        (f"{entry['operation']} {entry['manager']}", entry["fieldsV1"])
        for entry in obj["metadata"].get("managedFields", ())
    ]


def _paths(value: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Return what is in an object, by the fields that lead to it."""
    found = {path: value}
    if isinstance(value, dict):
        for name, below in value.items():
            found |= _paths(below, (*path, f"f:{name}"))
    return found


def _has(tree: Tree, path: tuple[str, ...]) -> bool:
    here: Any = tree
    for key in path:
        here = here.get(key)
        if here is None:
            return False
    return not here or "." in here


steps = st.lists(
    st.tuples(st.sampled_from(["apply", "force", "update"]), st.sampled_from("abc"), gadgets()),
    min_size=1,
    max_size=6,
)


@effort(80)
@given(steps=steps)
def test_any_history(steps: list[tuple[str, str, Json]]) -> None:
    live: Json | None = None
    for op, manager, made in steps:
        before = copied(live), copied(made)
        after = None
        if op == "update":
            after = _update(live, copied(made), manager)
        else:
            with suppress(ApiError):
                after = _apply(live, made, manager, force=op == "force")
        assert (live, made) == before
        if after is None:
            continue
        check_owners(live, after)
        if op != "update":
            check_applied(made, after, manager)
            # An object without owners is as good as never tracked.
            if _sets(after):
                assert _apply(after, made, manager) == after, "applying again changes something"
        live = after


def check_owners(live: Json | None, after: Json) -> None:
    """Every set is well formed and not empty, and a value that went has no owner."""
    there = _paths(after)
    gone = [
        path
        for path, value in _paths(live or {}).items()
        if path not in there and not isinstance(value, (dict, list))
    ]
    for manager, fields in _sets(after):
        assert fields, manager
        assert read_fields(fields) == fields, manager
        for path in gone:
            assert not _has(fields, path), f"{manager} owns {path}, which is gone"


def check_applied(config: Json, after: Json, manager: str) -> None:
    """The object has what was applied, and the manager owns exactly that."""
    claimed = object_claims(GRAIN, config, TRACKED)
    mine = dict(_sets(after)).get(f"Apply {manager}", {})
    assert mine == claimed
    changed, _ = object_differences(GRAIN, after, config, TRACKED)
    assert intersection(changed, claimed) == {}, "a claimed field has another value"


@effort(80)
@given(first=gadgets(), second=gadgets())
def test_force_only_decides_conflicts(first: Json, second: Json) -> None:
    live = _apply(None, first, "a")
    forced = _apply(live, second, "b", force=True)
    before, after = (dict(_sets(obj)).get("Apply a", {}) for obj in (live, forced))
    if difference(before, after):
        with pytest.raises(ApiError, match="Apply failed with"):
            _apply(live, second, "b")
    else:
        assert _apply(live, second, "b") == forced


@effort(80)
@given(old=gadgets(), new=gadgets())
def test_an_update_owns_what_it_changed(old: Json, new: Json) -> None:
    live = _update(None, old, "a")
    after = _update(live, copied(new), "b")
    changed, removed = object_differences(GRAIN, live, after, TRACKED)
    sets = dict(_sets(after))
    assert sets.get("Update b", {}) == changed
    kept = sets.get("Update a", {})
    assert intersection(kept, changed) == {}
    assert intersection(kept, removed) == {}


@effort(150)
@given(live=json_objects(), config=json_objects(), metadata=json_values(), spec=json_values())
def test_any_json_is_applied_or_refused(live: Json, config: Json, metadata: Any, spec: Any) -> None:
    wild = {**config, "metadata": metadata, "spec": spec}
    tame = gadget(spec)
    before = copied([live, wild, tame])
    for target in (None, {**live, "metadata": {}}, gadget(spec)):
        for attempt in (wild, tame):
            with suppress(ApiError):
                _apply(target, attempt, "a", force=True)
    assert [live, wild, tame] == before


@effort(150)
@given(old=json_objects(), new=json_objects(), metadata=json_values(), spec=json_values())
def test_any_json_is_recorded_or_refused(old: Json, new: Json, metadata: Any, spec: Any) -> None:
    wild = {**new, "metadata": metadata, "spec": spec}
    for before in (None, {**old, "metadata": {}}, _update(None, gadget({"text": "a"}), "a")):
        with suppress(ApiError):
            _update(before, copied(wild), "b")
        with suppress(ApiError):
            _update(before, gadget(spec, managedFields=metadata), "b")
