"""What a container finds around it, without starting one: environment, files, names, places."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.runner.simulated_world import node, pod
from unisono.control import names
from unisono.control.assembly import INDEXES
from unisono.control.view import KindStore, View
from unisono.kube.form import Json
from unisono.runner.addresses import hosts_text, name_table, neighbours
from unisono.runner.process.allocations import (
    Devices,
    Ports,
    device_variables,
    gang_of,
    written_ports,
)
from unisono.runner.process.environment import environment
from unisono.runner.process.mounts import (
    Mount,
    Places,
    files_of,
    mounts_of,
    path_rewriting,
    volumes_of,
    wanted_directories,
)
from unisono.runner.process.references import CannotStartYet, References
from unisono.runner.status import PodAddress

KINDS = (names.POD, names.NODE, names.SERVICE, names.CONFIG_MAP, names.SECRET)
PLACES = Places(pod="/pods/u", claims="/claims", host_paths=("/srv/data",))


def view_of(*objects: Json) -> View:
    """Return a view of some objects."""
    view = View({kind: KindStore.of(kind, INDEXES.get(kind, {})) for kind in KINDS})
    for number, obj in enumerate(objects):
        kind = next(kind for kind in KINDS if kind.kind == obj["kind"])
        metadata = {"uid": f"uid-{obj['metadata']['name']}", **obj["metadata"]}
        metadata["resourceVersion"] = str(number + 1)
        list(view.upsert(kind, {**obj, "metadata": metadata}))
    return view


def config_map(**data: str) -> Json:
    """Return a config map."""
    metadata = {"name": "settings", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def secret(**data: bytes) -> Json:
    """Return a secret."""
    metadata = {"name": "hush", "namespace": "default"}
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}


def references(manifest: Json, *objects: Json) -> References:
    """Return what values of a pod may refer to."""
    metadata = {"uid": "u", **manifest["metadata"]}
    return References(
        {**manifest, "metadata": metadata}, view_of(*objects), PodAddress("127.64.0.9", "10.0.0.1")
    )


# ---- environment -------------------------------------------------------------------------------


def test_later_variables_win_and_see_earlier_ones() -> None:
    container = {
        "name": "main",
        "envFrom": [{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "hush"}}],
        "env": [
            {"name": "a", "value": "env"},
            {"name": "seen", "value": "$(a) $(b) $(later) $(PATH)"},
            {"name": "later", "value": "x"},
        ],
    }
    launch_context = references(pod(), config_map(a="map", b="map"), secret(b=b"secret"))
    found = environment(container, launch_context, {"PATH": "/bin", "a": "machine"})
    assert found.written == {
        "a": "env",
        "b": "secret",
        "seen": "env secret $(later) $(PATH)",
        "later": "x",
    }
    assert found.whole["PATH"] == "/bin"
    assert found.whole["a"] == "env"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"fieldRef": {"fieldPath": "metadata.name"}}, "p"),
        ({"fieldRef": {"fieldPath": "metadata.uid"}}, "u"),
        ({"fieldRef": {"fieldPath": "metadata.labels['rank']"}}, "3"),
        ({"fieldRef": {"fieldPath": "metadata.labels['none']"}}, ""),
        ({"fieldRef": {"fieldPath": "metadata.annotations['unisono.dev/x']"}}, "y"),
        ({"fieldRef": {"fieldPath": "spec.nodeName"}}, "n1"),
        ({"fieldRef": {"fieldPath": "spec.serviceAccountName"}}, "default"),
        ({"fieldRef": {"fieldPath": "status.podIP"}}, "127.64.0.9"),
        ({"fieldRef": {"fieldPath": "status.hostIP"}}, "10.0.0.1"),
        ({"resourceFieldRef": {"resource": "requests.cpu"}}, "1"),
        ({"resourceFieldRef": {"resource": "requests.cpu", "divisor": "1m"}}, "250"),
        ({"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}, "1536"),
        ({"resourceFieldRef": {"resource": "limits.cpu"}}, "64"),  # the node's
        ({"configMapKeyRef": {"name": "settings", "key": "k"}}, "v"),
        ({"configMapKeyRef": {"name": "none", "key": "k", "optional": True}}, None),
        ({"secretKeyRef": {"name": "hush", "key": "k"}}, "s"),
        ({"secretKeyRef": {"name": "hush", "key": "none", "optional": True}}, None),
    ],
)
def test_where_a_value_comes_from(source: Json, expected: str | None) -> None:
    manifest = pod(says={"x": "y"})
    manifest["metadata"]["labels"] = {"rank": "3"}
    resources = {"requests": {"cpu": "250m"}, "limits": {"memory": "1.5Gi"}}
    container = {
        "name": "main",
        "resources": resources,
        "env": [{"name": "V", "valueFrom": source}],
    }
    manifest["spec"]["containers"] = [container]
    launch_context = references(manifest, node(), config_map(k="v"), secret(k=b"s"))
    assert environment(container, launch_context, {}).written.get("V") == expected


@pytest.mark.parametrize(
    ("container", "why"),
    [
        ({"envFrom": [{"configMapRef": {"name": "none"}}]}, 'configmap "none" not found'),
        ({"envFrom": [{"secretRef": {"name": "none"}}]}, 'secret "none" not found'),
        (
            {
                "env": [
                    {
                        "name": "V",
                        "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "z"}},
                    }
                ]
            },
            "couldn't find key z in configmap settings",
        ),
        (
            {"env": [{"name": "V", "valueFrom": {"fieldRef": {"fieldPath": "spec.nope"}}}]},
            "unsupported fieldPath: spec.nope",
        ),
    ],
)
def test_reports_missing_references(container: Json, why: str) -> None:
    with pytest.raises(CannotStartYet) as error:
        environment({"name": "main", **container}, references(pod(), config_map(k="v")), {})
    assert (error.value.reason, error.value.message) == ("CreateContainerConfigError", why)


def test_services_are_the_weakest_variables() -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "my-db", "namespace": "default"},
        "spec": {"clusterIP": "10.9.9.9", "ports": [{"port": 5432, "name": "sql"}]},
    }
    container = {"name": "main", "env": [{"name": "MY_DB_SERVICE_PORT", "value": "1"}]}
    found = environment(container, references(pod(), service), {}).written
    assert found["MY_DB_SERVICE_HOST"] == "10.9.9.9"
    assert found["MY_DB_SERVICE_PORT"] == "1"
    assert found["MY_DB_SERVICE_PORT_SQL"] == "5432"
    quiet = pod(enableServiceLinks=False)
    assert environment({"name": "main"}, references(quiet, service), {}).written == {}


# ---- files and places --------------------------------------------------------------------------


def test_files_of_volumes() -> None:
    manifest = pod()
    manifest["metadata"]["labels"] = {"b": "2", "a": 'say "hi"'}
    launch_context = references(manifest, config_map(x="1", y="2"), secret(k=b"\0"))
    projected = {
        "defaultMode": 0o440,
        "sources": [
            {"configMap": {"name": "settings", "items": [{"key": "x", "path": "deep/x"}]}},
            {"secret": {"name": "hush", "items": [{"key": "k", "path": "k", "mode": 0o600}]}},
            {
                "downwardAPI": {
                    "items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]
                }
            },
        ],
    }
    found = files_of({"name": "v", "projected": projected}, launch_context)
    assert found is not None
    assert {path: (file.content, file.mode) for path, file in found.items()} == {
        "deep/x": (b"1", 0o440),
        "k": (b"\0", 0o600),
        "labels": (b'a="say \\"hi\\""\nb="2"', 0o440),
    }
    assert files_of({"name": "v", "emptyDir": {}}, launch_context) is None


@pytest.mark.parametrize("path", ["../up", "/etc/x", "a/../../b", ""])
def test_files_stay_inside_their_volume(path: str) -> None:
    volume = {"configMap": {"name": "settings", "items": [{"key": "x", "path": path}]}}
    with pytest.raises(CannotStartYet):
        files_of({"name": "v", **volume}, references(pod(), config_map(x="1")))


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        ({"emptyDir": {}}, "/pods/u/volumes/v"),
        ({"persistentVolumeClaim": {"claimName": "c"}}, "/claims/default/c"),
        ({"ephemeral": {}}, "/claims/default/p-v"),
        ({"hostPath": {"path": "/srv/data/x"}}, "/srv/data/x"),
        ({"hostPath": {"path": "/etc"}}, "FailedMount"),
        ({"hostPath": {"path": "/srv/data/../../etc"}}, "FailedMount"),
        ({"hostPath": {"path": "/srv/database"}}, "FailedMount"),
        ({"nfs": {"server": "s", "path": "/"}}, "FailedMount"),
    ],
)
def test_where_a_volume_is(volume: Json, expected: str) -> None:
    manifest = pod(volumes=[{"name": "v", **volume}])
    try:
        found = volumes_of(manifest, PLACES, references(manifest))["v"].path
    except CannotStartYet as error:
        found = error.reason
    assert found == expected


def test_mounts_go_from_the_outside_in() -> None:
    volumes = [
        {"name": "v", "emptyDir": {}},
        {"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
    ]
    container = {
        "name": "main",
        "volumeMounts": [
            {"name": "v", "mountPath": "/data/in/", "subPathExpr": "$(RANK)/x"},
            {"name": "v", "mountPath": "/data", "readOnly": True},
            {"name": "m", "mountPath": "/dev/shm"},
        ],
    }
    manifest = pod(volumes=volumes, containers=[container])
    found = volumes_of(manifest, PLACES, references(manifest))
    mounts = mounts_of(container, manifest, found, {"RANK": "3"})
    own, memory = "/pods/u/volumes/v", "/pods/u/volumes/m"
    assert mounts == [
        Mount(source=own, target="/data", read_only=True, inside=own),
        Mount(source=f"{own}/3/x", target="/data/in", inside=own),
        Mount(source=memory, target="/dev/shm", memory_bytes=64 << 20, inside=memory),
    ]
    assert wanted_directories(found.values(), mounts) == [(own, ""), (memory, ""), (own, "3/x")]
    put = path_rewriting(mounts)
    assert put("cp /data/in/a /data/b") == "cp /pods/u/volumes/v/3/x/a /pods/u/volumes/v/b"


def test_memory_that_containers_share_is_a_directory() -> None:
    volumes = [{"name": "m", "emptyDir": {"medium": "Memory"}}]
    mount = [{"name": "m", "mountPath": "/m"}]
    one, two = ({"name": name, "volumeMounts": mount} for name in ("one", "two"))
    manifest = pod(volumes=volumes, containers=[one, two])
    found = volumes_of(manifest, PLACES, references(manifest))
    assert mounts_of(one, manifest, found, {})[0].memory_bytes is None


# ---- names -------------------------------------------------------------------------------------


def member(name: str, *, is_ready: bool = True) -> Json:
    """Return a pod of a headless service."""
    manifest = pod(name, hostname=name, subdomain="team")
    manifest["metadata"]["labels"] = {"app": "team"}
    status = "True" if is_ready else "False"
    manifest["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": status}]}
    return manifest


def service(name: str = "team", **spec: Any) -> Json:
    """Return a service."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"app": "team"}, **spec},
    }


