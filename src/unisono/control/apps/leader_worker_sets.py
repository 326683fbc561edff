"""Keeps groups of pods that serve one model together: LeaderWorkerSets.

    group i          a leader NAME-i and workers NAME-i-1 … NAME-i-(size-1), made at the same time
    a gang           the group is one pod group of Kueue's: it gets quota and nodes whole, or waits
    a pod restarts   the whole group starts anew, once all of its pods are gone
    an update        group by group from the last down to `partition`

With `startupPolicy: LeaderReady` workers are made once their leader is ready, so such a group
cannot be a gang: its pods are queued one by one. What group a pod is of, and of which revision, is
in its name and its labels; nothing else is remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unisono.control import names
from unisono.control.actions import Again, Create, Delete, Json, Note, Patch, Ref, Steps, Together
from unisono.control.apps import CONTROLLER_REVISION, LEADER_WORKER_SET
from unisono.control.apps.members import share_of
from unisono.control.apps.revisions import (
    Revisions,
    current,
    forget_old,
    template_of,
)
from unisono.control.conditions import with_condition
from unisono.control.controller import own_key, owner_key
from unisono.control.jobs.pods import (
    AT_ONCE,
    is_deleting,
    is_ready,
    is_terminal,
    most_pods,
    pod_from,
    suffix,
    too_many,
    with_variables,
)
from unisono.control.jobs.workload import owner_reference
from unisono.control.pod_gangs.controller import GATE
from unisono.control.pod_gangs.membership import MANAGED
from unisono.control.view import View
from unisono.kinds.core.pod_groups import GROUP_NAME, ROLE_HASH, TOTAL_COUNT
from unisono.kinds.digits import whole_number
from unisono.kinds.priorities import PRIORITY_LABEL
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

_PREFIX = "leaderworkerset.sigs.k8s.io/"
NAME, GROUP, WORKER = f"{_PREFIX}name", f"{_PREFIX}group-index", f"{_PREFIX}worker-index"
_GROUP_KEY, _REVISION = f"{_PREFIX}group-key", f"{_PREFIX}template-revision-hash"
_SIZE, _LEADER = f"{_PREFIX}size", f"{_PREFIX}leader-name"
_PART = "leaderWorkerTemplate"


class LeaderWorkerSets:
    """Runs LeaderWorkerSets."""

    name = "leaderworkerset"
    watches: Sequence[Kind] = (LEADER_WORKER_SET, names.POD, CONTROLLER_REVISION)
    owner_kind: Kind = LEADER_WORKER_SET
    idle_without: Kind = LEADER_WORKER_SET

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A LeaderWorkerSet, or a pod of one."""
        return (own_key(obj),) if kind == LEADER_WORKER_SET else owner_key(obj, LEADER_WORKER_SET)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take one LeaderWorkerSet a step further."""
        owner = view.get(LEADER_WORKER_SET, key.name, key.namespace)
        if owner is None or is_deleting(owner):
            return
        revisions = yield from current(owner, view, _PART)
        look = _Look(owner, revisions, view, now)
        yield from look.step()
        yield from look.tell()
        pods = view.owned(names.POD, owner["metadata"]["uid"])
        used = {_label(pod, _REVISION) for pod in pods}
        kept = {_name(one) for one in revisions.all if _short(one) in used}
        yield from forget_old(owner, revisions, kept)


@dataclass(frozen=True, slots=True)
class _Group:
    """The pods of one group that are there, by their number in it."""

    number: int
    pods: Mapping[int, Json]

    @property
    def revision(self) -> str:
        """The revision that its pods are of; empty without pods."""
        return next((_label(pod, _REVISION) for pod in self.pods.values()), "")


class _Look:
    """One look at one set."""

    def __init__(self, owner: Json, revisions: Revisions, view: View, now: float) -> None:
        self._owner, self._spec, self._view, self._now = owner, owner["spec"], view, now
        self._revisions = revisions
        self._name = str(owner["metadata"]["name"])
        self._newest = _short(revisions.newest)
        template = self._spec.get(_PART) or {}
        self._size = max(1, int(template.get("size") or 1))
        self._restarts_whole = template.get("restartPolicy") != "None"
        self._leader_first = self._spec.get("startupPolicy") == "LeaderReady" and self._size > 1
        self._wanted = int(self._spec.get("replicas", 1))

    def step(self) -> Steps:
        """Make, delete or replace as many groups as may be now."""
        pods = self._wanted * self._size
        template = (self._spec.get(_PART) or {}).get("workerTemplate") or {}
        room = most_pods(self._owner, pods, (template,), self._view)
        if room < pods:
            yield from too_many(self._owner, pods, self._view, self._now)
            self._wanted = room // self._size
        yield from self._services()
        groups = self._groups()
        going: list[Json] = []
        for number, group in groups.items():
            if number >= self._wanted:
                going += [pod for pod in group.pods.values() if not is_deleting(pod)]
        for number in range(self._wanted):
            group = groups.get(number, _Group(number, {}))
            lost = self._lost(group)
            going += lost
            if not lost:
                yield from self._make(group)
        going += self._outdated(groups)
        if going:
            yield Together([Delete(Ref.to(pod)) for pod in going[:AT_ONCE]])
            if len(going) > AT_ONCE:
                yield Again(self._now)

    def _groups(self) -> dict[int, _Group]:
        found: dict[int, dict[int, Json]] = {}
        for pod in self._view.owned(names.POD, self._owner["metadata"]["uid"]):
            group, worker = whole_number(_label(pod, GROUP)), whole_number(_label(pod, WORKER))
            if group is not None and worker is not None:
                found.setdefault(group, {})[worker] = pod
        return {number: _Group(number, pods) for number, pods in sorted(found.items())}

    def _lost(self, group: _Group) -> list[Json]:
        """Return pods that have to go: those that ended, or all, where a group restarts whole."""
        living = [pod for pod in group.pods.values() if not is_deleting(pod)]
        ended = [pod for pod in living if is_terminal(pod)]
        if not self._restarts_whole:
            return ended
        is_hit = (
            bool(ended)
            or len(living) < len(group.pods)
            or any(map(_restarted, living))
            or self._misses(group, living)
            or any(number >= self._size for number in group.pods)
        )
        return living if is_hit else []

    def _misses(self, group: _Group, living: Sequence[Json]) -> bool:
        """Say whether a pod of a group that ran is gone; in one that has not run it is made."""
        if len(group.pods) >= self._size or not group.pods:
            return False
        waits = self._leader_first and list(group.pods) == [0]
        return not waits and any(pod["spec"].get("nodeName") for pod in living)

    def _make(self, group: _Group) -> Steps:
        if group.pods and self._restarts_whole and any(map(is_deleting, group.pods.values())):
            return  # begun anew when the last of them is gone
        revision = self._revision_of(group)
        count = self._size
        if self._leader_first and not (0 in group.pods and is_ready(group.pods[0])):
            count = 1
        namespace = self._owner["metadata"]["namespace"]
        made = []
        for worker in range(count):
            name = self._pod_name(group.number, worker)
            if worker in group.pods or self._view.raw(names.POD, name, namespace) is not None:
                continue
            made.append(self._pod(group.number, worker, revision))
        for pod in made:
            yield from self._claims(pod, revision)
        for start in range(0, len(made), AT_ONCE):
            yield Together([Create(pod) for pod in made[start : start + AT_ONCE]])
        if made:
            message = f"Created {len(made)} pods of group {group.number}"
            yield Note(Ref.to(self._owner), "GroupsProgressing", message)

    def _revision_of(self, group: _Group) -> Json:
        """Return the revision for new pods of a group."""
        there = group.revision
        if not there and group.number < self._partition():
            # Below the partition a group comes back as the others there still are.
            there = next(
                (
                    one.revision
                    for number, one in self._groups().items()
                    if number < self._partition() and one.revision != self._newest
                ),
                "",
            )
        found = (one for one in self._revisions.all if _short(one) == there)
        return next(found, self._revisions.newest)

    def _rolling(self) -> Json:
        return (self._spec.get("rolloutStrategy") or {}).get("rollingUpdateConfiguration") or {}

    def _partition(self) -> int:
        return int(self._rolling().get("partition") or 0)

    def _outdated(self, groups: Mapping[int, _Group]) -> list[Json]:
        """Return the pods of groups that are to be replaced by those of the newest template."""
        given = self._rolling().get("maxUnavailable", 1)
        most = max(1, share_of(given, self._wanted, rounds_up=False))
        whole = [number for number in range(self._wanted) if self._is_ready(groups.get(number))]
        missing = self._wanted - len(whole)
        found: list[Json] = []
        for number in range(self._wanted - 1, self._partition() - 1, -1):
            group = groups.get(number)
            if group is None or group.revision == self._newest:
                continue
            living = [pod for pod in group.pods.values() if not is_deleting(pod)]
            if number in whole:
                if missing >= most:
                    break
                missing += 1
            found += living
        return found

    def _is_ready(self, group: _Group | None) -> bool:
        if group is None or len(group.pods) < self._size:
            return False
        return all(is_ready(pod) and not is_deleting(pod) for pod in group.pods.values())

    # ---- pods --------------------------------------------------------------------------------

    def _pod_name(self, group: int, worker: int) -> str:
        return f"{self._name}-{group}-{worker}" if worker else f"{self._name}-{group}"

    def _subdomain(self, group: int) -> str:
        policy = (self._spec.get("networkConfig") or {}).get("subdomainPolicy")
        return f"{self._name}-{group}" if policy == "UniquePerReplica" else self._name

    def _pod(self, group: int, worker: int, revision: Json) -> Json:
        both = template_of(revision, _PART)
        leader = both.get("leaderTemplate") or both.get("workerTemplate") or {}
        template = both.get("workerTemplate") or {} if worker else leader
        name, namespace = self._pod_name(group, worker), self._owner["metadata"]["namespace"]
        key = suffix(self._owner["metadata"]["uid"], group) + suffix(group, self._name)
        labels = {
            NAME: self._name,
            GROUP: str(group),
            WORKER: str(worker),
            _GROUP_KEY: key,
            _REVISION: _short(revision),
        }
        annotations = {_SIZE: str(self._size)}
        if worker:
            annotations[_LEADER] = self._pod_name(group, 0)
        pod = pod_from(template, self._owner, name, labels=labels, annotations=annotations)
        subdomain = self._subdomain(group)
        pod["spec"] |= {"hostname": name, "subdomain": subdomain}
        variables = [
            {
                "name": "LWS_LEADER_ADDRESS",
                "value": f"{self._pod_name(group, 0)}.{subdomain}.{namespace}",
            },
            {"name": "LWS_GROUP_SIZE", "value": str(self._size)},
            {"name": "LWS_WORKER_INDEX", "value": str(worker)},
        ]
        for part in ("containers", "initContainers"):
            if pod["spec"].get(part):
                pod["spec"][part] = [
                    {**one, "env": with_variables(one.get("env"), variables)}
                    for one in pod["spec"][part]
                ]
        mounted = [
            {"name": volume, "persistentVolumeClaim": {"claimName": f"{volume}-{name}"}}
            for volume in _volumes(both)
        ]
        if mounted:
            own = pod["spec"].get("volumes") or ()
            pod["spec"]["volumes"] = [
                *(one for one in own if one.get("name") not in _volumes(both)),
                *mounted,
            ]
        self._queue(pod, group, worker, revision)
        return pod

    def _claims(self, pod: Json, revision: Json) -> Steps:
        """Create the claims of a pod that are not there yet; they stay when it goes."""
        template = template_of(revision, _PART)
        namespace = self._owner["metadata"]["namespace"]
        retention = template.get("persistentVolumeClaimRetentionPolicy") or {}
        for volume, one in _volumes(template).items():
            name = f"{volume}-{pod['metadata']['name']}"
            if self._view.raw(names.CLAIM, name, namespace) is not None:
                continue
            metadata: Json = {
                "name": name,
                "namespace": namespace,
                "labels": {**((one.get("metadata") or {}).get("labels") or {}), NAME: self._name},
            }
            if retention.get("whenDeleted") == "Delete":
                metadata["ownerReferences"] = [owner_reference(self._owner, blocks=False)]
            yield Create(
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "metadata": metadata,
                    "spec": one.get("spec") or {},
                }
            )

    def _queue(self, pod: Json, group: int, worker: int, revision: Json) -> None:
        """Put a pod into the queue of its set, and into the gang of its group."""
        held = self._owner["metadata"].get("labels") or {}
        labels, annotations = pod["metadata"]["labels"], pod["metadata"]["annotations"]
        for label in (names.QUEUE_LABEL, PRIORITY_LABEL):
            if held.get(label):
                labels[label] = held[label]
        if self._leader_first or self._size == 1:
            return
        ending = suffix(self._owner["metadata"]["uid"], _short(revision))
        labels[GROUP_NAME] = f"{self._name[:45]}-{group}-{ending}"
        # Without a queue it is a gang, too: in the one without limits.
        labels[MANAGED] = "true"
        annotations[TOTAL_COUNT] = str(self._size)
        annotations[ROLE_HASH] = "worker" if worker else "leader"
        gates = pod["spec"].get("schedulingGates") or []
        if not any(gate["name"] == GATE for gate in gates):
            pod["spec"]["schedulingGates"] = [*gates, {"name": GATE}]

    def _services(self) -> Steps:
        """Create the headless services by which pods find each other."""
        namespace = self._owner["metadata"]["namespace"]
        for name in sorted({self._subdomain(group) for group in range(max(1, self._wanted))}):
            if self._view.raw(names.SERVICE, name, namespace) is not None:
                continue
            selector = {NAME: self._name}
            if name != self._name:
                selector[GROUP] = name.rpartition("-")[2]
            yield Create(
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": {
                        "name": name,
                        "namespace": namespace,
                        "ownerReferences": [owner_reference(self._owner)],
                    },
                    "spec": {
                        "clusterIP": "None",
                        "selector": selector,
                        "publishNotReadyAddresses": True,
                    },
                }
            )

    # ---- status ------------------------------------------------------------------------------

    def tell(self) -> Steps:
        """Write the counts and conditions if they changed."""
        groups = {
            number: group for number, group in self._groups().items() if number < self._wanted
        }
        old = self._owner.get("status") or {}
        updated = [one for one in groups.values() if one.revision == self._newest]
        ready = [one for one in groups.values() if self._is_ready(one)]
        is_available = len(ready) == self._wanted
        is_updated = len(updated) == self._wanted
        conditions = old.get("conditions") or []
        for kind, holds, reason, message in (
            ("Available", is_available, "AllGroupsReady", "All replicas are ready"),
            ("Progressing", not is_available, "GroupsProgressing", "Replicas are progressing"),
            (
                "UpdateInProgress",
                not is_updated,
                "GroupsUpdating",
                "Rolling Upgrade is in progress",
            ),
        ):
            conditions = with_condition(
                conditions, kind, "True" if holds else "False", reason, message, now=self._now
            )
        status: dict[str, Any] = {
            "replicas": len(groups),
            "readyReplicas": len(ready),
            "updatedReplicas": len(updated),
            "hpaPodSelector": f"{NAME}={self._name},{WORKER}=0",
            "conditions": conditions,
        }
        if any(old.get(name) != value for name, value in status.items()):
            yield Patch(Ref.to(self._owner), {"status": status}, "status")


def _volumes(template: Json) -> dict[str, Json]:
    """Return the templates of claims by the names of their volumes."""
    return {
        str((one.get("metadata") or {}).get("name")): one
        for one in template.get("volumeClaimTemplates") or ()
    }


def _restarted(pod: Json) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return any(one.get("restartCount", 0) > 0 for one in statuses)


def _label(obj: Json, key: str) -> str:
    return str((obj["metadata"].get("labels") or {}).get(key, ""))


def _name(revision: Json) -> str:
    return str(revision["metadata"]["name"])


def _short(revision: Json) -> str:
    """Return what labels have of a revision's name."""
    return _name(revision).rpartition("-")[2]
