"""Pods of a Volcano job, the volumes that all of them share, and what its plugins add."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from unisono.control.actions import Json
from unisono.control.conditions import timestamp
from unisono.control.job_kinds import volcano
from unisono.control.job_kinds.ssh_keys import KeyPair
from unisono.control.job_kinds.volcano.tasks import Task, host_name, pod_name, tasks_of
from unisono.control.jobs.adapter import Injection, injected
from unisono.control.jobs.pods import nameable, pod_from
from unisono.control.jobs.workload import owner_reference
from unisono.kinds.digits import whole_number
from unisono.kinds.volcano.jobs import flag_of

RESTART_COUNT = "UNISONO_RESTART_COUNT"


def group_name(job: Json) -> str:
    """Return the name of a job's PodGroup."""
    return f"{job['metadata']['name']}-{job['metadata']['uid']}"


def new_pod(
    job: Json, task: Task, index: int, injection: Injection | None, *, lost_at: float | None
) -> Json:
    """Return one pod of a task as its template, its plugins and its admission want it."""
    metadata, status = job["metadata"], job.get("status") or {}
    template: Json = copy.deepcopy(task.template)
    if injection is not None:
        changes = injected(template, injection)
        template["metadata"] = {**(template.get("metadata") or {}), **changes["metadata"]}
        template["spec"] = {**template["spec"], **changes.get("spec", {})}
    queue = job["spec"].get("queue") or volcano.DEFAULT_QUEUE
    labels = {
        volcano.JOB_NAME: metadata["name"],
        volcano.JOB_NAMESPACE: metadata["namespace"],
        volcano.QUEUE_NAME: queue,
        volcano.TASK: task.name,
        volcano.INDEX: str(index),
    }
    annotations = {
        volcano.JOB_NAME: metadata["name"],
        volcano.QUEUE_NAME: queue,
        volcano.TASK: task.name,
        volcano.INDEX: str(index),
        volcano.VERSION: str(status.get("version", 0)),
        volcano.RETRIES: str(status.get("retryCount", 0)),
        volcano.TEMPLATE: f"{metadata['name']}-{task.name}",
        volcano.GROUP_NAME: group_name(job),
    }
    if lost_at is not None:
        annotations[volcano.LOST_AT] = timestamp(lost_at)
    name = pod_name(job, task.name, index)
    pod = pod_from(template, job, name, labels=labels, annotations=annotations)
    _equip(pod, job, task, index)
    _mount_volumes(pod, job)
    for one in pod["spec"]["containers"]:
        count = {"name": RESTART_COUNT, "value": str(status.get("retryCount", 0))}
        one["env"] = [*(one.get("env") or ()), count]
    return pod


def _mount_volumes(pod: Json, job: Json) -> None:
    for place, volume in enumerate(job["spec"].get("volumes") or ()):
        name = f"volume-{place}"
        claim = claim_name(job, place)
        pod["spec"]["volumes"] = [
            *(pod["spec"].get("volumes") or ()),
            {"name": name, "persistentVolumeClaim": {"claimName": claim}},
        ]
        for one in pod["spec"]["containers"]:
            mount = {"name": name, "mountPath": volume["mountPath"]}
            one["volumeMounts"] = [*(one.get("volumeMounts") or ()), mount]


def claim_name(job: Json, place: int) -> str:
    """Return the claim behind one of a job's volumes: the one it names, or one of its own."""
    named = job["spec"]["volumes"][place].get("volumeClaimName")
    return named or f"{job['metadata']['name']}-volume-{place}"


def with_claim_names(job: Json) -> list[Json]:
    """Return a job's volumes, each with the name of its claim."""
    return [
        {**volume, "volumeClaimName": claim_name(job, place)}
        for place, volume in enumerate(job["spec"].get("volumes") or ())
    ]


def new_claims(job: Json) -> list[Json]:
    """Return the claims that a job describes itself; they live as long as it does."""
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": claim_name(job, place),
                "namespace": job["metadata"]["namespace"],
                "ownerReferences": [owner_reference(job)],
            },
            "spec": volume["volumeClaim"],
        }
        for place, volume in enumerate(job["spec"].get("volumes") or ())
        if volume.get("volumeClaim")
    ]


