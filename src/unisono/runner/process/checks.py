"""Asking a container how it is: a command, a connection, a page; each answers yes or no."""

from __future__ import annotations

import http.client
import os
import socket
import ssl

from unisono.runner.process import errands
from unisono.runner.process.health import Check

_GOOD = range(200, 400)


def holds(check: Check, name: str) -> bool:
    """Ask, and wait for the answer; `name` is where the container takes errands."""
    try:
        if check.command:
            return run(name, check.command, check.timeout_s) == 0
        if check.path is None:
            with socket.create_connection((check.host, check.port), check.timeout_s):
                return True
        return _page(check)
    except (OSError, http.client.HTTPException):
        return False


def run(name: str, command: tuple[str, ...], timeout_s: float) -> int:
    """Run a command in a container; return its exit code, 137 if it takes too long."""
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        connection = errands.send(name, command, [nothing] * 3)
    finally:
        os.close(nothing)
    connection.settimeout(timeout_s)
    try:
        return errands.code_of(connection)
    except TimeoutError:
        return 137


def _page(check: Check) -> bool:
    if check.is_secure:
        # A probe asks whether somebody answers, not who: kubelets do not look at names either.
        context = ssl._create_unverified_context()
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            check.host, check.port, timeout=check.timeout_s, context=context
        )
    else:
        connection = http.client.HTTPConnection(check.host, check.port, timeout=check.timeout_s)
    try:
        connection.request("GET", check.path or "/", headers=dict(check.headers))
        return connection.getresponse().status in _GOOD
    finally:
        connection.close()
