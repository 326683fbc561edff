"""What only shows when all objects are there."""

from __future__ import annotations

from tests.support.manifests import lines, sound, world


def cohort(name: str, parent: str = "", spec: str = "", version: str = "v1beta1") -> str:
    field = "parent" if version == "v1alpha1" else "parentName"
    return (
        f"apiVersion: kueue.x-k8s.io/{version}\nkind: Cohort\nmetadata: {{name: {name}}}\n"
        f"spec: {{{field}: '{parent}'{spec}}}\n"
    )


def queue(name: str, cohort: str, groups: str = "[]") -> str:
    return (
        f"apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {{name: {name}}}\n"
        f"spec: {{namespaceSelector: {{}}, cohortName: '{cohort}', resourceGroups: {groups}}}\n"
    )


# ---- cycles ------------------------------------------------------------------------------------


def test_a_cycle_is_reported_once_with_the_whole_way() -> None:
    made = world(cohort("a", "b"), cohort("b", "c"), cohort("c", "a"), cohort("d", "a"))
    assert not made.problems
    assert lines(made.warnings) == [
        "1.yaml: document 1: spec.parentName: makes a cycle (a -> b -> c -> a);"
        " no queue below it can admit anything"
    ]


def test_a_cohort_that_is_its_own_parent() -> None:
    (line,) = lines(world(cohort("a", "a")).warnings)
    assert "makes a cycle (a -> a)" in line


def test_two_cycles_are_two_warnings() -> None:
    made = world(cohort("a", "b"), cohort("b", "a"), cohort("x", "z"), cohort("z", "x"))
    assert [one.file for one in made.warnings] == ["1.yaml", "3.yaml"]


def test_the_field_is_named_as_in_the_users_version() -> None:
    *_, warning = world(cohort("a", "a", version="v1alpha1")).warnings
    assert warning.path == "spec.parent"


def test_a_deep_tree_and_a_missing_parent_are_fine() -> None:
    deep = [cohort(f"c{n}", f"c{n + 1}") for n in range(200)]
    assert world(*deep).problems == ()
    assert sound(queue("q", "nowhere")).warnings == ()


# ---- pools -------------------------------------------------------------------------------------

POOL_AB = "[{flavors: [a, b], resources: [{name: gpu, nominalQuota: 1}]}]"
POOL_BA = "[{flavors: [b, a], resources: [{name: gpu, nominalQuota: 1}]}]"
POOL_AC = "[{flavors: [a, c], resources: [{name: gpu, nominalQuota: 1}]}]"
POOL_CPU = "[{flavors: [a, b], resources: [{name: cpu, nominalQuota: 1}]}]"
ALONE_A = (
    "[{coveredResources: [gpu], flavors: [{name: a, resources: [{name: gpu, nominalQuota: 1}]}]}]"
)


def unshared(*texts: str) -> list[tuple[str, str]]:
    made = sound(*texts)
    return [(one.file, one.message) for one in made.warnings if one.code == "PooledQuotaNotShared"]


def test_a_pool_beside_single_flavors_shares_nothing() -> None:
    ((file, message),) = unshared(queue("x", "c", POOL_AB), queue("z", "c", ALONE_A))
    assert file == "1.yaml"
    assert "shares no quota with ClusterQueue z" in message


def test_pools_of_one_set_share_in_any_order() -> None:
    assert unshared(queue("x", "c", POOL_AB), queue("z", "c", POOL_BA)) == []


def test_pools_of_other_sets_do_not() -> None:
    assert len(unshared(queue("x", "c", POOL_AB), queue("z", "c", POOL_AC))) == 2


def test_other_resources_or_other_trees_do_not_matter() -> None:
    assert unshared(queue("x", "c", POOL_AB), queue("z", "c", POOL_CPU)) == []
    assert unshared(queue("x", "c", POOL_AB), queue("z", "d", ALONE_A)) == []
    assert unshared(queue("x", "", POOL_AB), queue("z", "", ALONE_A)) == []


def test_the_whole_tree_counts() -> None:
    texts = (
        queue("x", "left", POOL_AB),
        queue("z", "right", ALONE_A),
        cohort("left", "root"),
        cohort("right", "root"),
    )
    assert len(unshared(*texts)) == 1
    own = cohort("root", "", f", resourceGroups: {ALONE_A}")
    ((_, message),) = unshared(queue("x", "left", POOL_AB), cohort("left", "root"), own)
    assert "Cohort root" in message


def test_a_long_list_of_others_is_cut() -> None:
    texts = [queue("x", "c", POOL_AB)] + [queue(f"z{n}", "c", ALONE_A) for n in range(5)]
    ((_, message),) = unshared(*texts)
    assert "z0, ClusterQueue z1, ClusterQueue z2 and 2 more" in message
