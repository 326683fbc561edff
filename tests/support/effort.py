"""How hard the properties look: quickly and always alike, or for long with UNISONO_LONG=1."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

IS_LONG = os.environ.get("UNISONO_LONG", "") not in ("", "0")

# A cluster is a big example; drawing one is slow for Hypothesis, and there is no data to filter.
_SUPPRESSED = (HealthCheck.too_slow, HealthCheck.data_too_large)


def effort(examples: int, *, steps: int = 50) -> settings:
    """Return settings for one property: fixed examples by default, 50 times as many when long."""
    if IS_LONG:
        return settings(
            max_examples=50 * examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=_SUPPRESSED,
            print_blob=True,
        )
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=_SUPPRESSED,
    )
