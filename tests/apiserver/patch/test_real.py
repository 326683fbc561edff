"""Our patches and ownership beside a real kube-apiserver, on more stories than were recorded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.apiserver.patch.judge import check_deployment, check_gadget, check_strategic
from tests.apiserver.patch.record import (
    DEPLOYMENT_STORIES,
    DEPLOYMENTS,
    GADGET_STORIES,
    GADGETS,
    STRATEGIC_PATCHES,
    Server,
)
from tests.apiserver.patch.stories import deployment_story, gadget_story
from tests.apiserver.patch.strategic_stories import TARGET, strategic_patch
from tests.apiserver.patch.test_recorded import replay
from tests.real.binaries import NoControlPlane
from tests.real.control_plane import running
from tests.support.effort import IS_LONG

pytestmark = [pytest.mark.real, pytest.mark.slow]

MORE = 3000 if IS_LONG else 150


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a real server that knows gadgets.

    It has no controllers: the owners in the stories do not exist, and a garbage collector acts on
    that.
    """
    directory = tmp_path_factory.mktemp("without-controllers")
    try:
        with running(directory, controllers=()) as plane:
            server = Server(plane)
            server.define_gadgets()
            yield server
            server.close()
    except NoControlPlane as problem:
        pytest.skip(f"no real control plane: {problem}")


def test_gadgets(server: Server) -> None:
    for seed in range(GADGET_STORIES, GADGET_STORIES + MORE):
        replay(list(server.live_through(GADGETS, gadget_story(seed))), check_gadget)


def test_deployments(server: Server) -> None:
    for seed in range(DEPLOYMENT_STORIES, DEPLOYMENT_STORIES + MORE):
        replay(list(server.live_through(DEPLOYMENTS, deployment_story(seed))), check_deployment)


def test_strategic_patches(server: Server) -> None:
    server.call("POST", DEPLOYMENTS, TARGET)
    for seed in range(STRATEGIC_PATCHES, STRATEGIC_PATCHES + 2 * MORE):
        patch = strategic_patch(seed)
        check_strategic(patch, TARGET, *server.patched(patch))
