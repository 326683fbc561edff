"""The tree of an expression, and from its text to it: words first, then by recursive descent.

choice   = or ["?" or ":" choice]
or       = and {"||" and}
and      = relation {"&&" relation}
relation = sum {("==" | "!=" | "<" | "<=" | ">" | ">=" | "in") sum}
sum      = product {("+" | "-") product}
product  = unary {("*" | "/" | "%") unary}
unary    = ("!" | "-") unary | member
member   = primary {"." name ["(" … ")"] | "[" choice "]"}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

# ---- the tree ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that stands for itself."""

    value: object


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """`of.field`, or `of.?field`, which is empty where the field is missing."""

    of: Expression
    field: str
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Has:
    """`has(of.field)`."""

    of: Expression
    field: str


@dataclass(frozen=True, slots=True)
class Index:
    """`of[at]`, or `of[?at]`."""

    of: Expression
    at: Expression
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """`function(…)` or `of.function(…)`, which is the same with `of` first."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Binary:
    """Two operands with a sign between them."""

    sign: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Unary:
    """`!of` or `-of`."""

    sign: str
    of: Expression


@dataclass(frozen=True, slots=True)
class Logic:
    """Several operands with `&&` or `||` between them."""

    sign: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """`condition ? yes : no`."""

    condition: Expression
    yes: Expression
    no: Expression


@dataclass(frozen=True, slots=True)
class Loop:
    """`over.all(variable, body)` and its kin; `map` may have a condition between the two."""

    kind: str  # all, exists, exists_one, filter, map
    over: Expression
    variable: str
    body: Expression
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class ListOf:
    """`[a, b]`."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class MapOf:
    """`{a: b}`."""

    entries: tuple[tuple[Expression, Expression], ...]


Expression = (
    Literal
    | Name
    | Select
    | Has
    | Index
    | Call
    | Binary
    | Unary
    | Logic
    | Choice
    | Loop
    | ListOf
    | MapOf
)


# ---- an expression cut into words ----------------------------------------------------------------


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


# ---- words to tree ------------------------------------------------------------------------------


# The longest rule in use has 600 characters; all of this recurses, and stacks are finite.
MAX_LENGTH = 4096
_MAX_NESTING = 40
_MAX_CHAIN = 100
_RELATIONS = frozenset(("==", "!=", "<", "<=", ">", ">=", "in"))
_LOOPS = frozenset(("all", "exists", "exists_one", "filter", "map"))
_CONSTANTS = {"true": True, "false": False, "null": None}
_RESERVED = frozenset(
    [
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "in"),
        *("let", "loop", "package", "namespace", "return", "var", "void", "while"),
    ]
)


def parse(expression: str) -> Expression:
    """Return the tree of an expression; raise ValueError with what is wrong and where."""
    if len(expression) > MAX_LENGTH:
        raise ValueError(f"has {len(expression)} characters; at most {MAX_LENGTH} are allowed")
    return _Parser(expression).whole()


