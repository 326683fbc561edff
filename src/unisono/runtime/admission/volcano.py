"""What Volcano's webhook refuses, as rules that a real API server applies by itself.

They look at one object: unknown and repeated events, actions, exit codes and plugins, tasks of one
name, volumes without a claim, changes of a job that no pod would hear of, flows that wait for jobs
that there are not, and that the queues `default` and `root` stay. What depends on other queues, and
circles, our controllers tell; the embedded API refuses that, too (`apiserver.builtin.volcano`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from unisono.kinds.volcano.jobs import PLUGINS
from unisono.kinds.volcano.lifecycle_policies import ACTIONS, ANY, EVENTS


class Rules(NamedTuple):
    """The rules of one kind: what must be true, and what to say if it is not."""

    name: str
    group: str
    plural: str
    operations: tuple[str, ...]
    validations: tuple[tuple[str, str], ...]


def _listed(words: tuple[str, ...]) -> str:
    return "[" + ", ".join(f"'{one}'" for one in words) + "]"


# Lists longer than that are not compared with themselves: an expression has a budget, and what
# exceeds it is refused. Of such lists only the embedded API refuses repetitions.
_MOST_COMPARED = 64


def _unless_long(items: str, expression: str) -> str:
    return f"{items}.size() > {_MOST_COMPARED} || {expression}"


_TASKS = "object.?spec.?tasks.orValue([])"
_OLD_TASKS = "oldObject.?spec.?tasks.orValue([])"
_VOLUMES = "object.?spec.?volumes.orValue([])"
_FLOWS = "object.?spec.?flows.orValue([])"
_NAMED = "({0}.?event.orValue('') != '' || {0}.?events.orValue([]).size() > 0)"
_HAS_EVENT = "({0} == p.?event.orValue('') || {0} in p.?events.orValue([]))"


def _of_policies(policies: str) -> Iterator[tuple[str, str]]:
    """Yield the rules for one list of policies."""
    code = "has(p.exitCode)"
    named = _NAMED.format("p")
    yield f"!({code} && {named})", "must not specify event and exitCode simultaneously"
    yield f"{code} || {named}", "either event and exitCode should be specified"
    events, actions = _listed(EVENTS), _listed(ACTIONS)
    known = f"(p.?event.orValue('') == '' || p.event in {events})"
    each = f"p.?events.orValue([]).all(e, e in {events})"
    yield f"{known} && {each}", f"invalid policy event; there are {', '.join(EVENTS)}"
    message = f"invalid policy action; there are {', '.join(ACTIONS)}"
    yield f"p.?action.orValue('') in {actions}", message
    yield "p.?exitCode.orValue(1) != 0", "0 is not a valid error code"
    same = f"{policies}.filter(o, has(o.exitCode) && o.exitCode == p.exitCode).size() == 1"
    once = _unless_long(policies, same)
    yield f"!{code} || {once}", "duplicate exitCode: each has one policy"


def _of_all_policies(policies: str) -> Iterator[tuple[str, str]]:
    for expression, message in _of_policies(policies):
        yield f"{policies}.all(p, {expression})", message
    has_event = _HAS_EVENT.format("w")
    once = f"{_listed(EVENTS)}.all(w, {policies}.filter(p, {has_event}).size() <= 1)"
    yield once, "duplicate event: each has one policy"
    has_any = f"{policies}.exists(p, {_HAS_EVENT.format(repr(ANY))})"
    others = _listed(tuple(one for one in EVENTS if one != ANY))
    has_other = f"{others}.exists(w, {policies}.exists(p, {has_event}))"
    yield f"!{has_any} || !{has_other}", "if there's * here, no other policy should be here"


def _of_jobs() -> Iterator[tuple[str, str]]:
    yield f"{_TASKS}.size() > 0", "No task specified in job spec"
    unique = f"{_TASKS}.filter(o, o.?name.orValue('') == t.name).size() == 1"
    yield (
        _unless_long(_TASKS, f"{_TASKS}.all(t, t.?name.orValue('') == '' || {unique})"),
        "duplicated task name: each task has its own",
    )
    yield (
        f"{_TASKS}.all(t, t.?minAvailable.orValue(0) <= t.?replicas.orValue(0))",
        "'minAvailable' is greater than 'replicas' in task",
    )
    yield from _of_all_policies("object.?spec.?policies.orValue([])")
    for expression, message in _of_all_policies("t.?policies.orValue([])"):
        yield f"{_TASKS}.all(t, {expression})", message
    yield (
        f"object.?spec.?plugins.orValue({{}}).all(n, n in {_listed(PLUGINS)})",
        f"unable to find job plugin; there are {', '.join(PLUGINS)}",
    )
    paths = f"{_VOLUMES}.filter(o, o.mountPath == v.mountPath).size() == 1"
    yield _unless_long(_VOLUMES, f"{_VOLUMES}.all(v, {paths})"), "duplicated mountPath"
    yield (
        f"{_VOLUMES}.all(v, has(v.volumeClaim) || v.?volumeClaimName.orValue('') != '')",
        "either VolumeClaim or VolumeClaimName must be specified",
    )
    is_new = "oldObject == null"
    yield (
        f"{is_new} || {_TASKS}.size() == {_OLD_TASKS}.size()",
        "job updates may not add or remove tasks",
    )
    same_queue = "object.?spec.?queue.orValue('') == oldObject.?spec.?queue.orValue('')"
    same_pods = (
        f"{_TASKS}.all(t, {_OLD_TASKS}.exists(o, o.?name.orValue('') == t.?name.orValue('')"
        " && o.?template.orValue({}) == t.?template.orValue({})))"
    )
    yield (
        f"{is_new} || ({same_queue} && ({_unless_long(_TASKS, same_pods)}))",
        "job updates may not change fields other than minAvailable, priorityClassName, and replicas"
        " and minAvailable of tasks",
    )


def _of_flows() -> Iterator[tuple[str, str]]:
    targets = "f.?dependsOn.?targets.orValue([])"
    known = f"{_FLOWS}.all(f, {targets}.all(t, {_FLOWS}.exists(o, o.name == t)))"
    yield (
        _unless_long(_FLOWS, known),
        "jobflow Flow is not DAG: vertex is not defined",
    )
    yield (
        f"{_FLOWS}.all(f, !(f.name in {targets}))",
        "jobflow Flow is not DAG: a job depends on itself",
    )


_WRITES = ("CREATE", "UPDATE")
RULES = (
    Rules("unisono-volcano-jobs", "batch.volcano.sh", "jobs", _WRITES, (*_of_jobs(),)),
    Rules("unisono-volcano-flows", "flow.volcano.sh", "jobflows", _WRITES, (*_of_flows(),)),
    Rules(
        "unisono-volcano-queues",
        "scheduling.volcano.sh",
        "queues",
        ("DELETE",),
        (("!(oldObject.metadata.name in ['default', 'root'])", "this queue can not be deleted"),),
    ),
)
