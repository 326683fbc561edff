"""An independent auditor: what the API itself says of gangs, nodes and quota, over time.

It shares nothing with the controllers but the names on objects, reads with plain HTTP and keeps
going while servers are down. It sees states, not events: twice a second, all pods at once.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.real.control_plane import ControlPlane
from unisono.kube.form import Json

GPU = "nvidia.com/gpu"
_EVERY_S = 0.4
_WORKLOAD = "kueue.x-k8s.io/workload"
_WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/workloads"


@dataclass
class Auditor:
    """What was seen."""

    plane: ControlPlane
    most_gpus: int  # the quota of all queued jobs together
    looks: int = 0
    wrong: list[str] = field(default_factory=list)
    # For how long each gang has had some of its pods on nodes and not all, and the longest time.
    since: dict[str, float] = field(default_factory=dict)
    partial_s: dict[str, float] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)  # by uid of a pod
    started: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    evicted: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Prepare to ask; one at a time does."""
        context = ssl.create_default_context(cafile=str(self.plane.ca_file))
        host = self.plane.url.partition("://")[2]
        self._connection = http.client.HTTPSConnection(host, timeout=5, context=context)
        self._turn = threading.Lock()

    # ---- looking ---------------------------------------------------------------------------------

    def look(self) -> bool:
        """Look once; return whether the API answered."""
        with self._turn:
            try:
                pods = self._items("/api/v1/pods")
                nodes = self._items("/api/v1/nodes")
                workloads = self._items(_WORKLOADS)
            except (OSError, http.client.HTTPException, ValueError):
                return False
            self.looks += 1
            self._rooms(pods, nodes)
            self._gangs(pods, workloads, time.monotonic())
            return True

    def _items(self, path: str) -> list[Json]:
        asks = {"Authorization": f"Bearer {self.plane.token}"}
        try:
            self._connection.request("GET", path, headers=asks)
            answer = self._connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()  # the next question opens it again
            raise
        if answer.status != http.client.OK:
            raise ValueError(answer.status)
        return list(json.loads(body)["items"])

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

    def _rooms(self, pods: list[Json], nodes: list[Json]) -> None:
        """No node has more pods than room, no queue more than its quota, and no pod moves."""
        used: dict[str, int] = defaultdict(int)
        queued = 0
        for pod in pods:
            node, uid = pod["spec"].get("nodeName"), pod["metadata"]["uid"]
            if not node:
                continue
            if self.nodes.setdefault(uid, node) != node:
                self._say(f"pod {uid} moved from {self.nodes[uid]} to {node}")
            if _is_over(pod):
                continue
            for container in pod["spec"]["containers"]:
                limits = (container.get("resources") or {}).get("limits") or {}
                used[node] += int(limits.get(GPU, 0))
                if _WORKLOAD in (pod["metadata"].get("annotations") or {}):
                    queued += int(limits.get(GPU, 0))
        if queued > self.most_gpus:
            self._say(f"queued jobs use {queued} GPUs of {self.most_gpus}")
        for node in nodes:
            # One that has just been registered has not said yet what it has.
            has = (node.get("status") or {}).get("allocatable") or {}
            name, room = node["metadata"]["name"], int(has.get(GPU, 0))
            if used[name] > room:
                self._say(f"{used[name]} GPUs are in use on node {name}, which has {room}")

    def _gangs(self, pods: list[Json], workloads: list[Json], now: float) -> None:
        by_gang: dict[str, list[Json]] = defaultdict(list)
        for pod in pods:
            name = (pod["metadata"].get("annotations") or {}).get(_WORKLOAD)
            if name:
                by_gang[f"{pod['metadata']['namespace']}/{name}"].append(pod)
        partial = set()
        for workload in workloads:
            metadata = workload["metadata"]
            key = f"{metadata['namespace']}/{metadata['name']}"
            if ((workload.get("status") or {}).get("schedulingStats") or {}).get("evictions"):
                self.evicted.add(key)
            mine = by_gang[key]
            on_nodes = [pod for pod in mine if pod["spec"].get("nodeName")]
            self.started[key] |= {pod["metadata"]["uid"] for pod in on_nodes}
            wanted = sum(one["count"] for one in workload["spec"]["podSets"])
            over = sum(map(_is_over, on_nodes))
            here = len(on_nodes) - over
            if 0 < here < wanted - over:
                partial.add(key)
                self.since.setdefault(key, now)
                lasts = now - self.since[key]
                self.partial_s[key] = max(self.partial_s.get(key, 0.0), lasts)
        for key in set(self.since) - partial:
            del self.since[key]

    def _say(self, wrong: str) -> None:
        if wrong not in self.wrong:
            self.wrong.append(wrong)

    @property
    def longest_partial_s(self) -> float:
        """For how long the gang that had the hardest time was in pieces."""
        return max(self.partial_s.values(), default=0.0)

    # ---- the end ---------------------------------------------------------------------------------

    def judge(self, jobs: dict[str, int], namespace: str, *, most_partial_s: float) -> None:
        """Fail unless every job ran whole, once, and nothing was wrong on the way."""
        assert self.look(), "the API does not answer"
        assert self.wrong == []
        assert self.longest_partial_s <= most_partial_s
        with self._turn:
            found = self._items(f"/apis/batch/v1/namespaces/{namespace}/jobs")
            workloads = self._items(_WORKLOADS)
        ended = {
            one["metadata"]["name"]: (
                one["status"].get("succeeded"),
                one["status"].get("failed", 0),
            )
            for one in found
        }
        assert ended == {name: (pods, 0) for name, pods in jobs.items()}
        workloads = [one for one in workloads if one["metadata"]["namespace"] == namespace]
        owners = sorted(one["metadata"]["ownerReferences"][0]["name"] for one in workloads)
        assert owners == sorted(jobs), "a workload was lost, or made twice"
        for one in workloads:
            key = f"{namespace}/{one['metadata']['name']}"
            job = one["metadata"]["ownerReferences"][0]["name"]
            if key not in self.evicted:  # an evicted gang has pods of every try
                assert len(self.started[key]) == jobs[job], f"{job} was started twice"


def _is_over(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


@contextmanager
def audited(plane: ControlPlane, most_gpus: int) -> Iterator[Auditor]:
    """Look on in a thread until the block ends."""
    auditor = Auditor(plane, most_gpus)
    stop = threading.Event()

    def keep_looking() -> None:
        while not stop.wait(_EVERY_S):
            auditor.look()

    thread = threading.Thread(target=keep_looking, daemon=True)
    thread.start()
    try:
        yield auditor
    finally:
        stop.set()
        thread.join(20)
        auditor.close()
