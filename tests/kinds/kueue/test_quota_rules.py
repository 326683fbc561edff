"""Resource groups: per flavor, pooled, refused, forgiven."""

from __future__ import annotations

import pytest

from tests.support.manifests import only, problems, warnings
from unisono.engine.model import queue as engine
from unisono.kinds.kueue.queue_rules import cohort_of, queue_of


def queue(groups: str, cohort: str = "team") -> str:
    return (
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: q}\n"
        f"spec:\n  namespaceSelector: {{}}\n  cohortName: '{cohort}'\n  resourceGroups: {groups}\n"
    )


def cohort(groups: str, parent: str = "org") -> str:
    return (
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: c}\n"
        f"spec:\n  parentName: '{parent}'\n  resourceGroups: {groups}\n"
    )


def groups_of(text: str) -> tuple[engine.ResourceGroup, ...]:
    return queue_of(only(text), strict=False).groups


GPU = "{name: gpu, nominalQuota: 8}"
ONE = f"[{{coveredResources: [gpu], flavors: [{{name: f, resources: [{GPU}]}}]}}]"
GROUP = "spec.resourceGroups[0]"


def test_quota_per_flavor() -> None:
    (group,) = groups_of(
        queue(
            "[{coveredResources: [cpu, memory], flavors: [{name: f, resources: ["
            "{name: cpu, nominalQuota: 1500m, borrowingLimit: 2, lendingLimit: 1},"
            "{name: memory, nominalQuota: 64Gi}]}]}]"
        )
    )
    assert group == engine.ResourceGroup(
        covered=group.covered,
        flavors=(
            engine.FlavorQuota(
                group.flavors[0].flavor,
                (
                    engine.ResourceQuota(
                        resource=group.covered[0],
                        nominal=1500,
                        borrowing_limit=2000,
                        lending_limit=1000,
                    ),
                    engine.ResourceQuota(resource=group.covered[1], nominal=64 * 2**30),
                ),
            ),
        ),
    )


def test_an_unlimited_quota() -> None:
    (group,) = groups_of(queue(ONE.replace("8", "9223372036854775807")))
    assert group.flavors[0].resources[0].nominal == 2**63 - 1


# ---- pools -------------------------------------------------------------------------------------

POOL = "[{flavors: [a, b], resources: [{name: gpu, nominalQuota: 100, borrowingLimit: 5}]}]"


def test_a_pool_has_one_quota_for_all_flavors() -> None:
    assert problems(queue(POOL)) == []
    assert warnings(queue(POOL)) == [("PooledGroup", f"{GROUP}.resources")]
    (group,) = groups_of(queue(POOL))
    assert [quota.flavor for quota in group.flavors] == ["a", "b"]
    assert group.covered == ("gpu",)
    assert group.pool == (
        engine.ResourceQuota(resource=group.covered[0], nominal=100, borrowing_limit=5),
    )
    assert all(quota.resources == () for quota in group.flavors)


def test_a_pool_may_say_what_it_covers() -> None:
    both = "[{coveredResources: [cpu, gpu], flavors: [a], resources: [%s]}]"
    quotas = f"{GPU}, {{name: cpu, nominalQuota: 1}}"
    (group,) = groups_of(queue(both % quotas))
    assert group.pool is not None
    assert [quota.resource for quota in group.pool] == ["cpu", "gpu"]
    assert problems(queue(both % GPU)) == [(f"{GROUP}.resources", "has no quota for cpu")]


def test_a_cohort_may_have_a_pool() -> None:
    assert warnings(cohort(POOL)) == [("PooledGroup", f"{GROUP}.resources")]
    (group,) = cohort_of(only(cohort(POOL))).groups
    assert group.pool is not None


def test_a_pool_is_refused_in_strict_mode() -> None:
    assert [path for path, _ in problems(queue(POOL), strict=True)] == [f"{GROUP}.resources"]


