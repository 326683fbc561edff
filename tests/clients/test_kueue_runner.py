"""A runner as Kueue's own performance test has one, over HTTPS and with the official client.

It creates Workloads without jobs, follows them and the ClusterQueues by list and watch, writes
`Finished` by server-side apply when a Workload has been admitted for its time, and clears the
reservation of each evicted workload. It is over when no active queue has pending or reserving
Workloads. Events go through a bounded buffer to the recorder; what finds it full is
dropped, and makes the run invalid.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from kubernetes import client, config, watch

from tests.clients.conftest import Cluster
from unisono.kube.form import Json

pytestmark = pytest.mark.slow

GROUP, VERSION = "kueue.x-k8s.io", "v1beta2"
COHORTS, QUEUES, WORKLOADS = 2, 2, 35
ALL_WORKLOADS = COHORTS * QUEUES * WORKLOADS
RUN_SECONDS = 0.2
PATIENCE_SECONDS = 60
BUFFER = 1_000
MANAGER = "performance-runner"


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Iterator[Any]:
    """Return the official client."""
    made = config.new_client_from_config(str(cluster.kubeconfig))
    yield made
    made.close()


@dataclass
class Recorder:
    """Writes down what became of every Workload."""

    buffer: queue.Queue[Json | None] = field(default_factory=lambda: queue.Queue(BUFFER))
    dropped: int = 0
    admitted: set[str] = field(default_factory=set)
    finished: set[str] = field(default_factory=set)
    evictions: int = 0
    has_all: threading.Event = field(default_factory=threading.Event)

    def hear(self, workload: Json) -> None:
        try:
            self.buffer.put_nowait(workload)
        except queue.Full:
            self.dropped += 1

    def write(self) -> None:
        """Record until there is nothing more to come."""
        while (workload := self.buffer.get()) is not None:
            name = workload["metadata"]["name"]
            if is_true(workload, "Admitted") and workload["status"].get("admission"):
                self.admitted.add(name)
            if is_true(workload, "Finished"):
                self.finished.add(name)
                if len(self.finished) == ALL_WORKLOADS:
                    self.has_all.set()
            self.evictions += is_true(workload, "Evicted")


@dataclass
class Runner:
    """Does what jobs would do."""

    api: Any
    namespace: str
    recorder: Recorder = field(default_factory=Recorder)
    statuses: dict[str, Json] = field(default_factory=dict)  # of ClusterQueues
    timers: dict[str, threading.Timer] = field(default_factory=dict)
    is_submitted: bool = False
    over: threading.Event = field(default_factory=threading.Event)
    has_ended: threading.Event = field(default_factory=threading.Event)  # watchers may end
    errors: list[BaseException] = field(default_factory=list)

    def follow_workloads(self, version: str) -> None:
        for workload in self._events("workloads", version, namespace=self.namespace):
            self.recorder.hear(workload)
            name = workload["metadata"]["name"]
            if is_true(workload, "Finished"):
                continue
            if is_true(workload, "Evicted") and is_true(workload, "QuotaReserved"):
                self._write(name, {"type": "QuotaReserved", "status": "False"})
            elif is_true(workload, "Admitted") and name not in self.timers:
                self.timers[name] = threading.Timer(RUN_SECONDS, self._finish, (name,))
                self.timers[name].start()

    def follow_queues(self, version: str) -> None:
        for queue_ in self._events("clusterqueues", version):
            if queue_["metadata"]["name"].startswith(f"{self.namespace}-"):
                self.statuses[queue_["metadata"]["name"]] = queue_.get("status") or {}
            if self.is_submitted and self._is_drained():
                self.over.set()

    def _is_drained(self) -> bool:
        active = [one for one in self.statuses.values() if is_true({"status": one}, "Active")]
        return len(active) == COHORTS * QUEUES and not any(
            one["pendingWorkloads"] or one["reservingWorkloads"] for one in active
        )

    def _events(self, plural: str, version: str, *, namespace: str = "") -> Iterator[Json]:
        made = client.CustomObjectsApi(self.api)
        words: Json = {"resource_version": version, "allow_watch_bookmarks": True}
        words |= {"group": GROUP, "version": VERSION, "plural": plural, "timeout_seconds": 60}
        listing = made.list_cluster_custom_object
        if namespace:
            listing, words["namespace"] = made.list_namespaced_custom_object, namespace
        for event in watch.Watch().stream(listing, **words):
            if self.has_ended.is_set():
                return
            assert event["type"] in ("ADDED", "MODIFIED", "BOOKMARK"), event
            if event["type"] != "BOOKMARK":
                yield event["object"]

    def _finish(self, name: str) -> None:
        self._write(name, {"type": "Finished", "status": "True"})

    def _write(self, name: str, condition: Json) -> None:
        told = {"reason": "ByTest", "message": "by the runner"}
        told |= {"lastTransitionTime": "2026-01-01T00:00:00Z"}
        body = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "Workload",
            "metadata": {"name": name, "namespace": self.namespace},
            "status": {"conditions": [condition | told]},
        }
        try:
            # What is generated of the client knows nothing of server-side apply.
            self.api.call_api(
                f"/apis/{GROUP}/{VERSION}/namespaces/{self.namespace}/workloads/{name}/status",
                "PATCH",
                query_params=[("fieldManager", MANAGER), ("force", "true")],
                header_params={"Content-Type": "application/apply-patch+yaml"},
                body=body,
                auth_settings=["BearerToken"],
                response_type="object",
            )
        except BaseException as error:
            self.errors.append(error)
            raise


def test_a_small_load_is_admitted_and_finished_without_losing_anything(
    api: Any, namespace: str
) -> None:
    client.CoreV1Api(api).create_namespace({"metadata": {"name": namespace}})
    made = client.CustomObjectsApi(api)
    create_queues(made, namespace)
    runner = Runner(api, namespace)
    listed = made.list_cluster_custom_object(GROUP, VERSION, "clusterqueues")
    for one in listed["items"]:
        if one["metadata"]["name"].startswith(f"{namespace}-"):
            runner.statuses[one["metadata"]["name"]] = one.get("status") or {}
    workloads = made.list_namespaced_custom_object(GROUP, VERSION, namespace, "workloads")
    versions = (workloads["metadata"]["resourceVersion"], listed["metadata"]["resourceVersion"])
    threads = [
        threading.Thread(target=runner.follow_workloads, args=versions[:1], daemon=True),
        threading.Thread(target=runner.follow_queues, args=versions[1:], daemon=True),
        threading.Thread(target=runner.recorder.write, daemon=True),
    ]
    for thread in threads:
        thread.start()
    names = [*submit(made, namespace)]
    runner.is_submitted = True
    assert runner.over.wait(PATIENCE_SECONDS), runner.statuses
    assert runner.recorder.has_all.wait(PATIENCE_SECONDS), len(runner.recorder.finished)
    runner.has_ended.set()
    ended = made.list_namespaced_custom_object(GROUP, VERSION, namespace, "workloads")["items"]
    remove(made, namespace, [*runner.statuses])  # both watchers see it, and end
    runner.recorder.buffer.put(None)
    for thread in (*threads, *runner.timers.values()):
        thread.join(PATIENCE_SECONDS)

    assert not runner.errors
    assert (len(names), runner.recorder.dropped, runner.recorder.evictions) == (ALL_WORKLOADS, 0, 0)
    assert runner.recorder.admitted == runner.recorder.finished == set(names)
    assert len(ended) == ALL_WORKLOADS
    assert {reason(one, "Finished") for one in ended} == {"ByTest"}
    for status in runner.statuses.values():
        (usage,) = status["flavorsUsage"]
        assert [one["total"] for one in usage["resources"]] == ["0"]
        assert status["admittedWorkloads"] == 0


def create_queues(made: Any, namespace: str) -> None:
    """Create flavor, ClusterQueues in cohorts and LocalQueues, as the test of Kueue has them."""
    flavor = f"{namespace}-any"
    named = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "ResourceFlavor"}
    made.create_cluster_custom_object(
        GROUP, VERSION, "resourceflavors", named | {"metadata": {"name": flavor}}
    )
    quota = {"name": "cpu", "nominalQuota": "20", "borrowingLimit": "100"}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": flavor, "resources": [quota]}]}
    for cohort in range(COHORTS):
        for number in range(QUEUES):
            name = f"{namespace}-{cohort}-{number}"
            body: Json = {
                "apiVersion": f"{GROUP}/{VERSION}",
                "kind": "ClusterQueue",
                "metadata": {"name": name},
                "spec": {
                    "cohortName": f"{namespace}-{cohort}",
                    "namespaceSelector": {},
                    "resourceGroups": [group],
                    "preemption": {
                        "reclaimWithinCohort": "Any",
                        "withinClusterQueue": "LowerPriority",
                    },
                },
            }
            made.create_cluster_custom_object(GROUP, VERSION, "clusterqueues", body)
            door: Json = {
                "apiVersion": f"{GROUP}/{VERSION}",
                "kind": "LocalQueue",
                "metadata": {"name": name},
                "spec": {"clusterQueue": name},
            }
            made.create_namespaced_custom_object(GROUP, VERSION, namespace, "localqueues", door)


def remove(made: Any, namespace: str, queues: list[str]) -> None:
    """Leave nothing behind in the cluster."""
    made.delete_collection_namespaced_custom_object(GROUP, VERSION, namespace, "workloads")
    for name in queues:
        made.delete_namespaced_custom_object(GROUP, VERSION, namespace, "localqueues", name)
        made.delete_cluster_custom_object(GROUP, VERSION, "clusterqueues", name)


def submit(made: Any, namespace: str) -> Iterator[str]:
    """Create every queue's Workloads in turns."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    for turn in range(WORKLOADS):
        for place in range(COHORTS * QUEUES):
            name = f"small-{place}-{turn}"
            body = {
                "apiVersion": f"{GROUP}/{VERSION}",
                "kind": "Workload",
                "metadata": {"name": name, "labels": {"class": "small"}},
                "spec": {
                    "queueName": f"{namespace}-{place // QUEUES}-{place % QUEUES}",
                    "priority": 50,
                    "podSets": [{"name": "main", "count": 1, "template": template}],
                },
            }
            made.create_namespaced_custom_object(GROUP, VERSION, namespace, "workloads", body)
            yield name


def is_true(obj: Json, kind: str) -> bool:
    return any(
        one["type"] == kind and one["status"] == "True"
        for one in (obj.get("status") or {}).get("conditions") or ()
    )


def reason(obj: Json, kind: str) -> str:
    """Return why a condition is as it is, or nothing if it is not true."""
    return next(
        (
            str(one["reason"])
            for one in obj["status"]["conditions"]
            if one["type"] == kind and one["status"] == "True"
        ),
        "",
    )
