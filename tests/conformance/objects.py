"""The objects that the tests create: as small as a server accepts them."""

from __future__ import annotations

from typing import Any

from tests.conformance.client import Manifest


def config_map(name: str, data: dict[str, str] | None = None, **metadata: Any) -> Manifest:
    """Return a ConfigMap; keywords become metadata."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        **({} if data is None else {"data": data}),
    }


def secret(name: str, **metadata: Any) -> Manifest:
    """Return a Secret."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, **metadata},
        "stringData": {"user": "ada"},
    }


def container(name: str = "main", **fields: Any) -> Manifest:
    """Return a container."""
    return {"name": name, "image": "busybox:1.36", **fields}


def pod(name: str, spec: Manifest | None = None, **metadata: Any) -> Manifest:
    """Return a Pod of one container."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"containers": [container()], **(spec or {})},
    }


def job(name: str, spec: Manifest | None = None, **metadata: Any) -> Manifest:
    """Return a Job of one container."""
    template = {"spec": {"restartPolicy": "Never", "containers": [container()]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, **metadata},
        "spec": {"template": template, **(spec or {})},
    }


def cron_job(name: str) -> Manifest:
    """Return a CronJob."""
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {"schedule": "@daily", "jobTemplate": {"spec": job("x")["spec"]}},
    }


def deployment(name: str, *, replicas: int = 1, **metadata: Any) -> Manifest:
    """Return a Deployment of one container."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, **metadata},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [container()]},
            },
        },
    }


def node(name: str, **metadata: Any) -> Manifest:
    """Return a Node."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **metadata}}


def service(name: str) -> Manifest:
    """Return a Service with one port."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80}]},
    }


def lease(name: str, spec: Manifest | None = None) -> Manifest:
    """Return a Lease."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": {"holderIdentity": "one", "leaseDurationSeconds": 15, **(spec or {})},
    }


def event(name: str, namespace: str, **fields: Any) -> Manifest:
    """Return an Event about a pod called train."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "train",
            "namespace": namespace,
            "uid": "12345678-1234-4234-8234-123456789012",
        },
        "type": "Normal",
        "reason": "Started",
        "message": "the pod has started",
        **fields,
    }


def disruption_budget(name: str, labels: dict[str, str], *, minimum: int) -> Manifest:
    """Return a PodDisruptionBudget."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"minAvailable": minimum, "selector": {"matchLabels": labels}},
    }


def owned_by(owner: Manifest, **fields: Any) -> list[Manifest]:
    """Return owner references to one owner."""
    return [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            **fields,
        }
    ]
