"""Multifactor priority in the running engine: order, what is counted, limit-blocked workloads."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.priority_builders import TREE, WEIGHTS, cluster, job, multifactor_rules
from unisono.engine.cluster import restore
from unisono.engine.cycle import plan
from unisono.engine.dry_run import dry_run
from unisono.engine.explain.messages import message_of, reason_of
from unisono.engine.explain.waiting import explanation
from unisono.engine.model.explanation import LimitReached
from unisono.engine.model.multifactor import (
    Association,
    Limits,
    MultifactorRules,
    Partition,
    Qos,
    UsageRecord,
    Weights,
)
from unisono.engine.model.names import Instant, LocalQueueKey, WorkloadKey
from unisono.engine.model.policy import Backfill, Policy
from unisono.engine.model.workload import Workload
from unisono.engine.ordering.priority_order import account_and_qos, multifactor_of, priority_factors
from unisono.engine.state import changes
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import pending, snapshot

SECOND = 1000
HOUR = 3600 * SECOND


def submit(state: ClusterState, *workloads: Workload) -> None:
    for workload in workloads:
        state.apply(changes.WorkloadWaits(workload))


def settle(state: ClusterState) -> list[str]:
    """Decide until nothing changes; return what started, in order."""
    plans = dry_run(state, state.now)
    return [admit.workload.removeprefix("ns/") for made in plans for admit in made.admissions]


def pass_time(state: ClusterState, to: int) -> None:
    state.apply(changes.TimePassed(Instant(to)))


def finish(state: ClusterState, name: str) -> None:
    state.apply(changes.WorkloadGone(WorkloadKey(f"ns/{name}")))


def reason(state: ClusterState, name: str) -> LimitReached:
    found = explanation(state, WorkloadKey(f"ns/{name}"))
    assert found is not None, f"{name} does not wait"
    blocker = found.blockers[0]
    assert isinstance(blocker, LimitReached), found
    return blocker


def usage(state: ClusterState, owner: str) -> float:
    multifactor = multifactor_of(state)
    assert multifactor is not None
    return multifactor.usage.used(owner, "billing", state.now)


# --- order -----------------------------------------------------------------------------------


def test_the_highest_priority_starts_first_over_all_queues() -> None:
    """A queue's second goes before another queue's first."""
    state = cluster(multifactor_rules(weights=Weights(qos=100)), queues=2)
    other = LocalQueueKey("ns/q2")
    submit(
        state,
        job("low", gpu=1, qos="low", queue=other),
        job("high-1", gpu=1, qos="high"),
        job("high-2", gpu=1, qos="high"),
        job("normal", gpu=1, qos="normal", queue=other),
    )
    assert settle(state) == ["high-1", "high-2", "normal", "low"]


def test_a_workload_without_an_account_is_in_that_of_its_user() -> None:
    """The only one that the user is in, or of several the one marked as default."""
    members = (
        *TREE,
        Association(account="nlp", user="mail"),
        Association(account="nlp", user="games", is_default=True),
    )
    state = cluster(multifactor_rules(associations=members))
    submit(state, *(job(user, gpu=1, user=user, account="") for user in ("man", "mail", "games")))
    submit(state, job("named", gpu=1, user="games", account="vision"))
    found = {name: account_and_qos(state, WorkloadKey(f"ns/{name}")) for name in ("man", "mail")}
    assert found == {"man": ("vision", "normal"), "mail": ("", "normal")}
    assert account_and_qos(state, WorkloadKey("ns/games")) == ("nlp", "normal")
    assert account_and_qos(state, WorkloadKey("ns/named")) == ("vision", "normal")
    settle(state)
    assert account_and_qos(state, WorkloadKey("ns/man")) == ("vision", "normal")
    pass_time(state, HOUR)
    assert usage(state, "account/vision") > 0


def test_a_higher_tier_goes_before_any_priority() -> None:
    state = cluster(multifactor_rules(operators=("mail",)))
    submit(
        state,
        job("set", gpu=8, pods=4, account="prod", user="mail", priority=10_000),
        job("tier", gpu=8, pods=4, account="prod", user="mail", partition="urgent"),
    )
    assert pending(state, "q") == ["ns/tier", "ns/set"]  # type: ignore[arg-type]
    assert settle(state) == ["tier"]


def test_equals_go_by_submission_then_number_then_task_then_name() -> None:
    state = cluster(multifactor_rules(weights=Weights()))
    at = Instant(5)
    submit(
        state,
        job("z", created_at=at, number=2, task=1),
        job("y", created_at=at, number=2),
        job("x", created_at=at, number=10),
        job("b", created_at=at, number=1, task=3),
        job("a", created_at=at, number=1, task=3),
        job("w", created_at=Instant(4), number=99),
    )
    assert settle(state) == ["w", "a", "b", "y", "z", "x"]


def test_the_priority_class_alone_may_decide() -> None:
    state = cluster(multifactor_rules(order="priority"))
    low = msgspec.structs.replace(job("low", account="prod"), priority=-10)
    high = msgspec.structs.replace(job("high"), priority=10)
    submit(state, low, job("middle"), high)
    assert settle(state) == ["high", "middle", "low"]


def test_a_strict_queue_evaluates_a_new_head_when_time_brings_one() -> None:
    """The head cannot fit; an hour later a workload that can has a higher priority."""
    rules = multifactor_rules(
        weights=Weights(age=1000, qos=500), max_age_ms=HOUR, associations=TREE, partitions=()
    )
    state = cluster(rules)
    queue = msgspec.structs.replace(
        state.config.queues["q"],  # type: ignore[index]
        strategy="StrictFIFO",
    )
    state.apply(changes.QueueSet(queue))
    submit(state, job("huge", gpu=8, pods=9, qos="high", created_at=Instant(HOUR)))
    pass_time(state, HOUR)
    submit(state, job("old", gpu=1, qos="low", created_at=Instant(0)))
    assert settle(state) == ["old"]  # aged for an hour: 1000 + 50 before 500
    submit(state, job("young", gpu=1, qos="low", created_at=Instant(HOUR)))
    assert settle(state) == []


# --- usage -----------------------------------------------------------------------------------


def test_what_runs_costs_its_user_and_every_account_above() -> None:
    state = cluster(multifactor_rules(half_life_ms=0))
    submit(state, job("a", cpu=4, account="vision", user="man"))
    assert settle(state) == ["a"]
    pass_time(state, 100 * SECOND)
    for owner in ("user/vision/man", "account/vision", "account/research", "account/root"):
        assert usage(state, owner) == 400.0
    assert usage(state, "user/vision/games") == 0
    finish(state, "a")
    pass_time(state, 500 * SECOND)
    assert usage(state, "account/root") == 400.0


def test_prices_and_qos_multiply() -> None:
    weights = (("cpu", 1.0), ("mem", 0.25 / 1024), ("gres/gpu", 4.0))
    dear = Partition(name="main", is_default=True, billing_weights=weights)
    rules = multifactor_rules(
        half_life_ms=0, partitions=(dear,), qos=(Qos(name="cheap", usage_factor=0.5),)
    )
    state = cluster(rules)
    submit(state, job("a", cpu=2, gpu=8, account="prod", user="mail"))
    submit(state, job("b", cpu=2, gpu=8, account="prod", user="news", qos="cheap"))
    settle(state)
    pass_time(state, 10 * SECOND)
    assert usage(state, "user/prod/mail") == pytest.approx(345.0)  # 2 + 0.5 + 32 a second
    assert usage(state, "user/prod/news") == pytest.approx(172.5)


def test_the_user_with_less_usage_is_next() -> None:
    state = cluster(multifactor_rules(weights=Weights(fair_share=1000)))
    submit(state, job("m1", gpu=8, cpu=8, pods=4, account="prod", user="mail"))
    assert settle(state) == ["m1"]
    pass_time(state, HOUR)
    submit(state, job("m2", gpu=8, pods=4, account="prod", user="mail"))
    submit(state, job("n1", gpu=8, pods=4, account="prod", user="news"))
    finish(state, "m1")
    assert settle(state) == ["n1"]


def test_usage_survives_an_edit_of_the_policy() -> None:
    state = cluster(multifactor_rules(half_life_ms=0))
    submit(state, job("a", cpu=4, account="vision", user="man"), job("b", priority=0))
    settle(state)
    pass_time(state, 100 * SECOND)
    state.apply(
        changes.PolicySet(
            Policy(multifactor=multifactor_rules(half_life_ms=0, weights=Weights(age=1)))
        )
    )
    pass_time(state, 200 * SECOND)
    assert usage(state, "user/vision/man") == 800.0
    state.apply(changes.PolicySet(Policy()))
    assert settle(state) == ["b"]  # such priorities mean nothing without accounts


@pytest.mark.parametrize("compat", [False, True])
def test_a_workload_that_runs_through_an_edit_is_charged_once(compat: bool) -> None:
    state = cluster(multifactor_rules(compat=compat))
    submit(state, job("a", cpu=4, account="prod", user="mail"))
    assert settle(state) == ["a"]
    pass_time(state, state.now + HOUR)
    before = usage(state, "user/prod/mail")
    policy = msgspec.structs.replace(
        state.policy, multifactor=multifactor_rules(compat=compat, dampening=2)
    )
    state.apply(changes.PolicySet(policy))
    assert before > 0
    assert usage(state, "user/prod/mail") == pytest.approx(before)


@pytest.mark.parametrize("compat", [False, True])
def test_usage_is_the_same_after_a_restart_in_the_middle_of_a_period(compat: bool) -> None:
    """What had started within the period was charged for all of it."""
    state = cluster(multifactor_rules(compat=compat, calc_period_ms=300 * SECOND))
    pass_time(state, 250 * SECOND)
    submit(state, job("a", cpu=4, account="prod", user="mail"))
    assert settle(state) == ["a"]
    pass_time(state, 400 * SECOND)
    again = restore(snapshot(state))
    for now in (400, 600, 700):
        for each in (state, again):
            pass_time(each, now * SECOND)
        assert usage(again, "user/prod/mail") == pytest.approx(usage(state, "user/prod/mail"))


def test_a_user_without_an_association_gets_a_share() -> None:
    state = cluster(multifactor_rules(half_life_ms=0))
    submit(state, job("a", cpu=4, account="prod", user="stranger"))
    settle(state)
    pass_time(state, SECOND)
    assert usage(state, "user/prod/stranger") == 4.0
    again = restore(snapshot(state))
    assert usage(again, "user/prod/stranger") == 4.0


def test_only_known_users_may_be_wanted() -> None:
    state = cluster(multifactor_rules(known_users_only=True))
    submit(state, job("a", account="prod", user="stranger"))
    found = explanation(state, WorkloadKey("ns/a"))
    assert found is not None
    assert message_of(found).startswith("InvalidAccount: user stranger has no place in account")


@pytest.mark.parametrize("backfill", [None, Backfill()], ids=["in order", "with backfill"])
def test_what_a_user_has_used_gives_it_no_place_in_an_account(backfill: Backfill | None) -> None:
    """After a change of the policy it counted as known, until the scheduler started anew."""
    state = cluster(multifactor_rules(half_life_ms=0))
    submit(state, job("a", cpu=4, account="prod", user="stranger"))
    submit(state, job("b", cpu=40, account="prod", user="stranger"))  # no node is as large
    assert settle(state) == ["a"]
    pass_time(state, SECOND)
    rules = multifactor_rules(half_life_ms=0, known_users_only=True)
    state.apply(changes.PolicySet(Policy(multifactor=rules, backfill=backfill)))
    assert settle(state) == []
    pass_time(state, 2 * SECOND)
    again = restore(snapshot(state))
    for each in (state, again):
        found = explanation(each, WorkloadKey("ns/b"))
        assert found is not None
        assert message_of(found).startswith("InvalidAccount: user stranger has no place in account")
        assert usage(each, "user/prod/stranger") == 8.0  # what runs goes on costing
    assert snapshot(again) == snapshot(state)


def test_accounts_of_namespaces_and_queues() -> None:
    rules = multifactor_rules(accounts_of=(("ns", "prod"), ("ns/q2", "nlp")), half_life_ms=0)
    state = cluster(rules, queues=2)
    submit(state, job("a"), job("b", queue=LocalQueueKey("ns/q2")))
    settle(state)
    pass_time(state, SECOND)
    assert (usage(state, "account/prod"), usage(state, "account/nlp")) == (1.0, 1.0)


# --- limits ----------------------------------------------------------------------------------


def limited(**limits: Any) -> MultifactorRules:
    """Return rules under which the QOS of all users has these limits."""
    return multifactor_rules(
        qos=(Qos(name="normal", priority=50, limits=Limits(**limits)),), partitions=()
    )


GPU = "gres/gpu"


def test_a_user_over_a_limit_blocks_no_other() -> None:
    state = cluster(limited(tres_per_user=((GPU, 4000),)))
    submit(state, job("g1", gpu=3, account="vision", user="games"))
    assert settle(state) == ["g1"]
    submit(state, job("g2", gpu=3, account="vision", user="games"))
    submit(state, job("m", gpu=1, account="vision", user="man", nice=5000))
    assert settle(state) == ["m"]
    found = reason(state, "g2")
    assert (found.code, found.used, found.wanted, found.limit) == (
        "QOSMaxGRESPerUser",
        3000,
        3000,
        4000,
    )
    why = explanation(state, WorkloadKey("ns/g2"))
    assert why is not None
    assert message_of(why) == (
        "QOSMaxGRESPerUser: user games uses 3 of 4 gres/gpu that QOS normal allows a user, "
        "and asks for 3"
    )
    assert reason_of(why) == "WaitingForQuota"
    finish(state, "g1")
    assert settle(state) == ["g2"]


def test_an_account_and_all_below_it() -> None:
    tree = (
        *TREE[1:],
        Association(account="prod", shares=40, limits=Limits(group_tres=((GPU, 6000),))),
    )
    state = cluster(multifactor_rules(associations=tree))
    submit(state, job("a", gpu=4, account="prod", user="mail"))
    submit(state, job("b", gpu=4, account="prod", user="news"))
    assert settle(state) == ["a"]
    assert reason(state, "b").code == "AssocGrpGRES"


@pytest.mark.parametrize("deny", [True, False])
def test_a_partition_s_caps(deny: bool) -> None:
    caps = Limits(tres_per_job=(("cpu", 32_000), (GPU, 4000)))
    rules = multifactor_rules(
        qos=(Qos(name="caps", deny_on_limit=deny, limits=caps),),
        partitions=(Partition(name="large-gpu", qos="caps", is_default=True),),
    )
    state = cluster(rules)
    submit(state, job("eight", gpu=8), job("four", gpu=4))
    assert settle(state) == ["four"]
    assert (reason(state, "eight").code, reason(state, "eight").denied) == (
        "QOSMaxGRESPerJob",
        deny,
    )


def test_more_than_a_user_may_ever_have_is_refused_by_that_name() -> None:
    most = Limits(tres_per_user=((GPU, 4000),))
    rules = multifactor_rules(
        qos=(Qos(name="normal", deny_on_limit=True, limits=most),), partitions=()
    )
    state = cluster(rules)
    submit(state, job("eight", gpu=8, account="vision", user="games"))
    assert settle(state) == []
    found = reason(state, "eight")
    assert (found.code, found.per, found.member) == ("QOSMaxGRESPerUser", "user", "games")
    assert (found.wanted, found.limit, found.denied) == (8000, 4000, True)


def test_caps_of_the_partition_itself() -> None:
    caps = Limits(tres_per_job=((GPU, 4000),))
    state = cluster(
        multifactor_rules(partitions=(Partition(name="p", is_default=True, limits=caps),))
    )
    submit(state, job("eight", gpu=8), job("four", gpu=4))
    assert settle(state) == ["four"]
    assert reason(state, "eight").code == "QOSMaxGRESPerJob"


def test_a_partition_s_longest_time_and_largest_number_of_nodes() -> None:
    limits = Partition(name="p", is_default=True, max_time_ms=600_000, max_nodes=2)
    state = cluster(multifactor_rules(partitions=(limits,)))
    submit(
        state,
        job("long", max_execution_ms=HOUR),
        job("wide", pods=3),
        job("fine", pods=2, max_execution_ms=600_000),
    )
    assert settle(state) == ["fine"]
    assert reason(state, "long").code == "PartitionTimeLimit"
    assert reason(state, "wide").code == "PartitionNodeLimit"


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        ({"group_jobs": 1}, "QOSGrpJobsLimit"),
        ({"jobs_per_user": 1}, "QOSMaxJobsPerUserLimit"),
        ({"jobs_per_account": 1}, "MaxJobsPerAccount"),
        ({"group_tres": (("cpu", 3000),)}, "QOSGrpCpuLimit"),
        ({"tres_per_account": ((GPU, 3000),)}, "MaxGRESPerAccount"),
        ({"group_tres_run_minutes": (("cpu", 150_000),)}, "QOSGrpCPURunMinutesLimit"),
    ],
)
def test_limits_on_what_runs_together(limits: dict[str, Any], code: str) -> None:
    state = cluster(limited(**limits))
    for name in ("a", "b"):
        submit(state, job(name, cpu=2, gpu=2, account="prod", user="mail", max_execution_ms=HOUR))
    assert settle(state) == ["a"]
    assert reason(state, "b").code == code
    finish(state, "a")
    assert settle(state) == ["b"]


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        ({"wall_per_job_ms": 1000}, "QOSMaxWallDurationPerJobLimit"),
        ({"tres_per_node": ((GPU, 1000),)}, "QOSMaxGRESPerNode"),
        ({"tres_minutes_per_job": (("cpu", 1000),)}, "QOSMaxCpuMinutesPerJobLimit"),
        ({"least_tres_per_job": ((GPU, 9000),)}, "QOSMinGRES"),
        ({"tres_per_job": (("mem", 1000),)}, "QOSMaxMemoryPerJob"),
        # More than its user, its account or all together may have, even if nothing else runs.
        ({"tres_per_user": ((GPU, 1000),)}, "QOSMaxGRESPerUser"),
        ({"tres_per_account": ((GPU, 1000),)}, "MaxGRESPerAccount"),
        ({"group_tres": ((GPU, 1000),)}, "QOSGrpGRES"),
    ],
)
def test_limits_on_one_workload(limits: dict[str, Any], code: str) -> None:
    state = cluster(limited(**limits))
    submit(state, job("a", cpu=2, gpu=2, account="prod", user="mail", max_execution_ms=HOUR))
    assert settle(state) == []
    assert reason(state, "a").code == code


def test_the_first_level_with_a_limit_decides() -> None:
    """The QOS allows what the account does not, so the account's word does not count."""
    tree = (
        *TREE[1:],
        Association(account="prod", limits=Limits(jobs_per_user=1, tres_per_job=((GPU, 1000),))),
    )
    qos = Qos(name="big", limits=Limits(tres_per_job=((GPU, 8000),)))
    state = cluster(multifactor_rules(associations=tree, qos=(qos, Qos(name="plain"))))
    submit(state, job("a", gpu=8, account="prod", user="mail", qos="big"))
    submit(state, job("b", gpu=8, account="prod", user="news", qos="plain"))
    assert settle(state) == ["a"]
    assert reason(state, "b").code == "AssocMaxGRESPerJob"
    submit(state, job("c", gpu=1, account="prod", user="mail", qos="big"))
    submit(state, job("d", gpu=1, account="prod", user="news", qos="big"))
    assert settle(state) == ["d"]
    assert reason(state, "c").code == "AssocMaxJobsLimit"


