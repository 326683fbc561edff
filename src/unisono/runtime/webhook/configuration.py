"""The webhook configurations of an installation: what is sent to which path, and how.

What carries the label of a queue is sent to us when it is created or changes its queue; of anything
else only what its author may not write (see below), and specs of jobs to be judged; without
that verdict the server goes on. So a cluster without a running replica refuses new jobs of queues,
what tenants may not write and priority classes named by hand, and nothing else. Nothing of the
control plane's namespaces is sent, nor of our own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Literal

from unisono.apiserver.access.reserved_fields import GATES, RESERVED
from unisono.control.names import QUEUE_LABEL
from unisono.kinds.priorities import PRIORITY_LABEL
from unisono.kube.form import Json
from unisono.kube.mapping import Kind
from unisono.runtime.admission.policies import (
    BY_RUN_POLICY,
    BY_SPEC,
    IS_NEW_SPEC,
    NOT_THERE,
    SETS,
    counted_resources,
)
from unisono.runtime.admission.tenancy import (
    BINDS,
    ITEMS,
    JOBS,
    KIND,
    MAKERS,
    VALUES,
    Path,
    Places,
    matched,
    owner_kinds,
    runs,
    searched_kinds,
)
from unisono.runtime.webhook.rules import HOLD, INTAKE, JUDGE, OWNERS_CLAIMED, TENANCY

Which = Literal["mutating", "validating"]

NAME = "unisono"
# The Service, the Secret and everything else that only webhooks need.
WEBHOOK = "unisono-webhook"
PORT = 9443
_GROUP = "admissionregistration.k8s.io"
KINDS: dict[Which, Kind] = {
    "mutating": Kind(f"{_GROUP}/v1", "MutatingWebhookConfiguration"),
    "validating": Kind(f"{_GROUP}/v1", "ValidatingWebhookConfiguration"),
}
# An API server waits so long for us before it refuses; cycles of a large cluster are shorter.
_TIMEOUT_S = 5
_LABEL = f"'{QUEUE_LABEL}'"
_QUEUE = f"(has({{0}}.metadata.labels) && {_LABEL} in {{0}}.metadata.labels ? " + (
    f"{{0}}.metadata.labels[{_LABEL}] : '')"
)
_IS_NEW_OR_MOVES = f"oldObject == null || {_QUEUE.format('oldObject')} != {_QUEUE.format('object')}"


def objects(
    namespace: str,
    labels: Json,
    which: Collection[Which],
    sources: Sequence[Json] = (),
    *,
    has_conditions: bool = True,
) -> Iterator[Json]:
    """Yield them in the order in which they are applied; the webhook configurations come last.

    `sources` are the addresses of API servers; without them, any TLS client may ask. A server
    without `has_conditions` (before Kubernetes 1.28) would ask about every pod of the cluster, so
    it is not told about tenancy at all.
    """
    own = {"namespace": namespace}
    account = {"kind": "ServiceAccount", "name": NAME, **own}
    rbac, group = "rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
    yield _made("v1", "Secret", WEBHOOK, labels, **own) | {"type": "Opaque"}
    for kind, scope, rule in (("Role", own, _SECRET), ("ClusterRole", {}, _TRUST)):
        yield _made(rbac, kind, WEBHOOK, labels, **scope) | {"rules": [rule]}
        ref = {"apiGroup": group, "kind": kind, "name": WEBHOOK}
        bound: Json = {"roleRef": ref, "subjects": [account]}
        yield _made(rbac, f"{kind}Binding", WEBHOOK, labels, **scope) | bound
    selector = {"app.kubernetes.io/name": NAME}
    yield _made("networking.k8s.io/v1", "NetworkPolicy", WEBHOOK, labels, **own) | {
        "spec": {
            "podSelector": {"matchLabels": selector},
            "policyTypes": ["Ingress"],
            "ingress": [
                {
                    **({"from": [*sources]} if sources else {}),
                    "ports": [{"port": PORT, "protocol": "TCP"}],
                }
            ],
        }
    }
    port = {"name": "webhook", "port": 443, "protocol": "TCP", "targetPort": "webhook"}
    yield _made("v1", "Service", WEBHOOK, labels, **own) | {
        "spec": {"selector": selector, "ports": [port]}
    }
    if "mutating" in which:
        again = {"reinvocationPolicy": "IfNeeded"}
        held = _webhook("hold", namespace, HOLD, ("CREATE",), _QUEUED, **_OF_QUEUES, **again)
        carried = _webhook("carry", namespace, HOLD, _WRITES, SETS, **_OF_QUEUES, **again)
        yield _configuration("mutating", labels, [held, carried])
    if "validating" in which:
        judges = _judging(namespace)
        tenancy = _tenancy(namespace) if has_conditions else ()
        yield _configuration("validating", labels, [*judges, *tenancy])


# Whether it is there is what tells a controller that the API judges priority classes.
CLASSES_JUDGED = "tenancy.jobs.batch.unisono.dev"
_WRITES = ("CREATE", "UPDATE")


def _judging(namespace: str) -> Iterator[Json]:
    moves = {"matchConditions": [{"name": "is-new-or-moves", "expression": _IS_NEW_OR_MOVES}]}
    yield _webhook("judge", namespace, JUDGE, _WRITES, _QUEUED, **_OF_QUEUES, **moves)
    # The controller refuses the same when it reads it; so the author gets the error at once. Only
    # controllers write Workloads.
    jobs = [one for one in counted_resources() if one[2] != ("workloads",)]
    new_spec = {"matchConditions": [{"name": "spec-is-new", "expression": IS_NEW_SPEC}]}
    yield _webhook("intake", namespace, INTAKE, _WRITES, jobs, failurePolicy="Ignore", **new_spec)


def _tenancy(namespace: str) -> Iterator[Json]:
    kinds = [(served, matched(served), places) for served, places in searched_kinds()]
    every = [(group, versions, (plural,)) for _, (group, versions, plural), _ in kinds]
    owners = {"matchConditions": owner_conditions()}
    yield _webhook("owners", namespace, OWNERS_CLAIMED, _WRITES, every, **owners)
    for served, (group, versions, plural), places in kinds:
        conditions = {"matchConditions": decision_conditions(places)}
        resources = ((group, versions, (plural,)),)
        yield _webhook(
            f"tenancy.{served.resource}", namespace, TENANCY, _WRITES, resources, **conditions
        )


# Exactly our Secret, and exactly the two objects that hold the trusted authority.
_SECRET = {
    "apiGroups": [""],
    "resources": ["secrets"],
    "resourceNames": [WEBHOOK],
    "verbs": ["get", "update"],
}
_TRUST = {
    "apiGroups": [_GROUP],
    "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
    "resourceNames": [NAME],
    "verbs": ["get", "update"],
}


def host_names(namespace: str) -> tuple[str, ...]:
    """Return the names under which an API server looks for us."""
    return f"{WEBHOOK}.{namespace}.svc", f"{WEBHOOK}.{namespace}.svc.cluster.local"


_QUEUED = (*BY_SPEC, *BY_RUN_POLICY, ("", "v1", ("pods",)))
_OF_QUEUES = {"objectSelector": {"matchExpressions": [{"key": QUEUE_LABEL, "operator": "Exists"}]}}


def _configuration(which: Which, labels: Json, webhooks: Sequence[Json]) -> Json:
    return _made(*KINDS[which], NAME, labels) | {"webhooks": [*webhooks]}


def _webhook(
    name: str,
    namespace: str,
    path: str,
    operations: Sequence[str],
    resources: Sequence[tuple[str, str, Sequence[str]]],
    **more: Any,
) -> Json:
    excluded = sorted({*NOT_THERE, namespace})
    not_there = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": excluded}
    service = {"name": WEBHOOK, "namespace": namespace, "path": path, "port": 443}
    return {
        "name": f"{name}.unisono.dev",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": service},
        "sideEffects": "None",
        "timeoutSeconds": _TIMEOUT_S,
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {"matchExpressions": [not_there]},
        "rules": [
            {
                "apiGroups": [group],
                "apiVersions": [version],
                "operations": [*operations],
                "resources": [*plurals],
                "scope": "*",
            }
            for group, version, plurals in resources
        ],
        **more,
    }


def _made(api_version: str, kind: str, name: str, labels: Json, **more: str) -> Json:
    metadata = {"name": name, "labels": {**labels}, **more}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


# ---- conditions of tenancy -----------------------------------------------------------------------
#
# When an API server asks a webhook about tenancy: only if it would be refused.
#
# The rules are those of `runtime.admission`, as conditions of a webhook. The server itself looks up
# what the author may do. So it never asks about writes of controllers, kubelets and schedulers, and
# while no replica answers, nothing is refused but what would be in any case, and what names a
# priority class by hand.
#
# A server evaluates such conditions since Kubernetes 1.28. They do without optional fields
# (`a.?b`), which came two releases later: a server that has those has policies, too.

Conditions = list[dict[str, str]]
_WORDS = str(sorted(RESERVED))
_OWNERS = "has({0}.metadata.ownerReferences) && {0}.metadata.ownerReferences"
_IS_CONTROLLER = "has(o.controller) && o.controller"


def decision_conditions(places: Places) -> Conditions:
    """Return when to ask about an object with these places: what it writes is not its author's."""
    makes = (
        f"{_OWNERS.format('object')}.exists(o, {_IS_CONTROLLER} && "
        f"{KIND} in {MAKERS} && {runs(MAKERS)})"
    )
    return [
        {"name": "decides", "expression": f"!({' && '.join(undecided(places))})"},
        {"name": "may-not-bind", "expression": f"!({BINDS})"},
        {"name": "does-not-make-it", "expression": f"!({makes})"},
    ]


