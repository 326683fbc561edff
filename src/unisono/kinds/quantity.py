"""Kubernetes quantities (`500m`, `64Gi`, `1e3`) as exact integers.

    quantity = [+|-] digits[.digits] [suffix]       also `5.` and `.5`
    suffix   = n u m (none) k M G T P E             powers of 1000
             | Ki Mi Gi Ti Pi Ei                    powers of 1024
             | e|E [+|-] digits                     a power of ten; `1E` alone is exa

A quantity is kept in nano-units, the finest step that Kubernetes knows; anything finer is rounded
away from zero, and anything beyond 2^63-1 units is cut there, which the engine reads as "no limit".
CPU is counted in millicores and everything else in whole units, again rounded away from zero: a
pod that asks for 0.1 of a device is charged one. This module alone knows what `64Gi` means.

Resource lists are summed in nano-units and rounded once, at the very end: two containers of 500u
CPU together cost 1m, not 2m.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache

from unisono.engine.model.names import CPU
from unisono.engine.model.resources import UNLIMITED, Amounts, amounts, bounded, most_of
from unisono.kinds.notes import Notes
from unisono.kinds.scalar import Scalar

NANO = 10**9
MILLI = 10**3

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_SHAPE = re.compile(r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)([A-Za-z]{0,2}|[eE][+-]?[0-9]+)")
# Long enough for any amount that means something, short enough that arithmetic stays cheap.
_MAX_LENGTH = 64
# With at most 64 digits, a larger power of ten cannot change what the limits make of the amount.
_MAX_EXPONENT = 200
# Resources that people think of in bytes, so that messages say 64Gi instead of 68719476736.
_BYTES = ("memory", "storage")


class Quantity(Scalar, frozen=True):
    """An exact amount, and how the user wrote it."""

    text: str
    nano: int

    @classmethod
    def from_raw(cls, raw: object) -> Quantity:
        """Read a quantity from a YAML or JSON value; raise ValueError with the reason."""
        text = _as_text(raw)
        return cls(text, _nano(text))

    def to_raw(self) -> str:
        """Return what the user wrote."""
        return self.text

    @property
    def units(self) -> int:
        """The amount in whole units, rounded away from zero."""
        return _scaled(self.nano, NANO)

    @property
    def milli(self) -> int:
        """The amount in thousandths, rounded away from zero."""
        return _scaled(self.nano, NANO // MILLI)

    def amount(self, resource: str) -> int:
        """Return the amount as the engine counts this resource: millicores, or whole units."""
        return self.milli if resource == CPU else self.units


def parse(value: str | int | float, *, milli: bool) -> int:
    """Return a quantity in whole units, or in thousandths; raise ValueError with the reason.

    >>> parse("1.5Gi", milli=False), parse("250m", milli=True), parse("1E3", milli=False)
    (1610612736, 250, 1000)
    >>> parse("100m", milli=False)  # one tenth of a device costs a whole one
    1
    """
    quantity = Quantity.from_raw(value)
    return quantity.milli if milli else quantity.units


def format_amount(amount: int, resource: str) -> str:
    """Print an engine amount as a user would write it.

    >>> format_amount(500, "cpu"), format_amount(2000, "cpu"), format_amount(64 * 2**30, "memory")
    ('500m', '2', '64Gi')
    >>> format_amount(16 * 10**9, "memory"), format_amount(1024, "nvidia.com/gpu")
    ('16G', '1024')
    """
    if abs(amount) >= UNLIMITED:
        return "unlimited" if amount > 0 else "-unlimited"
    if resource == CPU:
        return str(amount // MILLI) if amount % MILLI == 0 else f"{amount}m"
    if amount == 0 or not _is_bytes(resource):
        return str(amount)
    binary = [
        (amount >> power, suffix) for suffix, power in _BINARY.items() if amount % (1 << power) == 0
    ]
    decimal = [
        (amount // 10**power, suffix)
        for suffix, power in _DECIMAL.items()
        if power > 0 and amount % 10**power == 0
    ]
    number, suffix = min([(amount, ""), *decimal, *binary], key=lambda pair: abs(pair[0]))
    return f"{number}{suffix}"


def _is_bytes(resource: str) -> bool:
    return resource.endswith(_BYTES) or resource.startswith("hugepages-")


def _as_text(raw: object) -> str:
    """Return the text that Kubernetes would parse; a bare number counts as its digits."""
    if isinstance(raw, str):
        return raw
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return str(raw)
    raise ValueError("must be a quantity such as 4, 500m or 64Gi")


@lru_cache(maxsize=4096)  # manifests repeat a few amounts thousands of times
def _nano(text: str) -> int:
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"is longer than {_MAX_LENGTH} characters; write it with a suffix")
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise ValueError(f'"{text}" is not a quantity; write it like 4, 500m or 64Gi')
    sign, digits, suffix = shape.groups()
    exact = Fraction("0" + digits) * _factor(suffix, text) * NANO
    size = min(-(-exact.numerator // exact.denominator), UNLIMITED * NANO)
    return -size if sign == "-" else size


def _factor(suffix: str, text: str) -> Fraction | int:
    if suffix in _DECIMAL:
        return Fraction(10) ** _DECIMAL[suffix]
    if suffix in _BINARY:
        return 1 << _BINARY[suffix]
    if suffix[0] in "eE" and len(suffix) > 1 and suffix[-1] in "0123456789":
        exponent = int(suffix[1:])
        return Fraction(10) ** max(-_MAX_EXPONENT, min(_MAX_EXPONENT, exponent))
    raise ValueError(
        f'"{text}" has the unknown suffix {suffix}; known are n u m k M G T P E and Ki to Ei'
    )


def _scaled(nano: int, per_unit: int) -> int:
    """Divide, rounding away from zero, and cut what Kubernetes cannot count."""
    size = min(-(-abs(nano) // per_unit), UNLIMITED)
    return -size if nano < 0 else size


# ---- resource lists ------------------------------------------------------------------------------

Nano = dict[str, int]  # a resource list in nano-units


def nano(resources: Mapping[str, Quantity]) -> Nano:
    """Return a resource list in nano-units."""
    return {name: quantity.nano for name, quantity in resources.items()}


def rounded(resources: Mapping[str, int]) -> Amounts:
    """Return engine amounts: millicores of CPU and whole units of all else, rounded up.

    They are cut to what the engine counts; `beyond` says of which that is not the whole truth.
    """
    return amounts(
        {name: bounded(name, Quantity("", size).amount(name)) for name, size in resources.items()}
    )


def beyond(resources: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence for every resource of which one pod asks for more than there can be.

    >>> list(beyond({"cpu": 9 * 10**24, "memory": 10**9}))
    ['asks for 9000000000000000 cpu; one pod can have 1000000000 cpu at most: ask for less']
    """
    for name, size in sorted(resources.items()):
        amount, most = Quantity("", size).amount(name), most_of(name)
        if amount > most:
            asked = "more than can be counted of" if amount >= UNLIMITED else ""
            asked = f"{asked} {name}" if asked else written(size, name)
            limit = f"{format_amount(most, name)} {name}"
            yield f"asks for {asked}; one pod can have {limit} at most: ask for less"


