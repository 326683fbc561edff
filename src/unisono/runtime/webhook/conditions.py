"""When an API server asks a webhook about tenancy: only if it would be refused.

The rules are those of `runtime.admission`, as conditions of a webhook. The server itself looks up
what the author may do. So it never asks about writes of controllers, kubelets and schedulers, and
while no replica answers, nothing is refused but what would be in any case, and what names a
priority class by hand.

A server evaluates such conditions since Kubernetes 1.28. They do without optional fields (`a.?b`),
which came two releases later: a server that has those has policies, too.
"""

from __future__ import annotations

from collections.abc import Callable

from unisono.apiserver.access.reserved_fields import GATES, RESERVED
from unisono.kinds.priorities import PRIORITY_LABEL
from unisono.runtime.admission.tenancy import (
    BINDS,
    ITEMS,
    JOBS,
    KIND,
    MAKERS,
    VALUES,
    Path,
    Places,
    owner_kinds,
    runs,
)

Conditions = list[dict[str, str]]
_WORDS = str(sorted(RESERVED))
_OWNERS = "has({0}.metadata.ownerReferences) && {0}.metadata.ownerReferences"
_IS_CONTROLLER = "has(o.controller) && o.controller"


def decision_conditions(places: Places) -> Conditions:
    """Return when to ask about an object with these places: what it writes is not its author's."""
    makes = (
        f"{_OWNERS.format('object')}.exists(o, {_IS_CONTROLLER} && "
        f"{KIND} in {MAKERS} && {runs(MAKERS)})"
    )
    return [
        {"name": "decides", "expression": f"!({' && '.join(undecided(places))})"},
        {"name": "may-not-bind", "expression": f"!({BINDS})"},
        {"name": "does-not-make-it", "expression": f"!({makes})"},
    ]


def undecided(places: Places) -> list[str]:
    """Return what is true of an object that writes no decision and names no class anew."""
    kept = [
        *(_kept(path, "nodeName") for path in places.pods),
        *(_same_words(path) for path in places.metadata),
        *(_kept(path[:-1], path[-1]) for path in places.classes),
        *(_same_class(path) for path in places.metadata),
    ]
    if ("spec",) in places.pods:
        kept.append(_same_gates())
    return kept


def owner_conditions() -> Conditions:
    """Return when to ask about an object's owners: it claims a job that its author does not run."""
    before = (
        f"oldObject != null && {_OWNERS.format('oldObject')}.exists(q, has(q.controller) && "
        "q.controller && q.kind == o.kind && q.name == o.name && q.apiVersion == o.apiVersion)"
    )
    jobs = owner_kinds(JOBS)
    claimed = (
        f"{_OWNERS.format('object')}.exists(o, {_IS_CONTROLLER} && {KIND} in {jobs} && "
        f"!({before}) && !{runs(jobs)})"
    )
    return [{"name": "claims-an-owner", "expression": claimed}]


def _kept(path: Path, field: str) -> str:
    """Return what is true if nothing at a place has a value of a field that none had before."""
    return _every(
        path,
        lambda new: (
            f"(!has({new}.{field}) || {new}.{field} == '' || "
            + _before(path, lambda old: f"has({old}.{field}) && {old}.{field} == {new}.{field}")
            + ")"
        ),
    )


def _same_words(path: Path) -> str:
    return " && ".join(_same_word(path, part, "w", _WORDS) for part in ("labels", "annotations"))


def _same_class(path: Path) -> str:
    return _same_word(path, "labels", f"'{PRIORITY_LABEL}'", "")


def _same_word(path: Path, part: str, word: str, words: str) -> str:
    """Return what is true if a label or annotation, or each of some, is as it was at a place."""

    def has(at: str) -> str:
        return f"has({at}.metadata) && has({at}.metadata.{part}) && {word} in {at}.metadata.{part}"

    def ask(new: str) -> str:
        same = f"{{0}}.metadata.{part}[{word}] == {new}.metadata.{part}[{word}]"
        before = _before(path, lambda old: f"{has(old)} && {same.format(old)}")
        is_kept = f"(!({has(new)}) || {before})"
        return f"{words}.all({word}, {is_kept})" if words else is_kept

    return _every(path, ask)


def _same_gates() -> str:
    gates = (
        "has({0}.spec) && has({0}.spec.schedulingGates) && "
        "{0}.spec.schedulingGates.exists(g, g.name == w)"
    )
    kept = f"!({gates.format('oldObject')}) || {gates.format('object')}"
    return f"(oldObject == null || {sorted(GATES)}.all(w, {kept}))"


def _every(path: Path, ask: Callable[[str], str]) -> str:
    """Return what is true if something is true of everything at a place of the new object."""
    return _each("object", path, ask, "(!has({0}) || {1})", "all", 0)


def _before(path: Path, ask: Callable[[str], str]) -> str:
    """Return what is true if something is true of anything at a place of the old object."""
    found = _each("oldObject", path, ask, "(has({0}) && {1})", "exists", 0)
    return f"(oldObject != null && {found})"


def _each(
    here: str, path: Path, ask: Callable[[str], str], guard: str, loop: str, depth: int
) -> str:
    if not path:
        return ask(here)
    name, below = path[0], path[1:]
    if name in (ITEMS, VALUES):
        one = f"{'o' if loop == 'exists' else 'n'}{depth}"
        inner = one if name == ITEMS else f"{here}[{one}]"
        return f"{here}.{loop}({one}, {_each(inner, below, ask, guard, loop, depth + 1)})"
    field = f"{here}.{name}"
    return guard.format(field, _each(field, below, ask, guard, loop, depth))
