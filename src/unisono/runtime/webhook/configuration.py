"""The webhook configurations of an installation: what is sent to which path, and how.

What carries the label of a queue is sent to us when it is created or changes its queue; of anything
else only what its author may not write (`conditions`), and specs of jobs to be judged; without
that verdict the server goes on. So a cluster without a running replica refuses new jobs of queues,
what tenants may not write and priority classes named by hand, and nothing else. Nothing of the
control plane's namespaces is sent, nor of our own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal

from unisono.control.names import QUEUE_LABEL
from unisono.kube.mapping import Kind
from unisono.runtime.admission.policies import (
    BY_RUN_POLICY,
    BY_SPEC,
    IS_NEW_SPEC,
    NOT_THERE,
    counted_resources,
)
from unisono.runtime.admission.tenancy import matched, searched_kinds
from unisono.runtime.webhook.conditions import decision_conditions, owner_conditions
from unisono.runtime.webhook.rules import HOLD, INTAKE, JUDGE, OWNERS_CLAIMED, TENANCY

Json = dict[str, Any]
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
        yield _configuration("mutating", labels, [held])
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
