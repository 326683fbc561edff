"""Record what a real kubectl sends: `python -m tests.apiserver.protobuf.capture [kubectl]`.

Runs every command of `COMMANDS` against a server on loopback that answers discovery, keeps the
bodies of writes, and refuses the write. Each protobuf body becomes `bodies/<name>.json` with the
command, the body in base64, and the object as the same kubectl prints it (`--dry-run=client -o
json`), where it can. Tests then need no kubectl.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.manifests import kind
from unisono.apiserver import discovery
from unisono.kinds.overriding import override

BODIES = Path(__file__).resolve().parent / "bodies"
MAGIC = b"k8s\0"

SERVED = (
    kind("", "v1", "Namespace", short=("ns",), namespaced=False),
    kind("", "v1", "Pod", short=("po",), subresources=("eviction", "binding", "status")),
    kind("", "v1", "Node", namespaced=False),
    kind("", "v1", "ConfigMap", short=("cm",)),
    kind("", "v1", "Secret"),
    kind("", "v1", "Service", short=("svc",)),
    kind("", "v1", "ServiceAccount", short=("sa",), subresources=("token",)),
    kind("", "v1", "ResourceQuota", short=("quota",)),
    kind("apps", "v1", "Deployment", short=("deploy",), subresources=("scale", "status")),
    kind("apps", "v1", "ReplicaSet", subresources=("scale",)),
    kind("batch", "v1", "Job"),
    kind("batch", "v1", "CronJob", short=("cj",)),
    kind("policy", "v1", "PodDisruptionBudget", short=("pdb",)),
    kind("scheduling.k8s.io", "v1", "PriorityClass", plural="priorityclasses", namespaced=False),
    kind("rbac.authorization.k8s.io", "v1", "Role"),
    kind("rbac.authorization.k8s.io", "v1", "RoleBinding"),
    kind("rbac.authorization.k8s.io", "v1", "ClusterRole", namespaced=False),
    kind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", namespaced=False),
    kind("authentication.k8s.io", "v1", "SelfSubjectReview", namespaced=False),
    kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview", namespaced=False),
    kind("authorization.k8s.io", "v1", "SelfSubjectRulesReview", namespaced=False),
    kind("autoscaling", "v1", "HorizontalPodAutoscaler", short=("hpa",)),
    kind("autoscaling", "v2", "HorizontalPodAutoscaler", short=("hpa",)),
    kind("networking.k8s.io", "v1", "Ingress", plural="ingresses", short=("ing",)),
)

# What some commands want to read before they write, by path.
STORED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).resolve().parent / "stored.json").read_text()
)

COMMANDS = {
    "namespace": "create ns team-a",
    "job": "create job train --image=busybox -- sleep 1",
    "job-from-cronjob": "create job again --from=cronjob/nightly",
    "cronjob": "create cronjob nightly --image=busybox --schedule=0_3_*_*_* -- date",
    "configmap": "create cm settings --from-literal=a=1 --from-literal=b=",
    "configmap-binary": "create cm blob --from-file=blob=BLOB",
    "secret": "create secret generic key --from-literal=user=alice --from-file=blob=BLOB",
    "secret-docker": "create secret docker-registry pull --docker-server=r --docker-username=u "
    "--docker-password=p",
    "deployment": "create deployment web --image=nginx --replicas=3 --port=80",
    "deployment-none": "create deployment idle --image=nginx --replicas=0",
    "serviceaccount": "create sa robot",
    "service-clusterip": "create service clusterip web --tcp=80:8080 --tcp=443",
    "service-headless": "create service clusterip peers --clusterip=None",
    "service-nodeport": "create service nodeport web --tcp=80:8080 --node-port=30080",
    "service-externalname": "create service externalname db --external-name=db.example.com",
    "quota": "create quota small --hard=cpu=1,pods=2,requests.nvidia.com/gpu=4 --scopes=BestEffort",
    "priorityclass": "create priorityclass high --value=1000 --description=soon",
    "priorityclass-zero": "create priorityclass none --value=0 --preemption-policy=Never",
    "priorityclass-negative": "create priorityclass low --value=-7 --global-default=true",
    "pdb-min": "create pdb two --selector=app=web --min-available=2",
    "pdb-max": "create pdb some --selector=app=web --max-unavailable=50%",
    "role": "create role reader --verb=get,list --resource=pods,jobs.batch --resource-name=p1",
    "clusterrole": "create clusterrole metrics --verb=get --non-resource-url=/metrics",
    "clusterrole-aggregated": "create clusterrole all --aggregation-rule=rbac/to=all",
    "rolebinding": "create rolebinding readers --role=reader --user=alice --group=team-a "
    "--serviceaccount=default:robot",
    "clusterrolebinding": "create clusterrolebinding admins --clusterrole=admin --group=ops",
    "ingress": "create ingress web --class=fast --rule=a.example.com/*=web:80,tls=cert",
    "token": "create token robot --duration=1h --audience=api",
    "token-bound": "create token robot --bound-object-kind=Pod --bound-object-name=p1",
    "autoscale": "autoscale deployment web --min=1 --max=3 --cpu-percent=80",
    "expose": "expose deployment web --port=80",
    "run": "run shell --image=busybox --env=A=b -- sleep 1",
    "can-i": "auth can-i create jobs.batch",
    "can-i-named": "auth can-i get pods/p1 --subresource=log -n team-a",
    "can-i-path": "auth can-i get /metrics",
    "can-i-list": "auth can-i --list -n team-a",
    "whoami": "auth whoami",
    "drain": "drain n1 --force --timeout=1s",
    "drain-delete": "drain n1 --force --disable-eviction --grace-period=0 --timeout=1s",
}
NO_PREVIEW = ("auth", "drain", "token")
BLOB = b"\x00\xff\x80 not text"


class Recorder(BaseHTTPRequestHandler):
    """Answers what kubectl reads and keeps what it writes."""

    protocol_version = "HTTP/1.1"
    bodies: list[tuple[str, str, bytes]]

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        accept = self.headers.get("Accept", "")
        form = discovery.asked_version(accept)
        if path in ("/api", "/apis") and form:
            answer = discovery.aggregated(SERVED, core=path == "/api", version=form)
            self._send(200, answer, discovery.content_type(form))
        elif path == "/version":
            self._send(200, {"major": "1", "minor": "32", "gitVersion": "v1.32.0"})
        elif path == "/api/v1":
            self._send(200, discovery.resource_list(SERVED, "", "v1"))
        elif path.startswith("/apis/") and path.count("/") == 3:
            group, version = path.split("/")[2:]
            self._send(200, discovery.resource_list(SERVED, group, version))
        elif path in STORED:
            self._send(200, STORED[path])
        else:
            self._refuse(404, "NotFound")

    def _keep(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        type(self).bodies.append((self.command, self.path.partition("?")[0], body))
        if self.command == "PATCH":
            self._send(200, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        else:
            self._refuse(403, "Forbidden")

    do_POST = do_PUT = do_DELETE = do_PATCH = _keep  # noqa: N815 - as above

    def _refuse(self, code: int, reason: str) -> None:
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": reason}
        self._send(code, {**status, "reason": reason, "code": code})

    def _send(self, code: int, answer: dict[str, Any], media: str = "application/json") -> None:
        content = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the commands are what matters."""


