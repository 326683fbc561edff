"""`unisono delete`: by name, by label, by manifest; waiting for what takes its time."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Shell, config_map
from unisono.cli import delete


@pytest.fixture
def two(shell: Shell) -> Shell:
    """Return a shell; its namespace has two config maps."""
    shell.type("apply", "-f", shell.file(config_map("a", team="x"), config_map("b"))).ok()
    return shell


def _left(shell: Shell) -> list[str]:
    return shell.type("get", "cm", "-o", "name").lines


def test_by_name(two: Shell) -> None:
    assert two.type("delete", "cm", "a").ok() == "configmap/a deleted\n"
    assert _left(two) == ["configmap/b"]


def test_by_kind_and_name(two: Shell) -> None:
    assert two.type("delete", "cm/a", "cm/b").ok() == "configmap/a deleted\nconfigmap/b deleted\n"


def test_by_label(two: Shell) -> None:
    assert two.type("delete", "cm", "-l", "team=x").ok() == "configmap/a deleted\n"


def test_all(two: Shell) -> None:
    assert two.type("delete", "cm", "--all").ok() == "configmap/a deleted\nconfigmap/b deleted\n"


def test_by_manifest(two: Shell) -> None:
    assert two.type("delete", "-f", two.file(config_map("b"))).ok() == "configmap/b deleted\n"


def test_the_others_go_although_one_is_gone(two: Shell) -> None:
    said = two.type("delete", "cm", "nope", "a")
    assert (said.code, said.out) == (1, "configmap/a deleted\n")
    assert said.err == 'unisono: configmaps "nope" not found\n'
    assert two.type("delete", "--ignore-not-found", "cm", "nope").ok() == ""


def test_one_must_say_which(two: Shell) -> None:
    assert two.type("delete", "cm").code == 2
    assert two.type("delete").code == 2
    assert _left(two) == ["configmap/a", "configmap/b"]


def test_it_waits_for_finalizers(two: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    held = config_map("held")
    held["metadata"]["finalizers"] = ["example.com/slow"]
    two.type("apply", "-f", two.file(held)).ok()
    assert two.type("delete", "--no-wait", "cm", "held").ok() == "configmap/held deleted\n"
    monkeypatch.setattr(delete, "_PATIENCE_SECONDS", 0.05)
    said = two.type("delete", "cm", "held")
    assert (said.code, said.out) == (3, "")
    assert "waits for: example.com/slow" in said.err
    maps = two.cluster.api.of("v1", "configmaps", two.namespace)
    maps.patch("held", {"metadata": {"finalizers": None}}).ok()
    assert "configmap/held" not in _left(two)
