"""Pods as real processes, with rooms of their own and without."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runner.process_world import HAS_ROOMS, ProcessWorld, phase, state
from tests.runner.simulated_world import node, pod
from unisono.control.names import CONFIG_MAP, NODE, POD
from unisono.kube.form import Json
from unisono.runner.process.launch import Alias, Tier
from unisono.runner.process.process_tree import processes_with_variable

pytestmark = pytest.mark.slow

TIERS = [
    pytest.param(0, id="without rooms"),
    pytest.param(
        1,
        id="with rooms",
        marks=pytest.mark.skipif(not HAS_ROOMS, reason="this machine has no namespaces for us"),
    ),
]


def sh(script: str, name: str = "p", **more: Any) -> Json:
    """Return a pod that runs a script."""
    return pod(name, command=["sh", "-c", script], **more)


def with_container(manifest: Json, **more: Any) -> Json:
    """Return a pod with more said of its container."""
    (container,) = manifest["spec"]["containers"]
    return {**manifest, "spec": {**manifest["spec"], "containers": [{**container, **more}]}}


def new_lines(
    directory: Path,
    tier: Tier,
    story: Callable[[ProcessWorld], Awaitable[None]],
    aliases: tuple[Alias, ...] = (),
) -> None:
    """Run a story on a node with eight GPUs; afterwards nothing may be left."""

    async def run() -> None:
        world = ProcessWorld(directory, tier, aliases)
        async with world.running():
            await world.client.create(node(**{"nvidia.com/gpu": "8"}))
            try:
                await story(world)
            finally:
                await world.machine.close(grace_s=1)

    asyncio.run(run())


def has_status(found: Json | None) -> bool:
    """Say whether the kubelet has looked at a pod."""
    return found is not None and "containerStatuses" in found["status"]


def leftovers(found: Json) -> list[int]:
    """Return the processes of a pod that are still there."""
    return processes_with_variable(f"UNISONO_POD_UID={found['metadata']['uid']}".encode())


# A command, its exit code, and the reason that the status gives.
ENDS: list[tuple[list[str], int, str]] = [
    (["sh", "-c", "exit 0"], 0, "Completed"),
    (["sh", "-c", "exit 3"], 3, "Error"),
    (["sh", "-c", "kill -9 $$$$"], 137, "Error"),
    (["there-is-no-such-program"], 127, "Error"),
    (["/etc/passwd"], 126, "Error"),
]


@pytest.mark.parametrize("tier", TIERS)
def test_how_containers_end(tmp_path: Path, tier: Tier) -> None:
    async def story(world: ProcessWorld) -> None:
        for number, (command, _, _) in enumerate(ENDS):
            await world.client.create(pod(f"p{number}", command=command))
        for number, (_, code, reason) in enumerate(ENDS):
            found = await world.ended(f"p{number}")
            assert phase(found) == ("Succeeded" if code == 0 else "Failed")
            ended = state(found)["terminated"]
            assert (ended["exitCode"], ended["reason"]) == (code, reason)

    new_lines(tmp_path, tier, story)


@pytest.mark.parametrize("tier", TIERS)
def test_output_of_a_container_is_its_log(tmp_path: Path, tier: Tier) -> None:
    async def story(world: ProcessWorld) -> None:
        found = await world.ran(sh("echo hello; echo trouble >&2; printf unfinished"))
        assert world.log(found).splitlines() == ["hello", "trouble", "unfinished"]

    new_lines(tmp_path, tier, story)


@pytest.mark.parametrize("tier", TIERS)
def test_variables_reach_the_container(tmp_path: Path, tier: Tier) -> None:
    script = "echo '$(PLAIN) $$(PLAIN) $(date) $$'; echo $(date +%Y | head -c 2) $WHERE; env"

    async def story(world: ProcessWorld) -> None:
        await world.client.create(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "settings", "namespace": "default"},
                "data": {"color": "red", "size": "9"},
            }
        )
        env: list[Json] = [
            {"name": "PLAIN", "value": "plain"},
            {"name": "BOTH", "value": "$(PLAIN)-$(c_size)"},
            {"name": "WHERE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "CORES", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        ]
        manifest = with_container(
            sh(script),
            env=env,
            envFrom=[{"prefix": "c_", "configMapRef": {"name": "settings"}}],
            resources={"limits": {"cpu": "1500m", "nvidia.com/gpu": "2"}},
        )
        found = await world.ran(manifest)
        first, second, *rest = world.log(found).splitlines()
        assert (first, second) == ("plain $(PLAIN) $(date) $", "20 n1")
        told_ = dict(line.split("=", 1) for line in rest if "=" in line)
        assert told_["BOTH"] == "plain-9"
        assert told_["c_color"] == "red"
        assert told_["CORES"] == "2"
        assert told_["ADDRESS"] == found["status"]["podIP"]
        assert told_["HOSTNAME"] == "p"
        assert told_["CUDA_VISIBLE_DEVICES"] == told_["NVIDIA_VISIBLE_DEVICES"] == "0,1"

    new_lines(tmp_path, tier, story)


@pytest.mark.parametrize("tier", TIERS)
def test_volumes(tmp_path: Path, tier: Tier) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "given").write_text("from the host")

    async def story(world: ProcessWorld) -> None:
        for kind, data in (
            ("ConfigMap", {"data": {"a.txt": "of a map"}}),
            ("Secret", {"data": {"key": base64.b64encode(b"hush").decode()}}),
        ):
            metadata = {"name": "stuff", "namespace": "default"}
            await world.client.create(
                {"apiVersion": "v1", "kind": kind, "metadata": metadata, **data}
            )
        volumes: list[Json] = [
            {"name": "empty", "emptyDir": {}},
            {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
            {"name": "map", "configMap": {"name": "stuff"}},
            {"name": "secret", "secret": {"secretName": "stuff", "defaultMode": 0o400}},
            {"name": "host", "hostPath": {"path": str(tmp_path / "host")}},
            {"name": "claim", "persistentVolumeClaim": {"claimName": "kept"}},
            {
                "name": "me",
                "downwardAPI": {
                    "items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]
                },
            },
        ]
        mounts = [
            {"name": "empty", "mountPath": "/scratch/deep"},
            {"name": "memory", "mountPath": "/fast"},
            {"name": "map", "mountPath": "/settings"},
            {"name": "secret", "mountPath": "/opt/secrets", "readOnly": True},
            {"name": "host", "mountPath": "/given"},
            {"name": "claim", "mountPath": "/kept", "subPath": "below"},
            {"name": "me", "mountPath": "/about"},
        ]
        script = (
            "echo x > /scratch/deep/f; echo y > /fast/f; echo z > /kept/f;"
            "cat /scratch/deep/f /fast/f /settings/a.txt /opt/secrets/key /given/given /about/name"
        )
        manifest = with_container(sh(script, volumes=volumes), volumeMounts=mounts)
        found = await world.ran(manifest)
        assert phase(found) == "Succeeded", world.log(found)
        assert world.log(found) == "x\ny\nof a maphushfrom the hostp\n"
        assert (tmp_path / "claims" / "default" / "kept" / "below" / "f").read_text() == "z\n"
        uid = found["metadata"]["uid"]
        await world.client.delete(POD, "p", "default")
        await world.pod("p", lambda pod: pod is None)
        while (tmp_path / "pods" / uid).exists():
            await asyncio.sleep(0.02)
        assert (tmp_path / "claims" / "default" / "kept" / "below" / "f").exists()

    new_lines(tmp_path, tier, story)


@pytest.mark.parametrize("tier", TIERS)
def test_a_container_waits_for_what_it_needs(tmp_path: Path, tier: Tier) -> None:
    async def story(world: ProcessWorld) -> None:
        wants = [{"configMapRef": {"name": "late"}}]
        await world.client.create(with_container(sh("echo $color"), envFrom=wants))
        found = await world.pod(
            "p", lambda pod: bool(pod and pod["status"].get("containerStatuses"))
        )
        waiting = state(found)["waiting"]
        assert waiting["reason"] == "CreateContainerConfigError"
        assert waiting["message"] == 'configmap "late" not found'
        late = {"name": "late", "namespace": "default"}
        await world.client.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": late, "data": {"color": "blue"}}
        )
        found = await world.ended("p")
        assert world.log(found) == "blue\n"

    new_lines(tmp_path, tier, story)


@pytest.mark.parametrize("tier", TIERS)
def test_a_config_map_is_refreshed(tmp_path: Path, tier: Tier) -> None:
    async def story(world: ProcessWorld) -> None:
        about = {"name": "c", "namespace": "default"}
        await world.client.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {"k": "old"}}
        )
        script = "until grep -q new /c/k; do sleep 0.05; done; echo seen"
        manifest = with_container(
            sh(script, volumes=[{"name": "c", "configMap": {"name": "c"}}]),
            volumeMounts=[{"name": "c", "mountPath": "/c"}],
        )
        await world.client.create(manifest)
        await world.pod("p", lambda pod: phase(pod) == "Running")
        await world.client.patch(CONFIG_MAP, "c", "default", {"data": {"k": "new"}})
        assert world.log(await world.ended("p")) == "seen\n"

    new_lines(tmp_path, tier, story)


@pytest.mark.parametrize("tier", TIERS)
def test_a_deleted_pod_gets_its_grace_and_no_process_survives(tmp_path: Path, tier: Tier) -> None:
    """Spec jobs §8."""
    stubborn = "trap '' TERM; setsid sleep 1000 & (setsid sleep 1000 &); while :; do sleep 1; done"

    async def story(world: ProcessWorld) -> None:
        polite = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.1; done"
        await world.client.create(sh(polite, "polite"))
        await world.client.create(sh(stubborn, "stubborn", terminationGracePeriodSeconds=2))
        for name in ("polite", "stubborn"):
            found = await world.pod(name, lambda pod: phase(pod) == "Running")
            while not leftovers(found):
                await asyncio.sleep(0.02)
            hold = {"metadata": {"finalizers": ["a/b"]}}
            await world.client.patch(POD, name, "default", hold)
        await asyncio.sleep(0.5)
        for name in ("polite", "stubborn"):
            await world.client.delete(POD, name, "default")
        first = await world.ended("polite")
        assert state(first)["terminated"]["exitCode"] == 0
        assert world.log(first).splitlines()[-1] == "bye"
        second = await world.ended("stubborn")
        assert state(second)["terminated"]["exitCode"] == 137
        for found in (first, second):
            assert leftovers(found) == []
            name = found["metadata"]["name"]
            await world.client.patch(POD, name, "default", {"metadata": {"finalizers": None}})

    new_lines(tmp_path, tier, story)


@pytest.mark.parametrize("tier", TIERS)
def test_a_crashed_container_starts_again(tmp_path: Path, tier: Tier) -> None:
    script = "echo run; if [ -e /mark/m ]; then exit 0; fi; touch /mark/m; exit 9"

    async def story(world: ProcessWorld) -> None:
        manifest = with_container(
            sh(script, restart="OnFailure", volumes=[{"name": "mark", "emptyDir": {}}]),
            volumeMounts=[{"name": "mark", "mountPath": "/mark"}],
        )
        found = await world.ran(manifest)
        assert phase(found) == "Succeeded"
        (status,) = found["status"]["containerStatuses"]
        assert status["restartCount"] == 1
        assert status["lastState"]["terminated"]["exitCode"] == 9
        assert world.log(found) == world.log(found, previous=True) == "run\n"

    new_lines(tmp_path, tier, story)


@pytest.mark.parametrize("tier", TIERS)
def test_init_containers_and_sidecars(tmp_path: Path, tier: Tier) -> None:
    def part(name: str, script: str, **more: Any) -> Json:
        mounts = [{"name": "shared", "mountPath": "/shared"}]
        command = ["sh", "-c", script]
        return {"name": name, "image": "x", "command": command, "volumeMounts": mounts, **more}

    async def story(world: ProcessWorld) -> None:
        proxy = "trap 'echo stopped; exit 0' TERM; touch /shared/proxy; while :; do sleep 0.1; done"
        wait = "until [ -e /shared/proxy ]; do sleep 0.05; done; echo ready > /shared/first"
        manifest = pod(
            volumes=[{"name": "shared", "emptyDir": {}}],
            initContainers=[part("proxy", proxy, restartPolicy="Always"), part("first", wait)],
            containers=[part("main", "cat /shared/first")],
        )
        found = await world.ran(manifest)
        assert phase(found) == "Succeeded"
        assert world.log(found) == "ready\n"
        assert world.log(found, "proxy").splitlines()[-1] == "stopped"
        assert "terminated" in state(found, "proxy")
        assert leftovers(found) == []

    new_lines(tmp_path, tier, story)


@pytest.mark.parametrize("tier", TIERS)
def test_a_container_that_uses_too_much_memory_is_killed(tmp_path: Path, tier: Tier) -> None:
    async def story(world: ProcessWorld) -> None:
        eats = "x = bytearray(300 << 20)\nimport time\ntime.sleep(60)"
        manifest = with_container(
            pod(command=["python3", "-c", eats]), resources={"limits": {"memory": "100Mi"}}
        )
        found = await world.ran(manifest)
        ended = state(found)["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")

    new_lines(tmp_path, tier, story)


@pytest.mark.parametrize("tier", TIERS)
def test_a_deadline(tmp_path: Path, tier: Tier) -> None:
    async def story(world: ProcessWorld) -> None:
        found = await world.ran(sh("sleep 60", activeDeadlineSeconds=1))
        assert found["status"]["reason"] == "DeadlineExceeded"
        assert leftovers(found) == []

    new_lines(tmp_path, tier, story)


@pytest.mark.parametrize("tier", TIERS)
def test_the_pods_of_a_lost_node_die(tmp_path: Path, tier: Tier) -> None:
    async def story(world: ProcessWorld) -> None:
        await world.client.create(sh("sleep 1000"))
        found = await world.pod("p", lambda pod: phase(pod) == "Running")
        await world.client.delete(NODE, "n1", "")
        found = await world.ended("p")
        assert found["status"]["reason"] == "NodeLost"
        while leftovers(found):
            await asyncio.sleep(0.02)

    new_lines(tmp_path, tier, story)


@pytest.mark.parametrize("tier", TIERS)
def test_pods_find_each_other_by_name(tmp_path: Path, tier: Tier) -> None:
    """A server in one pod, a client in another; names are those of a headless service."""
    serve = (
        'import socket\ns = socket.create_server(("$(HOST)", 20555))\n'
        "c, _ = s.accept()\nc.sendall(b'hello')\nc.close()"
    )
    ask = (
        "import socket, time\nend = time.time() + 30\nwhile True:\n"
        " try:\n  c = socket.create_connection(('server.team', 20555)); break\n"
        " except OSError:\n  assert time.time() < end; time.sleep(0.05)\n"
        "print(c.recv(9).decode())"
    )

    async def story(world: ProcessWorld) -> None:
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "team", "namespace": "default"},
            "spec": {"clusterIP": "None", "selector": {"a": "b"}},
        }
        await world.client.create(service)
        address = {"name": "HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
        # Without rooms a name is put in when a container starts, so the other pod has to be there.
        for name, program in (("server", serve), ("client", ask)):
            manifest = pod(
                name, command=["python3", "-c", program], hostname=name, subdomain="team"
            )
            await world.client.create(with_container(manifest, env=[address]))
        client = await world.ended("client")
        assert phase(client) == "Succeeded", world.log(client)
        assert world.log(client) == "hello\n"

    new_lines(tmp_path, tier, story)


@pytest.mark.parametrize("tier", TIERS)
def test_two_gangs_with_the_same_port_do_not_meet(tmp_path: Path, tier: Tier) -> None:
    """Spec jobs §8."""

    async def story(world: ProcessWorld) -> None:
        port = {"name": "MASTER_PORT", "value": "29500"}
        for name in ("a", "b"):
            manifest = with_container(sh("echo $(MASTER_PORT); sleep 0.3", name), env=[port])
            await world.client.create(manifest)
        logs = [world.log(await world.ended(name)).strip() for name in ("a", "b")]
        assert len({*logs, "29500"}) == 3
        written = "echo --master_port=29511; sleep 0.5"
        await world.client.create(sh(written, "first"))
        await world.pod("first", lambda pod: phase(pod) == "Running")
        await world.client.create(sh(written, "second"))
        found = await world.pod("second", has_status)
        assert state(found)["waiting"]["reason"] == "PortConflict"
        assert phase(await world.ended("second")) == "Succeeded"

    new_lines(tmp_path, tier, story)


@pytest.mark.parametrize("tier", TIERS)
def test_gpus_are_handed_out_by_index(tmp_path: Path, tier: Tier) -> None:
    async def story(world: ProcessWorld) -> None:
        for name in ("a", "b"):
            manifest = with_container(
                sh("echo $CUDA_VISIBLE_DEVICES $(PET_NPROC_PER_NODE); sleep 0.5", name),
                resources={"limits": {"nvidia.com/gpu": "4"}},
                env=[{"name": "PET_NPROC_PER_NODE", "value": "auto"}],
            )
            await world.client.create(manifest)
        logs = sorted([world.log(await world.ended(name)) for name in ("a", "b")])
        assert logs == ["0,1,2,3 4\n", "4,5,6,7 4\n"]

    new_lines(tmp_path, tier, story)


def test_an_image_alias_runs_programs_of_this_machine(tmp_path: Path) -> None:
    alias = Alias(image="*/tool:*", entrypoint=("echo", "called"), env={"X": "1"})

    async def story(world: ProcessWorld) -> None:
        image = "registry.example.com/tool:1"
        manifest = with_container(pod(), image=image, args=["with", "$(NOTHING)"])
        found = await world.ran(manifest)
        assert world.log(found) == "called with $(NOTHING)\n"
        await world.client.create(pod("idle"))
        found = await world.pod("idle", lambda pod: phase(pod) == "Running")
        await asyncio.sleep(0.3)
        assert "image busybox" in world.log(found)
        assert "has no alias on this machine" in world.log(found)

    new_lines(tmp_path, 0, story, (alias,))


@pytest.mark.parametrize("tier", TIERS)
def test_containers_outlive_the_runner(tmp_path: Path, tier: Tier) -> None:
    """A container that runs is found again, one that ended meanwhile has its exit code."""

    async def run() -> None:
        before = ProcessWorld(tmp_path, tier)
        async with before.running():
            await before.client.create(node())
            await before.client.create(sh("echo one; sleep 2; echo two; exit 0", "long"))
            await before.client.create(sh("sleep 0.5; exit 5", "short"))
            await before.client.create(sh("sleep 1000", "orphan"))
            for name in ("long", "short", "orphan"):
                await before.pod(name, lambda pod: phase(pod) == "Running")
            orphan = await before.pod("orphan", lambda pod: True)
        await asyncio.sleep(0.9)
        after = ProcessWorld(tmp_path, tier)
        async with after.running():
            short = await after.ended("short")
            assert state(short)["terminated"]["exitCode"] == 5
            await after.client.delete(POD, "orphan", "default", grace_s=0)
            long = await after.ended("long")
            assert phase(long) == "Succeeded"
            assert after.log(long) == "one\ntwo\n"
            while leftovers(orphan):
                await asyncio.sleep(0.02)
            assert after.recovered == 2

    asyncio.run(run())


@pytest.mark.parametrize("tier", TIERS)
def test_processes_of_a_killed_shim_are_ended(tmp_path: Path, tier: Tier) -> None:
    async def story(world: ProcessWorld) -> None:
        await world.client.create(sh("setsid sleep 1000 & sleep 1000"))
        found = await world.pod("p", lambda pod: phase(pod) == "Running")
        await asyncio.sleep(0.5)
        (entry,) = world.machine._entries.values()
        os.kill(entry.pid, 9)
        found = await world.ended("p")
        assert state(found)["terminated"]["reason"] == "ContainerStatusUnknown"
        while leftovers(found):
            await asyncio.sleep(0.02)

    new_lines(tmp_path, tier, story)


def is_ready(found: Json | None) -> bool:
    """Say whether a pod is ready."""
    return found is not None and any(
        one["type"] == "Ready" and one["status"] == "True"
        for one in found["status"].get("conditions", ())
    )


@pytest.mark.parametrize("tier", TIERS)
def test_probes_say_whether_a_pod_is_ready(tmp_path: Path, tier: Tier) -> None:
    serve = "import http.server as h; h.HTTPServer(('', 20556), h.SimpleHTTPRequestHandler)"
    probes: list[tuple[str, list[str], Json]] = [
        (
            "exec",
            ["sh", "-c", "sleep 1; touch /mark/m; sleep 60"],
            {"exec": {"command": ["test", "-e", "/mark/m"]}},
        ),
        (
            "http",
            ["python3", "-c", f"{serve}.serve_forever()"],
            {"httpGet": {"port": "web", "path": "/"}},
        ),
    ]

    async def story(world: ProcessWorld) -> None:
        for name, command, probe in probes:
            if tier == 0 and name == "exec":
                continue  # paths of volumes in probes mean something else without rooms
            manifest = with_container(
                pod(name, command=command, volumes=[{"name": "mark", "emptyDir": {}}]),
                volumeMounts=[{"name": "mark", "mountPath": "/mark"}],
                ports=[{"name": "web", "containerPort": 20556}] if name == "http" else [],
                readinessProbe={**probe, "periodSeconds": 1},
            )
            await world.client.create(manifest)
            found = await world.pod(name, lambda pod: phase(pod) == "Running")
            assert not is_ready(found)
            await world.pod(name, is_ready)

    new_lines(tmp_path, tier, story)


@pytest.mark.parametrize("tier", TIERS)
def test_a_failed_liveness_probe_restarts_the_container(tmp_path: Path, tier: Tier) -> None:
    async def story(world: ProcessWorld) -> None:
        manifest = with_container(
            sh("sleep 100", restart="OnFailure"),
            livenessProbe={
                "exec": {"command": ["false"]},
                "periodSeconds": 1,
                "failureThreshold": 1,
            },
        )
        await world.client.create(manifest)

        def is_back(found: Json | None) -> bool:
            return has_status(found) and bool(
                found and found["status"]["containerStatuses"][0]["restartCount"]
            )

        found = await world.pod("p", is_back)
        ended = found["status"]["containerStatuses"][0]["lastState"]["terminated"]
        assert ended["exitCode"] in (137, 143)

    new_lines(tmp_path, tier, story)


@pytest.mark.parametrize("tier", TIERS)
def test_a_hook_runs_before_the_stop(tmp_path: Path, tier: Tier) -> None:
    async def story(world: ProcessWorld) -> None:
        script = "trap 'echo stopped; exit 0' TERM; while :; do sleep 0.1; done"
        hook = ["sh", "-c", "echo hook > /proc/$PPID/fd/1 2>/dev/null; touch /mark/hook"]
        manifest = with_container(
            sh(script, volumes=[{"name": "mark", "emptyDir": {}}]),
            volumeMounts=[{"name": "mark", "mountPath": "/mark"}],
            lifecycle={"preStop": {"exec": {"command": hook}}},
        )
        await world.client.create(manifest)
        found = await world.pod("p", lambda pod: phase(pod) == "Running")
        await asyncio.sleep(0.5)
        await world.client.patch(POD, "p", "default", {"metadata": {"finalizers": ["a/b"]}})
        await world.client.delete(POD, "p", "default")
        await world.ended("p")
        uid = found["metadata"]["uid"]
        if tier:
            assert (tmp_path / "pods" / uid / "volumes" / "mark" / "hook").exists()
        assert world.log(found).splitlines()[-1] == "stopped"
        await world.client.patch(POD, "p", "default", {"metadata": {"finalizers": None}})

    new_lines(tmp_path, tier, story)


@pytest.mark.skipif(not HAS_ROOMS, reason="this machine has no namespaces for us")
def test_ssh_reaches_another_pod(tmp_path: Path) -> None:
    async def story(world: ProcessWorld) -> None:
        await world.client.create(pod("worker", hostname="w-0", subdomain="job"))
        await world.pod("worker", lambda pod: phase(pod) == "Running")
        call = (
            "until ssh -x w-0.job true 2>/dev/null; do sleep 0.1; done;"
            "echo in | ssh -o A=b w-0.job 'hostname; cat; echo err >&2; exit 7'; echo $?"
        )
        found = await world.ran(sh(call, "launcher", hostname="l", subdomain="job"))
        assert sorted(world.log(found).split()) == ["7", "err", "in", "w-0"]

    new_lines(tmp_path, 1, story)


def test_a_pod_may_still_be_simulated(tmp_path: Path) -> None:
    async def story(world: ProcessWorld) -> None:
        says = {"runner": "simulated", "run-seconds": "0"}
        found = await world.ran(sh("touch /nothing", says=says))
        assert phase(found) == "Succeeded"
        world.simulated.write_down(found)
        assert world.log(found).startswith("simulated on n1")

    new_lines(tmp_path, 0, story)
