"""People at work on the cluster of `demo look`: they submit jobs as long as it runs.

What they submit follows from what waits: a team with a short queue submits, one with a long queue
does not. So the cluster is always full and never overloaded, at any speed and for any time.
All times here are of the simulated pods, in minutes; limits are told to the scheduler in real ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from unisono.apiserver.request import User
from unisono.kube.connect import client_over
from unisono.kube.form import Json
from unisono.runtime.clock import RealClock
from unisono.runtime.embedded.in_process import InProcess
from unisono.runtime.ids import new_uid, random_source

if TYPE_CHECKING:
    from unisono.apiserver.api import Api
    from unisono.kube.client import Client

GPU = "nvidia.com/gpu"
KUEUE = "kueue.x-k8s.io/v1beta2"
_SEED = 7
_TICK_MIN = 3.0  # so often a team looks at its queue
_SHORTEST_TICK_S = 0.5
_KEPT_MIN = 240.0  # so long a job that ended can be looked at
_BREAKS_MIN, _HEALS_MIN = 90.0, 180.0
_BREAKABLE = "p4d.24xlarge"


# Which nodes a flavor is: its name in the quotas, a label and its value.
FLAVORS = {
    "h100": ("node.kubernetes.io/instance-type", "p5.48xlarge"),
    "a100": ("node.kubernetes.io/instance-type", "p4d.24xlarge"),
    "l4": ("node.kubernetes.io/instance-type", "g6.12xlarge"),
    "burst": ("karpenter.sh/nodepool", "burst"),
}


@dataclass(frozen=True, slots=True)
class Team:
    """People who share a queue."""

    name: str
    users: tuple[str, ...]
    quota: dict[str, int]  # GPUs by flavor
    pending: int  # so many jobs of theirs wait, more or less


TEAMS = (
    Team("language", ("ada", "boris", "chiyo"), {"h100": 16, "a100": 8, "l4": 4, "burst": 8}, 4),
    Team("vision", ("dana", "emil"), {"h100": 8, "a100": 16, "l4": 4, "burst": 8}, 3),
    Team("biology", ("farid", "greta"), {"h100": 8, "a100": 8, "l4": 4}, 3),
    Team("students", ("hana", "igor", "jun"), {"h100": 0, "a100": 0, "l4": 4}, 2),
)


class Recipe(NamedTuple):
    """A job that people submit again and again."""

    name: str
    pods: int
    gpus: int
    minutes: float  # that it runs, give or take a half
    weight: int  # how often, in relation to the others
    flavor: str = ""  # of which nodes; any, without
    priority: str = ""
    profile: str = "training"
    exit_code: int = 0
    teams: tuple[str, ...] = ()  # of these teams; of all, without
    hold: bool = False


RECIPES = (
    Recipe("pretrain-7b", 4, 8, 240, 3, "h100", teams=("language",)),
    Recipe("pretrain-1b", 2, 8, 120, 4, "h100", teams=("language", "vision", "biology")),
    Recipe("finetune", 1, 8, 60, 10, profile="finetune", teams=("language", "vision", "biology")),
    Recipe("reward-model", 2, 4, 45, 3, "a100", teams=("language",)),
    Recipe("segmentation", 2, 8, 90, 4, "a100", teams=("vision",)),
    Recipe("folding", 2, 8, 150, 4, teams=("biology",)),
    Recipe("ablation", 1, 4, 40, 5, "a100", teams=("language", "vision", "biology")),
    Recipe("loader-test", 1, 2, 20, 2, "l4", profile="dataloader-bound"),
    Recipe("eval", 1, 1, 12, 8, "l4", profile="inference"),
    Recipe("notebook", 1, 1, 180, 2, "l4", profile="idle", priority="background"),
    Recipe("homework", 1, 1, 25, 8, priority="background", teams=("students",)),
    Recipe("crashes", 1, 2, 5, 1, "a100", exit_code=1),
    Recipe("deadline", 2, 8, 60, 1, "a100", "urgent", teams=("vision", "language")),
    Recipe("burst", 1, 8, 45, 2, "burst", teams=("language", "vision")),
)
# What waits for ever, each for a reason of its own: submitted once.
STUCK = (
    ("language", Recipe("draft", 1, 8, 30, 1, hold=True)),
    ("biology", Recipe("too-wide", 5, 8, 60, 1, "h100")),
)


async def people(api: Api, speed: float) -> None:
    """Submit jobs and break GPUs until cancelled."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_submit(api, speed))
        tasks.create_task(_break(api, speed))


