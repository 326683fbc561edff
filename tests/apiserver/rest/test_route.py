"""A remembered address means what it meant, and an odd one is not taken for it."""

from __future__ import annotations

import pytest

from unisono.apiserver.catalogue import Catalogue
from unisono.apiserver.errors import ApiError
from unisono.apiserver.rest.route import Route, Routes, UnknownPath, route

PATHS = (
    "/api/v1/pods",
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/pods/a",
    "/api/v1/namespaces/default/pods/a/log",
    "/api/v1/namespaces/default/pods/a%20b",
    "/api/v1/namespaces/default/pods/",
    "/api/v1/namespaces/default/pods//a",
    "/api/v1/namespaces",
    "/api/v1/namespaces/default",
    "/api/v1/namespaces/default/status",
    "/api/v1/namespaces/default/nothing",
    "/api/v1/namespaces/status",
    "/api/v1/pods/a",
    "/api/v1/nodes",
    "/api/v1/nodes/n1",
    "/api/v1/nodes/n1/status",
    "/api/v1/namespaces/default/nodes",
    "/apis/batch/v1/jobs",
    "/apis/batch/v1/namespaces/a/jobs/j",
    "/apis/batch/v2/jobs",
    "/apis/unknown/v1/things",
    "/apis/batch/v1",
    "/api",
    "/",
)

Found = Route | type[Exception]


def _told(path: str, catalogue: Catalogue) -> Found:
    try:
        return route(path, catalogue)
    except (ApiError, UnknownPath) as error:
        return type(error)


def _remembered(path: str, routes: Routes) -> Found:
    known = routes.known(path)
    if known is not None:
        return known
    try:
        return routes.find(path)
    except (ApiError, UnknownPath) as error:
        return type(error)


@pytest.mark.parametrize("order", [PATHS, PATHS[::-1]], ids=["forwards", "backwards"])
def test_a_remembered_address_means_the_same(order: tuple[str, ...]) -> None:
    catalogue = Catalogue()
    routes = Routes(catalogue)
    for path in (*order, *order):
        assert _remembered(path, routes) == _told(path, catalogue), path


def test_objects_of_a_collection_are_found_by_it() -> None:
    routes = Routes(Catalogue())
    assert routes.known("/api/v1/namespaces/default/pods/a") is None
    routes.find("/api/v1/namespaces/default/pods/a")
    found = routes.known("/api/v1/namespaces/default/pods/b")
    assert found is not None
    assert found.key == ("/pods", "default", "b")
