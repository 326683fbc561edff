"""The whole way in, on a server in this process: what a user writes and what is stored."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import orjson

from tests.apiserver.admission.manifests import QUEUE, job
from tests.apiserver.surroundings import NOW
from unisono.apiserver.api import Api, Environment
from unisono.apiserver.bootstrap import bootstrap
from unisono.apiserver.objects import Json
from unisono.apiserver.request import Request, User
from unisono.apiserver.storage.database import Database
from unisono.apiserver.storage.store import Store

KUEUE = "/apis/kueue.x-k8s.io/v1beta1"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
MERGE = "application/merge-patch+json"
Call = Callable[..., Awaitable[tuple[int, Json, list[str]]]]


def on_a_server(story: Callable[[Call], Awaitable[None]]) -> None:
    """Run a story against a new server."""

    async def run() -> None:
        numbers = iter(range(10_000))
        outside = Environment(
            clock=lambda: NOW,
            new_uid=lambda: f"uid-{next(numbers)}",
            random_source=random.Random(1),
        )
        store = Store(Database(":memory:"))
        api = Api(store, outside)

        async def call(
            method: str,
            path: str,
            body: Json | None = None,
            content: str = "application/json",
            *,
            caller: str = "ada",
        ) -> tuple[int, Json, list[str]]:
            request = Request(
                method=method,
                path=path,
                headers={"content-type": content, "user-agent": "kubectl/1"},
                body=b"" if body is None else orjson.dumps(body),
                user=User(name=caller, groups=("system:masters",)),
            )
            response = await api.handle(request)
            return response.code, orjson.loads(response.body), request.warnings

        await bootstrap(api)
        await story(call)

    asyncio.run(run())


def old(kind: str, name: str, spec: Json) -> Json:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def test_a_workshop_s_manifests() -> None:
    async def story(call: Call) -> None:
        flavor = old("ResourceFlavor", "h100", {"nodeSelector": {"gpu": "h100"}})
        code, made, warnings = await call("POST", f"{KUEUE}/resourceflavors", flavor)
        assert code == 201
        assert made["spec"]["nodeLabels"] == {"gpu": "h100"}
        assert any("nodeLabels" in text for text in warnings)
        pool = {"flavors": ["h100"], "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8}]}
        queue = old("ClusterQueue", "cq", {"resourceGroups": [pool], "cohort": "all"})
        code, made, warnings = await call("POST", f"{KUEUE}/clusterqueues", queue)
        assert code == 201
        assert made["spec"]["cohort"] == "all"
        assert any("share one quota" in text for text in warnings)
        new = KUEUE.replace("v1beta1", "v1beta2")
        _, stored, _ = await call("GET", f"{new}/clusterqueues/cq")
        assert stored["spec"]["cohortName"] == "all"
        assert stored["spec"]["resourceGroups"][0]["flavors"] == ["h100"]
        door = old("LocalQueue", "lq", {"clusterQueue": "cq"})
        code, _, _ = await call("POST", f"{KUEUE}/namespaces/default/localqueues", door)
        assert code == 201
        small, big = job(pods=8), job(pods=9)
        for one, name in ((small, "small"), (big, "big")):
            one["metadata"].update(name=name, namespace="default")
        code, made, warnings = await call("POST", JOBS, small)
        assert (code, made["spec"]["suspend"], warnings) == (201, True, [])
        assert made["metadata"]["annotations"]["unisono.dev/submitter"] == "ada"
        code, _, warnings = await call("POST", JOBS, big)
        assert code == 201
        assert warnings[0].startswith("can never be admitted as the queues are now")

    on_a_server(story)


def test_a_job_that_runs_keeps_its_queue() -> None:
    async def story(call: Call) -> None:
        made = job()
        made["metadata"]["namespace"] = "default"
        await call("POST", JOBS, made)
        other = {"metadata": {"labels": {QUEUE: "other"}}}
        code, _, _ = await call("PATCH", f"{JOBS}/train", other, MERGE)
        assert code == 200
        free = {"spec": {"suspend": False}}
        code, kept, warnings = await call("PATCH", f"{JOBS}/train", free, MERGE)
        assert (code, kept["spec"]["suspend"]) == (200, True)
        assert "the job starts when queue other admits it" in warnings[0]
        code, _, _ = await call("PATCH", f"{JOBS}/train", free, MERGE, caller="system:unisono")
        assert code == 200
        third = {"metadata": {"labels": {QUEUE: "third"}}}
        code, answer, _ = await call("PATCH", f"{JOBS}/train", third, MERGE)
        assert code == 422
        assert answer["details"]["causes"][0]["field"] == f"metadata.labels[{QUEUE}]"

    on_a_server(story)


def test_a_field_that_only_the_older_version_has_comes_back() -> None:
    async def story(call: Call) -> None:
        spec = {"controllerName": "a/b", "retryDelayMinutes": 7}
        code, made, _ = await call(
            "POST", f"{KUEUE}/admissionchecks", old("AdmissionCheck", "c", spec)
        )
        assert (code, made["spec"]["retryDelayMinutes"]) == (201, 7)
        new = KUEUE.replace("v1beta1", "v1beta2")
        labels = {"metadata": {"labels": {"a": "b"}}}
        code, made, _ = await call("PATCH", f"{new}/admissionchecks/c", labels, MERGE)
        assert code == 200
        assert "retryDelayMinutes" not in made["spec"]
        _, made, _ = await call("GET", f"{KUEUE}/admissionchecks/c")
        assert made["spec"]["retryDelayMinutes"] == 7
        assert made["metadata"]["labels"] == {"a": "b"}
        assert "annotations" not in made["metadata"]

    on_a_server(story)


def test_what_nothing_acts_on_has_a_condition_until_its_kind_is_defined() -> None:
    workflows = "/apis/argoproj.io/v1alpha1/namespaces/default/workflows"
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "workflows.argoproj.io"},
        "spec": {
            "group": "argoproj.io",
            "scope": "Namespaced",
            "names": {"kind": "Workflow", "plural": "workflows"},
            "versions": [version | {"schema": {"openAPIV3Schema": schema}}],
        },
    }

    async def story(call: Call) -> None:
        made = {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": {"generateName": "hello-"},
            "spec": {"entrypoint": "main", "templates": [{"name": "main"}]},
        }
        code, stored, (warning,) = await call("POST", workflows, made)
        assert code == 201
        assert stored["spec"] == made["spec"]
        assert "Argo Workflows makes its pods" in warning
        (condition,) = stored["status"]["conditions"]
        assert condition["type"] == "unisono.dev/Supported"
        assert (condition["status"], condition["message"]) == ("False", warning)
        # With a definition its author knows what acts on it; without, all is as before.
        code, _, _ = await call("POST", crds, definition)
        assert code == 201
        code, stored, warnings = await call("POST", workflows, made)
        assert (code, warnings, "status" in stored) == (201, [], False)

    on_a_server(story)


def test_rules_of_a_failure_policy_without_names_get_theirs() -> None:
    jobsets = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
    template = {
        "spec": {
            "template": {
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
            }
        }
    }

    async def story(call: Call) -> None:
        rules = [{"action": "FailJobSet"}, {"action": "RestartJobSet", "name": "mine"}]
        made = {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": {"name": "j", "namespace": "default"},
            "spec": {
                "failurePolicy": {"maxRestarts": 1, "rules": rules},
                "replicatedJobs": [{"name": "w", "replicas": 1, "template": template}],
            },
        }
        code, stored, _ = await call("POST", jobsets, made)
        assert code == 201, stored
        named = [one["name"] for one in stored["spec"]["failurePolicy"]["rules"]]
        assert named == ["failurePolicyRule0", "mine"]

    on_a_server(story)
