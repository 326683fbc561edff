"""Regular expressions in RE2's dialect."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unisono.kinds.expressions.formats import finder, matcher, pattern_problem


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("^a+$", ["a", "aa"], ["", "b", "a\n"]),
        ("a", ["bab"], ["b"]),
        (r"^\d+\z", ["12"], ["x", "٣"]),
        (r"^\w+$", ["a_1"], ["ä"]),
        ("^[[:alpha:]]+$", ["aZ"], ["1"]),
        ("^[^/]*$", ["", "a"], ["a/b"]),
        ("^[]a]+$", ["]a"], ["b"]),
        ("^a{,2}$", ["a{,2}"], ["aa"]),
        ("^a{2,3}$", ["aa", "aaa"], ["a", "aaaa"]),
        ("(?i)^abc$", ["ABC"], ["abd"]),
        ("^(?i)abc$", ["ABC"], ["abd"]),
        (r"^\pL+$", ["äb"], ["1"]),
        (r"^(?P<x>a)(?<y>b)$", ["ab"], ["ba"]),
        ("^([0-9]+(s|m|h))+$", ["1h30m"], ["1", "h"]),
        (r"^(\+|-)?([0-9]+)$", ["+1", "-2", "3"], ["+"]),
        ("^$", [""], ["a"]),
        ("(" * 60 + "a" + ")" * 60, ["a"], ["b"]),
    ],
)
def test_matching(pattern: str, yes: list[str], no: list[str]) -> None:
    assert pattern_problem(pattern) == ""
    matches = matcher(pattern)
    for text in yes:
        assert matches(text), text
        assert matches(text) == matcher(pattern)(text)
    for text in no:
        assert not matches(text), text


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        ")",
        "[a",
        "a**",
        "a++",
        "a{1001}",
        "(?=a)",
        "(?!a)",
        "(?<=a)b",
        r"(a)\1",
        "*a",
        "[z-a]",
        "a" * 5000,
        "(?P=a)",
        "(a{1000}){1000}",
        "a{2}{3}",
    ],
)
def test_what_re2_does_not_know_is_refused(pattern: str) -> None:
    assert pattern_problem(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a+)+$",
        "^(a|a)*$",
        "^(a?a?)*$",
        "^(a*){20}$",
        "^(a|aa)+$",
        "^(.*)*b$",
        "^(a+a?)+$",
        "^((a*)*)*$",
        "^a*a*a*a*a*a*$",
        "^(.a*)*b$",
        "^(a[a-z]*)*$",
        r"^(\.[^/]*)*$",
    ],
)
def test_no_pattern_takes_long(pattern: str) -> None:
    matches = matcher(pattern)
    for size in (30, 128, 129, 20_000):
        # Python's own engine would take for ever on any of these.
        assert not matches("a" * size + "!")


def test_finding() -> None:
    assert finder("^([^/]+)")("karpenter.sh/x") == "karpenter.sh"
    assert finder("z")("a") == ""
    assert finder("^(a+)+$")("a" * 2000) == "a" * 2000
    assert finder("ä+")("xäöä") == "ä"


_PIECES = st.sampled_from(
    [
        "a",
        "b",
        "-",
        r"\.",
        "[a-c]",
        "[^a]",
        "(",
        ")",
        "(?:",
        "|",
        "*",
        "+",
        "?",
        "{2}",
        "{0,2}",
        "^",
        "$",
        ".",
        r"\d",
        r"\w",
    ]
)


@settings(deadline=None, max_examples=300)
@given(st.lists(_PIECES, max_size=12), st.text("ab-.1\n", max_size=8))
def test_patterns_mean_what_they_mean_in_python(pieces: list[str], text: str) -> None:
    """On short texts and where both dialects have a pattern, Python's engine is the oracle."""
    pattern = "".join(pieces)
    if pattern_problem(pattern):
        return
    matches = matcher(pattern)(text)
    assert matcher(pattern)(text + "-" * 200) in (True, False), "long texts work, too"
    try:
        wanted = re.compile(pattern.replace("$", r"\Z"), re.ASCII).search(text) is not None
    except re.error:  # Python has no repetition of an anchor
        return
    assert matches == wanted
