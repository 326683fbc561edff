"""What can be said of a job at the moment it is submitted."""

from __future__ import annotations

from unisono.engine.model.names import Instant
from unisono.kinds.submission import why_never
from unisono.kube.form import Json

NOW = Instant(0)


def kueue(kind: str, name: str, spec: Json, namespace: str = "") -> Json:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }


def documents(gpus: int) -> list[Json]:
    quota = {"name": "nvidia.com/gpu", "nominalQuota": 4}
    group = {
        "coveredResources": ["nvidia.com/gpu"],
        "flavors": [{"name": "f", "resources": [quota]}],
    }
    container = {
        "name": "a",
        "image": "x",
        "resources": {"limits": {"nvidia.com/gpu": gpus}},
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "labels": {"kueue.x-k8s.io/queue-name": "lq"}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }
    return [
        kueue("ResourceFlavor", "f", {}),
        kueue("ClusterQueue", "cq", {"namespaceSelector": {}, "resourceGroups": [group]}),
        kueue("LocalQueue", "lq", {"clusterQueue": "cq"}, "default"),
        job,
    ]


def test_what_fits_into_an_empty_cluster_may_start_one_day() -> None:
    assert why_never(documents(4), now=NOW) == ""


def test_what_does_not_fit_even_then_never_will() -> None:
    text = why_never(documents(5), now=NOW)
    assert "5" in text
    assert "4" in text


def test_documents_that_cannot_be_read_say_nothing() -> None:
    broken = documents(5)
    broken[1]["spec"]["queueingStrategy"] = "Foo"
    assert why_never(broken, now=NOW) == ""
