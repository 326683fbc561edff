"""`unisono crds`."""

from __future__ import annotations

import json

import pytest
import yaml

from unisono.cli.main import main


def test_definitions_of_one_group_as_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crds", "topology.volcano.sh", "unisono.dev"]) == 0
    printed = capsys.readouterr().out
    names = [one["metadata"]["name"] for one in yaml.safe_load_all(printed)]
    assert names == [
        "hypernodes.topology.volcano.sh",
        "policies.unisono.dev",
        "slurmjobs.unisono.dev",
        "workloadkinds.unisono.dev",
    ]
    assert "&id" not in printed  # no names for equal parts


def test_definitions_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crds", "-o", "json", "scheduling.x-k8s.io"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["kind"] == "List"
    assert {one["spec"]["group"] for one in printed["items"]} == {"scheduling.x-k8s.io"}


def test_a_group_that_is_not_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crds", "kue.x-k8s.io"]) == 2
    assert 'did you mean "kueue.x-k8s.io"?' in capsys.readouterr().err
    assert main(["crds", "apps"]) == 2
    assert "there are kueue.x-k8s.io" in capsys.readouterr().err


def test_both_versions_of_an_mpi_job_keep_each_others_fields(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["crds", "-o", "json", "kubeflow.org"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    made = next(one for one in items if one["metadata"]["name"] == "mpijobs.kubeflow.org")
    fields = {
        one["name"]: one["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        for one in made["spec"]["versions"]
    }
    assert set(fields) == {"v1", "v2beta1"}
    assert set(fields["v1"]) == set(fields["v2beta1"]) >= {"mainContainer", "sshAuthMountPath"}
    assert fields["v2beta1"]["sshAuthMountPath"]["default"] == "/root/.ssh"
    assert "default" not in fields["v1"]["sshAuthMountPath"]