# ---- plugins -------------------------------------------------------------------------------------
#
# What the plugins of a Volcano job add: names, variables, keys (jobs §4).
#
#     svc       a headless Service, a ConfigMap of host names at /etc/volcano, and variables
#     ssh       a Secret of keys in /root/.ssh, so that the pods can enter each other
#     env       the number of a pod in its task
#     pytorch   MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK
#     mpi       MPI_HOST on the master
#     tensorflow  TF_CONFIG
#     ray     a Service for the head, and the commands that make a cluster of the containers
#
# Upstream has no variable for the address of a single pod, yet manifests in the wild use
# `VC_WORKER_0_SVC`. Here `VC_<TASK>_<i>_SVC` exists for i = 0, and for every i that a pod mentions.

_LAST_PORT = 65_535

KNOWN = ("svc", "ssh", "env", "pytorch", "mpi", "tensorflow", "ray")
_IMPLY_SVC = ("pytorch", "tensorflow", "mpi", "ray")
_HOSTS_AT = "/etc/volcano"
_ROOT_SSH = "/root/.ssh"
_MENTIONED = re.compile(r"\bVC_([A-Z0-9_]+)_(0|[1-9][0-9]{0,9})_SVC\b")


def plugins_of(job: Json) -> Mapping[str, Sequence[str]]:
    """Return a job's plugins and their arguments, those included that others need."""
    found = dict(job["spec"].get("plugins") or {})
    if any(name in found for name in _IMPLY_SVC):
        found.setdefault("svc", [])
    if "mpi" in found:
        found.setdefault("ssh", [])
    return found


# ---- objects of plugins --------------------------------------------------------------------------


def service(job: Json) -> Json:
    """Return the headless Service that gives the pods their names."""
    arguments = plugins_of(job)["svc"]
    publish = flag_of(arguments, "publish-not-ready-addresses", "false") == "true"
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(job, name),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": publish,
            "selector": {volcano.JOB_NAME: name, volcano.JOB_NAMESPACE: namespace},
        },
    }


def config_map(job: Json) -> Json:
    """Return the ConfigMap of all host names."""
    data: dict[str, str] = {}
    for task in tasks_of(job):
        hosts = _hosts(job, task)
        data[f"{task.name.replace('-', '_')}.host"] = "\n".join(hosts)
        data[f"VC_{_upper(task.name)}_HOSTS"] = ",".join(hosts)
        data[f"VC_{_upper(task.name)}_NUM"] = str(task.replicas)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(job, _hosts_name(job)),
        "data": data,
    }


def secret(job: Json, keys: KeyPair) -> Json:
    """Return the Secret of keys; a job may bring its own."""
    arguments = plugins_of(job)["ssh"]
    private = flag_of(arguments, "ssh-private-key", "") or keys.private
    public = flag_of(arguments, "ssh-public-key", "") or keys.public
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(job, keys_name(job)),
        "stringData": {
            "id_rsa": private,
            "id_rsa.pub": public,
            "authorized_keys": public,
            "config": ssh_config(job),
        },
    }


def ssh_config(job: Json) -> str:
    """Return what `ssh` reads in every pod: the short names of all of them."""
    port = flag_of(plugins_of(job)["ssh"], "ssh-port", "22")
    lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
    for task in tasks_of(job):
        for host in _hosts(job, task):
            short = host.partition(".")[0]
            lines += [f"Host {short}", f"  HostName {host}"]
            if port != "22":
                lines.append(f"  Port {port}")
    return "\n".join(lines) + "\n"


def _hosts_name(job: Json) -> str:
    """Return the name of the ConfigMap of host names."""
    return f"{job['metadata']['name']}-svc"


def keys_name(job: Json) -> str:
    """Return the name of the Secret of keys."""
    return f"{job['metadata']['name']}-ssh"


def _metadata(job: Json, name: str) -> Json:
    return {
        "name": name,
        "namespace": job["metadata"]["namespace"],
        "ownerReferences": [owner_reference(job)],
    }


def _hosts(job: Json, task: Task) -> list[str]:
    """Return the names of a task's pods, as many as there is room for."""
    return [host_name(job, task.name, number) for number in range(_listed(job, task))]


def _listed(job: Json, task: Task) -> int:
    longest = len(host_name(job, task.name, task.replicas))
    return nameable(task.replicas, longest * len(job["spec"]["tasks"]))


def hosts_left_out(job: Json) -> int:
    """Return how many pods the lists of hosts do not name because there are too many."""
    return sum(task.replicas - _listed(job, task) for task in tasks_of(job))


def _upper(task: str) -> str:
    return task.upper().replace("-", "_")


