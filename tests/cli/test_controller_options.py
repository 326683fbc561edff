"""Options of `unisono controller` that are refused before anything is asked of a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from unisono.apiserver.access.tls import fresh_certificate
from unisono.cli.controller import _names, _web, parser
from unisono.cli.main import main
from unisono.engine.model.errors import InvalidManifest
from unisono.kube.errors import BadConfig
from unisono.net.allowed_hosts import Hosts
from unisono.runtime.clock import seconds_now


@pytest.mark.parametrize("where", ["0.0.0.0:8081", "10.0.0.7:8081", "[::]:8081", ":8081", "gpu:81"])
def test_a_page_for_other_machines_needs_tls_or_a_proxy(
    where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["controller", "--web", where]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    for word in ("--web", "--web-tls-cert", "--web-tls-key", "--web-behind-proxy", "in the clear"):
        assert word in line


@pytest.mark.parametrize("where", ["127.0.0.1:0", "localhost:8081", "[::1]:8081"])
def test_on_loopback_it_needs_neither(where: str) -> None:
    found = _web(parser().parse_args(["--web", where]))
    assert found is not None
    assert found.certificate is None


def test_a_certificate_and_its_key_go_together(tmp_path: Path) -> None:
    fresh = fresh_certificate(now=seconds_now(), hosts=["gpu.example"])
    chain, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    chain.write_bytes(fresh.certificate)
    key.write_bytes(fresh.key)
    cert, its_key = ("--web-tls-cert", str(chain)), ("--web-tls-key", str(key))
    web = ("--web", "0.0.0.0:8081")
    found = _web(parser().parse_args([*web, *cert, *its_key]))
    assert found is not None
    assert found.certificate is not None
    for half, lacking in ((cert, "--web-tls-key"), (its_key, "--web-tls-cert")):
        with pytest.raises(InvalidManifest, match=f"{lacking}: is missing"):
            _web(parser().parse_args([*web, *half]))
    with pytest.raises(InvalidManifest, match="--web: is missing"):
        _web(parser().parse_args([*cert, *its_key]))
    with pytest.raises(InvalidManifest, match="--web: is missing"):
        _web(parser().parse_args(["--web-behind-proxy"]))
    with pytest.raises(BadConfig, match="cannot be read"):
        _web(parser().parse_args([*web, "--web-tls-cert", "/nowhere", *its_key]))


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        ("10.244.1.9:8080", True),  # a kubelet and a Prometheus ask a pod by its address
        ("unisono.home:8080", True),
        ("unisono-web.home.svc.cluster.local", True),
        ("gpu.example", True),
        ("unisono.elsewhere", False),
        ("rebound.example", False),
    ],
)
def test_services_and_told_names_are_ours(host: str, is_ours: bool) -> None:
    assert Hosts("0.0.0.0", _names("home", ["gpu.example"])).know(host) == is_ours
