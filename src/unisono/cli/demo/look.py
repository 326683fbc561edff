"""A busy cluster to look around in: nodes of several types, four teams, and a week of history.

It is `unisono up` in a folder of its own, with objects that are there from the start. Then people
work on it (`look_users`): jobs are submitted, wait for different reasons, run and end; machines are
bought and released; a GPU breaks and is repaired. So every part of the web page and of `unisono
why` has something to show, an hour later as well.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unisono.cli import up
from unisono.cli.demo.look_users import FLAVORS, GPU, KUEUE, RECIPES, TEAMS, Team, people
from unisono.cli.demo.stories import cloud
from unisono.kube.form import Json

if TYPE_CHECKING:
    from unisono.apiserver.api import Api
    from unisono.sim.outcome import Outcome
    from unisono.sim.trace import Trace

DEFAULT_SPEED = 20.0
_SHAPES = ("4xp5.48xlarge", "4xp4d.24xlarge", "4xg6.12xlarge")
_BOUGHT = "g6e.48xlarge"
_SEED = 3
_WEEK = "gpu:jobs=2800,gpus=80,teams=4,load=1.4,seed=5"


def look(speed: float = DEFAULT_SPEED) -> int:
    """Run it until Ctrl-C, with so many seconds of a job's life in one of ours."""
    with tempfile.TemporaryDirectory(prefix="unisono-look-") as folder:
        data = Path(folder) / "data"
        print("a week of history is simulated …", file=sys.stderr, flush=True)
        write_history(data)
        words = ["--data-dir", str(data), "--nodes", ",".join(_SHAPES), "--speed", str(speed)]
        arguments = up.parser().parse_args([*words, "--fast-commit"])
        return up.serve(arguments, objects=tuple(objects()), beside=_people(speed))


def _people(speed: float) -> Callable[[Api], Coroutine[Any, Any, None]]:
    return lambda api: people(api, speed)


def objects() -> list[Json]:
    """Return the queues of the teams, their quotas, and where machines are bought."""
    flavors = [
        {
            "apiVersion": KUEUE,
            "kind": "ResourceFlavor",
            "metadata": {"name": name},
            "spec": {"nodeLabels": {label: value}},
        }
        for name, (label, value) in FLAVORS.items()
    ]
    made: list[Json] = [*flavors, _priority("urgent", 100), _priority("background", -10)]
    made += [cloud({_BOUGHT: 2}), _pool()]
    for team in TEAMS:
        made += _queues(team)
    return made


def _queues(team: Team) -> list[Json]:
    quotas = [
        {"name": flavor, "resources": [{"name": GPU, "nominalQuota": str(gpus)}]}
        for flavor, gpus in team.quota.items()
    ]
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team.name}},
        {
            "apiVersion": KUEUE,
            "kind": "ClusterQueue",
            "metadata": {"name": team.name},
            "spec": {
                "cohortName": "research",
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": [GPU], "flavors": quotas}],
                "preemption": {
                    "withinClusterQueue": "LowerPriority",
                    "reclaimWithinCohort": "LowerPriority",
                },
            },
        },
        {
            "apiVersion": KUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": team.name, "namespace": team.name},
            "spec": {"clusterQueue": team.name},
        },
    ]


def _priority(name: str, value: int) -> Json:
    kind = "WorkloadPriorityClass"
    return {"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name}, "value": value}


def _pool() -> Json:
    requirements = {
        "node.kubernetes.io/instance-type": [_BOUGHT],
        "karpenter.sh/capacity-type": ["on-demand"],
    }
    wanted = [
        {"key": key, "operator": "In", "values": values} for key, values in requirements.items()
    ]
    owner = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "burst"},
        "spec": {
            "template": {"spec": {"requirements": wanted, "nodeClassRef": owner}},
            "disruption": {
                "consolidationPolicy": "WhenEmpty",
                "consolidateAfter": "10s",
                "budgets": [{"nodes": "100%"}],
            },
        },
    }


# ---- the week before -----------------------------------------------------------------------------


def write_history(directory: Path) -> None:
    """Simulate a week of the teams on these nodes, and write it as the instance's usage ledger."""
    from unisono.cli.sim.inputs import cluster_nodes
    from unisono.cli.sim.usage import write_ledger
    from unisono.runtime.clock import seconds_now
    from unisono.runtime.instance import Instance
    from unisono.sim.loop import simulate
    from unisono.sim.setup import POLICIES
    from unisono.sim.sources import open_trace

    instance = Instance(directory)
    instance.prepare()
    nodes = cluster_nodes(_SHAPES)
    outcome: Outcome = simulate(named(open_trace(_WEEK)), nodes, POLICIES["easy"], spans=True)
    # The cluster that begins now does not know them.
    write_ledger(outcome, nodes, instance.ledger, int(seconds_now()), ends=True)


def named(trace: Trace) -> Trace:
    """Give the queues of a generated trace, its users and its jobs the names of ours."""
    import random
    from dataclasses import replace

    draw = random.Random(_SEED)

    queues = tuple(TEAMS[at % len(TEAMS)].name for at in range(len(trace.queues)))
    members = [name for team in TEAMS for name in team.users]
    users = tuple(members[at % len(members)] for at in range(len(trace.users)))
    weights = [one.weight for one in RECIPES]
    kinds = [one.name for one in draw.choices(RECIPES, weights, k=len(trace))]
    names = tuple(f"{kind}-{number}" for number, kind in enumerate(kinds, 1))
    return replace(trace, queues=queues, users=users, names=names)
