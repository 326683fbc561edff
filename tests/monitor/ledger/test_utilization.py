"""What a Prometheus remembers is laid on the pods that ran then."""

from __future__ import annotations

import pytest

from unisono.monitor.ledger.accounts import Period
from unisono.monitor.ledger.rows import PodRow
from unisono.monitor.ledger.utilization import STEP_SECONDS, Series, measured

NOW = 10_000
PERIOD = Period(NOW, NOW + 600)


def pod(uid: str, name: str = "p", *, started: int, ended: int = 0, gpus: int = 2) -> PodRow:
    return PodRow(
        uid=uid,
        namespace="a",
        name=name,
        workload="w",
        node="n",
        gpus=gpus,
        bound=started,
        started=started,
        ended=ended,
    )


class Remembers:
    """Answers with figures by question: how often a device was seen, how busy it was, and so on."""

    def __init__(self, labels: dict[str, str], **answers: float) -> None:
        self.labels = labels
        self.answers = answers
        self.asked: list[tuple[str, int]] = []

    def query(self, expression: str, at: int) -> list[Series]:
        self.asked.append((expression, at))
        for part, name in (
            ("PIPE_TENSOR", "tensor"),
            ("FB_USED", "peak"),
            ("count_over_time", "covered"),
            ("avg_over_time", "idle"),
            ("sum_over_time", "busy"),
        ):
            if part in expression:
                found = self.answers.get(name)
                return [] if found is None else [Series(self.labels, found)]
        raise AssertionError(expression)


PLAIN = {"namespace": "a", "pod": "p"}


def test_a_pod_that_was_seen_all_the_time() -> None:
    points = 2 * PERIOD.seconds / STEP_SECONDS
    asks = Remembers(PLAIN, covered=points, busy=0.5 * points, tensor=0.1 * points, peak=9_000)
    (use,) = measured(asks, PERIOD, [pod("u", started=NOW - 50)]).values()
    assert use.covered == pytest.approx(2 * 600)
    assert use.busy == pytest.approx(600)
    assert use.tensor == pytest.approx(120)
    assert (use.idle_devices, use.peak_mib) == (0, 9_000)
    assert {at for _, at in asks.asked} == {PERIOD.until}
    assert "[600s:15s]" in asks.asked[0][0]


def test_a_pod_is_never_measured_longer_than_it_ran() -> None:
    asks = Remembers(PLAIN, covered=80, busy=40)
    (use,) = measured(asks, PERIOD, [pod("u", started=NOW, ended=NOW + 300)]).values()
    assert use.covered == pytest.approx(600)
    assert use.busy == pytest.approx(300)


def test_a_pod_that_was_scraped_for_a_while_is_covered_for_that_while() -> None:
    asks = Remembers(PLAIN, covered=20, busy=20)
    (use,) = measured(asks, PERIOD, [pod("u", started=NOW)]).values()
    assert use.covered == pytest.approx(20 * STEP_SECONDS)


def test_pods_of_one_name_share_what_was_seen_by_their_time() -> None:
    rows = [pod("old", started=NOW, ended=NOW + 150), pod("new", started=NOW + 150)]
    found = measured(Remembers(PLAIN, covered=80, busy=80), PERIOD, rows)
    assert found["old"].busy == pytest.approx(2 * 150)
    assert found["new"].busy == pytest.approx(2 * 450)


def test_labels_that_were_renamed_are_understood() -> None:
    labels = {
        "namespace": "gpu-operator",
        "pod": "dcgm-exporter-x",
        "exported_namespace": "a",
        "exported_pod": "p",
    }
    assert "u" in measured(Remembers(labels, covered=1, busy=1), PERIOD, [pod("u", started=NOW)])


def test_no_query_where_no_pod_ran() -> None:
    asks = Remembers(PLAIN)
    rows = [pod("over", started=NOW - 90, ended=NOW), pod("later", started=NOW + 600)]
    assert measured(asks, PERIOD, rows) == {}
    assert asks.asked == []


def test_unscraped_time_is_not_measured() -> None:
    assert measured(Remembers(PLAIN, busy=1.0), PERIOD, [pod("u", started=NOW)]) == {}
