"""Record the tables of a real kube-apiserver: `python -m tests.apiserver.tables.record`.

Makes the objects of `samples` and a custom kind with all sorts of columns, and writes what the
server has of them, once as they are and once as a Table, to `recorded.json`. Tests then need no
server. Needs the programs that `make controlplane` builds.
"""

from __future__ import annotations

import http.client
import json
import ssl
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.apiserver.tables.samples import Sample, samples
from tests.real.control_plane import ControlPlane, running
from unisono.apiserver.times import timestamp

RECORDED = Path(__file__).resolve().parent / "recorded.json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
# Lists that are there by themselves would only be long.
MOST_ROWS = 60

COLUMNS = [
    ("string", ".spec.text"),
    ("string", ".spec.list"),
    ("string", ".spec.list[*]"),
    ("string", ".spec.list[0]"),
    ("string", ".spec.list[-1]"),
    ("string", ".spec.list[7]"),
    ("string", ".spec.list[1:2]"),
    ("string", ".spec.list[:]"),
    ("string", ".spec.map"),
    ("string", ".spec.map.a\\.b"),
    ("string", ".spec.map.*"),
    ("string", ".spec.number"),
    ("string", ".spec.share"),
    ("string", ".spec.flag"),
    ("string", ".spec.empty"),
    ("string", ".spec.absent.deep"),
    ("string", ".spec.items[*].name"),
    ("string", ".spec.items[?(@.number>1)].name"),
    ("string", ".spec.items[?(@.number>=1)].number"),
    ("string", ".spec.items[?(@.flag==true)].name"),
    ("string", ".spec.items[?(@.name)].number"),
    ("string", '.spec.items[?(@.name!="one")].number'),
    ("string", ".metadata.labels.x/y"),
    ("string", '.status.conditions[?(@.type=="Ready")].status'),
    ("string", ".status.conditions[?(@.type=='Ready')].reason"),
    ("integer", ".spec.number"),
    ("integer", ".spec.share"),
    ("integer", ".spec.text"),
    ("number", ".spec.share"),
    ("boolean", ".spec.flag"),
    ("date", ".spec.when"),
    ("date", ".spec.text"),
    ("date", ".metadata.creationTimestamp"),
]


class Server:
    """Calls of a control plane."""

    def __init__(self, plane: ControlPlane) -> None:
        self._address = urlsplit(plane.url)
        self._tls = ssl.create_default_context(cafile=str(plane.ca_file))
        self._token = plane.token

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        accept: str = "application/json",
        content: str = "application/json",
    ) -> dict[str, Any]:
        """Make one call and return its answer; anything but success ends the recording."""
        connection = http.client.HTTPSConnection(
            str(self._address.hostname), self._address.port, context=self._tls
        )
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": accept,
            "Content-Type": content,
        }
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        found: dict[str, Any] = json.loads(answer.read())
        connection.close()
        assert answer.status < 300, f"{method} {path}: {found.get('message')}"
        return found


def record(server: Server) -> list[dict[str, Any]]:
    """Make every object and return what the server shows, kind by kind."""

    def ago(seconds: float) -> str:
        return timestamp(time.time() - seconds)

    kinds = list(samples(ago))
    for sample in kinds:
        _make(server, sample)
    widget = _make_widgets(server, ago(7000))
    time.sleep(2.0 - time.time() % 1 + 0.5)  # ages of at least a second, and no change meanwhile
    return [*(_shown(server, sample) for sample in kinds), {**_shown(server, widget), **_WIDGET}]


def _make(server: Server, sample: Sample) -> None:
    for made in sample.objects:
        status, doomed = made.pop("status", None), made.pop("doomed", False)
        server.call("POST", sample.path, made)
        path = f"{sample.path}/{made['metadata']['name']}"
        if status is not None:
            content = "application/merge-patch+json"
            server.call("PATCH", f"{path}/status", {"status": status}, content=content)
        if doomed:
            server.call("DELETE", path, {})


_WIDGET = {"columns": [[f"C{at}", *column] for at, column in enumerate(COLUMNS)]}


def _make_widgets(server: Server, when: str) -> Sample:
    columns = [
        {"name": name, "type": kind, "jsonPath": path} for name, kind, path in _WIDGET["columns"]
    ]
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "additionalPrinterColumns": columns,
        "schema": {
            "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        },
    }
    definition = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }
    server.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    time.sleep(5.0)  # until it is served
    conditions = [
        {"type": "Other", "status": "x"},
        {"type": "Ready", "status": "True", "reason": "Good"},
    ]
    full = {
        "text": "hello",
        "list": ["a", "b", "c"],
        "map": {"a.b": "dotted", "z": 1},
        "number": 5,
        "share": 2.5,
        "flag": True,
        "when": when,
        "empty": "",
        "items": [
            {"name": "one", "number": 1, "flag": True},
            {"name": "two", "number": 2},
            {"number": 3},
        ],
    }
    odd = {
        "text": 5,
        "list": "text",
        "map": [1, 2],
        "number": "7",
        "share": 3,
        "flag": "true",
        "when": 12,
        "items": {"name": "x"},
    }
    widget = Sample("example.com", "widgets", "Widget")
    head = {"apiVersion": "example.com/v1", "kind": "Widget"}
    labels = {"x/y": "label"}
    for made in (
        {"metadata": {"name": "full", "labels": labels}, "spec": full},
        {"metadata": {"name": "odd"}, "spec": odd},
        {"metadata": {"name": "bare"}},
    ):
        status = {"status": {"conditions": conditions}} if made.get("spec") is full else {}
        server.call("POST", widget.path, {**head, **made, **status})
    return widget


def _shown(server: Server, sample: Sample) -> dict[str, Any]:
    listed = server.call("GET", f"{sample.path}?limit={MOST_ROWS}")
    now = time.time()
    table = server.call("GET", f"{sample.path}?limit={MOST_ROWS}", accept=TABLE)
    for item in listed["items"]:
        for unread in ("managedFields", "uid", "resourceVersion"):
            item["metadata"].pop(unread, None)
        for unread in ("tolerations", "securityContext"):
            item.get("spec", {}).pop(unread, None)
    # A few kinds come in an order of their own.
    cells = {row["object"]["metadata"]["name"]: row["cells"] for row in table["rows"]}
    headings = [
        [column["name"], column["type"], column["format"], column["priority"]]
        for column in table["columnDefinitions"]
    ]
    return {
        "group": sample.group,
        "version": sample.version,
        "kind": sample.kind,
        "plural": sample.plural,
        "now": now,
        "headings": headings,
        "objects": listed["items"],
        "cells": [cells[item["metadata"]["name"]] for item in listed["items"]],
    }


def _text(kinds: list[dict[str, Any]]) -> str:
    """Write one object a line, so that a new recording can be read as a change."""
    lines = []
    for kind in kinds:
        head = {key: value for key, value in kind.items() if key not in ("objects", "cells")}
        rows = ",\n".join(
            json.dumps({"cells": cells, "object": made}, sort_keys=True)
            for made, cells in zip(kind["objects"], kind["cells"], strict=True)
        )
        lines.append(f'{json.dumps(head)[:-1]}, "rows": [\n{rows}\n]}}')
    return "[\n" + ",\n".join(lines) + "\n]\n"


def main() -> int:
    """Start a control plane, record it, and stop it."""
    with (
        tempfile.TemporaryDirectory() as directory,
        running(Path(directory), controllers=()) as plane,
    ):
        RECORDED.write_text(_text(record(Server(plane))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