async def _submit(api: Api, speed: float) -> None:
    """Have each team keep some jobs in its queue."""
    from unisono.kube.errors import KubeError

    draw = random.Random(_SEED)
    numbers = itertools.count(1)

    async def submit(team: Team, recipe: Recipe) -> None:
        user = draw.choice(team.users)
        made = manifest(team, user, recipe, next(numbers), draw, speed)
        # It is stopping, or a queue was taken away: next time again.
        with contextlib.suppress(KubeError):
            await _client(api, user).create(made)

    stuck = Counter(name for name, _ in STUCK)
    for name, recipe in STUCK:
        await submit(next(team for team in TEAMS if team.name == name), recipe)
    while True:
        is_full = True
        for team in TEAMS:
            waiting = _pending(api, team.name)
            if waiting.total() < team.pending + stuck[team.name]:
                is_full = False
                await submit(team, _recipe(team, draw, waiting))
        tick = _TICK_MIN * 60 / speed * draw.uniform(0.5, 1.5)
        await asyncio.sleep(max(_SHORTEST_TICK_S, tick) if is_full else _SHORTEST_TICK_S)


def _client(api: Api, user: str) -> Client:
    """Return a client of a person, who may do everything here."""
    person = User(name=user, groups=("system:masters",))
    return client_over(
        InProcess(api, person, is_checked=True),
        clock=RealClock(),
        random_source=random_source(),
        ids=new_uid,
    )


def _recipe(team: Team, draw: random.Random, waiting: Counter[str]) -> Recipe:
    """Draw what a team submits next; of wide gangs one waits at a time, or nothing else would."""
    fitting = [
        one
        for one in RECIPES
        if (not one.teams or team.name in one.teams) and (one.pods == 1 or not waiting[one.name])
    ]
    return draw.choices(fitting, [one.weight for one in fitting])[0]


def _pending(api: Api, namespace: str) -> Counter[str]:
    """Return how many workloads of a team have no nodes yet, by the names of their recipes."""
    count: Counter[str] = Counter()
    for record in api.store.listing("kueue.x-k8s.io/workloads"):
        workload = record.load()
        if workload["metadata"]["namespace"] == namespace:
            status = workload.get("status") or {}
            ends = any(one["type"] == "Finished" for one in status.get("conditions") or ())
            if not ends and not status.get("admission"):
                owners = workload["metadata"].get("ownerReferences") or ({"name": ""},)
                count[owners[0]["name"].rpartition("-")[0]] += 1
    return count


def manifest(
    team: Team, user: str, recipe: Recipe, number: int, draw: random.Random, speed: float
) -> Json:
    """Return a job by a recipe."""
    minutes = recipe.minutes * draw.uniform(0.5, 1.5)
    limit = minutes * draw.uniform(1.1, 2.0) * 60 / speed
    annotations = {"unisono.dev/user": user, "unisono.dev/time-limit": f"{max(1, round(limit))}s"}
    if recipe.hold:
        annotations["unisono.dev/hold"] = "user"
    labels = {"kueue.x-k8s.io/queue-name": team.name}
    if recipe.priority:
        labels["kueue.x-k8s.io/priority-class"] = recipe.priority
    says = {
        "unisono.dev/run-seconds": str(round(minutes * 60)),
        "unisono.dev/sim-profile": recipe.profile,
    }
    if recipe.exit_code:
        says["unisono.dev/exit-code"] = str(recipe.exit_code)
    container = {
        "name": "train",
        "image": "pytorch/pytorch",
        "resources": {"limits": {GPU: str(recipe.gpus)}},
    }
    pod: Json = {"restartPolicy": "Never", "containers": [container]}
    if recipe.flavor:
        pod["nodeSelector"] = dict([FLAVORS[recipe.flavor]])
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"{recipe.name}-{number}",
            "namespace": team.name,
            "labels": labels,
            "annotations": annotations,
        },
        "spec": {
            "parallelism": recipe.pods,
            "completions": recipe.pods,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": max(60, round(_KEPT_MIN * 60 / speed)),
            "template": {"metadata": {"annotations": says}, "spec": pod},
        },
    }


# ---- broken GPUs ---------------------------------------------------------------------------------


async def _break(api: Api, speed: float) -> None:
    """Break a GPU of one node after another, and have each repaired after a while."""
    from unisono.control.names import NODE
    from unisono.kube.errors import KubeError
    from unisono.monitor.gpu_faults import ANNOTATION, Fault, text_of
    from unisono.runtime.clock import seconds_now

    client = _client(api, "technician")
    for turn in itertools.count():
        nodes = _breakable(api)
        if nodes:
            node = nodes[turn % len(nodes)]
            faults = {"3": Fault(xid=79, at=int(seconds_now()))}
            for seconds, text in ((_HEALS_MIN, text_of(faults)), (_BREAKS_MIN, None)):
                try:
                    await client.patch(
                        NODE, node, "", {"metadata": {"annotations": {ANNOTATION: text}}}
                    )
                except KubeError:
                    break  # the node is gone
                await asyncio.sleep(seconds * 60 / speed)
        else:
            await asyncio.sleep(_BREAKS_MIN * 60 / speed)


def _breakable(api: Api) -> list[str]:
    """Return the nodes that break, by name."""
    nodes = (record.load()["metadata"] for record in api.store.listing("/nodes"))
    label = "node.kubernetes.io/instance-type"
    return sorted(one["name"] for one in nodes if one["labels"].get(label) == _BREAKABLE)