def record(kubectl: str, directory: Path) -> None:
    """Run every command and write what it sent."""
    Recorder.bodies = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    (directory / "BLOB").write_bytes(BLOB)
    BODIES.mkdir(exist_ok=True)
    for name, line in COMMANDS.items():
        words = [word.replace("_", " ") if "*" in word else word for word in line.split()]
        full = [kubectl, "--server", address, "--cache-dir", str(directory / "cache"), *words]
        Recorder.bodies.clear()
        subprocess.run(full, cwd=directory, capture_output=True, text=True, check=False)
        sent = [(path, body) for _, path, body in Recorder.bodies if body.startswith(MAGIC)]
        if not sent:
            others = [(method, path, body[:60]) for method, path, body in Recorder.bodies]
            print(f"{name}: no protobuf body; {others}")
            (BODIES / f"{name}.json").unlink(missing_ok=True)
            continue
        path, body = sent[-1]
        case = {"command": line, "path": path, "body": base64.b64encode(body).decode()}
        if not any(word in words for word in NO_PREVIEW):
            at = full.index("--") if "--" in full else len(full)
            preview = [*full[:at], "--dry-run=client", "-o", "json", *full[at:]]
            printed = subprocess.run(
                preview, cwd=directory, capture_output=True, text=True, check=True
            )
            case["printed"] = json.loads(printed.stdout)
        (BODIES / f"{name}.json").write_text(json.dumps(case, indent=1) + "\n")
        print(f"{name}: {len(body)} bytes")
    server.shutdown()
    server.server_close()


def main() -> int:
    """Record with the kubectl that is named, or the one on the path."""
    kubectl = sys.argv[1] if len(sys.argv) > 1 else shutil.which("kubectl")
    if kubectl is None:
        print("capture: no kubectl; name one", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as directory:
        record(kubectl, Path(directory))
    return 0


if __name__ == "__main__":
    sys.exit(main())
