"""The pod that hands a program to a Ray cluster and stays until it is through (K8sJobMode)."""

from __future__ import annotations

import copy
import json
import shlex

import yaml

from unisono.control.actions import Json
from unisono.control.job_kinds.ray import api
from unisono.control.job_kinds.ray.pods import head_address
from unisono.control.jobs.adapter import Injection, injected
from unisono.control.jobs.workload import owner_reference

NAME = "submitter"
_DASHBOARD = api.PORTS["dashboard"]
_RETRIES = 2


def submitter_template(job: Json) -> Json:
    """Return the template of the submitter as the job gives it, or the usual one."""
    given = job["spec"].get("submitterPodTemplate")
    if given:
        return dict(given)
    cluster = job["spec"].get("rayClusterSpec") or {}
    head = ((cluster.get("headGroupSpec") or {}).get("template") or {}).get("spec") or {}
    image = (head.get("containers") or [{}])[0].get("image", "")
    container = {
        "name": "ray-job-submitter",
        "image": image,
        "resources": {
            "requests": {"cpu": "500m", "memory": "200Mi"},
            "limits": {"cpu": "1", "memory": "1Gi"},
        },
    }
    return {"spec": {"restartPolicy": "Never", "containers": [container]}}


def submitter_job(job: Json, cluster: Json, injection: Injection | None) -> Json:
    """Return the Job whose pod submits the program."""
    metadata = job["metadata"]
    template: Json = copy.deepcopy(submitter_template(job))
    if injection is not None:
        changes = injected(template, injection)
        template["metadata"] = {**(template.get("metadata") or {}), **changes["metadata"]}
        template["spec"] = {**template["spec"], **changes.get("spec", {})}
    # What is said of the job about how it runs (where pods are only simulated) is said of this pod.
    said = {
        key: value
        for key, value in (metadata.get("annotations") or {}).items()
        if key.startswith("unisono.dev/") and key != "unisono.dev/submitter"
    }
    about = template.setdefault("metadata", {})
    about["annotations"] = {**said, **(about.get("annotations") or {})}
    template["spec"]["restartPolicy"] = template["spec"].get("restartPolicy") or "Never"
    container = template["spec"]["containers"][0]
    if not container.get("command"):
        container["command"] = ["/bin/bash", "-c", "--"]
        container["args"] = [_line(job, cluster)]
    address = f"{head_address(cluster)}:{_DASHBOARD}"
    container["env"] = [
        *(container.get("env") or ()),
        {"name": "RAY_DASHBOARD_ADDRESS", "value": address},
        {"name": "RAY_JOB_SUBMISSION_ID", "value": job["status"]["jobId"]},
    ]
    retries = (job["spec"].get("submitterConfig") or {}).get("backoffLimit", _RETRIES)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(job),
            "namespace": metadata["namespace"],
            "labels": {"ray.io/originated-from-cr-name": metadata["name"]},
            "ownerReferences": [owner_reference(job)],
        },
        "spec": {"backoffLimit": retries, "template": template},
    }


def job_name(job: Json) -> str:
    """Return the name of the submitter's Job; every attempt has its own."""
    failed = (job.get("status") or {}).get("failed", 0)
    name = str(job["metadata"]["name"])
    return f"{name}-{failed}" if failed else name


def _line(job: Json, cluster: Json) -> str:
    """Return what a shell does: submit unless that was done before, then follow the log."""
    spec, identity = job["spec"], shlex.quote(job["status"]["jobId"])
    address = f"--address http://{head_address(cluster)}:{_DASHBOARD}"
    options = ["--no-wait", f"--submission-id {identity}"]
    environment = spec.get("runtimeEnvYAML")
    if environment:
        options.append(f"--runtime-env-json {shlex.quote(json.dumps(_read(environment)))}")
    if spec.get("metadata"):
        options.append(f"--metadata-json {shlex.quote(json.dumps(spec['metadata']))}")
    for field, flag in (
        ("entrypointNumCpus", "--entrypoint-num-cpus"),
        ("entrypointNumGpus", "--entrypoint-num-gpus"),
    ):
        if spec.get(field):
            options.append(f"{flag} {spec[field]}")
    if spec.get("entrypointResources"):
        options.append(f"--entrypoint-resources {shlex.quote(spec['entrypointResources'])}")
    submit = f"ray job submit {address} {' '.join(options)} -- {spec.get('entrypoint', '')}"
    return (
        f"if ! ray job status {address} {identity} > /dev/null 2>&1; then {submit}; fi;"
        f" ray job logs {address} --follow {identity}"
    )


def _read(text: str) -> object:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text
