"""The lightweight client: over the Unix socket of an instance, or by TLS."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.slurm.fake_api import context
from unisono.apiserver.access.credential_files import write_kubeconfig
from unisono.apiserver.api import Api, Environment
from unisono.apiserver.bootstrap import bootstrap
from unisono.apiserver.http_entry import HttpEntry
from unisono.apiserver.request import User
from unisono.apiserver.rest.pod_logs import LogFiles
from unisono.apiserver.storage.database import Database
from unisono.apiserver.storage.store import Store
from unisono.net.http.server import serving
from unisono.net.listener import listen, local_socket
from unisono.runtime.instance import Instance
from unisono.slurm.client import SOCKET_NAME, ApiAccess, ApiClient, ClientError, access_of
from unisono.slurm.commands.sbatch import run as sbatch

UNUSED_ADDRESS = "https://127.0.0.1:1"
SPACE = "/api/v1/namespaces/default"


def asked(folder: Path, story: Callable[[], object]) -> None:
    """Run a test while an API listens on the socket of a folder."""

    async def run() -> None:
        random_source = random.Random(1)
        store = Store(Database(":memory:"))
        try:
            outside = Environment(
                clock=lambda: 1_767_258_000.0,
                new_uid=lambda: str(uuid.UUID(int=random_source.getrandbits(128), version=4)),
                random_source=random_source,
                logs=LogFiles(folder),
            )
            api = Api(store, outside)
            await bootstrap(api)
            front = HttpEntry(api, lambda *_: User(name="ann", groups=("system:masters",)))
            sock, beside = listen("127.0.0.1", 0), local_socket(folder / SOCKET_NAME)
            async with asyncio.timeout(20), serving(front, sock, None, beside):
                await asyncio.to_thread(story)
        finally:
            store.close()

    asyncio.run(run())


def config(folder: Path, mode: int = 0o700) -> ApiAccess:
    """Return how to reach the instance of a folder, as its kubeconfig says."""
    folder.mkdir(exist_ok=True)
    folder.chmod(mode)
    instance = Instance(folder)
    write_kubeconfig(
        instance.kubeconfig, url=UNUSED_ADDRESS, authority_pem=b"-----BEGIN", token="t"
    )
    found = access_of(str(instance.kubeconfig))
    assert found is not None
    return found


def test_a_local_instance_is_asked_over_its_unix_socket(tmp_path: Path) -> None:
    def story() -> None:
        api = ApiClient(config(tmp_path / "i"))
        assert api.get(SPACE)["metadata"]["name"] == "default"
        made = api.create(f"{SPACE}/configmaps", {"metadata": {"name": "a"}})
        assert api.get(f"{SPACE}/configmaps/a") == made
        api.close()

    (tmp_path / "i").mkdir(mode=0o700)
    asked(tmp_path / "i", story)


def test_a_folder_that_others_can_write_to_is_not_trusted_with_the_token(tmp_path: Path) -> None:
    def story() -> None:
        access = config(tmp_path / "i", mode=0o777)
        assert access.unix_socket == ""
        with pytest.raises(ClientError, match="refused"):
            ApiClient(access).get(SPACE)

    (tmp_path / "i").mkdir(mode=0o700)
    asked(tmp_path / "i", story)


def test_a_dead_unix_socket_falls_back_to_the_address(tmp_path: Path) -> None:
    (tmp_path / "i").mkdir(mode=0o700)
    left = local_socket(tmp_path / "i" / SOCKET_NAME)
    assert left is not None
    left.close()  # the file stays, as after a crash
    access = config(tmp_path / "i")
    assert access.unix_socket
    with pytest.raises(
        ClientError, match=r"127\.0\.0\.1:1: .*refused; start the cluster with `unisono up`$"
    ):
        ApiClient(access).get(SPACE)
    again = local_socket(tmp_path / "i" / SOCKET_NAME)
    assert again is not None
    again.close()


def test_a_path_too_long_for_a_socket_is_skipped(tmp_path: Path) -> None:
    assert local_socket(tmp_path / ("x" * 120) / SOCKET_NAME) is None


def test_what_the_api_warns_about_is_told_by_sbatch(tmp_path: Path) -> None:
    def story() -> None:
        api = ApiClient(config(tmp_path / "i"))
        script = {"run.sh": "#!/bin/sh\n"}
        outcome = sbatch(["--mail-type=END", "run.sh"], context(api, script))
        assert outcome.error == (
            "sbatch: warning: gets no mail: the policy names no mail server (notifications.mail)\n"
        )
        assert sbatch(["run.sh"], context(api, script)).error == ""
        assert api.warnings() == []
        api.close()

    (tmp_path / "i").mkdir(mode=0o700)
    asked(tmp_path / "i", story)