@pytest.mark.parametrize(
    ("groups", "path", "words"),
    [
        (
            f"[{{flavors: [a, {{name: b, resources: [{GPU}]}}], resources: [{GPU}]}}]",
            f"{GROUP}.flavors",
            "mixes flavor names and flavors with quota",
        ),
        (
            "[{coveredResources: [gpu], flavors: [a, b]}]",
            f"{GROUP}.resources",
            "is required when flavors are only names",
        ),
        (
            f"[{{coveredResources: [gpu], flavors: [{{name: a, resources: [{GPU}]}}],"
            f" resources: [{GPU}]}}]",
            f"{GROUP}.resources",
            "keep one",
        ),
        (
            f"[{{flavors: [a], resources: [{GPU}, {GPU}]}}]",
            f"{GROUP}.coveredResources[1]",
            "already",
        ),
    ],
)
def test_a_group_must_be_one_or_the_other(groups: str, path: str, words: str) -> None:
    found = problems(queue(groups))
    assert found[0][0] == path
    assert words in found[0][1]


# ---- what is forgiven --------------------------------------------------------------------------


def test_a_missing_resource_is_unmetered() -> None:
    text = queue(
        f"[{{coveredResources: [cpu, memory, gpu], flavors: [{{name: t4, resources: [{GPU}]}}]}}]"
    )
    assert warnings(text) == [("UnmeteredResource", f"{GROUP}.flavors[0].resources")]
    (group,) = groups_of(text)
    assert [quota.resource for quota in group.flavors[0].resources] == ["gpu"]
    assert [message for _, message in problems(text, strict=True)] == [
        "has no quota for cpu and memory: not limited in flavor t4"
    ]


def test_resources_in_another_order_are_matched_by_name() -> None:
    text = queue(
        "[{coveredResources: [cpu, gpu], flavors: [{name: f, resources: ["
        f"{GPU}, {{name: cpu, nominalQuota: 1}}]}}]}}]"
    )
    assert warnings(text) == [("ResourceOrder", f"{GROUP}.flavors[0].resources")]
    (group,) = groups_of(text)
    assert [quota.resource for quota in group.flavors[0].resources] == ["cpu", "gpu"]
    assert len(problems(text, strict=True)) == 1


def test_limits_without_a_cohort_are_ignored() -> None:
    limits = "nominalQuota: 8, borrowingLimit: 4, lendingLimit: 2"
    text = queue(ONE.replace("nominalQuota: 8", limits), cohort="")
    at = f"{GROUP}.flavors[0].resources[0]"
    assert warnings(text) == [
        ("LimitWithoutCohort", f"{at}.borrowingLimit"),
        ("LimitWithoutCohort", f"{at}.lendingLimit"),
    ]
    (group,) = groups_of(text)
    assert group.flavors[0].resources[0].borrowing_limit is None
    assert group.flavors[0].resources[0].lending_limit is None
    assert len(problems(text, strict=True)) == 2
    root = cohort(ONE.replace("nominalQuota: 8", limits), parent="")
    assert len(warnings(root)) == 2


# ---- what is refused ---------------------------------------------------------------------------


def flavors(count: int, start: int = 0) -> str:
    return ", ".join(f"{{name: f{n}, resources: [{GPU}]}}" for n in range(start, start + count))


def covered(count: int, start: int = 0) -> str:
    return ", ".join(f"r{n}" for n in range(start, start + count))


def quotas(count: int, start: int = 0) -> str:
    return ", ".join(f"{{name: r{n}, nominalQuota: 1}}" for n in range(start, start + count))


def many(groups: int, *, flavors_each: int = 1, resources_each: int = 1) -> str:
    made = []
    for number in range(groups):
        first = number * resources_each
        names = ", ".join(
            f"{{name: g{number}f{n}, resources: [{quotas(resources_each, first)}]}}"
            for n in range(flavors_each)
        )
        made.append(f"{{coveredResources: [{covered(resources_each, first)}], flavors: [{names}]}}")
    return f"[{', '.join(made)}]"


