"""`unisono logs`: of a pod, of all pods below an owner, as far as there are any."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import Shell, pod

TIME = "2026-01-01T09:00:00.000000001Z"


def _owner(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = obj["metadata"]
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }


def _add(shell: Shell, manifest: dict[str, Any], *lines: str) -> dict[str, Any]:
    """Create a pod that has written lines."""
    pods = shell.cluster.api.of("v1", "pods", shell.namespace)
    made: dict[str, Any] = pods.create(manifest).ok(201)
    if lines:
        folder = shell.cluster.logs / shell.namespace / made["metadata"]["uid"]
        folder.mkdir(parents=True)
        (folder / "main.log").write_text("".join(f"{TIME} {line}\n" for line in lines))
    pods.patch(manifest["metadata"]["name"], {"status": {"phase": "Succeeded"}}, sub="status").ok()
    return made


def test_of_a_pod(shell: Shell) -> None:
    _add(shell, pod("p"), "one", "two")
    assert shell.type("logs", "p").ok() == "one\ntwo\n"
    assert shell.type("logs", "pod/p", "--tail", "1").ok() == "two\n"
    assert shell.type("logs", "p", "-f", "-c", "main", "--timestamps").lines[0] == f"{TIME} one"


@pytest.mark.parametrize("follow", [(), ("-f",)])
def test_of_everything_below_an_owner(shell: Shell, follow: tuple[str, ...]) -> None:
    maps = shell.cluster.api.of("v1", "configmaps", shell.namespace)
    top = maps.create({"metadata": {"name": "top"}}).ok(201)
    middle = {"metadata": {"name": "middle", "ownerReferences": [_owner(top)]}}
    below = [_owner(maps.create(middle).ok(201))]
    _add(shell, pod("a", ownerReferences=below), "from a")
    _add(shell, pod("b", ownerReferences=below), "from b")
    _add(shell, pod("c"), "from c")
    lines = shell.type("logs", "cm/top", *follow).ok().splitlines()
    assert sorted(lines) == ["[a main] from a", "[b main] from b"]


def test_by_label_as_far_as_there_are_any(shell: Shell) -> None:
    _add(shell, pod("a", labels={"team": "x"}), "from a")
    _add(shell, pod("b", labels={"team": "x"}))
    said = shell.type("logs", "-l", "team=x")
    assert (said.code, said.out) == (0, "[a main] from a\n")
    assert 'container "main" in pod "b" is waiting to start' in said.err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("nope",), 1, 'pods "nope" not found'),
        (("p", "--previous"), 1, "previous terminated container"),
        (("p", "-c", "other"), 1, "container other is not valid for pod p"),
        (("job/nope",), 1, 'jobs.batch "nope" not found'),
        (("-l", "team=none"), 1, "no pods there with labels team=none"),
        ((), 2, "which logs?"),
        (("p", "-l", "x=y"), 2, "which logs?"),
    ],
)
def test_what_there_is_not(shell: Shell, words: tuple[str, ...], code: int, message: str) -> None:
    _add(shell, pod("p"), "one")
    said = shell.type("logs", *words)
    assert (said.code, said.out) == (code, "")
    assert message in said.err
