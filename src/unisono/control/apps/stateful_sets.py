"""Keeps pods with lasting names and storage: StatefulSets.

    OrderedReady   one pod after the other, each when those before it are available; down backwards
    Parallel       all at once, and all at once down
    RollingUpdate  from the last pod down to `partition`, each when all others are available
    OnDelete       a pod of an old revision stays until it is deleted

A pod is called NAME-NUMBER, so its name alone says what it is, and a crash makes none twice. Claims
of `volumeClaimTemplates` come with it and stay, unless the retention policy says otherwise.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
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
from unisono.control.apps import CONTROLLER_REVISION, STATEFUL_SET
from unisono.control.apps.adoption import adopt
from unisono.control.apps.members import (
    available_at,
    is_available,
    is_its_own,
    may_wait,
    read_of_pod,
    released,
    share_of,
)
from unisono.control.apps.revisions import (
    HASH,
    Revisions,
    current,
    forget_old,
    revision_of,
    template_of,
)
from unisono.control.controller import Reads, own_key, owner_key
from unisono.control.jobs.pods import (
    AT_ONCE,
    is_deleting,
    is_ready,
    is_terminal,
    most_pods,
    pod_from,
    too_many,
)
from unisono.control.jobs.workload import owner_reference
from unisono.control.view import View
from unisono.kinds.digits import whole_number
from unisono.kinds.upstream_operators import built_in
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

_POD_NAME = "statefulset.kubernetes.io/pod-name"
_INDEX = "apps.kubernetes.io/pod-index"


class StatefulSets:
    """Runs StatefulSets."""

    name = "statefulset"
    watches: Sequence[Kind] = (STATEFUL_SET, names.POD, CONTROLLER_REVISION)
    owner_kind: Kind = STATEFUL_SET
    idle_without: Kind = STATEFUL_SET
    reads: Mapping[Kind, Reads] = {names.POD: read_of_pod}

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A StatefulSet, or a pod of one."""
        return (own_key(obj),) if kind == STATEFUL_SET else owner_key(obj, STATEFUL_SET)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take one StatefulSet a step further."""
        owner = view.get(STATEFUL_SET, key.name, key.namespace)
        if owner is None or is_deleting(owner) or built_in(owner):
            return
        yield from adopt(owner, view)
        owned = view.owned(names.POD, owner["metadata"]["uid"])
        foreign = [pod for pod in owned if not is_its_own(owner, pod) and not is_deleting(pod)]
        if foreign:
            yield Together([released(owner, pod) for pod in foreign])
        revisions = yield from current(owner, view)
        work = _Work(owner, revisions, [pod for pod in owned if pod not in foreign], view, now)
        yield from work.step()
        left = [pod for pod in owned if pod not in foreign]
        yield from _tell(owner, revisions, work, view, now)
        yield from forget_old(owner, revisions, {revision_of(pod) for pod in left} | work.kept)


class _Work:
    """One look at one StatefulSet."""

    def __init__(
        self, owner: Json, revisions: Revisions, pods: Sequence[Json], view: View, now: float
    ) -> None:
        self._owner, self._spec, self._view, self._now = owner, owner["spec"], view, now
        self._revisions = revisions
        self._start = int((self._spec.get("ordinals") or {}).get("start", 0))
        self._least_ready = float(self._spec.get("minReadySeconds") or 0)
        status = owner.get("status") or {}
        newest = str(revisions.newest["metadata"]["name"])
        before = str(status.get("currentRevision") or "")
        # The revision of pods that are not to be updated yet.
        self.current = before if revisions.named(before) is not None else newest
        self.update = newest
        self.pods = {number: pod for pod in pods if (number := _number(owner, pod)) is not None}

    @property
    def kept(self) -> set[str]:
        """Revisions that are in use, whatever pods there are."""
        return {self.current, self.update}

    def step(self) -> Steps:
        """Create, replace or delete as many pods as may be now."""
        wanted = int(self._spec.get("replicas", 1))
        room = most_pods(self._owner, wanted, (self._spec.get("template") or {},), self._view)
        if room < wanted:
            yield from too_many(self._owner, wanted, self._view, self._now)
        numbers = range(self._start, self._start + min(wanted, room))
        yield from self._retain(numbers)
        is_ordered = self._spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady"
        ended = [pod for pod in self.pods.values() if is_terminal(pod) and not is_deleting(pod)]
        if ended:
            yield Together([Delete(Ref.to(pod), grace=0) for pod in ended])
            for pod in ended:
                name = pod["metadata"]["name"]
                message = f"StatefulSet {self._owner['metadata']['name']} is recreating Pod {name}"
                yield Note(Ref.to(self._owner), "RecreatingTerminatedPod", message)
            return
        is_whole = yield from self._create(numbers, is_ordered=is_ordered)
        surplus = sorted((one for one in self.pods if one not in numbers), reverse=True)
        if surplus and (is_whole or not is_ordered):
            yield from self._shrink(surplus, is_ordered=is_ordered)
            if is_ordered:
                return
        if is_whole:
            yield from self._update(numbers)

    def _create(self, numbers: range, *, is_ordered: bool) -> Generator[Action, Any, bool]:
        """Create missing pods; say whether all are there and none stands in another's way."""
        made: list[Json] = []
        most = min(AT_ONCE, may_wait(self._spec.get("template") or {}, [*self.pods.values()]))
        for number in numbers if most else ():
            pod = self.pods.get(number)
            if pod is None:
                name = f"{self._owner['metadata']['name']}-{number}"
                if self._view.raw(names.POD, name, self._owner["metadata"]["namespace"]) is None:
                    made.append(self._pod(number))
            if is_ordered and (pod is None or not self._is_available(pod)):
                break
            if len(made) >= most:
                break
        for pod in made:
            yield from self._claims(pod)
        if made:
            created = yield Together([Create(pod) for pod in made])
            for pod in created:
                name = pod["metadata"]["name"]
                self.pods[int(name.rpartition("-")[2])] = pod
                message = f"create Pod {name} in StatefulSet {self._owner['metadata']['name']}"
                yield Note(Ref.to(self._owner), "SuccessfulCreate", f"{message} successful")
            if len(made) >= AT_ONCE:
                yield Again(self._now)
        is_all = all(number in self.pods for number in numbers)
        return is_all and (
            not is_ordered or all(self._is_available(self.pods[number]) for number in numbers)
        )

    def _shrink(self, surplus: Sequence[int], *, is_ordered: bool) -> Steps:
        """Delete pods with numbers that are not wanted, the last first."""
        if is_ordered:
            surplus = surplus[:1]
        going = [self.pods[number] for number in surplus if not is_deleting(self.pods[number])]
        yield from self._deleted(going)

    def _update(self, numbers: range) -> Steps:
        """Replace pods of an old revision, from the last down to the partition."""
        strategy = self._spec.get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return
        rolling = strategy.get("rollingUpdate") or {}
        first = self._start + int(rolling.get("partition") or 0)
        most = max(1, share_of(rolling.get("maxUnavailable", 1), len(numbers), rounds_up=False))
        missing = sum(not self._is_available(self.pods[number]) for number in numbers)
        going: list[Json] = []
        for number in reversed(numbers):
            pod = self.pods[number]
            if number < first or len(going) >= AT_ONCE:
                break
            if revision_of(pod) == self.update:
                continue
            if is_deleting(pod):
                continue
            if self._is_available(pod):
                if missing >= most:
                    break
                missing += 1
            going.append(pod)
        yield from self._deleted(going)

    def _deleted(self, pods: Sequence[Json]) -> Steps:
        if not pods:
            return
        yield Together([Delete(Ref.to(pod)) for pod in pods])
        for pod in pods:
            name = pod["metadata"]["name"]
            message = f"delete Pod {name} in StatefulSet {self._owner['metadata']['name']}"
            yield Note(Ref.to(self._owner), "SuccessfulDelete", f"{message} successful")

    def _is_available(self, pod: Json) -> bool:
        if is_deleting(pod) or is_terminal(pod):
            return False
        return is_available(pod, self._least_ready, self._now)

    # ---- pods and claims ---------------------------------------------------------------------

    def _pod(self, number: int) -> Json:
        """Return a pod; below the partition it is of the revision that the others still have."""
        owner, spec = self._owner, self._spec
        strategy = spec.get("updateStrategy") or {}
        partition = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
        is_rolling = strategy.get("type", "RollingUpdate") == "RollingUpdate"
        is_old = is_rolling and number - self._start < partition
        revision = self._revisions.named(self.current if is_old else self.update)
        assert revision is not None, "both revisions exist"
        name = f"{owner['metadata']['name']}-{number}"
        labels = {
            _POD_NAME: name,
            _INDEX: str(number),
            HASH: revision["metadata"]["name"],
        }
        pod = pod_from(template_of(revision), owner, name, labels=labels)
        pod["spec"]["hostname"] = name
        if spec.get("serviceName"):
            pod["spec"]["subdomain"] = spec["serviceName"]
        claims = {
            one["metadata"]["name"]: f"{one['metadata']['name']}-{name}"
            for one in spec.get("volumeClaimTemplates") or ()
        }
        volumes = [one for one in pod["spec"].get("volumes") or () if one.get("name") not in claims]
        volumes += [
            {"name": volume, "persistentVolumeClaim": {"claimName": claim}}
            for volume, claim in claims.items()
        ]
        if volumes:
            pod["spec"]["volumes"] = volumes
        return pod

    def _claims(self, pod: Json) -> Steps:
        """Create the claims of a pod that are not there yet."""
        owner, namespace = self._owner, self._owner["metadata"]["namespace"]
        labels = (self._spec.get("selector") or {}).get("matchLabels") or {}
        for one in self._spec.get("volumeClaimTemplates") or ():
            metadata = one["metadata"]
            name = f"{metadata['name']}-{pod['metadata']['name']}"
            if self._view.raw(names.CLAIM, name, namespace) is not None:
                continue
            claim: Json = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "labels": {**(metadata.get("labels") or {}), **labels},
                    "annotations": metadata.get("annotations") or {},
                },
                "spec": one.get("spec") or {},
            }
            if self._retention("whenDeleted") == "Delete":
                claim["metadata"]["ownerReferences"] = [owner_reference(owner, blocks=False)]
            yield Create(claim)

    def _retention(self, when: str) -> str:
        policy = self._spec.get("persistentVolumeClaimRetentionPolicy") or {}
        return str(policy.get(when) or "Retain")

    def _retain(self, numbers: range) -> Steps:
        """Delete claims of pods that were scaled away, and give the others the owner they need."""
        if not self._spec.get("volumeClaimTemplates"):
            return
        owner, uid = self._owner, self._owner["metadata"]["uid"]
        is_deleted_with_it = self._retention("whenDeleted") == "Delete"
        prefixes = [
            f"{one['metadata']['name']}-{owner['metadata']['name']}-"
            for one in self._spec["volumeClaimTemplates"]
        ]
        writes: list[Patch | Delete] = []
        for claim in self._view.within(names.CLAIM, owner["metadata"]["namespace"]):
            metadata = claim["metadata"]
            start = next((one for one in prefixes if metadata["name"].startswith(one)), "")
            number = whole_number(metadata["name"].removeprefix(start)) if start else None
            if number is None or is_deleting(claim):
                continue
            if number not in numbers and self._retention("whenScaled") == "Delete":
                if number not in self.pods:
                    writes.append(Delete(Ref.to(claim)))
                continue
            owners = metadata.get("ownerReferences") or []
            left = [one for one in owners if one["uid"] != uid]
            if is_deleted_with_it == (len(left) == len(owners)):
                more = [owner_reference(owner, blocks=False)] if is_deleted_with_it else []
                writes.append(
                    Patch(Ref.to(claim), {"metadata": {"ownerReferences": [*left, *more] or None}})
                )
        if writes:
            yield Together(writes)


