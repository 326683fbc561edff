"""The areas that situations are drawn for: one class for every policy and family of rules."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from tests.decisions.situations import (
    BLOCK,
    CAPACITY,
    GIB,
    GPU,
    HOST,
    HOUR,
    MINUTE,
    RACK,
    SECOND,
    SHARE,
    TYPE,
    ZONE,
    Situation,
    amounts,
    labels,
    selects,
)

Json = Any


# --- quota: who may borrow, lend, preempt --------------------------------------------------------


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
    pauses = (1, 60, 600, 3600)

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
    pauses = (10, 60, 60, 300, 900)
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


# --- priority order ------------------------------------------------------------------------------


class PriorityOrder(Situation):
    """Accounts, QOS, partitions, weights, fair share and limits, as Slurm has them."""

    area = "priority-order"
    cycles = 9
    first = 7
    arrivals = (0, 1, 2, 3)
    pauses = (1, 60, 60, 300, 3600, 86_400)
    backfill: Json = None

    @override
    def policy(self) -> Json:
        order: Json = {
            "weights": {
                "age": self.one(0, 1000),
                "fair_share": self.one(0, 1000, 10_000),
                "qos": self.one(0, 500),
                "partition": self.one(0, 200),
                "job_size": self.one(0, 300),
                "association": self.one(0, 100),
                "priority_class": self.one(1, 0, 100),
            },
            "max_age_ms": self.one(HOUR, 24 * HOUR),
            "half_life_ms": self.one(0, 10 * MINUTE, HOUR),
            "fair_share": self.one("tree", "tree", "classic", "depth-oblivious"),
            "associations": self.associations(),
            "qos": self.qos(),
            "partitions": self.partitions(),
            "default_account": self.mostly("prod", ""),
        }
        if self.chance(0.4):
            order["weights"]["tres"] = [["cpu", 100.0], ["gres/gpu", 700.0]]
        for field, values in (
            ("order", ("priority",)),
            ("age_from_submission", (True,)),
            ("reset", ("daily", "weekly", "monthly", "quarterly", "yearly")),
            ("dampening", (2, 5)),
            ("favor_small", (True,)),
            ("small_relative_to_time", (True,)),
            ("billing", ("max", "max-gres")),
            ("slurm_steps", (True,)),
            ("unnormalised", (["qos"], ["partition", "tres"], ["association", "qos"])),
            ("accounts_of", ([["ns", "vision"]], [["ns/q", "nlp"]])),
            ("default_qos", ("normal",)),
            ("known_users_only", (True,)),
            ("totals", ([["cpu", 64_000], ["gres/gpu", 16_000]],)),
        ):
            if self.chance(0.2):
                order[field] = self.one(*values)
        chosen: Json = {"priority_order": order}
        if self.backfill is not None:
            chosen["backfill"] = self.backfill
        return chosen

    def associations(self) -> Json:
        limits = {
            "group_tres": [["gres/gpu", self.one(4, 8) * 1000]],
            "group_jobs": self.one(2, 3),
            "group_submitted": 4,
            "group_jobs_accruing": 1,
            "group_tres_minutes": [["gres/gpu", self.one(5, 60) * 1000]],
            "group_tres_run_minutes": [["gres/gpu", self.one(60, 300) * 1000]],
            "group_wall_ms": self.one(10, 60) * MINUTE,
            "tres_per_job": [["gres/gpu", 4000]],
            "wall_per_job_ms": 30 * MINUTE,
            "tres_minutes_per_job": [["gres/gpu", 120_000]],
        }
        users = {
            "jobs_per_user": 2,
            "submitted_per_user": 3,
            "tres_per_user": [["gres/gpu", 4000]],
            "jobs_accruing_per_user": 1,
            "tres_run_minutes_per_user": [["gres/gpu", 100_000]],
        }
        found: list[Json] = [
            {"account": "prod", "shares": 40},
            {"account": "research", "shares": 60},
            {"account": "nlp", "parent": "research", "shares": self.one(10, None)},
            {"account": "vision", "parent": "research", "shares": 30},
            {"account": "prod", "user": "ann"},
            {"account": "nlp", "user": "bob", "priority": 10},
            {"account": "vision", "user": "cid", "shares": 3},
            {"account": "vision", "user": "bob", "is_default": self.chance(0.5)},
        ]
        for one in found:
            if self.chance(0.25):
                known = {**limits, **(users if "user" in one else {})}
                names = self.random.sample(sorted(known), 2)
                one["limits"] = {name: known[name] for name in names}
            if self.chance(0.15):
                one["qos"] = ["normal", "tight"]
            if self.chance(0.15):
                one["default_qos"] = "normal"
        return found

    def qos(self) -> Json:
        known = {
            "group_jobs": 3,
            "group_submitted": 5,
            "group_tres": [["gres/gpu", 8000], ["node", 3000]],
            "jobs_per_user": 1,
            "jobs_per_account": 2,
            "submitted_per_account": 3,
            "submitted_per_user": 2,
            "tres_per_account": [["gres/gpu", 6000]],
            "tres_per_user": [["cpu", 8000]],
            "tres_per_node": [["gres/gpu", 4000]],
            "min_tres_per_job": [["gres/gpu", 2000]],
            "tres_run_minutes_per_account": [["gres/gpu", 200_000]],
            "tres_run_minutes_per_user": [["cpu", 300_000]],
            "jobs_accruing_per_user": 1,
            "jobs_accruing_per_account": 1,
            "wall_per_job_ms": HOUR,
            "group_wall_ms": 20 * MINUTE,
        }
        tight: Json = {"name": "tight", "priority": 10}
        names = self.random.sample(sorted(known), 3)
        tight["limits"] = {name: known[name] for name in names}
        for field in (
            "deny_on_limit",
            "no_decay",
            "over_part_qos",
            "ignores_partition_time",
            "ignores_partition_nodes",
        ):
            if self.chance(0.2):
                tight[field] = True
        if self.chance(0.3):
            tight["usage_factor"] = self.one(0.0, 0.5, 2.0)
        return [{"name": "normal", "priority": 50}, {"name": "high", "priority": 100}, tight]

    def partitions(self) -> Json:
        if self.chance(0.25):
            return []
        main: Json = {"name": "main", "is_default": True, "priority_job_factor": 10}
        urgent: Json = {"name": "urgent", "priority_job_factor": 40, "priority_tier": 10}
        for field, value in (
            ("qos", "tight"),
            ("max_time_ms", 30 * MINUTE),
            ("min_nodes", 2),
            ("max_nodes", 2),
            ("allow_accounts", ["prod", "nlp"]),
            ("deny_accounts", ["vision"]),
            ("allow_qos", ["normal", "high"]),
            ("deny_qos", ["tight"]),
            ("state", self.one("DOWN", "DRAIN", "INACTIVE")),
            ("limits", {"group_jobs": 2}),
            ("billing_weights", [["cpu", 1.0], ["gres/gpu", 8.0]]),
            ("node_labels", [["part", "urgent"]]),
        ):
            if self.chance(0.12):
                self.one(main, urgent)[field] = value
        return [main, urgent]

    @override
    def cluster(self) -> None:
        for name in ("q", "q2")[: self.one(1, 2)]:
            if self.chance(0.3):
                self.tell("flavor", {"name": "f"})
                self.add_queue(
                    name,
                    resource_groups=[
                        {
                            "covered_resources": [GPU, "cpu"],
                            "flavors": [
                                {
                                    "name": "f",
                                    "resources": [
                                        {"name": GPU, "nominal": 12},
                                        {"name": "cpu", "nominal": 64_000},
                                    ],
                                }
                            ],
                        }
                    ],
                    queueing_strategy=self.mostly("BestEffortFIFO", "StrictFIFO"),
                    preemption=self.one({}, {"within_cluster_queue": "LowerPriority"}),
                )
            else:
                self.open_queue(name)
        if self.chance(0.85):
            for place in range(self.one(2, 3)):
                self.add_node(f"n{place}", 8, cores=32, labels={"part": self.one("main", "urgent")})
        for owner in (
            "account/prod",
            "user/prod/ann",
            "account/vision",
            "user/nlp/bob",
            "qos/tight",
        ):
            if self.chance(0.5):
                self.tell(
                    "usage",
                    {"owner": owner, "amount": float(self.one(10, 500, 20_000)), "at": self.now},
                )
        if self.chance(0.3):
            self.tell(
                "usage",
                {"owner": "account/prod", "what": "gres/gpu", "amount": 300.0, "at": self.now},
            )
            self.tell(
                "usage", {"owner": "account/prod", "what": "wall", "amount": 500.0, "at": self.now}
            )

    @override
    def workload(self) -> Json:
        accounting: Json = {}
        for field, values in (
            ("account", ("prod", "nlp", "vision", "research", "nobody")),
            ("user", ("ann", "bob", "cid", "eve")),
            ("qos", ("normal", "tight", "high", "gold")),
            ("partition", ("main", "urgent", "none")),
        ):
            if self.chance(0.7):
                accounting[field] = values[min(int(self.random.expovariate(0.9)), len(values) - 1)]
        if self.chance(0.1):
            accounting["hold"] = self.one("user", "admin")
        if self.chance(0.1):
            accounting["set_priority"] = self.one(0, 500, 100_000)
        if self.chance(0.1):
            accounting["nice"] = self.one(-20, 100)
        if self.chance(0.1):
            accounting["site_factor"] = self.one(10, 1000)
        if self.chance(0.5):
            accounting["job_id"] = 1000 + self.count
        drawn: Json = {
            "local_queue": f"ns/{self.one(*self.queues)}",
            "pod_sets": [
                self.pods(self.one(1, 1, 2, 4), self.one(0, 1, 2, 4), cores=self.one(1, 4))
            ],
            "accounting": accounting,
        }
        if self.chance(0.6):
            drawn["time_limit_ms"] = self.one(5, 20, 60, 120) * MINUTE
        return drawn

    @override
    def disturb(self) -> None:
        if self.chance(0.25):
            name = self.any_of(self.world.pending())
            if name is not None:
                old = self.world.pending()[name].get("accounting", {})
                new = {**old, self.one("hold"): self.one("", "user")}
                if self.chance(0.5):
                    new = {**old, "nice": self.one(0, 50)}
                self.tell("edit", name, {"accounting": new})
        if self.chance(0.08):
            self.tell("policy", self.policy())
        if self.chance(0.08) and self.nodes:
            self.edit_node(self.one(*self.nodes), unschedulable=self.chance(0.5))


class PriorityBackfill(PriorityOrder):
    """The priority order together with backfill."""

    area = "priority-backfill"

    @override
    def policy(self) -> Json:
        self.backfill = {} if self.number % 2 else {"reservations": 1}
        return super().policy()


# --- backfill ------------------------------------------------------------------------------------


class Backfill(Situation):
    """Reservations in time on nodes: gangs that wait get a date, and short ones go first."""

    cycles = 9
    first = 7
    arrivals = (0, 1, 2, 3)
    pauses = (1, 60, 300, 900)
    reservations: int | None = None

    @override
    def policy(self) -> Json:
        rules: Json = {} if self.reservations is None else {"reservations": self.reservations}
        for field, values in (
            ("window_ms", (10 * MINUTE, HOUR)),
            ("resolution_ms", (1000, 5 * MINUTE)),
            ("max_tested", (3, 6)),
            ("max_per_local_queue", (1, 2)),
            ("shortest_first", (True,)),
            ("default_limit_ms", (30 * MINUTE, 2 * HOUR)),
        ):
            if self.chance(0.2):
                rules[field] = self.one(*values)
        chosen: Json = {"backfill": rules}
        if self.chance(0.15):
            chosen["fair_sharing"] = {}
        if self.chance(0.1):
            chosen["admission_fair_sharing"] = {"half_life_ms": HOUR}
        if self.chance(0.1):
            chosen["pods_ready"] = {"timeout_ms": 5 * MINUTE, "block_admission": self.chance(0.5)}
        return chosen

    @override
    def cluster(self) -> None:
        self.kind = self.one("nodes", "nodes", "quota", "both")
        self.tell("namespace", {"name": "ns"})
        for name in ("q", "q2")[: self.one(1, 2)]:
            if self.kind == "nodes":
                self.open_queue(name, queueing_strategy=self.mostly("BestEffortFIFO", "StrictFIFO"))
            else:
                self.tell("flavor", {"name": "f"})
                self.add_queue(
                    name,
                    cohort=self.one("root", "root", None),
                    resource_groups=[self.quota({"f": self.one(4, 8, 12)})],
                    preemption=self.one(
                        {},
                        {"within_cluster_queue": "LowerPriority"},
                        {
                            "reclaim_within_cohort": "Any",
                            "within_cluster_queue": "LowerOrNewerEqualPriority",
                        },
                    ),
                    queueing_strategy=self.mostly("BestEffortFIFO", "StrictFIFO"),
                )
        if self.kind != "quota":
            for place in range(self.one(2, 3, 4)):
                self.add_node(f"n{place}", self.one(4, 8, 8), labels={RACK: f"r{place % 2}"})

    @override
    def workload(self) -> Json:
        most = 3 if self.kind == "quota" else 8
        drawn_pods = self.pods(self.one(1, 1, 2, 3), self.one(1, 2, 4, most))
        if self.kind == "quota":
            drawn_pods["requests"] = [[GPU, self.one(1, 2, 3)]]
        elif self.kind == "both":
            drawn_pods["requests"] = [[GPU, self.one(1, 2, 4)]]
        if self.chance(0.1):
            drawn_pods["min_count"] = 1
        if self.kind != "quota" and self.chance(0.15):
            drawn_pods["topology"] = {"mode": self.one("required", "preferred"), "level": RACK}
        drawn: Json = {"local_queue": f"ns/{self.one(*self.queues)}", "pod_sets": [drawn_pods]}
        if self.chance(0.85):
            drawn["time_limit_ms"] = self.one(2, 5, 10, 30, 60, 180) * MINUTE
            drawn["time_limit_source"] = self.mostly("request", "job", "queue", "history")
            if self.chance(0.15):
                drawn["min_time_limit_ms"] = drawn["time_limit_ms"] // 2
        if self.chance(0.1):
            drawn["begin_time"] = self.now + self.one(1, 10) * MINUTE
        if self.chance(0.1):
            drawn["deadline"] = self.now + self.one(5, 60, 240) * MINUTE
        if self.chance(0.08):
            drawn["max_execution_ms"] = self.one(5, 20) * MINUTE
        return drawn

    @override
    def disturb(self) -> None:
        if self.chance(0.15):
            self.tell("estimate")
        if self.chance(0.1) and self.nodes:
            self.edit_node(self.one(*self.nodes), ready=self.chance(0.5))
        if self.chance(0.1) and self.nodes:
            self.add_node(f"n{len(self.nodes)}", self.one(4, 8), labels={RACK: "r1"})
        if self.chance(0.12):
            name = self.any_of(self.world.pending())
            if name is not None:
                self.tell("edit", name, {"priority": self.one(0, 1, 3)})
        if self.chance(0.1):
            name = self.any_of(self.world.holding())
            if name is not None:
                self.tell("edit", name, {"time_limit_ms": self.one(10, 90) * MINUTE})


class Easy(Backfill):
    """EASY backfill: one reservation."""

    area = "easy"
    reservations = 1


class Conservative(Backfill):
    """Conservative backfill: everything that waits has a reservation."""

    area = "conservative"


class SeveralReservations(Backfill):
    """Backfill with a few reservations."""

    area = "few-reservations"

    @override
    def policy(self) -> Json:
        self.reservations = self.one(2, 3, 5)
        return super().policy()


class AdvanceReservations(Backfill):
    """Nodes that are reserved for some, or for maintenance, with and without backfill."""

    area = "advance-reservations"

    @override
    def policy(self) -> Json:
        chosen: Json = {} if self.chance(0.5) else super().policy()
        if self.chance(0.3):
            chosen["backfill"] = {"reservations": 1}
        found = []
        for number in range(self.one(1, 1, 2)):
            start = self.now + self.one(-2, 0, 5, 20, 60) * MINUTE
            one: Json = {
                "name": f"r{number}",
                "start": start,
                "end": start + self.one(5, 30, 120) * MINUTE,
            }
            if self.chance(0.7):
                one["nodes"] = self.one(["n0"], ["n0", "n1"], ["n1"])
            match self.one("nobody", "queue", "namespace", "account", "user"):
                case "queue":
                    one["local_queues"] = ["ns/q"]
                case "namespace":
                    one["namespaces"] = ["vip"]
                case "account":
                    one["accounts"] = ["prod"]
                case "user":
                    one["users"] = ["ann"]
                case _:
                    pass  # maintenance: it is open to nothing
            if self.chance(0.2):
                one["repeat"] = self.one("daily", "weekly")
            found.append(one)
        chosen["advance_reservations"] = found
        return chosen

    @override
    def workload(self) -> Json:
        drawn: Json = super().workload()
        if self.chance(0.4):
            drawn["accounting"] = self.one({"account": "prod"}, {"user": "ann"}, {"account": "dev"})
        return drawn

    @override
    def cluster(self) -> None:
        super().cluster()
        if not self.nodes:
            for place in range(3):
                self.add_node(f"n{place}", 8, labels={RACK: f"r{place % 2}"})

    @override
    def disturb(self) -> None:
        super().disturb()
        if self.chance(0.08):
            self.tell("policy", self.policy())


class Dependencies(Situation):
    """Jobs that wait for others, for a time, or for their array; deadlines."""

    area = "dependencies"
    first = 6
    arrivals = (1, 2, 2)
    pauses = (1, 60, 300)
    ends = 0.3

    @override
    def policy(self) -> Json:
        chosen: Json = {}
        if self.chance(0.4):
            chosen["backfill"] = self.one({}, {"reservations": 1})
        return chosen

    @override
    def cluster(self) -> None:
        self.open_queue()
        for place in range(2):
            self.add_node(f"n{place}", 8)

    @override
    def workload(self) -> Json:
        known = [f"ns/job{number}" for number in range(1, self.count + 3)]
        drawn: Json = {
            "local_queue": "ns/q",
            "job": f"ns/job{self.count}",
            "pod_sets": [self.pods(1, self.one(1, 2, 4, 8))],
        }
        if self.chance(0.55):
            kinds = ("afterok", "afterany", "afternotok", "after", "singleton")
            found = []
            for _ in range(self.one(1, 1, 2)):
                one: Json = {"kind": self.one(*kinds)}
                if one["kind"] != "singleton":
                    one["on"] = self.one(*known)
                if one["kind"] == "after" and self.chance(0.5):
                    one["delay_ms"] = self.one(1, 5) * MINUTE
                found.append(one)
            drawn["dependencies"] = found
            if self.chance(0.3):
                drawn["any_dependency"] = True
        if self.chance(0.3):
            drawn["array"] = self.one("ns/array-1", "ns/array-2")
            drawn["array_parallelism"] = self.one(1, 2)
        if self.chance(0.15):
            drawn["begin_time"] = self.now + self.one(1, 5) * MINUTE
        if self.chance(0.15):
            drawn["deadline"] = self.now + self.one(1, 10) * MINUTE
        if self.chance(0.6):
            drawn["time_limit_ms"] = self.one(1, 5, 30) * MINUTE
        if self.chance(0.3):
            drawn["accounting"] = {"user": self.one("ann", "bob"), "job_id": 100 + self.count}
        return drawn

    @override
    def end(self, name: str) -> None:
        held = self.world.holding().get(name)
        job = held["workload"].get("job", name) if held else name
        result: Json = {"job": job, "succeeded": self.mostly(True, False), "ended_at": self.now}
        if self.chance(0.7):
            result["started_at"] = self.now - MINUTE
        if self.chance(0.9):
            self.tell("job result", result)
        super().end(name)

    @override
    def disturb(self) -> None:
        if self.chance(0.15):
            self.tell("estimate")
        if self.chance(0.15):
            name = self.any_of(self.world.pending())
            if name is not None:
                self.tell("ended", name)
        if self.chance(0.1):
            self.tell(
                "job result",
                {
                    "job": f"ns/job{self.one(1, 2, 3)}",
                    "succeeded": self.chance(0.5),
                    "ended_at": self.now,
                },
            )


# --- nodes ---------------------------------------------------------------------------------------


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
    arrivals = (1, 2, 3)

    @override
    def policy(self) -> Json:
        chosen: Json = {}
        if self.chance(0.6):
            chosen["placement"] = {
                "scoring": self.one("fgd", "spare", "binpack", "spread", "leftover", "none")
            }
        if self.chance(0.15):
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


class Provisioning(Situation):
    """Machines that are bought: types, zones, spot, limits, stock-outs, orphans, loans."""

    area = "provisioning"
    cycles = 8
    first = 3
    pauses = (1, 30, 60, 120, 300)

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


# How many cases are drawn of each.
AREAS: dict[type[Situation], int] = {
    Classical: 60,
    Fair: 45,
    AdmissionFair: 30,
    Configuration: 40,
    Lifecycle: 40,
    Elastic: 40,
    PriorityOrder: 60,
    PriorityBackfill: 30,
    Easy: 40,
    Conservative: 40,
    SeveralReservations: 20,
    AdvanceReservations: 40,
    Dependencies: 40,
    Topology: 50,
    BalancedTopology: 15,
    PodRules: 40,
    SharedGpus: 40,
    Repair: 30,
    SharedRepair: 15,
    CheckedNodes: 15,
    Provisioning: 60,
}


def drawn(kind: type[Situation]) -> list[Situation]:
    """Return the situations of an area, not told yet."""
    return [kind(number) for number in range(AREAS[kind])]
