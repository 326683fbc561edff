"""Recent usage of local queues, with the numbers of spec quota §10 and scenario 6."""

from __future__ import annotations

from tests.support.quota_builders import GPU
from unisono.engine.model.names import CPU, Instant, LocalQueueKey, ResourceName
from unisono.engine.model.policy import AdmissionFairSharing
from unisono.engine.state.local_queue_usage import MICRO, DecayedUsage

X, Y = LocalQueueKey("ns/x"), LocalQueueKey("ns/y")
HOUR = 3600 * 1000
RULES = AdmissionFairSharing(half_life_ms=HOUR, sampling_ms=5 * 60 * 1000)
MEMORY = ResourceName("memory")
NVIDIA = ResourceName("nvidia.com/gpu")


def remembering(**micro: int) -> DecayedUsage:
    usage = DecayedUsage(RULES)
    for name, amount in micro.items():
        usage.load(LocalQueueKey(f"ns/{name}"), {GPU: amount}, Instant(1))
    return usage


def test_a_reservation_counts_at_once() -> None:
    """Scenario 6: alpha is 0.0561, so 8 GPUs add 0.449 of one."""
    usage = DecayedUsage(RULES)
    usage.penalise(X, {GPU: 8}, Instant(0))
    assert round(usage.of(X) / MICRO, 3) == 0.449


def test_half_is_forgotten_after_a_half_life() -> None:
    """Scenario 6: 8 with nothing running becomes 4 after an hour."""
    usage = DecayedUsage(RULES)
    usage.load(X, {GPU: 8 * MICRO}, Instant(1))
    usage.sample(X, {}, Instant(1 + HOUR))
    assert usage.of(X) == 4 * MICRO


def test_steady_use_is_approached_from_below() -> None:
    usage = DecayedUsage(RULES)
    usage.sample(X, {GPU: 8}, Instant(0))
    seen = []
    for hours in range(1, 5):
        usage.sample(X, {GPU: 8}, Instant(hours * HOUR))
        seen.append(usage.of(X) / MICRO)
    assert seen == [4, 6, 7, 7.5]


def test_a_sample_settles_the_penalty() -> None:
    usage = DecayedUsage(RULES)
    usage.sample(X, {}, Instant(0))
    usage.penalise(X, {GPU: 8}, Instant(0))
    usage.sample(X, {GPU: 8}, Instant(RULES.sampling_ms))
    assert round(usage.of(X) / MICRO, 3) == 0.449  # measured now, not charged twice


def test_usage_is_divided_by_the_weight() -> None:
    """Scenario 6: 10 / 4 is less than 4 / 1."""
    usage = remembering(x=10 * MICRO, y=4 * MICRO)
    assert usage.of(Y) < usage.of(X)
    usage.weights_milli[X] = 4000
    assert usage.of(X) == 2_500_000
    assert usage.of(X) < usage.of(Y)


def test_a_weight_of_zero_comes_last() -> None:
    usage = remembering(y=10**9 * MICRO)
    usage.weights_milli[X] = 0
    assert usage.of(Y) < usage.of(X)


def test_what_was_measured_here_wins_over_what_was_written_down() -> None:
    usage = remembering(x=MICRO)
    usage.load(X, {GPU: 99 * MICRO}, Instant(5))
    assert usage.of(X) == MICRO


def test_without_weights_gpus_count_alone_where_there_are_any() -> None:
    """Memory in bytes would swamp everything else."""
    usage = DecayedUsage(RULES)
    usage.load(X, {NVIDIA: 2 * MICRO, MEMORY: 2**40 * MICRO}, Instant(1))
    assert usage.of(X, gpus_only=True) == 2 * MICRO
    assert usage.of(X) > 2**40


def test_weights_are_applied_as_configured_and_cpus_count_in_cores() -> None:
    weights = ((CPU, 1000), (NVIDIA, 500))
    usage = DecayedUsage(AdmissionFairSharing(half_life_ms=HOUR, weights_milli=weights))
    usage.load(X, {NVIDIA: 2 * MICRO, CPU: 3000 * MICRO}, Instant(1))
    assert usage.of(X, gpus_only=True) == (1 + 3) * MICRO


def test_no_half_life_means_no_memory() -> None:
    usage = DecayedUsage(AdmissionFairSharing(half_life_ms=0))
    usage.load(X, {GPU: 8 * MICRO}, Instant(1))
    usage.sample(X, {GPU: 8}, Instant(2))
    assert usage.of(X) == 0
