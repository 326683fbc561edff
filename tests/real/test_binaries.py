"""Where the programs of a control plane come from, and what is said when they are missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.real import binaries


def test_the_cache_is_named_after_the_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    place = binaries.directory()
    assert place.parent == tmp_path / "unisono" / "controlplane"
    assert place.name.startswith("kubernetes-v1.")
    assert "-etcd-v3." in place.name


def test_a_directory_of_programs_can_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    for name in binaries.REQUIRED:
        (tmp_path / name).touch(mode=0o755)
    assert binaries.find() == binaries.build() == tmp_path


def test_missing_programs_are_one_line_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(binaries.NoControlPlane, match=r"no etcd and no kube-apiserver .*make c"):
        binaries.find()


def test_without_go_nothing_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert binaries.main() == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "Go is not installed" in told


def test_a_build_that_fails_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A `go` that finds no module proxy."""
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho 'proxyconnect tcp: connection refused' >&2\nexit 1\n")
    go.chmod(0o755)
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert binaries.main() == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "module proxy" in told
    assert "connection refused" in told
    assert not [path for path in binaries.directory().iterdir() if path.name != "go"]
