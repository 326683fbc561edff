"""What became of notifications."""

from __future__ import annotations

from unisono.monitor.exposition import classic
from unisono.monitor.metrics.notifications import NotificationCounts
from unisono.monitor.metrics.registry import MetricsRegistry


def test_notifications_are_counted_by_channel_and_result() -> None:
    registry = MetricsRegistry(clock=lambda: 0.0, version="1", mode="test")
    registry.notifications = lambda: NotificationCounts({("mail", "sent"): 3}, 2)
    lines = classic(registry.families()).splitlines()
    assert 'unisono_notifications_total{channel="mail",result="sent"} 3' in lines
    assert "unisono_notifications_waiting 2" in lines
