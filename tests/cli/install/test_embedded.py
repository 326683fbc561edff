"""`unisono install` on the API of `unisono up`, which needs no installation."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Cluster
from unisono.cli.main import ANSWER_IS_NO, DONE, main


def test_a_check_says_that_nothing_is_to_be_installed(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["install", "--check", "--kubeconfig", str(cluster.kubeconfig)]) == DONE
    (line,) = capsys.readouterr().out.splitlines()
    assert "is the API of `unisono up`" in line
    assert "nothing to install; name a Kubernetes cluster with --kubeconfig" in line


def test_an_installation_is_refused(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["install", "--kubeconfig", str(cluster.kubeconfig)]) == ANSWER_IS_NO
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("unisono: https://127.0.0.1:")
    assert "is the API of `unisono up`" in said.err
