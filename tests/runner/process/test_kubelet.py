"""What the kubelet of process pods decides, on a machine that only pretends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tests.runner.simulated_world import node, pod, word
from tests.support.control_world import World
from unisono.control.assembly import Assembly, embedded
from unisono.control.health.progress import PROGRESS, progress_of
from unisono.control.names import CONFIG_MAP, NODE, POD
from unisono.control.view import View
from unisono.kinds.policy.settings import Settings
from unisono.kube.form import Json, Key
from unisono.runner.addresses import Addresses
from unisono.runner.containers import EndedRun, RunningRun, RunState, UnknownRun
from unisono.runner.process.allocations import Ports
from unisono.runner.process.kubelet import KubeletOptions, ProcessKubelet
from unisono.runner.process.launch import HostSetup, Plan, Record
from unisono.runner.process.mounts import Volume
from unisono.runner.process.node_resources import NodeResources
from unisono.runner.process.probes import Check


@dataclass
class Pretended:
    """A machine whose processes end when the test says so."""

    now: Callable[[], float]
    host_setup: HostSetup = field(
        default_factory=lambda: HostSetup(tier=1, pods="/pods", claims="/claims", logs="/logs")
    )
    seen: dict[tuple[str, str], RunState] = field(default_factory=dict)
    plans: list[Plan] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    answers: dict[tuple[str, str, str], bool] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=dict)
    reports: dict[str, tuple[str, float]] = field(default_factory=dict)

    def look(self, uid: str, container: str) -> RunState | None:
        return self.seen.get((uid, container))

    def records(self) -> Iterator[Record]:
        return iter([plan.record for plan in self.plans])

    def start(self, plan: Plan) -> RunningRun:
        launch = plan.launch
        self.plans.append(plan)
        self.calls.append(f"start {launch.container} {launch.run}")
        up = self.seen[launch.uid, launch.container] = RunningRun(launch.run, self.now())
        return up

    def stop(self, uid: str, container: str, first: Sequence[str] = ()) -> None:
        call = " ".join(("stop", container, *first))
        if call not in self.calls:
            self.calls.append(call)

    def kill(self, uid: str, container: str) -> None:
        self.calls.append(f"kill {container}")
        self.end(uid, container, 137)

    def end(self, uid: str, container: str, code: int) -> None:
        was = self.seen[uid, container]
        assert isinstance(was, RunningRun)
        self.seen[uid, container] = EndedRun(was.run, was.since, self.now(), code)

    def ask(self, uid: str, container: str, which: str, check: Check) -> None:
        self.asked.append((uid, container, which))

    def answer(self, uid: str, container: str, which: str) -> bool | None:
        return self.answers.pop((uid, container, which), None)

    def progress(self, uid: str, container: str) -> tuple[str, float] | None:
        return self.reports.get(container)

    def refresh(self, volumes: list[Volume], owner: tuple[int, int] | None = None) -> None:
        self.calls.append("refresh")

    def write_hosts(self, uid: str, text: str) -> None:
        self.hosts[uid] = text

    def forget(self, uid: str) -> None:
        self.calls.append("forget")
        for key in [key for key in self.seen if key[0] == uid]:
            del self.seen[key]


class Stage:
    """A world and a machine that only pretends."""

    def __init__(self) -> None:
        self.world = World(assemble=self._assemble)
        self.machine = Pretended(lambda: self.world.clock.time)

    def _assemble(self, view: View, settings: Settings) -> Assembly:
        assembly = embedded(view, settings)
        node_resources = NodeResources(self.machine, Addresses(), Ports(lambda port: True))
        kubelet = ProcessKubelet(node_resources, KubeletOptions())
        return Assembly(assembly.scheduler, (*assembly.controllers, kubelet))

    @property
    def pod(self) -> Json:
        return self.world.get(POD, "p")

    async def end(self, code: int, container: str = "main") -> None:
        """End a container, and let the kubelet and controllers react."""
        self.machine.end(self.pod["metadata"]["uid"], container, code)
        await self.look()

    async def look(self) -> None:
        self.world.driver.want("process-kubelet", Key("default", "p"))
        await self.world.settle()


def new_lines(story: Callable[[Stage], Awaitable[None]]) -> None:
    """Tell a story on a node."""
    stage = Stage()

    async def run() -> None:
        async with stage.world.running():
            await stage.world.create(node())
            await stage.world.settle()
            await story(stage)

    asyncio.run(run())


async def begin(stage: Stage, manifest: Json) -> None:
    """Create a pod, and let it start."""
    await stage.world.client.create(manifest)
    await stage.world.settle()


def test_crash_loop_back_off_as_for_simulated_pods() -> None:
    async def story(stage: Stage) -> None:
        await begin(stage, pod(command=["x"], restart="OnFailure"))
        assert word(stage.world) == "Ready"
        await stage.end(1)
        assert word(stage.world) == "Ready/1"
        await stage.end(1)
        assert word(stage.world) == "CrashLoopBackOff"
        await stage.world.pass_time(11)
        assert word(stage.world) == "Ready/2"
        await stage.end(0)
        assert word(stage.world) == "Succeeded/2"
        assert [call for call in stage.machine.calls if "start" in call] == [
            "start main 0",
            "start main 1",
            "start main 2",
        ]

    new_lines(story)


def test_nothing_is_started_twice_after_a_crash() -> None:
    async def story(stage: Stage) -> None:
        await begin(stage, pod(command=["x"], restart="OnFailure"))
        await stage.end(1)
        before = stage.pod
        # The run began, but we went down before its pod's status said so.
        stage.machine.seen[before["metadata"]["uid"], "main"] = RunningRun(
            2, stage.world.clock.time
        )
        stage.world.restart()
        await stage.world.settle()
        assert word(stage.world) == "Ready/2"
        assert "start main 2" not in stage.machine.calls

    new_lines(story)


def test_waits_for_a_run_that_may_have_begun() -> None:
    """We went down just as it was started, and its keeper has not said anything yet."""

    async def story(stage: Stage) -> None:
        await begin(stage, pod(command=["x"], on=None, nodeSelector={"none": "such"}))
        uid = stage.pod["metadata"]["uid"]
        stage.machine.seen[uid, "main"] = UnknownRun(0)
        metadata = {"name": "p", "namespace": "default"}
        target = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        await stage.world.client.submit(POD, "p", "default", "binding", binding)
        await stage.world.settle()
        await stage.world.pass_time(10)
        assert word(stage.world) == "Pending"
        stage.machine.seen[uid, "main"] = RunningRun(0, stage.world.clock.time)
        await stage.look()
        assert word(stage.world) == "Ready"
        assert stage.machine.calls == []

    new_lines(story)


def test_a_container_without_a_process_has_failed() -> None:
    async def story(stage: Stage) -> None:
        await begin(stage, pod(command=["x"]))
        stage.machine.seen.clear()
        await stage.look()
        assert word(stage.world) == "Failed"
        ended = stage.pod["status"]["containerStatuses"][0]["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (137, "ContainerStatusUnknown")

    new_lines(story)


def test_a_deleted_pod_is_stopped_then_killed() -> None:
    async def story(stage: Stage) -> None:
        hook = {"preStop": {"exec": {"command": ["save", "all"]}}}
        container = {"name": "main", "image": "x", "command": ["x"], "lifecycle": hook}
        await begin(stage, pod(containers=[container], terminationGracePeriodSeconds=20))
        await stage.world.client.delete(POD, "p", "default")
        await stage.world.settle()
        assert stage.machine.calls[-1] == "stop main save all"
        await stage.world.pass_time(19)
        assert "kill main" not in stage.machine.calls
        await stage.world.pass_time(3)
        assert "kill main" in stage.machine.calls
        assert word(stage.world) == "gone"
        assert stage.machine.calls[-1] == "forget"

    new_lines(story)


def test_readiness_follows_the_probe() -> None:
    async def story(stage: Stage) -> None:
        probe = {"tcpSocket": {"port": 80}, "initialDelaySeconds": 5, "failureThreshold": 2}
        container = {"name": "main", "image": "x", "command": ["x"], "readinessProbe": probe}
        await begin(stage, pod(containers=[container]))
        asked = (stage.pod["metadata"]["uid"], "main", "readinessProbe")

        async def answer(*, is_good: bool) -> str:
            assert stage.machine.asked.pop() == asked
            stage.machine.answers[asked] = is_good
            await stage.look()
            found = word(stage.world)
            await stage.world.pass_time(10)
            return found

        assert stage.machine.asked == []
        await stage.world.pass_time(5)
        assert word(stage.world) == "Running"
        assert await answer(is_good=False) == "Running"
        assert await answer(is_good=True) == "Ready"
        assert await answer(is_good=False) == "Ready"
        assert await answer(is_good=False) == "Running"

    new_lines(story)


def test_startup_comes_before_everything_else() -> None:
    async def story(stage: Stage) -> None:
        probe = {"exec": {"command": ["ok"]}, "failureThreshold": 1}
        container = {
            "name": "main",
            "image": "x",
            "command": ["x"],
            "startupProbe": probe,
            "livenessProbe": probe,
        }
        await begin(stage, pod(containers=[container], restart="OnFailure"))
        uid = stage.pod["metadata"]["uid"]
        assert stage.machine.asked == [(uid, "main", "startupProbe")]
        assert word(stage.world) == "Running"
        stage.machine.answers[uid, "main", "startupProbe"] = True
        await stage.look()
        assert word(stage.world) == "Ready"
        assert stage.machine.asked[-1] == (uid, "main", "livenessProbe")
        stage.machine.answers[uid, "main", "livenessProbe"] = False
        await stage.look()
        assert "kill main" in stage.machine.calls
        await stage.look()
        assert stage.pod["status"]["containerStatuses"][0]["restartCount"] == 1

    new_lines(story)


def test_names_are_written_when_pods_come() -> None:
    async def story(stage: Stage) -> None:
        await begin(stage, pod(command=["x"], hostname="a", subdomain="s"))
        other = pod("q", command=["x"], hostname="b", subdomain="s")
        await stage.world.client.create(other)
        await stage.world.settle()
        text = stage.machine.hosts[stage.pod["metadata"]["uid"]]
        assert "b.s.default.svc.cluster.local" in text

    new_lines(story)


def test_files_are_refreshed_when_their_config_map_changes() -> None:
    async def story(stage: Stage) -> None:
        about = {"name": "c", "namespace": "default"}
        await stage.world.client.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {"k": "1"}}
        )
        await stage.world.settle()
        await begin(stage, pod(command=["x"], volumes=[{"name": "v", "configMap": {"name": "c"}}]))
        stage.machine.calls.clear()
        await stage.world.client.patch(CONFIG_MAP, "c", "default", {"data": {"k": "2"}})
        await stage.world.settle()
        assert stage.machine.calls == ["refresh"]

    new_lines(story)


def test_a_node_has_its_isolation_tier() -> None:
    async def story(stage: Stage) -> None:
        found = stage.world.get(NODE, "n1")
        assert found["metadata"]["annotations"]["unisono.dev/runner-tier"] == "T1"

    new_lines(story)


def test_processes_of_pods_that_are_gone_are_ended_at_the_start() -> None:
    async def story(stage: Stage) -> None:
        await begin(stage, pod(command=["x"]))
        stage.machine.calls.clear()
        uid = stage.pod["metadata"]["uid"]
        await stage.world.client.delete(POD, "p", "default", grace_s=0)
        stage.world.restart()
        await stage.world.settle()
        assert "forget" in stage.machine.calls
        assert (uid, "main") not in stage.machine.seen

    new_lines(story)


def test_a_pod_has_the_progress_of_its_program() -> None:
    async def story(stage: Stage) -> None:
        await begin(stage, pod(command=["train"]))
        assert PROGRESS not in stage.pod["metadata"]["annotations"]
        at = stage.world.clock.time
        stage.machine.reports["main"] = ('{"step": 7, "total": 90, "loss": 0.5}', at)
        await stage.world.pass_time(10)
        said = progress_of(stage.pod["metadata"]["annotations"])
        assert said is not None
        assert (said.step, said.total, said.loss, said.when) == (7, 90, 0.5, int(at))
        version = stage.pod["metadata"]["resourceVersion"]
        for nonsense in ("", "step 8", "[]", '{"steps": 1}'):
            stage.machine.reports["main"] = (nonsense, at + 1)
            await stage.world.pass_time(10)
        assert stage.pod["metadata"]["resourceVersion"] == version

    new_lines(story)
