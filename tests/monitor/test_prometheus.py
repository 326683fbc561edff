"""Questions to a Prometheus: what is sent, and what becomes of bad answers."""

from __future__ import annotations

import json
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from unisono.kinds.overriding import override
from unisono.monitor.ledger.utilization import PrometheusError, Series
from unisono.monitor.prometheus import Prometheus


class _Server(HTTPServer):
    """Answers every question with the same, and remembers it."""

    code = 200
    body = b""
    asked: tuple[str, dict[str, list[str]], str] | None = None


class _Answers(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"])).decode()
        login = self.headers.get("Authorization", "")
        self.server.asked = self.path, urllib.parse.parse_qs(sent), login
        self.send_response(self.server.code)
        if self.server.code == 302:
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.end_headers()
        self.wfile.write(self.server.body)

    @override
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[_Server]:
    """Return one that listens on loopback."""
    with _Server(("127.0.0.1", 0), _Answers) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def url_of(server: _Server) -> str:
    return f"http://127.0.0.1:{server.server_port}/"


def test_it_asks_with_a_token_that_is_read_anew(server: _Server, tmp_path: Path) -> None:
    found = {"metric": {"pod": "p"}, "value": [1, "0.5"]}
    server.body = json.dumps({"data": {"result": [found]}}).encode()
    token = tmp_path / "token"
    token.write_text("one\n", encoding="ascii")
    prometheus = Prometheus(url_of(server), token_file=token)
    assert prometheus.query("up == 1", 1234) == [Series({"pod": "p"}, 0.5)]
    asked = {"query": ["up == 1"], "time": ["1234"]}
    assert server.asked == ("/api/v1/query", asked, "Bearer one")
    token.write_text("two\n", encoding="ascii")
    prometheus.query("up", 1)
    assert server.asked is not None
    assert server.asked[2] == "Bearer two"


@pytest.mark.parametrize(
    ("code", "body", "complaint"),
    [
        (200, b"<html>", "does not answer like a Prometheus"),
        (200, b'{"data": {"result": [1]}}', "does not answer like a Prometheus"),
        (422, b"bad expression", "answers 422: bad expression"),
        (302, b"", "answers 302"),  # the token is for this server alone
    ],
)
def test_what_is_wrong_is_said(server: _Server, code: int, body: bytes, complaint: str) -> None:
    server.code, server.body = code, body
    with pytest.raises(PrometheusError, match=complaint):
        Prometheus(url_of(server)).query("up", 1)


def test_reports_a_missing_server_and_a_missing_token(server: _Server, tmp_path: Path) -> None:
    with pytest.raises(PrometheusError, match="cannot be asked"):
        Prometheus("http://127.0.0.1:1").query("up", 1)
    with pytest.raises(PrometheusError, match="no token in"):
        Prometheus(url_of(server), token_file=tmp_path / "none").query("up", 1)
