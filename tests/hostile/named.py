"""Cases that are more than one field: what was once found, and what is hostile as a whole.

Objects that are `slipped` come into the store past the API's checks, as a real API server with our
schemas but without our checks would let them in: the controllers have to cope with them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.control.job_kinds.test_volcano_policies import task, vcjob
from tests.control.training_world import job_set, replicated, train_job
from tests.hostile.bases import NAME, NAMESPACE, QUEUE_LABEL, base_of
from tests.hostile.cases import Case, body_of, creating, path_of
from tests.hostile.stage import NOISY, Send, Stage, gang
from tests.hostile.values import MANY
from tests.support.control_objects import KUEUE, job
from unisono.control.conditions import find
from unisono.control.names import WORKLOAD
from unisono.kinds.shapes.served import Served, served_kinds
from unisono.kube.form import Json

_HUGE = 2**31 - 1
# Longer than anything waits for pods that do not come.
_LONG_S = 600.0
# Until a schedule of every minute has run once or twice.
_MINUTE_S = 65.0
_SLICES = {
    "kueue.x-k8s.io/podset-slice-required-topology": "cloud.provider.com/topology-rack",
    "kueue.x-k8s.io/podset-slice-size": "2",
}


def kind_of(api_version: str, kind: str) -> Served:
    """Return a kind that is served."""
    found = (one for one in served_kinds() if (one.api_version, one.kind) == (api_version, kind))
    return next(found)


def _served(obj: Json) -> Served:
    return kind_of(obj["apiVersion"], obj["kind"])


def _base(api_version: str, kind: str) -> Json:
    return base_of(kind_of(api_version, kind))


def _hostile(obj: Json) -> Json:
    """Put an object into the noisy namespace and queue."""
    obj["metadata"] = {**obj["metadata"], "name": NAME, "namespace": NAMESPACE}
    obj["metadata"]["labels"] = {**obj["metadata"].get("labels", {}), QUEUE_LABEL: NAMESPACE}
    return obj


def created(*objects: Json, **more: Any) -> Case:
    """Return a case that creates objects."""
    about = tuple((_served(obj), obj["metadata"]["name"]) for obj in objects)
    sends = tuple(creating(_served(obj), obj) for obj in objects)
    return Case("", (), sends, about, **more)


def slipped(*objects: Json, **more: Any) -> Case:
    """Return a case with unchecked objects."""
    about = tuple((_served(obj), obj["metadata"]["name"]) for obj in objects)
    sends = tuple(Send("SLIP", path_of(_served(obj)), json.dumps(obj).encode()) for obj in objects)
    return Case("", (), sends, about, **more)


def changed(obj: Json, *changes: Json, **more: Any) -> Case:
    """Return a case that creates a right object and then patches it."""
    kind, name = _served(obj), obj["metadata"]["name"]
    media = "application/merge-patch+json"
    patches = tuple(Send("PATCH", path_of(kind, name), body_of(one), media) for one in changes)
    return Case("", (creating(kind, obj),), patches, ((kind, name),), **more)


def _job(**spec: Any) -> Json:
    return _hostile(job(NAME, pods=2, gpus=1, queue_name="", **spec))


def _template(made: Json) -> Json:
    template: Json = made["spec"]["template"]
    return template


def _annotated(made: Json, **says: str) -> Json:
    _template(made)["metadata"]["annotations"] = dict(says)
    return made


def _asking(made: Json, **amounts: str) -> Json:
    resources = {"limits": dict(amounts), "requests": dict(amounts)}
    _template(made)["spec"]["containers"][0]["resources"] = resources
    return made


def _million() -> Json:
    made = _asking(_job(), cpu="9000000000000000")
    made["spec"] = {"parallelism": 1_000_000, "template": _template(made)}
    return made


def _bare_submitter() -> Json:
    made = _base("ray.io/v1", "RayJob")
    made["spec"]["submitterPodTemplate"] = {"metadata": {"labels": {"a": "b"}}}
    return made


def _sliced() -> Json:
    return _hostile(job_set(replicated("w", pods=4, gpus=1, says=_SLICES)))


def _volcano(replicas: int, gpus: str = "1", **spec: Any) -> Json:
    made = vcjob(task("w", replicas), **spec)
    limits = made["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"]["limits"]
    limits["nvidia.com/gpu"] = gpus
    return _hostile(made)


def _config(kind: str, name: str, spec: Json, *, version: str = KUEUE) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _orphaned() -> Case:
    """A job that waits is deleted and its Workload is not; then there would be room for it."""
    jobs = kind_of("batch/v1", "Job")
    waits = _hostile(gang(NAME, NOISY, pods=4, gpus=2))
    gone = Send("DELETE", f"{path_of(jobs, NAME)}?propagationPolicy=Orphan")
    room = Send("DELETE", f"{path_of(jobs, 'busy')}?propagationPolicy=Background")
    more = Send("DELETE", f"{path_of(jobs, 'waits')}?propagationPolicy=Background")
    return Case("", (creating(jobs, waits),), (gone, room, more), (), seconds=_LONG_S)


def _stays(stage: Stage) -> list[str]:
    """See that a Workload of another controller is left alone, pods or none."""
    (found,) = (one for one in stage.every(WORKLOAD) if one["metadata"]["name"] == NAME)
    status = found.get("status") or {}
    evictions = (status.get("schedulingStats") or {}).get("evictions") or ()
    if evictions:  # also if it has been admitted again
        return [f"it was evicted: {evictions}"]
    admitted = find(status.get("conditions"), "Admitted")
    return [] if admitted is not None and admitted["status"] == "True" else ["it is not admitted"]


def _is_understood(stage: Stage) -> list[str]:
    """See that nothing is in quarantine: it waits, and why it does is known."""
    return [
        f"Workload {one['metadata']['name']} is in quarantine: {condition['message']}"
        for one in stage.every(WORKLOAD)
        for condition in (one.get("status") or {}).get("conditions") or ()
        if condition["reason"] == "Quarantined"
    ]


def _owned(name: str, by: str) -> Json:
    """Return a job that says another one owns it, which does not exist under that uid."""
    made = _job()
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": by, "uid": by, "controller": True}
    made["metadata"] = {**made["metadata"], "name": name, "ownerReferences": [owner]}
    return made


def _dependencies() -> Json:
    waits = [{"name": "b", "status": "Complete"}]
    back = [{"name": "a", "status": "Complete"}]
    return _hostile(job_set(replicated("a", dependsOn=waits), replicated("b", dependsOn=back)))


def _flavors(count: int) -> Json:
    quota = [{"name": "nvidia.com/gpu", "nominalQuota": "1"}]
    groups = [
        {
            "coveredResources": ["nvidia.com/gpu"],
            "flavors": [{"name": f"f{number}", "resources": quota} for number in range(count)],
        }
    ]
    return _config("ClusterQueue", NAME, {"namespaceSelector": {}, "resourceGroups": groups})


def _node(**status: Any) -> Json:
    made = _base("v1", "Node")
    made["status"] |= status
    return made


def _node_with(amounts: Json) -> Json:
    whole = {"cpu": "8", "memory": "64Gi", "pods": "110", **amounts}
    return _node(capacity=whole, allocatable=whole)


def _labelled(count: int) -> Json:
    made = _base("v1", "Node")
    made["metadata"]["labels"] |= {f"example.org/l{number}": "x" for number in range(count)}
    return made


def _tainted(count: int) -> Json:
    made = _base("v1", "Node")
    made["spec"]["taints"] = [
        {"key": f"example.org/t{number}", "effect": "NoSchedule"} for number in range(count)
    ]
    return made


def _limit_range(**limits: Any) -> Json:
    made = _base("v1", "LimitRange")
    made["spec"] = {"limits": [{"type": "Container", **limits}]}
    return made


def _unknown_keys(count: int) -> Json:
    return {**_job(), **{f"unknown{number:06}": "x" * 8 for number in range(count)}}


def _queue_label(value: Any) -> Json:
    made = _job()
    made["metadata"]["labels"] = {QUEUE_LABEL: value}
    return made


def _many_pods(count: int, **labels: str) -> Sequence[Json]:
    found = []
    for number in range(count):
        made = _base("v1", "Pod")
        made["metadata"] = {**made["metadata"], "name": f"p{number}"}
        made["metadata"]["labels"] |= labels
        found.append(made)
    return found


def _group_of_pods(total: str) -> Case:
    pods = _many_pods(2, **{"kueue.x-k8s.io/pod-group-name": "g"})
    for pod in pods:
        pod["metadata"]["annotations"] = {"kueue.x-k8s.io/pod-group-total-count": total}
    return created(*pods)


def _affine(made: Json, terms: int, first: int = 0) -> Json:
    chosen = [
        {"matchExpressions": [{"key": f"l{first + term}", "operator": "Exists"}]}
        for term in range(terms)
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": chosen}}
    _template(made)["spec"]["affinity"] = {"nodeAffinity": required}
    return made


def _many_terms(tasks: int, terms: int) -> Json:
    made = vcjob(*(task(f"t{number}", 1) for number in range(tasks)))
    for number, one in enumerate(made["spec"]["tasks"]):
        _affine({"spec": one}, terms, number * terms)
    return _hostile(made)


# ---- the table -----------------------------------------------------------------------------------


# By the row of the issue that they come from.
def _assigned(**more: Any) -> Json:
    """Return the status of a Workload that has quota, with something else about its pods."""
    name = _base(KUEUE, "Workload")["spec"]["podSets"][0]["name"]
    usage = {"flavors": {"nvidia.com/gpu": NOISY}, "resourceUsage": {"nvidia.com/gpu": "1"}}
    sets = [{"name": name, "count": 1, **usage, **more}]
    return {"admission": {"clusterQueue": NOISY, "podSetAssignments": sets}, **_HAS_QUOTA}


_HAS_QUOTA = {
    "conditions": [
        {
            "type": kind,
            "status": "True",
            "reason": kind,
            "message": "",
            "lastTransitionTime": "2023-11-14T00:00:00Z",
        }
        for kind in ("QuotaReserved", "Admitted")
    ]
}
# What a status may be where the definition of Workloads is not ours.
_STATUSES: Mapping[str, Json] = {
    "admission is a list": {"admission": [1], **_HAS_QUOTA},
    "admission is a text": {"admission": "yes", **_HAS_QUOTA},
    "admission is in no queue": {"admission": {"a": 1}, **_HAS_QUOTA},
    "admission is in a queue that is a map": {"admission": {"clusterQueue": {}}, **_HAS_QUOTA},
    "assignments are a map": {
        "admission": {"clusterQueue": NOISY, "podSetAssignments": {"a": 1}},
        **_HAS_QUOTA,
    },
    "assignments are texts": {
        "admission": {"clusterQueue": NOISY, "podSetAssignments": ["a"]},
        **_HAS_QUOTA,
    },
    "count is a text": _assigned(count="x"),
    "name is a map": _assigned(name={}),
    "flavors are a list": _assigned(flavors=["a"]),
    "flavor is a map": _assigned(flavors={"nvidia.com/gpu": {}}),
    "usage is no amount": _assigned(resourceUsage={"nvidia.com/gpu": "many"}),
    "topology is a text": _assigned(topologyAssignment="a"),
    "conditions are a map": {**_assigned(), "conditions": {"a": 1}},
    "conditions are texts": {**_assigned(), "conditions": ["a"]},
    "condition has no type": {**_assigned(), "conditions": [{"status": "True"}]},
    "reason is a number": {
        **_assigned(),
        "conditions": [{"type": "Evicted", "status": "True", "reason": 7}],
    },
    "reclaimable pods are a text": {**_assigned(), "reclaimablePods": "x"},
    "checks are numbers": {**_assigned(), "admissionChecks": [7]},
    "evictions are a number": {"schedulingStats": {"evictions": 7}},
}

_SCHEDULES: Mapping[str, Any] = {
    "every 7 seconds": "@every 7s",
    "every -1 s": "@every -1s",
    "every 10^30 h": "@every 1000000000000000000000000000000h",
    "never": "0 0 31 2 *",
    "a leap day": "0 0 29 2 *",
    "a range beyond all measure": "0-99999999999 * * * *",
    "a step of 0": "*/0 * * * *",
    "a step of 10^30": "*/1000000000000000000000000000000 * * * *",
    "a list of many": f"{','.join(['0-59'] * 20_000)} * * * *",
    "other digits": "٣ * * * *",
    "fields of lines": "*\n*\n*\n*\n*",
    "a zone of its own": "CRON_TZ=../../../etc/passwd * * * * *",
    "nothing": "",
    "a number": 5,
    "a map": {"a": "b"},
}
_ZONES: Mapping[str, Any] = {
    "..": "../../../etc/passwd",
    "/": "/etc/localtime",
    "local": "Local",
    "a zero byte": "UTC\0",
    "nothing": "",
    "of many letters": "A" * 100_000,
    "that is a folder": "Europe",
    "that is a map": {"a": 1},
    "that is a number": 5,
}

ROWS: Mapping[str, Callable[[], Case]] = {
    "row 1: slices of a topology without a topology": lambda: created(
        _sliced(), check=_is_understood
    ),
    "row 2: a Volcano job of -8 GPUs, slipped in": lambda: slipped(_volcano(2, gpus="-8")),
    "row 2: a Volcano job of -8 GPUs": lambda: created(_volcano(2, gpus="-8")),
    "row 4: a Volcano job of 2^31-1 replicas": lambda: created(_volcano(_HUGE)),
    "row 4: a Volcano job of 2^31-1 replicas, slipped in": lambda: slipped(_volcano(_HUGE)),
    "row 4: a JobSet of 2^31-1 replicas": lambda: created(
        _hostile(job_set(replicated("w", pods=1, gpus=1, replicas=_HUGE)))
    ),
    "row 4: a JobSet of 2^31-1 replicas, slipped in": lambda: slipped(
        _hostile(job_set(replicated("w", pods=1, gpus=1, replicas=_HUGE)))
    ),
    "row 5: a Job with 379 KB of unknown keys": lambda: created(_unknown_keys(13_000)),
    "row 5: a Job with 2.9 MB of unknown keys": lambda: created(_unknown_keys(100_000)),
    "row 6: a waiting Job is deleted without its Workload": _orphaned,
    "row 8: a million pods of 9e15 CPUs": lambda: created(_million()),
    "row 8: a million pods of 9e15 CPUs, slipped in": lambda: slipped(_million()),
    "row 12: a queue name that is a map": lambda: created(_queue_label({"a": "b"})),
    "row 12: a queue name that is a number": lambda: created(_queue_label(5)),
    "row 13: a Workload without pods": lambda: created(
        _base(KUEUE, "Workload"), seconds=_LONG_S, check=_stays
    ),
}

NAMED: Mapping[str, Callable[[], Case]] = {
    **ROWS,
    # counts and amounts whose product is beyond all measure
    "a Job of 2^31-1 pods": lambda: created(_job(parallelism=_HUGE, completions=_HUGE)),
    "a Job of 2^31-1 pods without a queue": lambda: created(
        {
            **job(NAME, queue_name="", parallelism=_HUGE),
            "metadata": {"name": NAME, "namespace": NOISY},
        }
    ),
    "a TrainJob of 2^31-1 nodes": lambda: created(_hostile(train_job(nodes=_HUGE, queue=""))),
    "a JobSet of 46341 × 46341 pods": lambda: created(
        _hostile(job_set(replicated("w", pods=46341, gpus=1, replicas=46341)))
    ),
    "a JobSet of a thousand kinds of jobs": lambda: created(
        _hostile(job_set(*(replicated(f"w{number}", pods=1000) for number in range(1000))))
    ),
    "a JobSet of 400 kinds of jobs": lambda: created(
        _hostile(job_set(*(replicated(f"w{number}", pods=1000) for number in range(400))))
    ),
    "a Job of the most CPUs that a number holds": lambda: created(
        _asking(_job(), cpu="9223372036854775807")
    ),
    "a Job of 10^30 GPUs": lambda: created(_asking(_job(), **{"nvidia.com/gpu": "1e30"})),
    "a Workload of 2^31-1 pods, slipped in": lambda: slipped(
        _with(_base(KUEUE, "Workload"), ("spec", "podSets", 0, "count"), _HUGE)
    ),
    "a Workload of -5 pods, slipped in": lambda: slipped(
        _with(_base(KUEUE, "Workload"), ("spec", "podSets", 0, "count"), -5)
    ),
    "a Workload of -8 GPUs, slipped in": lambda: slipped(
        _with(
            _base(KUEUE, "Workload"),
            ("spec", "podSets", 0, "template", "spec", "containers", 0, "resources"),
            {"requests": {"nvidia.com/gpu": "-8"}},
        )
    ),
    "a Workload of 10^30 GPUs, slipped in": lambda: slipped(
        _with(
            _base(KUEUE, "Workload"),
            ("spec", "podSets", 0, "template", "spec", "containers", 0, "resources"),
            {"requests": {"nvidia.com/gpu": "1e30"}},
        )
    ),
    "a group of 2^31-1 pods": lambda: _group_of_pods("2147483647"),
    "a group of -1 pods": lambda: _group_of_pods("-1"),
    "a group of NaN pods": lambda: _group_of_pods("NaN"),
    "a RayJob whose submitter has no specification": lambda: created(_bare_submitter()),
    "a RayJob whose submitter has no specification, slipped in": lambda: slipped(_bare_submitter()),
    # topology
    "slices that are larger than the gang": lambda: created(
        _annotated(_job(), **{**_SLICES, "kueue.x-k8s.io/podset-slice-size": "1000000"})
    ),
    "slices of size 0": lambda: created(
        _annotated(_job(), **{**_SLICES, "kueue.x-k8s.io/podset-slice-size": "0"})
    ),
    "slices of size -1, slipped in": lambda: slipped(
        _annotated(_job(), **{**_SLICES, "kueue.x-k8s.io/podset-slice-size": "-1"})
    ),
    "a topology that no node has": lambda: created(
        _annotated(_job(), **{"kueue.x-k8s.io/podset-required-topology": "example.org/none"})
    ),
    "a Topology without levels": lambda: created(_config("Topology", NAME, {"levels": []})),
    "a Topology without levels, slipped in": lambda: slipped(
        _config("Topology", NAME, {"levels": []}),
        _config("ResourceFlavor", NAME, {"nodeLabels": {"pool": NOISY}, "topologyName": NAME}),
    ),
    # references that lead back
    "cohorts in a circle": lambda: created(
        _config("Cohort", "a", {"parentName": "b"}),
        _config("Cohort", "b", {"parentName": "c"}),
        _config("Cohort", "c", {"parentName": "a"}),
    ),
    "a cohort that is its own parent": lambda: created(
        _config("Cohort", NAME, {"parentName": NAME})
    ),
    "a queue in cohorts in a circle": lambda: changed(
        _config("Cohort", "a", {"parentName": "b"}), {"spec": {"parentName": "a"}}
    ),
    "jobs that own each other": lambda: created(_owned("a", "b"), _owned("b", "a")),
    "jobs of a JobSet that wait for each other": lambda: created(_dependencies()),
    "a Volcano job whose tasks wait for each other": lambda: created(
        _hostile(
            vcjob(
                {**task("a", 1), "dependsOn": {"name": ["b"]}},
                {**task("b", 1), "dependsOn": {"name": ["a"]}},
            )
        )
    ),
    # names
    "two containers of one name": lambda: created(
        _with(
            _job(),
            ("spec", "template", "spec", "containers"),
            [{"name": "a", "image": "x"}, {"name": "a", "image": "x"}],
        )
    ),
    "two replicated jobs of one name, slipped in": lambda: slipped(
        _hostile(job_set(replicated("w"), replicated("w")))
    ),
    **{
        f"a Workload whose {what}, slipped in": lambda status=status: slipped(  # type: ignore[misc]  # its own status each
            {**_base(KUEUE, "Workload"), "status": status}
        )
        for what, status in _STATUSES.items()
    },
    "two pod sets of one name, slipped in": lambda: slipped(
        _with(
            _base(KUEUE, "Workload"),
            ("spec", "podSets"),
            _base(KUEUE, "Workload")["spec"]["podSets"] * 2,
        )
    ),
    "two tasks of one name, slipped in": lambda: slipped(
        _hostile(vcjob(task("w", 1), task("w", 1)))
    ),
    # explanations: what does not start is diagnosed after some seconds
    "a Volcano job of 90 tasks with 10 affinity terms each": lambda: created(_many_terms(90, 10)),
    "a Job with affinity to 1,500 labels": lambda: created(_affine(_job(parallelism=900), 1_500)),
    # running objects that become hostile
    "a running Job grows to 2^31-1 pods": lambda: changed(_job(), {"spec": {"parallelism": _HUGE}}),
    "a running Job shrinks to -1 pods": lambda: changed(_job(), {"spec": {"parallelism": -1}}),
    "a running Job moves to no queue": lambda: changed(
        _job(), {"metadata": {"labels": {QUEUE_LABEL: None}}}
    ),
    "a running Volcano job grows to 2^31-1 pods": lambda: changed(
        _volcano(2),
        {"spec": {"tasks": [{**_volcano(2)["spec"]["tasks"][0], "replicas": _HUGE}]}},
    ),
    "a running RayCluster grows to 2^31-1 workers": lambda: changed(
        _base("ray.io/v1", "RayCluster"),
        {
            "spec": {
                "workerGroupSpecs": [
                    {
                        **_base("ray.io/v1", "RayCluster")["spec"]["workerGroupSpecs"][0],
                        "replicas": _HUGE,
                        "maxReplicas": _HUGE,
                    }
                ]
            }
        },
    ),
    # servers, and what makes jobs by itself
    "a Deployment of 2^31-1 replicas": lambda: created(
        _with(_base("apps/v1", "Deployment"), ("spec", "replicas"), _HUGE)
    ),
    "a ReplicaSet of 2^31-1 replicas": lambda: created(
        _with(_base("apps/v1", "ReplicaSet"), ("spec", "replicas"), _HUGE)
    ),
    "a StatefulSet of 2^31-1 replicas": lambda: created(
        _with(_base("apps/v1", "StatefulSet"), ("spec", "replicas"), _HUGE)
    ),
    "a parallel StatefulSet of 2^31-1 replicas": lambda: created(
        _with(
            _with(_base("apps/v1", "StatefulSet"), ("spec", "replicas"), _HUGE),
            ("spec", "podManagementPolicy"),
            "Parallel",
        )
    ),
    "a StatefulSet whose numbers begin at 2^31-1": lambda: created(
        _with(_base("apps/v1", "StatefulSet"), ("spec", "ordinals"), {"start": _HUGE})
    ),
    "a running Deployment of 2^31-1 replicas and twice as many for a moment": lambda: changed(
        _base("apps/v1", "Deployment"),
        {
            "spec": {
                "replicas": _HUGE,
                "strategy": {"rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}},
                "template": {"metadata": {"labels": {"v": "2"}}},
            }
        },
    ),
    **{
        f"a CronJob whose schedule is {what}": lambda text=text: created(  # type: ignore[misc]  # its own text each
            _with(_base("batch/v1", "CronJob"), ("spec", "schedule"), text), seconds=_MINUTE_S
        )
        for what, text in _SCHEDULES.items()
    },
    **{
        f"a CronJob whose schedule is {what}, slipped in": lambda text=text: slipped(  # type: ignore[misc]  # its own text each
            _with(_base("batch/v1", "CronJob"), ("spec", "schedule"), text), seconds=_MINUTE_S
        )
        for what, text in _SCHEDULES.items()
    },
    **{
        f"a CronJob in the time zone {what}, slipped in": lambda text=text: slipped(  # type: ignore[misc]  # its own text each
            _with(_base("batch/v1", "CronJob"), ("spec", "timeZone"), text), seconds=_MINUTE_S
        )
        for what, text in _ZONES.items()
    },
    **{
        f"a CronJob that ran last in {when[:4]}": lambda when=when: slipped(  # type: ignore[misc]  # its own time each
            {**_base("batch/v1", "CronJob"), "status": {"lastScheduleTime": when}},
            seconds=_MINUTE_S,
        )
        for when in ("0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z")
    },
    # configuration
    "a queue of many flavors": lambda: created(_flavors(MANY)),
    "a queue of 16 flavors that no node has": lambda: created(_flavors(16)),
    "a flavor of many labels": lambda: created(
        _config(
            "ResourceFlavor",
            NAME,
            {"nodeLabels": {f"example.org/l{number}": "x" for number in range(MANY)}},
        )
    ),
    "a queue with a quota of -1": lambda: changed(_flavors(1), _quota_patch("-1")),
    "a queue with a quota of 10^30": lambda: changed(_flavors(1), _quota_patch("1e30")),
    "a queue with a quota of -1, slipped in": lambda: slipped(_quota("-1")),
    "a queue with a quota of 10^30, slipped in": lambda: slipped(_quota("1e30")),
    "negative limits": lambda: created(_limit_range(max={"cpu": "-1"}, default={"cpu": "-2"})),
    "negative limits, slipped in": lambda: slipped(
        _limit_range(max={"cpu": "-1"}, default={"cpu": "-2"})
    ),
    "limits beyond all measure": lambda: created(
        _limit_range(min={"cpu": "1e30"}, max={"cpu": "1e30"}, default={"cpu": "1e30"})
    ),
    "a priority of 2^31-1": lambda: created(
        {**_base(KUEUE, "WorkloadPriorityClass"), "value": _HUGE}
    ),
    "a priority of -2^31": lambda: created(
        {**_base(KUEUE, "WorkloadPriorityClass"), "value": -(2**31)}
    ),
    "a priority class of 2^31-1": lambda: created(
        {**_base("scheduling.k8s.io/v1", "PriorityClass"), "value": _HUGE, "globalDefault": True}
    ),
    "a policy of garbage": lambda: created(
        {
            **_base("unisono.dev/v1", "Policy"),
            "backfill": "x",
            "reservations": [{"nodes": -1}],
            "fairSharing": 5,
        }
    ),
    "a policy of garbage, slipped in": lambda: slipped(
        {
            **_base("unisono.dev/v1", "Policy"),
            "backfill": "x",
            "reservations": [{"nodes": -1}],
            "fairSharing": 5,
        }
    ),
    # nodes
    "a node of -8 GPUs": lambda: created(_node_with({"nvidia.com/gpu": "-8"})),
    "a node of -8 GPUs, slipped in": lambda: slipped(_node_with({"nvidia.com/gpu": "-8"})),
    "a node of 10^30 GPUs": lambda: created(_node_with({"nvidia.com/gpu": "1e30"})),
    "a node of 10^30 GPUs, slipped in": lambda: slipped(_node_with({"nvidia.com/gpu": "1e30"})),
    "a node of NaN GPUs, slipped in": lambda: slipped(_node_with({"nvidia.com/gpu": "NaN"})),
    "a node that can take nothing": lambda: created(_node(capacity={}, allocatable={})),
    "a node of many labels": lambda: created(_labelled(MANY)),
    "a node of many taints": lambda: created(_tainted(40_000)),
}


def _with(obj: Json, path: Sequence[str | int], value: Any) -> Json:
    here: Any = obj
    for step in path[:-1]:
        here = here[step]
    here[path[-1]] = value
    return obj


def _quota(amount: str) -> Json:
    made = _flavors(1)
    made["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = amount
    return made


def _quota_patch(amount: str) -> Json:
    return {"spec": {"resourceGroups": _quota(amount)["spec"]["resourceGroups"]}}


def named(name: str) -> Case:
    """Return a case by its name."""
    made = NAMED[name]()
    return replace(made, title=name)
