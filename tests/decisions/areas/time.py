"""Order and time: priorities, limits, backfill, advance reservations, dependencies."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from tests.decisions.situations import (
    GPU,
    HOUR,
    MINUTE,
    RACK,
    SECOND,
    Situation,
)

Json = Any


class PriorityOrder(Situation):
    """Accounts, QOS, partitions, weights, fair share and limits, as Slurm has them."""

    area = "priority-order"
    cycles = 9
    first = 7
    arrivals: tuple[int, ...] = (0, 1, 2, 3)
    pauses: tuple[int, ...] = (1, 60, 60, 300, 3600, 86_400)
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
        if self.chance(0.3):
            found.insert(0, {"account": "root", "limits": {"group_jobs": self.one(3, 5)}})
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
        if self.chance(0.15):
            self.tell("estimate")
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
    arrivals: tuple[int, ...] = (0, 1, 2, 3)
    pauses: tuple[int, ...] = (1, 60, 300, 900)
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
    arrivals: tuple[int, ...] = (1, 2, 2)
    pauses: tuple[int, ...] = (1, 60, 300)
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


class Batch(Situation):
    """Equal pods of a batch queue on nodes without GPUs: everything can be counted."""

    area = "batch"
    cycles = 8
    first = 7
    arrivals: tuple[int, ...] = (0, 1, 2, 3)
    pauses: tuple[int, ...] = (1, 60, 300, 900)
    crowd = 14

    @override
    def policy(self) -> Json:
        number = (1, 1, 1, None, None, 3)[self.number % 6]
        rules: Json = {} if number is None else {"reservations": number}
        if self.chance(0.2):
            rules["shortest_first"] = True
        if self.chance(0.15):
            rules["window_ms"] = 30 * MINUTE
        if self.chance(0.15):
            rules["default_limit_ms"] = HOUR
        ready: Json = {"timeout_ms": 5 * MINUTE, "block_admission": self.chance(0.5)}
        return {"backfill": rules, **({"pods_ready": ready} if self.chance(0.2) else {})}

    @override
    def cluster(self) -> None:
        self.kind = self.one("even", "holes", "single", "parts", "mixed", "mixed")
        if self.number % 6 == 2:
            self.tell("unexplained")
        self.tell("flavor", {"name": "f"})
        for name in ("q", "q2")[: self.one(1, 1, 2)]:
            nominal = self.one(20, 60, 400) * 1000
            self.add_queue(name, resource_groups=[self.quota({"f": nominal}, "cpu")])
        sizes = {"single": [40]}.get(self.kind, [8] * 6 if self.kind == "even" else [8, 12, 16, 5])
        for place, cores in enumerate(sizes):
            part = {"part": f"p{place % 2}"}
            self.add_node(f"n{place}", 0, cores=cores, labels=part)

    @override
    def workload(self) -> Json:
        cores = {"even": 8, "mixed": self.one(1, 2, 3)}.get(self.kind, 2)
        drawn_pods: Json = {"count": self.one(1, 2, 3, 5, 8), "requests": [["cpu", cores * 1000]]}
        if self.kind == "parts":
            drawn_pods["node_selector"] = [["part", self.one("p0", "p1")]]
        if self.chance(0.1):
            drawn_pods["labels"] = [["app", "a"]]
        drawn: Json = {"local_queue": f"ns/{self.one(*self.queues)}", "pod_sets": [drawn_pods]}
        if self.chance(0.9):
            drawn["time_limit_ms"] = self.one(1, 5, 5, 20, 60, 180) * MINUTE
        if self.chance(0.05):
            drawn["min_time_limit_ms"] = MINUTE
        if self.chance(0.03):
            drawn["pod_sets"][0]["topology"] = {"mode": "preferred", "level": "part"}
        return drawn

    @override
    def disturb(self) -> None:
        if self.chance(0.15):
            self.tell("estimate")
        if self.chance(0.1):
            self.edit_node(self.one(*self.nodes), unschedulable=self.chance(0.5))
        if self.chance(0.08):
            self.add_node(f"n{len(self.nodes)}", 0, cores=8, labels={"part": "p0"})
        if self.chance(0.1):
            pod: Json = {"name": f"other/p{self.count}", "node": self.one(*self.nodes)}
            pod["requests"] = [["cpu", 2000]]
            if self.chance(0.5):
                pod["leaves_at"] = self.now + 2 * MINUTE
            self.tell("pod", pod)


class EasyBatch(Batch):
    """The same with EASY: a wide gang waits, and small ones would delay it, or would not."""

    area = "easy-batch"
    first = 10
    arrivals: tuple[int, ...] = (1, 2, 3)
    ends = 0.1
    crowd = 20

    @override
    def policy(self) -> Json:
        return {"backfill": {"reservations": 1, **self.mostly({}, {"shortest_first": True})}}

    @override
    def cluster(self) -> None:
        self.kind = self.one("even", "holes", "single")
        if self.number % 4 == 3:
            self.tell("unexplained")
        self.tell("flavor", {"name": "f"})
        for name in ("q", "q2")[: self.one(1, 1, 2)]:
            self.add_queue(
                name, resource_groups=[self.quota({"f": self.one(24, 400, 400) * 1000}, "cpu")]
            )
        sizes = {"single": [16], "even": [2] * 8, "holes": [4, 6, 3, 5]}[self.kind]
        for place, cores in enumerate(sizes):
            self.add_node(f"n{place}", 0, cores=cores)

    @override
    def workload(self) -> Json:
        pods: Json = {"count": self.one(1, 1, 2, 3, 7), "requests": [["cpu", 2000]]}
        drawn: Json = {"local_queue": f"ns/{self.one(*self.queues)}", "pod_sets": [pods]}
        drawn["time_limit_ms"] = self.one(1, 4, 30, 200) * MINUTE
        drawn["priority"] = self.mostly(0, 1)
        return drawn

    @override
    def disturb(self) -> None:
        if self.chance(0.1):
            self.tell("estimate")
        if self.chance(0.05):
            self.edit_node(self.one(*self.nodes), unschedulable=self.chance(0.5))


class Calendar(Batch):
    """So many reservations that the table has to be rounded."""

    area = "long-reservation-table"
    cycles = 2
    first = 340
    crowd = 400

    @override
    def policy(self) -> Json:
        return {"backfill": {"resolution_ms": 5 * MINUTE}}

    @override
    def cluster(self) -> None:
        super().cluster()
        self.kind = "mixed"
        self.add_node("gpu", 8, cores=600)
        for number in range(330 + 100 * self.number):
            self.running(number)

    def running(self, number: int) -> None:
        """Tell a workload that runs on the large node already."""
        pods: Json = {"count": 1, "requests": [["cpu", 1000]]}
        placed = {"name": "main", "count": 1, "flavors": [["cpu", "f"]], "nodes": [["gpu", 1]]}
        job = {
            "name": f"ns/r{number}",
            "uid": f"running-{number}",
            "local_queue": "ns/q",
            "pod_sets": [pods],
            "time_limit_ms": (7 + 3 * number) * MINUTE + 13 * number * SECOND,
        }
        held = {"workload": job, "quota_reserved_at": self.now}
        self.tell("holding", {**held, "admission": {"cluster_queue": "q", "pod_sets": [placed]}})


class LearnedLimits(Situation):
    """Time limits that a queue gives, or that earlier runs of the same job suggest."""

    area = "learned-limits"
    cycles = 4
    first = 2

    @override
    def policy(self) -> Json:
        return {"backfill": {}}

    @override
    def cluster(self) -> None:
        self.open_queue()
        self.add_node("n0", 8)
        for number in range(self.one(2, 3, 8, 25)):
            owner = self.one("train-1", "train-20260131-x7k2p", "eval-17")
            ended, ran = self.now - number * MINUTE, self.one(1, 3, 10, 40) * MINUTE
            self.tell("ran", self.told_job(), owner, f"run-{number}", ended, ran)

    def told_job(self) -> Json:
        """Return a job as it was submitted, with one of two sizes."""
        return {
            "name": "ns/x",
            "uid": "x",
            "local_queue": "ns/q",
            "pod_sets": [self.pods(1, self.one(2, 4))],
        }

    @override
    def workload(self) -> Json:
        job = self.told_job()
        if self.chance(0.2):
            job["time_limit_ms"] = 5 * MINUTE
        self.tell("limit", job, self.one("train-7", "eval-18", "other"), self.mostly(None, HOUR))
        limit, source = self.decided[-1]["limit"]
        known = {} if limit is None else {"time_limit_ms": limit, "time_limit_source": source}
        return {"local_queue": "ns/q", "pod_sets": job["pod_sets"], **known}
