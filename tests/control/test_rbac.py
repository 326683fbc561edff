"""The table of rights: every controller has its row, no row says more than is needed."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Sequence

import pytest

from tests.faults.jobs import JOB_KINDS, Wish, batch
from tests.faults.sweep import surroundings
from tests.support.control_world import HOME, World, needed
from unisono.cli.install.manifests import Wanted, objects, role_name
from unisono.control import names
from unisono.control.actions import Bind, Create, Ref, Steps
from unisono.control.assembly import INDEXES, KINDS, OPERATORS, Assembly, cluster
from unisono.control.controller import own_key
from unisono.control.job_kinds.batch.operator import JobOperator
from unisono.control.nodes import ReadinessTaints
from unisono.control.rbac import (
    KEYS,
    MACHINES,
    PARTS,
    QUEUEING,
    READ,
    WEB,
    WRITES,
    Right,
    kinds_read,
    kinds_unread,
    rights,
    rights_at_home,
)
from unisono.control.view import KindStore, View
from unisono.kinds.policy.settings import DEFAULTS, Settings
from unisono.kube.form import Json, Key
from unisono.kube.mapping import Kind
from unisono.notify.controller import ARRAYS, NAME
from unisono.provision import assembly as provisioning
from unisono.runner.simulated.kubelet import SimulatedKubelet, Simulation

_ROLES = ("Namespace", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


def installed(*operators: str, machines: str = "none") -> list[Json]:
    """Return the namespace, roles and bindings that `unisono install` brings."""
    wanted = Wanted(namespace=HOME, operators=operators, machines=machines)  # type: ignore[arg-type]  # one of three words
    brought = {"unisono:batch-user", "unisono:reader"}  # the embedded API has them by itself
    return [
        one
        for one in objects(wanted)
        if one["kind"] in _ROLES and one["metadata"]["name"] not in brought
    ]


def creates(some: Iterable[Right]) -> set[str]:
    return {one.full_name for one in some if "create" in one.verbs}


# ---- the table ---------------------------------------------------------------------------------


def test_every_controller_of_every_installation_has_a_row_and_no_row_is_nobodys() -> None:
    view = View({kind: KindStore.of(kind, INDEXES.get(kind, {})) for kind in KINDS})
    choices = [(), *((one,) for one in OPERATORS), OPERATORS]
    for operators in choices:
        made = cluster(view, DEFAULTS, epoch=1, operators=operators)
        rows = {name for part in (QUEUEING, *operators) for name in WRITES[part]}
        assert {one.name for one in made.controllers} | {NAME, ARRAYS} == rows, operators
    for part, brought in (
        ("karpenter", provisioning.karpenter(DEFAULTS)),
        ("autoscaler", provisioning.requests(DEFAULTS)),
    ):
        assert {one.name for one in brought} == {*WRITES[part]}


def test_queueing_alone_creates_workloads_and_nothing_that_runs() -> None:
    assert creates(rights(QUEUEING)) == {"workloads.kueue.x-k8s.io", "pods/binding", "events"}
    assert creates(rights_at_home()) == {"leases.coordination.k8s.io", "configmaps"}
    (role,) = [one for one in installed() if one["kind"] == "ClusterRole" and is_bound(one)]
    made = {
        resource
        for rule in role["rules"]
        for resource in rule["resources"]
        if "create" in rule["verbs"]
    }
    reviews = {one.resource for one in WEB}
    assert made == {"workloads", "pods/binding", "events", *reviews}
    read = {resource for rule in role["rules"] for resource in rule["resources"]}
    assert not read & {"services", "configmaps", "secrets"}


def is_bound(role: Json) -> bool:
    return role["metadata"]["name"] in map(role_name, PARTS)


@pytest.mark.parametrize("part", PARTS)
def test_no_part_has_stars_or_secrets_or_what_only_people_write(part: str) -> None:
    some = rights(part)
    assert not [one for one in some if "*" in (one.group, one.resource, *one.verbs)]
    assert not [one for one in some if one.resource.partition("/")[0] == "secrets"]
    people = ("policies", "workloadpriorityclasses", "priorityclasses", "hypernodes")
    beyond = [one for one in some if one.resource in people and one.verbs != READ]
    assert not beyond
    roles = [one for one in some if one.group == "rbac.authorization.k8s.io"]
    assert not roles


def test_secrets_are_read_by_name_where_the_role_is_bound_and_nowhere_else() -> None:
    assert (Right("", "secrets", ("get", "create", "patch")),) == KEYS
    everything = installed(*OPERATORS, machines="karpenter")
    bound = [one["roleRef"]["name"] for one in everything if one["kind"].endswith("RoleBinding")]
    assert "unisono-job-keys" not in bound


def test_notifications_may_read_one_secret_of_the_installation_by_its_name() -> None:
    rules = [
        (one["kind"], one["metadata"]["namespace"], rule)
        for one in installed()
        if one["kind"] == "Role"
        for rule in one["rules"]
        if "secrets" in rule["resources"]
    ]
    only = {
        "apiGroups": [""],
        "resources": ["secrets"],
        "resourceNames": ["unisono-notifications"],
        "verbs": ["get"],
    }
    assert rules == [("Role", HOME, only)]


def test_each_operator_may_make_pods_only_if_its_jobs_have_no_other_maker() -> None:
    makers = {part for part in PARTS if "pods" in creates(rights(part))}
    assert makers == {"volcano", "ray", "kubeflow", "slurm"}


def test_what_is_not_read_looks_empty_and_nothing_is_both() -> None:
    for parts in ((QUEUEING,), *((QUEUEING, one) for one in OPERATORS), PARTS):
        read, unread = kinds_read(parts), kinds_unread(parts)
        assert len(set(read)) == len(read)
        assert not {*read} & {*unread}
        assert {*KINDS} <= {*read, *unread}
    assert names.SECRET in kinds_unread(PARTS)
    assert {names.NODE_CLAIM, names.PROVISIONING_REQUEST} <= {*kinds_read(PARTS)}


def test_an_owner_that_is_held_back_needs_a_right_of_its_own() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "1"}
    made = {"apiVersion": names.KUEUE, "kind": "Workload", "metadata": {"name": "w"}}
    for blocks in (True, False):
        made["metadata"] = {"ownerReferences": [{**owner, "blockOwnerDeletion": blocks}]}
        asked = {*needed(Create(made))}
        assert (("batch", "jobs/finalizers", "update") in asked) == blocks


# ---- on an API that asks the roles -------------------------------------------------------------


class KubeScheduler:
    """Binds pods whose gates are lifted, as the stock scheduler does."""

    name = "kube-scheduler"
    watches: Sequence[Kind] = (names.POD,)

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A pod."""
        return (own_key(obj),)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Bind it to the node that it selects."""
        pod = view.get(names.POD, key.name, key.namespace)
        spec = pod["spec"] if pod is not None else {}
        is_ours = spec.get("schedulerName") == "default-scheduler"
        if pod is None or not is_ours or spec.get("nodeName") or spec.get("schedulingGates"):
            return
        node = (spec.get("nodeSelector") or {}).get(names.HOSTNAME)
        if node and "deletionTimestamp" not in pod["metadata"]:
            yield Bind(Ref.to(pod), node)


def real_cluster(*operators: str) -> World:
    """Return a cluster that runs Jobs, nodes and pods itself, and us with the roles for these."""

    def assemble(view: View, settings: Settings) -> Assembly:
        made = cluster(view, settings, epoch=1, operators=operators, home=HOME)
        theirs = (ReadinessTaints(), JobOperator(), KubeScheduler(), SimulatedKubelet(Simulation()))
        return Assembly(made.scheduler, (*made.controllers, *theirs))

    # Reading a kind that is not followed finds no such kind_store, and the test fails.
    kinds = kinds_read((QUEUEING, *operators))
    more = (names.SECRET,)  # which looks empty
    return World(assemble=assemble, kinds=(*kinds, *more), installed=installed(*operators))


_RUN_BY = {
    "job": (),
    "podgroup": (),
    "kueuegroup": (),
    "jobset": ("jobset",),
    "trainjob": ("jobset", "trainer"),
    "vcjob": ("volcano",),
    "raycluster": ("ray",),
    "rayjob": ("ray",),
    "pytorchjob": ("kubeflow",),
}


def test_every_kind_of_gang_is_lived_through() -> None:
    assert {*_RUN_BY} | {"mpijob"} == {*JOB_KINDS}  # which needs keys: see below


@pytest.mark.slow
@pytest.mark.parametrize("sort", _RUN_BY)
def test_a_gang_lives_and_ends_with_exactly_the_installed_roles(sort: str) -> None:
    """It waits, starts, fails once, is preempted, comes back and is deleted: never a 403."""

    async def main() -> None:
        wish = Wish(
            name="it", pods=2, gpus=4, seconds=20, queue="lq", priority="low", fails_once=True
        )
        urgent = Wish(
            name="urgent", pods=2, gpus=4, seconds=5, queue="lq", priority="high", fails_once=False
        )
        gang = JOB_KINDS[sort](wish)
        async with real_cluster(*_RUN_BY[sort]).running() as world:
            await world.create(*surroundings(), *gang.objects)
            await world.pass_time(15)
            await world.create(*batch(urgent).objects)
            await world.pass_time(90)
            assert batch(urgent).end(world.get(names.JOB, "urgent")) == "succeeded"
            if sort == "kueuegroup":
                return  # its pods are the user's to delete
            await world.pass_time(300)
            end = gang.end(world.get(gang.kind, "it"))
            assert end == ("succeeded" if sort not in ("raycluster", "podgroup") else end)
            await world.client.delete(gang.kind, "it", "default")
            await world.pass_time(60)

    asyncio.run(main())


@pytest.mark.slow
def test_without_an_operators_role_its_first_pod_is_refused() -> None:
    """The other direction: the API that is asked above does refuse."""

    async def main() -> None:
        wish = Wish(
            name="it", pods=2, gpus=4, seconds=20, queue="lq", priority="low", fails_once=False
        )
        world = real_cluster("ray")
        world._installed = installed()
        async with world.running():
            await world.create(*surroundings(), *JOB_KINDS["raycluster"](wish).objects)
            with pytest.raises(AssertionError, match=r"raycluster: .* is forbidden"):
                await world.pass_time(30)

    asyncio.run(main())


@pytest.mark.slow
@pytest.mark.parametrize("is_bound", [False, True])
def test_keys_of_mpi_jobs_need_the_role_that_is_bound_by_hand(is_bound: bool) -> None:
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "keys", "namespace": "default"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "unisono-job-keys",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "unisono", "namespace": HOME}],
    }
    wish = Wish(name="it", pods=2, gpus=4, seconds=20, queue="lq", priority="low", fails_once=False)

    async def main() -> None:
        async with real_cluster("kubeflow").running() as world:
            await world.create(*surroundings(), *([binding] if is_bound else []))
            await world.create(*JOB_KINDS["mpijob"](wish).objects)
            if not is_bound:
                with pytest.raises(AssertionError, match='cannot create resource "secrets"'):
                    await world.pass_time(30)
                return
            await world.pass_time(120)
            assert JOB_KINDS["mpijob"](wish).end(world.get(JOB_KINDS["mpijob"](wish).kind, "it"))

    asyncio.run(main())


def test_parts_are_those_that_can_be_chosen() -> None:
    assert [*PARTS] == [QUEUEING, *OPERATORS, *MACHINES]
    assert len({*map(role_name, PARTS)}) == len(PARTS)
    for one, other in itertools.combinations(PARTS, 2):
        assert role_name(one) != role_name(other)
