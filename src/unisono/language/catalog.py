"""The catalogue: messages by their English text, and sentences that were made of them.

A sentence that is already made, such as one in a condition that a controller wrote, is recognised:
it is taken apart along the message it was made of, what stands in its places is translated if it
is a sentence itself, and it is put together again. So names are never touched, and what is not
known stays as it is. The patterns are RE2's, in linear time: sentences quote names and manifests.

A place in the English text of such a message may say what stands there: `{0w}` one word, `{0#}` a
number, `{0*}` whole sentences; `{0}` a phrase, without parentheses or another sentence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Any, NamedTuple

import re2

from unisono.language import Language

PAGE = "page"  # the section that the scripts of the page read
# Longer texts are not sentences, and are left alone.
_LONGEST = 8192
# A sentence within a sentence within …; ours have five.
_DEEPEST = 12
_PLACE = re.compile(r"\{(\d)([w#*]?)\}")
_STANDS = {
    "": "([^;()\n]*?)",
    "w": r"(\S+)",
    "#": r"([\d.,]+[A-Za-z]{0,2})",
    "*": "(.*?)",
    "-": "(.*?)",
}
# A name before a sentence, and a remark behind one.
_NAMED = re.compile(r"([^\s()]+): (.+)", re.DOTALL)
_WITH_MORE = re.compile(r"(.+) \((.+)\)", re.DOTALL)
_KEPT = 4096


@cache
def sections(language: Language) -> Mapping[str, Mapping[str, str]]:
    """Return the catalogue as it is written, by section; English has none."""
    if language == "en":
        return {}
    file = resources.files("unisono.language") / f"{language}.json"
    found: dict[str, dict[str, str]] = json.loads(file.read_text(encoding="utf-8"))
    return found


class _Pattern(NamedTuple):
    pieces: tuple[str, ...]  # what stands between the places
    places: tuple[int, ...]
    kinds: tuple[str, ...]  # what stands in them
    made: str  # the translation
    match: Any  # of RE2, which has no types; compiled when it may be needed


class Catalog:
    """One language's messages."""

    def __init__(self, messages: Mapping[str, str]) -> None:
        """Take messages by their English text."""
        self._messages = messages
        patterns = [_pattern(*one) for one in messages.items() if _PLACE.search(one[0])]
        # The most particular ones first: those with most text of their own.
        self._patterns = sorted(patterns, key=lambda one: -sum(map(len, one.pieces)))
        self._said = lru_cache(_KEPT)(self._translated)

    def say(self, text: str) -> str:
        """Return a message or a sentence in this language; what is not known, as it is."""
        return self._said(text, 0) if text and self._messages else text

    def _translated(self, text: str, depth: int) -> str:
        if len(text) > _LONGEST or depth > _DEEPEST:
            return text
        known = self._known(text, depth)
        return known if known is not None else self._joined(text, depth)

    def _known(self, text: str, depth: int) -> str | None:
        """Return the translation of a text that is one message; None if it is none."""
        exact = self._messages.get(text)
        if exact is not None:
            return exact
        for one in self._patterns:
            if all(piece in text for piece in one.pieces):
                found = one.match().fullmatch(text)
                if found is not None and _are_apart(found.groups(), one.kinds):
                    values = [self._inner(value, depth) for value in found.groups()]
                    return filled(one.made, dict(zip(one.places, values, strict=True)))
        return None

    def _joined(self, text: str, depth: int) -> str:
        """Translate sentences that stand beside each other, each by itself."""
        parts = _split(text, "; ")
        if len(parts) > 1:
            return self._each(text, parts, "; ", depth)
        named = _NAMED.fullmatch(text)
        if named is not None and (known := self._known(named[2], depth + 1)) is not None:
            return f"{named[1]}: {known}"
        parts = _split(text, ", and ")
        if len(parts) > 1:
            return self._each(text, parts, ", and ", depth)
        more = _WITH_MORE.fullmatch(text)
        if more is not None and _is_closed(more[2]):
            return f"{self._said(more[1], depth + 1)} ({self._said(more[2], depth + 1)})"
        if named is not None:
            return f"{named[1]}: {self._said(named[2], depth + 1)}"
        for join in (", or ", ", "):
            parts = _split(text, join)
            if len(parts) > 1:
                return self._each(text, parts, join, depth)
        return text

    def _each(self, text: str, parts: Sequence[str], join: str, depth: int) -> str:
        said = [self._said(part, depth + 1) for part in parts]
        return text if said == list(parts) else self._messages.get(join, join).join(said)

    def _inner(self, text: str, depth: int) -> str:
        """Translate what stands in a place, unless it is a name: those have no spaces."""
        return self._said(text, depth + 1) if " " in text.strip() or text[:1] == " " else text


