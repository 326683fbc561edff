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
_SOME = 50
# The first ones always, the others where there is time.
told = pytest.mark.parametrize(
    "stories",
    [range(_SOME), pytest.param(range(_SOME, MORE), marks=pytest.mark.exhaustive)],
    ids=["some", "more"],
)


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


@told
def test_gadgets(server: Server, stories: range) -> None:
    for number in stories:
        story = gadget_story(GADGET_STORIES + number)
        replay(list(server.live_through(GADGETS, story)), check_gadget)


@told
def test_deployments(server: Server, stories: range) -> None:
    for number in stories:
        story = deployment_story(DEPLOYMENT_STORIES + number)
        replay(list(server.live_through(DEPLOYMENTS, story)), check_deployment)


def test_strategic_patches(server: Server) -> None:
    server.call("POST", DEPLOYMENTS, TARGET)
    for seed in range(STRATEGIC_PATCHES, STRATEGIC_PATCHES + 2 * MORE):
        patch = strategic_patch(seed)
        check_strategic(patch, TARGET, *server.patched(patch))
