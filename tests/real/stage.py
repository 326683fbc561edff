"""What a fault plays on: a namespace with a queue, gangs, replicas that come back, and a judge."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.real.auditor import GPU, Auditor, audited
from tests.real.cluster import Replica, account, asked, put, there, until
from tests.real.control_plane import ControlPlane
from tests.real.fault_proxy import Proxy, proxied
from tests.real.verdicts import Verdict
from unisono.control import names
from unisono.kube.client import Client
from unisono.kube.errors import NotFound
from unisono.kube.mapping import LEASE, Kind

NODES = "4x{gpu=8,cpu=32,memory=256Gi}"
SPEED = 10.0
GPUS = 32
# A gang must be whole, or gone again, after the time to bind (60 s), plus that in which a leader is
# found missing (17 s), plus a busy machine's share.
MOST_PARTIAL_S = 90.0

# For a handful of gangs one after the other, each of some seconds, on a machine that swaps.
_SECONDS_TO_END = 240.0

_KUEUE = "kueue.x-k8s.io/v1beta2"


@dataclass
class Stage:
    """One namespace of a cluster that others use, too."""

    plane: ControlPlane
    namespace: str
    directory: Path
    auditor: Auditor
    jobs: dict[str, int] = field(default_factory=dict)
    stack: ExitStack = field(default_factory=ExitStack)
    replicas: list[Replica] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)  # that were made, for the verdict
    began: float = field(default_factory=time.monotonic)
    verdict: Verdict | None = None  # once the story is told

    def proxied(self) -> tuple[Proxy, ControlPlane]:
        """Return a proxy, and the cluster behind it with the rights of our role only."""
        number = len(list(self.directory.glob("proxy-*")))
        behind = self.directory / f"proxy-{number}"
        return self.stack.enter_context(proxied(self._as_account(), behind, self.faults))

    def _as_account(self) -> ControlPlane:
        return account(self.plane, "unisono-system", "unisono", self.directory / "role")

    def replica(self, plane: ControlPlane | None = None, *flags: str) -> Replica:
        """Start a replica with the rights of our role only."""
        log = self.directory / f"replica-{len(self.replicas)}.log"
        made = Replica(plane or self._as_account(), log, *flags)
        self.stack.callback(_kill, made.process)
        self.replicas.append(made)
        return made

    def submit(self, name: str, pods: int, seconds: float = 5.0, **more: Any) -> None:
        """Queue a gang."""
        self.jobs[name] = pods
        put(self.plane, gang(name, self.namespace, pods, seconds, **more))

    def until_all_ended(self) -> None:
        """Wait until every job is complete."""

        def have_ended() -> bool:
            found = there(self.plane, names.JOB, self.namespace)
            return {one["metadata"]["name"] for one in found if _is_complete(one)} == set(self.jobs)

        until("all jobs ended", have_ended, seconds=_SECONDS_TO_END, instead=self._state)

    def _state(self) -> str:
        """Return the processes at work and the state of all pods and workloads."""
        codes = [one.process.poll() for one in self.replicas]
        jobs = {
            one["metadata"]["name"]: one.get("status")
            for one in there(self.plane, names.JOB, self.namespace)
        }
        workloads = {
            one["metadata"]["name"]: [
                f"{each['type']}={each['status']}: {each.get('message', '')}"
                for each in (one.get("status") or {}).get("conditions") or ()
            ]
            for one in there(self.plane, WORKLOAD, self.namespace)
        }
        return f"replicas {codes}\njobs {jobs}\nworkloads {workloads}"

    def judge(self) -> None:
        """Fail unless all was right throughout: no audit finding, no bug, no missing right."""
        try:
            self.until_all_ended()
        finally:
            self.verdict = self._verdict()
        self.auditor.judge(self.jobs, self.namespace, most_partial_s=MOST_PARTIAL_S)
        for one in self.replicas:
            assert one.told("a step failed") is None

    def _verdict(self) -> Verdict:
        """Put down what was seen."""
        found = there(self.plane, names.JOB, self.namespace)
        ended = {one["metadata"]["name"] for one in found if _is_complete(one)}
        auditor = self.auditor
        too_long = [one for one in auditor.partial_s.values() if one > MOST_PARTIAL_S]
        return Verdict(
            faults=dict(self.faults),
            gangs=len(self.jobs),
            pods=sum(self.jobs.values()),
            looks=auditor.looks,
            longest_partial_s=auditor.longest_partial_s,
            most_partial_s=MOST_PARTIAL_S,
            too_long=len(too_long),
            double_bookings=len(auditor.wrong),
            lost=len(self.jobs.keys() - ended),
            seconds=time.monotonic() - self.began,
        )

    def on_nodes(self) -> int:
        """Count the pods that have nodes."""
        pods = there(self.plane, names.POD, self.namespace)
        return sum(1 for pod in pods if pod["spec"].get("nodeName"))


@contextmanager
def staged(plane: ControlPlane, namespace: str, directory: Path) -> Iterator[Stage]:
    """Make a namespace with a queue; end what was started there.

    Replicas are killed at the end of a story; the next one does not wait for their lease.
    """
    asked(plane, _forget_lease)
    put(
        plane,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        *queues(namespace),
    )
    with audited(plane, GPUS) as auditor:
        stage = Stage(plane, namespace, directory, auditor)
        with stage.stack:
            yield stage


async def _forget_lease(client: Client) -> None:
    with contextlib.suppress(NotFound):
        await client.delete(LEASE, "unisono", "unisono-system")


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
        process.send_signal(signal.SIGCONT)
        process.wait(timeout=10)


def queues(namespace: str) -> list[dict[str, Any]]:
    """Return one flavor, one ClusterQueue for all namespaces, and a LocalQueue."""
    quota = {"cpu": "1000", "memory": "1000Gi", GPU: str(GPUS)}
    flavor = {
        "name": "any",
        "resources": [{"name": name, "nominalQuota": text} for name, text in quota.items()],
    }
    preemption = {"withinClusterQueue": "LowerPriority"}
    spec = {
        "namespaceSelector": {},
        "preemption": preemption,
        "resourceGroups": [{"coveredResources": list(quota), "flavors": [flavor]}],
    }
    return [
        {"apiVersion": _KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "any"}},
        {"apiVersion": _KUEUE, "kind": "ClusterQueue", "metadata": {"name": "all"}, "spec": spec},
        {
            "apiVersion": _KUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": "team", "namespace": namespace},
            "spec": {"clusterQueue": "all"},
        },
    ]


def gang(
    name: str,
    namespace: str,
    pods: int,
    seconds: float,
    *,
    labels: dict[str, str] | None = None,
    scheduler: str = "",
) -> dict[str, Any]:
    """Return a Job of several pods, each of which has a node to itself."""
    limits = {"cpu": "1", "memory": "1Gi", GPU: "8"}
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "containers": [{"name": "node", "image": "train:1", "resources": {"limits": limits}}],
    }
    if scheduler:
        spec["schedulerName"] = scheduler
    template = {
        "metadata": {"annotations": {"unisono.dev/run-seconds": f"{seconds:g}"}},
        "spec": spec,
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {names.QUEUE_LABEL: "team", **(labels or {})},
        },
        "spec": {"parallelism": pods, "completions": pods, "template": template},
    }


def _is_complete(job: dict[str, Any]) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Complete" and one["status"] == "True" for one in conditions)


def phase_of(workload: dict[str, Any]) -> str:
    """Return how far a gang is on its way to its nodes."""
    conditions = (workload.get("status") or {}).get("conditions") or ()
    return next((str(one["reason"]) for one in conditions if one["type"] == names.PLACEMENT), "")


WORKLOAD = Kind(_KUEUE, "Workload")
