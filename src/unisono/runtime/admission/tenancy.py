"""What the right to write a job does not include, as rules that a real API server applies itself.

    a node for a pod                     `create` on pods/binding
    taking off a queue's gate            the same
    words that our controllers write     the same
    being part of another's job          `update` on the finalizers of that kind

They are those of the embedded API (`apiserver.access.tenancy`), with one more exception: an
operator of a kind of job (`update` on its finalizers, which only controllers have) hands what was
decided about it on to the pods and jobs that it makes of it, and a kubelet reports pods that it has
already (static ones). What is refused is only what changes.

A policy cannot search an object, as our own API does. So there is one for each kind, with the
places of its pod templates, which are read off its schema. Workloads have none: no role for people
lets them be written, and controllers of others that make them write some of these words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from unisono.apiserver.access.reserved_fields import GATES, RESERVED, job_kinds
from unisono.apiserver.admission.priority_class_rules import FIELDS as CLASS_FIELDS
from unisono.kinds.shapes.served import BUILT_IN, Served, served_kinds
from unisono.kinds.shapes.shape import Shape

if TYPE_CHECKING:
    from unisono.kube.form import Json

# A place in an object: names of fields, and these for every item of a list or value of a map.
Path = tuple[str, ...]
ITEMS, VALUES = "[]", "{}"
_OF_INTEREST = frozenset({"metadata", *CLASS_FIELDS})
# The parts that an expression asks about: `every` or `some` of them, given what to ask of one.
Ask = Callable[[str], str]

_NOT_SEARCHED = ("workloads.kueue.x-k8s.io", "customresourcedefinitions.apiextensions.k8s.io")
# Kubernetes' own pod groups are young, and no role for people has them.
_NOBODYS = "scheduling.k8s.io"
# Deeper than any template of any kind; some schemas have no end.
_DEEPEST = 24
# What makes pods beside jobs. Controllers have the same right on the finalizers of each.
_MAKERS = (
    ("apps", "ReplicaSet", "replicasets"),
    ("apps", "StatefulSet", "statefulsets"),
    ("apps", "DaemonSet", "daemonsets"),
    ("batch", "CronJob", "cronjobs"),
    ("", "ReplicationController", "replicationcontrollers"),
)

# Asked last, and so only if something was written: looking up rights is the costly part.
DECIDES = "variables.binds || variables.makes"
NODE_CHOSEN = (
    "nodeName: only users who may create pods/binding choose a node; ask for one with "
    'nodeSelector: {"kubernetes.io/hostname": ...}'
)
WORD_WRITTEN = (
    "labels and annotations that only the scheduler's controllers write "
    f"({', '.join(sorted(RESERVED))}): leave them out"
)
GATE_LIFTED = (
    "spec.schedulingGates: a queue's gate is lifted when the queue admits the pod; wait for it, "
    "or delete the pod"
)
OWNER_CLAIMED = (
    "metadata.ownerReferences: only a controller makes an object part of a job (the verb update on "
    "the finalizers of that kind); leave out controller: true"
)


class Places(NamedTuple):
    """Where an object of some kind has pods, labels as they will have, and priority classes."""

    pods: tuple[Path, ...]
    metadata: tuple[Path, ...]
    classes: tuple[Path, ...]


def tenancy() -> Iterator[tuple[str, tuple[str, str, str], Json]]:
    """Yield for each kind a name, group, versions and plural, and the parts of a policy."""
    for served, places in searched_kinds():
        yield f"unisono-tenancy-of-{served.resource}", matched(served), _rules(places)


def searched_kinds() -> Iterator[tuple[Served, Places]]:
    """Yield every kind of a namespace that is a job or has a place, and where it has them."""
    jobs = {served.key for served in job_kinds().values()}
    for served in served_kinds():
        if not served.namespaced or not served.is_storage:
            continue
        if served.resource in _NOT_SEARCHED or served.group == _NOBODYS:
            continue
        places = places_in(served.shape)
        if places.pods or places.classes or served.key in jobs:
            yield served, places


def matched(served: Served) -> tuple[str, str, str]:
    """Return group, versions and plural: the version of Kubernetes' own kinds, all of others'."""
    return served.group, served.version if served.group in BUILT_IN else "*", served.plural


def places_in(shape: Shape) -> Places:
    """Return where the schema of a kind has pods, metadata of them, and priority classes."""
    pods: list[Path] = []
    metadata: list[Path] = [()]
    classes: list[Path] = []
    for path, found in _walk(shape, ()):
        if "nodeName" in found.names:
            pods.append(path)
        if path and "metadata" in found.names:
            metadata.append(path)
        classes += [(*path, name) for name in CLASS_FIELDS if name in found.names]
    return Places(tuple(pods), tuple(metadata), tuple(classes))


def _walk(shape: Shape, path: Path) -> Iterator[tuple[Path, Shape]]:
    """Yield what a schema has that is a pod or has metadata or a class, from above to below."""
    if len(path) > _DEEPEST:
        return
    if shape.items is not None:
        yield from _walk(shape.items, (*path, ITEMS))
        return
    if shape.values is not None:
        yield from _walk(shape.values, (*path, VALUES))
        return
    is_pod = "containers" in shape.names
    if is_pod or not _OF_INTEREST.isdisjoint(shape.names):
        yield path, shape
    if is_pod:
        return  # what is below are claims and probes
    for name in shape.names:
        below = shape.field(name)
        if below is not None and name != "metadata" and (path or name != "status"):
            yield from _walk(below, (*path, name))


def _rules(places: Places) -> Json:
    """Return variables and validations of a policy for objects with these places."""
    validations = [
        *(_rule(_same_nodes(path), NODE_CHOSEN) for path in places.pods),
        *(_rule(_same_words(path), WORD_WRITTEN) for path in places.metadata),
    ]
    if ("spec",) in places.pods:
        validations.append(_rule(_same_gates(), GATE_LIFTED))
    owned = {"expression": _OWNERS_KNOWN, "message": OWNER_CLAIMED, "reason": "Forbidden"}
    return {"variables": _VARIABLES, "validations": [*validations, owned]}


def _rule(is_kept: str, message: str) -> Json:
    return {
        "expression": f"{is_kept} || {DECIDES}",
        "message": message,
        "reason": "Forbidden",
    }


def _same_nodes(path: Path) -> str:
    """Return what is true if no pod at a place has a node that none had there before."""

    def is_kept(new: str) -> str:
        node = f"{new}.?nodeName.orValue('')"
        before = some("oldObject", path, lambda old: f"{old}.?nodeName.orValue('') == {node}")
        return f"({node} == '' || oldObject != null && {before})"

    return every("object", path, is_kept)


def _same_words(path: Path) -> str:
    """Return what is true if what is at a place has no word of ours that was not there before."""

    def is_kept(new: str) -> str:
        parts = []
        for part in ("labels", "annotations"):
            here = f"{new}.?metadata.?{part}"

            def is_equal(old: str, part: str = part, here: str = here) -> str:
                return f"{old}.?metadata.?{part}[?w].orValue('') == {here}[?w].orValue('')"

            before = f"oldObject != null && {some('oldObject', path, is_equal)}"
            parts.append(f"(!(w in {here}.orValue({{}})) || {before})")
        return f"variables.words.all(w, {' && '.join(parts)})"

    return every("object", path, is_kept)


def _same_gates() -> str:
    """Return what is true if a pod keeps the gates that a queue lifts."""
    gates = "{}.?spec.?schedulingGates.orValue([]).exists(g, g.name == w)"
    kept = f"!{gates.format('oldObject')} || {gates.format('object')}"
    return f"(oldObject == null || {sorted(GATES)}.all(w, {kept}))"


def every(root: str, path: Path, ask: Ask) -> str:
    """Return what is true if something is true of everything at a place."""
    return _each(root, path, ask, "all", 0)


def some(root: str, path: Path, ask: Ask) -> str:
    """Return what is true if something is true of anything at a place."""
    return _each(root, path, ask, "exists", 0)


def _each(root: str, path: Path, ask: Ask, loop: str, depth: int) -> str:
    """Return what asks every or some of what is at a place; loops of old objects have own names."""
    here = root
    for number, name in enumerate(path):
        one = f"{'o' if loop == 'exists' else 'n'}{depth}"
        if name == ITEMS:
            below = _each(one, path[number + 1 :], ask, loop, depth + 1)
            return f"{here}.orValue([]).{loop}({one}, {below})"
        if name == VALUES:
            of = f"{here}.orValue({{}})"
            below = _each(f"{of}[{one}]", path[number + 1 :], ask, loop, depth + 1)
            return f"{of}.{loop}({one}, {below})"
        here = f"{here}.?{name}"
    return ask(here)


def owner_kinds(kinds: Mapping[str, str]) -> str:
    """Return a map from the kinds of owners, as `KIND` has them, to their plurals."""
    return "{" + ", ".join(f"'{kind}': '{plural}'" for kind, plural in sorted(kinds.items())) + "}"


JOBS = {f"{group}/{kind}": served.plural for (group, kind), served in job_kinds().items()}
MAKERS = owner_kinds({**JOBS, **{f"{group}/{kind}": plural for group, kind, plural in _MAKERS}})
_GROUP = "(o.apiVersion.contains('/') ? o.apiVersion.split('/')[0] : '')"
KIND = f"({_GROUP} + '/' + o.kind)"  # of an owner `o`
_IS_CONTROLLER = "o.?controller.orValue(false)"
_REFERENCES = "object.metadata.?ownerReferences.orValue([])"


def runs(kinds: str) -> str:
    """Return an expression: the author of an object runs the kind of its owner `o`."""
    return (
        f"authorizer.group({_GROUP}).resource({kinds}[{KIND}]).subresource('finalizers')"
        ".namespace(request.namespace).check('update').allowed()"
    )


BINDS = (
    "'system:nodes' in request.userInfo.groups || authorizer.group('')"
    ".resource('pods').subresource('binding').namespace(request.namespace)"
    ".check('create').allowed()"
)
# Whether the author of an object decides where pods run, or makes it of one that was allowed.
DECIDERS = [
    {"name": "makers", "expression": MAKERS},
    {"name": "binds", "expression": BINDS},
    {
        "name": "makes",
        "expression": f"{_REFERENCES}.exists(o, {_IS_CONTROLLER} && "
        f"{KIND} in variables.makers && {runs('variables.makers')})",
    },
]
_VARIABLES = [
    {"name": "words", "expression": str(sorted(RESERVED))},
    {"name": "jobs", "expression": owner_kinds(JOBS)},
    *DECIDERS,
]
_OWNERS_KNOWN = (
    f"{_REFERENCES}.all(o, !{_IS_CONTROLLER} || !({KIND} in variables.jobs) || "
    "(oldObject != null && oldObject.metadata.?ownerReferences.orValue([]).exists(q, "
    "q.?controller.orValue(false) && q.kind == o.kind && q.name == o.name && "
    f"q.apiVersion == o.apiVersion)) || {runs('variables.jobs')})"
)
