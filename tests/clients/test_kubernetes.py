"""The official Python client against the embedded cluster: everything that people do with it.

It parses every answer into its own models and refuses what does not fit, so these tests also say
that our answers have the form that generated clients expect.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock

from tests.clients.conftest import Cluster

pytestmark = pytest.mark.slow

# Far more than anything takes here, even on a machine that is busy with something else.
PATIENCE_SECONDS = 60
ANNOTATION = "control-plane.alpha.kubernetes.io/leader"


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Iterator[Any]:
    """Return the client, configured as its manual says."""
    made = config.new_client_from_config(str(cluster.kubeconfig))
    yield made
    made.close()


@pytest.fixture
def core(api: Any, namespace: str) -> Any:
    """Return the API of core kinds, with a namespace of the test's own."""
    made = client.CoreV1Api(api)
    made.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=namespace)))
    return made


def config_map(name: str, **data: str) -> Any:
    return client.V1ConfigMap(
        metadata=client.V1ObjectMeta(name=name, labels={"app": name}), data=data
    )


def job(name: str, *command: str, pods: int = 1) -> Any:
    container = client.V1Container(name="main", image="busybox", command=list(command))
    template = client.V1PodTemplateSpec(
        spec=client.V1PodSpec(containers=[container], restart_policy="Never")
    )
    return client.V1Job(
        metadata=client.V1ObjectMeta(name=name),
        spec=client.V1JobSpec(parallelism=pods, completions=pods, template=template),
    )


