"""A cluster to type commands at: the embedded server in a thread, and a namespace for each test."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance.client import Api
from tests.conformance.servers import embedded
from unisono.apiserver.access.credential_files import kubeconfig
from unisono.cli.main import main

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Cluster:
    """Where the server is, and another way to it than through the commands."""

    folder: Path
    api: Api

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run one server for all tests of commands."""
    folder = tmp_path_factory.mktemp("cluster")
    with embedded(folder) as server:
        config = kubeconfig(
            url=server.url,
            authority_pem=server.ca_file.read_bytes(),
            token=server.token,
            name="embedded",
        )
        (folder / "kubeconfig").write_text(yaml.safe_dump(config))
        api = Api(server.url, server.ca_file, server.token)
        yield Cluster(folder, api)
        api.close()


@dataclass(frozen=True)
class Said:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    def ok(self) -> str:
        """Return what it printed, if all went well."""
        assert (self.code, self.err) == (0, ""), self
        return self.out


@dataclass(frozen=True)
class Shell:
    """A person at a terminal, in one namespace."""

    cluster: Cluster
    namespace: str
    type: Callable[..., Said]
    folder: Path

    def file(self, *manifests: dict[str, Any], name: str = "manifests.yaml") -> str:
        """Write manifests to a file."""
        path = self.folder / name
        path.write_text(yaml.safe_dump_all(manifests, sort_keys=False))
        return str(path)

    def json(self, *words: str) -> Any:
        """Return what `get` says."""
        return json.loads(self.type("get", *words, "-o", "json").ok())


@pytest.fixture
def shell(
    cluster: Cluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Shell:
    """Offer a shell whose commands reach the cluster, in a namespace that is new."""
    namespace = f"cli-{next(_numbers)}"
    cluster.api.of("v1", "namespaces").create({"metadata": {"name": namespace}}).ok(201)
    monkeypatch.delenv("UNISONO_DATA_DIR", raising=False)
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))

    def typed(*words: str) -> Said:
        capsys.readouterr()
        code = main([words[0], "-n", namespace, *words[1:]])
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return Shell(cluster, namespace, typed, tmp_path)


def config_map(name: str, **labels: str) -> dict[str, Any]:
    """Return a small manifest."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels},
        "data": {"colour": "red"},
    }


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    """Return the manifest of a pod with one container."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"containers": [{"name": "main", "image": "busybox"}]},
    }
