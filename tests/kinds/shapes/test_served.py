"""Kinds as they are read from the data files."""

from __future__ import annotations

from unisono.kinds.shapes.served import BUILT_IN, Served, definition, read_served, served_kinds
from unisono.kinds.shapes.shape import Shape


def find(api_version: str, kind: str) -> Served:
    (found,) = [one for one in served_kinds() if (one.api_version, one.kind) == (api_version, kind)]
    return found


def test_a_pod_template_is_the_same_everywhere() -> None:
    job = find("batch/v1", "Job").shape.field("spec")
    assert job is not None
    volcano = find("batch.volcano.sh/v1alpha1", "Job").shape.field("spec")
    assert volcano is not None
    tasks = volcano.field("tasks")
    assert tasks is not None
    assert tasks.items is not None
    mine, theirs = job.field("template"), tasks.items.field("template")
    assert mine is not None
    assert theirs is not None
    assert mine.raw["properties"] is theirs.raw["properties"]


def test_a_port_is_known_by_number_and_protocol() -> None:
    container = Shape(definition("core.v1.Container"), definition)
    ports = container.field("ports")
    assert ports is not None
    assert ports.list_type == "map"
    assert ports.list_keys == ("containerPort", "protocol")
    assert ports.merge_key == "containerPort"
    assert ports.items is not None
    protocol = ports.items.field("protocol")
    assert protocol is not None
    assert protocol.raw["default"] == "TCP"


def test_amounts_times_and_number_or_text() -> None:
    requirements = Shape(definition("core.v1.ResourceRequirements"), definition)
    limits = requirements.field("limits")
    assert limits is not None
    assert limits.values is not None
    assert limits.values.is_quantity
    assert limits.values.is_int_or_string
    metadata = Shape(definition("meta.v1.ObjectMeta"), definition)
    created = metadata.field("creationTimestamp")
    assert created is not None
    assert created.raw["format"] == "date-time"
    probe = Shape(definition("core.v1.HTTPGetAction"), definition)
    port = probe.field("port")
    assert port is not None
    assert port.is_int_or_string
    assert not port.is_quantity


def test_fields_that_came_and_went_are_all_known() -> None:
    pod = definition("core.v1.PodSpec")["properties"]
    assert {"schedulingGroup", "workloadRef", "resourceClaims", "evictionResponders"} <= set(pod)
    assert "scheduling" in definition("batch.v1.JobSpec")["properties"]
    train_job = find("trainer.kubeflow.org/v1alpha1", "TrainJob").shape.field("spec")
    assert train_job is not None
    assert {"podTemplateOverrides", "runtimePatches"} <= set(train_job.names)


def test_a_queue_may_have_one_quota_for_several_flavors() -> None:
    for version in ("v1beta1", "v1beta2"):
        queue = find(f"kueue.x-k8s.io/{version}", "ClusterQueue").shape.field("spec")
        assert queue is not None
        groups = queue.field("resourceGroups")
        assert groups is not None
        assert groups.items is not None
        group = groups.items
        assert {"resources", "flavors", "coveredResources"} <= set(group.names)
        assert group.raw["required"] == ["flavors"]
        flavors = group.field("flavors")
        assert flavors is not None
        assert flavors.items is not None
        assert flavors.items.type == ""  # a name or an object
        assert flavors.items.is_open
        assert "validations" not in str(group.raw)
        preemption = queue.field("preemption")
        assert preemption is not None
        assert preemption.field("minRuntimeSeconds") is not None


def test_the_preferred_version_comes_first() -> None:
    versions = [one.version for one in served_kinds() if one.resource == "cohorts.kueue.x-k8s.io"]
    assert versions == ["v1beta2", "v1beta1", "v1alpha1"]
    old = find("kueue.x-k8s.io/v1beta1", "ClusterQueue")
    assert "use kueue.x-k8s.io/v1beta2" in old.deprecated
    assert not old.is_storage


def test_built_in_groups() -> None:
    assert {"", "batch", "scheduling.k8s.io", "flowcontrol.apiserver.k8s.io"} <= BUILT_IN
    assert not {"kueue.x-k8s.io", "ray.io", "karpenter.k8s.aws"} & BUILT_IN


def test_a_schema_may_be_a_reference() -> None:
    entry = {
        "kind": "Thing",
        "plural": "things",
        "singular": "thing",
        "namespaced": True,
        "versions": [{"name": "v1", "schema": {"$ref": "core.v1.Pod"}}],
    }
    (served,) = read_served(entry, "example.com")
    assert served.is_storage
    assert "properties" in served.schema
    assert served.key == "example.com/things"
