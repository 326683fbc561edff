"""What a Prometheus answers, and the error if it does not, without the HTTP client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from unisono.engine.model.errors import UnisonoError


class PrometheusError(UnisonoError):
    """It cannot be reached, refuses, or does not answer like a Prometheus."""


class Series(NamedTuple):
    """One series of an answer."""

    labels: Mapping[str, str]
    value: float
