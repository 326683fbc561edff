"""Machines that can be bought."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from tests.decisions.situations import (
    CAPACITY,
    GIB,
    GPU,
    HOST,
    HOUR,
    MINUTE,
    RACK,
    TYPE,
    ZONE,
    Situation,
    amounts,
    labels,
    selects,
)

Json = Any


class Provisioning(Situation):
    """Machines that are bought: types, zones, spot, limits, stock-outs, orphans, loans."""

    area = "provisioning"
    cycles = 8
    first = 3
    pauses: tuple[int, ...] = (1, 30, 60, 120, 300)

    @override
    def policy(self) -> Json:
        rules: Json = {}
        for field, values in (
            ("same_zone", (False,)),
            ("same_model", (False,)),
            ("packing", ("MinCost", "FewestNodes")),
            ("single_packing", ("Balanced", "FewestNodes")),
            ("slack_milli", (0, 1000)),
            ("spot", ("allow", "never")),
            ("interruptions_milli", (5, 400)),
            ("max_per_hour_micro", (20_000_000, 60_000_000)),
            ("max_in_flight", (1, 2)),
            ("preference", ("provision-then-preempt", "provision-only")),
        ):
            if self.chance(0.25):
                rules[field] = self.one(*values)
        chosen: Json = {"provisioning": rules} if rules else {}
        if self.chance(0.25):
            chosen["backfill"] = self.one({}, {"reservations": 1})
        if self.chance(0.1):
            chosen["fair_sharing"] = {}
        if self.chance(0.1):
            chosen["priority_order"] = {"weights": {"age": 1000}}
        return chosen

    @override
    def cluster(self) -> None:
        self.tell("flavor", {"name": "f"})
        for name in ("q", "q2")[: self.one(1, 1, 2)]:
            self.add_queue(
                name,
                cohort="root",
                resource_groups=[
                    {
                        "covered_resources": [GPU, "cpu"],
                        "flavors": [
                            {
                                "name": "f",
                                "resources": [
                                    {"name": GPU, "nominal": self.one(8, 16, 64)},
                                    {"name": "cpu", "nominal": 2_000_000},
                                ],
                            }
                        ],
                    }
                ],
                preemption={
                    "within_cluster_queue": self.one("Never", "LowerPriority"),
                    "reclaim_within_cohort": self.one("Never", "Any"),
                },
            )
        self.offer()
        for place in range(self.one(0, 0, 1, 2)):
            self.add_node(
                f"n{place}",
                8,
                labels={ZONE: self.one("a", "b"), TYPE: "big", "nvidia.com/gpu.product": "X"},
            )

    def offer(self) -> None:
        types = (
            ("small", 1, 8, "X", 1),
            ("mid", 4, 32, "X", 4),
            ("big", 8, 96, "X", 8),
            ("other", 8, 96, "Y", 6),
            ("plain", 0, 16, "", 1),
        )
        machines, offerings = [], []
        for name, gpus, cores, model, price in types:
            has = amounts(
                {
                    "cpu": cores * 1000,
                    "memory": 8 * cores * GIB,
                    "pods": 100,
                    **({GPU: gpus} if gpus else {}),
                }
            )
            known = {TYPE: name, **({"nvidia.com/gpu.product": model} if model else {})}
            machines.append(
                {
                    "name": name,
                    "labels": labels(known),
                    "allocatable": has,
                    "capacity": has,
                    "gpu_model": model,
                }
            )
            for zone in ("a", "b"):
                for kind in ("on-demand", "spot", "reserved"):
                    likely = {"on-demand": 0.9, "spot": 0.5, "reserved": 0.15}[kind]
                    if not self.chance(likely):
                        continue
                    one: Json = {
                        "instance_type": name,
                        "zone": zone,
                        "region": "r",
                        "capacity_type": kind,
                        "price_micro": price
                        * {"on-demand": 1_000_000, "spot": 400_000, "reserved": 1000}[kind]
                        + self.one(0, 1000, 50_000),
                    }
                    if kind == "reserved" or self.chance(0.1):
                        one["stock"] = self.one(0, 1, 3)
                    if kind == "reserved" and self.chance(0.4):
                        one["ends_at"] = self.now + self.one(1, 24) * HOUR
                    offerings.append(one)
        pools = []
        for name in ("p1", "p2", "p3")[: self.one(1, 2, 3)]:
            pool: Json = {"name": name, "weight": self.one(0, 0, 10)}
            if self.chance(0.3):
                pool["requirements"] = [
                    {
                        "key": TYPE,
                        "operator": self.one("In", "NotIn"),
                        "values": self.random.sample(["small", "mid", "big", "other"], 2),
                    }
                ]
            if self.chance(0.3):
                pool.setdefault("requirements", []).append(
                    {
                        "key": CAPACITY,
                        "operator": "In",
                        "values": self.one(["spot"], ["on-demand"], ["spot", "on-demand"]),
                    }
                )
            if self.chance(0.15):
                pool.setdefault("requirements", []).append(
                    {"key": ZONE, "operator": "In", "values": ["a"]}
                )
            if self.chance(0.3):
                pool["limits"] = self.one([[GPU, 8]], [["cpu", 200_000]], [["nodes", 2]])
            if self.chance(0.1):
                pool["taints"] = [{"key": "gpu"}]
            if self.chance(0.1):
                pool["labels"] = [["team", "a"]]
            if self.chance(0.1):
                pool["not_ready"] = "its node class p1-class is not ready"
            if self.chance(0.3):
                pool["allows_gang_spot"] = True
            if self.chance(0.2):
                pool["interruptions_milli"] = self.one(1, 900)
            pools.append(pool)
        spec: Json = {"instance_types": machines, "offerings": offerings, "node_pools": pools}
        if self.chance(0.3):
            spec["daemon_overhead"] = amounts({"cpu": 1000, "memory": GIB})
        if self.chance(0.3):
            spec["provisioning_ms"] = self.one(30_000, 600_000)
        self.tell("offerings", spec)

    @override
    def workload(self) -> Json:
        sets = [self.pods(self.one(1, 1, 2, 3, 4), self.one(0, 1, 2, 4, 8), cores=self.one(1, 6))]
        if self.chance(0.2):
            sets.append(self.pods(1, 0, name="head"))
        if self.chance(0.15):
            sets[0]["node_selector"] = [
                self.one(
                    [ZONE, "a"],
                    ["nvidia.com/gpu.product", "Y"],
                    ["team", "a"],
                    ["disk", "ssd"],
                    [CAPACITY, "spot"],
                    [TYPE, "big"],
                )
            ]
        if self.chance(0.1):
            sets[0]["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
        if self.chance(0.2):
            sets[0]["min_count"] = 1
        if self.chance(0.1):
            sets[0]["topology"] = {"mode": self.one("required", "preferred"), "level": ZONE}
        drawn: Json = {"local_queue": f"ns/{self.one(*self.queues)}", "pod_sets": sets}
        if self.chance(0.5):
            drawn["time_limit_ms"] = self.one(1, 30, 600, 3000) * MINUTE
        if self.chance(0.35):
            drawn["provisioning"] = self.one(
                {"scope": "any"},
                {"scope": "same-zone"},
                {"scope": ZONE},
                {"mixed_models": True},
                {"spot": "true"},
                {"spot": "mixed"},
                {"packing": "MinCost"},
                {"packing": "FewestNodes"},
                {"spot": "true", "restart_ms": 1000},
                {"accepts_block_end": True},
            )
        if self.chance(0.2):
            drawn["elastic_shrink"] = True
        return drawn

    @override
    def disturb(self) -> None:
        if self.chance(0.2):
            self.tell("orphans joined")
        if self.chance(0.05):
            self.offer()
        if self.chance(0.03):
            self.tell("offerings", None)
        held = self.world.holding()
        for name in sorted(held):
            nodes = [
                node
                for one in held[name]["admission"]["pod_sets"]
                for node, _ in one.get("nodes", [])
            ]
            if (
                nodes
                and held[name].get("admitted", True)
                and not held[name].get("evicting")
                and self.chance(0.2)
            ):
                lost = [self.one(*nodes)]
                self.tell("repair", name, lost, [])
                self.tell("replace", name, lost)
            elif self.chance(0.1) and not held[name].get("evicting"):
                old = held[name]["workload"]
                self.count += 1
                first, *rest = old["pod_sets"]
                larger = {**first, "count": first["count"] + 1}
                larger.pop("min_count", None)
                self.tell(
                    "pending",
                    {
                        **old,
                        "name": f"ns/w{self.count}",
                        "uid": f"uid-{self.count:03}",
                        "pod_sets": [larger, *rest],
                        "replaces_slice": name,
                    },
                )
        if self.chance(0.15):
            node = self.any_of(self.nodes)
            if node is not None:
                self.edit_node(node, ready=self.chance(0.5))


class Loans(Provisioning):
    """Gangs that hold nodes while the rest of theirs are bought; short jobs use these meanwhile."""

    area = "loans"
    cycles = 8
    first = 1
    pauses: tuple[int, ...] = (1, 10, 30)
    ends = 0.3

    @override
    def policy(self) -> Json:
        return self.one({}, {}, {"backfill": {"reservations": 1}}, {"backfill": {}})

    @override
    def cluster(self) -> None:
        self.tell("flavor", {"name": "f"})
        self.add_queue("q", resource_groups=[self.quota({"f": 400})])
        self.offer()
        for place in range(2):
            known = {ZONE: "a", TYPE: "big", "nvidia.com/gpu.product": "X"}
            self.add_node(f"n{place}", 8, labels=known)

    @override
    def offer(self) -> None:
        has = amounts({"cpu": 96_000, "memory": 700 * GIB, "pods": 100, GPU: 8})
        known = labels({TYPE: "big", "nvidia.com/gpu.product": "X"})
        big = {
            "name": "big",
            "labels": known,
            "allocatable": has,
            "capacity": has,
            "gpu_model": "X",
        }
        offering = {"instance_type": "big", "zone": "a", "region": "r", "price_micro": 8_000_000}
        self.tell(
            "offerings",
            {
                "instance_types": [big],
                "offerings": [offering],
                "node_pools": [{"name": "p1"}],
                "provisioning_ms": self.one(5, 10, 20) * MINUTE,
            },
        )

    @override
    def workload(self) -> Json:
        if self.count % 4 == 1:
            gang: Json = {
                "local_queue": "ns/q",
                "pod_sets": [{"count": self.one(2, 3), "requests": [[GPU, 8]]}],
            }
            gang["priority"] = 3
            return gang
        pods = {"count": self.one(1, 1, 2), "requests": [[GPU, self.one(1, 2, 4)]]}
        drawn: Json = {"local_queue": "ns/q", "pod_sets": [pods]}
        if self.chance(0.9):
            drawn["time_limit_ms"] = self.one(1, 2, 4, 8, 30) * MINUTE
            if self.chance(0.2):
                drawn["min_time_limit_ms"] = MINUTE
        return drawn

    @override
    def purchased(self, name: str) -> None:
        if self.chance(0.15):
            super().purchased(name)

    @override
    def disturb(self) -> None:
        if self.chance(0.1):
            self.tell("estimate")


class StockOuts(Loans):
    """Offerings that are refused again and again: the pause before the next attempt grows."""

    area = "stock-outs"
    cycles = 12
    first = 2
    pauses: tuple[int, ...] = (30, 61, 181, 370, 900)
    restarts = 0.0

    @override
    def workload(self) -> Json:
        pods = {"count": self.one(1, 3, 4), "requests": [[GPU, 8]]}
        return {"local_queue": "ns/q", "pod_sets": [pods]}

    @override
    def purchased(self, name: str) -> None:
        if self.chance(0.85):
            code = self.one("InsufficientCapacity", "InsufficientCapacity", "QuotaExceeded")
            self.tell("refused offering", name, code)
        else:
            self.tell("arrived", name)


class LargePurchases(Provisioning):
    """Gangs of hundreds of pods, and pods with wishes that machines have to meet."""

    area = "large-purchases"
    cycles = 4
    first = 2

    @override
    def cluster(self) -> None:
        self.tell("flavor", {"name": "f"})
        self.open_queue()
        self.offer()

    @override
    def workload(self) -> Json:
        drawn: Json = super().workload()
        first = drawn["pod_sets"][0]
        if self.chance(0.4):
            first["count"] = self.one(90, 300, 700)
        rule = {"selector": {"labels": selects(app="a")}, "topology_key": self.one(HOST, ZONE)}
        first["labels"] = [["app", "a"]]
        match self.one("nothing", "spread", "anti", "affinity", "node affinity", "slices", "ports"):
            case "spread":
                first["topology_spread"] = [rule]
            case "anti":
                first["pod_anti_affinity"] = [rule]
            case "affinity":
                first["pod_affinity"] = [rule]
            case "node affinity":
                first["node_affinity"] = self.one(
                    [[{"key": TYPE, "operator": "In", "values": ["big"]}]],
                    [[{"key": "disk", "operator": "Exists"}], []],
                    [[{"key": ZONE, "operator": "NotIn", "values": ["a"]}]],
                )
            case "slices":
                first["count"] = 6
                first["topology"] = {"mode": "preferred", "level": ZONE}
                first["topology"] |= {"slice_level": self.one(ZONE, HOST, RACK), "slice_size": 2}
            case "ports":
                first["host_ports"] = [{"port": 8080}]
            case _:
                pass
        return drawn
