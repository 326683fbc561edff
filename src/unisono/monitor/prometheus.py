"""Queries to an existing Prometheus: one expression at one time, and its alerts.

Plain HTTP or HTTPS, with a token that is read anew for every question. A redirect is not followed:
the token is for that server alone.
"""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from unisono.kinds.overriding import override
from unisono.monitor.active_alerts import ActiveAlert, of_prometheus
from unisono.monitor.ledger.utilization import PrometheusError, Series

# Tens of thousands of pods; more is not an answer to a question of ours.
_MOST_BYTES = 64 << 20
_MOST_WORDS = 200  # of what a server says is wrong


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    @override
    def redirect_request(self, *_: object) -> None:
        return None


class Prometheus:
    """A client of its query API."""

    def __init__(
        self,
        url: str,
        *,
        token_file: Path | None = None,
        authority: Path | None = None,
        timeout_s: float = 20.0,
    ) -> None:
        """Take where it is; `authority` is a file of certificates that vouch for it."""
        self._url = url.rstrip("/")
        self._token_file = token_file
        self._timeout_s = timeout_s
        secure = ssl.create_default_context(cafile=str(authority) if authority else None)
        self._open = urllib.request.build_opener(
            _NoRedirects, urllib.request.HTTPSHandler(context=secure)
        ).open

    def query(self, expression: str, at: int) -> list[Series]:
        """Return the series of an expression at a time."""
        asked = urllib.parse.urlencode({"query": expression, "time": at})
        return self._read(self._answer("query", asked.encode()))

    def alerts(self) -> tuple[ActiveAlert, ...]:
        """Return the alerts of our rules that are pending or fire."""
        try:
            return of_prometheus(json.loads(self._answer("alerts")))
        except ValueError as error:
            message = f"{self._url} does not answer like a Prometheus"
            raise PrometheusError(message) from error

    def _answer(self, path: str, data: bytes | None = None) -> bytes:
        request = urllib.request.Request(
            f"{self._url}/api/v1/{path}",
            data=data,
            headers={"Accept": "application/json", **self._login()},
        )
        try:
            with self._open(request, timeout=self._timeout_s) as answer:
                body: bytes = answer.read(_MOST_BYTES + 1)
        except urllib.error.HTTPError as error:
            answered = error.read(4 * _MOST_WORDS).decode(errors="replace")[:_MOST_WORDS]
            raise PrometheusError(f"{self._url} answers {error.code}: {answered}") from error
        except (OSError, http.client.HTTPException) as error:
            raise PrometheusError(f"{self._url} cannot be asked: {error}") from error
        if len(body) > _MOST_BYTES:
            raise PrometheusError(f"{self._url} answers with more than {_MOST_BYTES >> 20} MiB")
        return body

    def _login(self) -> Mapping[str, str]:
        if self._token_file is None:
            return {}
        try:
            token = self._token_file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeError) as error:
            raise PrometheusError(f"no token in {self._token_file}: {error}") from error
        return {"Authorization": f"Bearer {token}"}

    def _read(self, body: bytes) -> list[Series]:
        try:
            found = json.loads(body)["data"]["result"]
            return [
                Series({str(k): str(v) for k, v in one["metric"].items()}, float(one["value"][1]))
                for one in found
            ]
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            message = f"{self._url} does not answer like a Prometheus"
            raise PrometheusError(message) from error
