"""The decoder: every field type, every fault, all faults at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from unisono.kinds.decode import Problem, Schema, decode, encode
from unisono.kinds.quantity import Quantity
from unisono.kinds.scalar import Duration, Timestamp


class Leaf(Schema, frozen=True, kw_only=True):
    name: Annotated[str, Meta(description="Its name.")]
    node_labels: Mapping[str, str] = {}


class Loose(Schema, frozen=True, kw_only=True):
    is_open: ClassVar[bool] = True

    known: int = 0


class Everything(Schema, frozen=True, kw_only=True):
    text: str = ""
    short: Annotated[str, Meta(min_length=1, max_length=3, pattern="^[a-z]*$")] = "a"
    number: int = 0
    small: Annotated[int, Meta(ge=0, le=9, description="One digit.")] | None = None
    above: Annotated[int, Meta(gt=0, lt=10)] = 1
    real: float = 0.0
    flag: bool = False
    choice: Literal["A", "B"] = "A"
    amount: Quantity | None = None
    moment: Timestamp | None = None
    length: Duration | None = None
    kept: Any = None
    leaf: Leaf | None = None
    leaves: tuple[Leaf, ...] = ()
    few: Annotated[tuple[int, ...], Meta(min_length=1, max_length=2)] = (1,)
    either: tuple[Leaf | str, ...] = ()
    port: int | str | None = None
    switch: bool | str | None = None
    amounts: Annotated[Mapping[str, Quantity], Meta(max_length=2)] = {}
    loose: Loose | None = None
    itself: Everything | None = None
    host_ip: str = msgspec.field(default="", name="hostIP")


def faults(raw: object, path: str = "") -> list[tuple[str, str]]:
    value, problems = decode(Everything, raw, path=path)
    assert (value is None) == bool(problems)
    return [(problem.path, problem.message) for problem in problems]


GOOD: dict[str, Any] = {
    "text": "x",
    "short": "abc",
    "number": -5,
    "small": 9,
    "above": 9,
    "real": 1.5,
    "flag": True,
    "choice": "B",
    "amount": "64Gi",
    "moment": "2026-01-31T12:00:00Z",
    "length": "5m",
    "kept": {"any": ["thing", None]},
    "leaf": {"name": "l", "nodeLabels": {"a.b/c": "d"}},
    "leaves": [{"name": "m"}],
    "few": [1, 2],
    "either": ["n", {"name": "o"}],
    "port": "http",
    "switch": True,
    "amounts": {"cpu": "1"},
    "loose": {"known": 3},
    "itself": {"itself": {"text": "deep"}},
    "hostIP": "10.0.0.1",
}


def test_a_good_object_is_built_and_written_out_again() -> None:
    value, problems = decode(Everything, GOOD)
    assert problems == []
    assert value is not None
    assert value.leaf == Leaf(name="l", node_labels={"a.b/c": "d"})
    assert value.either == ("n", Leaf(name="o"))
    assert value.amount is not None
    assert value.amount.units == 64 * 2**30
    assert value.itself is not None
    assert value.itself.itself is not None
    assert value.itself.itself.text == "deep"
    assert encode(value) == GOOD


def test_defaults_are_left_out_when_written() -> None:
    value, _ = decode(Everything, {"number": 0, "choice": "A", "text": "x"})
    assert value is not None
    assert encode(value) == {"text": "x"}


def test_null_counts_as_absent() -> None:
    value, problems = decode(Everything, dict.fromkeys(GOOD))
    assert problems == []
    assert value == Everything()


def test_null_for_a_required_field_is_a_fault() -> None:
    assert faults({"leaf": {"name": None}}) == [("leaf.name", "is required")]
    assert faults({"leaf": {}}) == [("leaf.name", "is required")]


def test_integers_may_be_written_as_floats_if_they_are_whole() -> None:
    value, _ = decode(Everything, {"number": 4.0})
    assert value is not None
    assert value.number == 4
    assert faults({"number": 4.5}) == [("number", "must be an integer, not the number 4.5")]


@pytest.mark.parametrize(
    ("raw", "path", "message"),
    [
        ({"text": 5}, "text", "must be a string, not the number 5; put it in quotes"),
        ({"text": True}, "text", "must be a string, not the boolean true; put it in quotes"),
        ({"text": []}, "text", "must be a string, not a list"),
        ({"short": ""}, "short", "must not be empty"),
        ({"short": "abcd"}, "short", "has 4 characters; at most 3 are allowed"),
        ({"short": "A"}, "short", '"A" does not match ^[a-z]*$'),
        ({"number": "5"}, "number", 'must be an integer, not the string "5"'),
        ({"number": True}, "number", "must be an integer, not the boolean true"),
        ({"number": 2**63}, "number", f"is {2**63}; it must be at most {2**31 - 1}"),
        ({"small": -1}, "small", "is -1; it must be at least 0"),
        ({"small": 10}, "small", "is 10; it must be at most 9"),
        ({"above": 0}, "above", "is 0; it must be at least 1"),
        ({"above": 10}, "above", "is 10; it must be at most 9"),
        ({"real": "x"}, "real", 'must be a number, not the string "x"'),
        ({"real": float("inf")}, "real", "must be a number, not the number inf"),
        ({"flag": "yes"}, "flag", 'must be true or false, not the string "yes"'),
        ({"choice": "C"}, "choice", 'must be one of "A", "B", not the string "C"'),
        ({"choice": 1}, "choice", 'must be one of "A", "B", not the number 1'),
        ({"choice": ["A"]}, "choice", 'must be one of "A", "B", not a list'),
        ({"amount": {}}, "amount", "must be a quantity such as 4, 500m or 64Gi, not an object"),
        ({"moment": 5}, "moment", "must be a time such as 2026-01-31T12:00:00Z, not the number 5"),
        ({"length": 5}, "length", "must be a duration such as 90s, 5m or 1h30m, not the number 5"),
        ({"leaf": "x"}, "leaf", 'must be an object, not the string "x"'),
        ({"leaves": {}}, "leaves", "must be a list, not an object"),
        ({"leaves": [None]}, "leaves[0]", "must be an object, not null"),
        ({"few": []}, "few", "has 0 items; at least 1 are needed"),
        ({"few": [1, 2, 3]}, "few", "has 3 items; at most 2 are allowed"),
        ({"either": [5]}, "either[0]", "must be an object or a string, not the number 5"),
        ({"port": 1.5}, "port", "must be an integer or a string, not the number 1.5"),
        ({"port": True}, "port", "must be an integer or a string, not the boolean true"),
        ({"switch": 1}, "switch", "must be a boolean or a string, not the number 1"),
        ({"amounts": []}, "amounts", "must be an object, not a list"),
        ({"amounts": {"a": 1, "b": 1, "c": 1}}, "amounts", "has 3 entries; at most 2 are allowed"),
        ({"loose": {"known": "x"}}, "loose.known", 'must be an integer, not the string "x"'),
    ],
)
def test_one_fault(raw: object, path: str, message: str) -> None:
    assert faults(raw) == [(path, message)]


def test_unknown_fields_are_named_with_a_hint() -> None:
    assert faults({"leaf": {"name": "l", "nodeLabel": {}}}) == [
        ("leaf.nodeLabel", 'unknown field; did you mean "nodeLabels"?')
    ]
    assert faults({"banana": None}) == [("banana", "unknown field")]
    assert faults({"host_ip": "x"}) == [("host_ip", 'unknown field; did you mean "hostIP"?')]


def test_open_objects_drop_what_they_do_not_know() -> None:
    value, problems = decode(Everything, {"loose": {"known": 1, "newer": {"a": 1}}})
    assert problems == []
    assert value is not None
    assert value.loose == Loose(known=1)


def test_all_faults_are_found_at_once_in_document_order() -> None:
    raw = {
        "leaves": [{"name": 1}, {"nam": "x"}, {"name": "ok", "nodeLabels": {"k": 2}}],
        "amounts": {"cpu": "many", "memory": "64GB"},
        "itself": {"small": -1},
        "nope": 1,
    }
    assert [path for path, _ in faults(raw, path="spec")] == [
        "spec.leaves[0].name",
        "spec.leaves[1].nam",
        "spec.leaves[1].name",
        "spec.leaves[2].nodeLabels[k]",
        "spec.amounts[cpu]",
        "spec.amounts[memory]",
        "spec.itself.small",
        "spec.nope",
    ]


@pytest.mark.parametrize("raw", [None, [], "text", 5, True])
def test_a_document_must_be_an_object(raw: object) -> None:
    ((path, message),) = faults(raw)
    assert path == ""
    assert message.startswith("must be an object, not")


def test_long_values_are_not_repeated_in_full() -> None:
    ((_, message),) = faults({"number": "x" * 1000})
    assert len(message) < 100


def test_problems_are_values() -> None:
    assert Problem("spec", "is required") == Problem(path="spec", message="is required")


def test_a_type_that_no_manifest_has_is_a_bug() -> None:
    class Wrong(Schema, frozen=True, kw_only=True):
        numbers: set[int]

    with pytest.raises(TypeError, match="cannot have a field of type"):
        decode(Wrong, {})


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(sorted(GOOD)) | st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(json)
def test_anything_gives_a_value_or_problems_and_never_an_exception(raw: object) -> None:
    value, problems = decode(Everything, raw)
    assert (value is None) == bool(problems)
    if value is not None:
        again, more = decode(Everything, encode(value))
        assert more == []
        assert again == value
