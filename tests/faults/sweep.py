"""The whole life of a gang of one kind, with a death at its first write, its second, its third …

    python -m tests.faults.sweep [KIND …]            every kind, or these, and how many points
    python -m tests.faults.sweep KIND --at 17 --after   one point, with everything that was written

In its life the gang waits, starts, fails once and restarts, is preempted by an urgent job, comes
back, ends and is deleted. At each point the process about to write is gone, before or after the
write, and starts anew from what is stored.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence

from tests.faults.cluster import Cluster
from tests.faults.disturbances import Disturbances
from tests.faults.jobs import JOB_KINDS, Wish, batch
from tests.faults.process import Call
from tests.faults.run import Outcome, play
from tests.support.control_objects import GPU, KUEUE, node, priority
from unisono.kube.form import Json

_SEED = 1


def surroundings() -> list[Json]:
    """Return two nodes and a queue that one gang fills."""
    amounts = {GPU: "8", "cpu": "1000", "memory": "1000G"}
    resources = [{"name": name, "nominalQuota": amount} for name, amount in amounts.items()]
    flavors = [{"name": "f", "resources": resources}]
    spec = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": list(amounts), "flavors": flavors}],
        "preemption": {"withinClusterQueue": "LowerPriority"},
    }
    api = {"apiVersion": KUEUE}
    place = {"name": "lq", "namespace": "default"}
    return [
        priority("low", 1),
        priority("high", 100),
        node("n1", 4),
        node("n2", 4),
        {**api, "kind": "ResourceFlavor", "metadata": {"name": "f"}, "spec": {}},
        {**api, "kind": "ClusterQueue", "metadata": {"name": "cq"}, "spec": spec},
        {**api, "kind": "LocalQueue", "metadata": place, "spec": {"clusterQueue": "cq"}},
    ]


def live(sort: str, at: int, *, after: bool) -> Outcome:
    """Let a gang of a kind live through a death at one of its writes; 0 is none."""
    cluster = Cluster(_SEED)
    cluster.down_s = (0.0,)
    writes = 0

    def fault_of(call: Call) -> str:
        nonlocal writes
        writes += call.is_write
        if call.is_write and writes == at:
            return "die after" if after else "die before"
        return ""

    cluster.fault_of = fault_of
    wish = Wish(name="it", pods=2, gpus=4, seconds=20, queue="lq", priority="low", fails_once=True)
    urgent = Wish(
        name="urgent", pods=2, gpus=4, seconds=5, queue="lq", priority="high", fails_once=False
    )

    async def story(people: Disturbances) -> None:
        await people.submit(JOB_KINDS[sort](wish))
        await cluster.pass_time(15.0)
        await people.submit(batch(urgent))
        await cluster.pass_time(60.0)

    outcome = Outcome(at, gangs=2)
    asyncio.run(play(cluster, surroundings(), story, outcome))
    outcome.again = f"python -m tests.faults.sweep {sort} --at {at}{' --after' if after else ''}"
    return outcome


def sweep(sort: str, *, after: bool) -> int:
    """Die at every write of a gang's life; return how many there were."""
    at = 0
    while True:
        at += 1
        outcome = live(sort, at, after=after)
        assert not outcome.broken, outcome.story
        if not outcome.deaths:
            return at - 1


def main(arguments: Sequence[str]) -> int:
    """Sweep the kinds named, or all; or tell of one point."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.sweep")
    parser.add_argument("kinds", nargs="*", choices=[*JOB_KINDS, []], metavar="KIND")
    parser.add_argument("--at", type=int, help="die at this write only, and tell everything")
    parser.add_argument("--after", action="store_true", help="die after it instead of before")
    asked = parser.parse_args(arguments)
    if asked.at is not None:
        outcome = live(asked.kinds[0], asked.at, after=asked.after)
        print("\n".join(outcome.trace))
        print(f"BROKEN: {outcome.broken}" if outcome.broken else "all is well")
        return 1 if outcome.broken else 0
    whole = 0
    for sort in asked.kinds or JOB_KINDS:
        points = sum(sweep(sort, after=after) for after in (False, True))
        whole += points
        print(f"{sort:12} {points:5} points", flush=True)
    print(f"{'together':12} {whole:5} points")
    return 0


if __name__ == "__main__":
    if "PYTHONHASHSEED" not in os.environ:
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.faults.sweep", *sys.argv[1:]])
    sys.exit(main(sys.argv[1:]))