def _number(owner: Json, pod: Json) -> int | None:
    base, _, text = pod["metadata"]["name"].rpartition("-")
    return whole_number(text) if base == owner["metadata"]["name"] else None


def _tell(owner: Json, revisions: Revisions, work: _Work, view: View, now: float) -> Steps:
    """Write the counts if they changed; the update becomes the current revision at its end."""
    least = float(owner["spec"].get("minReadySeconds") or 0)
    found = view.owned(names.POD, owner["metadata"]["uid"])
    pods = [pod for pod in found if not is_deleting(pod) and not is_terminal(pod)]
    wanted = int(owner["spec"].get("replicas", 1))
    updated = [pod for pod in pods if revision_of(pod) == work.update]
    available = [pod for pod in pods if is_available(pod, least, now)]
    is_done = len(updated) == wanted == len(pods) and all(map(is_ready, updated))
    at = work.update if is_done else work.current
    status: Mapping[str, Any] = {
        "observedGeneration": owner["metadata"].get("generation", 1),
        "replicas": len(pods),
        "readyReplicas": sum(map(is_ready, pods)),
        "availableReplicas": len(available),
        "currentReplicas": sum(revision_of(pod) == at for pod in pods),
        "updatedReplicas": len(updated),
        "currentRevision": at,
        "updateRevision": work.update,
        "collisionCount": 0,
    }
    always = ("replicas", "availableReplicas", "collisionCount")
    old = owner.get("status") or {}
    changed = {
        field: value if value or field in always else None for field, value in status.items()
    }
    if any(old.get(field) != value for field, value in changed.items()):
        yield Patch(Ref.to(owner), {"status": changed}, "status")
    later = available_at(pods, least, now)
    if later is not None:
        yield Again(later)
