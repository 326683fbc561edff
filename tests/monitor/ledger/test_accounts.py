"""Every GPU-second of a period is in one state, and has one price."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.monitor.ledger.plain_account import fragmented, plainly
from unisono.monitor.ledger.accounts import STATES, Account, Period
from unisono.monitor.ledger.queue_usage import queue_use, waits_of
from unisono.monitor.ledger.rows import NodeRow, PodRow, QueueRow, WorkloadRow
from unisono.monitor.ledger.settlement import settle

HOUR = 3600
DAY = Period(0, 24 * HOUR)
P5 = 55_040_000  # millionths of a dollar an hour: 6.88 a GPU


def node(name: str = "n1", **changes: Any) -> NodeRow:
    """Return a p5 with eight GPUs that is there all day."""
    return NodeRow(
        **{
            "uid": f"u-{name}",
            "since": 0,
            "name": name,
            "gpus": 8,
            "model": "H100",
            "instance_type": "p5.48xlarge",
            "capacity_type": "on-demand",
            "pool": "",
            "micro_usd_hour": P5,
            "is_up": True,
            **changes,
        }
    )


def pod(uid: str = "p", **changes: Any) -> PodRow:
    """Return a pod of the gang `w`."""
    return PodRow(
        **{
            "uid": uid,
            "namespace": "a",
            "name": uid,
            "workload": "w",
            "node": "n1",
            "gpus": 8,
            "bound": 0,
            **changes,
        }
    )


def workload(**changes: Any) -> WorkloadRow:
    """Return the first try of the gang `w`, with quota from the start."""
    return WorkloadRow(
        **{
            "uid": "w",
            "attempt": 1,
            "namespace": "a",
            "name": "train",
            "kind": "Job",
            "owner": "train",
            "queue": "cq",
            "local_queue": "q",
            "user": "kim",
            "team": "a",
            "priority_class": "",
            "flavor": "h100",
            "gpus": 16,
            "pods": 2,
            "since": 0,
            "reserved": 1,
            **changes,
        }
    )


def spent(account: Account) -> dict[str, float]:
    """Return the GPU-hours of all gangs, by class."""
    total: dict[str, float] = {}
    for one in account.used.values():
        for name, seconds in one.spent.seconds._asdict().items():
            total[name] = total.get(name, 0) + seconds / HOUR
    return total


def test_a_job_that_is_busy_three_fifths_of_its_time() -> None:
    """Scenario 10: 16 GPUs of a p5 for two hours."""
    ended = 1 + 2 * HOUR
    pods = [
        pod(
            f"p{at}",
            node=f"n{at}",
            bound=1,
            started=1,
            ended=ended,
            outcome="Succeeded",
            covered=16.0 * HOUR,
            busy=0.6 * 16 * HOUR,
        )
        for at in (1, 2)
    ]
    tries = {"w": [workload(ended=ended, outcome="Finished")]}
    account = settle(DAY, pods, tries, [node("n1"), node("n2")])
    (used,) = account.used.values()
    hours = spent(account)
    assert used.spent.allocated / HOUR == 32
    assert hours["busy"] == pytest.approx(19.2)
    assert hours["idle"] == pytest.approx(12.8)
    assert round(used.spent.cost / 1e6, 2) == 220.16
    assert round(used.spent.micro_usd.idle / 1e6, 2) == 88.06


@pytest.mark.parametrize(("saved", "lost"), [(40 * 60, 2.67), (0, 13.33)])
def test_a_preempted_job_loses_the_time_since_its_last_checkpoint(saved: int, lost: float) -> None:
    """Scenario 11: 16 GPUs, preempted after 50 minutes."""
    ended = 1 + 50 * 60
    pods = [
        pod(
            f"p{at}",
            node=f"n{at}",
            bound=1,
            started=1,
            ended=ended,
            outcome="Gone",
            saved=saved and 1 + saved,
        )
        for at in (1, 2)
    ]
    tries = {"w": [workload(ended=ended, outcome="Preempted")]}
    account = settle(DAY, pods, tries, [node("n1"), node("n2")])
    assert spent(account)["lost"] == pytest.approx(lost, abs=0.01)


def test_what_its_owner_deletes_is_not_lost() -> None:
    tries = {"w": [workload(ended=HOUR, outcome="Deleted")]}
    gone = pod(bound=1, started=1, ended=HOUR, outcome="Gone")
    assert spent(settle(DAY, [gone], tries, [node()]))["lost"] == 0
    restarted = {"w": [workload()]}  # the gang goes on: this pod's work was done for nothing
    assert spent(settle(DAY, [gone], restarted, [node()]))["lost"] == pytest.approx(
        8 * (HOUR - 1) / HOUR
    )


def test_places_kept_for_a_gang_are_held_until_its_pods_come() -> None:
    tries = {"w": [workload(reserved=100)]}
    one = pod(bound=160, started=170)
    account = settle(Period(0, 200), [one], tries, [node()])
    sort = account.sorts["H100", "on-demand"]
    assert sort.seconds == {"free": 800, "held": 480, "allocated": 320, "down": 0}
    assert spent(account)["starting"] == pytest.approx(80 / HOUR)


def test_a_node_that_is_down_has_no_free_gpus() -> None:
    rows = [node(until=100), node(since=100, until=150, is_up=False), node(since=150)]
    sort = settle(Period(0, 200), [], {}, rows).sorts["H100", "on-demand"]
    assert sort.seconds == {"free": 1200, "held": 0, "allocated": 0, "down": 400}


def test_what_is_free_in_pieces() -> None:
    """Scenario 12: three, three and two GPUs are free."""
    rows = [node("n1"), node("n2"), node("n3")]
    pods = [
        pod(f"p{at}", node=f"n{at}", gpus=gpus, bound=0, started=0, workload="")
        for at, gpus in ((1, 5), (2, 5), (3, 6))
    ]
    account = settle(Period(0, 100), pods, {}, rows)
    assert account.fragmentation == {1: 0, 2: 0.25, 4: 1.0, 8: 1.0}
    # Pods of five and six GPUs are there: nothing of what is free is of use to such.
    assert account.broken_up == 1.0
    small = pod("s", node="n1", gpus=1, bound=0, started=0, workload="")
    used = settle(Period(0, 100), [small], {}, [node("n1")])
    assert used.broken_up == used.fragmentation[1] == 0


def test_unused_machines_are_reported_with_their_price() -> None:
    """Scenario 15: six p5 that were given back after 90 seconds."""
    rows = [node(f"n{at}", since=100, until=190) for at in range(6)]
    stays = node("stays", since=100)
    used = pod(node="gone-later", bound=100, started=110, ended=180, workload="")
    rows += [stays, node("gone-later", since=100, until=190)]
    sort = settle(Period(0, 1000), [used], {}, rows).sorts["H100", "on-demand"]
    assert (sort.nodes, sort.unused_nodes, sort.unused_seconds) == (8, 6, 540)
    assert round(sort.unused_micro_usd / 1e6, 2) == 8.26


def test_a_queue_that_wants_its_own_in_vain_is_starved() -> None:
    queue = QueueRow(queue="cq", flavor="h100", cohort="", gpus=16, since=0)
    running = workload(uid="r", gpus=4, reserved=0 + 1, since=0)
    waiting = workload(uid="x", gpus=16, reserved=0, since=0)
    use = queue_use(Period(1, 101), [queue], [running, waiting])["cq"]
    assert (use.nominal, use.used, use.starved) == (1600, 400, 1200)
    assert not use.is_deleted


def test_a_deleted_queue_is_still_reported() -> None:
    """Scenario 28."""
    queue = QueueRow(queue="cq", flavor="h100", cohort="", gpus=16, since=0, until=50)
    assert queue_use(Period(0, 100), [queue], [])["cq"].is_deleted


def test_waits_by_the_nearest_rank() -> None:
    """Scenario 13: ten jobs waited 10 to 100 seconds."""
    found = waits_of(range(10, 101, 10))
    assert (found.p50, found.p90, found.p95, found.longest) == (50, 90, 100, 100)
    assert waits_of(()).count == 0


_TIMES = st.integers(0, 300)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[NodeRow], list[PodRow], dict[str, list[WorkloadRow]]]:
    """Draw nodes that come and go, with pods that never ask for more than is there."""
    nodes: list[NodeRow] = []
    pods: list[PodRow] = []
    for name in ("n1", "n2"):
        cuts = sorted(draw(st.lists(_TIMES, min_size=1, max_size=4, unique=True)))
        for since, until in zip(cuts, [*cuts[1:], 0], strict=True):
            nodes.append(node(name, since=since, until=until, is_up=draw(st.booleans())))
        for slot in range(4):  # two GPUs each
            at = 0
            for number in range(draw(st.integers(0, 2))):
                bound = at + draw(st.integers(1, 60))
                started = bound + draw(st.integers(0, 30))
                at = started + draw(st.integers(0, 90))
                pods.append(
                    pod(
                        f"{name}-{slot}-{number}",
                        node=name,
                        gpus=2,
                        bound=bound,
                        started=started,
                        ended=at,
                        outcome=draw(st.sampled_from(("Succeeded", "Failed", "Gone"))),
                        covered=draw(st.floats(0, 400)),
                        busy=draw(st.floats(0, 100)),
                        saved=draw(_TIMES),
                    )
                )
    tries = [workload(reserved=draw(_TIMES), ended=draw(_TIMES), outcome="Preempted")]
    return nodes, pods, {"w": tries}


@settings(max_examples=150, deadline=None)
@given(clusters(), st.lists(_TIMES, min_size=2, max_size=5, unique=True))
def test_states_partition_every_gpu_second(
    cluster: tuple[list[NodeRow], list[PodRow], dict[str, list[WorkloadRow]]], cuts: list[int]
) -> None:
    """Scenario 14: and the parts of a period add up to the whole."""
    nodes, pods, tries = cluster
    cuts.sort()
    whole = Period(cuts[0], cuts[-1])
    accounts = [settle(whole, pods, tries, nodes)]
    parts = [
        settle(Period(since, until), pods, tries, nodes)
        for since, until in itertools.pairwise(cuts)
    ]
    for account in (*accounts, *parts):
        capacity = sum(
            one.gpus * account.period.clip(one.since, one.until).seconds for one in nodes
        )
        by_state = {
            state: sum(one.seconds[state] for one in account.sorts.values()) for state in STATES
        }
        assert sum(by_state.values()) == capacity
        assert by_state["allocated"] == sum(one.spent.allocated for one in account.used.values())
        assert by_state["allocated"] == sum(account.by_day.values())
        assert all(seconds >= 0 for one in account.used.values() for seconds in one.spent.seconds)
    whole_by_state = [sum(s.seconds[state] for s in accounts[0].sorts.values()) for state in STATES]
    parts_by_state = [
        sum(s.seconds[state] for one in parts for s in one.sorts.values()) for state in STATES
    ]
    assert whole_by_state == parts_by_state


@settings(max_examples=40, deadline=None)
@given(clusters(), st.tuples(_TIMES, _TIMES).filter(lambda pair: pair[0] < pair[1]))
def test_columns_say_what_a_plain_account_says(
    cluster: tuple[list[NodeRow], list[PodRow], dict[str, list[WorkloadRow]]],
    times: tuple[int, int],
) -> None:
    nodes, pods, tries = cluster
    period = Period(*times)
    account, plain = settle(period, pods, tries, nodes), plainly(period, pods, tries, nodes)
    used = account.used
    assert {key: one.spent.seconds._asdict() for key, one in used.items()} == plain.seconds
    assert {key: one.spent.micro_usd._asdict() for key, one in used.items()} == plain.micro_usd
    assert {key: sort.seconds for key, sort in account.sorts.items()} == plain.sorts
    assert account.by_day == plain.by_day
    for size, part in account.fragmentation.items():
        assert part == pytest.approx(fragmented(plain.seconds_free, size))
    brief = settle(period, pods, tries, nodes, in_brief=True)
    assert brief.used == used
    for key, sort in brief.sorts.items():
        assert sort.seconds["allocated"] == plain.sorts[key]["allocated"]
        assert sum(sort.seconds.values()) == sum(plain.sorts[key].values())
