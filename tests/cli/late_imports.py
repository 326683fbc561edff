"""Run `unisono up` in this process, ask it for a bit of everything, and print what it loaded late.

    python -m tests.cli.late_imports DIRECTORY

The client is a thread of the same process; what it needs itself is loaded before.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import ssl
import sys
import threading
import time
import traceback
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from unisono.cli import up
from unisono.runtime.instance import Instance

ROOT = Path(__file__).resolve().parents[2]
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
SECONDS = 60
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: job, namespace: default}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: x, resources: {requests: {cpu: 1}}}]
"""
MPI = """\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: mpi, namespace: default}
spec:
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: main, image: x}]}}}
    Worker: {replicas: 1, template: {spec: {containers: [{name: main, image: x}]}}}
"""
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          a: {type: string, pattern: "^(a+)+$"}
        x-kubernetes-validations: [{rule: "self.a.matches('^(a|b)+$')"}]
"""


class Client:
    """Speaks to an instance as kubectl would."""

    def __init__(self, directory: Path) -> None:
        config = yaml.safe_load(Instance(directory).kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._context = ssl.create_default_context(cadata=authority)
        self._host = cluster["server"].removeprefix("https://")
        self._token = config["users"][0]["user"]["token"]

    def ask(
        self, method: str, path: str, body: Any = None, media: str = "application/json", **more: str
    ) -> bytes:
        connection = http.client.HTTPSConnection(self._host, context=self._context, timeout=SECONDS)
        headers = {"authorization": f"Bearer {self._token}", "content-type": media, **more}
        text = body if isinstance(body, (str, bytes)) or body is None else json.dumps(body)
        connection.request(method, path, text, headers)
        answer = connection.getresponse().read()
        connection.close()
        return answer


def everything(client: Client, directory: Path) -> None:
    """Ask for a bit of everything."""
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    yaml_type = "application/yaml"
    things = "/apis/example.org/v1/namespaces/default/things"
    for path in ("/", "/api", "/apis", "/version", "/openapi/v2", "/openapi/v3", "/metrics"):
        client.ask("GET", path)
    client.ask("GET", "/openapi/v3/apis/batch/v1")
    client.ask("GET", "/readyz?verbose")
    client.ask("GET", "/no/such/page")
    client.ask("POST", jobs, JOB, yaml_type)
    client.ask("POST", "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs", MPI, yaml_type)
    client.ask(
        "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION, yaml_type
    )
    for text in ("a" * 2000, "b" * 5000, "ä" * 3000):
        thing = {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "t"}}
        client.ask("POST", things, {**thing, "a": text})
    for document in _samples():
        metadata = document["metadata"]
        group, _, version = document["apiVersion"].rpartition("/")
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        plural = document["kind"].lower() + "s"
        place = f"namespaces/{metadata.get('namespace', 'default')}/{plural}"
        for where in (place, plural):
            client.ask("POST", f"{root}/{where}", document)
    patches = {
        "application/merge-patch+json": {"metadata": {"labels": {"a": "b"}}},
        "application/strategic-merge-patch+json": {"metadata": {"labels": {"a": "c"}}},
        "application/json-patch+json": [{"op": "add", "path": "/metadata/labels/x", "value": "y"}],
        "application/apply-patch+yaml": yaml.safe_load(JOB),
    }
    for media, patch in patches.items():
        client.ask("PATCH", f"{jobs}/job?fieldManager=m&force=true", patch, media)
    for group in json.loads(client.ask("GET", "/apis"))["groups"]:
        root = f"/apis/{group['preferredVersion']['groupVersion']}"
        for one in json.loads(client.ask("GET", root))["resources"]:
            if "/" not in one["name"]:
                client.ask("GET", f"{root}/{one['name']}", accept=TABLE)
    for plural in ("pods", "nodes", "events", "secrets", "configmaps", "services"):
        client.ask("GET", f"/api/v1/{plural}?labelSelector=a%21%3Db", accept=TABLE)
    pods = _running_pods(client)
    name = pods[0]["metadata"]["name"]
    place = f"/api/v1/namespaces/{pods[0]['metadata']['namespace']}/pods/{name}"
    client.ask("GET", f"{place}/log")
    client.ask("POST", f"{place}/exec?command=true&container=main")
    client.ask("POST", f"{place}/eviction", {"metadata": {"name": name}})
    client.ask("DELETE", f"{jobs}/job", {"propagationPolicy": "Foreground"})
    said = json.loads((directory / "instance.json").read_text())
    for page in (said["metrics"], said["gpus"], said["web"], f"{said['web']}app.js"):
        request = urllib.request.Request(page, headers={"accept-encoding": "gzip"})
        try:
            urllib.request.urlopen(request, timeout=SECONDS).read()
        except urllib.error.HTTPError as error:
            error.read()


def _samples() -> Iterator[dict[str, Any]]:
    for path in sorted((ROOT / "examples").rglob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if isinstance(document, dict) and isinstance(document.get("metadata"), dict):
                yield document


def _running_pods(client: Client) -> list[dict[str, Any]]:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        pods = json.loads(client.ask("GET", "/api/v1/pods"))["items"]
        running = [pod for pod in pods if pod["status"].get("phase") == "Running"]
        if len(running) > 2:
            return running
        time.sleep(0.05)
    raise AssertionError("no pod runs")


def main(directory: Path) -> None:
    """Start it, ask it, stop it; then print what was loaded while it was ready."""
    before: set[str] = set()
    reading, writing = os.pipe()
    shown = os.dup(sys.stdout.fileno())
    os.dup2(writing, sys.stdout.fileno())
    late: list[str] = []

    def act() -> None:
        try:
            with os.fdopen(reading, encoding="utf-8") as lines:
                for line in lines:
                    if line.strip() == "ready":
                        break
                client = Client(directory)
                before.update(sys.modules)
                everything(client, directory)
                late.extend(sorted(set(sys.modules) - before))
        except BaseException:
            late.append(traceback.format_exc())
            raise
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=act)
    thread.start()
    arguments = up.parser().parse_args(
        ["--data-dir", str(directory), "--nodes", "8x{cpu=96,memory=768Gi,gpu=8}"]
    )
    up.serve(arguments)
    thread.join()
    os.write(shown, "".join(f"{name}\n" for name in late).encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
