"""YAML as Kubernetes reads it, and what it may cost."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from unisono.kinds.yaml_values import MAX_DEPTH, Unreadable, plain_value, yaml_documents


def load(text: str) -> Any:
    (value,) = yaml_documents(text)
    return value


def outcome(text: str) -> str:
    """Read a text; return why it was refused, or nothing."""
    try:
        list(yaml_documents(text))
    except Unreadable as error:
        return str(error)
    return ""


def refusal(text: str) -> str:
    with pytest.raises(Unreadable) as caught:
        list(yaml_documents(text))
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("Yes", True),
        ("on", True),
        ("y", True),
        ("OFF", False),
        ("n", False),
        ("no", False),
        ("tRue", "tRue"),
        ("null", None),
        ("~", None),
        ("", None),
        ("0", 0),
        ("12", 12),
        ("-12", -12),
        ("+12", 12),
        ("1_000", 1000),
        ("0644", 420),
        ("0o644", 420),
        ("0x1F", 31),
        ("0b101", 5),
        ("08", 8.0),  # no octal number, so what JSON would make of it
        ("0o", "0o"),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("1E3", 1000.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("12:30", "12:30"),  # not 750, as YAML 1.1 has it
        ("2026-01-31", "2026-01-31"),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
        ("64Gi", "64Gi"),
        ("500m", "500m"),
        ("1.2.3", "1.2.3"),
        ("-", "-"),
        (".", "."),
        ("...", "..."),
        ("9223372036854775807", 2**63 - 1),
        ("18446744073709551616", float(2**64)),
        ("1" * 500, "1" * 500),
    ],
)
def test_plain_scalars(text: str, value: object) -> None:
    read = plain_value(text)
    assert read == value
    assert type(read) is type(value)


def test_infinity_and_not_a_number_are_floats() -> None:
    assert plain_value(".inf") == math.inf
    assert plain_value("-.INF") == -math.inf
    assert math.isnan(plain_value(".nan"))


def test_quotes_and_tags_decide_the_type() -> None:
    assert load("[\"1\", '1', !!str 1, !!int '1', !!float 1, !!bool 'yes', !!null '']") == [
        "1",
        "1",
        "1",
        1,
        1,
        True,
        None,
    ]
    assert load("a: |\n  true\n") == {"a": "true\n"}
    assert "does not fit its tag !!int" in refusal("!!int x")
    assert "does not fit its tag !!int" in refusal("!!int 'true'")
    assert "!!binary" in refusal("!!binary aGk=").replace("tag:yaml.org,2002:", "!!")
    assert "not supported" in refusal("!python/object:os.system {}")
    assert "not supported" in refusal("a: !!set {x}")
    assert "not supported" in refusal("!custom [1]")


def test_many_documents() -> None:
    assert list(yaml_documents("a: 1\n---\n---\n# only a comment\n---\nb: 2\n...\n")) == [
        {"a": 1},
        None,
        None,
        {"b": 2},
    ]
    assert list(yaml_documents("")) == []
    assert list(yaml_documents("# nothing\n")) == []


def test_aliases_in_moderation_work() -> None:
    assert load("a: &x {k: [1]}\nb: *x\nc: [*x, *x]") == {
        "a": {"k": [1]},
        "b": {"k": [1]},
        "c": [{"k": [1]}, {"k": [1]}],
    }
    assert load("- &a one\n- &a two\n- *a") == ["one", "two", "two"]


def test_merge_keys() -> None:
    text = "base: &b {u: 1, v: 2}\nmore: &m {v: 3, w: 4}\n"
    assert load(text + "made: {<<: *b, v: 9}")["made"] == {"u": 1, "v": 9}
    assert load(text + "made: {v: 9, <<: *b}")["made"] == {"u": 1, "v": 9}
    assert load(text + "made: {<<: [*b, *m]}")["made"] == {"u": 1, "v": 2, "w": 4}
    assert load('made: {"<<": 1}')["made"] == {"<<": 1}
    assert "merge key" in refusal("made: {<<: 5}")


def test_anchors_belong_to_one_document() -> None:
    assert "has no anchor" in refusal("a: &x 1\n---\nb: *x")
    assert "found undefined alias" in refusal("b: *x") or "has no anchor" in refusal("b: *x")


def test_an_anchor_cannot_contain_itself() -> None:
    assert "inside its own anchor" in refusal("a: &x [*x]")
    assert "inside its own anchor" in refusal("a: &x {b: {c: *x}}")


def test_keys_are_strings_and_stand_once() -> None:
    assert refusal("a: 1\nb: 2\na: 3") == (
        'line 3, column 1: key "a" stands twice in the same mapping'
    )
    assert refusal("{8080: x}") == "line 1, column 2: key 8080 is a number; put it in quotes"
    assert "key on is a boolean; put it in quotes" in refusal("on: push")
    assert "key ~ is null" in refusal("~: x")
    assert "not a list or an object" in refusal("? [a]\n: b")
    assert load('"on": push') == {"on": "push"}


def test_syntax_errors_have_a_place() -> None:
    assert refusal("a: b: c").startswith("line 1, column 5: ")
    assert refusal("a:\n\tb: 1") == (
        "line 2, column 1: found character that cannot start any token: "
        "indent with spaces, not with tabs"
    )
    assert refusal("a: [1, 2").startswith("line ")
    assert refusal('a: "x').startswith("line ")


@pytest.mark.parametrize("text", ["a: \x00", "a: \x07", "\x1b[0m: 1"])
def test_control_characters_are_refused(text: str) -> None:
    assert refusal(text)


def test_depth_is_bounded() -> None:
    deep = MAX_DEPTH - 1
    assert load("[" * deep + "1" + "]" * deep)
    assert "deeper than 64" in refusal("[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH)
    assert "deeper than 64" in refusal("[" * 100_000)
    assert "deeper than 64" in refusal("{a: " * 100_000)
    assert "deeper than 64" in refusal("- " * 100_000)


def test_depth_is_bounded_through_aliases() -> None:
    lines = ["a0: &a0 [1]"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 70)]
    assert "deeper than 64" in refusal("\n".join(lines))


def test_a_billion_laughs_end_early() -> None:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    for n in range(1, 12):
        lines.append(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]")
    assert "aliases expand to more than 1,000,000 values" in refusal("\n".join(lines))


def test_a_wide_bomb_ends_early() -> None:
    text = "a: &a [" + "x, " * 10_000 + "]\nb: [" + "*a, " * 200 + "]"
    assert "aliases expand" in refusal(text)


def test_bombs_made_of_merge_keys_end_early() -> None:
    lines = ["a0: &a0 {" + ", ".join(f"k{n}: 1" for n in range(50)) + "}"]
    for n in range(1, 12):
        lines.append(f"a{n}: &a{n} {{x: [{', '.join([f'*a{n - 1}'] * 10)}], <<: *a{n - 1}}}")
    assert "aliases expand" in refusal("\n".join(lines))


json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=15,
)


@given(json)
def test_what_is_written_is_what_is_read(value: object) -> None:
    # With everything in quotes, numbers and such get their tags written out.
    assert load(yaml.safe_dump(value, default_style='"')) == value


@given(st.text(max_size=60))
def test_no_text_makes_it_fail_in_another_way(text: str) -> None:
    assert "\n" not in outcome(text)


@given(st.text(alphabet="ab:-{}[]&*!|>'\"#%@?, \n<\t~1.", max_size=40))
def test_no_punctuation_makes_it_fail_in_another_way(text: str) -> None:
    assert "\n" not in outcome(text)
