"""Health and metrics."""

from __future__ import annotations

import pytest

from tests.conformance.client import Api


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_a_healthy_server_says_ok(api: Api, path: str) -> None:
    answer = api.get(path)
    assert (answer.code, answer.body) == (200, b"ok")
    assert answer.headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_in_detail(api: Api, path: str) -> None:
    answer = api.get(path, verbose="")
    lines = answer.body.decode().splitlines()
    assert answer.code == 200
    assert "[+]ping ok" in lines
    assert lines[-1] == f"{path.removeprefix('/')} check passed"


def test_metrics_are_text(api: Api) -> None:
    answer = api.get("/metrics", headers={"Accept": "*/*"})
    assert answer.code == 200
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert b"# TYPE" in answer.body
