"""Server-side apply: claims, conflicts, removal and shared ownership."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.patch.gadgets import API_VERSION, GADGET, gadget
from tests.apiserver.patch.test_managed_fields import entries, update
from unisono.apiserver.errors import ApiError
from unisono.apiserver.objects import Json, copied
from unisono.apiserver.patch.apply import apply
from unisono.kinds.shapes.shape import Shape


def applied(
    live: Json | None, config: Json, manager: str = "a", *, now: float = 0.0, **more: Any
) -> Json:
    """Apply and return the object; neither argument may change."""
    before = copied(live), copied(config)
    try:
        return apply(
            live,
            config,
            manager=manager,
            force=more.pop("force", False),
            api_version=more.pop("api_version", API_VERSION),
            subresource=more.pop("subresource", ""),
            now=now,
            shape=more.pop("shape", GADGET),
            **more,
        )
    finally:
        assert (live, config) == before


def refused(live: Json | None, config: Json, manager: str = "b", **more: Any) -> ApiError:
    """Apply, and return the refusal."""
    with pytest.raises(ApiError) as refusal:
        applied(live, config, manager, **more)
    return refusal.value


def conflicts(refusal: ApiError) -> list[tuple[str, str]]:
    """Return the fields and owners that a refusal names."""
    assert (refusal.code, refusal.reason) == (409, "Conflict")
    assert {cause.reason for cause in refusal.causes} == {"FieldManagerConflict"}
    return [(cause.field, cause.message) for cause in refusal.causes]


def test_a_new_object() -> None:
    spec = {"text": "a", "set": ["x"], "ports": [{"port": 80}], "map": {}, "pairs": {"k": {}}}
    made = applied(None, gadget(spec, labels={"l": "1"}))
    assert made["spec"] == spec
    assert made["metadata"]["managedFields"] == [
        {
            "manager": "a",
            "operation": "Apply",
            "apiVersion": API_VERSION,
            "time": "1970-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {"f:l": {}}},
                "f:spec": {
                    "f:text": {},
                    "f:set": {'v:"x"': {}},
                    "f:ports": {
                        'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}},
                    },
                    "f:map": {},
                    "f:pairs": {"f:k": {}},
                },
            },
        }
    ]


def test_again_changes_nothing() -> None:
    config = gadget({"text": "a", "ports": [{"port": 1}]}, labels={"l": "1"})
    made = applied(None, config)
    assert applied(made, config, now=99) == made


def test_what_is_no_longer_applied_goes() -> None:
    config = gadget(
        {"text": "a", "set": ["x", "y"], "ports": [{"port": 1, "x": "1"}, {"port": 2}], "number": 1}
    )
    made = applied(None, config)
    made["spec"]["ports"][0]["protocol"] = "TCP"  # a default, which has no owner
    less = applied(made, gadget({"set": ["y"], "ports": [{"port": 2}]}))
    assert less["spec"] == {"set": ["y"], "ports": [{"port": 2}]}


def test_what_others_own_stays() -> None:
    first = applied(None, gadget({"text": "a", "map": {"x": "1"}, "set": ["s"]}), "a")
    second = applied(first, gadget({"text": "a", "map": {"y": "2"}}), "b")
    assert entries(second)["b"] == {"f:spec": {"f:text": {}, "f:map": {"f:y": {}}}}
    third = applied(second, gadget({}), "a")
    assert third["spec"] == {"text": "a", "map": {"y": "2"}}
    assert set(entries(third)) == {"a", "b"}
    assert entries(third)["a"] == {"f:spec": {}}


def test_what_has_no_owner_stays_but_not_below_what_goes() -> None:
    made = applied(None, gadget({"nested": {"p": "1"}, "ports": [{"port": 1}]}))
    made["spec"]["nested"]["q"] = {"r": "unowned"}
    made["spec"]["ports"][0]["y"] = "unowned"
    made["spec"]["number"] = 5
    assert applied(made, gadget({"text": "a"}))["spec"] == {"text": "a", "number": 5}


def test_an_item_goes_with_what_an_updater_put_into_it() -> None:
    """Only an owner of the item itself keeps it."""
    made = applied(None, gadget({"ports": [{"port": 1}, {"port": 2}]}))
    touched = copied(made)
    touched["spec"]["ports"][0]["y"] = "1"
    update(made, touched, "u")
    less = applied(touched, gadget({"ports": [{"port": 2}]}))
    assert less["spec"]["ports"] == [{"port": 2}]
    assert set(entries(less)) == {"a"}


def test_a_conflict_names_every_field_and_owner() -> None:
    live = applied(
        None,
        gadget({"text": "a", "ports": [{"port": 80, "x": "1"}]}, labels={"app.x/y": "1"}),
        "first",
    )
    changed = copied(live)
    changed["spec"]["number"] = 1
    update(live, changed, "second", subresource="")
    config = gadget(
        {"text": "b", "number": 2, "ports": [{"port": 80, "x": "2"}]}, labels={"app.x/y": "2"}
    )
    refusal = refused(changed, config)
    assert conflicts(refusal) == [
        (".metadata.labels.app.x/y", 'conflict with "first"'),
        ('.spec.ports[port=80,protocol="TCP"].x', 'conflict with "first"'),
        (".spec.text", 'conflict with "first"'),
        (".spec.number", f'conflict with "second" using {API_VERSION}'),
    ]
    assert refusal.message == (
        'Apply failed with 4 conflicts: conflicts with "first":\n'
        "- .metadata.labels.app.x/y\n"
        '- .spec.ports[port=80,protocol="TCP"].x\n'
        "- .spec.text\n"
        f'conflicts with "second" using {API_VERSION}:\n'
        "- .spec.number"
    )


def test_one_conflict_is_told_in_one_line() -> None:
    live = applied(None, gadget({"text": "a"}), "first")
    message = refused(live, gadget({"text": "b"})).message
    assert message == 'Apply failed with 1 conflict: conflict with "first": .spec.text'


def test_force_takes_the_field() -> None:
    live = applied(None, gadget({"text": "a", "number": 1}), "a")
    forced = applied(live, gadget({"text": "b"}), "b", force=True)
    assert forced["spec"] == {"text": "b", "number": 1}
    assert entries(forced) == {
        "a": {"f:spec": {"f:number": {}}},
        "b": {"f:spec": {"f:text": {}}},
    }


def test_an_atomic_value_has_one_owner() -> None:
    live = applied(None, gadget({"whole": {"p": "1", "q": "1"}, "list": ["a"]}), "a")
    refusal = refused(live, gadget({"whole": {"p": "1"}, "list": ["a", "b"]}))
    assert [field for field, _ in conflicts(refusal)] == [".spec.list", ".spec.whole"]
    forced = applied(live, gadget({"whole": {"p": "1"}}), "b", force=True)
    assert forced["spec"]["whole"] == {"p": "1"}


def test_values_without_a_schema() -> None:
    live = applied(None, gadget({"open": {"a": {"b": 1}, "l": [1]}, "anything": {"x": 1}}), "a")
    both = applied(live, gadget({"open": {"a": {"c": 2}}, "anything": {"y": 2}}), "b")
    assert both["spec"] == {
        "open": {"a": {"b": 1, "c": 2}, "l": [1]},
        "anything": {"x": 1, "y": 2},
    }
    assert entries(both)["b"] == {
        "f:spec": {"f:open": {"f:a": {".": {}, "f:c": {}}}, "f:anything": {"f:y": {}}}
    }
    refusal = refused(both, gadget({"open": {"l": [2]}}), "c")
    assert conflicts(refusal) == [(".spec.open.l", 'conflict with "a"')]


def test_null_is_a_value() -> None:
    made = applied(None, gadget({"nullable": None}))
    assert made["spec"] == {"nullable": None}
    assert entries(made) == {"a": {"f:spec": {"f:nullable": {}}}}
    refusal = refused(made, gadget({"nullable": "text"}))
    assert conflicts(refusal) == [(".spec.nullable", 'conflict with "a"')]


def test_null_does_not_remove_what_others_put_there() -> None:
    live = applied(None, gadget({"map": {"x": "1"}}), "a")
    assert applied(live, gadget({"map": None}), "b")["spec"] == {"map": {"x": "1"}}


def test_what_becomes_empty_but_is_still_owned() -> None:
    made = applied(None, gadget({"open": {"m": {"k": 1}}, "map": {"k": "1"}}), "a")
    both = applied(made, gadget({"open": {"m": {}}, "map": {}}), "b")
    less = applied(both, gadget({}), "a")
    assert less["spec"] == {"open": {"m": {}}}


def test_what_the_configuration_has_empty_stays_empty() -> None:
    made = applied(None, gadget({"text": "a", "nested": {"p": "1"}}))
    less = applied(made, gadget({"nested": {}}))
    assert less["spec"] == {"nested": {}}
    assert applied(less, gadget({"nested": {}})) == less


def test_an_untracked_object_gets_a_first_owner() -> None:
    live = gadget({"text": "a", "number": 1}, labels={"l": "1"})
    live["status"] = {"text": "up"}
    refusal = refused(live, gadget({"text": "b"}))
    assert conflicts(refusal) == [
        (".spec.text", f'conflict with "before-first-apply" using {API_VERSION}')
    ]
    forced = applied(live, gadget({"text": "b"}), "b", force=True, now=60)
    assert entries(forced) == {
        "b": {"f:spec": {"f:text": {}}},
        "before-first-apply": {
            "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
            "f:spec": {".": {}, "f:number": {}},
        },
    }
    assert [entry["operation"] for entry in forced["metadata"]["managedFields"]] == [
        "Apply",
        "Update",
    ]


def test_a_later_joint_owner_has_no_time() -> None:
    """The set is new, but nothing in the object changed; a real server writes no time either."""
    live = applied(None, gadget({"text": "a"}), "a")
    both = applied(live, gadget({"text": "a"}), "b", now=60)
    listed = both["metadata"]["managedFields"]
    assert [(entry["manager"], entry.get("time")) for entry in listed] == [
        ("b", None),
        ("a", "1970-01-01T00:00:00Z"),
    ]
    moved = applied(both, gadget({"text": "a", "number": 1}), "b", now=60)
    assert moved["metadata"]["managedFields"][1]["time"] == "1970-01-01T00:01:00Z"


def test_an_empty_configuration_owns_nothing() -> None:
    live = applied(None, gadget({"text": "a"}), "a")
    empty = applied(live, gadget(), "a")
    assert "spec" not in empty
    assert empty["metadata"] == {"name": "one"}


def test_the_status_is_applied_apart() -> None:
    live = applied(None, gadget({"text": "a"}), "a")
    config = {**gadget({"text": "ignored"}), "status": {"text": "up"}}
    done = applied(live, config, "a", subresource="status", force=True)
    assert entries(done) == {
        "a": {"f:spec": {"f:text": {}}},
        "a/status": {"f:status": {"f:text": {}}},
    }
    on_main = applied(done, {**gadget({"text": "a"}), "status": {"text": "down"}}, "a")
    assert entries(on_main) == entries(done)


def test_the_place_of_items() -> None:
    def order(live: list[str], config: list[str]) -> list[Any]:
        made = applied(None, gadget({"set": live}), "a")
        result: list[Any] = applied(made, gadget({"set": config}), "b")["spec"]["set"]
        return result

    assert order(["a", "b"], ["c"]) == ["a", "b", "c"]
    assert order(["a", "b"], ["b", "a"]) == ["b", "a"]
    assert order(["a", "b", "c"], ["c", "d", "a"]) == ["b", "c", "d", "a"]
    assert order(["a", "b"], ["c", "b"]) == ["a", "c", "b"]


def test_a_live_item_that_is_there_twice_is_replaced() -> None:
    live = update(None, gadget({"ports": [{"port": 1, "x": "1"}, {"port": 1, "x": "2"}]}), "u")
    done = applied(live, gadget({"ports": [{"port": 1, "y": "1"}]}), "a", force=True)
    assert done["spec"]["ports"] == [{"port": 1, "y": "1"}]


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ({"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}, "two items"),
        ({"set": ["a", "a"]}, "two items"),
        ({"ports": ["text"]}, "not an object"),
        ({"ports": [None]}, "not an object"),
        ({"set": [{"a": 1}]}, "not a plain value"),
        ({"set": [None]}, "not a plain value"),
    ],
)
def test_items_that_cannot_be_told_apart(spec: Json, word: str) -> None:
    for live in (None, applied(None, gadget({"text": "a"}))):
        refusal = refused(live, gadget(spec))
        assert refusal.code == 422
        assert word in refusal.message


def test_items_without_keys_are_left_to_validation() -> None:
    made = applied(None, gadget({"ports": [{"x": "1"}]}))
    assert made["spec"]["ports"] == [{"x": "1"}]


@pytest.mark.parametrize("config", [None, 5, [], {"metadata": 5}, {"metadata": None}])
def test_a_configuration_is_an_object(config: Any) -> None:
    assert refused(None, config).code == 400


@pytest.mark.parametrize("given", [[], [{}], [{"manager": "x"}]])
def test_managed_fields_cannot_be_applied(given: Any) -> None:
    assert refused(None, gadget({}, managedFields=given)).code == 400


def test_a_resource_version_comes_through() -> None:
    live = applied(None, gadget({"text": "a"}))
    live["metadata"]["resourceVersion"] = "7"
    assert applied(live, gadget({"text": "a"}))["metadata"]["resourceVersion"] == "7"
    stale = applied(live, gadget({"text": "a"}, resourceVersion="6"))
    assert stale["metadata"]["resourceVersion"] == "6"


def test_an_entry_from_before_the_schema_changed() -> None:
    live = applied(None, gadget({"map": {"x": "1"}}), "a")
    entry = live["metadata"]["managedFields"][0]
    entry["fieldsV1"] = {"f:spec": {"f:whole": {"f:p": {}}}}
    live["spec"] = {"whole": {"p": "1"}}
    refusal = refused(live, gadget({"whole": {"p": "1", "q": "2"}}))
    assert conflicts(refusal) == [(".spec.whole", 'conflict with "a"')]


def _translate(obj: Any, version: str) -> tuple[Json, Shape] | None:
    """Fields that v1 calls `text` are `words` in v2, and v0 is no longer served."""
    names = {"v1": ("words", "text"), "v2": ("text", "words")}.get(version.rpartition("/")[2])
    if names is None:
        return None
    spec = dict(obj.get("spec", {}))
    if names[0] in spec:
        spec[names[1]] = spec.pop(names[0])
    return {**obj, "spec": spec}, GADGET if names[1] == "text" else _WORDS


_WORDS = Shape({"type": "object", "properties": {"spec": {"type": "object"}}}, lambda name: {})
_V2: Json = {"api_version": "patch.example.com/v2", "shape": _WORDS, "translate": _translate}


def test_a_conflict_with_another_version() -> None:
    live = applied(None, gadget({"text": "a"}), "a")
    live["spec"] = {"words": "a"}
    refusal = refused(live, gadget({"words": "b"}), "b", **_V2)
    assert conflicts(refusal) == [(".spec.text", 'conflict with "a"')]
    forced = applied(live, gadget({"words": "b"}), "b", force=True, **_V2)
    assert entries(forced) == {"b": {"f:spec": {"f:words": {}}}}


def test_a_manager_that_moves_to_another_version() -> None:
    live = applied(None, gadget({"text": "a", "number": 1}), "a")
    live["spec"] = {"words": "a", "number": 1}
    same = applied(live, gadget({"words": "a", "number": 1}), "a", **_V2)
    assert same["spec"] == {"words": "a", "number": 1}
    assert entries(same) == {"a": {"f:spec": {"f:words": {}, "f:number": {}}}}
    less = applied(live, gadget({"number": 1}), "a", **_V2)
    assert less["spec"] == {"number": 1}


def test_what_was_applied_in_a_version_that_is_gone_stays() -> None:
    live = applied(None, gadget({"text": "a", "number": 1}), "a")
    live["metadata"]["managedFields"][0]["apiVersion"] = "patch.example.com/v0"
    live["spec"] = {"words": "a", "number": 1}
    less = applied(live, gadget({"number": 1}), "a", **_V2)
    assert less["spec"] == {"words": "a", "number": 1}


def test_objects_without_anything() -> None:
    made = applied(None, {"spec": {"text": "a"}})
    assert applied(made, {})["metadata"] == {}


def test_endless_nesting_is_refused() -> None:
    deep: Json = {}
    for _ in range(5000):
        deep = {"a": deep}
    config = gadget({"open": deep})
    with pytest.raises(ApiError) as refusal:
        apply(
            None,
            config,
            manager="a",
            force=False,
            api_version=API_VERSION,
            subresource="",
            now=0,
            shape=GADGET,
        )
    assert refusal.value.code == 400
