r"""Regular expressions as schemas write them, in RE2's syntax, matched without surprises.

RE2 never takes long; Python's `re` may take forever on `^(a+)+$`. So a pattern is read here first:
what RE2 does not know is refused, and what is ambiguous enough to be slow is matched by the linear
engine that comes with CEL, which costs some 30 µs instead of one. Everything else is written in
Python's dialect: `$` is the very end, `\z` is `\Z`, and `\d`, `\w`, `\s` mean ASCII.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache, lru_cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

from unisono.kinds.text_cache import cached_if_short

# A pattern that is longer is a mistake or an attack; the longest in use have some 300 characters.
_MAX_PATTERN = 4096
# Python's engine gets only subjects so short that as many loops in a row as the pattern has cannot
# take more than some ten million steps. A label's key has four loops, a line of cron has six.
_LONGEST = {0: 1024, 1: 1024, 2: 1024, 3: 256, 4: 128, 5: 60, 6: 40}
_MAX_REPEAT = 1000  # as in RE2
_MAX_NESTING = 50

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_SIGNS = {"*": (0, _MAX_REPEAT), "+": (1, _MAX_REPEAT), "?": (0, 1)}
_DIGITS = frozenset("0123456789")
_COUNT = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_GROUP = re.compile(r"\((?:\?(?:P?<\w+>|[imsU]*(?:-[imsU]+)?:)|(?!\?))")
_FLAGS = re.compile(r"(\^?)\(\?([ims]+)\)")
# How the linear engine spells it; it reads the first ones as Unicode unless told otherwise.
_LINEAR = {
    r"\d": "[0-9]",
    r"\D": "[^0-9]",
    r"\w": "[0-9A-Za-z_]",
    r"\W": "[^0-9A-Za-z_]",
    r"\s": r"[\t\n\f\r ]",
    r"\S": r"[^\t\n\f\r ]",
    r"\b": r"(?-u:\b)",
    r"\Z": r"\z",
}
_ESCAPE = re.compile(r"\\.", re.DOTALL)
_ENGINE = "cel.cel"
_SIMPLE_ESCAPE = re.compile(r"\\(?:[dDwWsSbBAafnrtv]|x[0-9A-Fa-f]{2}|[^A-Za-z0-9])")


class _Refused(ValueError):
    """The pattern cannot be used."""


class _Foreign(ValueError):
    """The pattern may be fine, but only the linear engine can tell."""


def pattern_problem(pattern: str) -> str:
    """Say why a schema must not use a pattern; empty if it may.

    >>> pattern_problem("^[a-z]+$"), pattern_problem("a(?=b)")
    ('', 'looks ahead or behind, which RE2 cannot')
    """
    try:
        matcher(pattern)
    except ValueError as problem:
        return str(problem)
    return ""


@lru_cache(maxsize=1024)
def matcher(pattern: str) -> Callable[[str], bool]:
    """Return what says whether a text contains the pattern; raise ValueError if it is none."""
    if len(pattern) > _MAX_PATTERN:
        raise _Refused(f"has {len(pattern)} characters; at most {_MAX_PATTERN} are allowed")
    try:
        spelling, longest = _Reader(pattern).read()
        search = re.compile(spelling, re.ASCII).search
    except _Foreign:
        spelling, longest, search = pattern, -1, None
    except (re.error, OverflowError, RecursionError) as problem:
        raise _Refused(f"is not a regular expression: {problem}") from None
    linear = _ESCAPE.sub(lambda found: _LINEAR.get(found.group(), found.group()), spelling)
    if search is None or longest < 0:
        _search_linear(linear, "")  # complains now rather than at the first object
        return lambda text: _search_linear(linear, text)
    quick = search

    def matches(text: str) -> bool:
        if len(text) <= longest:
            return quick(text) is not None
        return _search_linear(linear, text)

    return matches


@lru_cache(maxsize=1024)
def finder(pattern: str) -> Callable[[str], str]:
    """Return what finds the first occurrence in a text; only for patterns that are quick."""
    spelling, longest = _Reader(pattern).read()
    if longest < 0:
        raise ValueError(f"{pattern} may take too long to find")
    compiled = re.compile(spelling, re.ASCII)

    def find(text: str) -> str:
        if len(text) > longest:
            raise ValueError(f"a text of {len(text)} characters is too long to search")
        found = compiled.search(text)
        return found.group() if found else ""

    return find


@cache
def load_engine() -> Any:
    """Load the linear engine: late, since it is hardly needed, and alone.

    The package around it brings a program with a terminal of its own: two seconds and 20 MB.
    """
    if _ENGINE in sys.modules:  # it can be loaded once only
        return sys.modules[_ENGINE]
    package = find_spec("cel")
    found = PathFinder.find_spec(_ENGINE, package.submodule_search_locations if package else None)
    assert found is not None, "the package cel is installed with us"
    assert found.loader is not None, "it has a file"
    engine = sys.modules[_ENGINE] = module_from_spec(found)
    found.loader.exec_module(engine)
    return engine


@cached_if_short(4096)  # names and images repeat
def _search_linear(pattern: str, text: str) -> bool:
    try:
        found = load_engine().evaluate("text.matches(pattern)", {"text": text, "pattern": pattern})
        return bool(found)
    except RuntimeError as problem:
        reason = str(problem).removeprefix("Function 'matches' error: ").split("\n")[-1]
        raise _Refused(f"is not a regular expression: {reason}") from None


class _Reader:
    """Reads a pattern once, from left to right, writing it in Python's dialect."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._out: list[str] = []
        self._loops = 0
        self._copies = 1  # how often the last group's inside is written out because of counts
        self._is_quick = True

    def read(self) -> tuple[str, int]:
        """Return Python's spelling, and up to which length it may be trusted; -1 is never."""
        flags = _FLAGS.match(self._pattern)
        if flags:
            if "m" in flags.group(2):
                raise _Foreign  # there, `$` is something else
            self._pattern = flags.group(1) + self._pattern[flags.end() :]
            self._out.append(f"(?{flags.group(2)})")
        if not self._pattern.startswith("^", self._at):
            self._loops = 1  # trying every place to begin is a loop, too
        self._alternatives(nesting=0)
        if self._at < len(self._pattern):
            raise _Refused("is not a regular expression: unexpected )")
        longest = _LONGEST.get(self._loops, -1) if self._is_quick else -1
        return "".join(self._out), longest

    def _alternatives(self, *, nesting: int) -> bool:
        """Read up to a closing bracket; say whether there is more than one way to match it."""
        if nesting > _MAX_NESTING:
            raise _Refused(f"nests more than {_MAX_NESTING} groups")
        is_loose, copies = False, 1
        before, most_loops = self._loops, self._loops
        while self._at < len(self._pattern) and self._pattern[self._at] != ")":
            if self._pattern[self._at] == "|":
                self._take(1)
                is_loose = True  # alternatives may overlap
                # They do not multiply, though: only the worst of them counts.
                self._loops, most_loops = before, max(self._loops, most_loops)
                if nesting == 0 and not self._pattern.startswith("^", self._at):
                    self._loops = 1
                continue
            start, self._copies = self._at, 1
            inside = self._atom(nesting)
            fewest, most = self._repeats()
            copies = max(copies, self._copies)
            if most > 1 and inside:
                inner = _GROUP.sub("(", self._pattern[start : self._at], count=1)[1:]
                if not (_has_separator(inner) or _has_terminator(inner)):
                    self._is_quick = False
            if most > max(fewest, 1):
                self._loops += 1
            is_loose = is_loose or inside or most > fewest
        self._loops = max(self._loops, most_loops)
        self._copies = copies
        return is_loose

    def _atom(self, nesting: int) -> bool:
        """Read what can be repeated; say whether there is more than one way to match it."""
        letter = self._pattern[self._at]
        if letter == "(":
            return self._group(nesting)
        if letter == "[":
            self._class()
        elif letter == "\\":
            self._escape()
        elif letter in "*+?":
            raise _Refused(f"is not a regular expression: nothing to repeat before {letter}")
        elif letter == "$":
            self._put(r"\Z", 1)
        elif letter == "{":
            if _COUNT.match(self._pattern, self._at):
                raise _Refused("is not a regular expression: nothing to repeat before {")
            self._put(r"\{", 1)
        else:
            self._take(1)
        return False

    def _group(self, nesting: int) -> bool:
        opening = _GROUP.match(self._pattern, self._at)
        if opening is None:
            rest = self._pattern[self._at : self._at + 4]
            if rest.startswith(("(?=", "(?!", "(?<=", "(?<!")):
                raise _Refused("looks ahead or behind, which RE2 cannot")
            raise _Foreign
        head = opening.group()
        if "U" in head or "m" in head.partition("<")[0]:
            raise _Foreign
        self._put(head.replace("(?<", "(?P<"), len(head))
        is_loose = self._alternatives(nesting=nesting + 1)
        if self._at >= len(self._pattern):
            raise _Refused("is not a regular expression: missing )")
        self._take(1)
        return is_loose

    def _class(self) -> None:
        """Read `[…]`; its inside is nearly the same in both dialects."""
        pattern, at = self._pattern, self._at + 1
        written = "["
        if pattern.startswith("^", at):
            written, at = "[^", at + 1
        is_first = True
        while at < len(pattern) and (pattern[at] != "]" or is_first):
            is_first = False
            if pattern.startswith("[:", at):
                name, end, _ = pattern[at + 2 :].partition(":]")
                if not end or name not in _POSIX:
                    raise _Foreign
                written += _POSIX[name]
                at += len(name) + 4
            elif pattern[at] == "\\":
                escape = _SIMPLE_ESCAPE.match(pattern, at)
                if escape is None or escape.group() in (r"\b", r"\B", r"\A"):
                    raise _Foreign
                written += escape.group()
                at = escape.end()
            else:
                written += "\\" + pattern[at] if pattern[at] in "[]&~|" else pattern[at]
                at += 1
        if at >= len(pattern):
            raise _Refused("is not a regular expression: missing ]")
        self._put(written + "]", at + 1 - self._at)

    def _escape(self) -> None:
        if self._pattern.startswith(r"\z", self._at):
            self._put(r"\Z", 2)
            return
        escape = _SIMPLE_ESCAPE.match(self._pattern, self._at)
        if escape is None:
            if self._pattern[self._at + 1 : self._at + 2] in _DIGITS:
                raise _Refused("refers back to a group, which RE2 cannot")
            raise _Foreign
        self._take(len(escape.group()))

    def _repeats(self) -> tuple[int, int]:
        """Read what follows an atom; return how often it stands there at least and at most."""
        pattern, at = self._pattern, self._at
        count = _COUNT.match(pattern, at)
        if pattern[at : at + 1] in _SIGNS:
            self._take(1)
            fewest, most = _SIGNS[pattern[at]]
        elif count:
            self._take(len(count.group()))
            fewest, high = int(count.group(1)), count.group(2)
            most = fewest if high is None else int(high) if high else _MAX_REPEAT
            self._copies *= max(fewest, int(high or 1), 1)
            if self._copies > _MAX_REPEAT:
                raise _Refused(f"repeats something more than {_MAX_REPEAT} times")
        else:
            return 1, 1
        if pattern.startswith("?", self._at):
            self._take(1)
        if pattern[self._at : self._at + 1] in _SIGNS or _COUNT.match(pattern, self._at):
            raise _Refused("is not a regular expression: repeats a repetition")
        return fewest, most

    def _take(self, count: int) -> None:
        self._put(self._pattern[self._at : self._at + count], count)

    def _put(self, text: str, count: int) -> None:
        self._out.append(text)
        self._at += count