@pytest.mark.parametrize(
    ("groups", "path", "words"),
    [
        (many(17), "spec.resourceGroups", "has 17 groups; at most 16"),
        (many(1, flavors_each=65), f"{GROUP}.flavors", "has 65 flavors; at most 64"),
        (
            many(1, resources_each=65),
            f"{GROUP}.coveredResources",
            "has 65 covered resources; at most 64",
        ),
        (many(5, flavors_each=60), "spec.resourceGroups", "have 300 flavors together"),
        (many(5, resources_each=60), "spec.resourceGroups", "have 300 covered resources together"),
        (many(1, flavors_each=23, resources_each=23), GROUP, "has 529 pairs"),
        ("[{flavors: [{name: f}]}]", f"{GROUP}.coveredResources", "is required"),
        ("[{coveredResources: [gpu]}]", f"{GROUP}.flavors", "is required"),
        (
            f"[{{coveredResources: [gpu, gpu], flavors: [{{name: f, resources: [{GPU}]}}]}}]",
            f"{GROUP}.coveredResources[1]",
            f'"gpu" stands at {GROUP}.coveredResources[0] already',
        ),
        (
            f"[{{coveredResources: [gpu], flavors: [{{name: f, resources: [{GPU}]}}]}},"
            " {coveredResources: [cpu], flavors:"
            " [{name: f, resources: [{name: cpu, nominalQuota: 1}]}]}]",
            "spec.resourceGroups[1].flavors[0]",
            "it can be in one group",
        ),
        (
            ONE.replace("nominalQuota: 8", "nominalQuota: -4"),
            f"{GROUP}.flavors[0].resources[0].nominalQuota",
            "is -4; it cannot be negative",
        ),
        (
            ONE.replace("nominalQuota: 8", "nominalQuota: 8, borrowingLimit: -1m"),
            f"{GROUP}.flavors[0].resources[0].borrowingLimit",
            "is -1m; it cannot be negative",
        ),
        (
            ONE.replace("nominalQuota: 8", "nominalQuota: 8, lendingLimit: 9"),
            f"{GROUP}.flavors[0].resources[0].lendingLimit",
            "cannot lend more than its quota, 8",
        ),
        (
            ONE.replace("name: gpu", "name: fpga"),
            f"{GROUP}.flavors[0].resources[0].name",
            '"fpga" is not in coveredResources',
        ),
        (ONE.replace("name: f,", "name: F_,"), f"{GROUP}.flavors[0].name", "not a valid name"),
        (
            "[{coveredResources: ['a b'], flavors: [{name: f,"
            " resources: [{name: 'a b', nominalQuota: 1}]}]}]",
            f"{GROUP}.coveredResources[0]",
            "not a valid key",
        ),
        (
            ONE.replace("nominalQuota: 8", "nominalQuota: eight"),
            f"{GROUP}.flavors[0].resources[0].nominalQuota",
            '"eight" is not a quantity',
        ),
        (
            ONE.replace(", nominalQuota: 8", ""),
            f"{GROUP}.flavors[0].resources[0].nominalQuota",
            "is required",
        ),
    ],
)
def test_what_is_refused(groups: str, path: str, words: str) -> None:
    found = [(at, message) for at, message in problems(queue(groups)) if at == path]
    assert found
    assert words in found[0][1]


def test_as_much_as_is_allowed_is_fine() -> None:
    assert problems(queue(many(16, flavors_each=16, resources_each=16))) == []
    assert problems(queue(many(4, flavors_each=8, resources_each=64))) == []


def test_a_cohort_may_lend_more_than_it_owns() -> None:
    text = cohort(ONE.replace("nominalQuota: 8", "nominalQuota: 8, lendingLimit: 9"))
    assert problems(text) == []
    (group,) = cohort_of(only(text)).groups
    assert group.flavors[0].resources[0].lending_limit == 9
