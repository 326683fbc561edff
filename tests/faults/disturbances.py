"""What people and machines do to a cluster while gangs run on it; in the end all is mended."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence

from tests.faults import reading
from tests.faults.cluster import Cluster
from tests.faults.jobs import Gang
from tests.faults.plan import Trouble
from unisono.control import names
from unisono.control.conditions import timestamp
from unisono.kube.errors import KubeError, NotFound
from unisono.kube.form import Json
from unisono.kube.mapping import Kind

_MENDED_AFTER_S = (5.0, 20.0, 60.0)
# When the user of bare pods replaces one that is gone: longer than a pod has to terminate.
_REPLACED_AFTER_S = 60.0
# How far the clock on the wall is ahead after it was set, in seconds.
_AHEAD_S = (-3600.0, -60.0, -1.0, 1.0, 60.0, 3600.0)
# How each kind is told to pause by hand.
_SUSPENDS: Mapping[str, Json] = {
    "Job": {"spec": {"suspend": True}},
    "JobSet": {"spec": {"suspend": True}},
    "TrainJob": {"spec": {"suspend": True}},
    "RayCluster": {"spec": {"suspend": True}},
    "RayJob": {"spec": {"suspend": True}},
    "PyTorchJob": {"spec": {"runPolicy": {"suspend": True}}},
    "MPIJob": {"spec": {"runPolicy": {"suspend": True}}},
}


class Disturbances:
    """Does what a plan says, and remembers what it has to expect."""

    def __init__(self, cluster: Cluster, surroundings: Sequence[Json]) -> None:
        self._cluster = cluster
        self._surroundings = surroundings
        self.gangs: list[Gang] = []  # as they were submitted
        self.deleted: set[str] = set()  # by a user
        self._left_behind: dict[str, Gang] = {}  # jobs that were orphaned on purpose
        self._deeds: Mapping[str, Callable[[float], Awaitable[None]]] = {
            "kill control": lambda draw: cluster.kill(cluster.control),
            "kill runner": lambda draw: cluster.kill(cluster.runner),
            "node not ready": self._node_not_ready,
            "node deleted": self._node_deleted,
            "pod deleted": self._pod_deleted,
            "pod evicted": self._pod_evicted,
            "pod failed": self._pod_failed,
            "job deleted": self._job_deleted,
            "job orphaned": self._job_orphaned,
            "job replaced": self._job_replaced,
            "owner stripped": self._owner_stripped,
            "clock set": self._clock_set,
            "job suspended": self._job_suspended,
            "job edited": self._job_edited,
            "workload off": self._workload_off,
            "workload deleted": self._workload_deleted,
            "queue held": lambda draw: self._queue_stopped(draw, "Hold"),
            "queue drained": lambda draw: self._queue_stopped(draw, "HoldAndDrain"),
            "quota cut": self._quota_cut,
        }

    async def prepare(self) -> None:
        """Make the cluster that the gangs come to."""
        for obj in self._surroundings:
            await self._cluster.user.create(obj)

    async def submit(self, gang: Gang) -> None:
        """Create a gang, one object after the other."""
        self.gangs.append(gang)
        for obj in gang.objects:
            await self._cluster.user.create(obj)

    async def do(self, error: Trouble) -> None:
        """Do what is to be done; what is refused or finds no target is left."""
        try:
            await self._deeds[error.what](error.draw)
        except KubeError as refused:
            self._cluster.note(f"  refused: {refused}")
        if error.what.startswith("pod "):
            # No controller replaces bare pods: a gang of them runs in part until its user does.
            after = self._cluster.clock.time + _REPLACED_AFTER_S
            self._cluster.at(after, "users replace lost pods", self._replace_lost_pods)

    async def _replace_lost_pods(self, _: Cluster) -> None:
        try:
            await self.replace_lost_pods()
        except KubeError as refused:
            self._cluster.note(f"  refused: {refused}")

    # ---- choosing ----------------------------------------------------------------------------

    def _one_of(self, objects: Sequence[Json], draw: float) -> Json | None:
        chosen = objects[int(draw * len(objects))] if objects else None
        if chosen is not None:
            self._cluster.note(f"  {chosen['kind']} {chosen['metadata']['name']}")
        return chosen

    def _some(self, kind: Kind, draw: float) -> Json | None:
        objects = self._cluster.objects[kind]
        return self._one_of([objects[key] for key in sorted(objects)], draw)

    def _some_pod(self, draw: float) -> Json | None:
        pods = self._cluster.objects[names.POD]
        living = [
            pods[key]
            for key in sorted(pods)
            if not reading.is_over(pods[key]) and not reading.is_going(pods[key])
        ]
        return self._one_of(living, draw)

    def _some_job(self, draw: float) -> Json | None:
        jobs = [
            self._cluster.objects[gang.kind][key]
            for gang in self.gangs
            if (key := ("default", gang.name)) in self._cluster.objects[gang.kind]
        ]
        return self._one_of(jobs, draw)

    def _later(self, draw: float, what: str, deed: Callable[[], Awaitable[None]]) -> None:
        wait = _MENDED_AFTER_S[int(draw * 1000) % len(_MENDED_AFTER_S)]

        async def mend(_: Cluster) -> None:
            try:
                await deed()
            except KubeError as refused:
                self._cluster.note(f"  refused: {refused}")

        self._cluster.at(self._cluster.clock.time + wait, what, mend)

    # ---- machines ----------------------------------------------------------------------------

    async def _node_not_ready(self, draw: float) -> None:
        node = self._some(names.NODE, draw)
        if node is not None:
            name = node["metadata"]["name"]
            await self._set_ready(name, "Unknown")
            self._later(draw, f"node {name} is back", lambda: self._set_ready(name, "True"))

    async def _set_ready(self, name: str, status: str) -> None:
        ready = {
            "type": "Ready",
            "status": status,
            "reason": "Test",
            "message": "",
            "lastTransitionTime": timestamp(self._cluster.clock.now()),
        }
        changes = {"status": {"conditions": [ready]}}
        await self._cluster.user.patch(names.NODE, name, "", changes, subresource="status")

    async def _node_deleted(self, draw: float) -> None:
        node = self._some(names.NODE, draw)
        if node is not None:
            name = node["metadata"]["name"]
            await self._cluster.user.delete(names.NODE, name)
            again = next(one for one in self._surroundings if one["metadata"]["name"] == name)

            async def joins() -> None:
                await self._cluster.user.create(again)

            self._later(draw, f"node {name} joins again", joins)

    # ---- pods --------------------------------------------------------------------------------

    async def _pod_deleted(self, draw: float) -> None:
        pod = self._some_pod(draw)
        if pod is not None:
            grace = 0 if draw * 100 % 1 < 0.5 else None
            await self._cluster.user.delete(
                names.POD, pod["metadata"]["name"], "default", grace_s=grace
            )

    async def _pod_evicted(self, draw: float) -> None:
        pod = self._some_pod(draw)
        if pod is not None:
            name = pod["metadata"]["name"]
            body = {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": name, "namespace": "default"},
            }
            await self._cluster.user.submit(names.POD, name, "default", "eviction", body)

    async def _pod_failed(self, draw: float) -> None:
        pod = self._some_pod(draw)
        if pod is None or pod["status"].get("phase") != "Running":
            return
        at = timestamp(self._cluster.clock.now())
        ended = {"exitCode": 1, "reason": "Error", "startedAt": at, "finishedAt": at}
        statuses = [
            {**one, "ready": False, "state": {"terminated": ended}}
            for one in pod["status"].get("containerStatuses") or ()
        ]
        changes = {"status": {"phase": "Failed", "containerStatuses": statuses}}
        name = pod["metadata"]["name"]
        await self._cluster.user.patch(names.POD, name, "default", changes, subresource="status")

    # ---- jobs --------------------------------------------------------------------------------

    async def _job_deleted(self, draw: float) -> None:
        job = self._some_job(draw)
        if job is not None:
            await self.delete(
                next(one for one in self.gangs if one.name == job["metadata"]["name"])
            )

    async def delete(self, gang: Gang) -> None:
        """Take a gang away, with the pods that its user made."""
        self.deleted.add(gang.name)
        kinds = [(gang.kind, gang.name)] if gang.kind != names.WORKLOAD else []
        own = [
            (names.POD, name)
            for _, name in sorted(self._cluster.objects[names.POD])
            if gang.pods and name.startswith(f"{gang.name}-")
        ]
        for kind, name in (*kinds, *own):
            try:
                await self._cluster.user.delete(kind, name, "default", propagation="Background")
            except NotFound:
                continue

    async def _job_orphaned(self, draw: float) -> None:
        """Delete a job and leave what it made, as `kubectl delete --cascade=orphan` does."""
        job = self._some_job(draw)
        if job is not None:
            gang = next(one for one in self.gangs if one.name == job["metadata"]["name"])
            self.deleted.add(gang.name)
            self._left_behind[gang.name] = gang
            for obj in (job, *self._own_pods(gang)):
                await self._delete_alone(obj)

    async def _job_replaced(self, draw: float) -> None:
        """Delete a job, and submit another one of the same name at once."""
        job = self._some_job(draw)
        gang = next(
            (one for one in self.gangs if job and one.name == job["metadata"]["name"]), None
        )
        if job is None or gang is None or gang.pods:
            return
        self._left_behind[gang.name] = gang
        if draw * 100 % 1 < 0.5:
            await self._delete_alone(job)
        else:
            await self.delete(gang)
        self.deleted.add(gang.name)  # until the new one is there
        for obj in gang.objects:
            await self._cluster.user.create(obj)
        self.deleted.discard(gang.name)

    async def _delete_alone(self, obj: Json) -> None:
        kind, name = Kind(obj["apiVersion"], obj["kind"]), obj["metadata"]["name"]
        await self._cluster.user.delete(kind, name, "default", propagation="Orphan")
        await self._cluster.collected()

    def _own_pods(self, gang: Gang) -> list[Json]:
        pods = self._cluster.objects[names.POD]
        keys = [("default", obj["metadata"]["name"]) for obj in gang.pods]
        return [pods[key] for key in keys if key in pods]

    async def _owner_stripped(self, draw: float) -> None:
        workload = self._some(names.WORKLOAD, draw)
        if workload is not None:
            changes = {"metadata": {"ownerReferences": None}}
            name = workload["metadata"]["name"]
            await self._cluster.user.patch(names.WORKLOAD, name, "default", changes)

    async def _clock_set(self, draw: float) -> None:
        """Set the clock on the wall; after a while it is right again."""
        ahead = _AHEAD_S[int(draw * len(_AHEAD_S))]
        self._cluster.note(f"  {ahead:+g} s")
        self._cluster.clock.set_ahead(ahead)

        async def right() -> None:
            self._cluster.clock.set_ahead(0.0)

        self._later(draw, "the clock is right again", right)

    async def _job_suspended(self, draw: float) -> None:
        """Suspend a job of a queue, which resumes it; any other would stay suspended."""
        job = self._some_job(draw)
        if job is None or names.QUEUE_LABEL not in (job["metadata"].get("labels") or {}):
            return
        if job["apiVersion"].partition("/")[0] != "batch.volcano.sh":
            changes = _SUSPENDS.get(job["kind"])
            if changes is not None:
                kind = Kind(job["apiVersion"], job["kind"])
                name = job["metadata"]["name"]
                await self._cluster.user.patch(kind, name, "default", changes)

    async def _job_edited(self, draw: float) -> None:
        """Make a job more urgent, or less."""
        job = self._some_job(draw)
        if job is not None:
            kind, name = Kind(job["apiVersion"], job["kind"]), job["metadata"]["name"]
            labels = {names.PRIORITY_LABEL: "high" if draw * 100 % 1 < 0.5 else "low"}
            changes = {"metadata": {"labels": labels}}
            await self._cluster.user.patch(kind, name, "default", changes)

    async def _workload_off(self, draw: float) -> None:
        workload = self._some(names.WORKLOAD, draw)
        if workload is not None:
            name = workload["metadata"]["name"]

            async def set_active(*, active: bool) -> None:
                changes = {"spec": {"active": active}}
                await self._cluster.user.patch(names.WORKLOAD, name, "default", changes)

            await set_active(active=False)
            self._later(draw, f"workload {name} on", lambda: set_active(active=True))

    async def _workload_deleted(self, draw: float) -> None:
        workload = self._some(names.WORKLOAD, draw)
        if workload is not None:
            await self._cluster.user.delete(names.WORKLOAD, workload["metadata"]["name"], "default")

    # ---- queues ------------------------------------------------------------------------------

    async def _queue_stopped(self, draw: float, policy: str) -> None:
        queue = self._some(names.CLUSTER_QUEUE, draw)
        if queue is not None:
            name = queue["metadata"]["name"]
            await self._stop(name, policy)
            self._later(draw, f"queue {name} goes on", lambda: self._stop(name, "None"))

    async def _stop(self, name: str, policy: str) -> None:
        changes = {"spec": {"stopPolicy": policy}}
        await self._cluster.user.patch(names.CLUSTER_QUEUE, name, "", changes)

    async def _quota_cut(self, draw: float) -> None:
        queue = self._some(names.CLUSTER_QUEUE, draw)
        if queue is not None:
            name = queue["metadata"]["name"]
            whole = next(
                one
                for one in self._surroundings
                if one["kind"] == "ClusterQueue" and one["metadata"]["name"] == name
            )["spec"]["resourceGroups"]
            await self._set_groups(name, _halved(whole))
            self._later(draw, f"queue {name} has all again", lambda: self._set_groups(name, whole))

    async def _set_groups(self, name: str, groups: list[Json]) -> None:
        changes = {"spec": {"resourceGroups": groups}}
        await self._cluster.user.patch(names.CLUSTER_QUEUE, name, "", changes)

    # ---- afterwards --------------------------------------------------------------------------

    async def take_away_what_was_left_behind(self) -> None:
        """Delete the dependents of orphaned jobs; nothing else ever would.

        Workloads have to end by themselves. Finished ones without an owner are deleted as well.
        """
        for gang in self._left_behind.values():
            for kind, name in self._made_for(gang):
                found = self._cluster.objects[kind].get(("default", name))
                if found is None or found["metadata"].get("ownerReferences"):
                    continue
                self._cluster.note(f"* the user takes {kind.kind} {name} away")
                await self._gone(kind, name)
        for workload in list(self._cluster.objects[names.WORKLOAD].values()):
            owners = workload["metadata"].get("ownerReferences")
            if not owners and reading.is_finished(workload):
                await self._gone(names.WORKLOAD, workload["metadata"]["name"])

    def _made_for(self, gang: Gang) -> list[tuple[Kind, str]]:
        """Return what has a gang's name, except for the gang itself."""
        is_there = gang.name not in self.deleted
        return [
            (kind, name)
            for kind, objects in self._cluster.objects.items()
            for space, name in objects
            if kind != names.WORKLOAD
            and space == "default"
            and (name == gang.name or name.startswith(f"{gang.name}-"))
            and not (is_there and (kind, name) == (gang.kind, gang.name))
        ]

    async def _gone(self, kind: Kind, name: str) -> None:
        with contextlib.suppress(NotFound):
            await self._cluster.user.delete(kind, name, "default", propagation="Background")

    async def replace_lost_pods(self) -> None:
        """Make pods of users again, as their user would."""
        for gang in self.gangs:
            if gang.name in self.deleted or not gang.pods or self.end_of(gang) == "succeeded":
                continue
            for obj in gang.pods:
                key = ("default", obj["metadata"]["name"])
                there = self._cluster.objects[names.POD].get(key)
                if there is not None and there["status"].get("phase") == "Failed":
                    await self._cluster.user.delete(names.POD, key[1], key[0], grace_s=0)
                    there = self._cluster.objects[names.POD].get(key)
                if there is None:
                    self._cluster.note(f"* the user makes pod {key[1]} again")
                    await self._cluster.user.create(obj)

    async def start_over(self, gang: Gang) -> None:
        """Take a gang of bare pods away and submit it again."""
        self._cluster.note(f"* the user starts {gang.name} over")
        await self.delete(gang)
        await self._cluster.pass_time(60.0)
        self.deleted.discard(gang.name)
        for obj in gang.objects:
            await self._cluster.user.create(obj)

    def end_of(self, gang: Gang) -> str | None:
        """Return how a gang ended; None if it has not."""
        if gang.pods and self._have_all_succeeded(gang):
            return "succeeded"  # even if its record was deleted
        job = self._cluster.objects[gang.kind].get(("default", gang.name))
        return gang.end(job) if job is not None else None

    def _have_all_succeeded(self, gang: Gang) -> bool:
        pods = self._cluster.objects[names.POD]
        keys = [("default", obj["metadata"]["name"]) for obj in gang.pods]
        return all(key in pods and pods[key]["status"]["phase"] == "Succeeded" for key in keys)


def _halved(groups: list[Json]) -> list[Json]:
    return [
        {
            **group,
            "flavors": [
                {
                    **flavor,
                    "resources": [
                        {**one, "nominalQuota": str(int(one["nominalQuota"]) // 2)}
                        if one["name"] == reading.GPU
                        else one
                        for one in flavor["resources"]
                    ],
                }
                for flavor in group["flavors"]
            ],
        }
        for group in groups
    ]
