"""The operator of Volcano jobs: holds them back, makes their pods, and follows their policies."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any

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
from unisono.control.conditions import is_true, seconds, timestamp
from unisono.control.controller import own_key, owner_key
from unisono.control.job_kinds import volcano
from unisono.control.job_kinds.ssh_keys import KeyPair, new_key_pair
from unisono.control.job_kinds.volcano.phases import (
    ENDED,
    ENDING,
    LIVE,
    Move,
    is_lost_with_node,
    job_phase,
    leaving,
    moved_by_itself,
    ordered,
    reaction_move,
    reactions,
    restart_at,
    unknown_at,
)
from unisono.control.job_kinds.volcano.pods import (
    KNOWN,
    config_map,
    head_service,
    hosts_left_out,
    keys_name,
    new_claims,
    new_pod,
    plugins_of,
    secret,
    service,
    ssh_config,
    with_claim_names,
)
from unisono.control.job_kinds.volcano.tasks import Tally, least_pods, may_start, tally, tasks_of
from unisono.control.jobs.adapter import Injection
from unisono.control.jobs.controller import injections
from unisono.control.jobs.pods import is_deleting, made, most_pods, too_many
from unisono.control.jobs.queues import Queues
from unisono.control.view import View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

# How many of its past phases a job's status lists.
_MOST_CONDITIONS = 32

Admission = Mapping[str, Injection]


class VolcanoJobOperator:
    """Runs Volcano jobs."""

    name = "vcjob"
    watches: Sequence[Kind] = (volcano.JOB, names.POD, names.WORKLOAD, volcano.COMMAND)
    owner_kind: Kind = volcano.JOB
    dependent_kinds: Sequence[Kind] = (names.POD, names.WORKLOAD)

    def __init__(self, queues: Queues, keys: Callable[[], KeyPair] = new_key_pair) -> None:
        """Take what knows which jobs wait in a queue, and what makes keys for ssh."""
        self._queues = queues
        self._keys = keys

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A job, one of its pods, its Workload, or a command about it."""
        if kind == volcano.JOB:
            return (own_key(obj),)
        if kind == volcano.COMMAND:
            return _target(obj)
        return owner_key(obj, volcano.JOB)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take one job a step further."""
        job = view.get(volcano.JOB, key.name, key.namespace)
        if job is None or is_deleting(job):
            return
        if not job_phase(job):
            job = yield from self._begin(job, view, now)
        is_held, admission = self._admission(job, view)
        pods = view.owned(names.POD, job["metadata"]["uid"])
        counts = {name: one.count for name, one in admission.items()}
        sorted_pods = tally(job, tasks_of(job), pods, counts)
        command = _command(job, view)
        if command is not None:
            yield from self._obey(job, command, sorted_pods, now)
            return
        if is_held and job_phase(job) in LIVE:
            yield from self._hold(job, sorted_pods, now)
        elif job_phase(job) in LIVE:
            yield from self._live(job, sorted_pods, admission, view, now)
        else:
            yield from self._leave(job, sorted_pods, now)

    def _admission(self, job: Json, view: View) -> tuple[bool, Admission]:
        """Say whether a job is held back, and what its pods get if it is not."""
        name = (job["metadata"].get("annotations") or {}).get(volcano.ADMITTED, "")
        if not name and self._queues.queue_of(job, view) is None:
            return False, {}
        workload = view.get(names.WORKLOAD, name, job["metadata"]["namespace"]) if name else None
        if workload is None:
            return True, {}
        status = workload.get("status") or {}
        is_free = is_true(status.get("conditions"), "Finished")
        if not status.get("admission") or is_free:
            return True, {}
        scheduler = str(job["spec"].get("schedulerName") or "volcano")
        return False, injections(workload, view, self._queues, scheduler)

    # ---- before pods --------------------------------------------------------------------------

    def _begin(self, job: Json, view: View, now: float) -> Generator[Action, Any, Json]:
        """Make what the job has besides pods, then say that it is there."""
        wanted: list[Json] = list(new_claims(job))
        named = plugins_of(job)
        if "svc" in named:
            wanted += [service(job), config_map(job)]
        if "ray" in named:
            wanted.append(head_service(job))
        if "ssh" in named:
            name, namespace = keys_name(job), job["metadata"]["namespace"]
            if view.get(names.SECRET, name, namespace) is None:
                wanted.append(secret(job, self._keys()))
        if wanted:
            yield Together([Create(obj) for obj in wanted])
        volumes = with_claim_names(job)
        if volumes != (job["spec"].get("volumes") or []):
            job = yield Patch(Ref.to(job), {"spec": {"volumes": volumes}})
        ours = {f"plugin-{name}": name for name in named}
        if "svc" in named:
            ours[volcano.HOSTS] = _hosts(job)
        status = {
            "state": {"phase": "Pending", "lastTransitionTime": timestamp(now)},
            "conditions": [{"status": "Pending", "lastTransitionTime": timestamp(now)}],
            "minAvailable": least_pods(job),
            "version": 0,
            "controlledResources": ours,
        }
        written: Json = yield Patch(Ref.to(job), {"status": status}, "status")
        unknown = sorted(set(named) - set(KNOWN))
        if unknown:
            message = f"plugins that are not known here are ignored: {', '.join(unknown)}"
            yield Note(Ref.to(written), "PluginIgnored", message, "Warning")
        left_out = hosts_left_out(job) if "svc" in named else 0
        if left_out:
            message = f"the lists of hosts leave out {left_out} pods: there are too many to name"
            yield Note(Ref.to(written), "HostsLeftOut", message, "Warning")
        return written

    def _obey(self, job: Json, command: Json, pods: Tally, now: float) -> Steps:
        """Carry out a command once: its uid is written down together with what it leads to."""
        uid = command["metadata"]["uid"]
        done = ((job.get("status") or {}).get("controlledResources") or {}).get(
            volcano.LAST_COMMAND
        )
        if done != uid:
            action = command.get("action", "")
            message = command.get("message") or f"Command {command['metadata']['name']}"
            move = ordered(job, action, message)
            if move is not None:
                yield from _write(job, pods, now, move, command=uid)
        yield Delete(Ref.to(command))

    def _hold(self, job: Json, pods: Tally, now: float) -> Steps:
        """Keep a job without pods; those of the time before it was stopped go."""
        if any(True for _ in pods.every()):
            move = Move(phase="Pending", reason="Suspended", is_whole=True)
            yield from _write(job, pods, now, move)
            return  # its pods are of an older version now
        yield from _delete(pods.old)
        move_back = Move(phase="Pending") if job_phase(job) != "Pending" else None
        yield from _write(job, pods, now, move_back)

    # ---- with pods ----------------------------------------------------------------------------

    def _live(self, job: Json, pods: Tally, admission: Admission, view: View, now: float) -> Steps:
        """Let policies speak, see whether it is over, else make the pods that are missing."""

        def node(name: str) -> Json | None:
            return view.get(names.NODE, name)

        found = reactions(job, pods, node, now)
        for reaction in found:
            move = reaction_move(job, reaction, now) if reaction.at <= now else None
            if move is not None:
                yield from _write(job, pods, now, move)
                message = f"Start to execute action {move.reason}: {move.message}"
                yield Note(Ref.to(job), "ExecuteAction", message, "Warning")
                return
        move = moved_by_itself(job, pods)
        if move is not None and move.phase not in LIVE:
            yield from _write(job, pods, now, move)
            return
        job = yield from _renew_hosts(job)
        yield from _delete(pods.old)
        useless = [
            pod
            for one in pods.tasks
            for number, pod in one.pods.items()
            if number >= one.wanted or is_lost_with_node(pod, node)
        ]
        yield from _delete(useless)
        if not pods.old and not admission and pods.wanted > most_pods(job, pods.wanted, (), view):
            yield from too_many(job, pods.wanted, view, now)
        elif not pods.old and restart_at(job) <= now:
            yield from _create(job, pods, admission, now)
        yield from _write(job, pods, now, move)
        later = [at for at in (*(one.at for one in found), restart_at(job)) if at > now]
        later += [at for at in unknown_at(pods) if at > now]
        if later:
            yield Again(min(later))

    def _leave(self, job: Json, pods: Tally, now: float) -> Steps:
        """Delete the pods that the phase wants gone; when they are, move to the next phase."""
        yield from _delete(leaving(job, pods))
        job = yield from _write(job, pods, now, moved_by_itself(job, pods))
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        if ttl is None or job_phase(job) not in ENDED or job_phase(job) == "Aborted":
            return
        ended = seconds(job["status"]["state"].get("lastTransitionTime", ""))
        if now >= ended + ttl:
            yield Delete(Ref.to(job), policy="Foreground")
        else:
            yield Again(ended + ttl)


def _hosts(job: Json) -> str:
    """Return how many hosts each task has, as the status records what was last written down."""
    return ",".join(f"{task.name}={task.replicas}" for task in tasks_of(job))


def _renew_hosts(job: Json) -> Generator[Action, Any, Json]:
    """Let the lists of hosts follow a job that was scaled; pods read them from their volumes."""
    plugins = plugins_of(job)
    resources = (job.get("status") or {}).get("controlledResources") or {}
    if "svc" not in plugins or resources.get(volcano.HOSTS, _hosts(job)) == _hosts(job):
        return job
    wanted = config_map(job)
    yield Patch(Ref.to(wanted), {"data": wanted["data"]}, exact=False)
    if "ssh" in plugins:
        config = {"stringData": {"config": ssh_config(job)}}
        named = {"name": keys_name(job), "namespace": job["metadata"]["namespace"]}
        keys = {"apiVersion": "v1", "kind": "Secret", "metadata": named}
        yield Patch(Ref.to(keys), config, exact=False)
    status = {"controlledResources": {volcano.HOSTS: _hosts(job)}}
    written: Json = yield Patch(Ref.to(job), {"status": status}, "status")
    return written


def _create(job: Json, pods: Tally, admission: Admission, now: float) -> Steps:
    """Make the pods that are missing; a name is free again when its pod is gone for good."""
    yield from made(
        new_pod(
            job,
            one.task,
            number,
            admission.get(one.task.name),
            lost_at=now if number in one.lost else None,
        )
        for one in pods.tasks
        if may_start(one, pods)
        for number in one.missing()
    )


def _delete(pods: Sequence[Json]) -> Steps:
    going = [pod for pod in pods if not is_deleting(pod)]
    if going:
        yield Together([Delete(Ref.to(pod)) for pod in going])


def _write(
    job: Json, pods: Tally, now: float, move: Move | None, command: str = ""
) -> Generator[Action, Any, Json]:
    """Write the status if it is another one; return the job as it then is."""
    old = job.get("status") or {}
    new: Json = {
        **old,
        "minAvailable": least_pods(job),
        "pending": pods.count("Pending"),
        "running": pods.count("Running"),
        "succeeded": pods.count("Succeeded"),
        "failed": pods.count("Failed"),
        "unknown": pods.count("Unknown"),
        "terminating": pods.terminating,
        "taskStatusCount": pods.by_phase(),
    }
    if move is not None:
        _apply(new, job, move, now)
        if move.phase == "Restarting" or move.phase in ENDING:
            # Those that are about to be deleted: what has failed is gone at once, and never seen.
            going = [*pods.every(), *pods.old] if move.is_whole else []
            new["terminating"] = len(going or leaving({**job, "status": new}, pods))
    if command:
        new["controlledResources"] = {
            **(new.get("controlledResources") or {}),
            volcano.LAST_COMMAND: command,
        }
    if _plain(new) == _plain(old):
        return job
    changes = {**new, "taskStatusCount": _replacing(old, new, "taskStatusCount")}
    if "controlledResources" in new:
        changes["controlledResources"] = _replacing(old, new, "controlledResources")
    written: Json = yield Patch(Ref.to(job), {"status": changes}, "status")
    return written


def _apply(status: Json, job: Json, move: Move, now: float) -> None:
    """Change a status as a move says."""
    status["state"] = {
        "phase": move.phase,
        "reason": move.reason,
        "message": move.message,
        "lastTransitionTime": timestamp(now),
    }
    entry = {"status": move.phase, "lastTransitionTime": timestamp(now)}
    status["conditions"] = [*(status.get("conditions") or ()), entry][-_MOST_CONDITIONS:]
    if move.is_retry:
        status["retryCount"] = status.get("retryCount", 0) + 1
    resources = dict(status.get("controlledResources") or {})
    resources.pop(volcano.TARGET, None)
    if move.target:
        resources[volcano.TARGET] = move.target
    if move.row is not None:
        resources[volcano.RESTARTS_IN_A_ROW] = str(move.row)
    if move.phase == "Restarting":
        resources.pop(volcano.RESTART_AT, None)
    if move.restart_at:
        resources[volcano.RESTART_AT] = timestamp(move.restart_at)
    status["controlledResources"] = resources
    if move.is_whole:
        status["version"] = status.get("version", 0) + 1
        status["taskStatusCount"] = {}
        for phase in ("pending", "running", "succeeded", "failed", "unknown"):
            status[phase] = 0
    if move.phase in ENDED:
        made = seconds(job["metadata"].get("creationTimestamp") or "")
        status["runningDuration"] = f"{max(0, int(now - made))}s"


def _replacing(old: Json, new: Json, key: str) -> Json:
    """Return the merge patch that makes one mapping of a status another."""
    before, after = old.get(key) or {}, new.get(key) or {}
    changed: Json = {name: None for name in before if name not in after}
    for name, value in after.items():
        if key == "taskStatusCount":
            gone = {
                phase: None
                for phase in (before.get(name) or {}).get("phase") or {}
                if phase not in value["phase"]
            }
            value = {"phase": {**gone, **value["phase"]}}
        changed[name] = value
    return changed


def _plain(status: Json) -> Json:
    return {key: value for key, value in status.items() if value not in (None, 0, {}, [], "")}


def _target(command: Json) -> Iterable[Key]:
    target = command.get("target") or {}
    if target.get("kind") == volcano.JOB.kind and str(target.get("apiVersion", "")).startswith(
        "batch.volcano.sh/"
    ):
        yield Key(command["metadata"].get("namespace", ""), target["name"])


def _command(job: Json, view: View) -> Json | None:
    """Return the oldest command about a job."""
    key = own_key(job)
    commands = [
        one
        for one in view.within(volcano.COMMAND, key.namespace)
        if key in _target(one) and not is_deleting(one)
    ]
    if not commands:
        return None
    return min(
        commands,
        key=lambda one: (one["metadata"].get("creationTimestamp", ""), one["metadata"]["name"]),
    )
