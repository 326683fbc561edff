"""Rules that a real API server applies by itself when jobs are written: no certificate to expire.

    validating   a queue's name is a name; a job that runs stays in its queue; amounts are not
                 negative, counts and their products have 32 bits (also where the kinds are
                 others' definitions); Volcano's own (`volcano`); what the right to write a job
                 does not include (`tenancy`); the users of each priority class (below); only
                 warnings: devices that nothing allocates, and what can never start (`submission`)
    mutating     a job with a queue is created suspended, a pod with one is created behind gates

They are expressions (CEL) that the API server evaluates, so they hold while none of our replicas
runs. Without mutating policies (Kubernetes before 1.36), jobs are suspended a moment after they
were created, as our controllers do that in any case, or the same rules run as webhooks
(`runtime.webhook`). They are those of the embedded API.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from unisono.control import names
from unisono.control.jobs.priority_class_rules import CLASS_RULES
from unisono.control.pod_gangs.controller import GATE as QUEUE_GATE
from unisono.control.pod_gangs.membership import MANAGED
from unisono.engine.model.resources import MAX_COUNT
from unisono.kinds.core.pod_groups import GROUP_NAME
from unisono.kinds.policy.settings import EVERY_CLASS
from unisono.kinds.priorities import PRIORITY_LABEL
from unisono.kube.form import Json
from unisono.runtime.admission.submission import limits, submission
from unisono.runtime.admission.tenancy import (
    DECIDERS,
    DECIDES,
    Path,
    Places,
    every,
    matched,
    searched_kinds,
    some,
    tenancy,
)
from unisono.runtime.admission.volcano import RULES

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
# What keeps pods running: never held back itself, its pods are. It hands its labels on to them.
SETS = (
    ("apps", "v1", ("deployments", "replicasets", "statefulsets")),
    ("", "v1", ("replicationcontrollers",)),
)
CARRIED = (names.QUEUE_LABEL, names.PRIORITY_LABEL)
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
            "matchConditions": [{"name": "spec-is-new", "expression": IS_NEW_SPEC}],
            "validations": [
                {"expression": expression, "message": message, "reason": "Invalid"}
                for part in kind.parts
                for expression, message in part.rules()
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
    for volcano in RULES:
        concerns = _matches(((volcano.group, "*", (volcano.plural,)),), volcano.operations)
        written = [
            {"expression": expression, "message": message, "reason": "Invalid"}
            for expression, message in volcano.validations
        ]
        spec = {"failurePolicy": "Fail", "matchConstraints": concerns, "validations": written}
        if "DELETE" not in volcano.operations:
            spec["matchConditions"] = [{"name": "spec-is-new", "expression": IS_NEW_SPEC}]
        yield from _in_force(volcano.name, spec)
    yield from warning()
    for name, asking, rules in submission():
        conditions = [
            {"name": "is-queued", "expression": f"{_NEW} != ''"},
            {"name": "is-no-part", "expression": _NO_JOB_ABOVE},
        ]
        matches = _matches(asking, ("CREATE",))
        spec = {"matchConstraints": matches, "matchConditions": conditions, **rules}
        yield from _in_force(name, spec, "Warn", paramRef=limits(home))


def warning() -> Iterator[Json]:
    """Yield the rules that only warn: of devices that we do not allocate (`kinds.core`)."""
    for name, resources, templates in _TEMPLATES:
        # A Volcano job is always ours, whatever queue it names.
        is_ours = "true" if name == "unisono-devices-of-volcano-jobs" else f"{_NEW} != ''"
        spec = {
            "failurePolicy": "Ignore",
            "matchConstraints": _matches(resources, ("CREATE", "UPDATE")),
            "matchConditions": [
                {"name": "is-ours", "expression": is_ours},
                {"name": "spec-is-new", "expression": IS_NEW_SPEC},
            ],
            "validations": [
                {"expression": one, "message": DEVICES_CLAIMED, "reason": "Invalid"}
                for one in templates
            ],
        }
        yield from _in_force(name, spec, action="Warn")


def _in_force(name: str, spec: Json, action: str = "Deny", **more: Json) -> Iterator[Json]:
    yield _made(VALIDATING, "ValidatingAdmissionPolicy", name, spec)
    binding = {"policyName": name, **more, "validationActions": [action]}
    yield _made(VALIDATING, "ValidatingAdmissionPolicyBinding", name, binding)


DEVICES_CLAIMED = (
    "its pods ask for devices by resource claims; dynamic resource allocation is not supported"
    " yet: it waits"
)


class _Part(NamedTuple):
    """What a kind of job has of pods that are alike: where it is, its numbers and its template.

    Nothing is asked of fields that are not there: an expression that fails refuses the object.
    """

    where: str  # an expression for one of them, or for a list or a map of them
    loop: Literal["one", "list", "map"]
    numbers: Sequence[str] = ()  # of each, below it
    template: str = ""  # of each, below it
    resources: str = ""  # what each asks for besides, below it
    is_bounded: str = ""  # what is true if the numbers make no more pods than there may be
    product: str = ""  # how they make pods, in words

    def rules(self) -> Iterator[tuple[str, str]]:
        """Yield what must be true of every part, and what to say if it is not."""
        if self.numbers:
            listed = " and ".join(one.rpartition(".")[2] for one in self.numbers)
            every = " && ".join(_is_count(f"{self._one}.?{_chain(one)}") for one in self.numbers)
            yield self._all(every), f"{listed} must be from 0 to {MAX_COUNT}"
        if self.is_bounded:
            bounded = self._all(self.is_bounded.format(self._one))
            yield bounded, f"{self.product} is {MAX_COUNT} at most: so many pods one set can have"
        if self.template:
            spec = f"{self._one}.?{_chain(self.template)}.?spec"
            both = " && ".join(
                f"{spec}.?{one}.orValue([]).all(c, {_are_amounts('c', '.?resources')})"
                for one in ("containers", "initContainers")
            )
            yield self._all(both), "what containers request, and their limits: at least 0"
        if self.resources:
            message = f"what {self.resources} requests, and its limits: at least 0"
            yield self._all(_are_amounts(self._one, f".?{_chain(self.resources)}")), message

    def without_claims(self) -> str:
        """Return what is true if no pod of these asks for devices by resource claims."""
        below = f".?{_chain(self.template)}" if self.template else ""
        return self._all(f"{self._one}{below}.?spec.?resourceClaims.orValue([]).size() == 0")

    @property
    def _one(self) -> str:
        return {"one": self.where, "list": "p", "map": f"{self.where}.orValue({{}})[p]"}[self.loop]

    def _all(self, expression: str) -> str:
        if self.loop == "one":
            return expression
        return f"{self.where}.orValue({'[]' if self.loop == 'list' else '{}'}).all(p, {expression})"


class _Counted(NamedTuple):
    """A kind of job, with the numbers to check."""

    name: str
    resources: Sequence[tuple[str, str, Sequence[str]]]
    parts: Sequence[_Part]


def _is_count(number: str) -> str:
    return f"{number}.orValue(0) >= 0 && {number}.orValue(0) <= {MAX_COUNT}"


def _are_amounts(above: str, below: str) -> str:
    """Return what is true if no amount is negative of what an expression has below it."""
    there = f"{above}{below}".replace(".?", ".")  # whatever has an amount has all that is above it
    return " && ".join(
        f"{above}{below}.?{part}.orValue({{}}).all(r, !string({there}.{part}[r]).startsWith('-'))"
        for part in ("requests", "limits")
    )


IS_NEW_SPEC = (
    "has(object.spec) && (oldObject == null || !has(oldObject.spec) || "
    "object.spec != oldObject.spec)"
)


def _chain(path: str) -> str:
    return path.replace(".", ".?")


# Replicas of a job, each with min(parallelism, completions) pods, as `kinds.jobset` counts them.
_JOBS_FIT = (
    "({0}.?replicas.orValue(1) * {0}.?template.?spec.?parallelism.orValue(1)"
    f" <= {MAX_COUNT} || "
    f"{{0}}.?replicas.orValue(1) * {{0}}.?template.?spec.?completions.orValue({MAX_COUNT})"
    f" <= {MAX_COUNT})"
)


def _replicated_jobs(where: str) -> _Part:
    return _Part(
        where,
        "list",
        ("replicas", "template.spec.parallelism", "template.spec.completions"),
        "template.spec.template",
        is_bounded=_JOBS_FIT,
        product="replicas times the parallelism of a job",
    )


# clamp(replicas, minReplicas, maxReplicas) of so many hosts, as `kinds.ray` counts them.
_HOSTS = "{0}.?numOfHosts.orValue(1)"
_WORKERS_FIT = (
    "({0}.?suspend.orValue(false) || "
    f"{{0}}.?maxReplicas.orValue({MAX_COUNT}) * {_HOSTS} <= {MAX_COUNT} || "
    f"{{0}}.?replicas.orValue(0) * {_HOSTS} <= {MAX_COUNT} && "
    f"{{0}}.?minReplicas.orValue(0) * {_HOSTS} <= {MAX_COUNT})"
)


def _ray_groups(where: str) -> tuple[_Part, ...]:
    workers = _Part(
        f"{where}.?workerGroupSpecs",
        "list",
        ("replicas", "minReplicas", "maxReplicas", "numOfHosts"),
        "template",
        is_bounded=_WORKERS_FIT,
        product="replicas times numOfHosts",
    )
    head = _Part(f"{where}.?headGroupSpec", "one", template="template")
    return workers, head, _Part(where, "one", resources="autoscalerOptions.resources")


_COUNTED = (
    _Counted(
        "unisono-counts-of-volcano-jobs",
        (("batch.volcano.sh", "*", ("jobs",)),),
        (
            _Part("object.?spec.?tasks", "list", ("replicas", "minAvailable"), "template"),
            _Part("object.?spec", "one", ("minAvailable",)),
        ),
    ),
    _Counted(
        "unisono-counts-of-jobsets",
        (("jobset.x-k8s.io", "*", ("jobsets",)),),
        (_replicated_jobs("object.?spec.?replicatedJobs"),),
    ),
    _Counted(
        "unisono-counts-of-training-runtimes",
        (("trainer.kubeflow.org", "*", ("trainingruntimes", "clustertrainingruntimes")),),
        (
            _replicated_jobs("object.?spec.?template.?spec.?replicatedJobs"),
            _Part("object.?spec.?mlPolicy", "one", ("numNodes",)),
        ),
    ),
    _Counted(
        "unisono-counts-of-trainjobs",
        (("trainer.kubeflow.org", "*", ("trainjobs",)),),
        (_Part("object.?spec.?trainer", "one", ("numNodes",), resources="resourcesPerNode"),),
    ),
    _Counted(
        "unisono-counts-of-rayclusters",
        (("ray.io", "*", ("rayclusters",)),),
        _ray_groups("object.?spec"),
    ),
    _Counted(
        "unisono-counts-of-rayjobs",
        (("ray.io", "*", ("rayjobs",)),),
        (
            *_ray_groups("object.?spec.?rayClusterSpec"),
            _Part("object.?spec", "one", template="submitterPodTemplate"),
        ),
    ),
    *(
        _Counted(
            f"unisono-counts-of-{plural}",
            (("kubeflow.org", "*", (plural,)),),
            (_Part(f"object.?spec.?{field}", "map", ("replicas",), "template"),),
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
        (_Part("object.?spec.?podSets", "list", ("count", "minCount"), "template"),),
    ),
)


_NO_JOBS = (("workloads",), ("trainingruntimes", "clustertrainingruntimes"))
_Templates = tuple[str, Sequence[tuple[str, str, Sequence[str]]], Sequence[str]]
_TEMPLATES: Sequence[_Templates] = (
    (
        "unisono-devices-of-pods",
        (("", "v1", ("pods",)),),
        (_Part("object", "one").without_claims(),),
    ),
    (
        "unisono-devices-of-jobs",
        (("batch", "v1", ("jobs",)),),
        (_Part("object.?spec", "one", template="template").without_claims(),),
    ),
    *(
        (kind.name.replace("-counts-", "-devices-"), kind.resources, templates)
        for kind in _COUNTED
        if kind.resources[0][2] not in _NO_JOBS
        and (templates := [one.without_claims() for one in kind.parts if one.template])
    ),
)


def counted_resources() -> list[tuple[str, str, Sequence[str]]]:
    """Return the kinds with checked numbers: group, versions, plurals."""
    return [one for kind in _COUNTED for one in kind.resources]


_NEW = _QUEUE_OF.format("object")
_OLD = f"(oldObject == null ? '' : {_QUEUE_OF.format('oldObject')})"
_IS_CONCERNED = f"{_NEW} != '' || {_OLD} != ''"


def mutating(api_version: str = MUTATING[0]) -> Iterator[Json]:
    """Yield what holds new jobs and pods of a queue back, and what puts that in force.

    What keeps pods running hands its queue on to the template of its pods, whenever it is written.
    """
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
    new = ("CREATE",)
    for name, resources, operations, changes, more in (
        ("unisono-suspend-jobs", BY_SPEC, new, (suspended,), ()),
        ("unisono-suspend-kubeflow-jobs", BY_RUN_POLICY, new, (not_run,), ()),
        (
            "unisono-gate-pods",
            (("", "v1", ("pods",)),),
            new,
            (gates, foreign_gate, finalizer),
            (unbound,),
        ),
        ("unisono-carry-queues", SETS, ("CREATE", "UPDATE"), [*map(_carried, CARRIED)], ()),
    ):
        conditions = (f"{_NEW} != ''", _NO_JOB_ABOVE, *more)
        spec = {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "IfNeeded",
            "matchConstraints": _matches(resources, operations),
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


def _carried(label: str) -> str:
    """Return what puts a label of an object on the template of its pods, if it has that."""
    template = "Object.spec.template"
    carried = f"{{'{label}': object.metadata.labels['{label}']}}"
    metadata = f"{template}{{metadata: {template}.metadata{{labels: {carried}}}}}"
    return (
        f"!('{label}' in object.metadata.labels) ? Object{{}} : "
        f"Object{{spec: Object.spec{{template: {metadata}}}}}"
    )


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


# ---- priority classes ----------------------------------------------------------------------------
#
# The users of each priority class, as rules that a real API server applies itself.
#
# The rules are those of the embedded API (`apiserver.admission.classes`). The leader writes them
# into a ConfigMap (`control.class_rules`), which these policies have as their parameter. An API
# server knows the author of an object; so users and groups count, which controllers never see.
# Without such a ConfigMap no object is refused. What an object named before it may go on naming.
#
#     rules   all of them
#     mine    those for the author of the object: by name, by group, or by its namespace
#     open    whether classes without a rule of their own are the author's to name

CLASSES = "unisono-priority-classes-of"
NOT_FOR_YOU = "names a priority class that is not for its author (priorityClasses of the policy)"


def written_rules(home: str) -> Json:
    """Return where the leader of an installation writes the rules."""
    return {"name": CLASS_RULES, "namespace": home, "parameterNotFoundAction": "Allow"}


def classes() -> Iterator[tuple[str, tuple[str, str, str], Json]]:
    """Yield for each kind a name, group, versions and plural, and the parts of a policy."""
    for served, places in searched_kinds():
        yield f"{CLASSES}-{served.resource}", matched(served), _rules(places)


def _rules(places: Places) -> Json:
    named = [
        *(_may_name(path[:-1], f".?{path[-1]}.orValue('')") for path in places.classes),
        *(_may_name(path, _LABEL) for path in places.metadata),
    ]
    return {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "variables": [*_VARIABLES, *DECIDERS],
        "validations": [
            {
                "expression": f"variables.rules.size() == 0 || {one} || {DECIDES}",
                "message": NOT_FOR_YOU,
                "messageExpression": f"'{NOT_FOR_YOU}: ' + variables.others",
                "reason": "Forbidden",
            }
            for one in named
        ],
    }


_LABEL = f".?metadata.?labels[?'{PRIORITY_LABEL}'].orValue('')"


def _may_name(path: Path, field: str) -> str:
    """Return what is true if the author may name every class at a place, or it was there."""

    def is_fine(new: str) -> str:
        name = f"{new}{field}"
        before = some("oldObject", path, lambda old: f"{old}{field} == {name}")
        has_rule = "variables.{}.exists(r, {} in r.names)"
        return (
            f"({name} == '' || {has_rule.format('mine', name)} || "
            f"variables.open && !{has_rule.format('rules', name)} || "
            f"oldObject != null && {before})"
        )

    return every("object", path, is_fine)


def _lines(field: str) -> str:
    """Return the lines of a field of the rule with the key `k`; none if it has none."""
    return (
        f"params.data[?k.replace('.names', '.{field}')].orValue('').split('\\n')"
        ".filter(one, one != '')"
    )


def _listed(field: str) -> str:
    return f"(r.{field}.size() == 0 ? [] : ['{field} ' + r.{field}.join(', ')])"


_IS_MINE = (
    "request.userInfo.username in r.users || request.namespace in r.namespaces || "
    "r.groups.exists(g, g in request.userInfo.groups)"
)
_FIELDS = ("names", "users", "groups", "namespaces")
_FOR = " + ".join(map(_listed, _FIELDS[1:]))
_VARIABLES = [
    {
        "name": "rules",
        "expression": "params.?data.orValue({}).filter(k, k.endsWith('.names')).map(k, {"
        + ", ".join(f"'{field}': {_lines(field)}" for field in _FIELDS)
        + "})",
    },
    {"name": "mine", "expression": f"variables.rules.filter(r, {_IS_MINE})"},
    {
        "name": "open",
        "expression": f"!variables.rules.exists(r, '{EVERY_CLASS}' in r.names) || "
        f"variables.mine.exists(r, '{EVERY_CLASS}' in r.names)",
    },
    {
        "name": "others",
        "expression": f"variables.rules.filter(r, !({_IS_MINE})).map(r, r.names.join(', ') + "
        f"' is for ' + ({_FOR} == [] ? 'administrators' : ({_FOR}).join('; '))).join('; ')",
    },
]
