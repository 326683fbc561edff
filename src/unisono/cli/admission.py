"""Rules that a real API server applies by itself when jobs are written: no certificate to expire.

    validating   a queue's name is a name; a job that runs stays in its queue; amounts and counts
                 are not negative (also where the kinds are others' definitions); what the right
                 to write a job does not include (`admission_tenancy`); who may name which
                 priority class (`admission_classes`)
    mutating     a job with a queue is created suspended, a pod with one is created behind gates

They are expressions (CEL) that the API server evaluates, so they hold while none of our replicas
runs. Whoever has no mutating policies (Kubernetes before 1.36) sees jobs suspended a moment after
they were created, as our controllers do that in any case, or has the same rules as webhooks
(`cli.webhook`). They are those of the embedded API.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from unisono.cli.admission_classes import classes, written_rules
from unisono.cli.admission_tenancy import tenancy
from unisono.control import names
from unisono.control.pod_gangs.controller import GATE as QUEUE_GATE
from unisono.control.pod_gangs.links import MANAGED
from unisono.kinds.core.pod_groups import GROUP_NAME

Json = dict[str, Any]

_GROUP = "admissionregistration.k8s.io"
VALIDATING = f"{_GROUP}/v1"
# Where mutating policies are served, the newest first; the shape is the same in both.
MUTATING = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")

_QUEUE = names.QUEUE_LABEL
# Kinds that are held back by a field, and where it is: group, versions, plurals.
BY_SPEC = (
    ("batch", "v1", ("jobs",)),
    ("jobset.x-k8s.io", "*", ("jobsets",)),
    ("trainer.kubeflow.org", "*", ("trainjobs",)),
    ("ray.io", "*", ("rayclusters", "rayjobs")),
)
_KUBEFLOW = ("jaxjobs", "mpijobs", "paddlejobs", "pytorchjobs", "tfjobs", "xgboostjobs")
BY_RUN_POLICY = (("kubeflow.org", "*", _KUBEFLOW),)
# What belongs to one of these is decided about as a whole.
OWNERS = (
    *("Job", "JobSet", "TrainJob", "RayCluster", "RayJob"),
    *("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob"),
)
NOT_THERE = ("kube-system", "kueue-system", "unisono-system")

NO_NAME = f"metadata.labels[{_QUEUE}] is not the name of a queue"
CHANGED_QUEUE = "the queue of a job that is not suspended cannot change"

_HAS_QUEUE = f"has({{0}}.metadata.labels) && '{_QUEUE}' in {{0}}.metadata.labels"
_QUEUE_OF = f"({_HAS_QUEUE} ? {{0}}.metadata.labels['{_QUEUE}'] : '')"
QUEUE_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_NAME = QUEUE_NAME.replace("\\", "\\\\")  # inside a text of CEL
_SPEC_HELD = "has({0}.spec.suspend) && {0}.spec.suspend"
_RUN_POLICY_HELD = (
    "has({0}.spec.runPolicy) && has({0}.spec.runPolicy.suspend) && {0}.spec.runPolicy.suspend"
)
_POD_HELD = (
    "has({0}.spec.schedulingGates) && "
    f"{{0}}.spec.schedulingGates.exists(g, g.name == '{QUEUE_GATE}')"
)
_NO_JOB_ABOVE = (
    "!has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(o, "
    "has(o.controller) && o.controller && o.kind in ["
    + ", ".join(f"'{kind}'" for kind in OWNERS)
    + "])"
)


def validating(home: str) -> Iterator[Json]:
    """Yield the rules that refuse, and what puts them in force, for an installation in `home`."""
    for name, resources, held in (
        ("unisono-queue-of-jobs", BY_SPEC, _SPEC_HELD),
        ("unisono-queue-of-kubeflow-jobs", BY_RUN_POLICY, _RUN_POLICY_HELD),
        ("unisono-queue-of-pods", (("", "v1", ("pods",)),), _POD_HELD),
    ):
        spec = {
            "failurePolicy": "Fail",
            "matchConstraints": _matches(resources, ("CREATE", "UPDATE")),
            "matchConditions": [{"name": "queue-is-named-or-was", "expression": _IS_CONCERNED}],
            "validations": [
                {
                    "expression": f"{_NEW} == '' || {_NEW}.matches('{_NAME}')",
                    "message": NO_NAME,
                    "reason": "Invalid",
                },
                {
                    "expression": f"oldObject == null || {_OLD} == '' || {_OLD} == {_NEW} || "
                    f"({held.format('oldObject')})",
                    "message": CHANGED_QUEUE,
                    "reason": "Invalid",
                },
            ],
        }
        yield from _in_force(name, spec)
    for kind in _COUNTED:
        spec = {
            "failurePolicy": "Fail",
            "matchConstraints": _matches(kind.resources, ("CREATE", "UPDATE")),
            # What was stored before there was this rule can still be changed, and deleted.
            "matchConditions": [{"name": "spec-is-new", "expression": _IS_NEW_SPEC}],
            "validations": [
                {"expression": expression, "message": message, "reason": "Invalid"}
                for expression, message in (
                    (kind.counts(), f"{kind.says} must be at least 0"),
                    (kind.amounts(), "what containers request, and their limits: at least 0"),
                )
            ],
        }
        yield from _in_force(kind.name, spec)
    for name, (group, versions, plural), rules in tenancy():
        matches = _matches(((group, versions, (plural,)),), ("CREATE", "UPDATE"))
        yield from _in_force(name, {"failurePolicy": "Fail", "matchConstraints": matches, **rules})
    for name, (group, versions, plural), rules in classes():
        matches = _matches(((group, versions, (plural,)),), ("CREATE", "UPDATE"))
        spec = {"failurePolicy": "Fail", "matchConstraints": matches, **rules}
        yield from _in_force(name, spec, paramRef=written_rules(home))


def _in_force(name: str, spec: Json, **more: Json) -> Iterator[Json]:
    yield _made(VALIDATING, "ValidatingAdmissionPolicy", name, spec)
    binding = {"policyName": name, **more, "validationActions": ["Deny"]}
    yield _made(VALIDATING, "ValidatingAdmissionPolicyBinding", name, binding)


class _Counted(NamedTuple):
    """A kind of job whose numbers are checked: where its parts are, and the template in each.

    Nothing is asked of fields that are not there: an expression that fails refuses the object.
    """

    name: str
    resources: Sequence[tuple[str, str, Sequence[str]]]
    parts: str  # an expression for the list of them, or for a map of them
    numbers: Sequence[str]  # of each part, below it
    template: str  # of each part, below it
    is_map: bool = False

    @property
    def says(self) -> str:
        """How the numbers are called."""
        return " and ".join(one.rpartition(".")[2] for one in self.numbers)

    def counts(self) -> str:
        """Return the expression that is true if no count is negative."""
        each = " && ".join(f"{self._one}.?{_chain(one)}.orValue(0) >= 0" for one in self.numbers)
        return f"{self.parts}.all(p, {each})"

    def amounts(self) -> str:
        """Return the expression that is true if no amount of a container is negative."""
        spec = f"{self._one}.?{_chain(self.template)}.?spec"
        checked = " && ".join(
            f"c.?resources.?{part}.orValue({{}}).all(r,"
            f" !string(c.resources.{part}[r]).startsWith('-'))"
            for part in ("requests", "limits")
        )
        both = " && ".join(
            f"{spec}.?{containers}.orValue([]).all(c, {checked})"
            for containers in ("containers", "initContainers")
        )
        return f"{self.parts}.all(p, {both})"

    @property
    def _one(self) -> str:
        return f"{self.parts}[p]" if self.is_map else "p"


_IS_NEW_SPEC = (
    "has(object.spec) && (oldObject == null || !has(oldObject.spec) || "
    "object.spec != oldObject.spec)"
)


def _chain(path: str) -> str:
    return path.replace(".", ".?")


_COUNTED = (
    _Counted(
        "unisono-counts-of-volcano-jobs",
        (("batch.volcano.sh", "*", ("jobs",)),),
        "object.?spec.?tasks.orValue([])",
        ("replicas", "minAvailable"),
        "template",
    ),
    _Counted(
        "unisono-counts-of-jobsets",
        (("jobset.x-k8s.io", "*", ("jobsets",)),),
        "object.?spec.?replicatedJobs.orValue([])",
        ("replicas", "template.spec.parallelism", "template.spec.completions"),
        "template.spec.template",
    ),
    _Counted(
        "unisono-counts-of-rayclusters",
        (("ray.io", "*", ("rayclusters",)),),
        "object.?spec.?workerGroupSpecs.orValue([])",
        ("replicas", "minReplicas", "maxReplicas", "numOfHosts"),
        "template",
    ),
    _Counted(
        "unisono-counts-of-rayjobs",
        (("ray.io", "*", ("rayjobs",)),),
        "object.?spec.?rayClusterSpec.?workerGroupSpecs.orValue([])",
        ("replicas", "minReplicas", "maxReplicas", "numOfHosts"),
        "template",
    ),
    *(
        _Counted(
            f"unisono-counts-of-{plural}",
            (("kubeflow.org", "*", (plural,)),),
            f"object.?spec.?{field}.orValue({{}})",
            ("replicas",),
            "template",
            is_map=True,
        )
        for plural, field in (
            ("jaxjobs", "jaxReplicaSpecs"),
            ("mpijobs", "mpiReplicaSpecs"),
            ("paddlejobs", "paddleReplicaSpecs"),
            ("pytorchjobs", "pytorchReplicaSpecs"),
            ("tfjobs", "tfReplicaSpecs"),
            ("xgboostjobs", "xgbReplicaSpecs"),
        )
    ),
    _Counted(
        "unisono-counts-of-workloads",
        (("kueue.x-k8s.io", "*", ("workloads",)),),
        "object.?spec.?podSets.orValue([])",
        ("count", "minCount"),
        "template",
    ),
)


_NEW = _QUEUE_OF.format("object")
_OLD = f"(oldObject == null ? '' : {_QUEUE_OF.format('oldObject')})"
_IS_CONCERNED = f"{_NEW} != '' || {_OLD} != ''"


def mutating(api_version: str = MUTATING[0]) -> Iterator[Json]:
    """Yield what holds new jobs and pods of a queue back, and what puts that in force."""
    gates = (
        "Object{metadata: Object.metadata{labels: {'" + MANAGED + "': 'true'}}, "
        "spec: Object.spec{schedulingGates: [Object.spec.schedulingGates{name: '"
        + QUEUE_GATE
        + "'}]}}"
    )
    foreign_gate = (
        "object.spec.?schedulerName.orValue('default-scheduler') == '" + names.SCHEDULER + "'"
        " ? Object{} : Object{spec: Object.spec{schedulingGates: "
        "[Object.spec.schedulingGates{name: '" + names.GATE + "'}]}}"
    )
    # Pods of a group are counted even when they are over; our controllers let them go in the end.
    finalizer = (
        "!('" + GROUP_NAME + "' in object.metadata.labels) ? Object{} : "
        "Object{metadata: Object.metadata{finalizers: ['" + MANAGED + "']}}"
    )
    suspended = "Object{spec: Object.spec{suspend: true}}"
    not_run = "Object{spec: Object.spec{runPolicy: Object.spec.runPolicy{suspend: true}}}"
    unbound = "!has(object.spec.nodeName) || object.spec.nodeName == ''"
    for name, resources, changes, more in (
        ("unisono-suspend-jobs", BY_SPEC, (suspended,), ()),
        ("unisono-suspend-kubeflow-jobs", BY_RUN_POLICY, (not_run,), ()),
        (
            "unisono-gate-pods",
            (("", "v1", ("pods",)),),
            (gates, foreign_gate, finalizer),
            (unbound,),
        ),
    ):
        conditions = (f"{_NEW} != ''", _NO_JOB_ABOVE, *more)
        spec = {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "IfNeeded",
            "matchConstraints": _matches(resources, ("CREATE",)),
            "matchConditions": [
                {"name": f"condition-{number}", "expression": one}
                for number, one in enumerate(conditions, 1)
            ],
            "mutations": [
                {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": one}}
                for one in changes
            ],
        }
        yield _made(api_version, "MutatingAdmissionPolicy", name, spec)
        yield _made(api_version, "MutatingAdmissionPolicyBinding", name, {"policyName": name})


def pod_gates(spec: Json) -> Sequence[str]:
    """Return the gates of a queued pod; one that we bind ourselves needs no second."""
    is_ours = spec.get("schedulerName", "default-scheduler") == names.SCHEDULER
    return (QUEUE_GATE,) if is_ours else (QUEUE_GATE, names.GATE)


def _matches(
    resources: Sequence[tuple[str, str, Sequence[str]]], operations: Sequence[str]
) -> Json:
    excluded = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [*NOT_THERE]}
    return {
        "namespaceSelector": {"matchExpressions": [excluded]},
        "resourceRules": [
            {
                "apiGroups": [group],
                "apiVersions": [version],
                "operations": [*operations],
                "resources": [*plurals],
            }
            for group, version, plurals in resources
        ],
    }


def _made(api_version: str, kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}