def _has_separator(inside: str) -> bool:
    """Say whether each round of a loop begins with a letter that occurs nowhere else in it.

    That makes nested loops harmless, as in `(\\.[a-z]([-a-z0-9]*[a-z0-9])?)*`: where one round ends
    and the next begins is certain.
    """
    first = re.match(r"\\([^A-Za-z0-9])|([^\\\[\](){}*+?|.^$])", inside)
    if first is None or inside[first.end() : first.end() + 1] in ("*", "+", "?", "{"):
        return False
    letter = first.group(1) or first.group(2)
    rest = inside[first.end() :]
    harmless = letter not in rest and not re.search(r"\\[^.\-_/]|\[\^|(?<!\\)\.|\|", rest)
    # A range such as `+-9` might contain the letter without naming it.
    return harmless and not any(
        low <= letter <= high for low, high in re.findall(r"([^\[\\])-([^\]])", rest)
    )


def _has_terminator(inside: str) -> bool:
    """Say whether each round of a loop is a run of one class and a letter that is not in it.

    >>> _has_terminator("[0-9]+(s|m|h))+"), _has_terminator("[a-z]+(s|m|h))+")
    (True, False)
    """
    shape = re.match(r"(\[[\w-]+\])[+*](?:\((\w(?:\|\w)*)\)|(\w))\)[+*]?$", inside)
    if shape is None:
        return False
    letters = (shape.group(2) or shape.group(3)).split("|")
    return all(re.fullmatch(shape.group(1), letter) is None for letter in letters)
