"""CustomResourceDefinitions: structural, self-contained, and small enough to be applied."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from unisono.kinds.known import KNOWN
from unisono.kinds.shapes.crds import MOST_BYTES, crd_of, crds_of, custom_groups
from unisono.kinds.shapes.served import read_served
from unisono.kube.form import Json

pytestmark = pytest.mark.slow  # a hundred pods are written out in full


@pytest.fixture(scope="module")
def definitions() -> dict[str, Json]:
    return {one["metadata"]["name"]: one for one in crds_of(custom_groups())}


def _nodes(node: Json, path: str) -> Iterator[tuple[str, Json]]:
    yield path, node
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            yield from _nodes(node[key], f"{path}[]")
    for name, child in node.get("properties", {}).items():
        yield from _nodes(child, f"{path}.{name}")


def _schema(definition: Json, version: str) -> Json:
    (found,) = [one for one in definition["spec"]["versions"] if one["name"] == version]
    schema: Json = found["schema"]["openAPIV3Schema"]
    return schema


def test_all_groups_but_the_built_in_ones(definitions: dict[str, Json]) -> None:
    assert "batch" not in custom_groups()
    assert {
        "clusterqueues.kueue.x-k8s.io",
        "trainjobs.trainer.kubeflow.org",
        "rayclusters.ray.io",
        "jobs.batch.volcano.sh",
        "nodepools.karpenter.sh",
        "policies.unisono.dev",
    } <= set(definitions)


def test_client_side_apply_can_remember_each_of_them(definitions: dict[str, Json]) -> None:
    sizes = {name: len(json.dumps(one)) for name, one in definitions.items()}
    assert max(sizes.values()) < MOST_BYTES


def test_schemas_are_structural(definitions: dict[str, Json]) -> None:
    for name, definition in definitions.items():
        for version in definition["spec"]["versions"]:
            for path, node in _nodes(version["schema"]["openAPIV3Schema"], name):
                assert "$ref" not in node, path
                assert not [key for key in node if key.startswith("x-kubernetes-patch")], path
                assert (
                    "type" in node
                    or node.get("x-kubernetes-int-or-string")
                    or node.get("x-kubernetes-preserve-unknown-fields")
                ), path
                assert node.get("format") not in ("quantity", "micro-time"), path


def test_items_are_always_known_by_their_keys(definitions: dict[str, Json]) -> None:
    for name, definition in definitions.items():
        for version in definition["spec"]["versions"]:
            for path, node in _nodes(version["schema"]["openAPIV3Schema"], name):
                items = node.get("items", {})
                for key in node.get("x-kubernetes-list-map-keys", ()):
                    is_required = key in items.get("required", ())
                    assert is_required or "default" in items["properties"][key], path


def test_versions_are_listed_only_if_nothing_is_lost_between_them(
    definitions: dict[str, Json],
) -> None:
    def versions(name: str) -> list[str]:
        return [one["name"] for one in definitions[name]["spec"]["versions"]]

    assert versions("resourceflavors.kueue.x-k8s.io") == ["v1beta2", "v1beta1"]
    assert versions("localqueues.kueue.x-k8s.io") == ["v1beta2", "v1beta1"]
    assert versions("clusterqueues.kueue.x-k8s.io") == ["v1beta2", "v1beta1"]
    assert versions("workloads.kueue.x-k8s.io") == ["v1beta2"]
    for version in ("v1beta1", "v1beta2"):  # each keeps the other's names
        queue = _schema(definitions["clusterqueues.kueue.x-k8s.io"], version)
        assert {"cohort", "cohortName"} <= set(queue["properties"]["spec"]["properties"])
        flavor = _schema(definitions["resourceflavors.kueue.x-k8s.io"], version)
        assert "nodeSelector" in flavor["properties"]["spec"]["properties"]


def test_only_the_first_fields_are_described(definitions: dict[str, Json]) -> None:
    queue = _schema(definitions["clusterqueues.kueue.x-k8s.io"], "v1beta2")
    spec = queue["properties"]["spec"]
    assert queue["description"]
    assert spec["description"]
    assert spec["properties"]["cohortName"]["description"]
    deep = spec["properties"]["preemption"]["properties"]["reclaimWithinCohort"]
    assert "description" not in deep


def test_a_flavor_is_a_name_or_an_object(definitions: dict[str, Json]) -> None:
    queue = _schema(definitions["clusterqueues.kueue.x-k8s.io"], "v1beta2")
    group = queue["properties"]["spec"]["properties"]["resourceGroups"]["items"]
    flavor = group["properties"]["flavors"]["items"]
    assert flavor == {"x-kubernetes-preserve-unknown-fields": True}


def test_what_is_beside_the_schema(definitions: dict[str, Json]) -> None:
    (version,) = definitions["nodepools.karpenter.sh"]["spec"]["versions"]
    assert version["subresources"]["scale"]["specReplicasPath"] == ".spec.replicas"
    assert version["subresources"]["status"] == {}
    assert {"name": "Nodes", "type": "string", "jsonPath": ".status.nodes"} in version[
        "additionalPrinterColumns"
    ]
    (workload,) = definitions["workloads.kueue.x-k8s.io"]["spec"]["versions"]
    assert workload["selectableFields"] == [{"jsonPath": ".status.admission.clusterQueue"}]


def test_too_many_pods_are_left_open_step_by_step() -> None:
    pods = {f"pods{number}": {"$ref": "core.v1.PodTemplateSpec"} for number in range(8)}
    spec = {"type": "object", "properties": pods}
    names = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    meta = {"metadata": {"$ref": "meta.v1.ObjectMeta"}}
    entry = {
        "kind": "Large",
        "plural": "larges",
        "singular": "large",
        "namespaced": True,
        "versions": [
            {
                "name": "v1",
                "schema": {"type": "object", "properties": {**names, **meta, "spec": spec}},
            }
        ],
    }
    made = crd_of(list(read_served(entry, "example.com")))
    assert len(json.dumps(made)) < MOST_BYTES
    schema = _schema(made, "v1")["properties"]["spec"]["properties"]["pods0"]
    pod = schema["properties"]["spec"]["properties"]
    open_object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert pod["ephemeralContainers"]["items"] | open_object == pod["ephemeralContainers"]["items"]
    assert pod["containers"]["items"]["properties"]["resources"]["properties"]["limits"]


def test_amounts_and_counts_have_bounds(definitions: dict[str, Json]) -> None:
    for name, definition in definitions.items():
        group, kind = definition["spec"]["group"], definition["spec"]["names"]["kind"]
        for version in definition["spec"]["versions"]:
            is_known = (f"{group}/{version['name']}", kind) in KNOWN.kinds
            for path, node in _nodes(version["schema"]["openAPIV3Schema"], name):
                if node.get("pattern", "").endswith("?$") and "KMGTPE" in node["pattern"]:
                    may_be_negative = name == "policies.unisono.dev"
                    assert (node.get("minimum") == 0) != may_be_negative, path
                    assert ("-)?((" in node["pattern"].split("[0-9]")[0]) == may_be_negative, path
                is_count = path.rpartition(".")[2] in ("replicas", "parallelism", "minMember")
                if (
                    is_known
                    and is_count
                    and node.get("type") == "integer"
                    and ".status" not in path
                ):
                    assert node.get("minimum", -1) >= 0, path
