"""What every test can ask for."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.real.control_plane import ControlPlane


# Times for people are local; expected outputs are the same everywhere.
os.environ["TZ"] = "UTC"
time.tzset()
# And in English, whatever the language of the machine.
os.environ["LC_ALL"] = "C.UTF-8"
os.environ.pop("LANGUAGE", None)

# How long examples take to make depends on the machine's load, and says nothing about our code.
settings.register_profile("patient", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("patient")
# `--hypothesis-profile=slow`: tests that look at it search longer.
settings.register_profile("slow", settings.get_profile("patient"))


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run one real control plane for the whole session; for tests that are marked `real`."""
    from tests.real.binaries import NoControlPlane
    from tests.real.control_plane import running

    try:
        with running(tmp_path_factory.mktemp("control-plane")) as plane:
            yield plane
    except NoControlPlane as problem:
        pytest.skip(f"no real control plane: {problem}")
