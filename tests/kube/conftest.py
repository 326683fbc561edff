"""Servers that the client is tested with: our own over HTTPS, and a real kube-apiserver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conformance.servers import Server


@pytest.fixture(
    scope="session",
    params=[pytest.param("embedded"), pytest.param("real", marks=pytest.mark.real)],
)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """Run one server for all tests of this directory."""
    from tests.conformance.servers import embedded, real

    if request.param == "real":
        yield real(request.getfixturevalue("control_plane"))
    else:
        with embedded(tmp_path_factory.mktemp("embedded")) as running:
            yield running
