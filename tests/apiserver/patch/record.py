"""Record a real kube-apiserver in our stories: `python -m tests.apiserver.patch.record`.

Writes what it answered to `recorded.json`, so that the tests need no server. Needs the programs
that `make controlplane` builds.
"""

from __future__ import annotations

import http.client
import json
import ssl
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.apiserver.patch.gadgets import DEFINITION
from tests.apiserver.patch.stories import deployment_story, gadget_story
from tests.apiserver.patch.strategic_stories import TARGET, strategic_patch
from tests.real.control_plane import ControlPlane, running
from unisono.apiserver.objects import Json

RECORDED = Path(__file__).resolve().parent / "recorded.json"
# As many as give a file that can still be looked through; test_real does more.
GADGET_STORIES, DEPLOYMENT_STORIES, STRATEGIC_PATCHES = 25, 8, 40

GADGETS = "/apis/patch.example.com/v1/namespaces/default/gadgets"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_CONTENT = {
    "apply": "application/apply-patch+yaml",
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}


class Server:
    """Calls of a control plane over one connection."""

    def __init__(self, plane: ControlPlane) -> None:
        """Connect; nothing is sent yet."""
        address = urlsplit(plane.url)
        tls = ssl.create_default_context(cafile=str(plane.ca_file))
        self._connection = http.client.HTTPSConnection(
            str(address.hostname), address.port, context=tls
        )
        self._token = plane.token

    def call(
        self, method: str, path: str, body: Any = None, content: str = "application/json"
    ) -> tuple[int, Any]:
        """Make one call and return the code and the answer."""
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/json",
            "Content-Type": content,
        }
        text = None if body is None else json.dumps(body)
        self._connection.request(method, path, text, headers)
        response = self._connection.getresponse()
        answer = response.read()
        return response.status, json.loads(answer) if answer.startswith(b"{") else {}

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

    def define_gadgets(self) -> None:
        """Teach the server the made-up kind."""
        self.call("POST", _DEFINITIONS, DEFINITION)
        for _ in range(100):
            if self.call("GET", GADGETS)[0] == 200:
                return
            time.sleep(0.2)

    def live_through(self, path: str, story: list[Json]) -> Iterator[Json]:
        """Run a story, and return its steps with the code and the answer of each."""
        one = f"{path}/one"
        self.call("PATCH", one, {"metadata": {"finalizers": None}}, _CONTENT["merge"])
        self.call("DELETE", one, {"gracePeriodSeconds": 0})
        live: Json | None = None
        for step in story:
            if live is None and step["op"] not in ("apply", "force", "create"):
                continue  # the object could not be made
            code, answer = self._take(path, step, live)
            if code < 300:
                live = answer
            yield {**step, "code": code, "answer": answer}

    def _take(self, path: str, step: Json, live: Json | None) -> tuple[int, Json]:
        op, body, one = step["op"], step["body"], f"{path}/one"
        query = f"?fieldManager={step['manager']}"
        if op == "create":
            return self.call("POST", path + query, body)
        if op == "put":
            version = live["metadata"]["resourceVersion"] if live is not None else ""
            metadata = {**body["metadata"], "resourceVersion": version}
            return self.call("PUT", one + query, {**body, "metadata": metadata})
        if op in ("apply", "force"):
            force = f"&force={str(op == 'force').lower()}"
            return self.call("PATCH", one + query + force, body, _CONTENT["apply"])
        if op == "apply-status":
            return self.call("PATCH", f"{one}/status{query}&force=true", body, _CONTENT["apply"])
        if op == "status":
            return self.call("PATCH", f"{one}/status{query}", body, _CONTENT["merge"])
        return self.call("PATCH", one + query, body, _CONTENT.get(op, _CONTENT["merge"]))

    def patched(self, patch: Json) -> tuple[int, Json]:
        """Return what a strategic patch would make of the target."""
        path = f"{DEPLOYMENTS}/patched?dryRun=All&fieldManager=m"
        return self.call("PATCH", path, patch, _CONTENT["strategic"])


def main() -> int:
    """Start a control plane, record it, and stop it."""
    with (
        tempfile.TemporaryDirectory() as directory,
        running(Path(directory), controllers=()) as plane,
    ):
        server = Server(plane)
        server.define_gadgets()
        target = server.call("POST", DEPLOYMENTS, TARGET)[1]
        recorded = {
            "gadgets": [
                list(server.live_through(GADGETS, gadget_story(seed)))
                for seed in range(GADGET_STORIES)
            ],
            "deployments": [
                list(server.live_through(DEPLOYMENTS, deployment_story(seed)))
                for seed in range(DEPLOYMENT_STORIES)
            ],
            "target": target,
            "patches": [_strategic(server, seed) for seed in range(STRATEGIC_PATCHES)],
        }
        server.close()
    RECORDED.write_text(_text(recorded))
    return 0


def _strategic(server: Server, seed: int) -> Json:
    patch = strategic_patch(seed)
    code, answer = server.patched(patch)
    answer.get("metadata", {}).pop("managedFields", None)
    return {"patch": patch, "code": code, "answer": answer}


def _text(recorded: Json) -> str:
    """Write one step a line, so that a new recording can be read as a change."""
    parts = []
    for name, value in recorded.items():
        if name == "target":
            parts.append(f'"{name}": {json.dumps(value, sort_keys=True)}')
            continue
        lines = [
            "[\n" + ",\n".join(json.dumps(step, sort_keys=True) for step in entry) + "\n]"
            if isinstance(entry, list)
            else json.dumps(entry, sort_keys=True)
            for entry in value
        ]
        parts.append(f'"{name}": [\n' + ",\n".join(lines) + "\n]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main())