def address(found: Json) -> str:
    """Return the address of a pod."""
    return f"127.64.0.{found['metadata']['name'][-1]}"


def test_a_hosts_file_has_the_full_name_first() -> None:
    view = view_of(member("w1"), member("w2"), service(clusterIP="None"))
    others = list(neighbours(view, "default", address))
    text = hosts_text(member("w1"), "127.64.0.1", others)
    assert text.splitlines()[3:] == [
        "127.64.0.1 w1.team.default.svc.cluster.local w1.team.default.svc w1.team.default "
        "w1.team w1",
        "127.64.0.2 w2.team.default.svc.cluster.local w2.team.default.svc w2.team.default w2.team",
        "127.64.0.1 team.default.svc.cluster.local team.default.svc team.default team",
        "127.64.0.2 team.default.svc.cluster.local team.default.svc team.default team",
    ]


@pytest.mark.parametrize(
    ("spec", "seen"),
    [
        ({"clusterIP": "None"}, ["w1"]),
        ({"clusterIP": "None", "publishNotReadyAddresses": True}, ["w1", "w2"]),
    ],
)
def test_pods_that_are_not_ready_are_hidden_unless_published(spec: Json, seen: list[str]) -> None:
    view = view_of(member("w1"), member("w2", is_ready=False), service(**spec))
    found = [host.names[0].partition(".")[0] for host in neighbours(view, "default", address)]
    assert [name for name in found if name != "team"] == seen


