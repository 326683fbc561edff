"""Counting change by change gives what counting everything anew gives."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from unisono.control import names
from unisono.control.assembly import INDEXES
from unisono.control.queue_status.tally import Sums, Tally
from unisono.control.view import KindStore, View
from unisono.kube.form import Json, Key
from unisono.kube.mapping import Kind

LOCALS = [Key("ns", f"lq{number}") for number in range(3)]
QUEUES = ["cq0", "cq1"]


class Cluster:
    """Objects in a view, changed by chance."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.view = View(
            {
                kind: KindStore.of(kind, INDEXES.get(kind, {}))
                for kind in (names.WORKLOAD, names.LOCAL_QUEUE)
            }
        )
        self.version = 0

    def put(self, kind: Kind, obj: Json) -> None:
        self.version += 1
        obj["metadata"] |= {"resourceVersion": str(self.version), "uid": obj["metadata"]["name"]}
        full = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        list(self.view.upsert(kind, full))

    def step(self) -> tuple[Kind, Json]:
        """Change one object; return its kind and how it was or is."""
        if self.chance.random() < 0.2:
            key = self.chance.choice(LOCALS)
            there = self.view.get(names.LOCAL_QUEUE, key.name, key.namespace)
            if there is not None:
                list(self.view.remove(names.LOCAL_QUEUE, there))
                return names.LOCAL_QUEUE, there
            obj: Json = {
                "metadata": {"name": key.name, "namespace": key.namespace},
                "spec": {"clusterQueue": self.chance.choice(QUEUES)},
            }
            self.put(names.LOCAL_QUEUE, obj)
            return names.LOCAL_QUEUE, obj
        name = f"w{self.chance.randrange(12)}"
        there = self.view.get(names.WORKLOAD, name, "ns")
        if there is not None and self.chance.random() < 0.2:
            list(self.view.remove(names.WORKLOAD, there))
            return names.WORKLOAD, there
        obj = self._workload(name)
        self.put(names.WORKLOAD, obj)
        return names.WORKLOAD, obj

    def _workload(self, name: str) -> Json:
        random_source = self.chance
        kinds = ["QuotaReserved", "Admitted", "Finished"][: random_source.randrange(4)]
        if "Finished" in kinds and random_source.random() < 0.5:
            kinds.remove("Finished")
        assignment = {
            "name": "main",
            "count": 4,
            "flavors": {"cpu": random_source.choice(["a", "b"])},
            "resourceUsage": {"cpu": str(random_source.randrange(1, 9))},
        }
        admission = {
            "clusterQueue": random_source.choice(QUEUES),
            "podSetAssignments": [assignment],
        }
        return {
            "metadata": {"name": name, "namespace": "ns"},
            "spec": {
                "queueName": random_source.choice(LOCALS).name,
                "active": random_source.random() < 0.9,
            },
            "status": {
                "conditions": [{"type": kind, "status": "True"} for kind in kinds],
                **({"admission": admission} if kinds else {}),
            },
        }


def sums(tally: Tally) -> list[Sums]:
    found: Iterable[Sums] = (
        *(tally.of_queue(name) for name in QUEUES),
        *(tally.of_local(key) for key in LOCALS),
    )
    return list(found)


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_changes_does_not_matter(seed: int) -> None:
    cluster = Cluster(seed)
    tally = Tally(cluster.view)
    for _ in range(60):
        kind, obj = cluster.step()
        tally.mark(kind, obj)
        if cluster.chance.random() < 0.5:
            fresh = Tally(cluster.view)
            for kind in (names.WORKLOAD, names.LOCAL_QUEUE):
                for one in cluster.view.all(kind):
                    fresh.mark(kind, one)
            assert sums(tally) == sums(fresh)
