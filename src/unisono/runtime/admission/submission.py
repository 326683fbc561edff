"""Warnings of a real API server about jobs that can never start, as expressions of its policies.

The embedded API looks at the whole cluster (`apiserver.admission.submit_warnings`). A policy sees
one object and one parameter: what a node and a queue have at most (`control.submission_limits`). So
this covers devices such as GPUs, queues that are missing, stopped or inactive, and nothing else.
The rules only warn: where one cannot be evaluated, or there is no such ConfigMap, a job is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from unisono.control.names import QUEUE_LABEL
from unisono.control.submission_limits import SUBMISSION_LIMITS
from unisono.kube.form import Json

# Fewer pods than are asked for may start: their number says nothing.
_LEAST = "kueue.x-k8s.io/job-min-parallelism"


class Pods(NamedTuple):
    """Where a kind has pods: expressions for a list of templates' specs with their counts."""

    name: str
    resources: Sequence[tuple[str, str, Sequence[str]]]
    listed: str
    queue: str = f"object.metadata.?labels[?'{QUEUE_LABEL}'].orValue('')"


def _one(spec: str, count: str) -> str:
    """Return a list with one template if it is there; `spec` begins with `object`."""
    asked = spec.replace(".", ".?")
    return f"({asked}.hasValue() ? [{{'spec': dyn({spec}), 'count': dyn({count})}}] : [])"


def _each(listed: str, template: str, count: str) -> str:
    """Return the templates of a list, each below an element `p`."""
    asked = template.replace(".", ".?")
    there = f"{listed}.orValue([]).filter(p, p.?{asked}.hasValue())"
    return f"{there}.map(p, {{'spec': dyn(p.{template}), 'count': dyn({count})}})"


def _replicas(field: str) -> str:
    """Return the templates of a map of replica specs."""
    specs = f"object.?spec.?{field}.orValue({{}})"
    there = f"{specs}.filter(k, {specs}[k].?template.?spec.hasValue())"
    count = f"int({specs}[k].?replicas.orValue(1))"
    return f"{there}.map(k, {{'spec': dyn({specs}[k].template.spec), 'count': dyn({count})}})"


def _parallel(spec: str) -> str:
    """Return how many pods of a Job run at once."""
    wide = f"int({spec}.?parallelism.orValue(1))"
    return (
        f"(has({spec}.completions) && int({spec}.completions) < {wide} ? "
        f"int({spec}.completions) : {wide})"
    )


_UNKNOWN = "0"  # how many pods there will be depends on more than a number
KINDS = (
    Pods(
        "jobs",
        (("batch", "v1", ("jobs",)),),
        _one("object.spec.template.spec", _parallel("object.spec")),
    ),
    Pods("pods", (("", "v1", ("pods",)),), _one("object.spec", "1")),
    Pods(
        "jobsets",
        (("jobset.x-k8s.io", "*", ("jobsets",)),),
        _each(
            "object.?spec.?replicatedJobs",
            "template.spec.template.spec",
            f"int(p.?replicas.orValue(1)) * {_parallel('p.template.spec')}",
        ),
    ),
    Pods(
        "volcano-jobs",
        (("batch.volcano.sh", "*", ("jobs",)),),
        _each("object.?spec.?tasks", "template.spec", _UNKNOWN),
    ),
    Pods(
        "rayclusters",
        (("ray.io", "*", ("rayclusters",)),),
        _each("object.?spec.?workerGroupSpecs", "template.spec", _UNKNOWN),
    ),
    Pods(
        "rayjobs",
        (("ray.io", "*", ("rayjobs",)),),
        _each("object.?spec.?rayClusterSpec.?workerGroupSpecs", "template.spec", _UNKNOWN),
    ),
    *(
        Pods(plural, (("kubeflow.org", "*", (plural,)),), _replicas(field))
        for plural, field in (
            ("jaxjobs", "jaxReplicaSpecs"),
            ("mpijobs", "mpiReplicaSpecs"),
            ("paddlejobs", "paddleReplicaSpecs"),
            ("pytorchjobs", "pytorchReplicaSpecs"),
            ("tfjobs", "tfReplicaSpecs"),
            ("xgboostjobs", "xgbReplicaSpecs"),
        )
    ),
)

