"""What a cycle did, against what the story says it did.

An outcome is matched by its kind and by the fields that the scenario names, nothing else. Two
things are exact, because a story must not hide them: a cycle admits and evicts nothing that the
scenario does not name, and it admits in the order in which the scenario lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tests.scenarios import offerings
from tests.scenarios.nodes import LEVELS
from tests.scenarios.reading import Part
from tests.scenarios.words import RESOURCES, key_of, resource
from unisono.engine.explain.messages import message_of, reason_of
from unisono.engine.model.explanation import Explanation, GangDoesNotFit
from unisono.engine.model.names import WorkloadKey
from unisono.engine.model.plan import (
    Admit,
    Await,
    DueEviction,
    Plan,
    Preempt,
    Wait,
    evictions,
    shrinks,
)
from unisono.engine.model.workload import Admission

_ADMITTED_FIELDS = ("flavor", "flavors", "pods", "nodes", "sets", "level", "checks", "replaces")
# Fields of facts that hold the name of a workload, or several.
_WORKLOAD_FIELDS = ("victims", "head", "waiting_for")


class Mismatch(Exception):
    """The engine did something else than the story says."""


def mismatch(part: Part, problem: str) -> Mismatch:
    """Describe a mismatch and the place in the file that it contradicts."""
    return Mismatch(f"{part.path}: {problem}")


def check_cycle(expected: Part, plan: Plan) -> None:
    """Compare one plan with the outcomes that a `cycle` step names."""
    found = _Found(plan)
    if expected.value == "idle":
        if plan.examined or found.decided():
            raise mismatch(expected, f"expected nothing to look at, but {found.summary()}")
        return
    if expected.value == "nothing":
        if found.decided():
            raise mismatch(expected, f"expected no decision, but {found.summary()}")
        return
    named = {key_of(name): outcome for name, outcome in expected.entries()}
    for key, outcome in named.items():
        check_outcome(outcome, key, found)
    for key in found.decided():
        if key not in named and key not in _named_victims(named):
            raise mismatch(expected, f"does not mention that {found.describe(key)}")
    admitted = [key for key in named if key in found.admissions]
    if admitted != list(found.admissions):
        order = ", ".join(found.admissions)
        raise mismatch(expected, f"were admitted in another order: {order}")


def check_outcome(outcome: Part, key: WorkloadKey, found: _Found) -> None:
    """Compare what happened to one workload."""
    if outcome.is_scalar():
        kinds = {outcome.one_of("admitted", "waits"): Part({}, outcome.path)}
    else:
        kinds = outcome.fields(*_CHECKS, "to_run")
    for kind, wanted in kinds.items():
        if kind != "to_run":
            _CHECKS[kind](wanted, key, found)
    if "to_run" in kinds:
        later = found.preemptions.get(key) or found.awaits[key]
        check_admission(kinds["to_run"], later.admission)


class _Found:
    """A plan, by workload."""

    def __init__(self, plan: Plan) -> None:
        self.admissions: dict[WorkloadKey, Admit] = {one.workload: one for one in plan.admissions}
        self.preemptions: dict[WorkloadKey, Preempt] = {
            one.workload: one for one in plan.preemptions
        }
        self.awaits: dict[WorkloadKey, Await] = {one.workload: one for one in plan.awaits}
        self.evictions_due: dict[WorkloadKey, DueEviction] = {
            one.workload: one for one in plan.evictions_due
        }
        self.waits: dict[WorkloadKey, Wait] = {one.explanation.workload: one for one in plan.waits}
        self.evicted = {one.workload: one for one in evictions(plan)}
        self.smaller = {one.workload: one for one in shrinks(plan)}

    def decided(self) -> list[WorkloadKey]:
        """List the workloads that were admitted, evicted or shrunk."""
        return [*self.admissions, *self.evicted, *self.smaller]

    def summary(self) -> str:
        """Return everything that the plan decided, in one line."""
        evaluated = dict.fromkeys([*self.decided(), *self.waits])
        return "; ".join(self.describe(key) for key in evaluated) or "the cycle examined queues"

    def describe(self, key: WorkloadKey) -> str:
        """Return in a few words what became of one workload."""
        if key in self.admissions:
            return f"{key} was admitted: {_plain(self.admissions[key])}"
        if key in self.preemptions:
            return f"{key} evicts: {_plain(self.preemptions[key].victims)}"
        if key in self.evicted:
            return f"{key} was evicted: {_plain(self.evicted[key])}"
        if key in self.smaller:
            return f"{key} shrinks: {_plain(self.smaller[key])}"
        if key in self.waits:
            return f"{key} waits: {_plain(self.waits[key])}"
        return f"{key} is not in the plan"


# --- kinds of outcome ----------------------------------------------------------------------------


def _check_admitted(wanted: Part, key: WorkloadKey, found: _Found) -> None:
    admit = found.admissions.get(key)
    if admit is None:
        raise mismatch(wanted, f"expected an admission, but {found.describe(key)}")
    given = wanted.fields(*_ADMITTED_FIELDS)
    check_admission(wanted, admit.admission)
    if "level" in given:
        _same(given["level"], given["level"].whole(), admit.borrow_level)
    if "checks" in given:
        passed = "passed" if admit.checks_pass else "pending"
        _same(given["checks"], given["checks"].one_of("passed", "pending"), passed)
    if "replaces" in given:
        _same(given["replaces"], key_of(given["replaces"].text()), admit.replaces)


def _check_buys(wanted: Part, key: WorkloadKey, found: _Found) -> None:
    admit = found.admissions.get(key)
    if admit is None or admit.purchase is None:
        raise mismatch(wanted, f"expected a purchase, but {found.describe(key)}")
    new = {node_claim.node for node_claim in admit.purchase.node_claims}
    used = {name for one in admit.admission.pod_sets for name, _ in one.nodes}
    problem = offerings.compare(wanted, admit.purchase, len(used - new))
    if problem:
        raise mismatch(wanted, problem)


def check_admission(wanted: Part, admission: Admission) -> None:
    """Compare flavors and pod counts."""
    given = wanted.fields(*_ADMITTED_FIELDS)
    sets = {assigned.name: assigned for assigned in admission.pod_sets}
    every_flavor = {
        resource_name: flavor for one in admission.pod_sets for resource_name, flavor in one.flavors
    }
    if "flavor" in given:
        flavors = sorted({flavor for one in admission.pod_sets for _, flavor in one.flavors})
        _same(given["flavor"], [given["flavor"].text()], flavors)
    if "flavors" in given:
        named = given["flavors"].entries()
        flavors_named = {resource(part, word): part.text() for word, part in named}
        _same(given["flavors"], flavors_named, every_flavor)
    if "pods" in given and given["pods"].is_scalar():
        _same(given["pods"], given["pods"].whole(), sum(one.count for one in sets.values()))
    elif "pods" in given:
        counts = {name: count.whole() for name, count in given["pods"].entries()}
        _same(given["pods"], counts, {name: sets[name].count for name in sets})
    if "nodes" in given:
        _check_nodes(given["nodes"], admission)
    if "sets" in given:
        for name, inner in given["sets"].entries():
            if name not in sets:
                inner.fail(f"no such pod set; the admission has {', '.join(sets)}")
            check_admission(inner, Admission(queue=admission.queue, pod_sets=(sets[name],)))


def _check_nodes(wanted: Part, admission: Admission) -> None:
    """Compare pods per node, over all sets; the nodes of one set come in topology order."""
    counts = {name: count.whole() for name, count in wanted.entries()}
    actual: dict[str, int] = {}
    for assigned in admission.pod_sets:
        for name, count in assigned.nodes:
            actual[name] = actual.get(name, 0) + count
    _same(wanted, counts, actual)
    if len(admission.pod_sets) == 1 and list(counts) != list(actual):
        raise mismatch(wanted, f"expected the order {list(counts)}, got {list(actual)}")


def _check_waits(wanted: Part, key: WorkloadKey, found: _Found) -> None:
    wait = found.waits.get(key)
    if wait is None or key in found.admissions:
        raise mismatch(wanted, f"expected to wait, but {found.describe(key)}")
    if isinstance(wanted.value, dict) and "outcome" in wanted.value:
        outcome = wanted["outcome"]
        _same(
            outcome, outcome.one_of("retry", "park", "stall", "sticky", "line", "bar"), wait.outcome
        )
        rest = {name: value for name, value in wanted.value.items() if name != "outcome"}
        wanted = Part(rest, wanted.path)
    check_explanation(wanted, wait.explanation)


def check_explanation(wanted: Part, explanation: Explanation) -> None:
    """Compare a reason, or facts, or both."""
    if isinstance(wanted.value, str):
        given = {"reason": wanted}
    elif isinstance(wanted.value, list):
        given = {"facts": wanted}
    else:
        given = wanted.fields("reason", "facts", "says")
    facts = [_plain(fact) for fact in explanation.blockers]
    if "reason" in given:
        reason = reason_of(explanation)
        if given["reason"].text() != reason:
            problem = f"expected {given['reason'].text()}, got {reason}: {facts}"
            raise mismatch(given["reason"], problem)
    if "says" in given and given["says"].text() not in message_of(explanation):
        problem = f"expected {given['says'].text()!r} in {message_of(explanation)!r}"
        raise mismatch(given["says"], problem)
    for fact in given["facts"].items() if "facts" in given else []:
        expected = {name: _fact_value(name, part) for name, part in fact.entries()}
        if not any(_has(one, expected) for one in facts):
            raise mismatch(fact, f"expected a fact with {expected}, got {facts}")


def _check_evicts(wanted: Part, key: WorkloadKey, found: _Found) -> None:
    preemption = found.preemptions.get(key)
    if preemption is None:
        raise mismatch(wanted, f"expected a preemption, but {found.describe(key)}")
    victims = {victim.workload: victim for victim in preemption.victims if victim.keeps is None}
    named = {key_of(name): part for name, part in wanted.entries()}
    if set(named) != set(victims):
        problem = f"expected {', '.join(named)} to leave, got {', '.join(victims)}"
        raise mismatch(wanted, problem)
    for name, part in named.items():
        if part.is_scalar():
            _same(part, part.text(), victims[name].reason)
        else:
            given = part.fields("reason", "already_evicting")
            actual = msgspec.to_builtins(victims[name])
            for field, value in given.items():
                _same(value, value.value, actual[field])


def _check_shrinks(wanted: Part, key: WorkloadKey, found: _Found) -> None:
    """Compare which workloads give up pods, and which pods remain."""
    preemption = found.preemptions.get(key)
    if preemption is None:
        raise mismatch(wanted, f"expected a preemption, but {found.describe(key)}")
    victims = {victim.workload: victim for victim in preemption.victims if victim.keeps is not None}
    named = {key_of(name): part for name, part in wanted.entries()}
    if set(named) != set(victims):
        problem = f"expected {', '.join(named)} to give up pods, got {', '.join(victims)}"
        raise mismatch(wanted, problem)
    for name, part in named.items():
        given = part.fields("reason", "already_evicting", "pods", "nodes")
        victim = victims[name]
        for field in ("reason", "already_evicting"):
            if field in given:
                _same(given[field], given[field].value, getattr(victim, field))
        kept = {field: given[field].value for field in ("pods", "nodes") if field in given}
        assert victim.keeps is not None, "those without were left out above"
        check_admission(Part(kept, part.path), victim.keeps)


def _check_awaits(wanted: Part, key: WorkloadKey, found: _Found) -> None:
    """Compare the pods of others that a workload waits for."""
    patient = found.awaits.get(key)
    if patient is None:
        raise mismatch(wanted, f"expected to wait for pods, but {found.describe(key)}")
    _same(wanted, [key_of(name) for name in wanted.names()], list(patient.pods))


def _check_stopped(wanted: Part, key: WorkloadKey, found: _Found) -> None:
    stop = found.evictions_due.get(key)
    if stop is None:
        raise mismatch(wanted, f"expected to be stopped, but {found.describe(key)}")
    if isinstance(wanted.value, str):
        _same(wanted, wanted.text(), stop.reason)
        return
    given = wanted.fields("reason", "requeue_at", "deactivate")
    actual = msgspec.to_builtins(stop)
    for field, part in given.items():
        expected = part.milliseconds() if field == "requeue_at" else part.value
        _same(part, expected, actual.get(field))


_CHECKS: Mapping[str, Callable[[Part, WorkloadKey, _Found], None]] = {
    "admitted": _check_admitted,
    "buys": _check_buys,
    "waits": _check_waits,
    "evicts": _check_evicts,
    "shrinks": _check_shrinks,
    "awaits": _check_awaits,
    "stopped": _check_stopped,
}


# --- small things --------------------------------------------------------------------------------


def _named_victims(named: Mapping[WorkloadKey, Part]) -> set[WorkloadKey]:
    """Return the victims that preemptors of this step name: they need no entry of their own."""
    victims: set[WorkloadKey] = set()
    for outcome in named.values():
        for kind in ("evicts", "shrinks"):
            if isinstance(outcome.value, dict) and kind in outcome.value:
                victims.update(key_of(name) for name, _ in outcome[kind].entries())
    return victims


def _fact_value(name: str, part: Part) -> Any:
    """Translate a fact's field from a scenario's words to the engine's."""
    if name == "resource" and part.value in RESOURCES:
        return RESOURCES[part.value]
    if name == "level" and part.value in LEVELS:
        return LEVELS[part.value]
    if name == "refusals":
        return {RESOURCES.get(why, why): count.whole() for why, count in part.entries()}
    if name in _WORKLOAD_FIELDS:
        keys = [key_of(one) for one in part.names()]
        return keys if isinstance(part.value, list) else keys[0]
    return part.value


def _has(actual: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    return all(name in actual and actual[name] == value for name, value in expected.items())


def _same(part: Part, expected: Any, actual: Any) -> None:
    if expected != actual:
        raise mismatch(part, f"expected {expected}, got {actual}")


def _plain(value: object) -> Any:
    plain = msgspec.to_builtins(value)
    if isinstance(value, GangDoesNotFit):
        plain["refusals"] = dict(value.refusals)
    return plain
