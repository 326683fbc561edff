"""What must be true of a cluster before controllers can work there, asked in a few requests."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from unisono.control import names
from unisono.control.assembly import OPERATORS
from unisono.control.conditions import seconds
from unisono.control.rbac import Right, rights, rights_at_home
from unisono.kube.client import Client
from unisono.kube.errors import Forbidden, NotFound, UnknownKind
from unisono.kube.form import Json
from unisono.kube.mapping import Kind
from unisono.runtime import AnswerIsNo
from unisono.runtime.webhook.configuration import CLASSES_JUDGED, KINDS, NAME

DEPLOYMENT = Kind("apps/v1", "Deployment")
BINDING = Kind("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding")
# One of those that `admission_classes` makes; they come and go together.
CLASSES_CHECKED = "unisono-priority-classes-of-jobs.batch"
# Without these there is nothing to decide about; all other kinds may be absent.
NEEDED = (names.WORKLOAD, names.CLUSTER_QUEUE, names.LOCAL_QUEUE, names.FLAVOR)


async def check_kinds(client: Client) -> None:
    """Refuse a cluster that does not serve what every decision needs."""
    for kind in NEEDED:
        try:
            await client.page(kind, "", {"limit": "1"})
        except NotFound as error:
            message = f"the cluster does not serve {kind.kind} of {kind.api_version}"
            raise AnswerIsNo(f"{message}; run: unisono install") from error


async def check_namespace(client: Client, namespace: str) -> None:
    """Refuse a namespace for the lease that is not there."""
    try:
        await client.get(names.NAMESPACE, namespace)
    except NotFound as error:
        message = f"there is no namespace {namespace} to hold the lease in"
        hint = "run: unisono install, or choose another with --namespace"
        raise AnswerIsNo(f"{message}; {hint}") from error


async def check_rights(
    client: Client, namespace: str, parts: Sequence[str], more: Iterable[Right] = ()
) -> None:
    """Refuse to begin with too few rights for these parts of us; say which are missing."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "metadata": {},
        "spec": {"namespace": namespace},
    }
    status = (await client.create(review)).get("status") or {}
    if status.get("incomplete"):
        return  # an authorizer that cannot list its rules; it will say no where it means no
    rules = status.get("resourceRules") or ()
    wanted = [(part, right) for part in parts for right in rights(part)]
    wanted += [("", right) for right in (*rights_at_home(), *more)]
    lines = [
        f"not allowed: {', '.join(lacking.verbs)} {lacking.full_name}"
        + (f" ({part})" if part else "")
        for part, right in wanted
        for lacking in missing_rights([right], rules)
    ]
    if lines:
        lines.append("`unisono install` makes roles that have all of it; --operators says for what")
        raise AnswerIsNo("\n".join(lines))


def missing_rights(wanted: Iterable[Right], rules: Sequence[Json]) -> list[Right]:
    """Return what of these rights no rule grants."""
    lacking = []
    for one in wanted:
        granted = {
            verb
            for rule in rules
            if _names(rule.get("apiGroups"), one.group)
            and _names_resource(rule.get("resources"), one.resource)
            and not rule.get("resourceNames")
            for verb in rule.get("verbs") or ()
        }
        verbs = [verb for verb in one.verbs if verb not in granted and "*" not in granted]
        if verbs:
            lacking.append(one._replace(verbs=verbs))
    return lacking


def _names(listed: Collection[str] | None, word: str) -> bool:
    return "*" in (listed or ()) or word in (listed or ())


def _names_resource(listed: Collection[str] | None, resource: str) -> bool:
    subresource = resource.partition("/")[2]
    return _names(listed, resource) or (bool(subresource) and f"*/{subresource}" in (listed or ()))


async def checks_classes(client: Client) -> bool:
    """Say whether rules of ours have the API refuse priority classes that are not for an author."""
    try:
        await client.get(BINDING, CLASSES_CHECKED)
    except (NotFound, Forbidden, UnknownKind):
        return await _webhooks_judge_classes(client)
    return True


async def _webhooks_judge_classes(client: Client) -> bool:
    try:
        found = await client.get(KINDS["validating"], NAME)
    except (NotFound, Forbidden, UnknownKind):
        return False
    return any(one.get("name") == CLASSES_JUDGED for one in found.get("webhooks") or ())


