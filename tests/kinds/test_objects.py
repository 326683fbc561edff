"""Documents to objects: looked up, decoded, checked, found again."""

from __future__ import annotations

from tests.support.manifests import objects, problems, warnings


def namespace(name: str) -> str:
    return f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n"


def local_queue(name: str, meta: str = "") -> str:
    return (
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\n"
        f"metadata: {{name: {name}{meta}}}\nspec: {{clusterQueue: q}}\n"
    )


def test_objects_are_found_by_kind_and_name() -> None:
    text = "---\n".join(
        [local_queue("b"), local_queue("a", ", namespace: team"), namespace("team")]
    )
    made = objects(text)
    assert [entry.name for entry in made.entries("LocalQueue")] == ["b", "a"]
    assert [entry.name for entry in made.entries("LocalQueue", namespace="team")] == ["a"]
    assert made.entries("Cohort") == []
    found = made.find("LocalQueue", "b", namespace="default")
    assert found is not None
    assert (found.namespace, found.index, found.place) == ("default", 0, "document 1 of f.yaml")
    assert made.find("LocalQueue", "b", namespace="team") is None
    assert made.find("Namespace", "team") is not None
    assert made.find("LocalQueue", "a", namespace="team", group="kueue.x-k8s.io") is not None
    assert made.find("LocalQueue", "a", namespace="team", group="other") is None
    assert [entry.index for entry in made.all()] == [0, 1, 2]


def test_an_object_that_is_given_twice_names_both_places() -> None:
    made = objects("---\n".join([namespace("a"), namespace("b"), namespace("a")]))
    (problem,) = made.problems
    assert (problem.document, problem.path) == (3, "metadata.name")
    assert problem.message == 'Namespace "a" is already defined in document 1 of f.yaml'


def test_the_same_name_in_another_namespace_or_group_is_another_object() -> None:
    volcano = (
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\n"
        "spec: {tasks: [{name: t, replicas: 1, template: {spec: {restartPolicy: Never,"
        " containers: [{name: c}]}}}]}\n"
    )
    plain = (
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n"
        "spec: {template: {spec: {restartPolicy: Never, containers: [{name: c}]}}}\n"
    )
    text = "---\n".join([plain, volcano, local_queue("a"), local_queue("a", ", namespace: team")])
    made = objects(text)
    assert made.problems == []
    assert len(list(made.all())) == 4
    first = made.find("Job", "j", namespace="default")
    assert first is not None
    assert first.kind.group == "batch"
    second = made.find("Job", "j", namespace="default", group="batch.volcano.sh")
    assert second is not None
    assert second.index == 1
    assert made.find("Job.batch.volcano.sh", "j", namespace="default") is second
    assert [entry.index for entry in made.entries("Job")] == [0, 1]
    assert [entry.index for entry in made.entries("Job.batch.volcano.sh")] == [1]
    assert [entry.index for entry in made.entries("Job.batch", namespace="default")] == [0]
    assert made.exists("Job.batch", "j", namespace="default")
    assert not made.exists("Job.ray.io", "j", namespace="default")


def test_what_is_broken_is_known_by_its_group_as_well() -> None:
    made = objects("apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: 5\n")
    assert made.exists("Job", "j", namespace="default")
    assert made.exists("Job.batch", "j", namespace="default")
    assert not made.exists("Job.batch.volcano.sh", "j", namespace="default")
    assert not made.exists("Job", "j", namespace="team")


def test_a_made_up_name_ends_in_the_place_of_the_document() -> None:
    text = local_queue("x").replace("name: x", "generateName: x-")
    made = objects(f"{text}---\n{text}")
    assert made.problems == []
    assert [entry.name for entry in made.all()] == ["x-00000", "x-00001"]


def test_kinds_that_no_decision_uses_are_ignored_with_a_warning() -> None:
    text = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nanything: goes\n"
    assert problems(text) == []
    ((code, path),) = warnings(text)
    assert (code, path) == ("KindIgnored", "kind")
    made = objects("apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueu\n")
    (warning,) = made.warnings
    assert warning.message == (
        'kind ClusterQueu is not used by a decision; ignored; did you mean "ClusterQueue"?'
    )


def test_an_unknown_version_names_those_that_are_known() -> None:
    assert problems("apiVersion: kueue.x-k8s.io/v1\nkind: LocalQueue\n") == [
        (
            "apiVersion",
            "LocalQueue is not known in kueue.x-k8s.io/v1; "
            "known are kueue.x-k8s.io/v1beta2, kueue.x-k8s.io/v1beta1",
        )
    ]


def test_metadata_is_checked_even_if_the_rest_is_broken() -> None:
    text = "apiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\nmetadata: {}\nspec: {x: 1}\n"
    assert [path for path, _ in problems(text)] == [
        "spec.x",
        "spec.clusterQueue",
        "metadata.name",
    ]


def test_what_is_broken_still_exists() -> None:
    made = objects(local_queue("a").replace("clusterQueue: q", "clusterQueue: 5"))
    assert made.problems
    assert made.find("LocalQueue", "a", namespace="default") is None
    assert made.exists("LocalQueue", "a", namespace="default")
    assert not made.exists("LocalQueue", "b", namespace="default")
    broken = "apiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\nmetadata: 5\nspec: {}\n"
    assert objects(broken).problems


def test_old_versions_are_kept_in_the_stored_one() -> None:
    made = objects(
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: q}\n"
        "spec: {cohort: c, namespaceSelector: {}}\n"
    )
    (entry,) = made.all()
    assert entry.manifest.api_version == "kueue.x-k8s.io/v1beta2"
    assert entry.manifest.spec.cohort_name == "c"
    assert entry.kind.version == "v1beta1"
