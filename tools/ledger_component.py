"""The optional part of `deploy/` that keeps a ledger of usage, and reports of it every week.

One file on one volume: there is one replica of the controller then, and the report is made on its
node, because a volume is usually that of one node.
"""

from __future__ import annotations

from unisono.cli.install.manifests import NAME, Wanted
from unisono.kube.form import Json

_REPORT = f"{NAME}-report"
_CLAIM = f"{NAME}-ledger"
_USER = 65_532
_FILE = "/ledger/ledger.db"
_VOLUME: Json = {"name": "ledger", "persistentVolumeClaim": {"claimName": _CLAIM}}
_MOUNT: Json = {"name": "ledger", "mountPath": "/ledger"}
_LOCKED_IN: Json = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def resources(wanted: Wanted) -> dict[str, Json]:
    """Return the volume and the report, by the file that they are written to."""
    selector = {"podSelector": {"matchLabels": {"app.kubernetes.io/name": _REPORT}}}
    policy = _made(wanted, "networking.k8s.io/v1", "NetworkPolicy", _REPORT)
    return {
        # A report is made of a file: the pod needs no connections, and accepts none.
        "network-policy.yaml": policy
        | {"spec": {**selector, "policyTypes": ["Ingress", "Egress"]}},
        "claim.yaml": _made(wanted, "v1", "PersistentVolumeClaim", _CLAIM)
        | {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                # A million jobs are about a gigabyte.
                "resources": {"requests": {"storage": "10Gi"}},
            }
        },
        "report.yaml": _made(wanted, "batch/v1", "CronJob", _REPORT)
        | {
            "spec": {
                "schedule": "0 7 * * 1",
                "timeZone": "Etc/UTC",
                "concurrencyPolicy": "Forbid",
                "jobTemplate": {
                    "spec": {
                        "backoffLimit": 2,
                        "ttlSecondsAfterFinished": 604_800,
                        "template": {
                            "metadata": {"labels": {"app.kubernetes.io/name": _REPORT}},
                            "spec": _pod(wanted),
                        },
                    }
                },
            }
        },
    }


ARGUMENTS = ("--ledger", _FILE)


def patch(wanted: Wanted) -> Json:
    """Return what changes in the Deployment besides its arguments."""
    container = {"name": "controller", "volumeMounts": [_MOUNT]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": wanted.namespace},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "template": {"spec": {"volumes": [_VOLUME], "containers": [container]}},
        },
    }


def _pod(wanted: Wanted) -> Json:
    beside = {
        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": NAME}},
        "topologyKey": "kubernetes.io/hostname",
    }
    week = ["report", "weekly", "--whole", "--ledger", _FILE]
    files = [*week, "--format", "html,csv,json,eml", "--out", "/ledger/reports"]
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [beside]}},
        "volumes": [_VOLUME],
        "initContainers": [_container(wanted, "files", files)],
        # For users without access to the volume: `kubectl logs`.
        "containers": [_container(wanted, "text", week)],
    }


def _container(wanted: Wanted, name: str, args: list[str]) -> Json:
    return {
        "name": name,
        "image": wanted.image,
        "args": args,
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}},
        "securityContext": _LOCKED_IN,
        "volumeMounts": [_MOUNT],
    }


def _made(wanted: Wanted, api_version: str, kind: str, name: str) -> Json:
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": NAME}
    metadata = {"name": name, "labels": labels, "namespace": wanted.namespace}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