def eventually(found: Callable[[], Any]) -> Any:
    """Ask until there is an answer."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        answer = found()
        if answer:
            return answer
        time.sleep(0.05)
    raise AssertionError("it never happened")


class TestObjects:
    def test_create_read_replace_delete(self, core: Any, namespace: str) -> None:
        made = core.create_namespaced_config_map(namespace, config_map("a", colour="red"))
        assert made.metadata.uid
        made.data["colour"] = "blue"
        replaced = core.replace_namespaced_config_map("a", namespace, made)
        assert replaced.data == {"colour": "blue"}
        with pytest.raises(ApiException) as refused:
            core.replace_namespaced_config_map("a", namespace, made)  # of the old version
        assert (refused.value.status, refused.value.reason) == (409, "Conflict")
        core.delete_namespaced_config_map("a", namespace)
        with pytest.raises(ApiException) as missing:
            core.read_namespaced_config_map("a", namespace)
        assert missing.value.status == 404

    def test_patches(self, core: Any, namespace: str) -> None:
        """The client sends dictionaries as strategic merge patches, and lists as JSON patches."""
        core.create_namespaced_config_map(namespace, config_map("a", colour="red"))

        def patched(body: Any) -> Any:
            return core.patch_namespaced_config_map("a", namespace, body).data

        assert patched({"data": {"size": "1"}}) == {"colour": "red", "size": "1"}
        assert patched({"data": {"size": None}}) == {"colour": "red"}
        operation = [{"op": "replace", "path": "/data/colour", "value": "green"}]
        assert patched(operation) == {"colour": "green"}

    def test_a_list_in_pages(self, core: Any, namespace: str) -> None:
        for number in range(7):
            core.create_namespaced_config_map(namespace, config_map(f"m{number}"))
        names: list[str] = []
        left, token = [], None
        while True:
            page = core.list_namespaced_config_map(namespace, limit=3, _continue=token)
            names += [each.metadata.name for each in page.items]
            left.append(page.metadata.remaining_item_count)
            token = page.metadata._continue
            if not token:
                break
        assert names == [f"m{number}" for number in range(7)]
        assert left == [4, 1, None]

    def test_selectors(self, core: Any, namespace: str) -> None:
        for name in ("a", "b"):
            core.create_namespaced_config_map(namespace, config_map(name))
        by_label = core.list_namespaced_config_map(namespace, label_selector="app in (a,c)")
        assert [each.metadata.name for each in by_label.items] == ["a"]
        by_field = core.list_namespaced_config_map(namespace, field_selector="metadata.name=b")
        assert [each.metadata.name for each in by_field.items] == ["b"]

    def test_a_collection_is_deleted(self, core: Any, namespace: str) -> None:
        for name in ("a", "b"):
            core.create_namespaced_config_map(namespace, config_map(name))
        core.delete_collection_namespaced_config_map(namespace, label_selector="app=a")
        left = core.list_namespaced_config_map(namespace).items
        assert [each.metadata.name for each in left] == ["b"]

    def test_a_dry_run_and_a_refusal_with_causes(self, core: Any, namespace: str) -> None:
        core.create_namespaced_config_map(namespace, config_map("a"), dry_run="All")
        assert core.list_namespaced_config_map(namespace).items == []
        with pytest.raises(ApiException) as refused:
            core.create_namespaced_config_map(namespace, config_map("Not A Name"))
        assert refused.value.status == 422
        assert '"field":"metadata.name"' in refused.value.body

    def test_nodes_and_their_amounts(self, core: Any) -> None:
        nodes = core.list_node().items
        assert [node.status.allocatable["nvidia.com/gpu"] for node in nodes] == ["8", "8"]
        assert all(node.status.node_info.kubelet_version for node in nodes)

    def test_manifests_from_a_dictionary(self, api: Any, core: Any, namespace: str) -> None:
        manifest = {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": "nightly", "namespace": namespace},
            "spec": {
                "schedule": "0 3 * * *",
                "jobTemplate": api.sanitize_for_serialization(
                    client.V1JobTemplateSpec(spec=job("x", "true").spec)
                ),
            },
        }
        (made,) = utils.create_from_dict(api, manifest)
        assert made.spec.schedule == "0 3 * * *"


class TestWatching:
    def test_events_as_they_come(self, core: Any, namespace: str) -> None:
        core.create_namespaced_config_map(namespace, config_map("a"))

        def change() -> None:
            core.patch_namespaced_config_map("a", namespace, {"data": {"b": "1"}})
            core.delete_namespaced_config_map("a", namespace)

        seen = []
        watching = watch.Watch()
        for event in watching.stream(
            core.list_namespaced_config_map, namespace, timeout_seconds=PATIENCE_SECONDS
        ):
            seen.append((event["type"], event["object"].metadata.name))
            if len(seen) == 1:
                threading.Thread(target=change).start()
            if event["type"] == "DELETED":
                watching.stop()
        assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]

    def test_a_watch_from_a_version_ends_by_itself(self, core: Any, namespace: str) -> None:
        version = core.list_namespaced_config_map(namespace).metadata.resource_version
        core.create_namespaced_config_map(namespace, config_map("a"))
        stream = watch.Watch().stream(
            core.list_namespaced_config_map,
            namespace,
            resource_version=version,
            timeout_seconds=1,
        )
        assert [event["object"].metadata.name for event in stream] == ["a"]


class TestRunning:
    def test_a_job_runs_and_its_logs_can_be_read(self, api: Any, core: Any, namespace: str) -> None:
        batch = client.BatchV1Api(api)
        batch.create_namespaced_job(namespace, job("train", "sleep", "20", pods=2))
        done = eventually(
            lambda: (
                (found := batch.read_namespaced_job("train", namespace)).status.succeeded == 2
                and found
            )
        )
        assert {each.type for each in done.status.conditions} >= {"Complete"}
        pods = core.list_namespaced_pod(namespace, label_selector="job-name=train").items
        assert [pod.status.phase for pod in pods] == ["Succeeded", "Succeeded"]
        assert pods[0].status.container_statuses[0].state.terminated.exit_code == 0
        text = core.read_namespaced_pod_log(pods[0].metadata.name, namespace)
        assert "sleep 20" in text
        last = core.read_namespaced_pod_log(
            pods[0].metadata.name, namespace, tail_lines=1, timestamps=True
        )
        assert last.count("\n") == 1
        batch.delete_namespaced_job("train", namespace, propagation_policy="Background")
        eventually(lambda: not core.list_namespaced_pod(namespace).items)

    def test_logs_can_be_followed(self, api: Any, core: Any, namespace: str) -> None:
        client.BatchV1Api(api).create_namespaced_job(namespace, job("train", "sleep", "20"))
        (pod,) = eventually(lambda: core.list_namespaced_pod(namespace).items)
        lines = watch.Watch().stream(
            core.read_namespaced_pod_log, name=pod.metadata.name, namespace=namespace
        )
        assert "exit code 0" in list(lines)[-1]

    def test_a_pod_is_evicted(self, api: Any, core: Any, namespace: str) -> None:
        client.BatchV1Api(api).create_namespaced_job(namespace, job("train", "sleep", "9999"))
        (pod,) = eventually(lambda: core.list_namespaced_pod(namespace).items)
        name = pod.metadata.name
        core.create_namespaced_pod_eviction(
            name, namespace, client.V1Eviction(metadata=client.V1ObjectMeta(name=name))
        )

        def is_gone() -> bool:
            names = [each.metadata.name for each in core.list_namespaced_pod(namespace).items]
            return name not in names

        eventually(is_gone)


class TestCustomObjects:
    GROUP = ("kueue.x-k8s.io", "v1beta2")

    def test_they_are_plain_dictionaries(self, api: Any, core: Any, namespace: str) -> None:
        custom = client.CustomObjectsApi(api)
        queue = {
            "apiVersion": "/".join(self.GROUP),
            "kind": "LocalQueue",
            "metadata": {"name": "a"},
            "spec": {"clusterQueue": "all"},
        }
        where = (*self.GROUP, namespace, "localqueues")
        made = custom.create_namespaced_custom_object(*where, queue)
        assert made["metadata"]["generation"] == 1
        stop = {"spec": {"stopPolicy": "Hold"}}
        patched = custom.patch_namespaced_custom_object(*where, "a", stop)
        assert patched["spec"] == {"clusterQueue": "all", "stopPolicy": "Hold"}
        patched["metadata"]["labels"] = {"x": "y"}
        replaced = custom.replace_namespaced_custom_object(*where, "a", patched)
        assert replaced["metadata"]["generation"] == 2
        status = custom.get_namespaced_custom_object_status(*where, "a")
        assert status["metadata"]["name"] == "a"
        listed = custom.list_namespaced_custom_object(*where, label_selector="x=y")
        assert [each["metadata"]["name"] for each in listed["items"]] == ["a"]
        custom.delete_namespaced_custom_object(*where, "a")
        assert custom.list_namespaced_custom_object(*where)["items"] == []

    def test_kinds_of_the_users_own(self, api: Any, core: Any, namespace: str) -> None:
        names = client.V1CustomResourceDefinitionNames(
            kind="Gizmo", plural="gizmos", singular="gizmo"
        )
        schema = client.V1JSONSchemaProps(
            type="object",
            properties={
                "spec": client.V1JSONSchemaProps(
                    type="object",
                    properties={"size": client.V1JSONSchemaProps(type="integer", default=3)},
                )
            },
        )
        version = client.V1CustomResourceDefinitionVersion(
            name="v1",
            served=True,
            storage=True,
            schema=client.V1CustomResourceValidation(open_apiv3_schema=schema),
        )
        definition = client.V1CustomResourceDefinition(
            metadata=client.V1ObjectMeta(name="gizmos.example.org"),
            spec=client.V1CustomResourceDefinitionSpec(
                group="example.org", names=names, scope="Namespaced", versions=[version]
            ),
        )
        extensions = client.ApiextensionsV1Api(api)
        extensions.create_custom_resource_definition(definition)
        try:
            custom = client.CustomObjectsApi(api)
            made = custom.create_namespaced_custom_object(
                "example.org",
                "v1",
                namespace,
                "gizmos",
                {
                    "apiVersion": "example.org/v1",
                    "kind": "Gizmo",
                    "metadata": {"name": "a"},
                    "spec": {},
                },
            )
            assert made["spec"] == {"size": 3}
        finally:
            extensions.delete_custom_resource_definition("gizmos.example.org")

    def test_the_dynamic_client_finds_kinds_by_itself(
        self, api: Any, core: Any, namespace: str
    ) -> None:
        found = dynamic.DynamicClient(api)
        jobs = found.resources.get(api_version="batch.volcano.sh/v1alpha1", kind="Job")
        assert jobs.get(namespace=namespace).items == []
        maps = found.resources.get(api_version="v1", kind="ConfigMap")
        maps.server_side_apply(
            body={"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}},
            name="a",
            namespace=namespace,
            field_manager="another",
        )
        assert maps.get(name="a", namespace=namespace).data.to_dict() == {"a": "b"}


class TestTheRest:
    def test_access_reviews(self, api: Any) -> None:
        review = client.V1SelfSubjectAccessReview(
            spec=client.V1SelfSubjectAccessReviewSpec(
                resource_attributes=client.V1ResourceAttributes(
                    group="batch", resource="jobs", verb="create", namespace="default"
                )
            )
        )
        answer = client.AuthorizationV1Api(api).create_self_subject_access_review(review)
        assert answer.status.allowed
        review = client.AuthenticationV1Api(api).create_self_subject_review(
            client.V1SelfSubjectReview()
        )
        assert review.status.user_info.username == "unisono-admin"

    def test_versions_and_groups(self, api: Any) -> None:
        assert client.VersionApi(api).get_code().git_version.startswith("v1.")
        groups = [group.name for group in client.ApisApi(api).get_api_versions().groups]
        assert {"batch", "kueue.x-k8s.io", "trainer.kubeflow.org"} <= set(groups)

    def test_a_leader_is_elected_and_steps_down(
        self, core: Any, namespace: str, cluster: Cluster
    ) -> None:
        config.load_kube_config(str(cluster.kubeconfig))
        happened: queue.SimpleQueue[str] = queue.SimpleQueue()
        election = electionconfig.Config(
            ConfigMapLock("the-lock", namespace, "candidate"),
            lease_duration=2,
            renew_deadline=1.5,
            retry_period=1,
            onstarted_leading=lambda: happened.put("leads"),
            onstopped_leading=lambda: happened.put("stopped"),
        )
        runner = threading.Thread(target=leaderelection.LeaderElection(election).run)
        runner.start()
        assert happened.get(timeout=PATIENCE_SECONDS) == "leads"
        lock = core.read_namespaced_config_map("the-lock", namespace)
        record = lock.metadata.annotations[ANNOTATION]
        assert '"holderIdentity": "candidate"' in record
        other = record.replace("candidate", "another").replace('"2"', '"3600"')
        annotations = {ANNOTATION: other}
        core.patch_namespaced_config_map(
            "the-lock", namespace, {"metadata": {"annotations": annotations}}
        )
        assert happened.get(timeout=PATIENCE_SECONDS) == "stopped"
        runner.join()
