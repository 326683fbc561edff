"""A tree turned into a Python function of its variables.

Each node becomes a closure over those of its parts. `&&` and `||` do not care for the order of
their operands: one that decides the matter outweighs another that fails. Loops share one budget.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from unisono.kinds.expressions.functions import (
    FUNCTIONS,
    MISSING,
    OPERATORS,
    Maybe,
    equal,
    index,
    negative,
    present,
)
from unisono.kinds.expressions.parse import (
    Binary,
    Call,
    Choice,
    Expression,
    Has,
    Index,
    ListOf,
    Literal,
    Logic,
    Loop,
    MapOf,
    Name,
    Select,
    Unary,
    parse,
)

# What an expression that does not work out raises.
FAILURES = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
# Rounds of all loops together; at a microsecond each, a rule holds the server up for 0.1 s at most.
MAX_ROUNDS = 100_000

_ROUNDS = "\0rounds"
_TYPES = frozenset(("bool", "bytes", "double", "int", "list", "map", "null_type", "string", "uint"))
_ESCAPE = re.compile(r"__(underscores|dot|dash|slash)__")
_ESCAPED = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}
_WORD = re.compile(r"__([a-z]+)__")

Scope = dict[str, Any]
Evaluate = Callable[[Scope], Any]


class Program:
    """An expression, ready to run."""

    __slots__ = ("_evaluate", "functions", "loop_variables", "names")

    def __init__(self, expression: str) -> None:
        """Compile an expression; raise ValueError with what is wrong and where."""
        self.functions: set[str] = set()
        self.names: set[str] = set()
        self.loop_variables: set[str] = set()
        self._evaluate = self._compile(parse(expression))

    def run(self, value: Any, old: Any = None) -> Any:
        """Return what it makes of `self` and `oldSelf`; raise one of `FAILURES` if nothing."""
        return self._evaluate({"self": value, "oldSelf": old, _ROUNDS: 0})

    def run_with(self, variables: Mapping[str, Any]) -> Any:
        """Return what it makes of these variables; raise one of `FAILURES` if nothing."""
        return self._evaluate({**variables, _ROUNDS: 0})

    @property
    def missing(self) -> list[str]:
        """The functions that it needs and that do not exist."""
        return sorted(self.functions - FUNCTIONS.keys())

    def _compile(self, node: Expression) -> Evaluate:
        make = self._compile
        match node:
            case Literal(value):
                return lambda scope: value
            case Name(name):
                self.names.add(name)
                return _type_or_variable(name) if name in _TYPES else lambda scope: scope[name]
            case Select(of, field, is_optional):
                return _optional(make(of), field) if is_optional else _select(make(of), field)
            case Has(of, field):
                return _has(make(of), field)
            case Index(of, at, is_optional):
                return _item(make(of), make(at), is_optional=is_optional)
            case Call(function, arguments):
                self.functions.add(function)
                return _call(FUNCTIONS.get(function), [make(each) for each in arguments])
            case Binary(sign, left, right):
                return _binary(sign, make(left), make(right))
            case Unary(sign, of):
                return _not(make(of)) if sign == "!" else _negative(make(of))
            case Logic(sign, operands):
                return _logic([make(each) for each in operands], decisive=sign == "||")
            case Choice(condition, yes, no):
                return _choice(make(condition), make(yes), make(no))
            case Loop(kind, over, variable, body, condition):
                self.loop_variables.add(variable)
                test = make(condition) if condition is not None else None
                return _LOOPS[kind](make(over), variable, make(body), test)
            case ListOf(items):
                made = [make(each) for each in items]
                return lambda scope: [each(scope) for each in made]
            case MapOf(entries):
                pairs = [(make(key), make(value)) for key, value in entries]
                return lambda scope: {key(scope): value(scope) for key, value in pairs}


def _type_or_variable(name: str) -> Evaluate:
    return lambda scope: scope.get(name, name)


# ---- reading ---------------------------------------------------------------------------------


def _select(of: Evaluate, field: str) -> Evaluate:
    real = unescape(field)

    def select(scope: Scope) -> Any:
        value = of(scope)
        if type(value) is dict:
            return value[field] if field in value or real == field else value[real]
        if type(value) is Maybe:
            return _within(value, field, real)
        raise TypeError(f"only an object has a field {field}")

    return select


def _optional(of: Evaluate, field: str) -> Evaluate:
    real = unescape(field)

    def select(scope: Scope) -> Maybe:
        value = of(scope)
        return _within(value if type(value) is Maybe else present(value), field, real)

    return select


def _within(maybe: Maybe, field: Any, real: Any) -> Maybe:
    if not maybe.has_value:
        return MISSING
    if type(maybe.value) is not dict:
        raise TypeError(f"only an object has a field {field}")
    name = field if field in maybe.value else real
    return present(maybe.value[name]) if name in maybe.value else MISSING


def _has(of: Evaluate, field: str) -> Evaluate:
    real = unescape(field)

    def has(scope: Scope) -> bool:
        value = of(scope)
        if type(value) is Maybe:
            return _within(value, field, real).has_value
        if type(value) is not dict:
            raise TypeError(f"only an object has a field {field}")
        return field in value or real in value

    return has


def _item(of: Evaluate, at: Evaluate, *, is_optional: bool) -> Evaluate:
    def item(scope: Scope) -> Any:
        value, key = of(scope), at(scope)
        if not is_optional and type(value) is not Maybe:
            return index(value, key)
        inside = value if type(value) is Maybe else present(value)
        if not inside.has_value:
            return MISSING
        try:
            return present(index(inside.value, key))
        except LookupError:
            return MISSING

    return item


def unescape(field: str) -> str:
    """Return the field that a rule means by a name.

    >>> unescape("a__dash__b"), unescape("__namespace__"), unescape("spec")
    ('a-b', 'namespace', 'spec')
    """
    real = _ESCAPE.sub(lambda found: _ESCAPED[found[1]], field)
    word = _WORD.fullmatch(real) if real == field else None
    return word[1] if word else real


# ---- computing -------------------------------------------------------------------------------


def _call(function: Callable[..., Any] | None, arguments: list[Evaluate]) -> Evaluate:
    if function is None:
        return _fail
    if len(arguments) == 1:
        only = arguments[0]
        return lambda scope: function(only(scope))
    return lambda scope: function(*[argument(scope) for argument in arguments])


def _fail(scope: Scope) -> Any:
    raise LookupError("uses a function that is not there")


def _binary(sign: str, left: Evaluate, right: Evaluate) -> Evaluate:
    if sign == "==":
        return lambda scope: equal(left(scope), right(scope))
    operate = OPERATORS[sign]
    return lambda scope: operate(left(scope), right(scope))


def _negative(of: Evaluate) -> Evaluate:
    return lambda scope: negative(of(scope))


def _not(of: Evaluate) -> Evaluate:
    return lambda scope: not _boolean(of(scope))


def _choice(condition: Evaluate, yes: Evaluate, no: Evaluate) -> Evaluate:
    return lambda scope: yes(scope) if _boolean(condition(scope)) else no(scope)


def _boolean(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise TypeError("needs true or false")


def _logic(operands: list[Evaluate], *, decisive: bool) -> Evaluate:
    def logic(scope: Scope) -> bool:
        for number, operand in enumerate(operands):
            try:
                value = operand(scope)
            except FAILURES:
                if _decides(operands[number + 1 :], scope, decisive=decisive):
                    return decisive
                raise
            if _boolean(value) is decisive:
                return decisive
        return not decisive

    return logic


def _decides(operands: Iterable[Evaluate], scope: Scope, *, decisive: bool) -> bool:
    """Say whether one of the operands left settles the matter in spite of a failure."""
    for operand in operands:
        try:
            if operand(scope) is decisive:
                return True
        except FAILURES:
            continue
    return False


# ---- loops -----------------------------------------------------------------------------------


def _items(over: Evaluate, scope: Scope) -> list[Any]:
    value = over(scope)
    if type(value) is dict:
        value = list(value)
    elif type(value) is not list:
        raise TypeError("only lists and maps can be looped over")
    scope[_ROUNDS] += len(value)
    if scope[_ROUNDS] > MAX_ROUNDS:
        raise OverflowError(f"loops more than {MAX_ROUNDS} times")
    return value


def _quantified(*, decisive: bool) -> Callable[..., Evaluate]:
    """Make `all` (settled by the first false) or `exists` (settled by the first true)."""

    def make(over: Evaluate, variable: str, body: Evaluate, _: Evaluate | None) -> Evaluate:
        def loop(scope: Scope) -> bool:
            items = _items(over, scope)
            before = scope.get(variable, MISSING)
            failure: Exception | None = None
            try:
                for item in items:
                    scope[variable] = item
                    try:
                        value = body(scope)
                    except FAILURES as problem:
                        failure = problem
                        continue
                    if _boolean(value) is decisive:
                        return decisive
            finally:
                _restore(scope, variable, before)
            if failure is not None:
                raise failure
            return not decisive

        return loop

    return make


def _filtered(over: Evaluate, variable: str, body: Evaluate, _: Evaluate | None) -> Evaluate:
    def loop(scope: Scope) -> list[Any]:
        items = _items(over, scope)
        before = scope.get(variable, MISSING)
        kept = []
        try:
            for item in items:
                scope[variable] = item
                if _boolean(body(scope)):
                    kept.append(item)
        finally:
            _restore(scope, variable, before)
        return kept

    return loop


def _mapped(over: Evaluate, variable: str, body: Evaluate, test: Evaluate | None) -> Evaluate:
    def loop(scope: Scope) -> list[Any]:
        items = _items(over, scope)
        before = scope.get(variable, MISSING)
        made = []
        try:
            for item in items:
                scope[variable] = item
                if test is None or _boolean(test(scope)):
                    made.append(body(scope))
        finally:
            _restore(scope, variable, before)
        return made

    return loop


def _exactly_one(over: Evaluate, variable: str, body: Evaluate, _: Evaluate | None) -> Evaluate:
    kept = _filtered(over, variable, body, None)
    return lambda scope: len(kept(scope)) == 1


def _restore(scope: Scope, variable: str, before: Any) -> None:
    if before is MISSING:
        scope.pop(variable, None)
    else:
        scope[variable] = before


_LOOPS: dict[str, Callable[..., Evaluate]] = {
    "all": _quantified(decisive=False),
    "exists": _quantified(decisive=True),
    "exists_one": _exactly_one,
    "filter": _filtered,
    "map": _mapped,
}
