"""How often statuses of queues are written."""

from __future__ import annotations

from unisono.control.queue_status.tally import MOST_PER_SECOND, REST_SECONDS, Pace, Sums
from unisono.kube.form import Key


def written(pace: Pace, name: str, now: float, pending: int = 1) -> bool:
    """Write a status that is different every time, if its queue does not rest."""
    key = Key("", name)
    if pace.rests_until(key, Sums(pending=pending), now) is not None:
        return False
    queue = {"apiVersion": "a/v1", "kind": "Queue", "metadata": {"name": name}}
    return bool(list(pace.write(key, queue, {"pendingWorkloads": now}, now)))


def test_one_busy_queue_is_written_every_second() -> None:
    pace = Pace()
    times = [at for at in (0.0, 0.4, 0.9, 1.0, 1.5, 2.0) if written(pace, "one", at)]
    assert times == [0.0, REST_SECONDS, 2 * REST_SECONDS]


def test_many_busy_queues_share_what_may_be_written() -> None:
    pace = Pace()
    names = [f"queue-{number}" for number in range(5 * MOST_PER_SECOND)]
    assert all(written(pace, name, 0.0) for name in names)  # at first all of them, at once
    later = [(at / 10, name) for at in range(1, 101) for name in names]
    count = sum(written(pace, name, at) for at, name in later)
    assert count == 2 * len(names)  # in ten seconds, each every five


def test_queues_that_are_quiet_again_slow_no_other_down() -> None:
    pace = Pace()
    for number in range(5 * MOST_PER_SECOND):
        written(pace, f"queue-{number}", 0.0)
    assert written(pace, "queue-0", 20.0)
    assert written(pace, "queue-0", 20.0 + REST_SECONDS)


def test_a_queue_that_is_empty_is_told_of_soon() -> None:
    pace = Pace()
    for number in range(10 * MOST_PER_SECOND):
        written(pace, f"queue-{number}", 0.0)
    assert not written(pace, "queue-0", 1.0)
    assert written(pace, "queue-0", 1.0, pending=0)
    assert not written(pace, "queue-0", 1.5, pending=0), "and once a second"
    assert not written(pace, "queue-0", 2.0), "it is not empty any more"