# ---- what plugins add to pods --------------------------------------------------------------------


def _equip(pod: Json, job: Json, task: Task, index: int) -> None:
    """Add to a new pod what the job's plugins promise; the pod is ours to change."""
    plugins = plugins_of(job)
    first: list[Json] = []
    last: list[Json] = []
    if "svc" in plugins:
        _name(pod, job)
        first += _addresses(pod, job)
        if flag_of(plugins["svc"], "inject-hosts-env", "true") == "true":
            last += _host_variables(job)
        volume = {"name": _hosts_name(job), "configMap": {"name": _hosts_name(job)}}
        _mount(pod, volume, _HOSTS_AT)
    if "ssh" in plugins:
        _keys(pod, job, plugins["ssh"])
    if "env" in plugins:
        first += [_variable(name, str(index)) for name in ("VK_TASK_INDEX", "VC_TASK_INDEX")]
    if "pytorch" in plugins:
        first += _pytorch(pod, job, task, index, plugins["pytorch"])
    if "tensorflow" in plugins:
        first += _tensorflow(pod, job, task, index, plugins["tensorflow"])
    if "ray" in plugins:
        _ray(pod, job, task, plugins["ray"])
    if "mpi" in plugins and task.name == flag_of(plugins["mpi"], "master", "master"):
        first += _mpi(job, plugins["mpi"])
    for one in _containers(pod):
        own = one.get("env") or []
        named = {variable["name"] for variable in own}
        one["env"] = [
            *(variable for variable in first if variable["name"] not in named),
            *own,
            *(variable for variable in last if variable["name"] not in named),
        ]


def _containers(pod: Json) -> Iterator[Json]:
    for part in ("initContainers", "containers"):
        if pod["spec"].get(part):
            yield from pod["spec"][part]


def _variable(name: str, value: str) -> Json:
    return {"name": name, "value": value}


def _name(pod: Json, job: Json) -> None:
    pod["spec"].setdefault("hostname", pod["metadata"]["name"])
    pod["spec"].setdefault("subdomain", job["metadata"]["name"])


def _addresses(pod: Json, job: Json) -> list[Json]:
    """Return the variables that name single pods."""
    mentioned: dict[str, set[int]] = {}
    for text in _texts(pod["spec"]):
        for task_, digits in _MENTIONED.findall(text):
            mentioned.setdefault(task_, set()).add(int(digits))
    found = []
    for task in tasks_of(job):
        numbers = {0, *mentioned.get(_upper(task.name), ())}
        for number in sorted(number for number in numbers if number < task.replicas):
            name = f"VC_{_upper(task.name)}_{number}_SVC"
            found.append(_variable(name, host_name(job, task.name, number)))
    return found


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _host_variables(job: Json) -> list[Json]:
    return [
        {
            "name": key,
            "valueFrom": {"configMapKeyRef": {"name": _hosts_name(job), "key": key}},
        }
        for task in tasks_of(job)
        for key in (f"VC_{_upper(task.name)}_HOSTS", f"VC_{_upper(task.name)}_NUM")
    ]


def _mount(pod: Json, volume: Json, path: str) -> None:
    spec = pod["spec"]
    if any(one["name"] == volume["name"] for one in spec.get("volumes") or ()):
        return
    spec["volumes"] = [*(spec.get("volumes") or ()), volume]
    for one in _containers(pod):
        mounts = one.get("volumeMounts") or []
        if not any(mount["mountPath"] == path for mount in mounts):
            one["volumeMounts"] = [*mounts, {"name": volume["name"], "mountPath": path}]


def _keys(pod: Json, job: Json, arguments: Sequence[str]) -> None:
    path = flag_of(arguments, "ssh-key-file-path", _ROOT_SSH)
    # Only root may have private keys of mode 0600: other users could not read them then.
    mode = 0o600 if path == _ROOT_SSH else 0o644
    name = keys_name(job)
    items = [{"key": key, "path": key} for key in ("id_rsa", "id_rsa.pub", "authorized_keys")]
    items.append({"key": "config", "path": "config"})
    secret_ = {"secretName": name, "items": items, "defaultMode": mode}
    _mount(pod, {"name": name, "secret": secret_}, path)


