"""Situations drawn from seeds: small clusters to which all kinds of things happen.

Nothing here knows the engine: clusters, workloads and events are JSON in the words of the records.
A `Situation` tells them to a `World` and asks for a scheduling cycle now and then; because it looks
at which workloads hold quota and which were evicted, events fit what was decided. Everything that
it told and asked is the case. The same seed draws the same case until this module changes; recorded
cases keep their steps all the same.

An area is a subclass: it draws a policy and a cluster, the workloads that arrive, and what may
disturb them. What all of them share (arrivals, ends, evicted pods that leave, time) is here.
"""

from __future__ import annotations

import random
from typing import Any, TypeVar

from tests.decisions.adapter import World
from tests.decisions.store import ASKS, Case, plain

Json = Any
T = TypeVar("T")

GPU, SHARE = "nvidia.com/gpu", "nvidia.com/gpu-milli"
BLOCK, RACK = "cloud.provider.com/topology-block", "cloud.provider.com/topology-rack"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
TYPE, CAPACITY = "node.kubernetes.io/instance-type", "karpenter.sh/capacity-type"
GIB = 2**30
SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000


def amounts(given: dict[str, int]) -> list[list[Json]]:
    """Return amounts as they are recorded."""
    return [[name, amount] for name, amount in sorted(given.items())]


def labels(given: dict[str, str]) -> list[list[str]]:
    """Return labels as they are recorded."""
    return [[key, value] for key, value in sorted(given.items())]


def selects(**wanted: str) -> Json:
    """Return a label selector."""
    return {
        "requirements": [
            {"key": key, "operator": "In", "values": [value]} for key, value in wanted.items()
        ]
    }


