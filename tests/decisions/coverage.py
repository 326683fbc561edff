"""The table of what the recorded decisions cover, counted from the cases themselves.

Policies and rules are read off the inputs (a case with `fair_sharing` in its policy is about fair
sharing), decisions and facts off the answers. What the engine could say and no case makes it say is
listed with 0, and `UNREACHABLE` says why where that cannot be otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.decisions import adapter
from tests.decisions.store import ASKS, Case, areas, cases

Json = Any
TABLE = Path(__file__).parent / "COVERAGE.md"

# Facts that `plan` never gives.
UNREACHABLE = {
    "Quarantined": "the shell says it of a workload that it goes on without (ADR 0025)",
}

# What a policy or a case can be about; in the order of the table.
POLICIES = (
    "classical preemption",
    "fair sharing",
    "fair sharing, final share only",
    "fair sharing, initial share only",
    "admission fair sharing",
    "priority order, multifactor",
    "priority order, plain priority",
    "priority order, Fair Tree",
    "priority order, classic fair share",
    "priority order, depth-oblivious fair share",
    "priority order, Slurm's steps",
    "backfill, EASY",
    "backfill, a few reservations",
    "backfill, conservative",
    "waitForPodsReady",
    "strict Kueue mode",
    "without the anti-thrash rules",
    "undeclared resources ignored",
    "advance reservations",
    "provisioning",
)
RULES = (
    "withinClusterQueue Never",
    "withinClusterQueue LowerPriority",
    "withinClusterQueue LowerOrNewerEqualPriority",
    "reclaimWithinCohort Never",
    "reclaimWithinCohort LowerPriority",
    "reclaimWithinCohort Any",
    "borrowWithinCohort LowerPriority",
    "borrowWithinCohort with a threshold",
    "minimum run time",
    "whenCanBorrow TryNextFlavor",
    "whenCanPreempt MayStopSearch",
    "preference BorrowingOverPreemption",
    "preference PreemptionOverBorrowing",
    "StrictFIFO",
    "pooled quota",
    "borrowing limit",
    "lending limit",
    "tree of cohorts",
    "stop policy",
    "admission checks",
    "admission checks that bring nodes",
    "nodes",
    "topology required",
    "topology preferred",
    "topology unconstrained",
    "topology slices",
    "topology, groups of pod sets",
    "scoring leftover",
    "scoring binpack",
    "scoring spread",
    "scoring fgd",
    "scoring spare",
    "scoring none",
    "shared GPUs",
    "MIG instances",
    "pod affinity",
    "pod anti-affinity",
    "topology spread",
    "host ports",
    "node affinity",
    "taints",
    "waiting for terminating pods",
    "partial admission",
    "elastic shrink",
    "workload slices",
    "reclaimable pods",
    "dependencies",
    "begin time",
    "deadline",
    "arrays",
    "holds",
    "time limits",
    "minimum time limit",
    "execution time",
    "accounts, QOS and limits",
    "node failures",
    "instance types and NodePools",
    "spot",
    "limits of NodePools",
    "purchases that are refused",
    "orphaned NodeClaims",
    "restart from a snapshot",
    "without explanations",
)
DECISIONS = (
    "cycles",
    "admissions",
    "admissions with nodes",
    "admissions with GPU devices",
    "admissions that borrow",
    "admissions that wait for a check",
    "admissions of a slice",
    "admissions with fewer pods",
    "admissions with a granted time limit",
    "opportunistic use of held nodes",
    "purchases",
    "NodeClaims bought",
    "NodeClaims taken over",
    "preemptions",
    "preemptions before a purchase",
    "victims",
    "victims already evicting",
    "victims that shrink",
    "waits for terminating pods",
    "evictions due",
    "backfill reservations",
    "repairs",
    "repairs impossible",
    "replacements bought",
    "replacements impossible",
    "placements after a check",
    "placements after a check impossible",
    "estimates",
    "dry runs until nothing changes",
    "time limits",
    "time limits learned from earlier runs",
)


def features(case: Case) -> set[str]:
    """Say which policies and rules a case is about."""
    found: set[str] = set()
    for policy in (case.policy, *(step[1] for step in case.steps if step[0] == "policy")):
        found.update(_of_policy(policy))
    for step in case.steps:
        found.update(_of_step(step))
    return found


def _of_policy(policy: Json) -> Iterator[str]:
    fair = policy.get("fair_sharing")
    order, backfill = policy.get("priority_order"), policy.get("backfill")
    if fair is None and order is None:
        yield "classical preemption"
    if fair is not None:
        yield "fair sharing"
        only = fair.get("preemption_strategies", ())
        if len(only) == 1:
            which = "initial" if only[0] == "LessThanInitialShare" else "final"
            yield f"fair sharing, {which} share only"
    if order is not None:
        plain = order.get("order") == "priority"
        yield f"priority order, {'plain priority' if plain else 'multifactor'}"
        tree = order.get("fair_share", "tree")
        yield {
            "tree": "priority order, Fair Tree",
            "classic": "priority order, classic fair share",
            "depth-oblivious": "priority order, depth-oblivious fair share",
        }[tree]
        if order.get("slurm_steps"):
            yield "priority order, Slurm's steps"
        if order.get("associations") or order.get("qos"):
            yield "accounts, QOS and limits"
    if backfill is not None:
        number = backfill.get("reservations")
        kind = {None: "conservative", 1: "EASY"}.get(number, "a few reservations")
        yield f"backfill, {kind}"
    for field, name in (
        ("admission_fair_sharing", "admission fair sharing"),
        ("pods_ready", "waitForPodsReady"),
        ("strict_kueue", "strict Kueue mode"),
        ("undeclared_resources", "undeclared resources ignored"),
        ("advance_reservations", "advance reservations"),
    ):
        if policy.get(field) is not None:
            yield name
    if policy.get("anti_thrash") is False:
        yield "without the anti-thrash rules"
    placement = policy.get("placement", {})
    if "scoring" in placement:
        yield f"scoring {placement['scoring']}"
    if placement.get("terminating_wait_ms"):
        yield "waiting for terminating pods"


def _of_step(step: list[Json]) -> Iterator[str]:
    verb, *given = step
    match verb:
        case "cluster queue" | "cohort":
            yield from _of_queue(given[0])
        case "pending" | "holding":
            yield from _of_workload(given[0].get("workload", given[0]))
        case "edit" if "reclaimable_pods" in given[1]:
            yield "reclaimable pods"
        case "admission check" if given[0].get("provisions_nodes"):
            yield "admission checks that bring nodes"
        case "node":
            yield "nodes"
            if given[0].get("taints"):
                yield "taints"
        case "repair" | "replace":
            yield "node failures"
        case "local queue" if given[0].get("stop_policy", "None") != "None":
            yield "stop policy"
        case "offerings" if given[0] is not None:
            yield "provisioning"
            yield "instance types and NodePools"
            if any(one.get("capacity_type") == "spot" for one in given[0].get("offerings", ())):
                yield "spot"
            if any(one.get("limits") for one in given[0].get("node_pools", ())):
                yield "limits of NodePools"
            if given[0].get("unavailable_offerings"):
                yield "purchases that are refused"
            if given[0].get("orphaned_node_claims"):
                yield "orphaned NodeClaims"
        case "restart":
            yield "restart from a snapshot"
        case "unexplained":
            yield "without explanations"
        case "refused offering":
            yield "purchases that are refused"
        case "orphaned":
            yield "orphaned NodeClaims"
        case _:
            pass


def _of_queue(queue: Json) -> Iterator[str]:
    rules = queue.get("preemption", {})
    if queue.get("parent"):
        yield "tree of cohorts"
    if "preemption" in queue:
        yield f"withinClusterQueue {rules.get('within_cluster_queue', 'Never')}"
        yield f"reclaimWithinCohort {rules.get('reclaim_within_cohort', 'Never')}"
    borrow = rules.get("borrow_within_cohort", {})
    if borrow.get("policy", "Never") != "Never":
        yield "borrowWithinCohort LowerPriority"
    if borrow.get("max_priority_threshold") is not None:
        yield "borrowWithinCohort with a threshold"
    if rules.get("min_runtime_ms"):
        yield "minimum run time"
    fungible = queue.get("flavor_fungibility", {})
    if fungible.get("when_can_borrow") == "TryNextFlavor":
        yield "whenCanBorrow TryNextFlavor"
    if fungible.get("when_can_preempt") == "MayStopSearch":
        yield "whenCanPreempt MayStopSearch"
    if fungible.get("preference"):
        yield f"preference {fungible['preference']}"
    if queue.get("queueing_strategy") == "StrictFIFO":
        yield "StrictFIFO"
    if queue.get("stop_policy", "None") != "None":
        yield "stop policy"
    if queue.get("admission_checks"):
        yield "admission checks"
    for group in queue.get("resource_groups", ()):
        if group.get("pooled_quota"):
            yield "pooled quota"
        for flavor in group.get("flavors", ()):
            for quota in flavor.get("resources", ()):
                if quota.get("borrowing_limit") is not None:
                    yield "borrowing limit"
                if quota.get("lending_limit") is not None:
                    yield "lending limit"


def _of_workload(workload: Json) -> Iterator[str]:
    for field, name in (
        ("elastic_shrink", "elastic shrink"),
        ("replaces_slice", "workload slices"),
        ("reclaimable_pods", "reclaimable pods"),
        ("dependencies", "dependencies"),
        ("begin_time", "begin time"),
        ("deadline", "deadline"),
        ("array", "arrays"),
        ("time_limit_ms", "time limits"),
        ("min_time_limit_ms", "minimum time limit"),
        ("max_execution_ms", "execution time"),
    ):
        if workload.get(field):
            yield name
    if workload.get("on_hold") or workload.get("accounting", {}).get("hold"):
        yield "holds"
    for pods in workload["pod_sets"]:
        for field, name in (
            ("pod_affinity", "pod affinity"),
            ("pod_anti_affinity", "pod anti-affinity"),
            ("topology_spread", "topology spread"),
            ("host_ports", "host ports"),
            ("node_affinity", "node affinity"),
            ("group", "topology, groups of pod sets"),
            ("min_count", "partial admission"),
        ):
            if pods.get(field):
                yield name
        wish = pods.get("topology")
        if wish:
            yield f"topology {wish['mode']}"
            if wish.get("slice_size"):
                yield "topology slices"
        asked = [name for name, _ in pods.get("requests", ())]
        if any(name.endswith("/gpu-milli") for name in asked):
            yield "shared GPUs"
        if any("/mig-" in name for name in asked):
            yield "MIG instances"


class Counts:
    """What some cases cover."""

    def __init__(self) -> None:
        self.cases: Counter[str] = Counter()
        self.decided: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.victims: Counter[str] = Counter()
        self.evictions: Counter[str] = Counter()
        self.facts: Counter[str] = Counter()
        self.areas: Counter[str] = Counter()
        self.of_area: Counter[str] = Counter()

    def add(self, case: Case) -> None:
        """Count one case; a decision that says nothing does not count."""
        telling = sum(bool(one) for one in case.decided)
        self.areas[case.area] += 1
        self.of_area[case.area] += telling
        for feature in features(case):
            self.cases[feature] += 1
            self.decided[feature] += telling
        sizes = {
            (step[1]["name"], one.get("name", "main")): one["count"]
            for step in case.steps
            if step[0] == "pending"
            for one in step[1]["pod_sets"]
        }
        asked = [step[0] for step in case.steps if step[0] in ASKS]
        for verb, answer in zip(asked, case.decided, strict=True):
            self.kinds.update(_kinds(verb, answer, sizes))
            for plan in (answer, *answer.get("settle", ())):
                for preemption in plan.get("preempt", ()):
                    self.victims.update(victim["reason"] for victim in preemption["victims"])
                self.evictions.update(one["reason"] for one in plan.get("evict", ()))
            for why in answer.get("pending", {}).values():
                self.facts.update(tag for tag, _ in why)
            self.facts["Expected"] += len(answer.get("estimate", ()))


def _kinds(verb: str, answer: Json, sizes: dict[tuple[str, str], int]) -> Iterator[str]:
    if verb == "cycle":
        yield "cycles"
    for one in answer.get("admit", ()):
        yield "admissions"
        sets = one["admission"]["pod_sets"]
        for name, is_so in (
            ("admissions with nodes", any(each.get("nodes") for each in sets)),
            ("admissions with GPU devices", any(each.get("devices") for each in sets)),
            ("admissions that borrow", one.get("borrow_level")),
            (
                "admissions that wait for a check",
                not one.get("admitted", True) and "purchase" not in one,
            ),
            ("admissions of a slice", one.get("replaces_slice")),
            ("admissions with a granted time limit", one.get("time_limit_ms")),
            ("opportunistic use of held nodes", one.get("nodes_lent_by")),
            ("purchases", one.get("purchase")),
            (
                "admissions with fewer pods",
                any(each["count"] < sizes.get((one["workload"], each["name"]), 0) for each in sets),
            ),
        ):
            if is_so:
                yield name
        for claim in one.get("purchase", {}).get("node_claims", ()):
            yield "NodeClaims taken over" if claim.get("reused") else "NodeClaims bought"
    for one in answer.get("preempt", ()):
        yield "preemptions"
        if one.get("provisions_afterwards"):
            yield "preemptions before a purchase"
        for victim in one["victims"]:
            yield "victims"
            if victim.get("already_evicting"):
                yield "victims already evicting"
            if victim.get("shrinks_to"):
                yield "victims that shrink"
    for part, name in (
        ("await", "waits for terminating pods"),
        ("evict", "evictions due"),
        ("reserve", "backfill reservations"),
        ("estimate", "estimates"),
    ):
        for _ in answer.get(part, ()):
            yield name
    if "settle" in answer:
        yield "dry runs until nothing changes"
        for one in answer["settle"]:
            yield from _kinds("", one, sizes)
    if "limit" in answer:
        yield "time limits"
        if answer["limit"][1] == "history":
            yield "time limits learned from earlier runs"
    if "repair" in answer:
        yield "repairs" if "cluster_queue" in answer["repair"] else "repairs impossible"
    if "place" in answer:
        found = "cluster_queue" in answer["place"]
        yield "placements after a check" if found else "placements after a check impossible"
    if "replace" in answer:
        yield "replacements bought" if answer["replace"] else "replacements impossible"


def counted_all() -> Counts:
    """Count what all cases cover."""
    counts = Counts()
    for area in areas():
        for case in cases(area):
            counts.add(case)
    return counts


def table(counts: Counts) -> str:
    """Return the table, as it is committed."""
    total, telling = sum(counts.areas.values()), sum(counts.of_area.values())
    parts = [
        "# What the recorded decisions cover\n",
        "Written by `python -m tests.decisions coverage`; a test keeps it in agreement with the "
        "data.\n",
        f"{total:,} cases with {telling:,} decisions; one that neither decides nor explains "
        "anything is not counted.\n",
        _rows(
            ("area", "cases", "decisions"),
            ((area, counts.areas[area], counts.of_area[area]) for area in sorted(counts.areas)),
        ),
    ]
    for title, known in (("Policies", POLICIES), ("Rules", RULES)):
        rows = ((name, counts.cases[name], counts.decided[name]) for name in known)
        parts += [f"## {title}\n", _rows((title.lower(), "cases", "decisions"), rows)]
    for title, column, names, found in (
        ("Kinds of decisions", "kind", DECISIONS, counts.kinds),
        ("Reasons of victims", "reason", adapter.VICTIM_REASONS, counts.victims),
        (
            "Reasons of evictions that come due",
            "reason",
            adapter.EVICTION_REASONS,
            counts.evictions,
        ),
        ("Facts why something waits", "fact", adapter.FACT_TAGS, counts.facts),
    ):
        rows_ = ((_named(name, found), found[name]) for name in names)
        parts += [f"## {title}\n", _rows((column, "times"), rows_)]
    return "\n".join(parts)


def _named(name: str, found: Counter[str]) -> str:
    why = UNREACHABLE.get(name)
    return f"{name}: {why}" if why is not None and not found[name] else name


def _rows(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = [head, ("---",) + ("---:",) * (len(head) - 1), *rows]
    return "".join(
        "| "
        + " | ".join(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in line)
        + " |\n"
        for line in lines
    )


def gaps(counts: Counts) -> list[str]:
    """Return what no case covers and could."""
    return [
        name
        for names, found in (
            (POLICIES, counts.cases),
            (RULES, counts.cases),
            (DECISIONS, counts.kinds),
            (adapter.VICTIM_REASONS, counts.victims),
            (adapter.EVICTION_REASONS, counts.evictions),
            (adapter.FACT_TAGS, counts.facts),
        )
        for name in names
        if not found[name] and name not in UNREACHABLE
    ]
