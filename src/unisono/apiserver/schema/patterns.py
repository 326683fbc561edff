r"""Regular expressions as schemas write them: in RE2's syntax, matched in linear time.

Kubernetes matches with Go's engine, which is RE2's: no pattern takes long, whatever the text. So
RE2 itself reads and matches here (ADR 0033); Python's `re` may take forever on `^(a+)+$` and means
something else by `$`. A match takes some 2 µs, a repeated one half of one. RE2 is loaded at the
first pattern.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Protocol, cast

from unisono.apiserver.text_cache import cached_if_short

# A pattern that is longer is a mistake or an attack; the longest in use have some 300 characters.
_MAX_PATTERN = 4096


class _Found(Protocol):
    """Where a pattern was found."""

    def group(self) -> bytes:
        """Return what was found."""


class _Pattern(Protocol):
    """A pattern that RE2 has read."""

    def search(self, text: bytes) -> _Found | None:
        """Return the first place that the pattern matches, from left to right."""


def pattern_problem(pattern: str) -> str:
    """Say why a schema must not use a pattern; empty if it may.

    >>> pattern_problem("^[a-z]+$"), pattern_problem("a(?=b)")
    ('', 'is not a regular expression: invalid perl operator: (?=')
    """
    try:
        _compile(pattern)
    except ValueError as problem:
        return str(problem)
    return ""


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return what says whether a text contains the pattern; raise ValueError if it is none."""
    _compile(pattern)
    return lambda text: _matches(pattern, text)


def finder(pattern: str) -> Callable[[str], str]:
    """Return what finds the first occurrence in a text, or an empty text."""
    search = _compile(pattern).search

    def find(text: str) -> str:
        found = search(text.encode())
        return found.group().decode() if found is not None else ""

    return find


@cached_if_short(4096)  # names, amounts and images repeat
def _matches(pattern: str, text: str) -> bool:
    return _compile(pattern).search(text.encode()) is not None


@lru_cache(maxsize=1024)
def _compile(pattern: str) -> _Pattern:
    if len(pattern) > _MAX_PATTERN:
        raise ValueError(f"has {len(pattern)} characters; at most {_MAX_PATTERN} are allowed")
    compile_bytes, error = load_engine()
    try:
        # Patterns and texts go in as UTF-8: with `str`, each match costs 5 µs for offsets.
        return compile_bytes(pattern.encode())
    except error as problem:
        reason = problem.args[0]
        text = reason.decode() if isinstance(reason, bytes) else str(reason)
        raise ValueError(f"is not a regular expression: {text}") from None


@cache
def load_engine() -> tuple[Callable[[bytes], _Pattern], type[Exception]]:
    """Load RE2, which takes 5 ms; return what compiles a pattern, and what that raises."""
    import re2

    options = re2.Options()
    options.log_errors = False  # a pattern that is refused is for its author, not for stderr

    def compile_bytes(pattern: bytes) -> _Pattern:
        return cast(_Pattern, re2.compile(pattern, options))

    return compile_bytes, re2.error
