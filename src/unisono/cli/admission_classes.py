"""Who may name which priority class, as rules that a real API server applies itself.

The rules are those of the embedded API (`apiserver.admission.classes`), and so is where they stand:
`priorityClasses` of the Policy object, which these policies have as their parameter. An API server
knows who writes an object; so users and groups count, which controllers never see. Without a Policy
object nobody is refused. What an object named before it may go on naming.

    rules   all of them
    mine    those for the author of the object: by name, by group, or by its namespace
    open    whether classes without a rule of their own are the author's to name
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unisono.cli.admission_tenancy import (
    DECIDERS,
    DECIDES,
    Path,
    Places,
    every,
    matched,
    searched_kinds,
    some,
)
from unisono.kinds.priorities import PRIORITY_LABEL
from unisono.kinds.settings import EVERY_CLASS

Json = dict[str, Any]

NAME = "unisono-priority-classes-of"
# There should be one; were there several, what any of them refuses is refused.
EVERY_POLICY = {"selector": {}, "parameterNotFoundAction": "Allow"}
NOT_FOR_YOU = "names a priority class that is not for its author (priorityClasses of the Policy)"


def classes() -> Iterator[tuple[str, tuple[str, str, str], Json]]:
    """Yield for each kind a name, group, versions and plural, and the parts of a policy."""
    for served, places in searched_kinds():
        yield f"{NAME}-{served.resource}", matched(served), _rules(places)


def _rules(places: Places) -> Json:
    named = [
        *(_may_name(path[:-1], f".?{path[-1]}.orValue('')") for path in places.classes),
        *(_may_name(path, _LABEL) for path in places.metadata),
    ]
    return {
        "paramKind": {"apiVersion": "unisono.dev/v1", "kind": "Policy"},
        "variables": [*_VARIABLES, *DECIDERS],
        "validations": [
            {
                "expression": f"variables.rules.size() == 0 || {one} || {DECIDES}",
                "message": NOT_FOR_YOU,
                "messageExpression": f"'{NOT_FOR_YOU}: ' + variables.others",
                "reason": "Forbidden",
            }
            for one in named
        ],
    }


_LABEL = f".?metadata.?labels[?'{PRIORITY_LABEL}'].orValue('')"


def _may_name(path: Path, field: str) -> str:
    """Return what is true if the author may name every class at a place, or it was there."""

    def is_fine(new: str) -> str:
        name = f"{new}{field}"
        before = some("oldObject", path, lambda old: f"{old}{field} == {name}")
        has_rule = "variables.{}.exists(r, {} in r.names)"
        return (
            f"({name} == '' || {has_rule.format('mine', name)} || "
            f"variables.open && !{has_rule.format('rules', name)} || "
            f"oldObject != null && {before})"
        )

    return every("object", path, is_fine)


def _listed(field: str, word: str) -> str:
    return f"(r.?{field}.orValue([]).size() == 0 ? [] : ['{word} ' + r.{field}.join(', ')])"


_IS_MINE = (
    "request.userInfo.username in r.?users.orValue([]) || "
    "request.namespace in r.?namespaces.orValue([]) || "
    "r.?groups.orValue([]).exists(g, g in request.userInfo.groups)"
)
_FOR = " + ".join(_listed(field, field) for field in ("users", "groups", "namespaces"))
_VARIABLES = [
    {"name": "rules", "expression": "params.?priorityClasses.orValue([])"},
    {"name": "mine", "expression": f"variables.rules.filter(r, {_IS_MINE})"},
    {
        "name": "open",
        "expression": f"!variables.rules.exists(r, '{EVERY_CLASS}' in r.names) || "
        f"variables.mine.exists(r, '{EVERY_CLASS}' in r.names)",
    },
    {
        "name": "others",
        "expression": f"variables.rules.filter(r, !({_IS_MINE})).map(r, r.names.join(', ') + "
        f"' is for ' + ({_FOR} == [] ? 'administrators' : ({_FOR}).join('; '))).join('; ')",
    },
]