class Situation:
    """One case in the making."""

    area = ""
    cycles = 9
    arrivals: tuple[int, ...] = (0, 1, 1, 2, 3)  # how many come before a cycle
    first = 4  # how many are there at the beginning
    ends = 0.2  # how likely one that runs ends before a cycle
    restarts = 0.04  # how likely the scheduler starts anew after a cycle
    crowd = 10  # nothing more arrives while so many are pending: the rest would only queue behind
    pauses: tuple[int, ...] = (1, 1, 10, 30, 60, 60, 300)  # seconds between cycles

    def __init__(self, number: int) -> None:
        self.number = number
        self.random = random.Random(f"{self.area}/{number}")
        self.now = 100 * SECOND
        self.steps: list[list[Json]] = []
        self.decided: list[Json] = []
        self.count = 0
        self.queues: dict[str, Json] = {}
        self.nodes: dict[str, Json] = {}
        chosen = self.policy()
        self.world = World(chosen, self.now)
        self.case = Case(
            name=f"{self.area}/{number:03}",
            policy=chosen,
            now=self.now,
            steps=self.steps,
            decided=self.decided,
        )

    def told(self) -> Case:
        """Let everything happen; return the case."""
        self.cluster()
        for _ in range(self.first):
            self.submit()
        self.cycle()
        for _ in range(self.cycles - 1):
            self.wait()
            self.events()
            for _ in range(self.one(*self.arrivals)):
                if len(self.world.pending()) < self.crowd:
                    self.submit()
            self.disturb()
            self.cycle()
            if self.chance(0.3):
                self.cycle()
            if self.chance(self.restarts):
                self.tell("restart")
        if self.chance(0.2):
            self.tell("settle", self.now)
        return self.case

    # --- what an area draws ----------------------------------------------------------------------

    def policy(self) -> Json:
        """Draw what the operator chose."""
        return {}

    def cluster(self) -> None:
        """Tell what is configured."""
        raise NotImplementedError

    def workload(self) -> Json:
        """Draw the next workload, without its name."""
        raise NotImplementedError

    def disturb(self) -> None:
        """Let something unusual happen."""

    # --- drawing ---------------------------------------------------------------------------------

    def one(self, *choices: T) -> T:
        """Draw one of several."""
        return self.random.choice(choices)

    def mostly(self, usual: T, *rare: T) -> T:
        """Draw the usual one three times out of four."""
        return usual if self.random.random() < 0.75 else self.random.choice(rare)

    def chance(self, likely: float) -> bool:
        """Say yes with this likelihood."""
        return self.random.random() < likely

    def any_of(self, known: dict[str, T]) -> str | None:
        """Draw one of those that are there."""
        return self.random.choice(sorted(known)) if known else None

    # --- telling ---------------------------------------------------------------------------------

    def tell(self, *step: Json) -> None:
        """Tell one step, and keep what was decided."""
        self.steps.append([*step])
        answer = self.world.take(plain([*step]))
        if step[0] in ASKS:
            self.decided.append(plain(answer))

    def cycle(self) -> None:
        """Ask for a scheduling cycle; purchases are ordered at once."""
        self.tell("cycle", self.now)
        for admit in self.decided[-1].get("admit", ()):
            if "purchase" in admit:
                self.tell("ordered", admit["workload"])

    def wait(self) -> None:
        """Let time pass."""
        self.now += self.one(*self.pauses) * SECOND
        self.tell("time", self.now)

    def submit(self, **more: Json) -> str:
        """Let a workload arrive."""
        self.count += 1
        drawn = {"priority": self.one(0, 0, 1, 2), "created_at": self.now, **self.workload()}
        drawn.update(more)
        name: str = drawn.pop("name", f"{drawn['local_queue'].partition('/')[0]}/w{self.count}")
        drawn = {"name": name, "uid": f"uid-{self.count:03}", **drawn}
        self.tell("pending", drawn)
        return name

    def events(self) -> None:
        """Let evicted pods leave, workloads end, and nodes arrive that were bought."""
        purchased = self.world.purchased()
        for name, held in self.world.holding().items():
            if held.get("evicting"):
                if self.chance(0.7):
                    self.tell("left", name)
            elif held.get("shrinks_to"):
                if self.chance(0.7):
                    self.tell("shrunk", name)
            elif name in purchased:
                self.purchased(name)
            elif self.chance(self.ends):
                self.end(name)

    def end(self, name: str) -> None:
        """Let a workload end."""
        self.tell("ended", name)

    def purchased(self, name: str) -> None:
        """Let something become of a purchase."""
        match self.one("arrived", "arrived", "wait", "refused", "orphaned"):
            case "arrived":
                self.tell("arrived", name)
            case "refused":
                code = self.mostly("InsufficientCapacity", "QuotaExceeded", "Unsupported")
                self.tell("refused offering", name, code)
            case "orphaned":
                self.tell("orphaned", name)
            case _:
                pass  # it takes its time

    # --- what many clusters have -----------------------------------------------------------------

    def add_queue(self, name: str, *, namespaces: tuple[str, ...] = ("ns",), **spec: Json) -> None:
        """Tell a ClusterQueue, and a LocalQueue for it in every namespace."""
        spec = {"name": name, "namespace_selector": {}, **spec}
        self.queues[name] = spec
        self.tell("cluster queue", spec)
        for namespace in namespaces:
            self.tell("local queue", {"name": f"{namespace}/{name}", "cluster_queue": name})

    def edit_queue(self, name: str, **spec: Json) -> None:
        """Tell a ClusterQueue anew, with other fields."""
        self.queues[name] = {**self.queues[name], **spec}
        self.tell("cluster queue", self.queues[name])

    def open_queue(self, name: str = "q", **spec: Json) -> None:
        """Tell a ClusterQueue without quota: nodes alone decide."""
        self.add_queue(name, unlimited=True, **spec)

    def add_node(self, name: str, gpus: int = 8, *, cores: int = 64, **more: Json) -> None:
        """Tell a node; labels are given as a mapping."""
        given = {HOST: name, **more.pop("labels", {})}
        has = {"cpu": cores * 1000, "memory": 8 * cores * GIB, "pods": 110}
        if gpus:
            has[GPU] = gpus
        has.update(more.pop("has", {}))
        spec = {"name": name, "labels": labels(given), "allocatable": amounts(has), **more}
        self.nodes[name] = spec
        self.tell("node", spec)

    def edit_node(self, name: str, **spec: Json) -> None:
        """Tell a node anew, with other fields."""
        self.nodes[name] = {**self.nodes[name], **spec}
        self.tell("node", self.nodes[name])

    def quota(self, flavors: dict[str, int | Json], resource: str = GPU) -> Json:
        """Return a resource group of one resource."""
        return {
            "covered_resources": [resource],
            "flavors": [
                {
                    "name": name,
                    "resources": [
                        {
                            "name": resource,
                            **(given if isinstance(given, dict) else {"nominal": given}),
                        }
                    ],
                }
                for name, given in flavors.items()
            ],
        }

    def pods(self, count: int, gpus: int = 1, *, cores: int = 1, **more: Json) -> Json:
        """Return a pod set."""
        asks = {"cpu": cores * 1000}
        if gpus:
            asks[GPU] = gpus
        asks.update(more.pop("asks", {}))
        return {"count": count, "requests": amounts(asks), **more}
