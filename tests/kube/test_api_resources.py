"""From words to kinds: which of several is meant, and what is said about a word that means none."""

from __future__ import annotations

import random
from typing import Any

import orjson
import pytest

from tests.kube.fake_api import FakeApi
from tests.kube.virtual import VirtualClock, run
from unisono.kube import client_over
from unisono.kube.api_resources import ApiResources, discover
from unisono.kube.errors import BadResponse, UnknownKind
from unisono.kube.transport import Answer


def _kind(plural: str, kind: str, *short: str, categories: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "resource": plural,
        "responseKind": {"group": "", "version": "", "kind": kind},
        "scope": "Cluster" if kind == "Node" else "Namespaced",
        "singularResource": kind.lower(),
        "verbs": ["get", "list"],
        "shortNames": list(short),
        "categories": list(categories),
    }


def _group(name: str, **versions: list[dict[str, Any]]) -> dict[str, Any]:
    found = [{"version": version, "resources": kinds} for version, kinds in versions.items()]
    return {"metadata": {"name": name} if name else {}, "versions": found}


CORE = [_group("", v1=[_kind("pods", "Pod", "po", categories=("all",)), _kind("nodes", "Node")])]
OTHERS = [
    _group("batch", v1=[_kind("jobs", "Job", categories=("all",))]),
    _group(
        "kueue.x-k8s.io",
        v1beta2=[_kind("localqueues", "LocalQueue", "queue", "lq")],
        v1beta1=[_kind("localqueues", "LocalQueue", "lq"), _kind("olds", "Old")],
    ),
    _group("batch.volcano.sh", v1alpha1=[_kind("jobs", "Job", "vcjob")]),
    _group("scheduling.volcano.sh", v1beta1=[_kind("queues", "Queue", "q")]),
]


def _lookup(core: Any, others: Any) -> ApiResources:
    api = FakeApi()
    for groups in (core, others):
        content = {"kind": "APIGroupDiscoveryList", "items": groups}
        answer = Answer(200, {}, orjson.dumps(content))
        api.faults.append(lambda _, answer=answer: answer)  # type: ignore[misc]  # a Fault it is
    client = client_over(api, clock=VirtualClock(), random_source=random.Random(1))
    return run(discover(client))


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("pods", "pods"),
        ("pod", "pods"),
        ("Pod", "pods"),
        ("po", "pods"),
        ("jobs", "jobs.batch"),
        ("job.batch", "jobs.batch"),
        ("jobs.batch.volcano.sh", "jobs.batch.volcano.sh"),
        ("jobs.v1alpha1.batch.volcano.sh", "jobs.batch.volcano.sh"),
        ("vcjob", "jobs.batch.volcano.sh"),
        ("lq", "localqueues.kueue.x-k8s.io"),
        # A full name goes before a short one, though its group comes later.
        ("queue", "queues.scheduling.volcano.sh"),
        ("old", "olds.kueue.x-k8s.io"),
    ],
)
def test_a_word_means_one_kind(word: str, meant: str) -> None:
    assert _lookup(CORE, OTHERS).find(word).full_name == meant


def test_the_version_that_stands_first_is_used() -> None:
    found = _lookup(CORE, OTHERS).find("lq")
    assert found.kind == ("kueue.x-k8s.io/v1beta2", "LocalQueue")
    assert found.resource.path(namespace="a") == (
        "/apis/kueue.x-k8s.io/v1beta2/namespaces/a/localqueues"
    )


def test_kinds_without_namespaces() -> None:
    assert not _lookup(CORE, OTHERS).find("nodes").resource.namespaced


def test_several_words_and_categories() -> None:
    found = _lookup(CORE, OTHERS).find_all("lq,all,pods")
    assert [each.full_name for each in found] == [
        "localqueues.kueue.x-k8s.io",
        "pods",
        "jobs.batch",
    ]


def test_a_word_that_means_nothing() -> None:
    with pytest.raises(UnknownKind, match="serves no kind 'podz'; did you mean \"pod"):
        _lookup(CORE, OTHERS).find("podz")
    with pytest.raises(UnknownKind, match=r"serves no kind 'pods\.batch'"):
        _lookup(CORE, OTHERS).find("pods.batch")


def test_an_answer_of_an_old_api() -> None:
    api = FakeApi()
    api.faults.append(lambda _: Answer(200, {}, b'{"kind": "APIVersions"}'))
    client = client_over(api, clock=VirtualClock(), random_source=random.Random(1))
    with pytest.raises(BadResponse, match=r"before Kubernetes 1\.27"):
        run(discover(client))