def test_what_was_used_fades_below_a_limit() -> None:
    tree = (
        *TREE[1:],
        Association(account="prod", limits=Limits(group_tres_minutes=((GPU, 100_000),))),
    )
    state = cluster(multifactor_rules(associations=tree, half_life_ms=HOUR))
    state.apply(changes.UsageSet(UsageRecord(owner="account/prod", what=GPU, amount=12_000.0)))
    submit(state, job("a", gpu=1, account="prod", user="mail"))
    assert settle(state) == []
    found = reason(state, "a")
    assert (found.code, found.used, found.limit) == ("AssocGrpGRESMinutes", 200_000, 100_000)
    assert found.until is not None
    assert abs(found.until - HOUR) < SECOND
    pass_time(state, found.until)
    assert settle(state) == ["a"]


def test_too_many_submitted_are_refused_until_some_have_ended() -> None:
    state = cluster(limited(submitted_per_user=2, jobs_per_user=1))
    for number in range(4):
        at = Instant(10 - number)
        submit(state, job(f"j{number}", account="prod", user="mail", created_at=at))
    assert settle(state) == ["j3"]
    assert [reason(state, f"j{number}").code for number in (0, 1, 2)] == [
        "QOSMaxSubmitJobPerUserLimit",
        "QOSMaxSubmitJobPerUserLimit",
        "QOSMaxJobsPerUserLimit",
    ]
    finish(state, "j3")
    assert settle(state) == ["j2"]
    assert reason(state, "j0").code == "QOSMaxSubmitJobPerUserLimit"
    assert reason(state, "j1").code == "QOSMaxJobsPerUserLimit"


