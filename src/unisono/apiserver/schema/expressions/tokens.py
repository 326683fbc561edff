"""An expression cut into words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
    |(?P<float>(?:\d+\.\d+|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
    |(?P<int>0[xX][0-9a-fA-F]+|\d+)(?P<unsigned>[uU]?)
    |(?P<prefix>[rRbB]{0,2})(?P<string>\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''
        |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<name>[A-Za-z_]\w*)
    |(?P<quoted>`[\w.\-/ ]+`)
    |(?P<sign>&&|\|\||==|!=|<=|>=|[-<>+*/%!?:.,\[\](){}])""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL
)
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_THEMSELVES = "\\\"'`?"
_MAX_DIGITS = 20  # more than any 64-bit number has


class Token(NamedTuple):
    """A word: `value` for what stands for itself, `text` for names and signs."""

    kind: str  # value, name, quoted, sign, end
    text: str
    at: int
    value: object = None


def tokens(expression: str) -> Iterator[Token]:
    """Yield the words of an expression and an end; raise ValueError where there is none."""
    at = 0
    while at < len(expression):
        found = _TOKEN.match(expression, at)
        if found is None:
            raise ValueError(f"unexpected {expression[at]!r} at character {at + 1}")
        token = _token(found)
        if token is not None:
            yield token
        at = found.end()
    yield Token("end", "the end", at)


def _token(found: re.Match[str]) -> Token | None:
    text, at = found.group(), found.start()
    if found["space"]:
        return None
    if found["float"]:
        return Token("value", text, at, float(text))
    if found["int"]:
        digits = found["int"]
        if len(digits) > _MAX_DIGITS:
            raise ValueError(f"the number {digits} is too large")
        return Token("value", text, at, int(digits, 0 if digits[:2].lower() == "0x" else 10))
    if found["string"]:
        return Token("value", text, at, _string(found["prefix"].lower(), found["string"]))
    if found["name"]:
        return Token("name", text, at)
    if found["quoted"]:
        return Token("quoted", text[1:-1], at)
    return Token("sign", text, at)


def _string(prefix: str, text: str) -> str | bytes:
    quotes = 3 if text[:3] in ('"""', "'''") else 1
    inside = text[quotes:-quotes]
    if "r" not in prefix:
        inside = _ESCAPE.sub(_letter, inside)
    return inside.encode() if "b" in prefix else inside


def _letter(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    if code:
        number = int(code, 16)
    elif found[4]:
        number = int(found[4], 8)
    elif found[5] in _LETTERS:
        return _LETTERS[found[5]]
    elif found[5] in _THEMSELVES:
        return found[5]
    else:
        raise ValueError(f"\\{found[5]} is not an escape")
    if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        raise ValueError(f"{found.group()} is not a character")
    return chr(number)
