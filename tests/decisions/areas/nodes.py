"""Nodes: topology, rules between pods, shared GPUs, repair."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from tests.decisions.situations import (
    BLOCK,
    GPU,
    HOST,
    MINUTE,
    RACK,
    SECOND,
    SHARE,
    ZONE,
    Situation,
    amounts,
    labels,
    selects,
)

Json = Any


class Topology(Situation):
    """Racks and blocks: required, preferred, slices, groups of pod sets, scoring."""

    area = "topology"
    levels = (BLOCK, RACK, HOST)

    @override
    def policy(self) -> Json:
        placement: Json = {}
        if self.chance(0.6):
            placement["scoring"] = self.one("leftover", "binpack", "spread", "fgd", "spare", "none")
        if self.chance(0.2):
            placement["gpu_mode"] = "unconstrained"
        if self.chance(0.2):
            placement["levels"] = [RACK]
        if self.chance(0.2):
            placement["needs_nodes"] = True
        return {"placement": placement} if placement else {}

    @override
    def cluster(self) -> None:
        self.tell("topology", {"name": "racks", "levels": [*self.levels]})
        self.tell(
            "flavor", {"name": "f", **self.one({}, {"topology": "racks"}, {"topology": "racks"})}
        )
        preemption = self.one(
            {},
            {"within_cluster_queue": "LowerPriority"},
            {"within_cluster_queue": "LowerOrNewerEqualPriority"},
        )
        for name in ("q", "q2")[: self.one(1, 2)]:
            if self.chance(0.4):
                self.open_queue(name)
            else:
                self.add_queue(
                    name,
                    cohort="root",
                    preemption={**preemption, "reclaim_within_cohort": self.one("Never", "Any")},
                    resource_groups=[
                        {
                            "covered_resources": [GPU, "cpu"],
                            "flavors": [
                                {
                                    "name": "f",
                                    "resources": [
                                        {"name": GPU, "nominal": self.one(8, 24, 64)},
                                        {"name": "cpu", "nominal": 640_000},
                                    ],
                                }
                            ],
                        }
                    ],
                )
        for place in range(self.one(4, 6, 8)):
            where = {BLOCK: f"b{place // 4}", RACK: f"r{place // 2}"}
            if self.chance(0.05):
                where.pop(RACK)
            self.add_node(f"n{place}", self.one(4, 8, 8), labels=where)
        if self.chance(0.4):
            self.add_node("cpu0", 0, labels={BLOCK: "b0"})

    def wish(self) -> Json:
        level = self.one(BLOCK, RACK, RACK, HOST)
        wish: Json = {
            "mode": self.one("required", "required", "preferred", "unconstrained"),
            "level": level,
        }
        if wish["mode"] == "unconstrained":
            wish.pop("level")
        if self.chance(0.3):
            wish["slice_level"] = self.one(RACK, HOST, HOST, "no-such-level")
            wish["slice_size"] = self.one(2, 2, 3)
        return wish

    @override
    def workload(self) -> Json:
        sets = [self.pods(self.one(1, 2, 2, 4, 6), self.one(1, 2, 4, 8))]
        if self.chance(0.65):
            sets[0]["topology"] = self.wish()
            if "slice_size" in sets[0]["topology"]:
                sets[0]["count"] = sets[0]["topology"]["slice_size"] * self.one(1, 2, 3)
        if self.chance(0.25):
            sets.append(self.pods(1, self.one(0, 1), name="leader"))
            if self.chance(0.6):
                sets[0]["group"] = sets[1]["group"] = "g"
                if "topology" in sets[0]:
                    sets[1]["topology"] = {
                        key: value
                        for key, value in sets[0]["topology"].items()
                        if not key.startswith("slice")
                    }
        if self.chance(0.12):
            sets[0]["min_count"] = 1
        return {"local_queue": f"ns/{self.one(*self.queues)}", "pod_sets": sets}

    @override
    def disturb(self) -> None:
        if self.chance(0.2):
            self.edit_node(
                self.one(*self.nodes),
                **self.one(
                    {"ready": False},
                    {"unschedulable": True},
                    {"ready": True, "unschedulable": False},
                ),
            )
        if self.chance(0.1):
            name = self.one(*self.nodes)
            self.tell("no node", name)
            if self.chance(0.5):
                self.tell("node", self.nodes[name])
        if self.chance(0.15):
            pod = f"other/p{self.count}"
            spec: Json = {
                "name": pod,
                "node": self.one(*self.nodes),
                "requests": amounts({GPU: 2, "cpu": 1000}),
            }
            self.tell("pod", spec)
            if self.chance(0.4):
                self.tell("no pod", pod)


class BalancedTopology(Topology):
    """Larger trees of racks, with large gangs."""

    area = "large-topology"
    cycles = 6
    first = 5

    @override
    def cluster(self) -> None:
        self.tell("topology", {"name": "racks", "levels": [*self.levels]})
        self.tell("flavor", {"name": "f", "topology": "racks"})
        self.open_queue("q")
        for place in range(24):
            where = {ZONE: f"z{place // 12}", BLOCK: f"b{place // 6}", RACK: f"r{place // 3}"}
            self.add_node(f"n{place:02}", 8, labels=where)

    @override
    def workload(self) -> Json:
        drawn = self.pods(self.one(2, 4, 6, 8, 12, 16), self.one(1, 2, 4, 8))
        if self.chance(0.7):
            drawn["topology"] = {
                "mode": self.one("required", "preferred"),
                "level": self.one(ZONE, BLOCK, RACK),
            }
            if self.chance(0.3):
                drawn["topology"] |= {"slice_level": self.one(RACK, HOST), "slice_size": 2}
        return {"local_queue": "ns/q", "pod_sets": [drawn]}


class Grouped(Topology):
    """Leaders and workers that have to share a domain, on racks of several sizes."""

    area = "grouped-pod-sets"
    ends = 0.3

    @override
    def policy(self) -> Json:
        return {}

    @override
    def cluster(self) -> None:
        self.tell("topology", {"name": "racks", "levels": [*self.levels]})
        self.tell("flavor", {"name": "f", "topology": "racks"})
        self.open_queue()
        for place in range(10):
            where = {BLOCK: f"b{place // 5}", RACK: f"r{self.one(0, 1, 2) + 3 * (place // 5)}"}
            self.add_node(f"n{place}", self.one(2, 4, 8), cores=self.one(4, 8, 32), labels=where)

    @override
    def workload(self) -> Json:
        workers = self.pods(self.one(1, 2, 3, 4), self.one(1, 2, 4), cores=self.one(1, 2))
        leader = self.pods(
            self.one(1, 1, 2), self.one(0, 1, 2), cores=self.one(1, 4), name="leader"
        )
        wish = {"mode": self.mostly("required", "preferred"), "level": self.mostly(RACK, BLOCK)}
        sets = [workers, leader] if self.chance(0.5) else [leader, workers]
        for one in sets:
            one.update(group="g", topology=wish)
        return {"local_queue": "ns/q", "pod_sets": sets}


class PodRules(Topology):
    """Rules between pods and nodes: affinity, spread, ports, taints, selectors, leaving pods."""

    area = "pod-rules"

    @override
    def policy(self) -> Json:
        placement: Json = {}
        if self.chance(0.5):
            placement["terminating_wait_ms"] = self.one(MINUTE, 10 * MINUTE)
        if self.chance(0.3):
            placement["scoring"] = self.one("binpack", "spread", "none")
        return {"placement": placement} if placement else {}

    @override
    def cluster(self) -> None:
        super().cluster()
        for place, name in enumerate([*self.nodes]):
            known = dict(self.nodes[name]["labels"])
            known |= {
                "disk": self.one("ssd", "hdd"),
                "cores": self.one("8", "16", "many"),
                ZONE: f"z{place % 3}",
            }
            taints = self.mostly(
                [],
                [{"key": "spot"}],
                [{"key": "slow", "effect": "PreferNoSchedule"}],
                [{"key": "gone", "value": "1", "effect": "NoExecute"}],
            )
            self.edit_node(name, labels=labels(known), taints=taints)

    @override
    def workload(self) -> Json:
        drawn: Json = super().workload()
        app = self.one("a", "b")
        for one in drawn["pod_sets"]:
            one["labels"] = [["app", app]]
            if self.chance(0.4):
                one.pop("topology", None)
            if self.chance(0.5):
                self.rule(one, app)
        return drawn

    def rule(self, one: Json, app: str) -> None:
        selector: Json = {"labels": selects(app=self.one(app, app, "a", "b"))}
        if self.chance(0.2):
            selector |= self.one({"every_namespace": True}, {"namespaces": ["other", "ns"]})
        pair = {"selector": selector, "topology_key": self.one(HOST, RACK, ZONE, "no-such-key")}
        match self.one(
            "affinity",
            "anti",
            "spread",
            "ports",
            "selector",
            "tolerations",
            "node affinity",
            "preferred",
            "volume",
        ):
            case "affinity":
                one["pod_affinity"] = [pair]
            case "anti":
                one["pod_anti_affinity"] = [pair]
            case "spread":
                one["topology_spread"] = [
                    {**pair, "max_skew": self.one(1, 2), "min_domains": self.one(1, 3)}
                ]
            case "ports":
                one["host_ports"] = [
                    {"port": 8080, **self.one({}, {"address": "10.0.0.1"}, {"protocol": "UDP"})}
                ]
            case "selector":
                one["node_selector"] = [["disk", self.one("ssd", "hdd", "tape")]]
            case "tolerations":
                one["tolerations"] = [
                    self.one(
                        {"operator": "Exists"},
                        {"key": "spot", "operator": "Exists"},
                        {"key": "gone", "value": "1", "effect": "NoExecute"},
                    )
                ]
            case "node affinity":
                one["node_affinity"] = [[self.requirement()] for _ in range(self.one(1, 2))]
            case "preferred":
                one["preferred_node_affinity"] = [
                    {"weight": self.one(1, 50), "term": [self.requirement()]}
                ]
            case _:
                term = [{"key": ZONE, "operator": "In", "values": [self.one("z0", "z1", "z9")]}]
                one["node_affinity"], one["volume_affinity"] = [term], [[term]]

    def requirement(self) -> Json:
        return self.one(
            {"key": "cores", "operator": "Gt", "values": ["8"]},
            {"key": "cores", "operator": "Lt", "values": ["16"]},
            {"key": "disk", "operator": "NotIn", "values": ["hdd"]},
            {"key": "disk", "operator": "In", "values": ["hdd", "ssd"]},
            {"key": "none", "operator": "DoesNotExist"},
            {"key": "disk", "operator": "Exists"},
        )

    @override
    def disturb(self) -> None:
        super().disturb()
        if self.chance(0.4):
            spec: Json = {
                "name": f"other/x{self.count}",
                "node": self.one(*self.nodes),
                "labels": [["app", self.one("a", "b")]],
                "requests": amounts({GPU: self.one(2, 4, 8), "cpu": 1000}),
            }
            if self.chance(0.6):
                spec["leaves_at"] = self.now + self.one(30, 120, 900) * SECOND
            if self.chance(0.3):
                spec["host_ports"] = [{"port": 8080}]
            if self.chance(0.3):
                spec["anti_affinity"] = [
                    {
                        "selector": {"labels": selects(app="a"), "namespaces": ["ns"]},
                        "topology_key": HOST,
                    }
                ]
            self.tell("pod", spec)


class SharedGpus(Situation):
    """Pods that take a part of a GPU, beside pods that take whole ones; MIG instances."""

    area = "shared-gpus"
    first = 6
    arrivals: tuple[int, ...] = (1, 2, 3)

    @override
    def policy(self) -> Json:
        chosen: Json = {}
        if self.chance(0.6):
            chosen["placement"] = {
                "scoring": self.one("fgd", "spare", "binpack", "spread", "leftover", "none")
            }
        if self.chance(0.4):
            chosen["backfill"] = self.one({}, {"reservations": 1})
        return chosen

    @override
    def cluster(self) -> None:
        self.tell("flavor", {"name": "f"})
        if self.chance(0.5):
            self.open_queue()
        else:
            self.add_queue(
                "q",
                resource_groups=[
                    {
                        "covered_resources": [GPU, SHARE, "cpu"],
                        "flavors": [
                            {
                                "name": "f",
                                "resources": [
                                    {"name": GPU, "nominal": 8},
                                    {"name": SHARE, "nominal": self.one(4000, 20_000)},
                                    {"name": "cpu", "nominal": 640_000},
                                ],
                            }
                        ],
                    }
                ],
                preemption={"within_cluster_queue": self.one("Never", "LowerPriority")},
            )
        for place in range(self.one(2, 3, 4)):
            mig = {"nvidia.com/mig-1g.5gb": 4} if self.chance(0.3) else {}
            self.add_node(f"n{place}", self.one(1, 2, 4), has=mig, labels={RACK: f"r{place % 2}"})
        for number in range(self.one(0, 1, 2)):
            self.foreign(f"other/first{number}", device=number)

    @override
    def workload(self) -> Json:
        kind = self.one("part", "part", "part", "whole", "mig", "both")
        asks: dict[str, int] = {}
        if kind in ("part", "both"):
            asks[SHARE] = self.one(100, 250, 300, 500, 700, 1000)
        if kind == "mig":
            asks["nvidia.com/mig-1g.5gb"] = self.one(1, 2)
        sets = [
            self.pods(self.one(1, 1, 2, 3, 5), self.one(1, 2) if kind == "whole" else 0, asks=asks)
        ]
        if kind == "both":
            sets.append(self.pods(1, 1, name="whole"))
        if self.chance(0.2):
            sets[0]["topology"] = {
                "mode": self.one("required", "preferred"),
                "level": self.one(RACK, HOST),
            }
        if self.chance(0.15):
            sets[0]["min_count"] = 1
        return {
            "local_queue": "ns/q",
            "pod_sets": sets,
            **({"time_limit_ms": self.one(5, 30) * MINUTE} if self.chance(0.5) else {}),
            **({"elastic_shrink": True} if self.chance(0.3) else {}),
        }

    def foreign(self, name: str, **more: Json) -> None:
        """Tell a pod of others that shares a GPU."""
        asks = amounts({SHARE: self.one(250, 500), "cpu": 1000})
        self.tell("pod", {"name": name, "node": f"n{self.one(0, 1)}", "requests": asks, **more})

    @override
    def disturb(self) -> None:
        if self.chance(0.3):
            name = f"other/x{self.count}"
            self.foreign(name)
            if self.chance(0.3):
                self.tell("no pod", name)
        if self.chance(0.1):
            self.tell("no pod", "other/first0")


class Repair(Topology):
    """Nodes fail under running gangs: other nodes for the pods that lost theirs."""

    area = "repair"
    ends = 0.1

    @override
    def disturb(self) -> None:
        held = self.world.holding()
        for name in sorted(held):
            nodes = [
                node
                for one in held[name]["admission"]["pod_sets"]
                for node, _ in one.get("nodes", [])
            ]
            if held[name].get("evicting") or not nodes or not self.chance(0.5):
                continue
            lost = sorted(set(self.random.sample(nodes, min(len(nodes), self.one(1, 1, 2)))))
            for node in lost:
                if node in self.nodes:
                    self.edit_node(node, ready=False)
            stays: list[Json] = []
            if self.chance(0.3):
                stays = [[held[name]["admission"]["pod_sets"][0]["name"], lost[0], [-1]]]
            self.tell("repair", name, lost, stays)
            answer = self.decided[-1].get("repair", {})
            if "cluster_queue" in answer and self.chance(0.8):
                self.tell("status", name, {"admission": answer})
        if self.chance(0.5):
            broken = [name for name, one in self.nodes.items() if not one.get("ready", True)]
            if broken:
                self.edit_node(self.one(*broken), ready=True)


class SharedBackfill(SharedGpus):
    """The same with reservations: a GPU may be shared now and whole later."""

    area = "shared-backfill"

    @override
    def policy(self) -> Json:
        return {"backfill": self.one({}, {}, {"reservations": 1}, {"reservations": 3})}

    @override
    def workload(self) -> Json:
        return {**super().workload(), "time_limit_ms": self.one(1, 5, 30) * MINUTE}


class SharedRepair(SharedGpus):
    """The same for pods that share GPUs."""

    area = "shared-repair"
    ends = 0.1

    @override
    def disturb(self) -> None:
        Repair.disturb(self)  # type: ignore[arg-type]  # it asks for nothing that is not here
        super().disturb()


class CheckedNodes(Situation):
    """Admission checks that bring nodes: quota first, nodes when they are there."""

    area = "checked-nodes"
    ends = 0.1

    @override
    def cluster(self) -> None:
        self.tell("admission check", {"name": "prov", "provisions_nodes": True})
        self.tell("flavor", {"name": "f"})
        self.add_queue(
            "q",
            resource_groups=[
                {
                    "covered_resources": [GPU, "cpu"],
                    "flavors": [
                        {
                            "name": "f",
                            "resources": [
                                {"name": GPU, "nominal": 16},
                                {"name": "cpu", "nominal": 640_000},
                            ],
                        }
                    ],
                }
            ],
            admission_checks=[{"name": "prov"}],
            preemption={"within_cluster_queue": "LowerPriority"},
        )
        for place in range(2):
            self.add_node(f"n{place}", 8)

    @override
    def workload(self) -> Json:
        return {
            "local_queue": "ns/q",
            "pod_sets": [self.pods(self.one(1, 2, 3), self.one(1, 2, 4, 8))],
        }

    @override
    def disturb(self) -> None:
        for name, held in self.world.holding().items():
            if held.get("admitted", True) or held.get("evicting") or not self.chance(0.6):
                continue
            if self.chance(0.4):
                number = len(self.nodes)
                self.add_node(
                    f"n{number}",
                    8,
                    labels={"for": name.partition("/")[2]},
                    reserved_for=name if self.chance(0.5) else "",
                )
            ready = [{"name": "prov", "state": "Ready"}]
            self.tell("edit", name, {"admission_checks": ready})
            selector = {"main": [["for", name.partition("/")[2]]]} if self.chance(0.5) else {}
            self.tell("place", name, selector)
            answer = self.decided[-1].get("place", {})
            if "cluster_queue" in answer:
                self.tell(
                    "status", name, {"admission": answer, "admitted": True, "admitted_at": self.now}
                )


class Terminating(Topology):
    """Nodes full of pods that were told to end: waiting for them is better than preempting."""

    area = "terminating-pods"
    ends = 0.1
    pauses: tuple[int, ...] = (1, 10, 60, 300)

    @override
    def policy(self) -> Json:
        return {"placement": {"terminating_wait_ms": self.one(2, 10) * MINUTE}}

    @override
    def cluster(self) -> None:
        self.pods_there: list[str] = []
        self.tell("flavor", {"name": "f"})
        for name in ("q", "q2"):
            within = self.one("Never", "LowerPriority")
            self.add_queue(
                name,
                cohort="root",
                resource_groups=[self.quota({"f": self.one(16, 64)})],
                preemption={"within_cluster_queue": within, "reclaim_within_cohort": "Any"},
            )
        for place in range(self.one(2, 3)):
            self.add_node(f"n{place}", 8, labels={RACK: f"r{place % 2}"})
            self.foreign(f"n{place}", 8)

    def foreign(self, node: str, gpus: int) -> None:
        """Tell a pod of others that is about to leave, most of the time."""
        self.count += 1
        pod: Json = {"name": f"other/p{self.count}", "node": node, "requests": [[GPU, gpus]]}
        pod["labels"] = [["app", self.one("a", "b")]]
        if self.chance(0.8):
            pod["leaves_at"] = self.now + self.one(30, 100, 500) * SECOND
        if self.chance(0.2):
            rule = {"selector": {"labels": selects(app="a"), "namespaces": ["ns"]}}
            pod["anti_affinity"] = [{**rule, "topology_key": self.one(HOST, RACK)}]
        self.tell("pod", pod)
        self.pods_there.append(pod["name"])

    @override
    def workload(self) -> Json:
        pods: Json = {"count": self.one(1, 1, 2, 3), "requests": [[GPU, self.one(2, 4, 8)]]}
        pods["labels"] = [["app", self.one("a", "b")]]
        if self.chance(0.2):
            pods["topology"] = {"mode": self.one("required", "preferred"), "level": RACK}
        return {"local_queue": f"ns/{self.one(*self.queues)}", "pod_sets": [pods]}

    @override
    def disturb(self) -> None:
        if self.pods_there and self.chance(0.5):
            self.tell("no pod", self.pods_there.pop(0))
        if self.chance(0.3):
            self.foreign(self.one(*self.nodes), self.one(2, 4))
