"""Kill -9 under load, again and again: every acknowledged write must still be there.

    python -m tests.durability.crashes --rounds 100

Each round starts `unisono up` on the same folder, lets eight clients create and change objects over
HTTPS, kills the process at a random moment, starts it again and compares: what was acknowledged is
there as it was acknowledged or newer, nothing is half written, versions only grow.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import random
import signal
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

CLIENTS = 8
PATH = "/api/v1/namespaces/default/configmaps"
_START_SECONDS = 60.0


@dataclass(slots=True)
class Acknowledged:
    """What the API said it has: name → (resource version, value)."""

    objects: dict[str, tuple[int, str]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, obj: dict[str, Any]) -> None:
        with self.lock:
            version = int(obj["metadata"]["resourceVersion"])
            self.objects[obj["metadata"]["name"]] = (version, obj["data"]["value"])


class Server:
    """One process of `unisono up` on a folder."""

    def __init__(self, folder: Path, *options: str) -> None:
        options = options or ("--nodes", "none")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "unisono", "up", "--data-dir", str(folder), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        deadline = time.monotonic() + _START_SECONDS
        said: list[str] = []
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said.append(line)
            if line.strip() == "ready":
                break
            assert time.monotonic() < deadline, "the server does not start"
        else:
            raise AssertionError("the server ended: " + "".join(said))
        config = yaml.safe_load((folder / "kubeconfig").read_text(encoding="utf-8"))
        self.url = urlsplit(config["clusters"][0]["cluster"]["server"])
        self.token = config["users"][0]["user"]["token"]
        self._tls = ssl.create_default_context(cafile=str(folder / "tls" / "ca.crt"))

    def connect(self) -> http.client.HTTPSConnection:
        host, port = self.url.hostname, self.url.port
        assert host is not None
        return http.client.HTTPSConnection(host, port, context=self._tls, timeout=10)

    def call(
        self, connection: http.client.HTTPSConnection, method: str, path: str, body: Any = None
    ) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.token}"}
        content = None
        if body is not None:
            kind = "merge-patch+json" if method == "PATCH" else "json"
            headers["Content-Type"] = f"application/{kind}"
            content = json.dumps(body)
        connection.request(method, path, body=content, headers=headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def kill(self) -> None:
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def write(
    server: Server, client: int, start: int, seen: Acknowledged, stop: threading.Event
) -> None:
    """Create objects and change them until the server is gone."""
    number = start
    connection = server.connect()
    try:
        while not stop.is_set():
            name = f"c{client}-{number}"
            body = {"metadata": {"name": name}, "data": {"value": "first", "bulk": "x" * 500}}
            code, obj = server.call(connection, "POST", PATH, body)
            if code == 201:
                seen.note(obj)
            change = {"data": {"value": f"changed-{number}"}}
            code, obj = server.call(connection, "PATCH", f"{PATH}/{name}", change)
            if code == 200:
                seen.note(obj)
            number += 1
    except (OSError, http.client.HTTPException, ValueError):
        return  # the server is gone, as intended
    finally:
        connection.close()


def one_round(folder: Path, number: int, random_source: random.Random, seen: Acknowledged) -> int:
    """Write, kill, start again, compare; return how many objects there are."""
    server = Server(folder)
    stop = threading.Event()
    threads = [
        threading.Thread(target=write, args=(server, client, number * 1_000_000, seen, stop))
        for client in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    time.sleep(random_source.uniform(0.05, 0.6))
    server.kill()
    stop.set()
    for thread in threads:
        thread.join()
    with sqlite3.connect(folder / "state.db") as database:
        (verdict,) = database.execute("PRAGMA integrity_check").fetchone()
    database.close()
    assert verdict == "ok", verdict
    again = Server(folder)
    try:
        with contextlib.closing(again.connect()) as connection:
            code, listing = again.call(connection, "GET", PATH)
        assert code == 200, listing
        _compare(listing, seen)
    finally:
        again.kill()
    return len(listing["items"])


def _compare(listing: dict[str, Any], seen: Acknowledged) -> None:
    there = {item["metadata"]["name"]: item for item in listing["items"]}
    newest = int(listing["metadata"]["resourceVersion"])
    for name, (version, value) in seen.objects.items():
        assert name in there, f"{name} was acknowledged and is gone"
        found = int(there[name]["metadata"]["resourceVersion"])
        assert found >= version, f"{name} went back from {version} to {found}"
        if found == version:
            assert there[name]["data"]["value"] == value, f"{name} is not what was acknowledged"
        assert newest >= found
    for item in listing["items"]:
        assert len(item["data"]["bulk"]) == 500, f"{item['metadata']['name']} is half written"


def run(rounds: int, seed: int) -> int:
    """Run so many rounds; return how many objects survived them all."""
    random_source = random.Random(seed)
    seen = Acknowledged()
    objects = 0
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory) / "data"
        for number in range(rounds):
            objects = one_round(folder, number, random_source, seen)
            print(f"round {number + 1}: {len(seen.objects)} acknowledged, {objects} there")
    return objects


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    run(arguments.rounds, arguments.seed)


if __name__ == "__main__":
    main()
