"""What must hold at every instant, whatever goes wrong (the invariants of gang placement, §10).

At every change that is stored:
    no node holds more than it has, by its pods and by the records of gangs
    a pod is bound only if a record says so, and nowhere else
    no place of a gang is taken twice; what is over does not run again
    quota is never exceeded by an admission
    placements of a workload are numbered upwards

As time passes, for no longer than a limit while the controllers live:
    part of a gang runs; a workload waits without an explanation; a pod runs without a workload
    a workload is there, or in a queue, whose job is gone and that has no pods: a ghost
    a workload that was told to leave and has no pods holds quota
    two pods of no gang do the same work, at once or again: a request that comes late can
        create the second one, and Kubernetes promises its Jobs no more than that it is mended
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults import reading
from tests.faults.cluster import LATEST_S, Cluster
from unisono.control import names
from unisono.kinds.core.pod_groups import GROUP_NAME
from unisono.kube.form import Json
from unisono.kube.mapping import Kind

# A gang has a minute to bind, another for what its controllers and a dead node need to be noticed.
PARTIAL_S = 180.0
UNEXPLAINED_S = 60.0
ORPHANED_S = 60.0
TWICE_S = 30.0
# A minute for the collector, two for pods that never come, and another for a watch that is late.
GHOST_S = 240.0
_INDEX = "batch.kubernetes.io/job-completion-index"


class Invariants:
    """Looks at everything that is stored, and at the clock."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._gens: dict[str, int] = {}
        self._once: list[tuple[float, Json]] = []  # how queues were, and until when
        self._since: dict[tuple[str, str], float] = {}
        self._up = 0.0  # seconds that both processes have lived
        self._looked_at = cluster.clock.time
        self.longest: dict[str, float] = {}  # how long each thing lasted that may not last
        self.checks = 0
        cluster.on_change.append(self._changed)
        cluster.on_time.append(self._time_passed)

    def _broken(self, text: str) -> None:
        self._cluster.broken.append(text)

    # ---- at every change ---------------------------------------------------------------------

    def _changed(self, kind: Kind, old: Json | None, new: Json | None) -> None:
        self.checks += 1
        if kind == names.CLUSTER_QUEUE and old is not None:
            self._once.append((self._cluster.clock.time, old))
        if new is None:
            return
        if kind == names.POD:
            self._pod_changed(old, new)
        elif kind == names.WORKLOAD:
            self._workload_changed(old, new)

    def _pod_changed(self, old: Json | None, new: Json) -> None:
        if reading.node_of(new) and (old is None or not reading.node_of(old)):
            self._node_can_hold(reading.node_of(new))
            if (key := reading.workload_of(new)) is not None:
                self._is_recorded(new, key)
        was_running = old is not None and _runs(old)
        if _runs(new) and not was_running:
            self._runs_once(new)

    def _node_can_hold(self, name: str) -> None:
        node = self._cluster.objects[names.NODE].get(("", name))
        if node is None:
            return
        taken = sum(
            reading.gpus_of(pod["spec"])
            for pod in self._cluster.objects[names.POD].values()
            if reading.node_of(pod) == name and not reading.is_over(pod)
        )
        has = int(node["status"]["allocatable"].get(reading.GPU, 0))
        if taken > has:
            self._broken(f"node {name} has {has} GPUs and its pods take {taken}")

    def _is_recorded(self, pod: Json, key: tuple[str, str]) -> None:
        """Check that a pod is bound where its gang's record says (I2), and no other pod is."""
        name, node = pod["metadata"]["name"], reading.node_of(pod)
        workload = self._cluster.objects[names.WORKLOAD].get(key)
        if workload is None:
            self._broken(f"pod {name} was bound for workload {key[1]}, which is gone")
            return
        phase, _ = reading.phase_of(workload)
        if reading.admission(workload) is None or phase not in ("Committing", "Committed"):
            self._broken(f"pod {name} was bound while its gang {key[1]} is {phase or 'nowhere'}")
            return
        if reading.is_finished(workload):
            self._broken(f"pod {name} was bound, but its gang {key[1]} is over")
        room = reading.places(workload).get((reading.set_of(pod), node), 0)
        there = sum(
            1
            for other in self._pods_of(key)
            if reading.set_of(other) == reading.set_of(pod)
            and reading.node_of(other) == node
            and not reading.is_over(other)
            and not reading.is_going(other)
        )
        if there > room:
            self._broken(f"gang {key[1]} has {room} places on {node} and {there} pods there")

    def _pods_of(self, key: tuple[str, str]) -> Iterator[Json]:
        for pod in self._cluster.objects[names.POD].values():
            if reading.workload_of(pod) == key:
                yield pod

    def _runs_once(self, pod: Json) -> None:
        """Check that no other pod does the same work now, or has done it."""
        mine = _work_of(pod)
        if mine is None:
            return
        for other in self._cluster.objects[names.POD].values():
            if other is pod or _work_of(other) != mine or other["metadata"] == pod["metadata"]:
                continue
            if other["metadata"]["uid"] == pod["metadata"]["uid"]:
                continue
            if reading.workload_of(pod) is None:
                continue  # mended soon: see `_twice`
            if _runs(other) and not reading.is_going(other):
                names_ = f"{pod['metadata']['name']} and {other['metadata']['name']}"
                self._broken(f"pods {names_} do the same work at the same time")
            if other["status"].get("phase") == "Succeeded":
                self._broken(f"{pod['metadata']['name']} does again what was done")

    def _workload_changed(self, old: Json | None, new: Json) -> None:
        metadata = new["metadata"]
        _, gen = reading.phase_of(new)
        before = self._gens.get(metadata["uid"], 0)
        has, had = reading.admission(new) is not None, old is not None and reading.admission(old)
        if has and not had:
            if 0 < gen <= before:
                self._broken(f"placement {gen} of {metadata['name']} comes after {before}")
            self._within_quota(new)
            self._nodes_can_hold(new)
        self._gens[metadata["uid"]] = max(gen, before)
        if old is not None and reading.is_finished(old) and not reading.is_finished(new):
            self._broken(f"workload {metadata['name']} was finished and is not any more")

    def _nodes_can_hold(self, workload: Json) -> None:
        """Check that no node is promised to more pods than fit (I1), running or not.

        A write of a leader that is dead may come when its nodes are promised to another gang. The
        next leader takes it back before a pod is bound, which `_node_can_hold` checks.
        """
        if self._cluster.is_late:
            return
        promised: dict[str, int] = {}
        counted: set[str] = set()
        for key, other in self._cluster.objects[names.WORKLOAD].items():
            if reading.admission(other) is None or reading.is_finished(other):
                continue
            gpus = reading.gpus_by_set(other)
            room = reading.places(other)
            for pod in self._pods_of(key):
                place = (reading.set_of(pod), reading.node_of(pod))
                if reading.is_over(pod):
                    if pod["status"].get("phase") == "Succeeded" and room.get(place):
                        room[place] -= 1
                else:
                    counted.add(pod["metadata"]["uid"])
            for (name, node), count in room.items():
                promised[node] = promised.get(node, 0) + count * gpus.get(name, 0)
        for pod in self._cluster.objects[names.POD].values():
            node = reading.node_of(pod)
            if node and not reading.is_over(pod) and pod["metadata"]["uid"] not in counted:
                promised[node] = promised.get(node, 0) + reading.gpus_of(pod["spec"])
        for name, gpus_ in promised.items():
            node_ = self._cluster.objects[names.NODE].get(("", name))
            if node_ is None or name not in {node for _, node in reading.places(workload)}:
                continue
            if gpus_ > int(node_["status"]["allocatable"].get(reading.GPU, 0)):
                name_ = workload["metadata"]["name"]
                self._broken(f"{name_} was admitted; {gpus_} GPUs of {name} are now promised")

    def _within_quota(self, workload: Json) -> None:
        name = (reading.admission(workload) or {})["clusterQueue"]
        queue = self._cluster.objects[names.CLUSTER_QUEUE].get(("", name))
        if queue is None:
            return
        cohort = queue["spec"].get("cohortName")
        most, used = self._most(name), self._used(name)
        name_ = workload["metadata"]["name"]
        if most is not None and used > most:
            self._broken(f"{name_} was admitted; queue {name} uses {used} of {most} GPUs")
        if cohort:
            members = [
                other["metadata"]["name"]
                for other in self._cluster.objects[names.CLUSTER_QUEUE].values()
                if other["spec"].get("cohortName") == cohort
            ]
            shared = sum(map(self._nominal, members))
            together = sum(map(self._used, members))
            if together > shared:
                self._broken(f"{name_} was admitted; cohort {cohort} uses {together} of {shared}")

    def _used(self, queue: str) -> int:
        return sum(
            reading.quota_used(one)
            for one in self._cluster.objects[names.WORKLOAD].values()
            if (reading.admission(one) or {}).get("clusterQueue") == queue
            and not reading.is_finished(one)
        )

    def _seen(self, name: str) -> list[Json]:
        """Return a queue as it is, and as the scheduler sees it: it cannot know better."""
        found = [self._cluster.objects[names.CLUSTER_QUEUE][("", name)]]
        if self._cluster.is_late:  # a write on its way cannot be taken back
            earliest = self._cluster.clock.time - LATEST_S
            found += [
                old
                for until, old in self._once
                if until > earliest and old["metadata"]["name"] == name
            ]
        if self._cluster.control.is_up:
            seen = self._cluster.control.view.get(names.CLUSTER_QUEUE, name)
            found += [seen] if seen is not None else []
        return found

    def _nominal(self, name: str) -> int:
        return max(map(reading.nominal, self._seen(name)))

    def _most(self, name: str) -> int | None:
        limits = [reading.most(queue) for queue in self._seen(name)]
        if any(limit is None for limit in limits):
            return None
        return max(limit for limit in limits if limit is not None)

    # ---- as time passes ----------------------------------------------------------------------

    def _time_passed(self) -> None:
        """Look for what may not last, and for how long it has."""
        now = self._cluster.clock.time
        if self._cluster.is_whole:
            self._up += now - self._looked_at
        self._looked_at = now
        found = dict(self._passing())
        for key in self._since.keys() - found.keys():
            del self._since[key]
        for key, limit in found.items():
            lasted = self._up - self._since.setdefault(key, self._up)
            self.longest[key[0]] = max(self.longest.get(key[0], 0.0), lasted)
            if lasted > limit:
                self._broken(f"{key[1]}: {key[0]} for more than {limit:g} s")

    def _passing(self) -> Iterator[tuple[tuple[str, str], float]]:
        for key, workload in self._cluster.objects[names.WORKLOAD].items():
            if reading.is_finished(workload):
                continue
            if reading.admission(workload) is None:
                if not reading.is_explained(workload) and not reading.is_going(workload):
                    yield ("waits without an explanation", key[1]), UNEXPLAINED_S
            elif self._is_partial(key, workload) and self._has_owner(workload):
                yield ("runs in part", key[1]), PARTIAL_S
            if any(not reading.is_over(pod) for pod in self._pods_of(key)):
                continue
            if not self._has_owner(workload):
                yield ("exists without a job", key[1]), GHOST_S
            if reading.admission(workload) and reading.is_evicted(workload):
                yield ("holds quota though it has left", key[1]), GHOST_S
        for pod in self._cluster.objects[names.POD].values():
            if _runs(pod) and not reading.is_going(pod) and self._is_nobodys(pod):
                yield ("runs without a workload", pod["metadata"]["name"]), ORPHANED_S
        yield from self._twice()

    def _twice(self) -> Iterator[tuple[tuple[str, str], float]]:
        """Find running pods, of no gang, whose work another pod does or has done."""
        pods = [
            pod
            for pod in self._cluster.objects[names.POD].values()
            if reading.workload_of(pod) is None and not reading.is_going(pod)
        ]
        # What is done comes first: then the pod that does it again is the one to go.
        pods.sort(key=lambda pod: pod["status"].get("phase") != "Succeeded")
        seen = set[tuple[str, str]]()
        for pod in pods:
            work = _work_of(pod)
            if work is None or not (_runs(pod) or pod["status"].get("phase") == "Succeeded"):
                continue
            if work in seen and _runs(pod):
                yield ("does the work of another", pod["metadata"]["name"]), TWICE_S
            seen.add(work)

    def _has_owner(self, workload: Json) -> bool:
        metadata = workload["metadata"]
        owners = {one["uid"] for one in metadata.get("ownerReferences") or ()}
        owners.add((metadata.get("labels") or {}).get("kueue.x-k8s.io/job-uid", ""))
        pods = self._cluster.objects[names.POD].values()
        if any(
            (pod["metadata"].get("labels") or {}).get(GROUP_NAME) == metadata["name"]
            for pod in pods
        ):
            return True
        return any(
            obj["metadata"]["uid"] in owners
            for objects in self._cluster.objects.values()
            for obj in objects.values()
        )

    def _is_partial(self, key: tuple[str, str], workload: Json) -> bool:
        wanted = reading.least(workload)
        there = dict.fromkeys(wanted, 0)
        runs = False
        for pod in self._pods_of(key):
            name = reading.set_of(pod)
            if name not in there or not reading.node_of(pod):
                continue
            is_done = pod["status"].get("phase") == "Succeeded"
            if is_done or not reading.is_over(pod):
                there[name] += 1
            runs = runs or _runs(pod)
        return runs and any(there[name] < count for name, count in wanted.items())

    def _is_nobodys(self, pod: Json) -> bool:
        key = reading.workload_of(pod)
        if key is None:
            return False
        workload = self._cluster.objects[names.WORKLOAD].get(key)
        return workload is None or reading.admission(workload) is None


def _runs(pod: Json) -> bool:
    return bool(reading.node_of(pod)) and pod["status"].get("phase") == "Running"


def _work_of(pod: Json) -> tuple[str, str] | None:
    """Return whose pod this is and which one; two with the same answer do the same work."""
    metadata = pod["metadata"]
    texts = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    owners = [one["uid"] for one in metadata.get("ownerReferences") or () if one.get("controller")]
    if not owners or _INDEX not in texts:
        return None
    return owners[0], texts[_INDEX]
