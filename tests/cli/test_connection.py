"""Which cluster a command speaks to, and what is said when there is none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cluster
from unisono.cli.main import OUTSIDE_FAILED, main
from unisono.engine.model.errors import InvalidManifest, UnisonoError
from unisono.runtime.instance import Instance


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Begin without anything that leads to a cluster."""
    for name in ("UNISONO_DATA_DIR", "KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def instance(cluster: Cluster, tmp_path: Path) -> Iterator[Instance]:
    """Return an instance that runs, as far as its folder tells."""
    made = Instance(tmp_path / "instance")
    made.prepare()
    made.kubeconfig.write_bytes(cluster.kubeconfig.read_bytes())
    lock = made.lock()
    made.remember(url="https://127.0.0.1:6443")
    yield made
    os.close(lock)


def test_a_kubeconfig(cluster: Cluster) -> None:
    assert main(["get", "ns", "--kubeconfig", str(cluster.kubeconfig)]) == 0


def test_the_kubeconfig_of_the_environment(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    assert main(["get", "ns"]) == 0


def test_the_folder_of_an_instance(instance: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["get", "ns", "--data-dir", str(instance.directory)]) == 0
    monkeypatch.setenv("UNISONO_DATA_DIR", str(instance.directory))
    monkeypatch.setenv("KUBECONFIG", "/no/such/file")
    assert main(["get", "ns"]) == 0


def test_the_default_instance_if_it_runs(
    instance: Instance, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    default = tmp_path / "home" / ".unisono" / "default"
    default.parent.mkdir(parents=True)
    default.symlink_to(instance.directory)
    assert main(["get", "ns"]) == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((), 2, "no cluster to speak to"),
        (("--data-dir", "/no/such/folder"), 3, "nothing runs in /no/such/folder; start it with"),
        (("--kubeconfig", "/no/such/file"), 2, "/no/such/file: cannot be read"),
    ],
)
def test_nowhere(
    words: tuple[str, ...], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["get", "ns", *words]) == code
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1


def test_waits_for_an_instance_that_is_starting(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance.remember(pid=1)
    looks = 0

    def sleep(seconds: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            instance.remember(url="https://127.0.0.1:6443")

    monkeypatch.setattr("time.sleep", sleep)
    assert main(["get", "ns", "--kubeconfig", str(instance.kubeconfig)]) == 0
    instance.remember(pid=1)
    looks = 0
    assert main(["get", "ns", "--data-dir", str(instance.directory)]) == 0
    instance.remember(pid=1)
    looks = 0
    monkeypatch.setenv("KUBECONFIG", str(instance.kubeconfig))
    assert main(["get", "ns"]) == 0


def test_waits_for_an_instance_that_was_started_in_the_same_moment(
    instance: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`unisono up & unisono apply -f …`: it has not even taken its folder yet."""
    answers = iter([False, False, False])
    held = Instance.is_running
    monkeypatch.setattr(Instance, "is_running", lambda self: next(answers, None) or held(self))
    assert main(["get", "ns", "--data-dir", str(instance.directory)]) == 0
    assert next(answers, None) is None, "it looked more than once"


def test_does_not_wait_for_ever(
    instance: Instance, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    instance.remember(pid=1)
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += 10.0

    monkeypatch.setattr("time.sleep", sleep)
    monkeypatch.setattr("time.monotonic", lambda: now)
    assert main(["get", "ns", "--data-dir", str(instance.directory)]) == OUTSIDE_FAILED
    first, last = capsys.readouterr().err.splitlines()
    assert first == f"unisono: waiting for {instance.directory} to start"
    assert last.endswith(
        "is still starting after 30 seconds; try again once `unisono up` prints its api line"
    )


def test_a_kubeconfig_of_an_instance_that_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped = Instance(tmp_path / "stopped")
    stopped.prepare()
    os.close(stopped.lock())
    monkeypatch.setenv("KUBECONFIG", str(stopped.kubeconfig))
    assert main(["get", "ns"]) == OUTSIDE_FAILED
    assert f"unisono up --data-dir {stopped.directory}" in capsys.readouterr().err


def test_no_api_answers(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = cluster.kubeconfig.read_text()
    (address,) = (line for line in config.splitlines() if "server:" in line)
    wrong = tmp_path / "kubeconfig"
    wrong.write_text(config.replace(address, "    server: https://127.0.0.1:1"))
    assert main(["get", "ns", "--kubeconfig", str(wrong)]) == 3
    assert "no connection" in capsys.readouterr().err


def test_unknown_credentials(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "kubeconfig"
    wrong.write_text(cluster.kubeconfig.read_text().replace("token: ", "token: x"))
    assert main(["get", "ns", "--kubeconfig", str(wrong)]) == 3
    assert "does not know the user" in capsys.readouterr().err


def test_the_worst_of_several_troubles_decides() -> None:
    from unisono.cli.connection import ClusterFailed, worst
    from unisono.runtime import AnswerIsNo

    wrong: list[UnisonoError] = [InvalidManifest("", "a")]
    assert isinstance(worst(wrong), InvalidManifest)
    assert isinstance(worst([*wrong, AnswerIsNo("b")]), AnswerIsNo)
    both = worst([*wrong, ClusterFailed("c"), AnswerIsNo("b")])
    assert (type(both), str(both)) == (ClusterFailed, "a\nc\nb")
