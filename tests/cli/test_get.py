"""`unisono get`: tables, forms, words for kinds, and watching."""

from __future__ import annotations

import threading

import pytest

from tests.cli.conftest import Shell, config_map, pod
from unisono.kube.tables import Column, Row, RowMeta, RowObject


@pytest.fixture
def two(shell: Shell) -> Shell:
    """Return a shell; its namespace has two config maps."""
    shell.type("apply", "-f", shell.file(config_map("a", team="x"), config_map("long-name"))).ok()
    return shell


def test_a_table_has_the_columns_of_the_kind_aligned(two: Shell) -> None:
    head, first, second = two.type("get", "configmaps").ok().splitlines()
    assert head.split() == ["NAME", "DATA", "AGE"]
    assert first.split()[:2] == ["a", "1"]
    assert head.index("DATA") == first.index("1") == second.index("1")


@pytest.mark.parametrize("word", ["cm", "configmap", "ConfigMap", "configmaps"])
def test_a_kind_has_many_names(two: Shell, word: str) -> None:
    assert two.type("get", word, "-o", "name").lines == ["configmap/a", "configmap/long-name"]


@pytest.mark.parametrize("word", ["jobs", "vcjob", "jobs.batch.volcano.sh", "Job.batch", "deploy"])
def test_other_kinds_are_found(shell: Shell, word: str) -> None:
    said = shell.type("get", word)
    assert (said.code, said.err) == (0, f"unisono: nothing found in {shell.namespace}\n")


def test_objects_are_chosen_by_name_and_by_label(two: Shell) -> None:
    assert two.type("get", "cm", "a", "-o", "name").lines == ["configmap/a"]
    assert two.type("get", "cm/long-name", "cm/a", "-o", "name").lines == [
        "configmap/long-name",
        "configmap/a",
    ]
    assert two.type("get", "cm", "-l", "team=x", "-o", "name").lines == ["configmap/a"]
    fields = ("--field-selector", "metadata.name=long-name")
    assert two.type("get", "cm", *fields, "-o", "name").lines == ["configmap/long-name"]


def test_all_namespaces_have_a_column_of_their_own(two: Shell) -> None:
    head, *rows = two.type("get", "cm", "-A").lines
    assert head.split()[0] == "NAMESPACE"
    assert [two.namespace, "a", "1"] in [row.split()[:3] for row in rows]


def test_several_kinds_are_several_tables(two: Shell) -> None:
    two.type("apply", "-f", two.file(pod("p"))).ok()
    lines = two.type("get", "cm,pods").lines
    assert lines[1].startswith("configmap/a ")
    assert lines[3] == ""
    assert lines[5].startswith("pod/p ")
    assert "pod/p" in two.type("get", "all").out


def test_more_columns_on_demand(two: Shell) -> None:
    two.type("apply", "-f", two.file(pod("p"))).ok()
    assert "NODE" not in two.type("get", "pods").lines[0].split()
    assert "NODE" in two.type("get", "pods", "-o", "wide").lines[0].split()


def test_one_object_or_a_list_for_programs(two: Shell) -> None:
    assert two.json("cm", "a")["metadata"]["name"] == "a"
    assert [each["kind"] for each in two.json("cm")["items"]] == ["ConfigMap", "ConfigMap"]
    assert two.type("get", "cm", "a", "-o", "yaml").lines[:2] == [
        "apiVersion: v1",
        "kind: ConfigMap",
    ]


def test_what_is_not_there_is_a_no(shell: Shell) -> None:
    said = shell.type("get", "cm", "nope")
    assert (said.code, said.out) == (1, "")
    assert said.err == 'unisono: configmaps "nope" not found\n'


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("cmm",), "serves no kind 'cmm'"),
        (("cm", "a", "-A"), "-A: an object has a name in one namespace"),
        (("cm", "a", "-l", "x=y"), "-l: choose by name or by selector"),
        (("cm,pods", "-w"), "-w: one kind can be watched at a time"),
        (("cm/a", "pods"), "'pods' is not of the form KIND/NAME"),
        (("cm,pods", "a"), "cm,pods are several kinds"),
        (("cm", "-l", "=="), "unable to parse"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line(
    shell: Shell, words: tuple[str, ...], message: str
) -> None:
    said = shell.type("get", *words)
    assert (said.code, said.out) == (2, "")
    assert message in said.err
    assert said.err.count("\n") == 1


def test_a_watch_goes_on_with_what_changes(two: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from unisono.cli.tables import Columns

    maps = two.cluster.api.of("v1", "configmaps", two.namespace)
    printed: list[str] = []
    text = Columns.text

    def recorded(self: Columns, rows: list[Row], *, with_head: bool) -> str:
        printed.append(text(self, rows, with_head=with_head))
        if with_head:
            threading.Timer(0.05, lambda: maps.create(config_map("new")).ok(201)).start()
        elif "new" in printed[-1]:
            raise BrokenPipeError  # `| head` has seen enough
        return printed[-1]

    monkeypatch.setattr(Columns, "text", recorded)
    assert two.type("get", "cm", "-w").code == 0
    assert printed[0].splitlines()[0].startswith("NAME")
    assert [line.split()[0] for line in printed[1].splitlines()] == ["new"]


def test_columns_stay_aligned_while_rows_come() -> None:
    from unisono.cli.tables import Columns

    def row(name: str) -> Row:
        return Row([name, True, None], RowObject(RowMeta(name, "ns")))

    heads = [Column("Name", format="name"), Column("Ready"), Column("Node", priority=1)]
    narrow = Columns(heads, is_wide=False, has_namespace=True)
    assert narrow.text([row("a")], with_head=True).splitlines() == [
        "NAMESPACE   NAME   READY",
        "ns          a      true",
    ]
    assert narrow.text([row("much-longer")], with_head=False) == "ns          much-longer   true"
    assert narrow.text([row("b")], with_head=False) == "ns          b             true"
    wide = Columns(heads, is_wide=True, has_namespace=False, prefix="pod/")
    assert wide.text([row("a")], with_head=True).splitlines() == [
        "NAME    READY   NODE",
        "pod/a   true",
    ]