def undecided(places: Places) -> list[str]:
    """Return what is true of an object that writes no decision and names no class anew."""
    kept = [
        *(_kept(path, "nodeName") for path in places.pods),
        *(_same_words(path) for path in places.metadata),
        *(_kept(path[:-1], path[-1]) for path in places.classes),
        *(_same_class(path) for path in places.metadata),
    ]
    if ("spec",) in places.pods:
        kept.append(_same_gates())
    return kept


def owner_conditions() -> Conditions:
    """Return when to ask about an object's owners: it claims a job that its author does not run."""
    before = (
        f"oldObject != null && {_OWNERS.format('oldObject')}.exists(q, has(q.controller) && "
        "q.controller && q.kind == o.kind && q.name == o.name && q.apiVersion == o.apiVersion)"
    )
    jobs = owner_kinds(JOBS)
    claimed = (
        f"{_OWNERS.format('object')}.exists(o, {_IS_CONTROLLER} && {KIND} in {jobs} && "
        f"!({before}) && !{runs(jobs)})"
    )
    return [{"name": "claims-an-owner", "expression": claimed}]


def _kept(path: Path, field: str) -> str:
    """Return what is true if nothing at a place has a value of a field that none had before."""
    return _every(
        path,
        lambda new: (
            f"(!has({new}.{field}) || {new}.{field} == '' || "
            + _before(path, lambda old: f"has({old}.{field}) && {old}.{field} == {new}.{field}")
            + ")"
        ),
    )


