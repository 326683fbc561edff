"""`unisono apply`: what it makes, what it says, and what it refuses."""

from __future__ import annotations

import io
import sys

import pytest

from tests.cli.conftest import Shell, config_map


def test_an_object_is_created_then_unchanged_then_configured(shell: Shell) -> None:
    file = shell.file(config_map("a"))
    assert shell.type("apply", "-f", file).ok() == "configmap/a created\n"
    assert shell.type("apply", "-f", file).ok() == "configmap/a unchanged\n"
    changed = config_map("a") | {"data": {"colour": "blue"}}
    assert shell.type("apply", "-f", shell.file(changed)).ok() == "configmap/a configured\n"
    assert shell.json("cm", "a")["data"] == {"colour": "blue"}


def test_what_the_next_version_of_a_manifest_leaves_out_goes(shell: Shell) -> None:
    shell.type("apply", "-f", shell.file(config_map("a", team="x"))).ok()
    shell.type("apply", "-f", shell.file(config_map("a"))).ok()
    assert "labels" not in shell.json("cm", "a")["metadata"]


def test_a_folder_is_applied_in_the_order_of_its_names(shell: Shell) -> None:
    for name in ("20-b.yaml", "10-a.yaml"):
        shell.file(config_map(name[3]), name=name)
    said = shell.type("apply", "-f", str(shell.folder)).ok()
    assert said == "configmap/a created\nconfigmap/b created\n"


def test_manifests_can_come_through_a_pipe(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.TextIOWrapper(io.BytesIO(b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"))
    monkeypatch.setattr(sys, "stdin", pipe)
    assert shell.type("apply", "-f", "-").ok() == "configmap/a created\n"


def test_a_group_is_named(shell: Shell) -> None:
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "a"},
        "spec": {"clusterQueue": "all"},
    }
    said = shell.type("apply", "-f", shell.file(queue))
    assert said.out == "localqueue.kueue.x-k8s.io/a created\n"


def test_a_name_can_be_left_to_the_cluster(shell: Shell) -> None:
    nameless = config_map("x") | {"metadata": {"generateName": "run-"}}
    first = shell.type("apply", "-f", shell.file(nameless)).ok()
    assert first.startswith("configmap/run-")
    assert first != shell.type("apply", "-f", shell.file(nameless)).ok()


def test_a_dry_run_changes_nothing(shell: Shell) -> None:
    said = shell.type("apply", "--dry-run", "-f", shell.file(config_map("a"))).ok()
    assert said == "configmap/a created (dry run)\n"
    assert shell.type("get", "cm", "a").code == 1


def test_the_result_can_be_read_by_a_program(shell: Shell) -> None:
    said = shell.type("apply", "-o", "yaml", "-f", shell.file(config_map("a"))).ok()
    assert "uid: " in said
    assert "managedFields" not in said


class TestRefusals:
    def test_everything_else_is_still_applied(self, shell: Shell) -> None:
        wrong = config_map("Not A Name")
        said = shell.type("apply", "-f", shell.file(config_map("a"), wrong, config_map("b")))
        assert said.code == 2
        assert said.lines == ["configmap/a created", "configmap/b created"]
        assert "manifests.yaml, document 2: " in said.err

    def test_an_unknown_field_is_an_error_with_a_hint(self, shell: Shell) -> None:
        file = shell.file(config_map("a") | {"dta": {}})
        said = shell.type("apply", "-f", file)
        assert (said.code, said.out) == (2, "")
        assert 'unknown field "dta"' in said.err
        assert shell.type("apply", "--validate", "ignore", "-f", file).ok()

    def test_an_unknown_kind_is_an_error(self, shell: Shell) -> None:
        said = shell.type("apply", "-f", shell.file(config_map("a") | {"kind": "Gizmo"}))
        assert said.code == 2
        assert "does not serve Gizmo of v1" in said.err

    def test_a_field_of_another_manager_is_a_conflict(self, shell: Shell) -> None:
        maps = shell.cluster.api.of("v1", "configmaps", shell.namespace)
        maps.create(config_map("a") | {"data": {"colour": "green"}}).ok(201)
        file = shell.file(config_map("a"))
        said = shell.type("apply", "-f", file)
        assert said.code == 1
        assert "conflict" in said.err
        assert shell.type("apply", "--force-conflicts", "-f", file).ok()
        assert shell.json("cm", "a")["data"] == {"colour": "red"}

    def test_another_namespace_than_the_one_that_was_said(self, shell: Shell) -> None:
        other = config_map("a")
        other["metadata"]["namespace"] = "default"
        said = shell.type("apply", "-f", shell.file(other))
        assert said.code == 2
        assert f"metadata.namespace is default, and -n says {shell.namespace}" in said.err

    def test_a_file_that_is_not_there(self, shell: Shell) -> None:
        said = shell.type("apply", "-f", "/no/such/file.yaml")
        assert (said.code, said.err) == (
            2,
            "unisono: /no/such/file.yaml: No such file or directory\n",
        )

    def test_a_file_that_cannot_be_read(self, shell: Shell) -> None:
        path = shell.folder / "broken.yaml"
        path.write_text("a: [")
        assert shell.type("apply", "-f", str(path)).code == 2

    def test_a_manifest_without_a_name(self, shell: Shell) -> None:
        said = shell.type("apply", "-f", shell.file(config_map("a") | {"metadata": {}}))
        assert said.code == 2
        assert "metadata.name: is required" in said.err
