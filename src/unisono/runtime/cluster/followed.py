"""The records of a real cluster, followed by standbys and the leader alike.

A standby hears of every change from its informers. The leader also writes, and its informers skip
its own writes: from then on the driver reports every change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from unisono.control.reconciling.driver import Driver
from unisono.control.reconciling.workers import LiveControllers
from unisono.control.view import Difference, Packed
from unisono.kube.cache import Delta
from unisono.kube.mapping import Kind
from unisono.monitor.cache import FOLLOWED, ClusterCache


class FollowedCache:
    """Hears of every change: from informers, and from the driver once this replica leads."""

    def __init__(self, live: LiveControllers, kinds: Collection[Kind] = FOLLOWED) -> None:
        """Follow a view from now on."""
        self.cache = ClusterCache()
        self._view = live.view
        self._is_leading = False
        for kind, informer in live.informers.items():
            if kind in kinds:
                informer.on_change(self._to(kind))

    def lead(self, driver: Driver) -> None:
        """Hear of everything from a driver, as others do: it tells of our own writes at once."""

        def heard(kind: Kind, difference: Difference) -> None:
            self.cache.observe(kind, difference.old, difference.new)

        driver.listeners.append(heard)
        self._is_leading = True

    def _to(self, kind: Kind) -> Callable[[Delta[Packed]], None]:
        def heard(delta: Delta[Packed]) -> None:
            if not self._is_leading:
                for difference in self._view.unpacked(kind, (delta,)):
                    self.cache.observe(kind, difference.old, difference.new)

        return heard