def _pytorch(pod: Json, job: Json, task: Task, index: int, arguments: Sequence[str]) -> list[Json]:
    master = flag_of(arguments, "master", "master")
    worker = flag_of(arguments, "worker", "worker")
    port = port_of(arguments, "23456")
    counts = {one.name: one.replicas for one in tasks_of(job)}
    if task.name not in (master, worker) or master not in counts:
        return []
    _open(pod, int(port), "pytorchjob-port")
    return [
        _variable("MASTER_ADDR", host_name(job, master, 0)),
        _variable("MASTER_PORT", port),
        _variable("WORLD_SIZE", str(counts[master] + counts.get(worker, 0))),
        _variable("RANK", str(index if task.name == master else counts[master] + index)),
    ]


def port_of(arguments: Sequence[str], default: str) -> str:
    """Return the port that the arguments of a plugin name, if it is one; else its usual one."""
    text = flag_of(arguments, "port", default)
    return text if whole_number(text, _LAST_PORT) else default


def _open(pod: Json, port: int, name: str) -> None:
    for one in pod["spec"]["containers"]:
        ports = one.get("ports") or []
        if not any(known.get("containerPort") == port for known in ports):
            one["ports"] = [*ports, {"name": name, "containerPort": port}]


def _mpi(job: Json, arguments: Sequence[str]) -> list[Json]:
    worker = flag_of(arguments, "worker", "worker")
    hosts = [host for task in tasks_of(job) if task.name == worker for host in _hosts(job, task)]
    return [_variable("MPI_HOST", ",".join(hosts))]


def _tensorflow(
    pod: Json, job: Json, task: Task, index: int, arguments: Sequence[str]
) -> list[Json]:
    port = port_of(arguments, "2222")
    roles = {
        flag_of(arguments, role, role): role for role in ("ps", "worker", "chief", "evaluator")
    }
    if task.name not in roles:
        return []
    _open(pod, int(port), "tfjob-port")
    cluster = {
        roles[one.name]: [f"{host}:{port}" for host in _hosts(job, one)]
        for one in tasks_of(job)
        if one.name in roles
    }
    config = {"cluster": cluster, "task": {"type": roles[task.name], "index": index}}
    return [_variable("TF_CONFIG", json.dumps(config, separators=(",", ":")))]


# ---- ray -----------------------------------------------------------------------------------------

# The ports of a Ray head: the flag of the plugin that says another, its name, and the usual one.
_RAY_PORTS = (
    ("port", "gcs", "6379"),
    ("dashboardPort", "dashboard", "8265"),
    ("clientPort", "client-server", "10001"),
)


def head_service(job: Json) -> Json:
    """Return the Service by which the head of a Ray cluster is found."""
    arguments = plugins_of(job)["ray"]
    metadata = job["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(job, f"{metadata['name']}-head-svc"),
        "spec": {
            "selector": {
                volcano.JOB_NAME: metadata["name"],
                volcano.JOB_NAMESPACE: metadata["namespace"],
                volcano.TASK: flag_of(arguments, "head", "head"),
            },
            "ports": [
                {"name": name, "port": port, "targetPort": name, "protocol": "TCP"}
                for name, port in _ray_ports(arguments).items()
            ],
        },
    }


def _ray_ports(arguments: Sequence[str]) -> dict[str, int]:
    found = {}
    for flag, name, usual in _RAY_PORTS:
        text = flag_of(arguments, flag, usual)
        found[name] = whole_number(text, _LAST_PORT) or int(usual)
    return found


def _ray(pod: Json, job: Json, task: Task, arguments: Sequence[str]) -> None:
    """Have the container of a task start its part of a Ray cluster, whatever its command was."""
    head = flag_of(arguments, "head", "head")
    ports = _ray_ports(arguments)
    gcs, dashboard, client = ports.values()
    if task.name == head:
        container = flag_of(arguments, "headContainer", "head")
        command = f"ray start --head --block --dashboard-host=0.0.0.0 --port={gcs}"
        command += f" --dashboard-port={dashboard} --ray-client-server-port={client}"
    elif task.name == flag_of(arguments, "worker", "worker"):
        container = flag_of(arguments, "workerContainer", "worker")
        command = f"ray start --block --address={host_name(job, head, 0)}:{gcs}"
        ports = {}
    else:
        return
    for one in pod["spec"]["containers"]:
        if one["name"] != container:
            continue
        one["command"] = ["sh", "-c", command]
        one.pop("args", None)
        there = {known.get("containerPort") for known in one.get("ports") or ()}
        more = [
            {"name": name, "containerPort": port}
            for name, port in ports.items()
            if port not in there
        ]
        one["ports"] = [*(one.get("ports") or ()), *more]