# What one pod asks for of the resource `l[0]`; an amount that is no plain number counts as nothing.
_ASKED = (
    "{spec}.?containers.orValue([])"
    ".map(c, string(c.?resources.?limits[?l[0]].orValue(dyn('0'))))"
    ".map(q, q.matches('^[0-9]{{1,9}}$') ? int(q) : 0).sum()"
)
_OF_ONE = _ASKED.format(spec="p.spec")
_OF_ALL = f"variables.pods.map(p, int(p.count) * {_OF_ONE}).sum()"
_LINES = ".split('\\n').filter(l, l != '')"
_NEVER = "can never start on the nodes that there are: "
_OVER = "can never be admitted as the queues are now: "


def submission() -> Iterator[tuple[str, Sequence[tuple[str, str, Sequence[str]]], Json]]:
    """Yield for each kind a name, what it matches, and the parts of a policy that warns."""
    for kind in KINDS:
        yield f"unisono-submission-of-{kind.name}", kind.resources, _rules(kind)


def limits(home: str) -> Json:
    """Return where the leader of an installation writes what there is."""
    return {"name": SUBMISSION_LIMITS, "namespace": home, "parameterNotFoundAction": "Allow"}


def _rules(kind: Pods) -> Json:
    variables = {
        "data": "params.?data.orValue({})",
        "queue": kind.queue,
        "key": "'queue.' + request.namespace + '.' + variables.queue",
        "pods": kind.listed,
        "known": f"variables.data[?variables.key].orValue(''){_LINES}",
        "largest": f"variables.data[?'nodes'].orValue(''){_LINES}.map(l, l.split(' '))",
        "wide": "variables.largest.filter(l, variables.pods.exists(p, "
        f"{_OF_ONE} > int(l[1]))).map(l, 'a pod needs ' + string(variables.pods.map(p, {_OF_ONE})"
        ".max()) + ' ' + l[0] + ', and the largest node has ' + l[1])",
        "closed": "variables.known.filter(l, l.startsWith('! ')).map(l, l.substring(2))",
        "over": "object.metadata.?annotations"
        f"[?'{_LEAST}'].hasValue() ? [] : "
        "variables.known.filter(l, !l.startsWith('! ')).map(l, l.split(' '))"
        f".filter(l, {_OF_ALL} > int(l[1])).map(l, 'it needs ' + string({_OF_ALL}) + ' ' + l[0] + "
        "', and its queue can never use more than ' + l[1])",
    }
    is_there = (
        "variables.queue == '' || variables.data[?'queues'].orValue('') != 'all' || "
        "variables.key in variables.data"
    )
    return {
        "failurePolicy": "Ignore",
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "variables": [{"name": name, "expression": one} for name, one in variables.items()],
        "validations": [
            _validation(
                is_there,
                "it waits: its queue does not exist",
                "'there is no LocalQueue \"' + variables.queue + '\" in namespace ' + "
                "request.namespace + ' yet; it waits until there is one'",
            ),
            _validation(
                "variables.closed == []",
                "it waits: its queue admits nothing",
                "'it waits: ' + variables.closed.join('; ')",
            ),
            _validation(
                "variables.wide == []",
                f"{_NEVER}no node is large enough",
                f"'{_NEVER}' + variables.wide.join('; ')",
            ),
            _validation(
                "variables.over == []",
                f"{_OVER}its queue is too small",
                f"'{_OVER}' + variables.over.join('; ')",
            ),
        ],
    }


def _validation(expression: str, message: str, told: str) -> Json:
    return {
        "expression": expression,
        "message": message,
        "messageExpression": told,
        "reason": "Invalid",
    }
