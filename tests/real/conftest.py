"""A real cluster that several modules play on, one after the other."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.real.cluster import kubectl
from tests.real.control_plane import CONTROLLERS, ControlPlane, running


@pytest.fixture(scope="session")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run a stock cluster, without nodes yet, to which our manifests were applied with kubectl."""
    from tests.real.binaries import NoControlPlane

    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    try:
        with running(
            tmp_path_factory.mktemp("deployed"),
            # The last one removes pods of nodes that are gone, after a minute or so.
            controllers=(*CONTROLLERS, "job-controller", "pod-garbage-collector-controller"),
            has_scheduler=True,
        ) as found:
            kubectl(found, "apply", "-k", "deploy")
            kubectl(found, "wait", "--for=condition=Established", "crd", "--all")
            kubectl(found, "apply", "-k", "deploy/runtimes")
            yield found
    except NoControlPlane as problem:
        pytest.skip(f"no real control plane: {problem}")
