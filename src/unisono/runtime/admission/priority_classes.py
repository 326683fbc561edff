"""The users of each priority class, as rules that a real API server applies itself.

The rules are those of the embedded API (`apiserver.admission.classes`). The leader writes them into
a ConfigMap (`control.class_rules`), which these policies have as their parameter. An API server
knows the author of an object; so users and groups count, which controllers never see. Without
such a ConfigMap no object is refused. What an object named before it may go on naming.

    rules   all of them
    mine    those for the author of the object: by name, by group, or by its namespace
    open    whether classes without a rule of their own are the author's to name
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unisono.control.jobs.priority_class_rules import CLASS_RULES
from unisono.kinds.policy.settings import EVERY_CLASS
from unisono.kinds.priorities import PRIORITY_LABEL
from unisono.runtime.admission.tenancy import (
    DECIDERS,
    DECIDES,
    Path,
    Places,
    every,
    matched,
    searched_kinds,
    some,
)

Json = dict[str, Any]

NAME = "unisono-priority-classes-of"
NOT_FOR_YOU = "names a priority class that is not for its author (priorityClasses of the policy)"


def written_rules(home: str) -> Json:
    """Return where the leader of an installation writes the rules."""
    return {"name": CLASS_RULES, "namespace": home, "parameterNotFoundAction": "Allow"}


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
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
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


def _lines(field: str) -> str:
    """Return the lines of a field of the rule with the key `k`; none if it has none."""
    return (
        f"params.data[?k.replace('.names', '.{field}')].orValue('').split('\\n')"
        ".filter(one, one != '')"
    )


def _listed(field: str) -> str:
    return f"(r.{field}.size() == 0 ? [] : ['{field} ' + r.{field}.join(', ')])"


_IS_MINE = (
    "request.userInfo.username in r.users || request.namespace in r.namespaces || "
    "r.groups.exists(g, g in request.userInfo.groups)"
)
_FIELDS = ("names", "users", "groups", "namespaces")
_FOR = " + ".join(map(_listed, _FIELDS[1:]))
_VARIABLES = [
    {
        "name": "rules",
        "expression": "params.?data.orValue({}).filter(k, k.endsWith('.names')).map(k, {"
        + ", ".join(f"'{field}': {_lines(field)}" for field in _FIELDS)
        + "})",
    },
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