# Particles of Korean, which depend on the sound that a word ends with: after a vowel, a consonant.
_PARTICLES = {"가": "이", "는": "은", "를": "을", "와": "과", "로": "으로", "나": "이나"}
_FILLED = re.compile(r"\{(\d)\}(?:([가는를와로나])(?=[\s,.:)]|$))?")
# Digits and letters that are read with a consonant at the end: 0 1 3 6 7 8, and l, m, n.
_CLOSED = frozenset("013678lmnLMN")
_LIQUID = frozenset("178lL")  # of these, those that end with ㄹ, which 로 follows as it is
_FIRST_SYLLABLE, _LAST_SYLLABLE, _ENDINGS, _RIEUL = 0xAC00, 0xD7A3, 28, 8


def filled(made: str, values: Mapping[int, str]) -> str:
    """Put values in their places; a particle behind one takes its right form.

    >>> filled("{0}가 {1}를 기다린다", {0: "big", 1: "노드 3"}), filled("{0}로", {0: "1"})
    ('big가 노드 3을 기다린다', '1로')
    """

    def put(found: re.Match[str]) -> str:
        value, particle = values[int(found[1])], found[2] or ""
        return value + _after(value, particle) if particle else value

    return _FILLED.sub(put, made)


def _after(value: str, particle: str) -> str:
    last = next((letter for letter in reversed(value) if letter.isalnum()), "")
    if last and _FIRST_SYLLABLE <= ord(last) <= _LAST_SYLLABLE:
        ending = (ord(last) - _FIRST_SYLLABLE) % _ENDINGS
        is_closed, is_liquid = ending != 0, ending == _RIEUL
    else:
        is_closed, is_liquid = last in _CLOSED, last in _LIQUID
    if not is_closed or (particle == "로" and is_liquid):
        return particle
    return _PARTICLES[particle]


def _are_apart(values: Sequence[str], kinds: Sequence[str]) -> bool:
    """Say whether a text was taken apart between its parts, not within one."""
    return all(
        _is_closed(value) and (kind or len(_split(value, ", and ")) == 1)
        for value, kind in zip(values, kinds, strict=True)
    )


def _is_closed(text: str) -> bool:
    depth = 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return False
    return depth == 0


def _split(text: str, join: str) -> list[str]:
    """Split a text, but not within parentheses.

    >>> _split("a (b; c); d", "; ")
    ['a (b; c)', 'd']
    """
    parts, depth, since, at = [], 0, 0, 0
    while at < len(text):
        if depth == 0 and text.startswith(join, at):
            parts.append(text[since:at])
            at += len(join)
            since = at
            continue
        depth += (text[at] == "(") - (text[at] == ")")
        at += 1
    return [*parts, text[since:]]


def _pattern(text: str, made: str) -> _Pattern:
    parts = _PLACE.split(text)  # text, place, what stands there, text, …
    pieces, places, kinds = parts[::3], tuple(map(int, parts[1::3])), parts[2::3]
    expression = re.escape(pieces[0])
    for kind, piece in zip(kinds, pieces[1:], strict=True):
        expression += _STANDS[kind] + re.escape(piece)

    @cache
    def match() -> Any:
        return re2.compile(f"(?s){expression}")

    return _Pattern(tuple(filter(None, pieces)), places, tuple(kinds), made, match)


@cache
def catalog(language: Language) -> Catalog:
    """Return the messages of a language, without those that the page itself puts together.

    Its own are as short as "{0} of {1}", which would recognise what is none of them.
    """
    whole: dict[str, str] = {}
    for name, section in sections(language).items():
        whole |= section if name != PAGE else {}
    return Catalog(whole)


def translated(value: Any, keys: frozenset[str], language: Language) -> Any:
    """Return plain data with the texts under these keys in a language."""
    if language == "en":
        return value
    return _walked(value, keys, catalog(language), is_text=False)


def _walked(value: Any, keys: frozenset[str], catalogue: Catalog, *, is_text: bool) -> Any:
    match value:
        case str():
            return catalogue.say(value) if is_text else value
        case dict():
            return dict(_walked_items(value, keys, catalogue))
        case list() | tuple():
            return [_walked(one, keys, catalogue, is_text=is_text) for one in value]
        case _:
            return value


def _walked_items(
    value: Mapping[str, Any], keys: frozenset[str], catalogue: Catalog
) -> Iterator[tuple[str, Any]]:
    for key, one in value.items():
        yield key, _walked(one, keys, catalogue, is_text=key in keys)