def test_other_services_lead_to_one_pod() -> None:
    view = view_of(member("w1"), member("w2"), service("front", clusterIP="10.1.1.1"))
    found = [host for host in neighbours(view, "default", address) if host.names[-1] == "front"]
    assert [host.address for host in found] == ["127.64.0.1"]


def test_texts_know_dotted_names_only() -> None:
    view = view_of(member("w1"), member("w2"), service(clusterIP="None"))
    table = name_table(member("w1"), "127.64.0.1", list(neighbours(view, "default", address)))
    assert table["w2.team"] == "127.64.0.2"
    assert table["team.default"] == "127.64.0.1"
    assert "team" not in table
    assert "w1" not in table


# ---- ports and devices -------------------------------------------------------------------------


def test_a_gang_has_one_port_and_no_other_gang_has_it() -> None:
    busy = {20_000 + number for number in range(0, 9000, 2)}
    ports = Ports(lambda port: port not in busy)
    first = ports.of("a#0:29500", "u1")
    assert ports.of("a#0:29500", "u2") == first
    assert first not in busy
    others = {ports.of(f"{gang}#0:29500", gang) for gang in "bcdefgh"}
    assert len(others) == 7
    assert first not in others
    ports.release("u1")
    assert ports.of("a#0:29500", "u3") == first


