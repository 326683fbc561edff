"""What a pod does to a node on which GPUs are shared: fragments, and places for large pods.

Everything is asked for many nodes at once: `cpu` is what is free of it on each, `room` what is free
on each of their devices. Spec placement §8.15.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from unisono.engine.model.resources import WHOLE_GPU
from unisono.engine.state.node_table import Integers, Rows
from unisono.engine.state.pod_mix import Weighted

Mask = NDArray[np.bool_]

# Scores are integers from 0 to 100. The coarse steps matter: nodes that are nearly alike count as
# equal and are filled one after the other, which keeps whole nodes free.
BEST_SCORE = 100
LOST_STEPS = 10_000  # what large pods lose is compared in ten-thousandths of their demand


class _Shapes:
    """Shapes of pods as columns, to ask of many nodes at once which of them they could take."""

    def __init__(self, shapes: Weighted) -> None:
        self.cpu: Integers = np.array([shape.cpu for shape, _ in shapes], np.int64)
        self.gpus: Integers = np.array([shape.gpus for shape, _ in shapes], np.int64)
        self.weight: Integers = np.array([count for _, count in shapes], np.int64)

    def hosted(self, cpu: Integers, devices: Integers) -> Mask:
        """Say by node and shape whether it could be taken; `devices` counts those large enough."""
        found: Mask = (devices >= self.gpus) & (cpu[:, None] >= self.cpu)
        return found


class Fragments:
    """FGD's measure: idle GPU that typical pods could not use where it is.

    For one shape and one node: all that is idle if the shape needs no GPU or the node cannot take
    it (CPU, too few devices with enough free); otherwise what is idle on devices too small for it.
    Shapes are weighed by how often they were seen, so F is an integer: thousandths times pods.
    """

    def __init__(self, typical: Weighted) -> None:
        sizes = sorted({shape.milli for shape, _ in typical})
        self._shapes = _Shapes(typical)
        self.pods = max(1, int(self._shapes.weight.sum()))
        self._sizes: Integers = np.array(sizes, np.int64)
        self._size_of: Rows = np.array([sizes.index(shape.milli) for shape, _ in typical], np.intp)
        self._thresholds = score_thresholds(self.pods)

    def of(self, cpu: Integers, room: Integers) -> Integers:
        """Return F of nodes that have this much free."""
        idle = room.sum(axis=1)
        fitting = room[:, None, :] >= self._sizes[:, None]
        too_small = np.where(fitting, 0, room[:, None, :]).sum(axis=2)[:, self._size_of]
        devices = fitting.sum(axis=2)[:, self._size_of]
        useful = self._shapes.hosted(cpu, devices) & (self._shapes.gpus > 0)
        total: Integers = np.where(useful, too_small, idle[:, None]) @ self._shapes.weight
        return total

    def score(self, before: Integers, after: Integers) -> Integers:
        """Return int(100 * sigmoid(drop of F / 1000)) by looking it up."""
        found = np.searchsorted(self._thresholds, before - after, side="right")
        return found.astype(np.int64)


class LargePlaces:
    """Which large pods a node could take, and what each way to seat another pod costs them."""

    def __init__(self, large: Weighted) -> None:
        self._shapes = _Shapes(large)
        self._worth: Integers = self._shapes.weight * self._shapes.gpus
        self._most = max(1, int(self._worth.sum()))

    def of(self, cpu: Integers, room: Integers) -> Integers:
        """Return how much of the demand of large pods nodes could take, with this much free."""
        whole = (room == WHOLE_GPU).sum(axis=1, keepdims=True)
        worth: Integers = self._shapes.hosted(cpu, whole) @ self._worth
        return worth

    def lost(self, before: Integers, after: Integers) -> Integers:
        """Return which share of that demand loses its place, of `LOST_STEPS`."""
        return (before - after) * LOST_STEPS // self._most


def score_thresholds(pods: int) -> Integers:
    """Return the least drop of F (thousandths times pods) that is worth 1, 2, ... points.

    100 * sigmoid(x) reaches s at x = ln(s / (100 - s)); one unit of x is 1,000 thousandths.
    Comparing integers with a table keeps rounding in this one place.
    """
    units = (math.log(s / (BEST_SCORE - s)) for s in range(1, BEST_SCORE))
    return np.array([math.ceil(unit * WHOLE_GPU * pods) for unit in units], np.int64)
