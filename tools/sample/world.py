"""A cluster on paper: nodes, queues and gangs with a past, for pictures, benchmarks and tests.

Objects are as the API has them, with times around a given now; explanations are the engine's own
facts in its own words. The same numbers give the same cluster.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.sample import gangs, machines
from unisono.control.scheduler.explainer import written_facts
from unisono.engine.explain.messages import sentence
from unisono.engine.model.explanation import (
    Explanation,
    QuotaExhausted,
)
from unisono.engine.model.names import (
    QueueName,
    WorkloadKey,
)
from unisono.kube.form import Json
from unisono.kube.mapping import POD, Kind
from unisono.monitor.cache import (
    CLUSTER_QUEUE,
    COHORT,
    LOCAL_QUEUE,
    NODE,
    NODE_CLAIM,
    NODE_POOL,
    WORKLOAD,
    ClusterCache,
    fill,
)
from unisono.monitor.ledger.accounts import Period
from unisono.monitor.ledger.rows import NodeRow, PodRow, QueueRow, WorkloadRow
from unisono.monitor.report.build import Rows, report
from unisono.monitor.report.formats import as_json
from unisono.web.pages import File
from unisono.web.views.timeline import Past

_GPU = "nvidia.com/gpu"
_TEAMS = ("vision", "language", "speech", "robotics", "recsys", "genomics")
_USERS = ("mina", "joon", "sora", "tomas", "ines", "haruto", "lea", "amir", "noor", "pavel")
_TASKS = ("pretrain", "finetune", "sweep", "eval", "distill", "rlhf", "ablation", "align")
_SIZES = ((1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (4, 8), (8, 8))  # pods, GPUs each
_WEIGHTS = (6, 4, 4, 6, 5, 3, 1)
_MACHINES = (
    ("p5.48xlarge", "NVIDIA-H100-80GB-HBM3", "h100", 55.04),
    ("g6e.48xlarge", "NVIDIA-L40S", "l40s", 30.13),
)
_HOUR = 3600


@dataclass(slots=True)
class Sample:
    """The objects, and what a ledger would say of the time before."""

    now: float
    objects: dict[Kind, dict[tuple[str, str], Json]] = field(default_factory=dict)
    tries: list[WorkloadRow] = field(default_factory=list)
    pods: list[PodRow] = field(default_factory=list)

    def put(self, kind: Kind, obj: Json) -> None:
        """Add an object."""
        metadata = obj["metadata"]
        key = metadata.get("namespace", ""), metadata["name"]
        self.objects.setdefault(kind, {})[key] = obj

    def look(self, kind: Kind, name: str, namespace: str) -> Mapping[str, Any] | None:
        """Return an object."""
        return self.objects.get(kind, {}).get((namespace, name))

    def cache(self) -> ClusterCache:
        """Return cache of it all."""
        made = ClusterCache()
        for kind in (
            NODE,
            CLUSTER_QUEUE,
            LOCAL_QUEUE,
            COHORT,
            NODE_POOL,
            NODE_CLAIM,
            WORKLOAD,
            POD,
        ):
            fill(made, kind, self.objects.get(kind, {}).values())
        return made

    async def past(self, since: int, until: int) -> Past:
        """Return what a ledger would."""
        tries = tuple(one for one in self.tries if one.since < until and one.ended >= since)
        return Past(
            tries, tuple(one for one in self.pods if one.bound < until and one.ended >= since)
        )

    async def report(self, since: int, until: int, form: str) -> File:
        """Return a report of a time, from what a ledger would have."""
        nodes, queues = [], []
        cache = self.cache()
        cache.refresh()
        for node in cache.nodes.values():
            nodes.append(
                NodeRow(
                    uid=node.uid,
                    since=int(node.created),
                    name=node.name,
                    gpus=node.gpus,
                    model=node.model,
                    instance_type=node.instance_type,
                    capacity_type=node.capacity_type,
                    pool=node.pool,
                    micro_usd_hour=round(node.price * 1_000_000),
                    is_up=node.is_ready,
                )
            )
        for queue in cache.queues.values():
            for one in queue.quotas:
                queues.append(
                    QueueRow(
                        queue=queue.name,
                        flavor=one.flavor,
                        cohort=queue.cohort,
                        gpus=one.nominal,
                        since=since,
                    )
                )
        made = report(
            lambda period: Rows(self.pods, self.tries, nodes, queues), Period(since, until)
        )
        return File(f"gpu-usage.{form}", "application/json", as_json(made).encode())


def sample(now: float, *, nodes: int = 24, gangs: int = 120, seed: int = 7) -> Sample:
    """Return a cluster of so many nodes, with so many gangs that run, wait or are over."""
    return _Maker(Sample(now), nodes, gangs, random.Random(seed)).made()


class _Maker:
    def __init__(self, into: Sample, nodes: int, gangs: int, dice: random.Random) -> None:
        self._into = into
        self._now = into.now
        self._dice = dice
        self._gangs = gangs
        self._free: dict[str, list[list[Any]]] = {"h100": [], "l40s": []}  # [node, GPUs]
        self._count = nodes

    def made(self) -> Sample:
        self._nodes()
        self._queues()
        numbers = iter(range(self._gangs))
        misses = 0
        for number in numbers:
            misses = misses + 1 if not self._run(number) else 0
            if misses > 12:
                break
        for number in numbers:
            if self._dice.random() < 0.35:
                self._over(number)
            else:
                self._wait(number)
        self._history()
        return self._into

    # ---- machines --------------------------------------------------------------------------------

    def _nodes(self) -> None:
        put = self._into.put
        for number in range(self._count):
            made = machines.node(number, self._count, self._now, self._dice)
            put(NODE, made.node)
            put(NODE_CLAIM, made.claim)
            if made.is_well:
                self._free[made.flavor].append([made.node["metadata"]["name"], 8])
        put(NODE_POOL, machines.pool("h100", ["p5.48xlarge"], 8 * self._count))
        put(NODE_POOL, machines.pool("l40s", ["g6e.48xlarge", "g6e.24xlarge"], 8 * self._count))
        for number in range(2):
            put(NODE_CLAIM, machines.coming(number, self._now))

    # ---- queues ----------------------------------------------------------------------------------

    def _queues(self) -> None:
        self._into.put(COHORT, {"metadata": {"name": "research", "uid": "c1"}, "spec": {}})
        below = {"metadata": {"name": "products", "uid": "c2"}, "spec": {"parentName": "research"}}
        self._into.put(COHORT, below)
        share = max(8, self._count * 8 * 2 // 3 // len(_TEAMS) // 8 * 8)
        for number, team in enumerate(_TEAMS):
            flavors = [_flavor("h100", share), _flavor("l40s", share // 2)]
            queue = {
                "metadata": {"name": team, "uid": f"queue-{team}"},
                "spec": {
                    "cohortName": "products" if number >= 4 else "research",
                    "resourceGroups": [{"flavors": flavors}],
                },
                "status": {"conditions": [{"type": "Active", "status": "True"}]},
            }
            self._into.put(CLUSTER_QUEUE, queue)
            local = {"name": team, "namespace": f"team-{team}", "uid": f"local-{team}"}
            self._into.put(LOCAL_QUEUE, {"metadata": local, "spec": {"clusterQueue": team}})

    # ---- gangs -----------------------------------------------------------------------------------

    def _run(self, number: int) -> bool:
        pods, gpus = self._dice.choices(_SIZES, _WEIGHTS)[0]
        flavor = "h100" if self._dice.random() < 0.7 else "l40s"
        places = self._take(flavor, pods, gpus)
        if places is None:
            return False
        began = self._now - self._dice.randint(120, 5 * _HOUR)
        waited = self._dice.randint(5, 2400)
        team, user, name = self._owner(number)
        times = {"QuotaReserved": began - 3, "Admitted": began - 2, "PodsReady": began + 20}
        if number < 2:
            del times["PodsReady"]
        gang = gangs.gang(
            name, team, user, pods, gpus, flavor, began - waited, times, self._limit()
        )
        gang["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"] = _placed(places)
        self._into.put(WORKLOAD, gang)
        for rank, node in enumerate(node for node, count in places for _ in range(count)):
            self._into.put(POD, gangs.pod(gang, rank, node, gpus, began, is_ready=number >= 2))
        return True

    def _limit(self) -> str:
        return self._dice.choice(("4:00:00", "8:00:00", "12:00:00"))

    def _take(self, flavor: str, pods: int, gpus: int) -> list[tuple[str, int]] | None:
        nodes = self._free[flavor]
        found: list[tuple[list[Any], int]] = []
        left = pods
        for one in sorted(nodes, key=lambda one: (one[1], one[0])) if gpus < 8 else nodes:
            fits = min(left, one[1] // gpus)
            if fits:
                found.append((one, fits))
                left -= fits
            if not left:
                break
        if left:
            return None
        for one, fits in found:
            one[1] -= fits * gpus
        return [(one[0], fits) for one, fits in found]

    def _owner(self, number: int) -> tuple[str, str, str]:
        team = _TEAMS[self._dice.randrange(len(_TEAMS))]
        return team, self._dice.choice(_USERS), f"{self._dice.choice(_TASKS)}-{number + 100}"

    def _over(self, number: int) -> None:
        pods, gpus = self._dice.choices(_SIZES, _WEIGHTS)[0]
        ended = self._now - self._dice.randint(60, 3 * _HOUR)
        began = ended - self._dice.randint(300, 2 * _HOUR)
        team, user, name = self._owner(number)
        times = {
            "QuotaReserved": began - 2,
            "Admitted": began - 1,
            "PodsReady": began,
            "Finished": ended,
        }
        made = gangs.gang(
            name,
            team,
            user,
            pods,
            gpus,
            "h100",
            began - self._dice.randint(5, 1200),
            times,
            self._limit(),
        )
        self._into.put(WORKLOAD, made)

    def _wait(self, number: int) -> None:
        pods, gpus = self._dice.choices(_SIZES[3:], _WEIGHTS[3:])[0]
        team, user, name = self._owner(number)
        created = self._now - self._dice.randint(30, 2 * _HOUR)
        made = gangs.gang(name, team, user, pods, gpus, "h100", created, {}, self._limit())
        made["spec"]["priority"] = self._dice.choice((0, 0, 0, 100))
        facts = gangs.facts(team, pods, gpus, number, self._count, self._now, self._dice)
        written_as = written_facts(
            Explanation(workload=WorkloadKey(name), queue=QueueName(team), blockers=tuple(facts))
        )
        reason = (
            "WaitingForQuota" if isinstance(facts[0], QuotaExhausted) else "TopologyPlacementFailed"
        )
        made["status"]["conditions"] = [
            {
                "type": "QuotaReserved",
                "status": "False",
                "reason": reason,
                "message": sentence(facts[0]),
            },
            {
                "type": "unisono.dev/Explanation",
                "status": "True",
                "reason": "Quota",
                "message": written_as,
            },
        ]
        self._into.put(WORKLOAD, made)

    # ---- before ----------------------------------------------------------------------------------

    def _history(self) -> None:
        """Gangs that ended and are gone, as a ledger tells of them."""
        for number, (node, row) in enumerate(self._earlier()):
            self._into.tries.append(row)
            for rank in range(row.pods):
                self._into.pods.append(
                    PodRow(
                        uid=f"old-{number}-{rank}",
                        namespace=row.namespace,
                        name=f"{row.owner}-{rank}",
                        workload=row.uid,
                        node=node,
                        gpus=row.gpus // row.pods,
                        bound=row.admitted,
                        started=row.ready,
                        ended=row.ended,
                        outcome="Succeeded" if row.outcome == "Finished" else "Gone",
                        busy=0.7 * row.gpus * (row.ended - row.ready),
                        covered=row.gpus * (row.ended - row.ready),
                    )
                )

    def _earlier(self) -> Iterator[tuple[str, WorkloadRow]]:
        names = [name for _, name in self._into.objects[NODE]]
        for number in range(min(400, self._count * 4)):
            team, user, name = self._owner(number + 2000)
            began = int(self._now - self._dice.randint(2 * _HOUR, 30 * _HOUR))
            ended = began + self._dice.randint(600, 4 * _HOUR)
            if ended > self._now - 6 * _HOUR * (number % 2):
                continue
            yield (
                self._dice.choice(names),
                WorkloadRow(
                    uid=f"old-{number}",
                    attempt=1,
                    namespace=f"team-{team}",
                    name=f"trainjob-{name}",
                    kind="TrainJob",
                    owner=name,
                    queue=team,
                    local_queue=team,
                    user=user,
                    team=team,
                    priority_class="",
                    flavor="h100",
                    gpus=8,
                    pods=1,
                    since=began - self._dice.randint(5, 1800),
                    reserved=began,
                    admitted=began,
                    ready=began + 20,
                    ended=ended,
                    outcome="Finished" if self._dice.random() < 0.85 else "Preempted",
                ),
            )


def _flavor(name: str, gpus: int) -> Json:
    return {"name": name, "resources": [{"name": _GPU, "nominalQuota": gpus}]}


def _placed(places: list[tuple[str, int]]) -> Json:
    return {
        "levels": ["kubernetes.io/hostname"],
        "domains": [{"values": [node], "count": count} for node, count in places],
    }
