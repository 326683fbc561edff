"""Which resources of a pod count, and as what (Kueue Configuration, `resources`; spec quota §3).

    excluded first, then for every requested input that has a transformation:
        output += input x factor (x the request of `multiplyBy`, if the pod has one)
        Replace drops the input, Retain keeps it
    outputs of one name are summed; a negative sum is 0; then they join the requests of that name

`charged` works in nano-units, so that rounding happens once, afterwards; `apply_rules` is the same
on engine amounts.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

import msgspec

from unisono.engine.model.names import CPU
from unisono.engine.model.resources import Amounts, amounts
from unisono.kinds.quantity import MILLI, NANO, Quantity


class Transformation(msgspec.Struct, frozen=True, kw_only=True):
    """One unit of `input` costs `outputs`; `Replace` no longer counts the input itself."""

    input: str
    strategy: Literal["Retain", "Replace"] = "Retain"
    multiply_by: str = ""  # another resource of the pod whose request, if any, multiplies
    # May be negative: an allowance.
    outputs: tuple[tuple[str, Quantity], ...] = ()


class ResourceRules(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator said about resources; the default leaves requests as they are."""

    exclude_prefixes: tuple[str, ...] = ()
    transformations: tuple[Transformation, ...] = ()


NO_RULES = ResourceRules()


def charged(requests: Mapping[str, int], rules: ResourceRules) -> dict[str, int]:
    """Return what a pod with these requests is charged for; nano-units on both sides.

    >>> gigabytes = (("gb", Quantity.from_raw(5)),)
    >>> mig = Transformation(input="mig", strategy="Replace", outputs=gigabytes)
    >>> charged({"mig": 2 * NANO, "cpu": 7}, ResourceRules(transformations=(mig,)))
    {'cpu': 7, 'gb': 10000000000}
    """
    counted = {
        name: size for name, size in requests.items() if not name.startswith(rules.exclude_prefixes)
    }
    applied = [rule for rule in rules.transformations if rule.input in counted]
    dropped = {rule.input for rule in applied if rule.strategy == "Replace"}
    result = {name: size for name, size in counted.items() if name not in dropped}
    for name, size in _generated(counted, applied).items():
        result[name] = result.get(name, 0) + size
    return result


def apply_rules(rules: ResourceRules, request: Mapping[str, int]) -> Amounts:
    """Return what one pod is charged for, given its request; engine amounts on both sides."""
    exact = {name: size * _nano_per_amount(name) for name, size in request.items()}
    return amounts(
        {name: -(-size // _nano_per_amount(name)) for name, size in charged(exact, rules).items()}
    )


def _nano_per_amount(resource: str) -> int:
    return NANO // MILLI if resource == CPU else NANO


def _generated(counted: Mapping[str, int], applied: list[Transformation]) -> dict[str, int]:
    """Sum what the transformations produce; a resource cannot be owed less than nothing."""
    sums: dict[str, Fraction] = {}
    for rule in applied:
        units = Fraction(counted[rule.input], NANO)
        if rule.multiply_by in counted:
            units *= Fraction(counted[rule.multiply_by], NANO)
        for name, factor in rule.outputs:
            sums[name] = sums.get(name, Fraction(0)) + units * factor.nano
    return {name: max(0, -(-exact.numerator // exact.denominator)) for name, exact in sums.items()}