def test_a_written_port_belongs_to_the_first_until_its_last_pod_is_gone() -> None:
    ports = Ports(lambda port: True)
    ports.hold("a", "u1", [29500])
    ports.hold("a", "u2", [29500])
    for uid in ("u1", "u2"):
        with pytest.raises(CannotStartYet, match="port 29500 is taken by a"):
            ports.hold("b", "u3", [29500])
        ports.release(uid)
    ports.hold("b", "u3", [29500])


def test_recovered_ports_count_after_a_restart() -> None:
    ports = Ports(lambda port: True)
    ports.learn("u1", {"a#0:29500": 20_123}, {29511: "a"})
    assert ports.of("a#0:29500", "u2") == 20_123
    with pytest.raises(CannotStartYet):
        ports.hold("b", "u3", [29511])


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["torchrun", "--rdzv_endpoint=w1.team:29500", "x.py"], {29500}),
        (["torchrun", "--master_port", "29511"], {29511}),
        (["sh", "-c", "torchrun --master-port=29512 x"], {29512}),
        (["curl", "http://example.com:8080"], set()),
        (["echo", "12:30"], set()),
    ],
)
def test_ports_in_commands(argv: list[str], expected: set[int]) -> None:
    joined = [" ".join(argv)] if argv[0] == "torchrun" else argv
    assert written_ports(pod(), joined, ["w1.team"], "") == expected


def test_ports_of_rank_0_count_unless_the_gang_got_its_own() -> None:
    def rank(index: str) -> Json:
        container = {"name": "main", "ports": [{"containerPort": 29500}, {"containerPort": 6379}]}
        found = pod(containers=[container])
        found["metadata"]["labels"] = {"batch.kubernetes.io/job-completion-index": index}
        return found

    assert written_ports(rank("0"), [], [], "29500") == {6379}
    assert written_ports(rank("0"), [], [], "") == {6379, 29500}
    assert written_ports(rank("1"), [], [], "") == set()


def test_gang_of_a_pod() -> None:
    alone = pod()
    owned = pod()
    owned["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j", "controller": True}]
    queued = pod()
    queued["metadata"]["annotations"]["kueue.x-k8s.io/workload"] = "w"
    assert [gang_of(one) for one in (alone, owned, queued)] == [
        "default/p",
        "default/Job/j",
        "default/w",
    ]


def wants(count: int) -> Json:
    """Return a container that wants GPUs."""
    return {"name": "main", "resources": {"limits": {"nvidia.com/gpu": str(count)}}}


def test_containers_with_the_same_number_share_a_gpu() -> None:
    devices, here = Devices(), node(**{"nvidia.com/gpu": "3"})
    assert devices.of(here, "whole", wants(1)) == {"nvidia.com/gpu": (0,)}
    first = devices.of(here, "a", wants(0), 0)
    assert first["nvidia.com/gpu"] == (1,)
    assert devices.of(here, "b", wants(1), 0) == first
    assert devices.of(here, "c", wants(0), 1)["nvidia.com/gpu"] == (2,)
    assert device_variables(first)["CUDA_VISIBLE_DEVICES"] == "1"
    again = Devices()  # after a restart, from what was written down
    again.learn("n", "a", "main", first)
    again.learn("n", "whole", "main", {"nvidia.com/gpu": (0,)})
    assert again.of({**here, "metadata": {"name": "n"}}, "d", wants(0), 0) == first
    devices.release("a")
    assert devices.of(here, "d", wants(0), 0) == first
    devices.release("b")
    devices.release("d")
    assert devices.of(here, "e", wants(1)) == {"nvidia.com/gpu": (1,)}


def test_devices_are_given_lowest_first_and_come_back() -> None:
    devices, here = Devices(), node(**{"nvidia.com/gpu": "4"})
    assert devices.of(here, "a", wants(2)) == {"nvidia.com/gpu": (0, 1)}
    assert devices.of(here, "b", wants(1)) == {"nvidia.com/gpu": (2,)}
    assert devices.of(here, "a", wants(2)) == {"nvidia.com/gpu": (0, 1)}
    with pytest.raises(CannotStartYet, match=r"requests 2 nvidia\.com/gpu; 1 of 4 are free on n1"):
        devices.of(here, "c", wants(2))
    devices.release("a")
    assert devices.of(here, "c", wants(3)) == {"nvidia.com/gpu": (0, 1, 3)}
    other = node("n2", **{"nvidia.com/gpu": "1"})
    assert devices.of(other, "d", wants(1)) == {"nvidia.com/gpu": (0,)}


def test_containers_without_devices_see_none() -> None:
    assert device_variables({})["CUDA_VISIBLE_DEVICES"] == ""
    held = device_variables({"nvidia.com/gpu": (3, 5)})
    assert held["CUDA_VISIBLE_DEVICES"] == held["NVIDIA_VISIBLE_DEVICES"] == "3,5"
    assert held["UNISONO_SIMULATED_GPUS"] == "2"
