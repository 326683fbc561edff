"""What GPUs did lately: points in columns, several devices as one, answers of a Prometheus."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from unisono.monitor.dcgm.assignments import Device
from unisono.monitor.gpu_history import (
    POINTS,
    STEP_SECONDS,
    GpuHistory,
    Sample,
    prometheus_sample,
)
from unisono.monitor.ledger.utilization import Series

A, B, C = ("n1", 0), ("n1", 1), ("n2", 0)


def sample(at: float, **busy: float) -> Sample:
    """Return devices by `n1_0=busy`, each with 10 GiB of 40, 60 °C and 300 W."""
    devices: tuple[Device, ...] = tuple(
        (name.partition("_")[0], int(name.partition("_")[2])) for name in busy
    )
    count = len(devices)
    values = np.array(
        [list(busy.values()), [10_240.0] * count, [60.0] * count, [300.0] * count],
        dtype=np.float32,
    )
    return Sample(at, devices, values, np.full(count, 40_960, dtype=np.float32), {})


def test_devices_now_and_together() -> None:
    history = GpuHistory()
    assert history.is_empty
    assert history.together([A]) is None
    history.take(sample(0.0, n1_0=90.0, n1_1=10.0))
    one = history.reading(A)
    assert one is not None
    assert one == (90.0, 10_240.0, 40_960.0, 60.0, 300.0)
    assert history.reading(C) is None
    both = history.together([A, B, C])
    assert both is not None
    assert (both.devices, both.busy, both.least, both.hottest) == (2, 50.0, 10.0, 60.0)
    assert (both.used_mib, both.memory_mib, both.watts) == (20_480.0, 81_920.0, 600.0)
    assert history.is_fresh(80.0)
    assert not history.is_fresh(100.0)


def test_history_follows_devices_that_come_and_go() -> None:
    history = GpuHistory()
    history.take(sample(0.0, n1_0=10.0, n1_1=20.0))
    history.take(sample(15.0, n1_1=40.0, n2_0=60.0))
    assert history.reading(A) is None
    series = history.series([B], POINTS)["busy"]
    assert series[-3:] == [None, 20.0, 40.0]
    assert history.series([C], POINTS)["busy"][-2:] == [None, 60.0]
    assert history.series([A], POINTS) == {}
    assert history.version == 2


def test_a_series_is_made_of_fewer_points() -> None:
    history = GpuHistory()
    for number in range(POINTS + 20):
        history.take(sample(number * STEP_SECONDS, n1_0=float(number)))
    series = history.series([A], 12)["busy"]
    assert len(series) == 12
    assert series[0] == pytest.approx(24.5)  # of points 20 to 29
    assert series[-1] == pytest.approx(134.5)


def test_points_that_come_seldom_have_their_place_in_time() -> None:
    history = GpuHistory()
    for minute in (0, 10, 29):
        history.take(sample(minute * 60.0, n1_0=float(minute)))
    series = history.series([A], 3)["busy"]
    assert series == [0.0, 10.0, 29.0]
    assert history.series([A], 30)["busy"].count(None) == 27


def test_how_busy_it_was_at_most_needs_as_much_history() -> None:
    history = GpuHistory()
    for number in range(41):
        history.take(sample(number * STEP_SECONDS, n1_0=2.0, n1_1=math.nan))
        if number < 32:
            assert history.busiest([A], 600.0) is None
    assert history.busiest([A], 600.0) == pytest.approx(2.0)
    assert history.busiest([B], 600.0) is None
    assert history.busiest([C], 600.0) is None


def test_what_is_not_measured_is_unknown_and_not_zero() -> None:
    history = GpuHistory()
    history.take(sample(0.0, n1_0=math.nan))
    one = history.reading(A)
    assert one is not None
    assert one.busy is None
    both = history.together([A])
    assert both is not None
    assert both.busy is None
    assert both.watts == 300.0


class FakePrometheus:
    """Answers every expression with the series of the metric that it names."""

    def __init__(self, **series: list[Series]) -> None:
        self.series = series

    def query(self, expression: str, at: int) -> list[Series]:
        found = [one for name, some in self.series.items() if name in expression for one in some]
        assert at == 1000
        return found


def test_a_prometheus_is_asked_about_the_nodes_that_are_there() -> None:
    labels = {"kubernetes_node": "n1", "gpu": "0", "exported_namespace": "ml", "exported_pod": "a"}
    prometheus = FakePrometheus(
        GPU_UTIL=[
            Series({**labels, "namespace": "gpu-operator", "pod": "dcgm"}, 97.0),
            Series({"Hostname": "n1", "gpu": "1"}, 3.0),
            Series({"instance": "n2:9400", "gpu": "0"}, 50.0),
            Series({"Hostname": "elsewhere", "gpu": "0"}, 50.0),
            Series({"Hostname": "n1", "gpu": "MIG-1"}, 50.0),
        ],
        GPU_TEMP=[Series({"kubernetes_node": "n1", "gpu": "0"}, 71.0)],
        FB_TOTAL=[Series({"kubernetes_node": "n1", "gpu": "0"}, 81_559.0)],
    )
    found = prometheus_sample(prometheus, ["n1", "n2"], 1000)
    assert found.devices == (A, B, C)
    assert found.pods == {A: ("ml", "a")}
    history = GpuHistory()
    history.take(found)
    assert history.reading(A) == (97.0, None, 81_559.0, 71.0, None)
    assert history.reading(C) == (50.0, None, None, None, None)


def test_a_prometheus_that_knows_no_gpus_gives_an_empty_sample() -> None:
    history = GpuHistory()
    history.take(prometheus_sample(FakePrometheus(), ["n1"], 1000))
    assert history.is_empty


def test_half_an_hour_of_many_devices_is_small() -> None:
    count = 800
    devices = tuple((f"n{number // 8}", number % 8) for number in range(count))
    values = np.full((4, count), 190_000.0, dtype=np.float32)
    memory = np.full(count, 192_000.0, dtype=np.float32)
    history = GpuHistory()
    tracemalloc.start()
    history.take(Sample(0.0, devices, values, memory, {}))
    first = tracemalloc.get_traced_memory()[0]
    for number in range(1, POINTS):
        history.take(Sample(number * STEP_SECONDS, devices, values, memory, {}))
    whole = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert first < 200 * count, "one point"
    assert whole < 1_300 * count, "120 points of four measures, two bytes each"
    used = history.series(devices[:1], POINTS)["used"][0]
    assert used == pytest.approx(190_000, rel=1e-3)
