"""Actions on a node: cordon, drain, uncordon, lift a quarantine, plan maintenance.

Cordon is Slurm's DRAIN: no new pods, with a reason, and what runs goes on. Drain is kubectl's: its
pods are evicted on top of that, so that their gangs start again elsewhere. A maintenance
reservation keeps a node free from an instant on; it never ends what runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from unisono.control.names import NODE, POD, POLICY, QUARANTINE
from unisono.engine.model.names import Instant, NodeName, WorkloadKey
from unisono.engine.model.node import Node
from unisono.engine.model.policy import AdvanceReservation
from unisono.engine.state.changes import (
    Change,
    NodeSet,
    PolicySet,
    WorkloadGone,
    WorkloadWaits,
)
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import known_nodes
from unisono.kinds.digits import whole_number
from unisono.kinds.policy.settings import counting_policy
from unisono.kube.errors import Forbidden, NotFound, UnknownKind
from unisono.kube.form import Json
from unisono.slurm.commands.scontrol import node_changes
from unisono.web.actions.action import (
    Action,
    Asked,
    CannotAct,
    Edit,
    Field,
    Here,
    Prepared,
    Right,
    Write,
    line,
    no_fields,
    patch,
    patches_it,
    plural,
    right_to,
)

_MOST_PODS = 512
_LONGEST_REASON = 200
_LONGEST_NAME = 63
_MOST_HOURS = 24 * 366
_REASON = Field(name="reason", label="Reason", value="maintenance")
_MIRROR = "kubernetes.io/config.mirror"  # a pod of the node's own, which no eviction ends


def _is_closed(node: Json) -> bool:
    return bool((node.get("spec") or {}).get("unschedulable"))


def _reason(asked: Asked) -> str:
    reason = asked.field("reason", "Reason")
    if len(reason) > _LONGEST_REASON or not reason.isprintable():
        raise CannotAct(f"Reason: must be printable and {_LONGEST_REASON} characters at most")
    return reason


def _closing(here: Here, node: Json, asked: Asked) -> tuple[Write, str]:
    """Return the write and the command that close a node, as `scontrol` does it."""
    name, reason = node["metadata"]["name"], _reason(asked)
    changes = node_changes({"state": "DRAIN", "reason": reason}, here.user, here.now)
    words = (f"NodeName={name}", "State=DRAIN", f"Reason={reason}")
    return patch(node, changes), line("unisono", "scontrol", "update", *words)


def _edited(name: str, change: Callable[[Node], Node]) -> Edit:
    """Return what it means that a node becomes another."""

    def edit(state: ClusterState) -> Iterator[Change]:
        yield from (NodeSet(change(one)) for one in known_nodes(state) if one.name == name)

    return edit


def _cordoned(name: str) -> Edit:
    return _edited(name, lambda one: replace(one, unschedulable=True))


# ---- cordon, drain, uncordon ---------------------------------------------------------------------


async def _open_fields(here: Here, node: Json) -> Sequence[Field] | None:
    return None if _is_closed(node) else (_REASON,)


async def _cordon(here: Here, node: Json, asked: Asked) -> Prepared:
    if _is_closed(node):
        raise CannotAct("it is cordoned already")
    name = node["metadata"]["name"]
    write, command = _closing(here, node, asked)
    return Prepared(
        title=f"Cordon node {name}",
        done=f"node {name} is cordoned",
        writes=(write,),
        commands=(command,),
        says=("It gets no new pods. What runs on it goes on.",),
        edit=_cordoned(name),
    )


async def _drain_fields(here: Here, node: Json) -> Sequence[Field] | None:
    return (_REASON,)


async def _drain(here: Here, node: Json, asked: Asked) -> Prepared:
    name = node["metadata"]["name"]
    pods = await _pods_on(here, name)
    if len(pods) > _MOST_PODS:
        raise CannotAct(f"it has more than {_MOST_PODS} pods; use kubectl drain")
    writes: tuple[Write, ...] = ()
    commands: tuple[str, ...] = ()
    if not _is_closed(node):
        write, command = _closing(here, node, asked)
        writes, commands = (write,), (command,)
    evictions = tuple(_eviction(pod) for pod in pods)
    drain = ("kubectl", "drain", name, "--ignore-daemonsets", "--delete-emptydir-data", "--force")
    gangs = sorted({gang for pod in pods if (gang := _gang_of(pod))})
    return Prepared(
        title=f"Drain node {name}",
        done=f"node {name} is drained",
        writes=(*writes, *evictions),
        commands=(*commands, line(*drain)),
        says=(
            "It gets no new pods.",
            f"{len(pods)} pods on it are evicted; {_gangs(gangs)}."
            if pods
            else "No pods run on it.",
        ),
        edit=_drained(name, gangs),
    )


def _gangs(keys: Sequence[str]) -> str:
    if not keys:
        return "none of them is of a gang"
    few = ", ".join(keys[:5]) + (f" and {len(keys) - 5} more" if len(keys) > 5 else "")
    return f"{'this gang loses' if len(keys) == 1 else 'these gangs lose'} pods: {few}"


def _drained(name: str, gangs: Sequence[str]) -> Edit:
    def edit(state: ClusterState) -> Iterator[Change]:
        yield from _cordoned(name)(state)
        for key in map(WorkloadKey, gangs):
            if key in state.running:
                workload = state.running[key].admitted.workload
                yield WorkloadGone(key)
                yield WorkloadWaits(workload)

    return edit


async def _pods_on(here: Here, node: str) -> list[Json]:
    """Return the pods that a drain evicts: not those of DaemonSets, and not finished ones."""
    found = (await here.api.list(POD, fields=f"spec.nodeName={node}")).items
    return [
        pod
        for pod in found
        if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        and _MIRROR not in (pod["metadata"].get("annotations") or {})
        and not any(
            one["kind"] == "DaemonSet" for one in pod["metadata"].get("ownerReferences") or ()
        )
    ]


def _eviction(pod: Json) -> Write:
    metadata = pod["metadata"]
    return Write("evict", POD, metadata["name"], metadata["namespace"], uid=metadata["uid"])


def _gang_of(pod: Json) -> str:
    metadata = pod["metadata"]
    workload = (metadata.get("annotations") or {}).get("kueue.x-k8s.io/workload", "")
    return f"{metadata['namespace']}/{workload}" if workload else ""


async def _uncordon_fields(here: Here, node: Json) -> Sequence[Field] | None:
    return await no_fields(here, node) if _is_closed(node) else None


async def _uncordon(here: Here, node: Json, asked: Asked) -> Prepared:
    if not _is_closed(node):
        raise CannotAct("it is not cordoned")
    name = node["metadata"]["name"]
    return Prepared(
        title=f"Uncordon node {name}",
        done=f"node {name} takes pods again",
        writes=(patch(node, node_changes({"state": "RESUME"}, here.user, here.now)),),
        commands=(line("unisono", "scontrol", "update", f"NodeName={name}", "State=RESUME"),),
        says=("It gets new pods again.",),
        edit=_edited(name, lambda one: replace(one, unschedulable=False)),
    )


# ---- quarantine ----------------------------------------------------------------------------------


def _taints(node: Json) -> list[Json]:
    return list((node.get("spec") or {}).get("taints") or ())


async def _lift_fields(here: Here, node: Json) -> Sequence[Field] | None:
    is_in = any(one["key"] == QUARANTINE for one in _taints(node))
    return await no_fields(here, node) if is_in else None


async def _lift(here: Here, node: Json, asked: Asked) -> Prepared:
    name, taints = node["metadata"]["name"], _taints(node)
    kept = [one for one in taints if one["key"] != QUARANTINE]
    if len(kept) == len(taints):
        raise CannotAct("it is not in quarantine")
    reason = next(str(one.get("value") or "") for one in taints if one["key"] == QUARANTINE)
    # The list of taints is written whole, so only in the state that was seen.
    version = node["metadata"]["resourceVersion"]
    changes = {"metadata": {"resourceVersion": version}, "spec": {"taints": kept or None}}

    def lifted(one: Node) -> Node:
        return replace(one, taints=tuple(each for each in one.taints if each.key != QUARANTINE))

    return Prepared(
        title=f"Lift the quarantine of node {name}",
        done=f"node {name} is out of quarantine",
        writes=(patch(node, changes),),
        commands=(line("kubectl", "taint", "node", name, f"{QUARANTINE}-"),),
        says=(
            f"The quarantine is for {reason}." if reason else "The quarantine has no reason.",
            "A fault that is still reported is believed no more until it is gone.",
        ),
        edit=_edited(name, lifted),
    )


# ---- maintenance ---------------------------------------------------------------------------------


async def _policy(here: Here) -> Json | None:
    """Return the Policy that counts, as the user may read it."""
    try:
        return counting_policy((await here.api.list(POLICY)).items)
    except (NotFound, UnknownKind):
        return None


async def _reserve_fields(here: Here, node: Json) -> Sequence[Field] | None:
    soon = (int(here.now) // 3600 + 2) * 3600
    return (
        Field(name="name", label="Name", value=f"maintenance-{node['metadata']['name']}"[:63]),
        Field(name="start", label="From (UTC)", kind="time", value=_written(soon)),
        Field(name="hours", label="Hours", kind="number", value="4"),
    )


async def _reserve(here: Here, node: Json, asked: Asked) -> Prepared:
    reservation = _reservation(here, node, asked)
    label, name = reservation["name"], node["metadata"]["name"]
    policy = await _policy(here)
    start, hours = reservation["start"], reservation["duration"]
    if policy is None:
        if not here.may_create_policy:
            raise CannotAct(
                "this cluster has no Policy object; add the reservation to the file of --policy, "
                "or create a Policy with what that file says"
            )
        body = {"reservations": [reservation]}
        made = {
            "apiVersion": POLICY.api_version,
            "kind": POLICY.kind,
            "metadata": {"name": "unisono"},
            **body,
        }
        write = Write("create", POLICY, "unisono", changes=made)
        command = f"echo {line(json.dumps(made))} | kubectl apply -f -"
    else:
        there = policy.get("reservations") or []
        if any(one.get("name") == label for one in there):
            raise CannotAct(f"Name: a reservation {label} is there already")
        metadata = policy["metadata"]
        add: Json = (
            {"op": "add", "path": "/reservations/-", "value": reservation}
            if there
            else {"op": "add", "path": "/reservations", "value": [reservation]}
        )
        # Exact: another edit of the list is not overwritten.
        test = {"op": "test", "path": "/metadata/resourceVersion"}
        version = {**test, "value": metadata["resourceVersion"]}
        write = Write("patch", POLICY, metadata["name"], changes=[version, add])
        text = json.dumps([add], separators=(",", ":"))
        command = line("kubectl", "patch", "policy", metadata["name"], "--type=json", "-p", text)
    return Prepared(
        title=f"Reserve node {name} for maintenance",
        done=f"node {name} is reserved from {start} for {hours}",
        writes=(write,),
        commands=(command,),
        says=(
            f"From {start} for {hours} no workload may run on {name}.",
            "Workloads start on it before only if their time limit ends in time; without a limit "
            "they do not. What runs already is not stopped: drain the node if it has to end.",
        ),
        edit=_reserved(reservation, name),
    )


def _reservation(here: Here, node: Json, asked: Asked) -> Json:
    label = asked.field("name", "Name")
    if len(label) > _LONGEST_NAME or not all(one.isalnum() or one in "-._" for one in label):
        raise CannotAct(
            f"Name: must be letters, digits, - . _ and {_LONGEST_NAME} characters at most"
        )
    start, hours = asked.field("start", "From"), whole_number(asked.field("hours", "Hours"))
    try:
        at = datetime.fromisoformat(start)
    except ValueError:
        raise CannotAct(f"From: {start} is no time; write it as 2026-02-01T08:00") from None
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    if hours is None or not 0 < hours <= _MOST_HOURS:
        raise CannotAct(f"Hours: must be a whole number from 1 to {_MOST_HOURS}")
    if at.timestamp() + hours * 3600 <= here.now:
        raise CannotAct("From: that maintenance would be over already")
    return {
        "name": label,
        "start": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "duration": f"{hours}h",
        "nodes": [node["metadata"]["name"]],
        "maintenance": True,
    }


def _reserved(reservation: Json, node: str) -> Edit:
    start = int(datetime.fromisoformat(reservation["start"]).timestamp() * 1000)
    hours = int(reservation["duration"][:-1])
    planned = AdvanceReservation(
        name=reservation["name"],
        start=Instant(start),
        end=Instant(start + hours * 3_600_000),
        nodes=(NodeName(node),),
    )

    def edit(state: ClusterState) -> Iterator[Change]:
        policy = state.policy
        yield PolicySet(replace(policy, reservations=(*policy.reservations, planned)))

    return edit


def _written(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M")


async def _drains(here: Here, node: Json) -> Sequence[Right]:
    return (
        *(() if _is_closed(node) else (right_to("patch", node),)),
        Right("list", "", "pods"),
        Right("create", "", "pods", subresource="eviction"),
    )


async def _plans(here: Here, node: Json) -> Sequence[Right]:
    group, _, _ = POLICY.api_version.rpartition("/")
    may_list = Right("list", group, plural(POLICY))
    try:
        policy = await _policy(here)
    except Forbidden:
        return (may_list,)  # what is there to write to is not known without it
    verb = "create" if policy is None else "patch"
    return (may_list, Right(verb, group, plural(POLICY)))


TARGET = NODE
ACTIONS: Sequence[Action] = (
    Action("cordon", "Cordon", _cordon, _open_fields, patches_it),
    Action("drain", "Drain", _drain, _drain_fields, _drains, is_grave=True),
    Action("uncordon", "Uncordon", _uncordon, _uncordon_fields, patches_it),
    Action("lift-quarantine", "Lift quarantine", _lift, _lift_fields, patches_it),
    Action("reserve", "Plan maintenance", _reserve, _reserve_fields, _plans),
)
