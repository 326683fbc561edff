"""Tests that only make sense where the engine is interpreted (ADR 0024)."""

from __future__ import annotations

import pytest

from unisono.runtime.engine_build import engine_kind

interpreted_only = pytest.mark.skipif(
    engine_kind() != "interpreted",
    reason="watches a function of the engine, which compiled modules call directly",
)
