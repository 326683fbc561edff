"""Label selectors, as `namespaceSelector` and others write them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from unisono.engine.model import selection as engine
from unisono.kinds.decode import Problem, Schema
from unisono.kinds.meta import wrong_with_label, wrong_with_label_key, wrong_with_label_value

# What Kubernetes makes of a selector that is not there at all: no value is among no values.
NOTHING = engine.LabelSelector((engine.Requirement("nothing", "In", ()),))


class LabelSelectorRequirement(Schema, frozen=True, kw_only=True):
    """One clause about one label."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()


class LabelSelector(Schema, frozen=True, kw_only=True):
    """All clauses must hold; an empty selector matches everything."""

    match_labels: Mapping[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


def check_selector(selector: LabelSelector, path: str) -> Iterator[Problem]:
    """Yield what is wrong with a selector that stands at `path`."""
    for key, value in selector.match_labels.items():
        wrong = wrong_with_label(key, value)
        if wrong:
            yield Problem(f"{path}.matchLabels[{key}]", wrong)
    for index, clause in enumerate(selector.match_expressions):
        at = f"{path}.matchExpressions[{index}]"
        wrong = wrong_with_label_key(clause.key)
        if wrong:
            yield Problem(f"{at}.key", wrong)
        wants_values = clause.operator in ("In", "NotIn")
        if wants_values and not clause.values:
            yield Problem(f"{at}.values", f"{clause.operator} needs at least one value")
        if not wants_values and clause.values:
            yield Problem(f"{at}.values", f"{clause.operator} takes no values")
        for number, value in enumerate(clause.values):
            wrong = wrong_with_label_value(value)
            if wrong:
                yield Problem(f"{at}.values[{number}]", wrong)


def selector_of(selector: LabelSelector) -> engine.LabelSelector:
    """Return the engine's form of a selector."""
    from_labels = tuple(
        engine.Requirement(key, "In", (value,))
        for key, value in sorted(selector.match_labels.items())
    )
    from_clauses = tuple(
        engine.Requirement(clause.key, clause.operator, clause.values)
        for clause in selector.match_expressions
    )
    return engine.LabelSelector(from_labels + from_clauses)
