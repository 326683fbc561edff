"""Quota: borrowing, lending, preemption, fair sharing, and what ends an admission."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from tests.decisions.situations import (
    GPU,
    HOST,
    HOUR,
    MINUTE,
    RACK,
    SECOND,
    Situation,
    amounts,
    selects,
)

Json = Any


class Classical(Situation):
    """Cohorts and flavors without nodes: borrowing, reclaiming, all preemption rules of Kueue."""

    area = "classical"
    cycles = 10

    @override
    def policy(self) -> Json:
        chosen: Json = {}
        if self.chance(0.15):
            chosen["strict_kueue"] = True
        if self.chance(0.1):
            chosen["anti_thrash"] = False
        if self.chance(0.15):
            chosen["undeclared_resources"] = "Ignore"
        return chosen

    @override
    def cluster(self) -> None:
        for name, zone in (("f", "1"), ("g", "2")):
            taints = [{"key": "spot"}] if name == "g" and self.chance(0.3) else []
            self.tell(
                "flavor",
                {"name": name, "node_labels": [["zone", zone]], "node_taints": taints},
            )
        self.tell("namespace", {"name": "ns", "labels": [["team", "a"]]})
        cohorts = self.one(["root"], ["root", "left"], ["root", "left", "right", "deep"])
        parents = {"left": "root", "right": self.mostly("root", None), "deep": "left"}
        self.style = self.one("one", "one", "two", "pool", "two resources")
        for name in cohorts:
            spec: Json = {"name": name}
            if parents.get(name):
                spec["parent"] = parents[name]
            if self.chance(0.4):
                spec["resource_groups"] = self.groups()
            if self.chance(0.3):
                spec["fair_weight_milli"] = self.one(0, 250, 2000)
            self.tell("cohort", spec)
        for name in "abcd"[: self.one(2, 3, 3, 4)]:
            self.add_queue(name, **self.queue([*cohorts, None] if self.chance(0.2) else cohorts))

    def queue(self, cohorts: list[Any]) -> Json:
        reclaim = self.one("Any", "LowerPriority", "Never")
        borrow: Json = {}
        if reclaim != "Never" and self.chance(0.4):
            borrow["policy"] = "LowerPriority"
            if self.chance(0.5):
                borrow["max_priority_threshold"] = self.one(0, 1)
        spec: Json = {
            "resource_groups": self.groups(),
            "preemption": {
                "within_cluster_queue": self.one(
                    "Never", "LowerPriority", "LowerOrNewerEqualPriority"
                ),
                "reclaim_within_cohort": reclaim,
                "borrow_within_cohort": borrow,
                "min_runtime_ms": self.mostly(0, 90 * SECOND),
            },
            "flavor_fungibility": self.one(
                {},
                {"when_can_preempt": "MayStopSearch"},
                {"when_can_borrow": "TryNextFlavor"},
                {"when_can_borrow": "TryNextFlavor", "preference": "BorrowingOverPreemption"},
                {"when_can_borrow": "TryNextFlavor", "preference": "PreemptionOverBorrowing"},
            ),
            "queueing_strategy": self.mostly("BestEffortFIFO", "StrictFIFO"),
            "fair_weight_milli": self.mostly(1000, 0, 500, 2000),
        }
        if (cohort := self.one(*cohorts)) is not None:
            spec["cohort"] = cohort
        return spec

    def amount(self) -> Json:
        nominal = self.one(0, 2, 4, 4, 6, 8)
        found: Json = {"nominal": nominal}
        if self.chance(0.2):
            found["borrowing_limit"] = self.one(0, 2, 4)
        if self.chance(0.2):
            found["lending_limit"] = self.one(0, nominal // 2)
        return found

    def groups(self) -> Json:
        match self.style:
            case "one":
                return [self.quota({"f": self.amount()})]
            case "two":
                names = self.mostly(("f", "g"), ("g", "f"))
                return [self.quota({name: self.amount() for name in names})]
            case "pool":
                names = self.one(("f", "g"), ("g", "f"))
                return [
                    {
                        "covered_resources": [GPU],
                        "flavors": [{"name": name} for name in names],
                        "pooled_quota": [{"name": GPU, **self.amount()}],
                    }
                ]
            case _:
                cores = {"name": "cpu", **self.amount()}
                cores["nominal"] *= 1000
                gpus = {"name": GPU, **self.amount()}
                return [
                    {
                        "covered_resources": [GPU, "cpu"],
                        "flavors": [{"name": "f", "resources": [gpus, cores]}],
                    }
                ]

    @override
    def workload(self) -> Json:
        sets = [self.drawn_pods("main")]
        if self.chance(0.15):
            sets.append(self.drawn_pods("more"))
        queue = self.one(*self.queues)
        return {"local_queue": f"ns/{queue}", "pod_sets": sets}

    def drawn_pods(self, name: str) -> Json:
        drawn: Json = {"count": self.one(1, 1, 2, 3, 4), "requests": [[GPU, self.one(1, 1, 2, 3)]]}
        if name != "main":
            drawn["name"] = name
        if self.style == "two resources" or self.chance(0.03):
            drawn["requests"] = amounts({GPU: self.one(1, 1, 2), "cpu": self.one(0, 1000, 2000)})
        if self.chance(0.1):
            drawn["min_count"] = 1
        if self.chance(0.15):
            drawn["node_selector"] = [["zone", self.one("1", "2", "3")]]
        if self.chance(0.3):
            drawn["tolerations"] = [{"key": "spot", "operator": "Exists"}]
        return drawn

    @override
    def disturb(self) -> None:
        if self.chance(0.12):
            name = self.any_of(self.world.pending())
            if name is not None:
                self.tell("edit", name, {"priority": self.one(0, 1, 2, 3)})
        if self.chance(0.1):
            name = self.any_of(self.world.holding())
            if name is not None:
                self.tell("edit", name, {"priority": self.one(0, 1, 2)})
        if self.chance(0.1):
            name = self.one(*self.queues)
            self.edit_queue(name, resource_groups=self.groups())


class Fair(Classical):
    """The same with fair sharing: shares, weights, both strategies and each alone."""

    area = "fair"

    @override
    def policy(self) -> Json:
        strategies = self.one(None, None, ["LessThanOrEqualToFinalShare"], ["LessThanInitialShare"])
        chosen: Json = {
            "fair_sharing": {} if strategies is None else {"preemption_strategies": strategies}
        }
        if self.chance(0.15):
            chosen["strict_kueue"] = True
        return chosen


class AdmissionFair(Classical):
    """Admission fair sharing: LocalQueues that used less lately go first, and give way last."""

    area = "admission-fair"
    pauses: tuple[int, ...] = (1, 60, 600, 3600)

    @override
    def policy(self) -> Json:
        chosen: Json = {
            "admission_fair_sharing": {
                "half_life_ms": self.one(0, 10 * MINUTE, HOUR),
                "sampling_ms": self.one(MINUTE, 5 * MINUTE),
            }
        }
        if self.chance(0.4):
            chosen["admission_fair_sharing"]["resource_weights_milli"] = [[GPU, 1000], ["cpu", 2]]
        if self.chance(0.4):
            chosen["fair_sharing"] = {}
        return chosen

    @override
    def cluster(self) -> None:
        super().cluster()
        for name in self.queues:
            self.edit_queue(name, usage_based_admission=self.mostly(True, False))
            for second in ("2", "3"):
                self.local_queue(f"ns/{name}{second}", name)

    def local_queue(self, key: str, queue: str) -> None:
        spec: Json = {"name": key, "cluster_queue": queue}
        spec["fair_weight_milli"] = self.mostly(1000, 0, 500, 2000)
        if self.chance(0.5):
            spec["consumed_micro"] = [[GPU, self.one(0, 500_000, 3_000_000, 40_000_000)]]
            spec["consumed_at"] = self.now
        if self.chance(0.2):
            spec["penalty_micro"] = [[GPU, 2_000_000]]
        self.tell("local queue", spec)

    @override
    def workload(self) -> Json:
        drawn: Json = super().workload()
        drawn["local_queue"] += self.one("", "2", "3")
        return drawn

    @override
    def disturb(self) -> None:
        super().disturb()
        if self.chance(0.2):
            name = self.one(*self.queues)
            self.local_queue(f"ns/{name}{self.one('2', '3')}", name)


class Configuration(Classical):
    """What is configured changes all the time: queues, cohorts, flavors, checks, stop policies."""

    area = "configuration"
    ends = 0.1

    @override
    def policy(self) -> Json:
        return {"fair_sharing": {}} if self.chance(0.3) else super().policy()

    @override
    def cluster(self) -> None:
        super().cluster()
        self.tell("admission check", {"name": "prov"})
        if self.chance(0.4):
            self.edit_queue(
                self.one(*self.queues),
                admission_checks=[{"name": "prov", **self.one({}, {"on_flavors": ["f"]})}],
            )
        if self.chance(0.3):
            self.edit_queue(self.one(*self.queues), namespace_selector=selects(team="a"))

    @override
    def workload(self) -> Json:
        drawn: Json = super().workload()
        if self.chance(0.05):
            drawn["local_queue"] = self.one("ns/nowhere", "other/a", "ns/")
        return drawn

    @override
    def disturb(self) -> None:
        super().disturb()
        for name, held in self.world.holding().items():
            if not held.get("admitted", True) and self.chance(0.5):
                state = self.one("Ready", "Ready", "Retry", "Rejected")
                self.tell("edit", name, {"admission_checks": [{"name": "prov", "state": state}]})
                if state == "Ready":
                    self.tell("status", name, {"admitted": True, "admitted_at": self.now})
        if self.chance(0.75):
            self.reconfigure()

    def reconfigure(self) -> None:
        name = self.one(*self.queues)
        match self.one(
            "stop",
            "stop",
            "local stop",
            "flavor",
            "namespace",
            "check",
            "cohort",
            "cycle",
            "delete",
            "move",
            "local gone",
            "selector",
            "terminating",
            "policy",
            "topology",
        ):
            case "stop":
                self.edit_queue(name, stop_policy=self.one("None", "Hold", "HoldAndDrain"))
            case "local stop":
                stop = self.one("None", "Hold", "HoldAndDrain")
                self.tell(
                    "local queue",
                    {"name": f"ns/{name}", "cluster_queue": name, "stop_policy": stop},
                )
            case "flavor":
                if self.chance(0.5):
                    self.tell("no flavor", self.one("f", "g"))
                else:
                    flavor = self.one("f", "g")
                    zone = "1" if flavor == "f" else "2"
                    self.tell("flavor", {"name": flavor, "node_labels": [["zone", zone]]})
            case "namespace":
                self.tell("namespace", {"name": "ns", "labels": [["team", self.one("a", "b")]]})
            case "check":
                if self.chance(0.3):
                    self.tell("no admission check", "prov")
                else:
                    self.tell("admission check", {"name": "prov", "active": self.chance(0.5)})
            case "cohort":
                spec: Json = {"name": self.one("root", "left"), "resource_groups": self.groups()}
                self.tell("cohort", spec)
            case "cycle":
                self.tell("cohort", {"name": "root", "parent": self.one("left", "root", None)})
            case "delete":
                self.tell("no cluster queue", name)
                if self.chance(0.7):
                    self.tell("cluster queue", self.queues[name])
            case "move":
                self.edit_queue(name, cohort=self.one("root", "left", "other", None))
            case "local gone":
                self.tell("no local queue", f"ns/{name}")
                if self.chance(0.7):
                    self.tell("local queue", {"name": f"ns/{name}", "cluster_queue": name})
            case "selector":
                self.edit_queue(name, namespace_selector=self.one({}, selects(team="a"), None))
            case "terminating":
                self.edit_queue(name, terminating=self.chance(0.6))
            case "policy":
                self.tell("policy", self.policy())
            case _:
                self.tell("flavor", {"name": "f", "topology": self.one("", "racks")})
                if self.chance(0.5):
                    self.tell("topology", {"name": "racks", "levels": [RACK, HOST]})


class Lifecycle(Classical):
    """Evictions that come due: readiness, execution time, checks, deactivation; holds and gates."""

    area = "lifecycle"
    pauses: tuple[int, ...] = (10, 60, 60, 300, 900)
    ends = 0.1

    @override
    def policy(self) -> Json:
        if self.chance(0.2):
            return {}
        rules: Json = {"timeout_ms": self.one(MINUTE, 5 * MINUTE)}
        if self.chance(0.5):
            rules["recovery_timeout_ms"] = self.one(0, MINUTE)
        if self.chance(0.4):
            rules["block_admission"] = True
        if self.chance(0.4):
            rules["requeue_timestamp"] = "Creation"
        if self.chance(0.4):
            rules["backoff_limit"] = self.one(0, 1, 2)
        if self.chance(0.4):
            rules["backoff_base_ms"] = self.one(SECOND, 10 * MINUTE)
        return {"pods_ready": rules}

    @override
    def workload(self) -> Json:
        drawn: Json = super().workload()
        if self.chance(0.25):
            drawn["max_execution_ms"] = self.one(MINUTE, 10 * MINUTE)
        match self.one(*range(14)):
            case 0:
                drawn["gated_by"] = "example.com/gate"
            case 1:
                drawn["on_hold"] = True
            case 2:
                drawn["requeue_at"] = self.now + self.one(30, 200) * SECOND
            case 3:
                drawn["misconfigured"] = "the template of pod set main-2 cannot be read"
            case 4:
                drawn["active"] = False
            case 5:
                drawn["admission_checks"] = [
                    {"name": "prov", "state": self.one("Retry", "Rejected")}
                ]
            case 6:
                drawn["queued_at"] = self.now + SECOND
            case 7:
                drawn["may_preempt_at"] = self.now + self.one(30, 200) * SECOND
                drawn["preemptions"] = self.one(1, 3)
            case _:
                pass  # nothing about it is unusual
        return drawn

    @override
    def disturb(self) -> None:
        super().disturb()
        for name, held in self.world.holding().items():
            if held.get("evicting"):
                continue
            if not held.get("pods_ready", True) and self.chance(0.4):
                self.tell("status", name, {"pods_ready": True})
            elif self.chance(0.15):
                self.tell("status", name, {"pods_ready": False, "unready_since": self.now})
            elif self.chance(0.1):
                self.tell("edit", name, {"active": False})
            elif self.chance(0.1):
                state = self.one("Retry", "Rejected")
                self.tell("edit", name, {"admission_checks": [{"name": "prov", "state": state}]})
            elif self.chance(0.15):
                self.tell("edit", name, {"reclaimable_pods": [["main", 1]]})
        for name, one in self.world.pending().items():
            if (
                one.get("gated_by") or one.get("on_hold") or one.get("misconfigured")
            ) and self.chance(0.3):
                self.tell("edit", name, {"gated_by": "", "on_hold": False, "misconfigured": ""})
            elif not one.get("active", True) and self.chance(0.3):
                self.tell("edit", name, {"active": True})
            elif one.get("admission_checks") and self.chance(0.5):
                self.tell("edit", name, {"admission_checks": []})
        if self.chance(0.1):
            self.edit_queue(
                self.one(*self.queues), stop_policy=self.one("None", "Hold", "HoldAndDrain")
            )


class Elastic(Classical):
    """Partial admission, slices that replace smaller ones, and gangs that give up pods."""

    area = "elastic"

    @override
    def cluster(self) -> None:
        super().cluster()
        if self.number % 2:
            for place in range(self.one(2, 3, 4)):
                zone = self.one("1", "2")
                self.add_node(
                    f"n{place}", self.one(4, 8), labels={"zone": zone, RACK: f"r{place % 2}"}
                )

    @override
    def workload(self) -> Json:
        drawn: Json = super().workload()
        first = drawn["pod_sets"][0]
        first["count"] += self.one(0, 1, 3)
        if self.chance(0.7):
            first["min_count"] = self.one(1, 1, max(1, first["count"] - 1))
        if self.chance(0.6):
            drawn["elastic_shrink"] = True
        if len(drawn["pod_sets"]) > 1 and self.chance(0.4):
            drawn["pod_sets"][1]["min_count"] = 1
        if self.chance(0.15):
            total = sum(one["count"] for one in drawn["pod_sets"])
            drawn["min_available"] = max(1, total - 1)
        return drawn

    @override
    def disturb(self) -> None:
        super().disturb()
        for name, held in self.world.holding().items():
            if held.get("evicting") or not self.chance(0.2):
                continue
            old = held["workload"]
            if self.chance(0.6):
                self.count += 1
                first, *rest = old["pod_sets"]
                larger = {**first, "count": first["count"] + self.one(1, 2)}
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
            else:
                self.tell("edit", name, {"reclaimable_pods": [["main", 1]]})


class Contended(Classical):
    """Teams that borrow all that there is, and others that reclaim theirs: many preemptions."""

    area = "contended"
    first = 0
    cycles = 8
    ends = 0.05

    @override
    def cluster(self) -> None:
        self.style = self.one("one", "one", "two")
        for name in ("f", "g"):
            self.tell("flavor", {"name": name})
        self.tell("cohort", {"name": "root"})
        tree = self.chance(0.5)
        if tree:
            for name in ("left", "right"):
                spec: Json = {"name": name, "parent": "root"}
                spec["fair_weight_milli"] = self.one(1000, 1000, 500, 2000)
                self.tell("cohort", spec)
        for number, name in enumerate("abcd"):
            # Queues beside cohorts, too: at a tie of their shares it matters which is looked at.
            cohort = ("left", "right", "root", "left")[number] if tree else "root"
            self.add_queue(name, **{**self.queue([cohort]), **self.eager(name)})
        for _ in range(self.one(6, 9)):  # the first team takes what it can
            self.submit(local_queue="ns/a", priority=self.one(0, 0, 1))
        self.cycle()
        self.cycle()
        self.cycle()
        self.now += 100 * SECOND

    def eager(self, name: str) -> Json:
        """Return rules under which a queue takes back what is its own, and now and then more."""
        reclaim = self.mostly("Any", "LowerPriority")
        borrow: Json = {}
        if self.chance(0.5):
            borrow = {"policy": "LowerPriority", **self.one({}, {"max_priority_threshold": 1})}
        own = 0 if name == "d" and self.chance(0.5) else self.one(3, 4, 6)
        names = ("f",) if self.style == "one" else ("f", "g")
        return {
            "resource_groups": [self.quota({flavor: {"nominal": own} for flavor in names})],
            "preemption": {
                "within_cluster_queue": self.one("LowerPriority", "LowerOrNewerEqualPriority"),
                "reclaim_within_cohort": reclaim,
                "borrow_within_cohort": borrow,
            },
        }

    @override
    def drawn_pods(self, name: str) -> Json:
        drawn: Json = {"count": self.one(1, 1, 2, 3), "requests": [[GPU, self.one(1, 1, 2)]]}
        if name != "main":
            drawn["name"] = name
        return drawn

    @override
    def workload(self) -> Json:
        drawn = super().workload()
        drawn["priority"] = self.one(0, 1, 2, 3)
        if self.chance(0.5):
            drawn["pod_sets"][0]["min_count"] = 1
            drawn["elastic_shrink"] = self.chance(0.7)
        return drawn

    @override
    def disturb(self) -> None:
        if self.chance(0.1):
            self.edit_queue(self.one(*self.queues), fair_weight_milli=self.one(0, 500, 3000))


class ContendedFair(Contended):
    """The same with fair sharing."""

    area = "contended-fair"

    @override
    def policy(self) -> Json:
        strategies = self.one(None, None, ["LessThanOrEqualToFinalShare"], ["LessThanInitialShare"])
        return {"fair_sharing": {} if strategies is None else {"preemption_strategies": strategies}}


class FairTies(ContendedFair):
    """Equal queues, equal weights, pods of one size: shares are often equal."""

    area = "fair-ties"
    cycles = 10
    arrivals = (1, 2, 3)

    @override
    def policy(self) -> Json:
        # Without our second look at the victims the rule of the second pass decides alone.
        return {**super().policy(), **({"strict_kueue": True} if self.number % 2 else {})}

    @override
    def queue(self, cohorts: list[Any]) -> Json:
        spec: Json = super().queue(cohorts)
        return {**spec, "fair_weight_milli": 1000}

    @override
    def eager(self, name: str) -> Json:
        return {
            "resource_groups": [self.quota({"f": 3})],
            "preemption": {
                "within_cluster_queue": "LowerPriority",
                "reclaim_within_cohort": self.mostly("Any", "LowerPriority"),
            },
        }

    @override
    def workload(self) -> Json:
        pods = {"count": 1, "requests": [[GPU, self.one(1, 1, 2, 3)]]}
        queue = self.one(*self.queues)
        return {"local_queue": f"ns/{queue}", "pod_sets": [pods], "priority": self.one(0, 0, 1)}

    @override
    def disturb(self) -> None:
        pass


class ContendedNodes(Contended):
    """The same on nodes, some of which have to be cleared."""

    area = "contended-nodes"

    @override
    def policy(self) -> Json:
        return {"fair_sharing": {}} if self.number % 3 == 0 else {}

    @override
    def cluster(self) -> None:
        for place in range(self.one(2, 3, 4)):
            self.add_node(f"n{place}", self.one(4, 6, 8), labels={RACK: f"r{place % 2}"})
        super().cluster()

    @override
    def drawn_pods(self, name: str) -> Json:
        drawn: Json = super().drawn_pods(name)
        if self.chance(0.25):
            drawn["topology"] = {
                "mode": self.one("required", "preferred"),
                "level": self.one(RACK, HOST),
            }
        return drawn
