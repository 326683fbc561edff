"""What is loaded when: the API answers before the engine is there."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from unisono.cli import up
from unisono.cli.main import INPUT_IS_WRONG, OUTSIDE_FAILED, main
from unisono.engine.model.errors import InvalidManifest
from unisono.runner.process import machine

# They take as long to load as everything else together (`runtime/embedded/services.py`).
_LOADED_LATE = ("numpy", "unisono.engine.cycle", "unisono.control.assembly", "unisono.kube.client")


def _loaded(statement: str) -> set[str]:
    code = f"{statement}; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_an_api_is_loaded_without_the_engine() -> None:
    there = _loaded("import unisono.cli.up, unisono.runtime.embedded.server")
    assert "unisono.apiserver.api" in there
    assert not there & set(_LOADED_LATE)


def test_processes_of_several_people_are_refused_without_root(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    words = ["--users", str(tmp_path / "users.yaml"), "--pods", "process"]
    arguments = up.parser().parse_args([*words, "--data-dir", str(tmp_path / "data")])
    with pytest.raises(InvalidManifest, match="run this as root, leave --users out"):
        up.run(arguments)
    assert not (tmp_path / "data").exists()


def test_processes_of_several_people_are_refused_without_namespaces(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(machine, "has_sandbox", lambda: False)
    words = ["--users", str(tmp_path / "users.yaml"), "--pods", "process"]
    with pytest.raises(InvalidManifest, match="this machine does not allow"):
        up.run(up.parser().parse_args(words))


def test_a_folder_is_the_same_from_wherever_it_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A process pod and its supervisor have other working directories than `up`."""
    served: list[Path] = []
    monkeypatch.setattr(up, "_serve", lambda instance, *more: served.append(instance.directory))
    monkeypatch.chdir(tmp_path)
    up.run(up.parser().parse_args(["--data-dir", "data"]))
    assert served == [tmp_path / "data"]


@pytest.mark.parametrize("text", ["", "5", "0-5", "9-5", "a-b", "1-2147483648", "-5", "1-2-3"])
def test_a_range_of_system_users_goes_up(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        up.parser().parse_args([f"--pod-uids={text}"])
    assert "--pod-uids" in capsys.readouterr().err
    assert up.parser().parse_args(["--pod-uids=5-7"]).pod_uids == (5, 7)


def _port_between_free_ones() -> int:
    """Return a free port whose two neighbours on either side are free, too."""
    # Below those that the system gives out, which other tests have at the same moment.
    for port in range(20_000 + os.getpid() % 1_000 * 10, 32_000):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for number in range(port - 2, port + 3):
                stack.enter_context(socket.create_server(("127.0.0.1", number)))
            return port
    raise AssertionError("no free ports")


@pytest.mark.parametrize(
    ("offset", "what"), [(0, "metrics"), (1, "metrics of GPUs"), (-1, "the web page")]
)
def test_refuses_a_metrics_port_that_is_taken(
    offset: int, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = _port_between_free_ones()
    with socket.create_server(("127.0.0.1", taken)):
        words = ["up", "--data-dir", str(tmp_path), "--metrics-port", str(taken + offset)]
        assert main(words) == OUTSIDE_FAILED
    said = capsys.readouterr()
    assert said.out == "", "it ends before it answers"
    (line,) = said.err.splitlines()
    assert line.startswith(f"unisono: --metrics-port {taken + offset}: cannot listen on 127.0.0.1:")
    assert f":{taken}: " in line
    assert f"{what} would be there" in line
    assert line.endswith("choose another port, or leave --metrics-port out")


def test_refuses_a_port_that_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        assert main(["up", "--data-dir", str(tmp_path), "--port", port]) == OUTSIDE_FAILED
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"unisono: cannot listen on 127.0.0.1:{port}: ")
    assert line.endswith("; choose another --port")


def test_refuses_a_port_among_those_of_metrics(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["up", "--data-dir", str(tmp_path), "--port", "19412", "--metrics-port", "19411"]
    assert main(words) == INPUT_IS_WRONG
    assert "--metrics-port: 19411 takes 19410 to 19412" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["--port=-1"], ["--port=65536"], ["--port=80x"], ["--metrics-port=65535"]]
)
def test_refuses_what_is_no_port(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["up", *words])
    assert ended.value.code == INPUT_IS_WRONG
    assert f"argument {words[0].partition('=')[0]}: " in capsys.readouterr().err
