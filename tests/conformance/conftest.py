"""The servers under test, and a namespace of its own for each test.

Every test here runs against each server. The real one is what a Kubernetes API is; where the
embedded one differs on purpose, the test says so with `differs("name")`, and the name has its
paragraph in docs/reference/api-differences.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.client import Api, Collection
from tests.conformance.servers import Server, embedded, real
from tests.conformance.widgets import VERSION, define, gadget_definition, widget_definition


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers that only this suite knows."""
    config.addinivalue_line(
        "markers", "differs(name): the embedded server differs here on purpose; documented by name"
    )
    config.addinivalue_line(
        "markers", "controllers: needs the controllers that come with a real control plane"
    )


@pytest.fixture(
    scope="session",
    params=[pytest.param("embedded"), pytest.param("real", marks=pytest.mark.real)],
)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """Run one server for the whole session."""
    if request.param == "real":
        yield real(request.getfixturevalue("control_plane"))
    else:
        with embedded(tmp_path_factory.mktemp("embedded")) as running:
            yield running


@pytest.fixture(scope="session")
def session_api(server: Server) -> Iterator[Api]:
    """Return the administrator's way to the server."""
    api = Api(server.url, server.ca_file, server.token)
    yield api
    api.close()


@pytest.fixture
def api(request: pytest.FixtureRequest, server: Server, session_api: Api) -> Api:
    """Return the same, if the test is meant for this server."""
    difference = request.node.get_closest_marker("differs")
    if difference and server.name == "embedded":
        pytest.skip(f"known difference: {difference.args[0]}")
    if request.node.get_closest_marker("controllers") and not server.has_controllers:
        pytest.skip("this control plane has no kube-controller-manager")
    return session_api


@pytest.fixture
def namespace(api: Api) -> str:
    """Return the name of a new, empty namespace."""
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "test-"}}
    name = api.of("v1", "namespaces").create(manifest).ok(201)["metadata"]["name"]
    assert isinstance(name, str)
    return name


@pytest.fixture(scope="session")
def custom_kinds(session_api: Api) -> None:
    """Define the kinds Widget and Gadget, once, and wait until they are served."""
    for manifest in (widget_definition(), gadget_definition()):
        define(session_api, manifest)


@pytest.fixture
def widgets(api: Api, namespace: str, custom_kinds: None) -> Collection:
    """Return the widgets of a new namespace."""
    return api.of(VERSION, "widgets", namespace)
