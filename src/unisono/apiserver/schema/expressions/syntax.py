"""The tree of an expression."""

from __future__ import annotations

from dataclasses import dataclass


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
