"""What broken nodes cost, by team."""

from __future__ import annotations

from tests.monitor.ledger.test_accounts import HOUR, node, pod, workload
from unisono.monitor.ledger.accounts import Period
from unisono.monitor.ledger.rows import NodeRow, PodRow, WorkloadRow
from unisono.monitor.report.faults import faults_of

DAY = Period(0, 24 * HOUR)


def gang(ended: int, *, saved: int = 0, outcome: str = "Gone") -> list[PodRow]:
    """Return two pods of eight GPUs that began at one second and ended together."""
    return [
        pod(f"p{at}", node=f"n{at}", bound=1, started=1, ended=ended, outcome=outcome, saved=saved)
        for at in (1, 2)
    ]


def broken(since: int, problem: str = "Xid79") -> list[NodeRow]:
    """Return a node that is well until a second, and broken from then on."""
    return [node("n1", until=since), node("n1", since=since, problem=problem), node("n2")]


def tries(outcome: str = "NodeFailures") -> dict[str, list[WorkloadRow]]:
    return {"w": [workload(ended=HOUR + 1, outcome=outcome)]}


def test_all_pods_of_a_gang_are_lost_to_the_one_node_that_broke() -> None:
    (found,) = faults_of(DAY, gang(HOUR + 1), tries(), broken(HOUR - 20))
    assert (found.node, found.problem, found.times, found.jobs) == ("n1", "Xid79", 1, 1)
    assert found.gpu_hours == 16
    assert found.owners == {"kim": 16}
    assert found.cost_cents == 16 * 688
    assert found.seconds == 23 * HOUR + 20


def test_only_what_was_not_saved_is_lost() -> None:
    (found,) = faults_of(DAY, gang(HOUR + 1, saved=HOUR // 2 + 1), tries(), broken(HOUR))
    assert found.gpu_hours == 8


def test_a_problem_elsewhere_or_much_later_cost_nothing() -> None:
    for rows in (broken(3 * HOUR), [node("n1"), node("n2"), node("n9", problem="Straggler")]):
        (found,) = faults_of(DAY, gang(HOUR + 1), tries(), rows)
        assert (found.jobs, found.gpu_hours, found.owners) == (0, 0, {})
    assert faults_of(DAY, gang(HOUR + 1), tries(), [node("n1"), node("n2")]) == ()
    (found,) = faults_of(DAY, gang(HOUR + 1, outcome="Succeeded"), tries("Finished"), broken(HOUR))
    assert found.jobs == 0


def test_a_node_that_is_down_is_a_problem_too() -> None:
    rows = [node("n1", until=HOUR), node("n1", since=HOUR, is_up=False), node("n2")]
    (found,) = faults_of(DAY, gang(HOUR + 1), tries(), rows)
    assert (found.problem, found.gpu_hours) == ("Down", 16)
