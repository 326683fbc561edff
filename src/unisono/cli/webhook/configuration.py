"""What an installation with webhooks has besides: who is asked about what, and how it is reached.

Only what carries the label of a queue is ever sent to us, so that a cluster without a running
replica refuses new jobs of queues and nothing else; a change of a job is sent only when it changes
the queue. Nothing of the control plane's namespaces is, nor of our own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal

from unisono.cli.admission import BY_RUN_POLICY, BY_SPEC, NOT_THERE
from unisono.cli.webhook.rules import HOLD, JUDGE
from unisono.control.names import QUEUE_LABEL
from unisono.kube.mapping import Kind

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
    namespace: str, labels: Json, which: Collection[Which], sources: Sequence[Json] = ()
) -> Iterator[Json]:
    """Yield them in the order in which they are applied; those who are asked come last.

    `sources` are the addresses of API servers; without them, whoever speaks TLS may ask.
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
        yield _configured("mutating", namespace, labels, HOLD, ("CREATE",), again)
    if "validating" in which:
        condition = {"name": "is-new-or-moves", "expression": _IS_NEW_OR_MOVES}
        matching = {"matchConditions": [condition]}
        yield _configured("validating", namespace, labels, JUDGE, ("CREATE", "UPDATE"), matching)


# Exactly our Secret, and exactly the two objects that say whom to trust.
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


def _configured(
    which: Which,
    namespace: str,
    labels: Json,
    path: str,
    operations: tuple[str, ...],
    more: Json,
) -> Json:
    kind = KINDS[which]
    excluded = sorted({*NOT_THERE, namespace})
    not_there = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": excluded}
    service = {"name": WEBHOOK, "namespace": namespace, "path": path, "port": 443}
    webhook = {
        "name": f"{path.strip('/')}.unisono.dev",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": service},
        "sideEffects": "None",
        "timeoutSeconds": _TIMEOUT_S,
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {"matchExpressions": [not_there]},
        "objectSelector": {"matchExpressions": [{"key": QUEUE_LABEL, "operator": "Exists"}]},
        "rules": [
            {
                "apiGroups": [group],
                "apiVersions": [version],
                "operations": [*operations],
                "resources": [*plurals],
                "scope": "Namespaced",
            }
            for group, version, plurals in (*BY_SPEC, *BY_RUN_POLICY, ("", "v1", ("pods",)))
        ],
        **more,
    }
    return _made(*kind, NAME, labels) | {"webhooks": [webhook]}


def _made(api_version: str, kind: str, name: str, labels: Json, **more: str) -> Json:
    metadata = {"name": name, "labels": {**labels}, **more}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
