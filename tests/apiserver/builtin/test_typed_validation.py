"""Custom kinds with rules of ours: problems are causes, warnings are warnings."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.apiserver.surroundings import Around, refusals, served_as, strategy_of
from unisono.apiserver.builtin.typed_validation import TypedStrategy
from unisono.apiserver.objects import Json

GROUP = "kueue.x-k8s.io"


def queue(**spec: Any) -> Json:
    return {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "q"},
        "spec": {"namespaceSelector": {}, **spec},
    }


def group(**fields: Any) -> Json:
    quota = {"name": "cpu", "nominalQuota": 4}
    flavor = {"name": "f", "resources": [quota]}
    return {"coveredResources": ["cpu"], "flavors": [flavor], **fields}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"resourceGroups": [group()]}, []),
        ({"queueingStrategy": "Foo"}, [("NotSupported", "spec.queueingStrategy")]),
        (
            {"resourceGroups": [group(coveredResources=[])]},
            [
                ("Required", "spec.resourceGroups[0].coveredResources"),
                ("Invalid", "spec.resourceGroups[0].flavors[0].resources[0].name"),
            ],
        ),
        (
            {"preemption": {"borrowWithinCohort": {"policy": "LowerPriority"}}},
            [("Invalid", "spec.preemption.borrowWithinCohort.policy")],
        ),
        (
            {"resourceGroups": [group(), group()]},
            [
                ("Duplicate", "spec.resourceGroups[1].coveredResources[0]"),
                ("Duplicate", "spec.resourceGroups[1].flavors[0]"),
            ],
        ),
        ({"resourceGroups": [group(flavors=[])]}, [("Required", "spec.resourceGroups[0].flavors")]),
        ({"fairSharing": {"weight": True}}, [("TypeInvalid", "spec.fairSharing.weight")]),
        ({"notAField": 1}, []),  # the schema's business
    ],
)
def test_a_cluster_queue(spec: Json, expected: list[tuple[str, str]]) -> None:
    assert refusals(f"{GROUP}/clusterqueues", queue(**spec)) == expected


def test_what_works_differently_than_upstream_is_a_warning() -> None:
    context = Around()
    pool = {"flavors": ["a", "b"], "resources": [{"name": "gpu", "nominalQuota": 8}]}
    made = queue(resourceGroups=[{**pool, "coveredResources": ["gpu"]}], namespaceSelector=None)
    assert refusals(f"{GROUP}/clusterqueues", made, context=context) == []
    assert len(context.warnings) == 2
    assert (
        "spec.resourceGroups[0].resources: Kueue only knows quota per flavor"
        in (context.warnings[0])
    )
    assert context.warnings[1].startswith("spec.namespaceSelector: is absent")


def test_an_update_of_the_status_is_not_judged_again() -> None:
    old = queue(queueingStrategy="Foo")
    new = deepcopy(old)
    new["status"] = {"pendingWorkloads": 1}
    new["metadata"]["resourceVersion"] = "5"
    assert refusals(f"{GROUP}/clusterqueues", new, old) == []
    new["metadata"]["labels"] = {"a": "b"}
    assert refusals(f"{GROUP}/clusterqueues", new, old) == [
        ("NotSupported", "spec.queueingStrategy")
    ]


def test_older_versions_are_judged_in_their_own_words() -> None:
    served = served_as(f"{GROUP}/clusterqueues", "v1beta1")
    old = {**queue(cohort="A_b"), "apiVersion": f"{GROUP}/v1beta1"}
    causes = list(strategy_of(served).check(old, None, Around()))
    assert [cause.field for cause in causes] == ["spec.cohort"]


def test_kinds_without_a_manifest_of_ours_have_no_such_strategy() -> None:
    assert TypedStrategy.of(served_as("apps/deployments")) is None
    known = TypedStrategy.of(served_as("trainer.kubeflow.org/trainjobs"))
    assert known is not None
    assert not known.is_typed
    assert not known.allows_unconditional_update
