"""What a process pod must not reach: the instance's folder, other pods, other people's rights."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.runner.process.test_process_pods import leftovers, sh, with_container
from tests.runner.process.test_surroundings import PLACES, config_map, references
from tests.runner.process_world import HAS_ROOMS, ProcessWorld, phase, state
from tests.runner.simulated_world import node, pod
from unisono.control import names
from unisono.kube.form import Json
from unisono.runner.process import exec_socket, sandbox
from unisono.runner.process.checkpoints import checkpoint_owner
from unisono.runner.process.mounts import volumes_of
from unisono.runner.process.references import CannotStartYet
from unisono.runner.process.system_users import SystemUsers

FIRST = 1_900_000_000
NEEDS_ROOT = pytest.mark.skipif(
    os.geteuid() != 0 or not HAS_ROOMS, reason="only root may give system users"
)
NEEDS_ROOMS = pytest.mark.skipif(not HAS_ROOMS, reason="no namespaces here")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of an instance outside of /tmp, of which every container has its own anyway."""
    base = "/var/lib" if os.geteuid() == 0 else str(Path.home())
    made = Path(tempfile.mkdtemp(dir=base, prefix="unisono-test-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


def new_lines(
    folder: Path, story: Callable[[ProcessWorld], Awaitable[None]], *, is_shared: bool = True
) -> None:
    """Run a story in an instance of several people, or of one."""
    (folder / "kubeconfig").write_text("token: topsecret\n")
    (folder / "kubeconfig").chmod(0o600)
    more: Json = {"hidden": {str(folder): () if is_shared else ("kubeconfig",)}}
    if is_shared:
        more["system_users"] = SystemUsers(
            folder / "uids.json", (FIRST, FIRST + 9), {"carol": 4711}
        )

    async def run() -> None:
        world = ProcessWorld(folder, 1, (), **more)
        async with world.running():
            await world.client.create(node(**{"nvidia.com/gpu": "8"}))
            try:
                await story(world)
            finally:
                await world.machine.close(grace_s=1)

    asyncio.run(run())


async def says(world: ProcessWorld, user: str, manifest: Json) -> str:
    """Have one of them run a pod; return what it says."""
    await world.acting_as(user).create(manifest)
    return world.log(await world.ended(manifest["metadata"]["name"]))


# ---- one system user each ----------------------------------------------------------------------


@NEEDS_ROOT
@pytest.mark.slow
def test_pods_of_different_people_are_different_system_users(folder: Path) -> None:
    async def story(world: ProcessWorld) -> None:
        script = (
            'echo $(id -u) $(id -g) $(id -G) "$HOME" "$USER"; grep -i NoNewPrivs /proc/self/status'
        )
        first = await says(world, "alice", sh(script, "a"))
        assert first.split() == [str(FIRST)] * 3 + ["/tmp", "alice", "NoNewPrivs:", "1"]
        assert (await says(world, "bob", sh("id -u", "b"))).strip() == str(FIRST + 1)
        assert (await says(world, "alice", sh("id -u", "a2"))).strip() == str(FIRST)
        assert (await says(world, "carol", sh("id -u", "c"))).strip() == "4711"
        assert (await says(world, "system:unisono", sh("id -u", "s"))).strip() == str(FIRST + 2)
        again = SystemUsers(folder / "uids.json", (FIRST, FIRST + 9), {})
        assert again.of({"metadata": {"annotations": {"unisono.dev/submitter": "bob"}}}).uid == (
            FIRST + 1
        )

    new_lines(folder, story)


@NEEDS_ROOT
@pytest.mark.slow
def test_pods_cannot_read_the_instance_or_other_pods(folder: Path) -> None:
    async def story(world: ProcessWorld) -> None:
        victim = with_container(
            pod("victim", volumes=[{"name": "v", "emptyDir": {}}]),
            command=["sh", "-c", "echo hidden-in-volume > /v/file; sleep 1000"],
            env=[{"name": "WORD", "value": "hidden-in-environment"}],
            volumeMounts=[{"name": "v", "mountPath": "/v"}],
        )
        await world.acting_as("bob").create(victim)
        found = await world.pod("victim", lambda pod: phase(pod) == "Running")
        while not leftovers(found):
            await asyncio.sleep(0.02)
        theirs = " ".join(map(str, leftovers(found)))
        script = f"""
            ls -A {folder}; cat {folder}/kubeconfig {folder}/state.db
            grep -rl hidden-in /proc/[0-9]*/environ; for pid in {theirs}; do kill -0 $pid; done
            ls -A /dev/shm; ls /dev/pts; mknod /tmp/disk b 8 0
            mount -t tmpfs x /mnt; chown 0 /tmp; echo end
        """
        text = await says(world, "alice", sh(f"exec 2>/dev/null; {script}", "thief"))
        assert text.split() == ["ptmx", "end"]
        inside = f"nsenter -t 1 -m -- cat {folder}/kubeconfig; unshare -Urm sh -c '{script}'"
        text = await says(world, "alice", sh(f"exec 2>/dev/null; {inside}", "digger"))
        assert "topsecret" not in text
        assert "hidden" not in text

    new_lines(folder, story)


@NEEDS_ROOMS
@pytest.mark.slow
def test_the_owners_own_pods_see_the_kubeconfig_and_nothing_else(folder: Path) -> None:
    """`sbatch` in a batch script needs it; folders of other pods, the database and logs it not."""

    async def story(world: ProcessWorld) -> None:
        link = Path(tempfile.mkdtemp(dir=folder.parent, prefix="unisono-link-")) / "data"
        link.symlink_to(folder)
        try:
            script = (
                f"ls -A {folder}; ls -A {link}/; cat {link}/kubeconfig; touch {folder}/x || echo no"
            )
            found = await world.ran(sh(f"exec 2>/dev/null; {script}", "own"))
            said = ["kubeconfig", "kubeconfig", "token:", "topsecret", "no"]
            assert world.log(found).split() == said
        finally:
            shutil.rmtree(link.parent)

    new_lines(folder, story, is_shared=False)


@NEEDS_ROOT
@pytest.mark.slow
def test_secrets_that_only_their_owner_may_read_are_readable(folder: Path) -> None:
    async def story(world: ProcessWorld) -> None:
        secret = {"name": "key", "namespace": "default"}
        data = {"apiVersion": "v1", "kind": "Secret", "metadata": secret, "data": {"id": "aGk="}}
        await world.client.create(data)
        volume = {"name": "k", "secret": {"secretName": "key", "defaultMode": 0o400}}
        mount = {"name": "k", "mountPath": "/root/.ssh"}
        manifest = with_container(
            pod("reader", volumes=[volume]),
            command=[
                "sh",
                "-c",
                "cat /root/.ssh/id; stat -Lc %a /root/.ssh/id; touch /root/.ssh/x",
            ],
            volumeMounts=[mount],
        )
        text = await says(world, "alice", manifest)
        assert text.startswith("hi400\n"), text
        assert "Read-only" in text

    new_lines(folder, story)


# ---- ways out of a volume ----------------------------------------------------------------------


@NEEDS_ROOMS
@pytest.mark.slow
@pytest.mark.parametrize("lure", ["link", "link/new", "deep/link"])
def test_a_sub_path_does_not_follow_links(folder: Path, lure: str) -> None:
    async def story(world: ProcessWorld) -> None:
        outside = folder / "outside"
        outside.mkdir()
        (outside / "file").write_text("topsecret")
        claim = {"name": "c", "persistentVolumeClaim": {"claimName": "c"}}
        whole = {"name": "c", "mountPath": "/c"}
        plant = f"mkdir -p /c/deep; ln -s {outside} /c/link; ln -s {outside} /c/deep/link"
        planter = pod("planter", volumes=[claim])
        await world.ran(with_container(planter, command=["sh", "-c", plant], volumeMounts=[whole]))
        thief = with_container(
            pod("thief", volumes=[claim]),
            command=["sh", "-c", "ls /s; cat /s/file"],
            volumeMounts=[{"name": "c", "mountPath": "/s", "subPath": lure}],
        )
        await world.client.create(thief)
        found = await world.pod("thief", _is_stopped)
        assert "is a link" in str(state(found)), found["status"]
        assert [one.name for one in outside.iterdir()] == ["file"]

    new_lines(folder, story, is_shared=False)


def _is_stopped(found: Json | None) -> bool:
    """Say whether a container ended, or waits with a message."""
    if found is None or not found["status"].get("containerStatuses"):
        return False
    return "running" not in state(found) and "message" in str(state(found))


@pytest.mark.parametrize(
    "volume",
    [
        {"name": "v", "persistentVolumeClaim": {"claimName": "../.."}},
        {"name": "../../..", "emptyDir": {}},
        {"name": "../..", "configMap": {"name": "settings"}},
    ],
)
def test_a_name_is_one_part_of_a_path(volume: Json) -> None:
    """Objects of our own controllers are not checked by the API, and copy what templates say."""
    manifest = pod(volumes=[volume])
    with pytest.raises(CannotStartYet, match="not a valid name"):
        volumes_of(manifest, PLACES, references(manifest, config_map(k="v")))


def test_a_pod_with_an_invalid_workload_name_has_its_own_checkpoints() -> None:
    manifest = pod()
    manifest["metadata"]["annotations"] = {names.WORKLOAD_ANNOTATION: "../../.."}
    assert checkpoint_owner(manifest) == ""


@NEEDS_ROOT
@pytest.mark.slow
@pytest.mark.parametrize("variable", ["PATH", "SLURM_SUBMIT_DIR"])
@pytest.mark.parametrize("is_private", [True, False])
def test_a_path_in_the_environment_opens_no_folder(variable: str, *, is_private: bool) -> None:
    """Programs below /tmp are brought into a room, which passes by the modes above them."""
    base = Path(tempfile.mkdtemp(dir="/tmp", prefix="unisono-test-"))
    data = base / "data"
    data.mkdir(mode=0o700)
    base.chmod(0o700 if is_private else 0o755)
    inner = data / "inner"
    inner.mkdir()
    (inner / "open").write_text("topsecret")

    async def story(world: ProcessWorld) -> None:
        for number, wanted in enumerate((inner, data, base)):
            value = f"{wanted}/bin" if variable == "PATH" else str(wanted)
            value = f"{value}:/usr/bin:/bin" if variable == "PATH" else value
            manifest = with_container(
                pod(f"p{number}"),
                command=["/bin/sh", "-c", f"exec 2>&1; ls {wanted}; cat {inner}/open; echo end"],
                env=[{"name": variable, "value": value}],
            )
            text = await says(world, "alice", manifest)
            assert text.endswith("end\n")
            assert "topsecret" not in text

    try:
        new_lines(data, story)
    finally:
        shutil.rmtree(base, ignore_errors=True)


@NEEDS_ROOMS
@pytest.mark.slow
@pytest.mark.parametrize("what", ["mkfifo", "ln -s {folder}/report"])
def test_progress_is_read_from_regular_files_only(folder: Path, what: str) -> None:
    async def story(world: ProcessWorld) -> None:
        (folder / "report").write_text('{"step": 7}\n')
        make = what.format(folder=folder)
        found = await world.ran(sh(f"{make} $UNISONO_PROGRESS_FILE; sleep 1", "p"))
        assert phase(found) == "Succeeded"
        assert world.machine.progress(found["metadata"]["uid"], "main") is None

    new_lines(folder, story, is_shared=False)


# ---- commands in containers --------------------------------------------------------------------


@NEEDS_ROOT
@pytest.mark.slow
def test_commands_in_a_container_are_its_users(folder: Path) -> None:
    async def story(world: ProcessWorld) -> None:
        await world.acting_as("alice").create(sh("sleep 1000", "target"))
        found = await world.pod("target", lambda pod: phase(pod) == "Running")
        address = found["status"]["podIP"]
        reading, writing = os.pipe()
        connection = None
        while connection is None:
            with contextlib.suppress(ConnectionRefusedError):
                connection = exec_socket.send(f"{address}/main", ["id", "-u"], [0, writing, 2])
            await asyncio.sleep(0.02)
        assert await asyncio.to_thread(exec_socket.code_of, connection) == 0
        assert os.read(reading, 100).strip() == str(FIRST).encode()
        ssh = f"ssh {address} id -u; echo $?"
        assert (await says(world, "alice", sh(ssh, "friend"))).split() == [str(FIRST), "0"]
        assert (await says(world, "bob", sh(ssh, "foe"))).split()[-1] in ("137", "255")

    new_lines(folder, story)


@NEEDS_ROOT
def test_sends_nothing_to_a_socket_of_another_user(tmp_path: Path) -> None:
    """Any process may bind an abstract socket; what is sent there may be private."""
    name = f"127.64.99.1/{os.getpid()}"
    ready, tell = os.pipe()
    done, finish = os.pipe()
    child = os.fork()
    if child == 0:
        os.setresuid(FIRST, FIRST, FIRST)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"\0unisono/{name}")
            listener.listen()
            os.write(tell, b"x")
            os.read(done, 1)
        os._exit(0)
    try:
        os.read(ready, 1)
        with pytest.raises(ConnectionRefusedError, match="another user"):
            exec_socket.send(name, ["cat"], [0, 1, 2])
    finally:
        os.write(finish, b"x")
        os.waitpid(child, 0)


# ---- the table of system users -----------------------------------------------------------------


def test_reports_an_exhausted_uid_range(tmp_path: Path) -> None:
    system_users = SystemUsers(tmp_path / "uids.json", (70_000, 70_001), {"carol": 70_000})

    def of(name: str) -> int:
        metadata = {"annotations": {"unisono.dev/submitter": name}, "namespace": "team"}
        return system_users.of({"metadata": metadata}).uid

    assert [of("carol"), of("alice"), of("alice")] == [70_000, 70_001, 70_001]
    with pytest.raises(CannotStartYet, match="--pod-uids 70000-70001"):
        of("bob")


# ---- where a folder is to be seen --------------------------------------------------------------

MOUNTS = """\
1 0 8:1 / / rw
2 1 0:5 / /proc rw
3 1 8:2 / /srv rw
4 1 8:2 /data/unisono /mnt/other\\040place rw
5 1 8:2 /data /home rw
6 5 8:3 / /home/unisono rw
7 1 8:2 /elsewhere /opt rw
"""


@pytest.mark.parametrize(
    ("path", "places"),
    [
        ("/root/x", ["/root/x"]),
        ("/opt/x", ["/opt/x", "/srv/elsewhere/x"]),
        (
            "/srv/data/unisono",
            ["/srv/data/unisono", "/mnt/other place", "/home/unisono"],
        ),
        (
            "/mnt/other place/a",
            ["/mnt/other place/a", "/srv/data/unisono/a", "/home/unisono/a"],
        ),
        ("/home/unisono/a", ["/home/unisono/a"]),
    ],
)
def test_a_folder_is_found_under_all_its_names(path: str, places: list[str]) -> None:
    assert sandbox.places_of(path, MOUNTS) == places


@NEEDS_ROOT
@NEEDS_ROOMS
@pytest.mark.slow
def test_containers_of_the_one_owner_end_when_others_join(folder: Path) -> None:
    """They outlived the runner as the owner's processes: a user who may edit pods would be root."""

    async def run() -> None:
        before = ProcessWorld(folder, 1)
        async with before.running():
            await before.client.create(node())
            made = sh("id -u; sleep 1000", "old")
            made["spec"]["restartPolicy"] = "OnFailure"
            await before.client.create(made)
            await before.pod("old", lambda found: phase(found) == "Running")
        system_users = SystemUsers(folder / "uids.json", (FIRST, FIRST + 9), {})
        after = ProcessWorld(folder, 1, system_users=system_users)
        async with after.running():
            found = await after.pod("old", _runs_again)
            assert after.recovered == 0
            said = ""
            while not said:
                await asyncio.sleep(0.02)
                with contextlib.suppress(FileNotFoundError):  # it has only just begun
                    said = after.log(found)
            assert int(said) >= FIRST
            await after.machine.close(grace_s=1)

    asyncio.run(run())


def _runs_again(found: Json | None) -> bool:
    statuses = (found or {}).get("status", {}).get("containerStatuses") or [{}]
    return phase(found) == "Running" and statuses[0].get("restartCount", 0) > 0
