"""A real cluster with our manifests and four nodes, for every module that wants one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.cluster import kubelets
from tests.real.control_plane import CONTROLLERS, ControlPlane, running
from tests.real.stage import NODES, SPEED, Stage, staged
from tests.real.verdicts import Verdicts, record


def pytest_configure(config: pytest.Config) -> None:
    """Sum up what stories of faults have shown; with xdist one process hears of all of them."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Verdicts())


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run a stock cluster, without nodes yet, to which our manifests were applied with kubectl."""
    from tests.real.binaries import NoControlPlane
    from tests.real.deployment import deployed_etcd

    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    try:
        with running(
            tmp_path_factory.mktemp("deployed"),
            # The last one removes pods of nodes that are gone, after a minute or so.
            controllers=(*CONTROLLERS, "job-controller", "pod-garbage-collector-controller"),
            has_scheduler=True,
            begins_with=deployed_etcd(_of_all_workers(tmp_path_factory)),
        ) as found:
            yield found
    except NoControlPlane as problem:
        pytest.skip(f"no real control plane: {problem}")


@pytest.fixture(scope="module")
def plane(deployed: ControlPlane) -> Iterator[ControlPlane]:
    """Have four nodes there."""
    with kubelets(deployed, NODES, SPEED):
        yield deployed


@pytest.fixture
def stage(plane: ControlPlane, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """Have a namespace for one story, named after it."""
    name = "".join(one if one.isalnum() else "-" for one in request.node.name).strip("-").lower()
    with staged(plane, name[5:60].strip("-"), tmp_path) as made:
        yield made
        if made.verdict is not None:
            record(request.node, made.verdict)


def _of_all_workers(factory: pytest.TempPathFactory) -> Path:
    """Return a folder of this run: xdist gives each of its processes one below it."""
    mine = factory.getbasetemp()
    return mine.parent if "PYTEST_XDIST_WORKER" in os.environ else mine
