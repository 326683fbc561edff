"""What is left of a plan that the auditor refused.

A refusal concerns few workloads, and the others should not wait for them. `blamed` says which
workloads of a plan the violations are about, `without` is the plan without all that it decides
about them, and `single_decisions` takes a plan apart where nothing can be blamed. Every part is
audited again before it counts: nothing here decides that it is sound.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from unisono.engine.audit import Violation
from unisono.engine.model.names import WorkloadKey
from unisono.engine.model.plan import Plan


def blamed(made: Plan, violations: Iterable[Violation]) -> dict[WorkloadKey, str]:
    """Return the workloads whose decisions break a promise, each with what is said about it.

    A victim is never to blame: it is the preemptor that chose it. A violation that names no
    workload of the plan blames nothing.
    """
    chosen_by = {
        victim.workload: preemption.workload
        for preemption in made.preemptions
        for victim in preemption.victims
    }
    chosen_by.update(
        (admit.replaces, admit.workload) for admit in made.admissions if admit.replaces is not None
    )
    decided = _decided(made)
    found: dict[WorkloadKey, str] = {}
    for violation in violations:
        key = violation.workload
        if key is not None and key not in decided:
            key = chosen_by.get(key)
        if key is not None:
            found.setdefault(key, f"{violation.rule}: {violation.message}")
    return found


def _decided(made: Plan) -> set[WorkloadKey]:
    return {
        *(one.workload for one in made.admissions),
        *(one.workload for one in made.preemptions),
        *(one.workload for one in made.awaits),
        *(one.workload for one in made.evictions_due),
        *(one.explanation.workload for one in made.waits),
        *(one.workload for one in made.reservations),
    }


def without(made: Plan, keys: Collection[WorkloadKey]) -> Plan:
    """Return the plan without all that it decides about these workloads.

    Their queues do not count as examined: what comes next in them was not looked at.
    """
    unexamined = {
        *(one.admission.queue for one in made.admissions if one.workload in keys),
        *(one.admission.queue for one in made.preemptions if one.workload in keys),
        *(one.admission.queue for one in made.awaits if one.workload in keys),
        *(one.explanation.queue for one in made.waits if one.explanation.workload in keys),
    }
    return msgspec.structs.replace(
        made,
        admissions=tuple(one for one in made.admissions if one.workload not in keys),
        preemptions=tuple(one for one in made.preemptions if one.workload not in keys),
        awaits=tuple(one for one in made.awaits if one.workload not in keys),
        evictions_due=tuple(one for one in made.evictions_due if one.workload not in keys),
        waits=tuple(one for one in made.waits if one.explanation.workload not in keys),
        reservations=tuple(one for one in made.reservations if one.workload not in keys),
        examined=tuple(queue for queue in made.examined if queue not in unexamined),
    )


def single_decisions(made: Plan) -> Iterator[tuple[WorkloadKey, Plan]]:
    """Yield every decision as a plan of its own, in the order of the plan.

    Each is based on the state that the whole plan was made from; before it is applied, `based_on`
    has to be set to the version after the last one. Explanations go with the workload that they are
    about. Those of workloads about which nothing else is decided are left out: they may not be true
    any more when the decisions before them have been applied, and the next cycle gives them anew.
    """
    for eviction in made.evictions_due:
        yield eviction.workload, _only(made, eviction.workload)
    for admit in made.admissions:
        yield admit.workload, _only(made, admit.workload)
    for preemption in made.preemptions:
        yield preemption.workload, _only(made, preemption.workload)
    for await_ in made.awaits:
        yield await_.workload, _only(made, await_.workload)


def _only(made: Plan, key: WorkloadKey) -> Plan:
    return without(made, _decided(made) - {key})
