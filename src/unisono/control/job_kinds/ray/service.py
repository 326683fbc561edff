"""The operator of Ray services: a RayCluster that serves, and the next one at an update.

    RayService ──▶ RayCluster NAME-HASH (a gang, in the queue of the service's label)
                        │ ready
                        ▼
               `serve deploy` of serveConfigV2, by a Job ──▶ it takes the requests ──▶ the old
                                                             cluster goes a minute later
    a change of replicas alone goes to the cluster that serves

The name of a cluster follows from its configuration, so a crash makes none twice. At an update the
new cluster waits for quota beside the old one; if the old one holds what it waits for, the old one
gives way after a while: a service that waits for ever is not updated at all.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Sequence
from typing import Any

import yaml

from unisono.control import names
from unisono.control.actions import (
    Action,
    Again,
    Create,
    Delete,
    Json,
    Note,
    Patch,
    Ref,
    Steps,
    Together,
)
from unisono.control.conditions import is_true, seconds, timestamp, with_condition
from unisono.control.controller import own_key, owner_key
from unisono.control.job_kinds import ray
from unisono.control.job_kinds.ray.pods import head_address
from unisono.control.jobs.pods import is_deleting, suffix
from unisono.control.jobs.workload import owner_reference, workload_name
from unisono.control.view import View
from unisono.kinds.priorities import PRIORITY_LABEL
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

_SERVICE_LABEL = "ray.io/originated-from-cr-name"
# When a cluster began to take the requests: since then the one before it may go.
_SWITCHED = "unisono.dev/serving-since"
_OLD_KEPT_S = 60  # as in KubeRay, for requests that still run there
GIVES_WAY_S = 60.0  # as a Deployment's old pods (`control.apps.deployments`)
_SIZES = ("replicas", "minReplicas", "maxReplicas")
_DASHBOARD = 8265


class RayServiceOperator:
    """Runs Ray services."""

    name = "rayservice"
    watches: Sequence[Kind] = (ray.SERVICE, ray.CLUSTER, names.JOB, names.WORKLOAD)
    owner_kind: Kind = ray.SERVICE
    dependent_kinds: Sequence[Kind] = (ray.CLUSTER,)
    idle_without: Kind = ray.SERVICE

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A service, or the Workload of a cluster of one, or the Job that deploys there."""
        if kind in (names.WORKLOAD, names.JOB):
            for key in owner_key(obj, ray.CLUSTER):
                cluster = view.peek(ray.CLUSTER, key.name, key.namespace)
                if cluster is not None:
                    yield from owner_key(cluster, ray.SERVICE)
        else:
            yield own_key(obj)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take one service a step further."""
        service = view.get(ray.SERVICE, key.name, key.namespace)
        if service is None or is_deleting(service):
            return
        if service["spec"].get("managedBy") not in ray.OURS:
            return
        clusters = [
            one
            for one in view.owned(ray.CLUSTER, service["metadata"]["uid"])
            if not is_deleting(one)
        ]
        if service["spec"].get("suspend"):
            if clusters:
                yield Together([Delete(Ref.to(one)) for one in clusters])
            yield from _tell(service, None, None, {}, now)
            return
        active = _active(service, clusters)
        wanted = _wanted(service, active)
        pending = next((one for one in clusters if one["metadata"]["name"] == wanted), None)
        if pending is None:
            pending = yield Create(_cluster(service, wanted))
            yield Note(Ref.to(service), "CreatedRayCluster", f"Created RayCluster {wanted}")
        pending = yield from _sized(service, pending)
        applications: dict[str, Json] = {}
        if _state(pending) == "ready":
            applications = yield from _deployed(service, pending, view)
            is_serving = all(one["status"] == "RUNNING" for one in applications.values())
            if is_serving and (active is None or pending is not active):
                active = yield from _switch(service, pending, now)
        elif active is not None and active["metadata"]["name"] != wanted:
            active = yield from _give_way(service, active, pending, view, now)
        yield from _services(service, active or pending, view)
        yield from _forget(service, clusters, active, pending, now)
        yield from _tell(service, active, pending, applications, now)


# ---- clusters ------------------------------------------------------------------------------------


def _wanted(service: Json, active: Json | None) -> str:
    """Return the name of the cluster that is to serve; `None` as a strategy keeps the present."""
    strategy = (service["spec"].get("upgradeStrategy") or {}).get("type")
    if strategy == "None" and active is not None:
        return str(active["metadata"]["name"])
    config = json.loads(json.dumps(service["spec"].get("rayClusterConfig") or {}))
    for group in config.get("workerGroupSpecs") or ():
        for field in (*_SIZES, "scaleStrategy"):
            group.pop(field, None)
    ending = suffix(service["metadata"]["uid"], json.dumps(config, sort_keys=True))
    return f"{service['metadata']['name'][:50]}-{ending}"


def _active(service: Json, clusters: Sequence[Json]) -> Json | None:
    """Return the cluster that took the requests last."""
    serving = [one for one in clusters if _since(one)]
    return max(serving, key=lambda one: (_since(one), one["metadata"]["name"]), default=None)


def _since(cluster: Json) -> float:
    return seconds((cluster["metadata"].get("annotations") or {}).get(_SWITCHED, ""))


def _state(cluster: Json) -> str:
    return str((cluster.get("status") or {}).get("state") or "")


def _cluster(service: Json, name: str) -> Json:
    metadata = service["metadata"]
    held = metadata.get("labels") or {}
    labels = {key: held[key] for key in (names.QUEUE_LABEL, PRIORITY_LABEL) if held.get(key)}
    annotations = {
        key: text
        for key, text in (metadata.get("annotations") or {}).items()
        if key.startswith("unisono.dev/") and key != "unisono.dev/submitter"
    }
    return {
        "apiVersion": ray.CLUSTER.api_version,
        "kind": ray.CLUSTER.kind,
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": {**labels, _SERVICE_LABEL: metadata["name"]},
            "annotations": annotations,
            "ownerReferences": [owner_reference(service)],
        },
        "spec": service["spec"].get("rayClusterConfig") or {},
    }


def _sized(service: Json, cluster: Json) -> Generator[Action, Any, Json]:
    """Give a cluster the numbers of workers that its service says."""
    config = service["spec"].get("rayClusterConfig") or {}
    given = {one.get("groupName"): one for one in config.get("workerGroupSpecs") or ()}
    groups = []
    for group in cluster["spec"].get("workerGroupSpecs") or ():
        sizes = given.get(group.get("groupName")) or {}
        groups.append({**group, **{key: sizes[key] for key in _SIZES if key in sizes}})
    if groups != list(cluster["spec"].get("workerGroupSpecs") or ()):
        cluster = yield Patch(Ref.to(cluster), {"spec": {"workerGroupSpecs": groups}})
    return cluster


def _switch(service: Json, cluster: Json, now: float) -> Generator[Action, Any, Json]:
    if _since(cluster):
        return cluster
    changes = {"metadata": {"annotations": {_SWITCHED: timestamp(now)}}}
    switched: Json = yield Patch(Ref.to(cluster), changes)
    name = cluster["metadata"]["name"]
    yield Note(Ref.to(service), "SwitchedRayCluster", f"RayCluster {name} takes the requests")
    return switched


def _give_way(
    service: Json, active: Json, pending: Json, view: View, now: float
) -> Generator[Action, Any, Json | None]:
    """Delete the cluster that serves if the new one has waited for quota for long."""
    metadata = pending["metadata"]
    name = workload_name(ray.CLUSTER, metadata["name"], metadata["uid"])
    workload = view.peek(names.WORKLOAD, name, metadata["namespace"])
    conditions = (workload.get("status") or {}).get("conditions") if workload is not None else None
    if workload is None or is_true(conditions, "QuotaReserved"):
        return active
    due = seconds(workload["metadata"].get("creationTimestamp") or "") + GIVES_WAY_S
    if now < due:
        yield Again(due)
        return active
    yield Delete(Ref.to(active))
    message = (
        f"RayCluster {metadata['name']} waits for quota: {active['metadata']['name']} gives way, or"
        " the update would wait for ever"
    )
    yield Note(Ref.to(service), "GivingWay", message, "Warning")
    return None


def _forget(
    service: Json, clusters: Sequence[Json], active: Json | None, pending: Json, now: float
) -> Steps:
    """Delete clusters that serve no more: those before the active one, after a delay."""
    kept = {pending["metadata"]["uid"]}
    if active is not None:
        kept.add(active["metadata"]["uid"])
    others = [one for one in clusters if one["metadata"]["uid"] not in kept]
    delay = service["spec"].get("rayClusterDeletionDelaySeconds")
    for one in others:
        due = (_since(active) if active is not None else 0.0) + (
            _OLD_KEPT_S if delay is None else float(delay)
        )
        if _since(one) and active is not None and now < due:
            yield Again(due)
        elif not _since(one) or active is not None:
            yield Delete(Ref.to(one))


# ---- what is served ------------------------------------------------------------------------------


def _deployed(service: Json, cluster: Json, view: View) -> Generator[Action, Any, dict[str, Json]]:
    """Have `serve deploy` tell the cluster what to serve; return how the applications are."""
    text = str(service["spec"].get("serveConfigV2") or "")
    applications = _applications(text)
    if not text.strip():
        return {}
    name = f"{cluster['metadata']['name']}-serve-{suffix(text)}"
    namespace = cluster["metadata"]["namespace"]
    job = view.get(names.JOB, name, namespace)
    if job is None:
        job = yield Create(_deploy_job(service, cluster, name, text))
    conditions = (job.get("status") or {}).get("conditions")
    status, message = "DEPLOYING", ""
    if is_true(conditions, "Complete"):
        status = "RUNNING"
    elif is_true(conditions, "Failed"):
        status, message = "DEPLOY_FAILED", f"Job {name} failed: see its log"
    return {one: {"status": status, "message": message} for one in applications}


def _applications(text: str) -> list[str]:
    """Return the names of what is to be served; one without a readable list counts as one."""
    try:
        read = yaml.safe_load(text)
    except yaml.YAMLError:
        return ["default"]
    listed = read.get("applications") if isinstance(read, dict) else None
    found = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return [str(one.get("name") or "default") for one in found] or ["default"]


def _deploy_job(service: Json, cluster: Json, name: str, text: str) -> Json:
    """Return the Job that deploys; it is part of its cluster, and so in no queue of its own."""
    head = ((cluster["spec"].get("headGroupSpec") or {}).get("template") or {}).get("spec") or {}
    image = (head.get("containers") or [{}])[0].get("image") or "rayproject/ray"
    line = (
        'printf %s "$SERVE_CONFIG" > /tmp/serve.yaml && '
        f"serve deploy /tmp/serve.yaml --address http://{head_address(cluster)}:{_DASHBOARD}"
    )
    container = {
        "name": "serve-deploy",
        "image": image,
        "command": ["/bin/bash", "-c", line],
        "env": [{"name": "SERVE_CONFIG", "value": text}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": cluster["metadata"]["namespace"],
            "labels": {_SERVICE_LABEL: service["metadata"]["name"]},
            "ownerReferences": [owner_reference(cluster)],
        },
        "spec": {
            "backoffLimit": 10,
            "template": {
                # Simulated, it takes a moment.
                "metadata": {"annotations": {"unisono.dev/run-seconds": "1"}},
                "spec": {"restartPolicy": "Never", "containers": [container]},
            },
        },
    }


def _services(service: Json, cluster: Json, view: View) -> Steps:
    """Have the two Services of the service point at the cluster that takes the requests."""
    metadata = service["metadata"]
    base = {ray.CLUSTER_LABEL: cluster["metadata"]["name"]}
    serve = dict(base)
    if service["spec"].get("excludeHeadPodFromServeSvc"):
        serve[ray.NODE_TYPE] = "worker"
    given = service["spec"].get("serveService") or {}
    serve_name = (given.get("metadata") or {}).get("name") or f"{metadata['name']}-serve-svc"
    for name, selector, ports in (
        (f"{metadata['name']}-head-svc", {**base, ray.NODE_TYPE: "head"}, ray.PORTS),
        (serve_name, serve, {"serve": ray.PORTS["serve"]}),
    ):
        there = view.get(names.SERVICE, name, metadata["namespace"])
        if there is None:
            listed = [{"name": key, "port": port} for key, port in sorted(ports.items())]
            spec = {"ports": listed, **(given.get("spec") or {} if name == serve_name else {})}
            yield Create(
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": {
                        "name": name,
                        "namespace": metadata["namespace"],
                        "ownerReferences": [owner_reference(service)],
                    },
                    "spec": {**spec, "selector": selector},
                }
            )
        elif there["spec"].get("selector") != selector:
            old = there["spec"].get("selector") or {}
            gone = {key: None for key in old if key not in selector}
            yield Patch(Ref.to(there), {"spec": {"selector": {**gone, **selector}}})


# ---- status --------------------------------------------------------------------------------------


def _tell(
    service: Json, active: Json | None, pending: Json | None, applications: Json, now: float
) -> Steps:
    """Write the status if it changed."""
    old = service.get("status") or {}
    waits = pending is not None and (
        active is None or active["metadata"]["uid"] != pending["metadata"]["uid"]
    )
    is_serving = active is not None and _state(active) == "ready"
    ends = int((active.get("status") or {}).get("readyWorkerReplicas") or 0) if active else 0
    endpoints = ends + 1 if is_serving else 0
    conditions = old.get("conditions") or []
    generation = service["metadata"].get("generation", 1)
    are_two = waits and active is not None
    for kind, holds, reason, message in (
        (
            "Ready",
            is_serving,
            "NonZeroServeEndpoints" if is_serving else "Initializing",
            f"{endpoints} pods take requests",
        ),
        (
            "UpgradeInProgress",
            are_two,
            "BothActivePendingClustersExist" if are_two else "NoPendingCluster",
            "the next RayCluster is not ready yet" if waits else "",
        ),
    ):
        word = "True" if holds else "False"
        conditions = with_condition(
            conditions,
            kind,
            word,  # type: ignore[arg-type]  # one of two words
            reason,
            message,
            now=now,
            generation=generation,
        )
    status: Json = {
        "serviceStatus": "Running" if is_serving else "",
        "numServeEndpoints": endpoints,
        "activeServiceStatus": _of(active, {} if waits else applications),
        "pendingServiceStatus": _of(pending, applications) if waits else None,
        "observedGeneration": generation,
        "conditions": conditions,
    }
    if any((old.get(key) or None) != (value or None) for key, value in status.items()):
        changed = {**status, "lastUpdateTime": timestamp(now)}
        # A merge patch keeps what it does not name: an application that is gone has to be named.
        yield from _cleared(service, changed)


def _cleared(service: Json, status: Json) -> Steps:
    old = service.get("status") or {}
    for field in ("activeServiceStatus", "pendingServiceStatus"):
        before = (old.get(field) or {}).get("applicationStatuses") or {}
        new = status.get(field)
        if new is not None:
            there = new.get("applicationStatuses") or {}
            gone = {name: None for name in before if name not in there}
            status[field] = {**new, "applicationStatuses": {**gone, **there}}
    yield Patch(Ref.to(service), {"status": status}, "status")


def _of(cluster: Json | None, applications: Json) -> Json | None:
    if cluster is None:
        return None
    found: Json = {"rayClusterName": cluster["metadata"]["name"]}
    if applications:
        found["applicationStatuses"] = applications
    return found
