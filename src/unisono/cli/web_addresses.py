"""Addresses of other servers, as options take them."""

from __future__ import annotations

import argparse
from urllib.parse import urlsplit


def url(text: str) -> str:
    """Read an address of HTTP, without a password in it.

    >>> url("http://prometheus.monitoring:9090")
    'http://prometheus.monitoring:9090'
    """
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise argparse.ArgumentTypeError(f"{text!r} is not like http://prometheus.monitoring:9090")
    return text