async def others(client: Client) -> Sequence[Upstream]:
    """Return the operators of others that run there; none if we may not look."""
    try:
        return upstream_operators((await client.list(DEPLOYMENT)).items)
    except Forbidden:
        return ()


def operators_to_run(
    chosen: Sequence[str] | None, adopted: Collection[str], found: Sequence[Upstream]
) -> tuple[str, ...]:
    """Return which operators are ours to run beside those that were found."""
    taken = {one.operator: one.deployment for one in found if one.operator not in adopted}
    if KUEUE in taken:
        raise AnswerIsNo(
            f"Kueue runs here ({taken[KUEUE]}) and manages the same queues and workloads; "
            "scale it to zero first, or say --adopt kueue if it does nothing"
        )
    wanted = OPERATORS if chosen is None else tuple(one for one in OPERATORS if one in chosen)
    return tuple(one for one in wanted if one not in taken)


# ---- operators of others -------------------------------------------------------------------------
#
# Upstream operators that run on a cluster, found by their Deployments.
#
# Where one runs, ours for the same kinds steps aside; the queueing of those kinds stays ours,
# through their `suspend`. Kueue is different: it would write to the very queues and workloads that
# we do, so there is no working beside it.

KUEUE = "kueue"

# Names of images, and the operator each stands for: names of `assembly.OPERATORS`, or Kueue.
_BY_IMAGE = {
    "kueue": KUEUE,
    "jobset": "jobset",
    "trainer-controller-manager": "trainer",
    "training-operator": "kubeflow",
    "mpi-operator": "kubeflow",
    "vc-controller-manager": "volcano",
    "vc-scheduler": "volcano",
}
# And what a Deployment is called, for images that were renamed on their way to a private registry.
_BY_NAME = {
    "kueue-controller-manager": KUEUE,
    "jobset-controller-manager": "jobset",
    "kubeflow-trainer-controller-manager": "trainer",
    "training-operator": "kubeflow",
    "mpi-operator": "kubeflow",
    "volcano-controllers": "volcano",
    "volcano-scheduler": "volcano",
    "kuberay-operator": "ray",
}


# And the Leases of those that may run without one: outside of the cluster, or under another kind.
_BY_LEASE = {"c1f6bfd2.kueue.x-k8s.io": KUEUE, "ray-operator-leader": "ray"}
# A holder that has not renewed its lease for so long is gone: four times what is usual.
_LEASE_S = 60.0


class Upstream(NamedTuple):
    """An upstream operator that runs: which, and where."""

    operator: str
    deployment: str  # namespace/name, or `lease namespace/name`


def upstream_operators(deployments: Iterable[Json]) -> Sequence[Upstream]:
    """Return the operators among Deployments that are meant to run, in order of their names."""
    found = set()
    for one in deployments:
        operator = _operator_of(one)
        if operator and (one.get("spec") or {}).get("replicas", 1) > 0:
            metadata = one["metadata"]
            found.add(Upstream(operator, f"{metadata['namespace']}/{metadata['name']}"))
    return sorted(found)


def holders_of_leases(leases: Iterable[Json], now: float) -> Sequence[Upstream]:
    """Return the operators that keep a lease, in order of their names."""
    found = set()
    for one in leases:
        metadata, spec = one["metadata"], one.get("spec") or {}
        operator = _BY_LEASE.get(metadata["name"])
        renewed = spec.get("renewTime")
        if (
            operator
            and spec.get("holderIdentity")
            and renewed
            and now - seconds(renewed) < _LEASE_S
        ):
            place = f"lease {metadata['namespace']}/{metadata['name']}"
            found.add(Upstream(operator, place))
    return sorted(found)


def _operator_of(deployment: Json) -> str:
    named = _BY_NAME.get(deployment["metadata"]["name"], "")
    if named:
        return named
    template = ((deployment.get("spec") or {}).get("template") or {}).get("spec") or {}
    for container in template.get("containers") or ():
        repository = str(container.get("image", "")).partition("@")[0]
        path, _, last = repository.rpartition("/")
        image = last.partition(":")[0]
        if image in _BY_IMAGE:
            return _BY_IMAGE[image]
        if path.endswith("kuberay") and image == "operator":
            return "ray"
    return ""