class _Parser:
    def __init__(self, expression: str) -> None:
        self._tokens = list(tokens(expression))
        self._next = 0
        self._nesting = 0

    def whole(self) -> Expression:
        made = self._choice()
        if self._peek().kind != "end":
            raise self._unexpected()
        return made

    # ---- operators, weakest first ----------------------------------------------------------

    def _choice(self) -> Expression:
        self._nesting += 1
        if self._nesting > _MAX_NESTING:
            raise ValueError(f"is nested more than {_MAX_NESTING} levels deep")
        made = self._logic("||", lambda: self._logic("&&", self._relation))
        if self._take("?"):
            yes = self._logic("||", lambda: self._logic("&&", self._relation))
            self._expect(":")
            made = Choice(made, yes, self._choice())
        self._nesting -= 1
        return made

    def _logic(self, sign: str, operand: Callable[[], Expression]) -> Expression:
        operands = [operand()]
        while self._take(sign):
            operands.append(operand())
        return operands[0] if len(operands) == 1 else Logic(sign, tuple(operands))

    def _relation(self) -> Expression:
        return self._chain(_RELATIONS, self._sum)

    def _sum(self) -> Expression:
        return self._chain(frozenset("+-"), lambda: self._chain(frozenset("*/%"), self._unary))

    def _chain(self, signs: frozenset[str], operand: Callable[[], Expression]) -> Expression:
        made = operand()
        for _ in range(_MAX_CHAIN):
            token = self._peek()
            if token.kind not in ("sign", "name") or token.text not in signs:
                return made
            self._next += 1
            made = Binary(token.text, made, operand())
        raise ValueError(f"has more than {_MAX_CHAIN} operators in a row")

    def _unary(self) -> Expression:
        signs = []
        while self._peek().kind == "sign" and self._peek().text in "!-":
            signs.append(self._peek().text)
            self._next += 1
            if len(signs) > _MAX_NESTING:
                raise self._unexpected()
        made = self._member()
        for sign in reversed(signs):
            if sign == "-" and isinstance(made, Literal) and type(made.value) in (int, float):
                made = Literal(-made.value)  # type: ignore[operator]  # a number, as just seen
            else:
                made = Unary(sign, made)
        return made

    # ---- values and what is read from them ---------------------------------------------------

    def _member(self) -> Expression:
        made = self._primary()
        for _ in range(_MAX_CHAIN):
            if self._take("."):
                made = self._dotted(made)
            elif self._take("["):
                is_optional = self._take("?")
                made = Index(made, self._choice(), is_optional)
                self._expect("]")
            else:
                return made
        raise ValueError(f"has more than {_MAX_CHAIN} fields in a row")

    def _dotted(self, of: Expression) -> Expression:
        is_optional = self._take("?")
        token = self._peek()
        if token.kind not in ("name", "quoted"):
            raise self._unexpected()
        self._next += 1
        if is_optional or token.kind == "quoted" or not self._take("("):
            return Select(of, token.text, is_optional)
        if token.text in _LOOPS:
            return self._loop(token.text, of)
        if isinstance(of, Name) and of.name == "optional":
            return Call(f"optional.{token.text}", self._list(")"))
        return Call(token.text, (of, *self._list(")")))

    def _loop(self, kind: str, over: Expression) -> Expression:
        variable = self._peek()
        if variable.kind != "name" or variable.text in _RESERVED:
            raise self._unexpected()
        self._next += 1
        self._expect(",")
        first, *more = self._list(")")
        if not more:
            return Loop(kind, over, variable.text, first)
        if kind != "map" or len(more) != 1:
            raise ValueError(f"{kind} takes a name and one expression")
        return Loop(kind, over, variable.text, more[0], first)

    def _primary(self) -> Expression:
        token = self._peek()
        if token.kind == "end":
            raise self._unexpected()
        self._next += 1
        if token.kind == "value":
            return Literal(token.value)
        if token.kind == "name":
            return self._named(token)
        if token.text == "(":
            made = self._choice()
            self._expect(")")
            return made
        if token.text == "[":
            return ListOf(self._list("]"))
        if token.text == "{":
            return MapOf(self._entries())
        self._next -= 1
        raise self._unexpected()

    def _named(self, token: Token) -> Expression:
        if token.text in _CONSTANTS:
            return Literal(_CONSTANTS[token.text])
        if token.text in _RESERVED:
            self._next -= 1
            raise self._unexpected()
        if not self._take("("):
            return Name(token.text)
        arguments = self._list(")")
        if token.text != "has":
            return Call(token.text, arguments)
        if len(arguments) != 1 or not isinstance(arguments[0], Select):
            raise ValueError("has() takes one field, such as has(self.spec)")
        return Has(arguments[0].of, arguments[0].field)

    def _list(self, closing: str) -> tuple[Expression, ...]:
        items: list[Expression] = []
        while not self._take(closing):
            if items:
                self._expect(",")
                if self._take(closing):
                    break
            items.append(self._choice())
        return tuple(items)

    def _entries(self) -> tuple[tuple[Expression, Expression], ...]:
        entries: list[tuple[Expression, Expression]] = []
        while not self._take("}"):
            if entries:
                self._expect(",")
                if self._take("}"):
                    break
            key = self._choice()
            self._expect(":")
            entries.append((key, self._choice()))
        return tuple(entries)

    # ---- words -------------------------------------------------------------------------------

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self, sign: str) -> bool:
        token = self._tokens[self._next]
        if token.kind == "sign" and token.text == sign:
            self._next += 1
            return True
        return False

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise ValueError(f"expected {sign} instead of {self._peek().text} {self._place()}")

    def _unexpected(self) -> ValueError:
        return ValueError(f"unexpected {self._peek().text} {self._place()}")

    def _place(self) -> str:
        return f"at character {self._peek().at + 1}"