def written(size: int, resource: str) -> str:
    """Print nano-units of a resource as a user would write them: `8 nvidia.com/gpu`, `64Gi memory`.

    >>> written(8 * 10**9, "nvidia.com/gpu"), written(500 * 10**6, "cpu")
    ('8 nvidia.com/gpu', '500m cpu')
    """
    return f"{format_amount(Quantity('', size).amount(resource), resource)} {resource}"


def total(lists: Iterable[Mapping[str, int]]) -> Nano:
    """Return the sum of resource lists."""
    result: Nano = {}
    for resources in lists:
        for name, size in resources.items():
            result[name] = result.get(name, 0) + size
    return result


def highest(lists: Iterable[Mapping[str, int]]) -> Nano:
    """Return the largest amount of each resource."""
    result: Nano = {}
    for resources in lists:
        for name, size in resources.items():
            result[name] = max(result.get(name, size), size)
    return result


def first_of(preferred: Mapping[str, int], otherwise: Mapping[str, int]) -> Nano:
    """Return `preferred`, completed by what only `otherwise` has."""
    return {**otherwise, **preferred}


def check_not_negative(resources: Mapping[str, Quantity], path: str, notes: Notes) -> None:
    """Report negative amounts in a resource list that stands at `path`."""
    for name, quantity in resources.items():
        if quantity.nano < 0:
            notes.problem(f"{path}[{name}]", f"is {quantity.text}; it must not be negative")