def test_only_so_many_grow_older() -> None:
    rules = limited(jobs_accruing_per_user=1)
    state = cluster(msgspec.structs.replace(rules, max_age_ms=HOUR, weights=WEIGHTS))
    for name, at in (("b", 1), ("a", 2)):
        submit(state, job(name, pods=400, account="prod", user="mail", created_at=Instant(at)))
    settle(state)
    pass_time(state, HOUR // 2)

    def age(name: str) -> float:
        state.refresh()
        found = priority_factors(state, WorkloadKey(f"ns/{name}"))
        assert found is not None
        return found.age

    assert (round(age("b"), 1), age("a")) == (500.0, 0.0)
    finish(state, "b")
    assert age("a") == 0.0
    pass_time(state, HOUR)
    assert age("a") == 500.0
    again = restore(snapshot(state))
    found = priority_factors(again, WorkloadKey("ns/a"))
    assert found is not None
    assert found.age == 500.0


# --- backfill --------------------------------------------------------------------------------


def with_backfill(rules: MultifactorRules, dates: int | None) -> ClusterState:
    state = cluster(rules, queues=2)
    state.apply(changes.PolicySet(Policy(multifactor=rules, backfill=Backfill(dates=dates))))
    return state


@pytest.mark.parametrize("dates", [1, None], ids=["easy", "conservative"])
def test_backfill_follows_the_priority_order_and_keeps_limits(dates: int | None) -> None:
    rules = limited(tres_per_user=((GPU, 32_000),))
    state = with_backfill(msgspec.structs.replace(rules, weights=Weights(qos=1)), dates)
    long, short = {"time_limit_ms": 10 * HOUR}, {"time_limit_ms": HOUR}
    submit(state, job("a", gpu=8, pods=2, account="vision", user="games", **long))
    assert settle(state) == ["a"]
    submit(
        state,
        job("over", gpu=8, pods=3, account="vision", user="games", site=9000, **long),
        job("big", gpu=8, pods=4, account="nlp", user="lp", site=1),
        job("late", gpu=8, account="prod", user="mail", time_limit_ms=100 * HOUR),
        job("fits", gpu=8, account="prod", user="news", queue=LocalQueueKey("ns/q2"), **short),
    )
    started = settle(state)
    assert "fits" in started
    assert "over" not in started
    assert reason(state, "over").code == "QOSMaxGRESPerUser"
    # Over a limit it has no date, so the next in turn has the first one.
    assert "big" not in started
    assert [date.workload for date in plan(state, state.now).reservations][:1] == ["ns/big"]
    assert "late" not in started


# --- promises --------------------------------------------------------------------------------


@st.composite
def histories(draw: st.DrawFn) -> tuple[MultifactorRules, list[tuple[str, Any]]]:
    """Draw rules with tight limits, and what happens under them."""
    limits = Limits(
        tres_per_user=((GPU, draw(st.sampled_from([6000, 12_000]))),),
        group_jobs=draw(st.sampled_from([None, 3])),
        submitted_per_user=draw(st.sampled_from([None, 4])),
        jobs_accruing_per_user=draw(st.sampled_from([None, 2])),
    )
    rules = multifactor_rules(
        qos=(Qos(name="normal", priority=50, limits=limits), Qos(name="high", priority=100)),
        half_life_ms=HOUR,
        compat=draw(st.booleans()),
        fair_share=draw(st.sampled_from(["tree", "classic"])),
    )
    users = [("prod", "mail"), ("prod", "news"), ("vision", "games"), ("vision", "new")]
    event = st.one_of(
        st.tuples(
            st.just("submit"),
            st.tuples(
                st.sampled_from(users),
                st.sampled_from([1, 2, 4, 8]),
                st.sampled_from(["", "normal", "high"]),
                st.sampled_from(["q", "q2"]),
                st.sampled_from(["main", "urgent"]),
            ),
        ),
        st.tuples(st.just("finish"), st.integers(0, 20)),
        st.tuples(st.just("pass"), st.integers(1, 4000)),
        st.tuples(st.just("settle"), st.none()),
    )
    return rules, draw(st.lists(event, min_size=3, max_size=25))


@settings(max_examples=40, deadline=None)
@given(history=histories())
def test_a_state_from_a_snapshot_decides_the_same(
    history: tuple[MultifactorRules, list[tuple[str, Any]]],
) -> None:
    """Incremental equals from scratch: job records, limit counters, usage, workloads set aside."""
    rules, events = history
    state = cluster(rules, queues=2)
    count = 0
    for what, detail in events:
        if what == "submit":
            (account, user), gpu, qos, queue, partition = detail
            count += 1
            submit(
                state,
                job(
                    f"j{count}",
                    gpu=gpu,
                    account=account,
                    user=user,
                    qos=qos,
                    partition=partition,
                    queue=LocalQueueKey(f"ns/{queue}"),
                    created_at=state.now,
                ),
            )
        elif what == "finish" and state.running:
            finish(state, sorted(state.running)[detail % len(state.running)].removeprefix("ns/"))
        elif what == "pass":
            pass_time(state, state.now + detail * SECOND)
        elif what == "settle":
            settle(state)
        again = restore(msgspec.json.decode(msgspec.json.encode(snapshot(state)), type=_TYPE))
        assert snapshot(again) == snapshot(state)
        made, same = plan(state, state.now), plan(again, state.now)
        assert msgspec.json.encode(made) == msgspec.json.encode(same)


_TYPE = type(snapshot(cluster(multifactor_rules())))


@settings(max_examples=25, deadline=None)
@given(
    wants=st.lists(
        st.tuples(
            st.sampled_from(["mail", "news"]), st.integers(0, 3), st.sampled_from(["low", "high"])
        ),
        min_size=2,
        max_size=15,
    )
)
def test_every_workload_has_one_place_and_keeps_it(wants: list[tuple[str, int, str]]) -> None:
    """The order is total, and the same whatever way it is found."""
    state = cluster(multifactor_rules())
    jobs = [
        job(f"j{index}", account="prod", user=user, qos=qos, created_at=Instant(at))
        for index, (user, at, qos) in enumerate(wants)
    ]
    for workload in jobs:
        submit(state, workload)
    pass_time(state, HOUR)
    listed = pending(state, "q")  # type: ignore[arg-type]
    assert sorted(listed) == sorted(workload.key for workload in jobs)
    other = cluster(multifactor_rules())
    submit(other, *reversed(jobs))
    pass_time(other, HOUR)
    assert pending(other, "q") == listed  # type: ignore[arg-type]
    assert [f"ns/{name}" for name in settle(state)] == listed


def test_shares_converge() -> None:
    """Two users with 1 and 3 shares that both always want more get 1 and 3 parts."""
    tree = (
        Association(account="lab"),
        Association(account="lab", user="one", shares=1),
        Association(account="lab", user="three", shares=3),
    )
    state = cluster(
        multifactor_rules(associations=tree, weights=Weights(fair_share=1000), half_life_ms=HOUR)
    )
    count, ran = 0, {"one": 0, "three": 0}
    for minute in range(0, 600, 5):
        pass_time(state, minute * 60 * SECOND)
        for key in sorted(state.running):
            finish(state, key.removeprefix("ns/"))
        for user in ("one", "three"):
            for _ in range(4):
                count += 1
                submit(
                    state,
                    job(f"{user}-{count}", gpu=8, account="lab", user=user, created_at=state.now),
                )
        for name in settle(state):
            if minute >= 120:
                ran[name.partition("-")[0]] += 1
        for key in list(state.waiting):
            state.apply(changes.WorkloadGone(key))
    assert ran["three"] / ran["one"] == pytest.approx(3.0, rel=0.1)
