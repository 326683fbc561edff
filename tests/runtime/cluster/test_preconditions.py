"""What must be true of a cluster before our controllers work there."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from unisono.control.assembly import OPERATORS
from unisono.control.rbac import PARTS, Right, rights, rights_at_home
from unisono.kube.form import Json
from unisono.runtime import AnswerIsNo
from unisono.runtime.cluster.preconditions import (
    Upstream,
    check_rights,
    holders_of_leases,
    missing_rights,
    operators_to_run,
    upstream_operators,
)


def deployment(name: str, image: str, replicas: int = 1) -> Json:
    return {
        "metadata": {"namespace": "system", "name": name},
        "spec": {
            "replicas": replicas,
            "template": {"spec": {"containers": [{"name": "manager", "image": image}]}},
        },
    }


def rule(right: Right, *verbs: str) -> Json:
    return {"apiGroups": [right.group], "resources": [right.resource], "verbs": list(verbs)}


def test_every_right_is_needed_and_none_is_missed() -> None:
    wanted = [*(right for part in PARTS for right in rights(part)), *rights_at_home()]
    assert missing_rights(wanted, [rule(one, *one.verbs) for one in wanted]) == []
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    assert missing_rights(wanted, [everything]) == []
    without_patch = [rule(one, *(set(one.verbs) - {"patch"})) for one in wanted]
    lacking = missing_rights(wanted, without_patch)
    assert {one.full_name for one in lacking} == {
        one.full_name for one in wanted if "patch" in one.verbs
    }
    assert all(tuple(one.verbs) == ("patch",) for one in lacking)


def test_a_rule_for_one_object_by_name_is_not_a_right_to_all() -> None:
    wanted = Right("", "pods", ("get",))
    narrow = {**rule(wanted, "get"), "resourceNames": ["one"]}
    assert missing_rights([wanted], [narrow]) == [wanted._replace(verbs=["get"])]


def test_an_installation_that_only_queues_needs_no_rights_of_operators() -> None:
    class Api:
        """Answers with the rights of an installation that only queues."""

        async def create(self, review: Json) -> Json:
            has = (*rights("queueing"), *rights_at_home())
            return {"status": {"resourceRules": [rule(one, *one.verbs) for one in has]}}

    api: Any = Api()
    asyncio.run(check_rights(api, "home", ("queueing",)))
    with pytest.raises(AnswerIsNo) as refused:
        asyncio.run(check_rights(api, "home", ("queueing", "ray")))
    first, *_, last = str(refused.value).splitlines()
    assert first == "not allowed: get, list, watch, create services (ray)"
    assert "not allowed: create pods (ray)" in str(refused.value)
    assert last.startswith("`unisono install` makes roles")


@pytest.mark.parametrize(
    ("name", "image", "operator"),
    [
        ("kueue-controller-manager", "registry.corp/renamed:1", "kueue"),
        ("queueing", "registry.k8s.io/kueue/kueue:v0.16.0", "kueue"),
        ("a", "registry.k8s.io/jobset/jobset:v0.10.1", "jobset"),
        ("a", "ghcr.io/kubeflow/trainer/trainer-controller-manager:v2.1.0", "trainer"),
        ("a", "docker.io/kubeflow/training-operator:v1", "kubeflow"),
        ("a", "quay.io/kuberay/operator:v1.5.0", "ray"),
        ("a", "docker.io/volcanosh/vc-scheduler@sha256:00", "volcano"),
    ],
)
def test_operators_of_others_are_known_by_name_or_image(
    name: str, image: str, operator: str
) -> None:
    assert upstream_operators([deployment(name, image)]) == [Upstream(operator, f"system/{name}")]


def test_strangers_and_those_scaled_to_zero_do_not_count() -> None:
    asleep = deployment("kueue-controller-manager", "kueue", replicas=0)
    assert upstream_operators([asleep, deployment("web", "nginx:1.2")]) == []


def test_a_scheduler_elsewhere_is_known_by_its_lease() -> None:
    def lease(name: str, renewed: str, holder: str = "another") -> Json:
        spec = {"holderIdentity": holder, "renewTime": renewed}
        return {"metadata": {"name": name, "namespace": "system"}, "spec": spec}

    now = datetime(2026, 1, 1, 12, 0, tzinfo=UTC).timestamp()
    kueue, moment = "c1f6bfd2.kueue.x-k8s.io", "2026-01-01T11:59:50.000000Z"
    assert holders_of_leases([lease(kueue, moment), lease("mine", moment)], now) == [
        Upstream("kueue", f"lease system/{kueue}")
    ]
    gone = [lease(kueue, "2026-01-01T11:58:00Z"), lease(kueue, moment, holder="")]
    assert holders_of_leases(gone, now) == []


def test_ours_step_aside() -> None:
    found = [Upstream("jobset", "a/b"), Upstream("ray", "c/d")]
    assert operators_to_run(None, (), found) == ("trainer", "volcano", "kubeflow", "slurm")
    assert operators_to_run(None, ("ray",), found) == (
        "trainer",
        "volcano",
        "ray",
        "kubeflow",
        "slurm",
    )
    assert operators_to_run(("trainer", "ray"), (), found) == ("trainer",)
    assert operators_to_run((), (), []) == ()


def test_nothing_works_beside_kueue_unless_it_is_said_so() -> None:
    found = [Upstream("kueue", "kueue-system/kueue-controller-manager")]
    with pytest.raises(AnswerIsNo, match=r"Kueue runs here \(kueue-system/"):
        operators_to_run(None, (), found)
    assert operators_to_run(None, ("kueue",), found) == OPERATORS
