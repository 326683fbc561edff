"""Regular expressions in RE2's dialect."""

from __future__ import annotations

import cel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unisono.apiserver.schema import patterns
from unisono.apiserver.schema.patterns import finder, matcher, pattern_problem


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
        "(" * 60 + ")" * 60,
        r"\Q",
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
def test_no_pattern_takes_long(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    matches, linear = matcher(pattern), patterns._search_linear
    searched: list[int] = []

    def count(pattern: str, text: str) -> bool:
        searched.append(len(text))
        return linear(pattern, text)

    monkeypatch.setattr(patterns, "_search_linear", count)
    for size in (30, 128, 129, 20_000):
        assert not matches("a" * size + "!")
    # Python's own engine would take for ever on any of these.
    assert searched[-3:] == [129, 130, 20_001]


def test_finding() -> None:
    assert finder("^([^/]+)")("karpenter.sh/x") == "karpenter.sh"
    assert finder("z")("a") == ""
    with pytest.raises(ValueError, match="too long"):
        finder("^(a+)+$")
    with pytest.raises(ValueError, match="too long"):
        finder("a")("a" * 2000)


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
def test_both_engines_agree(pieces: list[str], text: str) -> None:
    """Whatever the reading makes of a pattern, it means what the linear engine says."""
    pattern = "".join(pieces)
    if pattern_problem(pattern):
        return
    matches = matcher(pattern)(text)
    assert matcher(pattern)(text + "-" * 200) in (True, False), "long texts work, too"
    try:
        wanted = cel.evaluate("t.matches(p)", {"t": text, "p": pattern})
    except RuntimeError:  # it does not take a lone brace for itself
        assert "{" in pattern
        return
    assert matches == wanted