def _same_words(path: Path) -> str:
    return " && ".join(_same_word(path, part, "w", _WORDS) for part in ("labels", "annotations"))


def _same_class(path: Path) -> str:
    return _same_word(path, "labels", f"'{PRIORITY_LABEL}'", "")


def _same_word(path: Path, part: str, word: str, words: str) -> str:
    """Return what is true if a label or annotation, or each of some, is as it was at a place."""

    def has(at: str) -> str:
        return f"has({at}.metadata) && has({at}.metadata.{part}) && {word} in {at}.metadata.{part}"

    def ask(new: str) -> str:
        same = f"{{0}}.metadata.{part}[{word}] == {new}.metadata.{part}[{word}]"
        before = _before(path, lambda old: f"{has(old)} && {same.format(old)}")
        is_kept = f"(!({has(new)}) || {before})"
        return f"{words}.all({word}, {is_kept})" if words else is_kept

    return _every(path, ask)


def _same_gates() -> str:
    gates = (
        "has({0}.spec) && has({0}.spec.schedulingGates) && "
        "{0}.spec.schedulingGates.exists(g, g.name == w)"
    )
    kept = f"!({gates.format('oldObject')}) || {gates.format('object')}"
    return f"(oldObject == null || {sorted(GATES)}.all(w, {kept}))"


def _every(path: Path, ask: Callable[[str], str]) -> str:
    """Return what is true if something is true of everything at a place of the new object."""
    return _each("object", path, ask, "(!has({0}) || {1})", "all", 0)


def _before(path: Path, ask: Callable[[str], str]) -> str:
    """Return what is true if something is true of anything at a place of the old object."""
    found = _each("oldObject", path, ask, "(has({0}) && {1})", "exists", 0)
    return f"(oldObject != null && {found})"


def _each(
    here: str, path: Path, ask: Callable[[str], str], guard: str, loop: str, depth: int
) -> str:
    if not path:
        return ask(here)
    name, below = path[0], path[1:]
    if name in (ITEMS, VALUES):
        one = f"{'o' if loop == 'exists' else 'n'}{depth}"
        inner = one if name == ITEMS else f"{here}[{one}]"
        return f"{here}.{loop}({one}, {_each(inner, below, ask, guard, loop, depth + 1)})"
    field = f"{here}.{name}"
    return guard.format(field, _each(field, below, ask, guard, loop, depth))
