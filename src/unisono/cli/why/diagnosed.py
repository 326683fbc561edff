"""The root cause of one wait, found here where the scheduler has published none.

It publishes one some seconds after a workload was explained, and none in a large cluster. Here only
one workload is asked about, so there is more time for it. What is read of the cluster has to lead
to the same first fact that the scheduler found; else something that decides was not to be read
(nodes, or a policy that is only a file), and nothing is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unisono.cli.job_names import by_jobs, job_names
from unisono.cli.why.read import Found

if TYPE_CHECKING:
    from unisono.engine.model.diagnosis import Diagnosis
    from unisono.kube.client import Client
    from unisono.kube.form import Json

# Objects of copied clusters: some seconds.
_MOST_OBJECTS = 150_000


async def with_root_cause(client: Client, found: Found, answer: Json) -> Json:
    """Return the answer with the root cause, where none is published and one can be found."""
    facts = answer.get("facts")
    if answer["state"] != "waiting" or "rootCause" in answer or not facts or not found.workload:
        return answer
    metadata = found.workload["metadata"]
    key = f"{metadata['namespace']}/{metadata['name']}"
    diagnosis = await _diagnosis(client, key, str(facts[0].get("fact")))
    if diagnosis is None:
        return answer
    from unisono.control.scheduler.explainer import root_cause_of

    return answer | {"rootCause": by_jobs(root_cause_of(diagnosis), job_names(found.every))}


async def _diagnosis(client: Client, key: str, fact: str) -> Diagnosis | None:
    """Diagnose one workload on the cluster as the API has it; None if that is not the same."""
    import msgspec

    from unisono.cli.plan.cluster import read_cluster
    from unisono.engine.cluster import restore
    from unisono.engine.diagnosis import diagnose
    from unisono.engine.diagnosis.trial import Budget
    from unisono.engine.dry_run import dry_run
    from unisono.engine.explain.diagnosis import adds_to_facts
    from unisono.engine.explain.waiting import explanation
    from unisono.engine.model.names import WorkloadKey
    from unisono.engine.state.snapshots import snapshot
    from unisono.kinds.snapshot.build import read_world
    from unisono.kube.errors import KubeError
    from unisono.runtime import clock

    try:
        there = await read_cluster(client)
    except KubeError:
        return None
    now = clock.now()
    world = read_world([there.file], now=now)
    if world.problems:
        return None
    state = restore(msgspec.structs.replace(world.snapshot, offerings=there.offerings))
    dry_run(state, now, checked=False)
    why = explanation(state, WorkloadKey(key)) if WorkloadKey(key) in state.waiting else None
    if why is None or type(why.blockers[0]).__name__ != fact:
        return None
    budget = Budget(objects=_MOST_OBJECTS)
    found = diagnose(snapshot(state), WorkloadKey(key), now, budget=budget)
    return found if found is not None and adds_to_facts(found) else None
