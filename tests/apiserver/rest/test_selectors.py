"""Selectors of the query string."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unisono.apiserver.errors import ApiError
from unisono.apiserver.rest.selectors import parse_fields, parse_labels

LABELS = {"app": "web", "tier": "", "n": "7", "a.b/c": "x"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        (" ", True),
        ("app=web", True),
        ("app==web", True),
        (" app = web , n ", True),
        ("app=db", False),
        ("app!=db", True),
        ("app!=web", False),
        ("none!=x", True),
        ("none=", False),
        ("tier=", True),
        ("tier!=", False),
        ("app in (db, web)", True),
        ("app in (db)", False),
        ("none in (db)", False),
        ("app notin (db)", True),
        ("app notin (web,db)", False),
        ("none notin (db)", True),
        ("tier in (,a)", True),
        ("app", True),
        ("none", False),
        ("!none", True),
        ("!app", False),
        ("n>6", True),
        ("n>7", False),
        ("n<8", True),
        ("app>1", False),
        ("none<1", False),
        ("a.b/c=x,app in (web),!none", True),
        ("a.b/c=x,app in (web),none", False),
        ("in=a", False),
        ("notin", False),
    ],
)
def test_labels(text: str, *, matches: bool) -> None:
    assert parse_labels(text)(LABELS) is matches


@pytest.mark.parametrize(
    "text",
    [
        "a=b,",
        ",a=b",
        "a=b c=d",
        "a in b",
        "a in (b",
        "a in",
        "=b",
        "a===b",
        "a!b",
        "a>x",
        "a>",
        "!",
        "!a=b",
        "a/b/c=d",
        "a=b/c",
        "a=" + "x" * 64,
        "a~b",
        "(a)",
        "a in (b))",
        "a=(b)",
        "\x00",
    ],
)
def test_labels_that_mean_nothing(text: str) -> None:
    with pytest.raises(ApiError, match="label selector") as refusal:
        parse_labels(text)
    assert refusal.value.code == 400


ALLOWED = ("metadata.name", "status.phase", "type")


def fields(text: str, **values: str) -> bool:
    lookup = {"metadata.name": "a", "status.phase": "Running", "type": "x=y,z", **values}
    return parse_fields(text, ALLOWED).matches(lambda path: lookup[path])


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("metadata.name=a", True),
        ("metadata.name==a,status.phase!=Failed", True),
        ("metadata.name=a,status.phase!=Running", False),
        ("metadata.name=a,,", True),
        ("metadata.name=", False),
        (r"type=x\=y\,z", True),
        (r"type!=x\=y\,z", False),
    ],
)
def test_fields(text: str, *, matches: bool) -> None:
    assert fields(text) is matches


def test_fields_as_requirements() -> None:
    selector = parse_fields("metadata.name==a,status.phase!=b", ALLOWED)
    assert selector.requirements == (("metadata.name", "=", "a"), ("status.phase", "!=", "b"))


@pytest.mark.parametrize("text", ["metadata.name", "a=b", "metadata.name=a=b", r"type=\x", "=x"])
def test_fields_that_mean_nothing(text: str) -> None:
    with pytest.raises(ApiError, match="field") as refusal:
        parse_fields(text, ALLOWED)
    assert refusal.value.code == 400


def test_an_unknown_field_gets_a_hint() -> None:
    with pytest.raises(ApiError, match=r'did you mean "status\.phase"'):
        parse_fields("status.phas=x", ALLOWED)


@given(st.text("ab=!<>(), \\innotin.-/_1\n", max_size=20))
def test_any_text_is_either_read_or_refused(text: str) -> None:
    for parse in (parse_labels, lambda text: parse_fields(text, ALLOWED)):
        with contextlib.suppress(ApiError):
            parse(text)
